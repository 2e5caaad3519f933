// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order between queued copies and what other drivers do on exported dma-bufs: either side finds
 * the other's fences in the dma-bufs' reservations. Needs the module vgem, which is the other driver.
 */
#include "common_async.h"
#include "common_vgem.h"

#include <poll.h>
#include <sys/wait.h>

#include <linux/dma-buf.h>

#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(order_dmabuf)
{
	int card, ctx;
	struct ends ends;
	struct gate gate;
	/* Exports of the two ends. */
	int src, dst;
};

FIXTURE_SETUP(order_dmabuf)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->gate = new_gate(self->card);
	self->src = new_export(self->ctx, self->ends.src, DEVBUF_EXPORT_WRITE);
	self->dst = new_export(self->ctx, self->ends.dst, DEVBUF_EXPORT_WRITE);
}

FIXTURE_TEARDOWN(order_dmabuf)
{
	close(self->ctx);
	close(self->card);
}

/* What poll() says at once: POLLIN when all writes are over, POLLOUT when all accesses are. */
static short readiness(int dma_buf)
{
	struct pollfd file = { .fd = dma_buf, .events = POLLIN | POLLOUT };

	must_libc(poll(&file, 1, 0));
	return file.revents;
}

/* Sooner or later all accesses are over. */
static bool becomes_ready(int dma_buf)
{
	struct pollfd file = { .fd = dma_buf, .events = POLLOUT };

	return poll(&file, 1, DEADLINE_MS) == 1 && file.revents == POLLOUT;
}

static int hold(const struct ends *ends, struct gate *gate)
{
	return must(queue_copy_of(ends, TRANSFER, AFTER(gate->fd)));
}

/* --- others wait for ours --------------------------------------------------------------------- */

TEST_F(order_dmabuf, poll_knows_of_queued_copies)
{
	int fence;

	EXPECT_EQ(POLLIN | POLLOUT, readiness(self->src));
	EXPECT_EQ(POLLIN | POLLOUT, readiness(self->dst));
	fence = hold(&self->ends, &self->gate);
	EXPECT_EQ(POLLIN, readiness(self->src));
	EXPECT_EQ(0, readiness(self->dst));
	open_gate(&self->gate);
	EXPECT_TRUE(becomes_ready(self->src));
	EXPECT_TRUE(becomes_ready(self->dst));
	EXPECT_EQ(1, fence_status(fence));
}

TEST_F(order_dmabuf, fences_are_exported)
{
	int fence = hold(&self->ends, &self->gate);
	int to_read_src = dma_buf_fence(self->src, DMA_BUF_SYNC_READ);
	int to_write_src = dma_buf_fence(self->src, DMA_BUF_SYNC_WRITE);
	int to_read_dst = dma_buf_fence(self->dst, DMA_BUF_SYNC_READ);
	int to_write_dst = dma_buf_fence(self->dst, DMA_BUF_SYNC_WRITE);

	EXPECT_EQ(1, fence_status(to_read_src));
	EXPECT_EQ(0, fence_status(to_write_src));
	EXPECT_EQ(0, fence_status(to_read_dst));
	EXPECT_EQ(0, fence_status(to_write_dst));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(to_write_src));
	EXPECT_EQ(0, end_fence(to_read_dst));
	EXPECT_EQ(0, end_fence(to_write_dst));
	EXPECT_EQ(1, fence_status(fence));
}

/* vgem does not wait, but it refuses to begin what would have to. */
TEST_F(order_dmabuf, another_driver_finds_the_fences)
{
	int fence = hold(&self->ends, &self->gate);
	__u32 src, dst;

	must(vgem_import(self->card, self->src, &src));
	must(vgem_import(self->card, self->dst, &dst));
	EXPECT_LT(0, do_vgem_attach_fence(self->card, src, 0));
	EXPECT_EQ(-EBUSY, do_vgem_attach_fence(self->card, src, VGEM_FENCE_WRITE));
	EXPECT_EQ(-EBUSY, do_vgem_attach_fence(self->card, dst, 0));
	EXPECT_EQ(-EBUSY, do_vgem_attach_fence(self->card, dst, VGEM_FENCE_WRITE));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_LT(0, do_vgem_attach_fence(self->card, dst, VGEM_FENCE_WRITE));
}

