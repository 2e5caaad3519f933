// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU mappings by id.
 *
 * A mapping does not belong to /dev/devbuf but to a pseudo-file of its storage:
 * so it holds the storage and not the context, whose close is felt at once, and
 * each storage has an address space of its own.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/signal.h>

#include "devbuf_private.h"

#define DEVBUF_FS_MAGIC		0x44564246	/* "DVBF" */

/* Valid while any context is open: see devbuf_mmap_open(). */
static struct vfsmount *devbuf_mount;
static int devbuf_mount_count;

static int devbuf_fs_init_context(struct fs_context *fc)
{
	return init_pseudo(fc, DEVBUF_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type devbuf_fs = {
	.owner			= THIS_MODULE,
	.name			= "devbuf",
	.init_fs_context	= devbuf_fs_init_context,
	.kill_sb		= kill_anon_super,
};

static int devbuf_pseudo_release(struct inode *inode, struct file *file)
{
	struct devbuf_storage *storage = file->private_data;

	ww_mutex_lock(&storage->lock, NULL);
	if (storage->file == file)
		storage->file = NULL;
	ww_mutex_unlock(&storage->lock);
	devbuf_storage_put(storage);
	return 0;
}

static const struct file_operations devbuf_pseudo_fops = {
	.owner		= THIS_MODULE,
	.release	= devbuf_pseudo_release,
};

static struct file *devbuf_pseudo_file_new(struct devbuf_storage *storage)
{
	struct inode *inode = alloc_anon_inode(devbuf_mount->mnt_sb);
	struct file *file;

	if (IS_ERR(inode))
		return ERR_CAST(inode);
	/* The file's release puts the module; we run in it, so it is there. */
	__module_get(THIS_MODULE);
	file = alloc_file_pseudo(inode, devbuf_mount, "devbuf", O_RDWR,
				 &devbuf_pseudo_fops);
	if (IS_ERR(file)) {
		iput(inode);
		module_put(THIS_MODULE);
		return file;
	}
	devbuf_storage_get(storage);
	file->private_data = storage;
	return file;
}

/* The storage's pseudo-file, with a reference, or an error. */
static struct file *devbuf_pseudo_file_get(struct devbuf_storage *storage)
{
	struct file *file;

	ww_mutex_lock(&storage->lock, NULL);
	/* It may be on its way to release, which waits for the lock. */
	file = devbuf_get_file_active(&storage->file);
	if (!file) {
		file = devbuf_pseudo_file_new(storage);
		if (!IS_ERR(file))
			storage->file = file;
	}
	ww_mutex_unlock(&storage->lock);
	return file;
}

static vm_fault_t devbuf_vm_insert(struct vm_area_struct *vma,
				   unsigned long address,
				   const struct devbuf_memory *mem, pgoff_t pgoff)
{
	if (mem->pages)
		return vmf_insert_page(vma, address, mem->pages[pgoff]);
	return vmf_insert_pfn(vma, address, PHYS_PFN(mem->phys) + pgoff);
}

/* Pages that one fault maps of memory that goes with its device. */
#define DEVBUF_FAULT_AROUND	512UL

/* The page that is missing, and then those about it, as far as that goes. */
static vm_fault_t devbuf_vm_fault_around(struct vm_fault *vmf,
					 const struct devbuf_memory *mem)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long span = DEVBUF_FAULT_AROUND << PAGE_SHIFT;
	unsigned long address = max(ALIGN_DOWN(vmf->address, span), vma->vm_start);
	unsigned long end = min(ALIGN_DOWN(vmf->address, span) + span, vma->vm_end);
	vm_fault_t ret;

	ret = devbuf_vm_insert(vma, vmf->address, mem, vmf->pgoff);
	for (; address < end && ret == VM_FAULT_NOPAGE; address += PAGE_SIZE)
		if (devbuf_vm_insert(vma, address, mem,
				     linear_page_index(vma, address)) !=
		    VM_FAULT_NOPAGE)
			break;
	return ret;
}

/*
 * Memory that stays is mapped at mmap(), and what comes here was taken out by
 * MADV_DONTNEED: no lock, as the mapping holds the storage. Other memory is mapped
 * here only, since whoever revokes it finds mappings that are complete; and he
 * waits for those who have entered the device.
 */
static vm_fault_t devbuf_vm_fault(struct vm_fault *vmf)
{
	struct devbuf_storage *storage = vmf->vma->vm_file->private_data;
	vm_fault_t ret;

	if (vmf->pgoff >= storage->mem.nr_pages)
		return VM_FAULT_SIGBUS;
	if (storage->stays)
		return devbuf_vm_insert(vmf->vma, vmf->address, &storage->mem,
					vmf->pgoff);
	if (!devbuf_device_enter(storage->device))
		return VM_FAULT_SIGBUS;
	ret = devbuf_vm_fault_around(vmf, &storage->mem);
	devbuf_device_leave(storage->device);
	return ret;
}

static const struct vm_operations_struct devbuf_vm_ops = {
	.fault = devbuf_vm_fault,
};

/* How every mapping of this memory must be, lest attributes conflict. */
pgprot_t devbuf_mmap_pgprot(const struct devbuf_storage *storage, pgprot_t prot)
{
	if (storage->mem.flags & DEVBUF_CREATE_UNCACHED || storage->mem.iomem)
		return pgprot_writecombine(prot);
	return prot;
}

/* Pages that are mapped between two looks at signals. */
#define DEVBUF_MMAP_STEP	512UL

static int devbuf_mmap_pages(struct vm_area_struct *vma, struct page **pages)
{
	unsigned long nr_pages = vma_pages(vma), done = 0;
	unsigned long step, left;
	int ret;

	for (; done < nr_pages; done += step) {
		if (fatal_signal_pending(current))
			return -EINTR;
		step = min(nr_pages - done, DEVBUF_MMAP_STEP);
		left = step;
		ret = vm_insert_pages(vma, vma->vm_start + (done << PAGE_SHIFT),
				      pages + done, &left);
		if (ret)
			return ret;
		cond_resched();
	}
	return 0;
}

/**
 * devbuf_mmap_storage - map memory in such a way that it can be revoked
 * @vma: the area; afterwards of the storage's pseudo-file
 * @storage: the memory
 * @first_page: first page of it
 * @writable: the caller may write
 *
 * Return: 0 or an error of mmap().
 */
int devbuf_mmap_storage(struct vm_area_struct *vma, struct devbuf_storage *storage,
			unsigned long first_page, bool writable)
{
	struct file *file;

	if (storage->mem.read_only)
		writable = false;
	if (vma->vm_flags & VM_WRITE && !writable)
		return -EACCES;
	file = devbuf_pseudo_file_get(storage);
	if (IS_ERR(file))
		return PTR_ERR(file);
	vma_set_file(vma, file);
	fput(file);

	vma->vm_pgoff = first_page;
	vma->vm_ops = &devbuf_vm_ops;
	vma->vm_page_prot = devbuf_mmap_pgprot(storage, vma->vm_page_prot);
	/* MIXEDMAP: pages, which can be pinned (direct I/O). */
	vm_flags_set(vma, VM_DONTEXPAND | (storage->mem.pages ? VM_MIXEDMAP :
		     VM_PFNMAP | VM_IO | VM_DONTDUMP));
	if (!writable)
		vm_flags_clear(vma, VM_MAYWRITE);
	if (!storage->stays)
		return devbuf_device_is_gone(storage->device) ? -ENODEV : 0;
	return devbuf_mmap_pages(vma, storage->mem.pages + first_page);
}

/**
 * devbuf_mmap_revoke - take memory out of all mappings
 * @storage: the memory; nobody can enter its device, so that none comes back
 */
void devbuf_mmap_revoke(struct devbuf_storage *storage)
{
	struct file *file;

	ww_mutex_lock(&storage->lock, NULL);
	file = devbuf_get_file_active(&storage->file);
	ww_mutex_unlock(&storage->lock);
	/* No file, no mapping, for mappings hold it. */
	if (!file)
		return;
	unmap_mapping_range(file->f_mapping, 0, 0, true);
	fput(file);
}

int devbuf_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct devbuf_context *context = file->private_data;
	struct devbuf_storage *storage;
	struct devbuf_buffer *buffer;
	struct devbuf_grant grant;
	unsigned long first_page, end_page;
	int ret;

	/*
	 * A private copy of device memory would be no device memory. (MAYSHARE,
	 * since a file opened for reading loses VM_SHARED.)
	 */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	buffer = devbuf_context_find(context, vma->vm_pgoff, DEVBUF_RIGHT_READ,
				     &grant);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);

	ret = -EOPNOTSUPP;
	if (!(devbuf_buffer_caps(buffer) & DEVBUF_CAP_MAP))
		goto out;
	ret = -EACCES;
	if (!devbuf_grant_reaches_pages(&grant, buffer))
		goto out;
	ret = -EINVAL;
	first_page = buffer->offset >> PAGE_SHIFT;
	end_page = DIV_ROUND_UP_ULL(buffer->offset + buffer->nbytes, PAGE_SIZE);
	if (vma_pages(vma) > end_page - first_page)
		goto out;
	ret = -ENODATA;
	storage = devbuf_buffer_get_storage(buffer);
	if (!storage)
		goto out;
	ret = devbuf_mmap_storage(vma, storage, first_page,
				  grant.rights & DEVBUF_RIGHT_WRITE);
	devbuf_storage_put(storage);
out:
	devbuf_buffer_put(buffer);
	return ret;
}

/**
 * devbuf_mmap_open - a context may want to map
 *
 * The file system of the pseudo-files is mounted while a context is open, and
 * lives on while a mapping does. Were it mounted for as long as the module is
 * loaded, it would hold the module for ever.
 *
 * Return: 0 or an error of mounting: -ENOMEM.
 */
int devbuf_mmap_open(void)
{
	return simple_pin_fs(&devbuf_fs, &devbuf_mount, &devbuf_mount_count);
}

void devbuf_mmap_close(void)
{
	simple_release_fs(&devbuf_mount, &devbuf_mount_count);
}
