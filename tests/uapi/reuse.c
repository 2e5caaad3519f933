// SPDX-License-Identifier: GPL-2.0-only
/*
 * DEVBUF_CREATE_REUSE: a context gets its own old memory back, bytes and all. Nobody else ever
 * does, and what anybody still holds is freed instead.
 */
#include "common_ring.h"

#include <sys/uio.h>

#include "kselftest_harness.h"

#define NBYTES     (64 * KIB)
#define LIMIT_PATH "/sys/module/devbuf/parameters/reuse_limit_mib"

FIXTURE(reuse)
{
	int ctx;
	/* Allocated, and full of the pattern 1. */
	__u64 id;
};

FIXTURE_SETUP(reuse)
{
	self->ctx = new_context();
	self->id = new_allocated_flags(self->ctx, NBYTES, DEVBUF_CREATE_REUSE);
	buffer_fill(self->ctx, self->id, NBYTES, 1);
}

FIXTURE_TEARDOWN(reuse)
{
	close(self->ctx);
}

static __u64 new_reusing_buffer(int ctx, __u64 nbytes)
{
	__u64 id;

	must(do_create(ctx, SYSTEM_DEVICE, nbytes, DEVBUF_CREATE_REUSE, &id));
	return id;
}

static void expect_reused(struct __test_metadata *_metadata, int ctx, __u64 id, __u64 nbytes)
{
	EXPECT_EQ((int)DEVBUF_ALLOCATED_REUSED, do_allocate_flags(ctx, id, 0));
	EXPECT_TRUE(buffer_filled(ctx, id, 0, nbytes, 1));
}

static void expect_fresh(struct __test_metadata *_metadata, int ctx, __u64 id, __u64 nbytes)
{
	EXPECT_EQ(0, do_allocate_flags(ctx, id, 0));
	EXPECT_TRUE(buffer_zero(ctx, id, 0, nbytes));
}

static long long cached_nbytes(int ctx)
{
	return fdinfo(ctx, "devbuf-cached-nbytes");
}

/* --- what comes back -------------------------------------------------------------------------- */

TEST_F(reuse, first_memory_is_zero)
{
	expect_fresh(_metadata, self->ctx, new_reusing_buffer(self->ctx, NBYTES), NBYTES);
}

TEST_F(reuse, same_buffer_gets_its_memory_back)
{
	must(do_deallocate(self->ctx, self->id));
	expect_reused(_metadata, self->ctx, self->id, NBYTES);
}

TEST_F(reuse, another_buffer_that_is_alike_gets_it)
{
	must(do_deallocate(self->ctx, self->id));
	expect_reused(_metadata, self->ctx, new_reusing_buffer(self->ctx, NBYTES), NBYTES);
}

TEST_F(reuse, destroyed_buffers_leave_theirs_too)
{
	must(do_destroy(self->ctx, self->id));
	expect_reused(_metadata, self->ctx, new_reusing_buffer(self->ctx, NBYTES), NBYTES);
}

TEST_F(reuse, memory_comes_back_by_way_of_a_view)
{
	__u64 other = new_reusing_buffer(self->ctx, NBYTES);
	__u64 view = new_view(self->ctx, other, 100, 100);

	must(do_destroy(self->ctx, self->id));
	EXPECT_EQ((int)DEVBUF_ALLOCATED_REUSED, do_allocate_flags(self->ctx, view, 0));
	EXPECT_TRUE(buffer_filled_from(self->ctx, view, 0, 100, 1, 100));
}

TEST_F(reuse, memory_goes_to_one_buffer_only)
{
	must(do_deallocate(self->ctx, self->id));
	expect_reused(_metadata, self->ctx, new_reusing_buffer(self->ctx, NBYTES), NBYTES);
	expect_fresh(_metadata, self->ctx, new_reusing_buffer(self->ctx, NBYTES), NBYTES);
}

TEST_F(reuse, bytes_past_the_end_are_zero_again)
{
	__u64 id = new_reusing_buffer(self->ctx, PAGE + 1);
	unsigned char *map;

	must(do_allocate(self->ctx, id));
	map = new_mapping(self->ctx, id, 2 * PAGE, PROT_READ | PROT_WRITE);
	fill(map, 2 * PAGE, 1);
	must_libc(munmap(map, 2 * PAGE));
	must(do_deallocate(self->ctx, id));
	expect_reused(_metadata, self->ctx, id, PAGE + 1);
	map = new_mapping(self->ctx, id, 2 * PAGE, PROT_READ);
	EXPECT_TRUE(all_zero(map + PAGE + 1, PAGE - 1));
}

