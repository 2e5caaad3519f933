// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files and buffers: what comes and goes, which part of it directly, and what is told on the way.
 *
 * file            on the host allocator
 * file driver     on the driver
 *
 * With the disk of tests/vm/run -d files lie on ext4 (if the kernel has it: -m ext4).
 */
#include "files.h"

/* --- reading ---------------------------------------------------------------------------------- */

TEST_F(files, a_whole_file)
{
	size_t nbytes = 11 * MIB + 5 * self->page; /* more pieces than are in flight together */
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);
	struct watch w = { 0 };
	struct devbuf_file_io io = watched(&w);

	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	EXPECT_EQ(nbytes, io.nbytes_done);
	EXPECT_EQ(whole_blocks(direct_alignment(fd), 0, nbytes), io.nbytes_direct);
	EXPECT_LE(10, w.calls);
	EXPECT_FALSE(w.backwards);
	EXPECT_EQ(nbytes, w.last);
	EXPECT_EQ(0, lseek(fd, 0, SEEK_CUR));
	EXPECT_FALSE(fcntl(fd, F_GETFL) & O_DIRECT);
	close(fd);
	devbuf_unref(b);
}

TEST_F(files, nobody_wants_to_know)
{
	struct devbuf *b = new_buffer(self->a, self->page);
	int fd = new_file(self->page, 1);

	EXPECT_OK(devbuf_read_file(b, 0, fd, 0, self->page, NULL));
	EXPECT_TRUE(holds_file(b, 0, 0, self->page, 1));
	EXPECT_OK(devbuf_write_file(b, 0, fd, 0, self->page, NULL));
	close(fd);
	devbuf_unref(b);
}

/* Beginnings and ends that are no blocks, of files and of ranges. */
TEST_F(files, unaligned_ends)
{
	static const struct {
		size_t offset, nbytes;
	} cases[] = {
		{ 0, 1 },	  { 0, 511 },	      { 1, 4095 },	 { 100, 2 * 4096 },
		{ 511, 513 },	  { 4095, 2 },	      { 4097, 3 * 4096 }, { 0, 3 * MIB + 1 },
		{ 513, 2 * MIB }, { 8192, 4 * MIB - 1 },
	};
	size_t nbytes = 5 * MIB;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);
	size_t align = direct_alignment(fd);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;
		size_t at = cases[i].offset, n = cases[i].nbytes;
		unsigned char after = 0;

		ASSERT_OK(devbuf_copyin_at(b, at + n, "\xa5", 1));
		ASSERT_OK(devbuf_read_file(b, at, fd, (int64_t)at, n, &io));
		EXPECT_TRUE(holds_file(b, at, at, n, 1));
		EXPECT_EQ(n, io.nbytes_done);
		EXPECT_EQ(whole_blocks(align, at, n), io.nbytes_direct)
		{
			TH_LOG("%zu bytes at %zu", n, at);
		}
		EXPECT_OK(devbuf_copyout_at(b, at + n, &after, 1));
		EXPECT_EQ(0xa5, after);
	}
	close(fd);
	devbuf_unref(b);
}

/* Where file and memory do not agree, nothing goes directly, and all of it comes. */
TEST_F(files, alignments_that_do_not_agree)
{
	size_t nbytes = 2 * MIB;
	struct devbuf *b = new_buffer(self->a, nbytes + 1);
	int fd = new_file(nbytes, 1);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	ASSERT_OK(devbuf_read_file(b, 1, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 1, 0, nbytes, 1));
	EXPECT_EQ(nbytes, io.nbytes_done);
	EXPECT_EQ(0, io.nbytes_direct);
	close(fd);
	devbuf_unref(b);
}

