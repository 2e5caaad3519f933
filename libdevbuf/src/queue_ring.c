// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Queues on an io_uring of their own, of the driver's commands.
 *
 * What is done when: an operation gets an entry of the submission ring when the
 * queue is submitted, and is finished when its completion is handed out, never
 * earlier. So the ring's file is readable just as long as there are completions
 * to take.
 */
#include <liburing.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver.h"
#include "queue.h"

struct ring {
	struct io_uring uring;
};

/* --- commands --------------------------------------------------------------------------------- */

/*
 * By this the driver finds the operation to cancel. The caller's own cookies have a zero where
 * these have a one, and an operation's address is its own in the process, as the connection is.
 */
static uint64_t command_cookie(const struct operation *o)
{
	return (uintptr_t)o | DBUF_OWN_COOKIE;
}

static void prepare_copy(struct operation *o, struct io_uring_sqe *sqe, unsigned long command,
			 const struct devbuf *b, size_t offset)
{
	dbuf_fill_copy(&o->argument.copy, &o->range.copy, b, offset, o->memory, o->piece.nbytes);
	o->command_cookie = command_cookie(o);
	o->argument.copy.cookie = o->command_cookie;
	dbuf_fill_entry(sqe, dbuf_connection(b), command, &o->argument.copy);
}

void dbuf_prepare_copyin(struct operation *o, struct io_uring_sqe *sqe)
{
	prepare_copy(o, sqe, DEVBUF_COPYIN, o->piece.dst, o->piece.dst_offset);
}

void dbuf_prepare_copyout(struct operation *o, struct io_uring_sqe *sqe)
{
	prepare_copy(o, sqe, DEVBUF_COPYOUT, o->piece.src, o->piece.src_offset);
}

bool dbuf_finish_copy(struct operation *o, int res)
{
	o->result = res;
	o->done_nbytes = o->argument.copy.out_done_nbytes;
	o->path = dbuf_path_from_uapi(o->argument.copy.out_path);
	return true;
}

void dbuf_prepare_transfer(struct operation *o, struct io_uring_sqe *sqe)
{
	const struct devbuf_transfer_piece *pieces = o->many ? o->many->pieces : &o->piece;
	struct devbuf_transfer_range *ranges = o->many ? o->many->ranges : &o->range.transfer;
	size_t nr = o->many ? o->many->nr : 1;

	for (size_t i = 0; i < nr; i++)
		dbuf_fill_range(&ranges[i], &pieces[i]);
	dbuf_fill_transfer(&o->argument.transfer, ranges, nr, o->flags);
	o->command_cookie = command_cookie(o);
	o->argument.transfer.cookie = o->command_cookie;
	dbuf_fill_entry(sqe, dbuf_connection(pieces->dst), DEVBUF_TRANSFER, &o->argument.transfer);
}

bool dbuf_finish_transfer(struct operation *o, int res)
{
	o->result = res;
	o->done_nbytes = o->argument.transfer.out_done_nbytes;
	o->path = dbuf_path_from_uapi(o->argument.transfer.out_path);
	return true;
}

/* --- the ring --------------------------------------------------------------------------------- */

/* There are as many entries as operations, and each has one at a time. */
static void prepare(struct devbuf_queue *q, struct operation *o)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring->uring);

	if (o->cancelled)
		io_uring_prep_nop(sqe);
	else
		o->kind->prepare(o, sqe);
	io_uring_sqe_set_data(sqe, o);
	o->state = OPERATION_SUBMITTED;
}

static void prepare_queued(struct devbuf_queue *q)
{
	struct operation *o;

	while ((o = dbuf_list_pop(&q->queued)))
		prepare(q, o);
}

/* A result of the ring's own, which may have begun less than it was given. */
static int entered(int rc)
{
	if (rc >= 0 || rc == -EINTR || rc == -ETIME)
		return 0;
	if (rc == -EAGAIN || rc == -EBUSY)
		rc = -ENOMEM;
	return dbuf_fail(rc, "io_uring does not take the operations: %s", dbuf_reason(rc));
}

static int ring_submit(struct devbuf_queue *q)
{
	int rc = 0;

	prepare_queued(q);
	while (!rc && io_uring_sq_ready(&q->ring->uring))
		rc = entered(io_uring_submit(&q->ring->uring));
	return rc;
}

/* Hand out the completions that are there. */
static size_t reap(struct devbuf_queue *q, struct devbuf_completion *out, size_t max)
{
	struct io_uring_cqe *cqe;
	struct operation *o;
	size_t n = 0;
	int res;

	while (n < max && !io_uring_peek_cqe(&q->ring->uring, &cqe)) {
		o = io_uring_cqe_get_data(cqe);
		res = cqe->res;
		io_uring_cqe_seen(&q->ring->uring, cqe);
		if (o->cancelled)
			o->result = -ECANCELED;
		else if (!o->kind->finish(o, res)) {
			prepare(q, o);
			continue;
		}
		dbuf_queue_complete(q, o, &out[n++]);
	}
	return n;
}

