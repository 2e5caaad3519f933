// SPDX-License-Identifier: GPL-2.0-only
/*
 * A storage: memory of a device, from its allocation to the last of its users.
 */
#include <linux/io.h>
#include <linux/list_lru.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "devbuf_private.h"

static struct kmem_cache *devbuf_storage_cache;

static void devbuf_storage_free_rcu(struct rcu_head *rcu)
{
	kmem_cache_free(devbuf_storage_cache,
			container_of(rcu, struct devbuf_storage, rcu));
}

static void devbuf_storage_fini_locks(struct devbuf_storage *storage)
{
	mutex_destroy(&storage->sync_lock);
	ww_mutex_destroy(&storage->lock);
}

/*
 * The end of a storage that nobody holds, and nobody can find. May run inside
 * reclaim (reuse.c): takes no lock under which anybody allocates, allocates
 * nothing. The module is held by whoever calls us, or waits for us on its way out
 * (devbuf_storage_exit).
 */
void devbuf_storage_free(struct devbuf_storage *storage)
{
	struct devbuf_device *device = storage->device;

	WARN_ON_ONCE(!list_empty(&storage->exports) || storage->file);
	if (devbuf_storage_is_of_host(storage))
		devbuf_pages_free(&storage->mem);
	else
		devbuf_device_free_memory(device, storage);
	devbuf_device_put(device);
	devbuf_storage_fini_locks(storage);
	call_rcu(&storage->rcu, devbuf_storage_free_rcu);
}

void devbuf_storage_get(struct devbuf_storage *storage)
{
	refcount_inc(&storage->ref);
}

/* May sleep. */
void devbuf_storage_put(struct devbuf_storage *storage)
{
	if (refcount_dec_and_test(&storage->ref))
		devbuf_storage_free(storage);
}

/**
 * devbuf_storage_revoke - the device goes: give it its memory back
 * @storage: whose memory it is; in no list of the device's, which is gone and
 *	which nobody can enter
 * @deadline: in jiffies; importers are not waited for beyond it
 */
void devbuf_storage_revoke(struct devbuf_storage *storage, unsigned long deadline)
{
	devbuf_mmap_revoke(storage);
	devbuf_exports_revoke(storage, deadline);
	devbuf_device_give_back(storage->device, storage);
}

/* Ask the device for memory; it is entered. */
static int devbuf_storage_fill(struct devbuf_storage *storage,
			       const struct devbuf_buffer *base)
{
	struct devbuf_device *device = storage->device;
	struct devbuf_memory *mem = &storage->mem;
	u64 nbytes = base->nbytes;
	int ret;

	storage->local = devbuf_buffer_is_local(base);
	if (devbuf_storage_is_of_host(storage)) {
		storage->stays = true;
		return devbuf_pages_alloc(mem, device->desc.numa_node, device);
	}
	storage->stays = device->permanent;
	ret = device->desc.ops->alloc(device, mem);
	if (ret)
		return ret;
	devbuf_device_add_memory(device, storage);
	/* Memory that the CPU cannot map may be of any length. */
	if (mem->nr_pages)
		nbytes = devbuf_base_skew(base) + nbytes;
	if (WARN_ON_ONCE(devbuf_storage_nbytes(storage) < nbytes ||
			 (mem->nr_pages && !mem->pages && !mem->iomem))) {
		devbuf_device_free_memory(device, storage);
		return -EIO;
	}
	return 0;
}

static struct devbuf_storage *devbuf_storage_new(struct devbuf_context *context,
						 struct devbuf_buffer *base)
{
	struct devbuf_device *device = base->device;
	struct devbuf_storage *storage;
	int ret;

