/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * The map of the library. Read this first.
 *
 *	devbuf.h     ── public functions: allocator.c buffer.c share.c mapping.c transfer.c copy.c
 *	   │            file.c async.c queue.c (file.h, queue.h: theirs)
 *	   │            check arguments, lock, and call down through
 *	struct backend
 *	   ├─ local.c     buffers whose state is kept here, in memory that hooks give
 *	   │    └─ hooks: the caller's own, host.c (this process's memory), lru.c (around others)
 *	   └─ driver.c    buffers whose state the driver keeps
 *	        ├─ connection.c   the one place that calls ioctl()
 *	        └─ uring.c        the one place that makes commands for a ring
 *
 * Lifetimes. A buffer holds its allocator; a view holds its base; an LRU
 * allocator holds the one that it is over. A registry does not hold what is in
 * it: the last reference is released under the registry's lock, so that what
 * is found there is alive.
 *
 * Locks, in order: the locks of root buffers, by id; a registry's, an LRU
 * allocator's and a connection's, none of which is held while another is taken
 * or a hook is called. All that changes in a base and its views is guarded by
 * the lock of the root.
 */
#ifndef DEVBUF_INTERNAL_H
#define DEVBUF_INTERNAL_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "devbuf.h"

#define DBUF_LOCAL_ID   (UINT64_C(1) << 63)
#define DBUF_OWN_COOKIE (UINT64_C(1) << 63) /* of the library's own commands */

/* --- objects ---------------------------------------------------------------------------------- */

/* Buffers by id: one struct per id. One registry per connection, or per bottom allocator. */
struct registry {
	pthread_mutex_t lock;
	struct devbuf **slots; /* chains through devbuf.next; their number is a power of two */
	size_t nr_slots;
	size_t count;
};

struct devbuf_allocator {
	atomic_size_t refs;
	const struct backend *backend;
	struct devbuf_allocator *inner; /* what an LRU allocator is over; held */
	struct registry *registry; /* own, or inner's */
	struct registry own_registry;
};

/* Memory that hooks gave to a base. The base and each mapping count as users. */
struct memory {
	size_t users;
	void *handle;
};

/*
 * The one CPU mapping of a buffer. Users are devbuf_map() calls; devbuf_addr()
 * keeps it too, until the buffer is deallocated. It shows the memory of one
 * generation of the root: after the root was deallocated it is stale, and stays
 * only until its users let go.
 */
struct mapping {
	void *addr; /* of the buffer's first byte; NULL when there is no mapping */
	int prot;
	unsigned int users;
	bool kept;
	unsigned long generation;
	struct memory *memory; /* local.c: what it holds */
};

struct devbuf {
	/* These do not change. */
	struct devbuf_allocator *allocator; /* held */
	struct devbuf *base; /* itself; of a view held, or NULL if not known */
	uint64_t id;
	uint64_t base_id;
	size_t size;
	size_t nbytes;
	size_t offset;
	devbuf_dtype dtype;
	struct devbuf_spec spec;
	char device[DEVBUF_DEVICE_BYTES];
	uint64_t caps; /* driver.c: DEVBUF_CAN_* */
	atomic_bool seen_allocated; /* driver.c: as far as is known here; see dbuf_ensure_piece() */

	atomic_size_t refs;
	_Atomic int64_t uop_refcount; /* of a root */
	struct devbuf *next; /* in the registry's chain, under its lock */

	pthread_mutex_t lock; /* of a root: guards what follows, here and in its views */
	unsigned long generation; /* of a root: how often it was deallocated */
	struct mapping mapping;
	bool allocated; /* local.c, from here on */
	struct memory *memory; /* of a base that is allocated */
	void *view_handle; /* of a view that is allocated: what the offset hook gave */
	size_t allocated_views; /* of a base */
	char name[DEVBUF_NAME_BYTES];
};

/*
 * How the buffers of an allocator work. Arguments have been checked, and ranges
 * lie within the buffers. What changes a buffer or asks for its state runs with
 * the lock of its root; what moves bytes (copyin to transfer, and sync) does if
 * data_lock is set; the others without. Failures are told in words.
 */
struct backend {
	bool data_lock; /* the driver orders copies itself */

	void (*destroy)(struct devbuf_allocator *a); /* frees it; dbuf_allocator_fini() */
	bool (*forked)(const struct devbuf_allocator *a); /* optional: not ours after fork */

	int (*create)(struct devbuf *b); /* give it its id */
	int (*view)(struct devbuf *parent, size_t offset, struct devbuf *view);
	void (*release)(struct devbuf *b); /* its last reference is gone */
	int (*allocate)(struct devbuf *b);
	int (*deallocate)(struct devbuf *b);
	int (*status)(struct devbuf *b, struct devbuf_status *out);
	int (*set_name)(struct devbuf *b, const char *name);
	int (*get_name)(struct devbuf *b, char out[DEVBUF_NAME_BYTES]);
	bool (*supports_offset)(const struct devbuf *b);

