/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: queues. Part of contract.c. */

#include <poll.h>
#include <time.h>

/* --- queues ----------------------------------------------------------------------------------- */

static struct devbuf_queue *new_queue(struct devbuf_allocator *a, unsigned int depth)
{
	struct devbuf_queue *q = NULL;

	if (devbuf_queue_create(a, depth, &q))
		fprintf(stderr, "# devbuf_queue_create: %s\n", devbuf_last_error());
	return q;
}

/* Wait for all of @n completions; the sum of their cookies, or the negative errno of one. */
static int64_t take(struct devbuf_queue *q, size_t n)
{
	struct devbuf_completion done[64];
	int64_t sum = 0;
	size_t nr = 0;
	int rc;

	rc = devbuf_queue_wait(q, n, DEVBUF_FOREVER, done, ARRAY_SIZE(done), &nr);
	if (rc)
		return rc;
	for (size_t i = 0; i < nr; i++) {
		if (done[i].result)
			return done[i].result;
		sum += (int64_t)done[i].cookie;
	}
	return nr == n ? sum : -EDOM;
}

TEST_F(contract, queue_create)
{
	struct devbuf_queue *q = (void *)1;

	EXPECT_EQ(-EINVAL, devbuf_queue_create(self->a, 0, &q));
	EXPECT_EQ(-EINVAL, devbuf_queue_create(self->a, DEVBUF_QUEUE_DEPTH_MAX + 1, &q));
	EXPECT_SAID("4097");
	EXPECT_EQ(-EINVAL, devbuf_queue_create(self->a, 1, NULL));
	EXPECT_EQ(-EINVAL, devbuf_queue_create(NULL, 1, &q));
	EXPECT_EQ((void *)1, q);
	ASSERT_OK(devbuf_queue_create(self->a, DEVBUF_QUEUE_DEPTH_MAX, &q));
	EXPECT_EQ(variant->driver, devbuf_queue_is_async(q));
	EXPECT_OK(devbuf_queue_submit(q)); /* of nothing */
	devbuf_queue_destroy(q);
	devbuf_queue_destroy(NULL);
	EXPECT_FALSE(devbuf_queue_is_async(NULL));
}

TEST_F(contract, queue_copies)
{
	size_t nbytes = 5 * self->page + 77;
	struct devbuf *a = new_bytes(self->a, nbytes), *b = new_bytes(self->a, nbytes);
	struct devbuf_queue *q = new_queue(self->a, 4);
	char *bytes = malloc(nbytes), *got = calloc(1, nbytes);
	struct devbuf_completion done[4] = { { 0 } };
	size_t nr = 9;

	fill_pattern(bytes, nbytes, 5);
	ASSERT_OK(devbuf_allocate(a));
	ASSERT_OK(devbuf_queue_copyin(q, a, 0, bytes, nbytes, 1));
	ASSERT_OK(devbuf_queue_transfer(q, b, 0, a, 0, nbytes, DEVBUF_NO_BOUNCE, 10));
	EXPECT_TRUE(devbuf_is_initialized(b)); /* from now on */
	ASSERT_OK(devbuf_queue_copyout(q, b, 1, got + 1, nbytes - 1, ~0ULL));
	ASSERT_OK(devbuf_queue_copyout(q, b, 0, got, 1, 0));
	EXPECT_FALSE(is_pattern(got, nbytes, 5)); /* not submitted yet */
	ASSERT_OK(devbuf_queue_submit(q));
	ASSERT_OK(devbuf_queue_wait(q, 4, DEVBUF_FOREVER, done, 4, &nr));
	EXPECT_EQ(4, nr);
	EXPECT_TRUE(is_pattern(got, nbytes, 5));
	for (int i = 0; i < 4; i++) {
		uint64_t length = done[i].cookie == 0     ? 1 :
				  done[i].cookie == ~0ULL ? nbytes - 1 :
							    nbytes;

		EXPECT_EQ(0, done[i].result);
		EXPECT_EQ(length, done[i].done_nbytes);
		if (done[i].cookie == 10)
			EXPECT_NE(DEVBUF_VIA_NONE, done[i].path);
		for (int j = 0; j < i; j++)
			EXPECT_NE(done[i].cookie, done[j].cookie);
	}
	free(got);
	free(bytes);
	devbuf_queue_destroy(q);
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(contract, queue_is_full)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	struct devbuf_queue *q = new_queue(self->a, 2);
	struct devbuf_completion done;
	char bytes[100];
	size_t nr;

	for (int i = 0; i < 3; i++) { /* twice the places, then again */
		ASSERT_OK(devbuf_queue_copyout(q, b, 0, bytes, 100, 1));
		ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 2));
		EXPECT_EQ(-EAGAIN, devbuf_queue_copyin(q, b, 0, "x", 1, 3));
		EXPECT_SAID("all 2 places");
		EXPECT_EQ(-EAGAIN, devbuf_queue_copyout(q, b, 0, bytes, 1, 3));
		EXPECT_EQ(-EAGAIN, devbuf_queue_transfer(q, b, 0, b, 0, 1, 0, 3));
		EXPECT_OK(devbuf_queue_submit(q));
		EXPECT_EQ(-EAGAIN, devbuf_queue_copyin(q, b, 0, "x", 1, 3)); /* not taken yet */
		ASSERT_OK(devbuf_queue_wait(q, 1, DEVBUF_FOREVER, &done, 1, &nr));
		EXPECT_EQ(1, nr);
		ASSERT_OK(devbuf_queue_copyin(q, b, 1, "y", 1, done.cookie));
		EXPECT_EQ(3, take(q, 2));
	}
	devbuf_queue_destroy(q);
	devbuf_unref(b);
}

