// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies by ring are queued in the order of their submission, whatever that takes: pages of the
 * caller's that are not there yet, one ring or two, ioctls between. (With IOSQE_ASYNC, or a thread of
 * the ring's that submits, nobody promises an order with ioctls.)
 */
#include "common_uring.h"

#include "kselftest_harness.h"

#define NBYTES (200 * 1024u)

FIXTURE(uring_order)
{
	int ctx, file;
	struct io_uring rings[2];
	struct ends ends;
};

FIXTURE_VARIANT(uring_order)
{
	unsigned int setup_flags;
};

FIXTURE_VARIANT_ADD(uring_order, plain){ 0 };
FIXTURE_VARIANT_ADD(uring_order, polled_by_a_thread){ IORING_SETUP_SQPOLL };
FIXTURE_VARIANT_ADD(uring_order, completed_when_asked){
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

FIXTURE_SETUP(uring_order)
{
	for (int i = 0; i < 2; i++) {
		const char *reason = new_command_ring(&self->rings[i], variant->setup_flags);

		if (reason)
			SKIP(return, "%s", reason);
	}
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->file = new_memfd(NBYTES, 3);
}

FIXTURE_TEARDOWN(uring_order)
{
	for (int i = 0; i < 2; i++)
		io_uring_queue_exit(&self->rings[i]);
	close(self->file);
	close(self->ctx);
}

/* The pattern 3, each page of which is a fault away. */
static void *new_absent_memory(int file)
{
	void *memory = mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);

	must_libc(memory == MAP_FAILED ? -1 : 0);
	return memory;
}

/* From memory into one buffer, from there into the other, and from there back into memory. */
static void prepare_row(struct copy_command row[3], struct ends *ends, int file)
{
	ends->from = new_absent_memory(file);
	ends->to = new_memory(NBYTES);
	prepare_copy_of(&row[0], ends, COPYIN, 0);
	row[0].copy_range.id = ends->src;
	prepare_copy_of(&row[1], ends, TRANSFER, 0);
	prepare_copy_of(&row[2], ends, COPYOUT, 0);
	row[2].copy_range.id = ends->dst;
}

static void end_row(struct ends *ends)
{
	munmap(ends->from, NBYTES);
	munmap(ends->to, NBYTES);
}

TEST_F_TIMEOUT(uring_order, pages_that_are_not_there_do_not_change_it, 120)
{
	struct copy_command row[3];

	for (int i = 0; i < 30; i++) {
		prepare_row(row, &self->ends, self->file);
		for (int j = 0; j < 3; j++)
			prepare_command(&self->rings[0], self->ctx, row[j].command, &row[j].copy,
					j);
		submit(&self->rings[0]);
		for (int j = 0; j < 3; j++)
			EXPECT_EQ(0, complete(&self->rings[0]));
		EXPECT_TRUE(filled(self->ends.to, NBYTES, 3));
		end_row(&self->ends);
		/* So that old bytes do not pass for new ones. */
		buffer_fill(self->ctx, self->ends.src, NBYTES, i);
		buffer_fill(self->ctx, self->ends.dst, NBYTES, i);
	}
}

TEST_F_TIMEOUT(uring_order, holds_between_rings, 120)
{
	struct copy_command row[3];

	if (variant->setup_flags & IORING_SETUP_SQPOLL)
		return;
	for (int i = 0; i < 30; i++) {
		prepare_row(row, &self->ends, self->file);
		for (int j = 0; j < 3; j++) {
			struct io_uring *ring = &self->rings[j % 2];

			prepare_command(ring, self->ctx, row[j].command, &row[j].copy, j);
			submit(ring);
		}
		for (int j = 0; j < 3; j++)
			EXPECT_EQ(0, complete(&self->rings[j % 2]));
		EXPECT_TRUE(filled(self->ends.to, NBYTES, 3));
		end_row(&self->ends);
		buffer_fill(self->ctx, self->ends.src, NBYTES, i);
		buffer_fill(self->ctx, self->ends.dst, NBYTES, i);
	}
}

/* Each time another one of the three is an ioctl: a synchronous or an asynchronous one. */
TEST_F_TIMEOUT(uring_order, holds_between_rings_and_ioctls, 120)
{
	struct io_uring *ring = &self->rings[0];
	struct copy_command row[3];

	if (variant->setup_flags & IORING_SETUP_SQPOLL)
		return;
	for (int i = 0; i < 30; i++) {
		int by_ioctl = i % 3;

		prepare_row(row, &self->ends, self->file);
		if (i % 2)
			row[by_ioctl].copy.flags = DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE;
		for (int j = 0; j < 3; j++) {
			if (j == by_ioctl) {
				EXPECT_EQ(0, do_command(self->ctx, row[j].command, &row[j].copy));
				continue;
			}
			prepare_command(ring, self->ctx, row[j].command, &row[j].copy, j);
			submit(ring);
		}
		for (int j = 0; j < 2; j++)
			EXPECT_EQ(0, complete(ring));
		if (i % 2) {
			EXPECT_EQ(0, end_fence(row[by_ioctl].copy.out_fence));
		}
		EXPECT_TRUE(filled(self->ends.to, NBYTES, 3));
		end_row(&self->ends);
		buffer_fill(self->ctx, self->ends.src, NBYTES, i);
		buffer_fill(self->ctx, self->ends.dst, NBYTES, i);
	}
}

TEST_HARNESS_MAIN
