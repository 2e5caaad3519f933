// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Buffers whose state is kept in this process, in memory that hooks give: the
 * caller's own allocators, the host allocator, LRU allocators over either.
 *
 * A base that is allocated, and each mapping of it and of its views, is a user
 * of its memory; the free hook runs when the last of them is gone. So hooks
 * need not think about mappings that outlive the buffer's allocation.
 */
#include <stdlib.h>

#include "internal.h"

static _Atomic uint64_t last_id;

static uint64_t new_id(void)
{
	return DBUF_LOCAL_ID | (atomic_fetch_add(&last_id, 1) + 1);
}

static const struct devbuf_allocator_ops *ops_of(const struct devbuf *b)
{
	return &dbuf_local(b->allocator)->ops;
}

static void *user_of(const struct devbuf *b)
{
	return dbuf_local(b->allocator)->user;
}

/* A hook's failure, as an errno whatever the hook returned. */
static int hook_failed(int64_t rc, const char *what, const struct devbuf *b)
{
	int error = rc < 0 && rc >= -4095 ? (int)rc : -EIO;

	return dbuf_fail(error, "cannot %s %s of %zu bytes on %s: %s", what,
			 b->base == b ? "buffer" : "view", b->nbytes, b->device,
			 dbuf_reason(error));
}

/* What the hooks know the buffer's memory by; only when it is allocated. */
static void *handle_of(const struct devbuf *b)
{
	return b->base == b ? b->memory->handle : b->view_handle;
}

/* --- memory of a base ------------------------------------------------------------------------- */

static int memory_new(struct devbuf *root)
{
	struct memory *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return dbuf_fail(-ENOMEM, "no memory to allocate a buffer");
	rc = ops_of(root)->alloc(user_of(root), root->device, root->nbytes, &root->spec,
				 &m->handle);
	if (rc) {
		free(m);
		return hook_failed(rc, "allocate", root);
	}
	m->users = 1;
	root->memory = m;
	root->allocated = true;
	return 0;
}

static void memory_put(struct devbuf *root, struct memory *m)
{
	if (--m->users)
		return;
	ops_of(root)->free(user_of(root), m->handle, root->device, root->nbytes, &root->spec);
	free(m);
}

static void memory_drop(struct devbuf *root)
{
	memory_put(root, root->memory);
	root->memory = NULL;
	root->allocated = false;
}

/* --- life of a buffer ------------------------------------------------------------------------- */

static int local_create(struct devbuf *b)
{
	const struct local_allocator *a = dbuf_local(b->allocator);
	int rc;

	if (a->check) {
		rc = a->check(&b->spec);
		if (rc)
			return rc;
	}
	b->id = new_id();
	return 0;
}

static int local_view(struct devbuf *parent, size_t offset, struct devbuf *view)
{
	(void)parent;
	(void)offset;
	view->id = new_id();
	return 0;
}

static int allocate_view(struct devbuf *b)
{
	struct devbuf *root = b->base;
	bool base_too = !root->allocated;
	int rc;

	if (!ops_of(b)->offset)
		return dbuf_fail(-EOPNOTSUPP,
				 "view of %zu bytes at %zu: the allocator of %s has no views",
				 b->nbytes, b->offset, b->device);
	rc = base_too ? memory_new(root) : 0;
	if (rc)
		return rc;
	rc = ops_of(b)->offset(user_of(b), root->memory->handle, b->offset, b->nbytes,
			       &b->view_handle);
	if (rc) {
		if (base_too)
			memory_drop(root);
		return hook_failed(rc, "allocate", b);
	}
	b->allocated = true;
	root->allocated_views++;
	return 0;
}

static int local_allocate(struct devbuf *b)
{
	if (b->allocated)
		return dbuf_fail(-EALREADY, "%s of %zu bytes on %s is allocated already",
				 b->base == b ? "buffer" : "view", b->nbytes, b->device);
	return b->base == b ? memory_new(b) : allocate_view(b);
}

static int local_deallocate(struct devbuf *b)
{
	if (!b->allocated)
		return 0;
	if (b->base != b) {
		if (ops_of(b)->detach)
			ops_of(b)->detach(user_of(b), b->view_handle);
		b->view_handle = NULL;
		b->allocated = false;
		b->base->allocated_views--;
		return 0;
	}
	if (b->allocated_views)
		return dbuf_fail(-EBUSY, "%zu views of buffer of %zu bytes are allocated",
				 b->allocated_views, b->nbytes);
	memory_drop(b);
	return 0;
}

