/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: views, references, ids, names. Part of contract.c. */

/* --- views ------------------------------------------------------------------------------------ */

TEST_F(contract, view_names_a_range_of_its_base)
{
	struct devbuf *b = new_bytes(self->a, 100), *v;

	ASSERT_NE(NULL, b);
	ASSERT_OK(devbuf_view(b, 3, DEVBUF_INT16, 7, &v));
	EXPECT_NE(devbuf_id(b), devbuf_id(v));
	EXPECT_EQ(devbuf_id(b), devbuf_base_id(v));
	EXPECT_EQ(b, devbuf_base(v));
	EXPECT_EQ(self->a, devbuf_allocator_of(v));
	EXPECT_STREQ("SYSTEM:0", devbuf_device(v));
	EXPECT_EQ(3, devbuf_size(v));
	EXPECT_TRUE(devbuf_dtype_equal(DEVBUF_INT16, devbuf_dtype_of(v)));
	EXPECT_EQ(6, devbuf_nbytes(v));
	EXPECT_EQ(7, devbuf_offset(v));
	EXPECT_EQ(0, memcmp(devbuf_spec_of(b), devbuf_spec_of(v), sizeof(struct devbuf_spec)));
	EXPECT_FALSE(devbuf_is_allocated(v));
	EXPECT_FALSE(devbuf_is_initialized(v));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, view_of_a_view_is_a_view_of_the_base)
{
	struct devbuf *b = new_bytes(self->a, 100), *v, *w;

	ASSERT_NE(NULL, b);
	v = new_view(b, 20, 10);
	ASSERT_NE(NULL, v);
	w = new_view(v, 5, 5);
	ASSERT_NE(NULL, w);
	EXPECT_EQ(b, devbuf_base(w));
	EXPECT_EQ(devbuf_id(b), devbuf_base_id(w));
	EXPECT_EQ(25, devbuf_offset(w));
	devbuf_unref(w);
	w = new_view(v, 9, 71); /* past its parent, up to the root's end */
	ASSERT_NE(NULL, w);
	EXPECT_EQ(29, devbuf_offset(w));
	EXPECT_EQ(71, devbuf_nbytes(w));
	devbuf_unref(w);
	w = (void *)1;
	EXPECT_EQ(-EINVAL, devbuf_view(v, 72, DEVBUF_INT8, 9, &w));
	EXPECT_SAID("view of 72 bytes at 29 exceeds base of 100");
	EXPECT_EQ(-EINVAL, devbuf_view(v, 1, DEVBUF_INT8, 10, &w)); /* begins past its parent */
	EXPECT_EQ((void *)1, w);
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(contract, view_at_the_edges)
{
	struct devbuf *b = new_bytes(self->a, 100), *v;

	ASSERT_NE(NULL, b);
	ASSERT_OK(devbuf_view(b, 100, DEVBUF_INT8, 0, &v));
	devbuf_unref(v);
	ASSERT_OK(devbuf_view(b, 1, DEVBUF_INT8, 99, &v));
	devbuf_unref(v);
	v = (void *)1;
	EXPECT_EQ(-EINVAL, devbuf_view(b, 1, DEVBUF_INT8, 100, &v));
	EXPECT_SAID("100");
	EXPECT_EQ(-EINVAL, devbuf_view(b, 2, DEVBUF_INT8, 99, &v));
	EXPECT_SAID("view of 2 bytes at 99 exceeds base of 100");
	EXPECT_EQ(-EINVAL, devbuf_view(b, 101, DEVBUF_INT8, 0, &v));
	EXPECT_EQ(-EINVAL, devbuf_view(b, 26, DEVBUF_INT32, 0, &v));
	EXPECT_EQ((void *)1, v);
	devbuf_unref(b);
}

TEST_F(contract, view_refuses_negative_offsets)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = (void *)1;

	EXPECT_EQ(-EINVAL, devbuf_view(b, 1, DEVBUF_INT8, -1, &v));
	EXPECT_SAID("-1");
	EXPECT_EQ(-EINVAL, devbuf_view(b, 1, DEVBUF_INT8, INT64_MIN, &v));
	EXPECT_EQ(-EINVAL, devbuf_view(b, 1, DEVBUF_INT8, INT64_MAX, &v));
	EXPECT_EQ((void *)1, v);
	devbuf_unref(b);
}

