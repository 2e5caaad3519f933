// SPDX-License-Identifier: GPL-2.0-only
/*
 * Coherence: what the CPU and the devices see of one memory.
 *
 * It belongs to the storage, not to the export through which somebody looks: a
 * range is synchronised for every attachment of every export that overlaps it.
 */
#include <linux/dma-buf.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>

#include "devbuf_private.h"

/**
 * struct devbuf_range - bytes of a storage's pages
 * @start: from the beginning of the first page
 * @end: the byte after the last
 */
struct devbuf_range {
	u64 start;
	u64 end;
};

static bool devbuf_range_meets(const struct devbuf_range *range,
			       const struct devbuf_export_info *export)
{
	return devbuf_export_meets(export, range->start, range->end - 1);
}

/* Must the CPU and the device be told what the other did to these bytes? */
static bool devbuf_attachment_needs_sync(const struct devbuf_attachment *a,
					 const struct devbuf_range *range)
{
	u64 pos = devbuf_export_pos(a->export);
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(&a->sgt, sg, i) {
		if (pos < range->end && range->start < pos + sg_dma_len(sg) &&
		    dma_need_sync(a->dev, sg_dma_address(sg)))
			return true;
		pos += sg_dma_len(sg);
	}
	return false;
}

/*
 * Does DMA to any of these bytes go through a bounce buffer? A device that sees
 * the CPU's caches has no other reason to need syncs.
 */
static bool devbuf_attachment_bounces(const struct devbuf_attachment *a,
				      const struct devbuf_range *range)
{
	return dev_is_dma_coherent(a->dev) && devbuf_attachment_needs_sync(a, range);
}

/*
 * The newest bytes of two bounce buffers that devices write to cannot be told.
 */
static int devbuf_coherence_check(const struct devbuf_storage *storage,
				  const struct devbuf_range *range)
{
	struct devbuf_attachment *a;
	unsigned int writers = 0;

	list_for_each_entry(a, &storage->attachments, entry)
		if (a->mapped && a->dir != DMA_TO_DEVICE &&
		    devbuf_range_meets(range, a->export) &&
		    devbuf_attachment_bounces(a, range) && ++writers > 1)
			return -EBUSY;
	return 0;
}

/*
 * An IOMMU may have made one DMA segment of many entries, whose pages lie apart:
 * each sync is of bytes that lie in a row for both, the device and the CPU.
 */
static void devbuf_attachment_sync(const struct devbuf_attachment *a,
				   const struct devbuf_range *range,
				   bool for_device)
{
	u64 pos = devbuf_export_pos(a->export);
	u64 end = pos + ((u64)a->export->nr_pages << PAGE_SHIFT);
	struct scatterlist *cpu = a->sgt.sgl, *dma = a->sgt.sgl;
	u64 cpu_end = pos + cpu->length;
	u64 dma_start = pos, dma_end = pos + sg_dma_len(dma);

	end = min(end, range->end);
	while (pos < end) {
		u64 next = min3(cpu_end, dma_end, end);
		u64 start = max(pos, range->start);
		dma_addr_t addr = sg_dma_address(dma) + (start - dma_start);

		if (start < next && for_device)
			dma_sync_single_for_device(a->dev, addr, next - start, a->dir);
		else if (start < next)
			dma_sync_single_for_cpu(a->dev, addr, next - start, a->dir);

		pos = next;
		if (pos == end)
			break;
		if (pos == cpu_end) {
			cpu = sg_next(cpu);
			cpu_end += cpu->length;
		}
		if (pos == dma_end) {
			dma = sg_next(dma);
			dma_start = dma_end;
			dma_end += sg_dma_len(dma);
		}
	}
}

static void devbuf_coherence_sync(struct devbuf_storage *storage,
				  const struct devbuf_range *range,
				  bool for_device)
{
	struct devbuf_attachment *a;

	lockdep_assert_held(&storage->sync_lock);
	list_for_each_entry(a, &storage->attachments, entry)
		if (a->mapped && devbuf_range_meets(range, a->export) &&
		    devbuf_attachment_needs_sync(a, range))
			devbuf_attachment_sync(a, range, for_device);
}

/**
 * devbuf_coherence_begin - before the CPU touches memory
 * @storage: the memory
 * @pos: bytes from the beginning of its first page
 * @nbytes: how many
 *
 * For who waited for devices already. May sleep, but neither allocates nor takes
 * a lock under which anybody does: it may be part of signalling a fence.
 *
 * Return: 0, or -EBUSY for devices that cannot be made to agree.
 */
int devbuf_coherence_begin(struct devbuf_storage *storage, u64 pos, u64 nbytes)
{
	const struct devbuf_range range = { pos, pos + nbytes };
	int ret;

	if (list_empty_careful(&storage->attachments))
		return 0;
	mutex_lock(&storage->sync_lock);
	ret = devbuf_coherence_check(storage, &range);
	if (!ret)
		devbuf_coherence_sync(storage, &range, false);
	mutex_unlock(&storage->sync_lock);
	return ret;
}

/**
 * devbuf_coherence_wait - wait for devices, and begin
 * @storage: the memory
 * @pos: bytes from the beginning of its first page
 * @nbytes: how many
 * @write: the CPU will write, too
 *
 * Costs two looks as long as nothing is queued or exported.
 *
 * Return: 0, -ERESTARTSYS, -ENOMEM or -EBUSY.
 */
int devbuf_coherence_wait(struct devbuf_storage *storage, u64 pos, u64 nbytes,
			  bool write)
{
	int ret;

	if (devbuf_storage_is_idle(storage))
		return 0;
	ret = devbuf_access_wait(storage, pos, pos + nbytes - 1, write);
	return ret ?: devbuf_coherence_begin(storage, pos, nbytes);
}

/**
 * devbuf_coherence_end - after the CPU touched memory
 * @storage: the memory
 * @pos: bytes from the beginning of its first page
 * @nbytes: how many
 * @write: it wrote, too
 *
 * May be part of signalling a fence.
 */
void devbuf_coherence_end(struct devbuf_storage *storage, u64 pos, u64 nbytes,
			  bool write)
{
	const struct devbuf_range range = { pos, pos + nbytes };

	/* Who only read has nothing that devices must see. */
	if (!write || list_empty_careful(&storage->attachments))
		return;
	mutex_lock(&storage->sync_lock);
	devbuf_coherence_sync(storage, &range, true);
	mutex_unlock(&storage->sync_lock);
}

int devbuf_ioctl_sync(struct devbuf_command *cmd)
{
	const u32 access = DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE;
	struct devbuf_sync *arg = &cmd->arg.sync;
	bool write = arg->flags & DEVBUF_SYNC_WRITE;
	struct devbuf_storage *storage;
	u64 pos;
	int ret = 0;

	if (arg->flags & ~(access | DEVBUF_SYNC_END) || !(arg->flags & access))
		return -EINVAL;
	storage = devbuf_range_hold(cmd->context, arg->id, arg->offset, arg->nbytes,
				    DEVBUF_RIGHT_READ |
				    (write ? DEVBUF_RIGHT_WRITE : 0), &pos);
	if (IS_ERR(storage))
		return PTR_ERR(storage);
	if (arg->flags & DEVBUF_SYNC_END)
		devbuf_coherence_end(storage, pos, arg->nbytes, write);
	else
		ret = devbuf_coherence_wait(storage, pos, arg->nbytes, write);
	devbuf_storage_put(storage);
	return ret;
}