TEST_F(contract, queue_arguments)
{
	struct devbuf *b = new_filled(self->a, 100, 1), *c = new_bytes(self->a, 100), *foreign;
	struct devbuf_transfer_piece piece = { c, 0, b, 0, 100 };
	struct devbuf_queue *q = new_queue(self->a, 2);
	struct devbuf_allocator *other;
	char bytes[101] = "";

	ASSERT_OK(open_allocator(variant->driver, false, &other));
	foreign = new_bytes(other, 100);
	EXPECT_EQ(-EINVAL, devbuf_queue_copyin(NULL, b, 0, bytes, 100, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_copyin(q, NULL, 0, bytes, 100, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_copyin(q, b, 0, NULL, 100, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_copyin(q, b, 0, bytes, 101, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_copyin(q, b, 0, bytes, 0, 0));
	EXPECT_EQ(-EOVERFLOW, devbuf_queue_copyin(q, b, SIZE_MAX, bytes, 2, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_copyin(q, foreign, 0, bytes, 100, 0));
	EXPECT_SAID("not of the queue's allocator");
	EXPECT_EQ(-EINVAL, devbuf_queue_copyout(NULL, b, 0, bytes, 100, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_copyout(q, NULL, 0, bytes, 100, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_copyout(q, b, 0, NULL, 100, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_copyout(q, b, 1, bytes, 100, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_copyout(q, foreign, 0, bytes, 100, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer(NULL, c, 0, b, 0, 100, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer(q, NULL, 0, b, 0, 100, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer(q, c, 0, NULL, 0, 100, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer(q, c, 0, b, 1, 100, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer(q, c, 0, b, 0, 100, 1U << 9, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer(q, foreign, 0, b, 0, 100, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer(q, b, 0, foreign, 0, 100, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer_many(NULL, &piece, 1, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer_many(q, NULL, 1, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer_many(q, &piece, 0, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer_many(q, &piece, 1025, 0, 0));
	EXPECT_SAID("1025");
	piece.nbytes = 101;
	EXPECT_EQ(-EINVAL, devbuf_queue_transfer_many(q, &piece, 1, 0, 0));
	EXPECT_EQ(-EINVAL, devbuf_queue_submit(NULL));
	EXPECT_EQ(-EINVAL, devbuf_queue_fd(NULL));
	EXPECT_FALSE(devbuf_is_allocated(c));
	EXPECT_TRUE(holds_pattern(b, 1));
	devbuf_unref(foreign);
	devbuf_allocator_unref(other);

	/* No place was lost. */
	EXPECT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 1));
	EXPECT_OK(devbuf_queue_copyin(q, b, 1, "x", 1, 2));
	EXPECT_EQ(3, take(q, 2));
	devbuf_queue_destroy(q);
	devbuf_unref(c);
	devbuf_unref(b);
}

TEST_F(contract, queue_wait_arguments)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	struct devbuf_queue *q = new_queue(self->a, 2);
	struct devbuf_completion done[2];
	size_t nr = 9;

	EXPECT_OK(devbuf_queue_wait(q, 0, DEVBUF_FOREVER, done, 2, &nr));
	EXPECT_EQ(0, nr);
	nr = 9;
	EXPECT_EQ(-EINVAL, devbuf_queue_wait(q, 1, DEVBUF_FOREVER, done, 2, &nr));
	EXPECT_SAID("never come");
	ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 1));
	EXPECT_EQ(-EINVAL, devbuf_queue_wait(q, 2, DEVBUF_FOREVER, done, 2, &nr));
	EXPECT_EQ(-EINVAL, devbuf_queue_wait(q, 1, DEVBUF_FOREVER, done, 0, &nr));
	EXPECT_EQ(-EINVAL, devbuf_queue_wait(q, 1, DEVBUF_FOREVER, NULL, 2, &nr));
	EXPECT_EQ(-EINVAL, devbuf_queue_wait(q, 1, DEVBUF_FOREVER, done, 2, NULL));
	EXPECT_EQ(-EINVAL, devbuf_queue_wait(NULL, 1, DEVBUF_FOREVER, done, 2, &nr));
	ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 1));
	EXPECT_EQ(-EINVAL, devbuf_queue_wait(q, 2, DEVBUF_FOREVER, done, 1, &nr));
	EXPECT_EQ(9, nr);
	EXPECT_OK(devbuf_queue_wait(q, 2, DEVBUF_FOREVER, done, 2, &nr));
	EXPECT_EQ(2, nr);
	devbuf_queue_destroy(q);
	devbuf_unref(b);
}

TEST_F(contract, queue_wait_with_a_deadline)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	struct devbuf_queue *q = new_queue(self->a, 2);
	struct devbuf_completion done;
	struct timespec now;
	size_t nr = 9;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 1));
	EXPECT_OK(devbuf_queue_wait(q, 1, ((uint64_t)now.tv_sec + 60) * 1000000000, &done, 1, &nr));
	EXPECT_EQ(1, nr);
	EXPECT_EQ(1, done.cookie);
	devbuf_queue_destroy(q);
	devbuf_unref(b);
}

/* What is wrong with the state of buffers is told by the completion. */
TEST_F(contract, queue_results)
{
	struct devbuf *b = new_bytes(self->a, 100), *c = new_bytes(self->a, 100);
	struct devbuf_queue *q = new_queue(self->a, 4);
	struct devbuf_completion done[4];
	char bytes[100];
	size_t nr;

	ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 1));
	ASSERT_OK(devbuf_queue_copyout(q, b, 0, bytes, 1, 2));
	ASSERT_OK(devbuf_queue_wait(q, 2, DEVBUF_FOREVER, done, 4, &nr));
	ASSERT_EQ(2, nr);
	for (size_t i = 0; i < 2; i++) {
		EXPECT_EQ(-ENODATA, done[i].result);
		EXPECT_EQ(0, done[i].done_nbytes);
		EXPECT_EQ(DEVBUF_VIA_NONE, done[i].path);
	}
	ASSERT_OK(devbuf_queue_transfer(q, c, 0, b, 0, 100, DEVBUF_NO_CPU, 3));
	ASSERT_OK(devbuf_queue_wait(q, 1, DEVBUF_FOREVER, done, 4, &nr));
	EXPECT_EQ(-EOPNOTSUPP, done[0].result);
	EXPECT_EQ(3, done[0].cookie);
	/* One failure is the others' no more than it is of the queue. */
	ASSERT_OK(devbuf_queue_transfer(q, c, 0, b, 0, 100, DEVBUF_NO_CPU, 3));
	ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 4));
	ASSERT_OK(devbuf_queue_wait(q, 2, DEVBUF_FOREVER, done, 4, &nr));
	EXPECT_EQ(-EOPNOTSUPP, done[0].cookie == 3 ? done[0].result : done[1].result);
	EXPECT_EQ(0, done[0].cookie == 3 ? done[1].result : done[0].result);
	devbuf_queue_destroy(q);
	devbuf_unref(c);
	devbuf_unref(b);
}

TEST_F(contract, queue_holds_buffers)
{
	struct devbuf *b = new_filled(self->a, self->page, 7), *v = new_view(b, 10, 100);
	struct devbuf *c = new_bytes(self->a, 100);
	uint64_t id = devbuf_id(c);
	struct devbuf_queue *q = new_queue(self->a, 4);
	struct devbuf_transfer_piece piece = { c, 0, v, 0, 100 };
	char bytes[100], same[100];
	struct devbuf *found;

	ASSERT_OK(devbuf_copyout_at(b, 10, same, 100));
	ASSERT_OK(devbuf_queue_transfer_many(q, &piece, 1, 0, 1));
	ASSERT_OK(devbuf_queue_copyout(q, c, 0, bytes, 100, 2));
	memset(&piece, 0xff, sizeof(piece)); /* the caller's again */
	devbuf_unref(v);
	devbuf_unref(b);
	devbuf_unref(c);
	EXPECT_EQ(3, take(q, 2));
	EXPECT_EQ(0, memcmp(bytes, same, 100));
	EXPECT_EQ(-ENOENT, devbuf_open_id(self->a, id, &found)); /* gone with the completions */
	devbuf_queue_destroy(q);
}

TEST_F(contract, queue_transfer_many)
{
	struct devbuf *a = new_filled(self->a, 2048, 3), *b = new_bytes(self->a, 2048);
	struct devbuf_transfer_piece pieces[1024];
	struct devbuf_queue *q = new_queue(self->a, 1);
	struct devbuf_completion done;
	size_t nr;

	for (size_t i = 0; i < 1024; i++)
		pieces[i] = (struct devbuf_transfer_piece){ b, 2 * i, a, 2 * i, 2 };
	ASSERT_OK(devbuf_queue_transfer_many(q, pieces, 1024, 0, 1));
	EXPECT_EQ(-EAGAIN, devbuf_queue_transfer_many(q, pieces, 1, 0, 1));
	ASSERT_OK(devbuf_queue_wait(q, 1, DEVBUF_FOREVER, &done, 1, &nr));
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(2048, done.done_nbytes);
	EXPECT_NE(DEVBUF_VIA_NONE, done.path);
	EXPECT_TRUE(holds_pattern(b, 3));
	devbuf_queue_destroy(q);
	devbuf_unref(b);
	devbuf_unref(a);
}

TEST_F(contract, queue_cancel)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	struct devbuf_queue *q = new_queue(self->a, 8);
	struct devbuf_completion done[8];
	size_t count = 9, nr;

	EXPECT_EQ(-ENOENT, devbuf_queue_cancel(q, 0, &count)); /* free places are not it */
	EXPECT_EQ(-EINVAL, devbuf_queue_cancel(NULL, 0, &count));
	ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 5));
	ASSERT_OK(devbuf_queue_copyin(q, b, 1, "y", 1, 6));
	ASSERT_OK(devbuf_queue_copyin(q, b, 2, "z", 1, 5));
	EXPECT_EQ(-ENOENT, devbuf_queue_cancel(q, 7, &count));
	EXPECT_SAID("7");
	EXPECT_EQ(9, count);
	ASSERT_OK(devbuf_queue_cancel(q, 5, &count));
	EXPECT_EQ(2, count);
	EXPECT_EQ(-ENOENT, devbuf_queue_cancel(q, 5, NULL)); /* they are already */
	ASSERT_OK(devbuf_queue_wait(q, 3, DEVBUF_FOREVER, done, 8, &nr));
	for (size_t i = 0; i < 3; i++) {
		EXPECT_EQ(done[i].cookie == 5 ? -ECANCELED : 0, done[i].result);
		EXPECT_EQ(done[i].cookie == 5 ? 0 : 1, done[i].done_nbytes);
	}
	EXPECT_EQ(-ENOENT, devbuf_queue_cancel(q, 6, NULL)); /* it is over, and taken */
	ASSERT_OK(devbuf_queue_copyin(q, b, 1, "\x0f", 1, 6));
	EXPECT_EQ(6, take(q, 1));
	devbuf_queue_destroy(q);
	devbuf_unref(b);
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	return n == 1 && p.revents == POLLIN;
}

TEST_F(contract, queue_fd)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	struct devbuf_queue *q = new_queue(self->a, 4);
	struct devbuf_completion done[4];
	size_t nr;
	int fd = devbuf_queue_fd(q);

	ASSERT_LE(0, fd);
	EXPECT_NE(0, fcntl(fd, F_GETFD) & FD_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		EXPECT_FALSE(is_readable(fd, 0));
		ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 1));
		ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 2));
		ASSERT_OK(devbuf_queue_cancel(q, 2, NULL));
		EXPECT_FALSE(is_readable(fd, 0));
		ASSERT_OK(devbuf_queue_submit(q));
		EXPECT_TRUE(is_readable(fd, 10000));
		ASSERT_OK(devbuf_queue_wait(q, 1, DEVBUF_FOREVER, done, 1, &nr));
		EXPECT_TRUE(is_readable(fd, 10000)); /* there is another one */
		ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 3));
		ASSERT_OK(devbuf_queue_submit(q));
		ASSERT_OK(devbuf_queue_wait(q, 2, DEVBUF_FOREVER, done, 4, &nr));
		EXPECT_EQ(2, nr);
	}
	EXPECT_FALSE(is_readable(fd, 0));
	devbuf_queue_destroy(q);
	devbuf_unref(b);
}

