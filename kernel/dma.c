// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA: what the engines of devices reach, and memory that is mapped for them.
 *
 * A mapping belongs to the copy that needs it, and is made before that is queued,
 * as it takes memory. But it is undone with the device, whoever has it: then
 * nobody runs the engine any more (devbuf_dma_run).
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/pci-p2pdma.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "devbuf_private.h"

/* Does somebody translate the device's addresses? */
static bool devbuf_dma_is_translated(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	return domain && domain->type & __IOMMU_DOMAIN_PAGING;
}

/* Does the device reach all memory of the host, without bounce buffers? */
bool devbuf_dma_reaches_all(struct device *dev)
{
	return devbuf_dma_is_translated(dev) ||
	       dma_get_mask(dev) >= dma_get_required_mask(dev);
}

/**
 * devbuf_dma_reaches - does an engine reach memory of the host?
 * @device: whose engine
 * @host: the memory: of which device's DEVBUF_CREATE_HOST, or of the host alone
 */
bool devbuf_dma_reaches(const struct devbuf_device *device,
			const struct devbuf_place *host)
{
	struct device *other = host->device->desc.dma_dev;

	if (device->reaches_all || device == host->device)
		return true;
	return host->device->caps & DEVBUF_CAP_LOCAL && !host->device->reaches_all &&
	       dma_get_mask(other) <= dma_get_mask(device->desc.dma_dev);
}

/* From where pages are likely to be such that the device reaches them. */
gfp_t devbuf_dma_zone(const struct devbuf_device *device)
{
	u64 mask = dma_get_mask(device->desc.dma_dev);

	if (device->reaches_all)
		return 0;
	if (mask <= DMA_BIT_MASK(24))
		return GFP_DMA;
	return mask <= DMA_BIT_MASK(32) ? GFP_DMA32 : 0;
}

bool devbuf_dma_reaches_page(const struct devbuf_device *device,
			     const struct page *page, unsigned int order)
{
	phys_addr_t last = page_to_phys(page) + (PAGE_SIZE << order) - 1;

	return device->reaches_all ||
	       last <= dma_get_mask(device->desc.dma_dev);
}

/* The highest address that a peer's memory may have on the bus. */
static u64 devbuf_dma_peer_last(struct pci_dev *provider)
{
	u64 last = 0;
	int i;

	for (i = 0; i < PCI_STD_NUM_BARS; i++)
		if (pci_resource_flags(provider, i) & IORESOURCE_MEM &&
		    pci_resource_len(provider, i))
			last = max_t(u64, last, pci_bus_address(provider, i) +
				     pci_resource_len(provider, i) - 1);
	return last;
}

/**
 * devbuf_dma_peer_reason - why can @dev not reach memory of @device?
 * @device: a device with memory of its own
 * @dev: who wants to
 *
 * Return: DEVBUF_REASON_*, DEVBUF_REASON_NONE if it can.
 */
u32 devbuf_dma_peer_reason(const struct devbuf_device *device, struct device *dev)
{
	struct pci_dev *provider = device->desc.provider;

	if (devbuf_device_is_gone(device))
		return DEVBUF_REASON_DEVICE_GONE;
	if (!(device->caps & DEVBUF_CAP_PEER))
		return provider ? DEVBUF_REASON_NO_P2PDMA :
				  DEVBUF_REASON_NOT_PEER_MEMORY;
	if (pci_p2pdma_distance(provider, dev, false) < 0)
		return DEVBUF_REASON_NO_PEER_PATH;
	if (!devbuf_dma_is_translated(dev) &&
	    dma_get_mask(dev) < devbuf_dma_peer_last(provider))
		return DEVBUF_REASON_DMA_MASK;
	return DEVBUF_REASON_NONE;
}

/**
 * devbuf_dma_map_pages - map memory for an engine
 * @device: whose engine; entered
 * @pages: from the first page of its storage on
 * @start: bytes from there
 * @nbytes: how many
 * @dir: direction
 *
 * Return: the mapping, or -ENOMEM or -EIO.
 */
struct devbuf_dma_map *devbuf_dma_map_pages(struct devbuf_device *device,
					    struct page **pages, u64 start,
					    u64 nbytes,
					    enum dma_data_direction dir)
{
	struct device *dev = device->desc.dma_dev;
	u64 nr_pages = DIV_ROUND_UP_ULL(offset_in_page(start) + nbytes, PAGE_SIZE);
	size_t max_segment = min_t(size_t, dma_get_max_seg_size(dev),
				   dma_max_mapping_size(dev));
	struct devbuf_dma_map *map;
	int ret;

