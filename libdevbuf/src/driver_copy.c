// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Bytes of the driver's buffers: copied, transferred, mapped. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "driver.h"

/* --- copies ----------------------------------------------------------------------------------- */

static int copy(struct devbuf *b, unsigned long nr, size_t offset, const void *memory,
		size_t nbytes)
{
	return dbuf_command_copy(dbuf_connection(b), nr,
				 (struct devbuf_copy_range){
					 .id = b->id,
					 .offset = offset,
					 .user_addr = (uintptr_t)memory,
					 .nbytes = nbytes,
				 });
}

void dbuf_fill_copy(struct devbuf_copy *copy, struct devbuf_copy_range *range,
		    const struct devbuf *b, size_t offset, const void *memory, size_t nbytes)
{
	*range = (struct devbuf_copy_range){
		.id = b->id,
		.offset = offset,
		.user_addr = (uintptr_t)memory,
		.nbytes = nbytes,
	};
	*copy = (struct devbuf_copy){
		.size = sizeof(*copy),
		.ranges = (uintptr_t)range,
		.nr_ranges = 1,
	};
}

int dbuf_driver_copyin(struct devbuf *b, size_t offset, const void *src, size_t nbytes)
{
	int rc = copy(b, DEVBUF_COPYIN, offset, src, nbytes);

	return rc ? dbuf_driver_failed(rc, "copy into", b) : 0;
}

int dbuf_driver_copyout(struct devbuf *b, size_t offset, void *dst, size_t nbytes)
{
	int rc = copy(b, DEVBUF_COPYOUT, offset, dst, nbytes);

	return rc ? dbuf_driver_failed(rc, "copy out of", b) : 0;
}

/* A path of a later driver's is some device's doing. */
enum devbuf_copy_path dbuf_path_from_uapi(__u32 path)
{
	switch (path) {
	case DEVBUF_PATH_NONE:
		return DEVBUF_VIA_NONE;
	case DEVBUF_PATH_PEER:
		return DEVBUF_VIA_PEER;
	case DEVBUF_PATH_DMAENGINE:
		return DEVBUF_VIA_DMAENGINE;
	case DEVBUF_PATH_CPU:
		return DEVBUF_VIA_CPU;
	default:
		return DEVBUF_VIA_DEVICE;
	}
}

void dbuf_fill_range(struct devbuf_transfer_range *range, const struct devbuf_transfer_piece *piece)
{
	*range = (struct devbuf_transfer_range){
		.dst_id = piece->dst->id,
		.dst_offset = piece->dst_offset,
		.src_id = piece->src->id,
		.src_offset = piece->src_offset,
		.nbytes = piece->nbytes,
	};
}

void dbuf_fill_transfer(struct devbuf_transfer *transfer,
			const struct devbuf_transfer_range *ranges, size_t nr, unsigned int flags)
{
	*transfer = (struct devbuf_transfer){
		.size = sizeof(*transfer),
		.flags = flags & DEVBUF_NO_CPU ? DEVBUF_TRANSFER_NO_CPU : 0,
		.ranges = (uintptr_t)ranges,
		.nr_ranges = (__u32)nr,
	};
}

static int transfer(const struct connection *c, const struct devbuf_transfer_range *ranges,
		    size_t nr, unsigned int flags, enum devbuf_copy_path *took)
{
	struct devbuf_transfer transfer;
	int rc;

	dbuf_fill_transfer(&transfer, ranges, nr, flags);
	rc = dbuf_command(c, DEVBUF_TRANSFER, &transfer);
	if (!rc)
		*took = dbuf_path_from_uapi(transfer.out_path);
	return rc;
}

int dbuf_driver_transfer(struct devbuf *dst, size_t dst_offset, struct devbuf *src,
			 size_t src_offset, size_t nbytes, unsigned int flags,
			 enum devbuf_copy_path *took)
{
	const struct devbuf_transfer_piece piece = { dst, dst_offset, src, src_offset, nbytes };
	struct devbuf_transfer_range range;
	int rc;

	dbuf_fill_range(&range, &piece);
	rc = transfer(dbuf_connection(dst), &range, 1, flags, took);
	if (rc)
		return dbuf_fail(
			rc, "cannot transfer %zu bytes from %s %" PRIu64 " to %s %" PRIu64 ": %s",
			nbytes, src->device, src->id, dst->device, dst->id, dbuf_reason(rc));
	return 0;
}

