// SPDX-License-Identifier: GPL-2.0-only
/*
 * The envelope of every command: the size of its struct, what lies behind it, where it lies in
 * memory, its undefined flags and its padding. One variant a command; the tests are the same.
 */
#include "common_async.h"
#include "common_vgem.h"

#include "kselftest_harness.h"
#include "length_commands.h"

FIXTURE_SETUP(command)
{
	struct objects *objects = &self->objects;

	objects->card = variant->needs_gate ? open_vgem() : -1;
	if (variant->needs_gate && objects->card < 0)
		SKIP(return, "the module vgem is not loaded");
	objects->gate = variant->needs_gate ? new_gate(objects->card).fd : -1;
	objects->ctx = new_context();
	objects->allocated = new_allocated(objects->ctx, BUFFER_NBYTES);
	objects->unallocated = new_buffer(objects->ctx, BUFFER_NBYTES);
	objects->dma_buf = new_export(objects->ctx, objects->allocated, 0);
	objects->copy_range = (struct devbuf_copy_range){
		.id = objects->allocated,
		.user_addr = (uintptr_t)objects->memory,
		.nbytes = 1,
	};
	objects->transfer_range = (struct devbuf_transfer_range){
		.dst_id = objects->allocated,
		.src_id = objects->allocated,
		.src_offset = 1,
		.nbytes = 1,
	};
	variant->prepare(objects, self->argument);
	memcpy(self->argument, &variant->size, sizeof(variant->size));
}

FIXTURE_TEARDOWN(command)
{
	close(self->objects.dma_buf);
	close(self->objects.ctx);
	close(self->objects.card);
}

static void set_size(void *argument, __u32 size)
{
	memcpy(argument, &size, sizeof(size));
}

/* The prepared argument, copied to @place and called there. */
#define CALL_AT(place)                                                   \
	({                                                               \
		void *_place = place;                                    \
		memcpy(_place, self->argument, variant->size);           \
		do_command(self->objects.ctx, variant->command, _place); \
	})

#define CALL() do_command(self->objects.ctx, variant->command, self->argument)

TEST_F(command, exact_size_is_accepted)
{
	EXPECT_EQ(0, CALL());
}

TEST_F(command, shorter_is_refused)
{
	static const __u32 sizes[] = { 0, 1, sizeof(__u32), 2 * sizeof(__u32) };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		set_size(self->argument, sizes[i]);
		EXPECT_EQ(-EINVAL, CALL());
	}
	set_size(self->argument, (variant->first_size ?: variant->size) - 1);
	EXPECT_EQ(-EINVAL, CALL());
}

/* Programs that were built before members were appended go on working. */
TEST_F(command, first_form_is_accepted)
{
	if (!variant->first_size)
		return;
	memset(self->argument + variant->first_size, 0xff, variant->size - variant->first_size);
	for (__u32 size = variant->first_size; size < variant->size; size += 8) {
		set_size(self->argument, size);
		EXPECT_EQ(0, CALL()) TH_LOG("%u bytes", size);
		memset(self->argument + size, 0, 8);
	}
}

TEST_F(command, first_form_may_end_where_memory_ends)
{
	unsigned char *place;

	if (!variant->first_size)
		return;
	set_size(self->argument, variant->first_size);
	place = new_edge(variant->first_size);
	memcpy(place, self->argument, variant->first_size);
	EXPECT_EQ(0, do_command(self->objects.ctx, variant->command, place));
}

TEST_F(command, longer_with_zeros_is_accepted)
{
	set_size(self->argument, variant->size + 8);
	EXPECT_EQ(0, CALL());
}

TEST_F(command, longest_with_zeros_is_accepted)
{
	set_size(self->argument, DEVBUF_STRUCT_MAX);
	EXPECT_EQ(0, CALL_AT(new_edge(DEVBUF_STRUCT_MAX)));
}

TEST_F(command, longer_than_the_longest_is_refused)
{
	unsigned char *place = new_memory(2 * DEVBUF_STRUCT_MAX);

	set_size(self->argument, DEVBUF_STRUCT_MAX + 1);
	EXPECT_EQ(-E2BIG, CALL_AT(place));
	set_size(self->argument, UINT32_MAX);
	EXPECT_EQ(-E2BIG, CALL_AT(place));
}

TEST_F(command, unknown_bytes_must_be_zero)
{
	const size_t first = variant->size, last = DEVBUF_STRUCT_MAX - 1;
	const size_t places[] = { first, first + 1, first + 7, last / 2, last };
	unsigned char *memory = new_memory(DEVBUF_STRUCT_MAX);

	set_size(self->argument, DEVBUF_STRUCT_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		memory[places[i]] = 0x80;
		EXPECT_EQ(-E2BIG, CALL_AT(memory)) TH_LOG("byte %zu", places[i]);
		memory[places[i]] = 0;
	}
}

