// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Queues: places for operations, what the kinds of operations are, and execution in order. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

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

static int usable(const struct devbuf_queue *q)
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

	rc = usable(q);
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

static void give_back(struct devbuf_queue *q, struct operation *o)
{
	o->state = OPERATION_FREE;
	dbuf_list_push(&q->free, o);
	q->nr_used--;
}

/* The operation is over, or never was. */
static void release(struct devbuf_queue *q, struct operation *o)
{
	if (o->kind->release)
		o->kind->release(o);
	devbuf_unref(o->piece.dst);
	devbuf_unref(o->piece.src);
	give_back(q, o);
}

void dbuf_queue_complete(struct devbuf_queue *q, struct operation *o, struct devbuf_completion *out)
{
	*out = (struct devbuf_completion){
		.cookie = o->cookie,
		.done_nbytes = o->done_nbytes,
		.result = o->result,
		.path = o->path,
	};
	release(q, o);
}

uint64_t dbuf_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* --- in order --------------------------------------------------------------------------------- */

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

static int make_in_order(struct devbuf_queue *q)
{
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->fd < 0)
		return dbuf_fail(-errno, "no file descriptor for a queue: %s", dbuf_reason(-errno));
	q->type = &in_order;
	return 0;
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
		rc = make_in_order(q);
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
			release(q, &q->operations[i]);
	free_queue(q);
}

bool devbuf_queue_is_async(const struct devbuf_queue *q)
{
	return q && q->type != &in_order;
}

int devbuf_queue_fd(const struct devbuf_queue *q)
{
	int rc = usable(q);

	return rc ? rc : q->fd;
}

int devbuf_queue_submit(struct devbuf_queue *q)
{
	int rc = usable(q);

	return rc ? rc : q->type->submit(q);
}

int devbuf_queue_wait(struct devbuf_queue *q, size_t min, uint64_t deadline_ns,
		      struct devbuf_completion *out, size_t max, size_t *nr)
{
	size_t n;
	int rc;

	rc = usable(q);
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

