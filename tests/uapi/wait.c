// SPDX-License-Identifier: GPL-2.0-only
/* WAIT: for queued work on a range of bytes, and for fences. Needs the module vgem. */
#include "common_async.h"
#include "common_vgem.h"

#include <signal.h>

#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(wait)
{
	int card, ctx;
	struct ends ends;
	struct gate gate;
};

FIXTURE_SETUP(wait)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->gate = new_gate(self->card);
}

FIXTURE_TEARDOWN(wait)
{
	close(self->ctx);
	close(self->card);
}

/* Asks whether a range is free, without waiting: 0 or -ETIMEDOUT. */
static int ask(int ctx, __u64 id, __u64 offset, __u64 nbytes, __u32 flags)
{
	struct devbuf_wait wait = wait_argument(id, flags);

	wait.offset = offset;
	wait.nbytes = nbytes;
	wait.deadline_ns = 0;
	return do_wait(ctx, &wait);
}

/* --- what is waited for ----------------------------------------------------------------------- */

TEST_F(wait, for_nothing_is_over_at_once)
{
	struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_WRITE);

	wait.out_error = 1;
	wait.out_pad = 1;
	EXPECT_EQ(0, do_wait(self->ctx, &wait));
	EXPECT_EQ(0, wait.out_error);
	EXPECT_EQ(0u, wait.out_pad);
}

TEST_F(wait, until_the_copy_is_over)
{
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));
	struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_READ);
	struct opener opener;

	open_when_asleep(&opener, &self->gate);
	EXPECT_EQ(0, do_wait(self->ctx, &wait));
	EXPECT_TRUE(has_waited(&opener));
	EXPECT_EQ(1, fence_status(fence));
	EXPECT_EQ(0, wait.out_error);
}

TEST_F(wait, to_read_is_for_writes_and_to_write_for_all)
{
	must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));
	EXPECT_EQ(0, ask(self->ctx, self->ends.src, 0, NBYTES, DEVBUF_WAIT_READ));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, self->ends.src, 0, NBYTES, DEVBUF_WAIT_WRITE));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, self->ends.dst, 0, NBYTES, DEVBUF_WAIT_READ));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, self->ends.dst, 0, NBYTES, DEVBUF_WAIT_WRITE));
	EXPECT_EQ(-ETIMEDOUT,
		  ask(self->ctx, self->ends.src, 0, NBYTES, DEVBUF_WAIT_READ | DEVBUF_WAIT_WRITE));
	open_gate(&self->gate);
}

TEST_F(wait, is_for_the_bytes_of_the_range_alone)
{
	__u64 dst = self->ends.dst;
	__u64 view = new_allocated_view(self->ctx, dst, 90, 1000);

	must(queue_copyin(self->ctx, dst, 100, self->ends.from, 100, AFTER(self->gate.fd)));
	EXPECT_EQ(0, ask(self->ctx, dst, 0, 100, DEVBUF_WAIT_WRITE));
	EXPECT_EQ(0, ask(self->ctx, dst, 200, 100, DEVBUF_WAIT_WRITE));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, dst, 99, 2, DEVBUF_WAIT_WRITE));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, dst, 199, 2, DEVBUF_WAIT_READ));
	EXPECT_EQ(0, ask(self->ctx, view, 0, 10, DEVBUF_WAIT_READ));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, view, 10, 1, DEVBUF_WAIT_READ));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, view, 109, 1, DEVBUF_WAIT_READ));
	EXPECT_EQ(0, ask(self->ctx, view, 110, 1, DEVBUF_WAIT_READ));
	open_gate(&self->gate);
}

TEST_F(wait, is_for_work_of_other_drivers)
{
	__u32 handle = vgem_import_export(self->card, self->ctx, self->ends.dst);
	__u32 reads = vgem_attach_fence(self->card, handle, 0);
	__u32 writes;

	EXPECT_EQ(0, ask(self->ctx, self->ends.dst, 0, 1, DEVBUF_WAIT_READ));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, self->ends.dst, 0, 1, DEVBUF_WAIT_WRITE));
	vgem_signal_fence(self->card, reads);
	EXPECT_EQ(0, ask(self->ctx, self->ends.dst, 0, 1, DEVBUF_WAIT_WRITE));
	writes = vgem_attach_fence(self->card, handle, VGEM_FENCE_WRITE);
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, self->ends.dst, 0, 1, DEVBUF_WAIT_READ));
	vgem_signal_fence(self->card, writes);
	EXPECT_EQ(0, ask(self->ctx, self->ends.dst, 0, 1, DEVBUF_WAIT_READ));
	open_gate(&self->gate);
}

