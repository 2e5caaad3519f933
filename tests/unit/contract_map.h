/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: mappings, addresses, sync. Part of contract.c. */

/* --- mappings and addresses ------------------------------------------------------------------- */

TEST_F(contract, map_a_buffer)
{
	size_t nbytes = 2 * self->page + 9;
	struct devbuf *b = new_filled(self->a, nbytes, 1);
	char *map, *again;

	ASSERT_OK(devbuf_map(b, PROT_READ | PROT_WRITE, (void **)&map));
	EXPECT_EQ(0, (uintptr_t)map % self->page);
	EXPECT_TRUE(is_pattern(map, nbytes, 1));
	fill_pattern(map, nbytes, 2);
	EXPECT_TRUE(holds_pattern(b, 2));
	ASSERT_OK(devbuf_map(b, PROT_READ, (void **)&again));
	EXPECT_EQ(map, again);
	EXPECT_OK(devbuf_unmap(b));
	EXPECT_TRUE(is_pattern(map, nbytes, 2));
	EXPECT_OK(devbuf_unmap(b));
	EXPECT_EQ(-EINVAL, devbuf_unmap(b));
	EXPECT_SAID("not mapped");
	devbuf_unref(b);
}

TEST_F(contract, map_a_view_at_any_byte)
{
	struct devbuf *b = new_filled(self->a, 4 * self->page, 1), *v, *w;
	char *base, *map, *whole;

	v = new_view(b, self->page - 3, self->page + 6);
	w = new_view(b, 2 * self->page, self->page);
	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_allocate(w));
	ASSERT_OK(devbuf_as_bytes(b, (void **)&whole, NULL));
	ASSERT_OK(devbuf_map(v, PROT_READ | PROT_WRITE, (void **)&map));
	EXPECT_EQ(0, memcmp(map, whole + self->page - 3, self->page + 6));
	EXPECT_EQ((uintptr_t)(self->page - 3), (uintptr_t)map % self->page);
	ASSERT_OK(devbuf_map(b, PROT_READ, (void **)&base));
	map[0] = 'A';
	map[self->page + 5] = 'Z';
	EXPECT_EQ('A', base[self->page - 3]);
	EXPECT_EQ('Z', base[2 * self->page + 2]);
	ASSERT_OK(devbuf_map(w, PROT_READ, (void **)&map));
	EXPECT_EQ('Z', map[2]);
	EXPECT_OK(devbuf_unmap(w));
	devbuf_unref(w);
	devbuf_unref(v); /* unmaps */
	devbuf_unref(b);
	free(whole);
}

TEST_F(contract, map_wants_memory_and_a_protection)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = new_view(b, 0, 100);
	void *map = (void *)1;

	EXPECT_EQ(-ENODATA, devbuf_map(b, PROT_READ, &map));
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_EQ(-ENODATA, devbuf_map(v, PROT_READ, &map));
	EXPECT_EQ(-EINVAL, devbuf_map(b, 0, &map));
	EXPECT_EQ(-EINVAL, devbuf_map(b, PROT_READ | PROT_EXEC, &map));
	EXPECT_EQ(-EINVAL, devbuf_map(b, -1, &map));
	EXPECT_EQ(-EINVAL, devbuf_map(b, PROT_READ, NULL));
	EXPECT_EQ(-EINVAL, devbuf_map(NULL, PROT_READ, &map));
	EXPECT_EQ(-EINVAL, devbuf_unmap(b));
	EXPECT_EQ(-EINVAL, devbuf_unmap(NULL));
	EXPECT_EQ((void *)1, map);
	devbuf_unref(v);
	devbuf_unref(b);
}

static int write_byte(char *at)
{
	signal(SIGSEGV, SIG_DFL); /* a sanitizer would have more to say */
	*(volatile char *)at = 1;
	return 0;
}

