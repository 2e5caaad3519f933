// SPDX-License-Identifier: GPL-2.0-only
/*
 * What contexts keep for reuse is given back before anybody is killed for want of memory, or any
 * allocation fails.
 */
#include "common_cgroup.h"

#include "kselftest_harness.h"

#define LIMIT (32 * MIB)
#define KEPT  (20 * MIB)

/* --- kept memory makes way -------------------------------------------------------------------- */

/* Leaves KEPT bytes in the context, in so many buffers. */
static int new_keeping_context(int nr_buffers)
{
	int ctx = new_context();
	__u64 ids[64];

	for (int i = 0; i < nr_buffers; i++)
		ids[i] = new_allocated_flags(ctx, KEPT / nr_buffers, DEVBUF_CREATE_REUSE);
	for (int i = 0; i < nr_buffers; i++)
		must(do_destroy(ctx, ids[i]));
	must_be(fdinfo(ctx, "devbuf-cached-nbytes") == (long long)KEPT);
	return ctx;
}

FIXTURE(kept)
{
	struct group group;
};

FIXTURE_VARIANT(kept)
{
	void (*make_way)(const struct group *group);
};

static void one_for_anonymous_memory(const struct group *group)
{
	int ctx = new_keeping_context(1);

	(void)group;
	touch(24 * MIB);
	must_be(fdinfo(ctx, "devbuf-cached-nbytes") == 0);
}

static void many_for_anonymous_memory(const struct group *group)
{
	int ctx = new_keeping_context(20);

	(void)group;
	touch(24 * MIB);
	must_be(fdinfo(ctx, "devbuf-cached-nbytes") < (long long)KEPT);
}

static void in_many_contexts_for_anonymous_memory(const struct group *group)
{
	(void)group;
	for (int i = 0; i < 10; i++) {
		int ctx = new_context();

		must(do_destroy(ctx, new_allocated_flags(ctx, 2 * MIB, DEVBUF_CREATE_REUSE)));
	}
	touch(24 * MIB);
}

static void for_a_larger_buffer(const struct group *group)
{
	int ctx = new_keeping_context(20);

	(void)group;
	must_be(do_allocate(ctx, new_buffer(ctx, 24 * MIB)) == 0);
}

static void for_many_smaller_buffers(const struct group *group)
{
	int ctx = new_keeping_context(1);

	(void)group;
	for (int i = 0; i < 96; i++)
		must_be(do_allocate(ctx, new_buffer(ctx, 256 * KIB)) == 0);
}

static void for_a_buffer_of_another_context(const struct group *group)
{
	int ctx = new_keeping_context(20);
	int other = new_context();

	(void)group;
	must_be(do_allocate(other, new_buffer(other, 24 * MIB)) == 0);
	must_be(fdinfo(ctx, "devbuf-cached-nbytes") < (long long)KEPT);
}

static void for_more_than_there_is(const struct group *group)
{
	int ctx = new_keeping_context(20);

	(void)group;
	must_be(do_allocate(ctx, new_buffer(ctx, 2 * LIMIT)) == -ENOMEM);
	touch(24 * MIB);
}

FIXTURE_VARIANT_ADD(kept, one_for_anonymous_memory){ one_for_anonymous_memory };
FIXTURE_VARIANT_ADD(kept, many_for_anonymous_memory){ many_for_anonymous_memory };
FIXTURE_VARIANT_ADD(kept, in_many_contexts){ in_many_contexts_for_anonymous_memory };
FIXTURE_VARIANT_ADD(kept, for_a_larger_buffer){ for_a_larger_buffer };
FIXTURE_VARIANT_ADD(kept, for_many_smaller_buffers){ for_many_smaller_buffers };
FIXTURE_VARIANT_ADD(kept, for_a_buffer_of_another_context){ for_a_buffer_of_another_context };
FIXTURE_VARIANT_ADD(kept, for_more_than_there_is){ for_more_than_there_is };

FIXTURE_SETUP(kept)
{
	if (!has_memory_groups())
		SKIP(return, "no memory controller at " CGROUPS);
	new_group(&self->group, "kept", LIMIT);
}

FIXTURE_TEARDOWN(kept)
{
	remove_group(&self->group);
}

TEST_F_TIMEOUT(kept, memory_makes_way_before_anybody_is_killed, 60)
{
	EXPECT_EQ(0, in_group(&self->group, variant->make_way));
	EXPECT_EQ(0, nr_killed(&self->group));
}

/* --- from group to group ---------------------------------------------------------------------- */

FIXTURE(moved)
{
	struct group from, to;
};

FIXTURE_SETUP(moved)
{
	if (!has_memory_groups())
		SKIP(return, "no memory controller at " CGROUPS);
	new_group(&self->from, "from", LIMIT);
	new_group(&self->to, "to", LIMIT);
}

FIXTURE_TEARDOWN(moved)
{
	remove_group(&self->from);
	remove_group(&self->to);
}

TEST_F(moved, kept_memory_is_not_reused_by_another_group)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		int ctx = new_context();
		__u64 id;

		join(&self->from);
		id = new_allocated_flags(ctx, MIB, DEVBUF_CREATE_REUSE);
		buffer_fill(ctx, id, MIB, 1);
		must(do_deallocate(ctx, id));
		join(&self->to);
		_exit(do_allocate_flags(ctx, id, 0) == 0 && buffer_zero(ctx, id, 0, MIB) ? 0 : 1);
	}
	EXPECT_EQ(0, wait_for(child));
}

TEST_F(moved, a_group_may_go_while_its_memory_is_kept)
{
	int sockets[2];
	pid_t child;

	new_socket_pair(sockets);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		int ctx;

		join(&self->from);
		ctx = new_keeping_context(20);
		join(&self->to);
		signal_peer(sockets[1]);
		await_peer(sockets[1]);
		must(do_allocate(ctx, new_buffer(ctx, 24 * MIB)));
		close(ctx);
		_exit(0);
	}
	await_peer(sockets[0]);
	EXPECT_EQ(0, rmdir(self->from.path));
	signal_peer(sockets[0]);
	EXPECT_EQ(0, wait_for(child));
}

/* --- the whole machine ------------------------------------------------------------------------ */

#define MACHINE_EACH (8 * MIB)
#define MACHINE_NR   16

/* Leaves MACHINE_NR times MACHINE_EACH bytes in a context. */
static void new_large_keeping_context(void)
{
	int ctx = new_context();
	__u64 ids[MACHINE_NR];

	for (int i = 0; i < MACHINE_NR; i++)
		ids[i] = new_allocated_flags(ctx, MACHINE_EACH, DEVBUF_CREATE_REUSE);
	for (int i = 0; i < MACHINE_NR; i++)
		must(do_destroy(ctx, ids[i]));
}

FIXTURE(machine)
{
	long long nr_killed;
};

FIXTURE_SETUP(machine)
{
	self->nr_killed = read_key("/proc/vmstat", "oom_kill");
}

FIXTURE_TEARDOWN(machine)
{
}

TEST_F_TIMEOUT(machine, memory_makes_way_when_it_is_full, 120)
{
	__u64 nbytes = read_key("/proc/meminfo", "MemAvailable") * KIB / 10 * 6;
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		for (__u64 kept = 0; kept < nbytes; kept += MACHINE_NR * MACHINE_EACH)
			new_large_keeping_context();
		touch(nbytes);
		_exit(0);
	}
	EXPECT_EQ(0, wait_for(child));
	EXPECT_EQ(self->nr_killed, read_key("/proc/vmstat", "oom_kill"));
}

TEST_HARNESS_MAIN
