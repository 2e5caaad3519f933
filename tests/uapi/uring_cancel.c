// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands on rings that do not come to their end by themselves: WAIT and its deadline, CANCEL, and
 * what becomes of them when their context, ring, thread or process goes. Then nothing may be left:
 * the module has no user any more. Needs the module vgem, whose fences hold commands back.
 */
#include "common_uring.h"
#include "common_vgem.h"

#include <signal.h>
#include <sys/wait.h>

#include "kselftest_harness.h"

#define NBYTES (300 * 1024u)

FIXTURE(pending)
{
	int card, ctx;
	struct io_uring ring;
	bool has_ring;
	/* Of a copy of each kind, so that none of them waits for another. */
	struct ends each[3];
	struct gate gate;
	bool rings_cancel;
};

FIXTURE_VARIANT(pending)
{
	unsigned int setup_flags, sqe_flags;
};

FIXTURE_VARIANT_ADD(pending, plain){ 0, 0 };
FIXTURE_VARIANT_ADD(pending, by_a_worker){ 0, IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(pending, polled_by_a_thread){ IORING_SETUP_SQPOLL, 0 };
FIXTURE_VARIANT_ADD(pending, completed_when_asked){
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	0,
};

/* Whether the end of a ring cancels what is pending, or waits for it. */
static bool rings_cancel(int ctx)
{
	struct devbuf_info info = { .size = sizeof(info) };

	must(do_command(ctx, DEVBUF_INFO, &info));
	return info.out_features & DEVBUF_FEATURE_URING_CANCEL;
}

FIXTURE_SETUP(pending)
{
	const char *reason = new_command_ring(&self->ring, variant->setup_flags);

	if (reason)
		SKIP(return, "%s", reason);
	self->has_ring = true;
	self->card = open_vgem();
	self->ctx = new_context();
	self->rings_cancel = rings_cancel(self->ctx);
	for (int kind = COPYIN; kind <= TRANSFER; kind++)
		new_ends(&self->each[kind], self->ctx, NBYTES);
	self->gate = new_gate(self->card);
}

FIXTURE_TEARDOWN(pending)
{
	if (self->has_ring)
		io_uring_queue_exit(&self->ring);
	close(self->ctx);
	close(self->card);
}

static void end_ring(FIXTURE_DATA(pending) * self)
{
	io_uring_queue_exit(&self->ring);
	self->has_ring = false;
}

/* One copy of each kind that the gate holds back; @copies must stay. */
static void prepare_held(FIXTURE_DATA(pending) * self, struct copy_command copies[3],
			 unsigned int sqe_flags, __u64 cookie)
{
	for (int kind = COPYIN; kind <= TRANSFER; kind++) {
		prepare_copy_of(&copies[kind], &self->each[kind], kind, 0);
		copies[kind].copy.in_fences = (uintptr_t)&self->gate.fd;
		copies[kind].copy.nr_in_fences = 1;
		copies[kind].copy.cookie = cookie;
		prepare_command(&self->ring, self->ctx, copies[kind].command, &copies[kind].copy,
				kind)
			->flags |= sqe_flags;
	}
}

/* All of them are queued; they may be issued in any order, and later. */
static void await_held(FIXTURE_DATA(pending) * self)
{
	await_queued(self->ctx, self->each[COPYIN].dst);
	await_queued(self->ctx, self->each[COPYOUT].src);
	await_queued(self->ctx, self->each[TRANSFER].dst);
}

static bool all_untouched(FIXTURE_DATA(pending) * self)
{
	return untouched(&self->each[COPYIN], COPYIN) && untouched(&self->each[COPYOUT], COPYOUT) &&
	       untouched(&self->each[TRANSFER], TRANSFER);
}

/* --- WAIT ------------------------------------------------------------------------------------- */

static void prepare_wait(FIXTURE_DATA(pending) * self, struct devbuf_wait *wait,
			 unsigned int sqe_flags, __u64 user_data)
{
	prepare_command(&self->ring, self->ctx, DEVBUF_WAIT, wait, user_data)->flags |= sqe_flags;
}

TEST_F(pending, wait_for_a_fence_and_for_a_range)
{
	struct devbuf_wait fences = wait_fences_argument(&self->gate.fd, 1);
	struct devbuf_wait range = wait_argument(self->each[0].dst, DEVBUF_WAIT_READ);
	struct devbuf_wait nothing = wait_argument(self->each[0].src, DEVBUF_WAIT_READ);
	int fence = must(queue_copy_of(&self->each[0], TRANSFER, AFTER(self->gate.fd)));

	prepare_wait(self, &fences, variant->sqe_flags, 1);
	prepare_wait(self, &range, variant->sqe_flags, 2);
	prepare_wait(self, &nothing, variant->sqe_flags, 3);
	submit(&self->ring);
	EXPECT_EQ(3u, next_completion(&self->ring).user_data);
	give_every_chance(self->ctx);
	EXPECT_FALSE(has_completion(&self->ring));
	vgem_signal_fence(self->card, self->gate.vgem_fence);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(0, next_completion(&self->ring).res);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_EQ(0, range.out_error);
}

TEST_F(pending, wait_ends_at_its_deadline)
{
	struct devbuf_wait wait = wait_fences_argument(&self->gate.fd, 1);

	wait.deadline_ns = now_ns() + 50 * 1000 * 1000;
	prepare_wait(self, &wait, variant->sqe_flags, 1);
	submit(&self->ring);
	EXPECT_EQ(-ETIMEDOUT, complete(&self->ring));
	EXPECT_LE(wait.deadline_ns, now_ns());
	wait.deadline_ns = 0;
	prepare_wait(self, &wait, variant->sqe_flags, 2);
	submit(&self->ring);
	EXPECT_EQ(-ETIMEDOUT, complete(&self->ring));
	open_gate(&self->gate);
}

TEST_F(pending, wait_tells_the_error)
{
	__s32 fence = must(queue_copy_of(&self->each[0], TRANSFER, AFTER_COOKIE(self->gate.fd, 1)));
	struct devbuf_wait wait = wait_fences_argument(&fence, 1);

	prepare_wait(self, &wait, variant->sqe_flags, 1);
	submit(&self->ring);
	must(do_cancel(self->ctx, 1));
	vgem_signal_fence(self->card, self->gate.vgem_fence);
	EXPECT_EQ(0, complete(&self->ring));
	EXPECT_EQ(-ECANCELED, wait.out_error);
}

/* --- CANCEL ----------------------------------------------------------------------------------- */

static int cancel_by_ring(FIXTURE_DATA(pending) * self, __u64 cookie)
{
	struct devbuf_cancel cancel = { .size = sizeof(cancel), .cookie = cookie };
	struct completion completion;

	prepare_command(&self->ring, self->ctx, DEVBUF_CANCEL, &cancel, 100);
	submit(&self->ring);
	/* Those of what is cancelled may come first. */
	do {
		completion = next_completion(&self->ring);
	} while (completion.user_data != 100);
	return completion.res ?: (int)cancel.out_count;
}

/* At once, though what holds them back does so still. */
TEST_F(pending, copies_are_cancelled_by_ioctl)
{
	struct copy_command copies[3];

	prepare_held(self, copies, variant->sqe_flags, 1);
	submit(&self->ring);
	for (int nr = 0; nr < 3;) {
		int ret = do_cancel(self->ctx, 1);

		nr += ret > 0 ? ret : 0;
		ASSERT_TRUE(ret > 0 || ret == -ENOENT);
	}
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(-ECANCELED, complete(&self->ring));
	for (int kind = COPYIN; kind <= TRANSFER; kind++)
		EXPECT_EQ(0u, copies[kind].copy.out_done_nbytes);
	EXPECT_EQ(-ENOENT, do_cancel_all(self->ctx));
	EXPECT_EQ(0, fence_status(self->gate.fd));
	open_gate(&self->gate);
	EXPECT_TRUE(all_untouched(self));
}

TEST_F(pending, copies_are_cancelled_by_ring)
{
	struct copy_command copies[3];

	prepare_held(self, copies, variant->sqe_flags, 1);
	submit(&self->ring);
	await_held(self);
	for (int nr = 0; nr < 3;) {
		int ret = cancel_by_ring(self, 1);

		nr += ret > 0 ? ret : 0;
		ASSERT_TRUE(ret > 0 || ret == -ENOENT);
	}
	EXPECT_EQ(-ENOENT, cancel_by_ring(self, 1));
	open_gate(&self->gate);
	EXPECT_TRUE(all_untouched(self));
}

TEST_F(pending, waits_are_cancelled)
{
	struct devbuf_wait wait = wait_fences_argument(&self->gate.fd, 1);

	wait.cookie = 1;
	for (int all = 0; all < 2; all++) {
		int ret;

		prepare_wait(self, &wait, variant->sqe_flags, 1);
		submit(&self->ring);
		do {
			ret = all ? do_cancel_all(self->ctx) : do_cancel(self->ctx, 1);
		} while (ret == -ENOENT);
		EXPECT_EQ(1, ret);
		EXPECT_EQ(-ECANCELED, complete(&self->ring));
	}
	EXPECT_EQ(0, fence_status(self->gate.fd));
}

TEST_F(pending, cancelled_copy_cancels_what_is_linked_to_it)
{
	struct copy_command copies[3];
	struct devbuf_info info = { .size = sizeof(info) };
	int ret;

	prepare_held(self, copies, variant->sqe_flags | IOSQE_IO_LINK, 1);
	prepare_command(&self->ring, self->ctx, DEVBUF_INFO, &info, 3);
	submit(&self->ring);
	do {
		ret = do_cancel(self->ctx, 1);
	} while (ret == -ENOENT);
	EXPECT_EQ(1, ret);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(-ECANCELED, complete(&self->ring));
	EXPECT_EQ(0u, info.out_abi_version);
}

/* io_uring's own way of cancelling does not reach devices. */
TEST_F(pending, ring_cannot_cancel_by_itself)
{
	struct copy_command copy;
	struct completion completion;
	struct io_uring_sqe *sqe;

	prepare_copy_of(&copy, &self->each[0], TRANSFER, 0);
	copy.copy.in_fences = (uintptr_t)&self->gate.fd;
	copy.copy.nr_in_fences = 1;
	prepare_command(&self->ring, self->ctx, copy.command, &copy.copy, 1)->flags |=
		variant->sqe_flags;
	submit(&self->ring);
	await_queued(self->ctx, self->each[0].dst);
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 1, 0);
	sqe->user_data = 2;
	submit(&self->ring);
	completion = next_completion(&self->ring);
	EXPECT_EQ(2u, completion.user_data);
	EXPECT_GT(0, completion.res);
	open_gate(&self->gate);
	EXPECT_EQ(0, complete(&self->ring));
	EXPECT_TRUE(arrived(&self->each[0], TRANSFER));
}

