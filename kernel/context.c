// SPDX-License-Identifier: GPL-2.0-only
/*
 * A context: the table of ids that one open of /dev/devbuf holds, and what it
 * may do with each.
 *
 * Look-ups take no lock. A handle and a buffer stay readable for an RCU grace
 * period after they left the table, and a look-up counts only if it still gets
 * a reference on the buffer. Handles that change what they allow are replaced,
 * so that a look-up never sees half of two grants.
 *
 * A hash table, and not an xarray: ids are sparse in a context's table, and an
 * xarray allocates, and frees behind RCU, a chain of nodes for each lone one.
 * Whoever needs all handles walks a list of them.
 */
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>

#include "devbuf_private.h"

/**
 * struct devbuf_handle - an entry of the table
 * @node: in the table
 * @entry: in the context's list
 * @id: its key, @buffer's
 * @buffer: referenced
 * @grant: what it allows; does not change
 * @count: how often DESTROY is due; under the context's lock
 * @rcu: look-ups may still see it
 */
struct devbuf_handle {
	struct rhash_head node;
	struct list_head entry;
	u64 id;
	struct devbuf_buffer *buffer;
	struct devbuf_grant grant;
	u32 count;
	struct rcu_head rcu;
};

/* Ids are our own numbers: nobody can choose them so that they collide. */
static u32 devbuf_handle_hash(const void *id, u32 len, u32 seed)
{
	return hash_64(*(const u64 *)id ^ seed, 32);
}

static int devbuf_handle_compare(struct rhashtable_compare_arg *arg, const void *object)
{
	const struct devbuf_handle *handle = object;

	return handle->id != *(const u64 *)arg->key;
}

static const struct rhashtable_params devbuf_handles_params = {
	.key_len		= sizeof_field(struct devbuf_handle, id),
	.key_offset		= offsetof(struct devbuf_handle, id),
	.head_offset		= offsetof(struct devbuf_handle, node),
	.hashfn			= devbuf_handle_hash,
	.obj_cmpfn		= devbuf_handle_compare,
	.min_size		= 16,
	.automatic_shrinking	= true,
};

struct devbuf_context *devbuf_context_create(void)
{
	static atomic64_t last_serial;
	struct devbuf_context *context;
	int ret;

	context = kzalloc(sizeof(*context), DEVBUF_GFP);
	if (!context)
		return ERR_PTR(-ENOMEM);
	ret = rhashtable_init(&context->handles, &devbuf_handles_params);
	if (ret)
		goto err_free;
	ret = devbuf_mmap_open();
	if (ret)
		goto err_handles;
	/* Zero stands for no context at all. */
	context->serial = atomic64_inc_return(&last_serial);
	spin_lock_init(&context->lock);
	INIT_LIST_HEAD(&context->all);
	spin_lock_init(&context->requests_lock);
	INIT_LIST_HEAD(&context->requests);
	devbuf_reuse_init(&context->reuse);
	return context;

err_handles:
	rhashtable_destroy(&context->handles);
err_free:
	kfree(context);
	return ERR_PTR(ret);
}

/* The file is gone: nobody else uses the context. */
void devbuf_context_close(struct devbuf_context *context)
{
	struct devbuf_handle *handle, *next;

	devbuf_requests_give_up(context);
	/* First, since a worker may be moving handles to a table of another size. */
	rhashtable_destroy(&context->handles);
	list_for_each_entry_safe(handle, next, &context->all, entry) {
		devbuf_buffer_drop_handle(handle->buffer);
		kfree(handle);
		cond_resched();
	}
	devbuf_reuse_flush(&context->reuse);
	devbuf_mmap_close();
	/* Somebody may just be letting go of a lock of it. */
	kfree_rcu(context, rcu);
}

/**
 * devbuf_context_find - look an id up
 * @context: whose table
 * @id: the id
 * @rights: DEVBUF_RIGHT_* bits that the handle must have
 * @grant: set to what the handle allows; may be NULL
 *
 * Return: the buffer, with a reference, or -ENOENT or -EACCES.
 */
struct devbuf_buffer *devbuf_context_find(struct devbuf_context *context, u64 id,
					  u32 rights, struct devbuf_grant *grant)
{
	struct devbuf_buffer *buffer = ERR_PTR(-ENOENT);
	struct devbuf_handle *handle;

	rcu_read_lock();
	handle = rhashtable_lookup(&context->handles, &id, devbuf_handles_params);
	if (!handle)
		goto unlock;
	if ((handle->grant.rights & rights) != rights) {
		buffer = ERR_PTR(-EACCES);
		goto unlock;
	}
	if (!kref_get_unless_zero(&handle->buffer->ref))
		goto unlock;
	buffer = handle->buffer;
	if (grant)
		*grant = handle->grant;
unlock:
	rcu_read_unlock();
	return buffer;
}

/* How often DESTROY of @id is due; zero when the table does not hold it. */
u32 devbuf_context_count(struct devbuf_context *context, u64 id)
{
	struct devbuf_handle *handle;
	u32 count = 0;

	rcu_read_lock();
	handle = rhashtable_lookup(&context->handles, &id, devbuf_handles_params);
	if (handle)
		count = READ_ONCE(handle->count);
	rcu_read_unlock();
	return count;
}

