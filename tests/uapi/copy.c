// SPDX-License-Identifier: GPL-2.0-only
/* COPYIN and COPYOUT: ranges, what they refuse, and the bytes that they move. */
#include "common.h"

#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(copy)
{
	int ctx;
	__u64 id;
	unsigned char *memory;
};

/* Both commands, where they are alike. */
FIXTURE_VARIANT(copy)
{
	unsigned long command;
};

FIXTURE_VARIANT_ADD(copy, in){ DEVBUF_COPYIN };
FIXTURE_VARIANT_ADD(copy, out){ DEVBUF_COPYOUT };

FIXTURE_SETUP(copy)
{
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, NBYTES);
	self->memory = new_memory(NBYTES);
	fill(self->memory, NBYTES, 1);
}

FIXTURE_TEARDOWN(copy)
{
	close(self->ctx);
}

static struct devbuf_copy_range range(__u64 id, __u64 offset, const void *memory, __u64 nbytes)
{
	return (struct devbuf_copy_range){
		.id = id,
		.offset = offset,
		.user_addr = (uintptr_t)memory,
		.nbytes = nbytes,
	};
}

static int copy_one(int ctx, unsigned long command, struct devbuf_copy_range range)
{
	return do_copy_ranges(ctx, command, &range, 1, NULL);
}

/* The variant's command on the fixture's buffer. */
#define COPY(offset, memory, nbytes) \
	copy_one(self->ctx, variant->command, range(self->id, offset, memory, nbytes))

static bool buffer_equals(int ctx, __u64 id, const unsigned char *memory, __u64 nbytes)
{
	unsigned char *copy = new_memory(nbytes);

	must(do_copyout(ctx, id, 0, copy, nbytes));
	return !memcmp(copy, memory, nbytes);
}

/* --- one range -------------------------------------------------------------------------------- */

TEST_F(copy, of_nothing_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, COPY(0, self->memory, 0));
}

TEST_F(copy, past_the_end_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, COPY(0, self->memory, NBYTES + 1));
	EXPECT_EQ(-EINVAL, COPY(NBYTES - 1, self->memory, 2));
}

TEST_F(copy, behind_the_end_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, COPY(NBYTES, self->memory, 1));
	EXPECT_EQ(-EINVAL, COPY(1ull << 63, self->memory, 1));
}

TEST_F(copy, into_the_last_page_s_rest_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, COPY(NBYTES + 1, self->memory, 1));
}

TEST_F(copy, that_wraps_is_EOVERFLOW)
{
	EXPECT_EQ(-EOVERFLOW, COPY(UINT64_MAX, self->memory, 2));
}

TEST_F(copy, at_no_address_is_EFAULT)
{
	EXPECT_EQ(-EFAULT, COPY(0, NULL, 1));
}

TEST_F(copy, at_an_address_of_the_kernel_is_EFAULT)
{
	EXPECT_EQ(-EFAULT, COPY(0, (void *)0xffff888000000000, 100));
	EXPECT_EQ(-EFAULT, COPY(0, (void *)(UINT64_MAX - 4095), 100));
	EXPECT_TRUE(buffer_zero(self->ctx, self->id, 0, NBYTES));
}

TEST_F(copy, says_how_it_went)
{
	struct devbuf_copy_range r = range(self->id, 10, self->memory, 12345);
	struct devbuf_copy copy = {
		.size = sizeof(copy),
		.ranges = (uintptr_t)&r,
		.nr_ranges = 1,
		.out_done_nbytes = UINT64_MAX,
		.out_path = UINT32_MAX,
		.out_fence = -1,
	};

	EXPECT_EQ(0, do_command(self->ctx, variant->command, &copy));
	EXPECT_EQ(12345u, copy.out_done_nbytes);
	EXPECT_EQ(DEVBUF_PATH_CPU, (int)copy.out_path);
	EXPECT_EQ(0, copy.out_fence);
}

/* --- many ranges ------------------------------------------------------------------------------ */

TEST_F(copy, without_ranges_is_EINVAL)
{
	struct devbuf_copy_range r = range(self->id, 0, self->memory, 1);

	EXPECT_EQ(-EINVAL, do_copy_ranges(self->ctx, variant->command, &r, 0, NULL));
}

