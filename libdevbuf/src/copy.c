// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Bytes from buffer to buffer.
 *
 * The ways are a table, best first: the first that can is taken. They find the
 * buffers locked, where the library is what orders copies, and do not allocate:
 * when one of them meets a buffer without memory (-ENODATA), nothing has been
 * copied yet, the buffers are allocated, and it is tried once more.
 */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

struct job {
	struct devbuf *dst;
	size_t dst_offset;
	struct devbuf *src;
	size_t src_offset;
	size_t nbytes;
	unsigned int flags;
	enum devbuf_copy_path took;
};

/* --- locks ------------------------------------------------------------------------------------ */

/* Both roots, in the order of their ids; a root that is both, once. */
static void lock_both(struct devbuf *a, struct devbuf *b)
{
	struct devbuf *first = dbuf_root(a), *second = dbuf_root(b);

	if (first->id > second->id) {
		first = dbuf_root(b);
		second = dbuf_root(a);
	}
	dbuf_lock_data(first);
	if (second != first)
		dbuf_lock_data(second);
}

static void unlock_both(struct devbuf *a, struct devbuf *b)
{
	dbuf_unlock_data(a);
	if (dbuf_root(a) != dbuf_root(b))
		dbuf_unlock_data(b);
}

/* --- the allocator's own transfer ------------------------------------------------------------- */

bool dbuf_alike(const struct devbuf *dst, const struct devbuf *src)
{
	return dbuf_backend(dst) == dbuf_backend(src) && dbuf_backend(dst)->alike(dst, src);
}

bool devbuf_supports_transfer(const struct devbuf *dst, const struct devbuf *src)
{
	return dst && src && dbuf_alike(dst, src) && dbuf_backend(dst)->supports_transfer(dst) &&
	       dbuf_same_prefix(dst->device, src->device);
}

static bool can_transfer(const struct job *j)
{
	if (dbuf_alike(j->dst, j->src) && dbuf_backend(j->dst)->transfers_any_device)
		return true;
	return devbuf_supports_transfer(j->dst, j->src);
}

static int plan_transfer(const struct job *j, struct devbuf_plan *plan)
{
	return dbuf_backend(j->dst)->plan(j->dst, j->src, plan);
}

static int run_transfer(struct job *j)
{
	return dbuf_backend(j->dst)->transfer(j->dst, j->dst_offset, j->src, j->src_offset,
					      j->nbytes, j->flags, &j->took);
}

/* --- straight from or to memory that the library can reach ------------------------------------ */

static bool reachable(const struct devbuf *b)
{
	return dbuf_backend(b)->reachable && dbuf_backend(b)->reachable(b);
}

static bool can_direct(const struct job *j)
{
	return reachable(j->dst) || reachable(j->src);
}

static int run_direct(struct job *j)
{
	struct devbuf *near = reachable(j->src) ? j->src : j->dst;
	char *bytes = dbuf_backend(near)->peek(near);
	int rc;

	if (j->flags & DEVBUF_NO_CPU)
		return dbuf_fail(-EOPNOTSUPP, "from %s to %s only by the CPU", j->src->device,
				 j->dst->device);
	if (!bytes)
		return dbuf_not_allocated(near);
	if (near == j->src)
		rc = dbuf_backend(j->dst)->copyin(j->dst, j->dst_offset, bytes + j->src_offset,
						  j->nbytes);
	else
		rc = dbuf_backend(j->src)->copyout(j->src, j->src_offset, bytes + j->dst_offset,
						   j->nbytes);
	if (!rc)
		j->took = DEVBUF_VIA_CPU;
	return rc;
}

/* What keeps allocators' own ways from being taken. */
static void why_no_transfer(const struct job *j, struct devbuf_plan *plan)
{
	if (dbuf_alike(j->dst, j->src))
		snprintf(plan->why, sizeof(plan->why), "device: no transfer from %s to %s",
			 j->src->device, j->dst->device);
	else
		snprintf(plan->why, sizeof(plan->why),
			 "peer, device, dmaengine: %s and %s are of different allocators",
			 j->src->device, j->dst->device);
}

