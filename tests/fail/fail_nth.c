// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every point at which an operation of the driver can run out of memory or meet a bad page: the
 * kernel is told to fail the 1st, 2nd, 3rd... allocation or user access of one system call, until
 * the call comes to its end before that point. Each failure must give an errno of the ABI and leave
 * everything as it was, and the same call must work afterwards. What a failure may have leaked is
 * found by the VM runner (kmemleak, rmmod).
 *
 * Needs a kernel with fault injection, as tests/vm/init sets it up; an importer, the module vgem.
 */
#include "common.h"

#include "kselftest_harness.h"

#define FAIL_NTH "/proc/thread-self/fail-nth"

/* Each test is a process of its own; the points of all of them are told at the end. */
static long *nr_points;
static pid_t main_process;

__attribute__((constructor)) static void share_nr_points(void)
{
	main_process = getpid();
	nr_points = mmap(NULL, sizeof(*nr_points), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

__attribute__((destructor)) static void tell_nr_points(void)
{
	if (getpid() == main_process && *nr_points)
		printf("# %ld points in all\n", *nr_points);
}

FIXTURE(fail_nth)
{
	struct world world;
};

FIXTURE_SETUP(fail_nth)
{
	int fail_nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC);

	if (fail_nth < 0)
		SKIP(return, "this kernel has no fault injection (" FAIL_NTH ")");
	self->world.fail_nth = fail_nth;
	new_world(&self->world);
}

FIXTURE_TEARDOWN(fail_nth)
{
	end_world(&self->world);
}

static void sweep(struct __test_metadata *_metadata, struct world *world, const char *name,
		  const struct operation *operation)
{
	struct sweep sweep;

	if (operation->of_vgem && world->vgem < 0)
		SKIP(return, "the module vgem is not loaded");
	sweep = sweep_operation(world, operation);
	printf("# %s: %d points, %d of them failures\n", name, sweep.nr_points, sweep.nr_failures);
	fflush(stdout);
	__atomic_fetch_add(nr_points, sweep.nr_points, __ATOMIC_RELAXED);
	ASSERT_STREQ("", sweep.problem);
}

#define TEST_OF_OPERATION(name)                                           \
	TEST_F(fail_nth, name)                                            \
	{                                                                 \
		sweep(_metadata, &self->world, #name, &operation_##name); \
	}

FOR_EACH_OPERATION(TEST_OF_OPERATION)

TEST_HARNESS_MAIN