TEST_F(copy, of_the_most_ranges)
{
	static struct devbuf_copy_range ranges[DEVBUF_MAX_RANGES];
	__u64 done;

	for (int i = 0; i < DEVBUF_MAX_RANGES; i++)
		ranges[i] = range(self->id, i, self->memory + i, 1);
	EXPECT_EQ(0, do_copy_ranges(self->ctx, variant->command, ranges, DEVBUF_MAX_RANGES, &done));
	EXPECT_EQ(DEVBUF_MAX_RANGES, (int)done);
	EXPECT_TRUE(buffer_equals(self->ctx, self->id, self->memory, DEVBUF_MAX_RANGES));
}

TEST_F(copy, of_more_ranges_than_the_most_is_EINVAL)
{
	static struct devbuf_copy_range ranges[DEVBUF_MAX_RANGES + 1];

	for (int i = 0; i <= DEVBUF_MAX_RANGES; i++)
		ranges[i] = range(self->id, i, self->memory + i, 1);
	EXPECT_EQ(-EINVAL,
		  do_copy_ranges(self->ctx, variant->command, ranges, DEVBUF_MAX_RANGES + 1, NULL));
	EXPECT_EQ(-EINVAL, do_copy_ranges(self->ctx, variant->command, ranges, UINT32_MAX, NULL));
}

TEST_F(copy, with_no_array_is_EFAULT)
{
	EXPECT_EQ(-EFAULT, do_copy_ranges(self->ctx, variant->command, NULL, 1, NULL));
}

TEST_F(copy, with_an_array_at_the_end_of_memory)
{
	struct devbuf_copy_range *ranges = new_edge(2 * sizeof(*ranges));

	ranges[0] = range(self->id, 0, self->memory, 1);
	ranges[1] = range(self->id, 1, self->memory, 1);
	EXPECT_EQ(0, do_copy_ranges(self->ctx, variant->command, ranges, 2, NULL));
}

TEST_F(copy, with_an_array_past_the_end_of_memory_is_EFAULT)
{
	struct devbuf_copy_range *ranges = new_edge(2 * sizeof(*ranges));

	ranges[0] = range(self->id, 0, self->memory, 1);
	ranges[1] = range(self->id, 1, self->memory, 1);
	EXPECT_EQ(-EFAULT, do_copy_ranges(self->ctx, variant->command, ranges, 3, NULL));
	EXPECT_TRUE(buffer_zero(self->ctx, self->id, 0, NBYTES));
}

/* The last of three ranges is bad, each time for another reason. */
TEST_F(copy, with_one_bad_range_copies_nothing)
{
	__u64 idle = new_buffer(self->ctx, 1);
	const struct {
		struct devbuf_copy_range range;
		int error;
	} bad[] = {
		{ range(UINT64_MAX, 0, self->memory, 1), -ENOENT },
		{ range(self->id, NBYTES, self->memory, 1), -EINVAL },
		{ range(self->id, 0, self->memory, 0), -EINVAL },
		{ range(self->id, UINT64_MAX, self->memory, 2), -EOVERFLOW },
		{ range(idle, 0, self->memory, 1), -ENODATA },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct devbuf_copy_range ranges[] = {
			range(self->id, 0, self->memory, 100),
			range(self->id, 5000, self->memory + 5000, 100),
			bad[i].range,
		};

		EXPECT_EQ(bad[i].error,
			  do_copy_ranges(self->ctx, variant->command, ranges, 3, NULL))
		TH_LOG("bad range %zu", i);
	}
	EXPECT_TRUE(buffer_zero(self->ctx, self->id, 0, NBYTES));
	EXPECT_TRUE(filled(self->memory, NBYTES, 1));
}

/* --- bytes ------------------------------------------------------------------------------------ */

FIXTURE(moved)
{
	int ctx;
	__u64 id;
	unsigned char *memory;
};

FIXTURE_VARIANT(moved)
{
	__u64 offset, place, nbytes;
};

