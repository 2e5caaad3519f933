/* SPDX-License-Identifier: GPL-2.0-only */
/* True of the driver only: devices, external memory, export and import. Part of contract.c. */

/* --- of the driver only ----------------------------------------------------------------------- */

FIXTURE(on_driver)
{
	struct devbuf_allocator *a;
	size_t page;
};

FIXTURE_VARIANT(on_driver)
{
	bool lru;
};

/* clang-format off */
FIXTURE_VARIANT_ADD(on_driver, driver) { .lru = false };
FIXTURE_VARIANT_ADD(on_driver, driver_lru) { .lru = true };
/* clang-format on */

FIXTURE_SETUP(on_driver)
{
	self->page = (size_t)sysconf(_SC_PAGESIZE);
	ASSERT_OK(open_allocator(true, variant->lru, &self->a));
}

FIXTURE_TEARDOWN(on_driver)
{
	devbuf_allocator_unref(self->a);
}

TEST_F(on_driver, open)
{
	struct devbuf_allocator *a = (void *)1;

	EXPECT_EQ(-ENOENT, devbuf_driver_open("/dev/devbuf-that-is-not", &a));
	EXPECT_SAID("/dev/devbuf-that-is-not");
	EXPECT_EQ(-EPROTO, devbuf_driver_open("/dev/null", &a));
	EXPECT_SAID("/dev/null");
	EXPECT_EQ(-EINVAL, devbuf_driver_open(NULL, NULL));
	EXPECT_EQ((void *)1, a);
	ASSERT_OK(devbuf_driver_open("/dev/devbuf", &a));
	devbuf_allocator_unref(a);
}

TEST_F(on_driver, devices)
{
	struct devbuf_device_props d = DEVBUF_DEVICE_PROPS_INIT;
	bool system = false, user = false;
	uint64_t cursor = 0;
	int rc;

	while (!(rc = devbuf_device_next(self->a, &cursor, &d))) {
		system |= !strcmp(d.name, "SYSTEM:0");
		user |= !strcmp(d.name, "USER:0");
	}
	EXPECT_EQ(-ENODEV, rc);
	EXPECT_TRUE(system && user);
	ASSERT_OK(devbuf_device_find(self->a, "system", &d));
	EXPECT_STREQ("SYSTEM:0", d.name);
	EXPECT_EQ(DEVBUF_CAN_VIEW | DEVBUF_CAN_TRANSFER | DEVBUF_CAN_COPY | DEVBUF_CAN_MAP |
			  DEVBUF_CAN_PIN | DEVBUF_CAN_EXPORT | DEVBUF_CAN_REUSE | DEVBUF_CAN_HOST,
		  d.caps & ~DEVBUF_CAN_UNCACHED);
	EXPECT_LT(0, d.total_nbytes);
	EXPECT_LE(d.free_nbytes, d.total_nbytes);
	EXPECT_LE(self->page, d.alignment);
	ASSERT_OK(devbuf_device_find(self->a, "USER", &d));
	EXPECT_TRUE(d.caps & DEVBUF_CAN_EXTERNAL);
	EXPECT_EQ(-ENODEV, devbuf_device_find(self->a, "NOWHERE", &d));
	EXPECT_EQ(-EINVAL, devbuf_device_find(self->a, "no name", &d));
	EXPECT_EQ(-EINVAL, devbuf_device_find(self->a, NULL, &d));
	EXPECT_EQ(-EINVAL, devbuf_device_find(self->a, "USER", NULL));
	EXPECT_EQ(-EINVAL, devbuf_device_next(self->a, NULL, &d));
	EXPECT_EQ(-EINVAL, devbuf_device_next(self->a, &cursor, NULL));
	EXPECT_EQ(-EINVAL, devbuf_device_next(NULL, &cursor, &d));
}

TEST_F(on_driver, instance)
{
	struct devbuf_allocator *other;
	uint8_t one[16] = "", two[16] = "";

	ASSERT_OK(open_allocator(true, false, &other));
	ASSERT_OK(devbuf_driver_instance(self->a, one));
	ASSERT_OK(devbuf_driver_instance(other, two));
	EXPECT_EQ(0, memcmp(one, two, 16));
	EXPECT_FALSE(is_zero(one, 16));
	EXPECT_EQ(-EINVAL, devbuf_driver_instance(self->a, NULL));
	devbuf_allocator_unref(other);
}

TEST_F(on_driver, external_memory_has_its_device)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	struct devbuf *b = (void *)1;
	char memory[8];

	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "USER", 8, DEVBUF_INT8, NULL, &b));
	EXPECT_SAID("external_ptr");
	spec.external_ptr = memory;
	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM", 8, DEVBUF_INT8, &spec, &b));
	EXPECT_SAID("USER:0");
	EXPECT_EQ((void *)1, b);
}

