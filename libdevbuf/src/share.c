// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Buffers from and to elsewhere: by id, and as dma-bufs. */
#include "internal.h"

int devbuf_open_id(struct devbuf_allocator *a, uint64_t id, struct devbuf **out)
{
	struct devbuf *b;
	int rc;

	rc = dbuf_allocator_usable(a);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the buffer");
	b = dbuf_registry_get(a->registry, id);
	if (!b)
		return dbuf_fail(-ENOENT, "this allocator holds no buffer with id %" PRIu64, id);
	*out = b;
	return 0;
}

int devbuf_import(struct devbuf_allocator *a, int fd, struct devbuf **out)
{
	int rc;

	rc = dbuf_allocator_usable(a);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the buffer");
	if (!a->backend->import)
		return dbuf_fail(-EOPNOTSUPP, "only the driver imports dma-bufs");
	return a->backend->import(a, fd, out);
}

int devbuf_export(struct devbuf *b, int flags, int *fd, size_t *offset)
{
	struct made made;
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (!fd)
		return dbuf_fail(-EINVAL, "no place for the file descriptor");
	if (flags & ~DEVBUF_FD_WRITE)
		return dbuf_fail(-EINVAL, "flags %#x are not made of DEVBUF_FD_WRITE",
				 (unsigned int)flags);
	if (!dbuf_backend(b)->export)
		return dbuf_fail(-EOPNOTSUPP, "only the driver's buffers can be exported");
	rc = dbuf_ensure(b, &made);
	if (rc)
		return rc;
	rc = dbuf_backend(b)->export(b, flags, fd, offset);
	if (rc)
		dbuf_undo(b, made);
	return rc;
}
