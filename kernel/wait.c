// SPDX-License-Identifier: GPL-2.0-only
/*
 * WAIT: for the fences of a range of bytes, and others that the caller names;
 * asleep, or queued on a ring.
 */
#include <linux/completion.h>
#include <linux/dma-fence.h>
#include <linux/hrtimer.h>
#include <linux/slab.h>

#include "devbuf_private.h"

/**
 * struct devbuf_waiter - somebody who waits
 * @request: for CANCEL, and the ring
 * @gate: opens when all fences have signalled
 * @woken: who waits asleep can go on
 * @deadline: ends the wait
 * @has_deadline: whether there is one
 */
struct devbuf_waiter {
	struct devbuf_request request;
	struct devbuf_gate gate;
	struct completion woken;
	struct hrtimer deadline;
	bool has_deadline;
};

/* The first who has something to tell ends the wait. In any context. */
static bool devbuf_waiter_end(struct devbuf_waiter *waiter, int result)
{
	/* On a ring, it may be gone once there is a result. */
	bool asleep = !waiter->request.ring;

	if (!devbuf_request_complete(&waiter->request, result))
		return false;
	if (asleep)
		complete(&waiter->woken);
	return true;
}

static void devbuf_waiter_open(struct devbuf_gate *gate)
{
	devbuf_waiter_end(container_of(gate, struct devbuf_waiter, gate), 0);
}

static bool devbuf_waiter_cancel(struct devbuf_request *request)
{
	return devbuf_waiter_end(container_of(request, struct devbuf_waiter, request),
				 -ECANCELED);
}

static enum hrtimer_restart devbuf_waiter_expire(struct hrtimer *timer)
{
	devbuf_waiter_end(container_of(timer, struct devbuf_waiter, deadline),
			  -ETIMEDOUT);
	return HRTIMER_NORESTART;
}

/* Nobody will call us any more. */
static void devbuf_waiter_stop(struct devbuf_waiter *waiter)
{
	devbuf_request_remove(&waiter->request);
	if (waiter->has_deadline)
		hrtimer_cancel(&waiter->deadline);
	devbuf_gate_stop(&waiter->gate);
}

static void devbuf_waiter_free(struct devbuf_waiter *waiter)
{
	devbuf_gate_release(&waiter->gate);
	kfree(waiter);
}

static void devbuf_waiter_reply(struct devbuf_request *request,
				struct devbuf_command *cmd)
{
	struct devbuf_waiter *waiter =
		container_of(request, struct devbuf_waiter, request);

	devbuf_waiter_stop(waiter);
	cmd->arg.wait.out_error = READ_ONCE(waiter->gate.error);
}

static void devbuf_waiter_put(struct devbuf_request *request)
{
	devbuf_waiter_free(container_of(request, struct devbuf_waiter, request));
}

static const struct devbuf_request_ops devbuf_waiter_ops = {
	.cancel	= devbuf_waiter_cancel,
	.reply	= devbuf_waiter_reply,
	.put	= devbuf_waiter_put,
};

/* What the caller waits for. */
static int devbuf_wait_collect(struct devbuf_command *cmd,
			       struct devbuf_fences *fences)
{
	const struct devbuf_wait *arg = &cmd->arg.wait;
	struct devbuf_storage *storage;
	u64 start;
	int ret;

	ret = devbuf_fences_add_user(fences, arg->in_fences, arg->nr_in_fences);
	if (ret || !arg->id)
		return ret;
	storage = devbuf_range_hold(cmd->context, arg->id, arg->offset, arg->nbytes,
				    DEVBUF_RIGHT_READ, &start);
	if (IS_ERR(storage))
		return PTR_ERR(storage);
	ret = devbuf_access_collect(storage, start, start + arg->nbytes - 1,
				    arg->flags & DEVBUF_WAIT_WRITE,
				    !cmd->ring, fences);
	devbuf_storage_put(storage);
	return ret;
}

