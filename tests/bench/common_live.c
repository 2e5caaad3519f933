// SPDX-License-Identifier: GPL-2.0-only
/*
 * A second table: what look-ups and views cost when a context's table holds many ids.
 *
 * Half of the ids are buffers without memory, the others views of them. QUERY goes to and fro
 * between all of them, so that no cache has the next one.
 */
#include "common.h"

#define NR_MOST   1000000
/* Coprime to all numbers of ids. */
#define NR_STRIDE 611953

static const unsigned int numbers[] = { 100, 10000, NR_MOST };

struct live {
	struct subject subject;
	__u64 ids[NR_MOST];
	unsigned int nr;
	unsigned int at;
};

static void add_ids(struct live *live, unsigned int nr)
{
	int device = live->subject.device;

	for (; live->nr < nr; live->nr += 2) {
		__u64 *ids = live->ids + live->nr;

		ids[0] = new_buffer(device, PAGE);
		ids[1] = new_view(device, ids[0], 1, PAGE - 1);
	}
}

static struct live *live_of(struct subject *subject)
{
	return (struct live *)((char *)subject - offsetof(struct live, subject));
}

static void query_next(struct subject *subject)
{
	struct live *live = live_of(subject);

	live->at = (live->at + NR_STRIDE) % live->nr;
	query(subject->device, live->ids[live->at]);
}

static void print_cost(const struct operation *operation, struct subject *subject)
{
	double cost;

	if (operation->begin)
		operation->begin(subject);
	cost = measure(operation->run, subject);
	if (operation->end)
		operation->end(subject);
	printf(" %14.0f", cost);
	fflush(stdout);
}

void print_live_objects(void)
{
	static const struct operation query_any = { .run = query_next };
	struct live *live = new_memory(sizeof(*live));

	live->subject.device = new_context();
	live->subject.nbytes = PAGE;
	printf("\n%-16s %14s %14s %14s\n%-16s %14s %14s %14s\n", "", "", "view: create,",
	       "view: create,", "ids in a context", "QUERY", "destroy", "alloc., destr.");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		printf("%16u", numbers[i]);
		fflush(stdout);
		add_ids(live, numbers[i]);
		/* The table is still growing. */
		await_idle_kernel();
		print_cost(&query_any, &live->subject);
		print_cost(&on_devbuf.create_view, &live->subject);
		print_cost(&on_devbuf.create_allocated_view, &live->subject);
		printf("\n");
	}
	close(live->subject.device);
	munmap(live, sizeof(*live));
}
