/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands that length.c goes through: for each where its outputs, flags and padding are, and
 * how to fill an argument with which it succeeds. @size is filled in by the fixture.
 */
#define BUFFER_NBYTES  100
#define LONGEST_STRUCT 256

/* What the commands of the variants are about. */
struct objects {
	int ctx;
	__u64 allocated, unallocated;
	int dma_buf;
	unsigned char memory[BUFFER_NBYTES];
	struct devbuf_copy_range copy_range;
	struct devbuf_transfer_range transfer_range;
	/* An importer, and a fence of its own that does not signal; -1 if the variant needs none. */
	int card;
	__s32 gate;
};

FIXTURE(command)
{
	struct objects objects;
	/* An argument with which the command succeeds. */
	unsigned char argument[LONGEST_STRUCT];
};

/* A member that may have no other bits than @defined; none if @offset is zero. */
struct zero_member {
	__u32 offset, defined;
};

FIXTURE_VARIANT(command)
{
	unsigned long command;
	__u32 size;
	/* That of its first published form, if members were appended since. */
	__u32 first_size;
	/* Where the members begin that the driver writes; @size if there are none. */
	__u32 outs;
	/* Where they end; zero if they end with the struct. */
	__u32 outs_end;
	struct zero_member flags, pad;
	bool needs_gate;
	void (*prepare)(const struct objects *objects, void *argument);
};

#define FLAGS(type, defined_bits)                          \
	{                                                  \
		offsetof(struct type, flags), defined_bits \
	}
#define PAD(type)                             \
	{                                     \
		offsetof(struct type, pad), 0 \
	}

static void prepare_nothing(const struct objects *objects, void *argument)
{
	(void)objects;
	(void)argument;
}

FIXTURE_VARIANT_ADD(command, info){
	.command = DEVBUF_INFO,
	.size = sizeof(struct devbuf_info),
	.outs = offsetof(struct devbuf_info, out_abi_version),
	.prepare = prepare_nothing,
};

FIXTURE_VARIANT_ADD(command, device_info){
	.command = DEVBUF_DEVICE_INFO,
	.size = sizeof(struct devbuf_device_info),
	.first_size = offsetof(struct devbuf_device_info, out_largest_free_nbytes),
	.outs = offsetof(struct devbuf_device_info, out_cursor),
	.pad = PAD(devbuf_device_info),
	.prepare = prepare_nothing,
};

static void prepare_create(const struct objects *objects, void *argument)
{
	(void)objects;
	*(struct devbuf_create *)argument = create_argument(SYSTEM_DEVICE, BUFFER_NBYTES, 0);
}

FIXTURE_VARIANT_ADD(command, create){
	.command = DEVBUF_CREATE,
	.size = sizeof(struct devbuf_create),
	.outs = offsetof(struct devbuf_create, out_id),
	.flags = FLAGS(devbuf_create, DEVBUF_CREATE_UNCACHED | DEVBUF_CREATE_CPU_ACCESS |
					      DEVBUF_CREATE_HOST | DEVBUF_CREATE_CONTIGUOUS |
					      DEVBUF_CREATE_REUSE),
	.pad = PAD(devbuf_create),
	.prepare = prepare_create,
};

static void prepare_view(const struct objects *objects, void *argument)
{
	struct devbuf_view *view = argument;

	view->id = objects->allocated;
	view->nbytes = 1;
}

FIXTURE_VARIANT_ADD(command, view){
	.command = DEVBUF_VIEW,
	.size = sizeof(struct devbuf_view),
	.outs = offsetof(struct devbuf_view, out_id),
	.flags = FLAGS(devbuf_view, 0),
	.pad = PAD(devbuf_view),
	.prepare = prepare_view,
};

static void prepare_allocate(const struct objects *objects, void *argument)
{
	struct devbuf_allocate *allocate = argument;

	allocate->id = objects->unallocated;
}

