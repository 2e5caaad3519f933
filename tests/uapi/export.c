// SPDX-License-Identifier: GPL-2.0-only
/* EXPORT, and the dma-buf that it makes: size, offset, rights, bytes, life. */
#include "common.h"

#include <sys/resource.h>

#include <linux/dma-buf.h>

#include "kselftest_harness.h"

#define BASE_NBYTES 10000u
#define BASE_PAGES  3

FIXTURE(export)
{
	int ctx;
	__u64 id;
};

FIXTURE_SETUP(export)
{
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, BASE_NBYTES);
	buffer_fill(self->ctx, self->id, BASE_NBYTES, 1);
}

FIXTURE_TEARDOWN(export)
{
	close(self->ctx);
}

static struct devbuf_export export(int ctx, __u64 id, __u32 flags)
{
	struct devbuf_export export = { .size = sizeof(export), .flags = flags, .id = id };

	must(do_command(ctx, DEVBUF_EXPORT, &export));
	return export;
}

static unsigned char *map_dma_buf(int dma_buf, size_t nbytes, int prot)
{
	unsigned char *map = mmap(NULL, nbytes, prot, MAP_SHARED, dma_buf, 0);

	must_libc(map == MAP_FAILED ? -1 : 0);
	return map;
}

/* --- where the bytes are ---------------------------------------------------------------------- */

TEST_F(export, of_a_base_is_its_pages)
{
	struct devbuf_export e = export(self->ctx, self->id, 0);

	EXPECT_EQ(0u, e.out_offset);
	EXPECT_EQ(BASE_NBYTES, e.out_nbytes);
	EXPECT_EQ(0u, e.out_pad);
	EXPECT_EQ((off_t)(BASE_PAGES * PAGE), lseek(e.out_fd, 0, SEEK_END));
	EXPECT_EQ(0, lseek(e.out_fd, 0, SEEK_SET));
}

TEST_F(export, of_a_view_is_the_pages_around_it)
{
	static const struct {
		__u64 offset, nbytes, first_page, nr_pages;
	} views[] = {
		{ 0, 1, 0, 1 },       { 4095, 1, 0, 1 },
		{ 4095, 2, 0, 2 },    { 4096, 4096, 1, 1 },
		{ 4097, 4095, 1, 1 }, { 4097, 4096, 1, 2 },
		{ 100, 9000, 0, 3 },  { BASE_NBYTES - 1, 1, 2, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		__u64 view =
			new_allocated_view(self->ctx, self->id, views[i].offset, views[i].nbytes);
		struct devbuf_export e = export(self->ctx, view, 0);
		size_t nbytes = views[i].nr_pages * PAGE;
		unsigned char *map = map_dma_buf(e.out_fd, nbytes, PROT_READ);

		EXPECT_EQ(views[i].offset - views[i].first_page * PAGE, e.out_offset);
		EXPECT_EQ(views[i].nbytes, e.out_nbytes);
		EXPECT_EQ((off_t)nbytes, lseek(e.out_fd, 0, SEEK_END));
		EXPECT_TRUE(filled_from(map + e.out_offset, e.out_nbytes, 1, views[i].offset));
		close(e.out_fd);
	}
}

TEST_F(export, fd_is_closed_on_exec)
{
	struct devbuf_export e = export(self->ctx, self->id, 0);

	EXPECT_EQ(FD_CLOEXEC, fcntl(e.out_fd, F_GETFD));
}

/* --- one dma-buf for one buffer and mode ------------------------------------------------------ */

TEST_F(export, twice_is_the_same_dma_buf)
{
	int first = new_export(self->ctx, self->id, 0);
	int second = new_export(self->ctx, self->id, 0);

	EXPECT_NE(first, second);
	EXPECT_EQ(inode_of(first), inode_of(second));
}

TEST_F(export, writable_is_another_dma_buf)
{
	EXPECT_NE(inode_of(new_export(self->ctx, self->id, 0)),
		  inode_of(new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE)));
}

TEST_F(export, of_two_views_of_the_same_bytes_are_two_dma_bufs)
{
	__u64 first = new_allocated_view(self->ctx, self->id, 0, PAGE);
	__u64 second = new_allocated_view(self->ctx, self->id, 0, PAGE);

	EXPECT_NE(inode_of(new_export(self->ctx, first, 0)),
		  inode_of(new_export(self->ctx, second, 0)));
}

TEST_F(export, from_another_context_is_the_same_dma_buf)
{
	int first = new_export(self->ctx, self->id, 0);
	int other = new_context();

	new_import(other, first);
	EXPECT_EQ(inode_of(first), inode_of(new_export(other, self->id, 0)));
	close(other);
}

TEST_F(export, after_a_reallocation_is_of_the_new_memory)
{
	int first = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	int second;

	must(do_deallocate(self->ctx, self->id));
	EXPECT_EQ(-ENODATA, do_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE));
	must(do_allocate(self->ctx, self->id));
	second = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	EXPECT_NE(inode_of(first), inode_of(second));
	EXPECT_TRUE(filled(map_dma_buf(first, PAGE, PROT_READ), PAGE, 1));
	EXPECT_TRUE(all_zero(map_dma_buf(second, PAGE, PROT_READ), PAGE));
}

