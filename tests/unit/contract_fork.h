/* SPDX-License-Identifier: GPL-2.0-only */
/* True of the driver only: after fork, and with threads that import. Part of contract.c. */

/* Every function that returns an errno, called by a child. */
static int child_calls(struct devbuf_allocator *a, struct devbuf *b, int fd)
{
	struct devbuf_device_props props = DEVBUF_DEVICE_PROPS_INIT;
	struct devbuf_status s = DEVBUF_STATUS_INIT;
	struct devbuf_plan plan = DEVBUF_PLAN_INIT;
	struct devbuf_transfer_piece piece = { b, 0, b, 0, 1 };
	struct devbuf_allocator *lru;
	struct devbuf_queue *q;
	char name[DEVBUF_NAME_BYTES];
	struct devbuf *out;
	uint64_t u = 0;
	uint8_t uuid[16];
	size_t n;
	void *p;
	int i;
	const int results[] = {
		devbuf_lru_allocator(a, &lru),
		devbuf_driver_instance(a, uuid),
		devbuf_device_next(a, &u, &props),
		devbuf_device_find(a, "SYSTEM", &props),
		devbuf_create(a, "SYSTEM", 1, DEVBUF_INT8, NULL, &out),
		devbuf_view(b, 1, DEVBUF_INT8, 0, &out),
		devbuf_import(a, fd, &out),
		devbuf_open_id(a, devbuf_id(b), &out),
		devbuf_set_name(b, "x"),
		devbuf_get_name(b, name),
		devbuf_allocate(b),
		devbuf_ensure_allocated(b),
		devbuf_deallocate(b),
		devbuf_get_status(b, &s),
		devbuf_copyin(b, name, devbuf_nbytes(b)),
		devbuf_copyout(b, name, devbuf_nbytes(b)),
		devbuf_copyin_at(b, 0, name, 1),
		devbuf_copyout_at(b, 0, name, 1),
		devbuf_as_bytes(b, &p, &n),
		devbuf_read_file(b, 0, fd, 0, 1, NULL),
		devbuf_copy(b, b, NULL),
		devbuf_copy_at(b, 0, b, 0, 1, 0, NULL),
		devbuf_copy_many(&piece, 1, 0, NULL),
		devbuf_copy_plan(b, b, &plan),
		devbuf_transfer(b, b, NULL),
		devbuf_copy_between(b, b),
		devbuf_addr(b, &u),
		devbuf_map(b, PROT_READ, &p),
		devbuf_unmap(b),
		devbuf_sync(b, 0, 1, DEVBUF_CPU_READ),
		devbuf_export(b, 0, &i, &n),
		devbuf_copyin_async(b, 0, name, 1, NULL),
		devbuf_copyout_async(b, 0, name, 1, NULL),
		devbuf_transfer_async(b, 0, b, 0, 1, 0, NULL),
		devbuf_wait(b, 0, 1, DEVBUF_CPU_READ, 0, NULL),
		devbuf_cancel(a, 1, NULL),
		devbuf_queue_create(a, 1, &q),
		devbuf_prepare_copyin((void *)name, (void *)name, b, 0, name, 1, NULL),
	};

	for (i = 0; i < (int)ARRAY_SIZE(results); i++)
		if (results[i] != -EPERM)
			return -100 - i;
	if (devbuf_is_allocated(b) || devbuf_is_initialized(b) || !devbuf_nbytes(b))
		return -90;
	return strstr(devbuf_last_error(), "fork") ? 0 : -91;
}

static int child_releases(struct devbuf_allocator *a, struct devbuf *b, struct devbuf *v,
			  const char *page)
{
	unsigned char in_core;
	struct devbuf *own;

	devbuf_unref(v);
	devbuf_unref(b);
	devbuf_allocator_unref(a);
	if (!mincore((void *)page, 1, &in_core)) /* unmapped: ENOMEM */
		return -1;
	if (devbuf_driver_open(NULL, &a)) /* one of its own */
		return -2;
	own = new_filled(a, 100, 1);
	if (!holds_pattern(own, 1))
		return -3;
	devbuf_unref(own);
	devbuf_allocator_unref(a);
	return 0;
}

TEST_F(on_driver, fork)
{
	struct devbuf_allocator *a;
	struct devbuf *b, *v;
	char *map;
	int fd;

	ASSERT_OK(open_allocator(true, variant->lru, &a));
	b = new_filled(a, 100, 1);
	v = new_view(b, 1, 10);
	ASSERT_OK(devbuf_allocate(v));
	ASSERT_OK(devbuf_map(b, PROT_READ, (void **)&map));
	ASSERT_OK(devbuf_export(b, DEVBUF_FD_WRITE, &fd, NULL));
	EXPECT_EQ(0, IN_CHILD(child_calls(a, b, fd)));
	EXPECT_EQ(0, IN_CHILD(child_releases(a, b, v, map)));
	close(fd);
	EXPECT_TRUE(holds_pattern(b, 1)); /* nothing happened to the parent's */
	EXPECT_TRUE(devbuf_is_initialized(v));
	EXPECT_TRUE(is_pattern(map, 100, 1));
	devbuf_unref(v);
	devbuf_unref(b);
	devbuf_allocator_unref(a);
}

struct importer {
	struct devbuf_allocator *a;
	int fd;
	int failures;
};

static void *import_again_and_again(void *argument)
{
	struct importer *me = argument;
	struct devbuf *b;
	char byte;

	for (int i = 0; i < 200; i++) {
		if (devbuf_import(me->a, me->fd, &b)) {
			me->failures++;
			continue;
		}
		me->failures += devbuf_copyout_at(b, 0, &byte, 1) != 0;
		devbuf_unref(b);
	}
	return NULL;
}

TEST_F(on_driver, threads_importing_the_same)
{
	struct devbuf *b = new_filled(self->a, self->page, 1), *found;
	struct devbuf_allocator *other;
	struct importer importers[4];
	pthread_t threads[4];
	int fd;

	ASSERT_OK(devbuf_export(b, 0, &fd, NULL));
	ASSERT_OK(open_allocator(true, false, &other));
	for (int i = 0; i < 4; i++) {
		importers[i] = (struct importer){ other, fd, 0 };
		pthread_create(&threads[i], NULL, import_again_and_again, &importers[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, importers[i].failures);
	}
	/* The books are even: the last reference took the handle with it. */
	EXPECT_EQ(-ENOENT, devbuf_open_id(other, devbuf_id(b), &found));
	close(fd);
	devbuf_unref(b);
	devbuf_allocator_unref(other);
}
