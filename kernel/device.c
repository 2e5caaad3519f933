// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registry of devices: who offers memory, under which name.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "devbuf_private.h"

static DEFINE_MUTEX(devbuf_devices_lock);
static LIST_HEAD(devbuf_devices);	/* by rising cursor */

static void devbuf_device_release(struct kref *ref)
{
	kfree(container_of(ref, struct devbuf_device, ref));
}

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

/**
 * devbuf_device_register - offer memory
 * @desc: what is offered; copied, but for what it points to
 *
 * Return: the device, or -EINVAL for a description that cannot be, -EEXIST for
 * a name that is taken, or -ENOMEM.
 */
struct devbuf_device *devbuf_device_register(const struct devbuf_device_desc *desc)
{
	static u64 last_cursor;
	struct devbuf_device *device;
	int len;

	if (!desc->ops->alloc || !desc->ops->free ||
	    !is_power_of_2(desc->alignment))
		return ERR_PTR(-EINVAL);

	device = kzalloc(sizeof(*device), GFP_KERNEL);
	if (!device)
		return ERR_PTR(-ENOMEM);
	kref_init(&device->ref);
	devbuf_queue_init(&device->queue);
	device->desc = *desc;
	device->owner = desc->ops->owner;
	device->caps = desc->caps;
	if (desc->ops->offset)
		device->caps |= DEVBUF_CAP_VIEWS;
	len = snprintf(device->name, sizeof(device->name), "%s:%u",
		       desc->prefix, desc->number);
	if (len >= sizeof(device->name)) {
		kfree(device);
		return ERR_PTR(-EINVAL);
	}
	device->prefix_len = strlen(desc->prefix);

	mutex_lock(&devbuf_devices_lock);
	if (devbuf_device_lookup(device->name)) {
		mutex_unlock(&devbuf_devices_lock);
		kfree(device);
		return ERR_PTR(-EEXIST);
	}
	device->cursor = ++last_cursor;
	list_add_tail(&device->entry, &devbuf_devices);
	mutex_unlock(&devbuf_devices_lock);
	return device;
}

DEVBUF_EXPORT_SYMBOL(devbuf_device_register);

/**
 * devbuf_device_unregister - offer no more memory
 * @device: the device
 *
 * What was allocated stays until its users let go: each allocation holds the
 * module that @ops->owner names. Nothing new is allocated.
 */
void devbuf_device_unregister(struct devbuf_device *device)
{
	mutex_lock(&devbuf_devices_lock);
	list_del(&device->entry);
	WRITE_ONCE(device->gone, true);
	mutex_unlock(&devbuf_devices_lock);
	devbuf_device_put(device);
}

DEVBUF_EXPORT_SYMBOL(devbuf_device_unregister);

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
 * devbuf_device_enter - before a callback of the device may be called
 * @device: the device
 *
 * Holds the module that the callbacks are in. It cannot be on its way out: it
 * unregisters its devices first, under the same lock.
 *
 * Return: 0, or -ENODEV when the device is gone.
 */
int devbuf_device_enter(struct devbuf_device *device)
{
	int ret = -ENODEV;

	mutex_lock(&devbuf_devices_lock);
	if (!device->gone && try_module_get(device->owner))
		ret = 0;
	mutex_unlock(&devbuf_devices_lock);
	return ret;
}

void devbuf_device_leave(struct devbuf_device *device)
{
	module_put(device->owner);
}

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
	if (!devbuf_device_enter(device)) {
		if (device->desc.ops->usage)
			device->desc.ops->usage(device, &info->out_total_nbytes,
						&info->out_free_nbytes);
		devbuf_device_leave(device);
	}
	ret = devbuf_command_reply(cmd);
	devbuf_device_put(device);
	return ret;
}
