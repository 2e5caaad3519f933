// SPDX-License-Identifier: GPL-2.0-only
/* A mapping is made of ordinary pages: others can pin them. */
#include "common_ring.h"

#include <sys/uio.h>
#include <sys/prctl.h>

#include "kselftest_harness.h"

#define NBYTES (256 * KIB)

FIXTURE(pinning)
{
	int ctx;
	__u64 id;
	unsigned char *map;
};

FIXTURE_VARIANT(pinning)
{
	__u32 create_flags;
};

FIXTURE_VARIANT_ADD(pinning, cached){ 0 };
FIXTURE_VARIANT_ADD(pinning, uncached){ DEVBUF_CREATE_UNCACHED };

FIXTURE_SETUP(pinning)
{
	__u64 caps;

	self->ctx = new_context();
	caps = capabilities(self->ctx, SYSTEM_DEVICE);
	ASSERT_TRUE(caps & DEVBUF_CAP_PINNABLE);
	if (variant->create_flags && !(caps & DEVBUF_CAP_UNCACHED))
		SKIP(return, SYSTEM_DEVICE " has no uncached memory here");
	self->id = new_allocated_flags(self->ctx, NBYTES, variant->create_flags);
	self->map = new_mapping(self->ctx, self->id, NBYTES, PROT_READ | PROT_WRITE);
}

FIXTURE_TEARDOWN(pinning)
{
	close(self->ctx);
}

/* A second buffer, so that bytes can go from one to the other. */
static unsigned char *another_mapping(int ctx, __u32 create_flags)
{
	return new_mapping(ctx, new_allocated_flags(ctx, NBYTES, create_flags), NBYTES,
			   PROT_READ | PROT_WRITE);
}

TEST_F(pinning, by_direct_io_of_a_disk)
{
	const char *path = scratch_disk();
	unsigned char *other;
	int disk;

	if (!path)
		SKIP(return, "no scratch disk");
	disk = must_libc(open(path, O_RDWR | O_DIRECT | O_CLOEXEC));
	other = another_mapping(self->ctx, variant->create_flags);
	fill(self->map, NBYTES, 1);
	EXPECT_EQ((ssize_t)NBYTES, pwrite(disk, self->map, NBYTES, 0));
	EXPECT_EQ((ssize_t)NBYTES, pread(disk, other, NBYTES, 0));
	EXPECT_TRUE(filled(other, NBYTES, 1));
	/* Inside of the buffer, at no page's beginning. */
	EXPECT_EQ((ssize_t)PAGE, pread(disk, other + 512, PAGE, 2 * PAGE));
	EXPECT_TRUE(filled(other, 512, 1));
	EXPECT_TRUE(filled_from(other + 512, PAGE, 1, 2 * PAGE));
	close(disk);
}

TEST_F(pinning, as_a_registered_buffer_of_io_uring)
{
	int memfd = new_memfd(NBYTES, 1);
	struct io_uring ring;
	const char *reason = new_ring(&ring, self->map, NBYTES);

	if (reason)
		SKIP(return, "%s", reason);
	EXPECT_EQ((int)NBYTES, ring_read(&ring, memfd, self->map, NBYTES));
	EXPECT_TRUE(filled(self->map, NBYTES, 1));
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));

	fill(self->map, NBYTES, 2);
	EXPECT_EQ((int)NBYTES, ring_write(&ring, memfd, self->map, NBYTES));
	EXPECT_EQ((ssize_t)NBYTES, pread(memfd, self->map, NBYTES, 0));
	EXPECT_TRUE(filled(self->map, NBYTES, 2));
	io_uring_queue_exit(&ring);
	close(memfd);
}

