/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: allocate, deallocate, reuse. Part of contract.c. */

/* --- allocate, deallocate --------------------------------------------------------------------- */

TEST_F(contract, allocate_a_base)
{
	struct devbuf *b = new_bytes(self->a, 3 * self->page + 1);

	ASSERT_OK(devbuf_allocate(b));
	EXPECT_TRUE(devbuf_is_allocated(b));
	EXPECT_TRUE(devbuf_is_initialized(b));
	EXPECT_TRUE(holds_zeros(b));
	EXPECT_EQ(-EALREADY, devbuf_allocate(b));
	EXPECT_SAID("already");
	EXPECT_TRUE(devbuf_is_allocated(b));
	EXPECT_OK(devbuf_ensure_allocated(b));
	devbuf_unref(b);
}

TEST_F(contract, allocate_a_view_and_with_it_its_base)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = new_view(b, 10, 10),
		      *w = new_view(b, 0, 100);

	ASSERT_OK(devbuf_allocate(v));
	EXPECT_TRUE(devbuf_is_allocated(v));
	EXPECT_TRUE(devbuf_is_initialized(v));
	EXPECT_TRUE(devbuf_is_allocated(b));
	EXPECT_TRUE(devbuf_is_initialized(b));
	EXPECT_TRUE(devbuf_is_allocated(w)); /* its base is */
	EXPECT_FALSE(devbuf_is_initialized(w));
	EXPECT_EQ(-EALREADY, devbuf_allocate(v));
	EXPECT_EQ(-EALREADY, devbuf_allocate(b));
	EXPECT_OK(devbuf_allocate(w));
	devbuf_unref(w);
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, ensure_allocated)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = new_view(b, 10, 10);

	EXPECT_OK(devbuf_ensure_allocated(v));
	EXPECT_TRUE(devbuf_is_initialized(v));
	EXPECT_OK(devbuf_ensure_allocated(v));
	EXPECT_OK(devbuf_ensure_allocated(b));
	EXPECT_EQ(-EINVAL, devbuf_ensure_allocated(NULL));
	EXPECT_EQ(-EINVAL, devbuf_allocate(NULL));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, allocate_more_than_there_is)
{
	static const size_t sizes[] = { (size_t)1 << 46, (size_t)1 << 62, INT64_MAX - 4096,
					INT64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct devbuf *b = NULL, *v = NULL;
		int rc = devbuf_create(self->a, "SYSTEM:0", sizes[i], DEVBUF_INT8, NULL, &b);

		ASSERT_EQ(0, rc)
		{
			TH_LOG("%zu bytes: %s", sizes[i], devbuf_last_error());
		}
		EXPECT_EQ(-ENOMEM, devbuf_allocate(b));
		EXPECT_SAID("bytes");
		EXPECT_FALSE(devbuf_is_allocated(b));
		v = new_view(b, sizes[i] / 2, 1);
		ASSERT_NE(NULL, v);
		EXPECT_EQ(-ENOMEM, devbuf_allocate(v));
		EXPECT_FALSE(devbuf_is_initialized(v));
		EXPECT_FALSE(devbuf_is_allocated(v));
		EXPECT_OK(devbuf_deallocate(v));
		devbuf_unref(v);
		devbuf_unref(b);
	}
}

TEST_F(contract, deallocate_a_base)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	uint64_t id = devbuf_id(b);

	EXPECT_OK(devbuf_deallocate(b));
	EXPECT_FALSE(devbuf_is_allocated(b));
	EXPECT_FALSE(devbuf_is_initialized(b));
	EXPECT_OK(devbuf_deallocate(b)); /* again: nothing happens */
	EXPECT_EQ(-EINVAL, devbuf_deallocate(NULL));
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_EQ(id, devbuf_id(b));
	if (variant->lru) {
		EXPECT_TRUE(holds_pattern(b, 1));
	} else {
		EXPECT_TRUE(holds_zeros(b));
	}
	devbuf_unref(b);
}

