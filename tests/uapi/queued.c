// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a queued copy holds while it is held back: both ends' memory, the caller's pages, and as much
 * of RLIMIT_MEMLOCK; and what may be taken away meanwhile: everything. Needs the module vgem.
 */
#include "common_async.h"
#include "common_vgem.h"

#include <liburing.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(queued)
{
	int card, ctx;
	struct ends ends;
	struct gate gate;
	int fence;
};

FIXTURE_VARIANT(queued)
{
	enum kind kind;
};

FIXTURE_VARIANT_ADD(queued, copyin){ COPYIN };
FIXTURE_VARIANT_ADD(queued, copyout){ COPYOUT };
FIXTURE_VARIANT_ADD(queued, transfer){ TRANSFER };

FIXTURE_SETUP(queued)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->gate = new_gate(self->card);
	self->fence = must(queue_copy_of(&self->ends, variant->kind, AFTER(self->gate.fd)));
}

FIXTURE_TEARDOWN(queued)
{
	close(self->ctx);
	close(self->card);
}

/* --- what may be taken away ------------------------------------------------------------------- */

TEST_F(queued, ids_may_be_destroyed)
{
	must(do_destroy(self->ctx, self->ends.src));
	must(do_destroy(self->ctx, self->ends.dst));
	EXPECT_TRUE(is_held(self->ctx, self->fence));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(self->fence));
	if (variant->kind == COPYOUT) {
		EXPECT_TRUE(arrived(&self->ends, COPYOUT));
	}
	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-handles"));
}

TEST_F(queued, buffers_may_be_deallocated)
{
	must(do_deallocate(self->ctx, self->ends.src));
	must(do_deallocate(self->ctx, self->ends.dst));
	EXPECT_TRUE(is_held(self->ctx, self->fence));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(self->fence));
	if (variant->kind == COPYOUT) {
		EXPECT_TRUE(arrived(&self->ends, COPYOUT));
	}
}

/* What the memory is now is somebody else's. */
TEST_F(queued, buffers_may_be_allocated_again)
{
	must(do_deallocate(self->ctx, self->ends.dst));
	must(do_allocate(self->ctx, self->ends.dst));
	buffer_fill(self->ctx, self->ends.dst, NBYTES, 2);
	must(do_deallocate(self->ctx, self->ends.src));
	must(do_allocate(self->ctx, self->ends.src));
	buffer_fill(self->ctx, self->ends.src, NBYTES, 3);
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(self->fence));
	EXPECT_TRUE(buffer_filled(self->ctx, self->ends.dst, 0, NBYTES, 2));
	EXPECT_TRUE(buffer_filled(self->ctx, self->ends.src, 0, NBYTES, 3));
	if (variant->kind == COPYOUT) {
		EXPECT_TRUE(arrived(&self->ends, COPYOUT));
	}
}

/* Nobody could cancel the copy later, and nobody waits for it. Its order stays. */
TEST_F(queued, context_that_is_closed_cancels)
{
	struct ends ends = self->ends;

	ends.ctx = new_context();
	give(self->ctx, ends.src, 0, ends.ctx);
	give(self->ctx, ends.dst, DEVBUF_EXPORT_WRITE, ends.ctx);
	close(self->ctx);
	self->ctx = ends.ctx;
	EXPECT_TRUE(is_held(ends.ctx, self->fence));
	open_gate(&self->gate);
	EXPECT_EQ(-ECANCELED, end_fence(self->fence));
	EXPECT_TRUE(untouched(&ends, variant->kind));
}

TEST_F(queued, context_that_is_closed_cancels_what_nobody_looks_at)
{
	close(self->ctx);
	self->ctx = -1;
	open_gate(&self->gate);
	EXPECT_EQ(-ECANCELED, end_fence(self->fence));
	if (variant->kind == COPYOUT) {
		EXPECT_TRUE(untouched(&self->ends, COPYOUT));
	}
}

/* The pages are pinned: other memory at the same place is another matter. */
TEST_F(queued, memory_of_the_caller_may_be_unmapped)
{
	struct ends *ends = &self->ends;

	must_libc(mmap(ends->from, NBYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == ends->from ?
			  0 :
			  -1);
	must_libc(mmap(ends->to, NBYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == ends->to ?
			  0 :
			  -1);
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(self->fence));
	EXPECT_TRUE(all_zero(ends->from, NBYTES));
	if (variant->kind == COPYOUT) {
		EXPECT_TRUE(all_zero(ends->to, NBYTES));
	} else {
		EXPECT_TRUE(arrived(ends, variant->kind));
	}
}

TEST_F(queued, process_may_end)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		struct ends ends = self->ends;

		new_ends(&ends, self->ctx, NBYTES);
		must(queue_copy_of(&ends, variant->kind, AFTER(self->gate.fd)));
		_exit(0);
	}
	EXPECT_EQ(0, wait_for(child));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(self->fence));
	EXPECT_TRUE(arrived(&self->ends, variant->kind));
}

