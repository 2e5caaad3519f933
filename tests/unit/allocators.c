// SPDX-License-Identifier: GPL-2.0-only
/* Allocators of the caller's own: with all hooks, without some, and with failing ones. */
#include "mine.h"

/* --- creation --------------------------------------------------------------------------------- */

TEST_F(own, create_wants_the_required_hooks)
{
	struct devbuf_allocator *out = (void *)1;
	struct devbuf_allocator_ops ops;

	ops = required_hooks;
	ops.alloc = NULL;
	EXPECT_EQ(-EINVAL, devbuf_allocator_create(&ops, NULL, &out));
	EXPECT_SAID("alloc");
	ops = required_hooks;
	ops.free = NULL;
	EXPECT_EQ(-EINVAL, devbuf_allocator_create(&ops, NULL, &out));
	ops = required_hooks;
	ops.copyin = NULL;
	EXPECT_EQ(-EINVAL, devbuf_allocator_create(&ops, NULL, &out));
	ops = required_hooks;
	ops.copyout = NULL;
	EXPECT_EQ(-EINVAL, devbuf_allocator_create(&ops, NULL, &out));
	ops = required_hooks;
	ops.addr = NULL;
	EXPECT_EQ(-EINVAL, devbuf_allocator_create(&ops, NULL, &out));
	EXPECT_EQ(-EINVAL, devbuf_allocator_create(NULL, NULL, &out));
	EXPECT_EQ(-EINVAL, devbuf_allocator_create(&required_hooks, NULL, NULL));
	EXPECT_EQ((void *)1, out);
}

TEST_F(own, create_with_hooks_of_another_size)
{
	struct {
		struct devbuf_allocator_ops ops;
		void *more;
	} newer = { .ops = all_hooks };
	struct devbuf_allocator *out;

	newer.ops.size = sizeof(newer);
	newer.ops.destroy = NULL;
	ASSERT_OK(devbuf_allocator_create(&newer.ops, NULL, &out));
	devbuf_allocator_unref(out);
	out = (void *)1;
	newer.more = &newer;
	EXPECT_EQ(-E2BIG, devbuf_allocator_create(&newer.ops, NULL, &out));
	newer.ops.size = sizeof(newer.ops) - 1;
	EXPECT_EQ(-EINVAL, devbuf_allocator_create(&newer.ops, NULL, &out));
	newer.ops.size = 0;
	EXPECT_EQ(-EINVAL, devbuf_allocator_create(&newer.ops, NULL, &out));
	EXPECT_EQ((void *)1, out);
}

/* --- all hooks -------------------------------------------------------------------------------- */

TEST_F(own, alloc_gets_device_nbytes_and_spec)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	struct devbuf *b;

	spec.contiguous = true;
	spec.alignment = 4096;
	ASSERT_OK(devbuf_create(self->a, "gpu:3", 10, DEVBUF_FLOAT64, &spec, &b));
	EXPECT_EQ(0, self->mine.allocs); /* not yet */
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_STREQ("GPU:3", self->mine.device);
	EXPECT_EQ(80, self->mine.nbytes);
	EXPECT_TRUE(self->mine.spec.contiguous);
	EXPECT_EQ(4096, self->mine.spec.alignment);
	EXPECT_EQ(1, self->mine.live);
	ASSERT_OK(devbuf_deallocate(b));
	EXPECT_EQ(0, self->mine.live);
	devbuf_unref(b);
	EXPECT_EQ(1, self->mine.frees);
}

TEST_F(own, views_copies_and_addresses)
{
	struct devbuf *b = new_bytes(self->a, 100), *v;
	char bytes[10] = "0123456789";
	uint64_t addr;

	ASSERT_OK(devbuf_view(b, 10, DEVBUF_UINT8, 20, &v));
	ASSERT_OK(devbuf_allocate(v));
	EXPECT_EQ(1, self->mine.offsets);
	EXPECT_OK(devbuf_copyin(v, bytes, 10));
	EXPECT_OK(devbuf_copyout_at(b, 25, bytes, 3));
	EXPECT_EQ(0, memcmp(bytes, "567", 3));
	ASSERT_OK(devbuf_addr(v, &addr));
	EXPECT_EQ(0xd0000000 + 20, addr);
	EXPECT_EQ(-EBUSY, devbuf_deallocate(b));
	devbuf_unref(v);
	EXPECT_EQ(1, self->mine.detaches);
	EXPECT_OK(devbuf_deallocate(b));
	devbuf_unref(b);
}

