/* SPDX-License-Identifier: GPL-2.0-only */
/* An io_uring with one registered buffer. */
#ifndef DEVBUF_TESTS_UAPI_COMMON_RING_H
#define DEVBUF_TESTS_UAPI_COMMON_RING_H

#include "common.h"

#include <liburing.h>

/* NULL, or why this kernel cannot do that. */
const char *new_ring(struct io_uring *ring, void *memory, size_t nbytes);
/* From a file's beginning into registered memory, and back; the result, as of read() and write(). */
int ring_read(struct io_uring *ring, int fd, void *memory, unsigned int nbytes);
int ring_write(struct io_uring *ring, int fd, void *memory, unsigned int nbytes);

#endif