FIXTURE_VARIANT_ADD(command, allocate){
	.command = DEVBUF_ALLOCATE,
	.size = sizeof(struct devbuf_allocate),
	.outs = offsetof(struct devbuf_allocate, out_flags),
	.flags = FLAGS(devbuf_allocate, DEVBUF_ALLOCATE_IF_NEEDED),
	.prepare = prepare_allocate,
};

static void prepare_id(const struct objects *objects, void *argument)
{
	struct devbuf_id *id = argument;

	id->id = objects->allocated;
}

FIXTURE_VARIANT_ADD(command, deallocate){
	.command = DEVBUF_DEALLOCATE,
	.size = sizeof(struct devbuf_id),
	.outs = sizeof(struct devbuf_id),
	.flags = FLAGS(devbuf_id, 0),
	.prepare = prepare_id,
};

FIXTURE_VARIANT_ADD(command, destroy){
	.command = DEVBUF_DESTROY,
	.size = sizeof(struct devbuf_id),
	.outs = sizeof(struct devbuf_id),
	.flags = FLAGS(devbuf_id, 0),
	.prepare = prepare_id,
};

static void prepare_query(const struct objects *objects, void *argument)
{
	struct devbuf_query *query = argument;

	query->id = objects->allocated;
}

FIXTURE_VARIANT_ADD(command, query){
	.command = DEVBUF_QUERY,
	.size = sizeof(struct devbuf_query),
	.first_size = offsetof(struct devbuf_query, out_address),
	.outs = offsetof(struct devbuf_query, out_base_id),
	.flags = FLAGS(devbuf_query, 0),
	.prepare = prepare_query,
};

static void prepare_set_name(const struct objects *objects, void *argument)
{
	struct devbuf_set_name *set_name = argument;

	set_name->id = objects->allocated;
	set_name->name[0] = 'x';
}

FIXTURE_VARIANT_ADD(command, set_name){
	.command = DEVBUF_SET_NAME,
	.size = sizeof(struct devbuf_set_name),
	.outs = sizeof(struct devbuf_set_name),
	.flags = FLAGS(devbuf_set_name, 0),
	.prepare = prepare_set_name,
};

static void prepare_export(const struct objects *objects, void *argument)
{
	struct devbuf_export *export = argument;

	export->id = objects->allocated;
}

FIXTURE_VARIANT_ADD(command, export){
	.command = DEVBUF_EXPORT,
	.size = sizeof(struct devbuf_export),
	.first_size = offsetof(struct devbuf_export, out_reason),
	.outs = offsetof(struct devbuf_export, out_fd),
	.flags = FLAGS(devbuf_export, DEVBUF_EXPORT_WRITE),
	.prepare = prepare_export,
};

static void prepare_import(const struct objects *objects, void *argument)
{
	struct devbuf_import *import = argument;

	import->fd = objects->dma_buf;
}

FIXTURE_VARIANT_ADD(command, import){
	.command = DEVBUF_IMPORT,
	.size = sizeof(struct devbuf_import),
	.outs = offsetof(struct devbuf_import, out_id),
	.flags = FLAGS(devbuf_import, 0),
	.pad = PAD(devbuf_import),
	.prepare = prepare_import,
};

static void prepare_sync(const struct objects *objects, void *argument)
{
	struct devbuf_sync *sync = argument;

	sync->flags = DEVBUF_SYNC_READ;
	sync->id = objects->allocated;
	sync->nbytes = 1;
}

FIXTURE_VARIANT_ADD(command, sync){
	.command = DEVBUF_SYNC,
	.size = sizeof(struct devbuf_sync),
	.outs = sizeof(struct devbuf_sync),
	.flags = FLAGS(devbuf_sync, DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE | DEVBUF_SYNC_END),
	.prepare = prepare_sync,
};

/* Those of copies; what they demand of each other is in async.c. */
#define ASYNC_FLAGS (DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE | DEVBUF_ASYNC_EXPLICIT)

