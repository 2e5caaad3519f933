// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands by io_uring do what the ioctls do, on every kind of ring. Needs the module vgem, whose
 * fences hold commands back.
 */
#include "common_uring.h"
#include "common_vgem.h"

#include "kselftest_harness.h"

/* Too long to be done at once, and one that is not. */
#define NBYTES       (300 * 1024u)
#define SMALL_NBYTES 100u

FIXTURE(uring)
{
	int card, ctx;
	struct io_uring ring;
	struct ends ends;
};

FIXTURE_VARIANT(uring)
{
	unsigned int setup_flags, sqe_flags;
};

FIXTURE_VARIANT_ADD(uring, plain){ 0, 0 };
FIXTURE_VARIANT_ADD(uring, by_a_worker){ 0, IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(uring, polled_by_a_thread){ IORING_SETUP_SQPOLL, 0 };
FIXTURE_VARIANT_ADD(uring, of_fixed_files){ 0, IOSQE_FIXED_FILE };
FIXTURE_VARIANT_ADD(uring, with_large_entries){ IORING_SETUP_SQE128 | IORING_SETUP_CQE32, 0 };
FIXTURE_VARIANT_ADD(uring, completed_when_asked){
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	0,
};
FIXTURE_VARIANT_ADD(uring, of_one_cooperative_task){ IORING_SETUP_COOP_TASKRUN, 0 };

FIXTURE_SETUP(uring)
{
	const char *reason = new_command_ring(&self->ring, variant->setup_flags);

	if (reason)
		SKIP(return, "%s", reason);
	self->card = open_vgem();
	self->ctx = new_context();
	must(io_uring_register_files(&self->ring, &self->ctx, 1));
	new_ends(&self->ends, self->ctx, NBYTES);
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->ring);
	close(self->ctx);
	close(self->card);
}

/* The file's place among the fixed ones is 0. */
#define PREPARE(command, argument, user_data)                                               \
	({                                                                                  \
		struct io_uring_sqe *_sqe = prepare_command(                                \
			&self->ring, variant->sqe_flags & IOSQE_FIXED_FILE ? 0 : self->ctx, \
			command, argument, user_data);                                      \
		_sqe->flags |= variant->sqe_flags;                                          \
		_sqe;                                                                       \
	})

/* One command, to its end. */
#define CALL(command, argument)                \
	({                                     \
		PREPARE(command, argument, 0); \
		submit(&self->ring);           \
		complete(&self->ring);         \
	})

/* --- every command ---------------------------------------------------------------------------- */

TEST_F(uring, tells_that_it_is_there)
{
	struct devbuf_info info = { .size = sizeof(info) };

	ASSERT_EQ(0, CALL(DEVBUF_INFO, &info));
	EXPECT_EQ(DEVBUF_ABI_VERSION, (int)info.out_abi_version);
	EXPECT_EQ(DEVBUF_FEATURE_URING, info.out_features & DEVBUF_FEATURE_URING);
	EXPECT_EQ(DEVBUF_MAX_RANGES, (int)info.out_max_ranges);
}

TEST_F(uring, walks_the_devices)
{
	struct devbuf_device_info info = { .size = sizeof(info) };
	int nr = 0, ret;

	while (!(ret = CALL(DEVBUF_DEVICE_INFO, &info))) {
		nr++;
		info.cursor = info.out_cursor;
	}
	EXPECT_EQ(-ENODEV, ret);
	EXPECT_LE(2, nr);
}

TEST_F(uring, makes_and_ends_a_buffer)
{
	struct devbuf_create create = create_argument(SYSTEM_DEVICE, NBYTES, 0);
	struct devbuf_view view = { .size = sizeof(view), .offset = 10, .nbytes = 100 };
	struct devbuf_allocate allocate = { .size = sizeof(allocate) };
	struct devbuf_set_name name = { .size = sizeof(name), .name = "ring" };
	struct devbuf_query query = { .size = sizeof(query) };
	struct devbuf_id id = { .size = sizeof(id) };

	ASSERT_EQ(0, CALL(DEVBUF_CREATE, &create));
	view.id = create.out_id;
	ASSERT_EQ(0, CALL(DEVBUF_VIEW, &view));
	EXPECT_EQ(create.out_id, view.out_base_id);
	allocate.id = view.out_id;
	ASSERT_EQ(0, CALL(DEVBUF_ALLOCATE, &allocate));
	name.id = create.out_id;
	ASSERT_EQ(0, CALL(DEVBUF_SET_NAME, &name));
	query.id = create.out_id;
	ASSERT_EQ(0, CALL(DEVBUF_QUERY, &query));
	EXPECT_EQ(NBYTES, query.out_nbytes);
	EXPECT_STREQ("ring", (char *)query.out_name);
	id.id = view.out_id;
	EXPECT_EQ(0, CALL(DEVBUF_DEALLOCATE, &id));
	EXPECT_EQ(0, CALL(DEVBUF_DESTROY, &id));
	EXPECT_EQ(-ENOENT, CALL(DEVBUF_DESTROY, &id));
}