/* It is the address that counts: a view at an odd byte of its base, for that byte of the file. */
TEST_F(files, views)
{
	size_t nbytes = 3 * MIB;
	struct devbuf *b = new_buffer(self->a, nbytes), *v = new_view(b, 4099, MIB + 9);
	int fd = new_file(nbytes, 1);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	ASSERT_OK(devbuf_read_file(v, 0, fd, 4099, MIB + 9, &io));
	EXPECT_TRUE(holds_file(b, 4099, 4099, MIB + 9, 1));
	EXPECT_EQ(whole_blocks(direct_alignment(fd), 4099, MIB + 9), io.nbytes_direct);
	ASSERT_OK(devbuf_read_file(v, 5, fd, 4104, MIB, &io));
	EXPECT_TRUE(holds_file(b, 4099, 4099, MIB + 9, 1));
	EXPECT_EQ(-EINVAL, devbuf_read_file(v, 10, fd, 0, MIB, &io));
	EXPECT_EQ(0, io.nbytes_done);
	EXPECT_EQ(0, io.nbytes_direct);
	close(fd);
	devbuf_unref(v);
	devbuf_unref(b);
}

TEST_F(files, buffered_when_asked)
{
	size_t nbytes = 2 * MIB;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	io.flags = DEVBUF_FILE_BUFFERED;
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	EXPECT_EQ(nbytes, io.nbytes_done);
	EXPECT_EQ(0, io.nbytes_direct);
	close(fd);
	devbuf_unref(b);
}

/* tmpfs takes O_DIRECT from 6.6 on, but there is nothing below it to be direct with. */
TEST_F(files, in_memory)
{
	size_t nbytes = 2 * MIB + 3;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	fill_file(fd, nbytes, 1);
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	EXPECT_EQ(nbytes, io.nbytes_done);
	EXPECT_EQ(0, io.nbytes_direct);
	close(fd);
	devbuf_unref(b);
}

TEST_F(files, a_device_without_blocks)
{
	struct devbuf *b = new_buffer(self->a, MIB);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	ASSERT_OK(devbuf_copyin_at(b, 5, "x", 1));
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, MIB, &io));
	EXPECT_EQ(MIB, io.nbytes_done);
	EXPECT_EQ(0, io.nbytes_direct);
	close(fd);
	devbuf_unref(b);
}

/* The caller's descriptor may be O_DIRECT itself: then the rest needs one that is not. */
TEST_F(files, descriptors_for_direct_io)
{
	size_t nbytes = 2 * MIB + 77;
	struct devbuf *b = new_buffer(self->a, nbytes + 1);
	int fd = new_file(nbytes, 1);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	if (!direct_alignment(fd))
		SKIP(goto out, "no direct I/O here");
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_DIRECT));
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	EXPECT_EQ(whole_blocks(direct_alignment(fd), 0, nbytes), io.nbytes_direct);
	ASSERT_OK(devbuf_read_file(b, 1, fd, 0, nbytes, &io)); /* all through the page cache */
	EXPECT_TRUE(holds_file(b, 1, 0, nbytes, 1));
	EXPECT_EQ(0, io.nbytes_direct);
	ASSERT_OK(devbuf_write_file(b, 1, fd, 0, nbytes, &io));
	EXPECT_TRUE(fcntl(fd, F_GETFL) & O_DIRECT);
out:
	close(fd);
	devbuf_unref(b);
}

/* --- writing ---------------------------------------------------------------------------------- */

