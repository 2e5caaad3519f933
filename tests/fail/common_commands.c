// SPDX-License-Identifier: GPL-2.0-only
/* Operations on contexts, ids and memory, and copies. */
#include "common.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <linux/capability.h>

/* --- contexts --------------------------------------------------------------------------------- */

static int open_context(struct world *world)
{
	world->made_fd = open("/dev/devbuf", O_RDWR | O_CLOEXEC);
	return world->made_fd < 0 ? -errno : 0;
}

static void close_made(struct world *world)
{
	close(world->made_fd);
}

const struct operation operation_open_context = { .run = open_context, .undo = close_made };

/* One with something of every kind in it. */
static void fill_context(struct world *world)
{
	int ctx = new_context();
	__u64 reusing = new_allocated_flags(ctx, NBYTES, DEVBUF_CREATE_REUSE);

	must(do_deallocate(ctx, reusing));
	new_allocated_view(ctx, new_allocated(ctx, NBYTES), 1, PAGE);
	new_user_buffer(ctx, world->user_memory, NBYTES);
	new_import(ctx, world->dmabuf);
	world->made_fd = ctx;
}

static int close_context(struct world *world)
{
	return close(world->made_fd) ? -errno : 0;
}

const struct operation operation_close_context = { .prepare = fill_context, .run = close_context };

static int info(struct world *world)
{
	struct devbuf_info info = { .size = sizeof(info) };

	return do_command(world->ctx, DEVBUF_INFO, &info);
}

const struct operation operation_info = { .run = info };

static int device_info(struct world *world)
{
	struct devbuf_device_info info = { .size = sizeof(info) };

	return do_command(world->ctx, DEVBUF_DEVICE_INFO, &info);
}

const struct operation operation_device_info = { .run = device_info };

/* --- ids -------------------------------------------------------------------------------------- */

static int create(struct world *world)
{
	return do_create(world->ctx, SYSTEM_DEVICE, NBYTES, 0, &world->made);
}

static int view(struct world *world)
{
	return do_view(world->ctx, world->view, 10, 100, &world->made);
}

static void destroy_made(struct world *world)
{
	must(do_destroy(world->ctx, world->made));
}

const struct operation operation_create = { .run = create, .undo = destroy_made };
const struct operation operation_view = { .run = view, .undo = destroy_made };

static int query_base(struct world *world)
{
	struct devbuf_query argument;

	return do_query(world->ctx, world->base, &argument);
}

const struct operation operation_query = { .run = query_base };

static int set_name(struct world *world)
{
	return do_set_name(world->ctx, world->base, "swept");
}

static void unset_name(struct world *world)
{
	must(do_set_name(world->ctx, world->base, ""));
}

const struct operation operation_set_name = { .run = set_name, .undo = unset_name };

static void make_allocated(struct world *world)
{
	world->made = new_allocated_flags(world->ctx, NBYTES, DEVBUF_CREATE_REUSE);
}

static int destroy(struct world *world)
{
	return do_destroy(world->ctx, world->made);
}

const struct operation operation_destroy = { .prepare = make_allocated, .run = destroy };

/* --- memory ----------------------------------------------------------------------------------- */

static int allocate(struct world *world)
{
	return do_allocate(world->ctx, world->idle);
}

static void deallocate_idle(struct world *world)
{
	must(do_deallocate(world->ctx, world->idle));
}

const struct operation operation_allocate = { .run = allocate, .undo = deallocate_idle };

/* So large that it shows, by what the cgroup uses, if it is lost. */
static void make_large(struct world *world)
{
	must(do_create(world->ctx, SYSTEM_DEVICE, LARGE_NBYTES, 0, &world->made));
}

static int allocate_made(struct world *world)
{
	return do_allocate(world->ctx, world->made);
}

const struct operation operation_allocate_large = {
	.prepare = make_large,
	.run = allocate_made,
	.undo = destroy_made,
};

static int allocate_base_and_view(struct world *world)
{
	return do_allocate(world->ctx, world->idle_view);
}

static void deallocate_base_and_view(struct world *world)
{
	must(do_deallocate(world->ctx, world->idle_view));
	must(do_deallocate(world->ctx, query(world->ctx, world->idle_view).out_base_id));
}

const struct operation operation_allocate_base_and_view = {
	.run = allocate_base_and_view,
	.undo = deallocate_base_and_view,
};

static int allocate_uncached(struct world *world)
{
	return do_allocate(world->ctx, world->uncached);
}

static void deallocate_uncached(struct world *world)
{
	must(do_deallocate(world->ctx, world->uncached));
}

const struct operation operation_allocate_uncached = {
	.run = allocate_uncached,
	.undo = deallocate_uncached,
};

