/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parts of fail_nth.
 *
 *	fail_nth.c		the tests: one for each operation
 *	common_sweep.c		failing each point of an operation in turn, and what must hold then
 *	common_world.c		the objects that operations work on, and their state
 *	common_commands.c	operations: contexts, ids, memory, copies
 *	common_queued.c		operations: queued copies, WAIT, CANCEL, commands on a ring
 *	common_mappings.c	operations: mappings, dma-bufs, an importer
 */
#ifndef DEVBUF_TESTS_FAIL_COMMON_H
#define DEVBUF_TESTS_FAIL_COMMON_H

#include "../uapi/common_cgroup.h"
#include "../uapi/common_uring.h"

/* --- common_world.c --------------------------------------------------------------------------- */

/* Bytes of a buffer: several pages, so that one may fail when others are there. */
#define NBYTES       (5 * 4096)
/* And of one that would be missed. */
#define LARGE_NBYTES (8 * MIB)

/**
 * struct world - the objects that operations work on
 * @group: a cgroup of this process alone, which shows what memory it uses
 * @fail_nth: the file that arms the fault
 * @ctx: the context that made all of the buffers
 * @other: one that has none
 * @vgem: an importer; -1 when its module is not loaded
 * @base: allocated
 * @view: of @base, allocated
 * @twin: allocated; has the same bytes as @base
 * @idle: not allocated, like all that follow
 * @idle_view: a view of another base
 * @uncached: a base with DEVBUF_CREATE_UNCACHED
 * @reusing: a base with DEVBUF_CREATE_REUSE
 * @user: a base of memory of the caller
 * @dmabuf: a read-only dma-buf of @base
 * @map: a mapping of @base
 * @memory: ordinary memory with the same bytes as @base
 * @fence: a sync_file that has signalled
 * @ring: an io_uring
 * @user_memory: the memory of @user
 * @made: what an operation made, for its undo: an id or a handle of @vgem
 * @made_fd: the same, a file
 * @made_map: the same, a mapping
 * @made_gate: the same, a gate
 * @made_command: the same, the argument of a command on @ring
 * @pinned_before: pages that were pinned when an operation began
 */
struct world {
	struct group group;
	int fail_nth, ctx, other, vgem;
	__u64 base, view, twin;
	__u64 idle, idle_view, uncached, reusing, user;
	int dmabuf;
	__s32 fence;
	struct io_uring ring;
	unsigned char *map, *memory, *user_memory;

	__u64 made;
	int made_fd;
	void *made_map;
	struct gate made_gate;
	struct copy_command made_command;
	long long pinned_before;
};

void new_world(struct world *world);
void end_world(struct world *world);

/* In the whole system. */
long long nr_pinned_pages(void);

#define NR_WATCHED 8

/* What no failure may change, in the system as far as we are concerned. */
struct state {
	struct devbuf_query buffers[NR_WATCHED];
	long long handles[2], allocated_nbytes[2];
	long long nr_pinned_pages, nr_files, next_file, nr_mappings, nr_wrong_contents;
	long long charged_nbytes;
};

void get_state(const struct world *world, struct state *state);
/* What differs, in words, or NULL. */
const char *compare_states(const struct state *before, const struct state *after);

/* --- common_sweep.c --------------------------------------------------------------------------- */

/**
 * struct operation - what is swept
 * @prepare: before each try; may be NULL
 * @run: a system call: 0 or a negative errno
 * @undo: after @run succeeded: takes back what it and @prepare did; may be NULL
 * @of_vgem: needs that module
 */
struct operation {
	void (*prepare)(struct world *world);
	int (*run)(struct world *world);
	void (*undo)(struct world *world);
	bool of_vgem;
};

/**
 * struct sweep - what became of an operation
 * @nr_points: points at which it can be made to fail
 * @nr_failures: points at which it did fail; at the others it found another way
 * @problem: what went wrong, or an empty string
 */
struct sweep {
	int nr_points, nr_failures;
	char problem[200];
};

struct sweep sweep_operation(struct world *world, const struct operation *operation);

/* --- common_commands.c, common_queued.c, common_mappings.c ------------------------------------ */

#define FOR_EACH_OPERATION(apply)       \
	apply(open_context);            \
	apply(close_context);           \
	apply(info);                    \
	apply(device_info);             \
	apply(create);                  \
	apply(view);                    \
	apply(query);                   \
	apply(set_name);                \
	apply(destroy);                 \
	apply(allocate);                \
	apply(allocate_large);          \
	apply(allocate_base_and_view);  \
	apply(allocate_uncached);       \
	apply(allocate_user);           \
	apply(allocate_reused);         \
	apply(deallocate);              \
	apply(deallocate_and_keep);     \
	apply(deallocate_user);         \
	apply(copyin);                  \
	apply(copyin_of_many_ranges);   \
	apply(copyout);                 \
	apply(copyout_of_many_ranges);  \
	apply(transfer);                \
	apply(transfer_of_many_ranges); \
	apply(path);                    \
	apply(queued_copyin);           \
	apply(queued_copyout);          \
	apply(queued_transfer);         \
	apply(queued_without_fences);   \
	apply(queued_in_many_ranges);   \
	apply(wait);                    \
	apply(cancel);                  \
	apply(ring_copyin);             \
	apply(ring_copyout);            \
	apply(map_first);               \
	apply(map_again);               \
	apply(map_fault);               \
	apply(unmap);                   \
	apply(sync);                    \
	apply(export_read_only);        \
	apply(export_writable);         \
	apply(export_again);            \
	apply(import);                  \
	apply(import_again);            \
	apply(dmabuf_map);              \
	apply(dmabuf_sync);             \
	apply(dmabuf_close);            \
	apply(vgem_attach);             \
	apply(vgem_detach);             \
	apply(vgem_sync)

#define DECLARE_OPERATION(name) extern const struct operation operation_##name
FOR_EACH_OPERATION(DECLARE_OPERATION);

#endif