TEST_F(own, transfer_is_the_hook)
{
	struct devbuf *a = new_allocated(self->a, 8), *b = new_bytes(self->a, 8);
	enum devbuf_copy_path took;
	struct devbuf_plan plan = DEVBUF_PLAN_INIT;
	bool native = false;

	ASSERT_OK(devbuf_transfer(b, a, &native));
	EXPECT_TRUE(native);
	EXPECT_EQ(1, self->mine.transfers);
	ASSERT_OK(devbuf_copy_plan(b, a, &plan));
	EXPECT_EQ(DEVBUF_VIA_DEVICE, plan.path);
	ASSERT_OK(devbuf_copy_at(b, 0, a, 0, 8, DEVBUF_NO_CPU, &took));
	EXPECT_EQ(DEVBUF_VIA_DEVICE, took);
	EXPECT_EQ(2, self->mine.transfers);
	EXPECT_OK(devbuf_copy_between(b, a));
	EXPECT_EQ(2, self->mine.transfers); /* through memory, whatever else there is */
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(own, transfer_between_allocators_alike)
{
	struct mine other = { .error = -EIO };
	struct devbuf_allocator *twin, *stranger;
	struct devbuf *a = new_bytes(self->a, 8), *b, *c, *d;
	struct devbuf_allocator_ops ops = all_hooks;

	ops.destroy = NULL;
	ASSERT_OK(devbuf_allocator_create(&ops, &self->mine, &twin));
	ASSERT_OK(devbuf_allocator_create(&ops, &other, &stranger));
	b = new_bytes(twin, 8);
	c = new_bytes(stranger, 8);
	d = new_bytes(self->lru, 8);
	EXPECT_TRUE(devbuf_supports_transfer(a, b));
	EXPECT_TRUE(devbuf_supports_transfer(d, b));
	EXPECT_FALSE(devbuf_supports_transfer(a, c));
	EXPECT_FALSE(devbuf_supports_transfer(c, a));
	EXPECT_OK(devbuf_copy(a, b, NULL));
	EXPECT_OK(devbuf_copy(d, b, NULL));
	EXPECT_EQ(2, self->mine.transfers);
	EXPECT_OK(devbuf_copy(c, b, NULL));
	EXPECT_EQ(2, self->mine.transfers + other.transfers);
	devbuf_unref(a);
	devbuf_unref(b);
	devbuf_unref(c);
	devbuf_unref(d);
	devbuf_allocator_unref(twin);
	devbuf_allocator_unref(stranger);
}

TEST_F(own, mappings_delay_the_free)
{
	struct devbuf *b = new_allocated(self->a, 100), *v;
	char *map, *of_view;

	ASSERT_OK(devbuf_view(b, 10, DEVBUF_UINT8, 5, &v));
	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_map(b, PROT_READ | PROT_WRITE, (void **)&map));
	ASSERT_OK(devbuf_map(v, PROT_READ, (void **)&of_view));
	map[5] = 'x';
	EXPECT_EQ('x', *of_view);
	ASSERT_OK(devbuf_deallocate(v));
	ASSERT_OK(devbuf_deallocate(b));
	EXPECT_EQ(0, self->mine.frees);
	EXPECT_EQ('x', *of_view);
	EXPECT_OK(devbuf_unmap(b));
	EXPECT_EQ(0, self->mine.frees);
	EXPECT_EQ('x', *of_view);
	devbuf_unref(v);
	EXPECT_EQ(1, self->mine.frees);
	devbuf_unref(b);
}

