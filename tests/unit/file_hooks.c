// SPDX-License-Identifier: GPL-2.0-only
/* Files, and allocators of the caller's own: the copy_from_disk hook, mappings, and neither. */
#include "files.h"
#include "mine.h"

#include <signal.h>
#include <sys/resource.h>

/* The poor one has neither the hook nor mappings. */
TEST_F(own, through_host_memory)
{
	size_t nbytes = 3 * MIB + 7;
	struct devbuf *b = new_allocated(self->poor, nbytes);
	struct devbuf *c = new_allocated(self->poor, nbytes);
	int fd = new_file(nbytes, 1);
	struct watch w = { 0 };
	struct devbuf_file_io io = watched(&w);

	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	EXPECT_EQ(nbytes, io.nbytes_done);
	EXPECT_EQ(0, io.nbytes_direct);
	EXPECT_EQ(4, w.calls);
	EXPECT_FALSE(w.backwards);
	ASSERT_EQ(0, ftruncate(fd, 0));
	io.progress = NULL;
	ASSERT_OK(devbuf_write_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_EQ(nbytes, io.nbytes_done);
	ASSERT_OK(devbuf_read_file(c, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(c, 0, 0, nbytes, 1));

	ASSERT_EQ(0, ftruncate(fd, 2 * MIB + 99));
	EXPECT_EQ(-EINVAL, devbuf_read_file(c, 0, fd, 0, nbytes, &io));
	EXPECT_SAID("ends after 2097251 of the");
	EXPECT_EQ(2 * MIB + 99, io.nbytes_done);
	w = (struct watch){ .act_at = MIB, .answer = 1 };
	io = watched(&w);
	EXPECT_EQ(-ECANCELED, devbuf_write_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_EQ(MIB, io.nbytes_done);
	close(fd);
	devbuf_unref(c);
	devbuf_unref(b);
}

TEST_F(own, through_host_memory_with_errors)
{
	const struct rlimit limit = { 2 * MIB + 5, RLIM_INFINITY };
	char *memory = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct devbuf *b = new_allocated(self->poor, 3 * MIB);
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	/* The memory of a process is a file with holes, in which reading fails with EIO. */
	ASSERT_NE(MAP_FAILED, memory);
	fill_pattern(memory, 3 * MIB, 1);
	ASSERT_EQ(0, munmap(memory + 2 * MIB, MIB));
	EXPECT_EQ(-EIO, devbuf_read_file(b, 0, fd, (intptr_t)memory + 5, 3 * MIB - 5, &io));
	EXPECT_EQ(2 * MIB - 5, io.nbytes_done);
	EXPECT_SAID("cannot read 1048576 bytes at");
	EXPECT_TRUE(holds_file(b, 0, 5, io.nbytes_done, 1));
	munmap(memory, 2 * MIB);
	close(fd);

	fd = new_empty_file();
	signal(SIGXFSZ, SIG_IGN);
	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
	EXPECT_EQ(-EFBIG, devbuf_write_file(b, 0, fd, 0, 3 * MIB, &io));
	EXPECT_EQ(2 * MIB + 5, io.nbytes_done);
	EXPECT_SAID("cannot write 1048571 bytes at 2097157 of the file");

	self->mine.error = -ENODEV;
	self->mine.fail_copies = true;
	EXPECT_EQ(-ENODEV, devbuf_read_file(b, 0, fd, 0, 2 * MIB, &io));
	EXPECT_EQ(0, io.nbytes_done);
	EXPECT_EQ(-ENODEV, devbuf_write_file(b, 0, fd, 0, 2 * MIB, &io));
	EXPECT_EQ(0, io.nbytes_done);
	close(fd);
	devbuf_unref(b);
}

/* The hook reads in pieces of 64 MiB, so that there is progress to tell. */
TEST_F(own, by_the_hook)
{
	size_t nbytes = 130 * MIB;
	struct devbuf *b = new_allocated(self->a, nbytes);
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct watch w = { 0 };
	struct devbuf_file_io io = watched(&w);

	ASSERT_EQ(0, ftruncate(fd, (off_t)nbytes));
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_EQ(3, self->mine.disks);
	EXPECT_EQ(3, w.calls);
	EXPECT_EQ(nbytes, io.nbytes_done);
	EXPECT_EQ(0, io.nbytes_direct);
	EXPECT_EQ(0, self->mine.maps);
	w = (struct watch){ .act_at = 1, .answer = 1 };
	EXPECT_EQ(-ECANCELED, devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_EQ(64 * MIB, io.nbytes_done);
	ASSERT_EQ(0, ftruncate(fd, 70 * MIB));
	w = (struct watch){ 0 };
	EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_EQ(70 * MIB, io.nbytes_done);
	close(fd);
	devbuf_unref(b);
}

/* A hook that leaves it to the library: by a mapping, which is gone afterwards. */
TEST_F(own, by_a_mapping)
{
	size_t nbytes = MIB;
	struct devbuf *b = new_allocated(self->a, nbytes);
	int fd = new_file(nbytes, 1);

	self->mine.disk = -EOPNOTSUPP;
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, NULL));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	EXPECT_EQ(1, self->mine.maps);
	EXPECT_EQ(1, self->mine.unmaps);
	ASSERT_OK(devbuf_write_file(b, 0, fd, 0, nbytes, NULL));
	EXPECT_EQ(2, self->mine.unmaps);
	self->mine.fail_map = true;
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, NULL));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	close(fd);
	devbuf_unref(b);
}

TEST_HARNESS_MAIN
