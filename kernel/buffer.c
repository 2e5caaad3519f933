// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers: bases and views, from CREATE to the last reference.
 *
 * What a buffer is does not change; whether it has memory does. A buffer's
 * storage is set and cleared under its base's lock, and read without: see
 * devbuf_buffer_get_storage().
 */
#include <linux/ctype.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "devbuf_private.h"

/**
 * struct devbuf_name - a name for people
 * @rcu: QUERY may still read it
 * @text: with a NUL
 */
struct devbuf_name {
	struct rcu_head rcu;
	char text[DEVBUF_NAME_MAX];
};

static struct devbuf_buffer *devbuf_buffer_new(struct devbuf_context *context)
{
	static atomic64_t last_id;
	struct devbuf_buffer *buffer;

	buffer = kzalloc(sizeof(*buffer), DEVBUF_GFP);
	if (!buffer)
		return NULL;
	kref_init(&buffer->ref);
	buffer->id = atomic64_inc_return(&last_id);
	buffer->made_in = context->serial;
	mutex_init(&buffer->lock);
	INIT_LIST_HEAD(&buffer->allocated_views);
	INIT_LIST_HEAD(&buffer->view_entry);
	return buffer;
}

/*
 * Take a buffer's memory away, and hand its reference to the caller. What was
 * exported is forgotten: new exports are made of new memory.
 */
static struct devbuf_storage *devbuf_buffer_detach(struct devbuf_buffer *buffer)
{
	struct devbuf_storage *storage;

	lockdep_assert_held(&buffer->base->lock);
	storage = rcu_dereference_protected(buffer->storage,
					    lockdep_is_held(&buffer->base->lock));
	RCU_INIT_POINTER(buffer->storage, NULL);
	list_del_init(&buffer->view_entry);
	devbuf_exports_forget(buffer);
	return storage;
}

static void devbuf_buffer_release(struct kref *ref)
{
	struct devbuf_buffer *buffer = container_of(ref, struct devbuf_buffer, ref);
	struct devbuf_buffer *base = buffer->base;
	struct devbuf_storage *storage;

	mutex_lock(&base->lock);
	storage = devbuf_buffer_detach(buffer);
	mutex_unlock(&base->lock);
	if (storage)
		devbuf_storage_put(storage);

	if (devbuf_buffer_is_view(buffer))
		devbuf_buffer_put(base);
	if (buffer->user_mm)
		mmdrop(buffer->user_mm);
	devbuf_device_put(buffer->device);
	kfree(rcu_dereference_protected(buffer->name, true));
	mutex_destroy(&buffer->lock);
	kfree_rcu(buffer, rcu);
}

void devbuf_buffer_get(struct devbuf_buffer *buffer)
{
	kref_get(&buffer->ref);
}

/* May sleep. */
void devbuf_buffer_put(struct devbuf_buffer *buffer)
{
	kref_put(&buffer->ref, devbuf_buffer_release);
}

/**
 * devbuf_buffer_drop_handle - a handle left its table
 * @buffer: the handle's buffer, and its reference
 *
 * Exports hold their buffer. With the last handle nobody can ask for them
 * again, and the buffer lets go of them, lest they keep each other alive.
 */
void devbuf_buffer_drop_handle(struct devbuf_buffer *buffer)
{
	if (atomic_dec_and_test(&buffer->handles)) {
		mutex_lock(&buffer->base->lock);
		/* An import may just have given it another handle. */
		if (!atomic_read(&buffer->handles))
			devbuf_exports_forget(buffer);
		mutex_unlock(&buffer->base->lock);
	}
	devbuf_buffer_put(buffer);
}

/**
 * devbuf_buffer_get_storage - the memory of a buffer, if it is allocated
 * @buffer: a base or a view
 *
 * Takes no lock. The memory may be reused for another buffer between the moment
 * when we read the pointer and the moment when we get the reference; so the
 * reference counts only if the pointer is still there afterwards.
 *
 * Return: the storage, with a reference, or NULL.
 */
struct devbuf_storage *devbuf_buffer_get_storage(struct devbuf_buffer *buffer)
{
	struct devbuf_storage *storage;
	bool held;

