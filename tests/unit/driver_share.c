// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the library asks of the driver: mappings, export and import with the
 * books of handles, and nothing at all after fork. driver_mock.h plays the
 * driver.
 */
#include "driver_mock.h"

#define ALLOCATED (DEVBUF_STATE_BASE_ALLOCATED | DEVBUF_STATE_ALLOCATED)

/* --- mappings --------------------------------------------------------------------------------- */

/* The node is a memfd: what lies at id times page size is what a mapping must show. */
static void fill_node(__u64 id, size_t nbytes, unsigned int seed)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *bytes = malloc(nbytes);

	fill_pattern(bytes, nbytes, seed);
	if (pwrite(mock.node, bytes, nbytes, (off_t)(id * page)) != (ssize_t)nbytes)
		abort();
	free(bytes);
}

TEST_F(driver, map_is_at_the_id)
{
	struct devbuf *b = new_mocked(self->a, 3 * self->page, 7);
	char *map, *again;

	fill_node(7, 3 * self->page, 1);
	expect_state(7, 0);
	EXPECT_EQ(-ENODATA, devbuf_map(b, PROT_READ, (void **)&map));
	expect_state(7, ALLOCATED);
	ASSERT_OK(devbuf_map(b, PROT_READ | PROT_WRITE, (void **)&map));
	EXPECT_TRUE(is_pattern(map, 3 * self->page, 1));
	map[0] = 'x'; /* shared */
	ASSERT_EQ(1, pread(mock.node, map + 1, 1, (off_t)(7 * self->page)));
	EXPECT_EQ('x', map[1]);
	expect_state(7, ALLOCATED);
	ASSERT_OK(devbuf_map(b, PROT_READ, (void **)&again));
	EXPECT_EQ(map, again);
	expect_state(7, DEVBUF_STATE_BASE_ALLOCATED); /* the owner deallocated it, elsewhere */
	EXPECT_EQ(-ENODATA, devbuf_map(b, PROT_READ, (void **)&again));
	EXPECT_OK(devbuf_unmap(b));
	EXPECT_OK(devbuf_unmap(b));
	EXPECT_EQ(-EINVAL, devbuf_unmap(b));
	unref_mocked(b);
}

TEST_F(driver, map_of_a_view_begins_with_its_page)
{
	struct devbuf *b = new_mocked(self->a, 5 * self->page, 7);
	struct devbuf *v = view_mocked(b, 2 * self->page + 9, self->page, 8);
	char bytes[9], *map;

	fill_node(8, 2 * self->page, 1); /* the driver's business: pages 2 and 3 */
	ASSERT_EQ(9, pread(mock.node, bytes, 9, (off_t)(8 * self->page + 9)));
	expect_state(8, ALLOCATED);
	ASSERT_OK(devbuf_map(v, PROT_READ, (void **)&map));
	EXPECT_EQ(9, (uintptr_t)map % self->page);
	EXPECT_EQ(0, memcmp(bytes, map, 9));
	EXPECT_LT(0, map[self->page - 1] + 256); /* within the mapping */
	devbuf_unref(b);
	expect_id(DEVBUF_DESTROY, 8, 0);
	expect_id(DEVBUF_DESTROY, 7, 0);
	devbuf_unref(v);
}

TEST_F(driver, addr_keeps_the_mapping)
{
	struct devbuf *b = new_mocked(self->a, self->page, 7), *v = view_mocked(b, 100, 10, 8);
	uint64_t addr;

	fill_node(7, self->page, 1);
	expect_state(8, 0); /* allocates the view */
	expect_allocate(8, 0);
	expect_state(7, ALLOCATED);
	ASSERT_OK(devbuf_addr(v, &addr)); /* in the base's mapping */
	EXPECT_TRUE(is_pattern((void *)(uintptr_t)(addr - 100), self->page, 1));
	expect_id(DEVBUF_DEALLOCATE, 8, 0);
	EXPECT_OK(devbuf_deallocate(v));
	EXPECT_TRUE(is_pattern((void *)(uintptr_t)(addr - 100), self->page, 1));
	expect_id(DEVBUF_DEALLOCATE, 7, EBUSY); /* another view, say */
	EXPECT_EQ(-EBUSY, devbuf_deallocate(b));
	EXPECT_TRUE(is_pattern((void *)(uintptr_t)(addr - 100), self->page, 1));
	unref_mocked(v);
	unref_mocked(b);
}

