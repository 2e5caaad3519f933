// SPDX-License-Identifier: GPL-2.0-only
/* The objects that operations work on, and their state. */
#include "common.h"

#include "../uapi/common_vgem.h"

/* The bytes of everything that has bytes; so that copies, however far they came, change none. */
#define SEED 1

void new_world(struct world *world)
{
	int ctx;

	must(has_memory_groups() ? 0 : -EOPNOTSUPP);
	new_group(&world->group, "fail", GIB);
	join(&world->group);

	ctx = new_context();
	world->ctx = ctx;
	world->other = new_context();
	world->vgem = open_vgem();

	world->base = new_allocated(ctx, NBYTES);
	world->view = new_allocated_view(ctx, world->base, PAGE, PAGE);
	world->twin = new_allocated(ctx, NBYTES);
	world->idle = new_buffer(ctx, NBYTES);
	world->idle_view = new_view(ctx, new_buffer(ctx, NBYTES), 100, 100);
	must(do_create(ctx, SYSTEM_DEVICE, NBYTES, DEVBUF_CREATE_UNCACHED, &world->uncached));
	must(do_create(ctx, SYSTEM_DEVICE, NBYTES, DEVBUF_CREATE_REUSE, &world->reusing));
	world->user_memory = new_memory(NBYTES + PAGE);
	must(do_create_user(ctx, world->user_memory + 5, NBYTES, &world->user));

	world->memory = new_memory(NBYTES);
	fill(world->memory, NBYTES, SEED);
	buffer_fill(ctx, world->base, NBYTES, SEED);
	buffer_fill(ctx, world->twin, NBYTES, SEED);
	world->dmabuf = new_export(ctx, world->base, 0);
	world->fence = must(queue_transfer(ctx, world->twin, 0, world->base, 0, NBYTES, NULL));
	must(fence_result(world->fence));
	must(io_uring_queue_init(4, &world->ring, 0));
	world->map = new_mapping(ctx, world->base, NBYTES, PROT_READ | PROT_WRITE);
}

void end_world(struct world *world)
{
	io_uring_queue_exit(&world->ring);
	close(world->fence);
	close(world->dmabuf);
	close(world->vgem);
	close(world->other);
	close(world->ctx);
	close(world->fail_nth);
	must(write_text(CGROUPS "/cgroup.procs", "0"));
	remove_group(&world->group);
}

/* --- its state -------------------------------------------------------------------------------- */

long long nr_pinned_pages(void)
{
	/* Each processor keeps a part of the numbers to itself, until it is asked. */
	must(write_text("/proc/sys/vm/stat_refresh", "1"));
	return read_key("/proc/vmstat", "nr_foll_pin_acquired") -
	       read_key("/proc/vmstat", "nr_foll_pin_released");
}

/* The number that the next file would get; it tells of numbers that were reserved and forgotten. */
static long long next_file(const struct world *world)
{
	int fd = fcntl(world->ctx, F_DUPFD_CLOEXEC, 0);

	must_libc(fd);
	close(fd);
	return fd;
}

/* How many mappings of the driver's memory this process has. */
static long long nr_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	long long nr = 0;
	char line[512];

	must_libc(maps ? 0 : -1);
	while (fgets(line, sizeof(line), maps))
		nr += strstr(line, "devbuf") || strstr(line, "dmabuf");
	fclose(maps);
	return nr;
}

void get_state(const struct world *world, struct state *state)
{
	const __u64 watched[NR_WATCHED] = {
		world->base, world->view,      world->twin,     world->idle,
		world->user, world->idle_view, world->uncached, world->reusing,
	};

	memset(state, 0, sizeof(*state));
	for (int i = 0; i < NR_WATCHED; i++)
		must(do_query(world->ctx, watched[i], &state->buffers[i]));
	state->handles[0] = fdinfo(world->ctx, "devbuf-handles");
	state->handles[1] = fdinfo(world->other, "devbuf-handles");
	state->allocated_nbytes[0] = fdinfo(world->ctx, "devbuf-allocated-nbytes");
	state->allocated_nbytes[1] = fdinfo(world->other, "devbuf-allocated-nbytes");
	state->nr_pinned_pages = nr_pinned_pages();
	state->nr_files = nr_open_files();
	state->next_file = next_file(world);
	state->nr_mappings = nr_mappings();
	state->charged_nbytes = memory_current(&world->group);
	state->nr_wrong_contents = !filled(world->memory, NBYTES, SEED) +
				   !buffer_filled(world->ctx, world->base, 0, NBYTES, SEED) +
				   !buffer_filled(world->ctx, world->twin, 0, NBYTES, SEED);
}

const char *compare_states(const struct state *before, const struct state *after)
{
	if (memcmp(before->buffers, after->buffers, sizeof(before->buffers)))
		return "QUERY tells something else";
	if (memcmp(before->handles, after->handles, sizeof(before->handles)))
		return "the number of handles changed";
	if (memcmp(before->allocated_nbytes, after->allocated_nbytes,
		   sizeof(before->allocated_nbytes)))
		return "the bytes that are allocated changed";
	if (before->nr_pinned_pages != after->nr_pinned_pages)
		return "the number of pinned pages changed";
	if (before->nr_files != after->nr_files || before->next_file != after->next_file)
		return "the number of open files changed";
	if (before->nr_mappings != after->nr_mappings)
		return "the number of mappings changed";
	if (before->nr_wrong_contents != after->nr_wrong_contents)
		return "bytes changed";
	/* Small things come and go as the kernel likes. */
	if (after->charged_nbytes - before->charged_nbytes > (long long)LARGE_NBYTES / 2)
		return "much memory stays in use";
	return NULL;
}