TEST_F(on_driver, external_memory_that_is_not_there)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	char *hole = mmap(NULL, 3 * self->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct devbuf *b;

	munmap(hole + self->page, self->page);
	spec.external_ptr = hole;
	ASSERT_OK(devbuf_create(self->a, "USER", 2 * self->page, DEVBUF_INT8, &spec, &b));
	EXPECT_EQ(-EFAULT, devbuf_allocate(b));
	EXPECT_FALSE(devbuf_is_allocated(b));
	devbuf_unref(b);
}

TEST_F(on_driver, external_memory_that_can_only_be_read)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	char *memory =
		mmap(NULL, self->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct devbuf_status s = DEVBUF_STATUS_INIT;
	struct devbuf *b;
	uint64_t addr;
	void *map;

	fill_pattern(memory, self->page, 1);
	ASSERT_EQ(0, mprotect(memory, self->page, PROT_READ));
	spec.external_ptr = memory;
	ASSERT_OK(devbuf_create(self->a, "USER", self->page, DEVBUF_UINT8, &spec, &b));
	ASSERT_OK(devbuf_allocate(b));
	ASSERT_OK(devbuf_get_status(b, &s));
	EXPECT_TRUE(s.read_only);
	EXPECT_TRUE(holds_pattern(b, 1));
	EXPECT_EQ(-EACCES, devbuf_copyin_at(b, 0, "x", 1));
	EXPECT_EQ(-EACCES, devbuf_map(b, PROT_READ | PROT_WRITE, &map));
	ASSERT_OK(devbuf_addr(b, &addr));
	EXPECT_EQ((uintptr_t)memory, addr);
	ASSERT_OK(devbuf_map(b, PROT_READ, &map));
	EXPECT_EQ(memory, map);
	devbuf_unref(b);
}

TEST_F(on_driver, external_memory_counts)
{
	struct rlimit none = { 0, 0 };
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	struct devbuf *b;
	char *memory = malloc(MIB);

	if (geteuid() == 0 && seteuid(65534)) /* root may lock any amount */
		SKIP(return, "cannot become another user");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &none));
	spec.external_ptr = memory;
	ASSERT_OK(devbuf_create(self->a, "USER", MIB, DEVBUF_UINT8, &spec, &b));
	EXPECT_EQ(-ENOMEM, devbuf_allocate(b));
	EXPECT_FALSE(devbuf_is_allocated(b));
	devbuf_unref(b);
	free(memory);
}