	int (*copyin)(struct devbuf *b, size_t offset, const void *src, size_t nbytes);
	int (*copyout)(struct devbuf *b, size_t offset, void *dst, size_t nbytes);
	int64_t (*read_file)(struct devbuf *b, size_t offset, int fd, int64_t file_offset,
			     size_t nbytes); /* optional; bytes read, or -EOPNOTSUPP */

	/* Optional: whether its bytes are in this process's reach; where, or NULL if not allocated. */
	bool (*reachable)(const struct devbuf *b);
	void *(*peek)(struct devbuf *b);

	/* Whether transfer works between them, leaving their devices aside. */
	bool (*alike)(const struct devbuf *dst, const struct devbuf *src);
	bool (*supports_transfer)(const struct devbuf *dst);
	bool transfers_any_device; /* devbuf_copy() need not ask for the same prefix */
	int (*transfer)(struct devbuf *dst, size_t dst_offset, struct devbuf *src,
			size_t src_offset, size_t nbytes, unsigned int flags,
			enum devbuf_copy_path *took);
	/* Optional: of buffers that are alike, up to DBUF_TRANSFER_PIECES, by one command. */
	int (*transfer_many)(const struct devbuf_transfer_piece *pieces, size_t nr,
			     unsigned int flags, enum devbuf_copy_path *took);
	int (*plan)(struct devbuf *dst, struct devbuf *src, struct devbuf_plan *out);

	/*
	 * Optional: copies that are over later, of buffers that are alike; without these they are
	 * done at once. @how has been checked, and is not NULL.
	 */
	int (*copyin_async)(struct devbuf *b, size_t offset, const void *src, size_t nbytes,
			    const struct devbuf_async *how);
	int (*copyout_async)(struct devbuf *b, size_t offset, void *dst, size_t nbytes,
			     const struct devbuf_async *how);
	int (*transfer_async)(const struct devbuf_transfer_piece *p, unsigned int flags,
			      const struct devbuf_async *how);
	int (*wait)(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags,
		    uint64_t deadline_ns, int *fence_error);
	int (*cancel)(struct devbuf_allocator *a, uint64_t cookie, size_t *count);

	/* Of a root. DBUF_ADDR_OF_MAPPING: it has no address but that of the CPU's mapping. */
	int (*addr)(struct devbuf *root, uint64_t *out);
	int (*map)(struct devbuf *b, int prot, struct mapping *m);
	void (*unmap)(struct devbuf *b, struct mapping *m);
	int (*sync)(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags);

	/* Optional: -EOPNOTSUPP without. */
	int (*export)(struct devbuf *b, int flags, int *fd, size_t *offset);
	int (*import)(struct devbuf_allocator *a, int fd, struct devbuf **out);
};

#define DBUF_ADDR_OF_MAPPING 1
#define DBUF_TRANSFER_PIECES 1024

extern const struct backend dbuf_local_backend;
extern const struct backend dbuf_driver_backend;

/* --- error.c ---------------------------------------------------------------------------------- */

/* Set the words of devbuf_last_error(), and return @error, a negative errno. */
int dbuf_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a negative errno means here, to end a sentence. */
const char *dbuf_reason(int error);

/* --- process.c -------------------------------------------------------------------------------- */

/*
 * The process that made something. The page is zero in the child of a fork, which wipes it; where
 * that cannot be had (NULL), the process id tells.
 */
struct process_mark {
	unsigned char *page;
	pid_t pid;
};

void dbuf_process_mark(struct process_mark *m);
void dbuf_process_unmark(struct process_mark *m);
bool dbuf_process_forked(const struct process_mark *m);

/* --- spec.c ----------------------------------------------------------------------------------- */

/*
 * Structs that begin with their size_t size. Reading: @known bytes are ours, @least were published
 * first; what a longer one holds beyond ours must be zero. Writing: up to the caller's size.
 */
int dbuf_struct_read(void *to, size_t known, size_t least, const void *from, const char *what);
int dbuf_struct_check(const void *to, size_t least, const char *what);
void dbuf_struct_write(void *to, const void *from, size_t known);

int dbuf_spec_read(struct devbuf_spec *to, const struct devbuf_spec *from);
int dbuf_device_name(char to[DEVBUF_DEVICE_BYTES], const char *from, int numa_node);
bool dbuf_same_prefix(const char *device, const char *other);

/* --- registry.c ------------------------------------------------------------------------------- */

