// SPDX-License-Identifier: GPL-2.0-only
/*
 * SYSTEM:<node>: ordinary pages, one device for each NUMA node with memory.
 */
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "../devbuf_private.h"

/*
 * Charged to the caller, whose cgroup's limit must give him -ENOMEM rather than
 * send the OOM killer: hence __GFP_RETRY_MAYFAIL.
 */
#define DEVBUF_SYSTEM_GFP	(GFP_USER | __GFP_ACCOUNT | __GFP_ZERO | \
				 __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* Pages that are more than one must come easily: there are smaller ones. */
#define DEVBUF_SYSTEM_GFP_LARGE	((DEVBUF_SYSTEM_GFP & ~__GFP_RETRY_MAYFAIL) | \
				 __GFP_NORETRY | __GFP_COMP)

static struct devbuf_device *devbuf_system_devices[MAX_NUMNODES];

/**
 * devbuf_pages_free - give memory of devbuf_pages_alloc() back
 * @mem: the memory
 */
void devbuf_pages_free(struct devbuf_memory *mem)
{
	unsigned long i = 0, next;

	/* Also before pages that somebody still pins: their last put is his. */
	if (mem->flags & DEVBUF_CREATE_UNCACHED)
		devbuf_set_pages_wb(mem->pages, mem->nr_pages);
	while (i < mem->nr_pages) {
		unsigned int order = compound_order(mem->pages[i]);

		next = i + (1UL << order);
		__free_pages(mem->pages[i], order);
		i = next;
		cond_resched();
	}
	kvfree(mem->pages);
}

/* 2^@order pages, which the device's DMA reaches if there is one. */
static struct page *devbuf_alloc_reachable(int node, unsigned int order,
					   const struct devbuf_device *device)
{
	gfp_t gfp = order ? DEVBUF_SYSTEM_GFP_LARGE : DEVBUF_SYSTEM_GFP;
	gfp_t zone = device ? devbuf_dma_zone(device) : 0;
	struct page *page;

	page = alloc_pages_node(node, gfp | zone, order);
	if (!page || !device || devbuf_dma_reaches_page(device, page, order))
		return page;
	__free_pages(page, order);
	/* The zone was not low enough: there is one that is lower still. */
	if (zone & __GFP_DMA)
		return NULL;
	page = alloc_pages_node(node, gfp | GFP_DMA, order);
	if (!page || devbuf_dma_reaches_page(device, page, order))
		return page;
	__free_pages(page, order);
	return NULL;
}

/* The largest piece of at most 2^*@order pages; remembers what was too large. */
static struct page *devbuf_alloc_piece(int node, unsigned int *order,
				       const struct devbuf_device *device)
{
	struct page *page;

	for (;; (*order)--) {
		page = devbuf_alloc_reachable(node, *order, device);
		if (page || !*order)
			return page;
	}
}

/**
 * devbuf_pages_alloc_one - a few pages in a row, zero
 * @device: whose DMA must reach them, or NULL
 * @order: in: 2^this pages are wanted; out: so many there are
 *
 * Return: the first, or NULL.
 */
struct page *devbuf_pages_alloc_one(const struct devbuf_device *device,
				    unsigned int *order)
{
	return devbuf_alloc_piece(NUMA_NO_NODE, order, device);
}

/**
 * devbuf_pages_alloc - memory of the host
 * @mem: what is wanted, and to be filled in
 * @node: where it should be
 * @reachable_by: the device whose DMA must reach it, or NULL
 *
 * Return: 0, -ENOMEM or -EINTR.
 */
