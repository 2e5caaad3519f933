// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ids: how they are given, and that every command which takes one refuses those that the context
 * does not hold. One variant a command; the tests are the same.
 */
#include "common.h"
#include "kselftest_harness.h"

FIXTURE(id)
{
	int ctx;
	__u64 known;
};

FIXTURE_VARIANT(id)
{
	/* Uses @id in a command that succeeds when @id is an allocated buffer, as @known is. */
	int (*use)(int ctx, __u64 id, __u64 known);
};

static int use_view(int ctx, __u64 id, __u64 known)
{
	__u64 view;

	(void)known;
	return do_view(ctx, id, 0, 1, &view);
}

static int use_allocate(int ctx, __u64 id, __u64 known)
{
	int ret = do_allocate_flags(ctx, id, DEVBUF_ALLOCATE_IF_NEEDED);

	(void)known;
	return ret < 0 ? ret : 0;
}

static int use_deallocate(int ctx, __u64 id, __u64 known)
{
	(void)known;
	return do_deallocate(ctx, id);
}

static int use_destroy(int ctx, __u64 id, __u64 known)
{
	(void)known;
	return do_destroy(ctx, id);
}

static int use_query(int ctx, __u64 id, __u64 known)
{
	struct devbuf_query query;

	(void)known;
	return do_query(ctx, id, &query);
}

static int use_set_name(int ctx, __u64 id, __u64 known)
{
	(void)known;
	return do_set_name(ctx, id, "name");
}

static int use_export(int ctx, __u64 id, __u64 known)
{
	int ret = do_export(ctx, id, 0);

	(void)known;
	if (ret < 0)
		return ret;
	close(ret);
	return 0;
}

static int use_sync(int ctx, __u64 id, __u64 known)
{
	(void)known;
	return do_sync(ctx, id, 0, 1, DEVBUF_SYNC_READ);
}

static int use_copyin(int ctx, __u64 id, __u64 known)
{
	(void)known;
	return do_copyin(ctx, id, 0, "x", 1);
}

static int use_copyout(int ctx, __u64 id, __u64 known)
{
	char byte;

	(void)known;
	return do_copyout(ctx, id, 0, &byte, 1);
}

static int path(int ctx, __u64 dst, __u64 src)
{
	struct devbuf_path path = { .size = sizeof(path), .dst_id = dst, .src_id = src };

	return do_command(ctx, DEVBUF_PATH, &path);
}

static int use_path_dst(int ctx, __u64 id, __u64 known)
{
	return path(ctx, id, known);
}

static int use_path_src(int ctx, __u64 id, __u64 known)
{
	return path(ctx, known, id);
}

static int use_transfer_dst(int ctx, __u64 id, __u64 known)
{
	return do_transfer(ctx, id, 0, known, 0, 1);
}

static int use_transfer_src(int ctx, __u64 id, __u64 known)
{
	return do_transfer(ctx, known, 0, id, 0, 1);
}

static int use_mmap(int ctx, __u64 id, __u64 known)
{
	(void)known;
	return do_map(ctx, id, PAGE, PROT_READ, NULL);
}

FIXTURE_VARIANT_ADD(id, view){ use_view };
FIXTURE_VARIANT_ADD(id, allocate){ use_allocate };
FIXTURE_VARIANT_ADD(id, deallocate){ use_deallocate };
FIXTURE_VARIANT_ADD(id, destroy){ use_destroy };
FIXTURE_VARIANT_ADD(id, query){ use_query };
FIXTURE_VARIANT_ADD(id, set_name){ use_set_name };
FIXTURE_VARIANT_ADD(id, export){ use_export };
FIXTURE_VARIANT_ADD(id, sync){ use_sync };
FIXTURE_VARIANT_ADD(id, copyin){ use_copyin };
FIXTURE_VARIANT_ADD(id, copyout){ use_copyout };
FIXTURE_VARIANT_ADD(id, path_dst){ use_path_dst };
FIXTURE_VARIANT_ADD(id, path_src){ use_path_src };
FIXTURE_VARIANT_ADD(id, transfer_dst){ use_transfer_dst };
FIXTURE_VARIANT_ADD(id, transfer_src){ use_transfer_src };
FIXTURE_VARIANT_ADD(id, mmap){ use_mmap };

FIXTURE_SETUP(id)
{
	self->ctx = new_context();
	self->known = new_allocated(self->ctx, PAGE);
}

FIXTURE_TEARDOWN(id)
{
	close(self->ctx);
}