int dbuf_registry_init(struct registry *r);
void dbuf_registry_fini(struct registry *r);
struct devbuf *dbuf_registry_get(struct registry *r, uint64_t id); /* with a reference, or NULL */
struct devbuf *dbuf_registry_add(struct registry *r, struct devbuf *b); /* @b, or who was first */
bool dbuf_registry_put(struct registry *r, struct devbuf *b); /* whether that was the last */

/* --- allocator.c ------------------------------------------------------------------------------ */

int dbuf_allocator_init(struct devbuf_allocator *a, const struct backend *backend,
			struct devbuf_allocator *inner);
void dbuf_allocator_fini(struct devbuf_allocator *a);
bool dbuf_forked(const struct devbuf_allocator *a);
int dbuf_allocator_usable(const struct devbuf_allocator *a); /* not NULL, not after fork */
const struct devbuf_allocator *dbuf_allocator_bottom(const struct devbuf_allocator *a);

/* --- buffer.c --------------------------------------------------------------------------------- */

struct devbuf *dbuf_new(struct devbuf_allocator *a);
void dbuf_free(struct devbuf *b);
int dbuf_usable(const struct devbuf *b);
int dbuf_allocated(struct devbuf *b); /* 0 or -ENODATA; under the lock */
int dbuf_not_allocated(const struct devbuf *b); /* -ENODATA, in words */
int dbuf_range(const struct devbuf *b, size_t offset, size_t nbytes);

/* Allocate what is not, and remember what that was, to take it back if what follows fails. */
struct made {
	bool itself;
	bool base;
};

int dbuf_ensure(struct devbuf *b, struct made *made);
void dbuf_undo(struct devbuf *b, struct made made);

/* The one whose lock guards @b. A view without its base stands alone. */
static inline struct devbuf *dbuf_root(struct devbuf *b)
{
	return b->base ? b->base : b;
}

static inline void dbuf_lock(struct devbuf *b)
{
	pthread_mutex_lock(&dbuf_root(b)->lock);
}

static inline void dbuf_unlock(struct devbuf *b)
{
	pthread_mutex_unlock(&dbuf_root(b)->lock);
}

static inline const struct backend *dbuf_backend(const struct devbuf *b)
{
	return b->allocator->backend;
}

/* --- mapping.c -------------------------------------------------------------------------------- */

void dbuf_mapping_deallocated(struct devbuf *b); /* under the lock */
void dbuf_mapping_release(struct devbuf *b); /* of a buffer that nobody uses */

/* --- transfer.c ------------------------------------------------------------------------------- */

int dbuf_check_part(const struct devbuf *b, size_t offset, const void *memory, size_t nbytes);
void dbuf_lock_data(struct devbuf *b);
void dbuf_unlock_data(struct devbuf *b);

/* Host memory that a copy passes through, no more than DBUF_BOUNCE_NBYTES. */
#define DBUF_BOUNCE_NBYTES ((size_t)1 << 20)
void *dbuf_bounce_new(size_t nbytes, size_t *chunk);

/* --- copy.c ----------------------------------------------------------------------------------- */

bool dbuf_alike(const struct devbuf *dst, const struct devbuf *src);
int dbuf_check_piece(const struct devbuf_transfer_piece *p, unsigned int flags);

/* Allocate both ends, if they are not; and take that back. Asks nobody for what is known. */
struct made_piece {
	struct made dst, src;
};

int dbuf_ensure_piece(const struct devbuf_transfer_piece *p, struct made_piece *made);
void dbuf_undo_piece(const struct devbuf_transfer_piece *p, struct made_piece made);

/* --- async.c ---------------------------------------------------------------------------------- */

int dbuf_async_read(struct devbuf_async *to, const struct devbuf_async *from);

/* --- local.c ---------------------------------------------------------------------------------- */

/*
 * An allocator of hooks. Two things only the library's own have: no addr hook, when the address is
 * that of the CPU's mapping; and peek, when the memory is this process's.
 */
struct local_allocator {
	struct devbuf_allocator common;
	struct devbuf_allocator_ops ops;
	void *user;
	int (*check)(const struct devbuf_spec *spec); /* optional: at devbuf_create() */
	void *(*peek)(void *handle); /* the CPU's address of memory */
	enum devbuf_copy_path via; /* what the transfer hook is */
};

struct local_allocator *dbuf_local_new(const struct devbuf_allocator_ops *ops, void *user,
				       struct devbuf_allocator *inner);

static inline struct local_allocator *dbuf_local(const struct devbuf_allocator *a)
{
	return (struct local_allocator *)a; /* common is its first member */
}

/* --- lru.c, driver.c -------------------------------------------------------------------------- */

int dbuf_driver_lru(struct devbuf_allocator *inner, struct devbuf_allocator **out);

#endif /* DEVBUF_INTERNAL_H */
