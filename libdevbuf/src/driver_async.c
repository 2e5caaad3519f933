// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Copies that the driver queues, and what waits for them and cancels them. */
#include "driver.h"

static __u32 flags_of(const struct devbuf_async *how)
{
	return how->flags & DEVBUF_UNORDERED ? DEVBUF_ASYNC_EXPLICIT : 0;
}

void dbuf_fill_copy_order(struct devbuf_copy *copy, const struct devbuf_async *how)
{
	copy->flags |= flags_of(how);
	copy->in_fences = how->nr_in_fences ? (uintptr_t)how->in_fences : 0;
	copy->nr_in_fences = how->nr_in_fences;
	copy->cookie = how->cookie;
}

void dbuf_fill_transfer_order(struct devbuf_transfer *transfer, const struct devbuf_async *how)
{
	transfer->flags |= flags_of(how);
	transfer->in_fences = how->nr_in_fences ? (uintptr_t)how->in_fences : 0;
	transfer->nr_in_fences = how->nr_in_fences;
	transfer->cookie = how->cookie;
}

static __u32 async_flags(const struct devbuf_async *how)
{
	return DEVBUF_ASYNC | (how->out_fence ? DEVBUF_ASYNC_OUT_FENCE : 0);
}

static int copy_async(struct devbuf *b, unsigned long command, size_t offset, const void *memory,
		      size_t nbytes, const struct devbuf_async *how)
{
	struct devbuf_copy_range range;
	struct devbuf_copy copy;
	int rc;

	dbuf_fill_copy(&copy, &range, b, offset, memory, nbytes);
	dbuf_fill_copy_order(&copy, how);
	copy.flags |= async_flags(how);
	rc = dbuf_command(dbuf_connection(b), command, &copy);
	if (!rc && how->out_fence)
		*how->out_fence = copy.out_fence;
	return rc;
}

int dbuf_driver_copyin_async(struct devbuf *b, size_t offset, const void *src, size_t nbytes,
			     const struct devbuf_async *how)
{
	int rc = copy_async(b, DEVBUF_COPYIN, offset, src, nbytes, how);

	return rc ? dbuf_driver_failed(rc, "queue a copy into", b) : 0;
}

int dbuf_driver_copyout_async(struct devbuf *b, size_t offset, void *dst, size_t nbytes,
			      const struct devbuf_async *how)
{
	int rc = copy_async(b, DEVBUF_COPYOUT, offset, dst, nbytes, how);

	return rc ? dbuf_driver_failed(rc, "queue a copy out of", b) : 0;
}

int dbuf_driver_transfer_async(const struct devbuf_transfer_piece *p, unsigned int flags,
			       const struct devbuf_async *how)
{
	struct devbuf_transfer_range range;
	struct devbuf_transfer transfer;
	int rc;

	dbuf_fill_range(&range, p);
	dbuf_fill_transfer(&transfer, &range, 1, flags);
	dbuf_fill_transfer_order(&transfer, how);
	transfer.flags |= async_flags(how);
	rc = dbuf_command(dbuf_connection(p->dst), DEVBUF_TRANSFER, &transfer);
	if (rc)
		return dbuf_driver_failed(rc, "queue a transfer to", p->dst);
	if (how->out_fence)
		*how->out_fence = transfer.out_fence;
	return 0;
}

int dbuf_driver_wait(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags,
		     uint64_t deadline_ns, int *fence_error)
{
	struct devbuf_wait wait = {
		.size = sizeof(wait),
		.flags = flags,
		.id = b->id,
		.offset = offset,
		.nbytes = nbytes,
		.deadline_ns = deadline_ns,
	};
	int rc = dbuf_command(dbuf_connection(b), DEVBUF_WAIT, &wait);

	if (rc)
		return dbuf_driver_failed(rc, "wait for", b);
	*fence_error = wait.out_error;
	return 0;
}

int dbuf_driver_cancel(struct devbuf_allocator *a, uint64_t cookie, size_t *count)
{
	struct devbuf_cancel cancel = { .size = sizeof(cancel), .cookie = cookie };
	int rc = dbuf_command(dbuf_driver(a)->connection, DEVBUF_CANCEL, &cancel);

	if (!rc)
		*count = cancel.out_count;
	return rc;
}
