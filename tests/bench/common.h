/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the bench share.
 *
 *	bench.c			the table: which operations, by whom, and how it is printed
 *	common_measure.c	what one call of a function costs
 *	common_devbuf.c		the operations on devbuf
 *	common_batch.c		many small ones of them at a time
 *	common_peers.c		the same on dma-heap, udmabuf and memfd
 *	common_attach.c		a device at the other end of a dma-buf
 *	common_load.c		from a disk into a buffer
 *	common_live.c		a second table: what changes when there are many objects
 */
#ifndef DEVBUF_TESTS_BENCH_COMMON_H
#define DEVBUF_TESTS_BENCH_COMMON_H

#include "../uapi/common.h"

/**
 * struct subject - what an operation works on
 * @nbytes: how many bytes the operation is about
 * @device: the open device: a context, a heap, /dev/udmabuf; for memfd, which needs none, any file
 * @buffer: a dma-buf or a memfd
 * @source: a second one
 * @id: a buffer of the context @device
 * @source_id: a second one
 * @map: a mapping of the buffer
 * @bytes: @nbytes of ordinary memory
 * @refused: the errno that @begin of the operation got, or zero: it cannot be measured
 */
struct subject {
	size_t nbytes;
	int device;
	int buffer;
	int source;
	__u64 id;
	__u64 source_id;
	void *map;
	unsigned char *bytes;
	int refused;
};

/**
 * struct operation - something to measure
 * @begin: makes what @run needs; may be NULL
 * @run: what is measured; leaves everything as it was
 * @end: undoes @begin, also when that was refused; may be NULL
 */
struct operation {
	void (*begin)(struct subject *subject);
	void (*run)(struct subject *subject);
	void (*end)(struct subject *subject);
};

/* --- common_measure.c ------------------------------------------------------------------------- */

/* Does the clock count instructions (QEMU's -icount shift=0)? */
bool clock_counts_instructions(void);
/* Is the processor QEMU's translator, whose times say nothing of a real one's? */
bool processor_is_emulated(void);
/* After booting the kernel has work of its own: it tests its ciphers, say. */
void await_idle_kernel(void);
/* What one @run costs: of several batches, after it has become quiet. */
double measure(void (*run)(struct subject *subject), struct subject *subject);

/* --- common_devbuf.c, common_peers.c ---------------------------------------------------------- */

/* What each can do, and an operation for it. */
extern const struct devbuf_operations {
	struct operation system_call, unknown_command, info, query;
	struct operation create_cold, create_warm, create_exported;
	struct operation create_view, create_allocated_view;
	struct operation export_again, attach, map, sync;
	struct operation copyin, copyout, transfer, queue_transfer, bounce;
	struct operation load_into_mapping, load_direct, load_direct_copyin, load_copyin;
} on_devbuf;

extern const struct dmabuf_operations {
	struct operation unknown_command, create, attach, map, sync;
	struct operation load_into_mapping, load_direct;
} on_heap, on_udmabuf;

extern const struct memfd_operations {
	struct operation create, map, write, read, transfer, bounce;
	struct operation load_into_mapping, load_direct, load_direct_write, load_write;
} on_memfd;

void open_devbuf(struct subject *subject);
/* Does it have asynchronous copies and commands by io_uring? */
bool can_queue(const struct subject *subject);
void open_heap(struct subject *subject);
void open_udmabuf(struct subject *subject);
void open_memfd(struct subject *subject);

/* Until what is queued on the buffer is over, so that it might be written. */
void wait_for_writes(int ctx, __u64 id, __u64 nbytes);

/* Write to every page. */
void touch_pages(void *map, size_t nbytes);

/* --- common_batch.c --------------------------------------------------------------------------- */

/* So many operations are one @run. */
#define BATCH 64

/* Transfers of @nbytes between two buffers, and between as many views as there are ends. */
extern const struct batch_operations {
	struct operation ioctls, ioctls_views, ranges, ranges_views;
	struct operation queued, ring_nothing, ring, ring_ranges;
} batch_on_devbuf;

/* --- common_attach.c -------------------------------------------------------------------------- */

/* The device, and how it maps: for people. NULL when this kernel has none. */
const char *open_importer(void);
/* Attaches to @subject->buffer and maps it for DMA, unmaps it and detaches. */
void attach_and_map(struct subject *subject);

/* --- common_load.c ---------------------------------------------------------------------------- */

/* The disk, for people. NULL when there is none that may be read. */
const char *open_disk(void);
/* Sets @subject->refused when direct I/O into @subject->map is. */
void try_direct_load(struct subject *subject);
/* The first @nbytes of the disk: straight from the device, and by way of the page cache. */
void load_direct(void *memory, size_t nbytes);
void load_cached(void *memory, size_t nbytes);
/* The same into @subject->map. */
void load_map_direct(struct subject *subject);
void load_map_cached(struct subject *subject);

/* --- common_live.c ---------------------------------------------------------------------------- */

void print_live_objects(void);

#endif