TEST_F(driver, map_fails)
{
	struct devbuf *b = new_mocked(self->a, self->page, UINT64_MAX / self->page); /* too far */
	void *map = (void *)1;
	uint64_t addr = 1;

	for (int i = 0; i < 2; i++) {
		expect_state(devbuf_id(b), ALLOCATED);
		EXPECT_EQ(-EOVERFLOW, devbuf_map(b, PROT_READ, &map));
	}
	EXPECT_EQ((void *)1, map);
	expect_state(devbuf_id(b), ALLOCATED);
	expect_state(devbuf_id(b), ALLOCATED);
	EXPECT_EQ(-EOVERFLOW, devbuf_addr(b, &addr));
	EXPECT_EQ(1, addr);
	unref_mocked(b);
}

/* --- export ----------------------------------------------------------------------------------- */

static void expect_export(__u64 id, __u32 flags, int error, int fd, __u64 offset)
{
	struct devbuf_export export = { .size = sizeof(export), .flags = flags, .id = id };
	struct devbuf_export reply = export;

	reply.out_fd = fd;
	reply.out_offset = offset;
	expect(DEVBUF_EXPORT, &export, error, &reply);
}

TEST_F(driver, export)
{
	struct devbuf *b = new_mocked(self->a, 100, 7);
	size_t offset = 99;
	int fd = -1;

	expect_state(7, ALLOCATED);
	expect_export(7, DEVBUF_EXPORT_WRITE, 0, 1234, 0);
	ASSERT_OK(devbuf_export(b, DEVBUF_FD_WRITE, &fd, NULL));
	EXPECT_EQ(1234, fd);
	expect_state(7, ALLOCATED);
	expect_export(7, 0, 0, 1235, 50);
	ASSERT_OK(devbuf_export(b, 0, &fd, &offset));
	EXPECT_EQ(1235, fd);
	EXPECT_EQ(50, offset);
	unref_mocked(b);
}

TEST_F(driver, export_that_begins_elsewhere)
{
	struct devbuf *b = new_mocked(self->a, 100, 7);
	int made = dup(mock.node), fd = -1;

	expect_state(7, ALLOCATED);
	expect_export(7, 0, 0, made, 50);
	EXPECT_EQ(-EINVAL, devbuf_export(b, 0, &fd, NULL));
	EXPECT_SAID("50");
	EXPECT_EQ(-1, fd);
	EXPECT_EQ(-1, fcntl(made, F_GETFD)); /* closed */
	unref_mocked(b);
}

TEST_F(driver, export_allocates_and_takes_back)
{
	struct devbuf *b = new_mocked(self->a, 100, 7), *v = view_mocked(b, 1, 1, 8);
	size_t offset = 99;
	int fd = -1;

	expect_state(8, 0);
	expect_allocate(8, 0);
	expect_export(8, 0, EACCES, 55, 1);
	expect_id(DEVBUF_DEALLOCATE, 8, 0);
	expect_id(DEVBUF_DEALLOCATE, 7, 0);
	EXPECT_EQ(-EACCES, devbuf_export(v, 0, &fd, &offset));
	EXPECT_SAID("cannot export view 8 of 1 bytes");
	EXPECT_EQ(-1, fd);
	EXPECT_EQ(99, offset);
	unref_mocked(v);
	unref_mocked(b);
}

/* --- import ----------------------------------------------------------------------------------- */

static void expect_import(int fd, int error, __u64 id)
{
	struct devbuf_import import = { .size = sizeof(import), .fd = fd }, reply = import;

	reply.out_id = id;
	expect(DEVBUF_IMPORT, &import, error, &reply);
}

static struct devbuf_query query_of(__u64 base_id, __u64 offset, __u64 nbytes, devbuf_dtype dtype)
{
	return (struct devbuf_query){
		.out_base_id = base_id,
		.out_offset = offset,
		.out_nbytes = nbytes,
		.out_dtype = dtype_bytes(dtype),
		.out_device = "SYSTEM:0",
	};
}