TEST_F(files, written_and_read_again)
{
	static const struct {
		size_t offset, nbytes;
	} cases[] = {
		{ 0, 11 * MIB }, { 0, 1 }, { 100, 2 * MIB }, { 511, 4 * MIB + 1 }, { 4096, 8192 },
	};
	struct devbuf *b = new_buffer(self->a, 12 * MIB), *c = new_buffer(self->a, 12 * MIB);
	int source = new_file(12 * MIB, 3);

	ASSERT_OK(devbuf_read_file(b, 0, source, 0, 12 * MIB, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;
		size_t at = cases[i].offset, n = cases[i].nbytes;
		int fd = new_empty_file();

		ASSERT_OK(devbuf_write_file(b, at, fd, (int64_t)at, n, &io));
		EXPECT_EQ(n, io.nbytes_done);
		EXPECT_EQ(whole_blocks(direct_alignment(fd), at, n), io.nbytes_direct);
		EXPECT_EQ((off_t)(at + n), lseek(fd, 0, SEEK_END));
		ASSERT_OK(devbuf_read_file(c, at, fd, (int64_t)at, n, &io));
		EXPECT_TRUE(holds_file(c, at, at, n, 3));
		close(fd);
	}
	close(source);
	devbuf_unref(c);
	devbuf_unref(b);
}

/* A block in the middle of a file, of which the page cache has old bytes that are not written yet. */
TEST_F(files, written_into_the_middle)
{
	struct devbuf *b = new_buffer(self->a, MIB), *c = new_buffer(self->a, 2 * MIB);
	int fd = new_file(2 * MIB, 1), other = new_file(2 * MIB, 2);

	ASSERT_OK(devbuf_read_file(b, 0, other, 700, MIB - 700, NULL));
	ASSERT_OK(devbuf_write_file(b, 0, fd, 700, MIB - 700, NULL));
	ASSERT_OK(devbuf_read_file(c, 0, fd, 0, 2 * MIB, NULL));
	EXPECT_TRUE(holds_file(c, 0, 0, 700, 1));
	EXPECT_TRUE(holds_file(c, 700, 700, MIB - 700, 2));
	EXPECT_TRUE(holds_file(c, MIB, MIB, MIB, 1));
	close(fd);
	close(other);
	devbuf_unref(c);
	devbuf_unref(b);
}

/* --- the end of the file ---------------------------------------------------------------------- */

TEST_F(files, the_file_ends)
{
	static const size_t ends[] = { 1, 4095, 4096, 5000, MIB, 3 * MIB + 512, 3 * MIB + 5 };
	struct devbuf *b = new_buffer(self->a, 12 * MIB);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;
		int fd = new_file(ends[i], 1);
		char words[64];

		EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, 0, 12 * MIB, &io));
		EXPECT_EQ(ends[i], io.nbytes_done);
		EXPECT_LE(io.nbytes_direct, io.nbytes_done);
		EXPECT_TRUE(holds_file(b, 0, 0, ends[i], 1));
		snprintf(words, sizeof(words), "the file ends after %zu of the 12582912 bytes at 0",
			 ends[i]);
		EXPECT_SAID(words);
		EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, (int64_t)ends[i], 10, &io));
		EXPECT_EQ(0, io.nbytes_done);
		EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, 13 * (int64_t)MIB, MIB, &io));
		EXPECT_EQ(0, io.nbytes_done);
		close(fd);
	}
	devbuf_unref(b);
}

static void shrink(struct watch *w)
{
	if (ftruncate(w->fd, 10 * MIB + 777))
		abort();
}

/* Pieces that are in flight may have passed the new end; what is counted did come. */
TEST_F(files, the_file_shrinks)
{
	size_t nbytes = 24 * MIB;
	struct devbuf *b = new_buffer(self->a, nbytes);

	for (int buffered = 0; buffered < 2; buffered++) {
		int fd = new_file(nbytes, 1);
		struct watch w = { .act_at = MIB, .act = shrink, .fd = fd };
		struct devbuf_file_io io = watched(&w);

		io.flags = buffered ? DEVBUF_FILE_BUFFERED : 0;
		EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, 0, nbytes, &io));
		EXPECT_SAID("the file ends after");
		EXPECT_EQ(10 * MIB + 777, io.nbytes_done);
		EXPECT_EQ(io.nbytes_done, w.last);
		EXPECT_TRUE(holds_file(b, 0, 0, io.nbytes_done, 1));
		close(fd);
	}
	devbuf_unref(b);
}

/* --- the callback ----------------------------------------------------------------------------- */

TEST_F(files, stopped_by_the_callback)
{
	size_t nbytes = 20 * MIB;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);

	for (int write = 0; write < 2; write++) {
		struct watch w = { .act_at = 3 * MIB, .answer = 1 };
		struct devbuf_file_io io = watched(&w);

		EXPECT_EQ(-ECANCELED, write ? devbuf_write_file(b, 0, fd, 0, nbytes, &io) :
					      devbuf_read_file(b, 0, fd, 0, nbytes, &io));
		EXPECT_SAID("stopped by the caller after");
		EXPECT_EQ(w.last, io.nbytes_done);
		EXPECT_LE(3 * MIB, io.nbytes_done);
		EXPECT_GE(4 * MIB, io.nbytes_done);
		EXPECT_TRUE(holds_file(b, 0, 0, io.nbytes_done, 1));
	}
	close(fd);
	devbuf_unref(b);
}