/* --- what goes meanwhile ---------------------------------------------------------------------- */

TEST_F(pending, context_may_be_closed)
{
	struct devbuf_wait wait = wait_argument(self->each[0].dst, DEVBUF_WAIT_WRITE);
	struct devbuf_info info = { .size = sizeof(info) };
	struct copy_command copies[3];

	prepare_held(self, copies, variant->sqe_flags, 0);
	submit(&self->ring);
	await_held(self);
	/* When the second completes, the first has been issued. */
	prepare_wait(self, &wait, 0, 3);
	prepare_command(&self->ring, self->ctx, DEVBUF_INFO, &info, 4);
	submit(&self->ring);
	EXPECT_EQ(4u, next_completion(&self->ring).user_data);
	close(self->ctx);
	open_gate(&self->gate);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(0, complete(&self->ring));
	EXPECT_TRUE(filled(self->each[COPYOUT].to, NBYTES, 1));
	self->ctx = -1;
	end_ring(self);
	close(self->card);
	EXPECT_TRUE(module_uses_fall_to(0));
}

/* The outputs cannot be written, and the copy is made all the same. */
TEST_F(pending, argument_may_be_unmapped)
{
	struct copy_command *copy = new_memory(sizeof(*copy));

	prepare_copy_of(copy, &self->each[0], TRANSFER, 0);
	copy->copy.in_fences = (uintptr_t)&self->gate.fd;
	copy->copy.nr_in_fences = 1;
	prepare_command(&self->ring, self->ctx, copy->command, &copy->copy, 0)->flags |=
		variant->sqe_flags;
	submit(&self->ring);
	await_queued(self->ctx, self->each[0].dst);
	munmap(copy, sizeof(*copy));
	open_gate(&self->gate);
	EXPECT_EQ(-EFAULT, complete(&self->ring));
	EXPECT_TRUE(arrived(&self->each[0], TRANSFER));
}

