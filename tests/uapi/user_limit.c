// SPDX-License-Identifier: GPL-2.0-only
/*
 * USER:0 counts what it pins against RLIMIT_MEMLOCK of the user. Each test runs as a user of its
 * own, who has nothing else locked; so every page that is not given back shows.
 */
#include "common.h"

#include <sys/resource.h>

#include "kselftest_harness.h"

#define LIMIT_PAGES 16

FIXTURE(limit)
{
	int ctx, other;
	unsigned char *memory;
};

/* Whoever has CAP_IPC_LOCK has no limit; another user has not. */
static void become_nobody(void)
{
	uid_t uid = 100000 + getpid();

	must_libc(setresuid(uid, uid, uid));
}

FIXTURE_SETUP(limit)
{
	struct rlimit limit = { LIMIT_PAGES * PAGE, LIMIT_PAGES * PAGE };

	self->ctx = new_context();
	self->other = new_context();
	must_libc(setrlimit(RLIMIT_MEMLOCK, &limit));
	become_nobody();
	self->memory = new_memory(4 * LIMIT_PAGES * PAGE);
}

FIXTURE_TEARDOWN(limit)
{
	close(self->ctx);
	close(self->other);
}

static int pin(int ctx, const void *memory, __u64 nbytes, __u64 *id)
{
	must(do_create_user(ctx, memory, nbytes, id));
	return do_allocate(ctx, *id);
}

/* The whole limit can be pinned, and not a page more: nothing is counted now. */
static void expect_nothing_counted(struct __test_metadata *_metadata, int ctx, void *memory)
{
	__u64 all, more;

	EXPECT_EQ(0, pin(ctx, memory, LIMIT_PAGES * PAGE, &all));
	EXPECT_EQ(-ENOMEM, pin(ctx, memory, 1, &more));
	must(do_destroy(ctx, all));
	must(do_destroy(ctx, more));
}

TEST_F(limit, all_of_it_can_be_pinned)
{
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, more_than_it_is_ENOMEM)
{
	__u64 id;

	EXPECT_EQ(-ENOMEM, pin(self->ctx, self->memory, LIMIT_PAGES * PAGE + 1, &id));
	EXPECT_EQ(0u, query(self->ctx, id).out_state);
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, far_more_than_it_is_ENOMEM)
{
	const size_t nbytes = 64 * GIB;
	void *memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	__u64 id;

	ASSERT_NE(MAP_FAILED, memory);
	EXPECT_EQ(-ENOMEM, pin(self->ctx, memory, nbytes, &id));
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, pages_that_are_touched_count_and_not_bytes)
{
	__u64 first, second;

	EXPECT_EQ(0, pin(self->ctx, self->memory + PAGE - 1, 2, &first));
	EXPECT_EQ(-ENOMEM, pin(self->ctx, self->memory, (LIMIT_PAGES - 1) * PAGE, &second));
	EXPECT_EQ(0, pin(self->ctx, self->memory, (LIMIT_PAGES - 2) * PAGE, &second));
}

TEST_F(limit, buffers_add_up_over_contexts)
{
	__u64 id;

	EXPECT_EQ(0, pin(self->ctx, self->memory, 10 * PAGE, &id));
	EXPECT_EQ(-ENOMEM, pin(self->other, self->memory, 7 * PAGE, &id));
	EXPECT_EQ(0, pin(self->other, self->memory, 6 * PAGE, &id));
}

TEST_F(limit, processes_of_one_user_add_up)
{
	int sockets[2];
	pid_t child;
	__u64 id;

	new_socket_pair(sockets);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		must(pin(self->ctx, self->memory, LIMIT_PAGES * PAGE, &id));
		signal_peer(sockets[1]);
		await_peer(sockets[1]);
		must(do_destroy(self->ctx, id));
		_exit(0);
	}
	await_peer(sockets[0]);
	EXPECT_EQ(-ENOMEM, pin(self->ctx, self->memory, 1, &id));
	signal_peer(sockets[0]);
	EXPECT_EQ(0, wait_for(child));
	EXPECT_EQ(0, do_allocate(self->ctx, id));
}

/* --- given back, exactly ---------------------------------------------------------------------- */

TEST_F(limit, is_given_back_by_deallocate)
{
	__u64 id;

	must(do_create_user(self->ctx, self->memory, LIMIT_PAGES * PAGE, &id));
	for (int i = 0; i < 1000; i++) {
		must(do_allocate(self->ctx, id));
		must(do_deallocate(self->ctx, id));
	}
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, is_given_back_by_destroy)
{
	__u64 id;

	for (int i = 0; i < 1000; i++) {
		must(pin(self->ctx, self->memory + i, (LIMIT_PAGES - 1) * PAGE, &id));
		must(do_destroy(self->ctx, id));
	}
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, is_given_back_by_a_failed_allocate)
{
	unsigned char *edge = new_edge(3 * PAGE);
	__u64 id;

	must(do_create_user(self->ctx, edge, 4 * PAGE, &id));
	for (int i = 0; i < 1000; i++)
		must_be(do_allocate(self->ctx, id) == -EFAULT);
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, is_given_back_by_close)
{
	__u64 id;

	for (int i = 0; i < LIMIT_PAGES; i++)
		must(pin(self->ctx, self->memory, PAGE, &id));
	close(self->ctx);
	self->ctx = dup(self->other);
	expect_nothing_counted(_metadata, self->other, self->memory);
}

