// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Buffers by id, so that an id that comes back gives the same struct.
 *
 * The table holds no references. The last reference of a buffer is released
 * under the table's lock, and with it its place: so what is found under the
 * lock is alive, and can be referenced.
 */
#include <stdlib.h>

#include "internal.h"

#define FIRST_NR_SLOTS 64

int dbuf_registry_init(struct registry *r)
{
	r->slots = calloc(FIRST_NR_SLOTS, sizeof(struct devbuf *));
	if (!r->slots)
		return dbuf_fail(-ENOMEM, "no memory for a table of buffers");
	r->nr_slots = FIRST_NR_SLOTS;
	r->count = 0;
	pthread_mutex_init(&r->lock, NULL);
	return 0;
}

void dbuf_registry_fini(struct registry *r)
{
	pthread_mutex_destroy(&r->lock);
	free(r->slots);
}

/* Ids are counted up, so their low bits are spread well. */
static struct devbuf **slot_of(struct registry *r, uint64_t id)
{
	return &r->slots[id & (r->nr_slots - 1)];
}

static struct devbuf **place_of(struct registry *r, uint64_t id)
{
	struct devbuf **place = slot_of(r, id);

	while (*place && (*place)->id != id)
		place = &(*place)->next;
	return place;
}

/* Without memory for more slots the chains get longer, and nothing fails. */
static void grow(struct registry *r)
{
	size_t old_nr = r->nr_slots;
	struct devbuf **old = r->slots;
	struct devbuf **slots = calloc(old_nr * 2, sizeof(struct devbuf *));

	if (!slots)
		return;
	r->slots = slots;
	r->nr_slots = old_nr * 2;
	for (size_t i = 0; i < old_nr; i++) {
		while (old[i]) {
			struct devbuf *b = old[i];
			struct devbuf **slot = slot_of(r, b->id);

			old[i] = b->next;
			b->next = *slot;
			*slot = b;
		}
	}
	free(old);
}

struct devbuf *dbuf_registry_get(struct registry *r, uint64_t id)
{
	struct devbuf *b;

	pthread_mutex_lock(&r->lock);
	b = *place_of(r, id);
	if (b)
		atomic_fetch_add(&b->refs, 1);
	pthread_mutex_unlock(&r->lock);
	return b;
}

struct devbuf *dbuf_registry_add(struct registry *r, struct devbuf *b)
{
	struct devbuf **place, *first;

	pthread_mutex_lock(&r->lock);
	if (r->count >= r->nr_slots)
		grow(r);
	place = place_of(r, b->id);
	first = *place;
	if (first) {
		atomic_fetch_add(&first->refs, 1);
	} else {
		b->next = NULL;
		*place = b;
		r->count++;
	}
	pthread_mutex_unlock(&r->lock);
	return first ? first : b;
}

bool dbuf_registry_put(struct registry *r, struct devbuf *b)
{
	size_t refs = atomic_load(&b->refs);
	bool last;

	while (refs > 1)
		if (atomic_compare_exchange_weak(&b->refs, &refs, refs - 1))
			return false;

	pthread_mutex_lock(&r->lock);
	last = atomic_fetch_sub(&b->refs, 1) == 1;
	if (last) {
		*place_of(r, b->id) = b->next;
		r->count--;
	}
	pthread_mutex_unlock(&r->lock);
	return last;
}
