// SPDX-License-Identifier: GPL-2.0-only
/*
 * USER:0 on every kind of memory that a caller can have. The page cache of a disk stands for files
 * that are written back.
 */
#include "common.h"
#include "kselftest_harness.h"

#define NBYTES (4 * 4096u)

FIXTURE(kind)
{
	int ctx;
	/* Holds the pattern 1. */
	unsigned char *memory;
};

FIXTURE_VARIANT(kind)
{
	/* Gives NULL when this machine has none. */
	unsigned char *(*make)(void);
	bool read_only;
};

static unsigned char *map(int fd, int prot, int flags)
{
	unsigned char *memory = mmap(NULL, NBYTES, prot, flags, fd, 0);

	must_libc(memory == MAP_FAILED ? -1 : 0);
	return memory;
}

static unsigned char *make_anonymous(void)
{
	unsigned char *memory = new_memory(NBYTES);

	fill(memory, NBYTES, 1);
	return memory;
}

static unsigned char *make_anonymous_read_only(void)
{
	unsigned char *memory = make_anonymous();

	must_libc(mprotect(memory, NBYTES, PROT_READ));
	return memory;
}

static unsigned char *make_shared_anonymous(void)
{
	unsigned char *memory = map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);

	fill(memory, NBYTES, 1);
	return memory;
}

static unsigned char *make_huge_page(void)
{
	unsigned char *memory = new_memory(4 * MIB);

	memory += 2 * MIB - (uintptr_t)memory % (2 * MIB);
	madvise(memory, 2 * MIB, MADV_HUGEPAGE);
	fill(memory, NBYTES, 1);
	return memory;
}

static unsigned char *make_memfd_shared(void)
{
	return map(new_memfd(NBYTES, 1), PROT_READ | PROT_WRITE, MAP_SHARED);
}

static unsigned char *make_memfd_shared_read_only(void)
{
	return map(new_memfd(NBYTES, 1), PROT_READ, MAP_SHARED);
}

static unsigned char *make_memfd_private(void)
{
	return map(new_memfd(NBYTES, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static unsigned char *make_memfd_private_read_only(void)
{
	return map(new_memfd(NBYTES, 1), PROT_READ, MAP_PRIVATE);
}

static unsigned char *make_devbuf_mapping(void)
{
	int ctx = new_context();
	unsigned char *memory =
		new_mapping(ctx, new_allocated(ctx, NBYTES), NBYTES, PROT_READ | PROT_WRITE);

	fill(memory, NBYTES, 1);
	return memory;
}

static unsigned char *make_disk(int prot, int flags)
{
	const char *path = scratch_disk();
	unsigned char *memory;
	int fd;

	if (!path)
		return NULL;
	fd = must_libc(open(path, O_RDWR | O_CLOEXEC));
	memory = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	fill(memory, NBYTES, 1);
	memory = map(fd, prot, flags);
	close(fd);
	return memory;
}

static unsigned char *make_disk_private(void)
{
	return make_disk(PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

FIXTURE_VARIANT_ADD(kind, anonymous){ make_anonymous, false };
FIXTURE_VARIANT_ADD(kind, anonymous_read_only){ make_anonymous_read_only, true };
FIXTURE_VARIANT_ADD(kind, shared_anonymous){ make_shared_anonymous, false };
FIXTURE_VARIANT_ADD(kind, huge_page){ make_huge_page, false };
FIXTURE_VARIANT_ADD(kind, memfd_shared){ make_memfd_shared, false };
FIXTURE_VARIANT_ADD(kind, memfd_shared_read_only){ make_memfd_shared_read_only, true };
FIXTURE_VARIANT_ADD(kind, memfd_private){ make_memfd_private, false };
FIXTURE_VARIANT_ADD(kind, memfd_private_read_only){ make_memfd_private_read_only, true };
FIXTURE_VARIANT_ADD(kind, devbuf_mapping){ make_devbuf_mapping, false };
FIXTURE_VARIANT_ADD(kind, disk_private){ make_disk_private, false };

FIXTURE_SETUP(kind)
{
	self->ctx = new_context();
	self->memory = variant->make();
	if (!self->memory)
		SKIP(return, "no scratch disk");
}

FIXTURE_TEARDOWN(kind)
{
	close(self->ctx);
}

TEST_F(kind, is_shown_by_copyout)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);

	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
	EXPECT_TRUE(filled(self->memory, NBYTES, 1));
}

TEST_F(kind, shows_what_the_caller_writes_afterwards)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);

	if (variant->read_only)
		return;
	fill(self->memory, NBYTES, 2);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 2));
}

TEST_F(kind, tells_whether_it_can_be_written)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);

	EXPECT_EQ(variant->read_only ? DEVBUF_STATE_READ_ONLY : 0,
		  query(self->ctx, id).out_state & DEVBUF_STATE_READ_ONLY);
}

TEST_F(kind, is_written_by_copyin_if_it_can_be)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);

	EXPECT_EQ(variant->read_only ? -EACCES : 0, do_copyin(self->ctx, id, 5, "x", 1));
	EXPECT_EQ(variant->read_only ? 0 : 'x', self->memory[5] == 'x' ? 'x' : 0);
}

TEST_F(kind, is_written_by_transfer_if_it_can_be)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);
	__u64 source = new_allocated(self->ctx, NBYTES);

	EXPECT_EQ(variant->read_only ? -EACCES : 0,
		  do_transfer(self->ctx, id, 0, source, 0, NBYTES));
	EXPECT_TRUE(variant->read_only ? filled(self->memory, NBYTES, 1) :
					 all_zero(self->memory, NBYTES));
}

