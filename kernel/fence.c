// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fences: the one that each job signals, and sets of those that somebody waits
 * for.
 */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/sync_file.h>
#include <linux/uaccess.h>

#include "devbuf_private.h"

#if !IS_ENABLED(CONFIG_SYNC_FILE)
#error "devbuf needs a kernel with CONFIG_SYNC_FILE."
#endif

static struct kmem_cache *devbuf_fence_cache;

static const char *devbuf_fence_driver_name(struct dma_fence *base)
{
	return "devbuf";
}

static const char *devbuf_fence_timeline_name(struct dma_fence *base)
{
	return container_of(base, struct devbuf_fence, base)->timeline;
}

static void devbuf_fence_free(struct rcu_head *rcu)
{
	struct devbuf_fence *fence = container_of(rcu, struct devbuf_fence, base.rcu);

	kmem_cache_free(devbuf_fence_cache, fence);
	/* We run to the end: unloading waits for RCU callbacks (devbuf_fence_exit). */
	module_put(THIS_MODULE);
}

/*
 * Others hold fences for as long as they like, and call us through them: so each
 * holds the module. It is put behind RCU, and nothing follows call_rcu() here, so
 * that nobody can be left in code that is gone.
 */
static void devbuf_fence_release(struct dma_fence *base)
{
	call_rcu(&base->rcu, devbuf_fence_free);
}

static const struct dma_fence_ops devbuf_fence_ops = {
	.get_driver_name	= devbuf_fence_driver_name,
	.get_timeline_name	= devbuf_fence_timeline_name,
	.release		= devbuf_fence_release,
};

/**
 * devbuf_fence_new - a fence for a job
 * @device: whose queue will run it
 *
 * Fences of a context signal in order, and jobs may overtake each other, so each
 * is a context of its own.
 *
 * Return: the fence, not yet signalled, or NULL.
 */
struct devbuf_fence *devbuf_fence_new(const struct devbuf_device *device)
{
	struct devbuf_fence *fence;

	fence = kmem_cache_zalloc(devbuf_fence_cache, DEVBUF_GFP);
	if (!fence)
		return NULL;
	__module_get(THIS_MODULE);
	spin_lock_init(&fence->lock);
	memcpy(fence->timeline, device->name, sizeof(fence->timeline));
	dma_fence_init(&fence->base, &devbuf_fence_ops, &fence->lock,
		       dma_fence_context_alloc(1), 1);
	return fence;
}

/**
 * devbuf_fence_is_ordered - is this the fence of a job that touches the export?
 * @base: any fence
 * @export: the export
 *
 * Such a job is ordered by the bytes that it touches (access.c), which is more
 * precise than the export's reservation can tell.
 *
 * Return: whether it is, or was until it signalled.
 */
bool devbuf_fence_is_ordered(struct dma_fence *base,
			     const struct devbuf_export_info *export)
{
	const struct devbuf_job *job;
	bool found, write;

	if (base->ops != &devbuf_fence_ops)
		return false;
	rcu_read_lock();
	job = rcu_dereference(container_of(base, struct devbuf_fence, base)->job);
	found = !job || devbuf_job_touches(job, export, &write);
	rcu_read_unlock();
	return found;
}

void devbuf_fences_init(struct devbuf_fences *fences)
{
	static atomic64_t last_serial;

	fences->serial = atomic64_inc_return(&last_serial);
	fences->list = fences->few;
	fences->nr = 0;
	fences->max = ARRAY_SIZE(fences->few);
}

void devbuf_fences_release(struct devbuf_fences *fences)
{
	devbuf_fences_truncate(fences, 0);
	if (fences->list != fences->few)
		kvfree(fences->list);
}

/* Forget all but the first @nr. */
void devbuf_fences_truncate(struct devbuf_fences *fences, u32 nr)
{
	while (fences->nr > nr)
		dma_fence_put(fences->list[--fences->nr]);
}

/* Room for @nr more: 0 or -ENOMEM. */
int devbuf_fences_reserve(struct devbuf_fences *fences, u32 nr)
{
	struct dma_fence **list;
	u32 max;

	if (fences->max - fences->nr >= nr)
		return 0;
	max = max(fences->nr + nr, 2 * fences->max);
	list = kvmalloc_array(max, sizeof(*list), DEVBUF_GFP);
	if (!list)
		return -ENOMEM;
	memcpy(list, fences->list, fences->nr * sizeof(*list));
	if (fences->list != fences->few)
		kvfree(fences->list);
	fences->list = list;
	fences->max = max;
	return 0;
}

