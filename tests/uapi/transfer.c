// SPDX-License-Identifier: GPL-2.0-only
/* TRANSFER and PATH: from buffer to buffer inside the kernel. */
#include "common.h"
#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(transfer)
{
	int ctx;
	__u64 dst, src;
};

FIXTURE_SETUP(transfer)
{
	self->ctx = new_context();
	self->dst = new_allocated(self->ctx, NBYTES);
	self->src = new_allocated(self->ctx, NBYTES);
	buffer_fill(self->ctx, self->src, NBYTES, 1);
}

FIXTURE_TEARDOWN(transfer)
{
	close(self->ctx);
}

/* --- path ------------------------------------------------------------------------------------- */

TEST_F(transfer, path_of_host_memory_is_the_CPU_and_says_why)
{
	struct devbuf_path path = {
		.size = sizeof(path),
		.dst_id = self->dst,
		.src_id = self->src,
		.out_path = UINT32_MAX,
	};

	memset(path.out_reasons, 0xff, sizeof(path.out_reasons));
	ASSERT_EQ(0, do_command(self->ctx, DEVBUF_PATH, &path));
	EXPECT_EQ(DEVBUF_PATH_CPU, (int)path.out_path);
	EXPECT_EQ(0u, path.out_pad);
	EXPECT_EQ(DEVBUF_REASON_NONE, (int)path.out_reasons[DEVBUF_PATH_CPU]);
	EXPECT_EQ(DEVBUF_REASON_NOT_PEERS, (int)path.out_reasons[DEVBUF_PATH_PEER]);
	EXPECT_NE(DEVBUF_REASON_NONE, (int)path.out_reasons[DEVBUF_PATH_DEVICE]);
	EXPECT_NE(DEVBUF_REASON_NONE, (int)path.out_reasons[DEVBUF_PATH_DMAENGINE]);
	for (size_t i = DEVBUF_PATH_COUNT; i < ARRAY_SIZE(path.out_reasons); i++)
		EXPECT_EQ(0u, path.out_reasons[i]);
}

TEST_F(transfer, path_of_buffers_without_memory)
{
	struct devbuf_path path = {
		.size = sizeof(path),
		.dst_id = new_buffer(self->ctx, 1),
		.src_id = new_buffer(self->ctx, 1),
	};

	EXPECT_EQ(0, do_command(self->ctx, DEVBUF_PATH, &path));
	EXPECT_EQ(DEVBUF_PATH_CPU, (int)path.out_path);
}

/* --- what is refused -------------------------------------------------------------------------- */

TEST_F(transfer, of_nothing_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, do_transfer(self->ctx, self->dst, 0, self->src, 0, 0));
}

TEST_F(transfer, past_the_end_of_the_destination_is_EINVAL)
{
	__u64 small = new_allocated(self->ctx, 100);

	EXPECT_EQ(-EINVAL, do_transfer(self->ctx, small, 0, self->src, 0, 101));
	EXPECT_EQ(-EINVAL, do_transfer(self->ctx, small, 99, self->src, 0, 2));
	EXPECT_EQ(-EINVAL, do_transfer(self->ctx, small, 100, self->src, 0, 1));
}

TEST_F(transfer, past_the_end_of_the_source_is_EINVAL)
{
	__u64 small = new_allocated(self->ctx, 100);

	EXPECT_EQ(-EINVAL, do_transfer(self->ctx, self->dst, 0, small, 0, 101));
	EXPECT_EQ(-EINVAL, do_transfer(self->ctx, self->dst, 0, small, 99, 2));
	EXPECT_EQ(-EINVAL, do_transfer(self->ctx, self->dst, 0, small, 100, 1));
}

TEST_F(transfer, that_wraps_is_EOVERFLOW)
{
	EXPECT_EQ(-EOVERFLOW, do_transfer(self->ctx, self->dst, 1, self->src, 1, UINT64_MAX));
}

static struct devbuf_transfer_range range(__u64 dst, __u64 dst_offset, __u64 src, __u64 src_offset,
					  __u64 nbytes)
{
	return (struct devbuf_transfer_range){
		.dst_id = dst,
		.dst_offset = dst_offset,
		.src_id = src,
		.src_offset = src_offset,
		.nbytes = nbytes,
	};
}

static int transfer_ranges(int ctx, const struct devbuf_transfer_range *ranges, __u32 nr_ranges)
{
	struct devbuf_transfer transfer = { 0 };

	return do_transfer_ranges(ctx, &transfer, ranges, nr_ranges);
}

TEST_F(transfer, without_ranges_is_EINVAL)
{
	struct devbuf_transfer_range r = range(self->dst, 0, self->src, 0, 1);

	EXPECT_EQ(-EINVAL, transfer_ranges(self->ctx, &r, 0));
}

