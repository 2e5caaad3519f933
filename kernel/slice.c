// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slices: how much of a job one thread does at a time, and how far it is then.
 */
#include "devbuf_private.h"

/* A slice of the present piece, which is not all handed out yet. */
static void devbuf_job_cut(struct devbuf_job *job, struct devbuf_slice *slice)
{
	const struct devbuf_piece *piece = &job->pieces[job->piece];
	u64 nbytes = min_t(u64, piece->nbytes - job->offset, DEVBUF_COPY_STEP);
	u64 offset = job->offset;

	if (devbuf_piece_goes_down(piece))
		offset = piece->nbytes - job->offset - nbytes;
	slice->piece = *piece;
	slice->piece.dst.pos += offset;
	slice->piece.src.pos += offset;
	slice->piece.nbytes = nbytes;
	if (job->iters) {
		slice->iter = job->iters[job->piece];
		iov_iter_truncate(&slice->iter, nbytes);
		iov_iter_advance(&job->iters[job->piece], nbytes);
	}
	job->offset += nbytes;
	job->rest_nbytes -= nbytes;
}

/**
 * devbuf_job_take - the next thing to do for a job
 * @job: the job; its queue's lock is held
 * @slice: set to what is to be run; perhaps nothing, when the job has failed
 *
 * Pieces go one after the other, and slices of one at the same time.
 *
 * Return: whether there is something now.
 */
bool devbuf_job_take(struct devbuf_job *job, struct devbuf_slice *slice)
{
	const struct devbuf_piece *piece = &job->pieces[job->piece];
	int error = READ_ONCE(job->gate.error);

	lockdep_assert_held(&job->device->queue.lock);
	slice->begins = false;
	slice->piece.nbytes = 0;
	if (job->running) {
		if (error || !job->prepared || job->offset == piece->nbytes ||
		    devbuf_piece_overlaps(piece) || devbuf_piece_is_slow(piece))
			return false;
	} else if (!error && !job->begun) {
		job->begun = true;
		slice->begins = true;
	}
	if (!error && job->prepared)
		devbuf_job_cut(job, slice);
	job->running++;
	return true;
}

/* Let the CPU see what devices wrote to all that it will touch. */
static int devbuf_job_begin(struct devbuf_job *job)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < job->nr_pieces && !ret; i++) {
		ret = devbuf_piece_begin(&job->pieces[i]) ?:
		      READ_ONCE(job->gate.error);
		cond_resched();
	}
	return ret;
}

/* May run in several threads at once. Part of signalling. */
void devbuf_job_run_slice(struct devbuf_job *job, struct devbuf_slice *slice)
{
	int ret = 0;

	if (slice->begins)
		ret = devbuf_job_begin(job);
	else if (slice->piece.nbytes && job->iters)
		ret = devbuf_copy_slice(&slice->piece, &slice->iter);
	else if (slice->piece.nbytes)
		ret = slice->piece.engine->copy(&slice->piece);
	if (ret) {
		cmpxchg(&job->gate.error, 0, ret);
		slice->begins = false;
		slice->piece.nbytes = 0;
	}
	cond_resched();
}

/**
 * devbuf_job_put_back - a slice was run
 * @job: the job; its queue's lock is held
 * @slice: the slice
 *
 * Return: whether the job is over.
 */
bool devbuf_job_put_back(struct devbuf_job *job, const struct devbuf_slice *slice)
{
	lockdep_assert_held(&job->device->queue.lock);
	job->running--;
	if (slice->begins)
		job->prepared = true;
	/* A copy tells how far it got, a transfer which pieces are complete. */
	if (job->iters)
		job->done_nbytes += slice->piece.nbytes;
	if (slice->piece.nbytes)
		job->path = max(job->path, slice->piece.engine->path);
	if (!job->running && job->piece < job->nr_pieces &&
	    job->offset == job->pieces[job->piece].nbytes) {
		if (!job->iters)
			job->done_nbytes += job->offset;
		job->offset = 0;
		job->piece++;
	}
	if (!job->running &&
	    (READ_ONCE(job->gate.error) || job->piece == job->nr_pieces))
		job->over = true;
	return job->over;
}