static int plan_direct(const struct job *j, struct devbuf_plan *plan)
{
	plan->path = DEVBUF_VIA_CPU;
	why_no_transfer(j, plan);
	return 0;
}

/* --- through a bounce buffer ------------------------------------------------------------------ */

static bool can_bounce(const struct job *j)
{
	(void)j;
	return true;
}

/* Of overlapping bytes of one base the later ones go first, when they move up, as in memmove(). */
static bool backwards(const struct job *j)
{
	return j->dst->base_id == j->src->base_id &&
	       j->dst->offset + j->dst_offset > j->src->offset + j->src_offset;
}

static int bounce_piece(const struct job *j, size_t at, size_t nbytes, void *bounce)
{
	int rc;

	rc = dbuf_backend(j->src)->copyout(j->src, j->src_offset + at, bounce, nbytes);
	if (rc)
		return rc;
	return dbuf_backend(j->dst)->copyin(j->dst, j->dst_offset + at, bounce, nbytes);
}

static int run_bounce(struct job *j)
{
	bool back = backwards(j);
	size_t chunk, done, n;
	void *bounce;
	int rc = 0;

	if (j->flags & (DEVBUF_NO_BOUNCE | DEVBUF_NO_CPU))
		return dbuf_fail(-EOPNOTSUPP, "from %s to %s only through a bounce buffer",
				 j->src->device, j->dst->device);
	bounce = dbuf_bounce_new(j->nbytes, &chunk);
	if (!bounce)
		return -ENOMEM;
	for (done = 0; done < j->nbytes && !rc; done += n) {
		n = j->nbytes - done < chunk ? j->nbytes - done : chunk;
		rc = bounce_piece(j, back ? j->nbytes - done - n : done, n, bounce);
	}
	free(bounce);
	if (!rc)
		j->took = DEVBUF_VIA_BOUNCE;
	return rc;
}

static int plan_bounce(const struct job *j, struct devbuf_plan *plan)
{
	size_t length;

	plan->path = DEVBUF_VIA_BOUNCE;
	why_no_transfer(j, plan);
	length = strlen(plan->why);
	snprintf(plan->why + length, sizeof(plan->why) - length,
		 "; cpu: neither end is memory of this process");
	return 0;
}

/* --- the table -------------------------------------------------------------------------------- */

struct way {
	bool (*can)(const struct job *j);
	int (*run)(struct job *j);
	int (*plan)(const struct job *j, struct devbuf_plan *plan);
};

enum { WAY_TRANSFER, WAY_DIRECT, WAY_BOUNCE };

static const struct way ways[] = {
	[WAY_TRANSFER] = { can_transfer, run_transfer, plan_transfer },
	[WAY_DIRECT] = { can_direct, run_direct, plan_direct },
	[WAY_BOUNCE] = { can_bounce, run_bounce, plan_bounce },
};

/* The last one always can. */
static const struct way *best_way(const struct job *j)
{
	const struct way *way = ways;

	while (!way->can(j))
		way++;
	return way;
}

static int run_locked(const struct way *way, struct job *j)
{
	int rc;

	lock_both(j->dst, j->src);
	rc = way->run(j);
	unlock_both(j->dst, j->src);
	return rc;
}

static int run(const struct way *way, struct job *j)
{
	struct made made_src, made_dst;
	int rc;

	rc = run_locked(way, j);
	if (rc != -ENODATA)
		return rc;
	rc = dbuf_ensure(j->src, &made_src);
	if (rc)
		return rc;
	rc = dbuf_ensure(j->dst, &made_dst);
	if (rc) {
		dbuf_undo(j->src, made_src);
		return rc;
	}
	rc = run_locked(way, j);
	if (rc) {
		dbuf_undo(j->dst, made_dst);
		dbuf_undo(j->src, made_src);
	}
	return rc;
}

/* --- public ----------------------------------------------------------------------------------- */