TEST_F(uring, exports_and_imports)
{
	struct devbuf_export export = { .size = sizeof(export), .id = self->ends.src };
	struct devbuf_import import = { .size = sizeof(import) };

	ASSERT_EQ(0, CALL(DEVBUF_EXPORT, &export));
	ASSERT_LT(0, export.out_fd);
	EXPECT_EQ(NBYTES, export.out_nbytes);
	EXPECT_EQ(self->ends.src, new_import(new_context(), export.out_fd));
	import.fd = export.out_fd;
	ASSERT_EQ(0, CALL(DEVBUF_IMPORT, &import));
	EXPECT_EQ(self->ends.src, import.out_id);
	close(export.out_fd);
}

TEST_F(uring, copies_of_each_kind)
{
	static const __u64 sizes[] = { NBYTES, SMALL_NBYTES };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ends ends;

		new_ends(&ends, self->ctx, sizes[i]);
		for (int kind = COPYIN; kind <= TRANSFER; kind++) {
			struct copy_command command;

			prepare_copy_of(&command, &ends, kind, 0);
			command.copy.out_fence = -1;
			EXPECT_EQ(0, CALL(command.command, &command.copy));
			EXPECT_EQ(sizes[i], command.copy.out_done_nbytes);
			EXPECT_EQ(DEVBUF_PATH_CPU, (int)command.copy.out_path);
			EXPECT_EQ(0, command.copy.out_fence);
			EXPECT_TRUE(arrived(&ends, kind));
			if (kind == COPYIN)
				must(do_copyin(self->ctx, ends.dst, 0, new_memory(sizes[i]),
					       sizes[i]));
		}
	}
}

TEST_F(uring, synchronises_and_tells_paths)
{
	struct devbuf_sync sync = {
		.size = sizeof(sync),
		.flags = DEVBUF_SYNC_READ,
		.id = self->ends.src,
		.nbytes = NBYTES,
	};
	struct devbuf_path path = {
		.size = sizeof(path),
		.dst_id = self->ends.dst,
		.src_id = self->ends.src,
	};

	EXPECT_EQ(0, CALL(DEVBUF_SYNC, &sync));
	EXPECT_EQ(0, CALL(DEVBUF_PATH, &path));
	EXPECT_EQ(DEVBUF_PATH_CPU, (int)path.out_path);
}

/* --- errors ----------------------------------------------------------------------------------- */

TEST_F(uring, errors_are_those_of_the_ioctl)
{
	struct devbuf_id id = { .size = sizeof(id), .id = UINT64_MAX };
	struct devbuf_create create = create_argument("NONE:0", 1, 0);
	struct copy_command copy;

	EXPECT_EQ(-ENOENT, CALL(DEVBUF_DESTROY, &id));
	EXPECT_EQ(-ENODEV, CALL(DEVBUF_CREATE, &create));
	id.size--;
	EXPECT_EQ(-EINVAL, CALL(DEVBUF_DESTROY, &id));
	id.size = DEVBUF_STRUCT_MAX + 1;
	EXPECT_EQ(-E2BIG, CALL(DEVBUF_DESTROY, &id));
	EXPECT_EQ(-EFAULT, CALL(DEVBUF_DESTROY, NULL));
	EXPECT_EQ(-ENOTTY, CALL(_IO(DEVBUF_IOC_TYPE, 0xff), &id));
	EXPECT_EQ(-ENOTTY, CALL(_IO(DEVBUF_IOC_TYPE - 1, 0), &id));
	for (int kind = COPYIN; kind <= TRANSFER; kind++) {
		prepare_copy_of(&copy, &self->ends, kind, 0);
		copy.copy.ranges = 0;
		EXPECT_EQ(-EFAULT, CALL(copy.command, &copy.copy));
		prepare_copy_of(&copy, &self->ends, kind, DEVBUF_ASYNC_OUT_FENCE);
		EXPECT_EQ(-EINVAL, CALL(copy.command, &copy.copy));
		prepare_copy_of(&copy, &self->ends, kind, 0);
		copy.copy.nr_in_fences = 1;
		EXPECT_EQ(-EFAULT, CALL(copy.command, &copy.copy));
		copy.copy.in_fences = (uintptr_t) & (__s32){ -1 };
		EXPECT_EQ(-EBADF, CALL(copy.command, &copy.copy));
	}
}

