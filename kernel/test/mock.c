// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices for tests, which lack what the real ones have; test builds only.
 *
 * MOCK:0 can allocate and free, and nothing else.
 * MOCK:1 can do what SYSTEM can, but has views only at multiples of 64 bytes,
 *	and fails its next allocations with -ENOMEM as often as the parameter
 *	mock_failures says.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "../devbuf_private.h"
#include "test.h"

#define MOCK_VIEW_ALIGNMENT	64

static atomic_t mock_failures;

static int mock_failures_set(const char *text, const struct kernel_param *param)
{
	int value, ret;

	ret = kstrtoint(text, 0, &value);
	if (!ret)
		atomic_set(&mock_failures, value);
	return ret;
}

static int mock_failures_get(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%d\n", atomic_read(&mock_failures));
}

static const struct kernel_param_ops mock_failures_ops = {
	.set = mock_failures_set,
	.get = mock_failures_get,
};
module_param_cb(mock_failures, &mock_failures_ops, NULL, 0644);
MODULE_PARM_DESC(mock_failures, "How many allocations of MOCK:1 will fail");

static void mock_free(struct devbuf_device *device, struct devbuf_memory *mem)
{
	while (mem->nr_pages)
		__free_page(mem->pages[--mem->nr_pages]);
	kvfree(mem->pages);
}

static int mock_alloc(struct devbuf_device *device, struct devbuf_memory *mem)
{
	unsigned long nr_pages = DIV_ROUND_UP_ULL(mem->nbytes, PAGE_SIZE);

	if (devbuf_device_private(device) &&
	    atomic_dec_if_positive(&mock_failures) >= 0)
		return -ENOMEM;
	mem->pages = kvmalloc_array(nr_pages, sizeof(*mem->pages), DEVBUF_GFP);
	if (!mem->pages)
		return -ENOMEM;
	while (mem->nr_pages < nr_pages) {
		struct page *page = alloc_page(DEVBUF_GFP | __GFP_ZERO);

		if (!page) {
			mock_free(device, mem);
			return -ENOMEM;
		}
		mem->pages[mem->nr_pages++] = page;
	}
	mem->largest_page_shift = PAGE_SHIFT;
	return 0;
}

static int mock_offset(struct devbuf_device *device, struct devbuf_memory *mem,
		       u64 offset, u64 nbytes)
{
	return offset % MOCK_VIEW_ALIGNMENT ? -EOPNOTSUPP : 0;
}

static const struct devbuf_device_ops mock_bare_ops = {
	.alloc	= mock_alloc,
	.free	= mock_free,
};

static const struct devbuf_device_ops mock_ops = {
	.alloc	= mock_alloc,
	.free	= mock_free,
	.offset	= mock_offset,
};

static const struct devbuf_device_desc mock_descs[] = {
	{
		.prefix		= "MOCK",
		.number		= 0,
		.numa_node	= NUMA_NO_NODE,
		.alignment	= PAGE_SIZE,
		.ops		= &mock_bare_ops,
	}, {
		.prefix		= "MOCK",
		.number		= 1,
		.numa_node	= NUMA_NO_NODE,
		.caps		= DEVBUF_CAP_TRANSFER | DEVBUF_CAP_COPY |
				  DEVBUF_CAP_MAP | DEVBUF_CAP_PINNABLE |
				  DEVBUF_CAP_EXPORT | DEVBUF_CAP_REUSE,
		.alignment	= PAGE_SIZE,
		.ops		= &mock_ops,
		.private	= &mock_failures,
	},
};

static struct devbuf_device *mock_devices[ARRAY_SIZE(mock_descs)];

int devbuf_mock_register(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mock_descs); i++) {
		mock_devices[i] = devbuf_device_register_permanent(&mock_descs[i]);
		if (IS_ERR(mock_devices[i])) {
			int ret = PTR_ERR(mock_devices[i]);

			while (i--)
				devbuf_device_unregister(mock_devices[i]);
			return ret;
		}
	}
	return 0;
}

void devbuf_mock_unregister(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mock_devices); i++)
		devbuf_device_unregister(mock_devices[i]);
}
