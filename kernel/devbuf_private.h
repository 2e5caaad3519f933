/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The map of the driver. Read this first.
 *
 *	struct file -- devbuf_context	one per open: the table of ids
 *	                  | handle	buffer reference, rights, reach
 *	               devbuf_buffer	an id: a base, or a view of a base
 *	                  |
 *	               devbuf_storage	the memory; outlives the buffer's use of it
 *	                  |
 *	               devbuf_device	where memory comes from
 *
 *	               devbuf_job	a queued copy; its devbuf_fence tells of its end
 *	               devbuf_request	a command that has not ended, as CANCEL sees it
 *
 * Who holds whom (references; an arrow keeps its target alive):
 *
 *	handle  -> buffer		until DESTROY or close
 *	view    -> base			for life
 *	buffer  -> device		for life
 *	buffer  -> storage		from ALLOCATE to DEALLOCATE, base and view
 *	storage -> device		for life; the device gets its memory back when
 *					it goes, whoever has the storage (device.c)
 *	export  -> buffer, storage	until its dma_buf is released
 *	mapping -> pseudo-file -> storage	until munmap
 *	running copy -> storage		while it runs
 *	job     -> device, storages, the caller's pages, fence	until it is reaped
 *	fence   -> this module		until its release
 *	running worker -> device	while it runs
 *
 *	buffer  -> exports		while an id names it, and it is allocated
 *
 * Only the last of these points upward, and so makes a circle: it is broken when
 * the last handle goes (devbuf_buffer_drop_handle), and at DEALLOCATE. Pointers
 * that hold nothing: devbuf_storage.file, which the file's own release clears,
 * and which is followed under the storage's lock; devbuf_fence.job and
 * devbuf_request.context, which who ends them clears, followed under RCU.
 *
 * Lock order, outermost first. Nothing of this is held across an access to
 * user memory.
 *
 *	mmap_lock			taken by callers of ours
 *	devbuf_buffer.lock		a base's: its storage and its views'
 *	devbuf_storage.lock		exports, pseudo-file, publishing jobs; several at
 *					once: a ww_mutex (publish.c)
 *	dma_resv			of exports; taken by callers of ours, too
 *	-- reclaim may enter here: allocations are made under those above --
 *	-- signalling of fences, which may take none of those above --
 *	devbuf_storage.sync_lock	attachments
 *	devbuf_storage.accesses_lock	what jobs do to it
 *	devbuf_context.lock		changes to handles
 *	devbuf_context.requests_lock	commands that have not ended
 *	a fence's lock			held while its callbacks open our gates
 *	devbuf_queue.lock		jobs of a device
 *	devbuf_device.memory_lock	what of its memory is used
 *	list_lru lock			the shrinker's list
 *	devbuf_reuse.lock		kept storages of a context
 *
 * Looking an id up takes none: RCU and a reference (context.c, buffer.c).
 */
#ifndef DEVBUF_PRIVATE_H
#define DEVBUF_PRIVATE_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/dma-direction.h>
#include <linux/dma-fence.h>
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/percpu-refcount.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/ww_mutex.h>
#include <linux/devbuf.h>

#include "compat/compat.h"

struct devbuf_buffer;
struct devbuf_context;
struct devbuf_job;
struct devbuf_dma_map;
struct devbuf_piece;
struct devbuf_stage;
struct devbuf_storage;
struct bio_vec;
struct dma_buf;
struct io_uring_cmd;
struct seq_file;
struct user_struct;

static_assert(BITS_PER_LONG == 64, "an id is an offset of mmap(), in pages");

/*
 * Every object is charged to its user, and a user at his limit gets -ENOMEM;
 * without __GFP_RETRY_MAYFAIL the OOM killer would be sent to his cgroup.
 */
#define DEVBUF_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* ---- main.c: the command table ---- */

/**
 * struct devbuf_command - one command on its way through its handler
 * @context: whose
 * @user: the caller's struct
 * @user_size: its size as the caller knows it
 * @row: the command's row of the table
 * @ring: the ring's command that it came with, or NULL for an ioctl
 * @issue_flags: with @ring: IO_URING_F_* bits
 * @arg: the driver's copy; its @out_* members begin as zero
 */
struct devbuf_command {
	struct devbuf_context *context;
	void __user *user;
	u32 user_size;
	const struct devbuf_command_row *row;
	struct io_uring_cmd *ring;
	unsigned int issue_flags;
	union {
		u32 size;
		struct devbuf_info info;
		struct devbuf_device_info device_info;
		struct devbuf_create create;
		struct devbuf_view view;
		struct devbuf_allocate allocate;
		struct devbuf_id id;
		struct devbuf_query query;
		struct devbuf_set_name set_name;
		struct devbuf_export export;
		struct devbuf_import import;
		struct devbuf_sync sync;
		struct devbuf_copy copy;
		struct devbuf_path path;
		struct devbuf_transfer transfer;
		struct devbuf_wait wait;
		struct devbuf_cancel cancel;
	} arg;
};

/* Whoever queues copies reads both through struct devbuf_copy. */
#define DEVBUF_SAME_MEMBER(_member)					\
	static_assert(offsetof(struct devbuf_copy, _member) ==		\
		      offsetof(struct devbuf_transfer, _member))
DEVBUF_SAME_MEMBER(flags);
DEVBUF_SAME_MEMBER(ranges);
DEVBUF_SAME_MEMBER(nr_ranges);
DEVBUF_SAME_MEMBER(nr_in_fences);
DEVBUF_SAME_MEMBER(out_done_nbytes);
DEVBUF_SAME_MEMBER(out_path);
DEVBUF_SAME_MEMBER(out_fence);
DEVBUF_SAME_MEMBER(in_fences);
DEVBUF_SAME_MEMBER(cookie);
static_assert(sizeof(struct devbuf_copy) == offsetof(struct devbuf_transfer, operation));

int devbuf_command_run(struct devbuf_command *cmd, unsigned int number);
int devbuf_command_reply(struct devbuf_command *cmd);