/* Other drivers' work is known by pages. */
TEST_F(wait, is_for_work_on_dma_bufs_whose_pages_are_touched)
{
	__u64 view = new_allocated_view(self->ctx, self->ends.dst, PAGE + 100, 10);
	__u32 handle = vgem_import_export(self->card, self->ctx, view);

	vgem_attach_fence(self->card, handle, VGEM_FENCE_WRITE);
	EXPECT_EQ(0, ask(self->ctx, self->ends.dst, 0, PAGE, DEVBUF_WAIT_WRITE));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, self->ends.dst, 0, PAGE + 1, DEVBUF_WAIT_WRITE));
	EXPECT_EQ(-ETIMEDOUT, ask(self->ctx, self->ends.dst, PAGE, 1, DEVBUF_WAIT_WRITE));
	EXPECT_EQ(0, ask(self->ctx, self->ends.dst, 2 * PAGE, PAGE, DEVBUF_WAIT_WRITE));
	open_gate(&self->gate);
}

/* What is queued while it waits is another matter. */
TEST_F(wait, ends_though_more_was_queued_meanwhile)
{
	struct gate later = new_gate(self->card);
	int first = must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));
	int second;
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_WRITE);

		_exit(do_wait(self->ctx, &wait) ? 1 : 0);
	}
	await_ioctl(child, DEVBUF_WAIT);
	second = must(queue_copy_of(&self->ends, TRANSFER, AFTER(later.fd)));
	open_gate(&self->gate);
	EXPECT_EQ(0, wait_for(child));
	EXPECT_EQ(0, end_fence(first));
	EXPECT_EQ(0, fence_status(second));
	open_gate(&later);
}

TEST_F(wait, for_fences)
{
	struct gate other = new_gate(self->card);
	__s32 fences[] = { self->gate.fd, other.fd };
	struct devbuf_wait wait = wait_fences_argument(fences, 2);
	struct opener opener;

	wait.deadline_ns = 0;
	EXPECT_EQ(-ETIMEDOUT, do_wait(self->ctx, &wait));
	vgem_signal_fence(other.card, other.vgem_fence);
	EXPECT_EQ(-ETIMEDOUT, do_wait(self->ctx, &wait));
	wait.deadline_ns = DEVBUF_NO_DEADLINE;
	open_when_asleep(&opener, &self->gate);
	EXPECT_EQ(0, do_wait(self->ctx, &wait));
	EXPECT_TRUE(has_waited(&opener));
}

TEST_F(wait, for_a_range_and_for_fences)
{
	struct gate other = new_gate(self->card);
	struct devbuf_wait wait = wait_fences_argument(&other.fd, 1);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));

	wait.id = self->ends.dst;
	wait.nbytes = 1;
	wait.flags = DEVBUF_WAIT_READ;
	wait.deadline_ns = 0;
	EXPECT_EQ(-ETIMEDOUT, do_wait(self->ctx, &wait));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_EQ(-ETIMEDOUT, do_wait(self->ctx, &wait));
	vgem_signal_fence(other.card, other.vgem_fence);
	EXPECT_EQ(0, do_wait(self->ctx, &wait));
}

/* --- the deadline ----------------------------------------------------------------------------- */

TEST_F(wait, deadline_that_has_passed_asks_only)
{
	struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_READ);

	must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));
	wait.deadline_ns = 1;
	EXPECT_EQ(-ETIMEDOUT, do_wait(self->ctx, &wait));
	wait.deadline_ns = now_ns();
	EXPECT_EQ(-ETIMEDOUT, do_wait(self->ctx, &wait));
	/* What is over is over. */
	wait.id = self->ends.src;
	EXPECT_EQ(0, do_wait(self->ctx, &wait));
	open_gate(&self->gate);
}

TEST_F(wait, deadline_is_not_missed_nor_met_early)
{
	struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_READ);

	must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));
	wait.deadline_ns = now_ns() + 50 * 1000 * 1000;
	EXPECT_EQ(-ETIMEDOUT, do_wait(self->ctx, &wait));
	EXPECT_LE(wait.deadline_ns, now_ns());
	wait.id = wait.flags = wait.nbytes = 0;
	wait.in_fences = (uintptr_t)&self->gate.fd;
	wait.nr_in_fences = 1;
	wait.deadline_ns = now_ns() + 50 * 1000 * 1000;
	EXPECT_EQ(-ETIMEDOUT, do_wait(self->ctx, &wait));
	EXPECT_LE(wait.deadline_ns, now_ns());
	open_gate(&self->gate);
}

TEST_F(wait, far_deadlines_are_none)
{
	static const __u64 deadlines[] = { INT64_MAX, 1ULL << 63, (1ULL << 63) + 1, UINT64_MAX };

	open_gate(&self->gate);
	for (size_t i = 0; i < ARRAY_SIZE(deadlines); i++) {
		struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_READ);
		struct gate gate = new_gate(self->card);
		struct opener opener;

		must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd)));
		wait.deadline_ns = deadlines[i];
		open_when_asleep(&opener, &gate);
		EXPECT_EQ(0, do_wait(self->ctx, &wait)) TH_LOG("deadline %zu", i);
		EXPECT_TRUE(has_waited(&opener));
	}
}