/**
 * devbuf_context_usage - add up what the table holds
 * @context: whose table
 * @handles: set to how many ids
 * @nbytes: set to the bytes of the bases among them that are allocated
 */
void devbuf_context_usage(struct devbuf_context *context, u64 *handles,
			  u64 *nbytes)
{
	struct devbuf_handle *handle;

	*handles = 0;
	*nbytes = 0;
	rcu_read_lock();
	list_for_each_entry_rcu(handle, &context->all, entry) {
		const struct devbuf_buffer *buffer = handle->buffer;

		++*handles;
		if (!devbuf_buffer_is_view(buffer) &&
		    rcu_access_pointer(buffer->storage))
			*nbytes += buffer->nbytes;
	}
	rcu_read_unlock();
}

/*
 * The grants of one id are nested: the whole base, or a view, or a view around
 * it. So the union of their reaches is the larger one.
 */
static void devbuf_grant_unite(struct devbuf_grant *grant,
			       const struct devbuf_grant *other)
{
	grant->rights |= other->rights;
	grant->manages_base |= other->manages_base;
	grant->reach_start = min(grant->reach_start, other->reach_start);
	grant->reach_end = max(grant->reach_end, other->reach_end);
}

/**
 * devbuf_context_insert - put a buffer into the table, or count it once more
 * @context: whose table
 * @buffer: the buffer; the handle takes a reference of its own
 * @grant: what the handle allows, besides what it allowed before
 *
 * Return: 0 or -ENOMEM, also when it was counted too often.
 */
int devbuf_context_insert(struct devbuf_context *context,
			  struct devbuf_buffer *buffer,
			  const struct devbuf_grant *grant)
{
	struct devbuf_handle *handle, *old;
	int ret = 0;

	handle = kzalloc(sizeof(*handle), DEVBUF_GFP);
	if (!handle)
		return -ENOMEM;
	handle->id = buffer->id;
	handle->buffer = buffer;
	handle->grant = *grant;
	handle->count = 1;
	/* Before anybody can find and destroy it. */
	devbuf_buffer_get(buffer);
	atomic_inc(&buffer->handles);

	spin_lock(&context->lock);
	old = rhashtable_lookup_get_insert_fast(&context->handles, &handle->node,
						devbuf_handles_params);
	if (IS_ERR(old) || (old && old->count == U32_MAX)) {
		ret = -ENOMEM;
	} else if (old) {
		devbuf_grant_unite(&handle->grant, &old->grant);
		handle->count = old->count + 1;
		rhashtable_replace_fast(&context->handles, &old->node,
					&handle->node, devbuf_handles_params);
		list_replace_rcu(&old->entry, &handle->entry);
	} else {
		list_add_tail_rcu(&handle->entry, &context->all);
	}
	spin_unlock(&context->lock);
	if (!ret && !old)
		return 0;

	/* One of the two handles is left over. */
	devbuf_buffer_drop_handle(buffer);
	if (ret)
		kfree(handle);
	else
		kfree_rcu(old, rcu);
	return ret;
}

/**
 * devbuf_context_drop - drop one count of an id
 * @context: whose table
 * @id: the id
 * @last: set to the buffer if it left the table, for
 *	devbuf_buffer_drop_handle(); else to NULL
 *
 * Return: 0 or -ENOENT.
 */
int devbuf_context_drop(struct devbuf_context *context, u64 id,
			struct devbuf_buffer **last)
{
	struct devbuf_handle *handle;

	*last = NULL;
	spin_lock(&context->lock);
	handle = rhashtable_lookup_fast(&context->handles, &id,
					devbuf_handles_params);
	if (!handle) {
		spin_unlock(&context->lock);
		return -ENOENT;
	}
	if (handle->count > 1) {
		WRITE_ONCE(handle->count, handle->count - 1);
		spin_unlock(&context->lock);
		return 0;
	}
	rhashtable_remove_fast(&context->handles, &handle->node,
			       devbuf_handles_params);
	list_del_rcu(&handle->entry);
	spin_unlock(&context->lock);

	*last = handle->buffer;
	kfree_rcu(handle, rcu);
	return 0;
}

/**
 * devbuf_grant_reaches_pages - does it reach all bytes of the buffer's pages?
 * @grant: what the handle allows
 * @buffer: the handle's buffer
 *
 * Mappings and dma-bufs are whole pages: whoever gets one sees the bytes around
 * the buffer too. The bytes before the beginning and after the end of the base
 * belong to nobody else: whoever reaches the edge of the base has them.
 *
 * Return: whether it does.
 */
bool devbuf_grant_reaches_pages(const struct devbuf_grant *grant,
				const struct devbuf_buffer *buffer)
{
	u64 skew = devbuf_base_skew(buffer->base);
	u64 pos = devbuf_buffer_pos(buffer);
	u64 start = ALIGN_DOWN(pos, PAGE_SIZE);
	u64 end = ALIGN(pos + buffer->nbytes, PAGE_SIZE);

	start = start > skew ? start - skew : 0;
	end = min(end - skew, buffer->base->nbytes);
	return grant->reach_start <= start && grant->reach_end >= end;
}
