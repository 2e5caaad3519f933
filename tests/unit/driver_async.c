// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the library asks of the driver for many copies at once, for copies that
 * are over later, and for queues. driver_mock.h plays the driver; where a ring is
 * needed it is a true one, on which the mock's node knows no commands.
 */
#include "driver_mock.h"

#include <liburing.h>
#include <poll.h>
#include <time.h>

#define ALLOCATED (DEVBUF_STATE_BASE_ALLOCATED | DEVBUF_STATE_ALLOCATED)

static const int errnos[] = {
	EINVAL, EOVERFLOW, ENOENT, EACCES,    EBUSY,     EOPNOTSUPP, ENODEV, ENOMEM, EMFILE,
	EBADF,  EFAULT,    EIO,    ECANCELED, ETIMEDOUT, ENOTTY,     E2BIG,
};

/* --- many pieces ------------------------------------------------------------------------------ */

static void expect_transfers(struct devbuf_transfer_range first, __u32 nr, int error, __u32 path)
{
	struct devbuf_transfer transfer = { .size = sizeof(transfer), .nr_ranges = nr };
	struct devbuf_transfer reply = transfer;

	reply.out_path = path;
	expect(DEVBUF_TRANSFER, &transfer, error, &reply)->transfer = first;
}

TEST_F(driver, pieces_go_by_one_command)
{
	struct devbuf_transfer_range first = { .dst_id = 8, .src_id = 7, .nbytes = 10 };
	struct devbuf *a = new_mocked(self->a, 2000, 7), *b = next_mocked(self->a, 2000, 8);
	struct devbuf_transfer_piece pieces[1030];
	enum devbuf_copy_path took;

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		pieces[i] = (struct devbuf_transfer_piece){ b, i, a, i, 10 };
	expect_transfers(first, 3, 0, DEVBUF_PATH_DEVICE);
	ASSERT_OK(devbuf_copy_many(pieces, 3, 0, &took));
	EXPECT_EQ(DEVBUF_VIA_DEVICE, took);

	expect_transfers(first, 1024, 0, DEVBUF_PATH_CPU);
	first.src_offset = first.dst_offset = 1024;
	expect_transfers(first, 6, 0, DEVBUF_PATH_PEER);
	ASSERT_OK(devbuf_copy_many(pieces, 1030, 0, &took));
	EXPECT_EQ(DEVBUF_VIA_CPU, took); /* the worst */

	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++) {
		first.src_offset = first.dst_offset = 0;
		expect_transfers(first, 2, errnos[i], 0);
		EXPECT_EQ(-errnos[i], devbuf_copy_many(pieces, 2, 0, &took));
		EXPECT_SAID("cannot transfer 2 pieces");
	}
	unref_mocked(b);
	unref_mocked(a);
}

TEST_F(driver, pieces_allocate_when_they_must)
{
	struct devbuf_transfer_range first = { .dst_id = 8, .src_id = 7, .nbytes = 10 };
	struct devbuf *a = new_mocked(self->a, 100, 7), *b = next_mocked(self->a, 100, 8);
	const struct devbuf_transfer_piece pieces[] = { { b, 0, a, 0, 10 }, { a, 0, b, 0, 10 } };

	expect_transfers(first, 2, ENODATA, 0);
	expect_state(7, 0);
	expect_allocate(7, 0);
	expect_state(8, 0);
	expect_allocate(8, 0);
	expect_state(8, ALLOCATED);
	expect_state(7, ALLOCATED);
	expect_transfers(first, 2, EIO, 0);
	expect_id(DEVBUF_DEALLOCATE, 8, 0); /* what cannot be had is given back */
	expect_id(DEVBUF_DEALLOCATE, 7, 0);
	EXPECT_EQ(-EIO, devbuf_copy_many(pieces, 2, 0, NULL));
	EXPECT_SAID("cannot transfer 2 pieces");
	unref_mocked(b);
	unref_mocked(a);
}

/* --- over later ------------------------------------------------------------------------------- */