/* From now on this process may lock just the pages of one buffer: if any were counted, it shows. */
static void limit_locked_memory(struct world *world)
{
	struct rlimit limit = { NBYTES + PAGE, NBYTES + PAGE };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	(void)world;
	must_libc(setrlimit(RLIMIT_MEMLOCK, &limit));
	must_libc(syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1U << CAP_IPC_LOCK);
	must_libc(syscall(SYS_capset, &header, data));
}

static int allocate_user(struct world *world)
{
	return do_allocate(world->ctx, world->user);
}

static void deallocate_user(struct world *world)
{
	must(do_deallocate(world->ctx, world->user));
}

const struct operation operation_allocate_user = {
	.prepare = limit_locked_memory,
	.run = allocate_user,
	.undo = deallocate_user,
};

static void keep_memory(struct world *world)
{
	must(do_allocate(world->ctx, world->reusing));
	must(do_deallocate(world->ctx, world->reusing));
}

static int allocate_reused(struct world *world)
{
	int flags = do_allocate_flags(world->ctx, world->reusing, 0);

	if (flags < 0)
		return flags;
	return flags & DEVBUF_ALLOCATED_REUSED ? 0 : -ESTALE;
}

static int deallocate_reusing(struct world *world)
{
	return do_deallocate(world->ctx, world->reusing);
}

static void undo_allocate_reused(struct world *world)
{
	must(deallocate_reusing(world));
}

const struct operation operation_allocate_reused = {
	.prepare = keep_memory,
	.run = allocate_reused,
	.undo = undo_allocate_reused,
};

static void prepare_deallocate(struct world *world)
{
	must(do_allocate(world->ctx, world->idle));
}

static int deallocate(struct world *world)
{
	return do_deallocate(world->ctx, world->idle);
}

const struct operation operation_deallocate = { .prepare = prepare_deallocate, .run = deallocate };

static void prepare_deallocate_and_keep(struct world *world)
{
	must(do_allocate(world->ctx, world->reusing));
}

const struct operation operation_deallocate_and_keep = {
	.prepare = prepare_deallocate_and_keep,
	.run = deallocate_reusing,
};

static void prepare_deallocate_user(struct world *world)
{
	must(do_allocate(world->ctx, world->user));
}

static int run_deallocate_user(struct world *world)
{
	return do_deallocate(world->ctx, world->user);
}

const struct operation operation_deallocate_user = {
	.prepare = prepare_deallocate_user,
	.run = run_deallocate_user,
};

/* --- copies ----------------------------------------------------------------------------------- */

/* More than the driver has room for on its stack. */
#define NR_RANGES 6

static int copy(const struct world *world, unsigned long command, __u32 nr)
{
	struct devbuf_copy_range ranges[NR_RANGES];

	for (__u32 i = 0; i < nr; i++)
		ranges[i] = (struct devbuf_copy_range){
			.id = i % 2 ? world->twin : world->base,
			.offset = i,
			.user_addr = (uintptr_t)world->memory + i,
			.nbytes = NBYTES - NR_RANGES,
		};
	return do_copy_ranges(world->ctx, command, ranges, nr, NULL);
}

static int copyin(struct world *world)
{
	return copy(world, DEVBUF_COPYIN, 1);
}

static int copyin_of_many_ranges(struct world *world)
{
	return copy(world, DEVBUF_COPYIN, NR_RANGES);
}

static int copyout(struct world *world)
{
	return copy(world, DEVBUF_COPYOUT, 1);
}

static int copyout_of_many_ranges(struct world *world)
{
	return copy(world, DEVBUF_COPYOUT, NR_RANGES);
}

const struct operation operation_copyin = { .run = copyin };
const struct operation operation_copyin_of_many_ranges = { .run = copyin_of_many_ranges };
const struct operation operation_copyout = { .run = copyout };
const struct operation operation_copyout_of_many_ranges = { .run = copyout_of_many_ranges };

static int transfer(struct world *world)
{
	return do_transfer(world->ctx, world->base, 3, world->twin, 3, NBYTES - 3);
}

static int transfer_of_many_ranges(struct world *world)
{
	struct devbuf_transfer argument = { 0 };
	struct devbuf_transfer_range ranges[NR_RANGES];

	for (__u32 i = 0; i < NR_RANGES; i++)
		ranges[i] = (struct devbuf_transfer_range){
			.dst_id = i % 2 ? world->twin : world->base,
			.dst_offset = i,
			.src_id = i % 2 ? world->base : world->twin,
			.src_offset = i,
			.nbytes = NBYTES - NR_RANGES,
		};
	return do_transfer_ranges(world->ctx, &argument, ranges, NR_RANGES);
}

static int path(struct world *world)
{
	struct devbuf_path path = {
		.size = sizeof(path),
		.dst_id = world->base,
		.src_id = world->twin,
	};

	return do_command(world->ctx, DEVBUF_PATH, &path);
}

const struct operation operation_transfer = { .run = transfer };
const struct operation operation_transfer_of_many_ranges = { .run = transfer_of_many_ranges };
const struct operation operation_path = { .run = path };
