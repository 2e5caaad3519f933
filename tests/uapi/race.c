// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two threads do two things to one buffer at the same moment, many times over. Each variant says
 * how either may end; whatever the order was, the bytes that somebody gets to see are right.
 */
#include "common.h"

#include "kselftest_harness.h"

#define ROUNDS 80
#define NBYTES (2 * 4096u)

/* What a round begins with: an allocated buffer, full of the pattern 1, of a context of its own. */
struct round {
	int ctx, other;
	__u64 id;
	/* There only if the variant wants the memory to be held. */
	int dma_buf;
	unsigned char *map;
	/* Made by one of the two threads each. */
	int fds[2];
	/* A byte that must not have been seen was seen. */
	bool bad_bytes;
};

typedef int (*racer)(struct round *round, int side);

/* --- things to do ----------------------------------------------------------------------------- */

static int destroy(struct round *round, int side)
{
	(void)side;
	return do_destroy(round->ctx, round->id);
}

static int deallocate(struct round *round, int side)
{
	(void)side;
	return do_deallocate(round->ctx, round->id);
}

static int allocate(struct round *round, int side)
{
	(void)side;
	return do_allocate(round->ctx, round->id);
}

static int close_context(struct round *round, int side)
{
	(void)side;
	return close(round->ctx) ? -errno : 0;
}

static int close_dma_buf(struct round *round, int side)
{
	(void)side;
	return close(round->dma_buf) ? -errno : 0;
}

static void look_at(struct round *round, const unsigned char *bytes)
{
	if (!filled(bytes, NBYTES, 1))
		round->bad_bytes = true;
}

static int copyout(struct round *round, int side)
{
	unsigned char bytes[NBYTES];
	int ret = do_copyout(round->ctx, round->id, 0, bytes, NBYTES);

	(void)side;
	if (!ret)
		look_at(round, bytes);
	return ret;
}

static int copyin(struct round *round, int side)
{
	unsigned char bytes[NBYTES];

	(void)side;
	fill(bytes, NBYTES, 1);
	return do_copyin(round->ctx, round->id, 0, bytes, NBYTES);
}

static int map_and_look(struct round *round, int side)
{
	void *map;
	int ret = do_map(round->ctx, round->id, NBYTES, PROT_READ, &map);

	(void)side;
	if (ret)
		return ret;
	look_at(round, map);
	must_libc(munmap(map, NBYTES));
	return 0;
}

/* Looks at a mapping that was made before, whose pages it makes fault once more. */
static int look_at_mapping(struct round *round, int side)
{
	(void)side;
	must_libc(madvise(round->map, NBYTES, MADV_DONTNEED));
	look_at(round, round->map);
	return 0;
}

static int unmap(struct round *round, int side)
{
	(void)side;
	must_libc(munmap(round->map, NBYTES));
	round->map = NULL;
	return 0;
}

static int export(struct round *round, int side)
{
	int fd = do_export(round->ctx, round->id, DEVBUF_EXPORT_WRITE);
	void *map;

	if (fd < 0)
		return fd;
	round->fds[side] = fd;
	map = mmap(NULL, NBYTES, PROT_READ, MAP_SHARED, fd, 0);
	must_libc(map == MAP_FAILED ? -1 : 0);
	look_at(round, map);
	must_libc(munmap(map, NBYTES));
	return 0;
}

static int import(struct round *round, int side)
{
	__u64 id;

	(void)side;
	return do_import(round->other, round->dma_buf, &id);
}

static int destroy_import(struct round *round, int side)
{
	(void)side;
	return do_destroy(round->other, round->id);
}

static int view(struct round *round, int side)
{
	__u64 view;
	int ret = do_view(round->ctx, round->id, 1, 10, &view);

	(void)side;
	return ret ?: do_destroy(round->ctx, view);
}

static int allocate_view(struct round *round, int side)
{
	__u64 view;

	(void)side;
	must(do_view(round->ctx, round->id, 1, 10, &view));
	must(do_allocate(round->ctx, view));
	return do_destroy(round->ctx, view);
}

/* Of a buffer that is alike; it may get the memory that the other thread gives up, or new one. */
static int allocate_another(struct round *round, int side)
{
	unsigned char bytes[NBYTES];
	__u64 id;
	int ret;

	(void)side;
	must(do_create(round->ctx, SYSTEM_DEVICE, NBYTES, DEVBUF_CREATE_REUSE, &id));
	ret = must(do_allocate_flags(round->ctx, id, 0));
	must(do_copyout(round->ctx, id, 0, bytes, NBYTES));
	if (ret & DEVBUF_ALLOCATED_REUSED)
		look_at(round, bytes);
	else if (!all_zero(bytes, NBYTES))
		round->bad_bytes = true;
	return do_destroy(round->ctx, id);
}