static void expect_copy_async(unsigned long command, struct devbuf_copy copy,
			      struct devbuf_copy_range range, int error, int fence)
{
	struct devbuf_copy reply;

	copy.size = sizeof(copy);
	copy.nr_ranges = 1;
	reply = copy;
	reply.out_fence = fence;
	expect(command, &copy, error, &reply)->copy = range;
}

TEST_F(driver, async_copies)
{
	struct devbuf *b = new_mocked(self->a, 100, 7);
	const int fences[] = { 40, 41 };
	int fence = -1;
	struct devbuf_async how = DEVBUF_ASYNC_INIT;
	struct devbuf_copy copy = { .flags = DEVBUF_ASYNC };
	char bytes[100];
	struct devbuf_copy_range range = {
		.id = 7, .offset = 3, .user_addr = (uintptr_t)bytes, .nbytes = 50
	};

	expect_copy_async(DEVBUF_COPYIN, copy, range, 0, 0);
	ASSERT_OK(devbuf_copyin_async(b, 3, bytes, 50, NULL));
	expect_copy_async(DEVBUF_COPYOUT, copy, range, EINTR, 0); /* begun again */
	expect_copy_async(DEVBUF_COPYOUT, copy, range, 0, 0);
	ASSERT_OK(devbuf_copyout_async(b, 3, bytes, 50, &how));

	how.in_fences = fences;
	expect_copy_async(DEVBUF_COPYIN, copy, range, 0, 0); /* an array of none */
	ASSERT_OK(devbuf_copyin_async(b, 3, bytes, 50, &how));
	how.nr_in_fences = 2;
	how.cookie = 99;
	how.flags = DEVBUF_UNORDERED;
	how.out_fence = &fence;
	copy.flags = DEVBUF_ASYNC | DEVBUF_ASYNC_EXPLICIT | DEVBUF_ASYNC_OUT_FENCE;
	copy.in_fences = (uintptr_t)fences;
	copy.nr_in_fences = 2;
	copy.cookie = 99;
	expect_copy_async(DEVBUF_COPYIN, copy, range, 0, 55);
	ASSERT_OK(devbuf_copyin_async(b, 3, bytes, 50, &how));
	EXPECT_EQ(55, fence);
	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++) {
		expect_copy_async(DEVBUF_COPYOUT, copy, range, errnos[i], 66);
		EXPECT_EQ(-errnos[i], devbuf_copyout_async(b, 3, bytes, 50, &how));
		EXPECT_SAID("cannot queue a copy out of buffer 7");
	}
	EXPECT_EQ(55, fence);
	unref_mocked(b);
}

static void expect_transfer_async(struct devbuf_transfer transfer,
				  struct devbuf_transfer_range range, int error, int fence)
{
	struct devbuf_transfer reply;

	transfer.size = sizeof(transfer);
	transfer.nr_ranges = 1;
	reply = transfer;
	reply.out_fence = fence;
	expect(DEVBUF_TRANSFER, &transfer, error, &reply)->transfer = range;
}

