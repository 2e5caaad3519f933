// SPDX-License-Identifier: GPL-2.0-only
/*
 * USER:0: memory that the caller already has. Its pages are pinned for as long
 * as the storage lives, counted against his RLIMIT_MEMLOCK, and left in his
 * hands.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../devbuf_private.h"

/* Pages that are pinned between two looks at signals. */
#define DEVBUF_USERPTR_BATCH	1024

static struct devbuf_device *devbuf_userptr_device;

/* There are many reasons why pages cannot be pinned, and few errors of ours. */
static int devbuf_userptr_error(int ret)
{
	switch (ret) {
	case -ENOMEM:
	case -EINTR:
	case -EOPNOTSUPP:
		return ret;
	default:
		return -EFAULT;
	}
}

static int devbuf_userptr_pin(struct devbuf_memory *mem, unsigned long nr_pages,
			      bool write)
{
	unsigned long start = mem->user_addr & PAGE_MASK;
	int ret = 0;
	long pinned;

	while (mem->nr_pages < nr_pages) {
		pinned = devbuf_pin_user_pages(start + (mem->nr_pages << PAGE_SHIFT),
					       min_t(unsigned long, DEVBUF_USERPTR_BATCH,
						     nr_pages - mem->nr_pages),
					       write, mem->pages + mem->nr_pages);
		if (pinned <= 0) {
			ret = pinned ?: -EFAULT;
			break;
		}
		mem->nr_pages += pinned;
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		cond_resched();
	}
	if (ret) {
		unpin_user_pages(mem->pages, mem->nr_pages);
		mem->nr_pages = 0;
	}
	return ret;
}

static int devbuf_userptr_alloc(struct devbuf_device *device,
				struct devbuf_memory *mem)
{
	unsigned long nr_pages;
	struct user_struct *user;
	int ret;

	if (!access_ok(u64_to_user_ptr(mem->user_addr), mem->nbytes))
		return -EFAULT;
	nr_pages = DIV_ROUND_UP_ULL(offset_in_page(mem->user_addr) + mem->nbytes,
				    PAGE_SIZE);

	user = devbuf_pin_charge(nr_pages);
	if (IS_ERR(user))
		return PTR_ERR(user);
	ret = -ENOMEM;
	mem->pages = kvmalloc_array(nr_pages, sizeof(*mem->pages), DEVBUF_GFP);
	if (!mem->pages)
		goto err_uncharge;

	ret = devbuf_userptr_pin(mem, nr_pages, true);
	if (ret == -EFAULT) {
		/* He may only read it himself, or it is a file on a disk. */
		mem->read_only = true;
		ret = devbuf_userptr_pin(mem, nr_pages, false);
	}
	if (ret) {
		ret = devbuf_userptr_error(ret);
		goto err_free;
	}
	mem->largest_page_shift = PAGE_SHIFT;
	mem->private = user;
	return 0;

err_free:
	kvfree(mem->pages);
err_uncharge:
	devbuf_pin_uncharge(user, nr_pages);
	return ret;
}

static void devbuf_userptr_free(struct devbuf_device *device,
				struct devbuf_memory *mem)
{
	unpin_user_pages_dirty_lock(mem->pages, mem->nr_pages, !mem->read_only);
	kvfree(mem->pages);
	devbuf_pin_uncharge(mem->private, mem->nr_pages);
}

static int devbuf_userptr_offset(struct devbuf_device *device,
				 struct devbuf_memory *mem, u64 offset, u64 nbytes)
{
	return 0;
}

static const struct devbuf_device_ops devbuf_userptr_ops = {
	.alloc	= devbuf_userptr_alloc,
	.free	= devbuf_userptr_free,
	.offset	= devbuf_userptr_offset,
};

int devbuf_userptr_register(void)
{
	const struct devbuf_device_desc desc = {
		.prefix		= "USER",
		.numa_node	= NUMA_NO_NODE,
		.caps		= DEVBUF_CAP_TRANSFER | DEVBUF_CAP_COPY |
				  DEVBUF_CAP_EXPORT | DEVBUF_CAP_EXTERNAL |
				  DEVBUF_CAP_HOST,
		.alignment	= 1,
		.ops		= &devbuf_userptr_ops,
	};

	devbuf_userptr_device = devbuf_device_register_permanent(&desc);
	return PTR_ERR_OR_ZERO(devbuf_userptr_device);
}

void devbuf_userptr_unregister(void)
{
	devbuf_device_unregister(devbuf_userptr_device);
}
