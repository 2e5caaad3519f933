// SPDX-License-Identifier: GPL-2.0-only
/*
 * A camera at the other end of a dma-buf: vivid, which writes its pictures through the kernel
 * mapping (vmap) of what it gets. Needs the module vivid.
 */
#include "../uapi/common.h"

#include <linux/dma-buf.h>

#include "../../libdevbuf/examples/v4l2/camera.h"
#include "kselftest_harness.h"

#define NR_BUFFERS 4u
#define NR_FRAMES  6u

FIXTURE(vivid)
{
	struct camera camera;
	int ctx;
	__u64 ids[NR_BUFFERS];
	int dmabufs[NR_BUFFERS];
};

FIXTURE_VARIANT(vivid)
{
	__u32 create_flags;
};

FIXTURE_VARIANT_ADD(vivid, cached) {};
FIXTURE_VARIANT_ADD(vivid, uncached)
{
	.create_flags = DEVBUF_CREATE_UNCACHED,
};

FIXTURE_SETUP(vivid)
{
	if (camera_open(&self->camera))
		SKIP(return, "there is no camera: is the module vivid loaded?");
	self->ctx = new_context();
	for (unsigned int i = 0; i < NR_BUFFERS; i++) {
		self->ids[i] = new_allocated_flags(self->ctx, self->camera.nbytes,
						   variant->create_flags);
		self->dmabufs[i] = new_export(self->ctx, self->ids[i], DEVBUF_EXPORT_WRITE);
	}
}

FIXTURE_TEARDOWN(vivid)
{
	for (unsigned int i = 0; i < NR_BUFFERS; i++)
		close(self->dmabufs[i]);
	close(self->ctx);
	camera_close(&self->camera);
}

/* What importers that map a dma-buf see; released by munmap(). */
static void *map_dmabuf(int dmabuf, size_t nbytes)
{
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ };
	void *map = mmap(NULL, nbytes, PROT_READ, MAP_SHARED, dmabuf, 0);

	must_libc(map == MAP_FAILED ? -1 : 0);
	must_libc(ioctl(dmabuf, DMA_BUF_IOCTL_SYNC, &sync));
	return map;
}

TEST_F(vivid, picture_is_the_same_whichever_way_it_is_read)
{
	size_t nbytes = self->camera.nbytes;
	unsigned char *copy = new_memory(nbytes), *map, *dmabuf_map;
	unsigned int last;

	ASSERT_EQ(0, camera_capture(&self->camera, self->dmabufs, NR_BUFFERS, NR_FRAMES, &last));
	must(do_copyout(self->ctx, self->ids[last], 0, copy, nbytes));
	map = new_mapping(self->ctx, self->ids[last], nbytes, PROT_READ);
	dmabuf_map = map_dmabuf(self->dmabufs[last], nbytes);

	EXPECT_FALSE(all_zero(copy, nbytes));
	EXPECT_EQ(0, memcmp(copy, map, nbytes));
	EXPECT_EQ(0, memcmp(copy, dmabuf_map, nbytes));
	munmap(dmabuf_map, nbytes);
}

TEST_F(vivid, every_buffer_gets_a_picture)
{
	unsigned int last;

	ASSERT_EQ(0, camera_capture(&self->camera, self->dmabufs, NR_BUFFERS, NR_FRAMES, &last));
	for (unsigned int i = 0; i < NR_BUFFERS; i++)
		EXPECT_FALSE(buffer_zero(self->ctx, self->ids[i], 0, self->camera.nbytes));
}

TEST_F(vivid, buffer_whose_context_is_closed_gets_its_picture)
{
	unsigned char *map;
	unsigned int last;

	close(self->ctx);
	ASSERT_EQ(0, camera_capture(&self->camera, self->dmabufs, NR_BUFFERS, NR_FRAMES, &last));
	map = map_dmabuf(self->dmabufs[last], self->camera.nbytes);
	EXPECT_FALSE(all_zero(map, self->camera.nbytes));
	munmap(map, self->camera.nbytes);
	self->ctx = new_context();
}

TEST_F(vivid, export_for_reading_is_not_written_to)
{
	int readers[NR_BUFFERS];
	unsigned int last;

	for (unsigned int i = 0; i < NR_BUFFERS; i++)
		readers[i] = new_export(self->ctx, self->ids[i], 0);
	EXPECT_GT(0, camera_capture(&self->camera, readers, NR_BUFFERS, NR_FRAMES, &last));
	for (unsigned int i = 0; i < NR_BUFFERS; i++) {
		EXPECT_TRUE(buffer_zero(self->ctx, self->ids[i], 0, self->camera.nbytes));
		close(readers[i]);
	}
}

TEST_HARNESS_MAIN