static void look_at_buffer(struct watch *w)
{
	void *map;

	if (!holds_file(w->b, 0, 0, MIB, 1) || devbuf_map(w->b, PROT_READ, &map) ||
	    !is_pattern(map, MIB, 1) || devbuf_unmap(w->b))
		abort();
}

TEST_F(files, the_callback_may_use_the_buffer)
{
	struct devbuf *b = new_buffer(self->a, 3 * MIB);
	int fd = new_file(3 * MIB, 1);
	struct watch w = { .act_at = MIB, .act = look_at_buffer, .b = b };
	struct devbuf_file_io io = watched(&w);

	EXPECT_OK(devbuf_read_file(b, 0, fd, 0, 3 * MIB, &io));
	close(fd);
	devbuf_unref(b);
}

static void take_memory_away(struct watch *w)
{
	if (devbuf_deallocate(w->b))
		abort();
}

/* The bytes go where the buffer's memory was, and nowhere else. */
TEST_F(files, deallocated_meanwhile)
{
	struct devbuf *b = new_buffer(self->a, 3 * MIB);
	int fd = new_file(3 * MIB, 1);
	struct watch w = { .act_at = MIB, .act = take_memory_away, .b = b };
	struct devbuf_file_io io = watched(&w);

	EXPECT_EQ(-ENODATA, devbuf_read_file(b, 0, fd, 0, 3 * MIB, &io));
	EXPECT_FALSE(devbuf_is_allocated(b));
	close(fd);
	devbuf_unref(b);
}

/* --- mappings of the caller's ----------------------------------------------------------------- */

TEST_F(files, mappings_stay_as_they_are)
{
	struct devbuf *b = new_buffer(self->a, 2 * MIB);
	int fd = new_file(2 * MIB, 1);
	void *map, *again;

	ASSERT_OK(devbuf_map(b, PROT_READ, &map));
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, 2 * MIB, NULL)); /* though it cannot be written */
	EXPECT_TRUE(is_pattern(map, 2 * MIB, 1));
	EXPECT_EQ(-EBUSY, devbuf_map(b, PROT_READ | PROT_WRITE, &again));
	EXPECT_OK(devbuf_unmap(b));
	EXPECT_EQ(-EINVAL, devbuf_unmap(b));
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, 2 * MIB, NULL));
	EXPECT_EQ(-EINVAL, devbuf_unmap(b));
	ASSERT_OK(devbuf_map(b, PROT_READ | PROT_WRITE, &map));
	devbuf_unref(b);
	close(fd);
}

/* --- arguments -------------------------------------------------------------------------------- */

TEST_F(files, options)
{
	struct {
		struct devbuf_file_io io;
		size_t more;
	} newer = { DEVBUF_FILE_IO_INIT, 0 };
	struct devbuf *b = new_buffer(self->a, 10);
	int fd = new_file(10, 1);

	newer.io.size = sizeof(newer);
	newer.io.nbytes_direct = 77; /* what the library writes need not be set */
	EXPECT_OK(devbuf_read_file(b, 0, fd, 0, 10, &newer.io));
	EXPECT_EQ(10, newer.io.nbytes_done);
	EXPECT_EQ(0, newer.io.nbytes_direct);
	EXPECT_EQ(sizeof(newer), newer.io.size);
	newer.more = 1;
	EXPECT_EQ(-E2BIG, devbuf_read_file(b, 0, fd, 0, 10, &newer.io));
	newer.io.size = sizeof(newer.io) - 1;
	EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, 0, 10, &newer.io));
	newer.io.size = sizeof(newer.io);
	newer.io.flags = 2;
	EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, 0, 10, &newer.io));
	EXPECT_SAID("0x2");
	close(fd);
	devbuf_unref(b);
}

