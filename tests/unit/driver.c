// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the library asks of the driver: each command's argument byte by byte,
 * how it goes on after signals, and how every errno comes back. driver_mock.h
 * plays the driver.
 */
#include "driver_mock.h"

/* The header's list, and one that is not in it. */
static const int errnos[] = {
	EINVAL,     EOVERFLOW, ENOENT,    EACCES, EPERM,  EALREADY, EBUSY,
	EOPNOTSUPP, ENODEV,    ENOMEM,    EMFILE, ENFILE, EBADF,    EFAULT,
	ETIMEDOUT,  EIO,       ECANCELED, ENOTTY, E2BIG,  EDOM,
};

/* --- open ------------------------------------------------------------------------------------- */

static int open_with(struct devbuf_info reply, int error)
{
	struct devbuf_info info = { .size = sizeof(info) };
	struct devbuf_allocator *a = (void *)1;
	char path[32];
	int rc;

	reply.size = sizeof(reply);
	expect(DEVBUF_INFO, &info, error, &reply);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", mock.node);
	rc = devbuf_driver_open(path, &a);
	if (!rc)
		devbuf_allocator_unref(a);
	else if (a != (void *)1)
		abort();
	return rc;
}

TEST_F(driver, open_another_abi)
{
	struct devbuf_info info = { .out_abi_version = DEVBUF_ABI_VERSION, .out_page_size = 4096 };

	EXPECT_EQ(0, open_with(info, 0));
	info.out_abi_version++;
	EXPECT_EQ(-EPROTO, open_with(info, 0));
	EXPECT_SAID("ABI 2");
	info.out_abi_version = 0;
	EXPECT_EQ(-EPROTO, open_with(info, 0));
	info.out_abi_version = DEVBUF_ABI_VERSION;
	info.out_page_size = 0;
	EXPECT_EQ(-EPROTO, open_with(info, 0));
	info.out_page_size = 4097;
	EXPECT_EQ(-EPROTO, open_with(info, 0));
}

TEST_F(driver, open_what_is_no_driver)
{
	struct devbuf_info info = { .out_abi_version = DEVBUF_ABI_VERSION, .out_page_size = 4096 };

	EXPECT_EQ(-EPROTO, open_with(info, ENOTTY));
	EXPECT_EQ(-EPROTO, open_with(info, EINVAL));
	EXPECT_SAID("not a devbuf driver");
}

TEST_F(driver, open_fails)
{
	static const struct {
		int error, result;
	} cases[] = {
		{ ENOENT, -ENOENT }, { ENOTDIR, -ENOENT }, { ENXIO, -ENOENT },
		{ ENODEV, -ENOENT }, { EACCES, -EACCES },  { EPERM, -EACCES },
		{ EMFILE, -EMFILE }, { ENFILE, -ENFILE },  { ENOMEM, -ENOMEM },
	};
	struct devbuf_allocator *a = (void *)1;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[32];

		snprintf(path, sizeof(path), "/mock/%d", cases[i].error);
		EXPECT_EQ(cases[i].result, devbuf_driver_open(path, &a));
		EXPECT_SAID(path);
	}
	EXPECT_EQ((void *)1, a);
}

TEST_F(driver, instance)
{
	uint8_t uuid[16];

	ASSERT_OK(devbuf_driver_instance(self->a, uuid));
	EXPECT_EQ(0, memcmp(uuid, "instance of mock", 16));
}

/* --- devices ---------------------------------------------------------------------------------- */

TEST_F(driver, devices_are_walked_once)
{
	struct devbuf *b = new_mocked(self->a, 100, 7), *c, *d = (void *)1;

	c = next_mocked(self->a, 50, 8); /* no walk */
	expect_devices(); /* it may have come meanwhile */
	EXPECT_EQ(-ENODEV, devbuf_create(self->a, "GPU:3", 1, DEVBUF_INT8, NULL, &d));
	EXPECT_STREQ("the driver has no device GPU:3; it has SYSTEM:0 USER:0", devbuf_last_error());
	EXPECT_EQ((void *)1, d);
	unref_mocked(c);
	unref_mocked(b);
}

