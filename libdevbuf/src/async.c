// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Copies that are over later, where the allocator has them, and are done at once elsewhere. */
#include "internal.h"

/* NULL stands for all that is usual. */
int dbuf_async_read(struct devbuf_async *to, const struct devbuf_async *from)
{
	static const struct devbuf_async usual = DEVBUF_ASYNC_INIT;
	int rc;

	rc = dbuf_struct_read(to, sizeof(*to), sizeof(*to), from ? from : &usual, "the order");
	if (rc)
		return rc;
	if (to->flags & ~DEVBUF_UNORDERED)
		return dbuf_fail(-EINVAL, "flags %#x are not DEVBUF_UNORDERED", to->flags);
	if (to->nr_in_fences > DEVBUF_FENCES_MAX)
		return dbuf_fail(-EINVAL, "%u fences to wait for: %u can be", to->nr_in_fences,
				 DEVBUF_FENCES_MAX);
	if (to->nr_in_fences && !to->in_fences)
		return dbuf_fail(-EINVAL, "no array of %u fences", to->nr_in_fences);
	if (to->cookie & DBUF_OWN_COOKIE)
		return dbuf_fail(-EINVAL, "cookie %#" PRIx64 " has the top bit", to->cookie);
	return 0;
}

/* Done at once, a copy can neither wait for a fence nor have one. */
static int no_fences(const struct devbuf_async *how, const struct devbuf *b)
{
	if (how->nr_in_fences || how->out_fence)
		return dbuf_fail(-EOPNOTSUPP, "no fences without the driver: %s", b->device);
	return 0;
}

int devbuf_copyin_async(struct devbuf *b, size_t offset, const void *src, size_t nbytes,
			const struct devbuf_async *how)
{
	struct devbuf_async order;
	int rc;

	rc = dbuf_check_part(b, offset, src, nbytes);
	if (!rc)
		rc = dbuf_async_read(&order, how);
	if (rc)
		return rc;
	if (dbuf_backend(b)->copyin_async)
		return dbuf_backend(b)->copyin_async(b, offset, src, nbytes, &order);
	rc = no_fences(&order, b);
	return rc ? rc : devbuf_copyin_at(b, offset, src, nbytes);
}

int devbuf_copyout_async(struct devbuf *b, size_t offset, void *dst, size_t nbytes,
			 const struct devbuf_async *how)
{
	struct devbuf_async order;
	int rc;

	rc = dbuf_check_part(b, offset, dst, nbytes);
	if (!rc)
		rc = dbuf_async_read(&order, how);
	if (rc)
		return rc;
	if (dbuf_backend(b)->copyout_async)
		return dbuf_backend(b)->copyout_async(b, offset, dst, nbytes, &order);
	rc = no_fences(&order, b);
	return rc ? rc : devbuf_copyout_at(b, offset, dst, nbytes);
}

static int transfer_queued(const struct devbuf_transfer_piece *p, unsigned int flags,
			   const struct devbuf_async *how)
{
	struct made_piece made;
	int rc;

	rc = dbuf_ensure_piece(p, &made);
	if (rc)
		return rc;
	rc = dbuf_backend(p->dst)->transfer_async(p, flags, how);
	if (rc)
		dbuf_undo_piece(p, made);
	return rc;
}

int devbuf_transfer_async(struct devbuf *dst, size_t dst_offset, struct devbuf *src,
			  size_t src_offset, size_t nbytes, unsigned int flags,
			  const struct devbuf_async *how)
{
	const struct devbuf_transfer_piece p = { dst, dst_offset, src, src_offset, nbytes };
	struct devbuf_async order;
	int rc;

	rc = dbuf_check_piece(&p, flags);
	if (!rc)
		rc = dbuf_async_read(&order, how);
	if (rc)
		return rc;
	if (dbuf_backend(dst)->transfer_async && dbuf_alike(dst, src))
		return transfer_queued(&p, flags, &order);
	rc = no_fences(&order, dst);
	return rc ? rc : devbuf_copy_many(&p, 1, flags, NULL);
}

int devbuf_wait(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags,
		uint64_t deadline_ns, int *fence_error)
{
	int error = 0, rc;

	rc = dbuf_usable(b);
	if (!rc)
		rc = dbuf_range(b, offset, nbytes);
	if (rc)
		return rc;
	if (!flags || flags & ~(DEVBUF_CPU_READ | DEVBUF_CPU_WRITE))
		return dbuf_fail(-EINVAL, "flags %#x are not DEVBUF_CPU_READ and _WRITE", flags);
	if (dbuf_backend(b)->wait) {
		rc = dbuf_backend(b)->wait(b, offset, nbytes, flags, deadline_ns, &error);
	} else { /* nothing is left to wait for */
		dbuf_lock(b);
		rc = dbuf_allocated(b);
		dbuf_unlock(b);
	}
	if (!rc && fence_error)
		*fence_error = error;
	return rc;
}

int devbuf_cancel(struct devbuf_allocator *a, uint64_t cookie, size_t *count)
{
	size_t n = 0;
	int rc;

	rc = dbuf_allocator_usable(a);
	if (rc)
		return rc;
	if (!cookie || cookie & DBUF_OWN_COOKIE)
		return dbuf_fail(-EINVAL, "no copy has cookie %#" PRIx64, cookie);
	rc = a->backend->cancel ? a->backend->cancel(a, cookie, &n) : -ENOENT;
	if (rc == -ENOENT)
		return dbuf_fail(rc, "no copy with cookie %" PRIu64 " to cancel", cookie);
	if (rc)
		return dbuf_fail(rc, "cannot cancel copies: %s", dbuf_reason(rc));
	if (count)
		*count = n;
	return 0;
}