	rc = usable(q);
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

/* --- copies with the caller's memory ---------------------------------------------------------- */

static int ran(struct operation *o, int rc, size_t nbytes)
{
	if (!rc)
		o->done_nbytes = nbytes;
	return rc;
}

static int run_copyin(struct operation *o)
{
	const struct devbuf_transfer_piece *p = &o->piece;

	return ran(o, devbuf_copyin_at(p->dst, p->dst_offset, o->memory, p->nbytes), p->nbytes);
}

static int run_copyout(struct operation *o)
{
	const struct devbuf_transfer_piece *p = &o->piece;

	return ran(o, devbuf_copyout_at(p->src, p->src_offset, o->memory, p->nbytes), p->nbytes);
}

static const struct operation_kind copyin_kind = {
	.run = run_copyin,
	.prepare = dbuf_prepare_copyin,
	.finish = dbuf_finish_copy,
};

static const struct operation_kind copyout_kind = {
	.run = run_copyout,
	.prepare = dbuf_prepare_copyout,
	.finish = dbuf_finish_copy,
};

static int check_part(const struct devbuf_queue *q, const struct devbuf *b, size_t offset,
		      const void *memory, size_t nbytes)
{
	int rc = dbuf_queue_check(q, b);

	return rc ? rc : dbuf_check_part(b, offset, memory, nbytes);
}

int devbuf_queue_copyin(struct devbuf_queue *q, struct devbuf *dst, size_t dst_offset,
			const void *src, size_t nbytes, uint64_t cookie)
{
	struct operation *o;
	int rc;

	rc = check_part(q, dst, dst_offset, src, nbytes);
	if (rc)
		return rc;
	o = dbuf_queue_take(q, &copyin_kind, cookie);
	if (!o)
		return -EAGAIN;
	o->piece.dst = devbuf_ref(dst);
	o->piece.dst_offset = dst_offset;
	o->piece.nbytes = nbytes;
	o->memory = (void *)(uintptr_t)src;
	dbuf_queue_add(q, o);
	return 0;
}

int devbuf_queue_copyout(struct devbuf_queue *q, struct devbuf *src, size_t src_offset, void *dst,
			 size_t nbytes, uint64_t cookie)
{
	struct operation *o;
	int rc;

	rc = check_part(q, src, src_offset, dst, nbytes);
	if (rc)
		return rc;
	o = dbuf_queue_take(q, &copyout_kind, cookie);
	if (!o)
		return -EAGAIN;
	o->piece.src = devbuf_ref(src);
	o->piece.src_offset = src_offset;
	o->piece.nbytes = nbytes;
	o->memory = dst;
	dbuf_queue_add(q, o);
	return 0;
}

/* --- transfers -------------------------------------------------------------------------------- */

static int run_transfer(struct operation *o)
{
	const struct devbuf_transfer_piece *pieces = o->many ? o->many->pieces : &o->piece;
	size_t nr = o->many ? o->many->nr : 1, nbytes = 0;

	for (size_t i = 0; i < nr; i++)
		nbytes += pieces[i].nbytes;
	return ran(o, devbuf_copy_many(pieces, nr, o->flags, &o->path), nbytes);
}

static void release_transfer(struct operation *o)
{
	if (!o->many)
		return;
	for (size_t i = 0; i < o->many->nr; i++) {
		devbuf_unref(o->many->pieces[i].dst);
		devbuf_unref(o->many->pieces[i].src);
	}
	free(o->many);
}

static const struct operation_kind transfer_kind = {
	.run = run_transfer,
	.prepare = dbuf_prepare_transfer,
	.finish = dbuf_finish_transfer,
	.release = release_transfer,
};

static int check_piece(const struct devbuf_queue *q, const struct devbuf_transfer_piece *p,
		       unsigned int flags)
{
	int rc;

	rc = dbuf_queue_check(q, p->dst);
	if (!rc)
		rc = dbuf_queue_check(q, p->src);
	return rc ? rc : dbuf_check_piece(p, flags);
}

int devbuf_queue_transfer(struct devbuf_queue *q, struct devbuf *dst, size_t dst_offset,
			  struct devbuf *src, size_t src_offset, size_t nbytes, unsigned int flags,
			  uint64_t cookie)
{
	const struct devbuf_transfer_piece piece = { dst, dst_offset, src, src_offset, nbytes };
	struct made_piece made;
	struct operation *o;
	int rc;

	rc = check_piece(q, &piece, flags);
	if (rc)
		return rc;
	o = dbuf_queue_take(q, &transfer_kind, cookie);
	if (!o)
		return -EAGAIN;
	rc = dbuf_ensure_piece(&piece, &made);
	if (rc) {
		give_back(q, o);
		return rc;
	}
	o->piece = piece;
	devbuf_ref(dst);
	devbuf_ref(src);
	o->flags = flags;
	dbuf_queue_add(q, o);
	return 0;
}

/* One block of memory. */
static struct many *new_many(const struct devbuf_transfer_piece *pieces, size_t nr)
{
	struct many *many = malloc(sizeof(*many) + nr * (sizeof(struct devbuf_transfer_piece) +
							 sizeof(struct devbuf_transfer_range)));

	if (!many) {
		dbuf_fail(-ENOMEM, "no memory for %zu pieces", nr);
		return NULL;
	}
	many->nr = nr;
	many->ranges = (struct devbuf_transfer_range *)(many + 1);
	many->pieces = (struct devbuf_transfer_piece *)(many->ranges + nr);
	memcpy(many->pieces, pieces, nr * sizeof(*pieces));
	for (size_t i = 0; i < nr; i++) {
		devbuf_ref(pieces[i].dst);
		devbuf_ref(pieces[i].src);
	}
	return many;
}

int devbuf_queue_transfer_many(struct devbuf_queue *q, const struct devbuf_transfer_piece *pieces,
			       size_t nr, unsigned int flags, uint64_t cookie)
{
	struct made_piece made;
	struct operation *o;
	int rc;

	rc = usable(q);
	if (rc)
		return rc;
	if (!pieces || !nr || nr > DEVBUF_QUEUE_PIECES_MAX)
		return dbuf_fail(-EINVAL, "%zu pieces: 1 to %u can be", nr,
				 DEVBUF_QUEUE_PIECES_MAX);
	for (size_t i = 0; i < nr && !rc; i++)
		rc = check_piece(q, &pieces[i], flags);
	if (rc)
		return rc;
	o = dbuf_queue_take(q, &transfer_kind, cookie);
	if (!o)
		return -EAGAIN;
	o->many = new_many(pieces, nr);
	rc = o->many ? 0 : -ENOMEM;
	for (size_t i = 0; i < nr && !rc; i++)
		rc = dbuf_ensure_piece(&pieces[i], &made);
	if (rc) {
		release(q, o);
		return rc;
	}
	o->flags = flags;
	dbuf_queue_add(q, o);
	return 0;
}
