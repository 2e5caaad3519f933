// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many small transfers at a time: BATCH of them are one @run, in each of the ways to ask for them.
 *
 * Between two buffers each look-up but the first finds what the one before found. Between views,
 * one for each end, every id is looked up.
 */
#include <liburing.h>

#include "common.h"

static struct devbuf_transfer_range ranges[BATCH];
static struct io_uring ring;

/* --- what they are between -------------------------------------------------------------------- */

static void begin_buffers(struct subject *subject)
{
	subject->id = new_allocated(subject->device, BATCH * subject->nbytes);
	subject->source_id = new_allocated(subject->device, BATCH * subject->nbytes);
	for (unsigned int i = 0; i < BATCH; i++)
		ranges[i] = (struct devbuf_transfer_range){
			.dst_id = subject->id,
			.dst_offset = i * subject->nbytes,
			.src_id = subject->source_id,
			.src_offset = i * subject->nbytes,
			.nbytes = subject->nbytes,
		};
}

static void end_buffers(struct subject *subject)
{
	must(do_destroy(subject->device, subject->source_id));
	must(do_destroy(subject->device, subject->id));
}

static __u64 view_of(const struct subject *subject, __u64 id, __u64 offset)
{
	return new_allocated_view(subject->device, id, offset, subject->nbytes);
}

static void begin_views(struct subject *subject)
{
	begin_buffers(subject);
	for (unsigned int i = 0; i < BATCH; i++) {
		struct devbuf_transfer_range *range = &ranges[i];

		range->dst_id = view_of(subject, range->dst_id, range->dst_offset);
		range->src_id = view_of(subject, range->src_id, range->src_offset);
		range->dst_offset = 0;
		range->src_offset = 0;
	}
}

static void end_views(struct subject *subject)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		must(do_destroy(subject->device, ranges[i].dst_id));
		must(do_destroy(subject->device, ranges[i].src_id));
	}
	end_buffers(subject);
}

static void begin_ring(struct subject *subject)
{
	begin_buffers(subject);
	must(io_uring_queue_init(BATCH, &ring, 0));
	must(io_uring_register_files(&ring, &subject->device, 1));
}

static void end_ring(struct subject *subject)
{
	io_uring_queue_exit(&ring);
	end_buffers(subject);
}

/* --- how they are asked for ------------------------------------------------------------------- */

static void transfer_by_ioctls(struct subject *subject)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		struct devbuf_transfer transfer = { 0 };

		must(do_transfer_ranges(subject->device, &transfer, &ranges[i], 1));
	}
}

static void transfer_ranges(struct subject *subject)
{
	struct devbuf_transfer transfer = { 0 };

	must(do_transfer_ranges(subject->device, &transfer, ranges, BATCH));
}

/* Small copies are done when they are queued, so all there is to wait for is over. */
static void queue_transfers(struct subject *subject)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		struct devbuf_transfer transfer = { .flags = DEVBUF_ASYNC };

		must(do_transfer_ranges(subject->device, &transfer, &ranges[i], 1));
	}
	wait_for_writes(subject->device, subject->id, BATCH * subject->nbytes);
}

/* --- on a ring -------------------------------------------------------------------------------- */

/* Submits @nr of what is in the ring, and takes the completions. */
static void complete_ring(unsigned int nr)
{
	struct io_uring_cqe *cqe;
	unsigned int head, seen = 0;

	must(io_uring_submit_and_wait(&ring, nr));
	io_uring_for_each_cqe(&ring, head, cqe)
	{
		must(cqe->res);
		seen++;
	}
	must_be(seen == nr);
	io_uring_cq_advance(&ring, seen);
}

/* What a ring takes for itself. */
static void ring_nothing(struct subject *subject)
{
	(void)subject;
	for (unsigned int i = 0; i < BATCH; i++)
		io_uring_prep_nop(io_uring_get_sqe(&ring));
	complete_ring(BATCH);
}

/* liburing 2.3 has no preparing function for commands of files. */
static void prepare_transfer(struct devbuf_transfer *transfer,
			     const struct devbuf_transfer_range *range, __u32 nr_ranges)
{
	const struct devbuf_uring_cmd command = { .arg = (uintptr_t)transfer };
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	*transfer = (struct devbuf_transfer){
		.size = sizeof(*transfer),
		.ranges = (uintptr_t)range,
		.nr_ranges = nr_ranges,
	};
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, 0, NULL, 0, 0);
	sqe->flags = IOSQE_FIXED_FILE;
	sqe->cmd_op = DEVBUF_TRANSFER;
	memcpy(sqe->cmd, &command, sizeof(command));
}

static void ring_transfers(struct subject *subject)
{
	static struct devbuf_transfer transfers[BATCH];

	(void)subject;
	for (unsigned int i = 0; i < BATCH; i++)
		prepare_transfer(&transfers[i], &ranges[i], 1);
	complete_ring(BATCH);
}

static void ring_ranges(struct subject *subject)
{
	struct devbuf_transfer transfer;

	(void)subject;
	prepare_transfer(&transfer, ranges, BATCH);
	complete_ring(1);
}

/* --- all of them ------------------------------------------------------------------------------ */

const struct batch_operations batch_on_devbuf = {
	.ioctls = { begin_buffers, transfer_by_ioctls, end_buffers },
	.ioctls_views = { begin_views, transfer_by_ioctls, end_views },
	.ranges = { begin_buffers, transfer_ranges, end_buffers },
	.ranges_views = { begin_views, transfer_ranges, end_views },
	.queued = { begin_buffers, queue_transfers, end_buffers },
	.ring_nothing = { begin_ring, ring_nothing, end_ring },
	.ring = { begin_ring, ring_transfers, end_ring },
	.ring_ranges = { begin_ring, ring_ranges, end_ring },
};