/* ---- uring.c: commands on a ring ---- */

struct devbuf_request;

int devbuf_uring_cmd(struct io_uring_cmd *ring, unsigned int issue_flags);
struct devbuf_request *devbuf_uring_request(struct io_uring_cmd *ring);
void devbuf_uring_begin(struct devbuf_command *cmd, struct devbuf_request *request);
bool devbuf_uring_is_fixed(const struct devbuf_command *cmd);
int devbuf_uring_import(struct devbuf_command *cmd, const struct devbuf_piece *pieces,
			u32 nr, bool in, struct iov_iter *iters);
bool devbuf_command_is_nonblocking(const struct devbuf_command *cmd);

/* ---- request.c: commands that have not ended ---- */

/**
 * struct devbuf_request_ops - what a request is of
 * @cancel: give it up, unless it is over, or was given up before; whether it was
 *	this call. In any context, with the context's @requests_lock held or not.
 * @reply: on a ring: fill in the command's @out_* members
 * @put: on a ring: it has been told
 */
struct devbuf_request_ops {
	bool (*cancel)(struct devbuf_request *request);
	void (*reply)(struct devbuf_request *request, struct devbuf_command *cmd);
	void (*put)(struct devbuf_request *request);
};

/**
 * struct devbuf_request - a command that has not ended
 * @ops: what it is of
 * @context: whose; NULL once that is closed. Under RCU.
 * @entry: in the context's list, under its @requests_lock
 * @cookie: the caller's
 * @nr_ranges: how many ranges it will copy; zero for a WAIT
 * @nbytes: bytes of those
 * @result: DEVBUF_REQUEST_PENDING; then 0 or a negative errno, by who is first
 * @ring: the ring's command, or NULL
 * @untold: of a ring: how much is missing before it can be told: a result, and
 *	that the command is set up
 * @row: of the command, on a ring, like what follows
 * @user: the caller's struct
 * @user_size: its size
 */
struct devbuf_request {
	const struct devbuf_request_ops *ops;
	struct devbuf_context __rcu *context;
	struct list_head entry;
	u64 cookie;
	u32 nr_ranges;
	u64 nbytes;
	int result;
	struct io_uring_cmd *ring;
	atomic_t untold;
	const struct devbuf_command_row *row;
	void __user *user;
	u32 user_size;
};

#define DEVBUF_REQUEST_PENDING	1

int devbuf_request_begin(struct devbuf_request *request, struct devbuf_command *cmd);
int devbuf_request_begin_ring(struct devbuf_request *request,
			      struct devbuf_command *cmd);
void devbuf_request_set_up(struct devbuf_request *request, struct devbuf_command *cmd);
bool devbuf_request_complete(struct devbuf_request *request, int result);
void devbuf_request_remove(struct devbuf_request *request);
void devbuf_requests_give_up(struct devbuf_context *context);
int devbuf_ioctl_cancel(struct devbuf_command *cmd);

/* ---- queue.c: who runs jobs ---- */

/* Most threads that copy for one device at a time. */
#define DEVBUF_QUEUE_WORKERS	4

/* Jobs that are reason enough for another one, however small they are. */
#define DEVBUF_QUEUE_MANY	16

/**
 * struct devbuf_worker - a thread of the kernel's, while there is work
 * @work: of the work queue
 * @queue: for which
 * @busy: it runs, or is about to; under the queue's lock
 */
struct devbuf_worker {
	struct work_struct work;
	struct devbuf_queue *queue;
	bool busy;
};

/**
 * struct devbuf_queue - the jobs of a device that may begin
 * @lock: guards all of it, and the progress of its jobs
 * @jobs: next first; they stay until they are over
 * @nr_jobs: how many
 * @nbytes: bytes of theirs that nobody has begun with
 * @nr_workers: how many of @workers are busy
 * @workers: who runs them
 */
struct devbuf_queue {
	spinlock_t lock;	/* everything here, and its jobs' progress */
	struct list_head jobs;
	u32 nr_jobs;
	u64 nbytes;
	u32 nr_workers;
	struct devbuf_worker workers[DEVBUF_QUEUE_WORKERS];
};

void devbuf_queue_init(struct devbuf_queue *queue);
void devbuf_queue_add(struct devbuf_queue *queue, struct devbuf_job *job);
void devbuf_queue_run_here(struct devbuf_queue *queue, struct devbuf_job *job);
int devbuf_queues_init(void);
void devbuf_queues_exit(void);

/* ---- device.c: the registry ---- */

/**
 * struct devbuf_device - where memory comes from
 * @ref: buffers, storages, jobs and the registry
 * @entry: in the registry; under its lock
 * @cursor: place in the walk of DEVICE_INFO: never used again
 * @gone: unregistered; set under the registry's lock
 * @permanent: there for as long as its memory is
 * @reaches_all: its engine's addresses reach all memory of the host
 * @operates: it copies inside of its memory by itself
 * @desc: as registered. The callbacks may be called between devbuf_device_enter()
 *	and devbuf_device_leave(); the devices that it names are referenced.
 * @active: who has entered
 * @idle: nobody has, after it was unregistered
 * @caps: DEVBUF_CAP_* bits
 * @no_export: why its own memory has no dma-bufs, DEVBUF_REASON_*
 * @prefix_len: bytes of @name before the colon
 * @queue: jobs that write to its memory, or read it for the caller
 * @memory_lock: guards what follows
 * @storages: those whose memory it may want back
 * @nr_memories: how many allocations it has not got back
 * @dma_maps: what is mapped for its engine
 * @freed: wakes up when there are none
 * @name: "PREFIX:N", zeros to the end
 */
struct devbuf_device {
	struct kref ref;
	struct list_head entry;
	u64 cursor;
	bool gone;
	bool permanent;
	bool reaches_all;
	bool operates;
	struct devbuf_device_desc desc;
	struct percpu_ref active;
	struct completion idle;
	u64 caps;
	u32 no_export;
	size_t prefix_len;
	struct devbuf_queue queue;
	spinlock_t memory_lock;	/* storages, nr_memories, dma_maps */
	struct list_head storages;
	unsigned long nr_memories;
	struct list_head dma_maps;
	wait_queue_head_t freed;
	char name[DEVBUF_DEVICE_NAME_MAX];
};