/* A base has no views left: they would hold it. */
static void local_release(struct devbuf *b)
{
	local_deallocate(b);
}

static int local_status(struct devbuf *b, struct devbuf_status *out)
{
	out->base_allocated = b->base->allocated;
	out->allocated = b->allocated;
	out->rights = DEVBUF_MAY_READ | DEVBUF_MAY_WRITE | DEVBUF_MAY_MANAGE;
	return 0;
}

static int local_set_name(struct devbuf *b, const char *name)
{
	strncpy(b->name, name, sizeof(b->name) - 1);
	return 0;
}

static int local_get_name(struct devbuf *b, char out[DEVBUF_NAME_BYTES])
{
	memcpy(out, b->name, sizeof(b->name));
	return 0;
}

static bool local_supports_offset(const struct devbuf *b)
{
	return ops_of(b)->offset;
}

/* --- copies ----------------------------------------------------------------------------------- */

static int local_copyin(struct devbuf *b, size_t offset, const void *src, size_t nbytes)
{
	int rc;

	if (!b->allocated)
		return dbuf_not_allocated(b);
	rc = ops_of(b)->copyin(user_of(b), handle_of(b), offset, src, nbytes);
	return rc ? hook_failed(rc, "copy into", b) : 0;
}

static int local_copyout(struct devbuf *b, size_t offset, void *dst, size_t nbytes)
{
	int rc;

	if (!b->allocated)
		return dbuf_not_allocated(b);
	rc = ops_of(b)->copyout(user_of(b), handle_of(b), offset, dst, nbytes);
	return rc ? hook_failed(rc, "copy out of", b) : 0;
}

static int64_t local_read_file(struct devbuf *b, size_t offset, int fd, int64_t file_offset,
			       size_t nbytes)
{
	int64_t n = -EOPNOTSUPP;

	if (ops_of(b)->copy_from_disk)
		n = ops_of(b)->copy_from_disk(user_of(b), handle_of(b), offset, fd, file_offset,
					      nbytes);
	if (n == -EOPNOTSUPP || (n >= 0 && (uint64_t)n <= nbytes))
		return n;
	return hook_failed(n, "read a file into", b);
}

static bool local_reachable(const struct devbuf *b)
{
	return dbuf_local(b->allocator)->peek;
}

static void *local_peek(struct devbuf *b)
{
	if (!b->allocated)
		return NULL;
	return (char *)dbuf_local(b->allocator)->peek(b->base->memory->handle) + b->offset;
}

/*
 * LRU allocators are looked through: they hand on what they are over. Allocators with the same hook
 * and the same user know each other's handles.
 */
static bool local_alike(const struct devbuf *dst, const struct devbuf *src)
{
	const struct local_allocator *a = dbuf_local(dbuf_allocator_bottom(dst->allocator));
	const struct local_allocator *b = dbuf_local(dbuf_allocator_bottom(src->allocator));

	return a == b || (a->ops.transfer == b->ops.transfer && a->user == b->user);
}

static bool local_supports_transfer(const struct devbuf *dst)
{
	return ops_of(dst)->transfer;
}

static int local_transfer(struct devbuf *dst, size_t dst_offset, struct devbuf *src,
			  size_t src_offset, size_t nbytes, unsigned int flags,
			  enum devbuf_copy_path *took)
{
	enum devbuf_copy_path via = dbuf_local(dst->allocator)->via;
	int rc;

	if (flags & DEVBUF_NO_CPU && via == DEVBUF_VIA_CPU)
		return dbuf_fail(-EOPNOTSUPP, "from %s to %s only by the CPU", src->device,
				 dst->device);
	if (!src->allocated || !dst->allocated)
		return dbuf_not_allocated(src->allocated ? dst : src);
	rc = ops_of(dst)->transfer(user_of(dst), handle_of(dst), dst_offset, handle_of(src),
				   src_offset, nbytes);
	if (rc)
		return hook_failed(rc, "transfer to", dst);
	*took = via;
	return 0;
}

