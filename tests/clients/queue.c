// SPDX-License-Identifier: GPL-2.0-only
/*
 * The library's queues, later copies and prepared entries, with work of another
 * driver's before them: vgem, whose fences the test signals. Needs the module vgem.
 */
#include "../uapi/common_vgem.h"

#include <devbuf.h>
#include <liburing.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>

#include "kselftest_harness.h"

#define NBYTES  (4 * 4096)

#define MUST(call) must_say((call), #call, __LINE__)

static void must_say(int rc, const char *call, int line)
{
	if (rc) {
		fprintf(stderr, "# line %d: %s: %d, %s\n", line, call, rc, devbuf_last_error());
		abort();
	}
}

/* A buffer that vgem has too, and may be at work on; and another one, of which it knows nothing. */
FIXTURE(queue)
{
	struct devbuf_allocator *a;
	struct devbuf *busy, *idle;
	struct devbuf_queue *q;
	int card;
	__u32 handle, fence;
	unsigned char in[NBYTES], out[NBYTES];
};

FIXTURE_SETUP(queue)
{
	int fd;

	self->card = open_vgem();
	if (self->card < 0)
		SKIP(return, "there is no vgem: is the module loaded?");
	MUST(devbuf_driver_open(NULL, &self->a));
	MUST(devbuf_create(self->a, "SYSTEM", NBYTES, DEVBUF_UINT8, NULL, &self->busy));
	MUST(devbuf_create(self->a, "SYSTEM", NBYTES, DEVBUF_UINT8, NULL, &self->idle));
	MUST(devbuf_allocate(self->busy));
	MUST(devbuf_allocate(self->idle));
	MUST(devbuf_queue_create(self->a, 8, &self->q));
	MUST(devbuf_export(self->busy, DEVBUF_FD_WRITE, &fd, NULL));
	must(vgem_import(self->card, fd, &self->handle));
	close(fd);
	fill(self->in, NBYTES, 1);
	self->fence = vgem_attach_fence(self->card, self->handle, VGEM_FENCE_WRITE);
}

FIXTURE_TEARDOWN(queue)
{
	devbuf_queue_destroy(self->q);
	devbuf_unref(self->idle);
	devbuf_unref(self->busy);
	devbuf_allocator_unref(self->a);
	close(self->card);
}

static uint64_t in_ms(unsigned int ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ms * UINT64_C(1000000);
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	return n == 1 && p.revents & POLLIN;
}

TEST_F(queue, operations_come_after_other_drivers_work)
{
	struct devbuf_completion done[4];
	size_t nr = 9;

	ASSERT_TRUE(devbuf_queue_is_async(self->q));
	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->busy, 0, self->in, NBYTES, 1));
	ASSERT_EQ(0, devbuf_queue_copyout(self->q, self->busy, 0, self->out, NBYTES, 2));
	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->idle, 0, self->in, NBYTES, 3));
	ASSERT_EQ(0, devbuf_queue_submit(self->q));
	/* Whoever has nothing to wait for does not wait. */
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 1, in_ms(5000), done, 4, &nr));
	ASSERT_EQ(1, nr);
	EXPECT_EQ(3, done[0].cookie);
	EXPECT_EQ(0, done[0].result);
	EXPECT_FALSE(is_readable(devbuf_queue_fd(self->q), 20));
	EXPECT_EQ(-ETIMEDOUT, devbuf_queue_wait(self->q, 1, in_ms(20), done, 4, &nr));
	EXPECT_EQ(-ETIMEDOUT, devbuf_queue_wait(self->q, 2, 0, done, 4, &nr));
	EXPECT_EQ(1, nr);

	vgem_signal_fence(self->card, self->fence);
	EXPECT_TRUE(is_readable(devbuf_queue_fd(self->q), 5000));
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 2, in_ms(5000), done, 4, &nr));
	ASSERT_EQ(2, nr);
	EXPECT_EQ(3, done[0].cookie + done[1].cookie);
	EXPECT_EQ(0, done[0].result);
	EXPECT_EQ(0, done[1].result);
	EXPECT_EQ(NBYTES, done[0].done_nbytes);
	EXPECT_EQ(DEVBUF_VIA_CPU, done[0].path);
	EXPECT_EQ(0, memcmp(self->in, self->out, NBYTES));
}