TEST_F(own, read_file_by_the_hook)
{
	struct devbuf *b = new_allocated(self->a, 100);
	int fd = memfd_create("file", MFD_CLOEXEC);
	char bytes[3];

	ASSERT_EQ(6, write(fd, "abcdef", 6));
	EXPECT_OK(devbuf_read_file(b, 10, fd, 2, 3, NULL));
	EXPECT_OK(devbuf_copyout_at(b, 10, bytes, 3));
	EXPECT_EQ(0, memcmp(bytes, "cde", 3));
	EXPECT_EQ(1, self->mine.disks);
	EXPECT_EQ(-EINVAL, devbuf_read_file(b, 10, fd, 2, 5, NULL)); /* shorter than that */
	EXPECT_SAID("4 of the 5");
	self->mine.disk = -EOPNOTSUPP; /* not this time: the library reads */
	EXPECT_OK(devbuf_read_file(b, 0, fd, 0, 3, NULL));
	EXPECT_OK(devbuf_copyout_at(b, 0, bytes, 3));
	EXPECT_EQ(0, memcmp(bytes, "abc", 3));
	self->mine.disk = -EIO;
	EXPECT_EQ(-EIO, devbuf_read_file(b, 0, fd, 0, 3, NULL));
	self->mine.disk = 4; /* more than was asked for */
	EXPECT_EQ(-EIO, devbuf_read_file(b, 0, fd, 0, 3, NULL));
	close(fd);
	devbuf_unref(b);
}

/* --- without the optional ones ---------------------------------------------------------------- */