TEST_F(export, made_anew_after_the_last_fd_was_closed)
{
	for (int i = 0; i < 20; i++) {
		int fd = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);

		EXPECT_TRUE(filled(map_dma_buf(fd, PAGE, PROT_READ), PAGE, 1));
		close(fd);
	}
}

/* --- read-only and writable ------------------------------------------------------------------- */

TEST_F(export, read_only_refuses_writable_mappings)
{
	int fd = new_export(self->ctx, self->id, 0);

	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(export, read_only_refuses_to_make_a_mapping_writable)
{
	void *map = map_dma_buf(new_export(self->ctx, self->id, 0), PAGE, PROT_READ);

	EXPECT_EQ(-1, mprotect(map, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(export, read_only_stays_so_when_it_is_opened_again)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", new_export(self->ctx, self->id, 0));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

TEST_F(export, writable_is_written_through)
{
	int fd = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	unsigned char *map = map_dma_buf(fd, BASE_PAGES * PAGE, PROT_READ | PROT_WRITE);

	fill(map, BASE_NBYTES, 2);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, BASE_NBYTES, 2));
}

TEST_F(export, mapping_past_the_end_is_EINVAL)
{
	int fd = new_export(self->ctx, self->id, 0);

	EXPECT_EQ(MAP_FAILED, mmap(NULL, (BASE_PAGES + 1) * PAGE, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, BASE_PAGES * PAGE));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(export, mapping_of_the_last_page)
{
	int fd = new_export(self->ctx, self->id, 0);
	unsigned char *map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 2 * PAGE);

	ASSERT_NE(MAP_FAILED, map);
	EXPECT_TRUE(filled_from(map, BASE_NBYTES - 2 * PAGE, 1, 2 * PAGE));
	EXPECT_TRUE(all_zero(map + BASE_NBYTES - 2 * PAGE, 3 * PAGE - BASE_NBYTES));
}

TEST_F(export, mapping_survives_MADV_DONTNEED_and_fork)
{
	int fd = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	unsigned char *map = map_dma_buf(fd, PAGE, PROT_READ | PROT_WRITE);
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		map[0] = 'x';
		_exit(0);
	}
	EXPECT_EQ(0, wait_for(child));
	EXPECT_EQ('x', map[0]);
	/* Not for mappings without struct pages behind; either way the bytes stay. */
	madvise(map, PAGE, MADV_DONTNEED);
	EXPECT_EQ('x', map[0]);
}

/* --- synchronisation -------------------------------------------------------------------------- */

TEST_F(export, is_bracketed_by_dma_buf_sync)
{
	int fd = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	struct dma_buf_sync sync = { .flags = DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW };

	EXPECT_EQ(0, ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync));
	sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
	EXPECT_EQ(0, ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync));
}

/* --- life ------------------------------------------------------------------------------------- */

TEST_F(export, outlives_memory_handle_and_context)
{
	int fd = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	unsigned char *map;

	must(do_deallocate(self->ctx, self->id));
	must(do_destroy(self->ctx, self->id));
	close(self->ctx);
	self->ctx = new_context();
	buffer_fill(self->ctx, new_allocated(self->ctx, BASE_NBYTES), BASE_NBYTES, 2);
	map = map_dma_buf(fd, BASE_PAGES * PAGE, PROT_READ | PROT_WRITE);
	EXPECT_TRUE(filled(map, BASE_NBYTES, 1));
}

TEST_F(export, is_outlived_by_its_mapping)
{
	int fd = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	unsigned char *map = map_dma_buf(fd, BASE_PAGES * PAGE, PROT_READ | PROT_WRITE);

	close(fd);
	must(do_destroy(self->ctx, self->id));
	buffer_fill(self->ctx, new_allocated(self->ctx, BASE_NBYTES), BASE_NBYTES, 2);
	EXPECT_TRUE(filled(map, BASE_NBYTES, 1));
}

TEST_F(export, does_not_hold_up_deallocate)
{
	new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	EXPECT_EQ(0, do_deallocate(self->ctx, self->id));
}

/* --- out of files ----------------------------------------------------------------------------- */

TEST_F(export, at_the_limit_of_files_is_EMFILE_and_leaks_nothing)
{
	struct rlimit limit = { .rlim_cur = nr_open_files() + 16, .rlim_max = 1024 };
	int files;

	must_libc(setrlimit(RLIMIT_NOFILE, &limit));
	while (dup(self->ctx) >= 0)
		;
	EXPECT_EQ(EMFILE, errno);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-EMFILE, do_export(self->ctx, self->id, 0));
	limit.rlim_cur = limit.rlim_max;
	must_libc(setrlimit(RLIMIT_NOFILE, &limit));
	files = nr_open_files();
	close(new_export(self->ctx, self->id, 0));
	EXPECT_EQ(files, nr_open_files());
	EXPECT_EQ(1, fdinfo(self->ctx, "devbuf-handles"));
}

TEST_HARNESS_MAIN
