// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of queued copies among each other: those that share bytes, and one of which writes
 * them, run one after the other; all others do not wait. Needs the module vgem, whose fences hold
 * copies back; order_dmabuf.c has the order with what other drivers do.
 */
#include "common_async.h"
#include "common_vgem.h"

#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(order)
{
	int card, ctx;
	struct ends ends;
	struct gate gate;
};

FIXTURE_SETUP(order)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->gate = new_gate(self->card);
}

FIXTURE_TEARDOWN(order)
{
	close(self->ctx);
	close(self->card);
}

/* A write of some of @dst's bytes that does not end until the gate opens. */
static int hold_write(const struct ends *ends, const struct gate *gate, __u64 offset, __u64 nbytes)
{
	return must(
		queue_copyin(ends->ctx, ends->dst, offset, ends->from, nbytes, AFTER(gate->fd)));
}

/* A read of some of @src's. */
static int hold_read(const struct ends *ends, const struct gate *gate, __u64 offset, __u64 nbytes)
{
	return must(queue_copyout(ends->ctx, ends->src, offset, ends->to, nbytes, AFTER(gate->fd)));
}

static int write_to(int ctx, __u64 id, __u64 offset, __u64 nbytes)
{
	static unsigned char bytes[NBYTES];

	return must(queue_copyin(ctx, id, offset, bytes, nbytes, NULL));
}

static int read_from(int ctx, __u64 id, __u64 offset, __u64 nbytes)
{
	static unsigned char bytes[NBYTES];

	return must(queue_copyout(ctx, id, offset, bytes, nbytes, NULL));
}

/* --- rows ------------------------------------------------------------------------------------- */

#define NR_CELLS 1001
#define CELL     64

/* Each copies the cell that the one before it filled. */
static int queue_row(int ctx, __u64 id, const struct queueing *first)
{
	int fence = -1;

	for (int i = 1; i < NR_CELLS; i++) {
		bool last = i == NR_CELLS - 1;
		struct queueing how = { .flags = last ? DEVBUF_ASYNC_OUT_FENCE : 0 };

		fence = must(queue_transfer(ctx, id, i * CELL, id, (i - 1) * CELL, CELL,
					    i == 1 && first ? first : &how));
	}
	return fence;
}

static bool row_is_filled(int ctx, __u64 id)
{
	for (int i = 0; i < NR_CELLS; i++)
		if (!buffer_filled(ctx, id, i * CELL, CELL, 1))
			return false;
	return true;
}

TEST_F_TIMEOUT(order, thousand_that_need_each_other_give_the_right_bytes, 120)
{
	__u64 id = new_allocated(self->ctx, NR_CELLS * CELL);

	buffer_fill(self->ctx, id, CELL, 1);
	EXPECT_EQ(0, end_fence(queue_row(self->ctx, id, NULL)));
	EXPECT_TRUE(row_is_filled(self->ctx, id));
	open_gate(&self->gate);
}

/* All of them are there before the first begins; its source arrives last of all. */
TEST_F_TIMEOUT(order, thousand_that_wait_for_the_first, 120)
{
	__u64 id = new_allocated(self->ctx, NR_CELLS * CELL);
	struct queueing after_gate = { .in_fences = &self->gate.fd, .nr_in_fences = 1 };
	int last;

	fill(self->ends.from, CELL, 1);
	must(queue_copyin(self->ctx, id, 0, self->ends.from, CELL, &after_gate));
	last = queue_row(self->ctx, id, NULL);
	EXPECT_TRUE(is_held(self->ctx, last));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(last));
	EXPECT_TRUE(row_is_filled(self->ctx, id));
}

