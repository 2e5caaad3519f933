// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads queue copies on a few buffers, by ioctl and by ring, and cancel them, wait for them, and
 * take away under them whatever can be taken away: memory, ids, buffers, exports, contexts, rings.
 * A fixed number of rounds; each result is one that the ABI has for it, and nothing is left at the
 * end. With the module vgem some are held back meanwhile.
 */
#include "common_uring.h"
#include "common_vgem.h"

#include <poll.h>
#include <stdatomic.h>

#include "kselftest_harness.h"

#define NR_THREADS 4
#define NR_SLOTS   6
#define NR_FENCES  8
/* Some are queued, small ones on a ring are done at once. */
#define NBYTES     70000u

static int nr_rounds;

/* Ids that the threads share; a stale one may be used at any time. */
struct world {
	int ctx, card;
	_Atomic __u64 ids[NR_SLOTS];
	atomic_int nr_wrong;
	/* What came of everything, to show that it is not all refused. */
	atomic_int nr_done, nr_cancelled, nr_refused;
};

struct actor {
	struct world *world;
	unsigned int random;
	/* Fences that have not been asked yet. */
	int fences[NR_FENCES];
	int nr_fences;
	struct io_uring ring;
	/* Commands on the ring, whose argument each has its own place. */
	struct copy_command commands[NR_FENCES];
	unsigned char *memory[NR_FENCES];
	bool busy[NR_FENCES];
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

static __u64 any_length(struct actor *actor)
{
	return 1 + draw(actor, draw(actor, 2) ? NBYTES : 100);
}

/*
 * 0, or: the id was stale, its buffer in another state, the copy cancelled. A copy after one that
 * was cancelled fails as it did.
 */
static bool may_be(int ret)
{
	switch (ret) {
	case 0:
	case -ENOENT:
	case -ENODATA:
	case -EALREADY:
	case -EBUSY:
	case -EINVAL:
	case -ECANCELED:
	case -ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

static void check(struct actor *actor, const char *what, int ret)
{
	struct world *world = actor->world;

	atomic_fetch_add(ret ? &world->nr_refused : &world->nr_done, 1);
	if (may_be(ret))
		return;
	fprintf(stderr, "# %s: %s\n", what, strerror(-ret));
	atomic_fetch_add(&world->nr_wrong, 1);
}

/* --- buffers come and go ---------------------------------------------------------------------- */

/* Whoever takes an id out of its slot destroys it, so that works. */
static void replace(struct actor *actor, __u64 id)
{
	__u64 old = atomic_exchange(&actor->world->ids[draw(actor, NR_SLOTS)], id);

	if (old)
		must(do_destroy(actor->world->ctx, old));
}

static int act_create(struct actor *actor)
{
	__u64 id = new_allocated_flags(actor->world->ctx, NBYTES,
				       draw(actor, 2) ? DEVBUF_CREATE_REUSE : 0);

	replace(actor, id);
	return 0;
}

static int act_view(struct actor *actor)
{
	__u64 view;
	int ret = do_view(actor->world->ctx, any_id(actor), draw(actor, 1000), 1000, &view);

	if (ret)
		return ret;
	ret = do_allocate(actor->world->ctx, view);
	replace(actor, view);
	return ret;
}

static int act_destroy(struct actor *actor)
{
	if (draw(actor, 4) == 0)
		replace(actor, 0);
	return 0;
}

static int act_allocate(struct actor *actor)
{
	return do_allocate(actor->world->ctx, any_id(actor));
}

static int act_deallocate(struct actor *actor)
{
	return do_deallocate(actor->world->ctx, any_id(actor));
}

static int act_export(struct actor *actor)
{
	int fd = do_export(actor->world->ctx, any_id(actor), draw(actor, 2));
	struct pollfd file = { .fd = fd, .events = POLLIN | POLLOUT };

	if (fd < 0)
		return fd;
	poll(&file, 1, draw(actor, 2));
	close(fd);
	return 0;
}

/* --- copies by ioctl -------------------------------------------------------------------------- */

static void ask_fences(struct actor *actor)
{
	while (actor->nr_fences)
		check(actor, "a fence", end_fence(actor->fences[--actor->nr_fences]));
}

/* The result of queue_copyin() and others. */
static int keep_fence(struct actor *actor, int fence)
{
	if (fence < 0)
		return fence;
	if (draw(actor, 3) == 0) {
		close(fence);
		return 0;
	}
	if (actor->nr_fences == NR_FENCES)
		ask_fences(actor);
	actor->fences[actor->nr_fences++] = fence;
	return 0;
}

/* After one of its own, sometimes. */
static struct queueing any_queueing(struct actor *actor)
{
	struct queueing how = {
		.flags = DEVBUF_ASYNC_OUT_FENCE,
		.cookie = draw(actor, 4),
	};

	if (draw(actor, 10) == 0)
		how.flags |= DEVBUF_ASYNC_EXPLICIT;
	if (actor->nr_fences && draw(actor, 3) == 0) {
		how.in_fences = actor->fences;
		how.nr_in_fences = actor->nr_fences;
	}
	return how;
}

static int act_copyin(struct actor *actor)
{
	struct queueing how = any_queueing(actor);
	unsigned char *memory = new_memory(NBYTES);
	int fence = queue_copyin(actor->world->ctx, any_id(actor), 0, memory + draw(actor, 50),
				 any_length(actor) / 2 + 1, &how);

	munmap(memory, NBYTES);
	return keep_fence(actor, fence);
}

static int act_copyout(struct actor *actor)
{
	struct queueing how = any_queueing(actor);
	unsigned char *memory = new_memory(NBYTES);
	int fence = queue_copyout(actor->world->ctx, any_id(actor), 0, memory + draw(actor, 50),
				  any_length(actor) / 2 + 1, &how);

	munmap(memory, NBYTES);
	return keep_fence(actor, fence);
}

static int act_transfer(struct actor *actor)
{
	struct queueing how = any_queueing(actor);

	return keep_fence(actor, queue_transfer(actor->world->ctx, any_id(actor), 0, any_id(actor),
						0, any_length(actor), &how));
}

static int act_cancel(struct actor *actor)
{
	int ret = draw(actor, 4) ? do_cancel(actor->world->ctx, 1 + draw(actor, 3)) :
				   do_cancel_all(actor->world->ctx);

	if (ret < 0)
		return ret;
	atomic_fetch_add(&actor->world->nr_cancelled, ret);
	return 0;
}

static int act_held(struct actor *actor)
{
	struct queueing how = { .flags = DEVBUF_ASYNC_OUT_FENCE, .nr_in_fences = 1, .cookie = 1 };
	struct gate gate;
	int ret;

	if (actor->world->card < 0)
		return 0;
	gate = new_gate(actor->world->card);
	how.in_fences = &gate.fd;
	for (int i = 0; i < 3; i++) {
		ret = keep_fence(actor, queue_transfer(actor->world->ctx, any_id(actor), 0,
						       any_id(actor), 0, any_length(actor), &how));
		check(actor, "a copy that is held", ret);
		/* To ask them now would be to wait for the gate. */
		while (actor->nr_fences)
			close(actor->fences[--actor->nr_fences]);
	}
	if (draw(actor, 2))
		check(actor, "cancel", act_cancel(actor));
	open_gate(&gate);
	return 0;
}

static int act_synchronous(struct actor *actor)
{
	return do_transfer(actor->world->ctx, any_id(actor), 0, any_id(actor), 0,
			   any_length(actor));
}

static int act_wait(struct actor *actor)
{
	struct devbuf_wait wait = wait_argument(any_id(actor), 1 + draw(actor, 3));

	/* An empty slot names nothing. */
	if (!wait.id)
		return 0;
	wait.deadline_ns = draw(actor, 2) ? 0 : now_ns() + draw(actor, 1000000);
	return do_wait(actor->world->ctx, &wait);
}

/* A context of one's own, closed with all that it queued. */
static int act_close(struct actor *actor)
{
	int fd = do_export(actor->world->ctx, any_id(actor), DEVBUF_EXPORT_WRITE);
	int ctx = new_context();
	struct queueing plain = { 0 };
	__u64 theirs, own = new_allocated(ctx, NBYTES);

	if (fd >= 0) {
		must(do_import(ctx, fd, &theirs));
		close(fd);
		for (int i = 0; i < 4; i++)
			check(actor, "a copy of a context that is closed",
			      i % 2 ? queue_transfer(ctx, theirs, 0, own, 0, 1000, &plain) :
				      queue_transfer(ctx, own, 0, theirs, 0, 1000, &plain));
	}
	close(ctx);
	return fd < 0 ? fd : 0;
}

/* --- copies by ring --------------------------------------------------------------------------- */

static void reap(struct actor *actor)
{
	struct completion completion = next_completion(&actor->ring);

	check(actor, "a command on a ring", completion.res);
	actor->busy[completion.user_data] = false;
}

static void prepare_any(struct actor *actor, struct io_uring *ring, int i)
{
	struct ends ends = {
		.src = any_id(actor),
		.dst = any_id(actor),
		.from = actor->memory[i],
		.to = actor->memory[i],
		.nbytes = any_length(actor),
	};
	struct copy_command *command = &actor->commands[i];

	prepare_copy_of(command, &ends, draw(actor, 3), 0);
	command->copy.cookie = draw(actor, 4);
	prepare_command(ring, actor->world->ctx, command->command, &command->copy, i)->flags |=
		draw(actor, 4) ? 0 : IOSQE_ASYNC;
}

static int act_on_ring(struct actor *actor)
{
	int i = draw(actor, NR_FENCES);

	while (actor->busy[i])
		reap(actor);
	actor->busy[i] = true;
	prepare_any(actor, &actor->ring, i);
	submit(&actor->ring);
	return 0;
}

/* A ring of one's own, closed with all that is on it. */
static int act_close_ring(struct actor *actor)
{
	struct copy_command *commands = actor->commands;
	struct io_uring ring;

	/* The arguments of the other ring's commands are left alone. */
	for (int i = 0; i < NR_FENCES; i++)
		while (actor->busy[i])
			reap(actor);
	must(io_uring_queue_init(NR_FENCES, &ring, 0));
	for (int i = 0; i < 4; i++)
		prepare_any(actor, &ring, i);
	submit(&ring);
	io_uring_queue_exit(&ring);
	/* Whatever is written there later, or read, is none of anybody's business. */
	memset(commands, 0, sizeof(actor->commands));
	return 0;
}

static const struct {
	const char *name;
	int (*act)(struct actor *actor);
} acts[] = {
	{ "create", act_create },
	{ "view", act_view },
	{ "destroy", act_destroy },
	{ "allocate", act_allocate },
	{ "allocate", act_allocate },
	{ "deallocate", act_deallocate },
	{ "export", act_export },
	{ "copyin", act_copyin },
	{ "copyout", act_copyout },
	{ "transfer", act_transfer },
	{ "transfer", act_transfer },
	{ "held", act_held },
	{ "synchronous transfer", act_synchronous },
	{ "cancel", act_cancel },
	{ "wait", act_wait },
	{ "close", act_close },
	{ "on ring", act_on_ring },
	{ "on ring", act_on_ring },
	{ "close ring", act_close_ring },
};

static void *run(void *argument)
{
	struct actor *actor = argument;

	must(io_uring_queue_init(NR_FENCES, &actor->ring, 0));
	for (int i = 0; i < NR_FENCES; i++)
		actor->memory[i] = new_memory(NBYTES);
	for (int i = 0; i < nr_rounds; i++) {
		unsigned int act = draw(actor, ARRAY_SIZE(acts));

		check(actor, acts[act].name, acts[act].act(actor));
	}
	ask_fences(actor);
	for (int i = 0; i < NR_FENCES; i++)
		while (actor->busy[i])
			reap(actor);
	io_uring_queue_exit(&actor->ring);
	return NULL;
}

FIXTURE(race_async)
{
	struct world world;
	struct actor actors[NR_THREADS];
};

FIXTURE_SETUP(race_async)
{
	struct io_uring ring;
	const char *reason = new_command_ring(&ring, 0);

	if (reason)
		SKIP(return, "%s", reason);
	io_uring_queue_exit(&ring);
	self->world.ctx = new_context();
	self->world.card = open_vgem();
}

FIXTURE_TEARDOWN(race_async)
{
	close(self->world.ctx);
	close(self->world.card);
}

TEST_F_TIMEOUT(race_async, everything_at_once, 500)
{
	struct world *world = &self->world;

	for (int i = 0; i < NR_THREADS; i++) {
		self->actors[i].world = world;
		self->actors[i].random = i;
		must(-pthread_create(&self->actors[i].thread, NULL, run, &self->actors[i]));
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(self->actors[i].thread, NULL);
	EXPECT_EQ(0, world->nr_wrong);
	printf("# %d acts done, %d refused, %d copies cancelled\n", world->nr_done,
	       world->nr_refused, world->nr_cancelled);
	for (int i = 0; i < NR_SLOTS; i++) {
		if (world->ids[i])
			must(do_destroy(world->ctx, world->ids[i]));
	}
	EXPECT_EQ(0, fdinfo(world->ctx, "devbuf-handles"));
	EXPECT_EQ(0, fdinfo(world->ctx, "devbuf-allocated-nbytes"));
	close(world->ctx);
	close(world->card);
	EXPECT_TRUE(module_uses_fall_to(0));
}

int main(int argc, char **argv)
{
	/* The debugging kernel is many times slower. */
	nr_rounds = access("/sys/kernel/debug/kmemleak", F_OK) ? 10000 : 1000;
	return test_harness_run(argc, argv);
}