TEST_F(kind, is_exported_writable_if_it_can_be)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);
	int ret = do_export(self->ctx, id, DEVBUF_EXPORT_WRITE);

	EXPECT_EQ(variant->read_only ? -EACCES : 0, ret < 0 ? ret : 0);
}

TEST_F(kind, is_exported_for_reading)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);
	int other = new_context();

	give(self->ctx, id, 0, other);
	EXPECT_TRUE(buffer_filled(other, id, 0, NBYTES, 1));
	close(other);
}

TEST_F(kind, stays_when_it_is_unmapped)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);

	must_libc(munmap(self->memory, NBYTES));
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
}

/* --- shared mappings of files that are written back ------------------------------------------- */

FIXTURE(written_back)
{
	int ctx;
	unsigned char *memory;
};

FIXTURE_VARIANT(written_back)
{
	int prot;
};

FIXTURE_VARIANT_ADD(written_back, writable){ PROT_READ | PROT_WRITE };
FIXTURE_VARIANT_ADD(written_back, read_only){ PROT_READ };

FIXTURE_SETUP(written_back)
{
	self->ctx = new_context();
	self->memory = make_disk(variant->prot, MAP_SHARED);
	if (!self->memory)
		SKIP(return, "no scratch disk");
}

FIXTURE_TEARDOWN(written_back)
{
	close(self->ctx);
}

TEST_F(written_back, file_gives_a_buffer_that_is_read_only)
{
	__u64 id;
	int ret;

	must(do_create_user(self->ctx, self->memory, NBYTES, &id));
	ret = do_allocate(self->ctx, id);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "this kernel cannot pin files that are written back");
	ASSERT_EQ(0, ret);
	EXPECT_TRUE(query(self->ctx, id).out_state & DEVBUF_STATE_READ_ONLY);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
	EXPECT_EQ(-EACCES, do_copyin(self->ctx, id, 0, "x", 1));
	EXPECT_EQ(-EACCES, do_export(self->ctx, id, DEVBUF_EXPORT_WRITE));
	if (variant->prot & PROT_WRITE) {
		fill(self->memory, NBYTES, 2);
		EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 2));
	}
}

/* --- memory that changes ---------------------------------------------------------------------- */

FIXTURE(changing)
{
	int ctx;
};

FIXTURE_SETUP(changing)
{
	self->ctx = new_context();
}

FIXTURE_TEARDOWN(changing)
{
	close(self->ctx);
}

/* What is pinned for reading is the caller's own page, not one that it shares with others. */
TEST_F(changing, read_only_memory_that_the_caller_makes_writable)
{
	unsigned char *memory = make_anonymous_read_only();
	__u64 id = new_user_buffer(self->ctx, memory, NBYTES);

	must_libc(mprotect(memory, NBYTES, PROT_READ | PROT_WRITE));
	fill(memory, NBYTES, 2);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 2));
	EXPECT_EQ(-EACCES, do_copyin(self->ctx, id, 0, "x", 1));
}

TEST_F(changing, read_only_memory_that_was_shared_with_a_child)
{
	unsigned char *memory = make_anonymous_read_only();
	int sockets[2];
	pid_t child;
	__u64 id;

	new_socket_pair(sockets);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		await_peer(sockets[1]);
		_exit(filled(memory, NBYTES, 1) ? 0 : 1);
	}
	id = new_user_buffer(self->ctx, memory, NBYTES);
	must_libc(mprotect(memory, NBYTES, PROT_READ | PROT_WRITE));
	fill(memory, NBYTES, 2);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 2));
	signal_peer(sockets[0]);
	EXPECT_EQ(0, wait_for(child));
}

TEST_F(changing, memory_that_was_never_touched)
{
	unsigned char *memory = new_memory(NBYTES);
	__u64 id = new_user_buffer(self->ctx, memory, NBYTES);

	EXPECT_TRUE(buffer_zero(self->ctx, id, 0, NBYTES));
	fill(memory, NBYTES, 1);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
}

TEST_F(changing, read_only_memory_that_was_never_touched)
{
	unsigned char *memory = map(-1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
	__u64 id = new_user_buffer(self->ctx, memory, NBYTES);

	EXPECT_TRUE(buffer_zero(self->ctx, id, 0, NBYTES));
	must_libc(mprotect(memory, NBYTES, PROT_READ | PROT_WRITE));
	fill(memory, NBYTES, 1);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
}

TEST_F(changing, a_file_that_is_private_and_read_only_is_not_written_by_the_driver)
{
	int memfd = new_memfd(NBYTES, 1);
	unsigned char *memory = map(memfd, PROT_READ, MAP_PRIVATE);
	unsigned char *file = map(memfd, PROT_READ | PROT_WRITE, MAP_SHARED);
	__u64 id = new_user_buffer(self->ctx, memory, NBYTES);

	EXPECT_EQ(-EACCES, do_copyin(self->ctx, id, 0, "x", 1));
	EXPECT_TRUE(filled(file, NBYTES, 1));
	EXPECT_TRUE(filled(memory, NBYTES, 1));
}

TEST_F(changing, a_mix_of_writable_and_read_only_memory_is_read_only)
{
	unsigned char *memory = make_anonymous();
	__u64 id;

	must_libc(mprotect(memory + PAGE, PAGE, PROT_READ));
	id = new_user_buffer(self->ctx, memory, NBYTES);
	EXPECT_TRUE(query(self->ctx, id).out_state & DEVBUF_STATE_READ_ONLY);
	EXPECT_EQ(-EACCES, do_copyin(self->ctx, id, 0, "x", 1));
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
}

TEST_HARNESS_MAIN
