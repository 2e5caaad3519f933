// SPDX-License-Identifier: GPL-2.0-only
/* mmap() of a context: what may be mapped by whom, and the bytes that a mapping shows. */
#include "common.h"
#include "kselftest_harness.h"

/* Three pages, the last not full. */
#define BASE_NBYTES 10000u
#define BASE_PAGES  3

FIXTURE(mmap)
{
	int ctx;
	__u64 id;
};

FIXTURE_SETUP(mmap)
{
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, BASE_NBYTES);
}

FIXTURE_TEARDOWN(mmap)
{
	close(self->ctx);
}

/* --- what may be mapped ----------------------------------------------------------------------- */

TEST_F(mmap, all_its_pages)
{
	EXPECT_EQ(0, do_map(self->ctx, self->id, BASE_PAGES * PAGE, PROT_READ | PROT_WRITE, NULL));
}

TEST_F(mmap, the_first_page_alone)
{
	EXPECT_EQ(0, do_map(self->ctx, self->id, PAGE, PROT_READ | PROT_WRITE, NULL));
}

TEST_F(mmap, more_pages_than_it_has_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, do_map(self->ctx, self->id, BASE_PAGES * PAGE + 1, PROT_READ, NULL));
}

TEST_F(mmap, private_is_EINVAL)
{
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, self->ctx, self->id * PAGE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->ctx,
				   self->id * PAGE));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(mmap, view_begins_with_the_page_of_its_first_byte)
{
	__u64 view = new_allocated_view(self->ctx, self->id, PAGE + 100, 1);
	unsigned char *map = new_mapping(self->ctx, view, PAGE, PROT_READ | PROT_WRITE);

	buffer_fill(self->ctx, self->id, BASE_NBYTES, 1);
	EXPECT_TRUE(filled_from(map, PAGE, 1, PAGE));
}

TEST_F(mmap, view_ends_with_the_page_of_its_last_byte)
{
	__u64 view = new_allocated_view(self->ctx, self->id, PAGE - 1, 2);

	EXPECT_EQ(0, do_map(self->ctx, view, 2 * PAGE, PROT_READ, NULL));
	EXPECT_EQ(-EINVAL, do_map(self->ctx, view, 2 * PAGE + 1, PROT_READ, NULL));
}

TEST_F(mmap, view_of_a_last_byte_in_a_page_needs_only_that_page)
{
	__u64 view = new_allocated_view(self->ctx, self->id, PAGE, PAGE);

	EXPECT_EQ(0, do_map(self->ctx, view, PAGE, PROT_READ, NULL));
	EXPECT_EQ(-EINVAL, do_map(self->ctx, view, 2 * PAGE, PROT_READ, NULL));
}

TEST_F(mmap, may_follow_a_failed_one)
{
	EXPECT_EQ(-EINVAL, do_map(self->ctx, self->id, 100 * PAGE, PROT_READ, NULL));
	EXPECT_EQ(0, do_map(self->ctx, self->id, PAGE, PROT_READ, NULL));
}

/* --- rights ----------------------------------------------------------------------------------- */

FIXTURE(reader)
{
	int owner, ctx;
	__u64 id;
};

FIXTURE_SETUP(reader)
{
	self->owner = new_context();
	self->ctx = new_context();
	self->id = new_allocated(self->owner, BASE_NBYTES);
	give(self->owner, self->id, 0, self->ctx);
}

FIXTURE_TEARDOWN(reader)
{
	close(self->owner);
	close(self->ctx);
}

TEST_F(reader, may_map_for_reading)
{
	unsigned char *map = new_mapping(self->ctx, self->id, BASE_PAGES * PAGE, PROT_READ);

	buffer_fill(self->owner, self->id, BASE_NBYTES, 1);
	EXPECT_TRUE(filled(map, BASE_NBYTES, 1));
}

TEST_F(reader, may_not_map_for_writing)
{
	EXPECT_EQ(-EACCES, do_map(self->ctx, self->id, PAGE, PROT_READ | PROT_WRITE, NULL));
	EXPECT_EQ(-EACCES, do_map(self->ctx, self->id, PAGE, PROT_WRITE, NULL));
}