TEST_F(order_dmabuf, exports_made_later_know_of_it)
{
	struct ends ends;
	int fence, src, dst;

	new_ends(&ends, self->ctx, NBYTES);
	fence = hold(&ends, &self->gate);
	src = new_export(self->ctx, ends.src, 0);
	dst = new_export(self->ctx, ends.dst, 0);
	EXPECT_EQ(POLLIN, readiness(src));
	EXPECT_EQ(0, readiness(dst));
	open_gate(&self->gate);
	EXPECT_TRUE(becomes_ready(dst));
	EXPECT_TRUE(becomes_ready(src));
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(arrived(&ends, TRANSFER));
}

TEST_F(order_dmabuf, all_exports_whose_pages_it_touches_know_of_it)
{
	__u64 touched = new_allocated_view(self->ctx, self->ends.dst, PAGE + 200, 10);
	__u64 other = new_allocated_view(self->ctx, self->ends.dst, 2 * PAGE, 10);
	int early[] = {
		new_export(self->ctx, touched, 0),
		new_export(self->ctx, touched, DEVBUF_EXPORT_WRITE),
		new_export(self->ctx, other, 0),
	};
	int fence = must(queue_copyin(self->ctx, self->ends.dst, PAGE + 100, self->ends.from, 10,
				      AFTER(self->gate.fd)));
	__u64 third = new_allocated_view(self->ctx, self->ends.dst, PAGE, 1);
	int late = new_export(self->ctx, third, 0);

	EXPECT_EQ(0, readiness(self->dst));
	EXPECT_EQ(0, readiness(early[0]));
	EXPECT_EQ(0, readiness(early[1]));
	EXPECT_EQ(POLLIN | POLLOUT, readiness(early[2]));
	EXPECT_EQ(0, readiness(late));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(becomes_ready(early[0]));
	EXPECT_TRUE(becomes_ready(late));
}

TEST_F(order_dmabuf, explicit_copies_are_not_known)
{
	struct queueing how = {
		.flags = DEVBUF_ASYNC_OUT_FENCE | DEVBUF_ASYNC_EXPLICIT,
		.in_fences = &self->gate.fd,
		.nr_in_fences = 1,
	};
	int fence = must(queue_copy_of(&self->ends, TRANSFER, &how));
	__u64 view = new_allocated_view(self->ctx, self->ends.dst, 0, 1);

	EXPECT_EQ(POLLIN | POLLOUT, readiness(self->dst));
	EXPECT_EQ(POLLIN | POLLOUT, readiness(new_export(self->ctx, view, 0)));
	EXPECT_EQ(0, fence_status(fence));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(fence));
}

/* A CPU access through the dma-buf waits as well. */
TEST_F(order_dmabuf, sync_of_a_dma_buf_waits)
{
	struct dma_buf_sync begin = { DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ };
	struct dma_buf_sync end = { DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ };
	int fence = hold(&self->ends, &self->gate);
	struct opener opener;

	open_when_asleep(&opener, &self->gate);
	EXPECT_EQ(0, ioctl(self->dst, DMA_BUF_IOCTL_SYNC, &begin));
	EXPECT_TRUE(has_waited(&opener));
	EXPECT_EQ(1, fence_status(fence));
	EXPECT_EQ(0, ioctl(self->dst, DMA_BUF_IOCTL_SYNC, &end));
}

/* --- ours wait for others --------------------------------------------------------------------- */

TEST_F(order_dmabuf, copies_wait_for_writes_of_other_drivers)
{
	__u32 handle, work;
	int reads, writes;

	must(vgem_import(self->card, self->src, &handle));
	work = vgem_attach_fence(self->card, handle, VGEM_FENCE_WRITE);
	reads = must(queue_copy_of(&self->ends, COPYOUT, NULL));
	writes = must(queue_copyin(self->ctx, self->ends.src, 0, self->ends.from, NBYTES, NULL));
	EXPECT_TRUE(is_held(self->ctx, reads));
	EXPECT_EQ(0, fence_status(writes));
	vgem_signal_fence(self->card, work);
	EXPECT_EQ(0, end_fence(reads));
	EXPECT_EQ(0, end_fence(writes));
	open_gate(&self->gate);
}