static int rename_buffer(struct round *round, int side)
{
	return do_set_name(round->ctx, round->id, side ? "a name that is long" : "short");
}

static int query_name(struct round *round, int side)
{
	struct devbuf_query query;
	int ret = do_query(round->ctx, round->id, &query);
	const char *name = (char *)query.out_name;

	(void)side;
	if (!ret && strcmp(name, "") && strcmp(name, "short"))
		round->bad_bytes = true;
	return ret;
}

static int sync_range(struct round *round, int side)
{
	(void)side;
	return do_sync(round->ctx, round->id, 0, NBYTES, DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE);
}

static int transfer(struct round *round, int side)
{
	return do_transfer(round->ctx, round->id, side, round->id, !side, NBYTES - 1);
}

/* --- pairs ------------------------------------------------------------------------------------ */

FIXTURE(pair)
{
	struct round round;
	pthread_barrier_t barrier;
	racer right;
	int right_result;
	pthread_t thread;
};

FIXTURE_VARIANT(pair)
{
	racer left, right;
	/* How they may end, beside 0. */
	int left_error, right_error;
	/* Only one of them may have success. */
	bool one_wins;
	/* The round begins with a buffer without memory. */
	bool deallocated;
	/* The round begins with a dma-buf and a mapping of the memory. */
	bool held;
	/* Both write, so what is seen afterwards is not the pattern. */
	bool any_bytes;
};

FIXTURE_VARIANT_ADD(pair, destroy_destroy){
	destroy, destroy, -ENOENT, -ENOENT, .one_wins = true,
};
FIXTURE_VARIANT_ADD(pair, allocate_allocate){
	allocate, allocate, -EALREADY, -EALREADY, .one_wins = true, .deallocated = true,
};
FIXTURE_VARIANT_ADD(pair, deallocate_deallocate){ deallocate, deallocate };
FIXTURE_VARIANT_ADD(pair, deallocate_copyin){ deallocate, copyin, 0, -ENODATA };
FIXTURE_VARIANT_ADD(pair, deallocate_copyout){ deallocate, copyout, 0, -ENODATA };
FIXTURE_VARIANT_ADD(pair, deallocate_map){ deallocate, map_and_look, 0, -ENODATA };
FIXTURE_VARIANT_ADD(pair, deallocate_export){ deallocate, export, 0, -ENODATA };
FIXTURE_VARIANT_ADD(pair, deallocate_import){ deallocate, import, .held = true };
FIXTURE_VARIANT_ADD(pair, deallocate_sync){ deallocate, sync_range, 0, -ENODATA };
FIXTURE_VARIANT_ADD(pair, deallocate_allocate_view){ deallocate, allocate_view, -EBUSY };
FIXTURE_VARIANT_ADD(pair, deallocate_allocate_another){ deallocate, allocate_another };
FIXTURE_VARIANT_ADD(pair, deallocate_unmap){ deallocate, unmap, .held = true };
FIXTURE_VARIANT_ADD(pair, deallocate_look_at_mapping){ deallocate, look_at_mapping, .held = true };
FIXTURE_VARIANT_ADD(pair, deallocate_close_dma_buf){ deallocate, close_dma_buf, .held = true };
FIXTURE_VARIANT_ADD(pair, destroy_copyout){ destroy, copyout, 0, -ENOENT };
FIXTURE_VARIANT_ADD(pair, destroy_map){ destroy, map_and_look, 0, -ENOENT };
FIXTURE_VARIANT_ADD(pair, destroy_export){ destroy, export, 0, -ENOENT };
FIXTURE_VARIANT_ADD(pair, destroy_import){ destroy, import, .held = true };
FIXTURE_VARIANT_ADD(pair, destroy_view){ destroy, view, 0, -ENOENT };
FIXTURE_VARIANT_ADD(pair, destroy_query){ destroy, query_name, 0, -ENOENT };
FIXTURE_VARIANT_ADD(pair, destroy_allocate_another){ destroy, allocate_another };
FIXTURE_VARIANT_ADD(pair, close_copyout){ close_context, copyout, 0, -EBADF };
FIXTURE_VARIANT_ADD(pair, close_map){ close_context, map_and_look, 0, -EBADF };
FIXTURE_VARIANT_ADD(pair, close_export){ close_context, export, 0, -EBADF };
FIXTURE_VARIANT_ADD(pair, close_import){ close_context, import, .held = true };
FIXTURE_VARIANT_ADD(pair, close_unmap){ close_context, unmap, .held = true };
FIXTURE_VARIANT_ADD(pair, close_look_at_mapping){ close_context, look_at_mapping, .held = true };
FIXTURE_VARIANT_ADD(pair, close_dma_buf_import){ close_dma_buf, import, 0, -EBADF, .held = true };
FIXTURE_VARIANT_ADD(pair, close_dma_buf_export){ close_dma_buf, export, .held = true };
FIXTURE_VARIANT_ADD(pair, export_export){ export, export };
FIXTURE_VARIANT_ADD(pair, export_map){ export, map_and_look };
FIXTURE_VARIANT_ADD(pair, import_import){ import, import, .held = true };
FIXTURE_VARIANT_ADD(pair, import_destroy_import){ import, destroy_import, 0, -ENOENT,
						  .held = true };
