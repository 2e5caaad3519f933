// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fences that a queued copy gives and takes, and those of other drivers: held and let go late,
 * dropped by their owner, signalled with an error. Needs the module vgem; errors of others need
 * sw_sync, which only the debugging kernel has.
 */
#include "common_async.h"
#include "common_vgem.h"

#include <poll.h>

#include <linux/dma-buf.h>
#include <linux/sync_file.h>

#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(fence)
{
	int card, ctx;
	struct ends ends;
};

FIXTURE_SETUP(fence)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
}

FIXTURE_TEARDOWN(fence)
{
	close(self->ctx);
	close(self->card);
}

/* --- out_fence -------------------------------------------------------------------------------- */

TEST_F(fence, is_closed_by_exec)
{
	int fence = must(queue_copy_of(&self->ends, TRANSFER, NULL));

	EXPECT_EQ(FD_CLOEXEC, fcntl(fence, F_GETFD));
}

/* Of a fence whose file is of one fence, and not of many that were merged. */
static struct sync_fence_info info_of(int fence)
{
	struct sync_fence_info info = { 0 };
	struct sync_file_info file = { .num_fences = 1, .sync_fence_info = (uintptr_t)&info };

	must_libc(ioctl(fence, SYNC_IOC_FILE_INFO, &file));
	must_be(file.num_fences == 1);
	return info;
}

TEST_F(fence, tells_whose_it_is)
{
	struct gate gate = new_gate(self->card);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd)));
	struct sync_fence_info info = info_of(fence);

	EXPECT_EQ(0, info.status);
	EXPECT_STREQ("devbuf", info.driver_name);
	EXPECT_NE('\0', info.obj_name[0]);
	open_gate(&gate);
	EXPECT_EQ(0, fence_result(fence));
	info = info_of(fence);
	EXPECT_EQ(1, info.status);
	EXPECT_LT(0u, info.timestamp_ns);
}

TEST_F(fence, wakes_who_polls)
{
	struct gate gate = new_gate(self->card);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd)));
	struct pollfd file = { .fd = fence, .events = POLLIN };
	pid_t child;

	EXPECT_EQ(0, poll(&file, 1, 0));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(poll(&file, 1, DEADLINE_MS) == 1 && file.revents == POLLIN ? 0 : 1);
	while (task_state(child) == 'R')
		;
	open_gate(&gate);
	EXPECT_EQ(0, wait_for(child));
}

TEST_F(fence, may_be_closed_before_it_signals)
{
	struct gate gate = new_gate(self->card);
	struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_READ);

	close(must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd))));
	open_gate(&gate);
	ASSERT_EQ(0, do_wait(self->ctx, &wait));
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
}

TEST_F(fence, is_one_of_others)
{
	struct gate gate = new_gate(self->card);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd)));
	struct sync_merge_data merge = { .name = "both", .fd2 = gate.fd };

	ASSERT_EQ(0, ioctl(fence, SYNC_IOC_MERGE, &merge));
	EXPECT_EQ(0, fence_status(merge.fence));
	open_gate(&gate);
	EXPECT_EQ(0, end_fence(merge.fence));
	EXPECT_EQ(1, fence_status(fence));
}

/* --- in_fences -------------------------------------------------------------------------------- */

TEST_F(fence, all_are_waited_for)
{
	struct gate gates[DEVBUF_MAX_IN_FENCES];
	__s32 fences[DEVBUF_MAX_IN_FENCES];
	struct queueing how = {
		.flags = DEVBUF_ASYNC_OUT_FENCE,
		.in_fences = fences,
		.nr_in_fences = DEVBUF_MAX_IN_FENCES,
	};
	int fence;

	for (int i = 0; i < DEVBUF_MAX_IN_FENCES; i++) {
		gates[i] = new_gate(self->card);
		fences[i] = gates[i].fd;
	}
	fence = must(queue_copy_of(&self->ends, TRANSFER, &how));
	/* The last to be opened is one in the middle. */
	for (int i = 0; i < DEVBUF_MAX_IN_FENCES; i++)
		if (i != DEVBUF_MAX_IN_FENCES / 2)
			open_gate(&gates[i]);
	EXPECT_TRUE(is_held(self->ctx, fence));
	open_gate(&gates[DEVBUF_MAX_IN_FENCES / 2]);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
}

TEST_F(fence, given_twice_counts_once)
{
	struct gate gate = new_gate(self->card);
	__s32 fences[] = { gate.fd, gate.fd };
	struct queueing how = { DEVBUF_ASYNC_OUT_FENCE, 2, fences, 0 };
	int fence = must(queue_copy_of(&self->ends, TRANSFER, &how));

	open_gate(&gate);
	EXPECT_EQ(0, end_fence(fence));
}

