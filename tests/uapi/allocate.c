// SPDX-License-Identifier: GPL-2.0-only
/* ALLOCATE, DEALLOCATE, DESTROY, and the states that QUERY tells in between. */
#include "common.h"
#include "kselftest_harness.h"

#define BASE_NBYTES     10000u

#define STATE_BASE      (DEVBUF_STATE_BASE_ALLOCATED | DEVBUF_STATE_ALLOCATED)
#define STATE_VIEW      (DEVBUF_STATE_BASE_ALLOCATED | DEVBUF_STATE_ALLOCATED | DEVBUF_STATE_VIEW)
/* A view of an allocated base, not allocated itself. */
#define STATE_VIEW_IDLE (DEVBUF_STATE_BASE_ALLOCATED | DEVBUF_STATE_VIEW)

FIXTURE(allocate)
{
	int ctx;
	__u64 base, view;
};

FIXTURE_SETUP(allocate)
{
	self->ctx = new_context();
	self->base = new_buffer(self->ctx, BASE_NBYTES);
	self->view = new_view(self->ctx, self->base, 5000, 100);
}

FIXTURE_TEARDOWN(allocate)
{
	close(self->ctx);
}

/* --- allocate --------------------------------------------------------------------------------- */

TEST_F(allocate, base)
{
	EXPECT_EQ(0, do_allocate_flags(self->ctx, self->base, 0));
	EXPECT_EQ(STATE_BASE, query(self->ctx, self->base).out_state);
	EXPECT_EQ(STATE_VIEW_IDLE, query(self->ctx, self->view).out_state);
}

TEST_F(allocate, twice_is_EALREADY)
{
	must(do_allocate(self->ctx, self->base));
	EXPECT_EQ(-EALREADY, do_allocate(self->ctx, self->base));
	EXPECT_EQ(STATE_BASE, query(self->ctx, self->base).out_state);
}

TEST_F(allocate, if_needed_when_it_is_needed)
{
	EXPECT_EQ(0, do_allocate_flags(self->ctx, self->base, DEVBUF_ALLOCATE_IF_NEEDED));
	EXPECT_EQ(STATE_BASE, query(self->ctx, self->base).out_state);
}

TEST_F(allocate, if_needed_when_it_is_not_keeps_the_memory)
{
	must(do_allocate(self->ctx, self->base));
	buffer_fill(self->ctx, self->base, BASE_NBYTES, 1);
	EXPECT_EQ(0, do_allocate_flags(self->ctx, self->base, DEVBUF_ALLOCATE_IF_NEEDED));
	EXPECT_TRUE(buffer_filled(self->ctx, self->base, 0, BASE_NBYTES, 1));
}

TEST_F(allocate, view_of_an_allocated_base)
{
	must(do_allocate(self->ctx, self->base));
	EXPECT_EQ(0, do_allocate(self->ctx, self->view));
	EXPECT_EQ(STATE_VIEW, query(self->ctx, self->view).out_state);
}

TEST_F(allocate, view_allocates_its_base_first)
{
	EXPECT_EQ(0, do_allocate(self->ctx, self->view));
	EXPECT_EQ(STATE_BASE, query(self->ctx, self->base).out_state);
	EXPECT_EQ(STATE_VIEW, query(self->ctx, self->view).out_state);
	EXPECT_EQ(-EALREADY, do_allocate(self->ctx, self->base));
}

TEST_F(allocate, view_allocates_a_base_whose_handle_is_gone)
{
	must(do_destroy(self->ctx, self->base));
	EXPECT_EQ(0, do_allocate(self->ctx, self->view));
	EXPECT_EQ(STATE_VIEW, query(self->ctx, self->view).out_state);
}

TEST_F(allocate, view_twice_is_EALREADY)
{
	must(do_allocate(self->ctx, self->view));
	EXPECT_EQ(-EALREADY, do_allocate(self->ctx, self->view));
}

TEST_F(allocate, view_if_needed)
{
	EXPECT_EQ(0, do_allocate_flags(self->ctx, self->view, DEVBUF_ALLOCATE_IF_NEEDED));
	EXPECT_EQ(0, do_allocate_flags(self->ctx, self->view, DEVBUF_ALLOCATE_IF_NEEDED));
	EXPECT_EQ(STATE_VIEW, query(self->ctx, self->view).out_state);
}

TEST_F(allocate, one_view_leaves_the_others_as_they_were)
{
	__u64 other = new_view(self->ctx, self->base, 5000, 100);

	must(do_allocate(self->ctx, self->view));
	EXPECT_EQ(STATE_VIEW_IDLE, query(self->ctx, other).out_state);
}

/* --- what is not allocated -------------------------------------------------------------------- */

