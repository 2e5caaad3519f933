// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Bytes between a buffer and a file.
 *
 * The ways, best first: the allocator's copy_from_disk hook; between the file
 * and a mapping of the buffer, directly where that can be (file_direct.c) and
 * through the page cache where not; through a piece of host memory. What one
 * way leaves, the next goes on with.
 *
 * The mapping is one of its own, which the buffer's other users do not see. No
 * lock is held while bytes move, so that the progress callback may use the
 * buffer.
 */
#define _GNU_SOURCE /* O_DIRECT, O_PATH */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

/* What the copy_from_disk hook reads between two calls of progress. */
#define HOOK_PIECE   ((size_t)64 << 20)

/* Less is copied more quickly than it is mapped. */
#define MAP_AT_LEAST ((size_t)64 << 10)

/* --- what all ways need ----------------------------------------------------------------------- */

static ssize_t once(const struct file_run *r, int fd, void *bytes, size_t nbytes, off_t at)
{
	ssize_t n;

	do
		n = r->write ? pwrite(fd, bytes, nbytes, at) : pread(fd, bytes, nbytes, at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == 0 && r->write ? -EIO : n;
}

int dbuf_file_part(const struct file_run *r, int fd, void *bytes, size_t nbytes, size_t at,
		   size_t *done)
{
	ssize_t n = 1;

	for (*done = 0; *done < nbytes && n > 0; *done += n > 0 ? (size_t)n : 0)
		n = once(r, fd, (char *)bytes + *done, nbytes - *done,
			 (off_t)(r->file_offset + (int64_t)(at + *done)));
	return n < 0 ? (int)n : 0;
}

int dbuf_file_advance(struct file_run *r, size_t nbytes, bool direct)
{
	if (!nbytes)
		return DBUF_FILE_GO;
	r->done += nbytes;
	r->direct += direct ? nbytes : 0;
	if (r->progress && r->progress(r->user, r->done, r->nbytes))
		return dbuf_fail(-ECANCELED, "stopped by the caller after %zu of %zu bytes",
				 r->done, r->nbytes);
	return DBUF_FILE_GO;
}

int dbuf_file_failed(const struct file_run *r, int rc)
{
	rc = dbuf_file_error(rc);
	return dbuf_fail(rc, "cannot %s %zu bytes at %" PRId64 " of the file: %s",
			 r->write ? "write" : "read", r->nbytes - r->done,
			 r->file_offset + (int64_t)r->done, dbuf_reason(rc));
}

int dbuf_file_plain(struct file_run *r, size_t end)
{
	while (r->done < end) {
		size_t want = end - r->done < DBUF_FILE_PIECE ? end - r->done : DBUF_FILE_PIECE;
		size_t n;
		int rc = dbuf_file_part(r, r->fd, r->bytes + r->done, want, r->done, &n);
		int stop = dbuf_file_advance(r, n, false);

		if (rc)
			return dbuf_file_failed(r, rc);
		if (n < want)
			return DBUF_FILE_ENDED;
		if (stop)
			return stop;
	}
	return DBUF_FILE_GO;
}

/* --- by the allocator's hook ------------------------------------------------------------------ */

static int hook_piece(struct devbuf *b, size_t offset, struct file_run *r, size_t want, size_t *n)
{
	int64_t got;

	dbuf_lock_data(b);
	got = dbuf_allocated(b);
	if (!got)
		got = dbuf_backend(b)->read_file(b, offset + r->done, r->fd,
						 r->file_offset + (int64_t)r->done, want);
	dbuf_unlock_data(b);
	*n = got < 0 ? 0 : (size_t)got;
	return got < 0 ? (int)got : 0;
}

/* DBUF_FILE_UNFIT: the hook leaves the rest to us. */
static int by_hook(struct devbuf *b, size_t offset, struct file_run *r)
{
	while (r->done < r->nbytes) {
		size_t left = r->nbytes - r->done, n;
		size_t want = left < HOOK_PIECE ? left : HOOK_PIECE;
		int rc = hook_piece(b, offset, r, want, &n);
		int stop = dbuf_file_advance(r, n, false);

		if (rc)
			return rc == -EOPNOTSUPP ? DBUF_FILE_UNFIT : rc;
		if (n < want)
			return DBUF_FILE_ENDED;
		if (stop)
			return stop;
	}
	return DBUF_FILE_GO;
}

/* --- by a mapping ----------------------------------------------------------------------------- */

static int sync_range(struct devbuf *b, size_t offset, const struct file_run *r, unsigned int flags)
{
	int rc;

	dbuf_lock_data(b);
	rc = dbuf_backend(b)->sync(b, offset, r->nbytes,
				   (r->write ? DEVBUF_CPU_READ : DEVBUF_CPU_WRITE) | flags);
	dbuf_unlock_data(b);
	return rc;
}

static int run_mapped(struct file_run *r)
{
	int rc;

	dbuf_direct_range(r);
	rc = dbuf_file_plain(r, r->direct_begin);
	if (rc == DBUF_FILE_GO)
		rc = dbuf_direct_run(r);
	if (rc == DBUF_FILE_GO || rc == DBUF_FILE_UNFIT)
		rc = dbuf_file_plain(r, r->nbytes);
	return rc;
}

/* DBUF_FILE_UNFIT: the buffer cannot be mapped, or not for that. */
static int by_mapping(struct devbuf *b, size_t offset, struct file_run *r)
{
	struct mapping m = { 0 };
	int rc, end;

	dbuf_lock(b);
	rc = dbuf_allocated(b);
	if (!rc && ((r->nbytes < MAP_AT_LEAST && r->direct_fd < 0) ||
		    dbuf_backend(b)->map(b, r->write ? PROT_READ : PROT_WRITE, &m)))
		rc = DBUF_FILE_UNFIT;
	dbuf_unlock(b);
	if (rc)
		return rc;
	rc = sync_range(b, offset, r, 0);
	if (!rc) {
		r->bytes = (char *)m.addr + offset;
		rc = run_mapped(r);
		end = sync_range(b, offset, r, DEVBUF_CPU_END);
		if (end && rc >= 0)
			rc = end;
	}
	dbuf_lock(b);
	dbuf_backend(b)->unmap(b, &m);
	dbuf_unlock(b);
	/* Memory that is the driver's may have been taken from under the mapping; it knows why. */
	if (rc == -EFAULT && !dbuf_backend(b)->reachable)
		rc = DBUF_FILE_UNFIT;
	return rc;
}

/* --- through host memory ---------------------------------------------------------------------- */

/* One piece: *n bytes of it went all the way. */
static int bounce_piece(struct devbuf *b, size_t offset, struct file_run *r, void *bounce,
			size_t want, size_t *n)
{
	int rc = 0, copied = 0;

	if (!r->write)
		rc = dbuf_file_part(r, r->fd, bounce, want, r->done, n);
	if (r->write || *n) {
		dbuf_lock_data(b);
		copied = r->write ? dbuf_backend(b)->copyout(b, offset + r->done, bounce, want) :
				    dbuf_backend(b)->copyin(b, offset + r->done, bounce, *n);
		dbuf_unlock_data(b);
	}
	if (copied) {
		*n = 0;
		return copied;
	}
	if (r->write)
		rc = dbuf_file_part(r, r->fd, bounce, want, r->done, n);
	if (!rc)
		return 0;
	r->done += *n; /* where it failed, for the words */
	rc = dbuf_file_failed(r, rc);
	r->done -= *n;
	return rc;
}

static int by_bounce(struct devbuf *b, size_t offset, struct file_run *r)
{
	size_t chunk;
	char *bounce = dbuf_bounce_new(r->nbytes - r->done, &chunk);
	int rc = bounce ? DBUF_FILE_GO : -ENOMEM;

	while (!rc && r->done < r->nbytes) {
		size_t left = r->nbytes - r->done, n;
		size_t want = left < chunk ? left : chunk;
		int stop;

		rc = bounce_piece(b, offset, r, bounce, want, &n);
		stop = dbuf_file_advance(r, n, false);
		if (!rc && n < want)
			rc = DBUF_FILE_ENDED;
		if (!rc)
			rc = stop;
	}
	free(bounce);
	return rc;
}

/* --- public ----------------------------------------------------------------------------------- */

int dbuf_file_check(const struct devbuf *b, size_t offset, int fd, int64_t file_offset,
		    size_t nbytes, bool write)
{
	int flags = fcntl(fd, F_GETFL), rc;
	int64_t end;

	rc = dbuf_range(b, offset, nbytes);
	if (rc)
		return rc;
	if (file_offset < 0)
		return dbuf_fail(-EINVAL, "file offset %" PRId64 " is negative", file_offset);
	if (__builtin_add_overflow(file_offset, nbytes, &end))
		return dbuf_fail(-EOVERFLOW, "%zu bytes at %" PRId64 " of the file wrap around",
				 nbytes, file_offset);
	if (flags < 0)
		return dbuf_fail(-EBADF, "file descriptor %d is not open", fd);
	if (flags & O_PATH || (flags & O_ACCMODE) == (write ? O_RDONLY : O_WRONLY))
		return dbuf_fail(-EBADF, "file descriptor %d is not open for %s", fd,
				 write ? "writing" : "reading");
	if (write && flags & O_APPEND)
		return dbuf_fail(-EINVAL,
				 "file descriptor %d is open for appending: what is written goes "
				 "to the end of the file, not to %" PRId64,
				 fd, file_offset);
	return 0;
}

static int read_options(struct devbuf_file_io *to, struct devbuf_file_io *from)
{
	int rc;

	if (!from) {
		*to = (struct devbuf_file_io)DEVBUF_FILE_IO_INIT;
		return 0;
	}
	rc = dbuf_struct_read(to, sizeof(*to), sizeof(*to), from, "the options");
	if (rc)
		return rc;
	if (to->flags & ~DEVBUF_FILE_BUFFERED)
		return dbuf_fail(-EINVAL, "flags %#" PRIx64 " are not made of DEVBUF_FILE_*",
				 to->flags);
	return 0;
}

static int run_ways(struct devbuf *b, size_t offset, struct file_run *r)
{
	int rc = DBUF_FILE_UNFIT;

	if (!r->write && dbuf_backend(b)->read_file)
		rc = by_hook(b, offset, r);
	if (rc == DBUF_FILE_UNFIT)
		rc = by_mapping(b, offset, r);
	if (rc == DBUF_FILE_UNFIT)
		rc = by_bounce(b, offset, r);
	if (rc == DBUF_FILE_ENDED)
		rc = dbuf_fail(-EINVAL, "the file ends after %zu of the %zu bytes at %" PRId64,
			       r->done, r->nbytes, r->file_offset);
	return rc;
}

/*
 * The caller's descriptor may be one for direct I/O, which does not take what is not aligned: then
 * another one is opened that does. Without it, aligned bytes still go.
 */
static int page_cache_fd(int fd, bool write)
{
	char path[32];
	int own;

	if (!(fcntl(fd, F_GETFL) & O_DIRECT))
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, (write ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	return own < 0 ? fd : own;
}

static int run(struct devbuf *b, size_t offset, int fd, int64_t file_offset, size_t nbytes,
	       bool write, struct devbuf_file_io *io)
{
	struct devbuf_file_io options;
	struct file_run r = {
		.write = write,
		.file_offset = file_offset,
		.nbytes = nbytes,
		.direct_fd = -1,
	};
	int rc;

	rc = dbuf_usable(b);
	if (!rc)
		rc = read_options(&options, io);
	if (rc)
		return rc;
	options.nbytes_done = options.nbytes_direct = 0;
	rc = dbuf_file_check(b, offset, fd, file_offset, nbytes, write);
	if (!rc) {
		r.fd = page_cache_fd(fd, write);
		r.progress = options.progress;
		r.user = options.user;
		if (!(options.flags & DEVBUF_FILE_BUFFERED))
			dbuf_direct_open(&r, fd);
		rc = run_ways(b, offset, &r);
		dbuf_direct_close(&r);
		if (r.fd != fd)
			close(r.fd);
	}
	if (io) {
		options.nbytes_done = r.done;
		options.nbytes_direct = r.direct;
		dbuf_struct_write(io, &options, sizeof(options));
	}
	return rc;
}

int devbuf_read_file(struct devbuf *b, size_t offset, int fd, int64_t file_offset, size_t nbytes,
		     struct devbuf_file_io *io)
{
	return run(b, offset, fd, file_offset, nbytes, false, io);
}

int devbuf_write_file(struct devbuf *b, size_t offset, int fd, int64_t file_offset, size_t nbytes,
		      struct devbuf_file_io *io)
{
	return run(b, offset, fd, file_offset, nbytes, true, io);
}
