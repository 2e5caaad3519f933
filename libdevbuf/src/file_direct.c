// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Direct I/O between a file and a mapping: what can go so, and the loop that
 * does it where there is no io_uring.
 *
 * The caller's descriptor stays as it is: a second one of the same file is
 * opened, by way of /proc, with O_DIRECT. Whatever speaks against it, the page
 * cache remains.
 */
#define _GNU_SOURCE /* O_DIRECT, statx() */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "file.h"

/* What nearly every file system is content with, for those that do not tell. */
#define COMMON_ALIGN 4096

/* --- what the file asks for ------------------------------------------------------------------- */

/* These take O_DIRECT, from Linux 6.6 on, but their files are the page cache. */
static bool lives_in_memory(int fd)
{
	struct statfs s;

	return !fstatfs(fd, &s) &&
	       (s.f_type == TMPFS_MAGIC || s.f_type == RAMFS_MAGIC || s.f_type == HUGETLBFS_MAGIC);
}

static bool power_of_two(size_t n)
{
	return n && !(n & (n - 1));
}

static bool find_alignment(struct file_run *r, int fd)
{
#ifdef STATX_DIOALIGN
	struct statx x;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) && x.stx_mask & STATX_DIOALIGN) {
		r->memory_align = x.stx_dio_mem_align;
		r->offset_align = x.stx_dio_offset_align;
		return power_of_two(r->memory_align) && power_of_two(r->offset_align);
	}
#endif
	r->memory_align = r->offset_align = COMMON_ALIGN;
	return !lives_in_memory(fd);
}

void dbuf_direct_open(struct file_run *r, int fd)
{
	char path[32];
	struct stat s;

	if (fstat(fd, &s) || (!S_ISREG(s.st_mode) && !S_ISBLK(s.st_mode)))
		return;
	if (!find_alignment(r, fd) || r->offset_align > r->nbytes ||
	    r->offset_align > DBUF_FILE_PIECE || r->memory_align > DBUF_FILE_PIECE)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r->direct_fd = open(path, (r->write ? O_WRONLY : O_RDONLY) | O_DIRECT | O_CLOEXEC);
}

void dbuf_direct_close(struct file_run *r)
{
	if (r->direct_fd >= 0)
		close(r->direct_fd);
}

/* The first byte where both the file's offset and the memory's address are aligned; whole blocks. */
void dbuf_direct_range(struct file_run *r)
{
	size_t begin, last;

	r->direct_begin = r->direct_end = r->done;
	if (r->direct_fd < 0)
		return;
	begin = r->done + (-((size_t)r->file_offset + r->done) & (r->offset_align - 1));
	last = begin + r->memory_align;
	while (((uintptr_t)r->bytes + begin) & (r->memory_align - 1)) {
		begin += r->offset_align;
		if (begin >= last)
			return;
	}
	if (begin >= r->nbytes)
		return;
	r->direct_begin = begin;
	r->direct_end = begin + ((r->nbytes - begin) & ~(r->offset_align - 1));
}

/* --- moving bytes ----------------------------------------------------------------------------- */

bool dbuf_direct_unfit(int rc)
{
	return rc == -EINVAL || rc == -EFAULT || rc == -EOPNOTSUPP || rc == -ENOTBLK;
}

/* A large piece: the kernel splits it, and has the parts in flight together. */
static int loop(struct file_run *r)
{
	while (r->done < r->direct_end) {
		size_t left = r->direct_end - r->done, n;
		size_t most = DBUF_FILE_DEPTH * DBUF_FILE_PIECE;
		size_t want = left < most ? left : most;
		size_t end = r->done + want;
		ssize_t rc = dbuf_file_part(r, r->direct_fd, r->bytes + r->done, want, r->done, &n);
		int stop = dbuf_file_advance(r, n, true);

		if (rc && !dbuf_direct_unfit((int)rc))
			return dbuf_file_failed(r, (int)rc);
		if (stop)
			return stop;
		if (rc)
			return DBUF_FILE_UNFIT;
		/* The file seems to end. The page cache knows to the byte. */
		stop = dbuf_file_plain(r, end);
		if (stop)
			return stop;
	}
	return DBUF_FILE_GO;
}

int dbuf_direct_run(struct file_run *r)
{
	int rc = -ENOSYS;

	if (r->direct_end - r->direct_begin > DBUF_FILE_PIECE)
		rc = dbuf_ring_run(r);
	return rc == -ENOSYS ? loop(r) : rc;
}
