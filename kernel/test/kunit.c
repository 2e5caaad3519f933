// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of what needs no user: range arithmetic, reach, the registry.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "../devbuf_private.h"

static void range_inside_is_accepted(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, devbuf_check_range(0, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, devbuf_check_range(0, 100, 100), 0);
	KUNIT_EXPECT_EQ(test, devbuf_check_range(99, 1, 100), 0);
	KUNIT_EXPECT_EQ(test, devbuf_check_range(U64_MAX - 1, 1, U64_MAX), 0);
}

static void range_outside_is_refused(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, devbuf_check_range(0, 0, 100), -EINVAL);
	KUNIT_EXPECT_EQ(test, devbuf_check_range(100, 0, 100), -EINVAL);
	KUNIT_EXPECT_EQ(test, devbuf_check_range(0, 101, 100), -EINVAL);
	KUNIT_EXPECT_EQ(test, devbuf_check_range(100, 1, 100), -EINVAL);
	KUNIT_EXPECT_EQ(test, devbuf_check_range(U64_MAX - 1, 1, 100), -EINVAL);
}

static void range_that_wraps_is_refused(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, devbuf_check_range(1, U64_MAX, 100), -EOVERFLOW);
	KUNIT_EXPECT_EQ(test, devbuf_check_range(U64_MAX, 1, 100), -EOVERFLOW);
	KUNIT_EXPECT_EQ(test, devbuf_check_range(U64_MAX, U64_MAX, U64_MAX),
			-EOVERFLOW);
}

/* Does a handle of [start, end) reach the pages of a view of @base there? */
static bool reaches(struct devbuf_buffer *base, u64 offset, u64 nbytes,
		    u64 start, u64 end)
{
	const struct devbuf_buffer view = {
		.base = base, .offset = offset, .nbytes = nbytes,
	};
	const struct devbuf_grant grant = {
		.reach_start = start, .reach_end = end,
	};

	return devbuf_grant_reaches_pages(&grant, &view);
}

static void reach_of_the_base_covers_every_view(struct kunit *test)
{
	struct devbuf_buffer base = { .nbytes = 3 * PAGE_SIZE + 100 };
	u64 end = base.nbytes;

	KUNIT_EXPECT_TRUE(test, reaches(&base, 0, end, 0, end));
	KUNIT_EXPECT_TRUE(test, reaches(&base, end - 1, 1, 0, end));
	KUNIT_EXPECT_TRUE(test, reaches(&base, 17, 1, 0, end));
}

static void reach_of_a_view_ends_at_its_pages(struct kunit *test)
{
	struct devbuf_buffer base = { .nbytes = 3 * PAGE_SIZE + 100 };
	u64 page = PAGE_SIZE, end = base.nbytes;

	KUNIT_EXPECT_TRUE(test, reaches(&base, page, page, page, 2 * page));
	KUNIT_EXPECT_FALSE(test, reaches(&base, page, page + 1, page, 2 * page + 1));
	KUNIT_EXPECT_FALSE(test, reaches(&base, page + 1, page - 1, page + 1, 2 * page));
	/* Behind the end of the base there is nothing of anybody else. */
	KUNIT_EXPECT_TRUE(test, reaches(&base, 3 * page, 100, 3 * page, end));
	KUNIT_EXPECT_FALSE(test, reaches(&base, 3 * page, 99, 3 * page, end - 1));
}

static void reach_counts_pages_of_the_callers_memory(struct kunit *test)
{
	/* The base begins 100 bytes into its first page. */
	struct devbuf_buffer base = {
		.nbytes = 2 * PAGE_SIZE, .user_addr = 16 * PAGE_SIZE + 100,
	};
	u64 page = PAGE_SIZE, end = base.nbytes;

	KUNIT_EXPECT_TRUE(test, reaches(&base, 0, end, 0, end));
	KUNIT_EXPECT_TRUE(test, reaches(&base, 0, page - 100, 0, page - 100));
	KUNIT_EXPECT_TRUE(test, reaches(&base, page - 100, page, page - 100,
					2 * page - 100));
	KUNIT_EXPECT_FALSE(test, reaches(&base, page, page, page, end));
	KUNIT_EXPECT_FALSE(test, reaches(&base, 0, page, 0, page));
}

static int nothing_alloc(struct devbuf_device *device, struct devbuf_memory *mem)
{
	return -ENOMEM;
}

static void nothing_free(struct devbuf_device *device, struct devbuf_memory *mem)
{
}

static const struct devbuf_device_ops nothing_ops = {
	.alloc = nothing_alloc, .free = nothing_free,
};

static void device_names_are_unique(struct kunit *test)
{
	const struct devbuf_device_desc desc = {
		.prefix = "KUNIT", .alignment = 1, .ops = &nothing_ops,
	};
	struct devbuf_device *device = devbuf_device_register(&desc), *again;

	KUNIT_ASSERT_FALSE(test, IS_ERR(device));
	KUNIT_EXPECT_PTR_EQ(test, devbuf_device_register(&desc),
			    ERR_PTR(-EEXIST));
	KUNIT_EXPECT_FALSE(test, device->caps & DEVBUF_CAP_VIEWS);
	devbuf_device_unregister(device);
	KUNIT_EXPECT_PTR_EQ(test, devbuf_device_find("KUNIT:0"),
			    ERR_PTR(-ENODEV));

	again = devbuf_device_register(&desc);
	KUNIT_ASSERT_FALSE(test, IS_ERR(again));
	devbuf_device_unregister(again);
}

static void device_descriptions_are_checked(struct kunit *test)
{
	static const struct devbuf_device_ops no_ops;
	const struct devbuf_device_desc refused[] = {
		{ .prefix = "KUNIT", .alignment = 1, .ops = &no_ops },
		{ .prefix = "KUNIT", .alignment = 3, .ops = &nothing_ops },
		{ .prefix = "KUNIT", .alignment = 0, .ops = &nothing_ops },
		{ .prefix = "A_PREFIX_THAT_IS_TOO_LONG_FOR_", .alignment = 1,
		  .ops = &nothing_ops },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refused); i++)
		KUNIT_EXPECT_PTR_EQ(test, devbuf_device_register(&refused[i]),
				    ERR_PTR(-EINVAL));
}

static struct kunit_case devbuf_cases[] = {
	KUNIT_CASE(range_inside_is_accepted),
	KUNIT_CASE(range_outside_is_refused),
	KUNIT_CASE(range_that_wraps_is_refused),
	KUNIT_CASE(reach_of_the_base_covers_every_view),
	KUNIT_CASE(reach_of_a_view_ends_at_its_pages),
	KUNIT_CASE(reach_counts_pages_of_the_callers_memory),
	KUNIT_CASE(device_names_are_unique),
	KUNIT_CASE(device_descriptions_are_checked),
	{ }
};

static struct kunit_suite devbuf_suite = {
	.name = "devbuf",
	.test_cases = devbuf_cases,
};

kunit_test_suite(devbuf_suite);