/* What was submitted may or may not have been done; what was not, was not. Nothing leaks. */
TEST_F(contract, queue_destroy_with_operations)
{
	struct devbuf *b = new_filled(self->a, 4 * MIB, 1), *c = new_filled(self->a, 100, 2);
	struct devbuf_transfer_piece piece = { b, 2 * MIB, b, 0, 2 * MIB };
	struct devbuf_queue *q = new_queue(self->a, 8);
	char *bytes = malloc(4 * MIB);

	fill_pattern(bytes, 4 * MIB, 3);
	for (int i = 0; i < 4; i++)
		ASSERT_OK(devbuf_queue_copyin(q, b, 0, bytes, 4 * MIB, 1));
	ASSERT_OK(devbuf_queue_submit(q));
	ASSERT_OK(devbuf_queue_copyin(q, c, 0, "x", 1, 1));
	ASSERT_OK(devbuf_queue_cancel(q, 1, NULL));
	ASSERT_OK(devbuf_queue_copyin(q, c, 0, "x", 1, 1));
	ASSERT_OK(devbuf_queue_transfer_many(q, &piece, 1, 0, 1));
	devbuf_queue_destroy(q);
	memset(bytes, 0xff, 4 * MIB); /* nobody reads it any more */
	EXPECT_TRUE(holds_pattern(c, 2));
	free(bytes);
	devbuf_unref(c);
	devbuf_unref(b);
}