/* At the deadline it gives what there is. */
TEST_F(queue, wait_for_more_than_comes)
{
	struct devbuf_completion done[2];
	size_t nr;

	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->busy, 0, self->in, NBYTES, 1));
	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->idle, 0, self->in, NBYTES, 2));
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 2, in_ms(200), done, 2, &nr));
	ASSERT_EQ(1, nr);
	EXPECT_EQ(2, done[0].cookie);
	vgem_signal_fence(self->card, self->fence);
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 1, DEVBUF_FOREVER, done, 2, &nr));
	EXPECT_EQ(1, done[0].cookie);
}

TEST_F(queue, cancel_what_waits)
{
	struct devbuf_completion done[4];
	size_t nr = 0, count = 0;

	for (uint64_t i = 1; i < 4; i++)
		ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->busy, 0, self->in, NBYTES, i / 2));
	ASSERT_EQ(0, devbuf_queue_submit(self->q));
	ASSERT_EQ(0, devbuf_queue_cancel(self->q, 1, &count));
	EXPECT_EQ(2, count);
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 2, in_ms(5000), done, 4, &nr)); /* at once */
	ASSERT_EQ(2, nr);
	for (size_t i = 0; i < nr; i++) {
		EXPECT_EQ(1, done[i].cookie);
		EXPECT_EQ(-ECANCELED, done[i].result);
		EXPECT_EQ(0, done[i].done_nbytes);
	}
	EXPECT_EQ(-ENOENT, devbuf_queue_cancel(self->q, 1, &count));
	vgem_signal_fence(self->card, self->fence);
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 1, in_ms(5000), done, 4, &nr));
	EXPECT_EQ(0, done[0].cookie);
	EXPECT_EQ(0, done[0].result);
	EXPECT_EQ(-ENOENT, devbuf_queue_cancel(self->q, 0, &count));
}

/* Nothing is read or written afterwards. */
TEST_F(queue, destroy_while_operations_wait)
{
	struct devbuf_transfer_piece piece = { self->busy, 0, self->busy, 4096, 4096 };
	unsigned char zero[NBYTES] = { 0 };

	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->busy, 0, self->in, NBYTES, 1));
	ASSERT_EQ(0, devbuf_queue_copyout(self->q, self->busy, 0, self->out, NBYTES, 2));
	ASSERT_EQ(0, devbuf_queue_transfer_many(self->q, &piece, 1, 0, 3));
	ASSERT_EQ(0, devbuf_queue_submit(self->q));
	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->busy, 0, self->in, NBYTES, 1));
	memset(self->out, 0, NBYTES);
	devbuf_queue_destroy(self->q);
	self->q = NULL;
	vgem_signal_fence(self->card, self->fence);
	EXPECT_EQ(0, memcmp(zero, self->out, NBYTES));
	ASSERT_EQ(0, devbuf_copyout(self->busy, self->out, NBYTES)); /* after what was queued */
	EXPECT_EQ(0, memcmp(zero, self->out, NBYTES));
}

TEST_F(queue, buffers_may_go_while_operations_wait)
{
	struct devbuf_completion done;
	uint64_t id = devbuf_id(self->busy);
	struct devbuf *found;
	size_t nr;

	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->busy, 0, self->in, NBYTES, 1));
	ASSERT_EQ(0, devbuf_queue_submit(self->q));
	devbuf_unref(self->busy);
	self->busy = NULL;
	vgem_signal_fence(self->card, self->fence);
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 1, in_ms(5000), &done, 1, &nr));
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(-ENOENT, devbuf_open_id(self->a, id, &found));
}

static int child(struct devbuf_queue *q)
{
	struct devbuf_completion done;
	size_t nr;
	int rc = devbuf_queue_wait(q, 1, in_ms(100), &done, 1, &nr);

	devbuf_queue_destroy(q);
	return rc == -EPERM ? 0 : 1;
}

TEST_F(queue, fork_while_operations_wait)
{
	struct devbuf_completion done;
	int status = -1;
	size_t nr;
	pid_t pid;

	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->busy, 0, self->in, NBYTES, 1));
	ASSERT_EQ(0, devbuf_queue_submit(self->q));
	pid = fork();
	if (!pid)
		_exit(child(self->q));
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, status);
	vgem_signal_fence(self->card, self->fence);
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 1, in_ms(5000), &done, 1, &nr));
	EXPECT_EQ(0, done.result);
}

static void *submit(void *q)
{
	return (void *)(intptr_t)devbuf_queue_submit(q);
}