static void prepare_copy(const struct objects *objects, void *argument)
{
	struct devbuf_copy *copy = argument;

	copy->ranges = (uintptr_t)&objects->copy_range;
	copy->nr_ranges = 1;
}

FIXTURE_VARIANT_ADD(command, copyin){
	.command = DEVBUF_COPYIN,
	.size = sizeof(struct devbuf_copy),
	.first_size = offsetof(struct devbuf_copy, in_fences),
	.outs = offsetof(struct devbuf_copy, out_done_nbytes),
	.outs_end = offsetof(struct devbuf_copy, in_fences),
	.flags = FLAGS(devbuf_copy, ASYNC_FLAGS),
	.prepare = prepare_copy,
};

FIXTURE_VARIANT_ADD(command, copyout){
	.command = DEVBUF_COPYOUT,
	.size = sizeof(struct devbuf_copy),
	.first_size = offsetof(struct devbuf_copy, in_fences),
	.outs = offsetof(struct devbuf_copy, out_done_nbytes),
	.outs_end = offsetof(struct devbuf_copy, in_fences),
	.flags = FLAGS(devbuf_copy, ASYNC_FLAGS),
	.prepare = prepare_copy,
};

static void prepare_path(const struct objects *objects, void *argument)
{
	struct devbuf_path *path = argument;

	path->dst_id = objects->allocated;
	path->src_id = objects->unallocated;
}

FIXTURE_VARIANT_ADD(command, path){
	.command = DEVBUF_PATH,
	.size = sizeof(struct devbuf_path),
	.outs = offsetof(struct devbuf_path, out_path),
	.flags = FLAGS(devbuf_path, 0),
	.prepare = prepare_path,
};

static void prepare_transfer(const struct objects *objects, void *argument)
{
	struct devbuf_transfer *transfer = argument;

	transfer->ranges = (uintptr_t)&objects->transfer_range;
	transfer->nr_ranges = 1;
}

FIXTURE_VARIANT_ADD(command, transfer){
	.command = DEVBUF_TRANSFER,
	.size = sizeof(struct devbuf_transfer),
	.first_size = offsetof(struct devbuf_transfer, in_fences),
	.outs = offsetof(struct devbuf_transfer, out_done_nbytes),
	.outs_end = offsetof(struct devbuf_transfer, in_fences),
	.flags = FLAGS(devbuf_transfer, DEVBUF_TRANSFER_NO_CPU | ASYNC_FLAGS),
	.prepare = prepare_transfer,
};

static void prepare_wait(const struct objects *objects, void *argument)
{
	struct devbuf_wait *wait = argument;

	wait->flags = DEVBUF_WAIT_READ;
	wait->id = objects->allocated;
	wait->nbytes = 1;
}

FIXTURE_VARIANT_ADD(command, wait){
	.command = DEVBUF_WAIT,
	.size = sizeof(struct devbuf_wait),
	.outs = offsetof(struct devbuf_wait, out_error),
	.flags = FLAGS(devbuf_wait, DEVBUF_WAIT_READ | DEVBUF_WAIT_WRITE),
	.pad = PAD(devbuf_wait),
	.prepare = prepare_wait,
};

#define COOKIE 5

/* A copy that waits is there to be found. */
static void prepare_cancel(const struct objects *objects, void *argument)
{
	struct devbuf_cancel *cancel = argument;
	struct queueing held = {
		.in_fences = &objects->gate,
		.nr_in_fences = 1,
		.cookie = COOKIE,
	};

	must(queue_copyin(objects->ctx, objects->allocated, 0, objects->memory, 1, &held));
	cancel->cookie = COOKIE;
}

FIXTURE_VARIANT_ADD(command, cancel){
	.command = DEVBUF_CANCEL,
	.size = sizeof(struct devbuf_cancel),
	.outs = offsetof(struct devbuf_cancel, out_count),
	.flags = FLAGS(devbuf_cancel, DEVBUF_CANCEL_ALL),
	.needs_gate = true,
	.prepare = prepare_cancel,
};
