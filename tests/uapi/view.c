// SPDX-License-Identifier: GPL-2.0-only
/* VIEW: where a view may lie, what it tells, and what it shows. */
#include "common.h"
#include "kselftest_harness.h"

/* Not a whole number of pages. */
#define BASE_NBYTES 10000u

FIXTURE(view)
{
	int ctx;
	__u64 base;
};

FIXTURE_SETUP(view)
{
	self->ctx = new_context();
	self->base = new_buffer(self->ctx, BASE_NBYTES);
}

FIXTURE_TEARDOWN(view)
{
	close(self->ctx);
}

static int view_error(int ctx, __u64 id, __u64 offset, __u64 nbytes)
{
	__u64 view;

	return do_view(ctx, id, offset, nbytes, &view);
}

/* --- where ------------------------------------------------------------------------------------ */

TEST_F(view, of_the_first_byte)
{
	EXPECT_EQ(0, view_error(self->ctx, self->base, 0, 1));
}

TEST_F(view, of_the_last_byte)
{
	EXPECT_EQ(0, view_error(self->ctx, self->base, BASE_NBYTES - 1, 1));
}

TEST_F(view, of_everything)
{
	EXPECT_EQ(0, view_error(self->ctx, self->base, 0, BASE_NBYTES));
}

TEST_F(view, of_nothing_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, view_error(self->ctx, self->base, 0, 0));
}

TEST_F(view, at_the_end_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, view_error(self->ctx, self->base, BASE_NBYTES, 1));
}

TEST_F(view, far_behind_the_end_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, view_error(self->ctx, self->base, 1ull << 63, 1));
}

TEST_F(view, one_byte_past_the_end_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, view_error(self->ctx, self->base, 0, BASE_NBYTES + 1));
	EXPECT_EQ(-EINVAL, view_error(self->ctx, self->base, BASE_NBYTES - 1, 2));
}

TEST_F(view, that_does_not_quite_wrap_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, view_error(self->ctx, self->base, 0, UINT64_MAX));
	EXPECT_EQ(-EINVAL, view_error(self->ctx, self->base, 1, UINT64_MAX - 1));
}

TEST_F(view, that_wraps_is_EOVERFLOW)
{
	EXPECT_EQ(-EOVERFLOW, view_error(self->ctx, self->base, 1, UINT64_MAX));
	EXPECT_EQ(-EOVERFLOW, view_error(self->ctx, self->base, BASE_NBYTES - 1, UINT64_MAX - 1));
}

TEST_F(view, of_a_view_that_wraps_only_in_the_base_is_EOVERFLOW)
{
	__u64 view = new_view(self->ctx, self->base, 100, 10);

	EXPECT_EQ(-EOVERFLOW, view_error(self->ctx, view, 0, UINT64_MAX - 99));
}

TEST_F(view, that_is_refused_leaves_no_handle)
{
	EXPECT_EQ(-EINVAL, view_error(self->ctx, self->base, BASE_NBYTES, 1));
	EXPECT_EQ(1, fdinfo(self->ctx, "devbuf-handles"));
}

/* --- what it tells ---------------------------------------------------------------------------- */

TEST_F(view, tells_its_base_and_place)
{
	struct devbuf_view argument = {
		.size = sizeof(argument),
		.id = self->base,
		.offset = 4097,
		.nbytes = 33,
		.dtype = 0x01020304,
	};
	struct devbuf_query q;

	ASSERT_EQ(0, do_command(self->ctx, DEVBUF_VIEW, &argument));
	EXPECT_EQ(self->base, argument.out_base_id);
	EXPECT_EQ(4097u, argument.out_offset);
	q = query(self->ctx, argument.out_id);
	EXPECT_EQ(self->base, q.out_base_id);
	EXPECT_EQ(4097u, q.out_offset);
	EXPECT_EQ(33u, q.out_nbytes);
	EXPECT_EQ(0x01020304u, q.out_dtype);
	EXPECT_EQ(DEVBUF_STATE_VIEW, q.out_state);
	EXPECT_EQ(RIGHTS_ALL, q.out_rights);
	EXPECT_EQ(1u, q.out_handle_count);
	EXPECT_STREQ(SYSTEM_DEVICE, (char *)q.out_device);
}

TEST_F(view, has_the_create_flags_of_its_base)
{
	__u64 base;

	must(do_create(self->ctx, SYSTEM_DEVICE, PAGE, DEVBUF_CREATE_CPU_ACCESS, &base));
	EXPECT_EQ(DEVBUF_CREATE_CPU_ACCESS,
		  query(self->ctx, new_view(self->ctx, base, 0, 1)).out_create_flags);
}

TEST_F(view, of_a_view_is_a_view_of_the_base)
{
	__u64 outer = new_view(self->ctx, self->base, 1000, 500);
	__u64 inner = new_view(self->ctx, outer, 30, 10);
	struct devbuf_query q = query(self->ctx, inner);

	EXPECT_EQ(self->base, q.out_base_id);
	EXPECT_EQ(1030u, q.out_offset);
	EXPECT_EQ(10u, q.out_nbytes);
}

