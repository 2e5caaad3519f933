// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Buffers: create, view, count references, ask, allocate. */
#include <stdlib.h>

#include "internal.h"

/* --- the struct ------------------------------------------------------------------------------- */

struct devbuf *dbuf_new(struct devbuf_allocator *a)
{
	struct devbuf *b = calloc(1, sizeof(*b));

	if (!b) {
		dbuf_fail(-ENOMEM, "no memory for a buffer");
		return NULL;
	}
	b->allocator = devbuf_allocator_ref(a);
	atomic_init(&b->refs, 1);
	atomic_init(&b->uop_refcount, 0);
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

/* In the child of a fork the lock may be another thread's, who is not there to release it. */
void dbuf_free(struct devbuf *b)
{
	if (!dbuf_forked(b->allocator))
		pthread_mutex_destroy(&b->lock);
	devbuf_allocator_unref(b->allocator);
	free(b);
}

int dbuf_usable(const struct devbuf *b)
{
	if (!b)
		return dbuf_fail(-EINVAL, "no buffer");
	return dbuf_allocator_usable(b->allocator);
}

int dbuf_range(const struct devbuf *b, size_t offset, size_t nbytes)
{
	size_t end;

	if (!nbytes)
		return dbuf_fail(-EINVAL, "no bytes at %zu of a buffer of %zu bytes", offset,
				 b->nbytes);
	if (__builtin_add_overflow(offset, nbytes, &end))
		return dbuf_fail(-EOVERFLOW, "%zu bytes at %zu wrap around", nbytes, offset);
	if (end > b->nbytes)
		return dbuf_fail(-EINVAL, "%zu bytes at %zu exceed buffer of %zu", nbytes, offset,
				 b->nbytes);
	return 0;
}

/* --- create and view -------------------------------------------------------------------------- */

/* @size elements of @dtype, in bytes. */
static int extent(size_t size, devbuf_dtype dtype, size_t *nbytes)
{
	size_t itemsize = devbuf_dtype_itemsize(dtype);

	if (!itemsize)
		return dbuf_fail(-EINVAL, "there is no type with code %u, %u bits and %u lanes",
				 dtype.code, dtype.bits, dtype.lanes);
	if (!size)
		return dbuf_fail(-EINVAL, "a buffer of 0 elements");
	if (__builtin_mul_overflow(size, itemsize, nbytes))
		return dbuf_fail(-EOVERFLOW, "%zu elements of %zu bytes wrap around", size,
				 itemsize);
	return 0;
}

static int create(struct devbuf *b, const char *device, size_t size, devbuf_dtype dtype,
		  const struct devbuf_spec *spec)
{
	int rc;

	rc = extent(size, dtype, &b->nbytes);
	if (!rc && b->nbytes > INT64_MAX)
		rc = dbuf_fail(-EOVERFLOW, "a buffer of %zu bytes: offsets count to 2^63 - 1",
			       b->nbytes);
	if (!rc)
		rc = dbuf_spec_read(&b->spec, spec);
	if (!rc)
		rc = dbuf_device_name(b->device, device, b->spec.numa_node);
	if (rc)
		return rc;
	b->size = size;
	b->dtype = dtype;
	rc = dbuf_backend(b)->create(b);
	if (rc)
		return rc;
	b->base = b;
	b->base_id = b->id;
	return 0;
}

int devbuf_create(struct devbuf_allocator *a, const char *device, size_t size, devbuf_dtype dtype,
		  const struct devbuf_spec *spec, struct devbuf **out)
{
	struct devbuf *b;
	int rc;

	rc = dbuf_allocator_usable(a);
	if (rc)
		return rc;
	if (!device || !out)
		return dbuf_fail(-EINVAL, "no device, or no place for the buffer");
	b = dbuf_new(a);
	if (!b)
		return -ENOMEM;
	rc = create(b, device, size, dtype, spec);
	if (rc) {
		dbuf_free(b);
		return rc;
	}
	*out = dbuf_registry_add(a->registry, b);
	return 0;
}

/*
 * Where the view lies in its base. Of a view that was imported alone the base's end is not known:
 * the driver checks it, and that nothing is reached that did not come with the view.
 */
static int place_view(const struct devbuf *b, size_t nbytes, int64_t offset, size_t *base_offset)
{
	size_t begin, end;

	if (offset < 0)
		return dbuf_fail(-EINVAL, "view at negative offset %" PRId64, offset);
	if ((uint64_t)offset >= b->nbytes)
		return dbuf_fail(-EINVAL,
				 "view at %" PRId64 " begins past the end of buffer of %zu", offset,
				 b->nbytes);
	if (__builtin_add_overflow(b->offset, (size_t)offset, &begin) ||
	    __builtin_add_overflow(begin, nbytes, &end))
		return dbuf_fail(-EOVERFLOW, "view of %zu bytes at %" PRId64 " wraps around",
				 nbytes, offset);
	if (b->base && end > b->base->nbytes)
		return dbuf_fail(-EINVAL, "view of %zu bytes at %zu exceeds base of %zu", nbytes,
				 begin, b->base->nbytes);
	*base_offset = begin;
	return 0;
}

static int view(struct devbuf *b, size_t size, devbuf_dtype dtype, int64_t offset, struct devbuf *v)
{
	int rc;

	rc = extent(size, dtype, &v->nbytes);
	if (!rc)
		rc = place_view(b, v->nbytes, offset, &v->offset);
	if (rc)
		return rc;
	v->size = size;
	v->dtype = dtype;
	v->base_id = b->base_id;
	v->spec = b->spec;
	v->caps = b->caps;
	memcpy(v->device, b->device, sizeof(v->device));
	rc = dbuf_backend(b)->view(b, (size_t)offset, v);
	if (rc)
		return rc;
	v->base = devbuf_ref(b->base);
	return 0;
}

int devbuf_view(struct devbuf *b, size_t size, devbuf_dtype dtype, int64_t offset,
		struct devbuf **out)
{
	struct devbuf *v;
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the view");
	v = dbuf_new(b->allocator);
	if (!v)
		return -ENOMEM;
	rc = view(b, size, dtype, offset, v);
	if (rc) {
		dbuf_free(v);
		return rc;
	}
	*out = dbuf_registry_add(v->allocator->registry, v);
	return 0;
}

/* --- references ------------------------------------------------------------------------------- */

struct devbuf *devbuf_ref(struct devbuf *b)
{
	if (b)
		atomic_fetch_add(&b->refs, 1);
	return b;
}

/*
 * Drop a reference; whether it was the last. The child of a fork keeps away from the locks, which
 * may be those of threads that it does not have, and needs none: it has no threads to exclude.
 */
static bool put(struct devbuf *b, bool forked)
{
	if (forked)
		return atomic_fetch_sub(&b->refs, 1) == 1;
	return dbuf_registry_put(b->allocator->registry, b);
}

/* The lock is for the base's sake: the buffer itself has no other user left. */
static void release(struct devbuf *b, bool forked)
{
	if (!forked)
		dbuf_lock(b);
	dbuf_mapping_release(b);
	if (!forked) {
		dbuf_backend(b)->release(b);
		dbuf_unlock(b);
	}
}

void devbuf_unref(struct devbuf *b)
{
	while (b) {
		bool forked = dbuf_forked(b->allocator);
		struct devbuf *base = b->base != b ? b->base : NULL;

		if (!put(b, forked))
			return;
		release(b, forked);
		dbuf_free(b);
		b = base;
	}
}

/* --- what does not change --------------------------------------------------------------------- */

uint64_t devbuf_id(const struct devbuf *b)
{
	return b ? b->id : 0;
}

uint64_t devbuf_base_id(const struct devbuf *b)
{
	return b ? b->base_id : 0;
}

struct devbuf *devbuf_base(struct devbuf *b)
{
	return b ? b->base : NULL;
}

struct devbuf_allocator *devbuf_allocator_of(struct devbuf *b)
{
	if (!b)
		return NULL;
	return b->base ? b->base->allocator : b->allocator;
}

const char *devbuf_device(const struct devbuf *b)
{
	return b ? b->device : NULL;
}

size_t devbuf_size(const struct devbuf *b)
{
	return b ? b->size : 0;
}

devbuf_dtype devbuf_dtype_of(const struct devbuf *b)
{
	return b ? b->dtype : (devbuf_dtype){ 0, 0, 0 };
}

const struct devbuf_spec *devbuf_spec_of(const struct devbuf *b)
{
	return b ? &b->spec : NULL;
}

size_t devbuf_nbytes(const struct devbuf *b)
{
	return b ? b->nbytes : 0;
}

size_t devbuf_offset(const struct devbuf *b)
{
	return b ? b->offset : 0;
}

bool devbuf_supports_offset(const struct devbuf *b)
{
	return b && dbuf_backend(b)->supports_offset(b);
}

int64_t devbuf_uop_refcount(const struct devbuf *b)
{
	if (!b)
		return 0;
	return atomic_load(b->base ? &b->base->uop_refcount : &b->uop_refcount);
}

struct devbuf *devbuf_add_ref(struct devbuf *b, int64_t cnt)
{
	if (b)
		atomic_fetch_add(&dbuf_root(b)->uop_refcount, cnt);
	return b;
}

/* --- memory ----------------------------------------------------------------------------------- */

int devbuf_allocate(struct devbuf *b)
{
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	dbuf_lock(b);
	rc = dbuf_backend(b)->allocate(b);
	dbuf_unlock(b);
	return rc;
}

int devbuf_deallocate(struct devbuf *b)
{
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	dbuf_lock(b);
	rc = dbuf_backend(b)->deallocate(b);
	if (!rc)
		dbuf_mapping_deallocated(b);
	dbuf_unlock(b);
	return rc;
}

static int status(struct devbuf *b, struct devbuf_status *out)
{
	int rc;

	*out = (struct devbuf_status)DEVBUF_STATUS_INIT;
	rc = dbuf_usable(b);
	if (rc)
		return rc;
	dbuf_lock(b);
	rc = dbuf_backend(b)->status(b, out);
	dbuf_unlock(b);
	return rc;
}

int devbuf_get_status(struct devbuf *b, struct devbuf_status *out)
{
	struct devbuf_status s;
	int rc;

	if (!out)
		return dbuf_fail(-EINVAL, "no place for the status");
	rc = dbuf_struct_check(out, sizeof(s), "the status");
	if (!rc)
		rc = status(b, &s);
	if (!rc)
		dbuf_struct_write(out, &s, sizeof(s));
	return rc;
}

bool devbuf_is_allocated(struct devbuf *b)
{
	struct devbuf_status s;

	return b && !status(b, &s) && s.base_allocated;
}

bool devbuf_is_initialized(struct devbuf *b)
{
	struct devbuf_status s;

	return b && !status(b, &s) && s.allocated;
}

int dbuf_not_allocated(const struct devbuf *b)
{
	return dbuf_fail(-ENODATA, "%s of %zu bytes on %s is not allocated",
			 b->base == b ? "buffer" : "view", b->nbytes, b->device);
}

int dbuf_allocated(struct devbuf *b)
{
	struct devbuf_status s = DEVBUF_STATUS_INIT;
	int rc = dbuf_backend(b)->status(b, &s);

	if (rc)
		return rc;
	return s.allocated ? 0 : dbuf_not_allocated(b);
}

int dbuf_ensure(struct devbuf *b, struct made *made)
{
	struct devbuf_status s;
	int rc;

	*made = (struct made){ false, false };
	rc = status(b, &s);
	if (rc || s.allocated)
		return rc;
	rc = devbuf_allocate(b);
	if (rc == -EALREADY) /* by another thread, just now */
		return 0;
	if (rc)
		return rc;
	made->itself = true;
	made->base = b->base && b->base != b && !s.base_allocated;
	return 0;
}

/* The words of the failure that led here stay: only another failure would replace them. */
void dbuf_undo(struct devbuf *b, struct made made)
{
	if (made.itself)
		devbuf_deallocate(b);
	if (made.base)
		devbuf_deallocate(b->base);
}

int devbuf_ensure_allocated(struct devbuf *b)
{
	struct made made;

	return dbuf_ensure(b, &made);
}

/* --- names ------------------------------------------------------------------------------------ */

static int check_name(const char *name)
{
	size_t length = strnlen(name, DEVBUF_NAME_BYTES);

	if (length == DEVBUF_NAME_BYTES)
		return dbuf_fail(-EINVAL, "name \"%.40s...\" has more than %d characters", name,
				 DEVBUF_NAME_BYTES - 1);
	for (size_t i = 0; i < length; i++)
		if (name[i] < ' ' || name[i] > '~')
			return dbuf_fail(-EINVAL,
					 "character %zu of the name, %#x, is not printable "
					 "ASCII",
					 i, (unsigned char)name[i]);
	return 0;
}

int devbuf_set_name(struct devbuf *b, const char *name)
{
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (!name)
		return dbuf_fail(-EINVAL, "no name");
	rc = check_name(name);
	if (rc)
		return rc;
	dbuf_lock(b);
	rc = dbuf_backend(b)->set_name(b, name);
	dbuf_unlock(b);
	return rc;
}

int devbuf_get_name(struct devbuf *b, char out[DEVBUF_NAME_BYTES])
{
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the name");
	dbuf_lock(b);
	rc = dbuf_backend(b)->get_name(b, out);
	dbuf_unlock(b);
	return rc;
}
