/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between the kernels that devbuf supports, and nothing else.
 * What a kernel has is found by trying to compile it (probe.sh, probes/), since
 * distributions port changes back. Each entry says what changed, when, and so
 * when it can go.
 */
#ifndef DEVBUF_COMPAT_H
#define DEVBUF_COMPAT_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/module.h>
#include <linux/shrinker.h>

#include "probed.h"

#ifndef DEVBUF_HAVE_BASELINE
#error "No probe compiles: kernel/compat/probed.h tells nothing about this kernel."
#endif

/* 6.13: namespaces of symbols became strings. */
#ifdef DEVBUF_HAVE_IMPORT_NS_TOKEN
#define DEVBUF_IMPORT_DMA_BUF_NS	MODULE_IMPORT_NS(DMA_BUF)
#define DEVBUF_IMPORT_NS		MODULE_IMPORT_NS(DEVBUF)
#define DEVBUF_EXPORT_SYMBOL(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, DEVBUF)
#else
#define DEVBUF_IMPORT_DMA_BUF_NS	MODULE_IMPORT_NS("DMA_BUF")
#define DEVBUF_IMPORT_NS		MODULE_IMPORT_NS("DEVBUF")
#define DEVBUF_EXPORT_SYMBOL(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, "DEVBUF")
#endif

/* 6.3: vm_flags is changed by functions only. */
#ifndef DEVBUF_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/*
 * The order of the largest pages. 6.8 named it MAX_PAGE_ORDER; 6.4 to 6.7 call
 * it MAX_ORDER; before that MAX_ORDER was one more.
 */
#ifdef MAX_PAGE_ORDER
#define DEVBUF_MAX_PAGE_ORDER	MAX_PAGE_ORDER
#else
#define DEVBUF_MAX_PAGE_ORDER	(MAX_ORDER - 1)
#endif

/*
 * A reference on a file that a weak pointer names, or NULL. The pointer must be
 * cleared by the file's own ->release, and read under a lock which that takes:
 * then the file is there, though it may be dying. (Not good for a dma_buf: that
 * is released with its dentry, which can outlive the file.)
 *
 * 6.7: files are typesafe by RCU, and get_file_active() came for this.
 */
#ifdef DEVBUF_HAVE_GET_FILE_ACTIVE
static inline struct file *devbuf_get_file_active(struct file **file)
{
	return get_file_active(file);
}
#else
static inline struct file *devbuf_get_file_active(struct file **file)
{
	return *file && get_file_rcu(*file) ? *file : NULL;
}
#endif

/*
 * 6.9: list_lru_add() and _del() take node and cgroup; _obj finds those of the
 * object, as all kernels before did: so the shrinker finds a storage on the node
 * where its struct is, which is not always the node of its pages.
 */
#ifndef DEVBUF_HAVE_LIST_LRU_ADD_OBJ
#define list_lru_add_obj(lru, item)	list_lru_add(lru, item)
#define list_lru_del_obj(lru, item)	list_lru_del(lru, item)
#endif

/*
 * 6.7: shrinkers are allocated, set up and registered. Before that a module can
 * only register a shrinker that is complete, but must do so before it makes the
 * list_lru, which copies the shrinker's id: the shrinker says that it has
 * nothing until devbuf_shrinker_start().
 */
typedef unsigned long (*devbuf_shrinker_fn)(struct shrinker *shrinker,
					    struct shrink_control *sc);
struct shrinker *devbuf_shrinker_alloc(const char *name, long batch,
				       devbuf_shrinker_fn count,
				       devbuf_shrinker_fn scan);
void devbuf_shrinker_start(struct shrinker *shrinker);
void devbuf_shrinker_free(struct shrinker *shrinker);

/*
 * Long-term pins of the caller's pages: how many, or an error. Before 6.5 GUP
 * itself neither refused shared mappings of files with write-back, nor (before
 * 6.2) made private pages the caller's own when they were pinned for reading;
 * so there the mapping is looked at first, and mmap_lock is held across the
 * faults of the pages, which a userfaultfd cannot serve then (-EFAULT).
 */
long devbuf_pin_user_pages(unsigned long start, unsigned long nr_pages,
			   bool write, struct page **pages);

/*
 * 6.6: <linux/io_uring/cmd.h>, and a pointer to the whole entry. 6.7: a ring that
 * goes away asks for its commands to be cancelled.
 */
#ifdef DEVBUF_HAVE_IO_URING_SQE
#include <linux/io_uring/cmd.h>
static inline const void *devbuf_uring_sqe(const struct io_uring_cmd *ring)
{
	return io_uring_sqe_cmd(ring->sqe);
}
#else
#include <linux/io_uring.h>
static inline const void *devbuf_uring_sqe(const struct io_uring_cmd *ring)
{
	return ring->cmd;
}
#endif

#ifdef DEVBUF_HAVE_IO_URING_CANCEL
#define DEVBUF_URING_CANCEL	IO_URING_F_CANCEL
static inline void devbuf_uring_mark_cancelable(struct io_uring_cmd *ring,
						unsigned int issue_flags)
{
	io_uring_cmd_mark_cancelable(ring, issue_flags);
}
#else
#define DEVBUF_URING_CANCEL	0
static inline void devbuf_uring_mark_cancelable(struct io_uring_cmd *ring,
						unsigned int issue_flags)
{
}
#endif

/*
 * Peer-to-peer DMA, with pages that are counted: the last reference gives a page
 * back to its pool. 6.2: before that nobody could map them to userspace, for they
 * must not be put.
 */
#ifdef DEVBUF_HAVE_P2PDMA_PAGES
#define DEVBUF_HAS_P2PDMA	IS_ENABLED(CONFIG_PCI_P2PDMA)
#else
#define DEVBUF_HAS_P2PDMA	false
#endif

/* Write-combining of ordinary pages: x86 alone can do that. */
#ifdef CONFIG_X86
#include <asm/set_memory.h>
#define DEVBUF_HAS_WRITE_COMBINING	true
static inline int devbuf_set_pages_wc(struct page **pages, unsigned long nr_pages)
{
	return set_pages_array_wc(pages, nr_pages);
}

static inline void devbuf_set_pages_wb(struct page **pages, unsigned long nr_pages)
{
	set_pages_array_wb(pages, nr_pages);
}
#else
#define DEVBUF_HAS_WRITE_COMBINING	false
static inline int devbuf_set_pages_wc(struct page **pages, unsigned long nr_pages)
{
	return -EOPNOTSUPP;
}

static inline void devbuf_set_pages_wb(struct page **pages, unsigned long nr_pages)
{
}
#endif

#endif /* DEVBUF_COMPAT_H */
