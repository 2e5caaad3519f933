// SPDX-License-Identifier: GPL-2.0-only
/*
 * COPYIN and COPYOUT: between buffers and the caller's memory.
 *
 * The caller's memory may be anything: a mapping of the very buffer, a file, a
 * userfaultfd that another thread of his serves. So nothing is held while it is
 * touched, but a reference on the storage.
 */
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "devbuf_private.h"

static int devbuf_copy_resolve(struct devbuf_ends *ends, struct devbuf_piece *piece,
			       const struct devbuf_piece *previous,
			       const struct devbuf_copy_range *range)
{
	struct devbuf_end *end = ends->write ? &piece->dst : &piece->src;
	int ret;

	if (!access_ok(u64_to_user_ptr(range->user_addr), range->nbytes))
		return -EFAULT;
	*piece = (struct devbuf_piece) {
		.user_addr = range->user_addr,
		.nbytes = range->nbytes,
		.engine = &devbuf_cpu_engine,
	};
	ret = devbuf_end_resolve(ends, end, range->id, range->offset, range->nbytes);
	if (ret || end->storage->stays)
		return ret;
	ret = devbuf_stage_get(end, range->nbytes, !previous ? NULL :
			       ends->write ? &previous->dst : &previous->src);
	if (ret)
		devbuf_storage_put(end->storage);
	else if (end->stage->dma)
		piece->engine = &devbuf_device_engine;
	return ret;
}

/* By way of a stage; adds what was copied to @done. */
static int devbuf_copy_piece_staged(const struct devbuf_piece *piece, u64 *done)
{
	const struct devbuf_end *end = piece->dst.storage ? &piece->dst : &piece->src;
	void __user *user = u64_to_user_ptr(piece->user_addr);
	bool in = piece->dst.storage;
	void *stage = end->stage->vaddr;
	u64 rest = piece->nbytes, pos = end->pos, nbytes, left;
	int ret = 0;

	for (; rest; rest -= nbytes, pos += nbytes, user += nbytes) {
		if (fatal_signal_pending(current))
			return -EINTR;
		nbytes = devbuf_stage_step(end, rest);
		if (in) {
			left = __copy_from_user(stage, user, nbytes);
			if (left < nbytes)
				ret = devbuf_stage_store(end, pos, stage,
							 nbytes - left);
		} else {
			left = nbytes;
			ret = devbuf_stage_load(end, pos, nbytes);
			if (!ret)
				left = __copy_to_user(user, stage, nbytes);
		}
		if (ret)
			return ret;
		*done += nbytes - left;
		if (left)
			return -EFAULT;
		cond_resched();
	}
	return 0;
}

/* The same for memory that stays. */
static int devbuf_copy_piece(const struct devbuf_piece *piece, bool nonblock,
			     u64 *done)
{
	const struct devbuf_end *end = piece->dst.storage ? &piece->dst : &piece->src;
	void __user *user = u64_to_user_ptr(piece->user_addr);
	bool in = piece->dst.storage;
	u64 rest = piece->nbytes;
	u64 pos = end->pos;
	u64 nbytes, left;
	void *span;

	for (; rest; rest -= nbytes, pos += nbytes, user += nbytes) {
		if (fatal_signal_pending(current))
			return -EINTR;
		nbytes = min_t(u64, rest, DEVBUF_COPY_STEP);
		span = devbuf_storage_span(end->storage, pos, &nbytes);
		/*
		 * Without zeroing what could not be filled: bytes that were not
		 * copied stay as they were.
		 */
		if (nonblock) {
			pagefault_disable();
			left = in ? __copy_from_user_inatomic(span, user, nbytes) :
				    __copy_to_user_inatomic(user, span, nbytes);
			pagefault_enable();
		} else {
			left = in ? __copy_from_user(span, user, nbytes) :
				    __copy_to_user(user, span, nbytes);
		}
		*done += nbytes - left;
		if (left)
			return nonblock ? -EAGAIN : -EFAULT;
		cond_resched();
	}
	return 0;
}

static int devbuf_copy_slice_staged(const struct devbuf_piece *piece,
				    struct iov_iter *iter)
{
	const struct devbuf_end *end = piece->dst.storage ? &piece->dst : &piece->src;
	u64 pos = end->pos, rest = piece->nbytes, nbytes, copied;
	bool in = piece->dst.storage;
	void *stage = end->stage->vaddr;
	int ret = 0;

