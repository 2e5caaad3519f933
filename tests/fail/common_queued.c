// SPDX-License-Identifier: GPL-2.0-only
/* Operations that queue copies, by ioctl and by ring, wait for them and cancel them. */
#include "common.h"

#include <sched.h>

#include "../uapi/common_vgem.h"

/* --- queueing --------------------------------------------------------------------------------- */

/* More than the driver has room for on its stack. */
#define NR_RANGES 6

static void remember_pinned_pages(struct world *world)
{
	world->pinned_before = nr_pinned_pages();
}

/* Pages are given back soon after the copy is over. */
static void await_unpinned(struct world *world)
{
	const __u64 end = now_ns() + DEADLINE_MS * 1000000ULL;

	while (nr_pinned_pages() != world->pinned_before && now_ns() < end)
		sched_yield();
}

static void end_copy(struct world *world)
{
	must(end_fence(world->made_fd));
	await_unpinned(world);
}

static int keep_fence(struct world *world, int fence)
{
	world->made_fd = fence;
	return fence < 0 ? fence : 0;
}

static int queued_copyin(struct world *world)
{
	return keep_fence(world, queue_copyin(world->ctx, world->base, 1, world->memory + 1,
					      NBYTES - 1, AFTER(world->fence)));
}

static int queued_copyout(struct world *world)
{
	return keep_fence(world, queue_copyout(world->ctx, world->base, 1, world->memory + 1,
					       NBYTES - 1, AFTER(world->fence)));
}

static int queued_transfer(struct world *world)
{
	return keep_fence(world, queue_transfer(world->ctx, world->base, 3, world->twin, 3,
						NBYTES - 3, AFTER(world->fence)));
}

const struct operation operation_queued_copyin = {
	.prepare = remember_pinned_pages,
	.run = queued_copyin,
	.undo = end_copy,
};
const struct operation operation_queued_copyout = {
	.prepare = remember_pinned_pages,
	.run = queued_copyout,
	.undo = end_copy,
};
const struct operation operation_queued_transfer = {
	.prepare = remember_pinned_pages,
	.run = queued_transfer,
	.undo = end_copy,
};

static int queued_without_fences(struct world *world)
{
	struct queueing plain = { 0 };

	return queue_transfer(world->ctx, world->view, 0, world->twin, PAGE, PAGE, &plain);
}

static void await_view(struct world *world)
{
	struct devbuf_wait wait = wait_argument(world->view, DEVBUF_WAIT_WRITE);

	must(do_wait(world->ctx, &wait));
}

const struct operation operation_queued_without_fences = {
	.run = queued_without_fences,
	.undo = await_view,
};

static int queued_in_many_ranges(struct world *world)
{
	struct devbuf_transfer argument = { .flags = DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE };
	struct devbuf_transfer_range ranges[NR_RANGES];
	int ret;

	for (__u32 i = 0; i < NR_RANGES; i++)
		ranges[i] = (struct devbuf_transfer_range){
			.dst_id = i % 2 ? world->twin : world->base,
			.dst_offset = i,
			.src_id = i % 2 ? world->base : world->twin,
			.src_offset = i,
			.nbytes = NBYTES - NR_RANGES,
		};
	ret = do_transfer_ranges(world->ctx, &argument, ranges, NR_RANGES);
	world->made_fd = argument.out_fence;
	return ret;
}

const struct operation operation_queued_in_many_ranges = {
	.prepare = remember_pinned_pages,
	.run = queued_in_many_ranges,
	.undo = end_copy,
};

/* --- waiting and cancelling ------------------------------------------------------------------- */

static int wait_for_all(struct world *world)
{
	struct devbuf_wait wait = wait_fences_argument(&world->fence, 1);

	wait.id = world->base;
	wait.nbytes = NBYTES;
	wait.flags = DEVBUF_WAIT_WRITE;
	return do_wait(world->ctx, &wait);
}

const struct operation operation_wait = { .run = wait_for_all };

/* Without order, so that bytes can be looked at meanwhile. */
static void hold_copy(struct world *world)
{
	struct queueing how = {
		.flags = DEVBUF_ASYNC_OUT_FENCE | DEVBUF_ASYNC_EXPLICIT,
		.in_fences = &world->made_gate.fd,
		.nr_in_fences = 1,
		.cookie = 1,
	};

	world->made_gate = new_gate(world->vgem);
	world->made_fd =
		must(queue_transfer(world->ctx, world->base, 0, world->twin, 0, NBYTES, &how));
}

/* When the reply cannot be written it has been cancelled all the same: then there is nothing left. */
static int cancel(struct world *world)
{
	int ret = do_cancel(world->ctx, 1);

	return ret < 0 && ret != -ENOENT ? ret : 0;
}

static void end_cancelled(struct world *world)
{
	open_gate(&world->made_gate);
	must_be(end_fence(world->made_fd) == -ECANCELED);
}

const struct operation operation_cancel = {
	.prepare = hold_copy,
	.run = cancel,
	.undo = end_cancelled,
	.of_vgem = true,
};

/* --- on a ring -------------------------------------------------------------------------------- */

static void prepare_on_ring(struct world *world, enum kind kind)
{
	struct ends ends = {
		.src = world->base,
		.dst = world->base,
		.from = world->memory,
		.to = world->memory,
		.nbytes = NBYTES,
	};
	struct copy_command *command = &world->made_command;

	remember_pinned_pages(world);
	prepare_copy_of(command, &ends, kind, 0);
	command->copy.in_fences = (uintptr_t)&world->fence;
	command->copy.nr_in_fences = 1;
}

static void prepare_ring_copyin(struct world *world)
{
	prepare_on_ring(world, COPYIN);
}

static void prepare_ring_copyout(struct world *world)
{
	prepare_on_ring(world, COPYOUT);
}

/*
 * Only submits it: what goes wrong then is complete at once. The ring itself has EAGAIN when it runs
 * out of memory, and then has not taken the command.
 */
static int submit_to_ring(struct world *world)
{
	struct io_uring_cqe *cqe;
	int ret;

	if (!io_uring_sq_ready(&world->ring))
		prepare_command(&world->ring, world->ctx, world->made_command.command,
				&world->made_command.copy, 0);
	ret = io_uring_submit(&world->ring);
	if (ret < 0)
		return ret == -EAGAIN ? -ENOMEM : ret;
	if (io_uring_peek_cqe(&world->ring, &cqe) || !cqe->res)
		return 0;
	ret = cqe->res;
	io_uring_cqe_seen(&world->ring, cqe);
	return ret;
}

static void end_on_ring(struct world *world)
{
	must(complete(&world->ring));
	await_unpinned(world);
}

const struct operation operation_ring_copyin = {
	.prepare = prepare_ring_copyin,
	.run = submit_to_ring,
	.undo = end_on_ring,
};
const struct operation operation_ring_copyout = {
	.prepare = prepare_ring_copyout,
	.run = submit_to_ring,
	.undo = end_on_ring,
};
