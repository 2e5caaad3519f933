// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accesses: which bytes of a storage the queued jobs will read and write.
 *
 * Two jobs that touch the same byte, one of them writing it, run in the order in
 * which they were published. A job is published on all of its storages, and in
 * the reservations of all exports that it touches, in one step: whoever sees it
 * anywhere sees it everywhere. So of two jobs one is first, and no circle of
 * jobs can wait for each other.
 *
 * A storage remembers its accesses in two interval trees, of reads and of writes,
 * since who reads need not look at other reads. A write that covers an older
 * access takes its place, as it waits for that one itself: so a chain of jobs on
 * the same bytes costs each of them one look, and not one for each link.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/interval_tree_generic.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "devbuf_private.h"

DEFINE_WW_CLASS(devbuf_storage_ww_class);

#define DEVBUF_ACCESS_START(access)	((access)->start)
#define DEVBUF_ACCESS_LAST(access)	((access)->last)

INTERVAL_TREE_DEFINE(struct devbuf_access, node, u64, subtree_last,
		     DEVBUF_ACCESS_START, DEVBUF_ACCESS_LAST, static,
		     devbuf_access_tree)

/*
 * Add the fences of the accesses in one tree, each access once for each set. The
 * storage's lock is held, so that nobody else puts marks on them.
 */
static int devbuf_access_collect_tree(struct devbuf_storage *storage, bool writes,
				      u64 start, u64 last,
				      struct devbuf_fences *fences)
{
	struct rb_root_cached *tree = &storage->accesses[writes];
	struct devbuf_access *access;
	u32 nr;
	int ret;

	for (;;) {
		nr = 0;
		spin_lock(&storage->accesses_lock);
		for (access = devbuf_access_tree_iter_first(tree, start, last); access;
		     access = devbuf_access_tree_iter_next(access, start, last))
			nr += access->collected != fences->serial;
		if (fences->max - fences->nr >= nr)
			break;
		spin_unlock(&storage->accesses_lock);
		ret = devbuf_fences_reserve(fences, nr);
		if (ret)
			return ret;
	}
	for (access = devbuf_access_tree_iter_first(tree, start, last); access;
	     access = devbuf_access_tree_iter_next(access, start, last))
		if (access->collected != fences->serial) {
			access->collected = fences->serial;
			devbuf_fences_add(fences, dma_fence_get(access->fence));
		}
	spin_unlock(&storage->accesses_lock);
	return 0;
}

/**
 * devbuf_access_collect_jobs - the jobs that must be over before an access
 * @storage: the memory; its lock is held
 * @start: first byte, from the beginning of the first page
 * @last: last byte
 * @write: they will be written
 * @fences: the set to add to
 *
 * Return: 0 or -ENOMEM.
 */
int devbuf_access_collect_jobs(struct devbuf_storage *storage, u64 start, u64 last,
			       bool write, struct devbuf_fences *fences)
{
	int ret;

	if (!atomic_read(&storage->queued))
		return 0;
	ret = devbuf_access_collect_tree(storage, true, start, last, fences);
	if (!ret && write)
		ret = devbuf_access_collect_tree(storage, false, start, last, fences);
	return ret;
}

/**
 * devbuf_access_collect_export - what others have put into a reservation
 * @export: the export; its storage's lock is held
 * @write: what it covers will be written
 * @fences: the set to add to
 *
 * Return: 0, -ENOMEM or -EINTR.
 */
int devbuf_access_collect_export(const struct devbuf_export_info *export, bool write,
				 struct devbuf_fences *fences)
{
	struct dma_resv *resv = export->dmabuf->resv;
	struct dma_resv_iter cursor;
	struct dma_fence *fence;
	u32 before = fences->nr;
	int ret = 0;

	dma_resv_iter_begin(&cursor, resv, dma_resv_usage_rw(write));
	dma_resv_for_each_fence_unlocked(&cursor, fence) {
		if (dma_resv_iter_is_restarted(&cursor))
			devbuf_fences_truncate(fences, before);
		cond_resched();
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		if (devbuf_fence_is_ordered(fence, export))
			continue;
		ret = devbuf_fences_reserve(fences, 1);
		if (ret)
			break;
		devbuf_fences_add(fences, dma_fence_get(fence));
	}
	dma_resv_iter_end(&cursor);
	return ret;
}

/**
 * devbuf_access_collect - what must be over before these bytes are accessed
 * @storage: the memory
 * @start: first byte, from the beginning of the first page
 * @last: last byte
 * @write: they will be written
 * @interruptible: signals end it
 * @fences: the set to add to
 *
 * Return: 0, -ENOMEM, -EINTR or -ERESTARTSYS.
 */
