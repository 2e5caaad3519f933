// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Buffers whose state the driver keeps. What cannot change is in the struct;
 * what can is asked for.
 *
 * Each struct stands for one count of this connection's handle: what CREATE,
 * VIEW or IMPORT added, and DESTROY drops with the struct's last reference.
 */
#include <unistd.h>

#include "driver.h"

static __u32 dtype_to_uapi(devbuf_dtype dtype)
{
	__u32 value;

	memcpy(&value, &dtype, sizeof(value));
	return value;
}

static devbuf_dtype dtype_from_uapi(__u32 value)
{
	devbuf_dtype dtype;

	memcpy(&dtype, &value, sizeof(dtype));
	return dtype;
}

/* --- create, view, destroy -------------------------------------------------------------------- */

/* Reuse is of an LRU allocator, where the device has it, and the buffer does not pass by. */
static uint32_t create_flags(const struct devbuf *b)
{
	const struct devbuf_spec *spec = &b->spec;
	uint32_t flags = 0;

	if (b->caps & DEVBUF_CAN_REUSE && !spec->nolru && !spec->external_ptr)
		flags |= dbuf_driver(b->allocator)->create_flags;
	flags |= spec->uncached ? DEVBUF_CREATE_UNCACHED : 0;
	flags |= spec->cpu_access ? DEVBUF_CREATE_CPU_ACCESS : 0;
	flags |= spec->host ? DEVBUF_CREATE_HOST : 0;
	flags |= spec->contiguous ? DEVBUF_CREATE_CONTIGUOUS : 0;
	return flags;
}

static int check_external(const struct devbuf *b)
{
	bool external = b->caps & DEVBUF_CAN_EXTERNAL;

	if (external && !b->spec.external_ptr)
		return dbuf_fail(-EINVAL, "device %s wraps the caller's memory: set external_ptr",
				 b->device);
	if (!external && b->spec.external_ptr)
		return dbuf_fail(-EINVAL, "external_ptr on %s: device USER:0 wraps memory",
				 b->device);
	return 0;
}

int dbuf_driver_create(struct devbuf *b)
{
	struct devbuf_create create = {
		.size = sizeof(create),
		.nbytes = b->nbytes,
		.alignment = b->spec.alignment,
		.user_addr = (uintptr_t)b->spec.external_ptr,
		.dtype = dtype_to_uapi(b->dtype),
	};
	int rc;

	rc = dbuf_connection_device(dbuf_connection(b), b->device, &b->caps);
	if (!rc)
		rc = check_external(b);
	if (rc)
		return rc;
	create.flags = create_flags(b); /* needs caps */
	memcpy(create.device, b->device, sizeof(create.device));
	rc = dbuf_command(dbuf_connection(b), DEVBUF_CREATE, &create);
	if (rc)
		return dbuf_fail(rc, "cannot create a buffer of %zu bytes on %s: %s", b->nbytes,
				 b->device, dbuf_reason(rc));
	b->id = create.out_id;
	return 0;
}

int dbuf_driver_view(struct devbuf *parent, size_t offset, struct devbuf *v)
{
	struct devbuf_view view = {
		.size = sizeof(view),
		.id = parent->id,
		.offset = offset,
		.nbytes = v->nbytes,
		.dtype = dtype_to_uapi(v->dtype),
	};
	int rc = dbuf_command(dbuf_connection(parent), DEVBUF_VIEW, &view);

	if (rc)
		return dbuf_fail(rc,
				 "cannot make a view of %zu bytes at %zu of buffer %" PRIu64
				 " of %zu: %s",
				 v->nbytes, offset, parent->id, parent->nbytes, dbuf_reason(rc));
	v->id = view.out_id;
	return 0;
}

static void destroy_handle(const struct connection *c, uint64_t id)
{
	struct devbuf_id destroy = { .size = sizeof(destroy), .id = id };

	dbuf_command(c, DEVBUF_DESTROY, &destroy);
}

void dbuf_driver_release(struct devbuf *b)
{
	destroy_handle(dbuf_connection(b), b->id);
}

/* --- state ------------------------------------------------------------------------------------ */

int dbuf_driver_allocate(struct devbuf *b)
{
	struct devbuf_allocate allocate = { .size = sizeof(allocate), .id = b->id };
	int rc = dbuf_command(dbuf_connection(b), DEVBUF_ALLOCATE, &allocate);

	if (rc)
		return dbuf_driver_failed(rc, "allocate", b);
	atomic_store(&b->seen_allocated, true);
	return 0;
}

int dbuf_driver_deallocate(struct devbuf *b)
{
	struct devbuf_id deallocate = { .size = sizeof(deallocate), .id = b->id };
	int rc = dbuf_command(dbuf_connection(b), DEVBUF_DEALLOCATE, &deallocate);

	if (rc)
		return dbuf_driver_failed(rc, "deallocate", b);
	atomic_store(&b->seen_allocated, false);
	return 0;
}

static int query(struct devbuf *b, struct devbuf_query *query)
{
	int rc;

	*query = (struct devbuf_query){ .size = sizeof(*query), .id = b->id };
	rc = dbuf_command(dbuf_connection(b), DEVBUF_QUERY, query);
	return rc ? dbuf_driver_failed(rc, "query", b) : 0;
}