static int devbuf_fence_compare(const void *a, const void *b)
{
	struct dma_fence *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

/**
 * devbuf_fences_unite - forget those that are there twice
 * @fences: the set
 * @from: the first of those to look at; others stay as they are
 */
void devbuf_fences_unite(struct devbuf_fences *fences, u32 from)
{
	u32 nr = from, i;

	if (fences->nr - from < 2)
		return;
	sort(fences->list + from, fences->nr - from, sizeof(*fences->list),
	     devbuf_fence_compare, NULL);
	for (i = from; i < fences->nr; i++) {
		if (nr > from && fences->list[nr - 1] == fences->list[i])
			dma_fence_put(fences->list[i]);
		else
			fences->list[nr++] = fences->list[i];
	}
	fences->nr = nr;
}

/**
 * devbuf_fences_add_user - add the sync_files that the caller names
 * @fences: the set
 * @user_addr: address of an array of file descriptors
 * @nr: its length
 *
 * Return: 0, -EINVAL for too many, or a file that is no sync_file; -EBADF,
 * -EFAULT or -ENOMEM.
 */
int devbuf_fences_add_user(struct devbuf_fences *fences, u64 user_addr, u32 nr)
{
	s32 fds[DEVBUF_MAX_IN_FENCES];
	struct dma_fence *fence;
	struct file *file;
	u32 i;
	int ret;

	if (nr > ARRAY_SIZE(fds))
		return -EINVAL;
	if (copy_from_user(fds, u64_to_user_ptr(user_addr), nr * sizeof(*fds)))
		return -EFAULT;
	ret = devbuf_fences_reserve(fences, nr);
	if (ret)
		return ret;
	for (i = 0; i < nr; i++) {
		file = fget(fds[i]);
		if (!file)
			return -EBADF;
		fence = sync_file_get_fence(fds[i]);
		fput(file);
		if (!fence)
			return -EINVAL;
		devbuf_fences_add(fences, fence);
	}
	return 0;
}

/* Wait for all of them: 0 or -ERESTARTSYS. What they say of errors is ignored. */
int devbuf_fences_wait(const struct devbuf_fences *fences)
{
	long ret;
	u32 i;

	for (i = 0; i < fences->nr; i++) {
		ret = dma_fence_wait(fences->list[i], true);
		if (ret)
			return ret;
	}
	return 0;
}

/* A fence of the gate has signalled; perhaps in an interrupt, its lock held. */
static void devbuf_gate_fence_signalled(struct dma_fence *fence,
					struct dma_fence_cb *cb)
{
	struct devbuf_gate_fence *entry =
		container_of(cb, struct devbuf_gate_fence, cb);
	struct devbuf_gate *gate = entry->gate;

	if (entry->pass_error && fence->error)
		cmpxchg(&gate->error, 0, fence->error);
	if (atomic_dec_and_test(&gate->closed))
		gate->open(gate);
}

/* Room for @nr fences: 0 or -ENOMEM. */
int devbuf_gate_reserve(struct devbuf_gate *gate, u32 nr)
{
	if (!nr)
		return 0;
	gate->list = kvmalloc_array(nr, sizeof(*gate->list), DEVBUF_GFP);
	return gate->list ? 0 : -ENOMEM;
}

/**
 * devbuf_gate_arm - open the gate when all of these have signalled
 * @gate: with room for them
 * @fences: the set, whose references the gate takes over
 * @nr_errors: how many, from the first, pass their error on to @gate->error
 *
 * Return: whether it is open already; then @gate->open is not called.
 */
bool devbuf_gate_arm(struct devbuf_gate *gate, struct devbuf_fences *fences,
		     u32 nr_errors)
{
	struct devbuf_gate_fence *entry;
	int error;
	u32 i;

	/* One more than there are fences: it cannot open before we are done. */
	atomic_set(&gate->closed, fences->nr + 1);
	gate->nr = fences->nr;
	for (i = 0; i < gate->nr; i++) {
		entry = &gate->list[i];
		entry->gate = gate;
		entry->fence = fences->list[i];
		entry->pass_error = i < nr_errors;
	}
	fences->nr = 0;
	for (i = 0; i < gate->nr; i++) {
		entry = &gate->list[i];
		if (!dma_fence_add_callback(entry->fence, &entry->cb,
					    devbuf_gate_fence_signalled))
			continue;
		error = dma_fence_get_status(entry->fence);
		if (entry->pass_error && error < 0)
			cmpxchg(&gate->error, 0, error);
		atomic_dec(&gate->closed);
	}
	return atomic_dec_and_test(&gate->closed);
}

/* Nobody will open it any more, though it be closed. */
void devbuf_gate_stop(struct devbuf_gate *gate)
{
	u32 i;

	for (i = 0; i < gate->nr; i++) {
		dma_fence_remove_callback(gate->list[i].fence, &gate->list[i].cb);
		dma_fence_put(gate->list[i].fence);
	}
	gate->nr = 0;
}

/* Of a gate that is open, or stopped, or was never armed. May sleep. */
void devbuf_gate_release(struct devbuf_gate *gate)
{
	devbuf_gate_stop(gate);
	kvfree(gate->list);
}

int devbuf_fence_init(void)
{
	devbuf_fence_cache = KMEM_CACHE(devbuf_fence, SLAB_ACCOUNT);
	return devbuf_fence_cache ? 0 : -ENOMEM;
}

void devbuf_fence_exit(void)
{
	/* The last fences' callbacks, which are in this module. */
	rcu_barrier();
	kmem_cache_destroy(devbuf_fence_cache);
}
