// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pieces of copies, and their ends: looked up, checked and held. What COPYIN,
 * COPYOUT and TRANSFER have in common.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "devbuf_private.h"

/**
 * devbuf_range_hold - check a range of bytes of a buffer, and hold its memory
 * @context: whose
 * @id: the buffer
 * @offset: bytes from its beginning
 * @nbytes: how many
 * @rights: DEVBUF_RIGHT_* bits that the handle must have
 * @pos: set to where the range begins, in bytes from the storage's first page
 *
 * Return: the storage, with a reference, or -ENOENT, -EACCES, -EINVAL, -EOVERFLOW
 * or -ENODATA.
 */
struct devbuf_storage *devbuf_range_hold(struct devbuf_context *context, u64 id,
					 u64 offset, u64 nbytes, u32 rights,
					 u64 *pos)
{
	struct devbuf_storage *storage;
	struct devbuf_buffer *buffer;
	int ret;

	buffer = devbuf_context_find(context, id, rights, NULL);
	if (IS_ERR(buffer))
		return ERR_CAST(buffer);
	ret = devbuf_check_range(offset, nbytes, buffer->nbytes);
	storage = ret ? ERR_PTR(ret) :
			devbuf_buffer_get_storage(buffer) ?: ERR_PTR(-ENODATA);
	*pos = devbuf_buffer_pos(buffer) + offset;
	devbuf_buffer_put(buffer);
	return storage;
}

/* Look the buffer up, and hold its memory. */
static int devbuf_end_hold(struct devbuf_ends *ends, struct devbuf_end *end, u64 id)
{
	struct devbuf_storage *storage;
	struct devbuf_buffer *buffer;
	int ret = 0;

	buffer = devbuf_context_find(ends->context, id,
				     ends->write ? DEVBUF_RIGHT_WRITE :
						   DEVBUF_RIGHT_READ, NULL);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	storage = devbuf_buffer_get_storage(buffer);
	if (!storage) {
		ret = -ENODATA;
		goto out;
	}
	end->storage = storage;
	end->id = id;
	end->buffer_nbytes = buffer->nbytes;
	end->buffer_pos = devbuf_buffer_pos(buffer);
	if (!(devbuf_buffer_caps(buffer) & DEVBUF_CAP_COPY))
		ret = -EOPNOTSUPP;
	else if (ends->write && storage->mem.read_only)
		ret = -EACCES;
	if (ret)
		devbuf_storage_put(storage);
out:
	devbuf_buffer_put(buffer);
	return ret;
}

/**
 * devbuf_end_resolve - check one end of a copy, and hold its memory
 * @ends: those of the same command that were resolved before; they stay where
 *	they are
 * @end: filled in; the caller puts @end->storage
 * @id: the buffer
 * @offset: bytes from its beginning
 * @nbytes: how many
 *
 * Return: 0, -ENOENT, -EACCES, -ENODATA, -EOPNOTSUPP, -EINVAL or -EOVERFLOW; on
 * failure nothing is held.
 */
int devbuf_end_resolve(struct devbuf_ends *ends, struct devbuf_end *end, u64 id,
		       u64 offset, u64 nbytes)
{
	const struct devbuf_end **known =
		&ends->known[id % ARRAY_SIZE(ends->known)];
	int ret;

	if (!ends->several) {
		ret = devbuf_end_hold(ends, end, id);
		if (ret)
			return ret;
		known = &ends->known[0];
	} else if (*known && (*known)->id == id) {
		*end = **known;
		devbuf_storage_get(end->storage);
	} else {
		ret = devbuf_end_hold(ends, end, id);
		if (ret)
			return ret;
		*known = end;
	}
	ret = devbuf_check_range(offset, nbytes, end->buffer_nbytes);
	if (ret) {
		*known = NULL;
		devbuf_storage_put(end->storage);
		return ret;
	}
	end->pos = end->buffer_pos + offset;
	end->stage = NULL;
	return 0;
}

/* Do both ends share bytes? Then the order in which they are copied matters. */
bool devbuf_piece_overlaps(const struct devbuf_piece *piece)
{
	const struct devbuf_end *dst = &piece->dst, *src = &piece->src;

	return dst->storage == src->storage &&
	       dst->pos < src->pos + piece->nbytes &&
	       src->pos < dst->pos + piece->nbytes;
}

/* Must it be copied from its end, lest its beginning be overwritten? */
bool devbuf_piece_goes_down(const struct devbuf_piece *piece)
{
	return piece->dst.pos > piece->src.pos && devbuf_piece_overlaps(piece);
}

/**
 * devbuf_piece_wait - wait until the CPU may copy a piece
 * @piece: the piece
 *
 * Return: 0 or an error of devbuf_coherence_wait().
 */
int devbuf_piece_wait(const struct devbuf_piece *piece)
{
	const struct devbuf_end *dst = &piece->dst, *src = &piece->src;
	int ret = 0;

	if (dst->storage)
		ret = devbuf_coherence_wait(dst->storage, dst->pos, piece->nbytes,
					    true);
	if (!ret && src->storage)
		ret = devbuf_coherence_wait(src->storage, src->pos, piece->nbytes,
					    false);
	return ret;
}