TEST_F(files, descriptors)
{
	struct devbuf *b = new_buffer(self->a, self->page), *n = NULL;
	int fd = open(".", O_RDONLY | O_CLOEXEC), pipes[2];
	char path[64];

	EXPECT_EQ(-EISDIR, devbuf_read_file(b, 0, fd, 0, 1, NULL));
	EXPECT_EQ(-EBADF, devbuf_write_file(b, 0, fd, 0, 1, NULL));
	EXPECT_SAID("not open for writing");
	close(fd);
	EXPECT_EQ(-EBADF, devbuf_read_file(b, 0, fd, 0, 1, NULL));
	EXPECT_SAID("is not open");
	EXPECT_EQ(-EBADF, devbuf_write_file(b, 0, -1, 0, 1, NULL));

	fd = new_file(self->page, 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, -1, 1, NULL));
	EXPECT_EQ(-EOVERFLOW, devbuf_write_file(b, 0, fd, INT64_MAX, 2, NULL));
	EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, devbuf_write_file(b, 0, fd, 0, self->page + 1, NULL));
	EXPECT_EQ(-EINVAL, devbuf_read_file(NULL, 0, fd, 0, 1, NULL));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_APPEND));
	EXPECT_EQ(-EINVAL, devbuf_write_file(b, 0, fd, 0, 1, NULL));
	EXPECT_SAID("open for appending");
	EXPECT_OK(devbuf_read_file(b, 0, fd, 0, 1, NULL));
	pipes[0] = open(path, O_WRONLY | O_CLOEXEC);
	EXPECT_EQ(-EBADF, devbuf_read_file(b, 0, pipes[0], 0, 1, NULL));
	EXPECT_SAID("not open for reading");
	close(pipes[0]);
	pipes[0] = open(path, O_PATH | O_CLOEXEC);
	EXPECT_EQ(-EBADF, devbuf_read_file(b, 0, pipes[0], 0, self->page, NULL));
	close(pipes[0]);

	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	EXPECT_EQ(-ESPIPE, devbuf_read_file(b, 0, pipes[0], 0, 1, NULL));
	EXPECT_EQ(-ESPIPE, devbuf_write_file(b, 0, pipes[1], 0, 1, NULL));
	ASSERT_OK(devbuf_create(self->a, "SYSTEM", 1, DEVBUF_UINT8, NULL, &n));
	EXPECT_EQ(-ENODATA, devbuf_read_file(n, 0, fd, 0, 1, NULL));
	EXPECT_EQ(-ENODATA, devbuf_write_file(n, 0, pipes[1], 0, 1, NULL));
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	devbuf_unref(n);
	devbuf_unref(b);
}

/* --- a disk without a file system ------------------------------------------------------------- */

TEST_F(files, a_disk)
{
	size_t nbytes = 9 * MIB;
	int64_t at = 48 * MIB; /* behind the file system */
	struct devbuf *b = new_buffer(self->a, nbytes), *c = new_buffer(self->a, nbytes);
	int file = new_file(nbytes, 1), fd = -1;
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	if (is_scratch_disk("nvme0n1", "scratch"))
		fd = open(DISK, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		SKIP(goto out, "no scratch disk");
	ASSERT_OK(devbuf_read_file(b, 0, file, 0, nbytes, NULL));
	ASSERT_OK(devbuf_write_file(b, 0, fd, at, nbytes, &io));
	EXPECT_EQ(nbytes, io.nbytes_direct);
	ASSERT_OK(devbuf_read_file(c, 0, fd, at, nbytes - 1, &io));
	EXPECT_TRUE(holds_file(c, 0, 0, nbytes - 1, 1));
	EXPECT_LT(nbytes - 4096, io.nbytes_direct);
	EXPECT_EQ(-EINVAL, devbuf_read_file(c, 0, fd, 60 * MIB, nbytes, &io));
	EXPECT_EQ(4 * MIB, io.nbytes_done);
	close(fd);
out:
	close(file);
	devbuf_unref(c);
	devbuf_unref(b);
}

int main(int argc, char **argv)
{
	return run_variant(argc, argv);
}