TEST_F(fence, merged_ones_are_all_waited_for)
{
	struct gate one = new_gate(self->card), other = new_gate(self->card);
	struct sync_merge_data merge = { .name = "both", .fd2 = other.fd };
	__s32 both;
	int fence;

	must_libc(ioctl(one.fd, SYNC_IOC_MERGE, &merge));
	both = merge.fence;
	fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(both)));
	open_gate(&other);
	EXPECT_TRUE(is_held(self->ctx, fence));
	open_gate(&one);
	EXPECT_EQ(0, end_fence(fence));
}

TEST_F(fence, that_has_signalled_holds_nothing_back)
{
	struct gate gate = new_gate(self->card);
	__s32 fence = dup(gate.fd);

	open_gate(&gate);
	ASSERT_EQ(1, fence_status(fence));
	EXPECT_EQ(0, end_fence(must(queue_copy_of(&self->ends, TRANSFER, AFTER(fence)))));
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
}

/* The copy holds the fence; the file is needed no longer. */
TEST_F(fence, may_be_closed_as_soon_as_the_copy_is_queued)
{
	struct gate gate = new_gate(self->card);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd)));

	close(gate.fd);
	gate.fd = -1;
	EXPECT_TRUE(is_held(self->ctx, fence));
	open_gate(&gate);
	EXPECT_EQ(0, end_fence(fence));
}

TEST_F(fence, of_one_copy_orders_another)
{
	struct gate gate = new_gate(self->card);
	int ctx = new_context();
	struct ends other;
	__s32 first;
	int second;

	new_ends(&other, ctx, NBYTES);
	first = must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd)));
	second = must(queue_copy_of(&other, TRANSFER, AFTER(first)));
	EXPECT_TRUE(is_held(ctx, second));
	open_gate(&gate);
	EXPECT_EQ(0, end_fence(second));
	EXPECT_EQ(1, fence_status(first));
	EXPECT_TRUE(arrived(&other, TRANSFER));
	close(ctx);
}

static int queue_after(const struct ends *ends, __s32 fence)
{
	return queue_copy_of(ends, TRANSFER, AFTER(fence));
}

TEST_F(fence, file_descriptors_that_are_none_are_EBADF)
{
	int closed = dup(self->ctx);

	close(closed);
	EXPECT_EQ(-EBADF, queue_after(&self->ends, -1));
	EXPECT_EQ(-EBADF, queue_after(&self->ends, closed));
	EXPECT_EQ(-EBADF, queue_after(&self->ends, INT32_MAX));
}

TEST_F(fence, files_that_are_none_are_EINVAL)
{
	int files[] = {
		self->ctx,
		new_memfd(PAGE, 1),
		new_export(self->ctx, self->ends.src, 0),
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		EXPECT_EQ(-EINVAL, queue_after(&self->ends, files[i])) TH_LOG("file %zu", i);
	}
}

TEST_F(fence, one_bad_of_many_is_refused_and_nothing_is_held)
{
	struct gate gate = new_gate(self->card);
	__s32 fences[] = { gate.fd, gate.fd, -1 };
	struct queueing how = { DEVBUF_ASYNC_OUT_FENCE, 3, fences, 0 };

	EXPECT_EQ(-EBADF, queue_copy_of(&self->ends, TRANSFER, &how));
	open_gate(&gate);
	EXPECT_TRUE(untouched(&self->ends, TRANSFER));
}

TEST_F(fence, array_that_is_cut_short_is_EFAULT)
{
	struct gate gate = new_gate(self->card);
	__s32 *fences = new_edge(2 * sizeof(*fences));
	struct queueing how = { DEVBUF_ASYNC_OUT_FENCE, 2, fences, 0 };

	fences[0] = fences[1] = gate.fd;
	how.nr_in_fences = 3;
	EXPECT_EQ(-EFAULT, queue_copy_of(&self->ends, TRANSFER, &how));
	how.nr_in_fences = 2;
	open_gate(&gate);
	EXPECT_EQ(-EBADF, queue_copy_of(&self->ends, TRANSFER, &how));
}

/* --- errors of fences ------------------------------------------------------------------------- */

TEST_F(fence, error_of_one_given_is_passed_on_from_copy_to_copy)
{
	struct gate gate = new_gate(self->card);
	int ctx = new_context();
	struct ends other;
	__s32 first, second;
	int third;

	new_ends(&other, ctx, NBYTES);
	first = must(queue_copy_of(&self->ends, TRANSFER, AFTER_COOKIE(gate.fd, 1)));
	second = must(queue_copy_of(&other, TRANSFER, AFTER(first)));
	third = must(queue_copy_of(&other, COPYOUT, AFTER(second)));
	ASSERT_EQ(1, do_cancel(self->ctx, 1));
	open_gate(&gate);
	EXPECT_EQ(-ECANCELED, fence_result(first));
	EXPECT_EQ(-ECANCELED, fence_result(second));
	EXPECT_EQ(-ECANCELED, fence_result(third));
	EXPECT_TRUE(untouched(&other, TRANSFER));
	EXPECT_TRUE(untouched(&other, COPYOUT));
	/* One that has failed already, too. */
	EXPECT_EQ(-ECANCELED, end_fence(must(queue_copy_of(&other, TRANSFER, AFTER(second)))));
	EXPECT_TRUE(untouched(&other, TRANSFER));
	close(ctx);
}