TEST_F(driver, devices_cannot_be_walked)
{
	struct devbuf_device_info info = { .size = sizeof(info) };
	struct devbuf *b = (void *)1;

	expect(DEVBUF_DEVICE_INFO, &info, ENOTTY, NULL);
	EXPECT_EQ(-ENOTTY, devbuf_create(self->a, "SYSTEM", 1, DEVBUF_INT8, NULL, &b));
	EXPECT_EQ((void *)1, b);
}

TEST_F(driver, device_props)
{
	struct devbuf_device_info info = { .size = sizeof(info) }, reply = info;
	struct devbuf_device_props props = DEVBUF_DEVICE_PROPS_INIT;
	uint64_t cursor = 0;

	reply.out_cursor = 5;
	reply.out_caps = DEVBUF_CAP_MAP | DEVBUF_CAP_EXTERNAL;
	reply.out_alignment = 65536;
	reply.out_total_nbytes = 1ULL << 40;
	reply.out_free_nbytes = 12345;
	reply.out_numa_node = -1;
	memset(reply.out_name, 'A', sizeof(reply.out_name)); /* a driver that forgets the NUL */
	expect(DEVBUF_DEVICE_INFO, &info, 0, &reply);
	ASSERT_OK(devbuf_device_next(self->a, &cursor, &props));
	EXPECT_EQ(5, cursor);
	EXPECT_EQ(DEVBUF_CAN_MAP | DEVBUF_CAN_EXTERNAL, props.caps);
	EXPECT_EQ(65536, props.alignment);
	EXPECT_EQ(1ULL << 40, props.total_nbytes);
	EXPECT_EQ(12345, props.free_nbytes);
	EXPECT_EQ(-1, props.numa_node);
	EXPECT_EQ(DEVBUF_DEVICE_BYTES - 1, strlen(props.name));
	info.cursor = 5;
	expect(DEVBUF_DEVICE_INFO, &info, ENODEV, NULL);
	EXPECT_EQ(-ENODEV, devbuf_device_next(self->a, &cursor, &props));
	EXPECT_EQ(5, cursor);
}

/* --- create, view ----------------------------------------------------------------------------- */

static int create_with(struct devbuf_allocator *a, const char *device, struct devbuf_spec spec,
		       struct devbuf_create expected)
{
	struct devbuf *b;
	int rc;

	expect_create(expected, 0, 99);
	rc = devbuf_create(a, device, 16, DEVBUF_BFLOAT16, &spec, &b);
	if (!rc)
		unref_mocked(b);
	return rc;
}

TEST_F(driver, create_hands_on_the_spec)
{
	struct devbuf_create plain = create_of("SYSTEM:0", 32, DEVBUF_BFLOAT16), create;
	const struct devbuf_spec defaults = DEVBUF_SPEC_INIT;
	struct devbuf_spec spec;
	char memory[32];

	EXPECT_EQ(0x00011004, plain.dtype); /* {4, 16, 1} as it lies in memory */
	expect_devices();
	EXPECT_OK(create_with(self->a, "system", defaults, plain));
	spec = defaults, create = plain;
	spec.uncached = true, create.flags = DEVBUF_CREATE_UNCACHED;
	EXPECT_OK(create_with(self->a, "SYSTEM", spec, create));
	spec = defaults;
	spec.cpu_access = true, create.flags = DEVBUF_CREATE_CPU_ACCESS;
	EXPECT_OK(create_with(self->a, "SYSTEM", spec, create));
	spec = defaults;
	spec.host = true, create.flags = DEVBUF_CREATE_HOST;
	EXPECT_OK(create_with(self->a, "SYSTEM", spec, create));
	spec = defaults;
	spec.contiguous = true, create.flags = DEVBUF_CREATE_CONTIGUOUS;
	EXPECT_OK(create_with(self->a, "SYSTEM", spec, create));
	spec = defaults, create = plain;
	spec.nolru = true;
	EXPECT_OK(create_with(self->a, "SYSTEM", spec, create));
	spec = defaults;
	spec.alignment = 8192, create.alignment = 8192;
	EXPECT_OK(create_with(self->a, "SYSTEM", spec, create));
	spec = defaults, create = plain;
	spec.numa_node = 0;
	EXPECT_OK(create_with(self->a, "SYSTEM", spec, create));
	spec = defaults, create = create_of("USER:0", 32, DEVBUF_BFLOAT16);
	spec.external_ptr = memory, create.user_addr = (uintptr_t)memory;
	EXPECT_OK(create_with(self->a, "USER", spec, create));
}