TEST_F(order_dmabuf, only_writes_wait_for_reads_of_other_drivers)
{
	__u32 handle, work;
	int writes;

	must(vgem_import(self->card, self->src, &handle));
	work = vgem_attach_fence(self->card, handle, 0);
	EXPECT_EQ(0, end_fence(must(queue_copy_of(&self->ends, TRANSFER, NULL))));
	writes = must(queue_copyin(self->ctx, self->ends.src, 0, self->ends.from, NBYTES, NULL));
	EXPECT_TRUE(is_held(self->ctx, writes));
	vgem_signal_fence(self->card, work);
	EXPECT_EQ(0, end_fence(writes));
	open_gate(&self->gate);
}

TEST_F(order_dmabuf, fences_that_were_put_there_are_waited_for)
{
	int fence;

	dma_buf_add_fence(self->dst, DMA_BUF_SYNC_WRITE, self->gate.fd);
	fence = must(queue_copy_of(&self->ends, TRANSFER, NULL));
	EXPECT_TRUE(is_held(self->ctx, fence));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(fence));
}

/*
 * The work of another driver is on the export of one view. Copies that touch its pages wait, others
 * do not, though the base is exported as well, and the copies that wait show there.
 */
TEST_F(order_dmabuf, disjoint_views_do_not_wait_for_each_other)
{
	__u64 one = new_allocated_view(self->ctx, self->ends.dst, 0, PAGE);
	__u64 other = new_allocated_view(self->ctx, self->ends.dst, PAGE, PAGE);
	__u64 both = new_allocated_view(self->ctx, self->ends.dst, PAGE - 1, 2);
	__u32 work = vgem_attach_fence(self->card, vgem_import_export(self->card, self->ctx, one),
				       VGEM_FENCE_WRITE);
	int held[2];

	new_export(self->ctx, other, DEVBUF_EXPORT_WRITE);
	held[0] = must(queue_copyin(self->ctx, one, 0, self->ends.from, PAGE, NULL));
	EXPECT_TRUE(is_held(self->ctx, held[0]));
	EXPECT_EQ(0, readiness(self->dst));
	EXPECT_EQ(0,
		  end_fence(must(queue_copyin(self->ctx, other, 0, self->ends.from, PAGE, NULL))));
	EXPECT_EQ(0, end_fence(must(queue_copyin(self->ctx, self->ends.dst, 2 * PAGE,
						 self->ends.from, PAGE, NULL))));
	held[1] = must(queue_copyout(self->ctx, both, 0, self->ends.to, 2, NULL));
	EXPECT_TRUE(is_held(self->ctx, held[1]));
	EXPECT_EQ(0, fence_status(held[0]));
	vgem_signal_fence(self->card, work);
	EXPECT_EQ(0, end_fence(held[0]));
	EXPECT_EQ(0, end_fence(held[1]));
	open_gate(&self->gate);
}

/* Of a dma-buf's own, work of others is waited for by whoever touches its pages, byte or not. */
TEST_F(order_dmabuf, work_of_others_is_by_pages)
{
	__u64 view = new_allocated_view(self->ctx, self->ends.dst, 100, 10);
	__u32 work = vgem_attach_fence(self->card, vgem_import_export(self->card, self->ctx, view),
				       VGEM_FENCE_WRITE);
	int fence = must(queue_copyin(self->ctx, self->ends.dst, 2000, self->ends.from, 1, NULL));

	EXPECT_TRUE(is_held(self->ctx, fence));
	vgem_signal_fence(self->card, work);
	EXPECT_EQ(0, end_fence(fence));
	open_gate(&self->gate);
}

TEST_F(order_dmabuf, explicit_copies_do_not_wait_for_others)
{
	struct queueing explicit = { .flags = DEVBUF_ASYNC_OUT_FENCE | DEVBUF_ASYNC_EXPLICIT };

	dma_buf_add_fence(self->dst, DMA_BUF_SYNC_WRITE, self->gate.fd);
	EXPECT_EQ(0, end_fence(must(queue_copy_of(&self->ends, TRANSFER, &explicit))));
	open_gate(&self->gate);
}

