// SPDX-License-Identifier: GPL-2.0-only
/*
 * COPYIN and COPYOUT between buffers and memory that was registered with the ring. Needs the module
 * vgem, whose fences hold copies back.
 */
#include "common_uring.h"
#include "common_vgem.h"

#include <sys/resource.h>

#include "kselftest_harness.h"

#define NBYTES (300 * 1024u)

FIXTURE(fixed)
{
	int card, ctx;
	struct io_uring ring;
	struct ends ends;
};

FIXTURE_SETUP(fixed)
{
	const char *reason = new_command_ring(&self->ring, 0);
	struct iovec vectors[2];

	if (reason)
		SKIP(return, "%s", reason);
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	vectors[0] = (struct iovec){ self->ends.from, NBYTES };
	vectors[1] = (struct iovec){ self->ends.to, NBYTES };
	must(io_uring_register_buffers(&self->ring, vectors, 2));
}

FIXTURE_TEARDOWN(fixed)
{
	io_uring_queue_exit(&self->ring);
	close(self->ctx);
	close(self->card);
}

static void prepare_fixed(struct io_uring *ring, int ctx, unsigned long command, void *argument,
			  unsigned int index)
{
	struct io_uring_sqe *sqe = prepare_command(ring, ctx, command, argument, 0);

	sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
	sqe->buf_index = index;
	submit(ring);
}

static int call_fixed(struct io_uring *ring, int ctx, unsigned long command, void *argument,
		      unsigned int index)
{
	prepare_fixed(ring, ctx, command, argument, index);
	return complete(ring);
}

/* A copy that uses the buffer with the number of its kind, which is where the bytes are. */
static int copy_fixed(struct io_uring *ring, struct copy_command *copy, int ctx, enum kind kind)
{
	return call_fixed(ring, ctx, copy->command, &copy->copy, kind);
}

TEST_F(fixed, copies_of_any_size)
{
	static const __u64 sizes[] = { 1, 100, 4096, 5000, NBYTES };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ends ends = self->ends;

		ends.nbytes = sizes[i];
		for (int kind = COPYIN; kind <= COPYOUT; kind++) {
			struct copy_command copy;

			prepare_copy_of(&copy, &ends, kind, 0);
			EXPECT_EQ(0, copy_fixed(&self->ring, &copy, self->ctx, kind));
			EXPECT_EQ(sizes[i], copy.copy.out_done_nbytes);
			EXPECT_TRUE(arrived(&ends, kind));
		}
	}
	EXPECT_TRUE(arrived(&self->ends, COPYIN));
	EXPECT_TRUE(arrived(&self->ends, COPYOUT));
}

TEST_F(fixed, copies_of_many_ranges_at_odd_places)
{
	enum { NR = 200 };
	struct devbuf_copy_range ranges[NR];
	struct copy_command copy;

	prepare_copy_of(&copy, &self->ends, COPYIN, 0);
	copy.copy.ranges = (uintptr_t)ranges;
	copy.copy.nr_ranges = NR;
	for (int i = 0; i < NR; i++)
		ranges[i] = (struct devbuf_copy_range){
			.id = self->ends.dst,
			.offset = i * 1001,
			.user_addr = (uintptr_t)self->ends.from + i * 1001,
			.nbytes = 1001,
		};
	EXPECT_EQ(0, copy_fixed(&self->ring, &copy, self->ctx, COPYIN));
	EXPECT_TRUE(buffer_filled(self->ctx, self->ends.dst, 0, NR * 1001, 1));
	EXPECT_TRUE(buffer_zero(self->ctx, self->ends.dst, NR * 1001, NBYTES - NR * 1001));
}

TEST_F(fixed, bytes_outside_of_the_buffer_are_EFAULT)
{
	static const struct {
		__s64 first, nbytes;
	} cases[] = {
		{ -1, 1 },     { -1, 2 },         { -1, NBYTES },
		{ NBYTES, 1 }, { NBYTES - 1, 2 }, { 1, NBYTES },
	};

	for (int kind = COPYIN; kind <= COPYOUT; kind++) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct copy_command copy;

			prepare_copy_of(&copy, &self->ends, kind, 0);
			copy.copy_range.user_addr += cases[i].first;
			copy.copy_range.nbytes = cases[i].nbytes;
			EXPECT_EQ(-EFAULT, copy_fixed(&self->ring, &copy, self->ctx, kind))
			TH_LOG("case %zu", i);
		}
		EXPECT_TRUE(untouched(&self->ends, kind));
	}
}

TEST_F(fixed, one_range_outside_of_the_buffer_is_EFAULT_and_nothing_is_copied)
{
	struct devbuf_copy_range ranges[2];
	struct copy_command copy;

	prepare_copy_of(&copy, &self->ends, COPYIN, 0);
	ranges[0] = ranges[1] = copy.copy_range;
	/* That of the other number. */
	ranges[1].user_addr = (uintptr_t)self->ends.to;
	copy.copy.ranges = (uintptr_t)ranges;
	copy.copy.nr_ranges = 2;
	EXPECT_EQ(-EFAULT, copy_fixed(&self->ring, &copy, self->ctx, COPYIN));
	EXPECT_TRUE(untouched(&self->ends, COPYIN));
}

