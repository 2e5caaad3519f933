// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many small transfers at a time: BATCH of them are one @run, in each of the ways to ask for them.
 *
 * Between two buffers each look-up but the first finds what the one before found. Between views,
 * one for each end, every id is looked up.
 */
#include "common.h"

static struct devbuf_transfer_range ranges[BATCH];

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

/* --- all of them ------------------------------------------------------------------------------ */

const struct batch_operations batch_on_devbuf = {
	.ioctls = { begin_buffers, transfer_by_ioctls, end_buffers },
	.ioctls_views = { begin_views, transfer_by_ioctls, end_views },
	.ranges = { begin_buffers, transfer_ranges, end_buffers },
	.ranges_views = { begin_views, transfer_ranges, end_views },
};