/* Where rings do not cancel, their end waits until the gate is open. */
TEST_F(pending, ring_may_be_closed)
{
	struct copy_command copies[3];

	prepare_held(self, copies, variant->sqe_flags, 0);
	submit(&self->ring);
	await_held(self);
	end_ring(self);
	give_every_chance(self->ctx);
	open_gate(&self->gate);
	close(self->ctx);
	close(self->card);
	self->ctx = -1;
	EXPECT_TRUE(module_uses_fall_to(0));
}

/* Whatever they wait for does not happen. */
TEST_F(pending, ring_may_be_closed_with_waits)
{
	struct devbuf_wait waits[3], last;

	for (int i = 0; i < 3; i++) {
		waits[i] = wait_fences_argument(&self->gate.fd, 1);
		waits[i].cookie = i;
		prepare_wait(self, &waits[i], variant->sqe_flags, i);
	}
	submit(&self->ring);
	/* One more, which shows that the others are under way. */
	last = wait_fences_argument(&self->gate.fd, 1);
	last.deadline_ns = 0;
	prepare_wait(self, &last, 0, 3);
	submit(&self->ring);
	EXPECT_EQ(3u, next_completion(&self->ring).user_data);
	end_ring(self);
	close(self->ctx);
	self->ctx = -1;
	EXPECT_TRUE(module_uses_fall_to(0));
	EXPECT_EQ(0, fence_status(self->gate.fd));
}