TEST_F(contract, map_with_less_protection_and_then_more)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	char *map, *again = (char *)1;

	ASSERT_OK(devbuf_map(b, PROT_READ, (void **)&map));
	EXPECT_EQ(-EBUSY, devbuf_map(b, PROT_READ | PROT_WRITE, (void **)&again));
	EXPECT_SAID("0x1");
	EXPECT_SAID("0x3");
	EXPECT_EQ(-EBUSY, devbuf_map(b, PROT_WRITE, (void **)&again));
	EXPECT_EQ((char *)1, again);
	EXPECT_NE(0, IN_CHILD(write_byte(map))); /* killed: it may only be read */
	EXPECT_TRUE(is_pattern(map, 100, 1));
	EXPECT_OK(devbuf_unmap(b));
	ASSERT_OK(devbuf_map(b, PROT_READ | PROT_WRITE, (void **)&map));
	*map = 1;
	devbuf_unref(b); /* with its mapping */
}

TEST_F(contract, mapping_keeps_the_memory_that_was_deallocated)
{
	struct devbuf *b = new_filled(self->a, 2 * self->page, 1);
	char *map, *fresh = (char *)1;
	uint64_t addr = 1;

	ASSERT_OK(devbuf_map(b, PROT_READ | PROT_WRITE, (void **)&map));
	ASSERT_OK(devbuf_deallocate(b));
	EXPECT_TRUE(is_pattern(map, 2 * self->page, 1));
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_TRUE(holds_zeros(b)); /* also of a cache: that memory is in use */
	EXPECT_OK(devbuf_copyin_at(b, 0, "new", 3));
	EXPECT_TRUE(is_pattern(map, 2 * self->page, 1));
	fill_pattern(map, 2 * self->page, 2);

	EXPECT_EQ(-EBUSY, devbuf_map(b, PROT_READ, (void **)&fresh));
	EXPECT_SAID("deallocated");
	EXPECT_EQ(-EBUSY, devbuf_addr(b, &addr));
	EXPECT_EQ((char *)1, fresh);
	EXPECT_EQ(1, addr);
	EXPECT_OK(devbuf_unmap(b));
	ASSERT_OK(devbuf_map(b, PROT_READ, (void **)&fresh));
	EXPECT_EQ(0, memcmp(fresh, "new", 4));
	devbuf_unref(b);
}

TEST_F(contract, mapping_of_a_view_outlives_its_allocation)
{
	struct devbuf *b = new_filled(self->a, 2 * self->page, 1), *v = new_view(b, 5, 10);
	char *map, *again, bytes[10];

	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_copyout(v, bytes, 10));
	ASSERT_OK(devbuf_map(v, PROT_READ, (void **)&map));
	ASSERT_OK(devbuf_deallocate(v));
	EXPECT_EQ(-ENODATA, devbuf_map(v, PROT_READ, (void **)&again));
	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_map(v, PROT_READ, (void **)&again)); /* the same memory still */
	EXPECT_EQ(map, again);
	EXPECT_OK(devbuf_unmap(v));
	ASSERT_OK(devbuf_deallocate(v));
	ASSERT_OK(devbuf_deallocate(b));
	ASSERT_OK(devbuf_allocate(v));
	EXPECT_EQ(-EBUSY, devbuf_map(v, PROT_READ, (void **)&again)); /* now it is other memory */
	EXPECT_EQ(0, memcmp(bytes, map, 10));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, addr)
{
	struct devbuf *b = new_bytes(self->a, 2 * self->page), *v = new_view(b, 100, 10);
	struct devbuf *w = new_view(v, 5, 10);
	uint64_t of_b, of_v, of_w;
	char *map;

	ASSERT_OK(devbuf_addr(v, &of_v)); /* allocates */
	EXPECT_TRUE(devbuf_is_initialized(v));
	EXPECT_TRUE(devbuf_is_initialized(b));
	ASSERT_OK(devbuf_addr(b, &of_b));
	ASSERT_OK(devbuf_addr(w, &of_w));
	EXPECT_EQ(of_b + 100, of_v);
	EXPECT_EQ(of_b + 105, of_w);
	ASSERT_OK(devbuf_map(b, PROT_READ | PROT_WRITE, (void **)&map));
	EXPECT_EQ((uintptr_t)map, of_b); /* the address of the CPU mapping */
	map[100] = 'x';
	EXPECT_EQ('x', *(char *)(uintptr_t)of_v);
	EXPECT_OK(devbuf_unmap(b));
	EXPECT_EQ('x', *(char *)(uintptr_t)of_v); /* stays */
	EXPECT_EQ(-EINVAL, devbuf_addr(b, NULL));
	EXPECT_EQ(-EINVAL, devbuf_addr(NULL, &of_b));
	devbuf_unref(w);
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, addr_after_map_is_that_of_the_mapping)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	uint64_t addr;
	void *map;

	ASSERT_OK(devbuf_map(b, PROT_READ, &map));
	ASSERT_OK(devbuf_addr(b, &addr));
	EXPECT_EQ((uintptr_t)map, addr);
	EXPECT_OK(devbuf_unmap(b));
	EXPECT_TRUE(is_pattern((void *)(uintptr_t)addr, 100, 1));
	devbuf_unref(b);
}

