// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one call of a function costs.
 *
 * Calls are made in batches that are long enough for the kernel to come to what it puts off: freeing
 * behind RCU, for one. So that is counted where it is caused. The first batches are dearer than the
 * rest, while caches fill.
 */
#include <time.h>

#include "common.h"

/* A batch takes at least that long: five ticks of Debian's kernels. */
#define BATCH_NS   20e6
/* Batches that the median is taken of. */
#define NR_SAMPLES 5
/* It is quiet when so many batches in a row differ little; it is measured anyway after so many. */
#define NR_QUIET   2
#define MAX_WARMUP 20

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
/* Two instructions a round. */
static void count_down(unsigned long rounds)
{
	asm volatile("1: dec %0; jnz 1b" : "+r"(rounds) : : "cc");
}

bool clock_counts_instructions(void)
{
	const unsigned long rounds = 50000;
	double best = 1e9;

	for (int i = 0; i < 10; i++) {
		double begun = now_ns(), took;

		count_down(rounds);
		took = now_ns() - begun;
		best = took < best ? took : best;
	}
	return differ_little(2.0 * rounds, best);
}
#else
bool clock_counts_instructions(void)
{
	return false;
}
#endif

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

static void await_quiet(const struct batch *batch)
{
	double last = run_batch(batch);
	int quiet = 0;

	for (int i = 0; i < MAX_WARMUP && quiet < NR_QUIET; i++) {
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
	struct batch batch = { .run = run, .subject = subject };
	double costs[NR_SAMPLES];

	find_size(&batch);
	await_quiet(&batch);
	for (int i = 0; i < NR_SAMPLES; i++)
		costs[i] = run_batch(&batch);
	qsort(costs, NR_SAMPLES, sizeof(costs[0]), compare_costs);
	return costs[NR_SAMPLES / 2];
}
