// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registry of devices: who offers memory, under which name.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "devbuf_private.h"

static DEFINE_MUTEX(devbuf_devices_lock);	/* the list, and who is gone */
static LIST_HEAD(devbuf_devices);	/* by rising cursor */

static void devbuf_device_free(struct devbuf_device *device)
{
	percpu_ref_exit(&device->active);
	pci_dev_put(device->desc.provider);
	put_device(device->desc.dma_dev);
	put_device(device->desc.parent);
	kfree(device);
}

static void devbuf_device_release(struct kref *ref)
{
	devbuf_device_free(container_of(ref, struct devbuf_device, ref));
}

/* May sleep. */
void devbuf_device_put(struct devbuf_device *device)
{
	kref_put(&device->ref, devbuf_device_release);
}

static struct devbuf_device *devbuf_device_lookup(const char *name)
{
	struct devbuf_device *device;

	lockdep_assert_held(&devbuf_devices_lock);
	list_for_each_entry(device, &devbuf_devices, entry)
		if (!strcmp(device->name, name))
			return device;
	return NULL;
}

static bool devbuf_device_desc_is_valid(const struct devbuf_device_desc *desc,
					bool permanent)
{
	const struct devbuf_device_ops *ops = desc->ops;

	if (!ops->alloc || !ops->free || !is_power_of_2(desc->alignment))
		return false;
	if ((ops->dma || ops->operate) && !desc->max_dma_nbytes)
		return false;
	if ((ops->dma || (desc->caps & DEVBUF_CAP_HOST &&
			  desc->caps & DEVBUF_CAP_LOCAL)) && !desc->dma_dev)
		return false;
	if (desc->caps & DEVBUF_CAP_OPERATIONS &&
	    !(ops->operate && ops->check_operation))
		return false;
	/* Importers of ordinary memory cannot be made to let go of it. */
	if (desc->caps & DEVBUF_CAP_EXPORT && !permanent &&
	    !(desc->caps & DEVBUF_CAP_PEER))
		return false;
	return !(desc->caps & DEVBUF_CAP_PEER) || desc->provider;
}

/* What this kernel offers to peers, and why not more. */
static void devbuf_device_limit_peers(struct devbuf_device *device)
{
	device->no_export = DEVBUF_REASON_NOT_PEER_MEMORY;
	if (!(device->caps & DEVBUF_CAP_PEER))
		return;
	if (!DEVBUF_HAS_P2PDMA) {
		device->caps &= ~(DEVBUF_CAP_PEER | DEVBUF_CAP_EXPORT);
		device->no_export = DEVBUF_REASON_NO_P2PDMA;
	} else if (!IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY)) {
		device->caps &= ~DEVBUF_CAP_EXPORT;
		device->no_export = DEVBUF_REASON_NO_MOVE_NOTIFY;
	}
}

/* The last callback that ran when the device was unregistered has returned. */
static void devbuf_device_idle(struct percpu_ref *active)
{
	complete(&container_of(active, struct devbuf_device, active)->idle);
}

static struct devbuf_device *
devbuf_device_new(const struct devbuf_device_desc *desc, bool permanent)
{
	struct devbuf_device *device;
	int len, ret;

	device = kzalloc(sizeof(*device), GFP_KERNEL);
	if (!device)
		return ERR_PTR(-ENOMEM);
	ret = -EINVAL;
	len = snprintf(device->name, sizeof(device->name), "%s:%u",
		       desc->prefix, desc->number);
	if (len >= sizeof(device->name))
		goto err;
	ret = percpu_ref_init(&device->active, devbuf_device_idle, 0, GFP_KERNEL);
	if (ret)
		goto err;
	kref_init(&device->ref);
	init_completion(&device->idle);
	devbuf_queue_init(&device->queue);
	spin_lock_init(&device->memory_lock);
	INIT_LIST_HEAD(&device->storages);
	INIT_LIST_HEAD(&device->dma_maps);
	init_waitqueue_head(&device->freed);
	device->desc = *desc;
	device->permanent = permanent;
	device->prefix_len = strlen(desc->prefix);
	device->operates = desc->ops->operate;
	device->caps = desc->caps;
	if (desc->ops->offset)
		device->caps |= DEVBUF_CAP_VIEWS;
	if (desc->ops->dma)
		device->caps |= DEVBUF_CAP_ENGINE;
	devbuf_device_limit_peers(device);
	if (desc->dma_dev)
		device->reaches_all = devbuf_dma_reaches_all(desc->dma_dev);
	get_device(desc->parent);
	get_device(desc->dma_dev);
	pci_dev_get(desc->provider);
	return device;

err:
	kfree(device);
	return ERR_PTR(ret);
}