TEST_F(contract, queue_holds_its_allocator)
{
	struct devbuf_allocator *a;
	struct devbuf_queue *q;
	struct devbuf *b;

	ASSERT_OK(open_allocator(variant->driver, variant->lru, &a));
	q = new_queue(a, 1);
	b = new_filled(a, 100, 1);
	devbuf_allocator_unref(a);
	ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 1));
	devbuf_unref(b);
	EXPECT_EQ(1, take(q, 1));
	devbuf_queue_destroy(q);
}

/* Random operations on a few bytes, and the same in plain memory, one after the other. */
TEST_F(contract, queue_order)
{
	enum { NBYTES = 256, ROUNDS = 40, DEPTH = 64 };
	struct devbuf *b = new_bytes(self->a, NBYTES), *v = new_view(b, 64, 128);
	struct devbuf_queue *q = new_queue(self->a, DEPTH);
	unsigned char model[NBYTES] = { 0 }, in[DEPTH][NBYTES], out[DEPTH][NBYTES];
	unsigned char expected[DEPTH][NBYTES];
	struct devbuf_completion done[DEPTH];
	unsigned int seed = 42;
	size_t nr;

	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_copyin(b, model, NBYTES)); /* memory may be used, from an LRU allocator */
	for (int round = 0; round < ROUNDS; round++) {
		memset(out, 0, sizeof(out));
		memset(expected, 0, sizeof(expected));
		for (int i = 0; i < DEPTH; i++) {
			size_t n = 1 + rand_r(&seed) % 64, to = rand_r(&seed) % (128 - n + 1),
			       from = rand_r(&seed) % (NBYTES - n + 1);

			switch (rand_r(&seed) % 3) {
			case 0:
				fill_pattern(in[i], n, rand_r(&seed));
				ASSERT_OK(devbuf_queue_copyin(q, v, to, in[i], n, i));
				memcpy(model + 64 + to, in[i], n);
				break;
			case 1:
				ASSERT_OK(devbuf_queue_copyout(q, b, from, out[i], n, i));
				memcpy(expected[i], model + from, n);
				break;
			default:
				ASSERT_OK(devbuf_queue_transfer(q, v, to, b, from, n, 0, i));
				memmove(model + 64 + to, model + from, n);
			}
			if (rand_r(&seed) % 8 == 0)
				ASSERT_OK(devbuf_queue_submit(q));
		}
		ASSERT_OK(devbuf_queue_wait(q, DEPTH, DEVBUF_FOREVER, done, DEPTH, &nr));
		for (int i = 0; i < DEPTH; i++)
			EXPECT_EQ(0, done[i].result);
		ASSERT_EQ(0, memcmp(out, expected, sizeof(out)));
	}
	EXPECT_OK(devbuf_copyout(b, out[0], NBYTES));
	EXPECT_EQ(0, memcmp(out[0], model, NBYTES));
	devbuf_queue_destroy(q);
	devbuf_unref(v);
	devbuf_unref(b);
}

