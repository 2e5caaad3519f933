// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many copies of all kinds under way at once, by ioctl and by ring, on overlapping ranges of a few
 * buffers and their views; and a model of what each buffer must contain, which applies every copy at
 * the moment when it is queued. Each COPYOUT must bring what the model had then, and the buffers must
 * have what the model has at the end.
 *
 * model [NUMBER [SEED]]: so many copies, drawn with that seed.
 *
 * With the module vgem some copies are held back meanwhile, so that others pile up behind them.
 */
#include "common_uring.h"
#include "common_vgem.h"

#include "kselftest_harness.h"

#define NBYTES       16384u
#define NR_BUFFERS   4
#define NR_VIEWS     4
#define NR_NAMES     (NR_BUFFERS * (1 + NR_VIEWS))
#define MAX_RANGES   3
/* Copies under way. */
#define NR_SLOTS     64
/* The whole of all buffers is compared every so often. */
#define CHECK_PERIOD 2000

static unsigned long nr_copies, seed = 1;

/* A buffer or a view, by whose id a copy names its bytes. */
struct name {
	__u64 id, nbytes;
	/* Of what the view is a part of, in the model. */
	unsigned char *model;
};

enum slot_state { FREE, ON_RING, HAS_FENCE };

/* A copy under way, with all that must stay. */
struct slot {
	enum slot_state state;
	enum kind kind;
	int fence;
	union {
		struct devbuf_copy copy;
		struct devbuf_transfer transfer;
	};
	struct devbuf_copy_range copy_ranges[MAX_RANGES];
	struct devbuf_transfer_range transfer_ranges[MAX_RANGES];
	/* The caller's bytes; for COPYOUT, and what they must become. */
	unsigned char *memory;
	unsigned char expected[MAX_RANGES * NBYTES];
	size_t nbytes;
};

#define SLOT_NBYTES (MAX_RANGES * NBYTES + 64)

struct model {
	int ctx, card;
	struct io_uring ring;
	unsigned long long random;
	unsigned char bytes[NR_BUFFERS][NBYTES];
	struct name names[NR_NAMES];
	struct slot slots[NR_SLOTS];
	unsigned char *memory;
	int nr_wrong;
	/* Opens when so many more copies have been queued. */
	struct gate gate;
	unsigned int gate_countdown;
};

static unsigned int draw(struct model *model, unsigned int below)
{
	model->random = model->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (model->random >> 33) % below;
}

static void complain(struct model *model, const char *what, const struct slot *slot, int ret)
{
	static const char *const kinds[] = { "COPYIN", "COPYOUT", "TRANSFER" };

	model->nr_wrong++;
	fprintf(stderr, "# %s: %s (%d)\n", slot ? kinds[slot->kind] : "all", what, ret);
}

/* --- copies that end -------------------------------------------------------------------------- */

static void end_copy(struct model *model, struct slot *slot, int ret)
{
	slot->state = FREE;
	if (ret)
		complain(model, "failed", slot, ret);
	else if (slot->kind == COPYOUT && memcmp(slot->memory, slot->expected, slot->nbytes))
		complain(model, "brought other bytes", slot, 0);
}

static void open_the_gate(struct model *model)
{
	if (model->gate_countdown)
		open_gate(&model->gate);
	model->gate_countdown = 0;
}

static void reap_one(struct model *model)
{
	struct completion completion = next_completion(&model->ring);
	struct slot *slot = &model->slots[completion.user_data];

	if (completion.res || !(slot->copy.flags & DEVBUF_ASYNC)) {
		end_copy(model, slot, completion.res);
		return;
	}
	/* It is queued. */
	slot->state = HAS_FENCE;
	slot->fence = slot->copy.out_fence;
}

static void await_slot(struct model *model, struct slot *slot)
{
	/* It might wait for the gate. */
	if (slot->state != FREE)
		open_the_gate(model);
	while (slot->state == ON_RING)
		reap_one(model);
	if (slot->state == HAS_FENCE)
		end_copy(model, slot, end_fence(slot->fence));
}

static void await_all(struct model *model)
{
	for (int i = 0; i < NR_SLOTS; i++)
		await_slot(model, &model->slots[i]);
}

/* --- copies that begin ------------------------------------------------------------------------ */

static void draw_bytes(struct model *model, unsigned char *to, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++) {
		if (i % 4 == 0)
			draw(model, 1);
		to[i] = model->random >> (32 + i % 4 * 8);
	}
}