/* How a process ends, and whether a ring has the context's file, too. */
static const struct end {
	bool killed;
	bool on_ring;
} ends_of_processes[] = { { false, false }, { true, false }, { false, true }, { true, true } };

/* In a child: a context of its own, and a copy that will outlive both. */
static void queue_and_end(const struct ends *ends, enum kind kind, const struct gate *gate,
			  const struct end *end, int exports[2], int socket)
{
	struct ends own = *ends;
	struct io_uring ring;

	own.ctx = new_context();
	own.src = new_import(own.ctx, exports[0]);
	own.dst = new_import(own.ctx, exports[1]);
	if (end->on_ring) {
		must(io_uring_queue_init(4, &ring, 0));
		must(io_uring_register_files(&ring, &own.ctx, 1));
	}
	send_fd(socket, must(queue_copy_of(&own, kind, AFTER(gate->fd))));
	/* Until it is told, or killed. */
	await_peer(socket);
	_exit(0);
}

TEST_F(queued, process_that_ends_cancels)
{
	for (size_t i = 0; i < ARRAY_SIZE(ends_of_processes); i++) {
		const struct end *end = &ends_of_processes[i];
		int sockets[2], exports[2], fence;
		struct gate gate = new_gate(self->card);
		struct ends ends;
		long long uses;
		pid_t child;

		new_ends(&ends, self->ctx, NBYTES);
		exports[0] = new_export(self->ctx, ends.src, 0);
		exports[1] = new_export(self->ctx, ends.dst, DEVBUF_EXPORT_WRITE);
		new_socket_pair(sockets);
		uses = module_uses_at_rest();
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			queue_and_end(&ends, variant->kind, &gate, end, exports, sockets[1]);
		fence = receive_fd(sockets[0]);
		if (end->killed)
			must_libc(kill(child, SIGKILL));
		else
			signal_peer(sockets[0]);
		EXPECT_EQ(end->killed ? -SIGKILL : 0, wait_for(child));
		/* A ring closes its files some time after the process. The fence stays. */
		EXPECT_TRUE(module_uses_fall_to(uses + 1));
		EXPECT_TRUE(is_held(self->ctx, fence));
		open_gate(&gate);
		EXPECT_EQ(-ECANCELED, end_fence(fence));
		if (variant->kind != COPYOUT)
			EXPECT_TRUE(untouched(&ends, variant->kind));
	}
}

/* --- memory that is kept for reuse ------------------------------------------------------------ */

FIXTURE(reusing)
{
	int card, ctx;
	struct ends ends;
	struct gate gate;
};

FIXTURE_SETUP(reusing)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->ends.src = new_allocated_flags(self->ctx, NBYTES, DEVBUF_CREATE_REUSE);
	self->ends.dst = new_allocated_flags(self->ctx, NBYTES, DEVBUF_CREATE_REUSE);
	buffer_fill(self->ctx, self->ends.src, NBYTES, 1);
	self->gate = new_gate(self->card);
}

FIXTURE_TEARDOWN(reusing)
{
	close(self->ctx);
	close(self->card);
}

TEST_F(reusing, memory_that_a_copy_holds_is_not_kept)
{
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));

	must(do_deallocate(self->ctx, self->ends.src));
	must(do_deallocate(self->ctx, self->ends.dst));
	EXPECT_EQ(0, do_allocate_flags(self->ctx, self->ends.src, 0));
	EXPECT_EQ(0, do_allocate_flags(self->ctx, self->ends.dst, 0));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_TRUE(buffer_zero(self->ctx, self->ends.src, 0, NBYTES));
	EXPECT_TRUE(buffer_zero(self->ctx, self->ends.dst, 0, NBYTES));
}

/* The fence may still be open, and in the books. */
TEST_F(reusing, memory_of_copies_that_are_over_is_kept)
{
	int fence = must(queue_copy_of(&self->ends, TRANSFER, NULL));

	EXPECT_EQ(0, fence_result(fence));
	buffer_fill(self->ctx, self->ends.dst, NBYTES, 2);
	must(do_deallocate(self->ctx, self->ends.dst));
	EXPECT_EQ(DEVBUF_ALLOCATED_REUSED, do_allocate_flags(self->ctx, self->ends.dst, 0));
	EXPECT_TRUE(buffer_filled(self->ctx, self->ends.dst, 0, NBYTES, 2));
	close(fence);
}

