/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: many pieces at once, and copies that are over later. Part of contract.c. */

/* --- many pieces ------------------------------------------------------------------------------ */

TEST_F(contract, copy_many)
{
	struct devbuf *a = new_filled(self->a, 100, 1), *b = new_bytes(self->a, 100);
	struct devbuf *v = new_view(a, 50, 50), *c = new_bytes(self->a, 100);
	const struct devbuf_transfer_piece pieces[] = {
		{ b, 0, a, 0, 50 },
		{ b, 50, v, 0, 50 }, /* a view without memory yet */
		{ c, 0, b, 0, 100 }, /* what the first two wrote */
	};
	enum devbuf_copy_path took = DEVBUF_VIA_NONE;

	ASSERT_OK(devbuf_copy_many(pieces, 3, 0, &took));
	EXPECT_NE(DEVBUF_VIA_NONE, took);
	EXPECT_TRUE(holds_pattern(b, 1));
	EXPECT_TRUE(holds_pattern(c, 1));
	EXPECT_OK(devbuf_copy_many(pieces, 1, DEVBUF_NO_BOUNCE, NULL));
	devbuf_unref(c);
	devbuf_unref(v);
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(contract, copy_many_checks_all_before_it_copies)
{
	struct devbuf *a = new_filled(self->a, 100, 1), *b = new_filled(self->a, 100, 2);
	struct devbuf_transfer_piece pieces[] = { { b, 0, a, 0, 100 }, { b, 1, a, 0, 100 } };
	enum devbuf_copy_path took = DEVBUF_VIA_PEER;

	EXPECT_EQ(-EINVAL, devbuf_copy_many(pieces, 2, 0, &took));
	EXPECT_SAID("100 bytes at 1 exceed buffer of 100");
	pieces[1].dst_offset = SIZE_MAX;
	EXPECT_EQ(-EOVERFLOW, devbuf_copy_many(pieces, 2, 0, &took));
	pieces[1].dst = NULL;
	EXPECT_EQ(-EINVAL, devbuf_copy_many(pieces, 2, 0, &took));
	EXPECT_EQ(-EINVAL, devbuf_copy_many(pieces, 1, 1U << 30, &took));
	EXPECT_EQ(-EINVAL, devbuf_copy_many(pieces, 0, 0, &took));
	EXPECT_EQ(-EINVAL, devbuf_copy_many(NULL, 1, 0, &took));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_copy_many(pieces, 1, DEVBUF_NO_CPU, &took));
	EXPECT_EQ(DEVBUF_VIA_PEER, took);
	EXPECT_TRUE(holds_pattern(b, 2));
	devbuf_unref(b);
	devbuf_unref(a);
}

/* More than one command takes, and between allocators. */
TEST_F(contract, copy_very_many)
{
	struct devbuf_allocator *host;
	struct devbuf *a = new_filled(self->a, 4000, 3), *b = new_bytes(self->a, 4000), *c;
	struct devbuf_transfer_piece *pieces = malloc(4001 * sizeof(*pieces));
	enum devbuf_copy_path took;

	ASSERT_OK(devbuf_host_allocator(&host));
	c = new_bytes(host, 4000);
	for (size_t i = 0; i < 4000; i++)
		pieces[i] = (struct devbuf_transfer_piece){ b, i, a, i, 1 };
	pieces[4000] = (struct devbuf_transfer_piece){ c, 0, b, 0, 4000 };
	ASSERT_OK(devbuf_copy_many(pieces, 4001, 0, &took));
	EXPECT_TRUE(holds_pattern(c, 3));
	EXPECT_EQ(DEVBUF_VIA_CPU, took);
	free(pieces);
	devbuf_unref(c);
	devbuf_allocator_unref(host);
	devbuf_unref(b);
	devbuf_unref(a);
}

/* --- over later ------------------------------------------------------------------------------- */

TEST_F(contract, async_copies)
{
	size_t nbytes = 3 * self->page + 5;
	struct devbuf *a = new_bytes(self->a, nbytes), *b = new_bytes(self->a, nbytes);
	char *bytes = malloc(nbytes), *got = calloc(1, nbytes);
	int error = 1;

	fill_pattern(bytes, nbytes, 4);
	ASSERT_OK(devbuf_allocate(a));
	ASSERT_OK(devbuf_copyin_async(a, 0, bytes, nbytes, NULL));
	ASSERT_OK(devbuf_transfer_async(b, 0, a, 0, nbytes, 0, NULL)); /* allocates it */
	ASSERT_OK(devbuf_copyout_async(b, 1, got + 1, nbytes - 1, NULL));
	ASSERT_OK(devbuf_copyout_async(b, 0, got, 1, NULL));
	ASSERT_OK(devbuf_wait(b, 0, nbytes, DEVBUF_CPU_READ | DEVBUF_CPU_WRITE, DEVBUF_FOREVER,
			      &error));
	EXPECT_EQ(0, error);
	EXPECT_TRUE(is_pattern(got, nbytes, 4));
	EXPECT_OK(devbuf_wait(a, 0, 1, DEVBUF_CPU_WRITE, DEVBUF_FOREVER, NULL));
	EXPECT_OK(devbuf_wait(a, 0, 1, DEVBUF_CPU_READ, 0, NULL)); /* over: no wait */
	EXPECT_TRUE(holds_pattern(a, 4));
	free(got);
	free(bytes);
	devbuf_unref(b);
	devbuf_unref(a);
}