/* Our fence goes round: out of one dma-buf and into another. */
TEST_F(order_dmabuf, own_fences_are_known_when_they_come_back)
{
	struct ends other;
	int first, second, dst;

	new_ends(&other, self->ctx, NBYTES);
	dst = new_export(self->ctx, other.dst, 0);
	first = hold(&self->ends, &self->gate);
	dma_buf_add_fence(dst, DMA_BUF_SYNC_WRITE, dma_buf_fence(self->dst, DMA_BUF_SYNC_READ));
	second = must(queue_copy_of(&other, TRANSFER, NULL));
	EXPECT_TRUE(is_held(self->ctx, second));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(second));
	EXPECT_EQ(1, fence_status(first));
}

/* There it is known by bytes, which say more than the fence. */
TEST_F(order_dmabuf, own_fences_that_are_put_where_they_are_count_for_nothing)
{
	int first = must(queue_copyin(self->ctx, self->ends.dst, 0, self->ends.from, 100,
				      AFTER(self->gate.fd)));
	int second;

	dma_buf_add_fence(self->dst, DMA_BUF_SYNC_WRITE, first);
	EXPECT_EQ(0, end_fence(must(queue_copyin(self->ctx, self->ends.dst, 100, self->ends.from,
						 100, NULL))));
	second = must(queue_copyin(self->ctx, self->ends.dst, 99, self->ends.from, 1, NULL));
	EXPECT_TRUE(is_held(self->ctx, second));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
	EXPECT_EQ(0, end_fence(second));
}

/* Reservations must not grow without end while nothing is ever over. */
TEST_F(order_dmabuf, many_copies_on_one_export)
{
	enum { NR = 500 };
	struct queueing how = { .in_fences = &self->gate.fd, .nr_in_fences = 1 };
	int last;

	for (int i = 0; i < NR; i++)
		must(queue_copyin(self->ctx, self->ends.dst, i, self->ends.from, 1, &how));
	last = must(queue_copy_of(&self->ends, TRANSFER, NULL));
	EXPECT_TRUE(is_held(self->ctx, last));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(last));
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
	EXPECT_TRUE(becomes_ready(self->dst));
}

/* --- crosswise -------------------------------------------------------------------------------- */

#define NR_ROUNDS 300

/* One of two processes: from @src to @dst all the time, its copies queued without waiting. */
static void go_on(int ctx, __u64 dst, __u64 src)
{
	struct queueing plain = { 0 };
	int fence = -1;

	for (int i = 0; i < NR_ROUNDS; i++) {
		bool ask = i % 16 == 15;

		fence = must(queue_transfer(ctx, dst, 0, src, 0, NBYTES, ask ? NULL : &plain));
		if (ask)
			must(end_fence(fence));
	}
	must(end_fence(must(queue_transfer(ctx, dst, 0, src, 0, NBYTES, NULL))));
}

TEST_F_TIMEOUT(order_dmabuf, two_processes_copy_in_opposite_directions, 120)
{
	pid_t children[2];

	open_gate(&self->gate);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		ASSERT_LE(0, children[i]);
		if (!children[i]) {
			int ctx = new_context();
			__u64 one = new_import(ctx, self->src), other = new_import(ctx, self->dst);

			go_on(ctx, i ? one : other, i ? other : one);
			_exit(0);
		}
	}
	EXPECT_EQ(0, wait_for(children[0]));
	EXPECT_EQ(0, wait_for(children[1]));
	/* Either all of the pattern went everywhere, or all of the zeros did. */
	if (!buffer_filled(self->ctx, self->ends.dst, 0, NBYTES, 1)) {
		EXPECT_TRUE(buffer_zero(self->ctx, self->ends.dst, 0, NBYTES));
		EXPECT_TRUE(buffer_zero(self->ctx, self->ends.src, 0, NBYTES));
	} else {
		EXPECT_TRUE(buffer_filled(self->ctx, self->ends.src, 0, NBYTES, 1));
	}
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