/* The driver is asked for the state of buffers once, and again when that was changed here. */
TEST_F(driver, async_transfers)
{
	struct devbuf_transfer_range range = {
		.dst_id = 8, .dst_offset = 1, .src_id = 7, .src_offset = 2, .nbytes = 10
	};
	struct devbuf *a = new_mocked(self->a, 100, 7), *b = next_mocked(self->a, 100, 8);
	struct devbuf_async how = DEVBUF_ASYNC_INIT;
	struct devbuf_transfer transfer = { .flags = DEVBUF_ASYNC | DEVBUF_TRANSFER_NO_CPU };
	int fence = -1;

	expect_state(7, ALLOCATED);
	expect_state(8, 0);
	expect_allocate(8, 0);
	expect_transfer_async(transfer, range, EOPNOTSUPP, 0);
	expect_id(DEVBUF_DEALLOCATE, 8, 0); /* what cannot be had is given back */
	EXPECT_EQ(-EOPNOTSUPP, devbuf_transfer_async(b, 1, a, 2, 10, DEVBUF_NO_CPU, NULL));
	EXPECT_SAID("cannot queue a transfer to buffer 8");

	transfer.flags = DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE;
	transfer.cookie = 5;
	how.cookie = 5;
	how.out_fence = &fence;
	expect_state(8, 0);
	expect_allocate(8, 0);
	expect_transfer_async(transfer, range, 0, 44);
	ASSERT_OK(devbuf_transfer_async(b, 1, a, 2, 10, 0, &how));
	EXPECT_EQ(44, fence);
	expect_transfer_async(transfer, range, 0, 45);
	ASSERT_OK(devbuf_transfer_async(b, 1, a, 2, 10, DEVBUF_NO_BOUNCE, &how));
	EXPECT_EQ(45, fence);
	expect_transfer_async(transfer, range, ENODATA, 0); /* the owner took it away */
	EXPECT_EQ(-ENODATA, devbuf_transfer_async(b, 1, a, 2, 10, 0, &how));
	unref_mocked(b);
	unref_mocked(a);
}

static void expect_wait(struct devbuf_wait wait, int error, int fence_error)
{
	struct devbuf_wait reply;

	wait.size = sizeof(wait);
	reply = wait;
	reply.out_error = fence_error;
	expect(DEVBUF_WAIT, &wait, error, &reply);
}