/* --- what does not ---------------------------------------------------------------------------- */

TEST_F(reuse, buffers_without_the_flag_neither_leave_nor_get_any)
{
	__u64 id = new_allocated(self->ctx, NBYTES);

	must(do_deallocate(self->ctx, id));
	EXPECT_EQ(0, cached_nbytes(self->ctx));
	must(do_deallocate(self->ctx, self->id));
	EXPECT_EQ((long long)NBYTES, cached_nbytes(self->ctx));
	expect_fresh(_metadata, self->ctx, id, NBYTES);
}

TEST_F(reuse, another_number_of_bytes_gets_none)
{
	must(do_deallocate(self->ctx, self->id));
	expect_fresh(_metadata, self->ctx, new_reusing_buffer(self->ctx, NBYTES - 1), NBYTES - 1);
	expect_fresh(_metadata, self->ctx, new_reusing_buffer(self->ctx, NBYTES + 1), NBYTES + 1);
	expect_reused(_metadata, self->ctx, self->id, NBYTES);
}

TEST_F(reuse, another_flag_gets_none)
{
	__u64 id;

	must(do_deallocate(self->ctx, self->id));
	must(do_create(self->ctx, SYSTEM_DEVICE, NBYTES,
		       DEVBUF_CREATE_REUSE | DEVBUF_CREATE_CPU_ACCESS, &id));
	expect_fresh(_metadata, self->ctx, id, NBYTES);
	expect_reused(_metadata, self->ctx, self->id, NBYTES);
}

TEST_F(reuse, uncached_memory_comes_back_uncached)
{
	const __u32 flags = DEVBUF_CREATE_REUSE | DEVBUF_CREATE_UNCACHED;
	__u64 id;

	if (!(capabilities(self->ctx, SYSTEM_DEVICE) & DEVBUF_CAP_UNCACHED))
		SKIP(return, SYSTEM_DEVICE " has no uncached memory here");
	id = new_allocated_flags(self->ctx, NBYTES, flags);
	buffer_fill(self->ctx, id, NBYTES, 1);
	must(do_deallocate(self->ctx, id));
	expect_reused(_metadata, self->ctx, id, NBYTES);
}

TEST_F(reuse, another_context_never_sees_old_bytes)
{
	int other = new_context();

	must(do_deallocate(self->ctx, self->id));
	for (int i = 0; i < 50; i++)
		expect_fresh(_metadata, other, new_reusing_buffer(other, NBYTES), NBYTES);
	close(other);
}

TEST_F(reuse, another_context_never_sees_the_bytes_of_a_closed_one)
{
	int other = new_context();

	must(do_deallocate(self->ctx, self->id));
	close(self->ctx);
	for (int i = 0; i < 50; i++)
		expect_fresh(_metadata, other, new_reusing_buffer(other, NBYTES), NBYTES);
	self->ctx = other;
}

/* --- what somebody still holds ---------------------------------------------------------------- */

TEST_F(reuse, mapped_memory_is_not_kept)
{
	unsigned char *map = new_mapping(self->ctx, self->id, NBYTES, PROT_READ | PROT_WRITE);

	must(do_deallocate(self->ctx, self->id));
	EXPECT_EQ(0, cached_nbytes(self->ctx));
	expect_fresh(_metadata, self->ctx, self->id, NBYTES);
	EXPECT_TRUE(filled(map, NBYTES, 1));
}

TEST_F(reuse, memory_that_was_mapped_is_kept)
{
	unsigned char *map = new_mapping(self->ctx, self->id, NBYTES, PROT_READ | PROT_WRITE);

	EXPECT_TRUE(filled(map, NBYTES, 1));
	must_libc(munmap(map, NBYTES));
	must(do_deallocate(self->ctx, self->id));
	expect_reused(_metadata, self->ctx, self->id, NBYTES);
}

