// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an importer may not do. A handle has the rights that its dma-buf carried; the handle of a
 * view reaches the view's bytes only, and no command leads to the rest of its base.
 */
#include "common.h"
#include "kselftest_harness.h"

/* --- the reader of a whole buffer ------------------------------------------------------------- */

FIXTURE(reader)
{
	int owner, ctx;
	__u64 id, own;
};

FIXTURE_SETUP(reader)
{
	self->owner = new_context();
	self->ctx = new_context();
	self->id = new_allocated(self->owner, 2 * PAGE);
	give(self->owner, self->id, 0, self->ctx);
	self->own = new_allocated(self->ctx, 2 * PAGE);
}

FIXTURE_TEARDOWN(reader)
{
	close(self->owner);
	close(self->ctx);
}

TEST_F(reader, may_copy_out)
{
	EXPECT_TRUE(buffer_zero(self->ctx, self->id, 0, 2 * PAGE));
}

TEST_F(reader, may_transfer_from_it)
{
	EXPECT_EQ(0, do_transfer(self->ctx, self->own, 0, self->id, 0, PAGE));
}

TEST_F(reader, may_sync_for_reading)
{
	EXPECT_EQ(0, do_sync(self->ctx, self->id, 0, 1, DEVBUF_SYNC_READ));
}

TEST_F(reader, may_export_for_reading)
{
	EXPECT_LE(0, do_export(self->ctx, self->id, 0));
}

TEST_F(reader, may_not_copy_in)
{
	EXPECT_EQ(-EACCES, do_copyin(self->ctx, self->id, 0, "x", 1));
	EXPECT_TRUE(buffer_zero(self->owner, self->id, 0, PAGE));
}

TEST_F(reader, may_not_transfer_to_it)
{
	EXPECT_EQ(-EACCES, do_transfer(self->ctx, self->id, 0, self->own, 0, 1));
}

TEST_F(reader, may_not_sync_for_writing)
{
	EXPECT_EQ(-EACCES, do_sync(self->ctx, self->id, 0, 1, DEVBUF_SYNC_WRITE));
	EXPECT_EQ(-EACCES,
		  do_sync(self->ctx, self->id, 0, 1, DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE));
}

TEST_F(reader, may_ask_for_the_path_from_it_and_not_to_it)
{
	struct devbuf_path path = {
		.size = sizeof(path),
		.dst_id = self->own,
		.src_id = self->id,
	};

	EXPECT_EQ(0, do_command(self->ctx, DEVBUF_PATH, &path));
	path.dst_id = self->id;
	EXPECT_EQ(-EACCES, do_command(self->ctx, DEVBUF_PATH, &path));
}

TEST_F(reader, may_not_map_for_writing)
{
	EXPECT_EQ(-EACCES, do_map(self->ctx, self->id, PAGE, PROT_READ | PROT_WRITE, NULL));
}

TEST_F(reader, may_not_export_for_writing)
{
	EXPECT_EQ(-EACCES, do_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE));
}

TEST_F(reader, may_not_write_by_way_of_a_view)
{
	__u64 view = new_allocated_view(self->ctx, self->id, 0, PAGE);

	EXPECT_EQ(-EACCES, do_copyin(self->ctx, view, 0, "x", 1));
	EXPECT_EQ(-EACCES, do_map(self->ctx, view, PAGE, PROT_READ | PROT_WRITE, NULL));
	EXPECT_EQ(-EACCES, do_export(self->ctx, view, DEVBUF_EXPORT_WRITE));
	EXPECT_EQ(RIGHTS_READER | DEVBUF_RIGHT_MANAGE, query(self->ctx, view).out_rights);
}

TEST_F(reader, may_not_manage)
{
	EXPECT_EQ(-EACCES, do_allocate(self->ctx, self->id));
	EXPECT_EQ(-EACCES, do_deallocate(self->ctx, self->id));
	EXPECT_EQ(-EACCES, do_set_name(self->ctx, self->id, "mine"));
}

/* --- the writer of a whole buffer ------------------------------------------------------------- */

FIXTURE(writer)
{
	int owner, ctx;
	__u64 id;
};

FIXTURE_SETUP(writer)
{
	self->owner = new_context();
	self->ctx = new_context();
	self->id = new_allocated(self->owner, 2 * PAGE);
	give(self->owner, self->id, DEVBUF_EXPORT_WRITE, self->ctx);
}

FIXTURE_TEARDOWN(writer)
{
	close(self->owner);
	close(self->ctx);
}

TEST_F(writer, may_copy_in_and_map_and_export_for_writing)
{
	EXPECT_EQ(0, do_copyin(self->ctx, self->id, 0, "x", 1));
	EXPECT_EQ(0, do_map(self->ctx, self->id, PAGE, PROT_READ | PROT_WRITE, NULL));
	EXPECT_LE(0, do_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE));
}