	for (;;) {
		rcu_read_lock();
		storage = rcu_dereference(buffer->storage);
		held = storage && refcount_inc_not_zero(&storage->ref);
		rcu_read_unlock();
		if (!storage)
			return NULL;
		if (!held)
			continue;
		/*
		 * The count first, then the pointer: whoever keeps the memory
		 * for reuse clears the pointer before the count.
		 */
		smp_mb__after_atomic();
		if (rcu_access_pointer(buffer->storage) == storage)
			return storage;
		devbuf_storage_put(storage);
	}
}

/* What a CREATE flag asks of the device. */
static const struct {
	u32 flag;
	u64 caps;	/* any of these */
} devbuf_create_needs[] = {
	{ DEVBUF_CREATE_UNCACHED, DEVBUF_CAP_UNCACHED },
	{ DEVBUF_CREATE_CPU_ACCESS, DEVBUF_CAP_MAP | DEVBUF_CAP_EXTERNAL },
	{ DEVBUF_CREATE_HOST, DEVBUF_CAP_HOST },
	{ DEVBUF_CREATE_CONTIGUOUS, DEVBUF_CAP_CONTIGUOUS },
};

#define DEVBUF_CREATE_FLAGS	(DEVBUF_CREATE_UNCACHED |		\
				 DEVBUF_CREATE_CPU_ACCESS |		\
				 DEVBUF_CREATE_HOST |			\
				 DEVBUF_CREATE_CONTIGUOUS |		\
				 DEVBUF_CREATE_REUSE)

static int devbuf_create_check(const struct devbuf_create *arg)
{
	size_t len = strnlen(arg->device, sizeof(arg->device));
	u64 end;

	if (arg->flags & ~DEVBUF_CREATE_FLAGS || arg->pad)
		return -EINVAL;
	if (len == sizeof(arg->device) ||
	    memchr_inv(arg->device + len, 0, sizeof(arg->device) - len))
		return -EINVAL;
	if (!arg->nbytes || arg->nbytes > S64_MAX)
		return -EINVAL;
	if (arg->alignment && !is_power_of_2(arg->alignment))
		return -EINVAL;
	if (check_add_overflow(arg->user_addr, arg->nbytes, &end))
		return -EOVERFLOW;
	return 0;
}

static int devbuf_create_check_device(const struct devbuf_create *arg,
				      const struct devbuf_device *device)
{
	size_t i;

	if (!!arg->user_addr != !!(device->caps & DEVBUF_CAP_EXTERNAL))
		return -EINVAL;
	if (arg->alignment > device->desc.alignment)
		return -EOPNOTSUPP;
	for (i = 0; i < ARRAY_SIZE(devbuf_create_needs); i++)
		if (arg->flags & devbuf_create_needs[i].flag &&
		    !(device->caps & devbuf_create_needs[i].caps))
			return -EOPNOTSUPP;
	return 0;
}

int devbuf_ioctl_create(struct devbuf_command *cmd)
{
	struct devbuf_create *arg = &cmd->arg.create;
	struct devbuf_device *device;
	struct devbuf_buffer *base;
	int ret;

	ret = devbuf_create_check(arg);
	if (ret)
		return ret;
	device = devbuf_device_find(arg->device);
	if (IS_ERR(device))
		return PTR_ERR(device);
	ret = devbuf_create_check_device(arg, device);
	if (ret)
		goto err_device;
	base = devbuf_buffer_new(cmd->context);
	if (!base) {
		ret = -ENOMEM;
		goto err_device;
	}
	base->base = base;
	base->device = device;	/* and its reference */
	base->nbytes = arg->nbytes;
	base->alignment = arg->alignment;
	base->dtype = arg->dtype;
	base->flags = arg->flags;
	if (!(device->caps & DEVBUF_CAP_REUSE))
		base->flags &= ~DEVBUF_CREATE_REUSE;
	if (arg->user_addr) {
		base->user_addr = arg->user_addr;
		base->user_mm = current->mm;
		mmgrab(base->user_mm);
	}

	arg->out_id = base->id;
	ret = devbuf_command_reply(cmd);
	if (!ret)
		ret = devbuf_context_insert(cmd->context, base,
					    &(struct devbuf_grant) {
						    .rights = DEVBUF_RIGHTS_ALL,
						    .reach_end = base->nbytes,
					    });
	devbuf_buffer_put(base);
	return ret;

err_device:
	devbuf_device_put(device);
	return ret;
}