FIXTURE_VARIANT_ADD(moved, one_byte){ 0, 0, 1 };
FIXTURE_VARIANT_ADD(moved, last_byte){ NBYTES - 1, 77, 1 };
FIXTURE_VARIANT_ADD(moved, inside_a_page){ 3, 5, 1000 };
FIXTURE_VARIANT_ADD(moved, one_page){ 4096, 8192, 4096 };
FIXTURE_VARIANT_ADD(moved, across_pages_of_the_buffer){ 4095, 0, 4098 };
FIXTURE_VARIANT_ADD(moved, across_pages_of_the_memory){ 0, 4095, 4098 };
FIXTURE_VARIANT_ADD(moved, across_other_pages_on_either_side){ 1234, 4001, 11111 };
FIXTURE_VARIANT_ADD(moved, all){ 0, 0, NBYTES };

FIXTURE_SETUP(moved)
{
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, NBYTES);
	self->memory = new_memory(NBYTES);
}

FIXTURE_TEARDOWN(moved)
{
	close(self->ctx);
}

/* All of @memory is zero but for @nbytes bytes at @place, which are those of the pattern. */
static bool only_these_filled(const unsigned char *memory, __u64 place, __u64 nbytes)
{
	return all_zero(memory, place) && filled(memory + place, nbytes, 1) &&
	       all_zero(memory + place + nbytes, NBYTES - place - nbytes);
}

TEST_F(moved, in_are_these_bytes_and_no_others)
{
	unsigned char *copy = new_memory(NBYTES);

	fill(self->memory + variant->place, variant->nbytes, 1);
	EXPECT_EQ(0, do_copyin(self->ctx, self->id, variant->offset, self->memory + variant->place,
			       variant->nbytes));
	must(do_copyout(self->ctx, self->id, 0, copy, NBYTES));
	EXPECT_TRUE(only_these_filled(copy, variant->offset, variant->nbytes));
}

TEST_F(moved, out_are_these_bytes_and_no_others)
{
	unsigned char *copy = new_memory(NBYTES);

	memset(copy, 0xff, NBYTES);
	fill(copy + variant->offset, variant->nbytes, 1);
	must(do_copyin(self->ctx, self->id, 0, copy, NBYTES));
	EXPECT_EQ(0, do_copyout(self->ctx, self->id, variant->offset, self->memory + variant->place,
				variant->nbytes));
	EXPECT_TRUE(only_these_filled(self->memory, variant->place, variant->nbytes));
}

TEST_F(moved, by_many_ranges_of_one_byte)
{
	struct devbuf_copy_range ranges[64];
	__u64 nr = variant->nbytes < 64 ? variant->nbytes : 64;

	fill(self->memory + variant->place, nr, 1);
	for (__u64 i = 0; i < nr; i++)
		ranges[i] =
			range(self->id, variant->offset + i, self->memory + variant->place + i, 1);
	EXPECT_EQ(0, do_copy_ranges(self->ctx, DEVBUF_COPYIN, ranges, nr, NULL));
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, variant->offset, nr, 1));
}

TEST_F(moved, between_several_buffers_in_one_command)
{
	__u64 other = new_allocated(self->ctx, NBYTES);
	const struct devbuf_copy_range ranges[] = {
		range(self->id, variant->offset, self->memory + variant->place, variant->nbytes),
		range(other, 0, self->memory + variant->place, variant->nbytes),
	};
	__u64 done;

	fill(self->memory + variant->place, variant->nbytes, 1);
	EXPECT_EQ(0, do_copy_ranges(self->ctx, DEVBUF_COPYIN, ranges, 2, &done));
	EXPECT_EQ(2 * variant->nbytes, done);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, variant->offset, variant->nbytes, 1));
	EXPECT_TRUE(buffer_filled(self->ctx, other, 0, variant->nbytes, 1));
}

TEST_F(moved, in_their_order_when_ranges_overlap)
{
	unsigned char *second = new_memory(NBYTES);
	const struct devbuf_copy_range ranges[] = {
		range(self->id, variant->offset, self->memory, variant->nbytes),
		range(self->id, variant->offset, second, variant->nbytes),
	};

	fill(self->memory, variant->nbytes, 1);
	fill(second, variant->nbytes, 2);
	EXPECT_EQ(0, do_copy_ranges(self->ctx, DEVBUF_COPYIN, ranges, 2, NULL));
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, variant->offset, variant->nbytes, 2));
}

