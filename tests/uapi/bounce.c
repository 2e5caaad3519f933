// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device that cannot reach the memory itself: its DMA goes through bounce buffers, and what it
 * would see and write is in those. Synchronising copies between them and the memory, which here
 * shows in what a mapping holds afterwards. Needs the module vgem and a kernel that bounces for
 * every device (swiotlb=force).
 */
#include "common_async.h"
#include "common_vgem.h"

#include "kselftest_harness.h"

#define NBYTES (3 * 4096u)

static bool kernel_bounces(void)
{
	char line[1024] = "";
	FILE *file = fopen("/proc/cmdline", "re");

	must_libc(file ? 0 : -1);
	must_be(fgets(line, sizeof(line), file));
	fclose(file);
	return strstr(line, "swiotlb=force");
}

FIXTURE(bounce)
{
	int card, ctx;
	__u64 id;
	unsigned char *map;
	__u32 handle;
};

/* The memory and the bounce buffer both hold the pattern 1. */
FIXTURE_SETUP(bounce)
{
	self->card = open_vgem();
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, NBYTES);
	self->map = new_mapping(self->ctx, self->id, NBYTES, PROT_READ | PROT_WRITE);
	fill(self->map, NBYTES, 1);
	self->handle = vgem_import_export(self->card, self->ctx, self->id);
}

FIXTURE_TEARDOWN(bounce)
{
	close(self->card);
	close(self->ctx);
}

/* What the device has is what the memory gets: these bytes, were it to write them. */
static void begin(FIXTURE_DATA(bounce) * self, __u64 offset, __u64 nbytes)
{
	must(do_sync(self->ctx, self->id, offset, nbytes, DEVBUF_SYNC_READ));
}

static void end(FIXTURE_DATA(bounce) * self, __u64 offset, __u64 nbytes)
{
	must(do_sync(self->ctx, self->id, offset, nbytes, DEVBUF_SYNC_WRITE | DEVBUF_SYNC_END));
}

TEST_F(bounce, importing_shows_the_device_what_is_in_the_memory)
{
	memset(self->map, 0, NBYTES);
	begin(self, 0, NBYTES);
	EXPECT_TRUE(filled(self->map, NBYTES, 1));
}

TEST_F(bounce, the_end_of_an_access_shows_the_device_what_the_CPU_wrote)
{
	fill(self->map, NBYTES, 2);
	end(self, 0, NBYTES);
	memset(self->map, 0, NBYTES);
	begin(self, 0, NBYTES);
	EXPECT_TRUE(filled(self->map, NBYTES, 2));
}

TEST_F(bounce, a_range_is_enough_for_its_bytes)
{
	fill(self->map, NBYTES, 2);
	end(self, 5000, 100);
	memset(self->map, 0, NBYTES);
	begin(self, 5000, 100);
	EXPECT_TRUE(filled_from(self->map + 5000, 100, 2, 5000));
}

TEST_F(bounce, by_way_of_a_view_that_was_not_exported)
{
	__u64 view = new_allocated_view(self->ctx, self->id, 4000, 200);

	fill(self->map, NBYTES, 2);
	must(do_sync(self->ctx, view, 0, 200, DEVBUF_SYNC_WRITE | DEVBUF_SYNC_END));
	memset(self->map, 0, NBYTES);
	must(do_sync(self->ctx, view, 0, 200, DEVBUF_SYNC_READ));
	EXPECT_TRUE(filled_from(self->map + 4000, 200, 2, 4000));
}

TEST_F(bounce, copyin_shows_the_device_its_bytes)
{
	buffer_fill(self->ctx, self->id, NBYTES, 2);
	memset(self->map, 0, NBYTES);
	begin(self, 0, NBYTES);
	EXPECT_TRUE(filled(self->map, NBYTES, 2));
}

TEST_F(bounce, copyout_gives_what_the_device_has)
{
	memset(self->map, 0, NBYTES);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));
}

TEST_F(bounce, transfer_takes_what_the_device_has)
{
	__u64 other = new_allocated(self->ctx, NBYTES);

	memset(self->map, 0, NBYTES);
	EXPECT_EQ(0, do_transfer(self->ctx, other, 0, self->id, 0, NBYTES));
	EXPECT_TRUE(buffer_filled(self->ctx, other, 0, NBYTES, 1));
}

TEST_F(bounce, transfer_shows_the_device_its_bytes)
{
	__u64 other = new_allocated(self->ctx, NBYTES);

	buffer_fill(self->ctx, other, NBYTES, 2);
	EXPECT_EQ(0, do_transfer(self->ctx, self->id, 0, other, 0, NBYTES));
	memset(self->map, 0, NBYTES);
	begin(self, 0, NBYTES);
	EXPECT_TRUE(filled(self->map, NBYTES, 2));
}