TEST_F(id, that_is_in_the_table_is_found)
{
	__u64 id = new_allocated(self->ctx, PAGE);

	EXPECT_EQ(0, variant->use(self->ctx, id, self->known));
}

TEST_F(id, zero_is_ENOENT)
{
	EXPECT_EQ(-ENOENT, variant->use(self->ctx, 0, self->known));
}

TEST_F(id, never_given_is_ENOENT)
{
	EXPECT_EQ(-ENOENT, variant->use(self->ctx, self->known + 1000000, self->known));
}

TEST_F(id, maximum_is_ENOENT)
{
	/* mmap() offers no more bits than these. */
	__u64 largest = variant->use == use_mmap ? INT64_MAX / PAGE : UINT64_MAX;

	EXPECT_EQ(-ENOENT, variant->use(self->ctx, largest, self->known));
}

TEST_F(id, of_another_context_is_ENOENT)
{
	int other = new_context();
	__u64 id = new_allocated(other, PAGE);

	EXPECT_EQ(-ENOENT, variant->use(self->ctx, id, self->known));
	EXPECT_EQ(0, variant->use(other, id, id));
	close(other);
}

TEST_F(id, destroyed_is_ENOENT)
{
	__u64 id = new_allocated(self->ctx, PAGE);

	EXPECT_EQ(0, do_destroy(self->ctx, id));
	EXPECT_EQ(-ENOENT, variant->use(self->ctx, id, self->known));
}

/* The buffer is still there, held by a view, and its handle is not. */
TEST_F(id, destroyed_base_of_a_living_view_is_ENOENT)
{
	__u64 id = new_allocated(self->ctx, PAGE);

	new_allocated_view(self->ctx, id, 0, 1);
	EXPECT_EQ(0, do_destroy(self->ctx, id));
	EXPECT_EQ(-ENOENT, variant->use(self->ctx, id, self->known));
}

/* --- how ids are given ------------------------------------------------------------------------ */

FIXTURE(new_id)
{
	int ctx;
};

FIXTURE_SETUP(new_id)
{
	self->ctx = new_context();
}

FIXTURE_TEARDOWN(new_id)
{
	close(self->ctx);
}

TEST_F(new_id, is_larger_than_all_before)
{
	__u64 last = 0;

	for (int i = 0; i < 100; i++) {
		__u64 id = new_buffer(self->ctx, PAGE);

		EXPECT_LT(last, id);
		last = id;
		id = new_view(self->ctx, id, 1, 1);
		EXPECT_LT(last, id);
		last = id;
	}
}

TEST_F(new_id, is_nobody_else_s)
{
	int other = new_context();
	__u64 last = 0;

	for (int i = 0; i < 100; i++) {
		__u64 id = new_buffer(i % 2 ? other : self->ctx, PAGE);

		EXPECT_LT(last, id);
		last = id;
	}
	close(other);
}

TEST_F(new_id, is_not_one_that_was_destroyed)
{
	__u64 id = new_buffer(self->ctx, PAGE);

	EXPECT_EQ(0, do_destroy(self->ctx, id));
	EXPECT_LT(id, new_buffer(self->ctx, PAGE));
}

TEST_F(new_id, is_not_one_of_a_closed_context)
{
	int other = new_context();
	__u64 id = new_buffer(other, PAGE);

	close(other);
	EXPECT_LT(id, new_buffer(self->ctx, PAGE));
}

TEST_F(new_id, handles_are_counted_in_fdinfo)
{
	__u64 id;

	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-handles"));
	id = new_buffer(self->ctx, PAGE);
	new_view(self->ctx, id, 0, 1);
	EXPECT_EQ(2, fdinfo(self->ctx, "devbuf-handles"));
	EXPECT_EQ(0, do_destroy(self->ctx, id));
	EXPECT_EQ(1, fdinfo(self->ctx, "devbuf-handles"));
}

TEST_F(new_id, thousands_fit_into_one_context)
{
	enum { NR = 5000 };
	static __u64 ids[NR];

	for (int i = 0; i < NR; i++)
		ids[i] = new_buffer(self->ctx, PAGE);
	EXPECT_EQ(NR, fdinfo(self->ctx, "devbuf-handles"));
	for (int i = 0; i < NR; i += 2)
		must(do_destroy(self->ctx, ids[i]));
	EXPECT_EQ(-ENOENT, do_destroy(self->ctx, ids[0]));
	EXPECT_EQ(NR / 2, fdinfo(self->ctx, "devbuf-handles"));
	EXPECT_EQ(ids[NR - 1], query(self->ctx, ids[NR - 1]).out_base_id);
}

TEST_HARNESS_MAIN
