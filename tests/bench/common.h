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
/* After booting the kernel has work of its own: it tests its ciphers, say. */
void await_idle_kernel(void);
/* What one @run costs: the median of several batches, after it has become quiet. */
double measure(void (*run)(struct subject *subject), struct subject *subject);

/* --- common_devbuf.c, common_peers.c ---------------------------------------------------------- */

extern const struct operation devbuf_system_call, devbuf_unknown_command, devbuf_info, devbuf_query,
	devbuf_view, devbuf_allocated_view, devbuf_cold, devbuf_warm, devbuf_map, devbuf_export,
	devbuf_sync, devbuf_copyin, devbuf_copyout;
extern const struct operation heap_unknown_command, heap_allocate, heap_map, heap_sync;
extern const struct operation udmabuf_unknown_command, udmabuf_create, udmabuf_map, udmabuf_sync;
extern const struct operation memfd_allocate, memfd_map, memfd_write, memfd_read;

void open_devbuf(struct subject *subject);
void open_heap(struct subject *subject);
void open_udmabuf(struct subject *subject);
void open_memfd(struct subject *subject);

/* Write to every page of @map. */
void touch(void *map, size_t nbytes);

#endif
