// SPDX-License-Identifier: GPL-2.0-only
/*
 * COPYIN and COPYOUT: between buffers and the caller's memory.
 *
 * The caller's memory may be anything: a mapping of the very buffer, a file, a
 * userfaultfd that another thread of his serves. So nothing is held while it is
 * touched, but a reference on the storage.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "devbuf_private.h"

/**
 * struct devbuf_copy_piece - a range on its way
 * @range: as the caller gave it
 * @end: its end in the buffer, once it is checked
 */
struct devbuf_copy_piece {
	struct devbuf_copy_range range;
	struct devbuf_end end;
};

/* Look the buffer up, and hold its memory. */
static int devbuf_end_hold(struct devbuf_context *context, struct devbuf_end *end,
			   u64 id, bool write)
{
	struct devbuf_storage *storage;
	struct devbuf_buffer *buffer;
	int ret = 0;

	buffer = devbuf_context_find(context, id,
				     write ? DEVBUF_RIGHT_WRITE : DEVBUF_RIGHT_READ,
				     NULL);
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
	if (!(buffer->device->caps & DEVBUF_CAP_COPY))
		ret = -EOPNOTSUPP;
	else if (write && storage->mem.read_only)
		ret = -EACCES;
	if (ret)
		devbuf_storage_put(storage);
out:
	devbuf_buffer_put(buffer);
	return ret;
}

/**
 * devbuf_end_resolve - check one end of a copy, and hold its memory
 * @context: whose
 * @end: filled in; the caller puts @end->storage
 * @previous: the end before it in the same command, which may have the same id,
 *	or NULL
 * @id: the buffer
 * @offset: bytes from its beginning
 * @nbytes: how many
 * @write: it will be written to
 *
 * Return: 0, -ENOENT, -EACCES, -ENODATA, -EOPNOTSUPP, -EINVAL or -EOVERFLOW; on
 * failure nothing is held.
 */
int devbuf_end_resolve(struct devbuf_context *context, struct devbuf_end *end,
		       const struct devbuf_end *previous, u64 id, u64 offset,
		       u64 nbytes, bool write)
{
	int ret;

	if (previous && previous->id == id) {
		*end = *previous;
		devbuf_storage_get(end->storage);
	} else {
		ret = devbuf_end_hold(context, end, id, write);
		if (ret)
			return ret;
	}
	ret = devbuf_check_range(offset, nbytes, end->buffer_nbytes);
	if (ret) {
		devbuf_storage_put(end->storage);
		return ret;
	}
	end->pos = end->buffer_pos + offset;
	return 0;
}

static int devbuf_copy_resolve(struct devbuf_command *cmd,
			       struct devbuf_copy_piece *piece,
			       const struct devbuf_copy_piece *previous, bool in)
{
	const struct devbuf_copy_range *range = &piece->range;

	if (!access_ok(u64_to_user_ptr(range->user_addr), range->nbytes))
		return -EFAULT;
	return devbuf_end_resolve(cmd->context, &piece->end,
				  previous ? &previous->end : NULL, range->id,
				  range->offset, range->nbytes, in);
}

/* Copies one piece; adds what was copied to @done. */
static int devbuf_copy_piece(const struct devbuf_copy_piece *piece, bool in,
			     u64 *done)
{
	void __user *user = u64_to_user_ptr(piece->range.user_addr);
	u64 pos = piece->end.pos;
	u64 rest = piece->range.nbytes;
	u64 nbytes, left;
	void *span;

	for (; rest; rest -= nbytes, pos += nbytes, user += nbytes) {
		if (fatal_signal_pending(current))
			return -EINTR;
		nbytes = min_t(u64, rest, DEVBUF_COPY_STEP);
		span = devbuf_storage_span(piece->end.storage, pos, &nbytes);
		/*
		 * __copy_from_user(), since copy_from_user() would zero what it
		 * could not fill: bytes that were not copied stay as they were.
		 */
		left = in ? __copy_from_user(span, user, nbytes) :
			    __copy_to_user(user, span, nbytes);
		*done += nbytes - left;
		if (left)
			return -EFAULT;
		cond_resched();
	}
	return 0;
}

static int devbuf_copy_pieces(const struct devbuf_copy_piece *pieces, u32 nr,
			      bool in, u64 *done)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < nr && !ret; i++)
		ret = devbuf_coherence_begin(pieces[i].end.storage,
					     pieces[i].end.pos,
					     pieces[i].range.nbytes, in);
	if (ret)
		return ret;
	for (i = 0; i < nr && !ret; i++) {
		ret = devbuf_copy_piece(&pieces[i], in, done);
		devbuf_coherence_end(pieces[i].end.storage, pieces[i].end.pos,
				     pieces[i].range.nbytes, in);
	}
	return ret;
}

static int devbuf_copy(struct devbuf_command *cmd, bool in)
{
	struct devbuf_copy_piece few[DEVBUF_COPY_FEW], *pieces = few;
	struct devbuf_copy *arg = &cmd->arg.copy;
	struct devbuf_copy_range __user *ranges = u64_to_user_ptr(arg->ranges);
	u32 nr = 0;
	int ret = 0;

	if (arg->flags || arg->pad || !arg->nr_ranges ||
	    arg->nr_ranges > DEVBUF_MAX_RANGES)
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
		ret = devbuf_copy_resolve(cmd, &pieces[nr],
					  nr ? &pieces[nr - 1] : NULL, in);
		if (ret)
			goto out;
	}
	ret = devbuf_copy_pieces(pieces, nr, in, &arg->out_done_nbytes);
	if (arg->out_done_nbytes)
		arg->out_path = DEVBUF_PATH_CPU;
	if (devbuf_command_reply(cmd))
		ret = -EFAULT;
out:
	while (nr--)
		devbuf_storage_put(pieces[nr].end.storage);
	if (pieces != few)
		kvfree(pieces);
	return ret;
}

int devbuf_ioctl_copyin(struct devbuf_command *cmd)
{
	return devbuf_copy(cmd, true);
}

int devbuf_ioctl_copyout(struct devbuf_command *cmd)
{
	return devbuf_copy(cmd, false);
}
