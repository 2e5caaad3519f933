/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: copies from buffer to buffer. Part of contract.c. */

/* --- from buffer to buffer -------------------------------------------------------------------- */

TEST_F(contract, supports_transfer)
{
	struct devbuf *a = new_bytes(self->a, 8), *b = new_bytes(self->a, 8),
		      *v = new_view(a, 0, 4);
	struct devbuf_allocator *other;
	struct devbuf *c;

	EXPECT_TRUE(devbuf_supports_transfer(a, b));
	EXPECT_TRUE(devbuf_supports_transfer(v, b));
	EXPECT_TRUE(devbuf_supports_transfer(a, a));
	EXPECT_FALSE(devbuf_supports_transfer(a, NULL));
	EXPECT_FALSE(devbuf_supports_transfer(NULL, a));
	ASSERT_OK(open_allocator(variant->driver, false, &other));
	c = new_bytes(other, 8);
	/* Two connections do not know each other's buffers; memory of the process is memory. */
	EXPECT_EQ(!variant->driver, devbuf_supports_transfer(a, c));
	devbuf_unref(c);
	devbuf_allocator_unref(other);
	devbuf_unref(v);
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(contract, transfer_wants_the_same_prefix)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	struct devbuf *a = new_filled(self->a, 8, 1), *b;
	char memory[8] = "";
	bool native = true;

	spec.external_ptr = memory;
	ASSERT_OK(devbuf_create(self->a, "USER:0", 8, DEVBUF_UINT8, &spec, &b));
	EXPECT_FALSE(devbuf_supports_transfer(a, b));
	EXPECT_FALSE(devbuf_supports_transfer(b, a));
	ASSERT_OK(devbuf_transfer(b, a, &native));
	EXPECT_FALSE(native);
	EXPECT_FALSE(devbuf_is_allocated(b)); /* nothing was done */
	EXPECT_OK(devbuf_transfer(b, a, NULL));
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(contract, transfer)
{
	size_t nbytes = 3 * self->page + 5;
	struct devbuf *src = new_filled(self->a, nbytes, 3), *dst = new_bytes(self->a, nbytes);
	bool native = false;

	ASSERT_OK(devbuf_transfer(dst, src, &native));
	EXPECT_TRUE(native);
	EXPECT_TRUE(devbuf_is_initialized(dst));
	EXPECT_TRUE(holds_pattern(dst, 3));
	EXPECT_OK(devbuf_transfer(dst, src, NULL));
	EXPECT_OK(devbuf_transfer(dst, dst, &native));
	EXPECT_TRUE(holds_pattern(dst, 3));
	devbuf_unref(dst);
	devbuf_unref(src);
}

/* Of dst and src, by function; what follows is the same for all of them. */
static int call_transfer(struct devbuf *dst, struct devbuf *src)
{
	bool native;

	return devbuf_transfer(dst, src, &native);
}

static int call_copy(struct devbuf *dst, struct devbuf *src)
{
	return devbuf_copy(dst, src, NULL);
}

static int call_copy_at(struct devbuf *dst, struct devbuf *src)
{
	return devbuf_copy_at(dst, 0, src, 0, devbuf_nbytes(src), 0, NULL);
}

static int (*const copies[])(struct devbuf *dst, struct devbuf *src) = { call_transfer,
									 devbuf_copy_between,
									 call_copy, call_copy_at };

TEST_F(contract, copies_allocate_both)
{
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
		struct devbuf *a = new_bytes(self->a, 100), *b = new_bytes(self->a, 100);
		struct devbuf *v = new_view(a, 10, 50), *w = new_view(b, 20, 50);

		EXPECT_OK(copies[i](v, w));
		EXPECT_TRUE(devbuf_is_initialized(v));
		EXPECT_TRUE(devbuf_is_initialized(w));
		EXPECT_TRUE(devbuf_is_initialized(a));
		devbuf_unref(w);
		devbuf_unref(v);
		devbuf_unref(b);
		devbuf_unref(a);
	}
}

TEST_F(contract, copies_that_cannot_allocate_leave_both_as_they_were)
{
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
		struct devbuf *a = new_bytes(self->a, (size_t)1 << 46);
		struct devbuf *b = new_bytes(self->a, (size_t)1 << 46);
		struct devbuf *c = new_bytes(self->a, 100), *v = new_view(a, 0, 100),
			      *w = new_view(c, 0, 100);

		EXPECT_EQ(-ENOMEM, copies[i](a, b));
		EXPECT_EQ(-ENOMEM, copies[i](v, w));
		EXPECT_FALSE(devbuf_is_allocated(w));
		EXPECT_EQ(-ENOMEM, copies[i](w, v));
		EXPECT_FALSE(devbuf_is_allocated(w));
		EXPECT_FALSE(devbuf_is_allocated(a));
		devbuf_unref(w);
		devbuf_unref(v);
		devbuf_unref(c);
		devbuf_unref(b);
		devbuf_unref(a);
	}
}

