// SPDX-License-Identifier: GPL-2.0-only
/*
 * PATH and TRANSFER: from buffer to buffer.
 *
 * The ways to get there are the rows of a table, best first. Each answers
 * whether it can, and if not, why; the first that can is taken. A new engine is
 * a new row.
 */
#include <linux/sched/signal.h>

#include "devbuf_private.h"

/* All memory there is as yet is the host's. */
static u32 devbuf_peer_reason(const struct devbuf_device *dst,
			      const struct devbuf_device *src)
{
	return DEVBUF_REASON_NOT_PEERS;
}

static u32 devbuf_device_reason(const struct devbuf_device *dst,
				const struct devbuf_device *src)
{
	return DEVBUF_REASON_NO_ENGINE;
}

static u32 devbuf_dmaengine_reason(const struct devbuf_device *dst,
				   const struct devbuf_device *src)
{
	return DEVBUF_REASON_NOT_BUILT;
}

static u32 devbuf_cpu_reason(const struct devbuf_device *dst,
			     const struct devbuf_device *src)
{
	if (READ_ONCE(dst->gone) || READ_ONCE(src->gone))
		return DEVBUF_REASON_DEVICE_GONE;
	if (!(dst->caps & src->caps & DEVBUF_CAP_COPY))
		return DEVBUF_REASON_NO_CPU_ACCESS;
	return DEVBUF_REASON_NONE;
}

/* Upwards: right unless the destination overlaps the source from above. */
static int devbuf_cpu_copy_up(const struct devbuf_piece *piece)
{
	u64 dst = piece->dst.pos, src = piece->src.pos;
	u64 rest = piece->nbytes, nbytes;
	void *to, *from;

	for (; rest; rest -= nbytes, dst += nbytes, src += nbytes) {
		if (!piece->queued && fatal_signal_pending(current))
			return -EINTR;
		nbytes = min_t(u64, rest, DEVBUF_COPY_STEP);
		to = devbuf_storage_span(piece->dst.storage, dst, &nbytes);
		from = devbuf_storage_span(piece->src.storage, src, &nbytes);
		memmove(to, from, nbytes);
		cond_resched();
	}
	return 0;
}

/* Downwards, page by page: how many bytes before @pos lie in its page. */
static u64 devbuf_bytes_before(u64 pos)
{
	return offset_in_page(pos - 1) + 1;
}

static int devbuf_cpu_copy_down(const struct devbuf_piece *piece)
{
	u64 rest = piece->nbytes, nbytes;
	u64 dst = piece->dst.pos + rest, src = piece->src.pos + rest;
	void *to, *from;

	for (; rest; rest -= nbytes) {
		if (!piece->queued && fatal_signal_pending(current))
			return -EINTR;
		nbytes = min3(rest, devbuf_bytes_before(dst),
			      devbuf_bytes_before(src));
		dst -= nbytes;
		src -= nbytes;
		to = devbuf_storage_span(piece->dst.storage, dst, &nbytes);
		from = devbuf_storage_span(piece->src.storage, src, &nbytes);
		memmove(to, from, nbytes);
		cond_resched();
	}
	return 0;
}

static int devbuf_cpu_copy(const struct devbuf_piece *piece)
{
	return devbuf_piece_goes_down(piece) ? devbuf_cpu_copy_down(piece) :
					       devbuf_cpu_copy_up(piece);
}

const struct devbuf_engine devbuf_cpu_engine = {
	DEVBUF_PATH_CPU, devbuf_cpu_reason, devbuf_cpu_copy
};

static const struct devbuf_engine devbuf_peer_engine = {
	DEVBUF_PATH_PEER, devbuf_peer_reason
};

static const struct devbuf_engine devbuf_device_engine = {
	DEVBUF_PATH_DEVICE, devbuf_device_reason
};

static const struct devbuf_engine devbuf_dmaengine_engine = {
	DEVBUF_PATH_DMAENGINE, devbuf_dmaengine_reason
};

static const struct devbuf_engine *const devbuf_engines[] = {
	&devbuf_peer_engine,
	&devbuf_device_engine,
	&devbuf_dmaengine_engine,
	&devbuf_cpu_engine,
};

/* The best way, or NULL. */
static const struct devbuf_engine *
devbuf_engine_find(const struct devbuf_device *dst, const struct devbuf_device *src)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(devbuf_engines); i++)
		if (devbuf_engines[i]->reason(dst, src) == DEVBUF_REASON_NONE)
			return devbuf_engines[i];
	return NULL;
}