TEST_F(reader, may_not_make_a_mapping_writable)
{
	void *map = new_mapping(self->ctx, self->id, BASE_PAGES * PAGE, PROT_READ);

	EXPECT_EQ(-1, mprotect(map, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect((char *)map + PAGE, PAGE, PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(reader, may_not_write_through_proc_self_mem)
{
	unsigned char *map = new_mapping(self->ctx, self->id, PAGE, PROT_READ);
	int mem = must_libc(open("/proc/self/mem", O_RDWR | O_CLOEXEC));

	EXPECT_EQ(-1, pwrite(mem, "x", 1, (uintptr_t)map));
	EXPECT_EQ(0, map[0]);
	close(mem);
}

TEST_F(mmap, writer_may_take_protection_and_give_it_back)
{
	unsigned char *map = new_mapping(self->ctx, self->id, PAGE, PROT_READ | PROT_WRITE);

	EXPECT_EQ(0, mprotect(map, PAGE, PROT_READ));
	EXPECT_EQ(0, mprotect(map, PAGE, PROT_READ | PROT_WRITE));
	map[0] = 'x';
	EXPECT_EQ('x', map[0]);
}

TEST_F(mmap, a_file_opened_for_reading_gives_no_writable_mapping)
{
	int ctx = open("/dev/devbuf", O_RDONLY | O_CLOEXEC);
	__u64 id = new_allocated(ctx, PAGE);

	EXPECT_EQ(-EACCES, do_map(ctx, id, PAGE, PROT_READ | PROT_WRITE, NULL));
	EXPECT_EQ(0, do_map(ctx, id, PAGE, PROT_READ, NULL));
	close(ctx);
}

/* --- bytes ------------------------------------------------------------------------------------ */

FIXTURE(bytes)
{
	int ctx;
	__u64 id, nbytes;
	size_t pages_nbytes;
	unsigned char *map;
};

FIXTURE_VARIANT(bytes)
{
	__u32 create_flags;
	__u64 nbytes;
};

/* The large one is made of pieces larger than a page, and of a few smaller ones. */
FIXTURE_VARIANT_ADD(bytes, small){ .nbytes = BASE_NBYTES };
FIXTURE_VARIANT_ADD(bytes, large){ .nbytes = 2 * MIB + 5 * 4096 + 7 };
FIXTURE_VARIANT_ADD(bytes, uncached){ .nbytes = BASE_NBYTES,
				      .create_flags = DEVBUF_CREATE_UNCACHED };
FIXTURE_VARIANT_ADD(bytes, reused){ .nbytes = BASE_NBYTES, .create_flags = DEVBUF_CREATE_REUSE };

FIXTURE_SETUP(bytes)
{
	self->ctx = new_context();
	if (variant->create_flags & DEVBUF_CREATE_UNCACHED &&
	    !(capabilities(self->ctx, SYSTEM_DEVICE) & DEVBUF_CAP_UNCACHED))
		SKIP(return, SYSTEM_DEVICE " has no uncached memory here");
	self->nbytes = variant->nbytes;
	self->pages_nbytes = (self->nbytes + PAGE - 1) / PAGE * PAGE;
	self->id = new_allocated_flags(self->ctx, self->nbytes, variant->create_flags);
	self->map = new_mapping(self->ctx, self->id, self->pages_nbytes, PROT_READ | PROT_WRITE);
}

FIXTURE_TEARDOWN(bytes)
{
	close(self->ctx);
}

TEST_F(bytes, are_zero_at_first_up_to_the_end_of_the_last_page)
{
	EXPECT_TRUE(all_zero(self->map, self->pages_nbytes));
}

TEST_F(bytes, of_copyin_are_seen_in_the_mapping)
{
	buffer_fill(self->ctx, self->id, self->nbytes, 1);
	EXPECT_TRUE(filled(self->map, self->nbytes, 1));
	EXPECT_TRUE(all_zero(self->map + self->nbytes, self->pages_nbytes - self->nbytes));
}

TEST_F(bytes, of_the_mapping_are_seen_by_copyout)
{
	fill(self->map, self->nbytes, 1);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, self->nbytes, 1));
}

TEST_F(bytes, of_one_mapping_are_seen_in_another)
{
	unsigned char *other = new_mapping(self->ctx, self->id, self->pages_nbytes, PROT_READ);

	fill(self->map, self->pages_nbytes, 1);
	EXPECT_TRUE(filled(other, self->pages_nbytes, 1));
}

TEST_F(bytes, of_the_mapping_are_moved_by_transfer)
{
	__u64 copy = new_allocated(self->ctx, self->nbytes);

	fill(self->map, self->nbytes, 1);
	must(do_transfer(self->ctx, copy, 0, self->id, 0, self->nbytes));
	EXPECT_TRUE(buffer_filled(self->ctx, copy, 0, self->nbytes, 1));
}

TEST_F(bytes, of_the_mapping_are_those_of_the_exported_dma_buf)
{
	int dma_buf = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	unsigned char *map =
		mmap(NULL, self->pages_nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, dma_buf, 0);

	ASSERT_NE(MAP_FAILED, map);
	fill(self->map, self->pages_nbytes, 1);
	EXPECT_TRUE(filled(map, self->pages_nbytes, 1));
	fill(map, self->pages_nbytes, 2);
	EXPECT_TRUE(filled(self->map, self->pages_nbytes, 2));
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, self->nbytes, 2));
	close(dma_buf);
}

TEST_F(bytes, stay_when_the_pages_are_unmapped_and_touched_again)
{
	fill(self->map, self->pages_nbytes, 1);
	EXPECT_EQ(0, madvise(self->map, self->pages_nbytes, MADV_DONTNEED));
	EXPECT_TRUE(filled(self->map, self->pages_nbytes, 1));
	fill(self->map, self->pages_nbytes, 2);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, self->nbytes, 2));
}

TEST_F(bytes, of_each_view_are_in_its_own_mapping)
{
	__u64 view = new_allocated_view(self->ctx, self->id, PAGE, self->nbytes - PAGE);
	unsigned char *map = new_mapping(self->ctx, view, self->pages_nbytes - PAGE, PROT_READ);

	fill(self->map, self->pages_nbytes, 1);
	EXPECT_TRUE(filled_from(map, self->pages_nbytes - PAGE, 1, PAGE));
}

TEST_HARNESS_MAIN
