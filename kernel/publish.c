// SPDX-License-Identifier: GPL-2.0-only
/*
 * Publishing a job: on all of its storages, and in the reservations of all
 * exports that it touches, in one step. So whoever sees it anywhere sees it
 * everywhere, of two jobs one is first, and no circle of jobs, of ours and of
 * other drivers', can wait for each other.
 *
 * First the storages are locked: their exports cannot change then. Then the
 * reservations, which other drivers lock too.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "devbuf_private.h"

/*
 * Lock all of them. Whoever locks in another order may be in the way of us, as
 * we are in his: then the one who came later gives back what he has, and begins
 * with the lock that he could not get.
 *
 * Return: 0, or -ERESTARTSYS if @interruptible.
 */
static int devbuf_lock_all(struct ww_mutex **locks, u32 nr, bool interruptible,
			   struct ww_acquire_ctx *acquire)
{
	u32 slow = nr, i, locked;
	int ret = 0;

retry:
	if (slow < nr) {
		if (!interruptible)
			ww_mutex_lock_slow(locks[slow], acquire);
		else if (ww_mutex_lock_slow_interruptible(locks[slow], acquire))
			return -ERESTARTSYS;
	}
	for (i = 0; i < nr; i++) {
		if (i == slow)
			continue;
		ret = interruptible ? ww_mutex_lock_interruptible(locks[i], acquire) :
				      ww_mutex_lock(locks[i], acquire);
		if (!ret)
			continue;
		for (locked = 0; locked < i; locked++)
			ww_mutex_unlock(locks[locked]);
		/* Locked first of all, though its turn would have come later. */
		if (slow < nr && slow > i)
			ww_mutex_unlock(locks[slow]);
		if (ret != -EDEADLK)
			return -ERESTARTSYS;
		slow = i;
		goto retry;
	}
	ww_acquire_done(acquire);
	return 0;
}

/**
 * struct devbuf_touched - the exports that a job touches
 * @nr: how many
 * @exports: which
 * @locks: their reservations' locks
 * @write: whether it writes there
 */
struct devbuf_touched {
	u32 nr;
	struct devbuf_export_info **exports;
	struct ww_mutex **locks;
	bool *write;
};

static int devbuf_touched_find(const struct devbuf_job *job,
			       struct devbuf_touched *touched)
{
	struct devbuf_export_info *export;
	u32 nr = 0, i;

	memset(touched, 0, sizeof(*touched));
	for (i = 0; i < job->nr_storages; i++)
		list_for_each_entry(export, &job->storages[i]->exports, entry)
			nr++;
	if (!nr)
		return 0;
	touched->exports = kvmalloc_array(nr, sizeof(*touched->exports), DEVBUF_GFP);
	touched->locks = kvmalloc_array(nr, sizeof(*touched->locks), DEVBUF_GFP);
	touched->write = kvmalloc_array(nr, sizeof(*touched->write), DEVBUF_GFP);
	if (!touched->exports || !touched->locks || !touched->write)
		return -ENOMEM;

	for (i = 0; i < job->nr_storages; i++) {
		list_for_each_entry(export, &job->storages[i]->exports, entry) {
			if (!devbuf_job_touches(job, export,
						&touched->write[touched->nr]))
				continue;
			touched->exports[touched->nr] = export;
			touched->locks[touched->nr] = &export->dmabuf->resv->lock;
			touched->nr++;
		}
	}
	return 0;
}

static void devbuf_touched_release(struct devbuf_touched *touched)
{
	kvfree(touched->exports);
	kvfree(touched->locks);
	kvfree(touched->write);
}

/* Everything is locked. Nothing of it is seen if it fails. */
static int devbuf_publish_locked(struct devbuf_job *job,
				 const struct devbuf_touched *touched,
				 struct devbuf_fences *fences)
{
	/* Those come first, and stay there: their errors count. */
	u32 nr_in_fences = fences->nr;
	struct devbuf_access *access;
	int ret;
	u32 i;

	for (i = 0; i < job->nr_accesses; i++) {
		access = &job->accesses[i];
		ret = devbuf_access_collect_jobs(access->storage, access->start,
						 access->last, access->write, fences);
		if (ret)
			return ret;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	for (i = 0; i < touched->nr; i++) {
		ret = devbuf_access_collect_export(touched->exports[i],
						   touched->write[i], fences);
		if (!ret)
			ret = dma_resv_reserve_fences(touched->exports[i]->dmabuf->resv,
						      1);
		if (ret)
			return ret;
	}
	devbuf_fences_unite(fences, nr_in_fences);
	ret = devbuf_gate_reserve(&job->gate, fences->nr);
	if (ret)
		return ret;

	job->signalling = dma_fence_begin_signalling();
	for (i = 0; i < touched->nr; i++)
		dma_resv_add_fence(touched->exports[i]->dmabuf->resv,
				   &job->fence->base,
				   touched->write[i] ? DMA_RESV_USAGE_WRITE :
						       DMA_RESV_USAGE_READ);
	for (i = 0; i < job->nr_accesses; i++)
		devbuf_access_begin(&job->accesses[i]);
	return 0;
}

/* The storages are locked. */
static int devbuf_publish_exports(struct devbuf_job *job,
				  struct devbuf_fences *fences, bool interruptible)
{
	struct devbuf_touched touched;
	struct ww_acquire_ctx acquire;
	int ret;
	u32 i;

	ret = devbuf_touched_find(job, &touched);
	if (ret)
		goto out;
	if (!touched.nr) {
		ret = devbuf_publish_locked(job, &touched, fences);
		goto out;
	}
	ww_acquire_init(&acquire, &reservation_ww_class);
	ret = devbuf_lock_all(touched.locks, touched.nr, interruptible, &acquire);
	if (!ret) {
		ret = devbuf_publish_locked(job, &touched, fences);
		for (i = 0; i < touched.nr; i++)
			dma_resv_unlock(touched.exports[i]->dmabuf->resv);
	}
	ww_acquire_fini(&acquire);
out:
	devbuf_touched_release(&touched);
	return ret;
}

/**
 * devbuf_publish - make a job known to all whom it concerns
 * @job: the job, complete but for its dependencies
 * @fences: what it waits for anyway; that which it must come after is added
 *	behind, and its gate has room for all
 * @interruptible: signals end the wait for a lock. (Not on a ring, whose own
 *	notifications look like signals.)
 *
 * If it succeeds, signalling the job's fence has begun.
 *
 * Return: 0, -ENOMEM, -EINTR or -ERESTARTSYS; nobody has seen it then.
 */
int devbuf_publish(struct devbuf_job *job, struct devbuf_fences *fences,
		   bool interruptible)
{
	struct ww_mutex *few[2 * DEVBUF_COPY_FEW], **locks = few;
	struct ww_acquire_ctx acquire;
	int ret;
	u32 i;

	if (job->nr_storages > ARRAY_SIZE(few)) {
		locks = kvmalloc_array(job->nr_storages, sizeof(*locks), DEVBUF_GFP);
		if (!locks)
			return -ENOMEM;
	}
	for (i = 0; i < job->nr_storages; i++)
		locks[i] = &job->storages[i]->lock;

	ww_acquire_init(&acquire, &devbuf_storage_ww_class);
	ret = devbuf_lock_all(locks, job->nr_storages, interruptible, &acquire);
	if (!ret) {
		ret = devbuf_publish_exports(job, fences, interruptible);
		for (i = 0; i < job->nr_storages; i++)
			ww_mutex_unlock(locks[i]);
	}
	ww_acquire_fini(&acquire);
	if (locks != few)
		kvfree(locks);
	return ret;
}
