// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another driver at the other end of a dma-buf: what it may import, what it holds, and that its
 * work is waited for. Needs the module vgem.
 */
#include "common_vgem.h"

#include "kselftest_harness.h"

/* --- import into the other driver ------------------------------------------------------------- */

#define NBYTES (MIB + 100)

FIXTURE(vgem)
{
	int card, ctx;
	__u64 id;
};

FIXTURE_SETUP(vgem)
{
	self->card = open_vgem();
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, NBYTES);
	buffer_fill(self->ctx, self->id, NBYTES, 1);
}

FIXTURE_TEARDOWN(vgem)
{
	close(self->ctx);
	close(self->card);
}

TEST_F(vgem, imports_a_writable_export)
{
	__u32 handle = vgem_import_export(self->card, self->ctx, self->id);

	vgem_close(self->card, handle);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));
}

TEST_F(vgem, imports_many_views_of_one_base)
{
	__u32 handles[16];

	for (size_t i = 0; i < ARRAY_SIZE(handles); i++) {
		__u64 view = new_allocated_view(self->ctx, self->id, i * 5000, 7000);

		handles[i] = vgem_import_export(self->card, self->ctx, view);
	}
	for (size_t i = 0; i < ARRAY_SIZE(handles); i++)
		vgem_close(self->card, handles[i]);
}

/* It maps what it imports for both directions. */
TEST_F(vgem, may_not_import_a_read_only_export)
{
	__u32 handle;

	EXPECT_GT(0, vgem_import(self->card, new_export(self->ctx, self->id, 0), &handle));
}

TEST_F(vgem, gives_back_the_dma_buf_that_it_imported)
{
	int fd = new_export(self->ctx, self->id, DEVBUF_EXPORT_WRITE);
	int back = vgem_export(self->card, vgem_import_export(self->card, self->ctx, self->id));
	int other = new_context();

	EXPECT_EQ(inode_of(fd), inode_of(back));
	EXPECT_EQ(self->id, new_import(other, back));
	EXPECT_TRUE(buffer_filled(other, self->id, 0, NBYTES, 1));
	close(other);
}

