// SPDX-License-Identifier: GPL-2.0-only
/*
 * COPYIN and COPYOUT when the caller's memory ends, is not there yet, or changes under them. The
 * memory that arrives late is userfaultfd's: the command sleeps in the middle, and whatever the
 * test does then must neither be blocked by the command nor harm it.
 */
#include "common.h"
#include "kselftest_harness.h"

#define NBYTES 20000u

FIXTURE(fault)
{
	int ctx;
	__u64 id;
};

FIXTURE_SETUP(fault)
{
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, NBYTES);
}

FIXTURE_TEARDOWN(fault)
{
	close(self->ctx);
}

/* --- memory that ends ------------------------------------------------------------------------- */

static int copy_done(int ctx, unsigned long command, __u64 id, __u64 offset, void *memory,
		     __u64 nbytes, __u64 *done)
{
	struct devbuf_copy_range range = {
		.id = id,
		.offset = offset,
		.user_addr = (uintptr_t)memory,
		.nbytes = nbytes,
	};

	*done = UINT64_MAX;
	return do_copy_ranges(ctx, command, &range, 1, done);
}

TEST_F(fault, copyin_stops_where_the_source_ends)
{
	static const __u64 nr_there[] = { 1, 100, 4095, 4096, 4097, 8192, 9999 };

	for (size_t i = 0; i < ARRAY_SIZE(nr_there); i++) {
		__u64 there = nr_there[i], done;
		__u64 id = new_allocated(self->ctx, NBYTES);
		unsigned char *source = new_edge(there);

		buffer_fill(self->ctx, id, NBYTES, 2);
		fill(source, there, 1);
		EXPECT_EQ(-EFAULT,
			  copy_done(self->ctx, DEVBUF_COPYIN, id, 11, source, there + 5, &done));
		EXPECT_EQ(there, done);
		EXPECT_TRUE(buffer_filled(self->ctx, id, 0, 11, 2));
		EXPECT_TRUE(buffer_filled(self->ctx, id, 11, there, 1));
		EXPECT_TRUE(buffer_filled_from(self->ctx, id, 11 + there, NBYTES - 11 - there, 2,
					       11 + there));
	}
}

TEST_F(fault, copyout_stops_where_the_destination_ends)
{
	static const __u64 nr_there[] = { 1, 100, 4095, 4096, 4097, 8192, 9999 };

	buffer_fill(self->ctx, self->id, NBYTES, 1);
	for (size_t i = 0; i < ARRAY_SIZE(nr_there); i++) {
		__u64 there = nr_there[i], done;
		unsigned char *destination = new_edge(there);

		EXPECT_EQ(-EFAULT, copy_done(self->ctx, DEVBUF_COPYOUT, self->id, 11, destination,
					     there + 5, &done));
		EXPECT_EQ(there, done);
		EXPECT_TRUE(filled_from(destination, there, 1, 11));
	}
}

TEST_F(fault, copyin_from_nothing_does_nothing)
{
	__u64 done;

	EXPECT_EQ(-EFAULT,
		  copy_done(self->ctx, DEVBUF_COPYIN, self->id, 0, new_edge(0), 100, &done));
	EXPECT_EQ(0u, done);
	EXPECT_TRUE(buffer_zero(self->ctx, self->id, 0, NBYTES));
}

TEST_F(fault, copyin_stops_at_a_hole)
{
	unsigned char *source = new_memory(5 * PAGE);
	__u64 done;

	buffer_fill(self->ctx, self->id, NBYTES, 2);
	fill(source, 5 * PAGE, 1);
	must_libc(munmap(source + 2 * PAGE, PAGE));
	EXPECT_EQ(-EFAULT,
		  copy_done(self->ctx, DEVBUF_COPYIN, self->id, 0, source + 100, 4 * PAGE, &done));
	EXPECT_EQ(2 * PAGE - 100, done);
	EXPECT_TRUE(buffer_filled_from(self->ctx, self->id, 0, done, 1, 100));
	EXPECT_TRUE(buffer_filled_from(self->ctx, self->id, done, NBYTES - done, 2, done));
}

