// SPDX-License-Identifier: GPL-2.0-only
/*
 * The library's header and the ABI's can be included together, in either
 * order, in C; header.cc says the same for C++.
 */
#include <linux/devbuf.h>
#include <devbuf.h>

#include "unit.h"

/* Constants as static initialisers, and structs of both. */
static const devbuf_dtype dtype = DEVBUF_FLOAT32_INIT;
static struct devbuf_spec spec = DEVBUF_SPEC_INIT;
static struct devbuf_device_props props = DEVBUF_DEVICE_PROPS_INIT;
static struct devbuf_status status = DEVBUF_STATUS_INIT;
static struct devbuf_plan plan = DEVBUF_PLAN_INIT;
static struct devbuf_async how = DEVBUF_ASYNC_INIT;

TEST(both_headers)
{
	struct devbuf_create create = { .size = sizeof(create) };
	struct devbuf_view view = { .size = sizeof(view) };

	EXPECT_EQ(80, create.size);
	EXPECT_LT(0, view.size);
	EXPECT_EQ(4, devbuf_dtype_itemsize(dtype));
	EXPECT_TRUE(devbuf_dtype_equal(DEVBUF_FLOAT32, dtype));
}

/* Callers set sizes by these; what the compiler pads would be no part of the struct. */
TEST(structs_begin_with_their_size_and_have_no_holes)
{
	EXPECT_EQ(sizeof(struct devbuf_spec), spec.size);
	EXPECT_EQ(sizeof(struct devbuf_device_props), props.size);
	EXPECT_EQ(sizeof(struct devbuf_status), status.size);
	EXPECT_EQ(sizeof(struct devbuf_plan), plan.size);
	EXPECT_EQ(sizeof(struct devbuf_async), how.size);
	EXPECT_EQ(0, offsetof(struct devbuf_allocator_ops, size));
	EXPECT_EQ(sizeof(size_t) + 5 + 3 + 4 + 4 + sizeof(void *) + sizeof(size_t),
		  sizeof(struct devbuf_spec));
	EXPECT_EQ(sizeof(size_t) + 32 + 4 * 8 + 4 + 4, sizeof(struct devbuf_device_props));
	EXPECT_EQ(sizeof(size_t) + 4 + 4 + 8, sizeof(struct devbuf_status));
	EXPECT_EQ(2 * sizeof(size_t) + 4 + 4 + sizeof(void *) + 8, sizeof(struct devbuf_async));
	EXPECT_EQ(8 + 8 + 4 + 4, sizeof(struct devbuf_completion));
	EXPECT_EQ(sizeof(size_t) + 4 + 500, sizeof(struct devbuf_plan));
	EXPECT_EQ(-1, spec.numa_node);
}

TEST_HARNESS_MAIN
