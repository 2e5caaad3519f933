// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What the CPU sees of buffers: mappings, addresses, and the brackets round access. */
#include <sys/mman.h>

#include "internal.h"

/* --- under the lock of the root --------------------------------------------------------------- */

static void drop(struct devbuf *b)
{
	if (!b->mapping.addr)
		return;
	dbuf_backend(b)->unmap(b, &b->mapping);
	memset(&b->mapping, 0, sizeof(b->mapping));
}

static int check_mapping(struct devbuf *b, int prot)
{
	const struct mapping *m = &b->mapping;

	if (m->generation != dbuf_root(b)->generation)
		return dbuf_fail(-EBUSY,
				 "a mapping, used %u times, still shows memory that was "
				 "deallocated",
				 m->users);
	if (prot & ~m->prot)
		return dbuf_fail(-EBUSY, "it is mapped with protection %#x; %#x is asked for",
				 m->prot, prot);
	return 0;
}

/* The buffer's mapping, made if there is none. */
static int get(struct devbuf *b, int prot)
{
	int rc;

	rc = dbuf_allocated(b);
	if (rc)
		return rc;
	if (b->mapping.addr)
		return check_mapping(b, prot);
	rc = dbuf_backend(b)->map(b, prot, &b->mapping);
	if (rc)
		return rc;
	b->mapping.prot = prot;
	b->mapping.generation = dbuf_root(b)->generation;
	return 0;
}

/* Nobody asked for a protection: all that can be had of the mapping that there is, or could be. */
static int get_any(struct devbuf *b)
{
	int rc;

	if (b->mapping.addr)
		return get(b, 0);
	rc = get(b, PROT_READ | PROT_WRITE);
	return rc == -EACCES ? get(b, PROT_READ) : rc;
}

void dbuf_mapping_deallocated(struct devbuf *b)
{
	if (b->base == b)
		b->generation++;
	b->mapping.kept = false;
	if (!b->mapping.users)
		drop(b);
}

/* The child of a fork comes here too, without the lock: unmapping concerns its memory only. */
void dbuf_mapping_release(struct devbuf *b)
{
	drop(b);
}

/* --- public ----------------------------------------------------------------------------------- */

int devbuf_map(struct devbuf *b, int prot, void **out)
{
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the address");
	if (!prot || prot & ~(PROT_READ | PROT_WRITE))
		return dbuf_fail(-EINVAL, "protection %#x is not made of PROT_READ and PROT_WRITE",
				 prot);
	dbuf_lock(b);
	rc = get(b, prot);
	if (!rc) {
		b->mapping.users++;
		*out = b->mapping.addr;
	}
	dbuf_unlock(b);
	return rc;
}

int devbuf_unmap(struct devbuf *b)
{
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	dbuf_lock(b);
	if (!b->mapping.users) {
		rc = dbuf_fail(-EINVAL, "buffer of %zu bytes is not mapped", b->nbytes);
	} else if (!--b->mapping.users && !b->mapping.kept) {
		drop(b);
	}
	dbuf_unlock(b);
	return rc;
}

/* The root's address: its own, or that of its mapping, which is then kept. */
static int root_addr(struct devbuf *root, uint64_t *out)
{
	int rc;

	rc = dbuf_backend(root)->addr(root, out);
	if (rc != DBUF_ADDR_OF_MAPPING)
		return rc;
	rc = get_any(root);
	if (rc)
		return rc;
	root->mapping.kept = true;
	*out = (uintptr_t)root->mapping.addr;
	return 0;
}

int devbuf_addr(struct devbuf *b, uint64_t *out)
{
	struct devbuf *root;
	struct made made;
	uint64_t addr;
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (!out)
		return dbuf_fail(-EINVAL, "no place for the address");
	rc = dbuf_ensure(b, &made);
	if (rc)
		return rc;
	root = dbuf_root(b);
	dbuf_lock(b);
	rc = root_addr(root, &addr);
	dbuf_unlock(b);
	if (rc) {
		dbuf_undo(b, made);
		return rc;
	}
	*out = addr + (root == b ? 0 : b->offset);
	return 0;
}

int devbuf_sync(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags)
{
	int rc;

	rc = dbuf_usable(b);
	if (rc)
		return rc;
	if (flags & ~(DEVBUF_CPU_READ | DEVBUF_CPU_WRITE | DEVBUF_CPU_END))
		return dbuf_fail(-EINVAL, "flags %#x are not made of DEVBUF_CPU_*", flags);
	if (!(flags & (DEVBUF_CPU_READ | DEVBUF_CPU_WRITE)))
		return dbuf_fail(-EINVAL, "neither DEVBUF_CPU_READ nor DEVBUF_CPU_WRITE");
	rc = dbuf_range(b, offset, nbytes);
	if (rc)
		return rc;
	dbuf_lock_data(b);
	rc = dbuf_backend(b)->sync(b, offset, nbytes, flags);
	dbuf_unlock_data(b);
	return rc;
}