TEST_F(reuse, exported_memory_is_not_kept)
{
	int fd = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	unsigned char *map;

	must(do_deallocate(self->ctx, self->id));
	EXPECT_EQ(0, cached_nbytes(self->ctx));
	expect_fresh(_metadata, self->ctx, self->id, NBYTES);
	map = mmap(NULL, NBYTES, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_TRUE(filled(map, NBYTES, 1));
	close(fd);
}

TEST_F(reuse, memory_that_was_ever_exported_is_not_kept)
{
	close(new_export(self->ctx, self->id, 0));
	must(do_deallocate(self->ctx, self->id));
	EXPECT_EQ(0, cached_nbytes(self->ctx));
	expect_fresh(_metadata, self->ctx, self->id, NBYTES);
}

TEST_F(reuse, memory_that_a_once_exported_buffer_gets_anew_is_kept)
{
	close(new_export(self->ctx, self->id, 0));
	must(do_deallocate(self->ctx, self->id));
	must(do_allocate(self->ctx, self->id));
	buffer_fill(self->ctx, self->id, NBYTES, 1);
	must(do_deallocate(self->ctx, self->id));
	expect_reused(_metadata, self->ctx, self->id, NBYTES);
}

TEST_F(reuse, memory_in_a_pipe_is_not_kept)
{
	unsigned char *map = new_mapping(self->ctx, self->id, NBYTES, PROT_READ);
	struct iovec vector = { .iov_base = map + 5 * PAGE, .iov_len = PAGE };
	unsigned char *read_back = new_memory(PAGE);
	int fds[2];

	must_libc(pipe2(fds, O_CLOEXEC));
	EXPECT_EQ((ssize_t)PAGE, vmsplice(fds[1], &vector, 1, 0));
	must_libc(munmap(map, NBYTES));
	must(do_deallocate(self->ctx, self->id));
	EXPECT_EQ(0, cached_nbytes(self->ctx));
	expect_fresh(_metadata, self->ctx, self->id, NBYTES);
	buffer_fill(self->ctx, self->id, NBYTES, 2);
	EXPECT_EQ((ssize_t)PAGE, read(fds[0], read_back, PAGE));
	EXPECT_TRUE(filled_from(read_back, PAGE, 1, 5 * PAGE));
}

TEST_F(reuse, memory_registered_with_io_uring_is_not_kept)
{
	unsigned char *map = new_mapping(self->ctx, self->id, NBYTES, PROT_READ | PROT_WRITE);
	unsigned char *registered = map + 3 * PAGE;
	int memfd = new_memfd(PAGE, 3);
	struct io_uring ring;
	const char *reason = new_ring(&ring, registered, PAGE);

	if (reason)
		SKIP(return, "%s", reason);
	must_libc(munmap(map, NBYTES));
	must(do_deallocate(self->ctx, self->id));
	EXPECT_EQ(0, cached_nbytes(self->ctx));
	expect_fresh(_metadata, self->ctx, self->id, NBYTES);
	/* The ring still writes to the old memory, and so to nobody's. */
	EXPECT_EQ((int)PAGE, ring_read(&ring, memfd, registered, PAGE));
	EXPECT_TRUE(buffer_zero(self->ctx, self->id, 0, NBYTES));
	io_uring_queue_exit(&ring);
	close(memfd);
}

/* A command that is on its way to the old memory when that is deallocated. */
struct late_deallocate {
	int ctx;
	__u64 id;
	int ret;
};

static void deallocate(void *argument)
{
	struct late_deallocate *late = argument;

	late->ret = do_deallocate(late->ctx, late->id);
}

TEST_F(reuse, memory_of_a_running_copy_is_not_kept)
{
	struct late_deallocate argument = { self->ctx, self->id, -1 };
	struct late_memory *late = new_late_memory(PAGE, 2, deallocate, &argument);

	if (!late)
		SKIP(return, "no userfaultfd here");
	EXPECT_EQ(0, do_copyin(self->ctx, self->id, 0, late->memory, PAGE));
	EXPECT_EQ(0, argument.ret);
	expect_fresh(_metadata, self->ctx, self->id, NBYTES);
	end_late_memory(late);
}

/* --- the bound -------------------------------------------------------------------------------- */

FIXTURE(bound)
{
	int ctx;
	long long limit;
};

FIXTURE_SETUP(bound)
{
	self->ctx = new_context();
	self->limit = read_number(LIMIT_PATH);
	ASSERT_LT(0, self->limit);
}

FIXTURE_TEARDOWN(bound)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", self->limit);
	must(write_text(LIMIT_PATH, text));
	close(self->ctx);
}

