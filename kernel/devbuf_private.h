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
 * Who holds whom (references; an arrow keeps its target alive):
 *
 *	handle  -> buffer		until DESTROY or close
 *	view    -> base			for life
 *	buffer  -> device		for life
 *	buffer  -> storage		from ALLOCATE to DEALLOCATE, base and view
 *	storage -> device, provider's module	for life
 *	export  -> buffer, storage	until its dma_buf is released
 *	mapping -> pseudo-file -> storage	until munmap
 *	running copy -> storage		while it runs
 *
 *	buffer  -> exports		while an id names it, and it is allocated
 *
 * Only the last of these points upward, and so makes a circle: it is broken when
 * the last handle goes (devbuf_buffer_drop_handle), and at DEALLOCATE. One
 * pointer is weak: devbuf_storage.file, which the file's own release clears, and
 * which is followed under the storage's lock.
 *
 * Lock order, outermost first. Nothing of this is held across an access to
 * user memory.
 *
 *	mmap_lock, dma_resv		taken by callers of ours
 *	devbuf_buffer.lock		a base's: its storage and its views'
 *	devbuf_storage.lock		exports, attachments, pseudo-file
 *	-- reclaim may enter here: allocations are made under those above --
 *	devbuf_context.lock		changes to handles
 *	list_lru lock			the shrinker's list
 *	devbuf_reuse.lock		kept storages of a context
 *
 * Looking an id up takes none: RCU and a reference (context.c, buffer.c).
 */
#ifndef DEVBUF_PRIVATE_H
#define DEVBUF_PRIVATE_H

#include <linux/atomic.h>
#include <linux/dma-direction.h>
#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/devbuf.h>

#include "compat/compat.h"

struct devbuf_buffer;
struct devbuf_context;
struct dma_buf;
struct seq_file;

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
 * @arg: the driver's copy; its @out_* members begin as zero
 */
struct devbuf_command {
	struct devbuf_context *context;
	void __user *user;
	u32 user_size;
	const struct devbuf_command_row *row;
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
	} arg;
};

int devbuf_command_reply(struct devbuf_command *cmd);

/* ---- device.c: the registry ---- */

/**
 * struct devbuf_device - where memory comes from
 * @ref: buffers, storages and the registry
 * @entry: in the registry; under its lock
 * @cursor: place in the walk of DEVICE_INFO: never used again
 * @gone: unregistered; set under the registry's lock
 * @desc: as registered; what it points to is there while @owner is held
 * @owner: the module of the callbacks
 * @caps: DEVBUF_CAP_* bits
 * @prefix_len: bytes of @name before the colon
 * @name: "PREFIX:N", zeros to the end
 */
struct devbuf_device {
	struct kref ref;
	struct list_head entry;
	u64 cursor;
	bool gone;
	struct devbuf_device_desc desc;
	struct module *owner;
	u64 caps;
	size_t prefix_len;
	char name[DEVBUF_DEVICE_NAME_MAX];
};

struct devbuf_device *devbuf_device_find(const char *name);
void devbuf_device_put(struct devbuf_device *device);
int devbuf_device_enter(struct devbuf_device *device);
void devbuf_device_leave(struct devbuf_device *device);
bool devbuf_device_same_prefix(const struct devbuf_device *a,
			       const struct devbuf_device *b);
int devbuf_ioctl_device_info(struct devbuf_command *cmd);

/* ---- storage.c: lifetime of memory ---- */

/**
 * struct devbuf_storage - memory of a device
 * @mem: the memory; does not change
 * @device: its device
 * @ref: who uses it. Zero while it is kept for reuse or being freed, so that a
 *	look-up that comes too late cannot take it (devbuf_buffer_get_storage).
 * @rcu: the struct itself stays for an RCU grace period
 * @lock: guards @exports, @attachments and @file
 * @exports: every dma-buf of it, by rising serial
 * @last_export: serial of the last
 * @attachments: every attachment of every export
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
	refcount_t ref;
	struct rcu_head rcu;

	struct mutex lock;	/* exports, attachments, file */
	struct list_head exports;
	u64 last_export;
	struct list_head attachments;
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
int devbuf_storage_init(void);
void devbuf_storage_exit(void);