/**
 * devbuf_device_enter - before a callback of the device is called, or its memory
 *	touched that may go with it
 * @device: the device
 *
 * Holds up whoever unregisters the device: no waiting for userspace until
 * devbuf_device_leave().
 *
 * Return: false when the device is gone.
 */
static inline bool devbuf_device_enter(struct devbuf_device *device)
{
	return percpu_ref_tryget_live(&device->active);
}

static inline void devbuf_device_leave(struct devbuf_device *device)
{
	percpu_ref_put(&device->active);
}

static inline bool devbuf_device_is_gone(const struct devbuf_device *device)
{
	return READ_ONCE(device->gone);
}

struct devbuf_device *
devbuf_device_register_permanent(const struct devbuf_device_desc *desc);
struct devbuf_device *devbuf_device_find(const char *name);
void devbuf_device_put(struct devbuf_device *device);
void devbuf_device_add_memory(struct devbuf_device *device,
			      struct devbuf_storage *storage);
void devbuf_device_free_memory(struct devbuf_device *device,
			       struct devbuf_storage *storage);
void devbuf_device_give_back(struct devbuf_device *device,
			     struct devbuf_storage *storage);
bool devbuf_device_same_prefix(const struct devbuf_device *a,
			       const struct devbuf_device *b);
int devbuf_ioctl_device_info(struct devbuf_command *cmd);

/* ---- storage.c: lifetime of memory ---- */

/**
 * struct devbuf_storage - memory of a device
 * @mem: the memory; does not change
 * @device: its device
 * @local: the memory is the device's own, not the host's
 * @stays: the memory is pages of the host, there for as long as the storage is.
 *	Other memory goes with its device, and is touched only by who has entered
 *	that (stage.c).
 * @device_entry: in the device's list, while the memory is the storage's; under
 *	its lock
 * @ref: who uses it. Zero while it is kept for reuse or being freed, so that a
 *	look-up that comes too late cannot take it (devbuf_buffer_get_storage).
 * @rcu: the struct itself stays for an RCU grace period
 * @lock: guards @exports and @file; and jobs are published under it
 * @sync_lock: guards @attachments, and what devices and the CPU see
 * @exports: every dma-buf of it
 * @attachments: every attachment of every export
 * @accesses_lock: guards @accesses
 * @accesses: what unfinished jobs read, and what they write, by place
 * @queued: how many accesses of unfinished jobs there are
 * @file: weak; the pseudo-file that its mappings belong to, while there are any
 * @reuse_serial: serial of the context that allocated it, if it may be reused
 *	there; else zero
 * @reuse: the kept storages that it is among
 * @reuse_entry: in @reuse's hash; under its lock
 * @reuse_order: in @reuse's list, oldest first; under its lock. Afterwards in
 *	the list of those to free, of whoever took it out.
 * @lru: in the shrinker's list, a little longer than in @reuse's
 */
struct devbuf_storage {
	struct devbuf_memory mem;
	struct devbuf_device *device;
	bool local;
	bool stays;
	struct list_head device_entry;
	refcount_t ref;
	struct rcu_head rcu;

	struct ww_mutex lock;	/* exports, file, publishing jobs */
	struct mutex sync_lock;	/* attachments; part of signalling fences */
	struct list_head exports;
	struct list_head attachments;
	spinlock_t accesses_lock;	/* accesses */
	struct rb_root_cached accesses[2];
	atomic_t queued;
	struct file *file;

	u64 reuse_serial;
	struct devbuf_reuse *reuse;
	struct hlist_node reuse_entry;
	struct list_head reuse_order;
	struct list_head lru;
};

struct devbuf_storage *devbuf_storage_alloc(struct devbuf_context *context,
					    struct devbuf_buffer *base,
					    bool *reused);
void devbuf_storage_get(struct devbuf_storage *storage);
void devbuf_storage_put(struct devbuf_storage *storage);
void devbuf_storage_free(struct devbuf_storage *storage);
void devbuf_storage_revoke(struct devbuf_storage *storage, unsigned long deadline);
int devbuf_storage_init(void);
void devbuf_storage_exit(void);

/**
 * devbuf_storage_span - a piece of memory that the CPU can copy in one go
 * @storage: memory of pages. If it does not stay: its device is entered.
 * @pos: bytes from the beginning of the first page
 * @nbytes: in: how many are wanted; out: how many lie there in a row
 *
 * Return: where they lie.
 */
static inline void *devbuf_storage_span(const struct devbuf_storage *storage,
					u64 pos, u64 *nbytes)
{
	const struct devbuf_memory *mem = &storage->mem;
	struct page *page = mem->pages[pos >> PAGE_SHIFT];
	u64 row = PAGE_SIZE;

	if (mem->whole_folios) {
		struct folio *folio = page_folio(page);

		row = folio_size(folio) - folio_page_idx(folio, page) * PAGE_SIZE;
	}
	*nbytes = min(*nbytes, row - offset_in_page(pos));
	/* 64-bit kernels: every page has its place in the direct map. */
	return page_address(page) + offset_in_page(pos);
}

/* Is it of the host, though it was asked for at a device with its own memory? */
static inline bool devbuf_storage_is_of_host(const struct devbuf_storage *storage)
{
	return storage->device->caps & DEVBUF_CAP_LOCAL && !storage->local;
}

/* Bytes that it occupies: from the first page to the last, if it is pages. */
static inline u64 devbuf_storage_nbytes(const struct devbuf_storage *storage)
{
	return storage->mem.nr_pages ? (u64)storage->mem.nr_pages << PAGE_SHIFT :
				       storage->mem.nbytes;
}

/* ---- reuse.c: storages kept by their context for its next allocation ---- */

#define DEVBUF_REUSE_HASH_BITS	6

