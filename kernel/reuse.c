// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reuse: memory that a context keeps from a deallocated buffer for its next
 * one, old bytes and all.
 *
 * Only memory that nobody else holds is kept. A kept storage has a reference
 * count of zero, so no late look-up can take it; its pages are referenced by us
 * alone, since what was pinned by direct I/O, io_uring or RDMA stays in use
 * after the mapping is gone.
 *
 * What is kept is still charged to whoever allocated it, so the shrinker is
 * told of cgroups, and a storage is given out again only to the cgroup that
 * pays for it.
 */
#include <linux/hash.h>
#include <linux/list_lru.h>
#include <linux/memcontrol.h>
#include <linux/moduleparam.h>
#include <linux/shrinker.h>

#include "devbuf_private.h"

static unsigned int devbuf_reuse_limit_mib = 256;
module_param_named(reuse_limit_mib, devbuf_reuse_limit_mib, uint, 0644);
MODULE_PARM_DESC(reuse_limit_mib,
		 "Most MiB that one context keeps for reuse; 0 keeps nothing (default: 256)");

/* Most storages that one context keeps: lists are walked under a spinlock. */
#define DEVBUF_REUSE_MAX	1024

struct list_lru devbuf_reuse_lru;
static struct shrinker *devbuf_reuse_shrinker;

void devbuf_reuse_init(struct devbuf_reuse *reuse)
{
	spin_lock_init(&reuse->lock);
	hash_init(reuse->hash);
	INIT_LIST_HEAD(&reuse->order);
}

static u32 devbuf_reuse_key(const struct devbuf_device *device, u64 nbytes)
{
	return hash_64(nbytes ^ device->cursor, 32);
}

/* Is our reference the only one on every page? */
static bool devbuf_reuse_sole_owner(const struct devbuf_memory *mem)
{
	unsigned long i = 0;

	while (mem->pages && i < mem->nr_pages) {
		struct folio *folio = page_folio(mem->pages[i]);

		if (folio_ref_count(folio) != 1)
			return false;
		i += folio_nr_pages(folio);
	}
	return true;
}

/* Does @cgroup pay for it? The root, which pays for nothing, is NULL. */
static bool devbuf_reuse_charged_to(const struct devbuf_storage *storage,
				    const struct mem_cgroup *cgroup)
{
	const struct devbuf_memory *mem = &storage->mem;
	bool same;

	/* Nobody pays for a device's own memory. */
	if (storage->local)
		return true;
	rcu_read_lock();
	same = folio_memcg(page_folio(mem->pages[0])) == cgroup;
	rcu_read_unlock();
	return same;
}

/*
 * Take a kept storage out of its context's hands. Whoever does this owns it:
 * an allocation, a context that keeps too much, or the shrinker.
 */
static void devbuf_reuse_unlink(struct devbuf_storage *storage)
{
	struct devbuf_reuse *reuse = storage->reuse;

	lockdep_assert_held(&reuse->lock);
	hash_del(&storage->reuse_entry);
	list_del(&storage->reuse_order);
	reuse->count--;
	WRITE_ONCE(reuse->nbytes,
		   reuse->nbytes - devbuf_storage_nbytes(storage));
}

/* Move the oldest to @dispose until no more than these are kept. */
static void devbuf_reuse_trim(struct devbuf_reuse *reuse, unsigned int count,
			      u64 nbytes, struct list_head *dispose)
{
	struct devbuf_storage *storage;

	lockdep_assert_held(&reuse->lock);
	while (reuse->count > count || reuse->nbytes > nbytes) {
		storage = list_first_entry(&reuse->order, struct devbuf_storage,
					   reuse_order);
		devbuf_reuse_unlink(storage);
		list_add(&storage->reuse_order, dispose);
	}
}

static void devbuf_reuse_free_list(struct list_head *dispose)
{
	struct devbuf_storage *storage, *next;

	list_for_each_entry_safe(storage, next, dispose, reuse_order) {
		list_lru_del_obj(&devbuf_reuse_lru, &storage->lru);
		devbuf_storage_free(storage);
	}
}

/**
 * devbuf_reuse_flush - give everything back
 * @reuse: of which context
 *
 * Return: whether there was anything.
 */
