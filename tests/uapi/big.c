// SPDX-License-Identifier: GPL-2.0-only
/*
 * One buffer of 4 GiB and a page: what lies around the places where 32-bit numbers end. It is
 * allocated once, since that takes its time; every test uses it. Needs a machine with 6 GiB.
 */
#include "common.h"

#include "kselftest_harness.h"

#define BIG_NBYTES (4 * GIB + PAGE)
#define AROUND     10000u

static int ctx;
static __u64 big;

FIXTURE(around)
{
	/* Of AROUND bytes, some before the boundary and some behind. */
	__u64 offset;
	unsigned char *memory;
};

FIXTURE_VARIANT(around)
{
	__u64 boundary, bytes_before;
};

FIXTURE_VARIANT_ADD(around, two_gib){ 2 * GIB, 5003 };
/* Ends with the buffer. */
FIXTURE_VARIANT_ADD(around, four_gib){ 4 * GIB, AROUND - 4096 };

FIXTURE_SETUP(around)
{
	self->offset = variant->boundary - variant->bytes_before;
	self->memory = new_memory(AROUND);
	fill(self->memory, AROUND, 1);
}

FIXTURE_TEARDOWN(around)
{
	munmap(self->memory, AROUND);
}

TEST_F(around, copies)
{
	EXPECT_EQ(0, do_copyin(ctx, big, self->offset, self->memory, AROUND));
	EXPECT_TRUE(buffer_filled(ctx, big, self->offset, AROUND, 1));
	/* Had the offset lost its upper bits, the bytes would be here. */
	EXPECT_TRUE(buffer_zero(ctx, big, self->offset % GIB, PAGE / 2));
	EXPECT_TRUE(buffer_zero(ctx, big, 0, PAGE));
}

TEST_F(around, mapping)
{
	unsigned char *map = new_mapping(ctx, big, BIG_NBYTES, PROT_READ | PROT_WRITE);

	must(do_copyin(ctx, big, self->offset, self->memory, AROUND));
	EXPECT_TRUE(filled(map + self->offset, AROUND, 1));
	fill(map + self->offset, AROUND, 2);
	EXPECT_TRUE(buffer_filled(ctx, big, self->offset, AROUND, 2));
	must_libc(munmap(map, BIG_NBYTES));
}

TEST_F(around, view)
{
	__u64 view = new_allocated_view(ctx, big, self->offset, AROUND);
	size_t in_page = self->offset % PAGE;
	unsigned char *map = new_mapping(ctx, view, in_page + AROUND, PROT_READ);

	EXPECT_EQ(self->offset, query(ctx, view).out_offset);
	must(do_copyin(ctx, view, 0, self->memory, AROUND));
	EXPECT_TRUE(buffer_filled(ctx, big, self->offset, AROUND, 1));
	EXPECT_TRUE(filled(map + in_page, AROUND, 1));
	must_libc(munmap(map, in_page + AROUND));
	must(do_destroy(ctx, view));
}