/* Mostly small ones, so that there are many. */
static __u64 draw_length(struct model *model, __u64 most)
{
	static const __u64 mosts[] = { 64, 64, 64, 512, 512, 4096, 4096, NBYTES };
	__u64 limit = mosts[draw(model, ARRAY_SIZE(mosts))];

	return 1 + draw(model, limit < most ? limit : most);
}

static __u64 draw_offset(struct model *model, const struct name *name, __u64 nbytes)
{
	return draw(model, name->nbytes - nbytes + 1);
}

static void draw_copy_range(struct model *model, struct slot *slot, int i)
{
	const struct name *name = &model->names[draw(model, NR_NAMES)];
	const __u64 nbytes = draw_length(model, name->nbytes);
	const __u64 offset = draw_offset(model, name, nbytes);
	unsigned char *memory = slot->memory + slot->nbytes;

	slot->copy_ranges[i] = (struct devbuf_copy_range){
		.id = name->id,
		.offset = offset,
		.user_addr = (uintptr_t)memory,
		.nbytes = nbytes,
	};
	if (slot->kind == COPYIN) {
		draw_bytes(model, memory, nbytes);
		memcpy(name->model + offset, memory, nbytes);
	} else {
		memset(memory, 0xa5, nbytes);
		memcpy(slot->expected + slot->nbytes, name->model + offset, nbytes);
	}
	slot->nbytes += nbytes;
}

static void draw_transfer_range(struct model *model, struct slot *slot, int i)
{
	const struct name *dst = &model->names[draw(model, NR_NAMES)];
	const struct name *src = &model->names[draw(model, NR_NAMES)];
	const __u64 nbytes =
		draw_length(model, dst->nbytes < src->nbytes ? dst->nbytes : src->nbytes);
	struct devbuf_transfer_range *range = &slot->transfer_ranges[i];

	*range = (struct devbuf_transfer_range){
		.dst_id = dst->id,
		.dst_offset = draw_offset(model, dst, nbytes),
		.src_id = src->id,
		.src_offset = draw_offset(model, src, nbytes),
		.nbytes = nbytes,
	};
	memmove(dst->model + range->dst_offset, src->model + range->src_offset, nbytes);
	slot->nbytes += nbytes;
}

/* What it is, and in the model what comes of it. */
static void draw_copy(struct model *model, struct slot *slot)
{
	slot->kind = draw(model, 3);
	slot->nbytes = 0;
	slot->copy = (struct devbuf_copy){
		.size = sizeof(slot->copy),
		.nr_ranges = draw(model, 4) ? 1 : 1 + draw(model, MAX_RANGES),
		.ranges = slot->kind == TRANSFER ? (uintptr_t)slot->transfer_ranges :
						   (uintptr_t)slot->copy_ranges,
	};
	/* At any place within a page. */
	slot->memory = model->memory + (slot - model->slots) * SLOT_NBYTES + draw(model, 64);
	for (__u32 i = 0; i < slot->copy.nr_ranges; i++) {
		if (slot->kind == TRANSFER)
			draw_transfer_range(model, slot, i);
		else
			draw_copy_range(model, slot, i);
	}
}

static void hold_some(struct model *model, struct slot *slot)
{
	if (model->card < 0 || draw(model, 40))
		return;
	if (!model->gate_countdown) {
		model->gate = new_gate(model->card);
		model->gate_countdown = 1 + draw(model, NR_SLOTS);
	}
	slot->copy.in_fences = (uintptr_t)&model->gate.fd;
	slot->copy.nr_in_fences = 1;
}

static void queue_on_ring(struct model *model, struct slot *slot)
{
	static const unsigned long commands[] = { DEVBUF_COPYIN, DEVBUF_COPYOUT, DEVBUF_TRANSFER };
	struct io_uring_sqe *sqe = prepare_command(&model->ring, model->ctx, commands[slot->kind],
						   &slot->copy, slot - model->slots);

	/* The caller's memory is registered, as one buffer. */
	if (slot->kind != TRANSFER && !(slot->copy.flags & DEVBUF_ASYNC) && draw(model, 2)) {
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		sqe->buf_index = 0;
	}
	slot->state = ON_RING;
	submit(&model->ring);
}

static void queue_by_ioctl(struct model *model, struct slot *slot)
{
	static const unsigned long commands[] = { DEVBUF_COPYIN, DEVBUF_COPYOUT, DEVBUF_TRANSFER };
	int ret = do_command(model->ctx, commands[slot->kind], &slot->copy);

	if (ret || !(slot->copy.flags & DEVBUF_ASYNC)) {
		end_copy(model, slot, ret);
		return;
	}
	slot->state = HAS_FENCE;
	slot->fence = slot->copy.out_fence;
}