TEST_F(transfer, of_more_ranges_than_the_most_is_EINVAL)
{
	static struct devbuf_transfer_range ranges[DEVBUF_MAX_RANGES + 1];

	for (int i = 0; i <= DEVBUF_MAX_RANGES; i++)
		ranges[i] = range(self->dst, i, self->src, i, 1);
	EXPECT_EQ(-EINVAL, transfer_ranges(self->ctx, ranges, DEVBUF_MAX_RANGES + 1));
	EXPECT_EQ(0, transfer_ranges(self->ctx, ranges, DEVBUF_MAX_RANGES));
	EXPECT_TRUE(buffer_filled(self->ctx, self->dst, 0, DEVBUF_MAX_RANGES, 1));
	EXPECT_TRUE(buffer_zero(self->ctx, self->dst, DEVBUF_MAX_RANGES, 1));
}

TEST_F(transfer, with_no_array_is_EFAULT)
{
	EXPECT_EQ(-EFAULT, transfer_ranges(self->ctx, NULL, 1));
}

TEST_F(transfer, with_an_array_at_the_end_of_memory)
{
	struct devbuf_transfer_range *r = new_edge(sizeof(*r));

	*r = range(self->dst, 0, self->src, 0, 1);
	EXPECT_EQ(0, transfer_ranges(self->ctx, r, 1));
}

TEST_F(transfer, with_an_array_past_the_end_of_memory_is_EFAULT)
{
	struct devbuf_transfer_range *r = new_edge(sizeof(*r));

	*r = range(self->dst, 0, self->src, 0, 1);
	EXPECT_EQ(-EFAULT, transfer_ranges(self->ctx, r, 2));
	EXPECT_TRUE(buffer_zero(self->ctx, self->dst, 0, NBYTES));
}

TEST_F(transfer, with_one_bad_range_copies_nothing)
{
	__u64 idle = new_buffer(self->ctx, 1);
	const struct {
		struct devbuf_transfer_range range;
		int error;
	} bad[] = {
		{ range(UINT64_MAX, 0, self->src, 0, 1), -ENOENT },
		{ range(self->dst, 0, UINT64_MAX, 0, 1), -ENOENT },
		{ range(self->dst, NBYTES, self->src, 0, 1), -EINVAL },
		{ range(self->dst, 0, self->src, NBYTES, 1), -EINVAL },
		{ range(self->dst, 0, self->src, 0, 0), -EINVAL },
		{ range(idle, 0, self->src, 0, 1), -ENODATA },
		{ range(self->dst, 0, idle, 0, 1), -ENODATA },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct devbuf_transfer_range ranges[] = {
			range(self->dst, 0, self->src, 0, 100),
			bad[i].range,
		};

		EXPECT_EQ(bad[i].error, transfer_ranges(self->ctx, ranges, 2))
		TH_LOG("bad range %zu", i);
	}
	EXPECT_TRUE(buffer_zero(self->ctx, self->dst, 0, NBYTES));
}

TEST_F(transfer, that_may_not_take_the_CPU_does_nothing)
{
	struct devbuf_transfer transfer = { .flags = DEVBUF_TRANSFER_NO_CPU };
	struct devbuf_transfer_range r = range(self->dst, 0, self->src, 0, NBYTES);

	EXPECT_EQ(-EOPNOTSUPP, do_transfer_ranges(self->ctx, &transfer, &r, 1));
	EXPECT_TRUE(buffer_zero(self->ctx, self->dst, 0, NBYTES));
}

TEST_F(transfer, says_how_it_went)
{
	const struct devbuf_transfer_range ranges[] = {
		range(self->dst, 0, self->src, 0, 1000),
		range(self->dst, 5000, self->src, 0, 234),
	};
	struct devbuf_transfer transfer = {
		.out_done_nbytes = UINT64_MAX,
		.out_path = UINT32_MAX,
		.out_fence = -1,
	};

	EXPECT_EQ(0, do_transfer_ranges(self->ctx, &transfer, ranges, 2));
	EXPECT_EQ(1234u, transfer.out_done_nbytes);
	EXPECT_EQ(DEVBUF_PATH_CPU, (int)transfer.out_path);
	EXPECT_EQ(0, transfer.out_fence);
}

/* --- between two buffers ---------------------------------------------------------------------- */

FIXTURE(between)
{
	int ctx;
	__u64 dst, src;
};

FIXTURE_VARIANT(between)
{
	__u64 dst_offset, src_offset, nbytes;
};

