// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices that lack what SYSTEM has: each command says -EOPNOTSUPP, and leaves
 * everything as it was. MOCK:0 and MOCK:1 are in test builds of the module only
 * (kernel/test/mock.c).
 */
#include "common.h"
#include "kselftest_harness.h"

#define BARE_DEVICE  "MOCK:0"
#define FUSSY_DEVICE "MOCK:1"
#define FAILURES     "/sys/module/devbuf/parameters/mock_failures"
#define BASE_NBYTES  10000u

static bool device_exists(int ctx, const char *device)
{
	__u64 id;

	return do_create(ctx, device, 1, 0, &id) == 0 && do_destroy(ctx, id) == 0;
}

/* Makes the next @count allocations of MOCK:1 fail. */
static void fail_allocations(const char *count)
{
	must(write_text(FAILURES, count));
}

FIXTURE(bare)
{
	int ctx;
	__u64 base, view;
};

FIXTURE_SETUP(bare)
{
	self->ctx = new_context();
	if (!device_exists(self->ctx, BARE_DEVICE))
		SKIP(return, "the module is not a test build: no " BARE_DEVICE);
	must(do_create(self->ctx, BARE_DEVICE, BASE_NBYTES, 0, &self->base));
	must(do_view(self->ctx, self->base, 4096, 100, &self->view));
}

FIXTURE_TEARDOWN(bare)
{
	close(self->ctx);
}

TEST_F(bare, view_is_not_allocated_and_neither_is_its_base)
{
	EXPECT_EQ(-EOPNOTSUPP, do_allocate(self->ctx, self->view));
	EXPECT_EQ(0, query(self->ctx, self->base).out_state);
}

TEST_F(bare, view_is_not_allocated_of_an_allocated_base)
{
	must(do_allocate(self->ctx, self->base));
	EXPECT_EQ(-EOPNOTSUPP, do_allocate(self->ctx, self->view));
	EXPECT_EQ(DEVBUF_STATE_BASE_ALLOCATED | DEVBUF_STATE_ALLOCATED,
		  query(self->ctx, self->base).out_state);
	EXPECT_EQ(0, do_deallocate(self->ctx, self->base));
}

TEST_F(bare, nothing_but_allocation)
{
	__u64 system = new_buffer(self->ctx, BASE_NBYTES);
	char byte = 0;

	must(do_allocate(self->ctx, self->base));
	must(do_allocate(self->ctx, system));
	EXPECT_EQ(-EOPNOTSUPP, do_copyin(self->ctx, self->base, 0, &byte, 1));
	EXPECT_EQ(-EOPNOTSUPP, do_copyout(self->ctx, self->base, 0, &byte, 1));
	EXPECT_EQ(-EOPNOTSUPP, do_transfer(self->ctx, self->base, 0, system, 0, 1));
	EXPECT_EQ(-EOPNOTSUPP, do_transfer(self->ctx, system, 0, self->base, 0, 1));
	EXPECT_EQ(-EOPNOTSUPP, do_export(self->ctx, self->base, 0));
	EXPECT_EQ(MAP_FAILED,
		  mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self->ctx, self->base * PAGE));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(bare, path_says_that_the_cpu_cannot_reach_it)
{
	struct devbuf_path path = {
		.size = sizeof(path),
		.dst_id = self->base,
		.src_id = self->base,
	};

	must(do_command(self->ctx, DEVBUF_PATH, &path));
	EXPECT_EQ(DEVBUF_PATH_NONE, path.out_path);
	EXPECT_EQ(DEVBUF_REASON_NO_CPU_ACCESS, path.out_reasons[DEVBUF_PATH_CPU]);
}

TEST_F(bare, create_flags_that_it_has_not)
{
	__u64 id;

	EXPECT_EQ(-EOPNOTSUPP, do_create(self->ctx, BARE_DEVICE, 1, DEVBUF_CREATE_UNCACHED, &id));
	EXPECT_EQ(-EOPNOTSUPP, do_create(self->ctx, BARE_DEVICE, 1, DEVBUF_CREATE_CPU_ACCESS, &id));
	EXPECT_EQ(-EOPNOTSUPP, do_create(self->ctx, BARE_DEVICE, 1, DEVBUF_CREATE_HOST, &id));
	EXPECT_EQ(-EOPNOTSUPP, do_create(self->ctx, BARE_DEVICE, 1, DEVBUF_CREATE_CONTIGUOUS, &id));
}

TEST_F(bare, reuse_is_asked_for_in_vain)
{
	__u64 id;

	must(do_create(self->ctx, BARE_DEVICE, BASE_NBYTES, DEVBUF_CREATE_REUSE, &id));
	must(do_allocate(self->ctx, id));
	must(do_deallocate(self->ctx, id));
	EXPECT_EQ(0, do_allocate_flags(self->ctx, id, 0));
}

FIXTURE(fussy)
{
	int ctx;
	__u64 base;
};

FIXTURE_SETUP(fussy)
{
	self->ctx = new_context();
	if (!device_exists(self->ctx, FUSSY_DEVICE))
		SKIP(return, "the module is not a test build: no " FUSSY_DEVICE);
	must(do_create(self->ctx, FUSSY_DEVICE, BASE_NBYTES, DEVBUF_CREATE_REUSE, &self->base));
	fail_allocations("0");
}

FIXTURE_TEARDOWN(fussy)
{
	close(self->ctx);
}

TEST_F(fussy, view_where_the_device_has_none_leaves_the_base_unallocated)
{
	__u64 view;

	must(do_view(self->ctx, self->base, 65, 10, &view));
	EXPECT_EQ(-EOPNOTSUPP, do_allocate(self->ctx, view));
	EXPECT_EQ(0, query(self->ctx, self->base).out_state);
}

TEST_F(fussy, view_where_the_device_has_them)
{
	__u64 view;

	must(do_view(self->ctx, self->base, 128, 10, &view));
	EXPECT_EQ(0, do_allocate(self->ctx, view));
}

TEST_F(fussy, failed_allocation_leaves_the_buffer_unallocated)
{
	fail_allocations("1");
	EXPECT_EQ(-ENOMEM, do_allocate(self->ctx, self->base));
	EXPECT_EQ(0, query(self->ctx, self->base).out_state);
	EXPECT_EQ(0, do_allocate(self->ctx, self->base));
}

TEST_F(fussy, failed_allocation_gives_back_what_is_kept_and_is_tried_once_more)
{
	__u64 other;

	must(do_allocate(self->ctx, self->base));
	must(do_deallocate(self->ctx, self->base));
	EXPECT_EQ(12288, fdinfo(self->ctx, "devbuf-cached-nbytes"));

	must(do_create(self->ctx, FUSSY_DEVICE, 100, DEVBUF_CREATE_REUSE, &other));
	fail_allocations("1");
	EXPECT_EQ(0, do_allocate(self->ctx, other));
	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-cached-nbytes"));
}

TEST_HARNESS_MAIN
