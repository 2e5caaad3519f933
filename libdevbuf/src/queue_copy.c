// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Queued operations that copy: between a buffer and the caller's memory, and from buffer to buffer. */
#include <stdlib.h>

#include "queue.h"

/* --- with the caller's memory ----------------------------------------------------------------- */

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

/* --- from buffer to buffer -------------------------------------------------------------------- */

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
		dbuf_queue_drop(q, o);
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

	rc = dbuf_queue_usable(q);
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
		dbuf_queue_drop(q, o);
		return rc;
	}
	o->flags = flags;
	dbuf_queue_add(q, o);
	return 0;
}