	for (; rest && !ret; rest -= nbytes, pos += nbytes) {
		nbytes = devbuf_stage_step(end, rest);
		if (in) {
			copied = copy_from_iter(stage, nbytes, iter);
			if (copied == nbytes)
				ret = devbuf_stage_store(end, pos, stage, nbytes);
		} else {
			copied = nbytes;
			ret = devbuf_stage_load(end, pos, nbytes);
			if (!ret)
				copied = copy_to_iter(stage, nbytes, iter);
		}
		if (!ret && copied != nbytes)
			ret = -EFAULT;
	}
	return ret;
}

/**
 * devbuf_copy_slice - copy between a buffer and pages of the caller's
 * @piece: of which bytes of the buffer
 * @iter: the caller's
 *
 * Return: 0 or -EFAULT; of memory that does not stay, what devbuf_stage_load() and
 * devbuf_stage_store() return, too.
 */
int devbuf_copy_slice(const struct devbuf_piece *piece, struct iov_iter *iter)
{
	const struct devbuf_end *end = piece->dst.storage ? &piece->dst : &piece->src;
	u64 pos = end->pos, rest = piece->nbytes, nbytes, copied;
	bool in = piece->dst.storage;
	void *span;

	if (end->stage)
		return devbuf_copy_slice_staged(piece, iter);
	for (; rest; rest -= nbytes, pos += nbytes) {
		nbytes = rest;
		span = devbuf_storage_span(end->storage, pos, &nbytes);
		copied = in ? copy_from_iter(span, nbytes, iter) :
			      copy_to_iter(span, nbytes, iter);
		if (copied != nbytes)
			return -EFAULT;
	}
	return 0;
}

static int devbuf_copy_now(struct devbuf_command *cmd,
			   const struct devbuf_piece *pieces, u32 nr)
{
	struct devbuf_copy *arg = &cmd->arg.copy;
	bool nonblock = devbuf_command_is_nonblocking(cmd);
	int ret = 0;
	u64 done;
	u32 i;

	/* Who may not wait has made sure that there is nothing to wait for. */
	for (i = 0; i < nr && !ret && !nonblock; i++)
		ret = devbuf_piece_wait(&pieces[i]);
	for (i = 0; i < nr && !ret; i++) {
		done = arg->out_done_nbytes;
		if (devbuf_piece_is_slow(&pieces[i]))
			ret = devbuf_copy_piece_staged(&pieces[i],
						       &arg->out_done_nbytes);
		else
			ret = devbuf_copy_piece(&pieces[i], nonblock,
						&arg->out_done_nbytes);
		if (arg->out_done_nbytes > done)
			arg->out_path = max(arg->out_path, pieces[i].engine->path);
		devbuf_piece_end(&pieces[i]);
	}
	/* Pages of the caller's are not there: it is to be queued after all. */
	if (ret == -EAGAIN)
		return ret;
	return devbuf_command_reply(cmd) ? -EFAULT : ret;
}

static int devbuf_copy(struct devbuf_command *cmd, bool in)
{
	struct devbuf_piece few[DEVBUF_COPY_FEW], *pieces;
	struct devbuf_copy *arg = &cmd->arg.copy;
	const struct devbuf_copy_range *ranges;
	struct devbuf_copy_range range;
	struct devbuf_ends ends;
	u32 nr;
	int ret;

	ret = devbuf_copy_check(cmd, 0);
	if (ret)
		return ret;
	pieces = devbuf_pieces_read(few, arg->ranges, arg->nr_ranges,
				    sizeof(*ranges), (const void **)&ranges);
	if (IS_ERR(pieces))
		return PTR_ERR(pieces);
	devbuf_ends_init(&ends, cmd->context, arg->nr_ranges, in);
	for (nr = 0; nr < arg->nr_ranges; nr++) {
		range = ranges[nr];
		ret = devbuf_copy_resolve(&ends, &pieces[nr],
					  nr ? &pieces[nr - 1] : NULL, &range);
		if (ret)
			goto out;
	}
	ret = -EAGAIN;
	if (!devbuf_copy_is_queued(cmd, pieces, nr))
		ret = devbuf_copy_now(cmd, pieces, nr);
	if (ret == -EAGAIN) {
		ret = devbuf_job_queue(cmd, pieces, nr);
		/* The job has the memory now. */
		if (!ret || ret == -EIOCBQUEUED)
			nr = 0;
	}
out:
	devbuf_pieces_put(pieces, nr);
	devbuf_pieces_free(pieces, few);
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
