// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pins: pages of the caller's that are held while something of ours uses them,
 * and counted against his RLIMIT_MEMLOCK.
 */
#include <linux/bvec.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "devbuf_private.h"

/* Pages that are pinned in one go. */
#define DEVBUF_PIN_STEP		32UL

/**
 * devbuf_pin_charge - count pages against the caller's RLIMIT_MEMLOCK
 * @nr_pages: how many
 *
 * They are charged to the user, not to his mm: that needs no mmap_lock, and
 * stays right when they outlive the process.
 *
 * Return: the user, for devbuf_pin_uncharge(), or -ENOMEM.
 */
struct user_struct *devbuf_pin_charge(unsigned long nr_pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct user_struct *user = current_user();
	unsigned long now = atomic_long_read(&user->locked_vm);
	bool unlimited = limit == RLIM_INFINITY >> PAGE_SHIFT ||
			 capable(CAP_IPC_LOCK);

	do {
		if (!unlimited && (nr_pages > limit || now > limit - nr_pages))
			return ERR_PTR(-ENOMEM);
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &now, now + nr_pages));
	return get_uid(user);
}

void devbuf_pin_uncharge(struct user_struct *user, unsigned long nr_pages)
{
	atomic_long_sub(nr_pages, &user->locked_vm);
	free_uid(user);
}

/* Pages of one range of the caller's. */
static unsigned long devbuf_pin_nr_pages(u64 user_addr, u64 nbytes)
{
	return DIV_ROUND_UP_ULL(offset_in_page(user_addr) + nbytes, PAGE_SIZE);
}

/* Append pages; neighbours become one entry. The first byte is at @offset. */
static void devbuf_pins_append(struct devbuf_pins *pins, u32 first,
			       struct page **pages, long nr, u32 offset)
{
	struct bio_vec *last;
	long i;

	for (i = 0; i < nr; i++, offset = 0) {
		last = pins->nr > first ? &pins->list[pins->nr - 1] : NULL;
		if (last && offset_in_page(last->bv_offset + last->bv_len) == 0 &&
		    last->bv_len <= U32_MAX - 2 * PAGE_SIZE &&
		    pages[i] == last->bv_page +
				((last->bv_offset + last->bv_len) >> PAGE_SHIFT)) {
			last->bv_len += PAGE_SIZE;
			continue;
		}
		pins->list[pins->nr++] = (struct bio_vec) {
			.bv_page = pages[i],
			.bv_offset = offset,
			.bv_len = PAGE_SIZE - offset,
		};
	}
}

static int devbuf_pin_range(struct devbuf_pins *pins, u64 user_addr, u64 nbytes,
			    unsigned int gup_flags)
{
	unsigned long start = user_addr & PAGE_MASK;
	unsigned long rest = devbuf_pin_nr_pages(user_addr, nbytes);
	struct page *pages[DEVBUF_PIN_STEP];
	u32 first = pins->nr;
	long nr;

	while (rest) {
		nr = pin_user_pages_fast(start, min(rest, DEVBUF_PIN_STEP),
					 gup_flags, pages);
		if (nr <= 0)
			return nr == -ENOMEM || nr == -EINTR ? nr : -EFAULT;
		devbuf_pins_append(pins, first, pages, nr,
				   offset_in_page(user_addr));
		user_addr = 0;
		start += nr << PAGE_SHIFT;
		rest -= nr;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/**
 * devbuf_pins_add - pin the caller's end of each piece of a copy
 * @pins: where they are kept
 * @pieces: the copy
 * @nr: how many pieces
 * @in: the caller's memory is read, and not written
 * @iters: set to the bytes of each piece
 *
 * Not for long: jobs end. So memory of any kind will do, as for direct I/O.
 *
 * Return: 0, -ENOMEM, -EFAULT or -EINTR. Whatever was pinned is in @pins.
 */
int devbuf_pins_add(struct devbuf_pins *pins, const struct devbuf_piece *pieces,
		    u32 nr, bool in, struct iov_iter *iters)
{
	unsigned int gup_flags = in ? 0 : FOLL_WRITE;
	unsigned long nr_pages = 0;
	u32 first, i;
	int ret;

	for (i = 0; i < nr; i++)
		nr_pages += devbuf_pin_nr_pages(pieces[i].user_addr,
						pieces[i].nbytes);
	/* More than a page table can hold would be no memory of anybody's. */
	if (nr_pages > U32_MAX)
		return -ENOMEM;
	pins->user = devbuf_pin_charge(nr_pages);
	if (IS_ERR(pins->user)) {
		ret = PTR_ERR(pins->user);
		pins->user = NULL;
		return ret;
	}
	pins->nr_pages = nr_pages;
	pins->dirty = !in;
	pins->list = kvmalloc_array(nr_pages, sizeof(*pins->list), DEVBUF_GFP);
	if (!pins->list)
		return -ENOMEM;

	for (i = 0; i < nr; i++) {
		first = pins->nr;
		ret = devbuf_pin_range(pins, pieces[i].user_addr,
				       pieces[i].nbytes, gup_flags);
		if (ret)
			return ret;
		iov_iter_bvec(&iters[i], in ? ITER_SOURCE : ITER_DEST,
			      pins->list + first, pins->nr - first,
			      pieces[i].nbytes);
	}
	return 0;
}

/* They do not count any more, and are released soon. May be part of signalling. */
void devbuf_pins_uncharge(struct devbuf_pins *pins)
{
	if (pins->user)
		atomic_long_sub(pins->nr_pages, &pins->user->locked_vm);
	pins->nr_pages = 0;
}

/* May sleep: on pages that somebody has locked. */
void devbuf_pins_release(struct devbuf_pins *pins)
{
	const struct bio_vec *entry;
	u32 i;

	for (i = 0; i < pins->nr; i++) {
		entry = &pins->list[i];
		unpin_user_page_range_dirty_lock(entry->bv_page,
						 (entry->bv_offset + entry->bv_len) >>
						 PAGE_SHIFT, pins->dirty);
		cond_resched();
	}
	kvfree(pins->list);
	if (pins->user)
		devbuf_pin_uncharge(pins->user, pins->nr_pages);
}