TEST_F(writer, may_not_allocate)
{
	must(do_deallocate(self->owner, self->id));
	EXPECT_EQ(-EACCES, do_allocate(self->ctx, self->id));
	EXPECT_EQ(0u, query(self->owner, self->id).out_state);
}

TEST_F(writer, may_not_deallocate)
{
	EXPECT_EQ(-EACCES, do_deallocate(self->ctx, self->id));
	EXPECT_TRUE(query(self->owner, self->id).out_state & DEVBUF_STATE_ALLOCATED);
}

TEST_F(writer, may_not_rename)
{
	EXPECT_EQ(-EACCES, do_set_name(self->ctx, self->id, "mine"));
}

TEST_F(writer, may_make_views_and_manage_those)
{
	__u64 view = new_view(self->ctx, self->id, 5, 10);

	EXPECT_EQ(RIGHTS_ALL, query(self->ctx, view).out_rights);
	EXPECT_EQ(0, do_allocate(self->ctx, view));
	EXPECT_EQ(0, do_set_name(self->ctx, view, "mine"));
	EXPECT_EQ(0, do_deallocate(self->ctx, view));
}

/* --- the holder of only a view ---------------------------------------------------------------- */

#define BASE_NBYTES 20000u

FIXTURE(bounded)
{
	int owner, ctx;
	__u64 base, view;
};

FIXTURE_VARIANT(bounded)
{
	__u64 offset, nbytes;
	/* The view begins and ends with a page. */
	bool whole_pages;
};

FIXTURE_VARIANT_ADD(bounded, one_byte){ 5000, 1, false };
FIXTURE_VARIANT_ADD(bounded, across_pages){ 5000, 8000, false };
FIXTURE_VARIANT_ADD(bounded, begins_with_a_page){ 4096, 100, false };
FIXTURE_VARIANT_ADD(bounded, ends_with_a_page){ 8192 - 100, 100, false };
FIXTURE_VARIANT_ADD(bounded, whole_pages){ 4096, 8192, true };

FIXTURE_SETUP(bounded)
{
	int fd;

	self->owner = new_context();
	self->ctx = new_context();
	self->base = new_allocated(self->owner, BASE_NBYTES);
	buffer_fill(self->owner, self->base, BASE_NBYTES, 1);
	self->view = new_allocated_view(self->owner, self->base, variant->offset, variant->nbytes);
	fd = new_export(self->owner, self->view, DEVBUF_EXPORT_WRITE);
	new_import(self->ctx, fd);
	close(fd);
}

FIXTURE_TEARDOWN(bounded)
{
	close(self->owner);
	close(self->ctx);
}

TEST_F(bounded, reads_and_writes_the_view)
{
	EXPECT_TRUE(
		buffer_filled_from(self->ctx, self->view, 0, variant->nbytes, 1, variant->offset));
	buffer_fill(self->ctx, self->view, variant->nbytes, 2);
	EXPECT_TRUE(buffer_filled(self->owner, self->base, variant->offset, variant->nbytes, 2));
}

TEST_F(bounded, does_not_know_the_base)
{
	struct devbuf_query q;
	__u64 id;

	EXPECT_EQ(self->base, query(self->ctx, self->view).out_base_id);
	EXPECT_EQ(-ENOENT, do_query(self->ctx, self->base, &q));
	EXPECT_EQ(-ENOENT, do_view(self->ctx, self->base, 0, 1, &id));
	EXPECT_EQ(-ENOENT, do_export(self->ctx, self->base, 0));
	EXPECT_EQ(-ENOENT, do_map(self->ctx, self->base, PAGE, PROT_READ, NULL));
	EXPECT_EQ(-ENOENT, do_destroy(self->ctx, self->base));
}

TEST_F(bounded, views_past_the_view_are_EACCES)
{
	__u64 id;

	EXPECT_EQ(-EACCES, do_view(self->ctx, self->view, 0, variant->nbytes + 1, &id));
	EXPECT_EQ(-EACCES, do_view(self->ctx, self->view, variant->nbytes - 1, 2, &id));
	EXPECT_EQ(-EACCES, do_view(self->ctx, self->view, 0, BASE_NBYTES - variant->offset, &id));
}

TEST_F(bounded, views_of_views_past_the_view_are_EACCES)
{
	__u64 inner = new_view(self->ctx, self->view, variant->nbytes - 1, 1);
	__u64 id;

	EXPECT_EQ(-EACCES, do_view(self->ctx, inner, 0, 2, &id));
	EXPECT_EQ(0, do_view(self->ctx, inner, 0, 1, &id));
}

TEST_F(bounded, views_of_views_may_reach_all_of_the_view)
{
	__u64 inner = new_view(self->ctx, self->view, 0, 1);
	__u64 id;

	EXPECT_EQ(0, do_view(self->ctx, inner, 0, variant->nbytes, &id));
}

TEST_F(bounded, copies_past_the_view_are_EINVAL)
{
	char bytes[2];

	EXPECT_EQ(-EINVAL, do_copyout(self->ctx, self->view, variant->nbytes - 1, bytes, 2));
	EXPECT_EQ(-EINVAL, do_copyin(self->ctx, self->view, variant->nbytes, bytes, 1));
}

