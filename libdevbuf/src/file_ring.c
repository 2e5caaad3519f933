// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Direct I/O by an io_uring of the run's own: DBUF_FILE_DEPTH pieces in flight.
 *
 * Pieces complete in any order and are counted in theirs: the run never claims
 * bytes behind a gap. When a piece fails, or the file ends in it, no more are
 * begun, and those in flight are waited for: nothing moves any more when the
 * caller hears of it.
 *
 * The mapping is not registered with the ring. Registering pins the same pages
 * once, which pays when a buffer is used again: here each byte moves once, and
 * pinning all of them before the first read begins makes a file of 1 GiB take
 * half as long again.
 */
#include <liburing.h>

#include "file.h"

struct piece {
	size_t at; /* in bytes of the range */
	size_t nbytes;
	size_t done;
	int error;
	bool finished;
};

struct file_ring {
	struct io_uring uring;
	struct file_run *run;
	bool stopped; /* nothing more is to be begun */
	struct piece pieces[DBUF_FILE_DEPTH]; /* number n is pieces[n % DBUF_FILE_DEPTH] */
	size_t begun, counted; /* numbers of pieces */
	size_t next; /* where the next one begins, in bytes of the range */
	unsigned int in_flight;
};

static void begin_rest(struct file_ring *ring, struct piece *p)
{
	const struct file_run *r = ring->run;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring); /* there is one for each piece */
	size_t at = p->at + p->done;
	unsigned int nbytes = (unsigned int)(p->nbytes - p->done);
	uint64_t file_offset = (uint64_t)r->file_offset + at;

	if (r->write)
		io_uring_prep_write(sqe, r->direct_fd, r->bytes + at, nbytes, file_offset);
	else
		io_uring_prep_read(sqe, r->direct_fd, r->bytes + at, nbytes, file_offset);
	io_uring_sqe_set_data(sqe, p);
	ring->in_flight++;
}

static void begin_next(struct file_ring *ring)
{
	size_t left = ring->run->direct_end - ring->next;
	struct piece *p = &ring->pieces[ring->begun++ % DBUF_FILE_DEPTH];

	*p = (struct piece){
		.at = ring->next,
		.nbytes = left < DBUF_FILE_PIECE ? left : DBUF_FILE_PIECE,
	};
	ring->next += p->nbytes;
	begin_rest(ring, p);
}

/* The kernel has done with what was asked for last of @p. */
static void complete(struct file_ring *ring, struct piece *p, int result)
{
	ring->in_flight--;
	if (result > 0)
		p->done += (size_t)result;
	else if (result == 0 && ring->run->write)
		p->error = -EIO;
	else if (result != -EINTR && result != -EAGAIN)
		p->error = result;
	p->finished = p->error || !result || p->done == p->nbytes ||
		      p->done & (ring->run->offset_align - 1);
	if (!p->finished && !ring->stopped)
		begin_rest(ring, p);
}

/* Wait for one at least. False when the ring itself fails, which a sane kernel does not do. */
static bool reap(struct file_ring *ring)
{
	int rc = io_uring_submit_and_wait(&ring->uring, 1);
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY)
		return false;
	io_uring_for_each_cqe(&ring->uring, head, cqe)
	{
		complete(ring, io_uring_cqe_get_data(cqe), cqe->res);
		n++;
	}
	io_uring_cq_advance(&ring->uring, n);
	return true;
}

/* The next piece in order has finished. What direct I/O left of it the page cache knows to the byte. */
static int count(struct file_ring *ring)
{
	struct piece *p = &ring->pieces[ring->counted++ % DBUF_FILE_DEPTH];
	struct file_run *r = ring->run;
	int stop = dbuf_file_advance(r, p->done, true);

	if (p->error && !dbuf_direct_unfit(p->error))
		return dbuf_file_failed(r, p->error);
	if (stop)
		return stop;
	if (p->error)
		return DBUF_FILE_UNFIT;
	return dbuf_file_plain(r, p->at + p->nbytes);
}

static int run(struct file_ring *ring)
{
	int rc = DBUF_FILE_GO;

	while (rc == DBUF_FILE_GO && ring->run->done < ring->run->direct_end) {
		while (ring->begun - ring->counted < DBUF_FILE_DEPTH &&
		       ring->next < ring->run->direct_end)
			begin_next(ring);
		if (!reap(ring))
			return DBUF_FILE_UNFIT;
		while (rc == DBUF_FILE_GO && ring->counted < ring->begun &&
		       ring->pieces[ring->counted % DBUF_FILE_DEPTH].finished)
			rc = count(ring);
	}
	ring->stopped = true;
	while (ring->in_flight && reap(ring))
		;
	return rc;
}

int dbuf_ring_run(struct file_run *r)
{
	struct file_ring ring = { .run = r, .next = r->direct_begin };
	int rc;

	/* ENOSYS, EPERM: none here, or not for us. ENOMEM: over a limit. */
	if (io_uring_queue_init(DBUF_FILE_DEPTH, &ring.uring, 0))
		return -ENOSYS;
	rc = run(&ring);
	io_uring_queue_exit(&ring.uring);
	return rc;
}