int dbuf_driver_transfer_many(const struct devbuf_transfer_piece *pieces, size_t nr,
			      unsigned int flags, enum devbuf_copy_path *took)
{
	struct devbuf_transfer_range *ranges = malloc(nr * sizeof(*ranges));
	int rc;

	if (!ranges)
		return dbuf_fail(-ENOMEM, "no memory for %zu pieces", nr);
	for (size_t i = 0; i < nr; i++)
		dbuf_fill_range(&ranges[i], &pieces[i]);
	rc = transfer(dbuf_connection(pieces->dst), ranges, nr, flags, took);
	free(ranges);
	return rc ? dbuf_fail(rc, "cannot transfer %zu pieces: %s", nr, dbuf_reason(rc)) : 0;
}

static const char *why_not(__u32 reason)
{
	static const char *const reasons[] = {
		[DEVBUF_REASON_NOT_PEERS] = "both ends are host memory, or one device's",
		[DEVBUF_REASON_NO_ENGINE] = "no engine reaches both ends",
		[DEVBUF_REASON_NOT_BUILT] = "this driver has none",
		[DEVBUF_REASON_NO_CPU_ACCESS] = "the CPU cannot reach one of the ends",
		[DEVBUF_REASON_DEVICE_GONE] = "a device is gone",
	};

	if (reason < sizeof(reasons) / sizeof(reasons[0]) && reasons[reason])
		return reasons[reason];
	return "it cannot be taken";
}

/* The reasons of all paths that are better than the one that would be taken. */
static void explain(const struct devbuf_path *path, struct devbuf_plan *out)
{
	__u32 end = path->out_path == DEVBUF_PATH_NONE ? DEVBUF_PATH_COUNT : path->out_path;
	size_t n = 0;

	for (__u32 p = DEVBUF_PATH_PEER; p < end && p < DEVBUF_PATH_COUNT; p++) {
		int length = snprintf(out->why + n, sizeof(out->why) - n, "%s%s: %s", n ? "; " : "",
				      devbuf_copy_path_name(dbuf_path_from_uapi(p)),
				      why_not(path->out_reasons[p]));

		if (length < 0 || (size_t)length >= sizeof(out->why) - n)
			return;
		n += (size_t)length;
	}
}

int dbuf_driver_plan(struct devbuf *dst, struct devbuf *src, struct devbuf_plan *out)
{
	struct devbuf_path path = {
		.size = sizeof(path),
		.dst_id = dst->id,
		.src_id = src->id,
	};
	int rc = dbuf_command(dbuf_connection(dst), DEVBUF_PATH, &path);

	if (rc)
		return dbuf_driver_failed(rc, "plan a copy to", dst);
	out->path = dbuf_path_from_uapi(path.out_path);
	explain(&path, out);
	return 0;
}

/* --- mappings --------------------------------------------------------------------------------- */

static size_t in_page(const struct devbuf *b)
{
	return b->offset & (dbuf_connection(b)->page_size - 1);
}

/* The caller's own memory is where it is. */
static int map_external(struct devbuf *b, int prot, struct mapping *m)
{
	struct devbuf_status s = DEVBUF_STATUS_INIT;
	int rc;

	rc = dbuf_driver_status(b, &s);
	if (rc)
		return rc;
	if (s.read_only && prot & PROT_WRITE)
		return dbuf_driver_failed(-EACCES, "map", b);
	m->addr = (char *)b->spec.external_ptr + b->offset;
	return 0;
}

int dbuf_driver_map(struct devbuf *b, int prot, struct mapping *m)
{
	const struct connection *c = dbuf_connection(b);
	uint64_t offset;
	char *pages;
	int rc;

	if (b->spec.external_ptr)
		return map_external(b, prot, m);
	if (__builtin_mul_overflow(b->id, c->page_size, &offset) || offset > INT64_MAX)
		return dbuf_driver_failed(-EOVERFLOW, "map", b);
	pages = mmap(NULL, in_page(b) + b->nbytes, prot, MAP_SHARED, c->fd, (off_t)offset);
	if (pages == MAP_FAILED) {
		rc = errno == EAGAIN ? -ENOMEM : -errno; /* over RLIMIT_MEMLOCK, after mlockall() */
		return dbuf_driver_failed(rc, "map", b);
	}
	m->addr = pages + in_page(b);
	return 0;
}

void dbuf_driver_unmap(struct devbuf *b, struct mapping *m)
{
	if (!b->spec.external_ptr)
		munmap((char *)m->addr - in_page(b), in_page(b) + b->nbytes);
}

int dbuf_driver_sync(struct devbuf *b, size_t offset, size_t nbytes, unsigned int flags)
{
	struct devbuf_sync sync = {
		.size = sizeof(sync),
		.flags = flags,
		.id = b->id,
		.offset = offset,
		.nbytes = nbytes,
	};
	int rc = dbuf_command(dbuf_connection(b), DEVBUF_SYNC, &sync);

	return rc ? dbuf_driver_failed(rc, "sync", b) : 0;
}
