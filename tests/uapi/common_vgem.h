/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vgem, a GPU without hardware, at the other end of a dma-buf: it attaches and maps what it imports,
 * exports buffers of its own, and has fences that userspace signals. A handle is its name for a
 * buffer.
 */
#ifndef DEVBUF_TESTS_UAPI_COMMON_VGEM_H
#define DEVBUF_TESTS_UAPI_COMMON_VGEM_H

#include "common.h"

/* Fences of work that writes, and not of work that only reads. */
#define VGEM_FENCE_WRITE 1

/* -1 when the module is not loaded. */
int open_vgem(void);
int vgem_import(int card, int dma_buf, __u32 *handle);
/* A writable export of a buffer, imported. */
__u32 vgem_import_export(int card, int ctx, __u64 id);
/* A dma-buf of the handle's buffer. */
int vgem_export(int card, __u32 handle);
/* A buffer of a page of its own. */
__u32 vgem_create(int card);
void vgem_close(int card, __u32 handle);
/* Work on the buffer begins, and ends. It may not begin (-EBUSY) while it would have to wait. */
int do_vgem_attach_fence(int card, __u32 handle, __u32 flags);
__u32 vgem_attach_fence(int card, __u32 handle, __u32 flags);
void vgem_signal_fence(int card, __u32 fence);

#endif