struct thread {
	FIXTURE_DATA(pending) * self;
	struct copy_command copies[3];
	struct devbuf_wait wait;
	unsigned int sqe_flags;
};

static void *submit_and_end(void *argument)
{
	struct thread *thread = argument;
	FIXTURE_DATA(pending) *self = thread->self;

	prepare_held(self, thread->copies, thread->sqe_flags, 1);
	thread->wait = wait_fences_argument(&self->gate.fd, 1);
	prepare_wait(self, &thread->wait, thread->sqe_flags, 3);
	submit(&self->ring);
	await_held(self);
	return NULL;
}

/* Its commands end, one way or the other, and the ring hears of each. */
TEST_F(pending, thread_that_submitted_may_end)
{
	struct thread thread = { .self = self, .sqe_flags = variant->sqe_flags };
	bool seen[4] = { 0 };
	pthread_t id;

	/* Such a ring belongs to one thread. */
	if (variant->setup_flags & IORING_SETUP_SINGLE_ISSUER)
		return;
	must(-pthread_create(&id, NULL, submit_and_end, &thread));
	must(-pthread_join(id, NULL));
	/* Its file stays open: the ring's thread may not have issued the WAIT yet. */
	vgem_signal_fence(self->card, self->gate.vgem_fence);
	for (int i = 0; i < 4; i++) {
		struct completion completion = next_completion(&self->ring);

		EXPECT_TRUE(completion.res == 0 || completion.res == -ECANCELED ||
			    completion.res == -EINTR || completion.res == -EFAULT)
		TH_LOG("%d", completion.res);
		EXPECT_FALSE(seen[completion.user_data]);
		seen[completion.user_data] = true;
	}
	EXPECT_EQ(-ENOENT, do_cancel_all(self->ctx));
}

/* In a child: everything of its own, and all of it pending. */
static void fill_child(unsigned int setup_flags, unsigned int sqe_flags, const struct gate *gate,
		       int ready)
{
	FIXTURE_DATA(pending) child = { .gate = *gate };
	struct copy_command copies[3];
	struct devbuf_wait wait = wait_fences_argument(&child.gate.fd, 1);

	must_be(!new_command_ring(&child.ring, setup_flags));
	child.ctx = new_context();
	for (int kind = COPYIN; kind <= TRANSFER; kind++)
		new_ends(&child.each[kind], child.ctx, NBYTES);
	prepare_held(&child, copies, sqe_flags, 1);
	prepare_wait(&child, &wait, sqe_flags, 3);
	submit(&child.ring);
	await_held(&child);
	signal_peer(ready);
	/* Until it is told, or killed. */
	await_peer(ready);
	_exit(0);
}

TEST_F(pending, process_may_end)
{
	for (int killed = 0; killed < 2; killed++) {
		struct gate gate = new_gate(self->card);
		int sockets[2];
		pid_t child;

		new_socket_pair(sockets);
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			fill_child(variant->setup_flags, variant->sqe_flags, &gate, sockets[1]);
		await_peer(sockets[0]);
		if (killed)
			must_libc(kill(child, SIGKILL));
		else
			signal_peer(sockets[0]);
		/* Where rings do not cancel, the process waits for what it began. */
		if (self->rings_cancel) {
			EXPECT_EQ(killed ? -SIGKILL : 0, wait_for(child));
			EXPECT_EQ(0, fence_status(gate.fd));
			open_gate(&gate);
		} else {
			open_gate(&gate);
			EXPECT_EQ(killed ? -SIGKILL : 0, wait_for(child));
		}
		close(sockets[0]);
		close(sockets[1]);
	}
	end_ring(self);
	close(self->ctx);
	close(self->card);
	self->ctx = -1;
	EXPECT_TRUE(module_uses_fall_to(0));
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