/* A copy of a few bytes must not lose what the device has beside them. */
TEST_F(bounce, copyin_of_a_range_keeps_the_device_s_other_bytes)
{
	EXPECT_EQ(0, do_copyin(self->ctx, self->id, 5000, "x", 1));
	memset(self->map, 0, NBYTES);
	begin(self, 0, NBYTES);
	EXPECT_TRUE(filled(self->map, 5000, 1));
	EXPECT_EQ('x', self->map[5000]);
	EXPECT_TRUE(filled_from(self->map + 5001, NBYTES - 5001, 1, 5001));
}

TEST_F(bounce, queued_copyin_shows_the_device_its_bytes)
{
	unsigned char bytes[NBYTES];

	fill(bytes, NBYTES, 2);
	EXPECT_EQ(0, end_fence(must(queue_copyin(self->ctx, self->id, 0, bytes, NBYTES, NULL))));
	memset(self->map, 0, NBYTES);
	begin(self, 0, NBYTES);
	EXPECT_TRUE(filled(self->map, NBYTES, 2));
}

TEST_F(bounce, queued_transfer_takes_what_the_device_has)
{
	__u64 other = new_allocated(self->ctx, NBYTES);

	memset(self->map, 0, NBYTES);
	EXPECT_EQ(0, end_fence(must(queue_transfer(self->ctx, other, 0, self->id, 0, NBYTES,
						   NULL))));
	EXPECT_TRUE(buffer_filled(self->ctx, other, 0, NBYTES, 1));
}

TEST_F(bounce, the_end_of_the_import_gives_the_memory_what_the_device_has)
{
	memset(self->map, 0, NBYTES);
	vgem_close(self->card, self->handle);
	EXPECT_TRUE(filled(self->map, NBYTES, 1));
}

/* --- two devices that bounce ------------------------------------------------------------------ */

TEST_F(bounce, two_writers_of_the_same_bytes_are_EBUSY)
{
	__u64 view = new_allocated_view(self->ctx, self->id, 0, PAGE);
	char byte;

	vgem_import_export(self->card, self->ctx, view);
	EXPECT_EQ(-EBUSY, do_sync(self->ctx, self->id, 0, NBYTES, DEVBUF_SYNC_READ));
	EXPECT_EQ(-EBUSY, do_copyout(self->ctx, self->id, 0, &byte, 1));
	EXPECT_EQ(-EBUSY, do_copyin(self->ctx, self->id, 0, "x", 1));
	EXPECT_EQ(-EBUSY, do_transfer(self->ctx, self->id, 0, self->id, 1, 1));
}

/* It must not show the devices what the CPU has, which is not the newest. */
TEST_F(bounce, two_writers_fail_a_queued_copy_and_keep_their_bytes)
{
	__u64 view = new_allocated_view(self->ctx, self->id, 0, PAGE);
	__u32 second = vgem_import_export(self->card, self->ctx, view);

	memset(self->map, 0, NBYTES);
	EXPECT_EQ(-EBUSY, end_fence(must(queue_copyin(self->ctx, self->id, 0, "x", 1, NULL))));
	EXPECT_EQ(-EBUSY, end_fence(must(queue_transfer(self->ctx, self->id, PAGE, self->id, 0,
							PAGE, NULL))));
	vgem_close(self->card, second);
	begin(self, 0, NBYTES);
	EXPECT_TRUE(filled(self->map, NBYTES, 1));
}

TEST_F(bounce, two_writers_do_not_disturb_bytes_of_only_one)
{
	__u64 view = new_allocated_view(self->ctx, self->id, 0, PAGE);

	vgem_import_export(self->card, self->ctx, view);
	EXPECT_EQ(0, do_sync(self->ctx, self->id, PAGE, PAGE, DEVBUF_SYNC_READ));
}

TEST_F(bounce, two_writers_of_different_bytes_do_not_mind_each_other)
{
	__u64 id = new_allocated(self->ctx, 2 * PAGE);
	__u64 first = new_allocated_view(self->ctx, id, 0, PAGE);
	__u64 second = new_allocated_view(self->ctx, id, PAGE, PAGE);

	vgem_import_export(self->card, self->ctx, first);
	vgem_import_export(self->card, self->ctx, second);
	EXPECT_EQ(0, do_sync(self->ctx, first, 0, PAGE, DEVBUF_SYNC_READ));
	EXPECT_EQ(0, do_sync(self->ctx, second, 0, PAGE, DEVBUF_SYNC_READ));
}

TEST_F(bounce, a_writer_that_has_gone_is_none)
{
	__u64 view = new_allocated_view(self->ctx, self->id, 0, PAGE);

	vgem_close(self->card, vgem_import_export(self->card, self->ctx, view));
	EXPECT_EQ(0, do_sync(self->ctx, self->id, 0, NBYTES, DEVBUF_SYNC_READ));
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	if (!kernel_bounces())
		return skip_program("the kernel was not booted with swiotlb=force");
	return test_harness_run(argc, argv);
}