TEST_F(uring, memory_that_is_not_there_is_EFAULT)
{
	struct ends ends = self->ends;
	struct copy_command copy;

	ends.from = ends.to = new_edge(NBYTES - 1);
	for (int kind = COPYIN; kind <= COPYOUT; kind++) {
		prepare_copy_of(&copy, &ends, kind, 0);
		EXPECT_EQ(-EFAULT, CALL(copy.command, &copy.copy));
	}
}

TEST_F(uring, padding_must_be_zero)
{
	struct devbuf_info info = { .size = sizeof(info) };
	struct devbuf_uring_cmd cmd = { .arg = (uintptr_t)&info };

	for (int bit = 0; bit < 64; bit += 9) {
		struct io_uring_sqe *sqe = PREPARE(DEVBUF_INFO, &info, 0);

		cmd.pad = 1ULL << bit;
		memcpy((unsigned char *)sqe + offsetof(struct io_uring_sqe, cmd), &cmd,
		       sizeof(cmd));
		submit(&self->ring);
		EXPECT_EQ(-EINVAL, complete(&self->ring));
	}
}

TEST_F(uring, reply_that_cannot_be_written_leaves_nothing_behind)
{
	struct devbuf_create *create = new_memory(sizeof(*create));
	struct devbuf_export *export = (void *)(create + 1);
	long long handles = fdinfo(self->ctx, "devbuf-handles");
	int files = nr_open_files();

	*create = create_argument(SYSTEM_DEVICE, NBYTES, 0);
	*export = (struct devbuf_export){ .size = sizeof(*export), .id = self->ends.src };
	must_libc(mprotect(create, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, CALL(DEVBUF_CREATE, create));
	EXPECT_EQ(-EFAULT, CALL(DEVBUF_EXPORT, export));
	EXPECT_EQ(handles, fdinfo(self->ctx, "devbuf-handles"));
	EXPECT_EQ(files, nr_open_files());
}

/* --- what takes its time ---------------------------------------------------------------------- */

TEST_F(uring, copies_complete_when_they_are_over)
{
	for (int kind = COPYIN; kind <= TRANSFER; kind++) {
		struct gate gate = new_gate(self->card);
		struct copy_command copy;
		struct ends ends;

		new_ends(&ends, self->ctx, NBYTES);
		prepare_copy_of(&copy, &ends, kind, 0);
		copy.copy.in_fences = (uintptr_t)&gate.fd;
		copy.copy.nr_in_fences = 1;
		PREPARE(copy.command, &copy.copy, 0);
		submit(&self->ring);
		await_queued(self->ctx, kind == COPYOUT ? ends.src : ends.dst);
		give_every_chance(self->ctx);
		EXPECT_FALSE(has_completion(&self->ring));
		EXPECT_EQ(0u, copy.copy.out_done_nbytes);
		open_gate(&gate);
		EXPECT_EQ(0, complete(&self->ring));
		EXPECT_EQ(NBYTES, copy.copy.out_done_nbytes);
		EXPECT_EQ(DEVBUF_PATH_CPU, (int)copy.copy.out_path);
		EXPECT_TRUE(arrived(&ends, kind));
	}
}

TEST_F(uring, asynchronous_copies_complete_when_they_are_queued)
{
	for (int kind = COPYIN; kind <= TRANSFER; kind++) {
		struct gate gate = new_gate(self->card);
		struct copy_command copy;
		struct ends ends;

		new_ends(&ends, self->ctx, NBYTES);
		prepare_copy_of(&copy, &ends, kind, DEVBUF_ASYNC | DEVBUF_ASYNC_OUT_FENCE);
		copy.copy.in_fences = (uintptr_t)&gate.fd;
		copy.copy.nr_in_fences = 1;
		ASSERT_EQ(0, CALL(copy.command, &copy.copy));
		ASSERT_LT(0, copy.copy.out_fence);
		EXPECT_EQ(FD_CLOEXEC, fcntl(copy.copy.out_fence, F_GETFD));
		EXPECT_EQ(0u, copy.copy.out_done_nbytes);
		EXPECT_TRUE(is_held(self->ctx, copy.copy.out_fence));
		open_gate(&gate);
		EXPECT_EQ(0, end_fence(copy.copy.out_fence));
		EXPECT_TRUE(arrived(&ends, kind));
	}
}

/* Submitting does not wait, neither for other drivers nor for other copies. */
TEST_F(uring, copies_are_ordered_and_submitting_goes_on)
{
	__u32 handle = vgem_import_export(self->card, self->ctx, self->ends.dst);
	__u32 work = vgem_attach_fence(self->card, handle, VGEM_FENCE_WRITE);
	struct copy_command write, small, sync_write;
	struct devbuf_info info = { .size = sizeof(info) };

	prepare_copy_of(&write, &self->ends, TRANSFER, 0);
	PREPARE(write.command, &write.copy, 1);
	prepare_copy_of(&small, &self->ends, COPYIN, 0);
	small.copy_range.nbytes = SMALL_NBYTES;
	PREPARE(small.command, &small.copy, 1);
	submit(&self->ring);
	PREPARE(DEVBUF_INFO, &info, 2);
	submit(&self->ring);
	EXPECT_EQ(2u, next_completion(&self->ring).user_data);
	give_every_chance(self->ctx);
	EXPECT_FALSE(has_completion(&self->ring));
	vgem_signal_fence(self->card, work);
	for (int i = 0; i < 2; i++) {
		struct completion completion = next_completion(&self->ring);

		EXPECT_EQ(1u, completion.user_data);
		EXPECT_EQ(0, completion.res);
	}
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
	/* By ioctl it waits for what a ring has queued. */
	prepare_copy_of(&sync_write, &self->ends, TRANSFER, 0);
	EXPECT_EQ(0, do_command(self->ctx, sync_write.command, &sync_write.copy));
}

/* A command that has to sleep does so somewhere else. */
TEST_F(uring, synchronisation_waits_and_submitting_goes_on)
{
	struct gate gate = new_gate(self->card);
	struct devbuf_sync sync = {
		.size = sizeof(sync),
		.flags = DEVBUF_SYNC_READ,
		.id = self->ends.dst,
		.nbytes = NBYTES,
	};
	struct devbuf_info info = { .size = sizeof(info) };
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(gate.fd)));

	PREPARE(DEVBUF_SYNC, &sync, 1);
	submit(&self->ring);
	PREPARE(DEVBUF_INFO, &info, 2);
	submit(&self->ring);
	EXPECT_EQ(2u, next_completion(&self->ring).user_data);
	open_gate(&gate);
	EXPECT_EQ(0, complete(&self->ring));
	EXPECT_EQ(1, fence_status(fence));
}