/* Forth and back between two buffers, by way of the caller's memory as well. */
TEST_F(order, kinds_of_copies_are_ordered_with_each_other)
{
	struct ends *ends = &self->ends;
	struct queueing after_gate = { .in_fences = &self->gate.fd, .nr_in_fences = 1 };
	struct queueing plain = { 0 };
	int fence;

	fill(ends->from, NBYTES, 2);
	must(queue_copyin(self->ctx, ends->src, 0, ends->from, NBYTES, &after_gate));
	for (int i = 0; i < 20; i++) {
		must(queue_transfer(self->ctx, ends->dst, 0, ends->src, 0, NBYTES, &plain));
		must(queue_transfer(self->ctx, ends->src, 0, ends->dst, 0, NBYTES, &plain));
	}
	fence = must(queue_copyout(self->ctx, ends->src, 0, ends->to, NBYTES, NULL));
	EXPECT_TRUE(is_held(self->ctx, fence));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(filled(ends->to, NBYTES, 2));
}

/* --- who waits -------------------------------------------------------------------------------- */

TEST_F(order, writes_wait_for_reads)
{
	int first = hold_read(&self->ends, &self->gate, 0, 100);
	int second = write_to(self->ctx, self->ends.src, 0, 100);

	EXPECT_TRUE(is_held(self->ctx, second));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(second));
	EXPECT_EQ(1, fence_status(first));
	EXPECT_TRUE(filled(self->ends.to, 100, 1));
}

TEST_F(order, reads_wait_for_writes)
{
	int first = hold_write(&self->ends, &self->gate, 0, 100);
	int second = read_from(self->ctx, self->ends.dst, 0, 100);

	EXPECT_TRUE(is_held(self->ctx, second));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(second));
	EXPECT_EQ(1, fence_status(first));
}

TEST_F(order, writes_wait_for_writes)
{
	int first = hold_write(&self->ends, &self->gate, 0, 100);
	int second = write_to(self->ctx, self->ends.dst, 0, 100);

	EXPECT_TRUE(is_held(self->ctx, second));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(second));
	EXPECT_EQ(1, fence_status(first));
	EXPECT_TRUE(buffer_zero(self->ctx, self->ends.dst, 0, 100));
}

TEST_F(order, reads_do_not_wait_for_reads)
{
	int first = hold_read(&self->ends, &self->gate, 0, NBYTES);

	EXPECT_EQ(0, end_fence(read_from(self->ctx, self->ends.src, 0, NBYTES)));
	EXPECT_EQ(0, end_fence(must(queue_copy_of(&self->ends, TRANSFER, NULL))));
	EXPECT_EQ(0, fence_status(first));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
}

/* A read that came after a held write holds back writes, and no reads. */
TEST_F(order, reads_that_wait_for_a_write_do_not_wait_for_each_other)
{
	struct gate other = new_gate(self->card);
	int write = hold_write(&self->ends, &self->gate, 0, 100);
	int one = must(
		queue_copyout(self->ctx, self->ends.dst, 0, self->ends.to, 100, AFTER(other.fd)));
	int another = read_from(self->ctx, self->ends.dst, 0, 100);

	EXPECT_TRUE(is_held(self->ctx, another));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(another));
	EXPECT_EQ(1, fence_status(write));
	EXPECT_TRUE(is_held(self->ctx, one));
	open_gate(&other);
	EXPECT_EQ(0, end_fence(one));
}

TEST_F(order, is_by_bytes)
{
	int first = hold_write(&self->ends, &self->gate, 100, 100);
	int before, behind;

	EXPECT_EQ(0, end_fence(write_to(self->ctx, self->ends.dst, 0, 100)));
	EXPECT_EQ(0, end_fence(write_to(self->ctx, self->ends.dst, 200, NBYTES - 200)));
	EXPECT_EQ(0, end_fence(read_from(self->ctx, self->ends.dst, 0, 100)));
	before = write_to(self->ctx, self->ends.dst, 99, 2);
	behind = read_from(self->ctx, self->ends.dst, 199, 2);
	EXPECT_TRUE(is_held(self->ctx, before));
	EXPECT_EQ(0, fence_status(behind));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
	EXPECT_EQ(0, end_fence(before));
	EXPECT_EQ(0, end_fence(behind));
}

