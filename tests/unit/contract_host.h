/* SPDX-License-Identifier: GPL-2.0-only */
/* True of the host allocator only. Part of contract.c. */

/* --- of the host allocator only --------------------------------------------------------------- */

FIXTURE(on_host)
{
	struct devbuf_allocator *a;
};

FIXTURE_VARIANT(on_host)
{
	bool lru;
};

/* clang-format off */
FIXTURE_VARIANT_ADD(on_host, host) { .lru = false };
FIXTURE_VARIANT_ADD(on_host, lru) { .lru = true };
/* clang-format on */

FIXTURE_SETUP(on_host)
{
	remember_memory();
	ASSERT_OK(open_allocator(false, variant->lru, &self->a));
}

FIXTURE_TEARDOWN(on_host)
{
	devbuf_allocator_unref(self->a);
	EXPECT_EQ(0, leaks_found());
}

TEST_F(on_host, what_only_the_driver_can)
{
	struct devbuf_device_props props = DEVBUF_DEVICE_PROPS_INIT;
	struct devbuf *b = new_bytes(self->a, 8), *out = (void *)1;
	uint64_t cursor = 0;
	uint8_t uuid[16];
	size_t offset;
	int fd = -1;

	EXPECT_EQ(-EOPNOTSUPP, devbuf_export(b, 0, &fd, &offset));
	EXPECT_SAID("driver");
	EXPECT_FALSE(devbuf_is_allocated(b));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_import(self->a, 0, &out));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_driver_instance(self->a, uuid));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_device_next(self->a, &cursor, &props));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_device_find(self->a, "SYSTEM", &props));
	EXPECT_EQ(-EINVAL, devbuf_host_allocator(NULL));
	EXPECT_EQ(-1, fd);
	EXPECT_EQ((void *)1, out);
	devbuf_unref(b);
}

TEST_F(on_host, any_device_name)
{
	struct devbuf *b;

	ASSERT_OK(devbuf_create(self->a, "my_gpu2:17", 1, DEVBUF_INT8, NULL, &b));
	EXPECT_STREQ("MY_GPU2:17", devbuf_device(b));
	devbuf_unref(b);
	ASSERT_OK(devbuf_create(self->a, "a23456789012345678901234567890", 1, DEVBUF_INT8, NULL,
				&b) == -EINVAL ?
			  0 :
			  1); /* 32 with ":0" */
	ASSERT_OK(
		devbuf_create(self->a, "a2345678901234567890123456789", 1, DEVBUF_INT8, NULL, &b));
	EXPECT_STREQ("A2345678901234567890123456789:0", devbuf_device(b));
	devbuf_unref(b);
}

TEST_F(on_host, transfer_between_devices_of_one_prefix)
{
	struct devbuf *a, *b, *c;

	ASSERT_OK(devbuf_create(self->a, "METAL:0", 8, DEVBUF_INT8, NULL, &a));
	ASSERT_OK(devbuf_create(self->a, "METAL:1", 8, DEVBUF_INT8, NULL, &b));
	ASSERT_OK(devbuf_create(self->a, "METALS:0", 8, DEVBUF_INT8, NULL, &c));
	EXPECT_TRUE(devbuf_supports_transfer(a, b));
	EXPECT_FALSE(devbuf_supports_transfer(a, c));
	EXPECT_FALSE(devbuf_supports_transfer(c, a));
	EXPECT_OK(devbuf_copy(a, c, NULL));
	devbuf_unref(c);
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(on_host, buffers_are_shared_with_the_child_of_a_fork)
{
	struct devbuf *b = new_filled(self->a, 100, 1);

	EXPECT_EQ(0, IN_CHILD(devbuf_copyin_at(b, 0, "x", 1)));
	EXPECT_OK(devbuf_copyin_at(b, 1, "y", 1));
	char *bytes;
	ASSERT_OK(devbuf_as_bytes(b, (void **)&bytes, NULL));
	EXPECT_EQ(0, memcmp(bytes, "xy", 2));
	free(bytes);
	devbuf_unref(b);
}

TEST_F(on_host, more_buffers_than_file_descriptors)
{
	struct rlimit few = { 32, 32 };
	struct devbuf *b[100];
	void *map;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &few));
	for (int i = 0; i < 100; i++) {
		b[i] = new_filled(self->a, 100, (unsigned int)i);
		ASSERT_OK(devbuf_map(b[i], PROT_READ, &map));
	}
	for (int i = 0; i < 100; i++) {
		EXPECT_TRUE(holds_pattern(b[i], (unsigned int)i));
		devbuf_unref(b[i]);
	}
}
