// SPDX-License-Identifier: GPL-2.0-only
/*
 * DEVBUF_ASYNC: copies are queued, and what is wrong with them is told at once. Needs the module
 * vgem, whose fences hold them back.
 */
#include "common_async.h"
#include "common_vgem.h"

#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(async)
{
	int card, ctx;
	struct ends ends;
};

FIXTURE_VARIANT(async)
{
	enum kind kind;
};

FIXTURE_VARIANT_ADD(async, copyin){ COPYIN };
FIXTURE_VARIANT_ADD(async, copyout){ COPYOUT };
FIXTURE_VARIANT_ADD(async, transfer){ TRANSFER };

FIXTURE_SETUP(async)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
}

FIXTURE_TEARDOWN(async)
{
	close(self->ctx);
	close(self->card);
}

/* --- what it does ----------------------------------------------------------------------------- */

TEST_F(async, has_copied_when_its_fence_signals)
{
	int fence = queue_copy_of(&self->ends, variant->kind, NULL);

	ASSERT_LT(0, fence);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(arrived(&self->ends, variant->kind));
}

TEST_F(async, needs_no_fence)
{
	struct queueing plain = { 0 };
	struct devbuf_wait wait = wait_argument(self->ends.src, DEVBUF_WAIT_WRITE);

	ASSERT_EQ(0, queue_copy_of(&self->ends, variant->kind, &plain));
	ASSERT_EQ(0, do_wait(self->ctx, &wait));
	EXPECT_TRUE(arrived(&self->ends, variant->kind));
}

TEST_F(async, returns_before_it_has_copied)
{
	struct gate gate = new_gate(self->card);
	int fence = queue_copy_of(&self->ends, variant->kind, AFTER(gate.fd));

	ASSERT_LT(0, fence);
	EXPECT_TRUE(is_held(self->ctx, fence));
	if (variant->kind == COPYOUT) {
		EXPECT_TRUE(untouched(&self->ends, variant->kind));
	}
	open_gate(&gate);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(arrived(&self->ends, variant->kind));
}

TEST_F(async, outputs_stay_zero)
{
	struct copy_command command;

	prepare_copy_of(&command, &self->ends, variant->kind, DEVBUF_ASYNC);
	command.copy.out_done_nbytes = UINT64_MAX;
	command.copy.out_path = UINT32_MAX;
	command.copy.out_fence = -1;
	ASSERT_EQ(0, do_command(self->ctx, command.command, &command.copy));
	EXPECT_EQ(0u, command.copy.out_done_nbytes);
	EXPECT_EQ(DEVBUF_PATH_NONE, (int)command.copy.out_path);
	EXPECT_EQ(0, command.copy.out_fence);
}

/* The argument may be changed, and go, as soon as the ioctl returns. */
TEST_F(async, has_read_its_argument_when_it_returns)
{
	struct gate gate = new_gate(self->card);
	struct copy_command *command = new_memory(sizeof(*command));
	__s32 *fences = new_memory(sizeof(*fences));
	int fence;

	*fences = gate.fd;
	prepare_copy_of(command, &self->ends, variant->kind, DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE);
	command->copy.in_fences = (uintptr_t)fences;
	command->copy.nr_in_fences = 1;
	ASSERT_EQ(0, do_command(self->ctx, command->command, &command->copy));
	fence = command->copy.out_fence;
	munmap(command, sizeof(*command));
	munmap(fences, sizeof(*fences));
	open_gate(&gate);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(arrived(&self->ends, variant->kind));
}

TEST_F(async, many_ranges)
{
	enum { NR = DEVBUF_MAX_RANGES, EACH = 16 };
	struct devbuf_copy_range *copies = calloc(NR, sizeof(*copies));
	struct devbuf_transfer_range *transfers = calloc(NR, sizeof(*transfers));
	struct copy_command command;

	prepare_copy_of(&command, &self->ends, variant->kind,
			DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE);
	for (int i = 0; i < NR; i++) {
		copies[i] = command.copy_range;
		copies[i].offset = i * EACH;
		copies[i].user_addr += i * EACH;
		copies[i].nbytes = EACH;
		transfers[i] = command.transfer_range;
		transfers[i].dst_offset = i * EACH;
		transfers[i].src_offset = i * EACH;
		transfers[i].nbytes = EACH;
	}
	command.copy.nr_ranges = NR;
	command.copy.ranges = variant->kind == TRANSFER ? (uintptr_t)transfers : (uintptr_t)copies;
	ASSERT_EQ(0, do_command(self->ctx, command.command, &command.copy));
	free(copies);
	free(transfers);
	EXPECT_EQ(0, end_fence(command.copy.out_fence));
	self->ends.nbytes = NR * EACH;
	EXPECT_TRUE(arrived(&self->ends, variant->kind));
}