FIXTURE_VARIANT_ADD(between, one_byte){ 0, 0, 1 };
FIXTURE_VARIANT_ADD(between, last_byte_to_first){ 0, NBYTES - 1, 1 };
FIXTURE_VARIANT_ADD(between, first_byte_to_last){ NBYTES - 1, 0, 1 };
FIXTURE_VARIANT_ADD(between, pages){ 4096, 8192, 8192 };
FIXTURE_VARIANT_ADD(between, across_other_pages_on_either_side){ 4095, 1, 12345 };
FIXTURE_VARIANT_ADD(between, all){ 0, 0, NBYTES };

FIXTURE_SETUP(between)
{
	self->ctx = new_context();
	self->dst = new_allocated(self->ctx, NBYTES);
	self->src = new_allocated(self->ctx, NBYTES);
	buffer_fill(self->ctx, self->src, NBYTES, 1);
}

FIXTURE_TEARDOWN(between)
{
	close(self->ctx);
}

TEST_F(between, are_moved_these_bytes_and_no_others)
{
	unsigned char *copy = new_memory(NBYTES);

	EXPECT_EQ(0, do_transfer(self->ctx, self->dst, variant->dst_offset, self->src,
				 variant->src_offset, variant->nbytes));
	must(do_copyout(self->ctx, self->dst, 0, copy, NBYTES));
	EXPECT_TRUE(all_zero(copy, variant->dst_offset));
	EXPECT_TRUE(
		filled_from(copy + variant->dst_offset, variant->nbytes, 1, variant->src_offset));
	EXPECT_TRUE(all_zero(copy + variant->dst_offset + variant->nbytes,
			     NBYTES - variant->dst_offset - variant->nbytes));
	EXPECT_TRUE(buffer_filled(self->ctx, self->src, 0, NBYTES, 1));
}

TEST_F(between, views_are_moved_the_same_bytes)
{
	__u64 dst = new_allocated_view(self->ctx, self->dst, variant->dst_offset, variant->nbytes);
	__u64 src = new_allocated_view(self->ctx, self->src, variant->src_offset, variant->nbytes);

	EXPECT_EQ(0, do_transfer(self->ctx, dst, 0, src, 0, variant->nbytes));
	EXPECT_TRUE(buffer_filled_from(self->ctx, self->dst, variant->dst_offset, variant->nbytes,
				       1, variant->src_offset));
}

/* --- inside one memory ------------------------------------------------------------------------ */

FIXTURE(overlap)
{
	int ctx;
	__u64 id, nbytes;
	unsigned char *expected;
};

FIXTURE_VARIANT(overlap)
{
	__u64 dst_offset, src_offset, nbytes;
	/* What the offsets are of: the base on either side, or two views of all of it. */
	bool views;
};

FIXTURE_VARIANT_ADD(overlap, up_one_byte){ 1, 0, 15000 };
FIXTURE_VARIANT_ADD(overlap, down_one_byte){ 0, 1, 15000 };
FIXTURE_VARIANT_ADD(overlap, up_odd){ 5033, 1002, 9999 };
FIXTURE_VARIANT_ADD(overlap, down_odd){ 1002, 5033, 9999 };
FIXTURE_VARIANT_ADD(overlap, up_a_page){ 4096, 0, 12288 };
FIXTURE_VARIANT_ADD(overlap, down_a_page){ 0, 4096, 12288 };
FIXTURE_VARIANT_ADD(overlap, onto_itself){ 77, 77, 12345 };
FIXTURE_VARIANT_ADD(overlap, last_byte_only){ 9999, 0, 10000 };
FIXTURE_VARIANT_ADD(overlap, side_by_side){ 10000, 0, 10000 };
FIXTURE_VARIANT_ADD(overlap, up_between_views){ 5033, 1002, 9999, true };
FIXTURE_VARIANT_ADD(overlap, down_between_views){ 1002, 5033, 9999, true };
FIXTURE_VARIANT_ADD(overlap, up_large){ 333, 0, 3 * 1024 * 1024 };
FIXTURE_VARIANT_ADD(overlap, up_large_pages){ 12288, 0, 3 * 1024 * 1024 };
FIXTURE_VARIANT_ADD(overlap, up_large_odd){ 1024 * 1024 + 77, 5, 3 * 1024 * 1024 };
FIXTURE_VARIANT_ADD(overlap, down_large){ 0, 333, 3 * 1024 * 1024 };

FIXTURE_SETUP(overlap)
{
	self->ctx = new_context();
	self->nbytes = variant->dst_offset + variant->src_offset + variant->nbytes;
	self->id = new_allocated(self->ctx, self->nbytes);
	self->expected = new_memory(self->nbytes);
	fill(self->expected, self->nbytes, 1);
	must(do_copyin(self->ctx, self->id, 0, self->expected, self->nbytes));
}

