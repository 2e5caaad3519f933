// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that fail in the middle, and ways that are not there: no io_uring, no direct I/O. In each case
 * the count is exact.
 *
 * file_fail            on the host allocator
 * file_fail driver     on the driver
 *
 * pread(), pwrite() and open() are defined here, so that the library's calls come here; where
 * liburing is a shared library, so does what it submits.
 */
#include "files.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* What the file of the test does wrong. Zero: nothing. */
static struct {
	bool no_direct; /* open() refuses O_DIRECT */
	int error; /* an access that begins at error_at or behind fails */
	off_t error_at; /* one that reaches it is short, unless it is direct */
	bool direct_only; /* and only if it is direct */
	int interruptions; /* so many calls fail with EINTR first */
	size_t at_most; /* bytes of one access; 0: any */
	int directs; /* open() with O_DIRECT */
} wrong;

static ssize_t go_wrong(int fd, size_t *nbytes, off_t at)
{
	bool direct = fcntl(fd, F_GETFL) & O_DIRECT;

	if (wrong.interruptions) {
		wrong.interruptions--;
		errno = EINTR;
		return -1;
	}
	if (wrong.at_most && *nbytes > wrong.at_most)
		*nbytes = wrong.at_most;
	if (!wrong.error || (wrong.direct_only && !direct) ||
	    at + (off_t)*nbytes <= wrong.error_at)
		return 0;
	if (at < wrong.error_at && !direct) {
		*nbytes = (size_t)(wrong.error_at - at);
		return 0;
	}
	errno = wrong.error;
	return -1;
}

ssize_t pread(int fd, void *bytes, size_t nbytes, off_t at)
{
	return go_wrong(fd, &nbytes, at) ? -1 : syscall(SYS_pread64, fd, bytes, nbytes, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t nbytes, off_t at)
{
	return go_wrong(fd, &nbytes, at) ? -1 : syscall(SYS_pwrite64, fd, bytes, nbytes, at);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	if (flags & O_DIRECT) {
		wrong.directs++;
		if (wrong.no_direct) {
			errno = EINVAL;
			return -1;
		}
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/*
 * For the rest of this test's process: one more file descriptor can be had, which is that for direct
 * I/O; a ring finds none. As where io_uring is forbidden, but on any kernel.
 */
static void forbid_io_uring(void)
{
	int next = dup(0);
	struct rlimit limit = { (rlim_t)next + 1, (rlim_t)next + 1 };

	close(next);
	if (setrlimit(RLIMIT_NOFILE, &limit))
		abort();
}

/* --- without io_uring, without direct I/O ----------------------------------------------------- */

TEST_F(files, without_io_uring)
{
	size_t nbytes = 20 * MIB + 100;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);
	struct watch w = { 0 };
	struct devbuf_file_io io = watched(&w);

	forbid_io_uring();
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	EXPECT_EQ(nbytes, io.nbytes_done);
	EXPECT_EQ(whole_blocks(direct_alignment(fd), 0, nbytes), io.nbytes_direct);
	EXPECT_FALSE(w.backwards);
	ASSERT_OK(devbuf_write_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_EQ(whole_blocks(direct_alignment(fd), 0, nbytes), io.nbytes_direct);
	EXPECT_EQ(-EINVAL, devbuf_read_file(b, 0, fd, MIB, nbytes, &io));
	EXPECT_EQ(nbytes - MIB, io.nbytes_done);
	close(fd);
	devbuf_unref(b);
}

TEST_F(files, without_direct_io)
{
	size_t nbytes = 3 * MIB + 100;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	wrong.no_direct = true;
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	EXPECT_EQ(nbytes, io.nbytes_done);
	EXPECT_EQ(0, io.nbytes_direct);
	EXPECT_EQ(direct_alignment(fd) ? 1 : 0, wrong.directs);
	close(fd);
	devbuf_unref(b);
}

/* It can be opened for it, but then refuses. */
TEST_F(files, direct_io_that_is_refused)
{
	static const int errors[] = { EINVAL, EFAULT, EOPNOTSUPP };
	size_t nbytes = 12 * MIB + 100;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);

	forbid_io_uring();
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

		wrong.error = errors[i];
		wrong.direct_only = true;
		wrong.error_at = 9 * MIB; /* from the second access on */
		ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
		EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
		EXPECT_EQ(nbytes, io.nbytes_done);
		EXPECT_EQ(direct_alignment(fd) ? 8 * MIB : 0, io.nbytes_direct);
	}
	close(fd);
	devbuf_unref(b);
}

/* --- errors in the middle --------------------------------------------------------------------- */

TEST_F(files, an_error_in_the_page_cache)
{
	size_t nbytes = 5 * MIB;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);

	wrong.error = EIO;
	wrong.error_at = 3 * MIB + 4321;
	for (int write = 0; write < 2; write++) {
		struct watch w = { 0 };
		struct devbuf_file_io io = watched(&w);

		io.flags = DEVBUF_FILE_BUFFERED;
		EXPECT_EQ(-EIO, write ? devbuf_write_file(b, 0, fd, 0, nbytes, &io) :
					devbuf_read_file(b, 0, fd, 0, nbytes, &io));
		EXPECT_EQ(3 * MIB + 4321, io.nbytes_done);
		EXPECT_EQ(io.nbytes_done, w.last);
		EXPECT_EQ(0, io.nbytes_direct);
		EXPECT_SAID("2092831 bytes at 3150049 of the file"); /* the rest, and where */
		EXPECT_TRUE(holds_file(b, 0, 0, io.nbytes_done, 1));
	}
	close(fd);
	devbuf_unref(b);
}