TEST_F(contract, view_refuses_sizes_that_wrap)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = (void *)1;

	EXPECT_EQ(-EOVERFLOW, devbuf_view(b, SIZE_MAX, DEVBUF_INT8, 1, &v));
	EXPECT_SAID("wraps");
	EXPECT_EQ(-EOVERFLOW, devbuf_view(b, SIZE_MAX / 2 + 1, DEVBUF_INT16, 0, &v));
	EXPECT_EQ(-EINVAL, devbuf_view(b, SIZE_MAX, DEVBUF_INT8, 0, &v)); /* does not wrap */
	EXPECT_EQ((void *)1, v);
	devbuf_unref(b);
}

TEST_F(contract, view_refuses_no_elements_no_type_and_null)
{
	struct devbuf *b = new_bytes(self->a, 100), *v = (void *)1;

	EXPECT_EQ(-EINVAL, devbuf_view(b, 0, DEVBUF_INT8, 0, &v));
	EXPECT_EQ(-EINVAL, devbuf_view(b, 1, ((devbuf_dtype){ 0, 4, 1 }), 0, &v));
	EXPECT_EQ(-EINVAL, devbuf_view(NULL, 1, DEVBUF_INT8, 0, &v));
	EXPECT_EQ(-EINVAL, devbuf_view(b, 1, DEVBUF_INT8, 0, NULL));
	EXPECT_EQ((void *)1, v);
	devbuf_unref(b);
}

TEST_F(contract, view_keeps_its_base)
{
	struct devbuf *b = new_filled(self->a, 100, 9), *v = new_view(b, 10, 10), *again;
	uint64_t base_id = devbuf_id(b);
	char bytes[10];

	ASSERT_OK(devbuf_allocate(v));
	devbuf_unref(b);
	EXPECT_EQ(base_id, devbuf_id(devbuf_base(v)));
	EXPECT_TRUE(devbuf_is_allocated(v));
	EXPECT_OK(devbuf_copyout(v, bytes, 10));
	ASSERT_OK(devbuf_open_id(self->a, base_id, &again));
	EXPECT_EQ(devbuf_base(v), again);
	EXPECT_TRUE(holds_pattern(again, 9));
	devbuf_unref(again);
	devbuf_unref(v);
	EXPECT_EQ(-ENOENT, devbuf_open_id(self->a, base_id, &again));
}

TEST_F(contract, views_see_the_same_bytes)
{
	struct devbuf *b = new_filled(self->a, 3 * self->page, 3), *v, *w;
	unsigned char *bytes;

	v = new_view(b, 5, 2 * self->page);
	w = new_view(v, self->page, self->page);
	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_allocate(w));
	EXPECT_OK(devbuf_copyin_at(w, 1, "abc", 3));
	ASSERT_OK(devbuf_as_bytes(v, (void **)&bytes, NULL));
	EXPECT_EQ(0, memcmp(bytes + self->page + 1, "abc", 3));
	free(bytes);
	ASSERT_OK(devbuf_as_bytes(b, (void **)&bytes, NULL));
	EXPECT_EQ(0, memcmp(bytes + 5 + self->page + 1, "abc", 3));
	EXPECT_TRUE(is_pattern(bytes, 5 + self->page + 1, 3));
	free(bytes);
	devbuf_unref(w);
	devbuf_unref(v);
	devbuf_unref(b);
}

/* --- references and ids ----------------------------------------------------------------------- */

TEST_F(contract, references_are_counted)
{
	struct devbuf *b = new_bytes(self->a, 8), *again;
	uint64_t id = devbuf_id(b);

	EXPECT_EQ(b, devbuf_ref(b));
	EXPECT_EQ(NULL, devbuf_ref(NULL));
	devbuf_unref(NULL);
	devbuf_unref(b);
	ASSERT_OK(devbuf_open_id(self->a, id, &again));
	EXPECT_EQ(b, again);
	devbuf_unref(again);
	EXPECT_EQ(8, devbuf_nbytes(b));
	devbuf_unref(b);
	again = (void *)1;
	EXPECT_EQ(-ENOENT, devbuf_open_id(self->a, id, &again));
	EXPECT_SAID("id");
	EXPECT_EQ((void *)1, again);
}