/* What a thread submitted ends with it, one way or the other, and the queue lives on. */
TEST_F(queue, thread_ends_while_its_operations_wait)
{
	struct devbuf_completion done;
	pthread_t thread;
	void *rc;
	size_t nr;

	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->busy, 0, self->in, NBYTES, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, submit, self->q));
	pthread_join(thread, &rc);
	ASSERT_EQ(NULL, rc);
	vgem_signal_fence(self->card, self->fence);
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 1, in_ms(5000), &done, 1, &nr));
	EXPECT_TRUE(done.result == 0 || done.result == -ECANCELED);
	ASSERT_EQ(0, devbuf_queue_copyin(self->q, self->busy, 0, self->in, NBYTES, 2));
	ASSERT_EQ(0, devbuf_queue_wait(self->q, 1, in_ms(5000), &done, 1, &nr));
	EXPECT_EQ(0, done.result);
}

/* --- later copies ----------------------------------------------------------------------------- */

TEST_F(queue, copies_with_fences)
{
	struct devbuf_async first = DEVBUF_ASYNC_INIT, second = DEVBUF_ASYNC_INIT;
	int fences[2] = { -1, -1 }, error = 1;

	first.out_fence = &fences[0];
	second.in_fences = &fences[0];
	second.nr_in_fences = 1;
	second.out_fence = &fences[1];
	ASSERT_EQ(0, devbuf_copyin_async(self->busy, 0, self->in, NBYTES, &first));
	ASSERT_EQ(0, devbuf_copyout_async(self->idle, 0, self->out, NBYTES, &second));
	EXPECT_FALSE(is_readable(fences[0], 20));
	EXPECT_FALSE(is_readable(fences[1], 20));
	EXPECT_EQ(-ETIMEDOUT, devbuf_wait(self->busy, 0, NBYTES, DEVBUF_CPU_READ, 0, &error));
	EXPECT_EQ(-ETIMEDOUT,
		  devbuf_wait(self->busy, 0, NBYTES, DEVBUF_CPU_READ, in_ms(20), &error));
	/* Others read it; so may who waits to read. */
	EXPECT_EQ(0, devbuf_wait(self->idle, 0, NBYTES, DEVBUF_CPU_READ, 0, &error));
	EXPECT_EQ(-ETIMEDOUT, devbuf_wait(self->idle, 0, NBYTES, DEVBUF_CPU_WRITE, 0, NULL));
	vgem_signal_fence(self->card, self->fence);
	EXPECT_TRUE(is_readable(fences[1], 5000));
	EXPECT_TRUE(is_readable(fences[0], 0));
	error = 1;
	EXPECT_EQ(0, devbuf_wait(self->busy, 0, NBYTES, DEVBUF_CPU_WRITE, DEVBUF_FOREVER, &error));
	EXPECT_EQ(0, error);
	close(fences[0]);
	close(fences[1]);
}

TEST_F(queue, cancel_a_copy_that_waits)
{
	struct devbuf_async how = DEVBUF_ASYNC_INIT, after = DEVBUF_ASYNC_INIT;
	size_t count = 0;
	int fence = -1;

	how.cookie = 77;
	how.out_fence = &fence;
	ASSERT_EQ(0, devbuf_copyin_async(self->busy, 0, self->in, NBYTES, &how));
	after.in_fences = &fence;
	after.nr_in_fences = 1;
	ASSERT_EQ(0, devbuf_copyin_async(self->idle, 0, self->in, NBYTES, &after));
	EXPECT_EQ(-ENOENT, devbuf_cancel(self->a, 78, &count));
	ASSERT_EQ(0, devbuf_cancel(self->a, 77, &count));
	EXPECT_EQ(1, count);
	vgem_signal_fence(self->card, self->fence);
	EXPECT_TRUE(is_readable(fence, 5000));
	/* The other one was not done either. */
	EXPECT_EQ(0, devbuf_wait(self->idle, 0, 1, DEVBUF_CPU_READ, DEVBUF_FOREVER, NULL));
	ASSERT_EQ(0, devbuf_copyout(self->idle, self->out, NBYTES));
	EXPECT_NE(0, memcmp(self->in, self->out, NBYTES));
	close(fence);
}