/* Buffers whose memory the caller has lent, written or not with the CPU's caches. */
TEST_F(async, buffers_of_any_kind)
{
	struct ends ends = self->ends;

	ends.src = new_user_buffer(self->ctx, new_memory(NBYTES + 1) + 1, NBYTES);
	buffer_fill(self->ctx, ends.src, NBYTES, 1);
	if (capabilities(self->ctx, SYSTEM_DEVICE) & DEVBUF_CAP_UNCACHED)
		ends.dst = new_allocated_flags(self->ctx, NBYTES, DEVBUF_CREATE_UNCACHED);
	EXPECT_EQ(0, end_fence(must(queue_copy_of(&ends, variant->kind, NULL))));
	EXPECT_TRUE(arrived(&ends, variant->kind));
}

TEST_F(async, many_at_once)
{
	enum { NR = 300 };
	struct gate gate = new_gate(self->card);
	int fences[NR];

	for (int i = 0; i < NR; i++)
		fences[i] = must(queue_copy_of(&self->ends, variant->kind, AFTER(gate.fd)));
	EXPECT_TRUE(is_held(self->ctx, fences[0]));
	open_gate(&gate);
	for (int i = 0; i < NR; i++)
		EXPECT_EQ(0, end_fence(fences[i]));
	EXPECT_TRUE(arrived(&self->ends, variant->kind));
}

/* --- what is refused -------------------------------------------------------------------------- */

TEST_F(async, its_flags_without_it_are_EINVAL)
{
	static const __u32 flags[] = {
		DEVBUF_ASYNC_OUT_FENCE,
		DEVBUF_ASYNC_EXPLICIT,
		DEVBUF_ASYNC_OUT_FENCE | DEVBUF_ASYNC_EXPLICIT,
	};
	struct copy_command command;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		prepare_copy_of(&command, &self->ends, variant->kind, flags[i]);
		EXPECT_EQ(-EINVAL, do_command(self->ctx, command.command, &command.copy))
		TH_LOG("flags %#x", flags[i]);
	}
	EXPECT_TRUE(untouched(&self->ends, variant->kind));
}

TEST_F(async, fences_to_wait_for_without_it_are_EINVAL)
{
	int signalled = must(queue_copy_of(&self->ends, variant->kind, NULL));
	struct copy_command command;
	__s32 fences[] = { signalled };

	prepare_copy_of(&command, &self->ends, variant->kind, 0);
	command.copy.in_fences = (uintptr_t)fences;
	command.copy.nr_in_fences = 1;
	EXPECT_EQ(-EINVAL, do_command(self->ctx, command.command, &command.copy));
}

/* Something is wrong with the command, in one way each. */
static void break_id(struct copy_command *command)
{
	command->copy_range.id = command->transfer_range.src_id = UINT64_MAX;
}

static void break_offset(struct copy_command *command)
{
	command->copy_range.offset = command->transfer_range.dst_offset = 1;
}

static void break_length(struct copy_command *command)
{
	command->copy_range.nbytes = command->transfer_range.nbytes = 0;
}

static void break_sum(struct copy_command *command)
{
	command->copy_range.offset = command->transfer_range.dst_offset = UINT64_MAX;
	command->copy_range.nbytes = command->transfer_range.nbytes = 2;
}

static void break_ranges(struct copy_command *command)
{
	command->copy.ranges = 0;
}

static void break_count(struct copy_command *command)
{
	command->copy.nr_ranges = 0;
}

static void break_flags(struct copy_command *command)
{
	command->copy.flags |= 1U << 31;
}

static void break_fence(struct copy_command *command)
{
	static __s32 no_fence = -1;

	command->copy.in_fences = (uintptr_t)&no_fence;
	command->copy.nr_in_fences = 1;
}

static void break_nr_fences(struct copy_command *command)
{
	static __s32 fences[DEVBUF_MAX_IN_FENCES + 1];

	command->copy.in_fences = (uintptr_t)fences;
	command->copy.nr_in_fences = DEVBUF_MAX_IN_FENCES + 1;
}

static void break_fences(struct copy_command *command)
{
	command->copy.nr_in_fences = 1;
}

