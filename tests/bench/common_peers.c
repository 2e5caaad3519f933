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

static void begin_map(struct subject *subject)
{
	subject->map =
		mmap(NULL, subject->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, subject->buffer, 0);
	must_libc(subject->map == MAP_FAILED ? -1 : 0);
	touch_pages(subject->map, subject->nbytes);
}

static void end_map(struct subject *subject)
{
	munmap(subject->map, subject->nbytes);
}

static void map_buffer(struct subject *subject)
{
	begin_map(subject);
	end_map(subject);
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

static void end_mapped(struct subject *subject)
{
	end_map(subject);
	end_buffer(subject);
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

static void begin_mapped_heap(struct subject *subject)
{
	begin_heap(subject);
	begin_map(subject);
}

static void begin_direct_heap(struct subject *subject)
{
	begin_mapped_heap(subject);
	try_direct_load(subject);
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
	.attach = { begin_heap, attach_and_map, end_buffer },
	.load_into_mapping = { begin_mapped_heap, load_map_cached, end_mapped },
	.load_direct = { begin_direct_heap, load_map_direct, end_mapped },
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

static void begin_two_memfds(struct subject *subject)
{
	begin_filled_memfd(subject);
	subject->source = subject->buffer;
	begin_filled_memfd(subject);
}

static void end_two_memfds(struct subject *subject)
{
	close(subject->source);
	end_buffer(subject);
}

static void transfer_memfd(struct subject *subject)
{
	off_t from = 0, to = 0;

	must_be(copy_file_range(subject->source, &from, subject->buffer, &to, subject->nbytes, 0) ==
		(ssize_t)subject->nbytes);
}

static void bounce_memfd(struct subject *subject)
{
	must_libc(pread(subject->source, subject->bytes, subject->nbytes, 0));
	write_memfd(subject);
}

static void begin_mapped_memfd(struct subject *subject)
{
	begin_filled_memfd(subject);
	begin_map(subject);
}

static void begin_direct_memfd(struct subject *subject)
{
	begin_mapped_memfd(subject);
	try_direct_load(subject);
}

static void load_direct_write(struct subject *subject)
{
	load_direct(subject->bytes, subject->nbytes);
	write_memfd(subject);
}

static void load_write(struct subject *subject)
{
	load_cached(subject->bytes, subject->nbytes);
	write_memfd(subject);
}

const struct memfd_operations on_memfd = {
	.create = { .run = allocate_memfd },
	.map = { begin_filled_memfd, map_buffer, end_buffer },
	.write = { begin_filled_memfd, write_memfd, end_buffer },
	.read = { begin_filled_memfd, read_memfd, end_buffer },
	.transfer = { begin_two_memfds, transfer_memfd, end_two_memfds },
	.bounce = { begin_two_memfds, bounce_memfd, end_two_memfds },
	.load_into_mapping = { begin_mapped_memfd, load_map_cached, end_mapped },
	.load_direct = { begin_direct_memfd, load_map_direct, end_mapped },
	.load_direct_write = { begin_filled_memfd, load_direct_write, end_buffer },
	.load_write = { begin_filled_memfd, load_write, end_buffer },
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

static void begin_mapped_udmabuf(struct subject *subject)
{
	begin_udmabuf(subject);
	begin_map(subject);
}

static void begin_direct_udmabuf(struct subject *subject)
{
	begin_mapped_udmabuf(subject);
	try_direct_load(subject);
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
	.attach = { begin_udmabuf, attach_and_map, end_buffer },
	.load_into_mapping = { begin_mapped_udmabuf, load_map_cached, end_mapped },
	.load_direct = { begin_direct_udmabuf, load_map_direct, end_mapped },
};