TEST_F(files, an_error_of_direct_io)
{
	static const int errors[] = { EIO, ENODATA }; /* that is what a bad sector gives */
	size_t nbytes = 24 * MIB;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);

	forbid_io_uring();
	if (!direct_alignment(fd))
		SKIP(goto out, "no direct I/O here");
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

		wrong.error = errors[i];
		wrong.error_at = 12 * MIB;
		EXPECT_EQ(-EIO, devbuf_read_file(b, 0, fd, 0, nbytes, &io));
		EXPECT_EQ(8 * MIB, io.nbytes_done);
		EXPECT_EQ(8 * MIB, io.nbytes_direct);
		EXPECT_SAID("16777216 bytes at 8388608 of the file");
		EXPECT_TRUE(holds_file(b, 0, 0, io.nbytes_done, 1));
	}
out:
	close(fd);
	devbuf_unref(b);
}

TEST_F(files, short_and_interrupted)
{
	size_t nbytes = 3 * MIB + 100;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	forbid_io_uring();
	wrong.interruptions = 3;
	wrong.at_most = 64 * 1024;
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	EXPECT_EQ(nbytes, io.nbytes_done);
	wrong.interruptions = 3;
	ASSERT_OK(devbuf_write_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_EQ(nbytes, io.nbytes_done);
	wrong.at_most = 12345; /* a direct access that ends within a block is none to go on from */
	ASSERT_OK(devbuf_read_file(b, 0, fd, 0, nbytes, &io));
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
	close(fd);
	devbuf_unref(b);
}

/* The memory of a process is a file with holes, in which reading fails with EIO. */
TEST_F(files, an_error_of_a_real_file)
{
	char *memory = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct devbuf *b = new_buffer(self->a, 3 * MIB);
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	ASSERT_NE(MAP_FAILED, memory);
	fill_pattern(memory, 3 * MIB, 1);
	ASSERT_EQ(0, munmap(memory + 2 * MIB, MIB));
	EXPECT_EQ(-EIO, devbuf_read_file(b, 0, fd, (intptr_t)memory + 5, 3 * MIB - 5, &io));
	EXPECT_EQ(2 * MIB - 5, io.nbytes_done);
	EXPECT_TRUE(holds_file(b, 0, 5, io.nbytes_done, 1));
	munmap(memory, 2 * MIB);
	close(fd);
	devbuf_unref(b);
}

TEST_F(files, no_space)
{
	struct devbuf *b = new_buffer(self->a, MIB);
	int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

	EXPECT_EQ(-ENOSPC, devbuf_write_file(b, 0, fd, 0, MIB, &io));
	EXPECT_EQ(0, io.nbytes_done);
	close(fd);
	devbuf_unref(b);
}

/* The file may grow to a limit: what fits is written, and counted. */
TEST_F(files, over_a_limit)
{
	const struct rlimit limit = { 9 * MIB + 12345, RLIM_INFINITY };
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct devbuf *b = new_buffer(self->a, 20 * MIB);

	signal(SIGXFSZ, SIG_IGN);
	for (int buffered = 0; buffered < 2; buffered++) {
		struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;
		int fd = new_empty_file();

		io.flags = buffered ? DEVBUF_FILE_BUFFERED : 0;
		ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
		EXPECT_EQ(-EFBIG, devbuf_write_file(b, 0, fd, 0, 20 * MIB, &io));
		EXPECT_EQ(limit.rlim_cur, io.nbytes_done);
		setrlimit(RLIMIT_FSIZE, &none);
		close(fd);
	}
	devbuf_unref(b);
}

/* A buffer in memory of the caller's, of which a part cannot be touched. */
TEST_F(files, memory_with_a_hole)
{
	struct devbuf_spec spec = DEVBUF_SPEC_INIT;
	char *memory = mmap(NULL, 5 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct devbuf *b = NULL;
	int fd = new_file(5 * MIB, 1);

	if (variant->driver)
		SKIP(goto out, "the driver pins it all");
	spec.external_ptr = memory;
	ASSERT_OK(devbuf_create(self->a, "USER", 5 * MIB, DEVBUF_UINT8, &spec, &b));
	ASSERT_OK(devbuf_allocate(b));
	ASSERT_EQ(0, mprotect(memory + 3 * MIB + self->page, self->page, PROT_NONE));
	for (int buffered = 0; buffered < 2; buffered++) {
		struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

		io.flags = buffered ? DEVBUF_FILE_BUFFERED : 0;
		EXPECT_EQ(-EFAULT, devbuf_read_file(b, 0, fd, 0, 5 * MIB, &io));
		EXPECT_EQ(3 * MIB + self->page, io.nbytes_done);
		EXPECT_TRUE(is_pattern(memory, io.nbytes_done, 1));
	}
	devbuf_unref(b);
out:
	close(fd);
	munmap(memory, 5 * MIB);
}

/* A disk of the VM's of which the sector at BAD_AT cannot be read: tests/vm/run -e. */
#define BAD_AT (10 * MIB + 65536)

TEST_F(files, a_disk_that_fails)
{
	struct devbuf *b = new_buffer(self->a, 16 * MIB);
	int fd = -1;

	if (is_scratch_disk("nvme1n1", "failing"))
		fd = open("/dev/nvme1n1", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		SKIP(goto out, "no disk that fails");
	for (int buffered = 0; buffered < 2; buffered++) {
		struct devbuf_file_io io = DEVBUF_FILE_IO_INIT;

		io.flags = buffered ? DEVBUF_FILE_BUFFERED : 0;
		EXPECT_EQ(-EIO, devbuf_read_file(b, 0, fd, 0, 16 * MIB, &io));
		EXPECT_EQ(buffered ? BAD_AT : 10 * MIB, io.nbytes_done); /* the piece is lost */
		EXPECT_EQ(buffered ? 0 : 10 * MIB, io.nbytes_direct);
	}
	close(fd);
out:
	devbuf_unref(b);
}

/* --- what io_uring completes with ------------------------------------------------------------- */

#ifdef __SANITIZE_ADDRESS__ /* else it is linked statically */
#include <dlfcn.h>
#include <liburing.h>

static struct {
	uint64_t at; /* accesses that begin at this byte of the file, the first @times of them … */
	int times;
	int result; /* … complete with this */
	bool shorten; /* … or are made so much shorter */
	__u64 data[4]; /* those that are on their way */
	int nr;
} ring_wrong;

static void look_at_submissions(struct io_uring *ring)
{
	for (unsigned int i = *ring->sq.khead; i != ring->sq.sqe_tail; i++) {
		struct io_uring_sqe *sqe = &ring->sq.sqes[i & *ring->sq.kring_mask];

		if (ring_wrong.nr >= ring_wrong.times || sqe->off != ring_wrong.at)
			continue;
		if (ring_wrong.shorten)
			sqe->len = (unsigned int)ring_wrong.result;
		ring_wrong.data[ring_wrong.nr++] = sqe->user_data;
	}
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned int wait_nr)
{
	int (*real)(struct io_uring *, unsigned int) =
		(int (*)(struct io_uring *, unsigned int))dlsym(RTLD_NEXT, __func__);
	struct io_uring_cqe *cqe;
	unsigned int head;
	int rc;

	look_at_submissions(ring);
	rc = real(ring, wait_nr);
	io_uring_for_each_cqe(ring, head, cqe)
	{
		for (int i = 0; i < ring_wrong.nr && !ring_wrong.shorten; i++) {
			if (ring_wrong.data[i] == cqe->user_data) {
				cqe->res = ring_wrong.result;
				ring_wrong.data[i] = 0;
			}
		}
	}
	return rc;
}

static int read_by_ring(struct devbuf *b, int fd, struct devbuf_file_io *io)
{
	ring_wrong.nr = 0;
	*io = (struct devbuf_file_io)DEVBUF_FILE_IO_INIT;
	return devbuf_read_file(b, 0, fd, 0, devbuf_nbytes(b), io);
}

TEST_F(files, what_io_uring_says)
{
	size_t nbytes = 24 * MIB;
	struct devbuf *b = new_buffer(self->a, nbytes);
	int fd = new_file(nbytes, 1);
	struct devbuf_file_io io;

	if (!direct_alignment(fd))
		SKIP(goto out, "no direct I/O here");
	ring_wrong.at = 11 * MIB;
	ring_wrong.times = 1;
	ring_wrong.result = -EIO;
	EXPECT_EQ(-EIO, read_by_ring(b, fd, &io));
	EXPECT_EQ(1, ring_wrong.nr);
	EXPECT_EQ(11 * MIB, io.nbytes_done);
	EXPECT_EQ(11 * MIB, io.nbytes_direct);
	EXPECT_SAID("at 11534336 of the file");
	EXPECT_TRUE(holds_file(b, 0, 0, io.nbytes_done, 1));

	ring_wrong.result = -EINVAL; /* no direct I/O from here on */
	EXPECT_OK(read_by_ring(b, fd, &io));
	EXPECT_EQ(nbytes, io.nbytes_done);
	EXPECT_EQ(11 * MIB, io.nbytes_direct);
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));

	ring_wrong.result = -EINTR; /* again */
	ring_wrong.times = 3;
	EXPECT_OK(read_by_ring(b, fd, &io));
	EXPECT_EQ(3, ring_wrong.nr);
	EXPECT_EQ(nbytes, io.nbytes_direct);

	ring_wrong.result = 0; /* the end, says direct I/O; it is not */
	ring_wrong.times = 1;
	EXPECT_OK(read_by_ring(b, fd, &io));
	EXPECT_EQ(nbytes - MIB, io.nbytes_direct);
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));

	ring_wrong.shorten = true;
	ring_wrong.result = 65536; /* short, but whole blocks: goes on directly */
	EXPECT_OK(read_by_ring(b, fd, &io));
	EXPECT_EQ(1, ring_wrong.nr);
	EXPECT_EQ(nbytes, io.nbytes_direct);
	EXPECT_TRUE(holds_file(b, 0, 0, nbytes, 1));
out:
	close(fd);
	devbuf_unref(b);
}
#endif

int main(int argc, char **argv)
{
	return run_variant(argc, argv);
}
