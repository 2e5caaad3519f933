// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a disk into a buffer.
 *
 * The disk is the one that tests may use (tests/uapi), or else null_blk's, which takes no time and
 * moves no bytes: with it a figure is what the processor does, and the same every time.
 */
#include "common.h"

#define NULL_DISK "/dev/nullb0"

static int direct = -1;
static int cached = -1;

const char *open_disk(void)
{
	const char *path = scratch_disk() ?: NULL_DISK;

	direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	cached = open(path, O_RDONLY | O_CLOEXEC);
	return direct < 0 || cached < 0 ? NULL : path;
}

void try_direct_load(struct subject *subject)
{
	if (pread(direct, subject->map, subject->nbytes, 0) < 0)
		subject->refused = errno;
}

void load_direct(void *memory, size_t nbytes)
{
	must_be(pread(direct, memory, nbytes, 0) == (ssize_t)nbytes);
}

/* A file that is loaded once is not in the cache; nor is this one after the round before. */
void load_cached(void *memory, size_t nbytes)
{
	must_be(pread(cached, memory, nbytes, 0) == (ssize_t)nbytes);
	must_be(!posix_fadvise(cached, 0, 0, POSIX_FADV_DONTNEED));
}

void load_map_direct(struct subject *subject)
{
	load_direct(subject->map, subject->nbytes);
}

void load_map_cached(struct subject *subject)
{
	load_cached(subject->map, subject->nbytes);
}
