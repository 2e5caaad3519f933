/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: create, specs, memory of the caller's own. Part of contract.c. */

/* --- create ----------------------------------------------------------------------------------- */

TEST_F(contract, create_gives_an_unallocated_base)
{
	struct devbuf *b;

	ASSERT_OK(devbuf_create(self->a, "SYSTEM:0", 100, DEVBUF_FLOAT32, NULL, &b));
	EXPECT_NE(0, devbuf_id(b));
	EXPECT_EQ(devbuf_id(b), devbuf_base_id(b));
	EXPECT_EQ(b, devbuf_base(b));
	EXPECT_EQ(self->a, devbuf_allocator_of(b));
	EXPECT_STREQ("SYSTEM:0", devbuf_device(b));
	EXPECT_EQ(100, devbuf_size(b));
	EXPECT_TRUE(devbuf_dtype_equal(DEVBUF_FLOAT32, devbuf_dtype_of(b)));
	EXPECT_EQ(400, devbuf_nbytes(b));
	EXPECT_EQ(0, devbuf_offset(b));
	EXPECT_FALSE(devbuf_is_allocated(b));
	EXPECT_FALSE(devbuf_is_initialized(b));
	EXPECT_EQ(0, devbuf_uop_refcount(b));
	devbuf_unref(b);
}

TEST_F(contract, ids_are_never_used_twice)
{
	struct devbuf *b, *v;
	uint64_t last = 0;

	for (int i = 0; i < 200; i++) {
		b = new_bytes(self->a, 64);
		ASSERT_NE(NULL, b);
		v = new_view(b, 8, 8);
		ASSERT_NE(NULL, v);
		EXPECT_LT(last, devbuf_id(b));
		EXPECT_LT(devbuf_id(b), devbuf_id(v));
		EXPECT_EQ(!variant->driver, devbuf_id(b) >> 63);
		EXPECT_EQ(!variant->driver, devbuf_id(v) >> 63);
		last = devbuf_id(v);
		devbuf_unref(v);
		devbuf_unref(b);
	}
}

TEST_F(contract, device_names_have_one_form)
{
	static const struct {
		const char *given;
		const char *canonical;
	} names[] = {
		{ "SYSTEM", "SYSTEM:0" },
		{ "system", "SYSTEM:0" },
		{ "System:0", "SYSTEM:0" },
		{ "SYSTEM:0", "SYSTEM:0" },
	};
	struct devbuf *b;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		ASSERT_OK(devbuf_create(self->a, names[i].given, 1, DEVBUF_INT8, NULL, &b));
		EXPECT_STREQ(names[i].canonical, devbuf_device(b));
		devbuf_unref(b);
	}
}

TEST_F(contract, create_refuses_what_is_no_device_name)
{
	static const char *const names[] = {
		"",
		":0",
		"0",
		"1SYSTEM:0",
		"_SYSTEM",
		"SYSTEM:",
		"SYSTEM:x",
		"SYSTEM:00",
		"SYSTEM:01",
		"SYSTEM:-1",
		"SYSTEM:0 ",
		" SYSTEM:0",
		"SYSTEM:0:0",
		"SYS TEM",
		"SYS-TEM",
		"S\xc3\x9cSTEM",
		"A_NAME_OF_MORE_THAN_THIRTY_CHARS:0",
		"NUMBER:12345678901234567890123456789",
	};
	struct devbuf *b = (void *)1;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(-EINVAL, devbuf_create(self->a, names[i], 1, DEVBUF_INT8, NULL, &b))
		{
			TH_LOG("\"%s\"", names[i]);
		}
		EXPECT_SAID("device");
	}
	EXPECT_EQ((void *)1, b);
}

TEST_F(contract, create_refuses_no_elements)
{
	struct devbuf *b = (void *)1;

	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 0, DEVBUF_INT8, NULL, &b));
	EXPECT_SAID("0 elements");
	EXPECT_EQ((void *)1, b);
}

TEST_F(contract, create_refuses_types_that_it_does_not_know)
{
	static const devbuf_dtype types[] = {
		{ 2, 4, 1 }, /* narrower than a byte */
		{ 0, 4, 2 },  { 0, 1, 8 },  { 17, 4, 1 }, /* DLPack's float4 */
		{ 3, 64, 1 }, /* DLPack's opaque handle */
		{ 99, 8, 1 }, { 0, 24, 1 }, { 2, 8, 1 },
		{ 6, 1, 1 },  { 0, 0, 1 },  { 0, 8, 0 }, /* no lanes */
	};
	struct devbuf *b = (void *)1;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 8, types[i], NULL, &b))
		{
			TH_LOG("type %zu", i);
		}
		EXPECT_SAID("type");
	}
	EXPECT_SAID("8 bits and 0 lanes");
	EXPECT_EQ((void *)1, b);
}

