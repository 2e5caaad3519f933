/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of devbuf_read_file() and devbuf_write_file() share: files, and buffers for them. */
#ifndef DEVBUF_TESTS_UNIT_FILES_H
#define DEVBUF_TESTS_UNIT_FILES_H

#include "unit.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define MIB ((size_t)1 << 20)

/* The VM's empty disk, with a file system on its first half; where files are, else. */
#define DISK	  "/dev/nvme0n1"
#define DISK_HALF "32768" /* KiB */
#define MOUNTED	  "/tmp/disk"

static inline bool is_scratch_disk(const char *name, const char *serial)
{
	char path[64], line[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/block/%s/device/serial", name);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return !strncmp(line, serial, strlen(serial));
}

/* A directory on the disk, if there is one and the kernel has ext4. */
static inline const char *directory(void)
{
	struct stat root, mounted;

	if (!is_scratch_disk("nvme0n1", "scratch"))
		return ".";
	mkdir(MOUNTED, 0700);
	if (!stat("/tmp", &root) && !stat(MOUNTED, &mounted) && root.st_dev != mounted.st_dev)
		return MOUNTED;
	if (system("mke2fs -F " DISK " " DISK_HALF " >/dev/null 2>&1") ||
	    mount(DISK, MOUNTED, "ext4", 0, NULL))
		return ".";
	return MOUNTED;
}

/* An empty file without a name. */
static inline int new_empty_file(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/devbuf-test-XXXXXX", directory());
	fd = mkostemp(path, O_CLOEXEC);
	unlink(path);
	return fd;
}

static inline void fill_file(int fd, size_t nbytes, unsigned int seed)
{
	char *bytes = malloc(nbytes);

	fill_pattern(bytes, nbytes, seed);
	if (pwrite(fd, bytes, nbytes, 0) != (ssize_t)nbytes)
		abort();
	free(bytes);
}

static inline int new_file(size_t nbytes, unsigned int seed)
{
	int fd = new_empty_file();

	fill_file(fd, nbytes, seed);
	return fd;
}

/* What direct I/O on @fd asks for; 0 when it cannot be had. */
static inline size_t direct_alignment(int fd)
{
	struct statx x = { 0 };

#ifdef STATX_DIOALIGN
	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) && x.stx_mask & STATX_DIOALIGN)
		return x.stx_dio_mem_align ? x.stx_dio_offset_align : 0;
#endif
	return 0;
}

/* Bytes of the range that lie in whole blocks of the file. */
static inline size_t whole_blocks(size_t align, size_t file_offset, size_t nbytes)
{
	size_t begin, end;

	if (!align)
		return 0;
	begin = (file_offset + align - 1) / align * align;
	end = (file_offset + nbytes) / align * align;
	return end > begin ? end - begin : 0;
}

/* The range of the buffer is what the file of that pattern has at @file_offset. */
static inline bool holds_file(struct devbuf *b, size_t offset, size_t file_offset, size_t nbytes,
			      unsigned int seed)
{
	char *pattern = malloc(file_offset + nbytes), *bytes = malloc(nbytes);
	bool same;

	fill_pattern(pattern, file_offset + nbytes, seed);
	same = !devbuf_copyout_at(b, offset, bytes, nbytes) &&
	       !memcmp(bytes, pattern + file_offset, nbytes);
	free(pattern);
	free(bytes);
	return same;
}

/* A progress callback: what it has been told, and what it shall do when so much is done. */
struct watch {
	size_t calls, last;
	bool backwards; /* it counted down, or beyond what there is */
	size_t act_at; /* when as many bytes are done, once */
	void (*act)(struct watch *w);
	int answer; /* after that */
	int fd;
	struct devbuf *b;
};

static inline int on_progress(void *user, size_t nbytes_done, size_t nbytes)
{
	struct watch *w = user;

	w->calls++;
	w->backwards |= nbytes_done <= w->last || nbytes_done > nbytes;
	w->last = nbytes_done;
	if (!w->act_at || nbytes_done < w->act_at)
		return 0;
	w->act_at = 0;
	if (w->act)
		w->act(w);
	return w->answer;
}

static inline struct devbuf_file_io watched(struct watch *w)
{
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	io.progress = on_progress;
	io.user = w;
	return io;
}

/* One fixture for both programs. */
FIXTURE(files)
{
	struct devbuf_allocator *a;
	size_t page;
};

FIXTURE_VARIANT(files)
{
	bool driver;
};

/* clang-format off */
FIXTURE_VARIANT_ADD(files, host) { .driver = false };
FIXTURE_VARIANT_ADD(files, driver) { .driver = true };
/* clang-format on */

FIXTURE_SETUP(files)
{
	remember_memory();
	self->page = (size_t)sysconf(_SC_PAGESIZE);
	ASSERT_OK(variant->driver ? devbuf_driver_open(NULL, &self->a) :
				    devbuf_host_allocator(&self->a));
}

FIXTURE_TEARDOWN(files)
{
	devbuf_allocator_unref(self->a);
	EXPECT_EQ(0, leaks_found());
}

static inline struct devbuf *new_buffer(struct devbuf_allocator *a, size_t nbytes)
{
	struct devbuf *b = NULL;

	if (devbuf_create(a, "SYSTEM:0", nbytes, DEVBUF_UINT8, NULL, &b) || devbuf_allocate(b))
		fprintf(stderr, "# new_buffer: %s\n", devbuf_last_error());
	return b;
}

static inline struct devbuf *new_view(struct devbuf *b, size_t offset, size_t nbytes)
{
	struct devbuf *v = NULL;

	if (devbuf_view(b, nbytes, DEVBUF_UINT8, (int64_t)offset, &v) || devbuf_allocate(v))
		fprintf(stderr, "# new_view: %s\n", devbuf_last_error());
	return v;
}

/* "driver" as the first argument: on the driver; else on the host allocator. */
static inline int run_variant(int argc, char **argv)
{
	bool driver = argc > 1 && !strcmp(argv[1], "driver");
	char *args[64] = { argv[0], (char *)"-v", (char *)(driver ? "driver" : "host") };
	int n = 3;

	for (int i = driver ? 2 : 1; i < argc && n < 63; i++)
		args[n++] = argv[i];
	return test_harness_run(n, args);
}

#endif /* DEVBUF_TESTS_UNIT_FILES_H */