TEST_F(around, export_of_a_view)
{
	__u64 view = new_allocated_view(ctx, big, self->offset, AROUND);
	struct devbuf_export e = { .size = sizeof(e), .id = view };
	unsigned char *map;

	must(do_copyin(ctx, view, 0, self->memory, AROUND));
	ASSERT_EQ(0, do_command(ctx, DEVBUF_EXPORT, &e));
	EXPECT_EQ(self->offset % PAGE, e.out_offset);
	map = mmap(NULL, e.out_offset + AROUND, PROT_READ, MAP_SHARED, e.out_fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_TRUE(filled(map + e.out_offset, AROUND, 1));
	close(e.out_fd);
	must(do_destroy(ctx, view));
}

TEST_F(around, export_of_everything)
{
	int fd = new_export(ctx, big, 0);
	__u64 first_page = self->offset / PAGE * PAGE, in_page = self->offset % PAGE;
	unsigned char *map;

	EXPECT_EQ((off_t)BIG_NBYTES, lseek(fd, 0, SEEK_END));
	must(do_copyin(ctx, big, self->offset, self->memory, AROUND));
	map = mmap(NULL, in_page + AROUND, PROT_READ, MAP_SHARED, fd, first_page);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_TRUE(filled(map + in_page, AROUND, 1));
	close(fd);
}

TEST_F(around, transfer)
{
	__u64 low = 12345;

	must(do_copyin(ctx, big, low, self->memory, AROUND));
	EXPECT_EQ(0, do_transfer(ctx, big, self->offset, big, low, AROUND));
	EXPECT_TRUE(buffer_filled(ctx, big, self->offset, AROUND, 1));
	/* A little further, over itself. */
	EXPECT_EQ(0, do_transfer(ctx, big, self->offset - 77, big, self->offset, AROUND));
	EXPECT_TRUE(buffer_filled(ctx, big, self->offset - 77, AROUND, 1));
	memset(self->memory, 0, AROUND);
	must(do_copyin(ctx, big, low, self->memory, AROUND));
}

TEST_F(around, sync)
{
	EXPECT_EQ(0, do_sync(ctx, big, self->offset, AROUND, DEVBUF_SYNC_WRITE));
	EXPECT_EQ(0, do_sync(ctx, big, 0, BIG_NBYTES, DEVBUF_SYNC_READ));
}

/* --- more than 2 GiB at a time ---------------------------------------------------------------- */

FIXTURE(long_copy)
{
	unsigned char *memory;
};

FIXTURE_SETUP(long_copy)
{
	self->memory = new_memory(AROUND);
	fill(self->memory, AROUND, 1);
}

FIXTURE_TEARDOWN(long_copy)
{
}

TEST_F_TIMEOUT(long_copy, transfer, 300)
{
	const __u64 nbytes = 2 * GIB + 5;
	struct devbuf_transfer_range range = {
		.dst_id = big,
		.dst_offset = BIG_NBYTES - nbytes,
		.src_id = big,
		.nbytes = nbytes,
	};
	struct devbuf_transfer transfer = { 0 };

	must(do_copyin(ctx, big, 0, self->memory, AROUND));
	must(do_copyin(ctx, big, nbytes - AROUND, self->memory, AROUND));
	EXPECT_EQ(0, do_transfer_ranges(ctx, &transfer, &range, 1));
	EXPECT_EQ(nbytes, transfer.out_done_nbytes);
	EXPECT_TRUE(buffer_filled(ctx, big, BIG_NBYTES - AROUND, AROUND, 1));
	EXPECT_TRUE(buffer_filled(ctx, big, BIG_NBYTES - nbytes, AROUND, 1));
}

/* The source is memory that was never touched, so it takes none. */
TEST_F_TIMEOUT(long_copy, copyin, 300)
{
	const __u64 nbytes = 2 * GIB + 5;
	unsigned char *source =
		mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct devbuf_copy_range range = {
		.id = big,
		.offset = 1,
		.user_addr = (uintptr_t)source,
		.nbytes = nbytes,
	};
	__u64 done;

	ASSERT_NE(MAP_FAILED, source);
	must(do_copyin(ctx, big, nbytes - 100, self->memory, AROUND));
	EXPECT_EQ(0, do_copy_ranges(ctx, DEVBUF_COPYIN, &range, 1, &done));
	EXPECT_EQ(nbytes, done);
	EXPECT_TRUE(buffer_zero(ctx, big, nbytes - 100, 101));
	EXPECT_TRUE(buffer_filled_from(ctx, big, nbytes + 1, AROUND - 101, 1, 101));
}

int main(int argc, char **argv)
{
	if (read_key("/proc/meminfo", "MemAvailable") * KIB < BIG_NBYTES + 512 * MIB)
		return skip_program("less than 4.5 GiB of memory are available");
	ctx = new_context();
	big = new_allocated(ctx, BIG_NBYTES);
	return test_harness_run(argc, argv);
}