int dbuf_driver_status(struct devbuf *b, struct devbuf_status *out)
{
	struct devbuf_query q;
	int rc = query(b, &q);

	if (rc)
		return rc;
	out->base_allocated = q.out_state & DEVBUF_STATE_BASE_ALLOCATED;
	out->allocated = q.out_state & DEVBUF_STATE_ALLOCATED;
	atomic_store(&b->seen_allocated, out->allocated);
	out->read_only = q.out_state & DEVBUF_STATE_READ_ONLY;
	out->device_gone = q.out_state & DEVBUF_STATE_DEVICE_GONE;
	out->rights = q.out_rights &
		      (DEVBUF_MAY_READ | DEVBUF_MAY_WRITE | DEVBUF_MAY_EXPORT | DEVBUF_MAY_MANAGE);
	if (q.out_largest_page_shift && q.out_largest_page_shift < 64)
		out->largest_page_nbytes = UINT64_C(1) << q.out_largest_page_shift;
	return 0;
}

int dbuf_driver_set_name(struct devbuf *b, const char *name)
{
	struct devbuf_set_name set = { .size = sizeof(set), .id = b->id };
	int rc;

	memcpy(set.name, name, strlen(name));
	rc = dbuf_command(dbuf_connection(b), DEVBUF_SET_NAME, &set);
	return rc ? dbuf_driver_failed(rc, "name", b) : 0;
}

int dbuf_driver_get_name(struct devbuf *b, char out[DEVBUF_NAME_BYTES])
{
	struct devbuf_query q;
	int rc = query(b, &q);

	if (rc)
		return rc;
	memcpy(out, q.out_name, DEVBUF_NAME_BYTES);
	out[DEVBUF_NAME_BYTES - 1] = '\0';
	return 0;
}

/* --- export and import ------------------------------------------------------------------------ */

int dbuf_driver_export(struct devbuf *b, int flags, int *fd, size_t *offset)
{
	struct devbuf_export export = {
		.size = sizeof(export),
		.flags = (__u32)flags,
		.id = b->id,
	};
	int rc = dbuf_command(dbuf_connection(b), DEVBUF_EXPORT, &export);

	if (rc)
		return dbuf_driver_failed(rc, "export", b);
	if (!offset && export.out_offset) {
		close(export.out_fd);
		return dbuf_fail(-EINVAL,
				 "the buffer begins at %" PRIu64 " of its dma-buf; ask where",
				 (uint64_t) export.out_offset);
	}
	*fd = export.out_fd;
	if (offset)
		*offset = export.out_offset;
	return 0;
}

/* What is known of the buffer from its base's spec when the base is here, else from its flags. */
static void fill_spec(struct devbuf *b, const struct devbuf_query *q)
{
	if (b->base && b->base != b) {
		b->spec = b->base->spec;
		return;
	}
	b->spec = (struct devbuf_spec)DEVBUF_SPEC_INIT;
	b->spec.uncached = q->out_create_flags & DEVBUF_CREATE_UNCACHED;
	b->spec.cpu_access = q->out_create_flags & DEVBUF_CREATE_CPU_ACCESS;
	b->spec.host = q->out_create_flags & DEVBUF_CREATE_HOST;
	b->spec.contiguous = q->out_create_flags & DEVBUF_CREATE_CONTIGUOUS;
	b->spec.nolru = !(q->out_create_flags & DEVBUF_CREATE_REUSE);
	b->spec.alignment = q->out_alignment;
}

/* A type that is not ours, or that does not divide the buffer, is shown as bytes. */
static void fill_dtype(struct devbuf *b, const struct devbuf_query *q)
{
	size_t itemsize;

	b->dtype = dtype_from_uapi(q->out_dtype);
	itemsize = devbuf_dtype_itemsize(b->dtype);
	if (!itemsize || b->nbytes % itemsize) {
		b->dtype = DEVBUF_UINT8;
		itemsize = 1;
	}
	b->size = b->nbytes / itemsize;
}

/* Complete a struct of which the id is known. */
static int fill(struct devbuf *b)
{
	struct devbuf_query q;
	int rc = query(b, &q);

	if (rc)
		return rc;
	if (q.out_nbytes > SIZE_MAX || q.out_offset > SIZE_MAX)
		return dbuf_fail(-EOVERFLOW, "buffer %" PRIu64 " is larger than the address space",
				 b->id);
	b->base_id = q.out_base_id;
	b->nbytes = q.out_nbytes;
	b->offset = q.out_offset;
	memcpy(b->device, q.out_device, sizeof(b->device));
	b->device[sizeof(b->device) - 1] = '\0';
	if (b->base_id == b->id)
		b->base = b;
	else
		b->base = dbuf_registry_get(b->allocator->registry, b->base_id);
	fill_dtype(b, &q);
	if (dbuf_connection_device(dbuf_connection(b), b->device, &b->caps))
		b->caps = 0; /* the device is gone; the buffer is not */
	fill_spec(b, &q);
	return 0;
}

int dbuf_driver_import(struct devbuf_allocator *a, int fd, struct devbuf **out)
{
	const struct connection *c = dbuf_driver(a)->connection;
	struct devbuf_import import = { .size = sizeof(import), .fd = fd };
	struct devbuf *b, *first;
	int rc;

	rc = dbuf_command(c, DEVBUF_IMPORT, &import);
	if (rc)
		return dbuf_fail(rc, "cannot import file descriptor %d: %s", fd, dbuf_reason(rc));
	first = dbuf_registry_get(a->registry, import.out_id);
	if (first) {
		/* The struct has its count of the handle, and the rights are united. */
		destroy_handle(c, import.out_id);
		*out = first;
		return 0;
	}
	b = dbuf_new(a);
	if (b)
		b->id = import.out_id;
	rc = b ? fill(b) : -ENOMEM;
	if (rc) {
		destroy_handle(c, import.out_id);
		if (b)
			dbuf_free(b);
		return rc;
	}
	first = dbuf_registry_add(a->registry, b);
	if (first != b) { /* another thread was faster: away with ours */
		destroy_handle(c, b->id);
		if (b->base != b)
			devbuf_unref(b->base);
		dbuf_free(b);
	}
	*out = first;
	return 0;
}