/* A context that the parent still has open. */
TEST_F(limit, is_not_given_back_by_the_end_of_a_child)
{
	pid_t child = fork();
	__u64 id;

	ASSERT_LE(0, child);
	if (!child) {
		must(pin(self->ctx, self->memory, LIMIT_PAGES * PAGE, &id));
		_exit(0);
	}
	EXPECT_EQ(0, wait_for(child));
	EXPECT_EQ(-ENOMEM, pin(self->other, self->memory, 1, &id));
	close(self->ctx);
	self->ctx = dup(self->other);
	expect_nothing_counted(_metadata, self->other, self->memory);
}

static void expect_counted_while_held(struct __test_metadata *_metadata, int ctx, void *memory,
				      __u64 id, int holder)
{
	__u64 more;

	must(do_destroy(ctx, id));
	EXPECT_EQ(-ENOMEM, pin(ctx, memory, 1, &more));
	close(holder);
	expect_nothing_counted(_metadata, ctx, memory);
}

TEST_F(limit, is_given_back_by_the_last_dma_buf)
{
	__u64 id;
	int dma_buf;

	must(pin(self->ctx, self->memory, LIMIT_PAGES * PAGE, &id));
	dma_buf = new_export(self->ctx, id, 0);
	expect_counted_while_held(_metadata, self->ctx, self->memory, id, dma_buf);
}

TEST_F(limit, is_not_given_back_by_munmap)
{
	__u64 id, more;

	must(pin(self->ctx, self->memory, LIMIT_PAGES * PAGE, &id));
	must_libc(munmap(self->memory, LIMIT_PAGES * PAGE));
	EXPECT_EQ(-ENOMEM, pin(self->ctx, self->memory + LIMIT_PAGES * PAGE, 1, &more));
	must(do_destroy(self->ctx, id));
	expect_nothing_counted(_metadata, self->ctx, self->memory + LIMIT_PAGES * PAGE);
}

FIXTURE(limit_of)
{
	unsigned char *memory;
	int sockets[2];
};

FIXTURE_SETUP(limit_of)
{
	struct rlimit limit = { LIMIT_PAGES * PAGE, LIMIT_PAGES * PAGE };

	must_libc(setrlimit(RLIMIT_MEMLOCK, &limit));
	self->memory = new_memory(LIMIT_PAGES * PAGE);
	new_socket_pair(self->sockets);
}

FIXTURE_TEARDOWN(limit_of)
{
}

/* Pins all of the limit in a child that then ends in its own way. */
static pid_t pin_in_child(void *memory, uid_t uid, int socket, bool wait_to_be_killed)
{
	int ctx = new_context();
	pid_t child = must_libc(fork());
	__u64 id;

	if (!child) {
		must_libc(setresuid(uid, uid, uid));
		must(pin(ctx, memory, LIMIT_PAGES * PAGE, &id));
		signal_peer(socket);
		if (wait_to_be_killed)
			pause();
		_exit(0);
	}
	close(ctx);
	return child;
}

TEST_F(limit_of, a_user_is_free_again_when_a_process_has_ended)
{
	uid_t uid = 200000 + getpid();

	for (int i = 0; i < 20; i++) {
		pid_t child = pin_in_child(self->memory, uid, self->sockets[1], false);

		EXPECT_EQ(0, wait_for(child));
	}
}

TEST_F(limit_of, a_user_is_free_again_when_a_process_was_killed)
{
	uid_t uid = 200000 + getpid();

	for (int i = 0; i < 20; i++) {
		pid_t child = pin_in_child(self->memory, uid, self->sockets[1], true);

		await_peer(self->sockets[0]);
		must_libc(kill(child, SIGKILL));
		EXPECT_EQ(-SIGKILL, wait_for(child));
	}
}

TEST_F(limit_of, one_user_is_not_that_of_another)
{
	pid_t first = pin_in_child(self->memory, 200000 + getpid(), self->sockets[1], true);
	pid_t second;

	await_peer(self->sockets[0]);
	second = pin_in_child(self->memory, 300000 + getpid(), self->sockets[1], false);
	EXPECT_EQ(0, wait_for(second));
	must_libc(kill(first, SIGKILL));
	EXPECT_EQ(-SIGKILL, wait_for(first));
}

TEST_F(limit_of, root_is_none)
{
	int ctx = new_context();
	__u64 id;

	EXPECT_EQ(0, pin(ctx, new_memory(2 * LIMIT_PAGES * PAGE), 2 * LIMIT_PAGES * PAGE, &id));
	close(ctx);
}

TEST_HARNESS_MAIN