/* --- RLIMIT_MEMLOCK --------------------------------------------------------------------------- */

#define LIMIT_PAGES 16

FIXTURE(limit)
{
	int card, ctx;
	__u64 id;
	unsigned char *memory;
	struct gate gate;
};

FIXTURE_SETUP(limit)
{
	struct rlimit limit = { LIMIT_PAGES * PAGE, LIMIT_PAGES * PAGE };
	/* A user of its own, who has nothing else locked, and has not CAP_IPC_LOCK. */
	uid_t uid = 100000 + getpid();

	self->card = open_vgem();
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, 4 * LIMIT_PAGES * PAGE);
	self->gate = new_gate(self->card);
	must_libc(setrlimit(RLIMIT_MEMLOCK, &limit));
	must_libc(setresuid(uid, uid, uid));
	self->memory = new_memory(4 * LIMIT_PAGES * PAGE);
}

FIXTURE_TEARDOWN(limit)
{
	close(self->ctx);
	close(self->card);
}

/*
 * The whole limit can be pinned, and not a page more. A fence signals before its copy gives the
 * pages back, so that may take a moment.
 */
static void expect_nothing_counted(struct __test_metadata *_metadata, int ctx, void *memory)
{
	const __u64 end = now_ns() + DEADLINE_MS * 1000000ULL;
	__u64 all, more;

	must(do_create_user(ctx, memory, LIMIT_PAGES * PAGE, &all));
	while (do_allocate(ctx, all) == -ENOMEM && now_ns() < end)
		sched_yield();
	EXPECT_EQ(-EALREADY, do_allocate(ctx, all));
	must(do_create_user(ctx, memory, 1, &more));
	EXPECT_EQ(-ENOMEM, do_allocate(ctx, more));
	must(do_destroy(ctx, all));
	must(do_destroy(ctx, more));
}

TEST_F(limit, counts_until_the_copy_is_over)
{
	int first = queue_copyin(self->ctx, self->id, 0, self->memory, LIMIT_PAGES * PAGE,
				 AFTER(self->gate.fd));
	int files = nr_open_files();

	ASSERT_LT(0, first);
	EXPECT_EQ(-ENOMEM, queue_copyin(self->ctx, self->id, 0, self->memory, 1, NULL));
	EXPECT_EQ(-ENOMEM, queue_copyout(self->ctx, self->id, 0, self->memory, 1, NULL));
	EXPECT_EQ(files, nr_open_files());
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(first));
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, more_than_it_at_once_is_ENOMEM)
{
	EXPECT_EQ(-ENOMEM, queue_copyout(self->ctx, self->id, 0, self->memory,
					 LIMIT_PAGES * PAGE + 1, NULL));
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, transfers_count_nothing)
{
	int fence = queue_transfer(self->ctx, self->id, 0, self->id, 2 * LIMIT_PAGES * PAGE,
				   2 * LIMIT_PAGES * PAGE, AFTER(self->gate.fd));

	ASSERT_LT(0, fence);
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, synchronous_copies_count_nothing)
{
	EXPECT_EQ(0, do_copyin(self->ctx, self->id, 0, self->memory, 4 * LIMIT_PAGES * PAGE));
	EXPECT_EQ(0, do_copyout(self->ctx, self->id, 0, self->memory, 4 * LIMIT_PAGES * PAGE));
}

TEST_F(limit, is_given_back_by_a_copy_that_failed_at_once)
{
	unsigned char *edge = new_edge(3 * PAGE);

	for (int i = 0; i < 1000; i++)
		must_be(queue_copyin(self->ctx, self->id, 0, edge, 4 * PAGE, NULL) == -EFAULT);
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, is_given_back_by_a_copy_that_was_cancelled)
{
	for (int i = 0; i < 3; i++) {
		int fence = must(queue_copyin(self->ctx, self->id, 0, self->memory, 5 * PAGE,
					      AFTER_COOKIE(self->gate.fd, 1)));

		close(fence);
	}
	EXPECT_EQ(3, do_cancel(self->ctx, 1));
	open_gate(&self->gate);
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

TEST_F(limit, is_given_back_when_the_context_was_closed)
{
	int ctx = new_context();

	must(queue_copyin(self->ctx, self->id, 0, self->memory, LIMIT_PAGES * PAGE,
			  AFTER(self->gate.fd)));
	close(self->ctx);
	self->ctx = ctx;
	open_gate(&self->gate);
	expect_nothing_counted(_metadata, self->ctx, self->memory);
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
