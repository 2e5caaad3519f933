/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the bench share.
 *
 *	bench.c			the table: which operations, by whom, and how it is printed
 *	common_measure.c	what one call of a function costs
 *	common_devbuf.c		the operations on devbuf
 *	common_peers.c		the same on dma-heap, udmabuf and memfd
 */
#ifndef DEVBUF_TESTS_BENCH_COMMON_H
#define DEVBUF_TESTS_BENCH_COMMON_H

#include "../uapi/common.h"

/**
 * struct subject - what an operation works on
 * @nbytes: how many bytes the operation is about
 * @device: the open device: a context, a heap, /dev/udmabuf; -1 for a memfd, which needs none
 * @buffer: a dma-buf or a memfd
 * @id: a buffer of the context @device
 * @bytes: @nbytes of ordinary memory
 */
struct subject {
	size_t nbytes;
	int device;
	int buffer;
	__u64 id;
	unsigned char *bytes;
};

/**
 * struct operation - something to measure
 * @begin: makes what @run needs; may be NULL
 * @run: what is measured; leaves everything as it was
 * @end: undoes @begin; may be NULL
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
	struct operation export_again, map, sync, copyin, copyout;
} on_devbuf;

extern const struct dmabuf_operations {
	struct operation unknown_command, create, map, sync;
} on_heap, on_udmabuf;

extern const struct memfd_operations {
	struct operation create, map, write, read;
} on_memfd;

void open_devbuf(struct subject *subject);
void open_heap(struct subject *subject);
void open_udmabuf(struct subject *subject);
void open_memfd(struct subject *subject);

/* Write to every page. */
void touch_pages(void *map, size_t nbytes);

#endif
