// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Queues: their places for operations, and what all types of queues have in common. */
#include <stdlib.h>
#include <time.h>

#include "queue.h"

/* --- places ----------------------------------------------------------------------------------- */

struct operation *dbuf_list_pop(struct list *l)
{
	struct operation *o = l->first;

	if (o) {
		l->first = o->next;
		if (!l->first)
			l->end = &l->first;
	}
	return o;
}

void dbuf_list_push(struct list *l, struct operation *o)
{
	o->next = NULL;
	*l->end = o;
	l->end = &o->next;
}

int dbuf_queue_usable(const struct devbuf_queue *q)
{
	if (!q)
		return dbuf_fail(-EINVAL, "no queue");
	if (dbuf_process_forked(&q->process))
		return dbuf_fail(-EPERM, "the queue is the parent process's: "
					 "make another one after fork");
	return 0;
}

/* LRU allocators and what they are over know the same buffers. */
int dbuf_queue_check(const struct devbuf_queue *q, const struct devbuf *b)
{
	int rc;

	rc = dbuf_queue_usable(q);
	if (!rc)
		rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (b->allocator->registry != q->allocator->registry)
		return dbuf_fail(-EINVAL,
				 "buffer of %zu bytes on %s is not of the queue's allocator",
				 b->nbytes, b->device);
	return 0;
}

struct operation *dbuf_queue_take(struct devbuf_queue *q, const struct operation_kind *kind,
				  uint64_t cookie)
{
	struct operation *o = dbuf_list_pop(&q->free);

	if (!o) {
		dbuf_fail(-EAGAIN, "all %u places of the queue are taken", q->depth);
		return NULL;
	}
	*o = (struct operation){ .kind = kind, .cookie = cookie };
	q->nr_used++;
	return o;
}

void dbuf_queue_add(struct devbuf_queue *q, struct operation *o)
{
	o->state = OPERATION_QUEUED;
	dbuf_list_push(&q->queued, o);
}

void dbuf_queue_drop(struct devbuf_queue *q, struct operation *o)
{
	if (o->kind->release)
		o->kind->release(o);
	devbuf_unref(o->piece.dst);
	devbuf_unref(o->piece.src);
	o->state = OPERATION_FREE;
	dbuf_list_push(&q->free, o);
	q->nr_used--;
}

void dbuf_queue_complete(struct devbuf_queue *q, struct operation *o, struct devbuf_completion *out)
{
	*out = (struct devbuf_completion){
		.cookie = o->cookie,
		.done_nbytes = o->done_nbytes,
		.result = o->result,
		.path = o->path,
	};
	dbuf_queue_drop(q, o);
}

uint64_t dbuf_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* --- the queue -------------------------------------------------------------------------------- */

static void free_queue(struct devbuf_queue *q)
{
	dbuf_process_unmark(&q->process);
	devbuf_allocator_unref(q->allocator);
	free(q->operations);
	free(q);
}

static struct devbuf_queue *new_queue(struct devbuf_allocator *a, unsigned int depth)
{
	struct devbuf_queue *q = calloc(1, sizeof(*q));
	struct operation *operations = calloc(depth, sizeof(*operations));

	if (!q || !operations) {
		free(operations);
		free(q);
		dbuf_fail(-ENOMEM, "no memory for a queue of %u operations", depth);
		return NULL;
	}
	q->allocator = devbuf_allocator_ref(a);
	q->depth = depth;
	q->operations = operations;
	q->free.end = &q->free.first;
	q->queued.end = &q->queued.first;
	q->done.end = &q->done.first;
	for (unsigned int i = 0; i < depth; i++)
		dbuf_list_push(&q->free, &operations[i]);
	dbuf_process_mark(&q->process);
	return q;
}

int devbuf_queue_create(struct devbuf_allocator *a, unsigned int depth, struct devbuf_queue **out)
{
	struct devbuf_queue *q;
	int rc;

	rc = dbuf_allocator_usable(a);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the queue");
	if (!depth || depth > DEVBUF_QUEUE_DEPTH_MAX)
		return dbuf_fail(-EINVAL, "a queue of %u operations: 1 to %u can be", depth,
				 DEVBUF_QUEUE_DEPTH_MAX);
	q = new_queue(a, depth);
	if (!q)
		return -ENOMEM;
	rc = dbuf_queue_ring(q);
	if (rc == -EOPNOTSUPP)
		rc = dbuf_queue_in_order(q);
	if (rc) {
		free_queue(q);
		return rc;
	}
	*out = q;
	return 0;
}

void devbuf_queue_destroy(struct devbuf_queue *q)
{
	if (!q)
		return;
	q->type->destroy(q, dbuf_process_forked(&q->process));
	for (unsigned int i = 0; i < q->depth; i++)
		if (q->operations[i].state != OPERATION_FREE)
			dbuf_queue_drop(q, &q->operations[i]);
	free_queue(q);
}

bool devbuf_queue_is_async(const struct devbuf_queue *q)
{
	return q && q->ring;
}

int devbuf_queue_fd(const struct devbuf_queue *q)
{
	int rc = dbuf_queue_usable(q);

	return rc ? rc : q->fd;
}

int devbuf_queue_submit(struct devbuf_queue *q)
{
	int rc = dbuf_queue_usable(q);

	return rc ? rc : q->type->submit(q);
}

int devbuf_queue_wait(struct devbuf_queue *q, size_t min, uint64_t deadline_ns,
		      struct devbuf_completion *out, size_t max, size_t *nr)
{
	size_t n;
	int rc;

	rc = dbuf_queue_usable(q);
	if (rc)
		return rc;
	if (!out || !max || !nr)
		return dbuf_fail(-EINVAL, "no place for completions");
	if (min > max)
		return dbuf_fail(-EINVAL, "%zu completions do not go into an array of %zu", min,
				 max);
	if (min > q->nr_used)
		return dbuf_fail(-EINVAL, "%zu completions of %u operations would never come", min,
				 q->nr_used);
	rc = q->type->wait(q, min, deadline_ns, out, max, &n);
	if (!rc)
		*nr = n;
	return rc;
}

static bool cancel(struct devbuf_queue *q, struct operation *o)
{
	if (o->state == OPERATION_SUBMITTED)
		return q->type->cancel(q, o);
	if (o->state != OPERATION_QUEUED || o->cancelled)
		return false;
	o->cancelled = true;
	return true;
}

int devbuf_queue_cancel(struct devbuf_queue *q, uint64_t cookie, size_t *count)
{
	size_t n = 0;
	int rc;

	rc = dbuf_queue_usable(q);
	if (rc)
		return rc;
	for (unsigned int i = 0; i < q->depth; i++)
		if (q->operations[i].cookie == cookie)
			n += cancel(q, &q->operations[i]);
	if (!n)
		return dbuf_fail(-ENOENT, "no operation with cookie %" PRIu64 " to cancel", cookie);
	if (count)
		*count = n;
	return 0;
}
