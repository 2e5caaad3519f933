// SPDX-License-Identifier: GPL-2.0-only
/* CANCEL: queued copies that shall not be made any more. Needs the module vgem. */
#include "common_async.h"
#include "common_vgem.h"

#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(cancel)
{
	int card, ctx;
	struct ends ends;
	struct gate gate;
};

FIXTURE_SETUP(cancel)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->gate = new_gate(self->card);
}

FIXTURE_TEARDOWN(cancel)
{
	close(self->ctx);
	close(self->card);
}

/* --- what is found ---------------------------------------------------------------------------- */

TEST_F(cancel, of_each_kind_of_copy)
{
	for (int kind = COPYIN; kind <= TRANSFER; kind++) {
		struct gate gate = new_gate(self->card);
		int fence = must(queue_copy_of(&self->ends, kind, AFTER_COOKIE(gate.fd, 1)));

		EXPECT_EQ(1, do_cancel(self->ctx, 1));
		open_gate(&gate);
		EXPECT_EQ(-ECANCELED, end_fence(fence));
		EXPECT_TRUE(untouched(&self->ends, kind));
	}
}

TEST_F(cancel, of_a_cookie_finds_every_copy_with_it_and_no_other)
{
	static const __u64 cookies[] = { 1, 2, 1, 0, UINT64_MAX, 1 };
	int fences[ARRAY_SIZE(cookies)];

	for (size_t i = 0; i < ARRAY_SIZE(cookies); i++)
		fences[i] = must(queue_copy_of(&self->ends, COPYOUT,
					       AFTER_COOKIE(self->gate.fd, cookies[i])));
	EXPECT_EQ(3, do_cancel(self->ctx, 1));
	EXPECT_EQ(1, do_cancel(self->ctx, UINT64_MAX));
	open_gate(&self->gate);
	for (size_t i = 0; i < ARRAY_SIZE(cookies); i++) {
		const bool cancelled = cookies[i] == 1 || cookies[i] == UINT64_MAX;

		EXPECT_EQ(cancelled ? -ECANCELED : 0, end_fence(fences[i])) TH_LOG("copy %zu", i);
	}
	EXPECT_TRUE(arrived(&self->ends, COPYOUT));
}

TEST_F(cancel, of_all_finds_every_copy_of_the_context_and_no_other)
{
	int ctx = new_context();
	struct ends other;
	int theirs, ours[3];

	new_ends(&other, ctx, NBYTES);
	theirs = must(queue_copy_of(&other, TRANSFER, AFTER_COOKIE(self->gate.fd, 1)));
	for (int i = 0; i < 3; i++)
		ours[i] = must(queue_copy_of(&self->ends, COPYIN, AFTER_COOKIE(self->gate.fd, i)));
	EXPECT_EQ(3, do_cancel_all(self->ctx));
	EXPECT_EQ(-ENOENT, do_cancel_all(self->ctx));
	open_gate(&self->gate);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(-ECANCELED, end_fence(ours[i]));
	EXPECT_EQ(0, end_fence(theirs));
	EXPECT_TRUE(arrived(&other, TRANSFER));
	EXPECT_TRUE(untouched(&self->ends, COPYIN));
	close(ctx);
}

TEST_F(cancel, without_anything_to_be_found_is_ENOENT)
{
	int other = new_context();
	int fence;

	EXPECT_EQ(-ENOENT, do_cancel(self->ctx, 1));
	EXPECT_EQ(-ENOENT, do_cancel_all(self->ctx));
	fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER_COOKIE(self->gate.fd, 1)));
	EXPECT_EQ(-ENOENT, do_cancel(self->ctx, 2));
	EXPECT_EQ(-ENOENT, do_cancel(other, 1));
	EXPECT_EQ(-ENOENT, do_cancel_all(other));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(fence));
	EXPECT_EQ(-ENOENT, do_cancel(self->ctx, 1));
	EXPECT_EQ(-ENOENT, do_cancel_all(self->ctx));
	close(other);
}

TEST_F(cancel, finds_nothing_twice)
{
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER_COOKIE(self->gate.fd, 1)));

	EXPECT_EQ(1, do_cancel(self->ctx, 1));
	EXPECT_EQ(-ENOENT, do_cancel(self->ctx, 1));
	EXPECT_EQ(-ENOENT, do_cancel_all(self->ctx));
	open_gate(&self->gate);
	EXPECT_EQ(-ECANCELED, end_fence(fence));
}

TEST_F(cancel, cookie_of_what_is_over_can_be_used_again)
{
	must(end_fence(must(queue_copy_of(
		&self->ends, COPYOUT,
		(&(struct queueing){ .flags = DEVBUF_ASYNC_OUT_FENCE, .cookie = 1 })))));
	must(queue_copy_of(&self->ends, TRANSFER, AFTER_COOKIE(self->gate.fd, 1)));
	EXPECT_EQ(1, do_cancel(self->ctx, 1));
	open_gate(&self->gate);
	EXPECT_TRUE(untouched(&self->ends, TRANSFER));
}

