// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the library asks of the driver when it reads and writes files: the state, brackets round the
 * access, copies where nothing can be mapped. driver_mock.h plays the driver.
 */
#include "driver_mock.h"

#define ALLOCATED (DEVBUF_STATE_BASE_ALLOCATED | DEVBUF_STATE_ALLOCATED)
#define NBYTES	  ((size_t)128 << 10)

static int new_file(size_t nbytes, unsigned int seed)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	char *bytes = malloc(nbytes);

	fill_pattern(bytes, nbytes, seed);
	if (pwrite(fd, bytes, nbytes, 0) != (ssize_t)nbytes)
		abort();
	free(bytes);
	return fd;
}

static void expect_sync(__u64 id, __u64 offset, __u64 nbytes, __u32 flags, int error)
{
	struct devbuf_sync sync = {
		.size = sizeof(sync),
		.flags = flags,
		.id = id,
		.offset = offset,
		.nbytes = nbytes,
	};

	expect(DEVBUF_SYNC, &sync, error, NULL);
}

/* The node must be as large as what is mapped. */
static struct devbuf *new_with_memory(struct devbuf_allocator *a, size_t page, __u64 id)
{
	if (ftruncate(mock.node, (off_t)(id * page + NBYTES)))
		abort();
	return new_mocked(a, NBYTES, id);
}

TEST_F(driver, read_and_write_between_brackets)
{
	struct devbuf *b = new_with_memory(self->a, self->page, 7);
	int fd = new_file(NBYTES, 1), out = memfd_create("out", MFD_CLOEXEC);
	char *bytes = malloc(NBYTES);

	expect_state(7, ALLOCATED);
	expect_sync(7, 0, NBYTES, DEVBUF_SYNC_WRITE, 0);
	expect_sync(7, 0, NBYTES, DEVBUF_SYNC_WRITE | DEVBUF_SYNC_END, 0);
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, NBYTES, NULL));
	ASSERT_EQ((ssize_t)NBYTES, pread(mock.node, bytes, NBYTES, (off_t)(7 * self->page)));
	EXPECT_TRUE(is_pattern(bytes, NBYTES, 1));

	expect_state(7, ALLOCATED);
	expect_sync(7, 1, NBYTES - 1, DEVBUF_SYNC_READ, 0);
	expect_sync(7, 1, NBYTES - 1, DEVBUF_SYNC_READ | DEVBUF_SYNC_END, 0);
	ASSERT_OK(devbuf_write_file(b, 1, out, 1, NBYTES - 1, NULL));
	ASSERT_EQ((ssize_t)NBYTES - 1, pread(out, bytes + 1, NBYTES - 1, 1));
	EXPECT_TRUE(is_pattern(bytes, NBYTES, 1));
	EXPECT_EQ(-EINVAL, devbuf_unmap(b));
	free(bytes);
	close(out);
	close(fd);
	unref_mocked(b);
}

TEST_F(driver, brackets_that_fail)
{
	struct devbuf *b = new_with_memory(self->a, self->page, 7);
	int fd = new_file(NBYTES, 1);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	expect_state(7, ALLOCATED);
	expect_sync(7, 0, NBYTES, DEVBUF_SYNC_WRITE, EBUSY);
	EXPECT_EQ(-EBUSY, devbuf_read_file(b, 0, fd, 0, NBYTES, &io));
	EXPECT_EQ(0, io.nbytes_done);
	expect_state(7, ALLOCATED);
	expect_sync(7, 0, NBYTES, DEVBUF_SYNC_WRITE, 0);
	expect_sync(7, 0, NBYTES, DEVBUF_SYNC_WRITE | DEVBUF_SYNC_END, ENODEV);
	EXPECT_EQ(-ENODEV, devbuf_read_file(b, 0, fd, 0, NBYTES, &io));
	EXPECT_EQ(NBYTES, io.nbytes_done);
	close(fd);
	unref_mocked(b);
}