TEST_F(driver, import_of_a_base)
{
	struct devbuf_query q = query_of(70, 0, 64, DEVBUF_FLOAT64);
	struct devbuf *b, *again;

	q.out_create_flags = DEVBUF_CREATE_UNCACHED | DEVBUF_CREATE_HOST | DEVBUF_CREATE_REUSE;
	q.out_alignment = 256;
	expect_import(3, 0, 70);
	expect_query(70, 0, q);
	expect_devices();
	ASSERT_OK(devbuf_import(self->a, 3, &b));
	EXPECT_EQ(70, devbuf_id(b));
	EXPECT_EQ(70, devbuf_base_id(b));
	EXPECT_EQ(b, devbuf_base(b));
	EXPECT_EQ(8, devbuf_size(b));
	EXPECT_STREQ("SYSTEM:0", devbuf_device(b));
	EXPECT_TRUE(devbuf_supports_offset(b));
	EXPECT_EQ(sizeof(struct devbuf_spec), devbuf_spec_of(b)->size);
	EXPECT_TRUE(devbuf_spec_of(b)->uncached && devbuf_spec_of(b)->host);
	EXPECT_FALSE(devbuf_spec_of(b)->cpu_access || devbuf_spec_of(b)->contiguous ||
		     devbuf_spec_of(b)->nolru);
	EXPECT_EQ(256, devbuf_spec_of(b)->alignment);
	EXPECT_EQ(-1, devbuf_spec_of(b)->numa_node);

	expect_import(4, 0, 70); /* again: the same struct, with its one count of the handle */
	expect_id(DEVBUF_DESTROY, 70, 0);
	ASSERT_OK(devbuf_import(self->a, 4, &again));
	EXPECT_EQ(b, again);
	devbuf_unref(again);
	unref_mocked(b);
}

TEST_F(driver, import_of_an_own_buffer)
{
	struct devbuf *b = new_mocked(self->a, 100, 7), *again;

	expect_import(3, 0, 7);
	expect_id(DEVBUF_DESTROY, 7, 0);
	ASSERT_OK(devbuf_import(self->a, 3, &again));
	EXPECT_EQ(b, again);
	devbuf_unref(b);
	unref_mocked(again);
}

TEST_F(driver, import_of_a_view)
{
	struct devbuf *v, *w, *b;

	expect_import(3, 0, 71);
	expect_query(71, 0, query_of(70, 16, 8, DEVBUF_UINT8));
	expect_devices();
	ASSERT_OK(devbuf_import(self->a, 3, &v));
	EXPECT_EQ(NULL, devbuf_base(v));
	EXPECT_EQ(self->a, devbuf_allocator_of(v));
	EXPECT_EQ(16, devbuf_offset(v));
	/* The end of the base is not known here; the driver checks. */
	expect_view(71, 1, 1000, DEVBUF_UINT8, EACCES, 0);
	EXPECT_EQ(-EACCES, devbuf_view(v, 1000, DEVBUF_UINT8, 1, &w));
	w = view_mocked(v, 1, 2, 72);
	EXPECT_EQ(17, devbuf_offset(w));
	EXPECT_EQ(70, devbuf_base_id(w));
	unref_mocked(w);
	unref_mocked(v);

	/* With the base here it is linked, and held. */
	expect_import(4, 0, 70);
	expect_query(70, 0, query_of(70, 0, 64, DEVBUF_UINT8));
	ASSERT_OK(devbuf_import(self->a, 4, &b));
	expect_import(3, 0, 71);
	expect_query(71, 0, query_of(70, 16, 8, DEVBUF_UINT8));
	ASSERT_OK(devbuf_import(self->a, 3, &v));
	EXPECT_EQ(b, devbuf_base(v));
	devbuf_unref(b);
	expect_id(DEVBUF_DESTROY, 71, 0);
	expect_id(DEVBUF_DESTROY, 70, 0);
	devbuf_unref(v);
}

TEST_F(driver, import_of_unknown_types)
{
	static const devbuf_dtype types[] = { { 0, 0, 0 }, { 99, 8, 1 }, { 0, 64, 1 } };
	struct devbuf *b;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		expect_import(3, 0, 70 + i);
		expect_query(70 + i, 0, query_of(70 + i, 0, 65, types[i])); /* no multiple of 8 */
		if (!i)
			expect_devices();
		ASSERT_OK(devbuf_import(self->a, 3, &b));
		EXPECT_TRUE(devbuf_dtype_equal(DEVBUF_UINT8, devbuf_dtype_of(b)));
		EXPECT_EQ(65, devbuf_size(b));
		unref_mocked(b);
	}
}