/* Where the view would begin in the base, or an error. */
static int devbuf_view_place(const struct devbuf_view *arg,
			     const struct devbuf_buffer *parent,
			     const struct devbuf_grant *grant, u64 *offset)
{
	u64 end;

	if (check_add_overflow(parent->offset, arg->offset, offset) ||
	    check_add_overflow(*offset, arg->nbytes, &end))
		return -EOVERFLOW;
	if (!arg->nbytes || arg->offset >= parent->nbytes)
		return -EINVAL;
	if (end > grant->reach_end)
		/* Where the base ends is known to those who reach its end. */
		return grant->reach_end == parent->base->nbytes ? -EINVAL : -EACCES;
	return 0;
}

int devbuf_ioctl_view(struct devbuf_command *cmd)
{
	struct devbuf_view *arg = &cmd->arg.view;
	struct devbuf_buffer *parent, *view;
	struct devbuf_grant grant;
	u64 offset;
	int ret;

	if (arg->flags || arg->pad)
		return -EINVAL;
	parent = devbuf_context_find(cmd->context, arg->id, 0, &grant);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	ret = devbuf_view_place(arg, parent, &grant, &offset);
	if (ret)
		goto out;
	view = devbuf_buffer_new(cmd->context);
	if (!view) {
		ret = -ENOMEM;
		goto out;
	}
	view->base = parent->base;
	devbuf_buffer_get(view->base);
	view->device = parent->device;
	kref_get(&view->device->ref);
	view->offset = offset;
	view->nbytes = arg->nbytes;
	view->dtype = arg->dtype;
	view->flags = parent->flags;

	/* Whoever makes a view manages it; its base only who did so before. */
	if (!devbuf_buffer_is_view(parent))
		grant.manages_base = grant.rights & DEVBUF_RIGHT_MANAGE;
	grant.rights |= DEVBUF_RIGHT_MANAGE;

	arg->out_id = view->id;
	arg->out_base_id = view->base->id;
	arg->out_offset = view->offset;
	ret = devbuf_command_reply(cmd);
	if (!ret)
		ret = devbuf_context_insert(cmd->context, view, &grant);
	devbuf_buffer_put(view);
out:
	devbuf_buffer_put(parent);
	return ret;
}

/* May this view be of that memory? */
static int devbuf_view_check(const struct devbuf_buffer *view,
			     struct devbuf_storage *storage)
{
	struct devbuf_device *device = view->device;
	int ret;

	if (devbuf_storage_is_of_host(storage))
		return 0;
	if (!devbuf_device_enter(device))
		return -ENODEV;
	ret = device->desc.ops->offset(device, &storage->mem, view->offset,
				       view->nbytes);
	devbuf_device_leave(device);
	return ret;
}

/*
 * Give @buffer its memory: its base's, which is @fresh if it had none. Consumes
 * @fresh only when it returns 0 and the base took it.
 *
 * Return: 0, -EOPNOTSUPP, -ENODEV, or -EAGAIN when somebody else was faster and the
 * caller has to look again.
 */
static int devbuf_buffer_attach(struct devbuf_buffer *buffer,
				struct devbuf_storage *fresh)
{
	struct devbuf_buffer *base = buffer->base;
	struct devbuf_storage *storage;
	int ret = -EAGAIN;

	mutex_lock(&base->lock);
	storage = rcu_dereference_protected(base->storage,
					    lockdep_is_held(&base->lock));
	if (rcu_access_pointer(buffer->storage) || !storage == !fresh)
		goto unlock;
	if (fresh)
		storage = fresh;
	ret = 0;
	if (devbuf_buffer_is_view(buffer)) {
		ret = devbuf_view_check(buffer, storage);
		if (ret)
			goto unlock;
		devbuf_storage_get(storage);
		rcu_assign_pointer(buffer->storage, storage);
		list_add(&buffer->view_entry, &base->allocated_views);
	}
	if (fresh)
		rcu_assign_pointer(base->storage, fresh);
unlock:
	mutex_unlock(&base->lock);
	return ret;
}

