/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The in-kernel API of devbuf: what a driver implements so that its memory can
 * be had as device buffers. Documentation/provider.rst goes through it step by
 * step.
 *
 * A driver describes its memory in a struct devbuf_device_desc and registers
 * it; devbuf does the rest: ids, rights, views, mappings, copies, dma-bufs,
 * fences, and letting go of all of it when the device is unplugged.
 */
#ifndef _LINUX_DEVBUF_H
#define _LINUX_DEVBUF_H

#include <linux/types.h>
#include <uapi/linux/devbuf.h>

struct devbuf_device;
struct device;
struct page;
struct pci_dev;

/**
 * struct devbuf_memory - one allocation of a device
 * @nbytes: bytes that were asked for, not zero
 * @user_addr: the caller's memory, for devices with DEVBUF_CAP_EXTERNAL
 * @alignment: zero or a power of two, at most the device's alignment
 * @flags: DEVBUF_CREATE_* bits, only those that the device's capabilities allow
 * @largest_page_shift: set by @alloc: the largest piece is 2^this bytes; zero
 *	if that means nothing to the device
 * @nr_pages: set by @alloc: how many whole pages the CPU can map, of @pages or
 *	from @phys on; zero for memory that it cannot reach
 * @pages: set by @alloc: the memory, page by page. It begins with the first
 *	byte of the first, or, with @user_addr, as far into it as that says. For
 *	DEVBUF_CAP_PEER these are pages of the kernel's p2pdma.
 * @whole_folios: set by @alloc: @pages lists every page of each folio in
 *	order, so that a copy may go on to the end of the folio
 * @read_only: set by @alloc: nobody may write to it
 * @iomem: set by @alloc: where the CPU copies to and from, for memory on a bus
 * @phys: set by @alloc, with @iomem: the same for mappings of users
 * @address: set by @alloc: where it begins in the device's own address space
 * @private: the driver's own
 *
 * Memory of a device with DEVBUF_CAP_LOCAL has @iomem, or is moved by the
 * device's engine alone. All other memory has @pages.
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
	void __iomem *iomem;
	phys_addr_t phys;
	u64 address;
	void *private;
};

/**
 * struct devbuf_usage - how much memory a device has
 * @total_nbytes: all of it
 * @free_nbytes: what is free
 * @largest_free_nbytes: the largest range of that, or zero if it does not matter
 */
struct devbuf_usage {
	u64 total_nbytes;
	u64 free_nbytes;
	u64 largest_free_nbytes;
};

/**
 * struct devbuf_dma - bytes for a device's engine to move
 * @mem: the device's memory
 * @offset: bytes from its beginning
 * @dma_addr: the other end: memory of the host, or of a peer, at an address that
 *	the device's DMA can use
 * @nbytes: how many, not zero, and at most @max_dma_nbytes of the device
 * @to_device: from @dma_addr to @mem; otherwise from @mem to @dma_addr
 */
struct devbuf_dma {
	struct devbuf_memory *mem;
	u64 offset;
	dma_addr_t dma_addr;
	u64 nbytes;
	bool to_device;
};

/**
 * struct devbuf_operation - something for a device to do with its own memory
 * @operation: zero to copy (like memmove), or a number of the driver's own, as
 *	userspace gave it to DEVBUF_TRANSFER
 * @dst: memory to write to
 * @dst_offset: bytes from its beginning
 * @src: memory to read, perhaps the same
 * @src_offset: bytes from its beginning
 * @nbytes: how many, not zero; for @operate at most @max_dma_nbytes of the device
 */
struct devbuf_operation {
	u32 operation;
	struct devbuf_memory *dst;
	u64 dst_offset;
	struct devbuf_memory *src;
	u64 src_offset;
	u64 nbytes;
};

/**
 * struct devbuf_device_ops - what a device can do
 *
 * A callback runs only between devbuf_device_register() and the return of
 * devbuf_device_unregister(), which waits for those that run: so the driver need
 * not count them, and its module may go afterwards. They may run in several
 * threads at once.
 *
 * All of them may sleep. Those marked *signalling* are part of signalling fences
 * that others wait for: they must not allocate memory other than GFP_ATOMIC, nor
 * take a lock under which anybody allocates so, and must end within bounded time,
 * whatever the device does. The others are called with no lock held that reclaim
 * can need, other than @free (see there).
 */