/* What cannot be mapped, or is not worth it, is copied: COPYIN waits for devices itself. */
TEST_F(driver, small_ranges_are_copied)
{
	struct devbuf *b = new_mocked(self->a, NBYTES, 7);
	int fd = new_file(100, 1);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	expect_state(7, 0);
	EXPECT_EQ(-ENODATA, devbuf_read_file(b, 3, fd, 0, 100, &io));
	expect_state(7, ALLOCATED);
	expect_copy(DEVBUF_COPYIN, 7, 3, NULL, 100, 0, 100)->user_addr_any = true;
	EXPECT_OK(devbuf_read_file(b, 3, fd, 0, 100, &io));
	EXPECT_EQ(100, io.nbytes_done);
	expect_state(7, ALLOCATED);
	expect_copy(DEVBUF_COPYIN, 7, 3, NULL, 100, EACCES, 0)->user_addr_any = true;
	EXPECT_EQ(-EACCES, devbuf_read_file(b, 3, fd, 0, 100, &io));
	EXPECT_EQ(0, io.nbytes_done);
	expect_state(7, ALLOCATED);
	expect_copy(DEVBUF_COPYOUT, 7, 3, NULL, 100, ENODEV, 0)->user_addr_any = true;
	EXPECT_EQ(-ENODEV, devbuf_write_file(b, 3, fd, 0, 100, &io));
	EXPECT_EQ(0, io.nbytes_done);
	close(fd);
	unref_mocked(b);
}

/* The mapping's memory is gone: a mapping of a memfd that is too short stands for a device's. */
TEST_F(driver, memory_that_went_away)
{
	struct devbuf *b = new_mocked(self->a, NBYTES, 7);
	int fd = new_file(NBYTES, 1);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	if (ftruncate(mock.node, (off_t)(7 * self->page)))
		abort();
	expect_state(7, ALLOCATED);
	expect_sync(7, 0, NBYTES, DEVBUF_SYNC_WRITE, 0);
	expect_sync(7, 0, NBYTES, DEVBUF_SYNC_WRITE | DEVBUF_SYNC_END, ENODEV);
	expect_copy(DEVBUF_COPYIN, 7, 0, NULL, NBYTES, ENODEV, 0)->user_addr_any = true;
	EXPECT_EQ(-ENODEV, devbuf_read_file(b, 0, fd, 0, NBYTES, &io));
	EXPECT_EQ(0, io.nbytes_done);
	close(fd);
	unref_mocked(b);
}

/* On a ring: the mapping is made at submission, and what cannot be mapped is told by the completion. */
TEST_F(driver, files_on_a_ring)
{
	struct devbuf_completion done[3];
	struct devbuf_allocator *a;
	struct devbuf *b, *c;
	struct devbuf_queue *q;
	char *bytes = malloc(NBYTES);
	int fd = new_file(NBYTES, 1);
	size_t nr = 0;

	ASSERT_OK(open_mock_with(DEVBUF_FEATURE_URING, &a));
	b = new_with_memory(a, self->page, 7);
	c = next_mocked(a, NBYTES, INT64_MAX / self->page + 1); /* which mmap() cannot say */
	ASSERT_OK(devbuf_queue_create(a, 3, &q));
	if (!devbuf_queue_is_async(q))
		SKIP(goto out, "there is no io_uring here");
	ASSERT_OK(devbuf_queue_read_file(q, b, 1, fd, 1, NBYTES - 1, 1));
	ASSERT_OK(devbuf_queue_read_file(q, b, 0, fd, 0, 1, 2));
	ASSERT_OK(devbuf_queue_read_file(q, c, 0, fd, 0, NBYTES, 3));
	expect_state(7, ALLOCATED);
	expect_state(7, ALLOCATED);
	expect_state(devbuf_id(c), ALLOCATED);
	ASSERT_OK(devbuf_queue_wait(q, 3, DEVBUF_FOREVER, done, 3, &nr));
	ASSERT_EQ(3, nr);
	for (size_t i = 0; i < nr; i++) {
		EXPECT_EQ(done[i].cookie == 3 ? -EOVERFLOW : 0, done[i].result);
		EXPECT_EQ(done[i].cookie == 1 ? NBYTES - 1 : done[i].cookie == 2 ? 1 : 0,
			  done[i].done_nbytes);
	}
	ASSERT_EQ((ssize_t)NBYTES, pread(mock.node, bytes, NBYTES, (off_t)(7 * self->page)));
	EXPECT_TRUE(is_pattern(bytes, NBYTES, 1));
out:
	devbuf_queue_destroy(q);
	unref_mocked(c);
	unref_mocked(b);
	devbuf_allocator_unref(a);
	close(fd);
	free(bytes);
}

TEST_HARNESS_MAIN