TEST_F(driver, waits)
{
	struct devbuf *b = new_mocked(self->a, 100, 7);
	struct devbuf_wait wait = {
		.flags = DEVBUF_WAIT_READ, .id = 7, .offset = 5, .nbytes = 10, .deadline_ns = 1234
	};
	int error = 1;

	expect_wait(wait, EINTR, 0);
	expect_wait(wait, 0, -EIO);
	ASSERT_OK(devbuf_wait(b, 5, 10, DEVBUF_CPU_READ, 1234, &error));
	EXPECT_EQ(-EIO, error);
	wait.flags = DEVBUF_WAIT_READ | DEVBUF_WAIT_WRITE;
	wait.deadline_ns = DEVBUF_NO_DEADLINE;
	expect_wait(wait, 0, 0);
	ASSERT_OK(devbuf_wait(b, 5, 10, DEVBUF_CPU_READ | DEVBUF_CPU_WRITE, DEVBUF_FOREVER, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++) {
		expect_wait(wait, errnos[i], -EDOM);
		EXPECT_EQ(-errnos[i], devbuf_wait(b, 5, 10, DEVBUF_CPU_READ | DEVBUF_CPU_WRITE,
						  DEVBUF_FOREVER, &error));
		EXPECT_SAID("cannot wait for buffer 7");
	}
	EXPECT_EQ(-EIO, error);
	unref_mocked(b);
}

TEST_F(driver, cancels)
{
	struct devbuf_cancel cancel = { .size = sizeof(cancel), .cookie = 12 }, reply = cancel;
	size_t count = 0;

	reply.out_count = 3;
	expect(DEVBUF_CANCEL, &cancel, 0, &reply);
	ASSERT_OK(devbuf_cancel(self->a, 12, &count));
	EXPECT_EQ(3, count);
	expect(DEVBUF_CANCEL, &cancel, ENOENT, &reply);
	EXPECT_EQ(-ENOENT, devbuf_cancel(self->a, 12, &count));
	EXPECT_SAID("no copy with cookie 12");
	expect(DEVBUF_CANCEL, &cancel, ENOTTY, &reply);
	EXPECT_EQ(-ENOTTY, devbuf_cancel(self->a, 12, &count));
	EXPECT_EQ(3, count);
	expect(DEVBUF_CANCEL, &cancel, 0, &reply);
	EXPECT_OK(devbuf_cancel(self->a, 12, NULL));
}

/* --- queues ----------------------------------------------------------------------------------- */

/* Without commands by io_uring the queue gives them itself, in order. */
TEST_F(driver, queue_in_order)
{
	struct devbuf_transfer_range range = { .dst_id = 8, .src_id = 7, .nbytes = 10 };
	struct devbuf *a = new_mocked(self->a, 100, 7), *b = next_mocked(self->a, 100, 8);
	struct devbuf_completion done[4];
	struct devbuf_queue *q;
	char bytes[10];
	size_t nr;

	ASSERT_OK(devbuf_queue_create(self->a, 4, &q));
	EXPECT_FALSE(devbuf_queue_is_async(q));
	ASSERT_OK(devbuf_queue_copyin(q, a, 0, bytes, 10, 1));
	expect_state(7, ALLOCATED);
	expect_state(8, 0);
	expect_allocate(8, 0);
	ASSERT_OK(devbuf_queue_transfer(q, b, 0, a, 0, 10, 0, 2));
	ASSERT_OK(devbuf_queue_transfer(q, b, 0, a, 0, 10, 0, 3)); /* nothing to ask */
	ASSERT_OK(devbuf_queue_copyout(q, b, 0, bytes, 10, 4));
	expect_copy(DEVBUF_COPYIN, 7, 0, bytes, 10, 0, 10);
	expect_transfer(range, 0, 0, DEVBUF_PATH_DEVICE);
	expect_transfer(range, 0, EIO, 0);
	expect_copy(DEVBUF_COPYOUT, 8, 0, bytes, 10, 0, 10);
	ASSERT_OK(devbuf_queue_wait(q, 4, 0, done, 4, &nr));
	ASSERT_EQ(4, nr);
	for (size_t i = 0; i < 4; i++) {
		EXPECT_EQ(i + 1, done[i].cookie);
		EXPECT_EQ(i == 2 ? -EIO : 0, done[i].result);
		EXPECT_EQ(i == 2 ? 0 : 10, done[i].done_nbytes);
	}
	EXPECT_EQ(DEVBUF_VIA_DEVICE, done[1].path);
	devbuf_queue_destroy(q);
	unref_mocked(b);
	unref_mocked(a);
}

TEST_F(driver, prepared_entries)
{
	struct devbuf_copy expected = { .size = sizeof(expected), .nr_ranges = 1, .cookie = 3 };
	struct devbuf_async how = DEVBUF_ASYNC_INIT;
	struct devbuf_operation op;
	struct devbuf_uring_cmd cmd;
	struct io_uring_sqe sqe, other;
	enum devbuf_copy_path path;
	const struct devbuf_copy_range *range;
	struct devbuf_transfer *transfer;
	struct devbuf_allocator *a;
	struct devbuf *b, *c;
	struct devbuf_copy *copy;
	char bytes[10];
	uint64_t done;
	int fence;

	ASSERT_OK(open_mock_with(DEVBUF_FEATURE_URING, &a));
	b = new_mocked(a, 100, 7);
	c = next_mocked(a, 100, 8);
	how.cookie = 3;
	memset(&sqe, 0xff, sizeof(sqe));
	sqe.user_data = 0xabcdef;
	ASSERT_OK(devbuf_prepare_copyin(&sqe, &op, b, 5, bytes, 10, &how));
	EXPECT_EQ(0xabcdef, sqe.user_data);
	EXPECT_EQ(DEVBUF_COPYIN, sqe.cmd_op);
	memcpy(&cmd, (char *)&sqe + 48, sizeof(cmd));
	EXPECT_EQ(0, cmd.pad);
	copy = (struct devbuf_copy *)(uintptr_t)cmd.arg;
	EXPECT_LE((char *)&op, (char *)copy);
	EXPECT_GE((char *)(&op + 1), (char *)(copy + 1));
	range = (const struct devbuf_copy_range *)(uintptr_t)copy->ranges;
	EXPECT_EQ(7, range->id);
	EXPECT_EQ(5, range->offset);
	EXPECT_EQ((uintptr_t)bytes, range->user_addr);
	EXPECT_EQ(10, range->nbytes);
	expected.ranges = copy->ranges;
	EXPECT_EQ(0, memcmp(copy, &expected, sizeof(expected)));
	copy->out_done_nbytes = 4; /* as the driver would */
	copy->out_path = DEVBUF_PATH_DMAENGINE;
	ASSERT_OK(devbuf_operation_done(&op, &done, &path));
	EXPECT_EQ(4, done);
	EXPECT_EQ(DEVBUF_VIA_DMAENGINE, path);
	EXPECT_OK(devbuf_operation_done(&op, NULL, NULL));
	EXPECT_EQ(-EINVAL, devbuf_operation_done(NULL, &done, &path));

	/* Everything else is zero. */
	other = sqe;
	other.opcode = 0;
	other.fd = 0;
	other.cmd_op = 0;
	other.user_data = 0;
	memset((char *)&other + 48, 0, sizeof(cmd));
	EXPECT_EQ(IORING_OP_URING_CMD, sqe.opcode);
	EXPECT_TRUE(is_zero(&other, sizeof(other)));

	ASSERT_OK(devbuf_prepare_copyout(&sqe, &op, b, 5, bytes, 10, NULL));
	EXPECT_EQ(DEVBUF_COPYOUT, sqe.cmd_op);
	expect_state(7, ALLOCATED);
	expect_state(8, ALLOCATED);
	how.flags = DEVBUF_UNORDERED;
	ASSERT_OK(devbuf_prepare_transfer(&sqe, &op, c, 1, b, 2, 10, DEVBUF_NO_CPU, &how));
	EXPECT_EQ(DEVBUF_TRANSFER, sqe.cmd_op);
	memcpy(&cmd, (char *)&sqe + 48, sizeof(cmd));
	transfer = (struct devbuf_transfer *)(uintptr_t)cmd.arg;
	EXPECT_EQ(DEVBUF_TRANSFER_NO_CPU | DEVBUF_ASYNC_EXPLICIT, transfer->flags);
	transfer->out_done_nbytes = 10;
	transfer->out_path = DEVBUF_PATH_PEER;
	ASSERT_OK(devbuf_operation_done(&op, &done, &path));
	EXPECT_EQ(10, done);
	EXPECT_EQ(DEVBUF_VIA_PEER, path);

	how.out_fence = &fence;
	EXPECT_EQ(-EINVAL, devbuf_prepare_copyin(&sqe, &op, b, 5, bytes, 10, &how));
	EXPECT_EQ(-EINVAL, devbuf_prepare_copyin(NULL, &op, b, 5, bytes, 10, NULL));
	EXPECT_EQ(-EINVAL, devbuf_prepare_copyin(&sqe, NULL, b, 5, bytes, 10, NULL));
	EXPECT_EQ(-EINVAL, devbuf_prepare_copyin(&sqe, &op, NULL, 5, bytes, 10, NULL));
	EXPECT_EQ(-EINVAL, devbuf_prepare_copyout(&sqe, &op, b, 5, NULL, 10, NULL));
	EXPECT_EQ(-EINVAL, devbuf_prepare_transfer(&sqe, &op, c, 0, b, 0, 101, 0, NULL));
	unref_mocked(c);
	unref_mocked(b);
	devbuf_allocator_unref(a);
}

TEST_F(driver, prepared_entries_need_the_driver_s_part)
{
	struct devbuf *b = new_mocked(self->a, 100, 7), *h;
	struct devbuf_allocator *host, *uring;
	struct devbuf_operation op;
	struct io_uring_sqe sqe;
	struct devbuf *c;
	char bytes[10];

	EXPECT_EQ(-EOPNOTSUPP, devbuf_prepare_copyin(&sqe, &op, b, 0, bytes, 10, NULL));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_prepare_transfer(&sqe, &op, b, 0, b, 0, 10, 0, NULL));
	ASSERT_OK(devbuf_host_allocator(&host));
	ASSERT_OK(devbuf_create(host, "SYSTEM", 100, DEVBUF_UINT8, NULL, &h));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_prepare_copyout(&sqe, &op, h, 0, bytes, 10, NULL));
	ASSERT_OK(open_mock_with(DEVBUF_FEATURE_URING, &uring));
	c = new_mocked(uring, 100, 9);
	EXPECT_EQ(-EOPNOTSUPP, devbuf_prepare_transfer(&sqe, &op, c, 0, b, 0, 10, 0, NULL));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_prepare_transfer(&sqe, &op, c, 0, h, 0, 10, 0, NULL));
	unref_mocked(c);
	devbuf_allocator_unref(uring);
	devbuf_unref(h);
	devbuf_allocator_unref(host);
	unref_mocked(b);
}

