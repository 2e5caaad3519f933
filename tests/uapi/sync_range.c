// SPDX-License-Identifier: GPL-2.0-only
/* SYNC: flags and ranges. What it waits for is in vgem.c. */
#include "common.h"
#include "kselftest_harness.h"

#define NBYTES 10000u

FIXTURE(sync_range)
{
	int ctx;
	__u64 id;
};

FIXTURE_SETUP(sync_range)
{
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, NBYTES);
}

FIXTURE_TEARDOWN(sync_range)
{
	close(self->ctx);
}

TEST_F(sync_range, begins_and_ends_every_kind_of_access)
{
	static const __u32 accesses[] = {
		DEVBUF_SYNC_READ,
		DEVBUF_SYNC_WRITE,
		DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE,
	};

	for (size_t i = 0; i < ARRAY_SIZE(accesses); i++) {
		EXPECT_EQ(0, do_sync(self->ctx, self->id, 0, NBYTES, accesses[i]));
		EXPECT_EQ(0,
			  do_sync(self->ctx, self->id, 0, NBYTES, accesses[i] | DEVBUF_SYNC_END));
	}
}

TEST_F(sync_range, of_no_access_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, do_sync(self->ctx, self->id, 0, NBYTES, 0));
	EXPECT_EQ(-EINVAL, do_sync(self->ctx, self->id, 0, NBYTES, DEVBUF_SYNC_END));
}

TEST_F(sync_range, of_the_first_and_of_the_last_byte)
{
	EXPECT_EQ(0, do_sync(self->ctx, self->id, 0, 1, DEVBUF_SYNC_READ));
	EXPECT_EQ(0, do_sync(self->ctx, self->id, NBYTES - 1, 1, DEVBUF_SYNC_READ));
}

TEST_F(sync_range, of_nothing_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, do_sync(self->ctx, self->id, 0, 0, DEVBUF_SYNC_READ));
}

TEST_F(sync_range, past_the_end_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, do_sync(self->ctx, self->id, 0, NBYTES + 1, DEVBUF_SYNC_READ));
	EXPECT_EQ(-EINVAL, do_sync(self->ctx, self->id, NBYTES, 1, DEVBUF_SYNC_READ));
}

TEST_F(sync_range, that_wraps_is_EOVERFLOW)
{
	EXPECT_EQ(-EOVERFLOW, do_sync(self->ctx, self->id, 1, UINT64_MAX, DEVBUF_SYNC_READ));
}

TEST_F(sync_range, of_a_view_is_inside_of_it)
{
	__u64 view = new_allocated_view(self->ctx, self->id, 5000, 100);

	EXPECT_EQ(0, do_sync(self->ctx, view, 0, 100, DEVBUF_SYNC_WRITE));
	EXPECT_EQ(-EINVAL, do_sync(self->ctx, view, 0, 101, DEVBUF_SYNC_WRITE));
}

TEST_F(sync_range, does_not_change_the_bytes)
{
	buffer_fill(self->ctx, self->id, NBYTES, 1);
	must(do_sync(self->ctx, self->id, 1, 9000, DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE));
	must(do_sync(self->ctx, self->id, 1, 9000,
		     DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE | DEVBUF_SYNC_END));
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));
}

TEST_HARNESS_MAIN
