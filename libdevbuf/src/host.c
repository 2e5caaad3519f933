// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The host allocator: hooks for memory of this process.
 *
 * The memory is a memfd's, mapped once for the library's own use and then
 * closed: a mapping holds it as well, and file descriptors are few. A mapping
 * for the caller is a second one of the same pages, with the protection that
 * was asked for, made by mremap() with an old length of zero.
 */
#define _GNU_SOURCE /* memfd_create(), mremap() */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

struct host_memory {
	char *bytes;
	size_t nbytes; /* whole pages, or zero: the caller's own memory */
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t page_part(uintptr_t value)
{
	return value & (page_size() - 1);
}

/* There is no device here that would see the difference between cached and uncached. */
static int host_check(const struct devbuf_spec *spec)
{
	if (spec->contiguous)
		return dbuf_fail(-EOPNOTSUPP, "memory of the host allocator has no bus addresses");
	if (spec->alignment > page_size() && !spec->external_ptr)
		return dbuf_fail(-EOPNOTSUPP, "alignment of %zu bytes; the host allocator has %zu",
				 spec->alignment, page_size());
	return 0;
}

/* Pages come when they are touched: say now what could only fail then. */
static bool fits_machine(size_t nbytes)
{
	long pages = sysconf(_SC_PHYS_PAGES);

	return pages <= 0 || nbytes / page_size() <= (size_t)pages;
}

static int map_memfd(struct host_memory *m)
{
	int fd = memfd_create("devbuf", MFD_CLOEXEC);
	int rc;

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : -ENOMEM;
	if (ftruncate(fd, (off_t)m->nbytes)) {
		rc = -ENOMEM;
	} else {
		m->bytes = mmap(NULL, m->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		rc = m->bytes == MAP_FAILED ? -ENOMEM : 0;
	}
	close(fd);
	return rc;
}

static int host_alloc(void *user, const char *device, size_t nbytes, const struct devbuf_spec *spec,
		      void **out_mem)
{
	struct host_memory *m;
	int rc;

	(void)user;
	(void)device;
	if (!spec->external_ptr && (!fits_machine(nbytes) || nbytes > SIZE_MAX - page_size()))
		return -ENOMEM;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	if (spec->external_ptr) {
		m->bytes = spec->external_ptr;
	} else {
		m->nbytes = nbytes + page_part(-nbytes);
		rc = map_memfd(m);
		if (rc) {
			free(m);
			return rc;
		}
	}
	*out_mem = m;
	return 0;
}

static void host_free(void *user, void *mem, const char *device, size_t nbytes,
		      const struct devbuf_spec *spec)
{
	struct host_memory *m = mem;

	(void)user;
	(void)device;
	(void)nbytes;
	(void)spec;
	if (m->nbytes)
		munmap(m->bytes, m->nbytes);
	free(m);
}

static void *host_peek(void *mem)
{
	return ((struct host_memory *)mem)->bytes;
}

/* A view is a struct of its own that owns no pages. */
static int host_offset(void *user, void *mem, size_t offset, size_t nbytes, void **out_mem)
{
	struct host_memory *view = calloc(1, sizeof(*view));

	(void)user;
	(void)nbytes;
	if (!view)
		return -ENOMEM;
	view->bytes = ((struct host_memory *)mem)->bytes + offset;
	*out_mem = view;
	return 0;
}

static void host_detach(void *user, void *mem)
{
	(void)user;
	free(mem);
}

/* memmove: the caller's memory may be a mapping of the buffer's. */
static int host_copyin(void *user, void *mem, size_t offset, const void *src, size_t nbytes)
{
	(void)user;
	memmove((char *)host_peek(mem) + offset, src, nbytes);
	return 0;
}

static int host_copyout(void *user, void *mem, size_t offset, void *dst, size_t nbytes)
{
	(void)user;
	memmove(dst, (char *)host_peek(mem) + offset, nbytes);
	return 0;
}

static int host_transfer(void *user, void *dst, size_t dst_offset, void *src, size_t src_offset,
			 size_t nbytes)
{
	return host_copyin(user, dst, dst_offset, (char *)host_peek(src) + src_offset, nbytes);
}

static int host_map(void *user, void *mem, size_t offset, size_t nbytes, int prot, void **out_addr)
{
	struct host_memory *m = mem;
	size_t in_page = page_part(offset);
	char *pages;

	(void)user;
	if (!m->nbytes) {
		*out_addr = m->bytes + offset;
		return 0;
	}
	pages = mremap(m->bytes + offset - in_page, 0, in_page + nbytes, MREMAP_MAYMOVE);
	if (pages == MAP_FAILED)
		return -ENOMEM;
	if (!(prot & PROT_WRITE) && mprotect(pages, in_page + nbytes, prot)) {
		munmap(pages, in_page + nbytes);
		return -ENOMEM;
	}
	*out_addr = pages + in_page;
	return 0;
}

static void host_unmap(void *user, void *mem, void *addr, size_t nbytes)
{
	struct host_memory *m = mem;
	size_t in_page = page_part((uintptr_t)addr);

	(void)user;
	if (m->nbytes)
		munmap((char *)addr - in_page, in_page + nbytes);
}

int devbuf_host_allocator(struct devbuf_allocator **out)
{
	/* No addr: the address is that of the CPU's mapping. */
	static const struct devbuf_allocator_ops ops = {
		.size = sizeof(ops),
		.alloc = host_alloc,
		.free = host_free,
		.copyin = host_copyin,
		.copyout = host_copyout,
		.offset = host_offset,
		.detach = host_detach,
		.transfer = host_transfer,
		.map = host_map,
		.unmap = host_unmap,
	};
	struct local_allocator *a;

	if (!out)
		return dbuf_fail(-EINVAL, "no place for the allocator");
	a = dbuf_local_new(&ops, NULL, NULL);
	if (!a)
		return -ENOMEM;
	a->check = host_check;
	a->peek = host_peek;
	a->via = DEVBUF_VIA_CPU;
	*out = &a->common;
	return 0;
}