struct devbuf_device_ops {
	/**
	 * @alloc: fill @mem with memory for @mem->nbytes bytes
	 *
	 * Required. Called in the task that pays for it, with no lock held. The
	 * memory must be zero, and whole pages if the CPU can map it, unless it is
	 * the caller's own (DEVBUF_CAP_EXTERNAL). Must give up at a fatal signal.
	 *
	 * Return: 0, -ENOMEM, -EINTR, -EFAULT, -EPERM, -EOPNOTSUPP, or of memory
	 * that could not be made zero -EIO, -ETIMEDOUT or -ENODEV. On failure
	 * nothing is left behind.
	 */
	int (*alloc)(struct devbuf_device *device, struct devbuf_memory *mem);

	/**
	 * @free: give back what @alloc filled in
	 *
	 * Required. Nobody uses the memory through devbuf any more; pages may
	 * still be pinned by others, and live until those let go. For devices
	 * with DEVBUF_CAP_REUSE it runs inside reclaim too: it must not allocate
	 * and not wait for anything that allocates. While the device is
	 * unregistered it is called for all the memory that there is.
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
	 * Optional; without it all of @usage is reported as zero.
	 */
	void (*usage)(struct devbuf_device *device, struct devbuf_usage *usage);

	/**
	 * @dma: move bytes between memory of the device and another's
	 *
	 * Optional: an engine of the device (DEVBUF_CAP_ENGINE). Returns when the
	 * bytes are there, or when they never will be: the driver waits for its
	 * interrupt, but not for ever. Devbuf has mapped the other end for DMA by
	 * @dma_dev, and calls this from threads of its own for copies that are
	 * queued. *Signalling*.
	 *
	 * Return: 0, -EIO, -ETIMEDOUT (the device was reset), or -ENODEV.
	 */
	int (*dma)(struct devbuf_device *device, const struct devbuf_dma *dma);

	/**
	 * @operate: do something with memory of the device alone
	 *
	 * Optional: copies inside of the device, and with DEVBUF_CAP_OPERATIONS
	 * what else it can do. *Signalling*, and waits like @dma.
	 *
	 * Return: 0, -EIO, -ETIMEDOUT, or -ENODEV.
	 */
	int (*operate)(struct devbuf_device *device,
		       const struct devbuf_operation *operation);

	/**
	 * @check_operation: could @operate do this?
	 *
	 * Required for DEVBUF_CAP_OPERATIONS. Called before anything is queued,
	 * for numbers that are not zero, with the whole length: beyond
	 * @max_dma_nbytes @operate is called once for each part of it. May not
	 * sleep.
	 *
	 * Return: 0; -EOPNOTSUPP for a number that is not known; -EINVAL for offsets
	 * or a length that it cannot do.
	 */
	int (*check_operation)(struct devbuf_device *device,
			       const struct devbuf_operation *operation);
};

/**
 * struct devbuf_device_desc - a device to register
 * @parent: the device that the memory is of, or NULL
 * @prefix: the kind of device, upper case: "EDU"
 * @number: which of them; the name is "PREFIX:NUMBER"
 * @numa_node: node of its memory, or NUMA_NO_NODE
 * @caps: DEVBUF_CAP_* bits, except those that follow from @ops: DEVBUF_CAP_VIEWS
 *	from @offset, DEVBUF_CAP_ENGINE from @dma
 * @alignment: bytes; the alignment that every allocation has
 * @dma_dev: with @dma, and DEVBUF_CAP_HOST on a device with DEVBUF_CAP_LOCAL: who
 *	does DMA, its masks set
 * @max_dma_nbytes: with @dma or @operate: most bytes of one call
 * @provider: with DEVBUF_CAP_PEER: the PCI function whose p2pdma memory it is
 * @ops: the callbacks
 * @private: the driver's own; devbuf_device_private() returns it
 */
struct devbuf_device_desc {
	struct device *parent;
	const char *prefix;
	unsigned int number;
	int numa_node;
	u64 caps;
	u64 alignment;
	struct device *dma_dev;
	u64 max_dma_nbytes;
	struct pci_dev *provider;
	const struct devbuf_device_ops *ops;
	void *private;
};

struct devbuf_device *devbuf_device_register(const struct devbuf_device_desc *desc);
void devbuf_device_unregister(struct devbuf_device *device);
void *devbuf_device_private(const struct devbuf_device *device);
int devbuf_device_numa_node(const struct devbuf_device *device);

#endif /* _LINUX_DEVBUF_H */
