// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * queue: send blocks through two device buffers without waiting for each copy.
 *
 * Each block is copied in, from buffer to buffer, and out again. The three copies touch the same
 * bytes, so they take effect in the order in which they were submitted; blocks do not wait for each
 * other. With the driver the copies run while the program does something else (here: it makes the
 * next block). Without it the same program runs on plain memory.
 */
#include <devbuf.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK  ((size_t)64 << 10)
#define BLOCKS 16 /* in the buffers, side by side */
#define TOTAL  256

/* The caller's side of a block: both must stay until the copies have completed. */
static unsigned char in[BLOCKS][BLOCK], out[BLOCKS][BLOCK];

static void check(int ret, const char *what)
{
	if (ret)
		errx(EXIT_FAILURE, "%s: %s", what, devbuf_last_error());
}

/* Operations of a block that have not completed. */
static unsigned int left[BLOCKS];

/* Three operations, whose cookie says which block they are of. */
static void send_block(struct devbuf_queue *queue, struct devbuf *a, struct devbuf *b,
		       unsigned int slot)
{
	size_t at = slot * BLOCK;

	check(devbuf_queue_copyin(queue, a, at, in[slot], BLOCK, slot), "copyin");
	check(devbuf_queue_transfer(queue, b, at, a, at, BLOCK, 0, slot), "transfer");
	check(devbuf_queue_copyout(queue, b, at, out[slot], BLOCK, slot), "copyout");
	check(devbuf_queue_submit(queue), "submit");
	left[slot] = 3;
}

/* Wait for a block that is through, and return its slot. */
static unsigned int receive_block(struct devbuf_queue *queue)
{
	struct devbuf_completion done;
	size_t nr;

	do {
		check(devbuf_queue_wait(queue, 1, DEVBUF_FOREVER, &done, 1, &nr), "wait");
		if (done.result)
			errx(EXIT_FAILURE, "a copy failed: %s", strerror(-done.result));
	} while (--left[done.cookie]); /* in whichever order */
	return (unsigned int)done.cookie;
}

int main(void)
{
	struct devbuf_allocator *allocator;
	struct devbuf_queue *queue;
	unsigned int sent, slot;
	struct devbuf *a, *b;

	if (devbuf_driver_open(NULL, &allocator)) {
		printf("%s: using plain memory.\n", devbuf_last_error());
		check(devbuf_host_allocator(&allocator), "host allocator");
	}
	check(devbuf_create(allocator, "SYSTEM", BLOCKS * BLOCK, DEVBUF_UINT8, NULL, &a), "create");
	check(devbuf_create(allocator, "SYSTEM", BLOCKS * BLOCK, DEVBUF_UINT8, NULL, &b), "create");
	check(devbuf_allocate(a), "allocate");
	check(devbuf_queue_create(allocator, 3 * BLOCKS, &queue), "queue");

	for (sent = 0; sent < TOTAL; sent++) {
		/* The first ones take the slots in turn, later ones that of a block that is through. */
		slot = sent < BLOCKS ? sent : receive_block(queue);
		if (sent >= BLOCKS && memcmp(in[slot], out[slot], BLOCK))
			errx(EXIT_FAILURE, "a block came out changed");
		memset(in[slot], (int)sent, BLOCK);
		send_block(queue, a, b, slot);
	}
	for (sent = 0; sent < BLOCKS; sent++)
		receive_block(queue);
	printf("%d blocks of %zu bytes went through, %s.\n", TOTAL, BLOCK,
	       devbuf_queue_is_async(queue) ? "by io_uring" : "in order");

	devbuf_queue_destroy(queue);
	devbuf_unref(b);
	devbuf_unref(a);
	devbuf_allocator_unref(allocator);
	return EXIT_SUCCESS;
}