/* One try of ALLOCATE; -EAGAIN when another one is due. */
static int devbuf_buffer_allocate(struct devbuf_command *cmd,
				  struct devbuf_buffer *buffer,
				  const struct devbuf_grant *grant)
{
	struct devbuf_allocate *arg = &cmd->arg.allocate;
	struct devbuf_buffer *base = buffer->base;
	struct devbuf_storage *fresh = NULL;
	bool reused = false;
	int ret;

	arg->out_flags = 0;
	if (rcu_access_pointer(buffer->storage)) {
		if (!(arg->flags & DEVBUF_ALLOCATE_IF_NEEDED))
			return -EALREADY;
		return devbuf_command_reply(cmd);
	}
	if (!rcu_access_pointer(base->storage)) {
		if (devbuf_buffer_is_view(buffer) && !grant->manages_base)
			return -EACCES;
		if (base->user_mm && base->user_mm != current->mm)
			return -EPERM;
		fresh = devbuf_storage_alloc(cmd->context, base, &reused);
		if (IS_ERR(fresh))
			return PTR_ERR(fresh);
	}
	if (reused)
		arg->out_flags = DEVBUF_ALLOCATED_REUSED;
	ret = devbuf_command_reply(cmd);
	if (!ret)
		ret = devbuf_buffer_attach(buffer, fresh);
	if (ret && fresh)
		devbuf_reuse_keep_or_put(cmd->context, fresh);
	return ret;
}

int devbuf_ioctl_allocate(struct devbuf_command *cmd)
{
	struct devbuf_allocate *arg = &cmd->arg.allocate;
	struct devbuf_buffer *buffer;
	struct devbuf_grant grant;
	int ret;

	if (arg->flags & ~DEVBUF_ALLOCATE_IF_NEEDED)
		return -EINVAL;
	buffer = devbuf_context_find(cmd->context, arg->id, DEVBUF_RIGHT_MANAGE,
				     &grant);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	if (devbuf_buffer_is_view(buffer) &&
	    !(devbuf_buffer_caps(buffer) & DEVBUF_CAP_VIEWS)) {
		ret = -EOPNOTSUPP;
		goto out;
	}
	do {
		if (fatal_signal_pending(current))
			ret = -EINTR;
		else
			ret = devbuf_buffer_allocate(cmd, buffer, &grant);
	} while (ret == -EAGAIN);
out:
	devbuf_buffer_put(buffer);
	return ret;
}

/*
 * Take a base's memory away from it and from all of its views.
 *
 * Return: the storage with the base's reference, NULL if there was none, or
 * -EBUSY while a view that @context made, and still has, is allocated.
 */
static struct devbuf_storage *
devbuf_base_deallocate(struct devbuf_context *context, struct devbuf_buffer *base)
{
	struct devbuf_buffer *view, *next;

	lockdep_assert_held(&base->lock);
	list_for_each_entry(view, &base->allocated_views, view_entry) {
		if (view->made_in == context->serial &&
		    devbuf_context_count(context, view->id))
			return ERR_PTR(-EBUSY);
		cond_resched();
	}
	list_for_each_entry_safe(view, next, &base->allocated_views, view_entry) {
		/* Never the last reference: the base has one. */
		devbuf_storage_put(devbuf_buffer_detach(view));
		cond_resched();
	}
	return devbuf_buffer_detach(base);
}

int devbuf_ioctl_deallocate(struct devbuf_command *cmd)
{
	struct devbuf_id *arg = &cmd->arg.id;
	struct devbuf_storage *storage;
	struct devbuf_buffer *buffer;

	if (arg->flags)
		return -EINVAL;
	buffer = devbuf_context_find(cmd->context, arg->id, DEVBUF_RIGHT_MANAGE,
				     NULL);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);

	mutex_lock(&buffer->base->lock);
	if (devbuf_buffer_is_view(buffer))
		storage = devbuf_buffer_detach(buffer);
	else
		storage = devbuf_base_deallocate(cmd->context, buffer);
	mutex_unlock(&buffer->base->lock);

	devbuf_buffer_put(buffer);
	if (IS_ERR_OR_NULL(storage))
		return PTR_ERR_OR_ZERO(storage);
	devbuf_reuse_keep_or_put(cmd->context, storage);
	return 0;
}