TEST_F(contract, open_id_knows_only_its_own)
{
	struct devbuf_allocator *other;
	struct devbuf *b = new_bytes(self->a, 8), *out = (void *)1;

	ASSERT_OK(open_allocator(variant->driver, variant->lru, &other));
	EXPECT_EQ(-ENOENT, devbuf_open_id(other, devbuf_id(b), &out));
	EXPECT_EQ(-ENOENT, devbuf_open_id(self->a, 0, &out));
	EXPECT_EQ(-ENOENT, devbuf_open_id(self->a, UINT64_MAX, &out));
	EXPECT_EQ(-EINVAL, devbuf_open_id(NULL, devbuf_id(b), &out));
	EXPECT_EQ(-EINVAL, devbuf_open_id(self->a, devbuf_id(b), NULL));
	EXPECT_EQ((void *)1, out);
	devbuf_unref(b);
	devbuf_allocator_unref(other);
}

TEST_F(contract, many_buffers_are_found_by_id)
{
	struct devbuf *b[500], *found;

	for (size_t i = 0; i < ARRAY_SIZE(b); i++)
		ASSERT_NE(NULL, b[i] = new_bytes(self->a, i + 1));
	for (size_t i = 0; i < ARRAY_SIZE(b); i++) {
		ASSERT_OK(devbuf_open_id(self->a, devbuf_id(b[i]), &found));
		ASSERT_EQ(b[i], found);
		devbuf_unref(found);
	}
	for (size_t i = 0; i < ARRAY_SIZE(b); i++)
		devbuf_unref(b[i]);
}

TEST_F(contract, buffers_hold_their_allocator)
{
	struct devbuf_allocator *a;
	struct devbuf *b;

	ASSERT_OK(open_allocator(variant->driver, variant->lru, &a));
	EXPECT_EQ(a, devbuf_allocator_ref(a));
	devbuf_allocator_unref(a);
	b = new_filled(a, 100, 4);
	devbuf_allocator_unref(a);
	EXPECT_TRUE(holds_pattern(b, 4));
	EXPECT_EQ(a, devbuf_allocator_of(b));
	devbuf_unref(b);
	devbuf_allocator_unref(NULL);
	EXPECT_EQ(NULL, devbuf_allocator_ref(NULL));
}

TEST_F(contract, uop_refcount_is_the_base_s)
{
	struct devbuf *b = new_bytes(self->a, 8), *v = new_view(b, 4, 4);

	EXPECT_EQ(v, devbuf_add_ref(v, 3));
	EXPECT_EQ(3, devbuf_uop_refcount(b));
	EXPECT_EQ(b, devbuf_add_ref(b, -5));
	EXPECT_EQ(-2, devbuf_uop_refcount(v));
	devbuf_unref(v);
	devbuf_unref(b); /* whatever the counter */
}

TEST_F(contract, names)
{
	struct devbuf *b = new_bytes(self->a, 8), *v = new_view(b, 0, 8);
	char name[DEVBUF_NAME_BYTES], longest[DEVBUF_NAME_BYTES + 1];

	memset(longest, 'x', sizeof(longest));
	longest[DEVBUF_NAME_BYTES] = '\0';
	ASSERT_OK(devbuf_get_name(b, name));
	EXPECT_STREQ("", name);
	EXPECT_OK(devbuf_set_name(b, "weights ~!"));
	EXPECT_OK(devbuf_set_name(v, longest + 1));
	EXPECT_EQ(-EINVAL, devbuf_set_name(b, longest));
	EXPECT_SAID("63");
	EXPECT_EQ(-EINVAL, devbuf_set_name(b, "a\nb"));
	EXPECT_SAID("character 1");
	EXPECT_EQ(-EINVAL, devbuf_set_name(b, "\x7f"));
	EXPECT_EQ(-EINVAL, devbuf_set_name(b, "\xc3\xa9"));
	EXPECT_EQ(-EINVAL, devbuf_set_name(b, NULL));
	EXPECT_EQ(-EINVAL, devbuf_set_name(NULL, "x"));
	EXPECT_EQ(-EINVAL, devbuf_get_name(b, NULL));
	EXPECT_EQ(-EINVAL, devbuf_get_name(NULL, name));
	ASSERT_OK(devbuf_get_name(b, name));
	EXPECT_STREQ("weights ~!", name);
	ASSERT_OK(devbuf_get_name(v, name));
	EXPECT_STREQ(longest + 1, name);
	EXPECT_OK(devbuf_set_name(b, ""));
	ASSERT_OK(devbuf_get_name(b, name));
	EXPECT_STREQ("", name);
	devbuf_unref(v);
	devbuf_unref(b);
}
