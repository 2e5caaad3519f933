// SPDX-License-Identifier: GPL-2.0-only
/*
 * PATH and TRANSFER: from buffer to buffer.
 *
 * The ways to get there are the rows of a table, best first. Each answers
 * whether it can, and if not, why; the first that can is taken. A new engine is
 * a new row.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "devbuf_private.h"

/**
 * struct devbuf_transfer_piece - a range on its way
 * @range: as the caller gave it
 * @dst: its destination, once it is checked
 * @src: its source
 * @engine: how it will go
 */
struct devbuf_transfer_piece {
	struct devbuf_transfer_range range;
	struct devbuf_end dst;
	struct devbuf_end src;
	const struct devbuf_engine *engine;
};

/**
 * struct devbuf_engine - one way to get from here to there
 * @path: DEVBUF_PATH_*
 * @reason: why it cannot, or DEVBUF_REASON_NONE
 * @copy: does it: the whole piece, or an error
 */
struct devbuf_engine {
	u32 path;
	u32 (*reason)(const struct devbuf_device *dst,
		      const struct devbuf_device *src);
	int (*copy)(const struct devbuf_transfer_piece *piece);
};

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
static int devbuf_cpu_copy_up(const struct devbuf_transfer_piece *piece)
{
	u64 dst = piece->dst.pos, src = piece->src.pos;
	u64 rest = piece->range.nbytes, nbytes;
	void *to, *from;

	for (; rest; rest -= nbytes, dst += nbytes, src += nbytes) {
		if (fatal_signal_pending(current))
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

static int devbuf_cpu_copy_down(const struct devbuf_transfer_piece *piece)
{
	u64 rest = piece->range.nbytes, nbytes;
	u64 dst = piece->dst.pos + rest, src = piece->src.pos + rest;
	void *to, *from;

	for (; rest; rest -= nbytes) {
		if (fatal_signal_pending(current))
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

static int devbuf_cpu_copy(const struct devbuf_transfer_piece *piece)
{
	const struct devbuf_end *dst = &piece->dst, *src = &piece->src;

	if (dst->storage == src->storage && dst->pos > src->pos &&
	    dst->pos - src->pos < piece->range.nbytes)
		return devbuf_cpu_copy_down(piece);
	return devbuf_cpu_copy_up(piece);
}

static const struct devbuf_engine devbuf_engines[] = {
	{ DEVBUF_PATH_PEER, devbuf_peer_reason },
	{ DEVBUF_PATH_DEVICE, devbuf_device_reason },
	{ DEVBUF_PATH_DMAENGINE, devbuf_dmaengine_reason },
	{ DEVBUF_PATH_CPU, devbuf_cpu_reason, devbuf_cpu_copy },
};

/* The best way, or NULL. */
static const struct devbuf_engine *
devbuf_engine_find(const struct devbuf_device *dst, const struct devbuf_device *src)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(devbuf_engines); i++)
		if (devbuf_engines[i].reason(dst, src) == DEVBUF_REASON_NONE)
			return &devbuf_engines[i];
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
		arg->out_reasons[devbuf_engines[i].path] =
			devbuf_engines[i].reason(dst->device, src->device);
	engine = devbuf_engine_find(dst->device, src->device);
	if (engine)
		arg->out_path = engine->path;
	ret = devbuf_command_reply(cmd);
	devbuf_buffer_put(src);
	devbuf_buffer_put(dst);
	return ret;
}

static int devbuf_transfer_resolve(struct devbuf_command *cmd,
				   struct devbuf_transfer_piece *piece,
				   const struct devbuf_transfer_piece *previous)
{
	const struct devbuf_transfer_range *range = &piece->range;
	struct devbuf_end *dst = &piece->dst, *src = &piece->src;
	int ret;

	ret = devbuf_end_resolve(cmd->context, dst,
				 previous ? &previous->dst : NULL, range->dst_id,
				 range->dst_offset, range->nbytes, true);
	if (ret)
		return ret;
	ret = devbuf_end_resolve(cmd->context, src,
				 previous ? &previous->src : NULL, range->src_id,
				 range->src_offset, range->nbytes, false);
	if (ret)
		goto err_dst;
	piece->engine = devbuf_engine_find(dst->storage->device,
					   src->storage->device);
	if (piece->engine && (piece->engine->path != DEVBUF_PATH_CPU ||
			      !(cmd->arg.transfer.flags & DEVBUF_TRANSFER_NO_CPU)))
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

static int devbuf_transfer_begin(const struct devbuf_transfer_piece *piece)
{
	int ret;

	ret = devbuf_coherence_begin(piece->dst.storage, piece->dst.pos,
				     piece->range.nbytes, true);
	if (ret)
		return ret;
	return devbuf_coherence_begin(piece->src.storage, piece->src.pos,
				      piece->range.nbytes, false);
}

static int devbuf_transfer_pieces(const struct devbuf_transfer_piece *pieces,
				  u32 nr, struct devbuf_transfer *arg)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < nr && !ret; i++)
		ret = devbuf_transfer_begin(&pieces[i]);
	for (i = 0; i < nr && !ret; i++) {
		ret = pieces[i].engine->copy(&pieces[i]);
		devbuf_coherence_end(pieces[i].dst.storage, pieces[i].dst.pos,
				     pieces[i].range.nbytes, true);
		if (!ret) {
			arg->out_done_nbytes += pieces[i].range.nbytes;
			arg->out_path = max(arg->out_path, pieces[i].engine->path);
		}
	}
	return ret;
}

int devbuf_ioctl_transfer(struct devbuf_command *cmd)
{
	struct devbuf_transfer_piece few[DEVBUF_COPY_FEW], *pieces = few;
	struct devbuf_transfer *arg = &cmd->arg.transfer;
	struct devbuf_transfer_range __user *ranges = u64_to_user_ptr(arg->ranges);
	u32 nr = 0;
	int ret;

	if (arg->flags & ~DEVBUF_TRANSFER_NO_CPU || arg->pad ||
	    !arg->nr_ranges || arg->nr_ranges > DEVBUF_MAX_RANGES)
		return -EINVAL;
	if (arg->nr_ranges > ARRAY_SIZE(few)) {
		pieces = kvmalloc_array(arg->nr_ranges, sizeof(*pieces), DEVBUF_GFP);
		if (!pieces)
			return -ENOMEM;
	}
	for (; nr < arg->nr_ranges; nr++) {
		ret = -EFAULT;
		if (copy_from_user(&pieces[nr].range, &ranges[nr], sizeof(*ranges)))
			goto out;
		ret = devbuf_transfer_resolve(cmd, &pieces[nr],
					      nr ? &pieces[nr - 1] : NULL);
		if (ret)
			goto out;
	}
	ret = devbuf_transfer_pieces(pieces, nr, arg);
	if (devbuf_command_reply(cmd))
		ret = -EFAULT;
out:
	while (nr--) {
		devbuf_storage_put(pieces[nr].src.storage);
		devbuf_storage_put(pieces[nr].dst.storage);
	}
	if (pieces != few)
		kvfree(pieces);
	return ret;
}