static int now_in(uint64_t ms, uint64_t *out)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now))
		return -errno;
	*out = ((uint64_t)now.tv_sec * 1000 + ms) * 1000000 + (uint64_t)now.tv_nsec;
	return 0;
}

/* A memfd takes no commands: each completes with -EOPNOTSUPP, but for those that never run. */
TEST_F(driver, queue_on_a_ring)
{
	struct devbuf_completion done[8];
	struct devbuf_allocator *a;
	struct devbuf_queue *q;
	struct devbuf *b;
	struct pollfd p;
	char bytes[10];
	uint64_t soon = 0;
	size_t nr;

	ASSERT_OK(open_mock_with(DEVBUF_FEATURE_URING, &a));
	b = new_mocked(a, 100, 7);
	ASSERT_OK(devbuf_queue_create(a, 5, &q));
	if (!devbuf_queue_is_async(q)) {
		devbuf_queue_destroy(q);
		unref_mocked(b);
		devbuf_allocator_unref(a);
		SKIP(return, "there is no io_uring here");
	}
	p = (struct pollfd){ .fd = devbuf_queue_fd(q), .events = POLLIN };
	for (int round = 0; round < 20; round++) {
		EXPECT_EQ(0, poll(&p, 1, 0));
		for (uint64_t i = 0; i < 5; i++)
			ASSERT_OK(devbuf_queue_copyin(q, b, i, bytes, 10, i / 2));
		EXPECT_EQ(-EAGAIN, devbuf_queue_copyin(q, b, 0, bytes, 10, 9));
		ASSERT_OK(devbuf_queue_cancel(q, 1, &nr));
		EXPECT_EQ(2, nr);
		if (round % 2)
			ASSERT_OK(devbuf_queue_submit(q));
		ASSERT_OK(now_in(10000, &soon));
		ASSERT_OK(devbuf_queue_wait(q, 3, soon, done, 4, &nr));
		EXPECT_LE(3, nr);
		EXPECT_EQ(1, poll(&p, 1, 10000));
		ASSERT_OK(devbuf_queue_wait(q, 5 - nr, round % 3 ? DEVBUF_FOREVER : soon, done + nr,
					    8 - nr, &nr));
		for (size_t i = 0; i < 5; i++)
			EXPECT_EQ(done[i].cookie == 1 ? -ECANCELED : -EOPNOTSUPP, done[i].result);
		EXPECT_OK(devbuf_queue_wait(q, 0, 0, done, 1, &nr));
		EXPECT_EQ(0, nr);
	}
	ASSERT_OK(devbuf_queue_copyin(q, b, 0, bytes, 10, 1));
	ASSERT_OK(devbuf_queue_submit(q));
	ASSERT_OK(devbuf_queue_copyin(q, b, 0, bytes, 10, 1));
	EXPECT_EQ(0, IN_CHILD((devbuf_queue_destroy(q), 0)));
	ASSERT_OK(devbuf_queue_wait(q, 2, DEVBUF_FOREVER, done, 2, &nr));
	EXPECT_EQ(2, nr);
	ASSERT_OK(devbuf_queue_copyin(q, b, 0, bytes, 10, 1)); /* never submitted */
	devbuf_queue_destroy(q);
	unref_mocked(b);
	devbuf_allocator_unref(a);
}

TEST_HARNESS_MAIN
