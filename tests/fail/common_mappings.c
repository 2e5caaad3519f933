// SPDX-License-Identifier: GPL-2.0-only
/* Operations on mappings and dma-bufs, and those of an importer. */
#include "common.h"

#include <linux/dma-buf.h>

#include "../uapi/common_vgem.h"

/* --- mappings --------------------------------------------------------------------------------- */

static int map_made(struct world *world)
{
	return do_map(world->ctx, world->made, NBYTES, PROT_READ | PROT_WRITE, &world->made_map);
}

static void unmap_made(struct world *world)
{
	must_libc(munmap(world->made_map, NBYTES));
}

/* The first mapping of a buffer's memory makes a pseudo-file for it. */
static void make_unmapped(struct world *world)
{
	world->made = new_allocated(world->ctx, NBYTES);
}

static void undo_map_first(struct world *world)
{
	unmap_made(world);
	must(do_destroy(world->ctx, world->made));
}

const struct operation operation_map_first = {
	.prepare = make_unmapped,
	.run = map_made,
	.undo = undo_map_first,
};

static int map_again(struct world *world)
{
	return do_map(world->ctx, world->base, NBYTES, PROT_READ | PROT_WRITE, &world->made_map);
}

const struct operation operation_map_again = { .run = map_again, .undo = unmap_made };

static void take_pages_out(struct world *world)
{
	must_libc(madvise(world->map, NBYTES, MADV_DONTNEED));
}

/* Which needs no memory as long as the mapping keeps its page tables: there is no point. */
static int touch_pages(struct world *world)
{
	for (size_t i = 0; i < NBYTES; i += PAGE)
		*(volatile unsigned char *)&world->map[i];
	return 0;
}

const struct operation operation_map_fault = { .prepare = take_pages_out, .run = touch_pages };

/* The mapping is all that there is left of the buffer. */
static void prepare_unmap(struct world *world)
{
	make_unmapped(world);
	must(map_made(world));
	must(do_destroy(world->ctx, world->made));
}

static int unmap(struct world *world)
{
	return munmap(world->made_map, NBYTES) ? -errno : 0;
}

const struct operation operation_unmap = { .prepare = prepare_unmap, .run = unmap };

static int sync_base(struct world *world)
{
	return do_sync(world->ctx, world->base, 0, NBYTES, DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE);
}

const struct operation operation_sync = { .run = sync_base };

/* --- export and import ------------------------------------------------------------------------ */

static int export_made(struct world *world, __u32 flags)
{
	world->made_fd = do_export(world->ctx, world->made, flags);
	return world->made_fd < 0 ? world->made_fd : 0;
}

static int export_read_only(struct world *world)
{
	return export_made(world, 0);
}

static int export_writable(struct world *world)
{
	return export_made(world, DEVBUF_EXPORT_WRITE);
}

static void close_made(struct world *world)
{
	close(world->made_fd);
}

static void undo_export(struct world *world)
{
	close_made(world);
	must(do_destroy(world->ctx, world->made));
}

const struct operation operation_export_read_only = {
	.prepare = make_unmapped,
	.run = export_read_only,
	.undo = undo_export,
};
const struct operation operation_export_writable = {
	.prepare = make_unmapped,
	.run = export_writable,
	.undo = undo_export,
};

static int export_again(struct world *world)
{
	world->made_fd = do_export(world->ctx, world->base, 0);
	return world->made_fd < 0 ? world->made_fd : 0;
}

const struct operation operation_export_again = { .run = export_again, .undo = close_made };

static int import(struct world *world)
{
	return do_import(world->other, world->dmabuf, &world->made);
}

static void undo_import(struct world *world)
{
	must(do_destroy(world->other, world->base));
}

const struct operation operation_import = { .run = import, .undo = undo_import };

static void import_once(struct world *world)
{
	new_import(world->other, world->dmabuf);
}

static void undo_import_again(struct world *world)
{
	undo_import(world);
	undo_import(world);
}

const struct operation operation_import_again = {
	.prepare = import_once,
	.run = import,
	.undo = undo_import_again,
};

/* --- what the dma-buf itself can do ----------------------------------------------------------- */

static int dmabuf_map(struct world *world)
{
	world->made_map = mmap(NULL, NBYTES, PROT_READ, MAP_SHARED, world->dmabuf, 0);
	return world->made_map == MAP_FAILED ? -errno : 0;
}

const struct operation operation_dmabuf_map = { .run = dmabuf_map, .undo = unmap_made };

static int dmabuf_sync(struct world *world)
{
	struct dma_buf_sync sync = { DMA_BUF_SYNC_RW | DMA_BUF_SYNC_START };

	return do_command(world->dmabuf, DMA_BUF_IOCTL_SYNC, &sync);
}

const struct operation operation_dmabuf_sync = { .run = dmabuf_sync };

/* The dma-buf is all that there is left of the buffer. */
static void prepare_dmabuf_close(struct world *world)
{
	make_unmapped(world);
	must(export_writable(world));
	must(do_destroy(world->ctx, world->made));
}

static int close_dmabuf(struct world *world)
{
	return close(world->made_fd) ? -errno : 0;
}

const struct operation operation_dmabuf_close = {
	.prepare = prepare_dmabuf_close,
	.run = close_dmabuf,
};

/* --- an importer: attaches, and maps for DMA -------------------------------------------------- */

static int vgem_attach(struct world *world)
{
	__u32 handle;
	int ret = vgem_import(world->vgem, world->made_fd, &handle);

	if (!ret)
		world->made = handle;
	return ret;
}

static void make_writable_dmabuf(struct world *world)
{
	world->made_fd = new_export(world->ctx, world->twin, DEVBUF_EXPORT_WRITE);
}

static void undo_vgem_attach(struct world *world)
{
	vgem_close(world->vgem, world->made);
	close_made(world);
}

const struct operation operation_vgem_attach = {
	.prepare = make_writable_dmabuf,
	.run = vgem_attach,
	.undo = undo_vgem_attach,
	.of_vgem = true,
};

static void attach_vgem(struct world *world)
{
	make_writable_dmabuf(world);
	must(vgem_attach(world));
}

static int vgem_detach(struct world *world)
{
	struct {
		__u32 handle, pad;
	} argument = { .handle = world->made };

	return do_command(world->vgem, _IOW('d', 0x09, argument), &argument);
}

const struct operation operation_vgem_detach = {
	.prepare = attach_vgem,
	.run = vgem_detach,
	.undo = close_made,
	.of_vgem = true,
};

static int vgem_sync(struct world *world)
{
	return do_sync(world->ctx, world->twin, 0, NBYTES, DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE);
}

const struct operation operation_vgem_sync = {
	.prepare = attach_vgem,
	.run = vgem_sync,
	.undo = undo_vgem_attach,
	.of_vgem = true,
};