static void expect_no_data(struct __test_metadata *_metadata, int ctx, __u64 id)
{
	__u64 other = new_allocated(ctx, 1);
	char byte;

	EXPECT_EQ(-ENODATA, do_copyin(ctx, id, 0, "x", 1));
	EXPECT_EQ(-ENODATA, do_copyout(ctx, id, 0, &byte, 1));
	EXPECT_EQ(-ENODATA, do_transfer(ctx, id, 0, other, 0, 1));
	EXPECT_EQ(-ENODATA, do_transfer(ctx, other, 0, id, 0, 1));
	EXPECT_EQ(-ENODATA, do_sync(ctx, id, 0, 1, DEVBUF_SYNC_READ));
	EXPECT_EQ(-ENODATA, do_export(ctx, id, 0));
	EXPECT_EQ(-ENODATA, do_map(ctx, id, PAGE, PROT_READ, NULL));
}

TEST_F(allocate, a_new_base_has_no_bytes)
{
	expect_no_data(_metadata, self->ctx, self->base);
}

TEST_F(allocate, a_deallocated_base_has_no_bytes)
{
	must(do_allocate(self->ctx, self->base));
	must(do_deallocate(self->ctx, self->base));
	expect_no_data(_metadata, self->ctx, self->base);
}

TEST_F(allocate, a_view_has_no_bytes_though_its_base_has)
{
	must(do_allocate(self->ctx, self->base));
	expect_no_data(_metadata, self->ctx, self->view);
}

TEST_F(allocate, a_deallocated_view_has_no_bytes_though_its_base_has)
{
	must(do_allocate(self->ctx, self->view));
	must(do_deallocate(self->ctx, self->view));
	expect_no_data(_metadata, self->ctx, self->view);
}

/* --- deallocate ------------------------------------------------------------------------------- */

TEST_F(allocate, deallocate_what_has_no_memory)
{
	EXPECT_EQ(0, do_deallocate(self->ctx, self->base));
	EXPECT_EQ(0, do_deallocate(self->ctx, self->view));
}

TEST_F(allocate, deallocate_twice)
{
	must(do_allocate(self->ctx, self->base));
	EXPECT_EQ(0, do_deallocate(self->ctx, self->base));
	EXPECT_EQ(0, do_deallocate(self->ctx, self->base));
	EXPECT_EQ(0u, query(self->ctx, self->base).out_state);
}

TEST_F(allocate, deallocate_a_base_with_an_allocated_view_is_EBUSY)
{
	must(do_allocate(self->ctx, self->view));
	EXPECT_EQ(-EBUSY, do_deallocate(self->ctx, self->base));
	EXPECT_EQ(STATE_BASE, query(self->ctx, self->base).out_state);
	EXPECT_EQ(STATE_VIEW, query(self->ctx, self->view).out_state);
}

TEST_F(allocate, deallocate_a_base_after_its_views)
{
	__u64 other = new_allocated_view(self->ctx, self->base, 0, 1);

	must(do_allocate(self->ctx, self->view));
	must(do_deallocate(self->ctx, self->view));
	EXPECT_EQ(-EBUSY, do_deallocate(self->ctx, self->base));
	must(do_deallocate(self->ctx, other));
	EXPECT_EQ(0, do_deallocate(self->ctx, self->base));
	EXPECT_EQ(DEVBUF_STATE_VIEW, query(self->ctx, self->view).out_state);
}

TEST_F(allocate, deallocate_a_base_whose_allocated_view_is_destroyed)
{
	must(do_allocate(self->ctx, self->view));
	must(do_destroy(self->ctx, self->view));
	EXPECT_EQ(0, do_deallocate(self->ctx, self->base));
}

TEST_F(allocate, deallocate_a_view_leaves_the_bytes_of_its_base)
{
	must(do_allocate(self->ctx, self->view));
	buffer_fill(self->ctx, self->view, 100, 1);
	EXPECT_EQ(0, do_deallocate(self->ctx, self->view));
	EXPECT_EQ(STATE_BASE, query(self->ctx, self->base).out_state);
	EXPECT_TRUE(buffer_filled(self->ctx, self->base, 5000, 100, 1));
}

TEST_F(allocate, memory_that_comes_again_is_zero)
{
	must(do_allocate(self->ctx, self->base));
	for (int i = 0; i < 20; i++) {
		buffer_fill(self->ctx, self->base, BASE_NBYTES, 1);
		must(do_deallocate(self->ctx, self->base));
		must(do_allocate(self->ctx, self->base));
		EXPECT_TRUE(buffer_zero(self->ctx, self->base, 0, BASE_NBYTES));
	}
}

/* --- destroy ---------------------------------------------------------------------------------- */

TEST_F(allocate, destroy_what_is_allocated)
{
	must(do_allocate(self->ctx, self->base));
	must(do_destroy(self->ctx, self->view));
	EXPECT_EQ(0, do_destroy(self->ctx, self->base));
	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-allocated-nbytes"));
}