/* --- peculiar memory -------------------------------------------------------------------------- */

TEST_F(copy, of_megabytes_at_odd_places)
{
	const size_t nbytes = 3 * MIB + 4321;
	__u64 id = new_allocated(self->ctx, nbytes + 99);
	unsigned char *memory = new_memory(nbytes + 777);

	fill(memory + 777, nbytes, 1);
	EXPECT_EQ(0, do_copyin(self->ctx, id, 99, memory + 777, nbytes));
	memset(memory, 0, nbytes + 777);
	EXPECT_EQ(0, do_copyout(self->ctx, id, 99, memory + 13, nbytes));
	EXPECT_TRUE(all_zero(memory, 13));
	EXPECT_TRUE(filled(memory + 13, nbytes, 1));
	EXPECT_TRUE(all_zero(memory + 13 + nbytes, 777 - 13));
	EXPECT_TRUE(buffer_zero(self->ctx, id, 0, 99));
}

TEST_F(copy, of_a_file_s_mapping)
{
	unsigned char *map =
		mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_SHARED, new_memfd(NBYTES, 1), 0);

	ASSERT_NE(MAP_FAILED, map);
	if (variant->command == DEVBUF_COPYIN) {
		EXPECT_EQ(0, do_copyin(self->ctx, self->id, 0, map, NBYTES));
		EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));
	} else {
		EXPECT_EQ(0, do_copyout(self->ctx, self->id, 0, map, NBYTES));
		EXPECT_TRUE(all_zero(map, NBYTES));
	}
}

/* The caller's memory is a mapping of the very same buffer. */
TEST_F(copy, of_the_buffer_s_own_mapping_at_the_same_place)
{
	unsigned char *map = new_mapping(self->ctx, self->id, NBYTES, PROT_READ | PROT_WRITE);

	fill(map, NBYTES, 1);
	EXPECT_EQ(0, COPY(0, map, NBYTES));
	EXPECT_TRUE(filled(map, NBYTES, 1));
}

TEST_F(copy, of_the_buffer_s_own_mapping_at_another_place)
{
	unsigned char *map = new_mapping(self->ctx, self->id, NBYTES, PROT_READ | PROT_WRITE);
	__u64 half = NBYTES / 2;

	fill(map, NBYTES, 1);
	EXPECT_EQ(0, COPY(0, map + half, half));
	if (variant->command == DEVBUF_COPYIN) {
		EXPECT_TRUE(filled_from(map, half, 1, half));
	} else {
		EXPECT_TRUE(filled(map + half, half, 1));
	}
}

/* The bytes of the destination are then some of the source's, in no promised order. */
TEST_F(copy, of_the_buffer_s_own_mapping_a_little_further)
{
	const __u64 shift = 33, nbytes = NBYTES - shift;
	bool in = variant->command == DEVBUF_COPYIN;
	unsigned char *map = new_mapping(self->ctx, self->id, NBYTES, PROT_READ | PROT_WRITE);
	unsigned char *destination = in ? map : map + shift;
	unsigned char *source = in ? map + shift : map;
	__u64 nr_wrong = 0;

	memset(map, 0xff, NBYTES);
	for (__u64 i = 0; i < nbytes; i++)
		source[i] = i % 100;
	EXPECT_EQ(0, COPY(0, map + shift, nbytes));
	for (__u64 i = 0; i < nbytes; i++)
		nr_wrong += destination[i] >= 100;
	EXPECT_EQ(0u, nr_wrong);
}

TEST_F(copy, in_a_child)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child)
		_exit(-COPY(0, self->memory, NBYTES));
	EXPECT_EQ(0, wait_for(child));
	if (variant->command == DEVBUF_COPYIN) {
		EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));
	} else {
		EXPECT_TRUE(filled(self->memory, NBYTES, 1));
	}
}

TEST_HARNESS_MAIN
