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

static struct devbuf_place devbuf_place_of_end(const struct devbuf_end *end)
{
	return (struct devbuf_place) {
		.device = end->storage->device, .local = end->storage->local,
	};
}

/* Is it pages of the host, which can be mapped for an engine? */
static bool devbuf_place_is_pages(const struct devbuf_place *place)
{
	return !place->local && (place->device->permanent ||
				 place->device->caps & DEVBUF_CAP_LOCAL);
}

static bool devbuf_place_has_engine(const struct devbuf_place *place)
{
	return place->local && place->device->caps & DEVBUF_CAP_ENGINE;
}

static u32 devbuf_gone_reason(const struct devbuf_place *dst,
			      const struct devbuf_place *src, u32 otherwise)
{
	if (devbuf_device_is_gone(dst->device) || devbuf_device_is_gone(src->device))
		return DEVBUF_REASON_DEVICE_GONE;
	return otherwise;
}

/* --- an engine that reaches into the memory of a peer --- */

static u32 devbuf_peer_reason(const struct devbuf_place *dst,
			      const struct devbuf_place *src)
{
	u32 reason;

	if (!dst->local || !src->local || dst->device == src->device)
		return devbuf_gone_reason(dst, src, DEVBUF_REASON_NOT_PEERS);
	reason = devbuf_gone_reason(dst, src, DEVBUF_REASON_NO_ENGINE);
	if (reason == DEVBUF_REASON_DEVICE_GONE)
		return reason;
	/* Writing goes better than reading, on most buses. */
	if (devbuf_place_has_engine(src))
		reason = devbuf_dma_peer_reason(dst->device, src->device->desc.dma_dev);
	if (reason && devbuf_place_has_engine(dst))
		reason = devbuf_dma_peer_reason(src->device, dst->device->desc.dma_dev);
	return reason;
}

/* --- an engine of the device, alone or with memory of the host --- */

static u32 devbuf_device_reason(const struct devbuf_place *dst,
				const struct devbuf_place *src)
{
	const struct devbuf_place *own = dst->local ? dst : src;
	const struct devbuf_place *host = dst->local ? src : dst;
	u32 reason = DEVBUF_REASON_NO_ENGINE;

	if (dst->local && src->local) {
		if (dst->device == src->device && dst->device->operates)
			reason = DEVBUF_REASON_NONE;
	} else if (devbuf_place_has_engine(own) && devbuf_place_is_pages(host)) {
		reason = devbuf_dma_reaches(own->device, host) ?
			 DEVBUF_REASON_NONE : DEVBUF_REASON_DMA_MASK;
	}
	return devbuf_gone_reason(dst, src, reason);
}

/* The end whose device's engine does it. */
static bool devbuf_piece_has_engine_at_dst(const struct devbuf_piece *piece)
{
	const struct devbuf_place dst = devbuf_place_of_end(&piece->dst);
	const struct devbuf_place src = devbuf_place_of_end(&piece->src);

	if (!devbuf_place_has_engine(&src))
		return true;
	return devbuf_place_has_engine(&dst) && dst.device != src.device &&
	       devbuf_dma_peer_reason(dst.device, src.device->desc.dma_dev);
}

/* Map the other end for the engine. */
static int devbuf_engine_prepare(struct devbuf_piece *piece,
				 const struct devbuf_piece *previous)
{
	bool at_dst = devbuf_piece_has_engine_at_dst(piece);
	struct devbuf_end *own = at_dst ? &piece->dst : &piece->src;
	struct devbuf_end *other = at_dst ? &piece->src : &piece->dst;
	struct devbuf_device *device = own->storage->device;
	struct devbuf_device *peer = other->storage->stays ? NULL :
							     other->storage->device;
	struct devbuf_dma_map *map = ERR_PTR(-ENODEV);

	if (peer && !devbuf_device_enter(peer))
		return -ENODEV;
	if (devbuf_device_enter(device)) {
		map = devbuf_dma_map_pages(device, other->storage->mem.pages,
					   other->pos, piece->nbytes,
					   at_dst ? DMA_TO_DEVICE : DMA_FROM_DEVICE);
		devbuf_device_leave(device);
	}
	if (peer && !IS_ERR(map)) {
		kref_get(&peer->ref);
		map->peer = peer;
	}
	if (peer)
		devbuf_device_leave(peer);
	if (IS_ERR(map))
		return PTR_ERR(map);
	piece->dma = map;
	return 0;
}

static int devbuf_engine_copy(const struct devbuf_piece *piece)
{
	bool at_dst = piece->dma->dir == DMA_TO_DEVICE;
	const struct devbuf_end *own = at_dst ? &piece->dst : &piece->src;
	const struct devbuf_end *other = at_dst ? &piece->src : &piece->dst;

	return devbuf_dma_run(piece->dma, other->pos, &own->storage->mem, own->pos,
			      piece->nbytes, at_dst);
}