TEST_F(fault, copyout_stops_at_memory_that_can_only_be_read)
{
	unsigned char *destination = new_memory(2 * PAGE);
	__u64 done;

	buffer_fill(self->ctx, self->id, NBYTES, 1);
	must_libc(mprotect(destination + PAGE, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, copy_done(self->ctx, DEVBUF_COPYOUT, self->id, 0, destination + 1,
				     PAGE + 1, &done));
	EXPECT_EQ(PAGE - 1, done);
	EXPECT_TRUE(filled(destination + 1, PAGE - 1, 1));
	EXPECT_TRUE(all_zero(destination + PAGE, PAGE));
}

TEST_F(fault, copyin_stops_at_memory_that_can_not_be_read)
{
	unsigned char *source = new_memory(2 * PAGE);
	__u64 done;

	fill(source, 2 * PAGE, 1);
	must_libc(mprotect(source + PAGE, PAGE, PROT_NONE));
	EXPECT_EQ(-EFAULT,
		  copy_done(self->ctx, DEVBUF_COPYIN, self->id, 0, source, 2 * PAGE, &done));
	EXPECT_EQ(PAGE, done);
}

/* A page of a mapping beyond the file's end is SIGBUS for the CPU. */
TEST_F(fault, copyin_stops_at_the_end_of_a_file)
{
	int memfd = new_memfd(PAGE, 1);
	unsigned char *map = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, memfd, 0);
	__u64 done;

	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-EFAULT, copy_done(self->ctx, DEVBUF_COPYIN, self->id, 0, map, 2 * PAGE, &done));
	EXPECT_EQ(PAGE, done);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, PAGE, 1));
}

TEST_F(fault, the_ranges_before_are_done_and_those_after_are_not)
{
	unsigned char *source = new_memory(PAGE);
	unsigned char *edge = new_edge(50);
	const struct devbuf_copy_range ranges[] = {
		{ self->id, 0, (uintptr_t)source, 1000 },
		{ self->id, 5000, (uintptr_t)edge, 60 },
		{ self->id, 10000, (uintptr_t)source, 1000 },
	};
	__u64 done;

	fill(source, PAGE, 1);
	fill(edge, 50, 2);
	EXPECT_EQ(-EFAULT, do_copy_ranges(self->ctx, DEVBUF_COPYIN, ranges, 3, &done));
	EXPECT_EQ(1050u, done);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, 1000, 1));
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 5000, 50, 2));
	EXPECT_TRUE(buffer_zero(self->ctx, self->id, 5050, NBYTES - 5050));
}

/* --- memory that arrives late ----------------------------------------------------------------- */

/* What happens to the buffer while a command on it waits for its memory. */
struct meanwhile {
	int ctx;
	__u64 id;
	int ret;
};

static void do_nothing(void *argument)
{
	(void)argument;
}

static void deallocate(void *argument)
{
	struct meanwhile *meanwhile = argument;

	meanwhile->ret = do_deallocate(meanwhile->ctx, meanwhile->id);
}

static void deallocate_and_allocate(void *argument)
{
	struct meanwhile *meanwhile = argument;

	must(do_deallocate(meanwhile->ctx, meanwhile->id));
	meanwhile->ret = do_allocate(meanwhile->ctx, meanwhile->id);
}

/* Only the first time is the id there. */
static void destroy(void *argument)
{
	struct meanwhile *meanwhile = argument;

	do_destroy(meanwhile->ctx, meanwhile->id);
}

static void close_context(void *argument)
{
	struct meanwhile *meanwhile = argument;

	close(meanwhile->ctx);
}

static void use_everything(void *argument)
{
	struct meanwhile *meanwhile = argument;
	int ctx = meanwhile->ctx;
	__u64 id = meanwhile->id;
	__u64 view = new_allocated_view(ctx, id, NBYTES - 1, 1);
	char byte;

	must(do_copyin(ctx, view, 0, "x", 1));
	must(do_copyout(ctx, id, NBYTES - 1, &byte, 1));
	must(do_transfer(ctx, id, NBYTES - 2, id, NBYTES - 1, 1));
	must(do_sync(ctx, id, 0, NBYTES, DEVBUF_SYNC_READ));
	must(do_set_name(ctx, id, "name"));
	close(new_export(ctx, id, DEVBUF_EXPORT_WRITE));
	must_libc(munmap(new_mapping(ctx, id, PAGE, PROT_READ), PAGE));
	must(do_destroy(ctx, view));
	must(do_destroy(ctx, new_allocated(ctx, PAGE)));
}