TEST_F(contract, deallocate_never_allocated)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = new_view(b, 1, 1);

	EXPECT_OK(devbuf_deallocate(b));
	EXPECT_OK(devbuf_deallocate(v));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, deallocate_a_base_with_an_allocated_view)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = new_view(b, 10, 10),
		      *w = new_view(b, 20, 10);

	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_allocate(w));
	EXPECT_EQ(-EBUSY, devbuf_deallocate(b));
	EXPECT_SAID("100 bytes");
	EXPECT_TRUE(devbuf_is_initialized(b));
	EXPECT_TRUE(devbuf_is_initialized(v));
	EXPECT_OK(devbuf_deallocate(v));
	EXPECT_FALSE(devbuf_is_initialized(v));
	EXPECT_TRUE(devbuf_is_allocated(v)); /* the base stays */
	EXPECT_EQ(-EBUSY, devbuf_deallocate(b));
	devbuf_unref(w); /* lets go as well */
	EXPECT_OK(devbuf_deallocate(b));
	EXPECT_FALSE(devbuf_is_allocated(v));
	EXPECT_OK(devbuf_deallocate(v));
	ASSERT_OK(devbuf_allocate(v));
	EXPECT_TRUE(devbuf_is_initialized(b));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, views_without_memory_do_not_hold_it)
{
	struct devbuf *b = new_filled(self->a, 100, 1), *v = new_view(b, 10, 10);

	EXPECT_OK(devbuf_deallocate(b));
	EXPECT_FALSE(devbuf_is_allocated(v));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, status)
{
	struct devbuf_status s = DEVBUF_STATUS_INIT;
	struct devbuf *b = new_bytes(self->a, 2 * MIB), *v = new_view(b, 1, 1);
	struct {
		struct devbuf_status s;
		char more[8];
	} newer = { .s = DEVBUF_STATUS_INIT, .more = "1234567" };

	ASSERT_OK(devbuf_get_status(v, &s));
	EXPECT_FALSE(s.base_allocated || s.allocated || s.read_only || s.device_gone);
	EXPECT_EQ(DEVBUF_MAY_READ | DEVBUF_MAY_WRITE | DEVBUF_MAY_MANAGE,
		  s.rights & ~DEVBUF_MAY_EXPORT);
	EXPECT_EQ(0, s.largest_page_nbytes);
	ASSERT_OK(devbuf_allocate(b));
	ASSERT_OK(devbuf_get_status(v, &s));
	EXPECT_TRUE(s.base_allocated && !s.allocated);
	EXPECT_EQ(sizeof(s), s.size);
	newer.s.size = sizeof(newer);
	ASSERT_OK(devbuf_get_status(b, &newer.s));
	EXPECT_TRUE(newer.s.allocated);
	EXPECT_EQ(sizeof(newer), newer.s.size);
	EXPECT_TRUE(is_zero(newer.more, sizeof(newer.more)));
	if (variant->driver) {
		EXPECT_LE(self->page, newer.s.largest_page_nbytes);
	}
	s.size = 4;
	EXPECT_EQ(-EINVAL, devbuf_get_status(b, &s));
	EXPECT_EQ(-EINVAL, devbuf_get_status(b, NULL));
	s.size = sizeof(s);
	EXPECT_EQ(-EINVAL, devbuf_get_status(NULL, &s));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, supports_offset)
{
	struct devbuf *b = new_bytes(self->a, 8), *v = new_view(b, 1, 1);

	EXPECT_TRUE(devbuf_supports_offset(b));
	EXPECT_TRUE(devbuf_supports_offset(v));
	EXPECT_FALSE(devbuf_supports_offset(NULL));
	devbuf_unref(v);
	devbuf_unref(b);
}

/* --- reuse ------------------------------------------------------------------------------------ */

TEST_F(contract, memory_is_zero_unless_it_is_reused)
{
	struct devbuf *b = new_filled(self->a, 5 * self->page, 1);

	devbuf_unref(b); /* deallocates */
	b = new_bytes(self->a, 5 * self->page);
	ASSERT_OK(devbuf_allocate(b));
	if (variant->lru) {
		EXPECT_TRUE(holds_pattern(b, 1));
	} else {
		EXPECT_TRUE(holds_zeros(b));
	}
	devbuf_unref(b);
}