TEST_F(queue, unordered_copies_wait_for_nothing)
{
	struct devbuf_async how = DEVBUF_ASYNC_INIT;
	int fence = -1;

	how.flags = DEVBUF_UNORDERED;
	how.out_fence = &fence;
	ASSERT_EQ(0, devbuf_copyin_async(self->busy, 0, self->in, NBYTES, &how));
	EXPECT_TRUE(is_readable(fence, 5000)); /* though vgem is still at work */
	close(fence);
	fence = open("/dev/null", O_RDONLY);
	how.in_fences = &fence;
	how.nr_in_fences = 1;
	how.out_fence = NULL;
	EXPECT_EQ(-EINVAL, devbuf_copyin_async(self->busy, 0, self->in, NBYTES, &how));
	close(fence);
	EXPECT_EQ(-EBADF, devbuf_copyin_async(self->busy, 0, self->in, NBYTES, &how));
	vgem_signal_fence(self->card, self->fence);
}

/* --- on a ring of the caller's ---------------------------------------------------------------- */

static int next_result(struct io_uring *ring, void **data)
{
	struct io_uring_cqe *cqe;
	int res;

	must(io_uring_wait_cqe(ring, &cqe));
	res = cqe->res;
	*data = io_uring_cqe_get_data(cqe);
	io_uring_cqe_seen(ring, cqe);
	return res;
}

TEST_F(queue, entries_on_a_ring_of_the_caller_s)
{
	struct devbuf_async how = DEVBUF_ASYNC_INIT;
	struct devbuf_operation ops[3];
	enum devbuf_copy_path path;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	uint64_t nbytes;
	size_t count;
	void *data;

	must(io_uring_queue_init(8, &ring, 0));
	how.cookie = 5;
	sqe = io_uring_get_sqe(&ring);
	ASSERT_EQ(0, devbuf_prepare_copyin(sqe, &ops[0], self->busy, 0, self->in, NBYTES, &how));
	io_uring_sqe_set_data(sqe, &ops[0]);
	sqe = io_uring_get_sqe(&ring);
	io_uring_sqe_set_data(sqe, &ops[1]); /* before or after */
	ASSERT_EQ(0, devbuf_prepare_transfer(sqe, &ops[1], self->idle, 0, self->busy, 0, NBYTES, 0,
					     NULL));
	sqe = io_uring_get_sqe(&ring);
	ASSERT_EQ(0, devbuf_prepare_copyout(sqe, &ops[2], self->idle, 0, self->out, NBYTES, NULL));
	io_uring_sqe_set_data(sqe, &ops[2]);
	ASSERT_EQ(3, io_uring_submit(&ring));
	EXPECT_FALSE(is_readable(ring.ring_fd, 20));
	vgem_signal_fence(self->card, self->fence);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(0, next_result(&ring, &data));
		EXPECT_EQ(0, devbuf_operation_done(data, &nbytes, &path));
		EXPECT_EQ(NBYTES, nbytes);
		EXPECT_EQ(DEVBUF_VIA_CPU, path);
	}
	EXPECT_EQ(0, memcmp(self->in, self->out, NBYTES));

	self->fence = vgem_attach_fence(self->card, self->handle, VGEM_FENCE_WRITE);
	sqe = io_uring_get_sqe(&ring);
	ASSERT_EQ(0, devbuf_prepare_copyin(sqe, &ops[0], self->busy, 0, self->in, NBYTES, &how));
	io_uring_sqe_set_data(sqe, &ops[0]);
	ASSERT_EQ(1, io_uring_submit(&ring));
	ASSERT_EQ(0, devbuf_cancel(self->a, 5, &count));
	EXPECT_EQ(1, count);
	EXPECT_EQ(-ECANCELED, next_result(&ring, &data));
	vgem_signal_fence(self->card, self->fence);
	io_uring_queue_exit(&ring);
}

TEST_F(queue, registered_memory_on_a_ring_of_the_caller_s)
{
	struct iovec memory = { self->in, NBYTES };
	struct devbuf_operation op;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	void *data;

	vgem_signal_fence(self->card, self->fence);
	must(io_uring_queue_init(8, &ring, 0));
	must(io_uring_register_buffers(&ring, &memory, 1));
	for (int i = 0; i < 2; i++) {
		sqe = io_uring_get_sqe(&ring);
		ASSERT_EQ(0, devbuf_prepare_copyin(sqe, &op, self->busy, 0,
						   i ? self->out : self->in, NBYTES, NULL));
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		sqe->buf_index = 0;
		ASSERT_EQ(1, io_uring_submit(&ring));
		EXPECT_EQ(i ? -EFAULT : 0, next_result(&ring, &data));
	}
	ASSERT_EQ(0, devbuf_copyout(self->busy, self->out, NBYTES));
	EXPECT_EQ(0, memcmp(self->in, self->out, NBYTES));
	io_uring_queue_exit(&ring);
}

TEST_HARNESS_MAIN