/* What merely comes first in the order may fail. */
TEST_F(fence, error_of_what_was_queued_before_is_not_passed_on)
{
	struct gate gate = new_gate(self->card);
	int first = must(queue_copy_of(&self->ends, TRANSFER, AFTER_COOKIE(gate.fd, 1)));
	int second = must(queue_copy_of(&self->ends, COPYIN, NULL));

	ASSERT_EQ(1, do_cancel(self->ctx, 1));
	open_gate(&gate);
	EXPECT_EQ(-ECANCELED, end_fence(first));
	EXPECT_EQ(0, end_fence(second));
	EXPECT_TRUE(arrived(&self->ends, COPYIN));
}

/* --- fences of other drivers ------------------------------------------------------------------ */

TEST_F(fence, of_another_driver_that_is_closed_lets_the_copy_go)
{
	int card = open_vgem();
	struct gate gate = new_gate(card);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd)));

	EXPECT_TRUE(is_held(self->ctx, fence));
	close(card);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
}

/* On the buffer itself, by an importer that goes without a word. */
TEST_F(fence, of_an_importer_that_is_closed_lets_the_copy_go)
{
	int card = open_vgem();
	int fence;

	vgem_attach_fence(card, vgem_import_export(card, self->ctx, self->ends.dst),
			  VGEM_FENCE_WRITE);
	fence = must(queue_copy_of(&self->ends, TRANSFER, NULL));
	EXPECT_TRUE(is_held(self->ctx, fence));
	close(card);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
}

/* vgem's own limit is ten seconds; whoever waits sees no error. */
TEST_F_TIMEOUT(fence, that_nobody_signals_runs_out, 120)
{
	struct gate gate = new_gate(self->card);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd)));

	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
}

FIXTURE(sw_sync)
{
	int ctx, timeline;
	struct ends ends;
};

FIXTURE_SETUP(sw_sync)
{
	self->timeline = new_timeline();
	if (self->timeline < 0)
		SKIP(return, "this kernel has no sw_sync");
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
}

FIXTURE_TEARDOWN(sw_sync)
{
	close(self->ctx);
}

TEST_F(sw_sync, points_are_waited_for_one_by_one)
{
	__s32 first = new_timeline_fence(self->timeline, 1);
	__s32 second = new_timeline_fence(self->timeline, 2);
	int early = must(queue_copy_of(&self->ends, TRANSFER, AFTER(first)));
	int late = must(queue_copy_of(&self->ends, COPYOUT, AFTER(second)));

	EXPECT_TRUE(is_held(self->ctx, early));
	advance_timeline(self->timeline, 1);
	EXPECT_EQ(0, end_fence(early));
	EXPECT_TRUE(is_held(self->ctx, late));
	advance_timeline(self->timeline, 1);
	EXPECT_EQ(0, end_fence(late));
	EXPECT_TRUE(arrived(&self->ends, COPYOUT));
}

/* Its fences then signal with ENOENT. */
TEST_F(sw_sync, timeline_that_is_closed_fails_the_copy)
{
	__s32 given = new_timeline_fence(self->timeline, 1);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(given)));

	EXPECT_TRUE(is_held(self->ctx, fence));
	close(self->timeline);
	EXPECT_EQ(-ENOENT, end_fence(fence));
	EXPECT_TRUE(untouched(&self->ends, TRANSFER));
	/* Now that it has failed. */
	EXPECT_EQ(-ENOENT, end_fence(must(queue_copy_of(&self->ends, TRANSFER, AFTER(given)))));
	EXPECT_TRUE(untouched(&self->ends, TRANSFER));
}

TEST_F(sw_sync, error_on_an_export_does_not_fail_the_copy)
{
	int dma_buf = new_export(self->ctx, self->ends.dst, 0);
	int fence;

	dma_buf_add_fence(dma_buf, DMA_BUF_SYNC_WRITE, new_timeline_fence(self->timeline, 1));
	fence = must(queue_copy_of(&self->ends, TRANSFER, NULL));
	EXPECT_TRUE(is_held(self->ctx, fence));
	close(self->timeline);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
}

TEST_F(sw_sync, fence_that_everybody_forgot_is_waited_for)
{
	__s32 given = new_timeline_fence(self->timeline, 1);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(given)));

	close(given);
	EXPECT_TRUE(is_held(self->ctx, fence));
	advance_timeline(self->timeline, 1);
	EXPECT_EQ(0, end_fence(fence));
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
