// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Bytes between a buffer and the caller's memory. */
#include <stdlib.h>

#include "internal.h"

/* Where the library keeps the buffers it also keeps them from changing under a copy. */
void dbuf_lock_data(struct devbuf *b)
{
	if (dbuf_backend(b)->data_lock)
		dbuf_lock(b);
}

void dbuf_unlock_data(struct devbuf *b)
{
	if (dbuf_backend(b)->data_lock)
		dbuf_unlock(b);
}

/* --- memory ----------------------------------------------------------------------------------- */

static int check_whole(const struct devbuf *b, const void *memory, size_t nbytes)
{
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (!memory)
		return dbuf_fail(-EINVAL, "no memory to copy from or to");
	if (nbytes != b->nbytes)
		return dbuf_fail(-EINVAL, "%zu bytes given for a buffer of %zu", nbytes, b->nbytes);
	return 0;
}

int dbuf_check_part(const struct devbuf *b, size_t offset, const void *memory, size_t nbytes)
{
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (!memory)
		return dbuf_fail(-EINVAL, "no memory to copy from or to");
	return dbuf_range(b, offset, nbytes);
}

static int copyin(struct devbuf *b, size_t offset, const void *src, size_t nbytes)
{
	int rc;

	dbuf_lock_data(b);
	rc = dbuf_backend(b)->copyin(b, offset, src, nbytes);
	dbuf_unlock_data(b);
	return rc;
}

static int copyout(struct devbuf *b, size_t offset, void *dst, size_t nbytes)
{
	int rc;

	dbuf_lock_data(b);
	rc = dbuf_backend(b)->copyout(b, offset, dst, nbytes);
	dbuf_unlock_data(b);
	return rc;
}

int devbuf_copyin(struct devbuf *b, const void *src, size_t nbytes)
{
	int rc = check_whole(b, src, nbytes);

	return rc ? rc : copyin(b, 0, src, nbytes);
}

int devbuf_copyout(struct devbuf *b, void *dst, size_t nbytes)
{
	int rc = check_whole(b, dst, nbytes);

	return rc ? rc : copyout(b, 0, dst, nbytes);
}

int devbuf_copyin_at(struct devbuf *b, size_t offset, const void *src, size_t nbytes)
{
	int rc = dbuf_check_part(b, offset, src, nbytes);

	return rc ? rc : copyin(b, offset, src, nbytes);
}

int devbuf_copyout_at(struct devbuf *b, size_t offset, void *dst, size_t nbytes)
{
	int rc = dbuf_check_part(b, offset, dst, nbytes);

	return rc ? rc : copyout(b, offset, dst, nbytes);
}

int devbuf_as_bytes(struct devbuf *b, void **out, size_t *nbytes)
{
	void *bytes;
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the bytes");
	bytes = malloc(b->nbytes);
	if (!bytes)
		return dbuf_fail(-ENOMEM, "no memory for a copy of %zu bytes", b->nbytes);
	rc = copyout(b, 0, bytes, b->nbytes);
	if (rc) {
		free(bytes);
		return rc;
	}
	*out = bytes;
	if (nbytes)
		*nbytes = b->nbytes;
	return 0;
}

void *dbuf_bounce_new(size_t nbytes, size_t *chunk)
{
	void *bounce;

	*chunk = nbytes < DBUF_BOUNCE_NBYTES ? nbytes : DBUF_BOUNCE_NBYTES;
	bounce = malloc(*chunk);
	if (!bounce)
		dbuf_fail(-ENOMEM, "no memory for a bounce buffer of %zu bytes", *chunk);
	return bounce;
}
