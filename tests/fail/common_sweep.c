// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failing each point of an operation in turn, and what must hold then.
 *
 * A point is a place where the kernel asks whether it shall pretend to have failed: an allocation of
 * a slab object or of pages, a copy from or to the caller. fail-nth counts a thread's points down,
 * and the one at which it comes to zero fails.
 */
#include <stdarg.h>

#include "common.h"

#define MAX_POINTS 1000

static void arm(int fail_nth, int point)
{
	char text[16];

	must_libc(pwrite(fail_nth, text, snprintf(text, sizeof(text), "%d", point), 0));
}

/*
 * Whether the point was met since it was armed. When not, it is still ahead, and asking for the
 * count can itself meet it, and then fails; so can setting it to zero, but only once.
 */
static bool disarm(int fail_nth)
{
	char text[16] = { 0 };
	bool told = pread(fail_nth, text, sizeof(text) - 1, 0) > 0;

	if (pwrite(fail_nth, "0", 1, 0) < 0)
		arm(fail_nth, 0);
	return told && atoi(text) == 0;
}

/* What the ABI has for a failed allocation or user access. */
static bool is_expected(int ret)
{
	return ret == -ENOMEM || ret == -EFAULT || ret == -ENFILE || ret == -EMFILE;
}

__attribute__((format(printf, 3, 4))) static void complain(struct sweep *sweep, int point,
							   const char *format, ...)
{
	va_list arguments;
	int length;

	/* The first complaint is the one to look at. */
	if (sweep->problem[0])
		return;
	length = snprintf(sweep->problem, sizeof(sweep->problem), "point %d: ", point);
	va_start(arguments, format);
	vsnprintf(sweep->problem + length, sizeof(sweep->problem) - length, format, arguments);
	va_end(arguments);
}

static void expect_unchanged(struct sweep *sweep, int point, const struct world *world,
			     const struct state *before, const char *when)
{
	struct state after;
	const char *change;

	get_state(world, &after);
	change = compare_states(before, &after);
	if (change)
		complain(sweep, point, "%s %s", change, when);
}

/* Run @operation so that @point fails. Returns whether there is such a point. */
static bool try_point(struct world *world, const struct operation *operation, int point,
		      const struct state *at_rest, struct sweep *sweep)
{
	struct state prepared = *at_rest;
	bool met;
	int ret;

	if (operation->prepare) {
		operation->prepare(world);
		get_state(world, &prepared);
	}
	arm(world->fail_nth, point);
	ret = operation->run(world);
	met = disarm(world->fail_nth);
	if (ret) {
		sweep->nr_failures++;
		if (!met || !is_expected(ret))
			complain(sweep, point, "%s%s", strerror(-ret),
				 met ? "" : ", though nothing was made to fail");
		expect_unchanged(sweep, point, world, &prepared, "by a failure");
		ret = operation->run(world);
		if (ret)
			complain(sweep, point, "afterwards %s", strerror(-ret));
	}
	if (!ret && operation->undo)
		operation->undo(world);
	expect_unchanged(sweep, point, world, at_rest, "for good");
	return met;
}

struct sweep sweep_operation(struct world *world, const struct operation *operation)
{
	struct sweep sweep = { 0 };
	struct state at_rest;

	get_state(world, &at_rest);
	while (try_point(world, operation, sweep.nr_points + 1, &at_rest, &sweep) &&
	       !sweep.problem[0])
		if (++sweep.nr_points == MAX_POINTS)
			complain(&sweep, MAX_POINTS, "there is no end of them");
	return sweep;
}
