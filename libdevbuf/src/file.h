/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* What the files about files share: file.c, file_direct.c, file_ring.c, queue_file.c. */
#ifndef DEVBUF_FILE_H
#define DEVBUF_FILE_H

#include "internal.h"

/* Bytes that are read or written at once, and how many such pieces are in flight together. */
#define DBUF_FILE_PIECE ((size_t)1 << 20)
#define DBUF_FILE_DEPTH 8

/*
 * What a step of the work returns: one of these, or a negative errno, in words. In every case
 * file_run says exactly how far it got.
 */
enum {
	DBUF_FILE_GO, /* all is well, go on */
	DBUF_FILE_ENDED, /* the file ends here */
	DBUF_FILE_UNFIT, /* not by direct I/O; nothing is wrong with the rest */
};

/* One devbuf_read_file() or devbuf_write_file(). */
struct file_run {
	bool write;
	int fd; /* goes through the page cache, wherever that can be had */
	int64_t file_offset;
	size_t nbytes;
	char *bytes; /* the buffer's range, while it is mapped */
	int (*progress)(void *user, size_t nbytes_done, size_t nbytes);
	void *user;

	size_t done; /* bytes from the beginning of the range, without a gap */
	size_t direct; /* of them by direct I/O */

	/* file_direct.c: which part can go directly. None when direct_fd is negative. */
	int direct_fd;
	size_t memory_align, offset_align; /* powers of two */
	size_t direct_begin, direct_end; /* in bytes of the range */
};

/* --- file.c ----------------------------------------------------------------------------------- */

/* What is wrong with the arguments, but for the buffer itself. */
int dbuf_file_check(const struct devbuf *b, size_t offset, int fd, int64_t file_offset,
		    size_t nbytes, bool write);

/* An errno of the kernel's file systems and disks, as one of ours. */
static inline int dbuf_file_error(int rc)
{
	return rc == -ENODATA ? -EIO : rc; /* their word for a bad sector */
}

/* Until @nbytes went, the file ends or it fails: *done says how many did. 0 or a negative errno. */
int dbuf_file_part(const struct file_run *r, int fd, void *bytes, size_t nbytes, size_t at,
		   size_t *done);

/* Count what went, and tell the caller: DBUF_FILE_GO, or -ECANCELED. */
int dbuf_file_advance(struct file_run *r, size_t nbytes, bool direct);

/* Through the page cache, up to byte @end of the range. */
int dbuf_file_plain(struct file_run *r, size_t end);

/* It failed at where the run is now. In words. */
int dbuf_file_failed(const struct file_run *r, int rc);

/* --- file_direct.c ---------------------------------------------------------------------------- */

/* A descriptor of the same file for direct I/O, and what it asks for. Fails quietly. */
void dbuf_direct_open(struct file_run *r, int fd);
void dbuf_direct_close(struct file_run *r);

/* The part of the mapped range that can go directly; none is a part too. */
void dbuf_direct_range(struct file_run *r);
int dbuf_direct_run(struct file_run *r);

/* Whether direct I/O was refused for what it is, so that the page cache may well do. */
bool dbuf_direct_unfit(int rc);

/* --- file_ring.c ------------------------------------------------------------------------------ */

/* As dbuf_direct_run(), with many pieces in flight. -ENOSYS, untold: there is no io_uring here. */
int dbuf_ring_run(struct file_run *r);

#endif /* DEVBUF_FILE_H */
