// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * LRU allocators: hooks around those of another allocator, that keep what is
 * freed and give it, as it is, to the next that asks for the like.
 *
 * What is kept is a list, the latest first. Over the driver there is nothing to
 * do here: it keeps the memory itself (driver.c sets a flag).
 */
#include <stdlib.h>

#include "internal.h"

#define LRU_NBYTES_MAX ((size_t)256 << 20)
#define LRU_COUNT_MAX  256

/* Memory that is kept, and what it was allocated as. */
struct kept {
	struct kept *older;
	void *mem;
	size_t nbytes;
	struct devbuf_spec spec;
	char device[DEVBUF_DEVICE_BYTES];
};

struct lru {
	struct local_allocator *inner; /* held by the allocator that this is the user of */
	pthread_mutex_t lock; /* of what follows */
	struct kept *latest;
	size_t nbytes;
	size_t count;
};

static bool passes_by(const struct devbuf_spec *spec)
{
	return spec->nolru || spec->external_ptr;
}

/* A NUMA node is part of the device's name; nothing that passes by is kept. */
static bool fits(const struct kept *k, const char *device, size_t nbytes,
		 const struct devbuf_spec *spec)
{
	return k->nbytes == nbytes && !strcmp(k->device, device) &&
	       k->spec.uncached == spec->uncached && k->spec.cpu_access == spec->cpu_access &&
	       k->spec.host == spec->host && k->spec.contiguous == spec->contiguous &&
	       k->spec.alignment == spec->alignment;
}

/* Under the lock: take @k out of the list, in which @link points at it. */
static void take_out(struct lru *l, struct kept **link, struct kept *k)
{
	*link = k->older;
	l->nbytes -= k->nbytes;
	l->count--;
}

static void free_kept(struct lru *l, struct kept *k)
{
	l->inner->ops.free(l->inner->user, k->mem, k->device, k->nbytes, &k->spec);
	free(k);
}

static void free_all(struct lru *l)
{
	struct kept *k, *older;

	pthread_mutex_lock(&l->lock);
	k = l->latest;
	l->latest = NULL;
	l->nbytes = 0;
	l->count = 0;
	pthread_mutex_unlock(&l->lock);
	for (; k; k = older) {
		older = k->older;
		free_kept(l, k);
	}
}

/* Free the oldest, one at a time, until the bounds are kept. */
static void trim(struct lru *l)
{
	struct kept **link, *k;

	for (;;) {
		pthread_mutex_lock(&l->lock);
		if (l->nbytes <= LRU_NBYTES_MAX && l->count <= LRU_COUNT_MAX) {
			pthread_mutex_unlock(&l->lock);
			return;
		}
		for (link = &l->latest; (*link)->older; link = &(*link)->older)
			;
		k = *link;
		take_out(l, link, k);
		pthread_mutex_unlock(&l->lock);
		free_kept(l, k);
	}
}

static bool reuse(struct lru *l, const char *device, size_t nbytes, const struct devbuf_spec *spec,
		  void **out_mem)
{
	struct kept **link, *k;

	pthread_mutex_lock(&l->lock);
	for (link = &l->latest; (k = *link); link = &k->older) {
		if (fits(k, device, nbytes, spec)) {
			take_out(l, link, k);
			break;
		}
	}
	pthread_mutex_unlock(&l->lock);
	if (!k)
		return false;
	*out_mem = k->mem;
	free(k);
	return true;
}

/* --- hooks ------------------------------------------------------------------------------------ */

static int lru_alloc(void *user, const char *device, size_t nbytes, const struct devbuf_spec *spec,
		     void **out_mem)
{
	struct lru *l = user;
	const struct local_allocator *inner = l->inner;

	if (!passes_by(spec) && reuse(l, device, nbytes, spec, out_mem))
		return 0;
	if (!inner->ops.alloc(inner->user, device, nbytes, spec, out_mem))
		return 0;
	free_all(l);
	return inner->ops.alloc(inner->user, device, nbytes, spec, out_mem);
}

static void lru_free(void *user, void *mem, const char *device, size_t nbytes,
		     const struct devbuf_spec *spec)
{
	struct lru *l = user;
	struct kept *k = NULL;

	if (!passes_by(spec) && nbytes <= LRU_NBYTES_MAX)
		k = malloc(sizeof(*k));
	if (!k) {
		l->inner->ops.free(l->inner->user, mem, device, nbytes, spec);
		return;
	}
	k->mem = mem;
	k->nbytes = nbytes;
	k->spec = *spec;
	memcpy(k->device, device, sizeof(k->device));
	pthread_mutex_lock(&l->lock);
	k->older = l->latest;
	l->latest = k;
	l->nbytes += nbytes;
	l->count++;
	pthread_mutex_unlock(&l->lock);
	trim(l);
}