TEST_F(contract, addr_follows_the_memory)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	uint64_t addr;

	ASSERT_OK(devbuf_addr(b, &addr));
	ASSERT_OK(devbuf_deallocate(b)); /* its own hold on the mapping goes too */
	ASSERT_OK(devbuf_allocate(b));
	ASSERT_OK(devbuf_addr(b, &addr));
	EXPECT_OK(devbuf_copyin_at(b, 0, "now", 3));
	EXPECT_EQ(0, memcmp((void *)(uintptr_t)addr, "now", 3));
	devbuf_unref(b);
}

TEST_F(contract, addr_that_cannot_allocate)
{
	struct devbuf *b = new_bytes(self->a, (size_t)1 << 46);
	uint64_t addr = 1;

	EXPECT_EQ(-ENOMEM, devbuf_addr(b, &addr));
	EXPECT_EQ(1, addr);
	devbuf_unref(b);
}

TEST_F(contract, sync)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = new_view(b, 10, 10);

	EXPECT_EQ(-ENODATA, devbuf_sync(b, 0, 100, DEVBUF_CPU_READ));
	ASSERT_OK(devbuf_allocate(v));
	EXPECT_OK(devbuf_sync(b, 0, 100, DEVBUF_CPU_READ));
	EXPECT_OK(devbuf_sync(v, 9, 1, DEVBUF_CPU_WRITE | DEVBUF_CPU_READ));
	EXPECT_OK(devbuf_sync(v, 9, 1, DEVBUF_CPU_WRITE | DEVBUF_CPU_READ | DEVBUF_CPU_END));
	EXPECT_OK(devbuf_sync(b, 0, 100, DEVBUF_CPU_READ | DEVBUF_CPU_END));
	EXPECT_EQ(-EINVAL, devbuf_sync(v, 9, 2, DEVBUF_CPU_READ));
	EXPECT_SAID("2 bytes at 9 exceed buffer of 10");
	EXPECT_EQ(-EINVAL, devbuf_sync(v, 0, 0, DEVBUF_CPU_READ));
	EXPECT_EQ(-EOVERFLOW, devbuf_sync(v, SIZE_MAX, 2, DEVBUF_CPU_READ));
	EXPECT_EQ(-EINVAL, devbuf_sync(v, 0, 1, 0));
	EXPECT_EQ(-EINVAL, devbuf_sync(v, 0, 1, DEVBUF_CPU_END));
	EXPECT_EQ(-EINVAL, devbuf_sync(v, 0, 1, DEVBUF_CPU_READ | 8));
	EXPECT_EQ(-EINVAL, devbuf_sync(NULL, 0, 1, DEVBUF_CPU_READ));
	devbuf_unref(v);
	devbuf_unref(b);
}