/* Inside of a device: what it will be asked to do. */
static struct devbuf_operation devbuf_operation_of(const struct devbuf_piece *piece)
{
	return (struct devbuf_operation) {
		.operation = piece->operation,
		.dst = &piece->dst.storage->mem,
		.dst_offset = piece->dst.pos,
		.src = &piece->src.storage->mem,
		.src_offset = piece->src.pos,
		.nbytes = piece->nbytes,
	};
}

static int devbuf_device_prepare(struct devbuf_piece *piece,
				 const struct devbuf_piece *previous)
{
	struct devbuf_device *device = piece->dst.storage->device;
	struct devbuf_operation operation;
	int ret;

	if (!piece->dst.storage->local || !piece->src.storage->local)
		return devbuf_engine_prepare(piece, previous);
	if (!piece->operation)
		return 0;
	operation = devbuf_operation_of(piece);
	if (!devbuf_device_enter(device))
		return -ENODEV;
	ret = device->desc.ops->check_operation(device, &operation);
	devbuf_device_leave(device);
	return ret;
}

static int devbuf_device_operate(const struct devbuf_piece *piece)
{
	struct devbuf_operation operation = devbuf_operation_of(piece);
	struct devbuf_device *device = piece->dst.storage->device;
	bool down = devbuf_piece_goes_down(piece);
	u64 rest = piece->nbytes;
	u64 offset;
	int ret = 0;

	if (!devbuf_device_enter(device))
		return -ENODEV;
	for (; rest && !ret; rest -= operation.nbytes) {
		operation.nbytes = min(rest, device->desc.max_dma_nbytes);
		offset = down ? rest - operation.nbytes : piece->nbytes - rest;
		operation.dst_offset = piece->dst.pos + offset;
		operation.src_offset = piece->src.pos + offset;
		ret = device->desc.ops->operate(device, &operation);
	}
	devbuf_device_leave(device);
	return ret;
}

static int devbuf_device_copy(const struct devbuf_piece *piece)
{
	return piece->dma ? devbuf_engine_copy(piece) : devbuf_device_operate(piece);
}

/* --- others --- */

static u32 devbuf_dmaengine_reason(const struct devbuf_place *dst,
				   const struct devbuf_place *src)
{
	return DEVBUF_REASON_NOT_BUILT;
}

static u32 devbuf_cpu_reason(const struct devbuf_place *dst,
			     const struct devbuf_place *src)
{
	u32 reason = DEVBUF_REASON_NONE;

	if (!(devbuf_place_caps(*dst) & devbuf_place_caps(*src) & DEVBUF_CAP_COPY))
		reason = DEVBUF_REASON_NO_CPU_ACCESS;
	return devbuf_gone_reason(dst, src, reason);
}

static int devbuf_cpu_prepare(struct devbuf_piece *piece,
			      const struct devbuf_piece *previous)
{
	int ret;

	ret = devbuf_stage_get(&piece->dst, piece->nbytes,
			       previous ? &previous->dst : NULL);
	return ret ?: devbuf_stage_get(&piece->src, piece->nbytes,
				       previous ? &previous->src : NULL);
}

/* By way of stages. Part of signalling. */
static int devbuf_cpu_step(const struct devbuf_piece *piece, u64 offset, u64 nbytes)
{
	const struct devbuf_end *dst = &piece->dst, *src = &piece->src;
	u64 row;
	void *from, *to;
	int ret;

	if (src->stage) {
		ret = devbuf_stage_load(src, src->pos + offset, nbytes);
		if (ret)
			return ret;
		from = src->stage->vaddr;
		if (dst->stage)
			return devbuf_stage_store(dst, dst->pos + offset, from, nbytes);
		for (; nbytes; nbytes -= row, offset += row, from += row) {
			row = nbytes;
			to = devbuf_storage_span(dst->storage, dst->pos + offset, &row);
			memcpy(to, from, row);
		}
		return 0;
	}
	for (; nbytes; nbytes -= row, offset += row) {
		row = nbytes;
		from = devbuf_storage_span(src->storage, src->pos + offset, &row);
		ret = devbuf_stage_store(dst, dst->pos + offset, from, row);
		if (ret)
			return ret;
	}
	return 0;
}

