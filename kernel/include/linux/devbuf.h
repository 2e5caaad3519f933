/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The in-kernel API of devbuf: what a driver implements so that its memory can
 * be had as device buffers.
 *
 * A driver describes its memory in a struct devbuf_device_desc and registers
 * it; devbuf does the rest: ids, rights, views, mappings, copies, dma-bufs.
 */
#ifndef _LINUX_DEVBUF_H
#define _LINUX_DEVBUF_H

#include <linux/types.h>
#include <uapi/linux/devbuf.h>

struct devbuf_device;
struct module;
struct page;

/**
 * struct devbuf_memory - one allocation of a device
 * @nbytes: bytes that were asked for, not zero
 * @user_addr: the caller's memory, for devices with DEVBUF_CAP_EXTERNAL
 * @alignment: zero or a power of two, at most the device's alignment
 * @flags: DEVBUF_CREATE_* bits, only those that the device's capabilities allow
 * @largest_page_shift: set by @alloc: the largest piece is 2^this bytes
 * @nr_pages: set by @alloc: how many @pages
 * @pages: set by @alloc: the memory, page by page. It begins with the first
 *	byte of the first, or, with @user_addr, as far into it as that says.
 * @whole_folios: set by @alloc: @pages lists every page of each folio in
 *	order, so that a copy may go on to the end of the folio
 * @read_only: set by @alloc: nobody may write to it
 * @private: the driver's own
 */
struct devbuf_memory {
	u64 nbytes;
	u64 user_addr;
	u64 alignment;
	u32 flags;
	u32 largest_page_shift;
	unsigned long nr_pages;
	struct page **pages;
	bool whole_folios;
	bool read_only;
	void *private;
};

/**
 * struct devbuf_device_ops - what a device can do
 *
 * All callbacks run in a context that may sleep. None is called with a lock
 * held that reclaim can need, other than @free (see there).
 */
struct devbuf_device_ops {
	/** @owner: the module; it stays while any memory of the device exists */
	struct module *owner;

	/**
	 * @alloc: fill @mem with memory for @mem->nbytes bytes
	 *
	 * Required. Called in the task that pays for it, with no lock held. The
	 * memory must be zero, and whole pages unless it is the caller's own
	 * (DEVBUF_CAP_EXTERNAL). Must give up at a fatal signal.
	 *
	 * Return: 0, -ENOMEM, -EINTR, -EFAULT, -EPERM or -EOPNOTSUPP. On failure
	 * nothing is left behind.
	 */
	int (*alloc)(struct devbuf_device *device, struct devbuf_memory *mem);

	/**
	 * @free: give back what @alloc filled in
	 *
	 * Required. Nobody uses the memory through devbuf any more; pages may
	 * still be pinned by others, and live until those let go. For devices
	 * with DEVBUF_CAP_REUSE it runs inside reclaim too: it must not allocate
	 * and not wait for anything that allocates.
	 */
	void (*free)(struct devbuf_device *device, struct devbuf_memory *mem);

	/**
	 * @offset: may there be a view of these bytes of @mem?
	 *
	 * Optional; without it the device has no views (DEVBUF_CAP_VIEWS). The
	 * range is inside of the memory. Called with a lock of the buffer held.
	 *
	 * Return: 0 or -EOPNOTSUPP.
	 */
	int (*offset)(struct devbuf_device *device, struct devbuf_memory *mem,
		      u64 offset, u64 nbytes);

	/**
	 * @usage: how many bytes the device has, and how many are free
	 *
	 * Optional; without it both are reported as zero.
	 */
	void (*usage)(struct devbuf_device *device, u64 *total_nbytes,
		      u64 *free_nbytes);
};

/**
 * struct devbuf_device_desc - a device to register
 * @prefix: the kind of device, upper case: "SYSTEM"
 * @number: which of them; the name is "PREFIX:NUMBER"
 * @numa_node: node of its memory, or NUMA_NO_NODE
 * @caps: DEVBUF_CAP_* bits, except DEVBUF_CAP_VIEWS, which follows from @ops
 * @alignment: bytes; the alignment that every allocation has
 * @ops: the callbacks
 * @private: the driver's own; devbuf_device_private() returns it
 */
struct devbuf_device_desc {
	const char *prefix;
	unsigned int number;
	int numa_node;
	u64 caps;
	u64 alignment;
	const struct devbuf_device_ops *ops;
	void *private;
};

struct devbuf_device *devbuf_device_register(const struct devbuf_device_desc *desc);
void devbuf_device_unregister(struct devbuf_device *device);
void *devbuf_device_private(const struct devbuf_device *device);
int devbuf_device_numa_node(const struct devbuf_device *device);

#endif /* _LINUX_DEVBUF_H */
