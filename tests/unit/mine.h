/* SPDX-License-Identifier: GPL-2.0-only */
/* An allocator of the caller's own, for the tests of those and of the cache over them. */
#ifndef DEVBUF_TESTS_UNIT_MINE_H
#define DEVBUF_TESTS_UNIT_MINE_H

#include "unit.h"

/* An allocator that can be told to fail, and tells what was asked of it. */
struct mine {
	int fail_allocs; /* how many of the next */
	int error; /* what a failing hook returns */
	bool fail_offset, fail_copies, fail_transfer, fail_addr, fail_map;
	int64_t disk; /* what copy_from_disk returns; or INT64_MIN: reads */

	int allocs, frees, live, offsets, detaches, maps, unmaps, transfers, disks, destroyed;
	char device[DEVBUF_DEVICE_BYTES];
	size_t nbytes;
	struct devbuf_spec spec;
};

struct chunk {
	size_t nbytes;
	char *bytes;
	char own[];
};

static int mine_alloc(void *user, const char *device, size_t nbytes, const struct devbuf_spec *spec,
		      void **out_mem)
{
	struct mine *m = user;
	struct chunk *c;

	m->allocs++;
	if (m->fail_allocs) {
		m->fail_allocs--;
		return m->error;
	}
	c = calloc(1, sizeof(*c) + (spec->external_ptr ? 0 : nbytes));
	c->nbytes = nbytes;
	c->bytes = spec->external_ptr ? spec->external_ptr : c->own;
	m->live++;
	m->nbytes = nbytes;
	m->spec = *spec;
	strcpy(m->device, device);
	*out_mem = c;
	return 0;
}

static void mine_free(void *user, void *mem, const char *device, size_t nbytes,
		      const struct devbuf_spec *spec)
{
	struct mine *m = user;
	struct chunk *c = mem;

	if (c->nbytes != nbytes || !*device || spec->size != sizeof(*spec))
		abort();
	m->frees++;
	m->live--;
	free(c);
}

static int mine_copyin(void *user, void *mem, size_t offset, const void *src, size_t nbytes)
{
	if (((struct mine *)user)->fail_copies)
		return ((struct mine *)user)->error;
	memcpy(((struct chunk *)mem)->bytes + offset, src, nbytes);
	return 0;
}

static int mine_copyout(void *user, void *mem, size_t offset, void *dst, size_t nbytes)
{
	if (((struct mine *)user)->fail_copies)
		return ((struct mine *)user)->error;
	memcpy(dst, ((struct chunk *)mem)->bytes + offset, nbytes);
	return 0;
}

static int mine_addr(void *user, void *mem, uint64_t *out_addr)
{
	(void)mem;
	if (((struct mine *)user)->fail_addr)
		return ((struct mine *)user)->error;
	*out_addr = 0xd0000000;
	return 0;
}

static int mine_offset(void *user, void *mem, size_t offset, size_t nbytes, void **out_mem)
{
	struct mine *m = user;
	struct chunk *c;

	if (m->fail_offset)
		return m->error;
	m->offsets++;
	c = calloc(1, sizeof(*c));
	c->nbytes = nbytes;
	c->bytes = ((struct chunk *)mem)->bytes + offset;
	*out_mem = c;
	return 0;
}

static void mine_detach(void *user, void *mem)
{
	((struct mine *)user)->detaches++;
	free(mem);
}

static int mine_transfer(void *user, void *dst, size_t dst_offset, void *src, size_t src_offset,
			 size_t nbytes)
{
	struct mine *m = user;

	if (m->fail_transfer)
		return m->error;
	m->transfers++;
	memmove(((struct chunk *)dst)->bytes + dst_offset,
		((struct chunk *)src)->bytes + src_offset, nbytes);
	return 0;
}

static int mine_map(void *user, void *mem, size_t offset, size_t nbytes, int prot, void **out_addr)
{
	struct mine *m = user;

	(void)nbytes;
	(void)prot;
	*out_addr = mem; /* whatever happens: not to be believed after a failure */
	if (m->fail_map)
		return m->error;
	m->maps++;
	*out_addr = ((struct chunk *)mem)->bytes + offset;
	return 0;
}

static void mine_unmap(void *user, void *mem, void *addr, size_t nbytes)
{
	struct chunk *c = mem;

	if ((char *)addr < c->bytes || (char *)addr + nbytes > c->bytes + c->nbytes)
		abort();
	((struct mine *)user)->unmaps++;
}

static int64_t mine_copy_from_disk(void *user, void *mem, size_t offset, int fd,
				   int64_t file_offset, size_t nbytes)
{
	struct mine *m = user;

	m->disks++;
	if (m->disk != INT64_MIN)
		return m->disk;
	return pread(fd, ((struct chunk *)mem)->bytes + offset, nbytes, file_offset);
}

static void mine_destroy(void *user)
{
	((struct mine *)user)->destroyed++;
}

static const struct devbuf_allocator_ops all_hooks = {
	.size = sizeof(all_hooks),
	.alloc = mine_alloc,
	.free = mine_free,
	.copyin = mine_copyin,
	.copyout = mine_copyout,
	.addr = mine_addr,
	.offset = mine_offset,
	.detach = mine_detach,
	.transfer = mine_transfer,
	.map = mine_map,
	.unmap = mine_unmap,
	.copy_from_disk = mine_copy_from_disk,
	.destroy = mine_destroy,
};

static const struct devbuf_allocator_ops required_hooks = {
	.size = sizeof(required_hooks),
	.alloc = mine_alloc,
	.free = mine_free,
	.copyin = mine_copyin,
	.copyout = mine_copyout,
	.addr = mine_addr,
};

FIXTURE(own)
{
	struct mine mine;
	struct devbuf_allocator *a; /* all hooks */
	struct devbuf_allocator *poor; /* the required ones only */
	struct devbuf_allocator *lru; /* over a */
};

FIXTURE_SETUP(own)
{
	remember_memory();
	self->mine = (struct mine){ .error = -ENOMEM, .disk = INT64_MIN };
	ASSERT_OK(devbuf_allocator_create(&all_hooks, &self->mine, &self->a));
	ASSERT_OK(devbuf_allocator_create(&required_hooks, &self->mine, &self->poor));
	ASSERT_OK(devbuf_lru_allocator(self->a, &self->lru));
}

FIXTURE_TEARDOWN(own)
{
	devbuf_allocator_unref(self->a);
	EXPECT_EQ(0, self->mine.destroyed); /* the LRU allocator holds it */
	devbuf_allocator_unref(self->lru);
	EXPECT_EQ(1, self->mine.destroyed);
	devbuf_allocator_unref(self->poor);
	EXPECT_EQ(0, self->mine.live);
	EXPECT_EQ(self->mine.offsets, self->mine.detaches);
	EXPECT_EQ(self->mine.maps, self->mine.unmaps);
	EXPECT_EQ(0, leaks_found());
}

static struct devbuf *new_bytes(struct devbuf_allocator *a, size_t nbytes)
{
	struct devbuf *b = NULL;

	devbuf_create(a, "GPU", nbytes, DEVBUF_UINT8, NULL, &b);
	return b;
}

static struct devbuf *new_allocated(struct devbuf_allocator *a, size_t nbytes)
{
	struct devbuf *b = new_bytes(a, nbytes);

	devbuf_allocate(b);
	return b;
}

#endif /* DEVBUF_TESTS_UNIT_MINE_H */