/* The others are handed on. */

static int lru_copyin(void *user, void *mem, size_t offset, const void *src, size_t nbytes)
{
	const struct local_allocator *inner = ((struct lru *)user)->inner;

	return inner->ops.copyin(inner->user, mem, offset, src, nbytes);
}

static int lru_copyout(void *user, void *mem, size_t offset, void *dst, size_t nbytes)
{
	const struct local_allocator *inner = ((struct lru *)user)->inner;

	return inner->ops.copyout(inner->user, mem, offset, dst, nbytes);
}

static int lru_addr(void *user, void *mem, uint64_t *out_addr)
{
	const struct local_allocator *inner = ((struct lru *)user)->inner;

	return inner->ops.addr(inner->user, mem, out_addr);
}

static int lru_offset(void *user, void *mem, size_t offset, size_t nbytes, void **out_mem)
{
	const struct local_allocator *inner = ((struct lru *)user)->inner;

	return inner->ops.offset(inner->user, mem, offset, nbytes, out_mem);
}

static void lru_detach(void *user, void *mem)
{
	const struct local_allocator *inner = ((struct lru *)user)->inner;

	inner->ops.detach(inner->user, mem);
}

static int lru_transfer(void *user, void *dst, size_t dst_offset, void *src, size_t src_offset,
			size_t nbytes)
{
	const struct local_allocator *inner = ((struct lru *)user)->inner;

	return inner->ops.transfer(inner->user, dst, dst_offset, src, src_offset, nbytes);
}

static int lru_map(void *user, void *mem, size_t offset, size_t nbytes, int prot, void **out_addr)
{
	const struct local_allocator *inner = ((struct lru *)user)->inner;

	return inner->ops.map(inner->user, mem, offset, nbytes, prot, out_addr);
}

static void lru_unmap(void *user, void *mem, void *addr, size_t nbytes)
{
	const struct local_allocator *inner = ((struct lru *)user)->inner;

	inner->ops.unmap(inner->user, mem, addr, nbytes);
}

static int64_t lru_copy_from_disk(void *user, void *mem, size_t offset, int fd, int64_t file_offset,
				  size_t nbytes)
{
	const struct local_allocator *inner = ((struct lru *)user)->inner;

	return inner->ops.copy_from_disk(inner->user, mem, offset, fd, file_offset, nbytes);
}

static void lru_destroy(void *user)
{
	struct lru *l = user;

	free_all(l);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* What the inner allocator has not, this one has not. */
static struct devbuf_allocator_ops hooks_around(const struct devbuf_allocator_ops *inner)
{
	return (struct devbuf_allocator_ops){
		.size = sizeof(struct devbuf_allocator_ops),
		.alloc = lru_alloc,
		.free = lru_free,
		.copyin = lru_copyin,
		.copyout = lru_copyout,
		.addr = inner->addr ? lru_addr : NULL,
		.offset = inner->offset ? lru_offset : NULL,
		.detach = inner->detach ? lru_detach : NULL,
		.transfer = inner->transfer ? lru_transfer : NULL,
		.map = inner->map ? lru_map : NULL,
		.unmap = inner->unmap ? lru_unmap : NULL,
		.copy_from_disk = inner->copy_from_disk ? lru_copy_from_disk : NULL,
		.destroy = lru_destroy,
	};
}

static int local_lru(struct devbuf_allocator *inner, struct devbuf_allocator **out)
{
	struct devbuf_allocator_ops ops = hooks_around(&dbuf_local(inner)->ops);
	struct lru *l = calloc(1, sizeof(*l));
	struct local_allocator *a;

	if (!l)
		return dbuf_fail(-ENOMEM, "no memory for an allocator");
	l->inner = dbuf_local(inner);
	pthread_mutex_init(&l->lock, NULL);
	a = dbuf_local_new(&ops, l, inner);
	if (!a) {
		lru_destroy(l);
		return -ENOMEM;
	}
	a->check = l->inner->check;
	a->peek = l->inner->peek;
	a->via = l->inner->via;
	*out = &a->common;
	return 0;
}

int devbuf_lru_allocator(struct devbuf_allocator *inner, struct devbuf_allocator **out)
{
	int rc;

	rc = dbuf_allocator_usable(inner);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the allocator");
	if (inner->backend == &dbuf_driver_backend)
		return dbuf_driver_lru(inner, out);
	return local_lru(inner, out);
}