TEST_F(async, errors_are_told_at_once_and_leave_nothing_behind)
{
	static const struct {
		void (*breaks)(struct copy_command *command);
		int error;
	} cases[] = {
		{ break_id, -ENOENT },     { break_offset, -EINVAL }, { break_length, -EINVAL },
		{ break_sum, -EOVERFLOW }, { break_ranges, -EFAULT }, { break_count, -EINVAL },
		{ break_flags, -EINVAL },  { break_fence, -EBADF },   { break_nr_fences, -EINVAL },
		{ break_fences, -EFAULT },
	};
	int files = nr_open_files();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct copy_command command;

		prepare_copy_of(&command, &self->ends, variant->kind,
				DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE);
		cases[i].breaks(&command);
		EXPECT_EQ(cases[i].error, do_command(self->ctx, command.command, &command.copy))
		TH_LOG("case %zu", i);
		EXPECT_EQ(files, nr_open_files());
	}
	EXPECT_EQ(-ENOENT, do_cancel_all(self->ctx));
	EXPECT_TRUE(untouched(&self->ends, variant->kind));
}

TEST_F(async, transfer_by_the_CPU_can_be_refused)
{
	struct copy_command command;

	if (variant->kind != TRANSFER)
		return;
	prepare_copy_of(&command, &self->ends, TRANSFER, DEVBUF_ASYNC | DEVBUF_TRANSFER_NO_CPU);
	EXPECT_EQ(-EOPNOTSUPP, do_command(self->ctx, command.command, &command.copy));
}

TEST_F(async, buffers_without_memory_are_ENODATA)
{
	struct ends ends = self->ends;

	ends.dst = new_buffer(self->ctx, NBYTES);
	if (variant->kind == COPYOUT)
		ends.src = ends.dst;
	EXPECT_EQ(-ENODATA, queue_copy_of(&ends, variant->kind, NULL));
}

TEST_F(async, rights_that_lack_are_EACCES)
{
	struct ends ends = self->ends;

	if (variant->kind == COPYOUT)
		return;
	ends.ctx = new_context();
	give(self->ctx, ends.src, 0, ends.ctx);
	give(self->ctx, ends.dst, 0, ends.ctx);
	EXPECT_EQ(-EACCES, queue_copy_of(&ends, variant->kind, NULL));
	close(ends.ctx);
}

TEST_F(async, memory_that_is_not_there_is_EFAULT)
{
	struct ends ends = self->ends;
	int files = nr_open_files();

	if (variant->kind == TRANSFER)
		return;
	ends.from = ends.to = new_edge(NBYTES - 1);
	EXPECT_EQ(-EFAULT, queue_copy_of(&ends, variant->kind, NULL));
	EXPECT_EQ(files, nr_open_files());
	ends.to = ends.from;
	/* Not even what is there was copied. */
	EXPECT_TRUE(all_zero(ends.to, NBYTES - 1));
	EXPECT_TRUE(buffer_zero(self->ctx, ends.dst, 0, NBYTES));
}

TEST_F(async, copyout_to_memory_that_may_not_be_written_is_EFAULT)
{
	if (variant->kind != COPYOUT)
		return;
	must_libc(mprotect(self->ends.to, NBYTES, PROT_READ));
	EXPECT_EQ(-EFAULT, queue_copy_of(&self->ends, variant->kind, NULL));
	EXPECT_TRUE(untouched(&self->ends, variant->kind));
}

/* A reply that tells nobody of the fence: then there shall be none, and no copy either. */
TEST_F(async, reply_that_cannot_be_written_queues_nothing)
{
	struct copy_command *command = new_memory(sizeof(*command));
	int files = nr_open_files();

	prepare_copy_of(command, &self->ends, variant->kind, DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE);
	must_libc(mprotect(command, sizeof(*command), PROT_READ));
	EXPECT_EQ(-EFAULT, do_command(self->ctx, command->command, &command->copy));
	EXPECT_EQ(files, nr_open_files());
	give_every_chance(self->ctx);
	EXPECT_TRUE(untouched(&self->ends, variant->kind));
}

TEST_F(async, no_file_descriptor_left_is_EMFILE)
{
	int last = -1, fd;

	while ((fd = dup(self->ctx)) >= 0)
		last = fd;
	EXPECT_EQ(-EMFILE, queue_copy_of(&self->ends, variant->kind, NULL));
	close(last);
	EXPECT_TRUE(untouched(&self->ends, variant->kind));
	fd = queue_copy_of(&self->ends, variant->kind, NULL);
	EXPECT_EQ(last, fd);
	EXPECT_EQ(0, end_fence(fd));
}

TEST_F(async, devices_that_cannot_copy_are_EOPNOTSUPP)
{
	struct ends ends = self->ends;

	if (do_create(self->ctx, "MOCK:0", NBYTES, 0, &ends.dst))
		SKIP(return, "the module is not a test build: no MOCK:0");
	must(do_allocate(self->ctx, ends.dst));
	if (variant->kind == COPYOUT)
		ends.src = ends.dst;
	EXPECT_EQ(-EOPNOTSUPP, queue_copy_of(&ends, variant->kind, NULL));
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