/* Deallocates so many different buffers of a MiB. */
static void leave_mib(int ctx, int nr)
{
	__u64 ids[8];

	for (int i = 0; i < nr; i++)
		ids[i] = new_allocated_flags(ctx, MIB, DEVBUF_CREATE_REUSE);
	for (int i = 0; i < nr; i++)
		must(do_deallocate(ctx, ids[i]));
}

TEST_F(bound, no_more_is_kept)
{
	must(write_text(LIMIT_PATH, "3"));
	leave_mib(self->ctx, 8);
	EXPECT_EQ((long long)(3 * MIB), cached_nbytes(self->ctx));
}

TEST_F(bound, zero_keeps_nothing)
{
	must(write_text(LIMIT_PATH, "0"));
	leave_mib(self->ctx, 2);
	EXPECT_EQ(0, cached_nbytes(self->ctx));
}

TEST_F(bound, what_is_larger_than_it_is_not_kept)
{
	__u64 id = new_allocated_flags(self->ctx, MIB + 1, DEVBUF_CREATE_REUSE);

	must(write_text(LIMIT_PATH, "1"));
	leave_mib(self->ctx, 1);
	must(do_deallocate(self->ctx, id));
	EXPECT_EQ((long long)MIB, cached_nbytes(self->ctx));
}

TEST_F(bound, the_oldest_goes_first)
{
	__u64 old, young;

	must(write_text(LIMIT_PATH, "1"));
	old = new_allocated_flags(self->ctx, 600 * KIB, DEVBUF_CREATE_REUSE);
	young = new_allocated_flags(self->ctx, 500 * KIB, DEVBUF_CREATE_REUSE);
	must(do_deallocate(self->ctx, old));
	must(do_deallocate(self->ctx, young));
	EXPECT_EQ((int)DEVBUF_ALLOCATED_REUSED, do_allocate_flags(self->ctx, young, 0));
	EXPECT_EQ(0, do_allocate_flags(self->ctx, old, 0));
}

TEST_F(bound, is_that_of_each_context)
{
	int other = new_context();

	must(write_text(LIMIT_PATH, "2"));
	leave_mib(self->ctx, 2);
	leave_mib(other, 2);
	EXPECT_EQ((long long)(2 * MIB), cached_nbytes(self->ctx));
	EXPECT_EQ((long long)(2 * MIB), cached_nbytes(other));
	close(other);
}

/* --- statistics ------------------------------------------------------------------------------- */

TEST_F(reuse, hits_misses_and_bytes_are_counted)
{
	long long hits = fdinfo(self->ctx, "devbuf-reuse-hits");
	long long misses = fdinfo(self->ctx, "devbuf-reuse-misses");

	EXPECT_EQ(0, cached_nbytes(self->ctx));
	EXPECT_EQ((long long)NBYTES, fdinfo(self->ctx, "devbuf-allocated-nbytes"));
	must(do_deallocate(self->ctx, self->id));
	EXPECT_EQ((long long)NBYTES, cached_nbytes(self->ctx));
	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-allocated-nbytes"));

	must(do_allocate(self->ctx, self->id));
	EXPECT_EQ(hits + 1, fdinfo(self->ctx, "devbuf-reuse-hits"));
	EXPECT_EQ(misses, fdinfo(self->ctx, "devbuf-reuse-misses"));
	EXPECT_EQ(0, cached_nbytes(self->ctx));

	must(do_allocate(self->ctx, new_reusing_buffer(self->ctx, NBYTES)));
	EXPECT_EQ(hits + 1, fdinfo(self->ctx, "devbuf-reuse-hits"));
	EXPECT_EQ(misses + 1, fdinfo(self->ctx, "devbuf-reuse-misses"));
}

TEST_F(reuse, buffers_without_the_flag_are_no_misses)
{
	long long misses = fdinfo(self->ctx, "devbuf-reuse-misses");

	new_allocated(self->ctx, NBYTES);
	EXPECT_EQ(misses, fdinfo(self->ctx, "devbuf-reuse-misses"));
}

TEST_HARNESS_MAIN