	/* From this cache, and so: what makes list_lru_add() fit the memcg. */
	storage = kmem_cache_alloc_lru(devbuf_storage_cache, &devbuf_reuse_lru,
				       DEVBUF_GFP | __GFP_ZERO);
	if (!storage)
		return ERR_PTR(-ENOMEM);
	storage->mem.nbytes = base->nbytes;
	storage->mem.user_addr = base->user_addr;
	storage->mem.alignment = base->alignment;
	storage->mem.flags = base->flags;
	storage->device = device;
	INIT_LIST_HEAD(&storage->device_entry);
	refcount_set(&storage->ref, 1);
	ww_mutex_init(&storage->lock, &devbuf_storage_ww_class);
	mutex_init(&storage->sync_lock);
	spin_lock_init(&storage->accesses_lock);
	storage->accesses[false] = RB_ROOT_CACHED;
	storage->accesses[true] = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&storage->exports);
	INIT_LIST_HEAD(&storage->attachments);
	INIT_HLIST_NODE(&storage->reuse_entry);
	INIT_LIST_HEAD(&storage->reuse_order);
	INIT_LIST_HEAD(&storage->lru);
	if (base->flags & DEVBUF_CREATE_REUSE)
		storage->reuse_serial = context->serial;

	ret = -ENODEV;
	if (devbuf_device_enter(device)) {
		ret = devbuf_storage_fill(storage, base);
		/* Once the device can see it, it may take the memory back. */
		devbuf_device_leave(device);
	}
	if (ret) {
		devbuf_storage_fini_locks(storage);
		kmem_cache_free(devbuf_storage_cache, storage);
		return ERR_PTR(ret);
	}
	kref_get(&device->ref);
	return storage;
}

/*
 * Behind the end of the base there are zeros, whatever a mapping wrote there:
 * whoever gets whole pages gets these too.
 */
static void devbuf_storage_zero_tail(struct devbuf_storage *storage)
{
	u64 nbytes = devbuf_storage_nbytes(storage) - storage->mem.nbytes;
	void *tail;

	if (!nbytes || (!storage->stays && !devbuf_device_enter(storage->device)))
		return;
	if (storage->mem.iomem) {
		memset_io(storage->mem.iomem + storage->mem.nbytes, 0, nbytes);
	} else {
		tail = devbuf_storage_span(storage, storage->mem.nbytes, &nbytes);
		memset(tail, 0, nbytes);
	}
	if (!storage->stays)
		devbuf_device_leave(storage->device);
}

/**
 * devbuf_storage_alloc - memory for a base
 * @context: who asks; what it keeps is used, or given up, before this fails
 * @base: for which buffer
 * @reused: set to whether it holds old bytes of this context
 *
 * Return: the storage, with one reference, or an error of
 * devbuf_device_ops.alloc, -ENODEV or -ENOMEM.
 */
struct devbuf_storage *devbuf_storage_alloc(struct devbuf_context *context,
					    struct devbuf_buffer *base,
					    bool *reused)
{
	struct devbuf_storage *storage;

	*reused = false;
	if (devbuf_device_is_gone(base->device))
		return ERR_PTR(-ENODEV);
	if (base->flags & DEVBUF_CREATE_REUSE) {
		storage = devbuf_reuse_take(&context->reuse, base);
		if (storage) {
			devbuf_storage_zero_tail(storage);
			*reused = true;
			return storage;
		}
	}
	storage = devbuf_storage_new(context, base);
	if (storage == ERR_PTR(-ENOMEM) && devbuf_reuse_flush(&context->reuse))
		storage = devbuf_storage_new(context, base);
	return storage;
}

int devbuf_storage_init(void)
{
	int ret;

	devbuf_storage_cache = KMEM_CACHE(devbuf_storage, SLAB_ACCOUNT);
	if (!devbuf_storage_cache)
		return -ENOMEM;
	ret = devbuf_reuse_register();
	if (ret)
		kmem_cache_destroy(devbuf_storage_cache);
	return ret;
}

void devbuf_storage_exit(void)
{
	devbuf_reuse_unregister();
	/* Storages on their way out (devbuf_storage_free). */
	rcu_barrier();
	kmem_cache_destroy(devbuf_storage_cache);
}