static int local_plan(struct devbuf *dst, struct devbuf *src, struct devbuf_plan *out)
{
	(void)src;
	out->path = dbuf_local(dst->allocator)->via;
	if (out->path == DEVBUF_VIA_CPU)
		strcpy(out->why, "peer, device, dmaengine: both ends are memory of this process");
	else
		strcpy(out->why, "peer: the allocator has its own transfer");
	return 0;
}

/* --- addresses and mappings ------------------------------------------------------------------- */

static int local_addr(struct devbuf *root, uint64_t *out)
{
	int rc;

	if (!ops_of(root)->addr)
		return DBUF_ADDR_OF_MAPPING;
	if (!root->allocated)
		return dbuf_not_allocated(root);
	rc = ops_of(root)->addr(user_of(root), root->memory->handle, out);
	return rc ? hook_failed(rc, "give the address of", root) : 0;
}

static int local_map(struct devbuf *b, int prot, struct mapping *m)
{
	struct memory *memory = b->base->memory;
	void *addr = NULL;
	int rc;

	if (!ops_of(b)->map)
		return dbuf_fail(-EOPNOTSUPP, "the allocator of %s has no mappings", b->device);
	rc = ops_of(b)->map(user_of(b), memory->handle, b->offset, b->nbytes, prot, &addr);
	if (rc || !addr)
		return hook_failed(rc, "map", b);
	memory->users++;
	m->addr = addr;
	m->memory = memory;
	return 0;
}

static void local_unmap(struct devbuf *b, struct mapping *m)
{
	if (ops_of(b)->unmap)
		ops_of(b)->unmap(user_of(b), m->memory->handle, m->addr, b->nbytes);
	memory_put(b->base, m->memory);
}

/* No device but the hooks' own sees the memory. */
static int local_sync(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags)
{
	(void)offset;
	(void)nbytes;
	(void)flags;
	return b->allocated ? 0 : dbuf_not_allocated(b);
}

/* --- the allocator ---------------------------------------------------------------------------- */

static void local_destroy(struct devbuf_allocator *common)
{
	struct local_allocator *a = dbuf_local(common);

	if (a->ops.destroy)
		a->ops.destroy(a->user);
	dbuf_allocator_fini(common);
	free(a);
}

const struct backend dbuf_local_backend = {
	.data_lock = true,
	.destroy = local_destroy,
	.create = local_create,
	.view = local_view,
	.release = local_release,
	.allocate = local_allocate,
	.deallocate = local_deallocate,
	.status = local_status,
	.set_name = local_set_name,
	.get_name = local_get_name,
	.supports_offset = local_supports_offset,
	.copyin = local_copyin,
	.copyout = local_copyout,
	.read_file = local_read_file,
	.reachable = local_reachable,
	.peek = local_peek,
	.alike = local_alike,
	.supports_transfer = local_supports_transfer,
	.transfer = local_transfer,
	.plan = local_plan,
	.addr = local_addr,
	.map = local_map,
	.unmap = local_unmap,
	.sync = local_sync,
};

struct local_allocator *dbuf_local_new(const struct devbuf_allocator_ops *ops, void *user,
				       struct devbuf_allocator *inner)
{
	struct local_allocator *a = calloc(1, sizeof(*a));

	if (!a) {
		dbuf_fail(-ENOMEM, "no memory for an allocator");
		return NULL;
	}
	if (dbuf_allocator_init(&a->common, &dbuf_local_backend, inner)) {
		free(a);
		return NULL;
	}
	a->ops = *ops;
	a->user = user;
	a->via = DEVBUF_VIA_DEVICE;
	return a;
}

int devbuf_allocator_create(const struct devbuf_allocator_ops *ops, void *user,
			    struct devbuf_allocator **out)
{
	struct devbuf_allocator_ops known;
	struct local_allocator *a;
	int rc;

	if (!ops || !out)
		return dbuf_fail(-EINVAL, "no hooks, or no place for the allocator");
	rc = dbuf_struct_read(&known, sizeof(known), sizeof(known), ops, "the hooks");
	if (rc)
		return rc;
	if (!known.alloc || !known.free || !known.copyin || !known.copyout || !known.addr)
		return dbuf_fail(-EINVAL,
				 "one of the hooks alloc, free, copyin, copyout, addr is missing");
	a = dbuf_local_new(&known, user, NULL);
	if (!a)
		return -ENOMEM;
	*out = &a->common;
	return 0;
}