TEST_F(driver, lru_asks_the_driver_to_keep)
{
	struct devbuf_create create = create_of("SYSTEM:0", 32, DEVBUF_BFLOAT16);
	struct devbuf_spec spec = DEVBUF_SPEC_INIT, nolru = spec, external = spec;
	struct devbuf_allocator *lru;
	char memory[32];

	ASSERT_OK(devbuf_lru_allocator(self->a, &lru));
	expect_devices();
	create.flags = DEVBUF_CREATE_REUSE;
	EXPECT_OK(create_with(lru, "SYSTEM", spec, create));
	nolru.nolru = true, create.flags = 0;
	EXPECT_OK(create_with(lru, "SYSTEM", nolru, create));
	EXPECT_OK(create_with(self->a, "SYSTEM", spec, create));
	external.external_ptr = memory;
	create = create_of("USER:0", 32, DEVBUF_BFLOAT16);
	create.user_addr = (uintptr_t)memory;
	EXPECT_OK(create_with(lru, "USER", external, create));
	devbuf_allocator_unref(lru);
}

TEST_F(driver, create_and_view_fail)
{
	struct devbuf *b = new_mocked(self->a, 100, 7), *out = (void *)1;

	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++) {
		expect_create(create_of("SYSTEM:0", 64, DEVBUF_INT8), errnos[i], 99);
		EXPECT_EQ(-errnos[i],
			  devbuf_create(self->a, "SYSTEM", 64, DEVBUF_INT8, NULL, &out));
		EXPECT_SAID("64 bytes on SYSTEM:0: ");
		expect_view(7, 10, 12, DEVBUF_INT32, errnos[i], 99);
		EXPECT_EQ(-errnos[i], devbuf_view(b, 3, DEVBUF_INT32, 10, &out));
		EXPECT_SAID("12 bytes at 10 of buffer 7 of 100: ");
	}
	EXPECT_EQ((void *)1, out);
	unref_mocked(b);
}

TEST_F(driver, views_are_made_of_what_was_given)
{
	struct devbuf *b = new_mocked(self->a, 100, 7), *v = view_mocked(b, 20, 10, 8);
	struct devbuf *w = view_mocked(v, 5, 50, 9); /* id and offset are the parent's */

	EXPECT_EQ(25, devbuf_offset(w));
	EXPECT_EQ(7, devbuf_base_id(w));
	EXPECT_EQ(b, devbuf_base(w));
	devbuf_unref(b); /* its views hold it */
	unref_mocked(v);
	expect_id(DEVBUF_DESTROY, 9, 0);
	expect_id(DEVBUF_DESTROY, 7, 0); /* after its last view */
	devbuf_unref(w);
}

TEST_F(driver, what_fails_here_asks_nothing_of_the_driver)
{
	struct devbuf *b = new_mocked(self->a, 100, 7), *out = (void *)1;
	char bytes[8];
	size_t n;
	int fd;

	EXPECT_EQ(-EINVAL, devbuf_create(self->a, "SYSTEM", 0, DEVBUF_INT8, NULL, &out));
	EXPECT_EQ(-EINVAL, devbuf_view(b, 1, DEVBUF_INT8, 100, &out));
	EXPECT_EQ(-EINVAL, devbuf_copyin(b, bytes, 8));
	EXPECT_EQ(-EINVAL, devbuf_copyout_at(b, 93, bytes, 8));
	EXPECT_EQ(-EINVAL, devbuf_sync(b, 0, 101, DEVBUF_CPU_READ));
	EXPECT_EQ(-EINVAL, devbuf_set_name(b, "\n"));
	EXPECT_EQ(-EINVAL, devbuf_export(b, 2, &fd, &n));
	EXPECT_EQ(-EINVAL, devbuf_copy_at(b, 0, b, 0, 0, 0, NULL));
	EXPECT_EQ(-ENOENT, devbuf_open_id(self->a, 8, &out));
	EXPECT_EQ(3 + 1 + 1, mock.done);
	unref_mocked(b);
}

/* --- memory and state ------------------------------------------------------------------------- */

