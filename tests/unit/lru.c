// SPDX-License-Identifier: GPL-2.0-only
/* The library's cache: LRU allocators over allocators of the caller's own. */
#include "mine.h"

TEST_F(own, lru_reuses_without_the_inner_allocator)
{
	struct devbuf *b = new_allocated(self->lru, 64);

	ASSERT_OK(devbuf_copyin_at(b, 0, "old", 4));
	for (int i = 0; i < 5; i++) {
		char bytes[4];

		ASSERT_OK(devbuf_deallocate(b));
		ASSERT_OK(devbuf_allocate(b));
		ASSERT_OK(devbuf_copyout_at(b, 0, bytes, 4));
		EXPECT_STREQ("old", bytes);
	}
	EXPECT_EQ(1, self->mine.allocs);
	EXPECT_EQ(0, self->mine.frees);
	devbuf_unref(b);
	EXPECT_EQ(0, self->mine.frees); /* kept */
}

TEST_F(own, lru_gives_the_latest_first)
{
	struct devbuf *a = new_allocated(self->lru, 64), *b = new_allocated(self->lru, 64);
	char byte;

	ASSERT_OK(devbuf_copyin_at(a, 0, "a", 1));
	ASSERT_OK(devbuf_copyin_at(b, 0, "b", 1));
	devbuf_unref(b);
	devbuf_unref(a);
	b = new_allocated(self->lru, 64);
	ASSERT_OK(devbuf_copyout_at(b, 0, &byte, 1));
	EXPECT_EQ('a', byte);
	devbuf_unref(b);
}

TEST_F(own, lru_is_by_device_nbytes_and_spec)
{
	struct devbuf_spec specs[5];
	struct devbuf *b;
	int n = 0;

	for (int i = 0; i < 5; i++)
		specs[i] = (struct devbuf_spec)DEVBUF_SPEC_INIT;
	specs[0].uncached = true;
	specs[1].cpu_access = true;
	specs[2].host = true;
	specs[3].contiguous = true;
	specs[4].alignment = 64;
	devbuf_unref(new_allocated(self->lru, 64));
	EXPECT_EQ(++n, self->mine.allocs);
	devbuf_unref(new_allocated(self->lru, 65));
	EXPECT_EQ(++n, self->mine.allocs);
	ASSERT_OK(devbuf_create(self->lru, "GPU:1", 64, DEVBUF_UINT8, NULL, &b));
	ASSERT_OK(devbuf_allocate(b));
	devbuf_unref(b);
	EXPECT_EQ(++n, self->mine.allocs);
	for (int i = 0; i < 5; i++) {
		ASSERT_OK(devbuf_create(self->lru, "GPU:0", 64, DEVBUF_UINT8, &specs[i], &b));
		ASSERT_OK(devbuf_allocate(b));
		devbuf_unref(b);
		EXPECT_EQ(++n, self->mine.allocs);
	}
	for (int i = 0; i < 5; i++) { /* and now they are all there */
		ASSERT_OK(devbuf_create(self->lru, "GPU:0", 16, DEVBUF_FLOAT32, &specs[i], &b));
		ASSERT_OK(devbuf_allocate(b));
		devbuf_unref(b);
	}
	EXPECT_EQ(n, self->mine.allocs);
}

TEST_F(own, lru_lets_nolru_and_external_ptr_pass)
{
	struct devbuf_spec nolru = DEVBUF_SPEC_INIT, external = DEVBUF_SPEC_INIT;
	char memory[64];
	struct devbuf *b;

	nolru.nolru = true;
	external.external_ptr = memory;
	for (int i = 1; i <= 3; i++) {
		ASSERT_OK(devbuf_create(self->lru, "GPU", 64, DEVBUF_UINT8, &nolru, &b));
		ASSERT_OK(devbuf_allocate(b));
		devbuf_unref(b);
		EXPECT_EQ(2 * i - 1, self->mine.frees);
		ASSERT_OK(devbuf_create(self->lru, "GPU", 64, DEVBUF_UINT8, &external, &b));
		ASSERT_OK(devbuf_allocate(b));
		EXPECT_EQ((void *)memory, self->mine.spec.external_ptr);
		devbuf_unref(b);
		EXPECT_EQ(2 * i, self->mine.frees);
	}
	devbuf_unref(new_allocated(self->lru, 64));
	EXPECT_EQ(7, self->mine.allocs);
	ASSERT_OK(devbuf_create(self->lru, "GPU", 64, DEVBUF_UINT8, &nolru, &b));
	ASSERT_OK(devbuf_allocate(b)); /* takes nothing that is kept either */
	EXPECT_EQ(8, self->mine.allocs);
	devbuf_unref(b);
}