/* The ring's pages are the buffer's, though buffer, mapping and context are gone. */
TEST_F(pinning, as_a_registered_buffer_that_outlives_everything_else)
{
	int memfd = new_memfd(NBYTES, 0);
	unsigned char *contents;
	struct io_uring ring;
	const char *reason = new_ring(&ring, self->map, NBYTES);

	if (reason)
		SKIP(return, "%s", reason);
	fill(self->map, NBYTES, 1);
	must_libc(munmap(self->map, NBYTES));
	close(self->ctx);
	self->ctx = new_context();
	for (int i = 0; i < 8; i++)
		buffer_fill(self->ctx, new_allocated(self->ctx, NBYTES), NBYTES, 2);
	EXPECT_EQ((int)NBYTES, ring_write(&ring, memfd, self->map, NBYTES));
	contents = mmap(NULL, NBYTES, PROT_READ, MAP_SHARED, memfd, 0);
	ASSERT_NE(MAP_FAILED, contents);
	EXPECT_TRUE(filled(contents, NBYTES, 1));
	io_uring_queue_exit(&ring);
	close(memfd);
}

TEST_F(pinning, by_vmsplice_into_a_pipe)
{
	struct iovec vector = { .iov_base = self->map, .iov_len = 4 * PAGE };
	unsigned char *read_back = new_memory(4 * PAGE);
	int fds[2];

	must_libc(pipe2(fds, O_CLOEXEC));
	fill(self->map, NBYTES, 1);
	EXPECT_EQ((ssize_t)(4 * PAGE), vmsplice(fds[1], &vector, 1, 0));
	must_libc(munmap(self->map, NBYTES));
	must(do_destroy(self->ctx, self->id));
	buffer_fill(self->ctx, new_allocated(self->ctx, NBYTES), NBYTES, 2);
	EXPECT_EQ((ssize_t)(4 * PAGE), read(fds[0], read_back, 4 * PAGE));
	EXPECT_TRUE(filled(read_back, 4 * PAGE, 1));
	close(fds[0]);
	close(fds[1]);
}

TEST_F(pinning, by_a_read_and_write_of_a_pipe)
{
	unsigned char *other = another_mapping(self->ctx, variant->create_flags);
	int fds[2];

	must_libc(pipe2(fds, O_CLOEXEC));
	fill(self->map, PAGE, 1);
	EXPECT_EQ((ssize_t)PAGE, write(fds[1], self->map, PAGE));
	EXPECT_EQ((ssize_t)PAGE, read(fds[0], other, PAGE));
	EXPECT_TRUE(filled(other, PAGE, 1));
	close(fds[0]);
	close(fds[1]);
}

TEST_F(pinning, by_process_vm_readv_of_another_process)
{
	unsigned char *copy = new_memory(NBYTES);
	struct iovec local = { .iov_base = copy, .iov_len = NBYTES };
	struct iovec remote = { .iov_base = self->map, .iov_len = NBYTES };
	int sockets[2];
	pid_t child;

	new_socket_pair(sockets);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		fill(self->map, NBYTES, 1);
		signal_peer(sockets[1]);
		await_peer(sockets[1]);
		_exit(0);
	}
	await_peer(sockets[0]);
	EXPECT_EQ((ssize_t)NBYTES, process_vm_readv(child, &local, 1, &remote, 1, 0));
	EXPECT_TRUE(filled(copy, NBYTES, 1));
	signal_peer(sockets[0]);
	EXPECT_EQ(0, wait_for(child));
}

TEST_F(pinning, by_mlock)
{
	fill(self->map, NBYTES, 1);
	EXPECT_EQ(0, mlock(self->map, NBYTES));
	EXPECT_TRUE(filled(self->map, NBYTES, 1));
	EXPECT_EQ(0, munlock(self->map, NBYTES));
	EXPECT_TRUE(filled(self->map, NBYTES, 1));
}

TEST_F(pinning, by_mlockall_before_the_mapping_is_made)
{
	unsigned char *map;

	must_libc(mlockall(MCL_FUTURE));
	map = another_mapping(self->ctx, variant->create_flags);
	EXPECT_TRUE(all_zero(map, NBYTES));
	munlockall();
}

TEST_HARNESS_MAIN