TEST_F(driver, allocate_and_deallocate)
{
	struct devbuf *b = new_mocked(self->a, 100, 7);

	expect_allocate(7, 0);
	EXPECT_OK(devbuf_allocate(b));
	expect_id(DEVBUF_DEALLOCATE, 7, 0);
	EXPECT_OK(devbuf_deallocate(b));
	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++) {
		expect_allocate(7, errnos[i]);
		EXPECT_EQ(-errnos[i], devbuf_allocate(b));
		EXPECT_SAID("cannot allocate buffer 7 of 100 bytes on SYSTEM:0: ");
		expect_id(DEVBUF_DEALLOCATE, 7, errnos[i]);
		EXPECT_EQ(-errnos[i], devbuf_deallocate(b));
	}
	unref_mocked(b);
}

TEST_F(driver, ensure_allocated_asks_first)
{
	struct devbuf *b = new_mocked(self->a, 100, 7);

	expect_state(7, DEVBUF_STATE_BASE_ALLOCATED | DEVBUF_STATE_ALLOCATED);
	EXPECT_OK(devbuf_ensure_allocated(b)); /* nothing to do, whatever the rights */
	expect_state(7, DEVBUF_STATE_BASE_ALLOCATED);
	expect_allocate(7, 0);
	EXPECT_OK(devbuf_ensure_allocated(b));
	expect_state(7, 0);
	expect_allocate(7, EALREADY); /* another thread was faster */
	EXPECT_OK(devbuf_ensure_allocated(b));
	expect_state(7, 0);
	expect_allocate(7, ENOMEM);
	EXPECT_EQ(-ENOMEM, devbuf_ensure_allocated(b));
	unref_mocked(b);
}

TEST_F(driver, state_is_the_driver_s)
{
	struct devbuf_status s = DEVBUF_STATUS_INIT;
	struct devbuf *b = new_mocked(self->a, 100, 7);

	expect_state(7, DEVBUF_STATE_BASE_ALLOCATED);
	EXPECT_TRUE(devbuf_is_allocated(b));
	expect_state(7, DEVBUF_STATE_BASE_ALLOCATED);
	EXPECT_FALSE(devbuf_is_initialized(b));
	expect_query(7, EIO, (struct devbuf_query){ .out_state = ~0U });
	EXPECT_FALSE(devbuf_is_initialized(b));
	expect_query(7, 0,
		     (struct devbuf_query){
			     .out_state = DEVBUF_STATE_READ_ONLY | DEVBUF_STATE_DEVICE_GONE |
					  0x8000,
			     .out_rights = DEVBUF_RIGHT_READ | DEVBUF_RIGHT_EXPORT | 0x8000,
			     .out_largest_page_shift = 21,
		     });
	ASSERT_OK(devbuf_get_status(b, &s));
	EXPECT_TRUE(s.read_only && s.device_gone && !s.allocated && !s.base_allocated);
	EXPECT_EQ(DEVBUF_MAY_READ | DEVBUF_MAY_EXPORT, s.rights);
	EXPECT_EQ(2 << 20, s.largest_page_nbytes);
	unref_mocked(b);
}

TEST_F(driver, names)
{
	struct devbuf_set_name set = { .size = sizeof(set), .id = 7, .name = "weights" };
	struct devbuf *b = new_mocked(self->a, 100, 7);
	struct devbuf_query reply = { .out_name = "from elsewhere" };
	char name[DEVBUF_NAME_BYTES];

	expect(DEVBUF_SET_NAME, &set, 0, NULL);
	EXPECT_OK(devbuf_set_name(b, "weights"));
	expect(DEVBUF_SET_NAME, &set, EACCES, NULL);
	EXPECT_EQ(-EACCES, devbuf_set_name(b, "weights"));
	expect_query(7, 0, reply);
	ASSERT_OK(devbuf_get_name(b, name));
	EXPECT_STREQ("from elsewhere", name);
	unref_mocked(b);
}

TEST_F(driver, commands_begin_again_after_a_signal)
{
	struct devbuf *b = new_mocked(self->a, 100, 7);
	struct devbuf_sync sync = {
		.size = sizeof(sync), .flags = DEVBUF_SYNC_WRITE, .id = 7, .offset = 1, .nbytes = 9
	};

	for (int i = 0; i < 5; i++)
		expect_allocate(7, EINTR);
	expect_allocate(7, 0);
	EXPECT_OK(devbuf_allocate(b));
	expect(DEVBUF_SYNC, &sync, EINTR, NULL);
	expect(DEVBUF_SYNC, &sync, EBUSY, NULL);
	EXPECT_EQ(-EBUSY, devbuf_sync(b, 1, 9, DEVBUF_CPU_WRITE));
	expect_id(DEVBUF_DESTROY, 7, EINTR);
	unref_mocked(b);
}