/* The same for who waited already: 0 or -EBUSY. May be part of signalling. */
int devbuf_piece_begin(const struct devbuf_piece *piece)
{
	const struct devbuf_end *dst = &piece->dst, *src = &piece->src;
	int ret = 0;

	if (dst->storage)
		ret = devbuf_coherence_begin(dst->storage, dst->pos, piece->nbytes);
	if (!ret && src->storage)
		ret = devbuf_coherence_begin(src->storage, src->pos, piece->nbytes);
	return ret;
}

/* The CPU is through with it. May be part of signalling. */
void devbuf_piece_end(const struct devbuf_piece *piece)
{
	if (piece->dst.storage)
		devbuf_coherence_end(piece->dst.storage, piece->dst.pos,
				     piece->nbytes, true);
}

/* Does nobody else use any of the memory, as far as one can tell at a glance? */
static bool devbuf_pieces_are_idle(const struct devbuf_piece *pieces, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		if ((pieces[i].dst.storage &&
		     !devbuf_storage_is_idle(pieces[i].dst.storage)) ||
		    (pieces[i].src.storage &&
		     !devbuf_storage_is_idle(pieces[i].src.storage)))
			return false;
	return true;
}

/* Let go of a piece's memory, and of what was made to reach it. */
void devbuf_piece_release(const struct devbuf_piece *piece)
{
	const struct devbuf_end *ends[] = { &piece->dst, &piece->src };
	u32 i;

	devbuf_dma_unmap(piece->dma);
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		/* A job may have let go of the memory before (devbuf_job_let_go). */
		devbuf_stage_put(ends[i]->stage);
		if (ends[i]->storage)
			devbuf_storage_put(ends[i]->storage);
	}
}

void devbuf_pieces_put(const struct devbuf_piece *pieces, u32 nr)
{
	while (nr--)
		devbuf_piece_release(&pieces[nr]);
}

/**
 * devbuf_pieces_read - room for pieces, and the caller's ranges in it
 * @few: DEVBUF_COPY_FEW pieces of the handler's
 * @user_addr: the ranges
 * @nr: how many
 * @range_size: bytes of one
 * @ranges: set to where they are: at the end of the pieces' memory, so that the
 *	first piece can be written once the first range was read, and so on
 *
 * Return: the pieces, @few or allocated, or -ENOMEM or -EFAULT.
 */
struct devbuf_piece *devbuf_pieces_read(struct devbuf_piece *few, u64 user_addr,
					u32 nr, size_t range_size,
					const void **ranges)
{
	struct devbuf_piece *pieces = few;
	void *end;

	if (nr > DEVBUF_COPY_FEW) {
		pieces = kvmalloc_array(nr, sizeof(*pieces), DEVBUF_GFP);
		if (!pieces)
			return ERR_PTR(-ENOMEM);
	}
	end = (void *)(pieces + nr) - nr * range_size;
	if (copy_from_user(end, u64_to_user_ptr(user_addr), nr * range_size)) {
		devbuf_pieces_free(pieces, few);
		return ERR_PTR(-EFAULT);
	}
	*ranges = end;
	return pieces;
}

void devbuf_pieces_free(struct devbuf_piece *pieces, const struct devbuf_piece *few)
{
	if (pieces != few)
		kvfree(pieces);
}

/* Is the command's end that of a job? Otherwise it is done when it returns. */
bool devbuf_copy_is_queued(const struct devbuf_command *cmd,
			   const struct devbuf_piece *pieces, u32 nr)
{
	const struct devbuf_copy *arg = &cmd->arg.copy;
	u64 nbytes = 0;
	u32 i;

	if (arg->flags & DEVBUF_ASYNC)
		return true;
	if (!cmd->ring)
		return false;
	/*
	 * What is small and has nothing to wait for is done at once, but not by
	 * one of the ring's workers: others may have been submitted meanwhile.
	 */
	if (!devbuf_command_is_nonblocking(cmd) || arg->nr_in_fences ||
	    devbuf_uring_is_fixed(cmd))
		return true;
	for (i = 0; i < nr; i++) {
		/* Devices take their time. */
		if (devbuf_piece_is_slow(&pieces[i]))
			return true;
		nbytes += pieces[i].nbytes;
	}
	return nbytes > DEVBUF_COPY_SMALL || !devbuf_pieces_are_idle(pieces, nr);
}

/**
 * devbuf_copy_check - the arguments of a vectored copy
 * @cmd: COPYIN, COPYOUT or TRANSFER
 * @flags: DEVBUF_* bits that it knows, besides DEVBUF_ASYNC*
 *
 * Return: 0 or -EINVAL.
 */
int devbuf_copy_check(const struct devbuf_command *cmd, u32 flags)
{
	const struct devbuf_copy *arg = &cmd->arg.copy;
	bool async = arg->flags & DEVBUF_ASYNC;

	flags |= DEVBUF_ASYNC;
	if (async)
		flags |= DEVBUF_ASYNC_OUT_FENCE;
	if (async || cmd->ring)
		flags |= DEVBUF_ASYNC_EXPLICIT;
	else if (arg->nr_in_fences || arg->cookie)
		return -EINVAL;
	if (!arg->nr_in_fences && arg->in_fences)
		return -EINVAL;
	/* The ring holds a registered buffer only until the command completes. */
	if (async && devbuf_uring_is_fixed(cmd))
		return -EINVAL;
	if (arg->flags & ~flags || !arg->nr_ranges ||
	    arg->nr_ranges > DEVBUF_MAX_RANGES)
		return -EINVAL;
	return 0;
}
