// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one call of a function costs.
 *
 * Calls are made in batches that are long enough for the kernel to come to what it puts off: freeing
 * behind RCU, for one. So that is counted where it is caused. The first batches are dearer than the
 * rest, while caches fill. Of instructions the median counts, which is nearly the same every time; of
 * times the least, for whatever else the machine does only adds to them.
 */
#include <time.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "common.h"

/* A batch takes at least that long: five ticks of Debian's kernels. */
#define BATCH_NS 20e6
/*
 * First batches, until so many in a row differ little, or most so many; then those that count. Times
 * never differ little: more of them count.
 */
#define NR_QUIET 2

static const struct counts {
	int most_first;
	int samples;
} counts_instructions = { 20, 5 }, counts_time = { 3, 10 };
#define MOST_SAMPLES 10

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static bool differ_little(double a, double b)
{
	double difference = a > b ? a - b : b - a;

	return difference <= 0.01 * a;
}

void await_idle_kernel(void)
{
	sleep(3);
}

/* --- is the clock a count of instructions? ---------------------------------------------------- */

#ifdef __x86_64__
#define ROUNDS       50000UL
#define NR_COUNTDOWN 2
#define NR_DIVISION  5

/* NR_COUNTDOWN instructions a round. */
static void count_down(void)
{
	unsigned long rounds = ROUNDS;

	asm volatile("1: dec %0; jnz 1b" : "+r"(rounds) : : "cc");
}

/* NR_DIVISION instructions a round, and not at all the same time for each. */
static void divide(void)
{
	unsigned long rounds = ROUNDS;

	asm volatile("1: mov $7, %%eax; xor %%edx, %%edx; div %%ecx; dec %0; jnz 1b"
		     : "+r"(rounds)
		     : "c"(3)
		     : "eax", "edx", "cc");
}

static bool takes(void (*loop)(void), double instructions)
{
	double best = 1e9;

	for (int i = 0; i < 10; i++) {
		double begun = now_ns(), took;

		loop();
		took = now_ns() - begun;
		best = took < best ? took : best;
	}
	return differ_little(instructions, best);
}

static bool look_at_clock(void)
{
	return takes(count_down, NR_COUNTDOWN * ROUNDS) && takes(divide, NR_DIVISION * ROUNDS);
}

bool processor_is_emulated(void)
{
	unsigned int largest, name[3];

	__cpuid(0x40000000, largest, name[0], name[1], name[2]);
	return !memcmp(name, "TCGTCGTCGTCG", sizeof(name));
}
#else
static bool look_at_clock(void)
{
	return false;
}

bool processor_is_emulated(void)
{
	return false;
}
#endif

bool clock_counts_instructions(void)
{
	static enum { UNKNOWN, TIME, INSTRUCTIONS } clock;

	if (clock == UNKNOWN)
		clock = look_at_clock() ? INSTRUCTIONS : TIME;
	return clock == INSTRUCTIONS;
}

/* --- batches ---------------------------------------------------------------------------------- */

struct batch {
	void (*run)(struct subject *subject);
	struct subject *subject;
	unsigned long calls;
};

/* What one call cost. */
static double run_batch(const struct batch *batch)
{
	double begun = now_ns();

	for (unsigned long i = 0; i < batch->calls; i++)
		batch->run(batch->subject);
	return (now_ns() - begun) / batch->calls;
}

static void find_size(struct batch *batch)
{
	batch->calls = 1;
	while (run_batch(batch) * batch->calls < BATCH_NS)
		batch->calls *= 2;
}

static void await_quiet(const struct batch *batch, int most)
{
	double last = run_batch(batch);
	int quiet = 0;

	for (int i = 0; i < most && quiet < NR_QUIET; i++) {
		double cost = run_batch(batch);

		quiet = differ_little(last, cost) ? quiet + 1 : 0;
		last = cost;
	}
}

static int compare_costs(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double measure(void (*run)(struct subject *subject), struct subject *subject)
{
	bool instructions = clock_counts_instructions();
	const struct counts *counts = instructions ? &counts_instructions : &counts_time;
	struct batch batch = { .run = run, .subject = subject };
	double costs[MOST_SAMPLES];

	find_size(&batch);
	await_quiet(&batch, counts->most_first);
	for (int i = 0; i < counts->samples; i++)
		costs[i] = run_batch(&batch);
	qsort(costs, counts->samples, sizeof(costs[0]), compare_costs);
	return instructions ? costs[counts->samples / 2] : costs[0];
}
