// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Allocators: what all kinds have in common. */
#include "internal.h"

/* @inner lends its registry: what an LRU allocator is over knows the same ids. */
int dbuf_allocator_init(struct devbuf_allocator *a, const struct backend *backend,
			struct devbuf_allocator *inner)
{
	int rc;

	atomic_init(&a->refs, 1);
	a->backend = backend;
	a->inner = NULL;
	if (!inner) {
		rc = dbuf_registry_init(&a->own_registry);
		if (rc)
			return rc;
		a->registry = &a->own_registry;
	} else {
		a->inner = devbuf_allocator_ref(inner);
		a->registry = inner->registry;
	}
	return 0;
}

void dbuf_allocator_fini(struct devbuf_allocator *a)
{
	if (a->inner)
		devbuf_allocator_unref(a->inner);
	else
		dbuf_registry_fini(&a->own_registry);
}

struct devbuf_allocator *devbuf_allocator_ref(struct devbuf_allocator *a)
{
	if (a)
		atomic_fetch_add(&a->refs, 1);
	return a;
}

void devbuf_allocator_unref(struct devbuf_allocator *a)
{
	if (a && atomic_fetch_sub(&a->refs, 1) == 1)
		a->backend->destroy(a);
}

bool dbuf_forked(const struct devbuf_allocator *a)
{
	return a->backend->forked && a->backend->forked(a);
}

int dbuf_allocator_usable(const struct devbuf_allocator *a)
{
	if (!a)
		return dbuf_fail(-EINVAL, "no allocator");
	if (dbuf_forked(a))
		return dbuf_fail(-EPERM, "the connection is the parent process's: "
					 "open another one after fork");
	return 0;
}

const struct devbuf_allocator *dbuf_allocator_bottom(const struct devbuf_allocator *a)
{
	while (a->inner)
		a = a->inner;
	return a;
}