TEST_F(contract, create_refuses_sizes_that_wrap)
{
	struct devbuf *b = (void *)1;

	EXPECT_EQ(-EOVERFLOW,
		  devbuf_create(self->a, "SYSTEM:0", SIZE_MAX / 4 + 1, DEVBUF_INT32, NULL, &b));
	EXPECT_SAID("4611686018427387904 elements of 4 bytes");
	EXPECT_EQ(-EOVERFLOW, devbuf_create(self->a, "SYSTEM:0", SIZE_MAX, DEVBUF_INT16, NULL, &b));
	EXPECT_EQ(-EOVERFLOW,
		  devbuf_create(self->a, "SYSTEM:0", SIZE_MAX / 65535,
				devbuf_dtype_vector(DEVBUF_COMPLEX128, 65535), NULL, &b));
	EXPECT_EQ((void *)1, b);
}

TEST_F(contract, create_refuses_null)
{
	struct devbuf *b = (void *)1;

	EXPECT_EQ(-EINVAL, devbuf_create(NULL, "SYSTEM:0", 1, DEVBUF_INT8, NULL, &b));
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, NULL, 1, DEVBUF_INT8, NULL, &b));
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, NULL, NULL));
	EXPECT_EQ((void *)1, b);
}

TEST_F(contract, a_device_that_there_is_not)
{
	struct devbuf *b = (void *)1;
	int rc = devbuf_create(self->a, "NOWHERE:7", 1, DEVBUF_INT8, NULL, &b);

	if (variant->driver) {
		EXPECT_EQ(-ENODEV, rc);
		EXPECT_SAID("NOWHERE:7");
		EXPECT_SAID("SYSTEM:0");
		EXPECT_EQ((void *)1, b);
	} else { /* takes any name */
		ASSERT_EQ(0, rc);
		EXPECT_STREQ("NOWHERE:7", devbuf_device(b));
		devbuf_unref(b);
	}
}

TEST_F(contract, spec_null_is_the_default)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	struct devbuf *b = new_bytes(self->a, 1), *c;
	const struct devbuf_spec *got;

	ASSERT_NE(NULL, b);
	got = devbuf_spec_of(b);
	EXPECT_EQ(0, memcmp(&spec, got, sizeof(spec)));
	ASSERT_OK(devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &c));
	EXPECT_EQ(0, memcmp(&spec, devbuf_spec_of(c), sizeof(spec)));
	devbuf_unref(b);
	devbuf_unref(c);
}

TEST_F(contract, spec_comes_back)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	const struct devbuf_spec *got;
	struct devbuf *b, *v;

	spec.cpu_access = true;
	spec.host = true;
	spec.nolru = true;
	spec.alignment = 64;
	ASSERT_OK(devbuf_create(self->a, "SYSTEM:0", 16, DEVBUF_INT8, &spec, &b));
	v = new_view(b, 4, 4);
	ASSERT_NE(NULL, v);
	got = devbuf_spec_of(v);
	EXPECT_EQ(sizeof(spec), got->size);
	EXPECT_TRUE(got->cpu_access && got->host && got->nolru);
	EXPECT_FALSE(got->uncached || got->contiguous);
	EXPECT_EQ(64, got->alignment);
	EXPECT_EQ(-1, got->numa_node);
	EXPECT_EQ(NULL, got->external_ptr);
	EXPECT_OK(devbuf_allocate(v));
	devbuf_unref(b);
	devbuf_unref(v);
}

TEST_F(contract, spec_of_a_newer_caller)
{
	struct {
		struct devbuf_spec spec;
		char more[24];
	} newer = { .spec = DEVBUF_SPEC_INIT };
	struct devbuf *b;

	newer.spec.size = sizeof(newer);
	ASSERT_OK(devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &newer.spec, &b));
	EXPECT_EQ(sizeof(struct devbuf_spec), devbuf_spec_of(b)->size);
	devbuf_unref(b);
	b = (void *)1;
	newer.more[23] = 1;
	EXPECT_EQ(-E2BIG, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &newer.spec, &b));
	EXPECT_SAID("byte 63");
	newer.spec.size = SIZE_MAX;
	EXPECT_EQ(-E2BIG, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &newer.spec, &b));
	EXPECT_EQ((void *)1, b);
}

TEST_F(contract, spec_with_a_wrong_member)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	struct devbuf *b = (void *)1;

	spec.size = sizeof(spec) - 1;
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &b));
	EXPECT_SAID("39 bytes");
	spec.size = 0;
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &b));
	spec = (struct devbuf_spec)DEVBUF_SPEC_INIT;
	spec.reserved[2] = 1;
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &b));
	spec = (struct devbuf_spec)DEVBUF_SPEC_INIT;
	spec.reserved2 = 1;
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &b));
	spec = (struct devbuf_spec)DEVBUF_SPEC_INIT;
	spec.alignment = 48;
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &b));
	EXPECT_SAID("48");
	spec = (struct devbuf_spec)DEVBUF_SPEC_INIT;
	spec.numa_node = -2;
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &b));
	EXPECT_SAID("-2");
	EXPECT_EQ((void *)1, b);
}