/**
 * struct devbuf_reuse - what one context keeps
 * @lock: guards all of it
 * @hash: kept storages by what they are
 * @order: the same, oldest first
 * @count: how many there are
 * @nbytes: bytes of memory that they hold
 * @hits: allocations that were served from here
 * @misses: allocations that might have been, and were not
 */
struct devbuf_reuse {
	spinlock_t lock;	/* everything here */
	DECLARE_HASHTABLE(hash, DEVBUF_REUSE_HASH_BITS);
	struct list_head order;
	unsigned int count;
	u64 nbytes;
	u64 hits;
	u64 misses;
};

void devbuf_reuse_init(struct devbuf_reuse *reuse);
struct devbuf_storage *devbuf_reuse_take(struct devbuf_reuse *reuse,
					 const struct devbuf_buffer *base);
void devbuf_reuse_keep_or_put(struct devbuf_context *context,
			      struct devbuf_storage *storage);
bool devbuf_reuse_flush(struct devbuf_reuse *reuse);
void devbuf_reuse_forget(struct devbuf_device *device);
int devbuf_reuse_register(void);
void devbuf_reuse_unregister(void);
extern struct list_lru devbuf_reuse_lru;

/* ---- buffer.c: bases and views ---- */

/**
 * struct devbuf_buffer - a base, or a view of one
 * @ref: handles, views, exports, running commands
 * @rcu: look-ups may still see it
 * @id: never used again
 * @base: for a view, its base, referenced; for a base itself
 * @device: the base's
 * @offset: bytes from the beginning of the base
 * @nbytes: bytes
 * @alignment: as asked for
 * @user_addr: the caller's memory, on devices with DEVBUF_CAP_EXTERNAL
 * @user_mm: the address space that @user_addr belongs to
 * @made_in: serial of the context that made it
 * @handles: in how many tables it is
 * @dtype: opaque
 * @flags: DEVBUF_CREATE_* bits of the base
 * @lock: on a base: guards the members below, of it and of its views
 * @storage: its memory while allocated; read under RCU
 * @allocated_views: on a base: its views that are allocated
 * @view_entry: on a view: in its base's list
 * @exports: the read-only and the writable dma_buf of @storage, referenced
 * @name: for people, or NULL; read under RCU
 */
struct devbuf_buffer {
	struct kref ref;
	struct rcu_head rcu;
	u64 id;
	struct devbuf_buffer *base;
	struct devbuf_device *device;
	u64 offset;
	u64 nbytes;
	u64 alignment;
	u64 user_addr;
	struct mm_struct *user_mm;
	u64 made_in;
	atomic_t handles;
	u32 dtype;
	u32 flags;

	struct mutex lock;	/* a base's: what follows, its views' too */
	struct devbuf_storage __rcu *storage;
	struct list_head allocated_views;
	struct list_head view_entry;
	struct dma_buf *exports[2];
	struct devbuf_name __rcu *name;
};

/**
 * devbuf_check_range - is this a range of bytes of a buffer?
 * @offset: bytes from its beginning
 * @nbytes: how many
 * @limit: bytes of the buffer
 *
 * Return: 0, -EOVERFLOW or -EINVAL.
 */
static inline int devbuf_check_range(u64 offset, u64 nbytes, u64 limit)
{
	u64 end;

	if (check_add_overflow(offset, nbytes, &end))
		return -EOVERFLOW;
	return nbytes && end <= limit ? 0 : -EINVAL;
}

/*
 * Where the base begins in its first page: memory of the caller's begins
 * anywhere, all other at the page.
 */
static inline u64 devbuf_base_skew(const struct devbuf_buffer *base)
{
	return offset_in_page(base->user_addr);
}

/* Where a buffer begins, in bytes from the first page of its storage. */
static inline u64 devbuf_buffer_pos(const struct devbuf_buffer *buffer)
{
	return devbuf_base_skew(buffer->base) + buffer->offset;
}

static inline bool devbuf_buffer_is_view(const struct devbuf_buffer *buffer)
{
	return buffer->base != buffer;
}

/* Is its memory the device's own? Otherwise it is the host's. */
static inline bool devbuf_buffer_is_local(const struct devbuf_buffer *buffer)
{
	return buffer->device->caps & DEVBUF_CAP_LOCAL &&
	       !(buffer->flags & DEVBUF_CREATE_HOST);
}

/* What memory of the host can do, whichever device it was allocated for. */
#define DEVBUF_CAPS_OF_HOST	(DEVBUF_CAP_VIEWS | DEVBUF_CAP_COPY |	\
				 DEVBUF_CAP_MAP | DEVBUF_CAP_PINNABLE |	\
				 DEVBUF_CAP_EXPORT)

/**
 * struct devbuf_place - where memory lies, or will lie
 * @device: at which device
 * @local: in its own memory, or in the host's
 */
struct devbuf_place {
	struct devbuf_device *device;
	bool local;
};

static inline struct devbuf_place
devbuf_place_of_buffer(const struct devbuf_buffer *buffer)
{
	return (struct devbuf_place) {
		.device = buffer->device, .local = devbuf_buffer_is_local(buffer),
	};
}

/* What can be done with memory there: DEVBUF_CAP_* bits. */
static inline u64 devbuf_place_caps(struct devbuf_place place)
{
	u64 caps = place.device->caps;

	if (caps & DEVBUF_CAP_LOCAL && !place.local)
		caps |= DEVBUF_CAPS_OF_HOST;
	return caps;
}

/* What can be done with this buffer: DEVBUF_CAP_* bits. */
static inline u64 devbuf_buffer_caps(const struct devbuf_buffer *buffer)
{
	return devbuf_place_caps(devbuf_place_of_buffer(buffer));
}

