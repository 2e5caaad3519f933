// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Queues that run their operations in order, when they are submitted. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "queue.h"

/* The eventfd counts to one as long as something is done. */
static void signal_done(const struct devbuf_queue *q, bool done)
{
	uint64_t value = 1;
	ssize_t ignored;

	ignored = done ? write(q->fd, &value, sizeof(value)) : read(q->fd, &value, sizeof(value));
	(void)ignored;
}

static int in_order_submit(struct devbuf_queue *q)
{
	bool was_done = q->done.first;
	struct operation *o;

	while ((o = dbuf_list_pop(&q->queued))) {
		o->result = o->cancelled ? -ECANCELED : o->kind->run(o);
		o->state = OPERATION_DONE;
		dbuf_list_push(&q->done, o);
	}
	if (!was_done && q->done.first)
		signal_done(q, true);
	return 0;
}

/* All that was queued is done: there is nothing to wait for. */
static int in_order_wait(struct devbuf_queue *q, size_t min, uint64_t deadline_ns,
			 struct devbuf_completion *out, size_t max, size_t *nr)
{
	struct operation *o;

	(void)min;
	(void)deadline_ns;
	in_order_submit(q);
	*nr = 0;
	while (*nr < max && (o = dbuf_list_pop(&q->done)))
		dbuf_queue_complete(q, o, &out[(*nr)++]);
	if (*nr && !q->done.first)
		signal_done(q, false);
	return 0;
}

/* What was submitted is over. */
static bool in_order_cancel(struct devbuf_queue *q, struct operation *o)
{
	(void)q;
	(void)o;
	return false;
}

static void in_order_destroy(struct devbuf_queue *q, bool forked)
{
	(void)forked;
	close(q->fd);
}

static const struct queue_type in_order = {
	.submit = in_order_submit,
	.wait = in_order_wait,
	.cancel = in_order_cancel,
	.destroy = in_order_destroy,
};

int dbuf_queue_in_order(struct devbuf_queue *q)
{
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->fd < 0)
		return dbuf_fail(-errno, "no file descriptor for a queue: %s", dbuf_reason(-errno));
	q->type = &in_order;
	return 0;
}
