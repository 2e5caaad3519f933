// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The driver's allocators: open, over one connection an LRU allocator as well,
 * and the devices that they serve.
 */
#include <stdlib.h>

#include "driver.h"

/* The header's bits are the driver's. */
_Static_assert(DEVBUF_CAN_VIEW == DEVBUF_CAP_VIEWS, "");
_Static_assert(DEVBUF_CAN_TRANSFER == DEVBUF_CAP_TRANSFER, "");
_Static_assert(DEVBUF_CAN_COPY == DEVBUF_CAP_COPY, "");
_Static_assert(DEVBUF_CAN_MAP == DEVBUF_CAP_MAP, "");
_Static_assert(DEVBUF_CAN_PIN == DEVBUF_CAP_PINNABLE, "");
_Static_assert(DEVBUF_CAN_EXPORT == DEVBUF_CAP_EXPORT, "");
_Static_assert(DEVBUF_CAN_UNCACHED == DEVBUF_CAP_UNCACHED, "");
_Static_assert(DEVBUF_CAN_CONTIGUOUS == DEVBUF_CAP_CONTIGUOUS, "");
_Static_assert(DEVBUF_CAN_REUSE == DEVBUF_CAP_REUSE, "");
_Static_assert(DEVBUF_CAN_EXTERNAL == DEVBUF_CAP_EXTERNAL, "");
_Static_assert(DEVBUF_CAN_HOST == DEVBUF_CAP_HOST, "");
_Static_assert(DEVBUF_MAY_READ == DEVBUF_RIGHT_READ, "");
_Static_assert(DEVBUF_MAY_WRITE == DEVBUF_RIGHT_WRITE, "");
_Static_assert(DEVBUF_MAY_EXPORT == DEVBUF_RIGHT_EXPORT, "");
_Static_assert(DEVBUF_MAY_MANAGE == DEVBUF_RIGHT_MANAGE, "");
_Static_assert(DEVBUF_CPU_READ == DEVBUF_SYNC_READ, "");
_Static_assert(DEVBUF_CPU_WRITE == DEVBUF_SYNC_WRITE, "");
_Static_assert(DEVBUF_CPU_END == DEVBUF_SYNC_END, "");
_Static_assert(DEVBUF_CPU_READ == DEVBUF_WAIT_READ, "");
_Static_assert(DEVBUF_CPU_WRITE == DEVBUF_WAIT_WRITE, "");
_Static_assert(DEVBUF_FOREVER == DEVBUF_NO_DEADLINE, "");
_Static_assert(DEVBUF_FENCES_MAX == DEVBUF_MAX_IN_FENCES, "");
_Static_assert(sizeof(int) == sizeof(__s32), "");
_Static_assert(DEVBUF_FD_WRITE == DEVBUF_EXPORT_WRITE, "");
_Static_assert(DEVBUF_DEVICE_BYTES == DEVBUF_DEVICE_NAME_MAX, "");
_Static_assert(DEVBUF_NAME_BYTES == DEVBUF_NAME_MAX, "");
_Static_assert(DBUF_TRANSFER_PIECES == DEVBUF_MAX_RANGES, "");
_Static_assert(DEVBUF_QUEUE_PIECES_MAX == DEVBUF_MAX_RANGES, "");
_Static_assert(sizeof(devbuf_dtype) == sizeof(__u32), "");

int dbuf_driver_failed(int rc, const char *what, const struct devbuf *b)
{
	return dbuf_fail(rc, "cannot %s %s %" PRIu64 " of %zu bytes on %s: %s", what,
			 b->base_id == b->id ? "buffer" : "view", b->id, b->nbytes, b->device,
			 dbuf_reason(rc));
}

static bool driver_alike(const struct devbuf *dst, const struct devbuf *src)
{
	return dbuf_connection(dst) == dbuf_connection(src);
}

static bool driver_supports_transfer(const struct devbuf *dst)
{
	return dst->caps & DEVBUF_CAN_TRANSFER;
}

static bool driver_supports_offset(const struct devbuf *b)
{
	return b->caps & DEVBUF_CAN_VIEW;
}

/* No device of the driver has addresses of its own yet. */
static int driver_addr(struct devbuf *root, uint64_t *out)
{
	(void)root;
	(void)out;
	return DBUF_ADDR_OF_MAPPING;
}

static void driver_destroy(struct devbuf_allocator *common)
{
	struct driver_allocator *a = dbuf_driver(common);

	if (!common->inner)
		dbuf_connection_close(a->connection);
	dbuf_allocator_fini(common);
	free(a);
}

static bool driver_forked(const struct devbuf_allocator *a)
{
	return dbuf_connection_forked(dbuf_driver(a)->connection);
}