void devbuf_buffer_get(struct devbuf_buffer *buffer);
void devbuf_buffer_put(struct devbuf_buffer *buffer);
void devbuf_buffer_drop_handle(struct devbuf_buffer *buffer);
struct devbuf_storage *devbuf_buffer_get_storage(struct devbuf_buffer *buffer);
int devbuf_ioctl_create(struct devbuf_command *cmd);
int devbuf_ioctl_view(struct devbuf_command *cmd);
int devbuf_ioctl_allocate(struct devbuf_command *cmd);
int devbuf_ioctl_deallocate(struct devbuf_command *cmd);
int devbuf_ioctl_destroy(struct devbuf_command *cmd);
int devbuf_ioctl_query(struct devbuf_command *cmd);
int devbuf_ioctl_set_name(struct devbuf_command *cmd);

/* ---- context.c: the table of ids ---- */

#define DEVBUF_RIGHTS_ALL	(DEVBUF_RIGHT_READ | DEVBUF_RIGHT_WRITE | \
				 DEVBUF_RIGHT_EXPORT | DEVBUF_RIGHT_MANAGE)

/**
 * struct devbuf_grant - what a handle allows
 * @rights: DEVBUF_RIGHT_* bits
 * @manages_base: may allocate the base by way of this view
 * @reach_start: first byte of the base that it reaches
 * @reach_end: the byte after the last
 */
struct devbuf_grant {
	u32 rights;
	bool manages_base;
	u64 reach_start;
	u64 reach_end;
};

/**
 * struct devbuf_context - one open of /dev/devbuf
 * @serial: tells contexts apart for as long as the module is loaded
 * @handles: id -> struct devbuf_handle; read under RCU
 * @all: the same, as a list; read under RCU
 * @lock: guards changes to both
 * @reuse: storages that it keeps
 * @requests_lock: guards @requests
 * @requests: commands that have not ended
 * @nr_waits: how many of those copy nothing
 * @queued_ranges: ranges that the others will copy
 * @queued_nbytes: bytes of those
 * @rcu: the shrinker may still touch the lock of @reuse, and jobs that end
 *	@requests_lock
 */
struct devbuf_context {
	u64 serial;
	struct rhashtable handles;
	struct list_head all;
	spinlock_t lock;	/* changes to handles and all */
	struct devbuf_reuse reuse;
	spinlock_t requests_lock;	/* requests */
	struct list_head requests;
	u32 nr_waits;
	u32 queued_ranges;
	u64 queued_nbytes;
	struct rcu_head rcu;
};

struct devbuf_context *devbuf_context_create(void);
void devbuf_context_close(struct devbuf_context *context);
struct devbuf_buffer *devbuf_context_find(struct devbuf_context *context, u64 id,
					  u32 rights, struct devbuf_grant *grant);
u32 devbuf_context_count(struct devbuf_context *context, u64 id);
void devbuf_context_usage(struct devbuf_context *context, u64 *handles,
			  u64 *nbytes);
int devbuf_context_insert(struct devbuf_context *context,
			  struct devbuf_buffer *buffer,
			  const struct devbuf_grant *grant);
int devbuf_context_drop(struct devbuf_context *context, u64 id,
			struct devbuf_buffer **last);
bool devbuf_grant_reaches_pages(const struct devbuf_grant *grant,
				const struct devbuf_buffer *buffer);

/* ---- dmabuf.c: export and import ---- */

/**
 * struct devbuf_export_info - what a dma_buf of ours is of
 * @entry: in the storage's list
 * @buffer: the buffer whose id an import gives
 * @storage: the memory
 * @dmabuf: the dma_buf, which owns this struct
 * @first_page: first page of the storage that it covers
 * @nr_pages: how many
 * @writable: importers may write
 */
struct devbuf_export_info {
	struct list_head entry;
	struct devbuf_buffer *buffer;
	struct devbuf_storage *storage;
	struct dma_buf *dmabuf;
	unsigned long first_page;
	unsigned long nr_pages;
	bool writable;
};

/* Where the export begins, in bytes from the storage's first page. */
static inline u64 devbuf_export_pos(const struct devbuf_export_info *export)
{
	return (u64)export->first_page << PAGE_SHIFT;
}

/* Does it cover any of the bytes from @start to @last? */
static inline bool devbuf_export_meets(const struct devbuf_export_info *export,
				       u64 start, u64 last)
{
	return start >> PAGE_SHIFT < export->first_page + export->nr_pages &&
	       last >> PAGE_SHIFT >= export->first_page;
}

void devbuf_exports_forget(struct devbuf_buffer *buffer);
void devbuf_exports_revoke(struct devbuf_storage *storage, unsigned long deadline);
int devbuf_ioctl_export(struct devbuf_command *cmd);
int devbuf_ioctl_import(struct devbuf_command *cmd);

/* ---- coherence.c: what devices and the CPU see of one memory ---- */

/**
 * struct devbuf_attachment - a device that can reach an export
 * @entry: in the storage's list
 * @export: through which
 * @dev: the importer's device
 * @sgt: the scatter list of the export's pages
 * @mapped: @sgt is mapped for DMA, in direction @dir
 * @dir: direction
 */
struct devbuf_attachment {
	struct list_head entry;
	struct devbuf_export_info *export;
	struct device *dev;
	struct sg_table sgt;
	bool mapped;
	enum dma_data_direction dir;
};

int devbuf_coherence_begin(struct devbuf_storage *storage, u64 pos, u64 nbytes);
int devbuf_coherence_wait(struct devbuf_storage *storage, u64 pos, u64 nbytes,
			  bool write);
void devbuf_coherence_end(struct devbuf_storage *storage, u64 pos, u64 nbytes,
			  bool write);
int devbuf_ioctl_sync(struct devbuf_command *cmd);

/* ---- mmap.c: mappings ---- */

int devbuf_mmap(struct file *file, struct vm_area_struct *vma);
pgprot_t devbuf_mmap_pgprot(const struct devbuf_storage *storage, pgprot_t prot);
int devbuf_mmap_storage(struct vm_area_struct *vma, struct devbuf_storage *storage,
			unsigned long first_page, bool writable);
void devbuf_mmap_revoke(struct devbuf_storage *storage);
int devbuf_mmap_open(void);
void devbuf_mmap_close(void);

/* ---- fence.c: fences, and sets of them ---- */

