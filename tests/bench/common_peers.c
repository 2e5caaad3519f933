// SPDX-License-Identifier: GPL-2.0-only
/* The same operations on what the kernel has besides: dma-heap, udmabuf, memfd. */
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "common.h"

void touch_pages(void *map, size_t nbytes)
{
	volatile unsigned char *bytes = map;

	for (size_t i = 0; i < nbytes; i += PAGE)
		bytes[i] = 1;
}

/* --- of every file ---------------------------------------------------------------------------- */

static void unknown_command(struct subject *subject)
{
	do_command(subject->device, _IO(DEVBUF_IOC_TYPE, 0xff), NULL);
}

static void map_buffer(struct subject *subject)
{
	void *map =
		mmap(NULL, subject->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, subject->buffer, 0);

	must_libc(map == MAP_FAILED ? -1 : 0);
	touch_pages(map, subject->nbytes);
	munmap(map, subject->nbytes);
}

static void sync_buffer(struct subject *subject)
{
	struct dma_buf_sync sync = { DMA_BUF_SYNC_RW | DMA_BUF_SYNC_START };

	must(do_command(subject->buffer, DMA_BUF_IOCTL_SYNC, &sync));
	sync.flags = DMA_BUF_SYNC_RW | DMA_BUF_SYNC_END;
	must(do_command(subject->buffer, DMA_BUF_IOCTL_SYNC, &sync));
}

static void end_buffer(struct subject *subject)
{
	close(subject->buffer);
}

/* --- dma-heap --------------------------------------------------------------------------------- */

void open_heap(struct subject *subject)
{
	subject->device = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
}

static void begin_heap(struct subject *subject)
{
	struct dma_heap_allocation_data allocation = {
		.len = subject->nbytes,
		.fd_flags = O_RDWR | O_CLOEXEC,
	};

	must(do_command(subject->device, DMA_HEAP_IOCTL_ALLOC, &allocation));
	subject->buffer = allocation.fd;
}

static void allocate_heap(struct subject *subject)
{
	begin_heap(subject);
	end_buffer(subject);
}

const struct dmabuf_operations on_heap = {
	.unknown_command = { .run = unknown_command },
	.create = { .run = allocate_heap },
	.map = { begin_heap, map_buffer, end_buffer },
	.sync = { begin_heap, sync_buffer, end_buffer },
};

/* --- memfd ------------------------------------------------------------------------------------ */

void open_memfd(struct subject *subject)
{
	subject->device = memfd_create("bench", MFD_CLOEXEC);
}

static void begin_memfd(struct subject *subject)
{
	subject->buffer = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	must_libc(subject->buffer);
	must_libc(ftruncate(subject->buffer, subject->nbytes));
}

static void begin_filled_memfd(struct subject *subject)
{
	begin_memfd(subject);
	must_libc(fallocate(subject->buffer, 0, 0, subject->nbytes));
}

static void allocate_memfd(struct subject *subject)
{
	begin_filled_memfd(subject);
	end_buffer(subject);
}

static void write_memfd(struct subject *subject)
{
	must_libc(pwrite(subject->buffer, subject->bytes, subject->nbytes, 0));
}

static void read_memfd(struct subject *subject)
{
	must_libc(pread(subject->buffer, subject->bytes, subject->nbytes, 0));
}

const struct memfd_operations on_memfd = {
	.create = { .run = allocate_memfd },
	.map = { begin_filled_memfd, map_buffer, end_buffer },
	.write = { begin_filled_memfd, write_memfd, end_buffer },
	.read = { begin_filled_memfd, read_memfd, end_buffer },
};

/* --- udmabuf ---------------------------------------------------------------------------------- */

void open_udmabuf(struct subject *subject)
{
	subject->device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
}

static void begin_udmabuf(struct subject *subject)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = subject->nbytes };
	int memfd;

	begin_memfd(subject);
	memfd = subject->buffer;
	must_libc(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	create.memfd = memfd;
	subject->buffer = ioctl(subject->device, UDMABUF_CREATE, &create);
	must_libc(subject->buffer);
	close(memfd);
}

static void create_udmabuf(struct subject *subject)
{
	begin_udmabuf(subject);
	end_buffer(subject);
}

const struct dmabuf_operations on_udmabuf = {
	.unknown_command = { .run = unknown_command },
	.create = { .run = create_udmabuf },
	.map = { begin_udmabuf, map_buffer, end_buffer },
	.sync = { begin_udmabuf, sync_buffer, end_buffer },
};
