// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads do anything to any of a few buffers, which appear and vanish under them, for a fixed
 * number of rounds. Each result is one that the ABI has for it, and nothing is left at the end.
 */
#include "common.h"

#include <stdatomic.h>

#include "kselftest_harness.h"

#define NR_THREADS 4
#define NR_SLOTS   6
#define ROUNDS     3000
#define NBYTES     10000u

/* Ids that the threads share; a stale one may be used at any time. */
struct world {
	int ctx, other;
	_Atomic __u64 ids[NR_SLOTS];
	atomic_int nr_wrong;
};

struct actor {
	struct world *world;
	unsigned int random;
	pthread_t thread;
};

static unsigned int draw(struct actor *actor, unsigned int below)
{
	actor->random = actor->random * 1664525 + 1013904223;
	return (actor->random >> 8) % below;
}

static __u64 any_id(struct actor *actor)
{
	return atomic_load(&actor->world->ids[draw(actor, NR_SLOTS)]);
}

/* --- what they do; each returns what the kernel said ------------------------------------------ */

/* Whoever takes an id out of its slot destroys it, so that works. */
static void replace(struct actor *actor, __u64 id)
{
	__u64 old = atomic_exchange(&actor->world->ids[draw(actor, NR_SLOTS)], id);

	if (old)
		must(do_destroy(actor->world->ctx, old));
}

static int act_create(struct actor *actor)
{
	__u64 id;
	int ret = do_create(actor->world->ctx, SYSTEM_DEVICE, NBYTES,
			    draw(actor, 2) ? DEVBUF_CREATE_REUSE : 0, &id);

	if (!ret)
		replace(actor, id);
	return ret;
}

static int act_destroy(struct actor *actor)
{
	replace(actor, 0);
	return 0;
}

static int act_view(struct actor *actor)
{
	__u64 view;
	int ret = do_view(actor->world->ctx, any_id(actor), draw(actor, NBYTES), 1, &view);

	if (!ret)
		replace(actor, view);
	return ret;
}

static int act_allocate(struct actor *actor)
{
	return do_allocate(actor->world->ctx, any_id(actor));
}

static int act_deallocate(struct actor *actor)
{
	return do_deallocate(actor->world->ctx, any_id(actor));
}

static int act_copyin(struct actor *actor)
{
	char bytes[NBYTES] = { 0 };

	return do_copyin(actor->world->ctx, any_id(actor), 0, bytes, 1 + draw(actor, NBYTES));
}

static int act_copyout(struct actor *actor)
{
	char bytes[NBYTES];

	return do_copyout(actor->world->ctx, any_id(actor), 0, bytes, 1 + draw(actor, NBYTES));
}

static int act_transfer(struct actor *actor)
{
	return do_transfer(actor->world->ctx, any_id(actor), 0, any_id(actor), 0,
			   1 + draw(actor, NBYTES));
}

static int act_map(struct actor *actor)
{
	size_t nbytes = (1 + draw(actor, 3)) * PAGE;
	void *map;
	int ret = do_map(actor->world->ctx, any_id(actor), nbytes, PROT_READ | PROT_WRITE, &map);

	if (ret)
		return ret;
	for (size_t i = 0; i < nbytes; i += PAGE)
		((volatile char *)map)[i] = 1;
	must_libc(madvise(map, nbytes, MADV_DONTNEED));
	must_libc(munmap(map, PAGE));
	if (nbytes > PAGE) {
		((volatile char *)map)[PAGE] = 1;
		must_libc(munmap((char *)map + PAGE, nbytes - PAGE));
	}
	return 0;
}

static int act_export_import(struct actor *actor)
{
	int fd = do_export(actor->world->ctx, any_id(actor), DEVBUF_EXPORT_WRITE);
	int other = actor->world->other;
	char byte;
	__u64 id;
	int ret;

	if (fd < 0)
		return fd;
	must(do_import(other, fd, &id));
	close(fd);
	ret = do_copyout(other, id, 0, &byte, 1);
	must(do_destroy(other, id));
	return ret;
}

static int act_query(struct actor *actor)
{
	struct devbuf_query query;

	return do_query(actor->world->ctx, any_id(actor), &query);
}

static int act_set_name(struct actor *actor)
{
	return do_set_name(actor->world->ctx, any_id(actor), draw(actor, 2) ? "one" : "another");
}

static int act_sync(struct actor *actor)
{
	return do_sync(actor->world->ctx, any_id(actor), 0, 1, DEVBUF_SYNC_WRITE);
}

/* A context of one's own, closed with everything in it. */
static int act_close(struct actor *actor)
{
	int ctx = new_context();
	int fd = do_export(actor->world->ctx, any_id(actor), 0);
	__u64 id;

	if (fd >= 0) {
		must(do_import(ctx, fd, &id));
		close(fd);
		new_view(ctx, id, 0, 1);
	}
	new_allocated_view(ctx, new_allocated(ctx, NBYTES), 1, 1);
	close(ctx);
	return fd < 0 ? fd : 0;
}

static const struct {
	const char *name;
	int (*act)(struct actor *actor);
} acts[] = {
	{ "create", act_create },
	{ "destroy", act_destroy },
	{ "view", act_view },
	{ "allocate", act_allocate },
	{ "allocate", act_allocate },
	{ "deallocate", act_deallocate },
	{ "copyin", act_copyin },
	{ "copyout", act_copyout },
	{ "transfer", act_transfer },
	{ "map", act_map },
	{ "export and import", act_export_import },
	{ "query", act_query },
	{ "set name", act_set_name },
	{ "sync", act_sync },
	{ "close", act_close },
};

/* The id was stale (ENOENT), its buffer in another state, or another, shorter one (EINVAL). */
static bool may_be(int ret)
{
	switch (ret) {
	case 0:
	case -ENOENT:
	case -ENODATA:
	case -EALREADY:
	case -EBUSY:
	case -EINVAL:
		return true;
	default:
		return false;
	}
}

static void *run(void *argument)
{
	struct actor *actor = argument;

	for (int i = 0; i < ROUNDS; i++) {
		unsigned int act = draw(actor, ARRAY_SIZE(acts));
		int ret = acts[act].act(actor);

		if (may_be(ret))
			continue;
		fprintf(stderr, "# %s: %s\n", acts[act].name, strerror(-ret));
		atomic_fetch_add(&actor->world->nr_wrong, 1);
	}
	return NULL;
}

FIXTURE(everything)
{
	struct world world;
	struct actor actors[NR_THREADS];
};

FIXTURE_SETUP(everything)
{
	self->world.ctx = new_context();
	self->world.other = new_context();
}

FIXTURE_TEARDOWN(everything)
{
	close(self->world.ctx);
	close(self->world.other);
}

TEST_F_TIMEOUT(everything, at_once, 120)
{
	struct world *world = &self->world;

	for (int i = 0; i < NR_THREADS; i++) {
		self->actors[i] = (struct actor){ .world = world, .random = i };
		must(-pthread_create(&self->actors[i].thread, NULL, run, &self->actors[i]));
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(self->actors[i].thread, NULL);
	EXPECT_EQ(0, world->nr_wrong);
	for (int i = 0; i < NR_SLOTS; i++) {
		if (world->ids[i])
			must(do_destroy(world->ctx, world->ids[i]));
	}
	EXPECT_EQ(0, fdinfo(world->ctx, "devbuf-handles"));
	EXPECT_EQ(0, fdinfo(world->ctx, "devbuf-allocated-nbytes"));
	EXPECT_EQ(0, fdinfo(world->other, "devbuf-handles"));
}

TEST_HARNESS_MAIN