FIXTURE_VARIANT_ADD(pair, map_map){ map_and_look, map_and_look };
FIXTURE_VARIANT_ADD(pair, map_unmap){ map_and_look, unmap, .held = true };
FIXTURE_VARIANT_ADD(pair, copyin_copyin){ copyin, copyin };
FIXTURE_VARIANT_ADD(pair, transfer_transfer){ transfer, transfer, .any_bytes = true };
FIXTURE_VARIANT_ADD(pair, rename_rename){ rename_buffer, rename_buffer };
FIXTURE_VARIANT_ADD(pair, rename_query){ rename_buffer, query_name };

static void *run_right(void *argument)
{
	FIXTURE_DATA(pair) *self = argument;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&self->barrier);
		/* Not always at the very same moment. */
		for (volatile int delay = i * 37 % 256; delay > 0; delay--)
			;
		self->right_result = self->right(&self->round, 1);
		pthread_barrier_wait(&self->barrier);
	}
	return NULL;
}

FIXTURE_SETUP(pair)
{
	self->round.other = new_context();
	self->right = variant->right;
	must(-pthread_barrier_init(&self->barrier, NULL, 2));
	must(-pthread_create(&self->thread, NULL, run_right, self));
}

FIXTURE_TEARDOWN(pair)
{
	close(self->round.other);
}

static void begin_round(struct round *round, bool deallocated, bool held)
{
	round->ctx = new_context();
	round->id = new_allocated_flags(round->ctx, NBYTES, DEVBUF_CREATE_REUSE);
	buffer_fill(round->ctx, round->id, NBYTES, 1);
	round->dma_buf = held ? new_export(round->ctx, round->id, DEVBUF_EXPORT_WRITE) : -1;
	round->map = held ? new_mapping(round->ctx, round->id, NBYTES, PROT_READ) : NULL;
	round->fds[0] = round->fds[1] = -1;
	if (deallocated)
		must(do_deallocate(round->ctx, round->id));
}

static void end_round(struct round *round)
{
	while (!do_destroy(round->other, round->id))
		;
	if (round->map)
		munmap(round->map, NBYTES);
	close(round->fds[0]);
	close(round->fds[1]);
	close(round->dma_buf);
	close(round->ctx);
}

TEST_F_TIMEOUT(pair, ends_as_it_may, 120)
{
	struct round *round = &self->round;

	for (int i = 0; i < ROUNDS; i++) {
		int left, right;

		begin_round(round, variant->deallocated, variant->held);
		pthread_barrier_wait(&self->barrier);
		for (volatile int delay = i * 101 % 256; delay > 0; delay--)
			;
		left = variant->left(round, 0);
		pthread_barrier_wait(&self->barrier);
		right = self->right_result;
		if (left) {
			EXPECT_EQ(variant->left_error, left);
		}
		if (right) {
			EXPECT_EQ(variant->right_error, right);
		}
		if (variant->one_wins) {
			EXPECT_EQ(1, !left + !right);
		}
		if (round->fds[0] >= 0 && round->fds[1] >= 0) {
			EXPECT_EQ(inode_of(round->fds[0]), inode_of(round->fds[1]));
		}
		end_round(round);
	}
	pthread_join(self->thread, NULL);
	EXPECT_TRUE(variant->any_bytes || !round->bad_bytes);
	EXPECT_EQ(0, fdinfo(round->other, "devbuf-handles"));
}

TEST_HARNESS_MAIN