bool devbuf_reuse_flush(struct devbuf_reuse *reuse)
{
	LIST_HEAD(dispose);
	bool any;

	spin_lock(&reuse->lock);
	devbuf_reuse_trim(reuse, 0, 0, &dispose);
	spin_unlock(&reuse->lock);
	any = !list_empty(&dispose);
	devbuf_reuse_free_list(&dispose);
	return any;
}

static bool devbuf_reuse_fits(const struct devbuf_storage *storage,
			      const struct devbuf_buffer *base,
			      const struct mem_cgroup *cgroup)
{
	return storage->device == base->device &&
	       storage->mem.nbytes == base->nbytes &&
	       storage->mem.flags == base->flags &&
	       storage->mem.alignment == base->alignment &&
	       devbuf_reuse_charged_to(storage, cgroup);
}

static struct devbuf_storage *devbuf_reuse_find(struct devbuf_reuse *reuse,
						const struct devbuf_buffer *base,
						const struct mem_cgroup *cgroup)
{
	struct devbuf_storage *storage;

	lockdep_assert_held(&reuse->lock);
	hash_for_each_possible(reuse->hash, storage, reuse_entry,
			       devbuf_reuse_key(base->device, base->nbytes))
		if (devbuf_reuse_fits(storage, base, cgroup))
			return storage;
	return NULL;
}

/**
 * devbuf_reuse_take - a kept storage that would do for a base
 * @reuse: of which context
 * @base: for which buffer
 *
 * Return: the storage, with one reference, or NULL.
 */
struct devbuf_storage *devbuf_reuse_take(struct devbuf_reuse *reuse,
					 const struct devbuf_buffer *base)
{
	struct mem_cgroup *cgroup = get_mem_cgroup_from_mm(current->mm);
	bool root = !cgroup || !parent_mem_cgroup(cgroup);
	struct devbuf_storage *storage;

	spin_lock(&reuse->lock);
	storage = devbuf_reuse_find(reuse, base, root ? NULL : cgroup);
	if (storage) {
		devbuf_reuse_unlink(storage);
		WRITE_ONCE(reuse->hits, reuse->hits + 1);
	} else {
		WRITE_ONCE(reuse->misses, reuse->misses + 1);
	}
	spin_unlock(&reuse->lock);
	mem_cgroup_put(cgroup);

	if (storage) {
		list_lru_del_obj(&devbuf_reuse_lru, &storage->lru);
		refcount_set(&storage->ref, 1);
	}
	return storage;
}

static bool devbuf_reuse_keep(struct devbuf_reuse *reuse,
			      struct devbuf_storage *storage)
{
	struct devbuf_device *device = storage->device;
	u64 limit = (u64)READ_ONCE(devbuf_reuse_limit_mib) << 20;
	u64 nbytes = devbuf_storage_nbytes(storage);
	LIST_HEAD(dispose);
	bool sole;

	if (nbytes > limit || !devbuf_device_enter(storage->device))
		return false;
	/* From here on no look-up can take it (devbuf_buffer_get_storage). */
	sole = refcount_dec_if_one(&storage->ref);
	if (sole && !devbuf_reuse_sole_owner(&storage->mem)) {
		refcount_set(&storage->ref, 1);
		sole = false;
	}
	if (!sole) {
		devbuf_device_leave(storage->device);
		return false;
	}

	/* The shrinker passes by what is in its list, but not in the hash. */
	storage->reuse = reuse;
	list_lru_add_obj(&devbuf_reuse_lru, &storage->lru);

	spin_lock(&reuse->lock);
	devbuf_reuse_trim(reuse, DEVBUF_REUSE_MAX - 1, limit - nbytes, &dispose);
	reuse->count++;
	WRITE_ONCE(reuse->nbytes, reuse->nbytes + nbytes);
	hash_add(reuse->hash, &storage->reuse_entry,
		 devbuf_reuse_key(storage->device, storage->mem.nbytes));
	list_add_tail(&storage->reuse_order, &reuse->order);
	spin_unlock(&reuse->lock);
	/* From here on whoever unregisters the device finds it in the list. */
	devbuf_device_leave(device);
	devbuf_reuse_free_list(&dispose);
	return true;
}