static void act(struct model *model, unsigned long number)
{
	struct slot *slot = &model->slots[number % NR_SLOTS];

	await_slot(model, slot);
	draw_copy(model, slot);
	switch (draw(model, 16)) {
	case 0:
		/* It will wait for everything that it must come after, and so for the gate. */
		open_the_gate(model);
		queue_by_ioctl(model, slot);
		break;
	case 1 ... 7:
		slot->copy.flags = DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE;
		hold_some(model, slot);
		queue_by_ioctl(model, slot);
		break;
	case 8 ... 9:
		slot->copy.flags = DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE;
		hold_some(model, slot);
		queue_on_ring(model, slot);
		break;
	default:
		hold_some(model, slot);
		queue_on_ring(model, slot);
		break;
	}
	if (model->gate_countdown && !--model->gate_countdown)
		open_gate(&model->gate);
}

static void compare(struct model *model)
{
	static unsigned char bytes[NBYTES];

	await_all(model);
	for (int i = 0; i < NR_BUFFERS; i++) {
		must(do_copyout(model->ctx, model->names[i].id, 0, bytes, NBYTES));
		if (memcmp(bytes, model->bytes[i], NBYTES))
			complain(model, "a buffer has other bytes", NULL, i);
	}
}

/* --- the test --------------------------------------------------------------------------------- */

FIXTURE(model)
{
	struct model *model;
};

/* The last buffer is another device's, where there is one. */
static __u64 new_base(int ctx, int i)
{
	__u64 id;

	if (i == NR_BUFFERS - 1 && !do_create(ctx, "MOCK:1", NBYTES, 0, &id)) {
		must(do_allocate(ctx, id));
		return id;
	}
	return new_allocated(ctx, NBYTES);
}

/* MOCK:1 has views at multiples of 64 only. */
static void new_names(struct model *model)
{
	struct name *view = &model->names[NR_BUFFERS];

	for (int i = 0; i < NR_BUFFERS; i++) {
		__u64 id = new_base(model->ctx, i);

		model->names[i] = (struct name){ id, NBYTES, model->bytes[i] };
		for (int j = 0; j < NR_VIEWS; j++, view++) {
			__u64 offset = draw(model, NBYTES / 64) * 64ULL;
			__u64 nbytes = 1 + draw(model, NBYTES - offset);

			*view = (struct name){
				.id = new_allocated_view(model->ctx, id, offset, nbytes),
				.nbytes = nbytes,
				.model = model->bytes[i] + offset,
			};
		}
	}
}

FIXTURE_SETUP(model)
{
	struct model *model = self->model = calloc(1, sizeof(*model));
	const char *reason = new_command_ring(&model->ring, 0);
	struct iovec vector;

	if (reason)
		SKIP(return, "%s", reason);
	model->random = seed;
	model->card = open_vgem();
	model->ctx = new_context();
	new_names(model);
	vector.iov_len = NR_SLOTS * SLOT_NBYTES;
	vector.iov_base = model->memory = new_memory(vector.iov_len);
	must(io_uring_register_buffers(&model->ring, &vector, 1));
	/* Some exports, so that the order goes by way of them as well. */
	new_export(model->ctx, model->names[0].id, 0);
	new_export(model->ctx, model->names[1].id, DEVBUF_EXPORT_WRITE);
	new_export(model->ctx, model->names[NR_BUFFERS].id, 0);
}

FIXTURE_TEARDOWN(model)
{
	io_uring_queue_exit(&self->model->ring);
	close(self->model->ctx);
	close(self->model->card);
	free(self->model);
}

TEST_F_TIMEOUT(model, agrees_with_the_driver, 560)
{
	struct model *model = self->model;

	for (unsigned long i = 0; i < nr_copies && !model->nr_wrong; i++) {
		act(model, i);
		if (i % CHECK_PERIOD == CHECK_PERIOD - 1)
			compare(model);
	}
	compare(model);
	EXPECT_EQ(0, model->nr_wrong) TH_LOG("seed %lu", seed);
}

int main(int argc, char **argv)
{
	/* The debugging kernel is many times slower. */
	nr_copies = access("/sys/kernel/debug/kmemleak", F_OK) ? 100000 : 5000;
	if (argc > 1 && argv[1][0] != '-') {
		nr_copies = strtoul(argv[1], NULL, 0);
		if (argc > 2)
			seed = strtoul(argv[2], NULL, 0);
		argc = 1;
	}
	printf("# %lu copies, seed %lu\n", nr_copies, seed);
	return test_harness_run(argc, argv);
}
