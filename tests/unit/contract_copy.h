/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: copies between a buffer and the caller's memory or a file. Part of contract.c. */

/* --- copyin, copyout -------------------------------------------------------------------------- */

TEST_F(contract, copyin_and_copyout)
{
	size_t nbytes = 5 * self->page + 77;
	struct devbuf *b = new_bytes(self->a, nbytes);
	char *bytes = malloc(nbytes);

	ASSERT_OK(devbuf_allocate(b));
	fill_pattern(bytes, nbytes, 8);
	EXPECT_OK(devbuf_copyin(b, bytes, nbytes));
	memset(bytes, 0, nbytes);
	EXPECT_OK(devbuf_copyout(b, bytes, nbytes));
	EXPECT_TRUE(is_pattern(bytes, nbytes, 8));
	free(bytes);
	devbuf_unref(b);
}

TEST_F(contract, copies_want_all_bytes)
{
	struct devbuf *b = new_filled(self->a, 100, 2);
	char bytes[101] = "";

	EXPECT_EQ(-EINVAL, devbuf_copyin(b, bytes, 99));
	EXPECT_SAID("99 bytes given for a buffer of 100");
	EXPECT_EQ(-EINVAL, devbuf_copyin(b, bytes, 101));
	EXPECT_EQ(-EINVAL, devbuf_copyin(b, bytes, 0));
	EXPECT_EQ(-EINVAL, devbuf_copyout(b, bytes, 99));
	EXPECT_EQ(-EINVAL, devbuf_copyout(b, bytes, 101));
	EXPECT_EQ(-EINVAL, devbuf_copyin(b, NULL, 100));
	EXPECT_EQ(-EINVAL, devbuf_copyout(b, NULL, 100));
	EXPECT_EQ(-EINVAL, devbuf_copyin(NULL, bytes, 100));
	EXPECT_EQ(-EINVAL, devbuf_copyout(NULL, bytes, 100));
	EXPECT_TRUE(is_zero(bytes, sizeof(bytes)));
	EXPECT_TRUE(holds_pattern(b, 2));
	devbuf_unref(b);
}

TEST_F(contract, copies_want_memory)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = new_view(b, 0, 100);
	char bytes[100] = "";
	void *out = (void *)1;

	EXPECT_EQ(-ENODATA, devbuf_copyin(b, bytes, 100));
	EXPECT_SAID("not allocated");
	EXPECT_EQ(-ENODATA, devbuf_copyout(b, bytes, 100));
	EXPECT_EQ(-ENODATA, devbuf_copyin_at(b, 1, bytes, 1));
	EXPECT_EQ(-ENODATA, devbuf_copyout_at(b, 1, bytes, 1));
	EXPECT_EQ(-ENODATA, devbuf_as_bytes(b, &out, NULL));
	EXPECT_EQ((void *)1, out);
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_EQ(-ENODATA, devbuf_copyin(v, bytes, 100)); /* it has none of its own */
	EXPECT_SAID("view");
	EXPECT_EQ(-ENODATA, devbuf_copyout(v, bytes, 100));
	ASSERT_OK(devbuf_allocate(v));
	EXPECT_OK(devbuf_copyin(v, bytes, 100));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, copies_of_a_part)
{
	struct devbuf *b = new_filled(self->a, 100, 2), *v = new_view(b, 50, 20);
	char bytes[100];

	ASSERT_OK(devbuf_allocate(v));
	EXPECT_OK(devbuf_copyin_at(v, 19, "x", 1));
	EXPECT_OK(devbuf_copyout_at(b, 69, bytes, 1));
	EXPECT_EQ('x', bytes[0]);
	EXPECT_OK(devbuf_copyout_at(b, 0, bytes, 100));
	EXPECT_EQ('x', bytes[69]);
	EXPECT_EQ(-EINVAL, devbuf_copyin_at(v, 20, "x", 1));
	EXPECT_SAID("1 bytes at 20 exceed buffer of 20");
	EXPECT_EQ(-EINVAL, devbuf_copyin_at(v, 0, bytes, 21));
	EXPECT_EQ(-EINVAL, devbuf_copyout_at(v, 19, bytes, 2));
	EXPECT_EQ(-EINVAL, devbuf_copyin_at(v, 0, bytes, 0));
	EXPECT_EQ(-EINVAL, devbuf_copyout_at(v, 0, bytes, 0));
	EXPECT_EQ(-EOVERFLOW, devbuf_copyin_at(v, SIZE_MAX, bytes, 2));
	EXPECT_SAID("18446744073709551615");
	EXPECT_EQ(-EOVERFLOW, devbuf_copyout_at(v, 2, bytes, SIZE_MAX));
	EXPECT_EQ(-EINVAL, devbuf_copyin_at(v, 0, NULL, 1));
	EXPECT_EQ(-EINVAL, devbuf_copyout_at(v, 0, NULL, 1));
	EXPECT_EQ(-EINVAL, devbuf_copyin_at(NULL, 0, bytes, 1));
	EXPECT_EQ(-EINVAL, devbuf_copyout_at(NULL, 0, bytes, 1));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, as_bytes_is_a_fresh_copy)
{
	struct devbuf *b = new_filled(self->a, 100, 2);
	size_t nbytes = 0;
	char *bytes;

	ASSERT_OK(devbuf_as_bytes(b, (void **)&bytes, &nbytes));
	EXPECT_EQ(100, nbytes);
	EXPECT_TRUE(is_pattern(bytes, 100, 2));
	memset(bytes, 0, 100);
	free(bytes);
	EXPECT_TRUE(holds_pattern(b, 2));
	EXPECT_EQ(-EINVAL, devbuf_as_bytes(b, NULL, &nbytes));
	EXPECT_EQ(-EINVAL, devbuf_as_bytes(NULL, (void **)&bytes, &nbytes));
	devbuf_unref(b);
}