/**
 * struct devbuf_fence - the fence of a job
 * @base: what others see
 * @lock: of @base
 * @job: the job until it is finished; under RCU
 * @timeline: name of the device
 */
struct devbuf_fence {
	struct dma_fence base;
	spinlock_t lock;	/* base's */
	struct devbuf_job __rcu *job;
	char timeline[DEVBUF_DEVICE_NAME_MAX];
};

struct devbuf_fence *devbuf_fence_new(const struct devbuf_device *device);
bool devbuf_fence_is_ordered(struct dma_fence *base,
			     const struct devbuf_export_info *export);
int devbuf_fence_init(void);
void devbuf_fence_exit(void);

/**
 * struct devbuf_fences - a set of fences, referenced
 * @serial: marks the accesses whose fences are in it
 * @list: @few, or allocated
 * @nr: how many
 * @max: room
 * @few: for when there are few
 */
struct devbuf_fences {
	u64 serial;
	struct dma_fence **list;
	u32 nr;
	u32 max;
	struct dma_fence *few[4];
};

void devbuf_fences_init(struct devbuf_fences *fences);
void devbuf_fences_release(struct devbuf_fences *fences);
int devbuf_fences_reserve(struct devbuf_fences *fences, u32 nr);
void devbuf_fences_truncate(struct devbuf_fences *fences, u32 nr);
void devbuf_fences_unite(struct devbuf_fences *fences, u32 from);
int devbuf_fences_add_user(struct devbuf_fences *fences, u64 user_addr, u32 nr);
int devbuf_fences_wait(const struct devbuf_fences *fences);

/* Takes over the reference; there is room. */
static inline void devbuf_fences_add(struct devbuf_fences *fences,
				     struct dma_fence *fence)
{
	fences->list[fences->nr++] = fence;
}

/**
 * struct devbuf_gate_fence - a fence that keeps a gate closed
 * @cb: called when it signals
 * @fence: referenced
 * @gate: the gate
 * @pass_error: its error becomes the gate's
 */
struct devbuf_gate_fence {
	struct dma_fence_cb cb;
	struct dma_fence *fence;
	struct devbuf_gate *gate;
	bool pass_error;
};

/**
 * struct devbuf_gate - opens when all of its fences have signalled
 * @closed: how many have not
 * @list: the fences
 * @nr: how many there are
 * @error: the first error that counts; cmpxchg() by whoever has one
 * @open: called when it opens, unless that was at once. In any context, with the
 *	lock of the last fence held.
 */
struct devbuf_gate {
	atomic_t closed;
	struct devbuf_gate_fence *list;
	u32 nr;
	int error;
	void (*open)(struct devbuf_gate *gate);
};

int devbuf_gate_reserve(struct devbuf_gate *gate, u32 nr);
bool devbuf_gate_arm(struct devbuf_gate *gate, struct devbuf_fences *fences,
		     u32 nr_errors);
void devbuf_gate_stop(struct devbuf_gate *gate);
void devbuf_gate_release(struct devbuf_gate *gate);

/* ---- access.c: what jobs do to a storage ---- */

/**
 * struct devbuf_access - bytes that a job will read or write
 * @node: in the storage's tree; empty once a later write has taken its place
 * @start: first byte, from the beginning of the storage's first page
 * @last: last byte
 * @subtree_last: the tree's
 * @write: it writes
 * @storage: held by the job
 * @fence: the job's
 * @collected: the last set that @fence was added to; under the storage's lock
 */
struct devbuf_access {
	struct rb_node node;
	u64 start;
	u64 last;
	u64 subtree_last;
	bool write;
	struct devbuf_storage *storage;
	struct dma_fence *fence;
	u64 collected;
};

extern struct ww_class devbuf_storage_ww_class;

int devbuf_access_collect_jobs(struct devbuf_storage *storage, u64 start, u64 last,
			       bool write, struct devbuf_fences *fences);
int devbuf_access_collect_export(const struct devbuf_export_info *export, bool write,
				 struct devbuf_fences *fences);
int devbuf_access_collect(struct devbuf_storage *storage, u64 start, u64 last,
			  bool write, bool interruptible,
			  struct devbuf_fences *fences);
int devbuf_access_wait(struct devbuf_storage *storage, u64 start, u64 last,
		       bool write);
void devbuf_access_begin(struct devbuf_access *access);
void devbuf_access_end(struct devbuf_access *access);
int devbuf_access_publish_export(struct devbuf_storage *storage,
				 const struct devbuf_export_info *export);

/*
 * Nothing is queued on the storage and nothing exported: without a lock, as what
 * begins just now is not ordered against us.
 */
static inline bool devbuf_storage_is_idle(struct devbuf_storage *storage)
{
	/* Pairs with devbuf_access_end(). */
	return !atomic_read_acquire(&storage->queued) &&
	       list_empty_careful(&storage->exports);
}

/* ---- publish.c: a job becomes known ---- */

int devbuf_publish(struct devbuf_job *job, struct devbuf_fences *fences,
		   bool interruptible);

/* ---- pin.c: pages of the caller's ---- */

/**
 * struct devbuf_pins - pages that are pinned for a job
 * @list: the pages; neighbours share an entry
 * @nr: how many entries
 * @nr_pages: how many pages @user was charged for
 * @user: who was
 * @dirty: they are written to
 */
struct devbuf_pins {
	struct bio_vec *list;
	u32 nr;
	unsigned long nr_pages;
	struct user_struct *user;
	bool dirty;
};

struct user_struct *devbuf_pin_charge(unsigned long nr_pages);
void devbuf_pin_uncharge(struct user_struct *user, unsigned long nr_pages);
int devbuf_pins_add(struct devbuf_pins *pins, const struct devbuf_piece *pieces,
		    u32 nr, bool in, struct iov_iter *iters);
void devbuf_pins_uncharge(struct devbuf_pins *pins);
void devbuf_pins_release(struct devbuf_pins *pins);

/* ---- wait.c: WAIT ---- */

int devbuf_ioctl_wait(struct devbuf_command *cmd);