TEST_F(order, is_by_bytes_whatever_names_them)
{
	__u64 one = new_allocated_view(self->ctx, self->ends.dst, 50, 100);
	__u64 other = new_allocated_view(self->ctx, self->ends.dst, 150, 100);
	__u64 both = new_allocated_view(self->ctx, self->ends.dst, 149, 2);
	int first =
		must(queue_copyin(self->ctx, one, 0, self->ends.from, 100, AFTER(self->gate.fd)));
	int base, view;

	EXPECT_EQ(0, end_fence(write_to(self->ctx, other, 0, 100)));
	EXPECT_EQ(0, end_fence(write_to(self->ctx, both, 1, 1)));
	EXPECT_EQ(0, end_fence(write_to(self->ctx, self->ends.dst, 150, 100)));
	base = read_from(self->ctx, self->ends.dst, 149, 1);
	view = read_from(self->ctx, both, 0, 1);
	EXPECT_TRUE(is_held(self->ctx, base));
	EXPECT_EQ(0, fence_status(view));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
	EXPECT_EQ(0, end_fence(base));
	EXPECT_EQ(0, end_fence(view));
}

/* The ranges of one command are one copy: any of them is waited for, and waits. */
TEST_F(order, counts_every_range_of_a_command)
{
	struct devbuf_transfer_range ranges[] = {
		{ self->ends.dst, 0, self->ends.src, 0, 10 },
		{ self->ends.dst, 1000, self->ends.src, 1000, 10 },
	};
	struct devbuf_transfer transfer = { .flags = DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE };
	int first = hold_write(&self->ends, &self->gate, 1005, 1);
	int second;

	must(do_transfer_ranges(self->ctx, &transfer, ranges, 2));
	EXPECT_TRUE(is_held(self->ctx, transfer.out_fence));
	EXPECT_EQ(0, end_fence(write_to(self->ctx, self->ends.dst, 500, 10)));
	second = write_to(self->ctx, self->ends.dst, 5, 1);
	EXPECT_TRUE(is_held(self->ctx, second));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
	EXPECT_EQ(0, end_fence(transfer.out_fence));
	EXPECT_EQ(0, end_fence(second));
}

TEST_F(order, holds_across_contexts)
{
	int other = new_context();
	int first, second;

	give(self->ctx, self->ends.dst, DEVBUF_EXPORT_WRITE, other);
	first = hold_write(&self->ends, &self->gate, 0, 100);
	second = write_to(other, self->ends.dst, 50, 100);
	EXPECT_TRUE(is_held(other, second));
	EXPECT_EQ(0, end_fence(write_to(other, self->ends.dst, 150, 100)));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
	EXPECT_EQ(0, end_fence(second));
	close(other);
}

TEST_F(order, devices_do_not_wait_for_each_other)
{
	struct ends mock;
	__u64 id;
	int first, second;

	if (do_create(self->ctx, "MOCK:1", NBYTES, 0, &id))
		SKIP(return, "the module is not a test build: no MOCK:1");
	must(do_allocate(self->ctx, id));
	mock = self->ends;
	mock.dst = id;
	first = hold_write(&self->ends, &self->gate, 0, NBYTES);
	EXPECT_EQ(0, end_fence(must(queue_copy_of(&mock, COPYIN, NULL))));
	EXPECT_TRUE(arrived(&mock, COPYIN));
	/* From one to the other it needs both. */
	second = must(queue_transfer(self->ctx, id, 0, self->ends.dst, 0, NBYTES, NULL));
	EXPECT_TRUE(is_held(self->ctx, second));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
	EXPECT_EQ(0, end_fence(second));
}

/* --- no order, on demand ---------------------------------------------------------------------- */