TEST_F(contract, spec_that_cannot_be_met)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	struct devbuf *b = (void *)1;

	spec.contiguous = true;
	EXPECT_EQ(-EOPNOTSUPP, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &b));
	spec = (struct devbuf_spec)DEVBUF_SPEC_INIT;
	spec.alignment = (size_t)1 << 40;
	EXPECT_EQ(-EOPNOTSUPP, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &b));
	EXPECT_EQ((void *)1, b);
}

TEST_F(contract, spec_numa_node_is_the_number_of_system)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	struct devbuf *b = (void *)1;

	spec.numa_node = 1;
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM:0", 1, DEVBUF_INT8, &spec, &b));
	EXPECT_SAID("SYSTEM:0");
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "USER", 1, DEVBUF_INT8, &spec, &b));
	EXPECT_EQ((void *)1, b);
	if (!variant->driver) { /* where there is any SYSTEM:n */
		ASSERT_OK(devbuf_create(self->a, "system", 1, DEVBUF_INT8, &spec, &b));
		EXPECT_STREQ("SYSTEM:1", devbuf_device(b));
		devbuf_unref(b);
	}
	spec.numa_node = 0;
	ASSERT_OK(devbuf_create(self->a, "SYSTEM", 1, DEVBUF_INT8, &spec, &b));
	EXPECT_STREQ("SYSTEM:0", devbuf_device(b));
	devbuf_unref(b);
}

TEST_F(contract, uncached_memory_is_memory)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	struct devbuf *b;
	char *map;

	spec.uncached = true;
	ASSERT_OK(devbuf_create(self->a, "SYSTEM:0", 3 * self->page, DEVBUF_INT8, &spec, &b));
	EXPECT_TRUE(devbuf_spec_of(b)->uncached);
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_TRUE(holds_zeros(b));
	ASSERT_OK(devbuf_map(b, PROT_READ | PROT_WRITE, (void **)&map));
	fill_pattern(map, 3 * self->page, 5);
	EXPECT_TRUE(holds_pattern(b, 5));
	devbuf_unref(b);
}

/* --- external memory -------------------------------------------------------------------------- */

#define EXTERNAL_DEVICE (variant->driver ? "USER" : "SYSTEM")

TEST_F(contract, external_memory_is_wrapped)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	size_t nbytes = 2 * self->page + 100;
	char *memory = malloc(nbytes + 3);
	struct devbuf *b, *v;
	uint64_t addr;
	void *map;

	spec.external_ptr = memory + 3; /* no alignment needed */
	ASSERT_OK(devbuf_create(self->a, EXTERNAL_DEVICE, nbytes, DEVBUF_INT8, &spec, &b));
	v = new_view(b, self->page + 1, 50);
	ASSERT_NE(NULL, v);
	fill_pattern(memory + 3, nbytes, 1);
	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_ensure_allocated(b));
	EXPECT_TRUE(holds_pattern(b, 1));
	EXPECT_OK(devbuf_copyin_at(b, 10, "hello", 5));
	EXPECT_EQ(0, memcmp(memory + 13, "hello", 5));
	ASSERT_OK(devbuf_addr(b, &addr));
	EXPECT_EQ((uintptr_t)memory + 3, addr);
	ASSERT_OK(devbuf_addr(v, &addr));
	EXPECT_EQ((uintptr_t)memory + 3 + self->page + 1, addr);
	ASSERT_OK(devbuf_map(v, PROT_READ | PROT_WRITE, &map));
	EXPECT_EQ(memory + 3 + self->page + 1, map);
	devbuf_unref(v);
	devbuf_unref(b);
	memset(memory, 1, nbytes + 3); /* still the caller's */
	free(memory);
}

TEST_F(contract, external_memory_passes_by_the_cache)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	char one[64] = "one", two[64] = "two";
	struct devbuf *b;

	spec.external_ptr = one;
	ASSERT_OK(devbuf_create(self->a, EXTERNAL_DEVICE, 64, DEVBUF_INT8, &spec, &b));
	ASSERT_OK(devbuf_allocate(b));
	devbuf_unref(b);
	spec.external_ptr = two;
	ASSERT_OK(devbuf_create(self->a, EXTERNAL_DEVICE, 64, DEVBUF_INT8, &spec, &b));
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_OK(devbuf_copyin_at(b, 0, "TWO", 3));
	EXPECT_STREQ("one", one);
	EXPECT_STREQ("TWO", two);
	devbuf_unref(b);
}
