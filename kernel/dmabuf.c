// SPDX-License-Identifier: GPL-2.0-only
/*
 * Export and import of dma-bufs.
 *
 * A dma_buf of ours is whole pages of a storage, and knows the buffer that it
 * was made of. There is one for each buffer and access mode, since importers
 * tell buffers apart by it.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "devbuf_private.h"

static struct page **devbuf_export_pages(const struct devbuf_export_info *export)
{
	return export->storage->mem.pages + export->first_page;
}

/*
 * The scatter list of an export for one device: neighbouring pages become one
 * entry, as long as the device, and a bounce buffer if it needs one, allow.
 */
static int devbuf_attachment_init(struct devbuf_attachment *a)
{
	const struct devbuf_export_info *export = a->export;
	struct devbuf_storage *storage = export->storage;
	size_t max_segment = min_t(size_t, dma_get_max_seg_size(a->dev),
				   dma_max_mapping_size(a->dev));

	int ret;

	if (export->nr_pages > UINT_MAX)
		return -ENOMEM;
	if (!storage->stays && !devbuf_device_enter(storage->device))
		return -ENODEV;
	ret = sg_alloc_table_from_pages_segment(&a->sgt,
						devbuf_export_pages(export),
						export->nr_pages, 0,
						export->nr_pages << PAGE_SHIFT,
						max_t(size_t, max_segment, PAGE_SIZE),
						GFP_KERNEL_ACCOUNT);
	if (!storage->stays)
		devbuf_device_leave(storage->device);
	return ret;
}

/* May the importer's device reach memory that goes with ours? */
static int devbuf_attachment_check(const struct devbuf_storage *storage,
				   const struct dma_buf_attachment *attachment)
{
	if (storage->stays)
		return 0;
	/* The core attaches others, too, for them to be refused by ->pin. */
	if (!attachment->peer2peer ||
	    devbuf_dma_peer_reason(storage->device, attachment->dev))
		return -EOPNOTSUPP;
	return 0;
}

static int devbuf_dmabuf_attach(struct dma_buf *dmabuf,
				struct dma_buf_attachment *attachment)
{
	struct devbuf_export_info *export = dmabuf->priv;
	struct devbuf_attachment *a;
	int ret;

	ret = devbuf_attachment_check(export->storage, attachment);
	if (ret)
		return ret;
	a = kzalloc(sizeof(*a), GFP_KERNEL_ACCOUNT);
	if (!a)
		return -ENOMEM;
	a->export = export;
	a->dev = attachment->dev;
	ret = devbuf_attachment_init(a);
	if (ret) {
		kfree(a);
		return ret;
	}
	attachment->priv = a;
	INIT_LIST_HEAD(&a->entry);
	/* A bus has no caches that would have to be told. */
	if (export->storage->local)
		return 0;

	mutex_lock(&export->storage->sync_lock);
	list_add(&a->entry, &export->storage->attachments);
	mutex_unlock(&export->storage->sync_lock);
	return 0;
}

static void devbuf_dmabuf_detach(struct dma_buf *dmabuf,
				 struct dma_buf_attachment *attachment)
{
	struct devbuf_export_info *export = dmabuf->priv;
	struct devbuf_attachment *a = attachment->priv;

	mutex_lock(&export->storage->sync_lock);
	list_del_init(&a->entry);
	mutex_unlock(&export->storage->sync_lock);
	sg_free_table(&a->sgt);
	kfree(a);
}

static struct sg_table *devbuf_dmabuf_map(struct dma_buf_attachment *attachment,
					  enum dma_data_direction dir)
{
	struct devbuf_attachment *a = attachment->priv;
	struct devbuf_storage *storage = a->export->storage;
	int ret;

	if (!a->export->writable && dir != DMA_TO_DEVICE)
		return ERR_PTR(-EACCES);
	if (!storage->stays && !devbuf_device_enter(storage->device))
		return ERR_PTR(-ENODEV);

	/*
	 * Mapping and syncing are two steps, since other devices may have the
	 * same bytes mapped: what the DMA API checks for those who map once.
	 */
	mutex_lock(&storage->sync_lock);
	ret = a->mapped ? -EBUSY : dma_map_sgtable(a->dev, &a->sgt, dir,
						   DMA_ATTR_SKIP_CPU_SYNC);
	if (!ret) {
		if (!storage->local)
			dma_sync_sgtable_for_device(a->dev, &a->sgt, dir);
		a->mapped = true;
		a->dir = dir;
	}
	mutex_unlock(&storage->sync_lock);
	if (!storage->stays)
		devbuf_device_leave(storage->device);
	return ret ? ERR_PTR(ret) : &a->sgt;
}

static void devbuf_dmabuf_unmap(struct dma_buf_attachment *attachment,
				struct sg_table *sgt, enum dma_data_direction dir)
{
	struct devbuf_attachment *a = attachment->priv;
	struct devbuf_storage *storage = a->export->storage;