TEST_F(driver, import_when_the_device_is_gone)
{
	struct devbuf_query q = query_of(70, 0, 64, DEVBUF_UINT8);
	struct devbuf *b;

	memcpy(q.out_device, "GPU:0\0\0\0", 8);
	expect_import(3, 0, 70);
	expect_query(70, 0, q);
	expect_devices();
	ASSERT_OK(devbuf_import(self->a, 3, &b));
	EXPECT_STREQ("GPU:0", devbuf_device(b));
	EXPECT_FALSE(devbuf_supports_offset(b));
	EXPECT_FALSE(devbuf_supports_transfer(b, b));
	unref_mocked(b);
}

TEST_F(driver, import_fails)
{
	static const int errnos[] = { EINVAL, EBADF, EOPNOTSUPP, ENODEV, ENOMEM, EPERM };
	struct devbuf *b = (void *)1;

	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++) {
		expect_import(33, errnos[i], 0);
		EXPECT_EQ(-errnos[i], devbuf_import(self->a, 33, &b));
		EXPECT_SAID("file descriptor 33");
	}
	expect_import(3, 0, 70); /* the handle is given back when nothing comes of it */
	expect_query(70, EIO, query_of(70, 0, 64, DEVBUF_UINT8));
	expect_id(DEVBUF_DESTROY, 70, 0);
	EXPECT_EQ(-EIO, devbuf_import(self->a, 3, &b));
	EXPECT_EQ((void *)1, b);
}

TEST_F(driver, open_id_and_references)
{
	struct devbuf_allocator *lru;
	struct devbuf *b = new_mocked(self->a, 100, 7), *again;

	ASSERT_OK(devbuf_lru_allocator(self->a, &lru));
	ASSERT_OK(devbuf_open_id(lru, 7, &again)); /* one connection, one table */
	EXPECT_EQ(b, again);
	devbuf_unref(b);
	unref_mocked(again);
	EXPECT_EQ(-ENOENT, devbuf_open_id(self->a, 7, &again));
	devbuf_allocator_unref(lru);
}

/* --- fork ------------------------------------------------------------------------------------- */

static int child(struct devbuf_allocator *a, struct devbuf *b, struct devbuf *v)
{
	char bytes[100];
	struct devbuf *out;
	void *map;

	if (devbuf_create(a, "SYSTEM", 1, DEVBUF_INT8, NULL, &out) != -EPERM ||
	    devbuf_import(a, 3, &out) != -EPERM || devbuf_open_id(a, 7, &out) != -EPERM ||
	    devbuf_allocate(b) != -EPERM || devbuf_deallocate(v) != -EPERM ||
	    devbuf_copyin(b, bytes, 100) != -EPERM || devbuf_copy(b, b, NULL) != -EPERM ||
	    devbuf_map(b, PROT_READ, &map) != -EPERM || devbuf_unmap(b) != -EPERM)
		return -1;
	devbuf_unref(v);
	devbuf_unref(b);
	devbuf_allocator_unref(a);
	/* Not one command was given. */
	return mock.surprises || mock.done != mock.nr_steps ? -2 : 0;
}

static void test_fork(struct __test_metadata *_metadata, struct devbuf_allocator *a)
{
	struct devbuf *b = new_mocked(a, 100, 7), *v = view_mocked(b, 1, 1, 8);
	void *map;

	fill_node(7, 4096, 1);
	expect_state(7, ALLOCATED);
	ASSERT_OK(devbuf_map(b, PROT_READ, &map));
	EXPECT_EQ(0, IN_CHILD(child(a, b, v)));
	EXPECT_TRUE(is_pattern(map, 100, 1));
	unref_mocked(v);
	unref_mocked(b);
}

TEST_F(driver, fork)
{
	test_fork(_metadata, self->a);
}

TEST_F(driver, fork_where_pages_cannot_be_wiped)
{
	struct devbuf_allocator *a;
	char path[32];

	mock.fail_madvise = true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", mock.node);
	expect_info();
	ASSERT_OK(devbuf_driver_open(path, &a));
	test_fork(_metadata, a);
	devbuf_allocator_unref(a);
}

TEST_HARNESS_MAIN