/* The caller's pages are shared with a child for a moment. */
static void fork_child(void *argument)
{
	pid_t child = fork();

	(void)argument;
	if (!child)
		_exit(0);
	must(wait_for(child));
}

FIXTURE(late)
{
	struct meanwhile meanwhile;
	struct late_memory *late;
};

FIXTURE_VARIANT(late)
{
	void (*meanwhile)(void *argument);
	/* The buffer is as before afterwards, so its bytes can be looked at. */
	bool buffer_stays;
};

FIXTURE_VARIANT_ADD(late, nothing){ do_nothing, true };
FIXTURE_VARIANT_ADD(late, deallocate){ deallocate, false };
FIXTURE_VARIANT_ADD(late, deallocate_and_allocate){ deallocate_and_allocate, false };
FIXTURE_VARIANT_ADD(late, destroy){ destroy, false };
FIXTURE_VARIANT_ADD(late, close_context){ close_context, false };
FIXTURE_VARIANT_ADD(late, use_everything){ use_everything, true };
FIXTURE_VARIANT_ADD(late, fork_child){ fork_child, true };

FIXTURE_SETUP(late)
{
	struct meanwhile *meanwhile = &self->meanwhile;

	meanwhile->ctx = new_context();
	meanwhile->id = new_allocated(meanwhile->ctx, NBYTES);
	self->late = new_late_memory(3 * PAGE, 1, variant->meanwhile, meanwhile);
	if (!self->late)
		SKIP(return, "no userfaultfd here");
}

FIXTURE_TEARDOWN(late)
{
	end_late_memory(self->late);
	close(self->meanwhile.ctx);
}

/* The memory that the copy began with is what it ends with, whatever the buffer has become. */
TEST_F(late, copyin_ends_though_the_buffer_changed)
{
	struct meanwhile *meanwhile = &self->meanwhile;

	EXPECT_EQ(0, do_copyin(meanwhile->ctx, meanwhile->id, 7, self->late->memory + 5, 2 * PAGE));
	EXPECT_EQ(3, self->late->nr_faults);
	EXPECT_EQ(0, meanwhile->ret);
	if (variant->buffer_stays) {
		EXPECT_TRUE(buffer_filled_from(meanwhile->ctx, meanwhile->id, 7, 2 * PAGE, 1, 5));
	}
}

TEST_F(late, copyout_ends_though_the_buffer_changed)
{
	struct meanwhile *meanwhile = &self->meanwhile;

	buffer_fill(meanwhile->ctx, meanwhile->id, NBYTES, 2);
	EXPECT_EQ(0,
		  do_copyout(meanwhile->ctx, meanwhile->id, 7, self->late->memory + 5, 2 * PAGE));
	EXPECT_EQ(0, meanwhile->ret);
	EXPECT_TRUE(filled(self->late->memory, 5, 1));
	EXPECT_TRUE(filled_from(self->late->memory + 5, 2 * PAGE, 2, 7));
	EXPECT_TRUE(filled_from(self->late->memory + 5 + 2 * PAGE, PAGE - 5, 1, 5 + 2 * PAGE));
}

/* The array of ranges itself arrives late. */
TEST_F(late, ranges_are_read_without_a_lock)
{
	struct meanwhile *meanwhile = &self->meanwhile;
	int ret =
		do_copy_ranges(meanwhile->ctx, DEVBUF_COPYIN, (void *)self->late->memory, 1, NULL);

	/* The pattern is no id, no offset and no address of ours. */
	EXPECT_TRUE(ret == -ENOENT || ret == -EINVAL || ret == -EFAULT) TH_LOG("%d", ret);
	EXPECT_EQ(1, self->late->nr_faults);
}

/* The struct of the command arrives late: it is read before anything is looked up. */
TEST_F(late, structs_are_read_without_a_lock)
{
	EXPECT_GT(0, do_command(self->meanwhile.ctx, DEVBUF_COPYIN, self->late->memory));
	EXPECT_LE(1, self->late->nr_faults);
}

TEST_HARNESS_MAIN