	mutex_lock(&storage->sync_lock);
	a->mapped = false;
	if (!storage->local)
		dma_sync_sgtable_for_cpu(a->dev, sgt, dir);
	dma_unmap_sgtable(a->dev, sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	mutex_unlock(&storage->sync_lock);
}

/*
 * Memory that goes with its device cannot be kept where it is for an importer who
 * could not be told. (This makes our dma_buf one that moves.)
 */
static int devbuf_dmabuf_pin(struct dma_buf_attachment *attachment)
{
	return -EOPNOTSUPP;
}

static void devbuf_dmabuf_unpin(struct dma_buf_attachment *attachment)
{
}

static int devbuf_dmabuf_begin_cpu_access(struct dma_buf *dmabuf,
					  enum dma_data_direction dir)
{
	struct devbuf_export_info *export = dmabuf->priv;

	return devbuf_coherence_wait(export->storage, devbuf_export_pos(export),
				     dmabuf->size, dir != DMA_FROM_DEVICE);
}

static int devbuf_dmabuf_end_cpu_access(struct dma_buf *dmabuf,
					enum dma_data_direction dir)
{
	struct devbuf_export_info *export = dmabuf->priv;

	devbuf_coherence_end(export->storage, devbuf_export_pos(export),
			     dmabuf->size, dir != DMA_FROM_DEVICE);
	return 0;
}

/*
 * As dma-buf intends: page frames, not pages. (Who wants pages that can be
 * pinned maps by id.)
 */
static int devbuf_dmabuf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct devbuf_export_info *export = dmabuf->priv;
	unsigned long nr_pages = vma_pages(vma), i, run;
	struct page **pages;
	int ret;

	/* A read-only mapping of a read-only file has lost VM_SHARED. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (!export->writable && vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (!export->storage->stays)
		return devbuf_mmap_storage(vma, export->storage,
					   export->first_page + vma->vm_pgoff,
					   export->writable);
	if (!export->writable)
		vm_flags_clear(vma, VM_MAYWRITE);
	pages = devbuf_export_pages(export) + vma->vm_pgoff;
	vma->vm_page_prot = devbuf_mmap_pgprot(export->storage, vma->vm_page_prot);

	for (i = 0; i < nr_pages; i += run) {
		for (run = 1; i + run < nr_pages; run++)
			if (page_to_pfn(pages[i + run]) !=
			    page_to_pfn(pages[i]) + run)
				break;
		ret = remap_pfn_range(vma, vma->vm_start + (i << PAGE_SHIFT),
				      page_to_pfn(pages[i]), run << PAGE_SHIFT,
				      vma->vm_page_prot);
		if (ret)
			return ret;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* The dma-buf core counts vmaps, and calls this for the first one only. */
static int devbuf_dmabuf_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct devbuf_export_info *export = dmabuf->priv;
	void *vaddr;

	if (export->nr_pages > UINT_MAX)
		return -ENOMEM;
	vaddr = vmap(devbuf_export_pages(export), export->nr_pages, VM_MAP,
		     devbuf_mmap_pgprot(export->storage, PAGE_KERNEL));
	if (!vaddr)
		return -ENOMEM;
	iosys_map_set_vaddr(map, vaddr);
	return 0;
}

static void devbuf_dmabuf_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	vunmap(map->vaddr);
}

static void devbuf_dmabuf_release(struct dma_buf *dmabuf)
{
	struct devbuf_export_info *export = dmabuf->priv;
	struct devbuf_buffer *buffer = export->buffer;
	struct devbuf_storage *storage = export->storage;

	ww_mutex_lock(&storage->lock, NULL);
	list_del(&export->entry);
	ww_mutex_unlock(&storage->lock);

	kfree(export);
	devbuf_storage_put(storage);
	devbuf_buffer_put(buffer);
}

#define DEVBUF_DMABUF_OPS						\
	.attach			= devbuf_dmabuf_attach,			\
	.detach			= devbuf_dmabuf_detach,			\
	.map_dma_buf		= devbuf_dmabuf_map,			\
	.unmap_dma_buf		= devbuf_dmabuf_unmap,			\
	.begin_cpu_access	= devbuf_dmabuf_begin_cpu_access,	\
	.end_cpu_access		= devbuf_dmabuf_end_cpu_access,		\
	.mmap			= devbuf_dmabuf_mmap,			\
	.release		= devbuf_dmabuf_release

/*
 * A kernel mapping can be written to, so read-only exports have none. (Having
 * one that fails would not do: the dma-buf core warns of that.)
 */
