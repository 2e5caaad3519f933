// SPDX-License-Identifier: GPL-2.0-only
/* USER:0: a buffer of memory that the caller already has. */
#include "common.h"
#include "kselftest_harness.h"

#define NBYTES 10000u

FIXTURE(user)
{
	int ctx;
	unsigned char *memory;
};

FIXTURE_SETUP(user)
{
	self->ctx = new_context();
	self->memory = new_memory(NBYTES);
}

FIXTURE_TEARDOWN(user)
{
	close(self->ctx);
}

/* --- fields ----------------------------------------------------------------------------------- */

TEST_F(user, no_address_is_EINVAL)
{
	__u64 id;

	EXPECT_EQ(-EINVAL, do_create_user(self->ctx, NULL, NBYTES, &id));
}

TEST_F(user, memory_that_wraps_is_EOVERFLOW)
{
	__u64 id;

	EXPECT_EQ(-EOVERFLOW, do_create_user(self->ctx, (void *)(UINT64_MAX - 1), 3, &id));
}

TEST_F(user, uncached_and_contiguous_are_EOPNOTSUPP)
{
	struct devbuf_create create = create_argument(USER_DEVICE, NBYTES, DEVBUF_CREATE_UNCACHED);

	create.user_addr = (uintptr_t)self->memory;
	EXPECT_EQ(-EOPNOTSUPP, do_command(self->ctx, DEVBUF_CREATE, &create));
	create.flags = DEVBUF_CREATE_CONTIGUOUS;
	EXPECT_EQ(-EOPNOTSUPP, do_command(self->ctx, DEVBUF_CREATE, &create));
}

TEST_F(user, states_are_those_of_any_buffer)
{
	__u64 id;

	must(do_create_user(self->ctx, self->memory, NBYTES, &id));
	EXPECT_EQ(0u, query(self->ctx, id).out_state);
	EXPECT_STREQ(USER_DEVICE, (char *)query(self->ctx, id).out_device);
	EXPECT_EQ(0, do_allocate_flags(self->ctx, id, 0));
	EXPECT_EQ(DEVBUF_STATE_ALLOCATED | DEVBUF_STATE_BASE_ALLOCATED,
		  query(self->ctx, id).out_state);
	EXPECT_EQ(-EALREADY, do_allocate(self->ctx, id));
	EXPECT_EQ(0, do_deallocate(self->ctx, id));
	EXPECT_EQ(0u, query(self->ctx, id).out_state);
}

TEST_F(user, mapping_by_id_is_EOPNOTSUPP)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);

	EXPECT_EQ(-EOPNOTSUPP, do_map(self->ctx, id, PAGE, PROT_READ, NULL));
}

TEST_F(user, is_never_kept_for_reuse)
{
	struct devbuf_create create = create_argument(USER_DEVICE, NBYTES, DEVBUF_CREATE_REUSE);

	create.user_addr = (uintptr_t)self->memory;
	must(do_command(self->ctx, DEVBUF_CREATE, &create));
	must(do_allocate(self->ctx, create.out_id));
	must(do_deallocate(self->ctx, create.out_id));
	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-cached-nbytes"));
	EXPECT_EQ(0, do_allocate_flags(self->ctx, create.out_id, 0));
}

/* --- memory that is not there ----------------------------------------------------------------- */

static int allocate_user(int ctx, const void *memory, __u64 nbytes)
{
	__u64 id;

	must(do_create_user(ctx, memory, nbytes, &id));
	return do_allocate(ctx, id);
}

TEST_F(user, memory_that_is_not_there_is_EFAULT)
{
	EXPECT_EQ(-EFAULT, allocate_user(self->ctx, new_edge(0), 1));
	EXPECT_EQ(-EFAULT, allocate_user(self->ctx, (void *)8, 1));
}

TEST_F(user, memory_of_the_kernel_is_EFAULT)
{
	EXPECT_EQ(-EFAULT, allocate_user(self->ctx, (void *)0xffff888000000000, PAGE));
}

TEST_F(user, memory_that_ends_too_early_is_EFAULT)
{
	EXPECT_EQ(-EFAULT, allocate_user(self->ctx, new_edge(3 * PAGE), 3 * PAGE + 1));
	EXPECT_EQ(0, allocate_user(self->ctx, new_edge(3 * PAGE), 3 * PAGE));
}