TEST_F(own, without_offset)
{
	struct devbuf *b = new_bytes(self->poor, 100), *v;

	EXPECT_FALSE(devbuf_supports_offset(b));
	ASSERT_OK(devbuf_view(b, 10, DEVBUF_UINT8, 5, &v));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_allocate(v));
	EXPECT_SAID("view of 10 bytes at 5");
	EXPECT_FALSE(devbuf_is_allocated(b)); /* left as it was */
	EXPECT_EQ(0, self->mine.allocs);
	EXPECT_EQ(-EOPNOTSUPP, devbuf_ensure_allocated(v));
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_EQ(-EOPNOTSUPP, devbuf_allocate(v));
	EXPECT_TRUE(devbuf_is_initialized(b));
	EXPECT_FALSE(devbuf_is_initialized(v));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(own, without_transfer)
{
	struct devbuf *a = new_bytes(self->poor, 8), *b = new_bytes(self->poor, 8), *c;
	struct devbuf_plan plan = DEVBUF_PLAN_INIT;
	enum devbuf_copy_path took;
	bool native = true;

	EXPECT_FALSE(devbuf_supports_transfer(a, b));
	ASSERT_OK(devbuf_transfer(a, b, &native));
	EXPECT_FALSE(native);
	EXPECT_EQ(0, self->mine.allocs);
	ASSERT_OK(devbuf_copy_plan(a, b, &plan));
	EXPECT_EQ(DEVBUF_VIA_BOUNCE, plan.path);
	EXPECT_NE(NULL, strstr(plan.why, "device"));
	EXPECT_NE(NULL, strstr(plan.why, "cpu"));
	ASSERT_OK(devbuf_copy(a, b, &took));
	EXPECT_EQ(DEVBUF_VIA_BOUNCE, took);
	EXPECT_EQ(2, self->mine.live);
	EXPECT_EQ(-EOPNOTSUPP, devbuf_copy_at(a, 0, b, 0, 8, DEVBUF_NO_BOUNCE, &took));

	/* Sizes are checked before support is. */
	c = new_bytes(self->poor, 9);
	EXPECT_EQ(-EINVAL, devbuf_transfer(a, c, &native));
	devbuf_unref(c);
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(own, without_map_and_detach)
{
	struct devbuf *b = new_allocated(self->poor, 8);
	void *map = (void *)1;
	uint64_t addr;

	EXPECT_EQ(-EOPNOTSUPP, devbuf_map(b, PROT_READ, &map));
	EXPECT_SAID("GPU:0");
	EXPECT_EQ((void *)1, map);
	ASSERT_OK(devbuf_addr(b, &addr));
	EXPECT_EQ(0xd0000000, addr);
	EXPECT_OK(devbuf_sync(b, 0, 8, DEVBUF_CPU_READ));
	devbuf_unref(b);
}

/* --- hooks that fail -------------------------------------------------------------------------- */

TEST_F(own, alloc_fails)
{
	struct devbuf *b = new_bytes(self->a, 100), *v;

	ASSERT_OK(devbuf_view(b, 10, DEVBUF_UINT8, 5, &v));
	self->mine.fail_allocs = 3;
	self->mine.error = -ENODEV;
	EXPECT_EQ(-ENODEV, devbuf_allocate(b));
	EXPECT_SAID("100 bytes on GPU:0");
	EXPECT_EQ(-ENODEV, devbuf_allocate(v));
	EXPECT_EQ(-ENODEV, devbuf_ensure_allocated(v));
	EXPECT_FALSE(devbuf_is_allocated(b));
	EXPECT_EQ(0, self->mine.offsets);
	EXPECT_OK(devbuf_allocate(v));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(own, hooks_that_return_what_is_no_errno)
{
	static const int results[] = { 1, 12345, -5000, INT32_MIN };
	struct devbuf *b = new_bytes(self->a, 100);

	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		self->mine.fail_allocs = 1;
		self->mine.error = results[i];
		EXPECT_EQ(-EIO, devbuf_allocate(b));
		EXPECT_FALSE(devbuf_is_allocated(b));
	}
	devbuf_unref(b);
}

TEST_F(own, offset_fails)
{
	struct devbuf *b = new_bytes(self->a, 100), *v;

	ASSERT_OK(devbuf_view(b, 10, DEVBUF_UINT8, 5, &v));
	self->mine.fail_offset = true;
	EXPECT_EQ(-ENOMEM, devbuf_allocate(v));
	EXPECT_SAID("10 bytes");
	EXPECT_FALSE(devbuf_is_allocated(b)); /* as it was */
	EXPECT_EQ(0, self->mine.live);
	ASSERT_OK(devbuf_allocate(b));
	EXPECT_EQ(-ENOMEM, devbuf_allocate(v));
	EXPECT_TRUE(devbuf_is_allocated(b));
	self->mine.fail_offset = false;
	EXPECT_OK(devbuf_allocate(v));
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(own, copies_addr_map_and_transfer_fail)
{
	struct devbuf *a = new_allocated(self->a, 8), *b = new_allocated(self->a, 8);
	enum devbuf_copy_path took = DEVBUF_VIA_PEER;
	void *out = (void *)1;
	uint64_t addr = 1;
	char bytes[8];

	self->mine.error = -EIO;
	self->mine.fail_copies = true;
	EXPECT_EQ(-EIO, devbuf_copyin(a, bytes, 8));
	EXPECT_SAID("copy into buffer of 8 bytes on GPU:0");
	EXPECT_EQ(-EIO, devbuf_copyout(a, bytes, 8));
	EXPECT_EQ(-EIO, devbuf_as_bytes(a, &out, NULL));
	EXPECT_EQ(-EIO, devbuf_copy_between(a, b));
	self->mine.fail_transfer = true;
	EXPECT_EQ(-EIO, devbuf_copy(a, b, &took));
	EXPECT_SAID("transfer");
	EXPECT_EQ(-EIO, devbuf_transfer(a, b, NULL));
	self->mine.fail_addr = true;
	EXPECT_EQ(-EIO, devbuf_addr(a, &addr));
	self->mine.fail_map = true;
	EXPECT_EQ(-EIO, devbuf_map(a, PROT_READ, &out));
	EXPECT_EQ(DEVBUF_VIA_PEER, took);
	EXPECT_EQ((void *)1, out);
	EXPECT_EQ(1, addr);
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(own, what_was_allocated_on_the_way_is_taken_back)
{
	struct devbuf *a = new_bytes(self->a, 8), *b = new_bytes(self->a, 8);
	uint64_t addr;

	self->mine.fail_transfer = true;
	self->mine.fail_addr = true;
	EXPECT_EQ(-ENOMEM, devbuf_copy(a, b, NULL));
	EXPECT_EQ(2, self->mine.allocs);
	EXPECT_EQ(0, self->mine.live);
	EXPECT_EQ(-ENOMEM, devbuf_addr(a, &addr));
	EXPECT_EQ(0, self->mine.live);
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_HARNESS_MAIN