TEST_F(contract, copies_want_the_same_size_and_type)
{
	struct devbuf *a, *b, *c;
	enum devbuf_copy_path took = DEVBUF_VIA_PEER;
	bool native = true;

	ASSERT_OK(devbuf_create(self->a, "SYSTEM:0", 8, DEVBUF_INT8, NULL, &a));
	ASSERT_OK(devbuf_create(self->a, "SYSTEM:0", 9, DEVBUF_INT8, NULL, &b));
	ASSERT_OK(devbuf_create(self->a, "SYSTEM:0", 8, DEVBUF_UINT8, NULL, &c));
	for (size_t i = 0; i < 3; i++) {
		EXPECT_EQ(-EINVAL, copies[i](a, b));
		EXPECT_SAID("9 elements of int8 do not go into 8 of int8");
		EXPECT_EQ(-EINVAL, copies[i](b, a));
		EXPECT_EQ(-EINVAL, copies[i](a, c));
		EXPECT_SAID("8 elements of uint8 do not go into 8 of int8");
	}
	EXPECT_EQ(-EINVAL, devbuf_transfer(a, b, &native));
	EXPECT_TRUE(native);
	EXPECT_EQ(-EINVAL, devbuf_copy(a, b, &took));
	EXPECT_EQ(DEVBUF_VIA_PEER, took);
	EXPECT_FALSE(devbuf_is_allocated(a) || devbuf_is_allocated(b) || devbuf_is_allocated(c));
	devbuf_unref(c);
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(contract, copies_refuse_null)
{
	struct devbuf *b = new_bytes(self->a, 8);

	for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
		EXPECT_EQ(-EINVAL, copies[i](b, NULL));
		EXPECT_EQ(-EINVAL, copies[i](NULL, b));
		EXPECT_EQ(-EINVAL, copies[i](NULL, NULL));
	}
	devbuf_unref(b);
}

TEST_F(contract, copies_of_much)
{
	size_t nbytes = 3 * MIB + 123;

	for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
		struct devbuf *src = new_filled(self->a, nbytes, 3);
		struct devbuf *dst = new_bytes(self->a, nbytes);

		EXPECT_OK(copies[i](dst, src));
		EXPECT_TRUE(holds_pattern(dst, 3));
		devbuf_unref(dst);
		devbuf_unref(src);
	}
}

TEST_F(contract, copies_of_what_overlaps_are_as_by_memmove)
{
	size_t nbytes = 3 * MIB, step = self->page + 1;

	for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
		for (int up = 0; up < 2; up++) {
			struct devbuf *b = new_filled(self->a, nbytes + step, 5);
			struct devbuf *low = new_view(b, 0, nbytes),
				      *high = new_view(b, step, nbytes);
			char *expected, *got;

			ASSERT_OK(devbuf_as_bytes(b, (void **)&expected, NULL));
			memmove(expected + (up ? step : 0), expected + (up ? 0 : step), nbytes);
			EXPECT_OK(copies[i](up ? high : low, up ? low : high));
			ASSERT_OK(devbuf_as_bytes(b, (void **)&got, NULL));
			EXPECT_EQ(0, memcmp(expected, got, nbytes + step))
			{
				TH_LOG("function %zu, upwards %d", i, up);
			}
			free(expected);
			free(got);
			devbuf_unref(low);
			devbuf_unref(high);
			devbuf_unref(b);
		}
	}
}