static const struct dma_buf_ops devbuf_dmabuf_ops[] = {
	[false] = {
		DEVBUF_DMABUF_OPS,
	},
	[true] = {
		DEVBUF_DMABUF_OPS,
		.vmap		= devbuf_dmabuf_vmap,
		.vunmap		= devbuf_dmabuf_vunmap,
	},
};

/* Of memory that goes with its device: for importers that can be told so. */
static const struct dma_buf_ops devbuf_dmabuf_moving_ops = {
	DEVBUF_DMABUF_OPS,
	.pin	= devbuf_dmabuf_pin,
	.unpin	= devbuf_dmabuf_unpin,
};

static bool devbuf_dmabuf_is_ours(const struct dma_buf *dmabuf)
{
	return dmabuf->ops == &devbuf_dmabuf_ops[false] ||
	       dmabuf->ops == &devbuf_dmabuf_ops[true] ||
	       dmabuf->ops == &devbuf_dmabuf_moving_ops;
}

static struct dma_buf *devbuf_export_new(struct devbuf_buffer *buffer,
					 struct devbuf_storage *storage,
					 bool writable)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct devbuf_export_info *export;
	struct dma_buf *dmabuf;
	u64 start, end;
	int ret;

	export = kzalloc(sizeof(*export), DEVBUF_GFP);
	if (!export)
		return ERR_PTR(-ENOMEM);
	start = devbuf_buffer_pos(buffer);
	end = start + buffer->nbytes;
	export->first_page = start >> PAGE_SHIFT;
	export->nr_pages = DIV_ROUND_UP_ULL(end, PAGE_SIZE) - export->first_page;
	export->buffer = buffer;
	export->storage = storage;
	export->writable = writable;

	info.ops = storage->stays ? &devbuf_dmabuf_ops[writable] :
				    &devbuf_dmabuf_moving_ops;
	info.size = export->nr_pages << PAGE_SHIFT;
	info.flags = writable ? O_RDWR : O_RDONLY;
	info.priv = export;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		kfree(export);
		return dmabuf;
	}
	export->dmabuf = dmabuf;
	INIT_LIST_HEAD(&export->entry);
	devbuf_buffer_get(buffer);
	devbuf_storage_get(storage);

	ww_mutex_lock(&storage->lock, NULL);
	ret = devbuf_access_publish_export(storage, export);
	if (!ret)
		list_add_tail(&export->entry, &storage->exports);
	ww_mutex_unlock(&storage->lock);
	if (ret) {
		/* Its release undoes the rest, later and without our locks. */
		dma_buf_put(dmabuf);
		return ERR_PTR(ret);
	}
	return dmabuf;
}

/**
 * devbuf_exports_forget - let go of a buffer's dma_bufs
 * @buffer: a base or a view; its base is locked
 */
void devbuf_exports_forget(struct devbuf_buffer *buffer)
{
	size_t i;

	lockdep_assert_held(&buffer->base->lock);
	for (i = 0; i < ARRAY_SIZE(buffer->exports); i++) {
		/* Never releases at once, under our lock: fput() puts it off. */
		if (buffer->exports[i])
			dma_buf_put(buffer->exports[i]);
		buffer->exports[i] = NULL;
	}
}

/**
 * devbuf_exports_revoke - have all importers let go
 * @storage: the memory; nobody can enter its device, so that none maps it again
 * @deadline: in jiffies; no importer is waited for beyond it
 *
 * An importer unmaps at its own time; what counts is that the work which it has
 * queued is over.
 */
void devbuf_exports_revoke(struct devbuf_storage *storage, unsigned long deadline)
{
	struct devbuf_export_info *export;
	long rest;

	ww_mutex_lock(&storage->lock, NULL);
	list_for_each_entry(export, &storage->exports, entry) {
		struct dma_resv *resv = export->dmabuf->resv;

		dma_resv_lock(resv, NULL);
		dma_buf_move_notify(export->dmabuf);
		rest = max_t(long, deadline - jiffies, 0);
		if (dma_resv_wait_timeout(resv, DMA_RESV_USAGE_BOOKKEEP, false,
					  rest) <= 0)
			pr_warn("devbuf: %s went while an importer was busy with it\n",
				storage->device->name);
		dma_resv_unlock(resv);
	}
	ww_mutex_unlock(&storage->lock);
}

/*
 * Remember a dma_buf of the buffer's present memory, so that the next EXPORT
 * gives it again: while there is a handle, whose end makes us forget it. If
 * another one was remembered meanwhile, that one it is.
 *
 * Consumes the reference on @dmabuf, and returns one on the dma_buf to use.
 */
static struct dma_buf *devbuf_exports_remember(struct devbuf_buffer *buffer,
					       struct dma_buf *dmabuf)
{
	const struct devbuf_export_info *export = dmabuf->priv;
	struct dma_buf **known = &buffer->exports[export->writable];

