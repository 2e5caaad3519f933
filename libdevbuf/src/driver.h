/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/* What the files about the driver share: connection.c, driver.c, driver_buffer.c, driver_copy.c. */
#ifndef DEVBUF_DRIVER_H
#define DEVBUF_DRIVER_H

#include <linux/devbuf.h>

#include "internal.h"

struct known_device {
	char name[DEVBUF_DEVICE_BYTES];
	uint64_t caps;
};

struct connection {
	int fd;
	size_t page_size;
	uint64_t features; /* DEVBUF_FEATURE_* */
	uint8_t instance[16];

	struct process_mark process; /* that opened it */

	pthread_mutex_t lock; /* of what follows: the devices, as far as they are known */
	struct known_device *devices;
	size_t nr_devices;
};

/* --- connection.c: the one place that calls ioctl() ------------------------------------------- */

int dbuf_connection_open(const char *path, struct connection **out);
void dbuf_connection_close(struct connection *c);
bool dbuf_connection_forked(const struct connection *c);

/* A command that does all or nothing, begun again after signals. A negative errno without words. */
int dbuf_command(const struct connection *c, unsigned long command, void *argument);

/* COPYIN or COPYOUT of one range; after a signal it goes on where it stopped. */
int dbuf_command_copy(const struct connection *c, unsigned long command,
		      struct devbuf_copy_range range);

/* In words when it fails. -ENODEV: no such device. */
int dbuf_connection_device(struct connection *c, const char *name, uint64_t *caps);

/* --- driver.c --------------------------------------------------------------------------------- */

struct driver_allocator {
	struct devbuf_allocator common;
	struct connection *connection; /* own, or inner's */
	uint32_t create_flags; /* DEVBUF_CREATE_REUSE for an LRU allocator */
};

static inline struct driver_allocator *dbuf_driver(const struct devbuf_allocator *a)
{
	return (struct driver_allocator *)a; /* common is its first member */
}

static inline struct connection *dbuf_connection(const struct devbuf *b)
{
	return dbuf_driver(b->allocator)->connection;
}

/* A command about @b failed: which, of what, why. */
int dbuf_driver_failed(int rc, const char *what, const struct devbuf *b);

/* --- driver_buffer.c -------------------------------------------------------------------------- */

int dbuf_driver_create(struct devbuf *b);
int dbuf_driver_view(struct devbuf *parent, size_t offset, struct devbuf *view);
void dbuf_driver_release(struct devbuf *b);
int dbuf_driver_allocate(struct devbuf *b);
int dbuf_driver_deallocate(struct devbuf *b);
int dbuf_driver_status(struct devbuf *b, struct devbuf_status *out);
int dbuf_driver_set_name(struct devbuf *b, const char *name);
int dbuf_driver_get_name(struct devbuf *b, char out[DEVBUF_NAME_BYTES]);
int dbuf_driver_export(struct devbuf *b, int flags, int *fd, size_t *offset);
int dbuf_driver_import(struct devbuf_allocator *a, int fd, struct devbuf **out);

/* --- driver_copy.c ---------------------------------------------------------------------------- */

/* The arguments of commands that copy; they point at the ranges. */
void dbuf_fill_copy(struct devbuf_copy *copy, struct devbuf_copy_range *range,
		    const struct devbuf *b, size_t offset, const void *memory, size_t nbytes);
void dbuf_fill_range(struct devbuf_transfer_range *range,
		     const struct devbuf_transfer_piece *piece);
void dbuf_fill_transfer(struct devbuf_transfer *transfer,
			const struct devbuf_transfer_range *ranges, size_t nr, unsigned int flags);
enum devbuf_copy_path dbuf_path_from_uapi(__u32 path);

int dbuf_driver_copyin(struct devbuf *b, size_t offset, const void *src, size_t nbytes);
int dbuf_driver_copyout(struct devbuf *b, size_t offset, void *dst, size_t nbytes);
int dbuf_driver_transfer(struct devbuf *dst, size_t dst_offset, struct devbuf *src,
			 size_t src_offset, size_t nbytes, unsigned int flags,
			 enum devbuf_copy_path *took);
int dbuf_driver_transfer_many(const struct devbuf_transfer_piece *pieces, size_t nr,
			      unsigned int flags, enum devbuf_copy_path *took);
int dbuf_driver_plan(struct devbuf *dst, struct devbuf *src, struct devbuf_plan *out);
int dbuf_driver_map(struct devbuf *b, int prot, struct mapping *m);
void dbuf_driver_unmap(struct devbuf *b, struct mapping *m);
int dbuf_driver_sync(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags);

/* --- driver_async.c --------------------------------------------------------------------------- */

/* What @how says, but not DEVBUF_ASYNC and the out_fence, which are for ioctl() only. */
void dbuf_fill_copy_order(struct devbuf_copy *copy, const struct devbuf_async *how);
void dbuf_fill_transfer_order(struct devbuf_transfer *transfer, const struct devbuf_async *how);

int dbuf_driver_copyin_async(struct devbuf *b, size_t offset, const void *src, size_t nbytes,
			     const struct devbuf_async *how);
int dbuf_driver_copyout_async(struct devbuf *b, size_t offset, void *dst, size_t nbytes,
			      const struct devbuf_async *how);
int dbuf_driver_transfer_async(const struct devbuf_transfer_piece *p, unsigned int flags,
			       const struct devbuf_async *how);
int dbuf_driver_wait(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags,
		     uint64_t deadline_ns, int *fence_error);
int dbuf_driver_cancel(struct devbuf_allocator *a, uint64_t cookie, size_t *count);

/* --- uring.c ---------------------------------------------------------------------------------- */

struct io_uring_sqe;

/* A command of the driver's, on whichever ring; user_data stays as it is. */
void dbuf_fill_entry(struct io_uring_sqe *sqe, const struct connection *c, unsigned long command,
		     const void *argument);

#endif /* DEVBUF_DRIVER_H */