/* --- copies ----------------------------------------------------------------------------------- */

TEST_F(driver, copies_are_one_range)
{
	struct devbuf *b = new_mocked(self->a, 100, 7);
	char bytes[100];

	expect_copy(DEVBUF_COPYIN, 7, 0, bytes, 100, 0, 100);
	EXPECT_OK(devbuf_copyin(b, bytes, 100));
	expect_copy(DEVBUF_COPYOUT, 7, 0, bytes, 100, 0, 100);
	EXPECT_OK(devbuf_copyout(b, bytes, 100));
	expect_copy(DEVBUF_COPYIN, 7, 10, bytes, 20, 0, 20);
	EXPECT_OK(devbuf_copyin_at(b, 10, bytes, 20));
	expect_copy(DEVBUF_COPYOUT, 7, 99, bytes, 1, 0, 1);
	EXPECT_OK(devbuf_copyout_at(b, 99, bytes, 1));
	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++) {
		expect_copy(DEVBUF_COPYIN, 7, 0, bytes, 100, errnos[i], 50);
		EXPECT_EQ(-errnos[i], devbuf_copyin(b, bytes, 100)); /* no second try */
		EXPECT_SAID("cannot copy into buffer 7 of 100 bytes");
	}
	unref_mocked(b);
}

TEST_F(driver, copies_go_on_after_a_signal)
{
	struct devbuf *b = new_mocked(self->a, 100, 7);
	char bytes[100];

	expect_copy(DEVBUF_COPYIN, 7, 10, bytes, 90, EINTR, 30);
	expect_copy(DEVBUF_COPYIN, 7, 40, bytes + 30, 60, EINTR, 0); /* before it began */
	expect_copy(DEVBUF_COPYIN, 7, 40, bytes + 30, 60, EINTR, 59);
	expect_copy(DEVBUF_COPYIN, 7, 99, bytes + 89, 1, 0, 1);
	EXPECT_OK(devbuf_copyin_at(b, 10, bytes, 90));
	expect_copy(DEVBUF_COPYOUT, 7, 0, bytes, 100, EINTR, 50);
	expect_copy(DEVBUF_COPYOUT, 7, 50, bytes + 50, 50, EFAULT, 10);
	EXPECT_EQ(-EFAULT, devbuf_copyout(b, bytes, 100));
	expect_copy(DEVBUF_COPYOUT, 7, 0, bytes, 100, EINTR, 100); /* just as it was done */
	EXPECT_OK(devbuf_copyout(b, bytes, 100));
	unref_mocked(b);
}

TEST_F(driver, transfers)
{
	static const struct {
		__u32 uapi;
		enum devbuf_copy_path path;
	} paths[] = {
		{ DEVBUF_PATH_PEER, DEVBUF_VIA_PEER },
		{ DEVBUF_PATH_DEVICE, DEVBUF_VIA_DEVICE },
		{ DEVBUF_PATH_DMAENGINE, DEVBUF_VIA_DMAENGINE },
		{ DEVBUF_PATH_CPU, DEVBUF_VIA_CPU },
		{ 17, DEVBUF_VIA_DEVICE },
	};
	struct devbuf_transfer_range range = { .dst_id = 8, .src_id = 7, .nbytes = 100 };
	struct devbuf *a = new_mocked(self->a, 100, 7), *b = next_mocked(self->a, 100, 8);
	enum devbuf_copy_path took;
	bool native = false;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		expect_transfer(range, 0, 0, paths[i].uapi);
		ASSERT_OK(devbuf_copy(b, a, &took));
		EXPECT_EQ(paths[i].path, took);
	}
	expect_transfer(range, 0, 0, DEVBUF_PATH_CPU);
	ASSERT_OK(devbuf_transfer(b, a, &native));
	EXPECT_TRUE(native);
	range = (struct devbuf_transfer_range){ 8, 1, 7, 2, 3 };
	expect_transfer(range, DEVBUF_TRANSFER_NO_CPU, EOPNOTSUPP, 0);
	EXPECT_EQ(-EOPNOTSUPP, devbuf_copy_at(b, 1, a, 2, 3, DEVBUF_NO_CPU, &took));
	EXPECT_SAID("3 bytes from SYSTEM:0 7 to SYSTEM:0 8");
	expect_transfer(range, 0, EINTR, 0);
	expect_transfer(range, 0, 0, DEVBUF_PATH_CPU);
	EXPECT_OK(devbuf_copy_at(b, 1, a, 2, 3, DEVBUF_NO_BOUNCE, &took));
	unref_mocked(b);
	unref_mocked(a);
}