/* From now on it ends, in the order of what happens: at once, if that is so. */
static void devbuf_waiter_start(struct devbuf_waiter *waiter,
				const struct devbuf_wait *arg,
				struct devbuf_fences *fences)
{
	/* Any number from 2^63 on stands for no deadline. */
	waiter->has_deadline = arg->deadline_ns <= S64_MAX;
	if (waiter->has_deadline) {
		hrtimer_init(&waiter->deadline, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
		waiter->deadline.function = devbuf_waiter_expire;
	}
	if (devbuf_gate_arm(&waiter->gate, fences, fences->nr))
		devbuf_waiter_open(&waiter->gate);
	else if (waiter->has_deadline)
		hrtimer_start(&waiter->deadline, ns_to_ktime(arg->deadline_ns),
			      HRTIMER_MODE_ABS);
}

/* This and the next take the waiter over. */
static int devbuf_wait_asleep(struct devbuf_command *cmd,
			      struct devbuf_waiter *waiter,
			      struct devbuf_fences *fences)
{
	int ret;

	ret = devbuf_request_begin(&waiter->request, cmd);
	if (ret)
		goto out;
	devbuf_waiter_start(waiter, &cmd->arg.wait, fences);
	ret = wait_for_completion_interruptible(&waiter->woken);
	/* Unless it has ended meanwhile, which counts all the same. */
	if (ret)
		devbuf_waiter_end(waiter, ret);
	devbuf_waiter_stop(waiter);
	cmd->arg.wait.out_error = READ_ONCE(waiter->gate.error);
	ret = waiter->request.result;
	if (ret != -ERESTARTSYS && devbuf_command_reply(cmd))
		ret = -EFAULT;
out:
	devbuf_waiter_free(waiter);
	return ret;
}

static int devbuf_wait_on_ring(struct devbuf_command *cmd,
			       struct devbuf_waiter *waiter,
			       struct devbuf_fences *fences)
{
	int ret;

	ret = devbuf_request_begin_ring(&waiter->request, cmd);
	if (ret) {
		devbuf_waiter_free(waiter);
		return ret;
	}
	devbuf_waiter_start(waiter, &cmd->arg.wait, fences);
	devbuf_request_set_up(&waiter->request, cmd);
	return -EIOCBQUEUED;
}

int devbuf_ioctl_wait(struct devbuf_command *cmd)
{
	const u32 access = DEVBUF_WAIT_READ | DEVBUF_WAIT_WRITE;
	struct devbuf_wait *arg = &cmd->arg.wait;
	struct devbuf_waiter *waiter;
	struct devbuf_fences fences;
	int ret;

	if (arg->flags & ~access || !!(arg->flags & access) != !!arg->id || arg->pad ||
	    (!arg->id && (arg->offset || arg->nbytes)) ||
	    (!arg->nr_in_fences && arg->in_fences))
		return -EINVAL;
	/* A ring that could not end the wait lets one of its workers wait. */
	if (devbuf_command_is_nonblocking(cmd) && !DEVBUF_URING_CANCEL)
		return -EAGAIN;

	devbuf_fences_init(&fences);
	ret = devbuf_wait_collect(cmd, &fences);
	if (ret)
		goto out;
	ret = -ENOMEM;
	waiter = kzalloc(sizeof(*waiter), DEVBUF_GFP);
	if (!waiter)
		goto out;
	waiter->request.ops = &devbuf_waiter_ops;
	waiter->request.cookie = arg->cookie;
	waiter->gate.open = devbuf_waiter_open;
	init_completion(&waiter->woken);
	ret = devbuf_gate_reserve(&waiter->gate, fences.nr);
	if (ret) {
		kfree(waiter);
		goto out;
	}
	if (cmd->ring && DEVBUF_URING_CANCEL)
		ret = devbuf_wait_on_ring(cmd, waiter, &fences);
	else
		ret = devbuf_wait_asleep(cmd, waiter, &fences);
out:
	devbuf_fences_release(&fences);
	return ret;
}