int devbuf_access_collect(struct devbuf_storage *storage, u64 start, u64 last,
			  bool write, bool interruptible,
			  struct devbuf_fences *fences)
{
	struct devbuf_export_info *export;
	int ret;

	if (!interruptible)
		ww_mutex_lock(&storage->lock, NULL);
	else if (ww_mutex_lock_interruptible(&storage->lock, NULL))
		return -ERESTARTSYS;
	ret = devbuf_access_collect_jobs(storage, start, last, write, fences);
	list_for_each_entry(export, &storage->exports, entry)
		if (!ret && devbuf_export_meets(export, start, last))
			ret = devbuf_access_collect_export(export, write, fences);
	ww_mutex_unlock(&storage->lock);
	return ret;
}

/**
 * devbuf_access_wait - wait until these bytes may be accessed
 * @storage: the memory
 * @start: first byte, from the beginning of the first page
 * @last: last byte
 * @write: they will be written
 *
 * Waits for what is queued when it begins, however much is queued meanwhile.
 *
 * Return: 0, -ENOMEM, -EINTR or -ERESTARTSYS.
 */
int devbuf_access_wait(struct devbuf_storage *storage, u64 start, u64 last,
		       bool write)
{
	struct devbuf_fences fences;
	int ret;

	devbuf_fences_init(&fences);
	ret = devbuf_access_collect(storage, start, last, write, true, &fences);
	if (!ret)
		ret = devbuf_fences_wait(&fences);
	devbuf_fences_release(&fences);
	return ret;
}

/* The write waits for all accesses that it covers, and stands for them now. */
static void devbuf_access_cover(const struct devbuf_access *access,
				struct rb_root_cached *tree)
{
	u64 start = access->start, last = access->last;
	struct devbuf_access *old, *next;

	for (old = devbuf_access_tree_iter_first(tree, start, last); old; old = next) {
		next = devbuf_access_tree_iter_next(old, start, last);
		if (old->start < start || old->last > last)
			continue;
		devbuf_access_tree_remove(old, tree);
		RB_CLEAR_NODE(&old->node);
	}
}

/* Let those that are published later wait for it; the storage's lock is held. */
void devbuf_access_begin(struct devbuf_access *access)
{
	struct devbuf_storage *storage = access->storage;

	atomic_inc(&storage->queued);
	spin_lock(&storage->accesses_lock);
	if (access->write) {
		devbuf_access_cover(access, &storage->accesses[true]);
		devbuf_access_cover(access, &storage->accesses[false]);
	}
	devbuf_access_tree_insert(access, &storage->accesses[access->write]);
	spin_unlock(&storage->accesses_lock);
}

/* The job is over: nobody need wait for it. Part of signalling its fence. */
void devbuf_access_end(struct devbuf_access *access)
{
	struct devbuf_storage *storage = access->storage;

	spin_lock(&storage->accesses_lock);
	if (!RB_EMPTY_NODE(&access->node))
		devbuf_access_tree_remove(access,
					  &storage->accesses[access->write]);
	spin_unlock(&storage->accesses_lock);
	/* Pairs with devbuf_storage_is_idle(): the bytes are there. */
	atomic_dec_return_release(&storage->queued);
}

/**
 * devbuf_access_publish_export - tell a new export of the jobs that touch it
 * @storage: the memory; its lock is held, so that no job is published meanwhile
 * @export: not yet listed
 *
 * Return: 0 or -ENOMEM.
 */
int devbuf_access_publish_export(struct devbuf_storage *storage,
				 const struct devbuf_export_info *export)
{
	u64 start = devbuf_export_pos(export);
	u64 last = start + export->dmabuf->size - 1;
	struct dma_resv *resv = export->dmabuf->resv;
	struct devbuf_fences fences;
	u32 nr_writes, i;
	int ret;

	if (!atomic_read(&storage->queued))
		return 0;
	devbuf_fences_init(&fences);
	/* The writes, and then the reads. */
	ret = devbuf_access_collect_tree(storage, true, start, last, &fences);
	nr_writes = fences.nr;
	if (!ret)
		ret = devbuf_access_collect_tree(storage, false, start, last, &fences);
	if (ret || !fences.nr)
		goto out;
	/* Nobody else knows it yet, so nobody is in the way. */
	dma_resv_lock(resv, NULL);
	ret = dma_resv_reserve_fences(resv, fences.nr);
	for (i = 0; !ret && i < fences.nr; i++)
		dma_resv_add_fence(resv, fences.list[i],
				   i < nr_writes ? DMA_RESV_USAGE_WRITE :
						   DMA_RESV_USAGE_READ);
	dma_resv_unlock(resv);
out:
	devbuf_fences_release(&fences);
	return ret;
}