TEST_F(user, memory_that_appears_later_is_pinned_later)
{
	unsigned char *edge = new_edge(0);
	__u64 id;

	must(do_create_user(self->ctx, edge, PAGE, &id));
	EXPECT_EQ(-EFAULT, do_allocate(self->ctx, id));
	EXPECT_EQ(0u, query(self->ctx, id).out_state);
	must_libc(mprotect(edge, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, do_allocate(self->ctx, id));
}

/* --- bytes, at every alignment ---------------------------------------------------------------- */

FIXTURE(place)
{
	int ctx;
	unsigned char *memory;
	__u64 id;
};

FIXTURE_VARIANT(place)
{
	size_t offset;
	__u64 nbytes;
};

#define PLACE_NBYTES 20000u

FIXTURE_VARIANT_ADD(place, one_byte){ 0, 1 };
FIXTURE_VARIANT_ADD(place, last_byte_of_a_page){ 4095, 1 };
FIXTURE_VARIANT_ADD(place, page){ 4096, 4096 };
FIXTURE_VARIANT_ADD(place, inside_a_page){ 5, 1000 };
FIXTURE_VARIANT_ADD(place, across_a_page){ 4095, 2 };
FIXTURE_VARIANT_ADD(place, odd){ 33, 12345 };
FIXTURE_VARIANT_ADD(place, all){ 0, PLACE_NBYTES };

FIXTURE_SETUP(place)
{
	self->ctx = new_context();
	self->memory = new_memory(PLACE_NBYTES);
	self->id = new_user_buffer(self->ctx, self->memory + variant->offset, variant->nbytes);
}

FIXTURE_TEARDOWN(place)
{
	close(self->ctx);
}

TEST_F(place, copyin_changes_the_caller_s_memory_and_nothing_around_it)
{
	size_t end = variant->offset + variant->nbytes;

	buffer_fill(self->ctx, self->id, variant->nbytes, 1);
	EXPECT_TRUE(all_zero(self->memory, variant->offset));
	EXPECT_TRUE(filled(self->memory + variant->offset, variant->nbytes, 1));
	EXPECT_TRUE(all_zero(self->memory + end, PLACE_NBYTES - end));
}

TEST_F(place, copyout_shows_the_caller_s_memory)
{
	fill(self->memory + variant->offset, variant->nbytes, 1);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, variant->nbytes, 1));
}

TEST_F(place, ends_where_it_ends)
{
	char bytes[2];

	EXPECT_EQ(-EINVAL, do_copyout(self->ctx, self->id, variant->nbytes - 1, bytes, 2));
	EXPECT_EQ(-EINVAL, do_copyin(self->ctx, self->id, variant->nbytes, bytes, 1));
}

TEST_F(place, view_is_of_the_caller_s_bytes)
{
	__u64 offset = variant->nbytes / 2, nbytes = variant->nbytes - offset;
	__u64 view = new_allocated_view(self->ctx, self->id, offset, nbytes);

	fill(self->memory + variant->offset, variant->nbytes, 1);
	EXPECT_TRUE(buffer_filled_from(self->ctx, view, 0, nbytes, 1, offset));
}

TEST_F(place, export_tells_where_the_bytes_are_in_its_pages)
{
	struct devbuf_export e = { .size = sizeof(e),
				   .id = self->id,
				   .flags = DEVBUF_EXPORT_WRITE };
	size_t nbytes;
	unsigned char *map;

	ASSERT_EQ(0, do_command(self->ctx, DEVBUF_EXPORT, &e));
	EXPECT_EQ(variant->offset % PAGE, e.out_offset);
	EXPECT_EQ(variant->nbytes, e.out_nbytes);
	nbytes = lseek(e.out_fd, 0, SEEK_END);
	EXPECT_EQ((e.out_offset + e.out_nbytes + PAGE - 1) / PAGE * PAGE, nbytes);
	map = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, e.out_fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	fill(self->memory + variant->offset, variant->nbytes, 1);
	EXPECT_TRUE(filled(map + e.out_offset, variant->nbytes, 1));
	fill(map + e.out_offset, variant->nbytes, 2);
	EXPECT_TRUE(filled(self->memory + variant->offset, variant->nbytes, 2));
}

TEST_F(place, import_is_of_the_same_bytes)
{
	int other = new_context();

	give(self->ctx, self->id, DEVBUF_EXPORT_WRITE, other);
	fill(self->memory + variant->offset, variant->nbytes, 1);
	EXPECT_TRUE(buffer_filled(other, self->id, 0, variant->nbytes, 1));
	buffer_fill(other, self->id, variant->nbytes, 2);
	EXPECT_TRUE(filled(self->memory + variant->offset, variant->nbytes, 2));
	close(other);
}