TEST_F(own, lru_empties_itself_and_tries_once_more)
{
	struct devbuf *b;

	for (size_t i = 1; i <= 3; i++)
		devbuf_unref(new_allocated(self->lru, i));
	EXPECT_EQ(3, self->mine.live);
	b = new_bytes(self->lru, 64);
	self->mine.fail_allocs = 1;
	EXPECT_OK(devbuf_allocate(b));
	EXPECT_EQ(1, self->mine.live); /* the three are gone */
	EXPECT_EQ(5, self->mine.allocs);
	devbuf_unref(b);

	b = new_bytes(self->lru, 65);
	self->mine.fail_allocs = 2;
	EXPECT_EQ(-ENOMEM, devbuf_allocate(b)); /* once more, and no more */
	EXPECT_EQ(7, self->mine.allocs);
	EXPECT_EQ(0, self->mine.live);
	EXPECT_FALSE(devbuf_is_allocated(b));
	EXPECT_OK(devbuf_allocate(b));
	devbuf_unref(b);
}

TEST_F(own, lru_is_bounded)
{
	struct devbuf *b[300];
	char byte;

	for (int i = 0; i < 300; i++) {
		char mark = (char)i;

		b[i] = new_allocated(self->lru, 64);
		ASSERT_OK(devbuf_copyin_at(b[i], 0, &mark, 1));
	}
	for (int i = 0; i < 300; i++)
		devbuf_unref(b[i]);
	EXPECT_EQ(256, self->mine.live); /* by their number */
	b[0] = new_allocated(self->lru, 64);
	ASSERT_OK(devbuf_copyout_at(b[0], 0, &byte, 1));
	EXPECT_EQ((char)299, byte); /* those that went were the oldest */
	devbuf_unref(b[0]);

	for (int i = 0; i < 5; i++) /* by their bytes: three times 100 MiB is too much */
		b[i] = new_allocated(self->lru, (size_t)100 << 20);
	for (int i = 0; i < 5; i++)
		devbuf_unref(b[i]);
	EXPECT_EQ(2, self->mine.live);
	devbuf_unref(new_allocated(self->lru, (size_t)257 << 20)); /* not kept at all */
	EXPECT_EQ(2, self->mine.live);
}

TEST_F(own, lru_has_what_the_inner_one_has)
{
	struct devbuf_allocator *poor_lru;
	struct devbuf *a = new_allocated(self->lru, 8), *b, *v;
	enum devbuf_copy_path took;
	uint64_t addr;
	void *map;
	int fd = memfd_create("file", MFD_CLOEXEC);

	ASSERT_OK(devbuf_lru_allocator(self->poor, &poor_lru));
	b = new_allocated(poor_lru, 8);
	EXPECT_TRUE(devbuf_supports_offset(a));
	EXPECT_FALSE(devbuf_supports_offset(b));
	EXPECT_TRUE(devbuf_supports_transfer(a, a));
	EXPECT_FALSE(devbuf_supports_transfer(b, b));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_map(b, PROT_READ, &map));
	ASSERT_OK(devbuf_addr(b, &addr));
	EXPECT_EQ(0xd0000000, addr);
	ASSERT_OK(devbuf_view(a, 4, DEVBUF_UINT8, 2, &v));
	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_map(v, PROT_READ, &map));
	ASSERT_OK(devbuf_copy(v, v, &took));
	EXPECT_EQ(DEVBUF_VIA_DEVICE, took);
	ASSERT_EQ(2, write(fd, "xy", 2));
	EXPECT_OK(devbuf_read_file(v, 1, fd, 0, 2, NULL));
	EXPECT_EQ(1, self->mine.disks);
	EXPECT_EQ(0, memcmp((char *)map + 1, "xy", 2));
	close(fd);
	devbuf_unref(v);
	devbuf_unref(a);
	devbuf_unref(b);
	devbuf_allocator_unref(poor_lru);
}

TEST_F(own, lru_over_lru)
{
	struct devbuf_allocator *twice;
	struct devbuf *b;
	char bytes[4];

	ASSERT_OK(devbuf_lru_allocator(self->lru, &twice));
	b = new_allocated(twice, 64);
	ASSERT_OK(devbuf_copyin_at(b, 0, "old", 4));
	devbuf_unref(b);
	b = new_allocated(twice, 64);
	ASSERT_OK(devbuf_copyout_at(b, 0, bytes, 4));
	EXPECT_STREQ("old", bytes);
	EXPECT_EQ(1, self->mine.allocs);
	devbuf_unref(b);
	devbuf_allocator_unref(twice);
	EXPECT_EQ(1, self->mine.live); /* handed down to the other's cache */
}

static void *churn(void *lru)
{
	for (size_t i = 0; i < 500; i++) {
		struct devbuf *b = new_allocated(lru, 64 + i % 3);

		if (devbuf_copyin_at(b, 0, "x", 1))
			abort();
		devbuf_unref(b);
	}
	return NULL;
}

TEST_F(own, lru_by_many_threads)
{
	struct devbuf_allocator *host, *lru;
	pthread_t threads[4];

	ASSERT_OK(devbuf_host_allocator(&host));
	ASSERT_OK(devbuf_lru_allocator(host, &lru));
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn, lru);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	devbuf_allocator_unref(lru);
	devbuf_allocator_unref(host);
}

TEST_HARNESS_MAIN