static struct devbuf_device *
__devbuf_device_register(const struct devbuf_device_desc *desc, bool permanent)
{
	static u64 last_cursor;
	struct devbuf_device *device;

	if (!devbuf_device_desc_is_valid(desc, permanent))
		return ERR_PTR(-EINVAL);
	device = devbuf_device_new(desc, permanent);
	if (IS_ERR(device))
		return device;

	mutex_lock(&devbuf_devices_lock);
	if (devbuf_device_lookup(device->name)) {
		mutex_unlock(&devbuf_devices_lock);
		devbuf_device_free(device);
		return ERR_PTR(-EEXIST);
	}
	device->cursor = ++last_cursor;
	list_add_tail(&device->entry, &devbuf_devices);
	mutex_unlock(&devbuf_devices_lock);
	return device;
}

/**
 * devbuf_device_register - offer memory
 * @desc: what is offered; copied, but for what it points to
 *
 * Return: the device, or -EINVAL for a description that cannot be, -EEXIST for
 * a name that is taken, or -ENOMEM.
 */
struct devbuf_device *devbuf_device_register(const struct devbuf_device_desc *desc)
{
	return __devbuf_device_register(desc, false);
}

DEVBUF_EXPORT_SYMBOL(devbuf_device_register);

/* Likewise, by a part of this module: it is there for as long as the memory is. */
struct devbuf_device *
devbuf_device_register_permanent(const struct devbuf_device_desc *desc)
{
	return __devbuf_device_register(desc, true);
}

static bool devbuf_device_has_memory(struct devbuf_device *device)
{
	bool has;

	/* With the lock: whoever wakes us is through with the device. */
	spin_lock(&device->memory_lock);
	has = device->nr_memories;
	spin_unlock(&device->memory_lock);
	return has;
}

/* How long importers are waited for that were told to let go: all of them. */
#define DEVBUF_DEVICE_REVOKE_TIMEOUT	(5 * HZ)

/* Take its memory from whoever uses it, and give it back. */
static void devbuf_device_revoke(struct devbuf_device *device)
{
	unsigned long deadline = jiffies + DEVBUF_DEVICE_REVOKE_TIMEOUT;
	struct devbuf_storage *storage, *held;

	devbuf_reuse_forget(device);
	spin_lock(&device->memory_lock);
	devbuf_dma_revoke(device);
	do {
		held = NULL;
		list_for_each_entry(storage, &device->storages, device_entry) {
			/* Without a reference, it is just being freed. */
			if (!refcount_inc_not_zero(&storage->ref))
				continue;
			held = storage;
			list_del_init(&held->device_entry);
			spin_unlock(&device->memory_lock);
			devbuf_storage_revoke(held, deadline);
			devbuf_storage_put(held);
			spin_lock(&device->memory_lock);
			break;
		}
	} while (held);
	spin_unlock(&device->memory_lock);
}

/**
 * devbuf_device_unregister - the device goes, or its driver does
 * @device: the device
 *
 * Waits for the callbacks that run, and gives back all memory: mappings of it get
 * SIGBUS, importers are told to let go, and what is queued ends with -ENODEV.
 * Afterwards no callback is called any more, though ids, and handles of them,
 * remain. Does not wait for userspace; for work of importers, which is on its way
 * to an end, it waits for a few seconds.
 */
void devbuf_device_unregister(struct devbuf_device *device)
{
	mutex_lock(&devbuf_devices_lock);
	list_del(&device->entry);
	WRITE_ONCE(device->gone, true);
	mutex_unlock(&devbuf_devices_lock);

	percpu_ref_kill(&device->active);
	wait_for_completion(&device->idle);
	devbuf_device_revoke(device);
	/* And what others are just freeing. */
	wait_event(device->freed, !devbuf_device_has_memory(device));
	devbuf_device_put(device);
}

DEVBUF_EXPORT_SYMBOL(devbuf_device_unregister);