TEST_F(contract, read_file)
{
	size_t nbytes = 2 * MIB + 100; /* more than a bounce buffer */
	struct devbuf *b = new_bytes(self->a, nbytes + 10), *v = new_view(b, 7, nbytes);
	int fd = memfd_create("file", MFD_CLOEXEC), pipes[2];
	char *bytes = malloc(nbytes), byte;

	fill_pattern(bytes, nbytes, 6);
	ASSERT_EQ(3, pwrite(fd, "abc", 3, 0));
	ASSERT_EQ(nbytes, pwrite(fd, bytes, nbytes, 3));
	EXPECT_EQ(-ENODATA, devbuf_read_file(v, 0, fd, 3, nbytes, NULL));
	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_read_file(v, 0, fd, 3, nbytes, NULL));
	EXPECT_TRUE(holds_pattern(v, 6));
	EXPECT_OK(devbuf_read_file(v, nbytes - 1, fd, 0, 1, NULL));
	EXPECT_OK(devbuf_copyout_at(b, 7 + nbytes - 1, &byte, 1));
	EXPECT_EQ('a', byte);

	EXPECT_EQ(-EINVAL, devbuf_read_file(v, 0, fd, (int64_t)nbytes - 10, 100, NULL));
	EXPECT_SAID("ends after 13 of the 100 bytes");
	EXPECT_EQ(-EINVAL, devbuf_read_file(v, 1, fd, 0, nbytes, NULL));
	EXPECT_EQ(-EINVAL, devbuf_read_file(v, 0, fd, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_read_file(v, 0, fd, -1, 1, NULL));
	EXPECT_EQ(-EOVERFLOW, devbuf_read_file(v, 0, fd, INT64_MAX, 2, NULL));
	EXPECT_EQ(-EBADF, devbuf_read_file(v, 0, -1, 0, 1, NULL));
	ASSERT_EQ(0, pipe(pipes));
	EXPECT_EQ(-ESPIPE, devbuf_read_file(v, 0, pipes[0], 0, 1, NULL));
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	free(bytes);
	devbuf_unref(v);
	devbuf_unref(b);
}
