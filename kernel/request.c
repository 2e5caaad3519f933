// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: queued commands, from when they return to when they are over. This
 * is how CANCEL finds them, and how a ring is told of their end.
 */
#include <linux/io_uring.h>
#include <linux/list.h>
#include <linux/sched.h>

#include "devbuf_private.h"

/* In the task that submitted it, or, when that is gone, in a kernel thread. */
static void devbuf_request_tell(struct io_uring_cmd *ring, unsigned int issue_flags)
{
	struct devbuf_request *request = devbuf_uring_request(ring);
	struct devbuf_command cmd = {
		.row = request->row,
		.user = request->user,
		.user_size = request->user_size,
	};
	int result = request->result;

	request->ops->reply(request, &cmd);
	if (current->mm && devbuf_command_reply(&cmd))
		result = -EFAULT;
	request->ops->put(request);
	/* Last: the ring's file holds this module until then. */
	io_uring_cmd_done(ring, result, 0, issue_flags);
}

/* Two things must have happened: see devbuf_request.untold. */
static void devbuf_request_tell_once(struct devbuf_request *request)
{
	if (atomic_dec_and_test(&request->untold))
		io_uring_cmd_complete_in_task(request->ring, devbuf_request_tell);
}

/**
 * devbuf_request_complete - there is a result
 * @request: the request; with a ring it may be gone afterwards, unless the caller
 *	holds it
 * @result: 0 or a negative errno
 *
 * Whoever is first says what it is. May be called in any context.
 *
 * Return: whether it was this call.
 */
bool devbuf_request_complete(struct devbuf_request *request, int result)
{
	if (cmpxchg(&request->result, DEVBUF_REQUEST_PENDING, result) !=
	    DEVBUF_REQUEST_PENDING)
		return false;
	if (request->ring)
		devbuf_request_tell_once(request);
	return true;
}

/* One can wait, when no more can be queued. */
static bool devbuf_request_fits(const struct devbuf_request *request,
				const struct devbuf_context *context)
{
	if (!request->nr_ranges)
		return context->nr_waits < DEVBUF_MAX_QUEUED;
	return request->nr_ranges <= DEVBUF_MAX_QUEUED - context->queued_ranges &&
	       request->nbytes <= DEVBUF_MAX_QUEUED_NBYTES - context->queued_nbytes;
}

/**
 * devbuf_request_begin - from now on CANCEL can find it
 * @request: with its @ops, @cookie, @nr_ranges and @nbytes
 * @cmd: its command
 *
 * Return: 0, -EDQUOT when too much is queued, or -EINVAL for more than ever can be.
 */
int devbuf_request_begin(struct devbuf_request *request, struct devbuf_command *cmd)
{
	struct devbuf_context *context = cmd->context;
	int ret = -EDQUOT;

	if (request->nbytes > DEVBUF_MAX_QUEUED_NBYTES)
		return -EINVAL;
	request->result = DEVBUF_REQUEST_PENDING;
	spin_lock(&context->requests_lock);
	if (devbuf_request_fits(request, context)) {
		context->nr_waits += !request->nr_ranges;
		context->queued_ranges += request->nr_ranges;
		context->queued_nbytes += request->nbytes;
		rcu_assign_pointer(request->context, context);
		list_add_tail(&request->entry, &context->requests);
		ret = 0;
	}
	spin_unlock(&context->requests_lock);
	return ret;
}

/**
 * devbuf_request_begin_ring - the same, and its ring will be told of its end
 * @request: the same; its @ops->put lets go of the ring's reference
 * @cmd: its command, which returns -EIOCBQUEUED after devbuf_request_set_up()
 *
 * Return: the same.
 */
int devbuf_request_begin_ring(struct devbuf_request *request,
			      struct devbuf_command *cmd)
{
	request->row = cmd->row;
	request->user = cmd->user;
	request->user_size = cmd->user_size;
	request->ring = cmd->ring;
	atomic_set(&request->untold, 2);
	return devbuf_request_begin(request, cmd);
}

/**
 * devbuf_request_set_up - the ring may be told of the request's end
 * @request: begun by devbuf_request_begin_ring(); it may be gone afterwards
 * @cmd: its command
 *
 * Called when everything is on its way, since it may wait for a lock of the
 * ring's, which others hold for as long as they like.
 */
void devbuf_request_set_up(struct devbuf_request *request, struct devbuf_command *cmd)
{
	devbuf_uring_begin(cmd, request);
	devbuf_request_tell_once(request);
}

/* CANCEL does not find it any more. */
void devbuf_request_remove(struct devbuf_request *request)
{
	struct devbuf_context *context;

	rcu_read_lock();
	context = rcu_dereference(request->context);
	if (context) {
		spin_lock(&context->requests_lock);
		/* Unless it was given up just now, or removed before. */
		if (!list_empty(&request->entry)) {
			list_del_init(&request->entry);
			context->nr_waits -= !request->nr_ranges;
			context->queued_ranges -= request->nr_ranges;
			context->queued_nbytes -= request->nbytes;
		}
		spin_unlock(&context->requests_lock);
	}
	rcu_read_unlock();
}

/**
 * devbuf_requests_give_up - the context is closed
 * @context: whose requests are cancelled, since nobody could do so later
 */
void devbuf_requests_give_up(struct devbuf_context *context)
{
	struct devbuf_request *request, *next;

	spin_lock(&context->requests_lock);
	list_for_each_entry_safe(request, next, &context->requests, entry) {
		request->ops->cancel(request);
		RCU_INIT_POINTER(request->context, NULL);
		list_del_init(&request->entry);
	}
	spin_unlock(&context->requests_lock);
}

int devbuf_ioctl_cancel(struct devbuf_command *cmd)
{
	struct devbuf_context *context = cmd->context;
	struct devbuf_cancel *arg = &cmd->arg.cancel;
	bool all = arg->flags & DEVBUF_CANCEL_ALL;
	struct devbuf_request *request;
	int ret;

	if (arg->flags & ~DEVBUF_CANCEL_ALL || all == !!arg->cookie)
		return -EINVAL;
	spin_lock(&context->requests_lock);
	list_for_each_entry(request, &context->requests, entry)
		if ((all || request->cookie == arg->cookie) &&
		    request->ops->cancel(request))
			arg->out_count++;
	spin_unlock(&context->requests_lock);
	ret = devbuf_command_reply(cmd);
	return ret ?: arg->out_count ? 0 : -ENOENT;
}
