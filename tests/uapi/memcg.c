// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of buffers is charged to the cgroup of whoever allocates it. At its limit he gets -ENOMEM;
 * nobody is killed.
 */
#include "common_cgroup.h"

#include "kselftest_harness.h"

#define LIMIT (32 * MIB)

FIXTURE(memcg)
{
	struct group group;
};

FIXTURE_SETUP(memcg)
{
	if (!has_memory_groups())
		SKIP(return, "no memory controller at " CGROUPS);
	new_group(&self->group, "limited", LIMIT);
}

FIXTURE_TEARDOWN(memcg)
{
	remove_group(&self->group);
}

/* --- the limit -------------------------------------------------------------------------------- */

static void allocate_too_much(const struct group *group)
{
	int ctx = new_context();
	__u64 large = new_buffer(ctx, 2 * LIMIT);

	(void)group;
	for (int i = 0; i < 3; i++)
		must_be(do_allocate(ctx, large) == -ENOMEM);
	must_be(query(ctx, large).out_state == 0);
	must_be(fdinfo(ctx, "devbuf-allocated-nbytes") == 0);
	must_be(do_allocate(ctx, new_buffer(ctx, 8 * MIB)) == 0);
}

TEST_F(memcg, more_than_the_limit_is_ENOMEM_and_kills_nobody)
{
	EXPECT_EQ(0, in_group(&self->group, allocate_too_much));
	EXPECT_EQ(0, nr_killed(&self->group));
}

TEST_F(memcg, a_bystander_in_the_group_is_not_hurt)
{
	int sockets[2];
	pid_t bystander;

	new_socket_pair(sockets);
	bystander = fork();
	ASSERT_LE(0, bystander);
	if (!bystander) {
		join(&self->group);
		touch(4 * MIB);
		signal_peer(sockets[1]);
		await_peer(sockets[1]);
		touch(4 * MIB);
		_exit(0);
	}
	await_peer(sockets[0]);
	EXPECT_EQ(0, in_group(&self->group, allocate_too_much));
	signal_peer(sockets[0]);
	EXPECT_EQ(0, wait_for(bystander));
	EXPECT_EQ(0, nr_killed(&self->group));
}

static int allocate_until_it_fails(int ctx, __u64 nbytes, __u64 *ids, int nr)
{
	for (int i = 0; i < nr; i++) {
		int ret;

		ids[i] = new_buffer(ctx, nbytes);
		ret = do_allocate(ctx, ids[i]);
		if (ret == -ENOMEM)
			return i;
		must(ret);
	}
	return nr;
}

static void fill_the_group_twice(const struct group *group)
{
	int ctx = new_context();
	__u64 ids[64];
	int first, second;

	(void)group;
	first = allocate_until_it_fails(ctx, MIB, ids, 64);
	must_be(first >= 20 && first < 32);
	close(ctx);
	ctx = new_context();
	second = allocate_until_it_fails(ctx, MIB, ids, 64);
	must_be(second >= first - 1);
}

TEST_F(memcg, what_is_freed_can_be_allocated_again)
{
	EXPECT_EQ(0, in_group(&self->group, fill_the_group_twice));
	EXPECT_EQ(0, nr_killed(&self->group));
}

/* Buffers without memory are objects of the kernel, and charged as well. */
static void create_until_it_fails(const struct group *group)
{
	int ctx = new_context();
	__u64 id;
	int ret = 0;

	(void)group;
	/* So that nothing of this process is missing when the group is full. */
	must_libc(mlockall(MCL_CURRENT | MCL_FUTURE));
	for (int i = 0; i < 1000000 && !ret; i++)
		ret = do_create(ctx, SYSTEM_DEVICE, PAGE, 0, &id);
	close(ctx);
	must_be(ret == -ENOMEM);
}

TEST_F_TIMEOUT(memcg, handles_are_charged, 120)
{
	set_limit(&self->group, 8 * MIB);
	EXPECT_EQ(0, in_group(&self->group, create_until_it_fails));
	EXPECT_EQ(0, nr_killed(&self->group));
}

/* --- given back ------------------------------------------------------------------------------- */

/* The kernel keeps a little for itself, per CPU. */
#define SLACK (2 * (long long)MIB)

static void allocate_and_close(const struct group *group)
{
	int ctx = new_context();
	long long before = memory_current(group);

	new_allocated(ctx, 16 * MIB);
	must_be(memory_current(group) >= before + 16 * (long long)MIB);
	close(ctx);
	must_be(memory_current(group) <= before + SLACK);
}

TEST_F(memcg, memory_is_charged_until_close)
{
	EXPECT_EQ(0, in_group(&self->group, allocate_and_close));
}

static void keep_and_close(const struct group *group)
{
	int ctx = new_context();
	long long before = memory_current(group);
	__u64 id = new_allocated_flags(ctx, 16 * MIB, DEVBUF_CREATE_REUSE);

	must(do_deallocate(ctx, id));
	must_be(fdinfo(ctx, "devbuf-cached-nbytes") == 16 * (long long)MIB);
	must_be(memory_current(group) >= before + 16 * (long long)MIB);
	close(ctx);
	must_be(memory_current(group) <= before + SLACK);
}

TEST_F(memcg, kept_memory_is_charged_until_close)
{
	EXPECT_EQ(0, in_group(&self->group, keep_and_close));
}

static void map_one_and_close(const struct group *group)
{
	int ctx = new_context();
	long long before = memory_current(group);
	unsigned char *map = new_mapping(ctx, new_allocated(ctx, MIB), MIB, PROT_READ | PROT_WRITE);

	new_allocated(ctx, 16 * MIB);
	close(ctx);
	must_be(memory_current(group) <= before + (long long)MIB + SLACK);
	map[0] = 1;
}

TEST_F(memcg, a_mapping_keeps_its_own_memory_and_not_its_context_s)
{
	EXPECT_EQ(0, in_group(&self->group, map_one_and_close));
}

TEST_HARNESS_MAIN
