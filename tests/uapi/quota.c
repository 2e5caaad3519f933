// SPDX-License-Identifier: GPL-2.0-only
/*
 * A context may have so many commands queued, of so many bytes, and no more. Needs the module vgem,
 * or sw_sync, to hold them.
 */
#include "common_async.h"
#include "common_vgem.h"

#include "kselftest_harness.h"

#define NBYTES       100u

/* What DEVBUF_MAX_QUEUED_NBYTES is made of. */
#define RANGE_NBYTES (DEVBUF_MAX_QUEUED_NBYTES / DEVBUF_MAX_RANGES)

FIXTURE(quota)
{
	int card, ctx, timeline;
	struct ends ends;
	/* Signals when the test says so; vgem's would not be held long enough by a slow machine. */
	__s32 fence;
	struct gate gate;
};

FIXTURE_SETUP(quota)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->timeline = new_timeline();
	if (self->timeline < 0)
		self->gate = new_gate(self->card);
	self->fence = self->timeline < 0 ? self->gate.fd : new_timeline_fence(self->timeline, 1);
}

FIXTURE_TEARDOWN(quota)
{
	close(self->ctx);
	close(self->card);
}

static void let_go(FIXTURE_DATA(quota) * self)
{
	if (self->timeline < 0)
		open_gate(&self->gate);
	else
		advance_timeline(self->timeline, 1);
}

/* What was over gives its place back, though maybe not at once. */
static int queue_at_last(const struct ends *ends)
{
	const __u64 end = now_ns() + DEADLINE_MS * 1000000ULL;
	int ret;

	do {
		ret = queue_copy_of(ends, TRANSFER, NULL);
	} while (ret == -EDQUOT && now_ns() < end);
	return ret;
}

/* --- how many --------------------------------------------------------------------------------- */

TEST_F_TIMEOUT(quota, more_commands_than_the_most_are_EDQUOT, 300)
{
	struct queueing held = { .in_fences = &self->fence, .nr_in_fences = 1, .cookie = 1 };
	struct devbuf_wait wait = wait_fences_argument(&self->fence, 1);
	struct ends other;

	new_ends(&other, new_context(), NBYTES);
	/* Without order, since what that costs is not the matter here. */
	held.flags = DEVBUF_ASYNC_EXPLICIT;
	for (int i = 0; i < DEVBUF_MAX_QUEUED; i++) {
		ASSERT_EQ(0, queue_copy_of(&self->ends, TRANSFER, &held)) TH_LOG("copy %d", i);
	}
	for (int kind = COPYIN; kind <= TRANSFER; kind++) {
		EXPECT_EQ(-EDQUOT, queue_copy_of(&self->ends, kind, &held));
		EXPECT_EQ(-EDQUOT, queue_copy_of(&self->ends, kind, NULL));
	}
	/* One can still wait; and nothing keeps one from that. */
	wait.deadline_ns = 0;
	EXPECT_EQ(-ETIMEDOUT, do_wait(self->ctx, &wait));
	/* Synchronous ones are not queued; other contexts have their own number. */
	EXPECT_EQ(0, do_transfer(self->ctx, self->ends.dst, 0, self->ends.src, 0, NBYTES));
	EXPECT_EQ(0, end_fence(must(queue_copy_of(&other, TRANSFER, NULL))));
	let_go(self);
	EXPECT_EQ(0, end_fence(must(queue_at_last(&self->ends))));
	close(other.ctx);
}

/* Who has waited for a fence finds the place of its copy free. */
TEST_F_TIMEOUT(quota, place_is_free_when_the_fence_has_signalled, 300)
{
	struct queueing held = { .in_fences = &self->fence, .nr_in_fences = 1, .cookie = 1 };
	struct ends large;

	held.flags = DEVBUF_ASYNC_EXPLICIT;
	for (int i = 0; i < DEVBUF_MAX_QUEUED - 1; i++) {
		ASSERT_EQ(0, queue_copy_of(&self->ends, TRANSFER, &held)) TH_LOG("copy %d", i);
	}
	/* Too large to be made by who queues it. */
	new_ends(&large, self->ctx, 20 * PAGE);
	for (int i = 0; i < 300; i++) {
		ASSERT_EQ(0, end_fence(must(queue_copy_of(&large, TRANSFER, NULL))));
	}
	let_go(self);
}

/* --- how much --------------------------------------------------------------------------------- */

/* As many ranges as there may be; the first has @more bytes more than the others. */
static int queue_much(int ctx, __u64 id, __s64 more, const __s32 *fence)
{
	static struct devbuf_transfer_range ranges[DEVBUF_MAX_RANGES];
	struct devbuf_transfer transfer = {
		.flags = DEVBUF_ASYNC | DEVBUF_ASYNC_EXPLICIT,
		.in_fences = (uintptr_t)fence,
		.nr_in_fences = 1,
		.cookie = 1,
	};

	for (int i = 0; i < DEVBUF_MAX_RANGES; i++)
		ranges[i] = (struct devbuf_transfer_range){
			.dst_id = id,
			.src_id = id,
			.nbytes = RANGE_NBYTES,
		};
	ranges[0].nbytes += more;
	return do_transfer_ranges(ctx, &transfer, ranges, DEVBUF_MAX_RANGES);
}

/* None of them is ever made, for that would take long. */
TEST_F(quota, more_bytes_than_the_most_are_EDQUOT_and_at_once_EINVAL)
{
	__u64 id = new_allocated(self->ctx, RANGE_NBYTES + PAGE);

	EXPECT_EQ(-EINVAL, queue_much(self->ctx, id, 1, &self->fence));
	EXPECT_EQ(0, queue_much(self->ctx, id, -(__s64)NBYTES, &self->fence));
	EXPECT_EQ(-EDQUOT, queue_much(self->ctx, id, 0, &self->fence));
	EXPECT_EQ(0, end_fence(must(queue_copy_of(&self->ends, TRANSFER, NULL))));
	self->ends.nbytes++;
	self->ends.src = self->ends.dst = id;
	EXPECT_EQ(-EDQUOT, queue_copy_of(&self->ends, TRANSFER, NULL));
	EXPECT_EQ(1, do_cancel(self->ctx, 1));
	let_go(self);
	EXPECT_EQ(0, end_fence(must(queue_at_last(&self->ends))));
	EXPECT_EQ(0, do_deallocate(self->ctx, id));
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