TEST_F(bounded, transfers_past_the_view_are_EINVAL)
{
	__u64 own = new_allocated(self->ctx, PAGE);

	EXPECT_EQ(-EINVAL, do_transfer(self->ctx, own, 0, self->view, variant->nbytes - 1, 2));
	EXPECT_EQ(-EINVAL, do_transfer(self->ctx, self->view, variant->nbytes - 1, own, 0, 2));
}

TEST_F(bounded, sync_past_the_view_is_EINVAL)
{
	EXPECT_EQ(-EINVAL,
		  do_sync(self->ctx, self->view, 0, variant->nbytes + 1, DEVBUF_SYNC_READ));
}

TEST_F(bounded, maps_whole_pages_of_the_view_only)
{
	EXPECT_EQ(variant->whole_pages ? 0 : -EACCES,
		  do_map(self->ctx, self->view, PAGE, PROT_READ, NULL));
}

TEST_F(bounded, exports_whole_pages_of_the_view_only)
{
	int ret = do_export(self->ctx, self->view, 0);

	EXPECT_EQ(variant->whole_pages ? 0 : -EACCES, ret < 0 ? ret : 0);
}

TEST_F(bounded, inner_views_map_and_export_no_more_than_the_view)
{
	__u64 inner = new_allocated_view(self->ctx, self->view, 0, 1);
	int ret = do_export(self->ctx, inner, 0);

	EXPECT_EQ(variant->whole_pages ? 0 : -EACCES, ret < 0 ? ret : 0);
	EXPECT_EQ(variant->whole_pages ? 0 : -EACCES,
		  do_map(self->ctx, inner, PAGE, PROT_READ, NULL));
}

TEST_F(bounded, does_not_manage_view_or_base)
{
	EXPECT_EQ(-EACCES, do_deallocate(self->ctx, self->view));
	EXPECT_EQ(-EACCES, do_set_name(self->ctx, self->view, "mine"));
	EXPECT_EQ(-EACCES, do_allocate(self->ctx, self->view));
	must(do_deallocate(self->owner, self->view));
	must(do_deallocate(self->owner, self->base));
	EXPECT_EQ(-EACCES, do_allocate(self->ctx, new_view(self->ctx, self->view, 0, 1)));
	EXPECT_EQ(0u, query(self->owner, self->base).out_state);
}

/* The dma-buf covers the whole pages around the view; the handle that an import of it gives does not. */
TEST_F(bounded, importing_the_view_again_reaches_no_further)
{
	__u64 id;

	give(self->owner, self->view, DEVBUF_EXPORT_WRITE, self->ctx);
	EXPECT_EQ(-EACCES, do_view(self->ctx, self->view, 0, variant->nbytes + 1, &id));
}

TEST_F(bounded, importing_the_base_too_opens_it_by_its_own_id)
{
	__u64 id;

	give(self->owner, self->base, 0, self->ctx);
	EXPECT_EQ(0, do_view(self->ctx, self->base, 0, BASE_NBYTES, &id));
	EXPECT_TRUE(buffer_filled(self->ctx, self->base, 0, BASE_NBYTES, 1));
}

/* --- the holder of only a view of a caller's own memory --------------------------------------- */

/* Pages begin where the caller's addresses say, not where the buffer's offsets do. */
FIXTURE(bounded_user)
{
	int owner, ctx;
	__u64 view;
};

FIXTURE_VARIANT(bounded_user)
{
	__u64 offset, nbytes;
	bool whole_pages;
};

#define SKEW 100u

FIXTURE_VARIANT_ADD(bounded_user, pages_of_the_memory){ 4096 - SKEW, 8192, true };
FIXTURE_VARIANT_ADD(bounded_user, pages_of_the_offsets){ 4096, 8192, false };
FIXTURE_VARIANT_ADD(bounded_user, begins_with_a_page){ 4096 - SKEW, 100, false };
FIXTURE_VARIANT_ADD(bounded_user, ends_with_a_page){ 8192 - SKEW - 100, 100, false };

FIXTURE_SETUP(bounded_user)
{
	unsigned char *memory = new_memory(SKEW + BASE_NBYTES);
	__u64 base;

	self->owner = new_context();
	self->ctx = new_context();
	base = new_user_buffer(self->owner, memory + SKEW, BASE_NBYTES);
	self->view = new_allocated_view(self->owner, base, variant->offset, variant->nbytes);
	give(self->owner, self->view, 0, self->ctx);
}

FIXTURE_TEARDOWN(bounded_user)
{
	close(self->owner);
	close(self->ctx);
}

TEST_F(bounded_user, exports_whole_pages_of_the_view_only)
{
	int ret = do_export(self->ctx, self->view, 0);

	EXPECT_EQ(variant->whole_pages ? 0 : -EACCES, ret < 0 ? ret : 0);
}

TEST_HARNESS_MAIN