/* --- life ------------------------------------------------------------------------------------- */

TEST_F(user, deallocated_memory_is_still_the_caller_s)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);

	buffer_fill(self->ctx, id, NBYTES, 1);
	must(do_deallocate(self->ctx, id));
	EXPECT_TRUE(filled(self->memory, NBYTES, 1));
	must(do_allocate(self->ctx, id));
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
	close(self->ctx);
	self->ctx = new_context();
	EXPECT_TRUE(filled(self->memory, NBYTES, 1));
}

TEST_F(user, unmapped_memory_stays_pinned)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);
	unsigned char *other;

	fill(self->memory, NBYTES, 1);
	must_libc(munmap(self->memory, NBYTES));
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
	other = mmap(self->memory, NBYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ASSERT_EQ(self->memory, other);
	buffer_fill(self->ctx, id, NBYTES, 2);
	EXPECT_TRUE(all_zero(other, NBYTES));
}

TEST_F(user, memory_stays_the_parent_s_after_fork)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);
	int sockets[2];
	pid_t child;

	fill(self->memory, NBYTES, 1);
	new_socket_pair(sockets);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		bool seen = filled(self->memory, NBYTES, 1);

		fill(self->memory, NBYTES, 2);
		signal_peer(sockets[1]);
		await_peer(sockets[1]);
		/* The parent has written meanwhile, to its own memory and to the buffer. */
		_exit(seen && filled(self->memory, NBYTES, 2) ? 0 : 1);
	}
	await_peer(sockets[0]);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
	fill(self->memory, NBYTES, 3);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 3));
	buffer_fill(self->ctx, id, NBYTES, 4);
	EXPECT_TRUE(filled(self->memory, NBYTES, 4));
	signal_peer(sockets[0]);
	EXPECT_EQ(0, wait_for(child));
}

TEST_F(user, memory_outlives_its_process)
{
	int sockets[2];
	pid_t child;
	__u64 id;

	new_socket_pair(sockets);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		int ctx = new_context();
		unsigned char *memory = new_memory(NBYTES);

		fill(memory, NBYTES, 1);
		id = new_user_buffer(ctx, memory, NBYTES);
		send_fd(sockets[1], new_export(ctx, id, DEVBUF_EXPORT_WRITE));
		kill(getpid(), SIGKILL);
	}
	EXPECT_EQ(-SIGKILL, wait_for(child));
	id = new_import(self->ctx, receive_fd(sockets[0]));
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
	buffer_fill(self->ctx, id, NBYTES, 2);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 2));
}

TEST_F(user, another_process_may_not_allocate_it)
{
	__u64 id;
	pid_t child;

	must(do_create_user(self->ctx, self->memory, NBYTES, &id));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(-do_allocate(self->ctx, id));
	EXPECT_EQ(EPERM, wait_for(child));
	EXPECT_EQ(0u, query(self->ctx, id).out_state);
	EXPECT_EQ(0, do_allocate(self->ctx, id));
}

TEST_F(user, another_process_s_copy_goes_to_the_memory_of_the_first)
{
	__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		buffer_fill(self->ctx, id, NBYTES, 1);
		_exit(all_zero(self->memory, NBYTES) ? 0 : 1);
	}
	EXPECT_EQ(0, wait_for(child));
	EXPECT_TRUE(filled(self->memory, NBYTES, 1));
}

TEST_F(user, the_same_memory_may_be_pinned_twice)
{
	__u64 first = new_user_buffer(self->ctx, self->memory, NBYTES);
	__u64 second = new_user_buffer(self->ctx, self->memory + 1, NBYTES - 1);

	buffer_fill(self->ctx, first, NBYTES, 1);
	EXPECT_TRUE(buffer_filled_from(self->ctx, second, 0, NBYTES - 1, 1, 1));
	must(do_destroy(self->ctx, first));
	EXPECT_TRUE(buffer_filled_from(self->ctx, second, 0, NBYTES - 1, 1, 1));
}

/* Another process pins its own memory with the same address; ours is not touched. */
TEST_F(user, the_address_is_that_of_the_creator)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		__u64 id = new_user_buffer(self->ctx, self->memory, NBYTES);

		buffer_fill(self->ctx, id, NBYTES, 1);
		_exit(filled(self->memory, NBYTES, 1) ? 0 : 1);
	}
	EXPECT_EQ(0, wait_for(child));
	EXPECT_TRUE(all_zero(self->memory, NBYTES));
}

TEST_HARNESS_MAIN