/* Submit, and sleep until @missing are there or the deadline comes. */
static int enter(struct devbuf_queue *q, size_t missing, uint64_t deadline_ns)
{
	struct io_uring *uring = &q->ring->uring;
	struct __kernel_timespec left;
	struct io_uring_cqe *cqe;
	uint64_t now;
	int rc;

	if (!missing || deadline_ns == DEVBUF_FOREVER)
		return entered(io_uring_submit_and_wait(uring, (unsigned int)missing));
	now = dbuf_now_ns();
	left.tv_sec = deadline_ns > now ? (long long)((deadline_ns - now) / 1000000000) : 0;
	left.tv_nsec = deadline_ns > now ? (long long)((deadline_ns - now) % 1000000000) : 0;
	rc = io_uring_submit_and_wait_timeout(uring, &cqe, (unsigned int)missing, &left, NULL);
	rc = entered(rc);
	if (!rc && io_uring_cq_ready(uring) < missing && dbuf_now_ns() >= deadline_ns)
		rc = dbuf_fail(-ETIMEDOUT, "%zu completions are missing at the deadline", missing);
	return rc;
}

static int ring_wait(struct devbuf_queue *q, size_t min, uint64_t deadline_ns,
		     struct devbuf_completion *out, size_t max, size_t *nr)
{
	size_t n = 0, missing;
	int rc = 0;

	prepare_queued(q);
	for (;;) {
		n += reap(q, out + n, max - n);
		missing = min > n ? min - n : 0;
		if (rc || (!missing && !io_uring_sq_ready(&q->ring->uring)))
			break;
		rc = enter(q, missing, deadline_ns);
	}
	*nr = n;
	return n ? 0 : rc;
}

/* --- giving up -------------------------------------------------------------------------------- */

static bool ring_cancel(struct devbuf_queue *q, struct operation *o)
{
	struct devbuf_cancel cancel = { .size = sizeof(cancel), .cookie = o->command_cookie };

	if (!o->command_cookie || o->cancelled)
		return false;
	return !dbuf_command(dbuf_driver(q->allocator)->connection, DEVBUF_CANCEL, &cancel);
}

/* Until nothing is left that was submitted. */
static void cancel_and_wait(struct devbuf_queue *q)
{
	struct devbuf_completion ignored[16];
	unsigned int left;
	size_t n;

	for (unsigned int i = 0; i < q->depth; i++)
		if (q->operations[i].state == OPERATION_SUBMITTED)
			ring_cancel(q, &q->operations[i]);
	for (;;) {
		left = 0;
		for (unsigned int i = 0; i < q->depth; i++)
			left += q->operations[i].state == OPERATION_SUBMITTED;
		if (!left)
			return;
		/* Whatever the reason of a failure: they must not live on. */
		if (ring_wait(q, 1, DEVBUF_FOREVER, ignored, 16, &n))
			usleep(1000);
	}
}

/* In the child of a fork the ring's memory is not there; the parent goes on with it. */
static void ring_destroy(struct devbuf_queue *q, bool forked)
{
	if (forked) {
		close(q->ring->uring.ring_fd);
	} else {
		q->queued = (struct list){ .first = NULL, .end = &q->queued.first };
		cancel_and_wait(q);
		io_uring_queue_exit(&q->ring->uring);
	}
	free(q->ring);
}

static const struct queue_type on_ring = {
	.submit = ring_submit,
	.wait = ring_wait,
	.cancel = ring_cancel,
	.destroy = ring_destroy,
};

/* The kernel may be without io_uring, or keep it from this process. */
static bool unavailable(int rc)
{
	return rc == -ENOSYS || rc == -EPERM || rc == -EACCES;
}

int dbuf_queue_ring(struct devbuf_queue *q)
{
	struct ring *ring;
	int rc;

	if (q->allocator->backend != &dbuf_driver_backend ||
	    !(dbuf_driver(q->allocator)->connection->features & DEVBUF_FEATURE_URING))
		return -EOPNOTSUPP;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return dbuf_fail(-ENOMEM, "no memory for a queue");
	rc = io_uring_queue_init(q->depth, &ring->uring, 0);
	if (rc) {
		free(ring);
		if (unavailable(rc))
			return -EOPNOTSUPP;
		return dbuf_fail(rc, "cannot make an io_uring: %s", dbuf_reason(rc));
	}
	q->ring = ring;
	q->fd = ring->uring.ring_fd;
	q->type = &on_ring;
	return 0;
}