/* Functions that copy at once come after what was queued. */
TEST_F(contract, async_copies_are_ordered)
{
	struct devbuf *b = new_filled(self->a, 4 * MIB, 0), *c = new_bytes(self->a, 4 * MIB);
	char *bytes = malloc(4 * MIB);

	for (unsigned int i = 1; i < 6; i++) {
		fill_pattern(bytes, 4 * MIB, i);
		ASSERT_OK(devbuf_copyin_async(b, 0, bytes, 4 * MIB, NULL));
		ASSERT_OK(devbuf_transfer_async(c, 0, b, 0, 4 * MIB, 0, NULL));
		EXPECT_TRUE(holds_pattern(c, i));
	}
	free(bytes);
	devbuf_unref(c);
	devbuf_unref(b);
}

TEST_F(contract, async_arguments)
{
	struct devbuf *b = new_bytes(self->a, 100), *c = new_bytes(self->a, 100);
	struct devbuf_async how = DEVBUF_ASYNC_INIT;
	char bytes[100] = "";
	int fds[65] = { 0 };

	EXPECT_EQ(-ENODATA, devbuf_copyin_async(b, 0, bytes, 100, NULL));
	EXPECT_EQ(-ENODATA, devbuf_copyout_async(b, 0, bytes, 100, NULL));
	EXPECT_EQ(-ENODATA, devbuf_wait(b, 0, 100, DEVBUF_CPU_READ, 0, NULL));
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_EQ(-EINVAL, devbuf_copyin_async(b, 1, bytes, 100, NULL));
	EXPECT_EQ(-EINVAL, devbuf_copyin_async(b, 0, bytes, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_copyin_async(b, 0, NULL, 1, NULL));
	EXPECT_EQ(-EINVAL, devbuf_copyin_async(NULL, 0, bytes, 1, NULL));
	EXPECT_EQ(-EOVERFLOW, devbuf_copyin_async(b, SIZE_MAX, bytes, 2, NULL));
	EXPECT_EQ(-EINVAL, devbuf_copyout_async(b, 1, bytes, 100, NULL));
	EXPECT_EQ(-EINVAL, devbuf_copyout_async(b, 0, NULL, 1, NULL));
	EXPECT_EQ(-EINVAL, devbuf_copyout_async(NULL, 0, bytes, 1, NULL));
	EXPECT_EQ(-EINVAL, devbuf_transfer_async(c, 0, b, 1, 100, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_transfer_async(c, 1, b, 0, 100, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_transfer_async(c, 0, NULL, 0, 100, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_transfer_async(NULL, 0, b, 0, 100, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_transfer_async(c, 0, b, 0, 100, 1U << 8, NULL));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_transfer_async(c, 0, b, 0, 100, DEVBUF_NO_CPU, NULL));
	EXPECT_FALSE(devbuf_is_allocated(c));

	how.flags = 2;
	EXPECT_EQ(-EINVAL, devbuf_copyin_async(b, 0, bytes, 1, &how));
	how.flags = 0;
	how.nr_in_fences = 1;
	EXPECT_EQ(-EINVAL, devbuf_copyin_async(b, 0, bytes, 1, &how));
	how.nr_in_fences = 65;
	how.in_fences = fds;
	EXPECT_EQ(-EINVAL, devbuf_copyin_async(b, 0, bytes, 1, &how));
	EXPECT_SAID("65");
	how.nr_in_fences = 0;
	how.cookie = 1ULL << 63;
	EXPECT_EQ(-EINVAL, devbuf_copyout_async(b, 0, bytes, 1, &how));
	how.cookie = 5;
	how.size--;
	EXPECT_EQ(-EINVAL, devbuf_transfer_async(c, 0, b, 0, 1, 0, &how));
	how.size++;
	how.flags = DEVBUF_UNORDERED;
	EXPECT_OK(devbuf_transfer_async(c, 0, b, 0, 1, 0, &how));

	EXPECT_EQ(-EINVAL, devbuf_wait(b, 0, 1, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_wait(b, 0, 1, DEVBUF_CPU_END | DEVBUF_CPU_READ, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_wait(b, 0, 101, DEVBUF_CPU_READ, 0, NULL));
	EXPECT_EQ(-EOVERFLOW, devbuf_wait(b, 2, SIZE_MAX, DEVBUF_CPU_READ, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_wait(NULL, 0, 1, DEVBUF_CPU_READ, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_cancel(self->a, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_cancel(self->a, 1ULL << 63, NULL));
	EXPECT_EQ(-EINVAL, devbuf_cancel(NULL, 1, NULL));
	EXPECT_EQ(-ENOENT, devbuf_cancel(self->a, 77, NULL));
	EXPECT_SAID("77");
	devbuf_unref(c);
	devbuf_unref(b);
}
