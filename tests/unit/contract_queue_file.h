/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: files in queues. Part of contract.c. */

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

TEST_F(contract, queue_files)
{
	size_t nbytes = 2 * MIB + 77, half = MIB + 5;
	struct devbuf *b = new_bytes(self->a, nbytes), *v = new_view(b, half, nbytes - half);
	struct devbuf_queue *q = new_queue(self->a, 4);
	int fd = new_file(nbytes, 1), out = memfd_create("out", MFD_CLOEXEC);
	char *bytes = malloc(nbytes);

	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_queue_read_file(q, b, 0, fd, 0, half, 1));
	ASSERT_OK(devbuf_queue_read_file(q, v, 0, fd, (int64_t)half, nbytes - half, 2));
	EXPECT_EQ(3, take(q, 2));
	EXPECT_TRUE(holds_pattern(b, 1));
	ASSERT_OK(devbuf_queue_write_file(q, v, 0, out, (int64_t)half, nbytes - half, 4));
	ASSERT_OK(devbuf_queue_write_file(q, b, 0, out, 0, half, 8));
	EXPECT_EQ(12, take(q, 2));
	ASSERT_EQ((ssize_t)nbytes, pread(out, bytes, nbytes, 0));
	EXPECT_TRUE(is_pattern(bytes, nbytes, 1));
	EXPECT_EQ(-EINVAL, devbuf_unmap(b)); /* the mappings were not the caller's */
	free(bytes);
	close(out);
	close(fd);
	devbuf_queue_destroy(q);
	devbuf_unref(v);
	devbuf_unref(b);
}

/* One completion, of which the result and the bytes are as expected. */
static bool completes(struct devbuf_queue *q, int result, size_t done_nbytes)
{
	struct devbuf_completion done;
	size_t nr = 0;

	if (devbuf_queue_wait(q, 1, DEVBUF_FOREVER, &done, 1, &nr) || nr != 1)
		return false;
	if (done.result != result || done.done_nbytes != done_nbytes)
		fprintf(stderr, "# %d, %zu bytes\n", done.result, (size_t)done.done_nbytes);
	return done.result == result && done.done_nbytes == done_nbytes &&
	       done.path == DEVBUF_VIA_NONE;
}

TEST_F(contract, queue_files_with_errors)
{
	char *memory = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct devbuf *b = new_filled(self->a, 2 * MIB, 2), *c = new_bytes(self->a, 10);
	struct devbuf_queue *q = new_queue(self->a, 2);
	int fd = new_file(MIB + 99, 1);

	ASSERT_OK(devbuf_queue_read_file(q, b, 0, fd, 0, 2 * MIB, 1)); /* the file ends */
	EXPECT_TRUE(completes(q, -EINVAL, MIB + 99));
	ASSERT_OK(devbuf_queue_read_file(q, b, 0, fd, 2 * MIB, 10, 1));
	EXPECT_TRUE(completes(q, -EINVAL, 0));
	ASSERT_OK(devbuf_queue_read_file(q, c, 0, fd, 0, 10, 1));
	EXPECT_TRUE(completes(q, -ENODATA, 0));
	ASSERT_OK(devbuf_queue_write_file(q, c, 0, fd, 0, 10, 1));
	EXPECT_TRUE(completes(q, -ENODATA, 0));
	close(fd);

	fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	ASSERT_OK(devbuf_queue_write_file(q, b, 0, fd, 0, 10, 1));
	EXPECT_TRUE(completes(q, -ENOSPC, 0));
	close(fd);

	/* The memory of a process is a file with holes, in which reading fails with EIO. */
	ASSERT_NE(MAP_FAILED, memory);
	ASSERT_EQ(0, munmap(memory + MIB, MIB));
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ASSERT_OK(devbuf_queue_read_file(q, b, 0, fd, (intptr_t)memory + 3, 2 * MIB, 1));
	EXPECT_TRUE(completes(q, -EIO, MIB - 3));
	munmap(memory, MIB);
	close(fd);
	devbuf_queue_destroy(q);
	devbuf_unref(c);
	devbuf_unref(b);
}

TEST_F(contract, queue_files_arguments)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	struct devbuf_queue *q = new_queue(self->a, 1);
	int fd = new_file(100, 1), pipes[2], reading;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	EXPECT_EQ(-EINVAL, devbuf_queue_read_file(NULL, b, 0, fd, 0, 1, 1));
	EXPECT_EQ(-EINVAL, devbuf_queue_read_file(q, NULL, 0, fd, 0, 1, 1));
	EXPECT_EQ(-EINVAL, devbuf_queue_read_file(q, b, 0, fd, 0, 0, 1));
	EXPECT_EQ(-EINVAL, devbuf_queue_read_file(q, b, 1, fd, 0, 100, 1));
	EXPECT_EQ(-EOVERFLOW, devbuf_queue_read_file(q, b, SIZE_MAX, fd, 0, 2, 1));
	EXPECT_EQ(-EINVAL, devbuf_queue_read_file(q, b, 0, fd, -1, 1, 1));
	EXPECT_EQ(-EOVERFLOW, devbuf_queue_write_file(q, b, 0, fd, INT64_MAX, 2, 1));
	EXPECT_EQ(-EBADF, devbuf_queue_read_file(q, b, 0, -1, 0, 1, 1));
	EXPECT_EQ(-EBADF, devbuf_queue_write_file(q, b, 0, reading, 0, 1, 1));
	EXPECT_EQ(-ESPIPE, devbuf_queue_read_file(q, b, 0, pipes[0], 0, 1, 1));
	EXPECT_SAID("has no offsets");
	EXPECT_EQ(-ESPIPE, devbuf_queue_write_file(q, b, 0, pipes[1], 0, 1, 1));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_APPEND));
	EXPECT_EQ(-EINVAL, devbuf_queue_write_file(q, b, 0, fd, 0, 1, 1));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));

	/* No place was lost; one that is cancelled, or never submitted, leaves nothing. */
	ASSERT_OK(devbuf_queue_read_file(q, b, 0, fd, 0, 100, 1));
	EXPECT_EQ(-EAGAIN, devbuf_queue_read_file(q, b, 0, fd, 0, 100, 1));
	ASSERT_OK(devbuf_queue_cancel(q, 1, NULL));
	EXPECT_TRUE(completes(q, -ECANCELED, 0));
	ASSERT_OK(devbuf_queue_write_file(q, b, 0, fd, 0, 100, 1));
	ASSERT_OK(devbuf_queue_submit(q));
	EXPECT_EQ(-ENOENT, devbuf_queue_cancel(q, 1, NULL));
	EXPECT_TRUE(completes(q, 0, 100));
	ASSERT_OK(devbuf_queue_read_file(q, b, 0, fd, 0, 100, 1));
	devbuf_queue_destroy(q);
	close(reading);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	devbuf_unref(b);
}

/* Buffers are referenced, and destroying the queue waits. */
TEST_F(contract, queue_files_hold_buffers)
{
	size_t nbytes = MIB;
	struct devbuf_queue *q = new_queue(self->a, 8);
	int fd = new_file(nbytes, 1);

	for (int i = 0; i < 8; i++) {
		struct devbuf *b = new_filled(self->a, nbytes, 2);

		ASSERT_OK(devbuf_queue_read_file(q, b, 0, fd, 0, nbytes, 1));
		devbuf_unref(b);
	}
	ASSERT_OK(devbuf_queue_submit(q));
	EXPECT_TRUE(completes(q, 0, nbytes));
	EXPECT_TRUE(completes(q, 0, nbytes));
	devbuf_queue_destroy(q);
	close(fd);
}