/* --- errors of what is waited for ------------------------------------------------------------- */

TEST_F(wait, tells_the_error_of_a_fence)
{
	__s32 fences[2];
	struct devbuf_wait wait = wait_fences_argument(fences, 2);

	fences[0] = must(queue_copy_of(&self->ends, COPYOUT, NULL));
	fences[1] = must(queue_copy_of(&self->ends, COPYIN, AFTER_COOKIE(self->gate.fd, 1)));
	must(do_cancel(self->ctx, 1));
	open_gate(&self->gate);
	EXPECT_EQ(0, do_wait(self->ctx, &wait));
	EXPECT_EQ(-ECANCELED, wait.out_error);
}

TEST_F(wait, tells_the_error_of_a_copy_on_the_range)
{
	struct devbuf_wait *wait =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	must(queue_copy_of(&self->ends, TRANSFER, AFTER_COOKIE(self->gate.fd, 1)));
	*wait = wait_argument(self->ends.dst, DEVBUF_WAIT_READ);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(do_wait(self->ctx, wait) ? 1 : 0);
	await_ioctl(child, DEVBUF_WAIT);
	must(do_cancel(self->ctx, 1));
	open_gate(&self->gate);
	EXPECT_EQ(0, wait_for(child));
	EXPECT_EQ(-ECANCELED, wait->out_error);
}

/* --- signals ---------------------------------------------------------------------------------- */

static void do_nothing(int number)
{
	(void)number;
}

TEST_F(wait, signal_ends_it)
{
	struct sigaction action = { .sa_handler = do_nothing };
	pid_t child;

	must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));
	must_libc(sigaction(SIGUSR1, &action, NULL));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_READ);

		_exit(-do_wait(self->ctx, &wait));
	}
	await_ioctl(child, DEVBUF_WAIT);
	must_libc(kill(child, SIGUSR1));
	EXPECT_EQ(EINTR, wait_for(child));
	open_gate(&self->gate);
}

TEST_F(wait, fatal_signal_ends_it)
{
	pid_t child;

	must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		struct devbuf_wait wait = wait_argument(self->ends.dst, DEVBUF_WAIT_READ);

		_exit(-do_wait(self->ctx, &wait));
	}
	await_ioctl(child, DEVBUF_WAIT);
	must_libc(kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, wait_for(child));
	open_gate(&self->gate);
}

/* --- what is refused -------------------------------------------------------------------------- */

TEST_F(wait, arguments_that_are_wrong)
{
	const struct devbuf_wait right = wait_argument(self->ends.dst, DEVBUF_WAIT_READ);
	const struct devbuf_wait none = wait_fences_argument(&self->gate.fd, 1);
	static __s32 many[DEVBUF_MAX_IN_FENCES + 1];
	__s32 bad[] = { -1, self->ctx };
	struct {
		struct devbuf_wait wait;
		int error;
	} cases[] = {
		[0] = { right, -EINVAL },    [1] = { right, -EINVAL }, [2] = { right, -EINVAL },
		[3] = { right, -EOVERFLOW }, [4] = { right, -ENOENT }, [5] = { right, -ENODATA },
		[6] = { none, -EINVAL },     [7] = { none, -EINVAL },  [8] = { none, -EINVAL },
		[9] = { none, -EBADF },      [10] = { none, -EINVAL }, [11] = { none, -EFAULT },
		[12] = { none, -EINVAL },
	};

	cases[0].wait.flags = 0;
	cases[1].wait.nbytes = 0;
	cases[2].wait.offset = NBYTES;
	cases[3].wait.offset = 2;
	cases[3].wait.nbytes = UINT64_MAX;
	cases[4].wait.id = UINT64_MAX;
	cases[5].wait.id = new_buffer(self->ctx, NBYTES);
	cases[6].wait.flags = DEVBUF_WAIT_READ;
	cases[7].wait.offset = 1;
	cases[8].wait.nbytes = 1;
	cases[9].wait.in_fences = (uintptr_t)&bad[0];
	cases[10].wait.in_fences = (uintptr_t)&bad[1];
	cases[11].wait.in_fences = 0;
	cases[12].wait.in_fences = (uintptr_t)many;
	cases[12].wait.nr_in_fences = DEVBUF_MAX_IN_FENCES + 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cases[i].wait.deadline_ns = 0;
		EXPECT_EQ(cases[i].error, do_wait(self->ctx, &cases[i].wait)) TH_LOG("%zu", i);
	}
	open_gate(&self->gate);
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