int devbuf_pages_alloc(struct devbuf_memory *mem, int node,
		       const struct devbuf_device *reachable_by)
{
	unsigned int order = DEVBUF_MAX_PAGE_ORDER;
	u64 nr_pages = DIV_ROUND_UP_ULL(mem->nbytes, PAGE_SIZE);
	unsigned long i, filled = 0;
	unsigned int largest = 0;
	int ret = -ENOMEM;

	/* Rather than let it eat all there is before it fails. */
	if (nr_pages > totalram_pages())
		return -ENOMEM;
	if (mem->flags & DEVBUF_CREATE_UNCACHED && nr_pages > INT_MAX)
		return -ENOMEM;
	mem->pages = kvmalloc_array(nr_pages, sizeof(*mem->pages), DEVBUF_GFP);
	if (!mem->pages)
		return -ENOMEM;

	while (filled < nr_pages) {
		struct page *page;

		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			goto err_free;
		}
		order = min_t(unsigned int, order, ilog2(nr_pages - filled));
		page = devbuf_alloc_piece(node, &order, reachable_by);
		if (!page)
			goto err_free;
		largest = max(largest, order);
		for (i = 0; i < 1UL << order; i++)
			mem->pages[filled++] = page + i;
		mem->nr_pages = filled;
		cond_resched();
	}
	mem->whole_folios = true;
	mem->largest_page_shift = PAGE_SHIFT + largest;

	if (mem->flags & DEVBUF_CREATE_UNCACHED) {
		ret = devbuf_set_pages_wc(mem->pages, mem->nr_pages);
		if (ret) {
			/* Splitting the direct map's large pages takes memory. */
			ret = -ENOMEM;
			goto err_free;
		}
	}
	return 0;

err_free:
	devbuf_pages_free(mem);
	return ret;
}

static int devbuf_system_alloc(struct devbuf_device *device,
			       struct devbuf_memory *mem)
{
	return devbuf_pages_alloc(mem, devbuf_device_numa_node(device), NULL);
}

static void devbuf_system_free(struct devbuf_device *device,
			       struct devbuf_memory *mem)
{
	devbuf_pages_free(mem);
}

/* Any byte can begin a view. */
static int devbuf_system_offset(struct devbuf_device *device,
				struct devbuf_memory *mem, u64 offset, u64 nbytes)
{
	return 0;
}

static void devbuf_system_usage(struct devbuf_device *device,
				struct devbuf_usage *usage)
{
	int node = devbuf_device_numa_node(device);
	struct zone *zones = NODE_DATA(node)->node_zones;
	u64 nr_free = 0;
	int i;

	for (i = 0; i < MAX_NR_ZONES; i++)
		nr_free += zone_page_state(&zones[i], NR_FREE_PAGES);
	usage->total_nbytes = (u64)node_present_pages(node) << PAGE_SHIFT;
	usage->free_nbytes = nr_free << PAGE_SHIFT;
}

static const struct devbuf_device_ops devbuf_system_ops = {
	.alloc	= devbuf_system_alloc,
	.free	= devbuf_system_free,
	.offset	= devbuf_system_offset,
	.usage	= devbuf_system_usage,
};

int devbuf_system_register(void)
{
	struct devbuf_device_desc desc = {
		.prefix		= "SYSTEM",
		.caps		= DEVBUF_CAP_TRANSFER | DEVBUF_CAP_COPY |
				  DEVBUF_CAP_MAP | DEVBUF_CAP_PINNABLE |
				  DEVBUF_CAP_EXPORT | DEVBUF_CAP_REUSE |
				  DEVBUF_CAP_HOST,
		.alignment	= PAGE_SIZE,
		.ops		= &devbuf_system_ops,
	};
	struct devbuf_device *device;
	int node;

	if (DEVBUF_HAS_WRITE_COMBINING)
		desc.caps |= DEVBUF_CAP_UNCACHED;
	for_each_node_state(node, N_MEMORY) {
		desc.number = node;
		desc.numa_node = node;
		device = devbuf_device_register_permanent(&desc);
		if (IS_ERR(device)) {
			devbuf_system_unregister();
			return PTR_ERR(device);
		}
		devbuf_system_devices[node] = device;
	}
	return 0;
}

void devbuf_system_unregister(void)
{
	int node;

	for (node = 0; node < MAX_NUMNODES; node++) {
		if (devbuf_system_devices[node])
			devbuf_device_unregister(devbuf_system_devices[node]);
		devbuf_system_devices[node] = NULL;
	}
}