	if (nr_pages > UINT_MAX)
		return ERR_PTR(-ENOMEM);
	map = kzalloc(sizeof(*map), DEVBUF_GFP);
	if (!map)
		return ERR_PTR(-ENOMEM);
	map->device = device;
	map->dir = dir;
	map->start = start;
	ret = sg_alloc_table_from_pages_segment(&map->sgt,
						pages + (start >> PAGE_SHIFT),
						nr_pages, offset_in_page(start),
						nbytes,
						max_t(size_t, max_segment, PAGE_SIZE),
						DEVBUF_GFP);
	if (ret)
		goto err_map;
	/* Each step syncs what it moves. */
	ret = dma_map_sgtable(dev, &map->sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	if (ret)
		goto err_table;
	kref_get(&device->ref);
	spin_lock(&device->memory_lock);
	list_add(&map->entry, &device->dma_maps);
	spin_unlock(&device->memory_lock);
	return map;

err_table:
	sg_free_table(&map->sgt);
err_map:
	kfree(map);
	return ERR_PTR(ret);
}

static void devbuf_dma_undo(struct devbuf_dma_map *map)
{
	lockdep_assert_held(&map->device->memory_lock);
	list_del_init(&map->entry);
	dma_unmap_sgtable(map->device->desc.dma_dev, &map->sgt, map->dir,
			  DMA_ATTR_SKIP_CPU_SYNC);
}

/* The end of a mapping, NULL or not. */
void devbuf_dma_unmap(struct devbuf_dma_map *map)
{
	struct devbuf_device *device;

	if (!map)
		return;
	device = map->device;
	spin_lock(&device->memory_lock);
	if (!list_empty(&map->entry))
		devbuf_dma_undo(map);
	spin_unlock(&device->memory_lock);
	sg_free_table(&map->sgt);
	if (map->peer)
		devbuf_device_put(map->peer);
	kfree(map);
	devbuf_device_put(device);
}

/* The device is gone, and nobody is in it; its lock is held. */
void devbuf_dma_revoke(struct devbuf_device *device)
{
	struct devbuf_dma_map *map, *next;

	list_for_each_entry_safe(map, next, &device->dma_maps, entry)
		devbuf_dma_undo(map);
}

/* One call of the engine. */
static int devbuf_dma_step(const struct devbuf_dma_map *map,
			   const struct devbuf_dma *dma)
{
	struct devbuf_device *device = map->device;
	struct device *dev = device->desc.dma_dev;
	int ret;

	if (!map->peer && dma->to_device)
		dma_sync_single_for_device(dev, dma->dma_addr, dma->nbytes, map->dir);
	ret = device->desc.ops->dma(device, dma);
	if (!map->peer && !dma->to_device)
		dma_sync_single_for_cpu(dev, dma->dma_addr, dma->nbytes, map->dir);
	return ret;
}

/* Segment by segment; the device is entered. */
static int devbuf_dma_run_segments(const struct devbuf_dma_map *map, u64 pos,
				   struct devbuf_dma *dma, u64 rest)
{
	u64 max = map->device->desc.max_dma_nbytes;
	u64 start = map->start;
	struct scatterlist *sg;
	unsigned int i;
	u64 skip;
	int ret;

	for_each_sgtable_dma_sg(&map->sgt, sg, i) {
		skip = pos - start;
		start += sg_dma_len(sg);
		for (; rest && pos < start; pos += dma->nbytes, skip += dma->nbytes) {
			dma->dma_addr = sg_dma_address(sg) + skip;
			dma->nbytes = min3(rest, max, start - pos);
			ret = devbuf_dma_step(map, dma);
			if (ret)
				return ret;
			dma->offset += dma->nbytes;
			rest -= dma->nbytes;
		}
		if (!rest)
			return 0;
	}
	return WARN_ON_ONCE(rest) ? -EIO : 0;
}

/**
 * devbuf_dma_run - have an engine move bytes
 * @map: the end that is not the device's own
 * @pos: where in that, in bytes from the first page of its storage
 * @mem: memory of the device
 * @offset: bytes from its beginning
 * @nbytes: how many
 * @to_device: to @mem, or from it
 *
 * Part of signalling.
 *
 * Return: 0, -EIO, -ETIMEDOUT or -ENODEV.
 */
int devbuf_dma_run(const struct devbuf_dma_map *map, u64 pos,
		   struct devbuf_memory *mem, u64 offset, u64 nbytes,
		   bool to_device)
{
	struct devbuf_dma dma = { .mem = mem, .offset = offset,
				  .to_device = to_device };
	int ret = -ENODEV;

	if (map->peer && !devbuf_device_enter(map->peer))
		return -ENODEV;
	if (devbuf_device_enter(map->device)) {
		ret = devbuf_dma_run_segments(map, pos, &dma, nbytes);
		devbuf_device_leave(map->device);
	}
	if (map->peer)
		devbuf_device_leave(map->peer);
	return ret;
}
