// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Files in queues.
 *
 * In order they are devbuf_read_file() and devbuf_write_file(). On a ring they
 * are its own reads and writes, between the file and a mapping that is made when
 * the operation is submitted, and lasts until its completion is handed out.
 */
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file.h"
#include "queue.h"

/* The most that the kernel reads or writes at once. */
#define ENTRY_NBYTES_MAX ((size_t)1 << 30)

static bool writes(const struct operation *o)
{
	return o->piece.src;
}

static struct devbuf *buffer_of(const struct operation *o)
{
	return writes(o) ? o->piece.src : o->piece.dst;
}

static size_t offset_of(const struct operation *o)
{
	return writes(o) ? o->piece.src_offset : o->piece.dst_offset;
}

/* --- in order --------------------------------------------------------------------------------- */

static int run_file(struct operation *o)
{
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;
	int rc;

	rc = (writes(o) ? devbuf_write_file : devbuf_read_file)(
		buffer_of(o), offset_of(o), o->fd, o->file_offset, o->piece.nbytes, &io);
	o->done_nbytes = io.nbytes_done;
	return rc;
}

/* --- on a ring -------------------------------------------------------------------------------- */

static int map_buffer(struct operation *o)
{
	struct devbuf *b = buffer_of(o);
	int rc;

	dbuf_lock(b);
	rc = dbuf_allocated(b);
	if (!rc)
		rc = dbuf_backend(b)->map(b, writes(o) ? PROT_READ : PROT_WRITE, &o->mapping);
	dbuf_unlock(b);
	return rc;
}

static void prepare_file(struct operation *o, struct io_uring_sqe *sqe)
{
	size_t left = o->piece.nbytes - o->done_nbytes;
	unsigned int nbytes = (unsigned int)(left < ENTRY_NBYTES_MAX ? left : ENTRY_NBYTES_MAX);
	uint64_t at = (uint64_t)o->file_offset + o->done_nbytes;
	char *bytes;

	if (!o->mapping.addr)
		o->result = map_buffer(o);
	if (o->result) {
		io_uring_prep_nop(sqe);
		return;
	}
	bytes = (char *)o->mapping.addr + offset_of(o) + o->done_nbytes;
	if (writes(o))
		io_uring_prep_write(sqe, o->fd, bytes, nbytes, at);
	else
		io_uring_prep_read(sqe, o->fd, bytes, nbytes, at);
}

/* Short reads and writes go on where they stopped. */
static bool finish_file(struct operation *o, int res)
{
	if (o->result) /* it was not mapped */
		return true;
	if (res == -EINTR || res == -EAGAIN)
		return false;
	if (res > 0)
		o->done_nbytes += (size_t)res;
	else if (res == 0)
		o->result = writes(o) ? -EIO : -EINVAL;
	else
		o->result = dbuf_file_error(res);
	return o->result || o->done_nbytes == o->piece.nbytes;
}

/* In the child of a fork nobody unlocks what another thread had locked; the mapping is its own. */
static void release_file(struct operation *o)
{
	struct devbuf *b = buffer_of(o);
	bool forked = dbuf_forked(b->allocator);

	if (!o->mapping.addr)
		return;
	if (!forked)
		dbuf_lock(b);
	dbuf_backend(b)->unmap(b, &o->mapping);
	if (!forked)
		dbuf_unlock(b);
}

static const struct operation_kind file_kind = {
	.run = run_file,
	.prepare = prepare_file,
	.finish = finish_file,
	.release = release_file,
};

/* --- public ----------------------------------------------------------------------------------- */

/* A ring waits for ever for a pipe that nobody writes to. */
static int check_seekable(int fd)
{
	if (lseek(fd, 0, SEEK_CUR) < 0)
		return dbuf_fail(-errno, "file descriptor %d has no offsets: %s", fd,
				 dbuf_reason(-errno));
	return 0;
}

static int queue_file(struct devbuf_queue *q, struct devbuf *b, size_t offset, int fd,
		      int64_t file_offset, size_t nbytes, bool write, uint64_t cookie)
{
	struct operation *o;
	int rc;

	rc = dbuf_queue_check(q, b);
	if (!rc)
		rc = dbuf_file_check(b, offset, fd, file_offset, nbytes, write);
	if (!rc)
		rc = check_seekable(fd);
	if (rc)
		return rc;
	o = dbuf_queue_take(q, &file_kind, cookie);
	if (!o)
		return -EAGAIN;
	o->piece.nbytes = nbytes;
	if (write) {
		o->piece.src = devbuf_ref(b);
		o->piece.src_offset = offset;
	} else {
		o->piece.dst = devbuf_ref(b);
		o->piece.dst_offset = offset;
	}
	o->fd = fd;
	o->file_offset = file_offset;
	dbuf_queue_add(q, o);
	return 0;
}

int devbuf_queue_read_file(struct devbuf_queue *q, struct devbuf *dst, size_t dst_offset, int fd,
			   int64_t file_offset, size_t nbytes, uint64_t cookie)
{
	return queue_file(q, dst, dst_offset, fd, file_offset, nbytes, false, cookie);
}

int devbuf_queue_write_file(struct devbuf_queue *q, struct devbuf *src, size_t src_offset, int fd,
			    int64_t file_offset, size_t nbytes, uint64_t cookie)
{
	return queue_file(q, src, src_offset, fd, file_offset, nbytes, true, cookie);
}