TEST_F(allocate, destroy_a_base_leaves_its_allocated_view)
{
	must(do_allocate(self->ctx, self->view));
	buffer_fill(self->ctx, self->view, 100, 1);
	EXPECT_EQ(0, do_destroy(self->ctx, self->base));
	EXPECT_EQ(STATE_VIEW, query(self->ctx, self->view).out_state);
	EXPECT_TRUE(buffer_filled(self->ctx, self->view, 0, 100, 1));
	EXPECT_EQ(self->base, query(self->ctx, self->view).out_base_id);
}

TEST_F(allocate, destroy_counts)
{
	__u64 id = new_allocated(self->ctx, PAGE);

	give(self->ctx, id, 0, self->ctx);
	give(self->ctx, id, 0, self->ctx);
	EXPECT_EQ(3u, query(self->ctx, id).out_handle_count);
	EXPECT_EQ(0, do_destroy(self->ctx, id));
	EXPECT_EQ(0, do_destroy(self->ctx, id));
	EXPECT_EQ(1u, query(self->ctx, id).out_handle_count);
	EXPECT_EQ(0, do_destroy(self->ctx, id));
	EXPECT_EQ(-ENOENT, do_destroy(self->ctx, id));
}

/* --- views of several contexts ---------------------------------------------------------------- */

FIXTURE(shared)
{
	int owner, other;
	__u64 base;
};

FIXTURE_SETUP(shared)
{
	self->owner = new_context();
	self->other = new_context();
	self->base = new_allocated(self->owner, BASE_NBYTES);
	give(self->owner, self->base, DEVBUF_EXPORT_WRITE, self->other);
}

FIXTURE_TEARDOWN(shared)
{
	close(self->owner);
	close(self->other);
}

TEST_F(shared, a_context_may_allocate_its_own_views)
{
	__u64 view = new_view(self->other, self->base, 10, 10);

	EXPECT_EQ(0, do_allocate(self->other, view));
	EXPECT_EQ(STATE_VIEW, query(self->other, view).out_state);
}

TEST_F(shared, views_made_elsewhere_do_not_hold_up_deallocate)
{
	__u64 view = new_allocated_view(self->other, self->base, 10, 10);

	EXPECT_EQ(0, do_deallocate(self->owner, self->base));
	EXPECT_EQ(DEVBUF_STATE_VIEW, query(self->other, view).out_state);
	EXPECT_EQ(0u, query(self->other, self->base).out_state);
}

TEST_F(shared, views_made_elsewhere_lose_their_memory_for_good)
{
	__u64 view = new_allocated_view(self->other, self->base, 10, 10);
	char byte;

	must(do_deallocate(self->owner, self->base));
	EXPECT_EQ(-ENODATA, do_copyout(self->other, view, 0, &byte, 1));
	must(do_allocate(self->owner, self->base));
	EXPECT_EQ(-ENODATA, do_copyout(self->other, view, 0, &byte, 1));
	EXPECT_EQ(STATE_VIEW_IDLE, query(self->other, view).out_state);
	EXPECT_EQ(0, do_allocate(self->other, view));
	EXPECT_EQ(0, do_copyout(self->other, view, 0, &byte, 1));
	EXPECT_EQ(0, byte);
}

TEST_F(shared, the_base_is_not_allocated_by_a_view_without_the_right)
{
	__u64 view = new_view(self->other, self->base, 10, 10);

	must(do_deallocate(self->owner, self->base));
	EXPECT_EQ(-EACCES, do_allocate(self->other, view));
	EXPECT_EQ(0u, query(self->owner, self->base).out_state);
}

/* The view is the owner's, though the other context knows it too. */
TEST_F(shared, a_view_that_another_context_imported_still_holds_up_deallocate)
{
	__u64 view = new_allocated_view(self->owner, self->base, 0, PAGE);

	give(self->owner, view, 0, self->other);
	EXPECT_EQ(-EBUSY, do_deallocate(self->owner, self->base));
}

TEST_F(shared, a_view_that_only_another_context_still_has_does_not_hold_up_deallocate)
{
	__u64 view = new_allocated_view(self->owner, self->base, 0, PAGE);
	char byte;

	give(self->owner, view, 0, self->other);
	must(do_destroy(self->owner, view));
	EXPECT_EQ(0, do_copyout(self->other, view, 0, &byte, 1));
	EXPECT_EQ(0, do_deallocate(self->owner, self->base));
	EXPECT_EQ(-ENODATA, do_copyout(self->other, view, 0, &byte, 1));
}

TEST_F(shared, bases_are_found_by_others_after_the_owner_has_closed)
{
	buffer_fill(self->owner, self->base, BASE_NBYTES, 1);
	close(self->owner);
	self->owner = new_context();
	EXPECT_EQ(STATE_BASE, query(self->other, self->base).out_state);
	EXPECT_TRUE(buffer_filled(self->other, self->base, 0, BASE_NBYTES, 1));
}

TEST_HARNESS_MAIN