/* The caller's pages come when they are touched, which must not put one operation behind another. */
TEST_F(contract, queue_order_with_untouched_memory)
{
	size_t nbytes = 8 * self->page;
	struct devbuf *a = new_filled(self->a, nbytes, 1), *b = new_filled(self->a, nbytes, 2);
	struct devbuf_queue *q = new_queue(self->a, 8);
	int fd = memfd_create("in", MFD_CLOEXEC);
	char *bytes = malloc(nbytes), *in, *out;

	for (unsigned int round = 3; round < 40; round++) {
		fill_pattern(bytes, nbytes, round);
		ASSERT_EQ(nbytes, pwrite(fd, bytes, nbytes, 0));
		in = mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE, fd, 0);
		out = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
		ASSERT_OK(devbuf_queue_copyin(q, a, 0, in, nbytes, 1));
		ASSERT_OK(devbuf_queue_transfer(q, b, 0, a, 0, nbytes, 0, 2));
		ASSERT_OK(devbuf_queue_copyout(q, b, 0, out, nbytes, 4));
		ASSERT_OK(devbuf_queue_copyin(q, b, 0, bytes, 1, 8));
		EXPECT_EQ(15, take(q, 4));
		EXPECT_TRUE(is_pattern(out, nbytes, round));
		munmap(in, nbytes);
		munmap(out, nbytes);
	}
	free(bytes);
	close(fd);
	devbuf_queue_destroy(q);
	devbuf_unref(b);
	devbuf_unref(a);
}