TEST_F(view, of_a_destroyed_view_is_a_view_of_the_base)
{
	__u64 outer = new_view(self->ctx, self->base, 1000, 500);
	__u64 inner = new_view(self->ctx, outer, 30, 10);

	EXPECT_EQ(0, do_destroy(self->ctx, outer));
	EXPECT_EQ(self->base, query(self->ctx, inner).out_base_id);
	EXPECT_EQ(0, view_error(self->ctx, inner, 5, 1));
}

/* --- nested views ----------------------------------------------------------------------------- */

TEST_F(view, of_a_view_may_go_past_it)
{
	__u64 outer = new_view(self->ctx, self->base, 1000, 10);
	__u64 inner = new_view(self->ctx, outer, 9, 100);

	EXPECT_EQ(1009u, query(self->ctx, inner).out_offset);
	EXPECT_EQ(100u, query(self->ctx, inner).out_nbytes);
}

TEST_F(view, of_a_view_may_go_up_to_the_end_of_the_base)
{
	__u64 outer = new_view(self->ctx, self->base, 1000, 10);

	EXPECT_EQ(0, view_error(self->ctx, outer, 9, BASE_NBYTES - 1009));
}

TEST_F(view, of_a_view_may_not_go_past_the_end_of_the_base)
{
	__u64 outer = new_view(self->ctx, self->base, 1000, 10);

	EXPECT_EQ(-EINVAL, view_error(self->ctx, outer, 9, BASE_NBYTES - 1008));
}

TEST_F(view, of_a_view_begins_inside_of_it)
{
	__u64 outer = new_view(self->ctx, self->base, 1000, 10);

	EXPECT_EQ(-EINVAL, view_error(self->ctx, outer, 10, 1));
}

TEST_F(view, of_a_view_of_a_view_and_so_on)
{
	__u64 view = self->base;

	for (__u64 depth = 1; depth <= 200; depth++) {
		view = new_view(self->ctx, view, 1, 2);
		EXPECT_EQ(depth, query(self->ctx, view).out_offset);
	}
}

/* --- what it shows ---------------------------------------------------------------------------- */

FIXTURE(window)
{
	int ctx;
	__u64 base;
};

FIXTURE_VARIANT(window)
{
	__u64 offset, nbytes;
};

FIXTURE_VARIANT_ADD(window, first_byte){ 0, 1 };
FIXTURE_VARIANT_ADD(window, last_byte){ BASE_NBYTES - 1, 1 };
FIXTURE_VARIANT_ADD(window, inside_a_page){ 5, 77 };
FIXTURE_VARIANT_ADD(window, across_a_page){ 4001, 333 };
FIXTURE_VARIANT_ADD(window, second_page){ 4096, 4096 };
FIXTURE_VARIANT_ADD(window, all){ 0, BASE_NBYTES };

FIXTURE_SETUP(window)
{
	self->ctx = new_context();
	self->base = new_allocated(self->ctx, BASE_NBYTES);
	buffer_fill(self->ctx, self->base, BASE_NBYTES, 1);
}

FIXTURE_TEARDOWN(window)
{
	close(self->ctx);
}

TEST_F(window, shows_its_bytes_of_the_base)
{
	__u64 view = new_allocated_view(self->ctx, self->base, variant->offset, variant->nbytes);

	EXPECT_TRUE(buffer_filled_from(self->ctx, view, 0, variant->nbytes, 1, variant->offset));
}

TEST_F(window, changes_its_bytes_of_the_base_and_no_others)
{
	__u64 end = variant->offset + variant->nbytes;
	__u64 view = new_allocated_view(self->ctx, self->base, variant->offset, variant->nbytes);

	buffer_fill(self->ctx, view, variant->nbytes, 2);
	EXPECT_TRUE(buffer_filled(self->ctx, self->base, variant->offset, variant->nbytes, 2));
	if (variant->offset) {
		EXPECT_TRUE(buffer_filled(self->ctx, self->base, 0, variant->offset, 1));
	}
	if (end < BASE_NBYTES) {
		EXPECT_TRUE(
			buffer_filled_from(self->ctx, self->base, end, BASE_NBYTES - end, 1, end));
	}
}

TEST_F(window, ends_where_it_ends)
{
	__u64 view = new_allocated_view(self->ctx, self->base, variant->offset, variant->nbytes);
	char bytes[2];

	EXPECT_EQ(-EINVAL, do_copyout(self->ctx, view, variant->nbytes - 1, bytes, 2));
	EXPECT_EQ(-EINVAL, do_copyin(self->ctx, view, variant->nbytes, bytes, 1));
}

TEST_F(window, overlapping_views_share_bytes)
{
	__u64 view = new_allocated_view(self->ctx, self->base, variant->offset, variant->nbytes);
	__u64 other = new_allocated_view(self->ctx, self->base, 0, BASE_NBYTES);
	char byte;

	must(do_copyin(self->ctx, view, 0, "x", 1));
	must(do_copyout(self->ctx, other, variant->offset, &byte, 1));
	EXPECT_EQ('x', byte);
}

TEST_HARNESS_MAIN
