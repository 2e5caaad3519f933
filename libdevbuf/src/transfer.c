// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Bytes between a buffer and the caller: memory and files. */
#include <stdlib.h>
#include <unistd.h>

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

/* --- files ------------------------------------------------------------------------------------ */

/* Until @nbytes were read or the file ends; how many it were. */
static int64_t read_all(int fd, void *to, size_t nbytes, int64_t file_offset)
{
	size_t done = 0;

	while (done < nbytes) {
		ssize_t n = pread(fd, (char *)to + done, nbytes - done,
				  (off_t)(file_offset + (int64_t)done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return dbuf_fail(-errno,
					 "cannot read %zu bytes at %" PRId64 " of the file: %s",
					 nbytes - done, file_offset + (int64_t)done,
					 dbuf_reason(-errno));
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (int64_t)done;
}

/* A piece at a time, each read and then copied in. */
static int64_t read_through(struct devbuf *b, size_t offset, int fd, int64_t file_offset,
			    size_t nbytes)
{
	size_t chunk, done = 0;
	char *bounce = dbuf_bounce_new(nbytes, &chunk);
	int64_t n = -ENOMEM;
	int rc;

	while (bounce && done < nbytes) {
		size_t want = nbytes - done < chunk ? nbytes - done : chunk;

		n = read_all(fd, bounce, want, file_offset + (int64_t)done);
		if (n <= 0)
			break;
		rc = dbuf_backend(b)->copyin(b, offset + done, bounce, (size_t)n);
		if (rc) {
			n = rc;
			break;
		}
		done += (size_t)n;
		if ((size_t)n < want)
			break;
	}
	free(bounce);
	return n < 0 ? n : (int64_t)done;
}

static int64_t read_file(struct devbuf *b, size_t offset, int fd, int64_t file_offset,
			 size_t nbytes)
{
	const struct backend *backend = dbuf_backend(b);
	int64_t n = dbuf_allocated(b);

	if (n)
		return n;
	if (backend->reachable && backend->reachable(b))
		return read_all(fd, (char *)backend->peek(b) + offset, nbytes, file_offset);
	n = backend->read_file ? backend->read_file(b, offset, fd, file_offset, nbytes) :
				 -EOPNOTSUPP;
	return n == -EOPNOTSUPP ? read_through(b, offset, fd, file_offset, nbytes) : n;
}

int devbuf_read_file(struct devbuf *b, size_t offset, int fd, int64_t file_offset, size_t nbytes)
{
	int64_t end, n;
	int rc;

	rc = dbuf_usable(b);
	if (!rc)
		rc = dbuf_range(b, offset, nbytes);
	if (rc)
		return rc;
	if (file_offset < 0)
		return dbuf_fail(-EINVAL, "file offset %" PRId64 " is negative", file_offset);
	if (__builtin_add_overflow(file_offset, nbytes, &end))
		return dbuf_fail(-EOVERFLOW, "%zu bytes at %" PRId64 " of the file wrap around",
				 nbytes, file_offset);
	dbuf_lock_data(b);
	n = read_file(b, offset, fd, file_offset, nbytes);
	dbuf_unlock_data(b);
	if (n < 0)
		return (int)n;
	if ((uint64_t)n < nbytes)
		return dbuf_fail(-EINVAL,
				 "the file ends after %" PRId64 " of the %zu bytes at %" PRId64, n,
				 nbytes, file_offset);
	return 0;
}