static int check_pair(const struct devbuf *dst, const struct devbuf *src)
{
	int rc;

	rc = dbuf_usable(dst);
	return rc ? rc : dbuf_usable(src);
}

/* A job that copies all of @src to all of @dst. */
static int whole(struct devbuf *dst, struct devbuf *src, struct job *j)
{
	int rc;

	rc = check_pair(dst, src);
	if (rc)
		return rc;
	if (dst->size != src->size || !devbuf_dtype_equal(dst->dtype, src->dtype))
		return dbuf_fail(-EINVAL, "%zu elements of %s do not go into %zu of %s", src->size,
				 devbuf_dtype_name(src->dtype), dst->size,
				 devbuf_dtype_name(dst->dtype));
	*j = (struct job){ .dst = dst, .src = src, .nbytes = src->nbytes };
	return 0;
}

int devbuf_transfer(struct devbuf *dst, struct devbuf *src, bool *native)
{
	bool can;
	struct job j;
	int rc;

	rc = whole(dst, src, &j);
	if (rc)
		return rc;
	can = devbuf_supports_transfer(dst, src);
	if (can)
		rc = run(&ways[WAY_TRANSFER], &j);
	if (!rc && native)
		*native = can;
	return rc;
}

int devbuf_copy_between(struct devbuf *dst, struct devbuf *src)
{
	struct job j;
	int rc = whole(dst, src, &j);

	return rc ? rc : run(&ways[WAY_BOUNCE], &j);
}

static int copy(struct job *j, enum devbuf_copy_path *took)
{
	int rc;

	rc = run(best_way(j), j);
	if (!rc && took)
		*took = j->took;
	return rc;
}

int devbuf_copy(struct devbuf *dst, struct devbuf *src, enum devbuf_copy_path *took)
{
	struct job j;
	int rc = whole(dst, src, &j);

	return rc ? rc : copy(&j, took);
}

int dbuf_check_piece(const struct devbuf_transfer_piece *p, unsigned int flags)
{
	int rc;

	rc = check_pair(p->dst, p->src);
	if (rc)
		return rc;
	if (flags & ~(DEVBUF_NO_BOUNCE | DEVBUF_NO_CPU))
		return dbuf_fail(-EINVAL, "flags %#x are not made of DEVBUF_NO_*", flags);
	rc = dbuf_range(p->dst, p->dst_offset, p->nbytes);
	return rc ? rc : dbuf_range(p->src, p->src_offset, p->nbytes);
}

/*
 * What was seen may be out of date, when another process owns the buffer: then the driver has the
 * last word.
 */
static int ensure(struct devbuf *b, struct made *made)
{
	*made = (struct made){ false, false };
	return atomic_load(&b->seen_allocated) ? 0 : dbuf_ensure(b, made);
}

int dbuf_ensure_piece(const struct devbuf_transfer_piece *p, struct made_piece *made)
{
	int rc;

	rc = ensure(p->src, &made->src);
	if (rc)
		return rc;
	rc = ensure(p->dst, &made->dst);
	if (rc)
		dbuf_undo(p->src, made->src);
	return rc;
}

void dbuf_undo_piece(const struct devbuf_transfer_piece *p, struct made_piece made)
{
	dbuf_undo(p->dst, made.dst);
	dbuf_undo(p->src, made.src);
}

static int copy_piece(const struct devbuf_transfer_piece *p, unsigned int flags,
		      enum devbuf_copy_path *took)
{
	struct job j = { p->dst,    p->dst_offset, p->src,         p->src_offset,
			 p->nbytes, flags,         DEVBUF_VIA_NONE };

	return copy(&j, took);
}

int devbuf_copy_at(struct devbuf *dst, size_t dst_offset, struct devbuf *src, size_t src_offset,
		   size_t nbytes, unsigned int flags, enum devbuf_copy_path *took)
{
	const struct devbuf_transfer_piece p = { dst, dst_offset, src, src_offset, nbytes };
	int rc = dbuf_check_piece(&p, flags);

	return rc ? rc : copy_piece(&p, flags, took);
}