TEST_F(contract, memory_is_reused_for_the_like_only)
{
	struct devbuf_spec nolru = DEVBUF_SPEC_INIT, aligned = DEVBUF_SPEC_INIT;
	struct devbuf *b = new_filled(self->a, 5 * self->page, 1), *other;

	nolru.nolru = true;
	aligned.alignment = 128;
	devbuf_unref(b);
	ASSERT_OK(devbuf_create(self->a, "SYSTEM", 5 * self->page, DEVBUF_UINT8, &nolru, &b));
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_TRUE(holds_zeros(b)); /* passes by */
	devbuf_unref(b);
	b = new_bytes(self->a, 5 * self->page - 1);
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_TRUE(holds_zeros(b));
	devbuf_unref(b);
	if (!variant->driver) { /* whose cache goes by what matters to it */
		ASSERT_OK(devbuf_create(self->a, "SYSTEM", 5 * self->page, DEVBUF_UINT8, &aligned,
					&b));
		ASSERT_OK(devbuf_allocate(b));
		EXPECT_TRUE(holds_zeros(b));
		devbuf_unref(b);
		ASSERT_OK(devbuf_create(self->a, "OTHER", 5 * self->page, DEVBUF_UINT8, NULL, &b));
		ASSERT_OK(devbuf_allocate(b));
		EXPECT_TRUE(holds_zeros(b));
		devbuf_unref(b);
	}
	ASSERT_OK(devbuf_create(self->a, "SYSTEM", 5 * self->page / 4, DEVBUF_FLOAT32, NULL, &b));
	ASSERT_OK(devbuf_allocate(b)); /* other elements, the same bytes */
	EXPECT_EQ(variant->lru, holds_pattern(b, 1));
	other = new_bytes(self->a, 5 * self->page); /* and it is given once */
	ASSERT_OK(devbuf_allocate(other));
	EXPECT_TRUE(holds_zeros(other));
	devbuf_unref(other);
	devbuf_unref(b);
}

TEST_F(contract, nolru_memory_is_not_kept)
{
	struct devbuf_spec nolru = DEVBUF_SPEC_INIT;
	struct devbuf *b;

	nolru.nolru = true;
	ASSERT_OK(devbuf_create(self->a, "SYSTEM", 3 * self->page, DEVBUF_UINT8, &nolru, &b));
	ASSERT_OK(devbuf_allocate(b));
	ASSERT_OK(devbuf_copyin_at(b, 0, "secret", 6));
	devbuf_unref(b);
	b = new_bytes(self->a, 3 * self->page);
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_TRUE(holds_zeros(b));
	devbuf_unref(b);
}

TEST_F(contract, lru_allocators_share_ids_with_what_they_are_over)
{
	struct devbuf_allocator *lru;
	struct devbuf *a = new_bytes(self->a, 8), *b, *found;

	ASSERT_OK(devbuf_lru_allocator(self->a, &lru));
	b = new_bytes(lru, 8);
	EXPECT_EQ(lru, devbuf_allocator_of(b));
	ASSERT_OK(devbuf_open_id(self->a, devbuf_id(b), &found));
	EXPECT_EQ(b, found);
	devbuf_unref(found);
	ASSERT_OK(devbuf_open_id(lru, devbuf_id(a), &found));
	EXPECT_EQ(a, found);
	devbuf_unref(found);
	EXPECT_TRUE(devbuf_supports_transfer(a, b));
	EXPECT_TRUE(devbuf_supports_transfer(b, a));
	EXPECT_OK(devbuf_transfer(a, b, NULL));
	EXPECT_EQ(-EINVAL, devbuf_lru_allocator(NULL, &lru));
	EXPECT_EQ(-EINVAL, devbuf_lru_allocator(self->a, NULL));
	devbuf_unref(a);
	devbuf_unref(b);
	devbuf_allocator_unref(lru);
}