FIXTURE_TEARDOWN(overlap)
{
	close(self->ctx);
}

TEST_F(overlap, is_like_memmove)
{
	unsigned char *copy = new_memory(self->nbytes);
	__u64 dst = self->id, src = self->id;

	if (variant->views) {
		dst = new_allocated_view(self->ctx, self->id, 0, self->nbytes);
		src = new_allocated_view(self->ctx, self->id, 0, self->nbytes);
	}
	EXPECT_EQ(0, do_transfer(self->ctx, dst, variant->dst_offset, src, variant->src_offset,
				 variant->nbytes));
	memmove(self->expected + variant->dst_offset, self->expected + variant->src_offset,
		variant->nbytes);
	must(do_copyout(self->ctx, self->id, 0, copy, self->nbytes));
	EXPECT_EQ(0, memcmp(self->expected, copy, self->nbytes));
}

/* --- many ranges ------------------------------------------------------------------------------ */

TEST_F(transfer, ranges_are_moved_in_their_order)
{
	__u64 third = new_allocated(self->ctx, NBYTES);
	const struct devbuf_transfer_range ranges[] = {
		range(self->dst, 100, self->src, 0, 5000),
		range(third, 0, self->dst, 100, 5000),
		range(self->dst, 100, self->src, 7000, 5000),
	};

	EXPECT_EQ(0, transfer_ranges(self->ctx, ranges, 3));
	EXPECT_TRUE(buffer_filled(self->ctx, third, 0, 5000, 1));
	EXPECT_TRUE(buffer_filled_from(self->ctx, self->dst, 100, 5000, 1, 7000));
}

/* The halves of one buffer change places by way of another. */
TEST_F(transfer, halves_are_swapped)
{
	__u64 half = NBYTES / 2;
	const struct devbuf_transfer_range ranges[] = {
		range(self->dst, 0, self->src, half, half),
		range(self->dst, half, self->src, 0, half),
	};

	EXPECT_EQ(0, transfer_ranges(self->ctx, ranges, 2));
	EXPECT_TRUE(buffer_filled_from(self->ctx, self->dst, 0, half, 1, half));
	EXPECT_TRUE(buffer_filled(self->ctx, self->dst, half, half, 1));
}

/* --- other kinds of memory -------------------------------------------------------------------- */

TEST_F(transfer, to_and_from_the_caller_s_own_memory)
{
	unsigned char *memory = new_memory(NBYTES + 33);
	__u64 user = new_user_buffer(self->ctx, memory + 33, NBYTES);

	EXPECT_EQ(0, do_transfer(self->ctx, user, 0, self->src, 0, NBYTES));
	EXPECT_TRUE(filled(memory + 33, NBYTES, 1));
	EXPECT_TRUE(all_zero(memory, 33));
	EXPECT_EQ(0, do_transfer(self->ctx, self->dst, 3, user, 5, NBYTES - 5));
	EXPECT_TRUE(buffer_filled_from(self->ctx, self->dst, 3, NBYTES - 5, 1, 5));
}

/* Both buffers are of one and the same memory, which the driver sees only page by page. */
TEST_F(transfer, between_two_buffers_of_the_same_memory_of_the_caller_s)
{
	unsigned char *memory = new_memory(NBYTES);
	__u64 first = new_user_buffer(self->ctx, memory, NBYTES);
	__u64 second = new_user_buffer(self->ctx, memory + NBYTES / 2, NBYTES / 2);

	fill(memory, NBYTES, 1);
	EXPECT_EQ(0, do_transfer(self->ctx, second, 0, first, 0, NBYTES / 2));
	EXPECT_TRUE(filled(memory, NBYTES / 2, 1));
	EXPECT_TRUE(filled(memory + NBYTES / 2, NBYTES / 2, 1));
}

TEST_F(transfer, between_uncached_and_cached_memory)
{
	__u64 uncached;

	if (!(capabilities(self->ctx, SYSTEM_DEVICE) & DEVBUF_CAP_UNCACHED))
		SKIP(return, SYSTEM_DEVICE " has no uncached memory here");
	uncached = new_allocated_flags(self->ctx, NBYTES, DEVBUF_CREATE_UNCACHED);
	EXPECT_EQ(0, do_transfer(self->ctx, uncached, 0, self->src, 0, NBYTES));
	EXPECT_EQ(0, do_transfer(self->ctx, self->dst, 0, uncached, 0, NBYTES));
	EXPECT_TRUE(buffer_filled(self->ctx, self->dst, 0, NBYTES, 1));
}

TEST_HARNESS_MAIN