TEST_F(fixed, numbers_of_no_buffer_are_EFAULT)
{
	struct copy_command copy;

	prepare_copy_of(&copy, &self->ends, COPYIN, 0);
	EXPECT_EQ(-EFAULT, call_fixed(&self->ring, self->ctx, copy.command, &copy.copy, 2));
	EXPECT_EQ(-EFAULT, call_fixed(&self->ring, self->ctx, copy.command, &copy.copy, 65535));
}

TEST_F(fixed, other_commands_refuse)
{
	struct devbuf_info info = { .size = sizeof(info) };
	struct devbuf_query query = { .size = sizeof(query), .id = self->ends.src };
	struct devbuf_id id = { .size = sizeof(id), .id = self->ends.src };
	struct devbuf_wait wait = wait_argument(self->ends.src, DEVBUF_WAIT_READ);
	struct devbuf_cancel cancel = { .size = sizeof(cancel), .cookie = 1 };
	struct copy_command transfer;

	prepare_copy_of(&transfer, &self->ends, TRANSFER, 0);
	EXPECT_EQ(-EINVAL, call_fixed(&self->ring, self->ctx, DEVBUF_INFO, &info, 0));
	EXPECT_EQ(-EINVAL, call_fixed(&self->ring, self->ctx, DEVBUF_QUERY, &query, 0));
	EXPECT_EQ(-EINVAL, call_fixed(&self->ring, self->ctx, DEVBUF_DESTROY, &id, 0));
	EXPECT_EQ(-EINVAL, call_fixed(&self->ring, self->ctx, DEVBUF_WAIT, &wait, 0));
	EXPECT_EQ(-EINVAL, call_fixed(&self->ring, self->ctx, DEVBUF_CANCEL, &cancel, 0));
	EXPECT_EQ(-EINVAL, call_fixed(&self->ring, self->ctx, transfer.command, &transfer.copy, 0));
	EXPECT_TRUE(untouched(&self->ends, TRANSFER));
}

/* The ring holds the pages for as long as a copy needs them. */
TEST_F(fixed, memory_may_be_unmapped_while_the_copy_is_held)
{
	struct gate gate = new_gate(self->card);
	struct copy_command copy;

	prepare_copy_of(&copy, &self->ends, COPYIN, 0);
	copy.copy.in_fences = (uintptr_t)&gate.fd;
	copy.copy.nr_in_fences = 1;
	prepare_fixed(&self->ring, self->ctx, copy.command, &copy.copy, COPYIN);
	munmap(self->ends.from, NBYTES);
	open_gate(&gate);
	EXPECT_EQ(0, complete(&self->ring));
	EXPECT_TRUE(arrived(&self->ends, COPYIN));
}

/* With DEVBUF_ASYNC the ring's part is over when the copy is queued, and so is its hold on the pages. */
TEST_F(fixed, asynchronous_copies_refuse)
{
	struct copy_command copy;

	for (int kind = COPYIN; kind <= COPYOUT; kind++) {
		prepare_copy_of(&copy, &self->ends, kind, DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE);
		EXPECT_EQ(-EINVAL, copy_fixed(&self->ring, &copy, self->ctx, kind));
		prepare_copy_of(&copy, &self->ends, kind, DEVBUF_ASYNC);
		EXPECT_EQ(-EINVAL, copy_fixed(&self->ring, &copy, self->ctx, kind));
		EXPECT_TRUE(untouched(&self->ends, kind));
	}
}

/* --- RLIMIT_MEMLOCK --------------------------------------------------------------------------- */

#define LIMIT_PAGES 16

TEST_F(fixed, registered_memory_is_not_pinned_again)
{
	const __u64 nbytes = LIMIT_PAGES * PAGE;
	struct rlimit limit = { 2 * nbytes, 2 * nbytes };
	uid_t uid = 100000 + getpid();
	unsigned char *memory = new_memory(nbytes);
	struct iovec vector = { memory, nbytes };
	struct copy_command copy;
	struct io_uring ring;
	struct gate gate = new_gate(self->card);

	must_libc(setrlimit(RLIMIT_MEMLOCK, &limit));
	must_libc(setresuid(uid, uid, uid));
	/* Older kernels count the ring itself, which is small. */
	must(io_uring_queue_init(4, &ring, 0));
	must(io_uring_register_buffers(&ring, &vector, 1));
	EXPECT_EQ(-ENOMEM, queue_copyin(self->ctx, self->ends.dst, 0, self->ends.from,
					nbytes + PAGE, AFTER(gate.fd)));
	for (int i = 0; i < 3; i++) {
		prepare_copy_of(&copy, &self->ends, COPYIN, 0);
		copy.copy_range.user_addr = (uintptr_t)memory;
		copy.copy_range.nbytes = nbytes;
		EXPECT_EQ(0, call_fixed(&ring, self->ctx, copy.command, &copy.copy, 0));
	}
	EXPECT_TRUE(buffer_zero(self->ctx, self->ends.dst, 0, nbytes));
	open_gate(&gate);
	io_uring_queue_exit(&ring);
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