int devbuf_ioctl_path(struct devbuf_command *cmd)
{
	struct devbuf_path *arg = &cmd->arg.path;
	const struct devbuf_engine *engine;
	struct devbuf_buffer *dst, *src;
	size_t i;
	int ret;

	if (arg->flags)
		return -EINVAL;
	dst = devbuf_context_find(cmd->context, arg->dst_id, DEVBUF_RIGHT_WRITE,
				  NULL);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	src = devbuf_context_find(cmd->context, arg->src_id, DEVBUF_RIGHT_READ,
				  NULL);
	if (IS_ERR(src)) {
		devbuf_buffer_put(dst);
		return PTR_ERR(src);
	}

	for (i = 0; i < ARRAY_SIZE(devbuf_engines); i++)
		arg->out_reasons[devbuf_engines[i]->path] =
			devbuf_engines[i]->reason(dst->device, src->device);
	engine = devbuf_engine_find(dst->device, src->device);
	if (engine)
		arg->out_path = engine->path;
	ret = devbuf_command_reply(cmd);
	devbuf_buffer_put(src);
	devbuf_buffer_put(dst);
	return ret;
}

static int devbuf_transfer_resolve(struct devbuf_ends *dsts, struct devbuf_ends *srcs,
				   struct devbuf_piece *piece,
				   const struct devbuf_piece *previous,
				   const struct devbuf_transfer_range *range,
				   bool no_cpu)
{
	struct devbuf_end *dst = &piece->dst, *src = &piece->src;
	int ret;

	piece->user_addr = 0;
	piece->nbytes = range->nbytes;
	piece->queued = false;
	ret = devbuf_end_resolve(dsts, dst, range->dst_id, range->dst_offset,
				 range->nbytes);
	if (ret)
		return ret;
	ret = devbuf_end_resolve(srcs, src, range->src_id, range->src_offset,
				 range->nbytes);
	if (ret)
		goto err_dst;
	if (previous && previous->dst.storage == dst->storage &&
	    previous->src.storage == src->storage)
		piece->engine = previous->engine;
	else
		piece->engine = devbuf_engine_find(dst->storage->device,
						   src->storage->device);
	if (piece->engine && (piece->engine->path != DEVBUF_PATH_CPU || !no_cpu))
		return 0;

	ret = -EOPNOTSUPP;
	if (READ_ONCE(dst->storage->device->gone) ||
	    READ_ONCE(src->storage->device->gone))
		ret = -ENODEV;
	devbuf_storage_put(src->storage);
err_dst:
	devbuf_storage_put(dst->storage);
	return ret;
}

static int devbuf_transfer_now(struct devbuf_command *cmd,
			       const struct devbuf_piece *pieces, u32 nr)
{
	struct devbuf_transfer *arg = &cmd->arg.transfer;
	bool nonblock = devbuf_command_is_nonblocking(cmd);
	int ret = 0;
	u32 i;

	/* Who may not wait has made sure that there is nothing to wait for. */
	for (i = 0; i < nr && !ret && !nonblock; i++)
		ret = devbuf_piece_wait(&pieces[i]);
	for (i = 0; i < nr && !ret; i++) {
		ret = pieces[i].engine->copy(&pieces[i]);
		devbuf_piece_end(&pieces[i]);
		if (!ret) {
			arg->out_done_nbytes += pieces[i].nbytes;
			arg->out_path = max(arg->out_path, pieces[i].engine->path);
		}
	}
	return devbuf_command_reply(cmd) ? -EFAULT : ret;
}

int devbuf_ioctl_transfer(struct devbuf_command *cmd)
{
	struct devbuf_piece few[DEVBUF_COPY_FEW], *pieces;
	struct devbuf_transfer *arg = &cmd->arg.transfer;
	bool no_cpu = arg->flags & DEVBUF_TRANSFER_NO_CPU;
	const struct devbuf_transfer_range *ranges;
	struct devbuf_transfer_range range;
	struct devbuf_ends dsts, srcs;
	u32 nr;
	int ret;

	ret = devbuf_copy_check(cmd, DEVBUF_TRANSFER_NO_CPU);
	if (ret)
		return ret;
	pieces = devbuf_pieces_read(few, arg->ranges, arg->nr_ranges,
				    sizeof(*ranges), (const void **)&ranges);
	if (IS_ERR(pieces))
		return PTR_ERR(pieces);
	devbuf_ends_init(&dsts, cmd->context, arg->nr_ranges, true);
	devbuf_ends_init(&srcs, cmd->context, arg->nr_ranges, false);
	for (nr = 0; nr < arg->nr_ranges; nr++) {
		range = ranges[nr];
		ret = devbuf_transfer_resolve(&dsts, &srcs, &pieces[nr],
					      nr ? &pieces[nr - 1] : NULL,
					      &range, no_cpu);
		if (ret)
			goto out;
	}
	if (devbuf_copy_is_queued(cmd, pieces, nr)) {
		ret = devbuf_job_queue(cmd, pieces, nr);
		/* The job has the memory now. */
		if (!ret || ret == -EIOCBQUEUED)
			nr = 0;
	} else {
		ret = devbuf_transfer_now(cmd, pieces, nr);
	}
out:
	devbuf_pieces_put(pieces, nr);
	devbuf_pieces_free(pieces, few);
	return ret;
}