/* ---- piece.c, copy.c, transfer.c: moving bytes ---- */

/* Commands of up to this many ranges need no allocation. */
#define DEVBUF_COPY_FEW		4

/* Bytes that the CPU copies between two looks at signals, or at other jobs. */
#define DEVBUF_COPY_STEP	SZ_1M

/* Copies of up to this many bytes are done by who asks for them, if they can be. */
#define DEVBUF_COPY_SMALL	SZ_64K

/**
 * struct devbuf_end - one end of a copy, checked and held
 * @storage: the memory, referenced; NULL for the caller's
 * @id: the buffer, so that the next range of the same id needs no look-up
 * @buffer_nbytes: bytes of the buffer
 * @buffer_pos: where the buffer begins, in bytes from the storage's first page
 * @pos: where the range begins, likewise
 * @stage: how its bytes are reached, or NULL if it @stays
 */
struct devbuf_end {
	struct devbuf_storage *storage;
	u64 id;
	u64 buffer_nbytes;
	u64 buffer_pos;
	u64 pos;
	struct devbuf_stage *stage;
};

/**
 * struct devbuf_piece - a range on its way
 * @dst: where it goes
 * @src: where it comes from
 * @user_addr: the caller's bytes, if one of the ends is his
 * @nbytes: how many
 * @engine: how it goes
 * @dma: the end that is not the engine's, mapped for it; or NULL
 * @operation: for the device to do, or zero to copy
 * @queued: it is a job's, and does not end when the caller gets a signal
 */
struct devbuf_piece {
	struct devbuf_end dst;
	struct devbuf_end src;
	u64 user_addr;
	u64 nbytes;
	const struct devbuf_engine *engine;
	struct devbuf_dma_map *dma;
	u32 operation;
	bool queued;
};

/**
 * struct devbuf_engine - one way to get from here to there
 * @path: DEVBUF_PATH_*
 * @reason: why it cannot, or DEVBUF_REASON_NONE
 * @prepare: for memory that does not stay: what @copy needs, and that can fail:
 *	0, -ENOMEM, -EIO, -ENODEV, -EOPNOTSUPP or -EINVAL. Some of it may be shared
 *	with the piece before. What it made goes with the piece
 *	(devbuf_piece_release).
 * @copy: does it: the whole piece, or an error. In any thread, perhaps as a part
 *	of signalling fences.
 */
struct devbuf_engine {
	u32 path;
	u32 (*reason)(const struct devbuf_place *dst,
		      const struct devbuf_place *src);
	int (*prepare)(struct devbuf_piece *piece,
		       const struct devbuf_piece *previous);
	int (*copy)(const struct devbuf_piece *piece);
};

extern const struct devbuf_engine devbuf_device_engine;
extern const struct devbuf_engine devbuf_cpu_engine;

/* Does it take more than the CPU, which copies memory that stays? */
static inline bool devbuf_piece_is_slow(const struct devbuf_piece *piece)
{
	return piece->dst.stage || piece->src.stage ||
	       piece->engine != &devbuf_cpu_engine;
}

/**
 * struct devbuf_ends - ends that a command has looked up
 * @context: whose
 * @write: they are written to
 * @several: there is more than one, so that it is worth remembering them
 * @known: if @several: some of them, by the low bits of their id
 */
struct devbuf_ends {
	struct devbuf_context *context;
	bool write;
	bool several;
	const struct devbuf_end *known[8];
};

static inline void devbuf_ends_init(struct devbuf_ends *ends,
				    struct devbuf_context *context, u32 nr, bool write)
{
	ends->context = context;
	ends->write = write;
	ends->several = nr > 1;
	if (ends->several)
		memset(ends->known, 0, sizeof(ends->known));
}

int devbuf_end_resolve(struct devbuf_ends *ends, struct devbuf_end *end, u64 id,
		       u64 offset, u64 nbytes);
struct devbuf_storage *devbuf_range_hold(struct devbuf_context *context, u64 id,
					 u64 offset, u64 nbytes, u32 rights,
					 u64 *pos);
bool devbuf_piece_overlaps(const struct devbuf_piece *piece);
bool devbuf_piece_goes_down(const struct devbuf_piece *piece);
void devbuf_piece_release(const struct devbuf_piece *piece);
int devbuf_piece_begin(const struct devbuf_piece *piece);
int devbuf_piece_wait(const struct devbuf_piece *piece);
void devbuf_piece_end(const struct devbuf_piece *piece);
void devbuf_pieces_put(const struct devbuf_piece *pieces, u32 nr);
struct devbuf_piece *devbuf_pieces_read(struct devbuf_piece *few, u64 user_addr,
					u32 nr, size_t range_size,
					const void **ranges);
void devbuf_pieces_free(struct devbuf_piece *pieces, const struct devbuf_piece *few);
bool devbuf_copy_is_queued(const struct devbuf_command *cmd,
			   const struct devbuf_piece *pieces, u32 nr);
int devbuf_copy_check(const struct devbuf_command *cmd, u32 flags);
int devbuf_ioctl_copyin(struct devbuf_command *cmd);
int devbuf_ioctl_copyout(struct devbuf_command *cmd);
int devbuf_copy_slice(const struct devbuf_piece *piece, struct iov_iter *iter);
int devbuf_ioctl_path(struct devbuf_command *cmd);
int devbuf_ioctl_transfer(struct devbuf_command *cmd);

/* ---- stage.c: memory that the CPU cannot touch at any time ---- */

/* Most bytes of a stage, and so of one step by way of it. */
#define DEVBUF_STAGE_NBYTES	SZ_64K

/**
 * struct devbuf_stage - memory of the host by way of which other is reached
 * @ref: pieces
 * @device: of the memory that it serves; referenced
 * @vaddr: the stage
 * @nbytes: how long it is
 * @dma: the same, mapped for @device's engine; or NULL when the CPU goes on by
 *	itself
 */
struct devbuf_stage {
	refcount_t ref;
	struct devbuf_device *device;
	void *vaddr;
	u64 nbytes;
	struct devbuf_dma_map *dma;
};