TEST_F(order, explicit_copies_do_not_wait_for_others)
{
	struct queueing explicit = { .flags = DEVBUF_ASYNC_OUT_FENCE | DEVBUF_ASYNC_EXPLICIT };
	int first = hold_write(&self->ends, &self->gate, 0, NBYTES);

	EXPECT_EQ(0, end_fence(must(queue_copy_of(&self->ends, TRANSFER, &explicit))));
	EXPECT_EQ(0, fence_status(first));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
}

TEST_F(order, others_do_not_wait_for_explicit_copies)
{
	struct queueing explicit = {
		.flags = DEVBUF_ASYNC_OUT_FENCE | DEVBUF_ASYNC_EXPLICIT,
		.in_fences = &self->gate.fd,
		.nr_in_fences = 1,
	};
	struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_WRITE);
	int first = must(queue_copy_of(&self->ends, TRANSFER, &explicit));

	EXPECT_EQ(0, end_fence(write_to(self->ctx, self->ends.dst, 0, NBYTES)));
	EXPECT_EQ(0, do_wait(self->ctx, &wait));
	EXPECT_TRUE(untouched(&self->ends, TRANSFER));
	EXPECT_TRUE(is_held(self->ctx, first));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
}

/* --- synchronous commands --------------------------------------------------------------------- */

FIXTURE(synchronous)
{
	int card, ctx;
	struct ends ends;
	struct gate gate;
	int fence;
};

FIXTURE_VARIANT(synchronous)
{
	/* Has to do with the bytes from @offset on of the destination of the copy that is held. */
	int (*act)(const struct ends *ends, __u64 offset);
};

static int act_copyin(const struct ends *ends, __u64 offset)
{
	return do_copyin(ends->ctx, ends->dst, offset, ends->from, 10);
}

static int act_copyout(const struct ends *ends, __u64 offset)
{
	return do_copyout(ends->ctx, ends->dst, offset, ends->to, 10);
}

static int act_transfer_to(const struct ends *ends, __u64 offset)
{
	return do_transfer(ends->ctx, ends->dst, offset, ends->src, 5000, 10);
}

static int act_transfer_from(const struct ends *ends, __u64 offset)
{
	return do_transfer(ends->ctx, ends->src, 5000, ends->dst, offset, 10);
}

static int act_sync(const struct ends *ends, __u64 offset)
{
	return do_sync(ends->ctx, ends->dst, offset, 10, DEVBUF_SYNC_READ);
}

FIXTURE_VARIANT_ADD(synchronous, copyin){ act_copyin };
FIXTURE_VARIANT_ADD(synchronous, copyout){ act_copyout };
FIXTURE_VARIANT_ADD(synchronous, transfer_to){ act_transfer_to };
FIXTURE_VARIANT_ADD(synchronous, transfer_from){ act_transfer_from };
FIXTURE_VARIANT_ADD(synchronous, sync){ act_sync };

FIXTURE_SETUP(synchronous)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->gate = new_gate(self->card);
	self->fence = hold_write(&self->ends, &self->gate, 100, 100);
}

FIXTURE_TEARDOWN(synchronous)
{
	close(self->ctx);
	close(self->card);
}

TEST_F(synchronous, commands_wait_for_what_is_queued)
{
	struct opener opener;

	open_when_asleep(&opener, &self->gate);
	EXPECT_EQ(0, variant->act(&self->ends, 150));
	EXPECT_TRUE(has_waited(&opener));
	EXPECT_EQ(1, fence_status(self->fence));
}

TEST_F(synchronous, commands_on_other_bytes_do_not_wait)
{
	EXPECT_EQ(0, variant->act(&self->ends, 90));
	EXPECT_EQ(0, variant->act(&self->ends, 200));
	EXPECT_EQ(0, fence_status(self->fence));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(self->fence));
}

TEST_F(synchronous, commands_that_wait_end_at_a_fatal_signal)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child)
		_exit(variant->act(&self->ends, 150));
	await_ioctl(child, 0);
	must_libc(kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, wait_for(child));
	EXPECT_EQ(0, fence_status(self->fence));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(self->fence));
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