/* --- many ------------------------------------------------------------------------------------- */

/* How many of the pieces one command of an allocator's can take; the first, at least. */
static size_t one_command(const struct devbuf_transfer_piece *pieces, size_t nr)
{
	const struct devbuf *first = pieces->dst;
	size_t n = 0;

	if (!dbuf_backend(first)->transfer_many)
		return 1;
	while (n < nr && n < DBUF_TRANSFER_PIECES && dbuf_alike(first, pieces[n].dst) &&
	       dbuf_alike(first, pieces[n].src))
		n++;
	return n ? n : 1;
}

/* Allocate what the pieces are of, try again, and take it back if that fails. */
static int allocate_and_transfer(const struct devbuf_transfer_piece *pieces, size_t nr,
				 unsigned int flags, enum devbuf_copy_path *took)
{
	struct made *made = calloc(2 * nr, sizeof(*made));
	size_t n;
	int rc = 0;

	if (!made)
		return dbuf_fail(-ENOMEM, "no memory for %zu pieces", nr);
	for (n = 0; n < 2 * nr && !rc; n++)
		rc = dbuf_ensure(n % 2 ? pieces[n / 2].dst : pieces[n / 2].src, &made[n]);
	if (!rc)
		rc = dbuf_backend(pieces->dst)->transfer_many(pieces, nr, flags, took);
	while (rc && n--)
		dbuf_undo(n % 2 ? pieces[n / 2].dst : pieces[n / 2].src, made[n]);
	free(made);
	return rc;
}

/* The first pieces, as many as go together. */
static int copy_some(const struct devbuf_transfer_piece *p, size_t nr, unsigned int flags,
		     enum devbuf_copy_path *took)
{
	int rc;

	if (nr == 1)
		return copy_piece(p, flags, took);
	rc = dbuf_backend(p->dst)->transfer_many(p, nr, flags, took);
	return rc == -ENODATA ? allocate_and_transfer(p, nr, flags, took) : rc;
}

int devbuf_copy_many(const struct devbuf_transfer_piece *pieces, size_t nr, unsigned int flags,
		     enum devbuf_copy_path *took)
{
	enum devbuf_copy_path worst = DEVBUF_VIA_NONE, path;
	int rc = 0;

	if (!pieces || !nr)
		return dbuf_fail(-EINVAL, "no pieces to copy");
	for (size_t i = 0; i < nr && !rc; i++)
		rc = dbuf_check_piece(&pieces[i], flags);
	for (size_t done = 0, n; done < nr && !rc; done += n) {
		n = one_command(pieces + done, nr - done);
		rc = copy_some(pieces + done, n, flags, &path);
		if (!rc && path > worst)
			worst = path;
	}
	if (!rc && took)
		*took = worst;
	return rc;
}

/* --- plan ------------------------------------------------------------------------------------- */

int devbuf_copy_plan(struct devbuf *dst, struct devbuf *src, struct devbuf_plan *out)
{
	struct devbuf_plan plan = DEVBUF_PLAN_INIT;
	struct job j = { .dst = dst, .src = src };
	int rc;

	rc = check_pair(dst, src);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the plan");
	rc = dbuf_struct_check(out, sizeof(plan), "the plan");
	if (!rc)
		rc = best_way(&j)->plan(&j, &plan);
	if (!rc)
		dbuf_struct_write(out, &plan, sizeof(plan));
	return rc;
}

const char *devbuf_copy_path_name(enum devbuf_copy_path path)
{
	static const char *const names[] = {
		[DEVBUF_VIA_NONE] = "none",     [DEVBUF_VIA_PEER] = "peer",
		[DEVBUF_VIA_DEVICE] = "device", [DEVBUF_VIA_DMAENGINE] = "dmaengine",
		[DEVBUF_VIA_CPU] = "cpu",       [DEVBUF_VIA_BOUNCE] = "bounce",
	};

	return (unsigned int)path < sizeof(names) / sizeof(names[0]) ? names[path] : "none";
}