TEST_F(vgem, holds_the_memory_when_everything_else_is_gone)
{
	__u32 handle = vgem_import_export(self->card, self->ctx, self->id);
	unsigned char *map;

	must(do_deallocate(self->ctx, self->id));
	must(do_destroy(self->ctx, self->id));
	close(self->ctx);
	self->ctx = new_context();
	buffer_fill(self->ctx, new_allocated(self->ctx, NBYTES), NBYTES, 2);
	map = mmap(NULL, NBYTES, PROT_READ, MAP_SHARED, vgem_export(self->card, handle), 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_TRUE(filled(map, NBYTES, 1));
}

TEST_F(vgem, is_synchronised_with)
{
	vgem_import_export(self->card, self->ctx, self->id);
	EXPECT_EQ(0, do_sync(self->ctx, self->id, 0, 100, DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE));
	EXPECT_EQ(0, do_sync(self->ctx, self->id, 0, 100,
			     DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE | DEVBUF_SYNC_END));
}

TEST_F(vgem, memory_that_it_has_imported_is_not_kept_for_reuse)
{
	__u64 id = new_allocated_flags(self->ctx, PAGE, DEVBUF_CREATE_REUSE);
	__u32 handle = vgem_import_export(self->card, self->ctx, id);

	buffer_fill(self->ctx, id, PAGE, 1);
	must(do_deallocate(self->ctx, id));
	EXPECT_EQ(0, do_allocate_flags(self->ctx, id, 0));
	EXPECT_TRUE(buffer_zero(self->ctx, id, 0, PAGE));
	vgem_close(self->card, handle);
}

/* --- export from the other driver ------------------------------------------------------------- */

TEST_F(vgem, its_own_buffers_are_EOPNOTSUPP)
{
	int dma_buf = vgem_export(self->card, vgem_create(self->card));
	__u64 id;

	EXPECT_EQ(-EOPNOTSUPP, do_import(self->ctx, dma_buf, &id));
	EXPECT_EQ(1, fdinfo(self->ctx, "devbuf-handles"));
}

/* --- work that the other driver has queued ---------------------------------------------------- */

/* Another thread ends the driver's work as soon as this one sleeps in the kernel. */
struct work {
	int card;
	__u32 fence;
	pid_t waiter;
	volatile bool returned;
	bool returned_before_its_end;
	pthread_t thread;
};

static void *end_work(void *argument)
{
	struct work *work = argument;

	while (!work->returned && task_state(work->waiter) == 'R')
		;
	work->returned_before_its_end = work->returned;
	vgem_signal_fence(work->card, work->fence);
	return NULL;
}

FIXTURE(queued)
{
	int card, ctx;
	__u64 id, other;
	__u32 handle;
	unsigned char bytes[100];
};

FIXTURE_VARIANT(queued)
{
	/* Does what the other driver's work must be waited for. */
	int (*wait)(int ctx, __u64 id, __u64 other, unsigned char *bytes);
	__u32 fence_flags;
};

static int wait_copyin(int ctx, __u64 id, __u64 other, unsigned char *bytes)
{
	(void)other;
	return do_copyin(ctx, id, 0, bytes, 100);
}

static int wait_copyout(int ctx, __u64 id, __u64 other, unsigned char *bytes)
{
	(void)other;
	return do_copyout(ctx, id, 0, bytes, 100);
}

static int wait_transfer_to(int ctx, __u64 id, __u64 other, unsigned char *bytes)
{
	(void)bytes;
	return do_transfer(ctx, id, 0, other, 0, 100);
}

static int wait_transfer_from(int ctx, __u64 id, __u64 other, unsigned char *bytes)
{
	(void)bytes;
	return do_transfer(ctx, other, 0, id, 0, 100);
}

static int wait_sync(int ctx, __u64 id, __u64 other, unsigned char *bytes)
{
	(void)other;
	(void)bytes;
	return do_sync(ctx, id, 0, 100, DEVBUF_SYNC_READ);
}

FIXTURE_VARIANT_ADD(queued, write_before_copyout){ wait_copyout, VGEM_FENCE_WRITE };
FIXTURE_VARIANT_ADD(queued, write_before_copyin){ wait_copyin, VGEM_FENCE_WRITE };
FIXTURE_VARIANT_ADD(queued, read_before_copyin){ wait_copyin, 0 };
FIXTURE_VARIANT_ADD(queued, write_before_transfer_to){ wait_transfer_to, VGEM_FENCE_WRITE };
FIXTURE_VARIANT_ADD(queued, read_before_transfer_to){ wait_transfer_to, 0 };
FIXTURE_VARIANT_ADD(queued, write_before_transfer_from){ wait_transfer_from, VGEM_FENCE_WRITE };
FIXTURE_VARIANT_ADD(queued, write_before_sync){ wait_sync, VGEM_FENCE_WRITE };

FIXTURE_SETUP(queued)
{
	self->card = open_vgem();
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, PAGE);
	self->other = new_allocated(self->ctx, PAGE);
	self->handle = vgem_import_export(self->card, self->ctx, self->id);
}

FIXTURE_TEARDOWN(queued)
{
	close(self->ctx);
	close(self->card);
}

TEST_F(queued, work_is_waited_for)
{
	struct work work = {
		.card = self->card,
		.waiter = gettid(),
		.fence = vgem_attach_fence(self->card, self->handle, variant->fence_flags),
	};

	must(-pthread_create(&work.thread, NULL, end_work, &work));
	EXPECT_EQ(0, variant->wait(self->ctx, self->id, self->other, self->bytes));
	work.returned = true;
	pthread_join(work.thread, NULL);
	EXPECT_FALSE(work.returned_before_its_end);
}

TEST_F(queued, work_on_a_view_is_waited_for_by_the_base)
{
	__u64 view = new_allocated_view(self->ctx, self->id, 50, 10);
	struct work work = { .card = self->card, .waiter = gettid() };

	work.fence = vgem_attach_fence(self->card, vgem_import_export(self->card, self->ctx, view),
				       variant->fence_flags);
	must(-pthread_create(&work.thread, NULL, end_work, &work));
	EXPECT_EQ(0, variant->wait(self->ctx, self->id, self->other, self->bytes));
	work.returned = true;
	pthread_join(work.thread, NULL);
	EXPECT_FALSE(work.returned_before_its_end);
}

TEST_F(queued, work_that_never_ends_can_be_interrupted_by_a_fatal_signal)
{
	pid_t child;

	vgem_attach_fence(self->card, self->handle, variant->fence_flags);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(variant->wait(self->ctx, self->id, self->other, self->bytes));
	while (task_state(child) == 'R')
		;
	must_libc(kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, wait_for(child));
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
