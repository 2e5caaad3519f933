// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stages: how the CPU gets at memory that goes with its device.
 *
 * Such memory is on a bus, or only its device's engine reaches it, or it may go at
 * any time, and then whoever touches it must be waited for. So it is entered for
 * a step only, in which nobody waits for userspace: the bytes pass by way of a
 * stage, memory of the host that belongs to the copy. With an engine the stage is
 * mapped for it.
 */
#include <linux/io.h>
#include <linux/slab.h>

#include "devbuf_private.h"

/* Is it only the device's engine that reaches this memory? */
static bool devbuf_storage_needs_engine(const struct devbuf_storage *storage)
{
	return !storage->mem.iomem && !storage->mem.pages;
}

static int devbuf_stage_map(struct devbuf_stage *stage, struct page *first)
{
	struct page *pages[DEVBUF_STAGE_NBYTES >> PAGE_SHIFT];
	struct devbuf_dma_map *map;
	u64 i;

	for (i = 0; i < stage->nbytes >> PAGE_SHIFT; i++)
		pages[i] = first + i;
	if (!devbuf_device_enter(stage->device))
		return -ENODEV;
	map = devbuf_dma_map_pages(stage->device, pages, 0, stage->nbytes,
				   DMA_BIDIRECTIONAL);
	devbuf_device_leave(stage->device);
	if (IS_ERR(map))
		return PTR_ERR(map);
	stage->dma = map;
	return 0;
}

static struct devbuf_stage *devbuf_stage_new(struct devbuf_storage *storage,
					     u64 nbytes)
{
	unsigned int order = get_order(min_t(u64, nbytes, DEVBUF_STAGE_NBYTES));
	struct devbuf_device *device = storage->device;
	bool engine = devbuf_storage_needs_engine(storage);
	struct devbuf_stage *stage;
	struct page *page;
	int ret = -ENOMEM;

	stage = kzalloc(sizeof(*stage), DEVBUF_GFP);
	if (!stage)
		return ERR_PTR(-ENOMEM);
	page = devbuf_pages_alloc_one(engine ? device : NULL, &order);
	if (!page)
		goto err_stage;
	refcount_set(&stage->ref, 1);
	stage->device = device;
	stage->vaddr = page_address(page);
	stage->nbytes = PAGE_SIZE << order;
	if (engine) {
		ret = devbuf_stage_map(stage, page);
		if (ret)
			goto err_page;
	}
	kref_get(&device->ref);
	return stage;

err_page:
	__free_pages(page, order);
err_stage:
	kfree(stage);
	return ERR_PTR(ret);
}

/**
 * devbuf_stage_get - what it takes to reach an end of a copy
 * @end: the end, its @storage set; @stage is set
 * @nbytes: how many bytes will be copied
 * @previous: the same end of the piece before, or NULL: pieces of a copy are done
 *	one after the other, and may share a stage
 *
 * Return: 0, -ENOMEM, -ENODEV or -EIO.
 */
int devbuf_stage_get(struct devbuf_end *end, u64 nbytes,
		     const struct devbuf_end *previous)
{
	struct devbuf_stage *stage;

	end->stage = NULL;
	if (end->storage->stays)
		return 0;
	stage = previous ? previous->stage : NULL;
	if (stage && stage->device == end->storage->device &&
	    !stage->dma == !devbuf_storage_needs_engine(end->storage)) {
		refcount_inc(&stage->ref);
	} else {
		stage = devbuf_stage_new(end->storage, nbytes);
		if (IS_ERR(stage))
			return PTR_ERR(stage);
	}
	end->stage = stage;
	return 0;
}

void devbuf_stage_put(struct devbuf_stage *stage)
{
	if (!stage || !refcount_dec_and_test(&stage->ref))
		return;
	devbuf_dma_unmap(stage->dma);
	free_pages((unsigned long)stage->vaddr, get_order(stage->nbytes));
	devbuf_device_put(stage->device);
	kfree(stage);
}

/* Between the host and memory that the CPU can touch; its device is entered. */
static void devbuf_stage_move(struct devbuf_storage *storage, u64 pos, void *host,
			      u64 nbytes, bool load)
{
	void __iomem *iomem = storage->mem.iomem;
	u64 row;
	void *span;

	if (iomem && load) {
		memcpy_fromio(host, iomem + pos, nbytes);
	} else if (iomem) {
		memcpy_toio(iomem + pos, host, nbytes);
	} else {
		for (; nbytes; nbytes -= row, pos += row, host += row) {
			row = nbytes;
			span = devbuf_storage_span(storage, pos, &row);
			memcpy(load ? host : span, load ? span : host, row);
		}
	}
}

/**
 * devbuf_stage_load - bring bytes to an end's stage
 * @end: the end
 * @pos: which bytes, from the first page of its storage
 * @nbytes: how many, at most as many as there is room for
 *
 * Part of signalling, like the next.
 *
 * Return: 0, or -ENODEV, -EIO or -ETIMEDOUT.
 */
int devbuf_stage_load(const struct devbuf_end *end, u64 pos, u64 nbytes)
{
	struct devbuf_storage *storage = end->storage;
	struct devbuf_stage *stage = end->stage;

	if (stage->dma)
		return devbuf_dma_run(stage->dma, 0, &storage->mem, pos, nbytes,
				      false);
	if (!devbuf_device_enter(stage->device))
		return -ENODEV;
	devbuf_stage_move(storage, pos, stage->vaddr, nbytes, true);
	devbuf_device_leave(stage->device);
	return 0;
}

/**
 * devbuf_stage_store - bring bytes to where an end lies
 * @end: the end
 * @pos: where, in bytes from the first page of its storage
 * @from: the bytes: in the stage, or any memory of the host
 * @nbytes: how many, at most as many as the stage has room for
 *
 * Return: 0, or -ENODEV, -EIO or -ETIMEDOUT.
 */
int devbuf_stage_store(const struct devbuf_end *end, u64 pos, const void *from,
		       u64 nbytes)
{
	struct devbuf_storage *storage = end->storage;
	struct devbuf_stage *stage = end->stage;

	if (stage->dma) {
		if (from != stage->vaddr)
			memcpy(stage->vaddr, from, nbytes);
		return devbuf_dma_run(stage->dma, 0, &storage->mem, pos, nbytes,
				      true);
	}
	if (!devbuf_device_enter(stage->device))
		return -ENODEV;
	devbuf_stage_move(storage, pos, (void *)from, nbytes, false);
	devbuf_device_leave(stage->device);
	return 0;
}