	mutex_lock(&buffer->base->lock);
	if (rcu_access_pointer(buffer->storage) != export->storage ||
	    !atomic_read(&buffer->handles))
		goto unlock;
	if (*known) {
		dma_buf_put(dmabuf);
		dmabuf = *known;
	} else {
		*known = dmabuf;
	}
	get_dma_buf(dmabuf);
unlock:
	mutex_unlock(&buffer->base->lock);
	return dmabuf;
}

/* The buffer's dma_buf of this mode, old or new, with a reference. */
static struct dma_buf *devbuf_export_get(struct devbuf_buffer *buffer,
					 bool writable)
{
	struct devbuf_storage *storage;
	struct dma_buf *dmabuf;

	mutex_lock(&buffer->base->lock);
	storage = rcu_dereference_protected(buffer->storage,
					    lockdep_is_held(&buffer->base->lock));
	dmabuf = buffer->exports[writable];
	if (!storage)
		dmabuf = ERR_PTR(-ENODATA);
	else if (!storage->stays && devbuf_device_is_gone(storage->device))
		dmabuf = ERR_PTR(-ENODEV);
	else if (writable && storage->mem.read_only)
		dmabuf = ERR_PTR(-EACCES);
	else if (dmabuf)
		get_dma_buf(dmabuf);
	else
		dmabuf = devbuf_export_new(buffer, storage, writable);
	mutex_unlock(&buffer->base->lock);
	return dmabuf;
}

int devbuf_ioctl_export(struct devbuf_command *cmd)
{
	struct devbuf_export *arg = &cmd->arg.export;
	bool writable = arg->flags & DEVBUF_EXPORT_WRITE;
	struct devbuf_buffer *buffer;
	struct devbuf_grant grant;
	struct dma_buf *dmabuf;
	int fd, ret;

	if (arg->flags & ~DEVBUF_EXPORT_WRITE)
		return -EINVAL;
	buffer = devbuf_context_find(cmd->context, arg->id,
				     DEVBUF_RIGHT_READ | DEVBUF_RIGHT_EXPORT |
				     (writable ? DEVBUF_RIGHT_WRITE : 0), &grant);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	if (!(devbuf_buffer_caps(buffer) & DEVBUF_CAP_EXPORT)) {
		arg->out_reason = buffer->device->no_export;
		ret = devbuf_command_reply(cmd) ?: -EOPNOTSUPP;
		goto err_buffer;
	}
	ret = -EACCES;
	if (!devbuf_grant_reaches_pages(&grant, buffer))
		goto err_buffer;
	dmabuf = devbuf_export_get(buffer, writable);
	ret = PTR_ERR_OR_ZERO(dmabuf);
	if (ret)
		goto err_buffer;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		ret = fd;
		goto err_dmabuf;
	}

	arg->out_fd = fd;
	arg->out_offset = offset_in_page(devbuf_buffer_pos(buffer));
	arg->out_nbytes = buffer->nbytes;
	ret = devbuf_command_reply(cmd);
	if (ret)
		goto err_fd;
	dmabuf = devbuf_exports_remember(buffer, dmabuf);
	fd_install(fd, dmabuf->file);
	devbuf_buffer_put(buffer);
	return 0;

err_fd:
	put_unused_fd(fd);
err_dmabuf:
	dma_buf_put(dmabuf);
err_buffer:
	devbuf_buffer_put(buffer);
	return ret;
}

int devbuf_ioctl_import(struct devbuf_command *cmd)
{
	struct devbuf_import *arg = &cmd->arg.import;
	struct devbuf_export_info *export;
	struct devbuf_buffer *buffer, *held;
	struct devbuf_grant grant = { }, before = { };
	struct dma_buf *dmabuf;
	int ret = -EOPNOTSUPP;

	if (arg->flags || arg->pad)
		return -EINVAL;
	dmabuf = dma_buf_get(arg->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (!devbuf_dmabuf_is_ours(dmabuf))
		goto out;
	export = dmabuf->priv;
	buffer = export->buffer;

	grant.rights = DEVBUF_RIGHT_READ | DEVBUF_RIGHT_EXPORT;
	if (export->writable)
		grant.rights |= DEVBUF_RIGHT_WRITE;
	grant.reach_start = buffer->offset;
	grant.reach_end = buffer->offset + buffer->nbytes;

	held = devbuf_context_find(cmd->context, buffer->id, 0, &before);
	if (!IS_ERR(held))
		devbuf_buffer_put(held);
	arg->out_id = buffer->id;
	arg->out_rights = grant.rights | before.rights;
	ret = devbuf_command_reply(cmd);
	if (!ret)
		ret = devbuf_context_insert(cmd->context, buffer, &grant);
	if (!ret)
		dmabuf = devbuf_exports_remember(buffer, dmabuf);
out:
	dma_buf_put(dmabuf);
	return ret;
}