int devbuf_stage_get(struct devbuf_end *end, u64 nbytes,
		     const struct devbuf_end *previous);
void devbuf_stage_put(struct devbuf_stage *stage);
int devbuf_stage_load(const struct devbuf_end *end, u64 pos, u64 nbytes);
int devbuf_stage_store(const struct devbuf_end *end, u64 pos, const void *from,
		       u64 nbytes);

/* How far the next step goes, of @rest bytes. */
static inline u64 devbuf_stage_step(const struct devbuf_end *end, u64 rest)
{
	return end->stage ? min(rest, end->stage->nbytes) : rest;
}

/* ---- dma.c: what engines reach ---- */

/**
 * struct devbuf_dma_map - memory that is mapped for an engine
 * @device: whose
 * @entry: in the device's list, while it is mapped; under its lock
 * @sgt: the memory
 * @dir: direction
 * @start: bytes from the first page of its storage to the first that is mapped
 * @peer: the device whose memory it is, if not the host's; referenced
 */
struct devbuf_dma_map {
	struct devbuf_device *device;
	struct list_head entry;
	struct sg_table sgt;
	enum dma_data_direction dir;
	u64 start;
	struct devbuf_device *peer;
};

bool devbuf_dma_reaches_all(struct device *dev);
bool devbuf_dma_reaches(const struct devbuf_device *device,
			const struct devbuf_place *host);
gfp_t devbuf_dma_zone(const struct devbuf_device *device);
bool devbuf_dma_reaches_page(const struct devbuf_device *device,
			     const struct page *page, unsigned int order);
struct devbuf_dma_map *devbuf_dma_map_pages(struct devbuf_device *device,
					    struct page **pages, u64 start,
					    u64 nbytes,
					    enum dma_data_direction dir);
void devbuf_dma_unmap(struct devbuf_dma_map *map);
void devbuf_dma_revoke(struct devbuf_device *device);
int devbuf_dma_run(const struct devbuf_dma_map *map, u64 pos,
		   struct devbuf_memory *mem, u64 offset, u64 nbytes,
		   bool to_device);
u32 devbuf_dma_peer_reason(const struct devbuf_device *device, struct device *dev);

/* ---- job.c: queued copies ---- */

/**
 * struct devbuf_job - a copy that is queued
 * @ref: who runs it, and the ring that will be told of its end
 * @rcu: it may be read by way of its fence
 * @request: for CANCEL, and the ring
 * @gate: opens when it may begin; @gate.error is the first error there was
 * @fence: signals its end
 * @device: runs it; referenced
 * @pieces: what to do
 * @nr_pieces: how many
 * @iters: of a copy: the caller's bytes of each piece that are not handed out
 * @pins: where those lie
 * @accesses: what it does to which storage: no two of a kind meet
 * @nr_accesses: how many; none without implicit ordering
 * @storages: each storage once
 * @nr_storages: how many
 * @queue_entry: in the queue; under its lock, like what follows
 * @piece: the present piece
 * @offset: bytes of it that are handed out
 * @rest_nbytes: bytes of all pieces that are not
 * @running: slices that are being run
 * @begun: it was not given up before it began
 * @prepared: and the CPU may touch the memory
 * @over: nothing is left to do
 * @done_nbytes: bytes copied
 * @path: the last path in their list that was taken
 * @signalling: of dma_fence_begin_signalling(), until it is started
 * @reap_work: lets go of it once it is finished
 */
struct devbuf_job {
	struct kref ref;
	struct rcu_head rcu;
	struct devbuf_request request;
	struct devbuf_gate gate;
	struct devbuf_fence *fence;
	struct devbuf_device *device;
	struct devbuf_piece *pieces;
	u32 nr_pieces;
	struct iov_iter *iters;
	struct devbuf_pins pins;
	struct devbuf_access *accesses;
	u32 nr_accesses;
	struct devbuf_storage **storages;
	u32 nr_storages;

	struct list_head queue_entry;
	u32 piece;
	u64 offset;
	u64 rest_nbytes;
	u32 running;
	bool begun;
	bool prepared;
	bool over;
	u64 done_nbytes;
	u32 path;
	bool signalling;
	struct work_struct reap_work;
};

int devbuf_job_queue(struct devbuf_command *cmd, const struct devbuf_piece *pieces,
		     u32 nr);
bool devbuf_job_touches(const struct devbuf_job *job,
			const struct devbuf_export_info *export, bool *write);
void devbuf_job_finish(struct devbuf_job *job);
void devbuf_job_reap(struct devbuf_job *job);
int devbuf_jobs_init(void);
void devbuf_jobs_exit(void);

/* ---- slice.c: what one thread does of a job at a time ---- */

/**
 * struct devbuf_slice - a part of a job, for one thread
 * @piece: what to copy, if it has any bytes
 * @iter: the caller's bytes
 * @begins: to be run before any other, and instead of copying
 */
struct devbuf_slice {
	struct devbuf_piece piece;
	struct iov_iter iter;
	bool begins;
};

bool devbuf_job_take(struct devbuf_job *job, struct devbuf_slice *slice);
void devbuf_job_run_slice(struct devbuf_job *job, struct devbuf_slice *slice);
bool devbuf_job_put_back(struct devbuf_job *job, const struct devbuf_slice *slice);

/* ---- stats.c: what /proc tells ---- */

void devbuf_show_fdinfo(struct seq_file *m, struct file *file);

/* ---- memory/: one file per kind of memory ---- */

int devbuf_pages_alloc(struct devbuf_memory *mem, int node,
		       const struct devbuf_device *reachable_by);
void devbuf_pages_free(struct devbuf_memory *mem);
struct page *devbuf_pages_alloc_one(const struct devbuf_device *device,
				    unsigned int *order);
int devbuf_system_register(void);
void devbuf_system_unregister(void);
int devbuf_userptr_register(void);
void devbuf_userptr_unregister(void);

#endif /* DEVBUF_PRIVATE_H */