/**
 * devbuf_device_add_memory - the device has filled in a storage's memory
 * @device: the device, entered
 * @storage: whose
 */
void devbuf_device_add_memory(struct devbuf_device *device,
			      struct devbuf_storage *storage)
{
	spin_lock(&device->memory_lock);
	list_add_tail(&storage->device_entry, &device->storages);
	device->nr_memories++;
	spin_unlock(&device->memory_lock);
}

/**
 * devbuf_device_free_memory - give a storage's memory back
 * @device: its device, which may be gone
 * @storage: whose; unless the device took the memory away before
 *
 * May run inside reclaim.
 */
void devbuf_device_free_memory(struct devbuf_device *device,
			       struct devbuf_storage *storage)
{
	bool listed;

	spin_lock(&device->memory_lock);
	listed = !list_empty(&storage->device_entry);
	list_del_init(&storage->device_entry);
	spin_unlock(&device->memory_lock);
	if (listed)
		devbuf_device_give_back(device, storage);
}

/* The storage is in no list: it is the caller who gives its memory back. */
void devbuf_device_give_back(struct devbuf_device *device,
			     struct devbuf_storage *storage)
{
	/* Not entered: whoever unregisters the device waits for it to be freed. */
	device->desc.ops->free(device, &storage->mem);
	spin_lock(&device->memory_lock);
	if (!--device->nr_memories)
		wake_up(&device->freed);
	spin_unlock(&device->memory_lock);
}

void *devbuf_device_private(const struct devbuf_device *device)
{
	return device->desc.private;
}

DEVBUF_EXPORT_SYMBOL(devbuf_device_private);

int devbuf_device_numa_node(const struct devbuf_device *device)
{
	return device->desc.numa_node;
}

DEVBUF_EXPORT_SYMBOL(devbuf_device_numa_node);

/**
 * devbuf_device_find - the device of this very name
 * @name: "PREFIX:N"
 *
 * Return: the device, with a reference, or -ENODEV.
 */
struct devbuf_device *devbuf_device_find(const char *name)
{
	struct devbuf_device *device;

	mutex_lock(&devbuf_devices_lock);
	device = devbuf_device_lookup(name);
	if (device)
		kref_get(&device->ref);
	mutex_unlock(&devbuf_devices_lock);
	return device ?: ERR_PTR(-ENODEV);
}

/* The first device after @cursor, with a reference, or -ENODEV. */
static struct devbuf_device *devbuf_device_next(u64 cursor)
{
	struct devbuf_device *device;

	mutex_lock(&devbuf_devices_lock);
	list_for_each_entry(device, &devbuf_devices, entry) {
		if (device->cursor > cursor) {
			kref_get(&device->ref);
			goto unlock;
		}
	}
	device = ERR_PTR(-ENODEV);
unlock:
	mutex_unlock(&devbuf_devices_lock);
	return device;
}

bool devbuf_device_same_prefix(const struct devbuf_device *a,
			       const struct devbuf_device *b)
{
	return a->prefix_len == b->prefix_len &&
	       !strncmp(a->name, b->name, a->prefix_len);
}

int devbuf_ioctl_device_info(struct devbuf_command *cmd)
{
	struct devbuf_device_info *info = &cmd->arg.device_info;
	struct devbuf_usage usage = { };
	struct devbuf_device *device;
	int ret;

	if (info->pad)
		return -EINVAL;
	device = devbuf_device_next(info->cursor);
	if (IS_ERR(device))
		return PTR_ERR(device);

	info->out_cursor = device->cursor;
	info->out_caps = device->caps;
	info->out_alignment = device->desc.alignment;
	info->out_numa_node = device->desc.numa_node;
	memcpy(info->out_name, device->name, sizeof(info->out_name));
	/* A device that has just gone has no memory. */
	if (devbuf_device_enter(device)) {
		if (device->desc.ops->usage)
			device->desc.ops->usage(device, &usage);
		devbuf_device_leave(device);
	}
	info->out_total_nbytes = usage.total_nbytes;
	info->out_free_nbytes = usage.free_nbytes;
	info->out_largest_free_nbytes = usage.largest_free_nbytes;
	ret = devbuf_command_reply(cmd);
	devbuf_device_put(device);
	return ret;
}