TEST_F(contract, copy_says_its_path)
{
	struct devbuf *a = new_filled(self->a, 100, 1), *b = new_bytes(self->a, 100);
	enum devbuf_copy_path took = DEVBUF_VIA_NONE;
	struct devbuf_plan plan = DEVBUF_PLAN_INIT;

	ASSERT_OK(devbuf_copy_plan(b, a, &plan));
	EXPECT_EQ(DEVBUF_VIA_CPU, plan.path);
	EXPECT_NE(NULL, strstr(plan.why, "peer"));
	EXPECT_NE(NULL, strstr(plan.why, "dmaengine"));
	EXPECT_FALSE(devbuf_is_allocated(b));
	ASSERT_OK(devbuf_copy(b, a, &took));
	EXPECT_EQ(DEVBUF_VIA_CPU, took);
	EXPECT_STREQ("cpu", devbuf_copy_path_name(took));
	EXPECT_TRUE(holds_pattern(b, 1));
	plan.size = 3;
	EXPECT_EQ(-EINVAL, devbuf_copy_plan(b, a, &plan));
	EXPECT_EQ(-EINVAL, devbuf_copy_plan(b, a, NULL));
	plan.size = sizeof(plan);
	EXPECT_EQ(-EINVAL, devbuf_copy_plan(NULL, a, &plan));
	EXPECT_EQ(-EINVAL, devbuf_copy_plan(b, NULL, &plan));
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(contract, copy_at)
{
	struct devbuf *a = new_filled(self->a, 100, 1), *b = new_bytes(self->a, 50);
	enum devbuf_copy_path took = DEVBUF_VIA_NONE;
	char bytes[100], more[50];

	ASSERT_OK(devbuf_copyout(a, bytes, 100));
	ASSERT_OK(devbuf_allocate(b));
	ASSERT_OK(devbuf_copyout(b, more, 50));
	ASSERT_OK(devbuf_copy_at(b, 10, a, 61, 39, DEVBUF_NO_BOUNCE, &took));
	EXPECT_EQ(DEVBUF_VIA_CPU, took);
	memcpy(more + 10, bytes + 61, 39);
	ASSERT_OK(devbuf_copyout(b, bytes, 50));
	EXPECT_EQ(0, memcmp(more, bytes, 50));
	EXPECT_EQ(-EINVAL, devbuf_copy_at(b, 12, a, 0, 39, 0, NULL));
	EXPECT_SAID("39 bytes at 12 exceed buffer of 50");
	EXPECT_EQ(-EINVAL, devbuf_copy_at(b, 0, a, 62, 39, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_copy_at(b, 0, a, 0, 0, 0, NULL));
	EXPECT_EQ(-EOVERFLOW, devbuf_copy_at(b, SIZE_MAX, a, 0, 2, 0, NULL));
	EXPECT_EQ(-EOVERFLOW, devbuf_copy_at(b, 0, a, SIZE_MAX, 2, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_copy_at(b, 0, a, 0, 1, 4, NULL));
	EXPECT_SAID("0x4");
	EXPECT_EQ(-EOPNOTSUPP, devbuf_copy_at(b, 0, a, 0, 1, DEVBUF_NO_CPU, &took));
	ASSERT_OK(devbuf_copyout(b, bytes, 50));
	EXPECT_EQ(0, memcmp(more, bytes, 50));
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(contract, copies_between_allocators)
{
	struct devbuf_allocator *host, *other;
	size_t nbytes = 2 * MIB + 9;
	struct devbuf *a = new_filled(self->a, nbytes, 1), *b, *c;
	enum devbuf_copy_path took = DEVBUF_VIA_NONE;
	struct devbuf_plan plan = DEVBUF_PLAN_INIT;

	ASSERT_OK(devbuf_host_allocator(&host));
	ASSERT_OK(open_allocator(variant->driver, variant->lru, &other));
	ASSERT_OK(devbuf_create(host, "CPU", nbytes, DEVBUF_UINT8, NULL, &b));
	c = new_bytes(other, nbytes);
	EXPECT_FALSE(devbuf_supports_transfer(b, a));

	/* The library can reach memory of the process: no bounce buffer, either way. */
	ASSERT_OK(devbuf_copy_plan(b, a, &plan));
	EXPECT_EQ(DEVBUF_VIA_CPU, plan.path);
	ASSERT_OK(devbuf_copy(b, a, &took));
	EXPECT_EQ(DEVBUF_VIA_CPU, took);
	EXPECT_TRUE(holds_pattern(b, 1));
	ASSERT_OK(devbuf_copy(c, b, &took));
	EXPECT_EQ(DEVBUF_VIA_CPU, took);
	EXPECT_TRUE(holds_pattern(c, 1));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_copy_at(c, 0, b, 0, 1, DEVBUF_NO_CPU, &took));
	EXPECT_OK(devbuf_copy_at(c, 0, b, 0, 1, DEVBUF_NO_BOUNCE, &took));

	/* Two connections: only through the process. */
	EXPECT_OK(devbuf_deallocate(c));
	ASSERT_OK(devbuf_copy_plan(c, a, &plan));
	ASSERT_OK(devbuf_copy(c, a, &took));
	EXPECT_EQ(plan.path, took);
	EXPECT_EQ(variant->driver ? DEVBUF_VIA_BOUNCE : DEVBUF_VIA_CPU, took);
	EXPECT_TRUE(holds_pattern(c, 1));
	if (variant->driver) {
		EXPECT_NE(NULL, strstr(plan.why, "different allocators"));
		EXPECT_NE(NULL, strstr(plan.why, "cpu"));
		EXPECT_EQ(-EOPNOTSUPP, devbuf_copy_at(c, 0, a, 0, 1, DEVBUF_NO_BOUNCE, &took));
		EXPECT_SAID("bounce");
	}
	EXPECT_OK(devbuf_copy_between(a, c));
	EXPECT_OK(devbuf_copy_between(a, b));
	EXPECT_OK(devbuf_copy_between(b, a));
	devbuf_unref(c);
	devbuf_unref(b);
	devbuf_unref(a);
	devbuf_allocator_unref(host);
	devbuf_allocator_unref(other);
}

TEST_F(contract, path_names)
{
	EXPECT_STREQ("none", devbuf_copy_path_name(DEVBUF_VIA_NONE));
	EXPECT_STREQ("peer", devbuf_copy_path_name(DEVBUF_VIA_PEER));
	EXPECT_STREQ("device", devbuf_copy_path_name(DEVBUF_VIA_DEVICE));
	EXPECT_STREQ("dmaengine", devbuf_copy_path_name(DEVBUF_VIA_DMAENGINE));
	EXPECT_STREQ("bounce", devbuf_copy_path_name(DEVBUF_VIA_BOUNCE));
	EXPECT_STREQ("none", devbuf_copy_path_name((enum devbuf_copy_path)6));
}