static int devbuf_cpu_copy_staged(const struct devbuf_piece *piece)
{
	bool down = devbuf_piece_goes_down(piece);
	u64 rest = piece->nbytes, nbytes;
	int ret;

	for (; rest; rest -= nbytes) {
		if (!piece->queued && fatal_signal_pending(current))
			return -EINTR;
		nbytes = devbuf_stage_step(&piece->dst, rest);
		nbytes = devbuf_stage_step(&piece->src, nbytes);
		ret = devbuf_cpu_step(piece, down ? rest - nbytes :
					     piece->nbytes - rest, nbytes);
		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
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
	if (piece->dst.stage || piece->src.stage)
		return devbuf_cpu_copy_staged(piece);
	return devbuf_piece_goes_down(piece) ? devbuf_cpu_copy_down(piece) :
					       devbuf_cpu_copy_up(piece);
}

const struct devbuf_engine devbuf_cpu_engine = {
	DEVBUF_PATH_CPU, devbuf_cpu_reason, devbuf_cpu_prepare, devbuf_cpu_copy
};

static const struct devbuf_engine devbuf_peer_engine = {
	DEVBUF_PATH_PEER, devbuf_peer_reason, devbuf_engine_prepare,
	devbuf_engine_copy
};

const struct devbuf_engine devbuf_device_engine = {
	DEVBUF_PATH_DEVICE, devbuf_device_reason, devbuf_device_prepare,
	devbuf_device_copy
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
static const struct devbuf_engine *devbuf_engine_find(const struct devbuf_place *dst,
						      const struct devbuf_place *src)
{
	size_t i;

	/* Between memory of the host there is but one. */
	if (!dst->local && !src->local)
		return devbuf_cpu_reason(dst, src) ? NULL : &devbuf_cpu_engine;
	for (i = 0; i < ARRAY_SIZE(devbuf_engines); i++)
		if (devbuf_engines[i]->reason(dst, src) == DEVBUF_REASON_NONE)
			return devbuf_engines[i];
	return NULL;
}

int devbuf_ioctl_path(struct devbuf_command *cmd)
{
	struct devbuf_path *arg = &cmd->arg.path;
	const struct devbuf_engine *engine;
	struct devbuf_place dst_place, src_place;
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

	dst_place = devbuf_place_of_buffer(dst);
	src_place = devbuf_place_of_buffer(src);
	for (i = 0; i < ARRAY_SIZE(devbuf_engines); i++)
		arg->out_reasons[devbuf_engines[i]->path] =
			devbuf_engines[i]->reason(&dst_place, &src_place);
	engine = devbuf_engine_find(&dst_place, &src_place);
	if (engine)
		arg->out_path = engine->path;
	ret = devbuf_command_reply(cmd);
	devbuf_buffer_put(src);
	devbuf_buffer_put(dst);
	return ret;
}

/* How this piece will go: 0, or -EOPNOTSUPP, -ENODEV, or an error of preparing. */
static int devbuf_transfer_choose(struct devbuf_piece *piece,
				  const struct devbuf_piece *previous, bool no_cpu)
{
	const struct devbuf_end *dst = &piece->dst, *src = &piece->src;
	struct devbuf_place dst_place, src_place;
	const struct devbuf_engine *engine;

	if (previous && previous->dst.storage == dst->storage &&
	    previous->src.storage == src->storage) {
		engine = previous->engine;
	} else {
		dst_place = devbuf_place_of_end(dst);
		src_place = devbuf_place_of_end(src);
		engine = devbuf_engine_find(&dst_place, &src_place);
		if (engine && piece->operation &&
		    !(dst->storage->local && src->storage->local &&
		      dst_place.device == src_place.device &&
		      dst_place.device->caps & DEVBUF_CAP_OPERATIONS))
			engine = NULL;
	}
	if (!engine || (engine == &devbuf_cpu_engine && no_cpu))
		return devbuf_device_is_gone(dst->storage->device) ||
		       devbuf_device_is_gone(src->storage->device) ?
		       -ENODEV : -EOPNOTSUPP;
	piece->engine = engine;
	if (dst->storage->stays && src->storage->stays)
		return 0;
	return engine->prepare(piece, previous);
}

static int devbuf_transfer_resolve(struct devbuf_ends *dsts, struct devbuf_ends *srcs,
				   struct devbuf_piece *piece,
				   const struct devbuf_piece *previous,
				   const struct devbuf_transfer_range *range,
				   const struct devbuf_transfer *arg)
{
	struct devbuf_end *dst = &piece->dst, *src = &piece->src;
	int ret;

	piece->user_addr = 0;
	piece->nbytes = range->nbytes;
	piece->dma = NULL;
	piece->operation = arg->operation;
	piece->queued = false;
	ret = devbuf_end_resolve(dsts, dst, range->dst_id, range->dst_offset,
				 range->nbytes);
	if (ret)
		return ret;
	ret = devbuf_end_resolve(srcs, src, range->src_id, range->src_offset,
				 range->nbytes);
	if (ret) {
		devbuf_storage_put(dst->storage);
		return ret;
	}
	ret = devbuf_transfer_choose(piece, previous,
				     arg->flags & DEVBUF_TRANSFER_NO_CPU);
	if (ret)
		devbuf_piece_release(piece);
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
	const struct devbuf_transfer_range *ranges;
	struct devbuf_transfer_range range;
	struct devbuf_ends dsts, srcs;
	u32 nr;
	int ret;

	ret = devbuf_copy_check(cmd, DEVBUF_TRANSFER_NO_CPU);
	if (ret)
		return ret;
	if (arg->pad)
		return -EINVAL;
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
					      &range, arg);
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