TEST_F(driver, transfers_allocate_when_they_must)
{
	struct devbuf_transfer_range range = { .dst_id = 8, .src_id = 7, .nbytes = 100 };
	struct devbuf *a = new_mocked(self->a, 100, 7), *b = next_mocked(self->a, 100, 8);
	enum devbuf_copy_path took;

	expect_transfer(range, 0, ENODATA, 0);
	expect_state(7, DEVBUF_STATE_BASE_ALLOCATED | DEVBUF_STATE_ALLOCATED);
	expect_state(8, 0);
	expect_allocate(8, 0);
	expect_transfer(range, 0, 0, DEVBUF_PATH_CPU);
	ASSERT_OK(devbuf_copy(b, a, &took));
	EXPECT_EQ(DEVBUF_VIA_CPU, took);

	expect_transfer(range, 0, ENODATA, 0); /* what cannot be had is given back */
	expect_state(7, 0);
	expect_allocate(7, 0);
	expect_state(8, 0);
	expect_allocate(8, ENOMEM);
	expect_id(DEVBUF_DEALLOCATE, 7, 0);
	EXPECT_EQ(-ENOMEM, devbuf_copy(b, a, &took));
	EXPECT_SAID("cannot allocate buffer 8");
	unref_mocked(b);
	unref_mocked(a);
}

TEST_F(driver, plans)
{
	struct devbuf_path path = { .size = sizeof(path), .dst_id = 8, .src_id = 7 }, reply = path;
	struct devbuf *a = new_mocked(self->a, 100, 7), *b = next_mocked(self->a, 100, 8);
	struct devbuf_plan plan = DEVBUF_PLAN_INIT;

	reply.out_path = DEVBUF_PATH_CPU;
	reply.out_reasons[DEVBUF_PATH_PEER] = DEVBUF_REASON_NOT_PEERS;
	reply.out_reasons[DEVBUF_PATH_DEVICE] = DEVBUF_REASON_NO_ENGINE;
	reply.out_reasons[DEVBUF_PATH_DMAENGINE] = DEVBUF_REASON_NOT_BUILT;
	expect(DEVBUF_PATH, &path, 0, &reply);
	ASSERT_OK(devbuf_copy_plan(b, a, &plan));
	EXPECT_EQ(DEVBUF_VIA_CPU, plan.path);
	EXPECT_STREQ("peer: both ends are host memory, or one device's; device: no engine reaches "
		     "both ends; dmaengine: this driver has none",
		     plan.why);
	reply.out_path = DEVBUF_PATH_PEER;
	expect(DEVBUF_PATH, &path, 0, &reply);
	ASSERT_OK(devbuf_copy_plan(b, a, &plan));
	EXPECT_EQ(DEVBUF_VIA_PEER, plan.path);
	EXPECT_STREQ("", plan.why);
	reply.out_path = DEVBUF_PATH_NONE;
	for (int i = 1; i < 8; i++)
		reply.out_reasons[i] = i < 3 ? DEVBUF_REASON_DEVICE_GONE : 1000;
	expect(DEVBUF_PATH, &path, 0, &reply);
	ASSERT_OK(devbuf_copy_plan(b, a, &plan));
	EXPECT_EQ(DEVBUF_VIA_NONE, plan.path);
	EXPECT_NE(NULL, strstr(plan.why, "cpu: it cannot be taken"));
	expect(DEVBUF_PATH, &path, ENOENT, NULL);
	EXPECT_EQ(-ENOENT, devbuf_copy_plan(b, a, &plan));
	unref_mocked(b);
	unref_mocked(a);
}

TEST_HARNESS_MAIN