/**
 * devbuf_storage_span - a piece of memory that the CPU can copy in one go
 * @storage: page-backed memory
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

/* Bytes between the beginning of the first page and the end of the last. */
static inline u64 devbuf_storage_pages_nbytes(const struct devbuf_storage *storage)
{
	return (u64)storage->mem.nr_pages << PAGE_SHIFT;
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
 * @rcu: the shrinker may still touch the lock of @reuse
 */
struct devbuf_context {
	u64 serial;
	struct rhashtable handles;
	struct list_head all;
	spinlock_t lock;	/* changes to handles and all */
	struct devbuf_reuse reuse;
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
 * @serial: its place there
 * @buffer: the buffer whose id an import gives
 * @storage: the memory
 * @dmabuf: the dma_buf, which owns this struct
 * @first_page: first page of the storage that it covers
 * @nr_pages: how many
 * @writable: importers may write
 */
struct devbuf_export_info {
	struct list_head entry;
	u64 serial;
	struct devbuf_buffer *buffer;
	struct devbuf_storage *storage;
	struct dma_buf *dmabuf;
	unsigned long first_page;
	unsigned long nr_pages;
	bool writable;
};

void devbuf_exports_forget(struct devbuf_buffer *buffer);
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

int devbuf_coherence_begin(struct devbuf_storage *storage, u64 pos, u64 nbytes,
			   bool write);
void devbuf_coherence_end(struct devbuf_storage *storage, u64 pos, u64 nbytes,
			  bool write);
int devbuf_ioctl_sync(struct devbuf_command *cmd);

/* ---- mmap.c: mappings ---- */

int devbuf_mmap(struct file *file, struct vm_area_struct *vma);
pgprot_t devbuf_mmap_pgprot(const struct devbuf_storage *storage, pgprot_t prot);
int devbuf_mmap_open(void);
void devbuf_mmap_close(void);

/* ---- copy.c, transfer.c: moving bytes ---- */

/* Commands of up to this many ranges need no allocation. */
#define DEVBUF_COPY_FEW		4

/* Bytes that the CPU copies between two looks at signals. */
#define DEVBUF_COPY_STEP	SZ_1M

int devbuf_ioctl_copyin(struct devbuf_command *cmd);
int devbuf_ioctl_copyout(struct devbuf_command *cmd);
int devbuf_ioctl_path(struct devbuf_command *cmd);
int devbuf_ioctl_transfer(struct devbuf_command *cmd);

/**
 * struct devbuf_end - one end of a copy, checked and held
 * @storage: the memory, referenced
 * @id: the buffer, so that the next range of the same id needs no look-up
 * @buffer_nbytes: bytes of the buffer
 * @buffer_pos: where the buffer begins, in bytes from the storage's first page
 * @pos: where the range begins, likewise
 */
struct devbuf_end {
	struct devbuf_storage *storage;
	u64 id;
	u64 buffer_nbytes;
	u64 buffer_pos;
	u64 pos;
};

int devbuf_end_resolve(struct devbuf_context *context, struct devbuf_end *end,
		       const struct devbuf_end *previous, u64 id, u64 offset,
		       u64 nbytes, bool write);

/* ---- stats.c: what /proc tells ---- */

void devbuf_show_fdinfo(struct seq_file *m, struct file *file);

/* ---- memory/: one file per kind of memory ---- */

int devbuf_system_register(void);
void devbuf_system_unregister(void);
int devbuf_userptr_register(void);
void devbuf_userptr_unregister(void);

#endif /* DEVBUF_PRIVATE_H */