const struct backend dbuf_driver_backend = {
	.destroy = driver_destroy,
	.forked = driver_forked,
	.create = dbuf_driver_create,
	.view = dbuf_driver_view,
	.release = dbuf_driver_release,
	.allocate = dbuf_driver_allocate,
	.deallocate = dbuf_driver_deallocate,
	.status = dbuf_driver_status,
	.set_name = dbuf_driver_set_name,
	.get_name = dbuf_driver_get_name,
	.supports_offset = driver_supports_offset,
	.copyin = dbuf_driver_copyin,
	.copyout = dbuf_driver_copyout,
	.alike = driver_alike,
	.supports_transfer = driver_supports_transfer,
	.transfers_any_device = true,
	.transfer = dbuf_driver_transfer,
	.transfer_many = dbuf_driver_transfer_many,
	.plan = dbuf_driver_plan,
	.copyin_async = dbuf_driver_copyin_async,
	.copyout_async = dbuf_driver_copyout_async,
	.transfer_async = dbuf_driver_transfer_async,
	.wait = dbuf_driver_wait,
	.cancel = dbuf_driver_cancel,
	.addr = driver_addr,
	.map = dbuf_driver_map,
	.unmap = dbuf_driver_unmap,
	.sync = dbuf_driver_sync,
	.export = dbuf_driver_export,
	.import = dbuf_driver_import,
};

static struct driver_allocator *new_allocator(struct connection *c, struct devbuf_allocator *inner)
{
	struct driver_allocator *a = calloc(1, sizeof(*a));

	if (!a) {
		dbuf_fail(-ENOMEM, "no memory for an allocator");
		return NULL;
	}
	if (dbuf_allocator_init(&a->common, &dbuf_driver_backend, inner)) {
		free(a);
		return NULL;
	}
	a->connection = c;
	return a;
}

int devbuf_driver_open(const char *path, struct devbuf_allocator **out)
{
	struct driver_allocator *a;
	struct connection *c;
	int rc;

	if (!out)
		return dbuf_fail(-EINVAL, "no place for the allocator");
	rc = dbuf_connection_open(path ? path : "/dev/devbuf", &c);
	if (rc)
		return rc;
	a = new_allocator(c, NULL);
	if (!a) {
		dbuf_connection_close(c);
		return -ENOMEM;
	}
	*out = &a->common;
	return 0;
}

/* The same connection, whose buffers ask the driver to keep their memory. */
int dbuf_driver_lru(struct devbuf_allocator *inner, struct devbuf_allocator **out)
{
	struct driver_allocator *a = new_allocator(dbuf_driver(inner)->connection, inner);

	if (!a)
		return -ENOMEM;
	a->create_flags = DEVBUF_CREATE_REUSE;
	*out = &a->common;
	return 0;
}

/* --- what it is, what it serves --------------------------------------------------------------- */

static int check_driver(const struct devbuf_allocator *a)
{
	int rc;

	rc = dbuf_allocator_usable(a);
	if (rc)
		return rc;
	if (a->backend != &dbuf_driver_backend)
		return dbuf_fail(-EOPNOTSUPP, "the allocator is not the driver's");
	return 0;
}

int devbuf_driver_instance(struct devbuf_allocator *a, uint8_t out[16])
{
	int rc;

	rc = check_driver(a);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the uuid");
	memcpy(out, dbuf_driver(a)->connection->instance, 16);
	return 0;
}

static int next_device(const struct connection *c, uint64_t *cursor,
		       struct devbuf_device_props *props)
{
	struct devbuf_device_info info = { .size = sizeof(info), .cursor = *cursor };
	int rc;

	rc = dbuf_command(c, DEVBUF_DEVICE_INFO, &info);
	if (rc)
		return rc;
	memcpy(props->name, info.out_name, sizeof(props->name));
	props->name[sizeof(props->name) - 1] = '\0';
	props->caps = info.out_caps;
	props->alignment = info.out_alignment;
	props->total_nbytes = info.out_total_nbytes;
	props->free_nbytes = info.out_free_nbytes;
	props->numa_node = info.out_numa_node;
	*cursor = info.out_cursor;
	return 0;
}

int devbuf_device_next(struct devbuf_allocator *a, uint64_t *cursor,
		       struct devbuf_device_props *out)
{
	struct devbuf_device_props props = DEVBUF_DEVICE_PROPS_INIT;
	int rc;

	rc = check_driver(a);
	if (rc)
		return rc;
	if (!cursor || !out)
		return dbuf_fail(-EINVAL, "no cursor, or no place for the device");
	rc = dbuf_struct_check(out, sizeof(props), "the device");
	if (rc)
		return rc;
	rc = next_device(dbuf_driver(a)->connection, cursor, &props);
	if (rc)
		return dbuf_fail(rc, "no next device: %s", dbuf_reason(rc));
	dbuf_struct_write(out, &props, sizeof(props));
	return 0;
}

int devbuf_device_find(struct devbuf_allocator *a, const char *device,
		       struct devbuf_device_props *out)
{
	struct devbuf_device_props props = DEVBUF_DEVICE_PROPS_INIT;
	char name[DEVBUF_DEVICE_BYTES];
	uint64_t cursor = 0;
	int rc;

	rc = check_driver(a);
	if (rc)
		return rc;
	if (!device || !out)
		return dbuf_fail(-EINVAL, "no device, or no place for it");
	rc = dbuf_struct_check(out, sizeof(props), "the device");
	if (!rc)
		rc = dbuf_device_name(name, device, -1);
	if (rc)
		return rc;
	do
		rc = next_device(dbuf_driver(a)->connection, &cursor, &props);
	while (!rc && strcmp(props.name, name));
	if (rc)
		return dbuf_fail(rc, "the driver has no device %s: %s", name, dbuf_reason(rc));
	dbuf_struct_write(out, &props, sizeof(props));
	return 0;
}