TEST_F(cancel, of_a_copy_without_a_fence)
{
	struct queueing how = { .in_fences = &self->gate.fd, .nr_in_fences = 1, .cookie = 1 };

	must(queue_copy_of(&self->ends, TRANSFER, &how));
	EXPECT_EQ(1, do_cancel(self->ctx, 1));
	open_gate(&self->gate);
	EXPECT_TRUE(untouched(&self->ends, TRANSFER));
}

TEST_F(cancel, cookie_and_all_exclude_each_other)
{
	struct devbuf_cancel cancel = { .size = sizeof(cancel) };

	must(queue_copy_of(&self->ends, TRANSFER, AFTER_COOKIE(self->gate.fd, 1)));
	EXPECT_EQ(-EINVAL, do_command(self->ctx, DEVBUF_CANCEL, &cancel));
	cancel.flags = DEVBUF_CANCEL_ALL;
	cancel.cookie = 1;
	EXPECT_EQ(-EINVAL, do_command(self->ctx, DEVBUF_CANCEL, &cancel));
	EXPECT_EQ(1, do_cancel(self->ctx, 1));
	open_gate(&self->gate);
}

/* --- what comes of it ------------------------------------------------------------------------- */

/* The order is kept: who waits for the fence must not find what comes before it unfinished. */
TEST_F(cancel, fence_signals_no_earlier_than_what_it_was_ordered_after)
{
	__u32 handle = vgem_import_export(self->card, self->ctx, self->ends.dst);
	__u32 work = vgem_attach_fence(self->card, handle, VGEM_FENCE_WRITE);
	struct queueing how = { .flags = DEVBUF_ASYNC_OUT_FENCE, .cookie = 1 };
	int fence = must(queue_copy_of(&self->ends, TRANSFER, &how));

	EXPECT_EQ(1, do_cancel(self->ctx, 1));
	EXPECT_TRUE(is_held(self->ctx, fence));
	vgem_signal_fence(self->card, work);
	EXPECT_EQ(-ECANCELED, end_fence(fence));
	EXPECT_TRUE(untouched(&self->ends, TRANSFER));
	open_gate(&self->gate);
}

TEST_F(cancel, in_the_middle_of_a_row_keeps_the_rest_in_order)
{
	struct queueing cookie = { .flags = DEVBUF_ASYNC_OUT_FENCE, .cookie = 1 };
	int first = must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));
	int second = must(queue_copy_of(&self->ends, COPYIN, &cookie));
	int third =
		must(queue_transfer(self->ctx, self->ends.src, 0, self->ends.dst, 0, NBYTES, NULL));

	EXPECT_EQ(1, do_cancel(self->ctx, 1));
	EXPECT_TRUE(is_held(self->ctx, third));
	EXPECT_EQ(0, fence_status(first));
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(third));
	EXPECT_EQ(1, fence_status(first));
	EXPECT_EQ(-ECANCELED, end_fence(second));
}

TEST_F(cancel, of_a_whole_row)
{
	enum { NR = 200 };
	int fences[NR];

	for (int i = 0; i < NR; i++)
		fences[i] = must(queue_copy_of(&self->ends, i % 3, AFTER_COOKIE(self->gate.fd, 1)));
	EXPECT_EQ(NR, do_cancel(self->ctx, 1));
	open_gate(&self->gate);
	for (int i = 0; i < NR; i++)
		EXPECT_EQ(-ECANCELED, end_fence(fences[i]));
	EXPECT_TRUE(untouched(&self->ends, COPYIN));
	EXPECT_TRUE(untouched(&self->ends, COPYOUT));
}

/* Where it is met half-way its destination holds a beginning of the new bytes. */
TEST_F_TIMEOUT(cancel, of_a_copy_that_may_be_running_or_over, 120)
{
	const __u64 nbytes = 8 * MIB;
	struct queueing how = { .flags = DEVBUF_ASYNC_OUT_FENCE, .cookie = 1 };
	struct ends ends;
	int nr_cancelled = 0;

	open_gate(&self->gate);
	new_ends(&ends, self->ctx, nbytes);
	for (int i = 0; i < 30; i++) {
		int fence = must(queue_copy_of(&ends, i % 3, &how));
		int ret;

		for (volatile int delay = i * 2000; delay > 0; delay--)
			;
		ret = do_cancel(self->ctx, 1);
		EXPECT_TRUE(ret == 1 || ret == -ENOENT) TH_LOG("%d", ret);
		EXPECT_EQ(ret == 1 ? -ECANCELED : 0, end_fence(fence));
		nr_cancelled += ret == 1;
	}
	printf("# %d of 30 were cancelled\n", nr_cancelled);
	/* Nothing is left of it that disturbs the next. */
	for (int kind = COPYIN; kind <= TRANSFER; kind++) {
		EXPECT_EQ(0, end_fence(must(queue_copy_of(&ends, kind, NULL))));
		EXPECT_TRUE(arrived(&ends, kind));
	}
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