TEST_F(uring, explicit_copies_are_not_ordered)
{
	struct gate gate = new_gate(self->card);
	int held = must(queue_copy_of(&self->ends, COPYIN, AFTER(gate.fd)));
	struct copy_command copy;

	prepare_copy_of(&copy, &self->ends, TRANSFER, DEVBUF_ASYNC_EXPLICIT);
	EXPECT_EQ(0, CALL(copy.command, &copy.copy));
	EXPECT_EQ(0, fence_status(held));
	open_gate(&gate);
	EXPECT_EQ(0, end_fence(held));
}

TEST_F(uring, as_many_as_the_ring_holds)
{
	struct copy_command *copies = calloc(NR_ENTRIES, sizeof(*copies));
	bool seen[NR_ENTRIES] = { 0 };
	struct ends ends;

	new_ends(&ends, self->ctx, 40000);
	for (int i = 0; i < NR_ENTRIES; i++) {
		prepare_copy_of(&copies[i], &ends, i % 3, 0);
		PREPARE(copies[i].command, &copies[i].copy, i);
	}
	submit(&self->ring);
	for (int i = 0; i < NR_ENTRIES; i++) {
		struct completion completion = next_completion(&self->ring);

		EXPECT_EQ(0, completion.res);
		EXPECT_FALSE(seen[completion.user_data]);
		seen[completion.user_data] = true;
		EXPECT_EQ(40000u, copies[completion.user_data].copy.out_done_nbytes);
	}
	EXPECT_TRUE(arrived(&ends, TRANSFER));
	free(copies);
}