TEST_F(on_driver, copies_from_nowhere)
{
	struct devbuf *b = new_filled(self->a, 2 * self->page, 1);
	char *hole = mmap(NULL, self->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT_EQ(-EFAULT, devbuf_copyin_at(b, 0, hole, 10));
	EXPECT_SAID("pointer");
	EXPECT_EQ(-EFAULT, devbuf_copyout_at(b, 0, hole, 10));
	EXPECT_EQ(-EFAULT, devbuf_copyin(b, hole, 2 * self->page));
	EXPECT_TRUE(holds_pattern(b, 1));
	devbuf_unref(b);
}

TEST_F(on_driver, export_and_import_gives_the_same_buffer)
{
	struct devbuf *b = new_bytes(self->a, 2 * self->page), *again, *third;
	size_t offset = 99;
	int fd = -1;

	ASSERT_OK(devbuf_export(b, DEVBUF_FD_WRITE, &fd, &offset)); /* allocates */
	EXPECT_TRUE(devbuf_is_initialized(b));
	EXPECT_EQ(0, offset);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	ASSERT_OK(devbuf_import(self->a, fd, &again));
	EXPECT_EQ(b, again);
	ASSERT_OK(devbuf_import(self->a, fd, &third));
	EXPECT_EQ(b, third);
	devbuf_unref(again);
	devbuf_unref(third);
	EXPECT_OK(devbuf_copyin_at(b, 0, "still", 5));
	EXPECT_OK(devbuf_set_name(b, "still managed"));
	close(fd);
	devbuf_unref(b);
}

TEST_F(on_driver, export_offsets_and_flags)
{
	struct devbuf *b = new_filled(self->a, 4 * self->page, 1);
	struct devbuf *v = new_view(b, self->page + 5, 10), *w = new_view(b, self->page, 10);
	size_t offset = 99;
	int fd = -1;

	EXPECT_EQ(-EINVAL, devbuf_export(v, 0, &fd, NULL));
	EXPECT_SAID("5");
	EXPECT_FALSE(devbuf_is_initialized(v)); /* taken back */
	EXPECT_EQ(-EINVAL, devbuf_export(v, 2, &fd, &offset));
	EXPECT_EQ(-EINVAL, devbuf_export(v, 0, NULL, &offset));
	EXPECT_EQ(-EINVAL, devbuf_export(NULL, 0, &fd, &offset));
	EXPECT_EQ(-1, fd);
	EXPECT_EQ(99, offset);
	ASSERT_OK(devbuf_export(v, 0, &fd, &offset));
	EXPECT_EQ(5, offset);
	EXPECT_EQ((off_t)self->page, lseek(fd, 0, SEEK_END));
	close(fd);
	ASSERT_OK(devbuf_export(w, 0, &fd, NULL));
	close(fd);
	devbuf_unref(w);
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(on_driver, import_by_another_connection)
{
	struct devbuf_status s = DEVBUF_STATUS_INIT;
	struct devbuf_allocator *other;
	struct devbuf *b, *c, *v = (void *)1;
	enum devbuf_copy_path took;
	char name[DEVBUF_NAME_BYTES];
	void *map;
	int fd;

	ASSERT_OK(devbuf_create(self->a, "SYSTEM", self->page, DEVBUF_FLOAT32, NULL, &b));
	ASSERT_OK(devbuf_set_name(b, "shared"));
	ASSERT_OK(devbuf_export(b, 0, &fd, NULL));
	ASSERT_OK(devbuf_copyin_at(b, 0, "hello", 5));
	ASSERT_OK(open_allocator(true, false, &other));
	ASSERT_OK(devbuf_import(other, fd, &c));
	close(fd);
	EXPECT_NE(b, c);
	EXPECT_EQ(devbuf_id(b), devbuf_id(c));
	EXPECT_EQ(devbuf_id(b), devbuf_base_id(c));
	EXPECT_EQ(c, devbuf_base(c));
	EXPECT_EQ(self->page, devbuf_size(c));
	EXPECT_EQ(4 * self->page, devbuf_nbytes(c));
	EXPECT_TRUE(devbuf_dtype_equal(DEVBUF_FLOAT32, devbuf_dtype_of(c)));
	EXPECT_STREQ("SYSTEM:0", devbuf_device(c));
	EXPECT_EQ(other, devbuf_allocator_of(c));
	EXPECT_EQ(!variant->lru, devbuf_spec_of(c)->nolru);
	ASSERT_OK(devbuf_get_name(c, name));
	EXPECT_STREQ("shared", name);
	ASSERT_OK(devbuf_get_status(c, &s));
	EXPECT_EQ(DEVBUF_MAY_READ | DEVBUF_MAY_EXPORT, s.rights);
	EXPECT_TRUE(devbuf_is_initialized(c));

	ASSERT_OK(devbuf_map(c, PROT_READ, &map));
	EXPECT_EQ(0, memcmp(map, "hello", 5));
	EXPECT_EQ(-EBUSY, devbuf_map(c, PROT_READ | PROT_WRITE, &map));
	EXPECT_EQ(-EACCES, devbuf_copyin_at(c, 0, "x", 1)); /* exported to be read */
	EXPECT_EQ(-EACCES, devbuf_set_name(c, "mine"));
	EXPECT_EQ(-EACCES, devbuf_deallocate(c));
	EXPECT_OK(devbuf_ensure_allocated(c));
	EXPECT_EQ(-EACCES, devbuf_copy(c, c, &took));

	ASSERT_OK(devbuf_deallocate(b)); /* the owner's matter: nobody holds it up */
	EXPECT_FALSE(devbuf_is_initialized(c));
	EXPECT_EQ(-ENODATA, devbuf_copyout_at(c, 0, name, 1));
	EXPECT_EQ(-EACCES, devbuf_allocate(c));
	EXPECT_EQ(0, memcmp(map, "hello", 5)); /* what was mapped stays */
	ASSERT_OK(devbuf_view(c, 1, DEVBUF_INT8, 3, &v));
	EXPECT_EQ(c, devbuf_base(v));
	devbuf_unref(b);
	EXPECT_EQ(0, memcmp(map, "hello", 5));
	devbuf_unref(c);
	devbuf_unref(v);
	devbuf_allocator_unref(other);
}

TEST_F(on_driver, import_of_a_view_alone)
{
	struct devbuf_allocator *other;
	struct devbuf *b = new_filled(self->a, 4 * self->page, 1), *v, *c, *d = (void *)1, *w;
	char byte;
	void *map;
	int fd;

	v = new_view(b, self->page, self->page);
	ASSERT_OK(devbuf_export(v, DEVBUF_FD_WRITE, &fd, NULL));
	ASSERT_OK(open_allocator(true, false, &other));
	ASSERT_OK(devbuf_import(other, fd, &c));
	EXPECT_EQ(devbuf_id(v), devbuf_id(c));
	EXPECT_EQ(devbuf_id(b), devbuf_base_id(c));
	EXPECT_EQ(NULL, devbuf_base(c)); /* which did not come with it */
	EXPECT_EQ(self->page, devbuf_offset(c));
	EXPECT_EQ(self->page, devbuf_nbytes(c));
	EXPECT_TRUE(devbuf_is_allocated(c));
	EXPECT_TRUE(devbuf_is_initialized(c));
	EXPECT_EQ(c, devbuf_add_ref(c, 2));
	EXPECT_EQ(2, devbuf_uop_refcount(c));
	EXPECT_EQ(-ENOENT, devbuf_open_id(other, devbuf_id(b), &d));

	EXPECT_OK(devbuf_copyin_at(c, 0, "A", 1));
	EXPECT_OK(devbuf_copyout_at(b, self->page, &byte, 1));
	EXPECT_EQ('A', byte);
	EXPECT_EQ(-EACCES, devbuf_view(c, self->page + 1, DEVBUF_INT8, 0, &d));
	EXPECT_EQ((void *)1, d);
	w = new_view(c, 10, 5);
	ASSERT_NE(NULL, w);
	EXPECT_EQ(NULL, devbuf_base(w));
	EXPECT_EQ(self->page + 10, devbuf_offset(w));
	EXPECT_EQ(other, devbuf_allocator_of(w));
	EXPECT_OK(devbuf_allocate(w));
	EXPECT_OK(devbuf_copyin(w, "abcde", 5));
	ASSERT_OK(devbuf_map(c, PROT_READ, &map));
	EXPECT_EQ(0, memcmp((char *)map + 10, "abcde", 5));
	devbuf_unref(w);
	devbuf_unref(c);
	close(fd);

	/* With its base here, it is found. */
	ASSERT_OK(devbuf_export(b, DEVBUF_FD_WRITE, &fd, NULL));
	ASSERT_OK(devbuf_import(other, fd, &d));
	close(fd);
	ASSERT_OK(devbuf_export(v, DEVBUF_FD_WRITE, &fd, NULL));
	ASSERT_OK(devbuf_import(other, fd, &c));
	close(fd);
	EXPECT_EQ(d, devbuf_base(c));
	devbuf_unref(d);
	EXPECT_EQ(4 * self->page, devbuf_nbytes(devbuf_base(c)));
	devbuf_unref(c);
	devbuf_unref(v);
	devbuf_unref(b);
	devbuf_allocator_unref(other);
}

TEST_F(on_driver, export_of_an_imported_view_that_is_not_whole_pages)
{
	struct devbuf_allocator *other;
	struct devbuf *b = new_filled(self->a, 2 * self->page, 1), *v = new_view(b, 10, 10), *c;
	size_t offset;
	int fd, again = -1;

	ASSERT_OK(devbuf_export(v, 0, &fd, &offset));
	ASSERT_OK(open_allocator(true, false, &other));
	ASSERT_OK(devbuf_import(other, fd, &c));
	EXPECT_EQ(-EACCES, devbuf_export(c, 0, &again, &offset));
	EXPECT_EQ(-EACCES, devbuf_map(c, PROT_READ, (void **)&offset));
	EXPECT_EQ(-1, again);
	close(fd);
	devbuf_unref(c);
	devbuf_unref(v);
	devbuf_unref(b);
	devbuf_allocator_unref(other);
}

TEST_F(on_driver, import_of_what_is_no_dma_buf)
{
	struct devbuf *out = (void *)1;
	int fd = memfd_create("file", MFD_CLOEXEC);

	EXPECT_EQ(-EINVAL, devbuf_import(self->a, fd, &out));
	EXPECT_EQ(-EBADF, devbuf_import(self->a, -1, &out));
	EXPECT_SAID("-1");
	close(fd);
	EXPECT_EQ(-EBADF, devbuf_import(self->a, fd, &out));
	EXPECT_EQ(-EINVAL, devbuf_import(self->a, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_import(NULL, 0, &out));
	EXPECT_EQ((void *)1, out);
}

TEST_F(on_driver, exports_outlive_buffer_and_connection)
{
	struct devbuf_allocator *one, *two;
	struct devbuf *b, *c;
	int fd;

	ASSERT_OK(open_allocator(true, variant->lru, &one));
	b = new_filled(one, self->page, 7);
	ASSERT_OK(devbuf_export(b, DEVBUF_FD_WRITE, &fd, NULL));
	devbuf_unref(b);
	devbuf_allocator_unref(one);
	ASSERT_OK(open_allocator(true, false, &two));
	ASSERT_OK(devbuf_import(two, fd, &c));
	close(fd);
	EXPECT_TRUE(holds_pattern(c, 7));
	devbuf_unref(c);
	devbuf_allocator_unref(two);
}
