/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract: NULL, words, threads, mappings after fork. Part of contract.c. */

/* --- NULL, words, threads, fork --------------------------------------------------------------- */

TEST_F(contract, what_is_asked_of_null)
{
	EXPECT_EQ(0, devbuf_id(NULL));
	EXPECT_EQ(0, devbuf_base_id(NULL));
	EXPECT_EQ(NULL, devbuf_base(NULL));
	EXPECT_EQ(NULL, devbuf_allocator_of(NULL));
	EXPECT_EQ(NULL, devbuf_device(NULL));
	EXPECT_EQ(0, devbuf_size(NULL));
	EXPECT_EQ(0, devbuf_dtype_itemsize(devbuf_dtype_of(NULL)));
	EXPECT_EQ(NULL, devbuf_spec_of(NULL));
	EXPECT_EQ(0, devbuf_nbytes(NULL));
	EXPECT_EQ(0, devbuf_offset(NULL));
	EXPECT_FALSE(devbuf_is_allocated(NULL));
	EXPECT_FALSE(devbuf_is_initialized(NULL));
	EXPECT_EQ(0, devbuf_uop_refcount(NULL));
	EXPECT_EQ(NULL, devbuf_add_ref(NULL, 1));
}

static void *fail_in_thread(void *first)
{
	bool *empty = first;

	*empty = !*devbuf_last_error();
	devbuf_copyin(NULL, "", 1);
	return NULL;
}

TEST_F(contract, last_error_is_the_thread_s)
{
	struct devbuf *b = new_bytes(self->a, 8);
	bool empty = false;
	pthread_t thread;

	EXPECT_STREQ("", devbuf_last_error());
	EXPECT_EQ(-EINVAL, devbuf_copyin(b, "", 7));
	EXPECT_STREQ("7 bytes given for a buffer of 8", devbuf_last_error());
	ASSERT_EQ(0, pthread_create(&thread, NULL, fail_in_thread, &empty));
	pthread_join(thread, NULL);
	EXPECT_TRUE(empty);
	EXPECT_OK(devbuf_allocate(b));
	EXPECT_STREQ("7 bytes given for a buffer of 8", devbuf_last_error());
	devbuf_unref(b);
}

struct worker {
	struct devbuf *b, *v, *w;
	unsigned int seed;
	int failures;
};

static void *work(void *argument)
{
	struct worker *me = argument;
	char bytes[256], got[256];

	for (int i = 0; i < 200; i++) {
		struct devbuf *view, *again;
		void *map;

		fill_pattern(bytes, sizeof(bytes), me->seed);
		me->failures += devbuf_copyin(me->v, bytes, sizeof(bytes)) != 0;
		me->failures += devbuf_copyout(me->v, got, sizeof(got)) != 0;
		me->failures += devbuf_copy(me->w, me->v, NULL) != 0;
		me->failures += devbuf_copy_between(me->v, me->w) != 0;
		me->failures += devbuf_map(me->v, PROT_READ, &map) != 0;
		me->failures += devbuf_view(me->b, 16, DEVBUF_UINT8, i, &view) != 0;
		me->failures += devbuf_allocate(view) != 0;
		me->failures +=
			devbuf_open_id(devbuf_allocator_of(view), devbuf_id(view), &again) != 0;
		devbuf_unref(view);
		me->failures += again != view;
		devbuf_unref(again);
		me->failures += devbuf_unmap(me->v) != 0;
		me->failures += devbuf_deallocate(me->b) != -EBUSY;
	}
	return NULL;
}

TEST_F(contract, threads_on_one_buffer)
{
	struct devbuf *b = new_filled(self->a, 4096, 0), *v = new_view(b, 1, 256);
	struct devbuf *other = new_filled(self->a, 4096, 0), *w = new_view(other, 1000, 256);
	struct worker workers[4];
	pthread_t threads[4];

	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_allocate(w));
	for (unsigned int i = 0; i < 4; i++) {
		/* Half of them the other way round: two locks, in one order. */
		workers[i] = i % 2 ? (struct worker){ b, v, w, i, 0 } :
				     (struct worker){ other, w, v, i, 0 };
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, work, &workers[i]));
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, workers[i].failures);
	}
	devbuf_unref(v);
	devbuf_unref(b);
	devbuf_unref(w);
	devbuf_unref(other);
}

static void *race_to_unref(void *b)
{
	devbuf_unref(b);
	return NULL;
}

TEST_F(contract, threads_racing_to_release_and_open)
{
	for (int i = 0; i < 100; i++) {
		struct devbuf *b = new_bytes(self->a, 8), *found;
		uint64_t id = devbuf_id(b);
		pthread_t threads[2];

		devbuf_ref(b);
		pthread_create(&threads[0], NULL, race_to_unref, b);
		pthread_create(&threads[1], NULL, race_to_unref, b);
		if (!devbuf_open_id(self->a, id, &found)) {
			EXPECT_EQ(8, devbuf_nbytes(found));
			devbuf_unref(found);
		}
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
		ASSERT_EQ(-ENOENT, devbuf_open_id(self->a, id, &found));
	}
}

static int child_sees(const char *map, size_t nbytes, unsigned int seed)
{
	return is_pattern(map, nbytes, seed) ? 0 : -1;
}

TEST_F(contract, mappings_live_on_in_the_child_of_a_fork)
{
	struct devbuf *b = new_filled(self->a, 2 * self->page, 1);
	char *map;

	ASSERT_OK(devbuf_map(b, PROT_READ | PROT_WRITE, (void **)&map));
	EXPECT_EQ(0, IN_CHILD(child_sees(map, 2 * self->page, 1)));
	EXPECT_EQ(0, IN_CHILD(write_byte(map)));
	EXPECT_EQ(1, map[0]); /* it is the same memory */
	devbuf_unref(b);
}