static int child_queue(struct devbuf_queue *q, struct devbuf *b)
{
	struct devbuf_transfer_piece piece = { b, 0, b, 0, 1 };
	struct devbuf_completion done;
	char byte;
	size_t nr;
	const int results[] = {
		devbuf_queue_copyin(q, b, 0, "x", 1, 1),
		devbuf_queue_copyout(q, b, 0, &byte, 1, 1),
		devbuf_queue_transfer(q, b, 0, b, 0, 1, 0, 1),
		devbuf_queue_transfer_many(q, &piece, 1, 0, 1),
		devbuf_queue_submit(q),
		devbuf_queue_wait(q, 0, 0, &done, 1, &nr),
		devbuf_queue_cancel(q, 1, NULL),
		devbuf_queue_fd(q),
	};

	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		if (results[i] != -EPERM)
			return -100 - (int)i;
	devbuf_queue_destroy(q);
	return 0;
}

TEST_F(contract, queue_after_fork)
{
	struct devbuf *b = new_filled(self->a, 100, 1);
	struct devbuf_queue *q = new_queue(self->a, 4);
	char byte = 0;

	ASSERT_OK(devbuf_queue_copyin(q, b, 0, "x", 1, 1));
	ASSERT_OK(devbuf_queue_submit(q));
	ASSERT_OK(devbuf_queue_copyout(q, b, 0, &byte, 1, 2));
	EXPECT_EQ(0, IN_CHILD(child_queue(q, b)));
	EXPECT_EQ(3, take(q, 2)); /* the parent's goes on */
	EXPECT_EQ('x', byte);
	devbuf_queue_destroy(q);
	devbuf_unref(b);
}