/**
 * devbuf_reuse_keep_or_put - the end of a buffer's use of its storage
 * @context: in which it ended
 * @storage: the caller's reference, which this consumes
 */
void devbuf_reuse_keep_or_put(struct devbuf_context *context,
			      struct devbuf_storage *storage)
{
	if (storage->reuse_serial == context->serial &&
	    devbuf_reuse_keep(&context->reuse, storage))
		return;
	devbuf_storage_put(storage);
}

/*
 * The shrinker counts in units of which a storage is this many: with storages
 * themselves as the unit, few but large ones would round to none.
 */
#define DEVBUF_REUSE_WEIGHT	128

static unsigned long devbuf_reuse_count(struct shrinker *shrinker,
					struct shrink_control *sc)
{
	unsigned long count = list_lru_shrink_count(&devbuf_reuse_lru, sc);

	return count ? count * DEVBUF_REUSE_WEIGHT : SHRINK_EMPTY;
}

/**
 * struct devbuf_reuse_search - what is looked for in the list of what is kept
 * @device: memory of this device; or NULL for any
 * @dispose: list to move it to
 */
struct devbuf_reuse_search {
	const struct devbuf_device *device;
	struct list_head dispose;
};

/*
 * The context cannot go away: before it does, it takes each of its storages out
 * of the list, which needs the lock that we are called with.
 */
static enum lru_status devbuf_reuse_isolate(struct list_head *item,
					    struct list_lru_one *list,
					    spinlock_t *lru_lock, void *data)
{
	struct devbuf_reuse_search *search = data;
	struct devbuf_storage *storage =
		container_of(item, struct devbuf_storage, lru);
	struct devbuf_reuse *reuse = storage->reuse;
	enum lru_status status = LRU_SKIP;

	if (search->device && search->device != storage->device)
		return LRU_SKIP;
	spin_lock(&reuse->lock);
	/* Else it is on its way in, or somebody took it: his to remove. */
	if (hash_hashed(&storage->reuse_entry)) {
		devbuf_reuse_unlink(storage);
		list_lru_isolate(list, item);
		list_add(&storage->reuse_order, &search->dispose);
		status = LRU_REMOVED;
	}
	spin_unlock(&reuse->lock);
	return status;
}

/**
 * devbuf_reuse_forget - give back everything of a device, whoever keeps it
 * @device: gone, and nobody is in it, so that nothing is added
 */
void devbuf_reuse_forget(struct devbuf_device *device)
{
	struct devbuf_reuse_search search = { .device = device };

	INIT_LIST_HEAD(&search.dispose);
	list_lru_walk(&devbuf_reuse_lru, devbuf_reuse_isolate, &search, ULONG_MAX);
	devbuf_reuse_free_list(&search.dispose);
}

static unsigned long devbuf_reuse_scan(struct shrinker *shrinker,
				       struct shrink_control *sc)
{
	struct devbuf_reuse_search search = { };
	unsigned long freed;

	INIT_LIST_HEAD(&search.dispose);
	sc->nr_to_scan = DIV_ROUND_UP(sc->nr_to_scan, DEVBUF_REUSE_WEIGHT);
	freed = list_lru_shrink_walk(&devbuf_reuse_lru, sc,
				     devbuf_reuse_isolate, &search);
	devbuf_reuse_free_list(&search.dispose);
	return freed ? freed * DEVBUF_REUSE_WEIGHT : SHRINK_STOP;
}

int devbuf_reuse_register(void)
{
	int ret;

	devbuf_reuse_shrinker = devbuf_shrinker_alloc("devbuf-reuse",
						      DEVBUF_REUSE_WEIGHT,
						      devbuf_reuse_count,
						      devbuf_reuse_scan);
	if (!devbuf_reuse_shrinker)
		return -ENOMEM;
	ret = list_lru_init_memcg(&devbuf_reuse_lru, devbuf_reuse_shrinker);
	if (ret) {
		devbuf_shrinker_free(devbuf_reuse_shrinker);
		return ret;
	}
	devbuf_shrinker_start(devbuf_reuse_shrinker);
	return 0;
}

void devbuf_reuse_unregister(void)
{
	devbuf_shrinker_free(devbuf_reuse_shrinker);
	list_lru_destroy(&devbuf_reuse_lru);
}
