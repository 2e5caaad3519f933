// SPDX-License-Identifier: GPL-2.0-only
/*
 * What compat.h declares and is too long for it.
 */
#include <linux/backing-dev.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../devbuf_private.h"

#define DEVBUF_SHRINKER_FLAGS	(SHRINKER_NUMA_AWARE | SHRINKER_MEMCG_AWARE)

#ifdef DEVBUF_HAVE_SHRINKER_ALLOC

struct shrinker *devbuf_shrinker_alloc(const char *name, long batch,
				       devbuf_shrinker_fn count,
				       devbuf_shrinker_fn scan)
{
	struct shrinker *shrinker = shrinker_alloc(DEVBUF_SHRINKER_FLAGS, "%s",
						   name);

	if (!shrinker)
		return NULL;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker->batch = batch;
	/* Nothing of it costs more to make again than zeroing it did. */
	shrinker->seeks = 0;
	return shrinker;
}

void devbuf_shrinker_start(struct shrinker *shrinker)
{
	shrinker_register(shrinker);
}

void devbuf_shrinker_free(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
}

#else

/**
 * struct devbuf_old_shrinker - a shrinker that is registered before its time
 * @shrinker: registered
 * @count: the user's count_objects
 * @started: it may be asked
 */
struct devbuf_old_shrinker {
	struct shrinker shrinker;
	devbuf_shrinker_fn count;
	bool started;
};

static unsigned long devbuf_old_shrinker_count(struct shrinker *shrinker,
					       struct shrink_control *sc)
{
	struct devbuf_old_shrinker *old =
		container_of(shrinker, struct devbuf_old_shrinker, shrinker);

	/* Pairs with devbuf_shrinker_start(): the list_lru is complete. */
	if (!smp_load_acquire(&old->started))
		return SHRINK_EMPTY;
	return old->count(shrinker, sc);
}

struct shrinker *devbuf_shrinker_alloc(const char *name, long batch,
				       devbuf_shrinker_fn count,
				       devbuf_shrinker_fn scan)
{
	struct devbuf_old_shrinker *old = kzalloc(sizeof(*old), GFP_KERNEL);

	if (!old)
		return NULL;
	old->count = count;
	old->shrinker.count_objects = devbuf_old_shrinker_count;
	old->shrinker.scan_objects = scan;
	old->shrinker.batch = batch;
	old->shrinker.seeks = 0;
	old->shrinker.flags = DEVBUF_SHRINKER_FLAGS;
	if (register_shrinker(&old->shrinker, "%s", name)) {
		kfree(old);
		return NULL;
	}
	return &old->shrinker;
}

void devbuf_shrinker_start(struct shrinker *shrinker)
{
	struct devbuf_old_shrinker *old =
		container_of(shrinker, struct devbuf_old_shrinker, shrinker);

	/* Pairs with devbuf_old_shrinker_count(). */
	smp_store_release(&old->started, true);
}

void devbuf_shrinker_free(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
	kfree(container_of(shrinker, struct devbuf_old_shrinker, shrinker));
}

#endif

#ifdef DEVBUF_HAVE_GUP_FILE_CHECK

long devbuf_pin_user_pages(unsigned long start, unsigned long nr_pages,
			   bool write, struct page **pages)
{
	return pin_user_pages_fast(start, nr_pages,
				   FOLL_LONGTERM | (write ? FOLL_WRITE : 0), pages);
}

#else

/* How to pin pages of this mapping, or an error. */
static int devbuf_gup_flags(const struct vm_area_struct *vma, bool write)
{
	/* MAYSHARE: a file opened for reading loses VM_SHARED. */
	if (vma->vm_flags & VM_MAYSHARE) {
		if (vma->vm_file && mapping_can_writeback(vma->vm_file->f_mapping))
			return -EOPNOTSUPP;
		return FOLL_LONGTERM | (write ? FOLL_WRITE : 0);
	}
	/*
	 * FOLL_FORCE makes the pages of a read-only private mapping its own; but
	 * it would not stop at one that may not even be read.
	 */
	if (!(vma->vm_flags & VM_READ))
		return -EFAULT;
	return FOLL_LONGTERM | FOLL_WRITE | (write ? 0 : FOLL_FORCE);
}

long devbuf_pin_user_pages(unsigned long start, unsigned long nr_pages,
			   bool write, struct page **pages)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	long ret;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = find_vma(mm, start);
	if (!vma || vma->vm_start > start) {
		ret = -EFAULT;
		goto unlock;
	}
	nr_pages = min(nr_pages, (vma->vm_end - start) >> PAGE_SHIFT);
	ret = devbuf_gup_flags(vma, write);
	if (ret >= 0)
		ret = pin_user_pages(start, nr_pages, ret, pages, NULL);
unlock:
	mmap_read_unlock(mm);
	return ret;
}

#endif