int devbuf_ioctl_destroy(struct devbuf_command *cmd)
{
	struct devbuf_id *arg = &cmd->arg.id;
	struct devbuf_storage *storage = NULL;
	struct devbuf_buffer *last;
	int ret;

	if (arg->flags)
		return -EINVAL;
	ret = devbuf_context_drop(cmd->context, arg->id, &last);
	if (ret || !last)
		return ret;
	/*
	 * If nothing else holds the buffer, its memory can be kept. Under the
	 * lock that means no allocated view either, which would hold the base.
	 * Commands that looked the id up just before see no memory.
	 */
	mutex_lock(&last->base->lock);
	if (kref_read(&last->ref) == 1)
		storage = devbuf_buffer_detach(last);
	mutex_unlock(&last->base->lock);
	devbuf_buffer_drop_handle(last);
	if (storage)
		devbuf_reuse_keep_or_put(cmd->context, storage);
	return 0;
}

static void devbuf_buffer_query(const struct devbuf_buffer *buffer,
				struct devbuf_query *arg)
{
	struct devbuf_storage *storage;
	u32 state = 0;

	if (devbuf_buffer_is_view(buffer))
		state |= DEVBUF_STATE_VIEW;
	if (devbuf_device_is_gone(buffer->device))
		state |= DEVBUF_STATE_DEVICE_GONE;
	if (rcu_access_pointer(buffer->storage))
		state |= DEVBUF_STATE_ALLOCATED;
	rcu_read_lock();
	storage = rcu_dereference(buffer->base->storage);
	if (storage) {
		state |= DEVBUF_STATE_BASE_ALLOCATED;
		if (storage->mem.read_only)
			state |= DEVBUF_STATE_READ_ONLY;
		arg->out_largest_page_shift = storage->mem.largest_page_shift;
		if (storage->local)
			arg->out_address = storage->mem.address + buffer->offset;
	}
	rcu_read_unlock();
	arg->out_state = state;
}

int devbuf_ioctl_query(struct devbuf_command *cmd)
{
	struct devbuf_query *arg = &cmd->arg.query;
	const struct devbuf_name *name;
	struct devbuf_buffer *buffer;
	struct devbuf_grant grant;
	int ret;

	if (arg->flags)
		return -EINVAL;
	buffer = devbuf_context_find(cmd->context, arg->id, 0, &grant);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);

	arg->out_base_id = buffer->base->id;
	arg->out_nbytes = buffer->nbytes;
	arg->out_offset = buffer->offset;
	arg->out_alignment = buffer->alignment;
	arg->out_dtype = buffer->dtype;
	arg->out_create_flags = buffer->flags;
	devbuf_buffer_query(buffer, arg);
	arg->out_rights = grant.rights;
	arg->out_handle_count = devbuf_context_count(cmd->context, arg->id);
	memcpy(arg->out_device, buffer->device->name, sizeof(arg->out_device));
	rcu_read_lock();
	name = rcu_dereference(buffer->name);
	if (name)
		memcpy(arg->out_name, name->text, sizeof(arg->out_name));
	rcu_read_unlock();

	ret = devbuf_command_reply(cmd);
	devbuf_buffer_put(buffer);
	return ret;
}

static bool devbuf_name_is_printable(const u8 *name)
{
	size_t len = strnlen(name, DEVBUF_NAME_MAX), i;

	for (i = 0; i < len; i++)
		if (!isascii(name[i]) || !isprint(name[i]))
			return false;
	return len < DEVBUF_NAME_MAX &&
	       !memchr_inv(name + len, 0, DEVBUF_NAME_MAX - len);
}

int devbuf_ioctl_set_name(struct devbuf_command *cmd)
{
	struct devbuf_set_name *arg = &cmd->arg.set_name;
	struct devbuf_name *name = NULL, *old;
	struct devbuf_buffer *buffer;

	if (arg->flags || !devbuf_name_is_printable(arg->name))
		return -EINVAL;
	buffer = devbuf_context_find(cmd->context, arg->id, DEVBUF_RIGHT_MANAGE,
				     NULL);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	if (arg->name[0]) {
		name = kmalloc(sizeof(*name), DEVBUF_GFP);
		if (!name) {
			devbuf_buffer_put(buffer);
			return -ENOMEM;
		}
		memcpy(name->text, arg->name, sizeof(name->text));
	}
	mutex_lock(&buffer->base->lock);
	old = rcu_replace_pointer(buffer->name, name,
				  lockdep_is_held(&buffer->base->lock));
	mutex_unlock(&buffer->base->lock);
	if (old)
		kfree_rcu(old, rcu);
	devbuf_buffer_put(buffer);
	return 0;
}