/* It was copied once; what it says afterwards does not matter. */
TEST_F(uring, argument_may_change_when_it_is_issued)
{
	struct gate gate = new_gate(self->card);
	__s32 fence = gate.fd;
	struct copy_command copy;

	/* There somebody else issues it, at some time. */
	if (variant->setup_flags & IORING_SETUP_SQPOLL || variant->sqe_flags & IOSQE_ASYNC)
		return;
	prepare_copy_of(&copy, &self->ends, TRANSFER, 0);
	copy.copy.in_fences = (uintptr_t)&fence;
	copy.copy.nr_in_fences = 1;
	PREPARE(copy.command, &copy.copy, 0);
	submit(&self->ring);
	memset(&copy, 0, sizeof(copy));
	fence = -1;
	open_gate(&gate);
	EXPECT_EQ(0, complete(&self->ring));
	EXPECT_EQ(NBYTES, copy.copy.out_done_nbytes);
	EXPECT_TRUE(arrived(&self->ends, TRANSFER));
}

/* --- links ------------------------------------------------------------------------------------ */

TEST_F(uring, linked_copies_run_one_after_the_other)
{
	struct ends *ends = &self->ends;
	struct copy_command in, between, out;

	fill(ends->from, NBYTES, 2);
	prepare_copy_of(&in, ends, COPYIN, 0);
	in.copy_range.id = ends->src;
	prepare_copy_of(&between, ends, TRANSFER, 0);
	prepare_copy_of(&out, ends, COPYOUT, 0);
	out.copy_range.id = ends->dst;
	PREPARE(in.command, &in.copy, 0)->flags |= IOSQE_IO_LINK;
	PREPARE(between.command, &between.copy, 1)->flags |= IOSQE_IO_LINK;
	PREPARE(out.command, &out.copy, 2);
	submit(&self->ring);
	for (__u64 i = 0; i < 3; i++) {
		struct completion completion = next_completion(&self->ring);

		EXPECT_EQ(i, completion.user_data);
		EXPECT_EQ(0, completion.res);
	}
	EXPECT_TRUE(filled(ends->to, NBYTES, 2));
}

/* Whether it fails when it is issued or when it is over. */
TEST_F(uring, link_that_fails_cancels_the_rest)
{
	struct gate gate = new_gate(self->card);
	struct copy_command first, second, third;
	__s32 failed = must(queue_copy_of(&self->ends, COPYOUT, AFTER_COOKIE(gate.fd, 1)));

	must(do_cancel(self->ctx, 1));
	open_gate(&gate);
	ASSERT_EQ(-ECANCELED, fence_result(failed));
	for (int late = 0; late < 2; late++) {
		prepare_copy_of(&first, &self->ends, COPYOUT, 0);
		if (late) {
			first.copy.in_fences = (uintptr_t)&failed;
			first.copy.nr_in_fences = 1;
		} else {
			first.copy_range.id = UINT64_MAX;
		}
		prepare_copy_of(&second, &self->ends, TRANSFER, 0);
		prepare_copy_of(&third, &self->ends, COPYIN, 0);
		PREPARE(first.command, &first.copy, 0)->flags |= IOSQE_IO_LINK;
		PREPARE(second.command, &second.copy, 1)->flags |= IOSQE_IO_LINK;
		PREPARE(third.command, &third.copy, 2);
		submit(&self->ring);
		for (int i = 0; i < 3; i++) {
			struct completion completion = next_completion(&self->ring);

			EXPECT_EQ(completion.user_data || late ? -ECANCELED : -ENOENT,
				  completion.res);
		}
		EXPECT_TRUE(untouched(&self->ends, TRANSFER));
	}
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	return test_harness_run(argc, argv);
}