TEST_F(command, bytes_behind_the_given_size_are_not_looked_at)
{
	memset(self->argument + variant->size, 0xff, LONGEST_STRUCT - variant->size);
	EXPECT_EQ(0, CALL());
	EXPECT_TRUE(
		all_bytes(self->argument + variant->size, LONGEST_STRUCT - variant->size, 0xff));
}

TEST_F(command, struct_may_end_where_memory_ends)
{
	EXPECT_EQ(0, CALL_AT(new_edge(variant->size)));
}

/* So many of its bytes are there, and the rest is not. */
TEST_F(command, struct_may_not_reach_past_the_end_of_memory)
{
	const size_t there[] = { 0, 1, sizeof(__u32) - 1, sizeof(__u32), variant->size - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		unsigned char *place = new_edge(there[i]);

		memcpy(place, self->argument, there[i]);
		EXPECT_EQ(-EFAULT, do_command(self->objects.ctx, variant->command, place))
		TH_LOG("%zu bytes", there[i]);
	}
	EXPECT_EQ(-EFAULT, do_command(self->objects.ctx, variant->command, NULL));
}

TEST_F(command, unknown_bytes_may_not_reach_past_the_end_of_memory)
{
	set_size(self->argument, variant->size + 1);
	EXPECT_EQ(-EFAULT, CALL_AT(new_edge(variant->size)));
}

/* The members that the driver knows end at a page's end, and the rest can only be read. */
TEST_F(command, unknown_bytes_are_not_written)
{
	unsigned char *memory = new_memory(2 * PAGE);

	must_libc(mprotect(memory + PAGE, PAGE, PROT_READ));
	set_size(self->argument, variant->size + 8);
	EXPECT_EQ(0, CALL_AT(memory + PAGE - variant->size));
}

TEST_F(command, members_that_are_no_outputs_keep_their_values)
{
	const __u32 end = variant->outs_end ?: variant->size;
	unsigned char before[LONGEST_STRUCT];

	memcpy(before, self->argument, variant->size);
	EXPECT_EQ(0, CALL());
	EXPECT_EQ(0, memcmp(before, self->argument, variant->outs));
	EXPECT_EQ(0, memcmp(before + end, self->argument + end, variant->size - end));
}

TEST_F(command, outputs_may_hold_anything_before)
{
	memset(self->argument + variant->outs, 0xff,
	       (variant->outs_end ?: variant->size) - variant->outs);
	EXPECT_EQ(0, CALL());
}

TEST_F(command, undefined_flags_are_refused)
{
	__u32 *member = (__u32 *)(self->argument + variant->flags.offset);
	__u32 before = *member;

	if (!variant->flags.offset)
		return;
	for (int bit = 0; bit < 32; bit++) {
		if (variant->flags.defined & 1U << bit)
			continue;
		*member = before | 1U << bit;
		EXPECT_EQ(-EINVAL, CALL()) TH_LOG("bit %d", bit);
	}
}

TEST_F(command, padding_must_be_zero)
{
	__u32 *member = (__u32 *)(self->argument + variant->pad.offset);

	if (!variant->pad.offset)
		return;
	for (int bit = 0; bit < 32; bit++) {
		*member = 1U << bit;
		EXPECT_EQ(-EINVAL, CALL()) TH_LOG("bit %d", bit);
	}
}

/*
 * The struct can be read but not written. Without outputs the command does not mind; with them it
 * fails, and leaves no id, no file and no memory behind that the caller knows nothing of.
 */
TEST_F(command, reply_that_cannot_be_written_leaves_nothing_behind)
{
	int ctx = self->objects.ctx;
	unsigned char *memory = new_memory(PAGE);
	long long handles = fdinfo(ctx, "devbuf-handles");
	long long nbytes = fdinfo(ctx, "devbuf-allocated-nbytes");
	int files = nr_open_files();

	memcpy(memory, self->argument, variant->size);
	must_libc(mprotect(memory, PAGE, PROT_READ));
	if (variant->outs == variant->size) {
		EXPECT_EQ(0, do_command(ctx, variant->command, memory));
		return;
	}
	EXPECT_EQ(-EFAULT, do_command(ctx, variant->command, memory));
	EXPECT_EQ(handles, fdinfo(ctx, "devbuf-handles"));
	EXPECT_EQ(nbytes, fdinfo(ctx, "devbuf-allocated-nbytes"));
	EXPECT_EQ(files, nr_open_files());
	EXPECT_EQ(1u, query(ctx, self->objects.allocated).out_handle_count);
	EXPECT_EQ(0u, query(ctx, self->objects.unallocated).out_state);
}

TEST_HARNESS_MAIN
