// SPDX-License-Identifier: GPL-2.0-only
/* CREATE: each of its fields, and buffers of every size. */
#include "common.h"
#include "kselftest_harness.h"

FIXTURE(create)
{
	int ctx;
};

FIXTURE_SETUP(create)
{
	self->ctx = new_context();
}

FIXTURE_TEARDOWN(create)
{
	close(self->ctx);
}

/* --- fields ----------------------------------------------------------------------------------- */

TEST_F(create, a_new_buffer_is_what_was_asked_for_and_has_no_memory)
{
	struct devbuf_create create =
		create_argument(SYSTEM_DEVICE, 1234, DEVBUF_CREATE_CPU_ACCESS);
	struct devbuf_query q;

	create.alignment = 64;
	create.dtype = 0xfedcba98;
	ASSERT_EQ(0, do_command(self->ctx, DEVBUF_CREATE, &create));
	q = query(self->ctx, create.out_id);
	EXPECT_EQ(create.out_id, q.out_base_id);
	EXPECT_EQ(1234u, q.out_nbytes);
	EXPECT_EQ(0u, q.out_offset);
	EXPECT_EQ(64u, q.out_alignment);
	EXPECT_EQ(0xfedcba98, q.out_dtype);
	EXPECT_EQ(DEVBUF_CREATE_CPU_ACCESS, q.out_create_flags);
	EXPECT_EQ(0u, q.out_state);
	EXPECT_EQ(RIGHTS_ALL, q.out_rights);
	EXPECT_EQ(1u, q.out_handle_count);
	EXPECT_EQ(0u, q.out_largest_page_shift);
	EXPECT_STREQ(SYSTEM_DEVICE, (char *)q.out_device);
	EXPECT_TRUE(all_zero(q.out_name, sizeof(q.out_name)));
}

TEST_F(create, the_device_is_its_exact_name)
{
	static const char *const names[] = {
		"",          "SYSTEM",    "SYSTEM:",     "system:0",
		"SYSTEM:00", "SYSTEM:0 ", "SYSTEM:9999", "NONE:0",
	};
	__u64 id;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(-ENODEV, do_create(self->ctx, names[i], PAGE, 0, &id))
		TH_LOG("'%s'", names[i]);
	}
}

TEST_F(create, the_device_ends_with_a_nul)
{
	struct devbuf_create create = create_argument("", PAGE, 0);

	memset(create.device, 'x', sizeof(create.device));
	EXPECT_EQ(-EINVAL, do_command(self->ctx, DEVBUF_CREATE, &create));
}

TEST_F(create, behind_the_device_are_zeros)
{
	struct devbuf_create create = create_argument(SYSTEM_DEVICE, PAGE, 0);

	create.device[sizeof(create.device) - 1] = 1;
	EXPECT_EQ(-EINVAL, do_command(self->ctx, DEVBUF_CREATE, &create));
}

TEST_F(create, a_buffer_has_at_least_one_byte)
{
	__u64 id;

	EXPECT_EQ(-EINVAL, do_create(self->ctx, SYSTEM_DEVICE, 0, 0, &id));
}

static int create_aligned(int ctx, __u64 alignment)
{
	struct devbuf_create create = create_argument(SYSTEM_DEVICE, PAGE, 0);

	create.alignment = alignment;
	return do_command(ctx, DEVBUF_CREATE, &create);
}

TEST_F(create, the_alignment_is_a_power_of_two)
{
	EXPECT_EQ(-EINVAL, create_aligned(self->ctx, 3));
	EXPECT_EQ(-EINVAL, create_aligned(self->ctx, PAGE - 1));
	EXPECT_EQ(-EINVAL, create_aligned(self->ctx, UINT64_MAX));
}

TEST_F(create, every_alignment_up_to_the_device_s_is_had)
{
	struct devbuf_device_info info = { .size = sizeof(info) };
	__u64 alignment;

	while (strcmp((char *)info.out_name, SYSTEM_DEVICE)) {
		info.cursor = info.out_cursor;
		ASSERT_EQ(0, do_command(self->ctx, DEVBUF_DEVICE_INFO, &info));
	}
	for (alignment = 1; alignment <= info.out_alignment; alignment *= 2)
		EXPECT_EQ(0, create_aligned(self->ctx, alignment));
	for (; alignment; alignment *= 2)
		EXPECT_EQ(-EOPNOTSUPP, create_aligned(self->ctx, alignment));
}

TEST_F(create, SYSTEM_takes_no_memory_of_the_caller_s)
{
	struct devbuf_create create = create_argument(SYSTEM_DEVICE, PAGE, 0);

	create.user_addr = (uintptr_t)new_memory(PAGE);
	EXPECT_EQ(-EINVAL, do_command(self->ctx, DEVBUF_CREATE, &create));
}

TEST_F(create, SYSTEM_is_host_memory_that_the_CPU_reaches)
{
	__u64 id;

	EXPECT_EQ(0, do_create(self->ctx, SYSTEM_DEVICE, PAGE, DEVBUF_CREATE_HOST, &id));
	EXPECT_EQ(0, do_create(self->ctx, SYSTEM_DEVICE, PAGE, DEVBUF_CREATE_CPU_ACCESS, &id));
}

static int create_if_capable(int ctx, const char *device, __u32 flag, __u64 capability)
{
	__u64 id;
	int ret = do_create(ctx, device, PAGE, flag, &id);

	return capabilities(ctx, device) & capability ? ret : ret + EOPNOTSUPP;
}

TEST_F(create, a_flag_for_which_the_device_lacks_the_capability_is_EOPNOTSUPP)
{
	EXPECT_EQ(0, create_if_capable(self->ctx, SYSTEM_DEVICE, DEVBUF_CREATE_UNCACHED,
				       DEVBUF_CAP_UNCACHED));
	EXPECT_EQ(0, create_if_capable(self->ctx, SYSTEM_DEVICE, DEVBUF_CREATE_CONTIGUOUS,
				       DEVBUF_CAP_CONTIGUOUS));
}

TEST_F(create, a_failed_create_leaves_no_handle)
{
	long long handles = fdinfo(self->ctx, "devbuf-handles");
	__u64 id;

	ASSERT_LE(0, handles);
	EXPECT_EQ(-ENODEV, do_create(self->ctx, "NONE:0", PAGE, 0, &id));
	EXPECT_EQ(handles, fdinfo(self->ctx, "devbuf-handles"));
}

/* --- sizes ------------------------------------------------------------------------------------ */

FIXTURE(size)
{
	int ctx;
};

FIXTURE_VARIANT(size)
{
	/* In bytes, after so many whole pages. */
	__u64 pages;
	__s64 nbytes;
};

FIXTURE_VARIANT_ADD(size, one_byte){ .nbytes = 1 };
FIXTURE_VARIANT_ADD(size, page_minus_one){ .pages = 1, .nbytes = -1 };
FIXTURE_VARIANT_ADD(size, page){ .pages = 1 };
FIXTURE_VARIANT_ADD(size, page_plus_one){ .pages = 1, .nbytes = 1 };
FIXTURE_VARIANT_ADD(size, three_pages_minus_one){ .pages = 3, .nbytes = -1 };
FIXTURE_VARIANT_ADD(size, six_mib_and_a_bit){ .pages = 1536, .nbytes = 5 };

FIXTURE_SETUP(size)
{
	self->ctx = new_context();
}

FIXTURE_TEARDOWN(size)
{
	close(self->ctx);
}

TEST_F(size, first_and_last_byte_can_be_written_and_read)
{
	__u64 nbytes = variant->pages * PAGE + variant->nbytes;
	__u64 id = new_allocated(self->ctx, nbytes);
	char byte;

	EXPECT_EQ(nbytes, query(self->ctx, id).out_nbytes);
	EXPECT_EQ(0, do_copyin(self->ctx, id, 0, "f", 1));
	EXPECT_EQ(0, do_copyin(self->ctx, id, nbytes - 1, "l", 1));
	EXPECT_EQ(0, do_copyout(self->ctx, id, nbytes - 1, &byte, 1));
	EXPECT_EQ('l', byte);
	EXPECT_EQ(0, do_copyout(self->ctx, id, 0, &byte, 1));
	EXPECT_EQ(nbytes == 1 ? 'l' : 'f', byte);
}

TEST_F(size, the_byte_behind_the_last_is_out_of_reach)
{
	__u64 nbytes = variant->pages * PAGE + variant->nbytes;
	__u64 id = new_allocated(self->ctx, nbytes);
	char byte;

	EXPECT_EQ(-EINVAL, do_copyin(self->ctx, id, nbytes, "x", 1));
	EXPECT_EQ(-EINVAL, do_copyout(self->ctx, id, nbytes, &byte, 1));
}

TEST_F(size, it_is_zero_at_first)
{
	__u64 nbytes = variant->pages * PAGE + variant->nbytes;
	__u64 id = new_allocated(self->ctx, nbytes);

	EXPECT_TRUE(buffer_zero(self->ctx, id, 0, nbytes));
}

TEST_F(size, memory_is_whole_pages_and_given_back)
{
	__u64 nbytes = variant->pages * PAGE + variant->nbytes;
	__u64 id = new_allocated(self->ctx, nbytes);

	EXPECT_LE((long long)nbytes, fdinfo(self->ctx, "devbuf-allocated-nbytes"));
	EXPECT_GT((long long)(nbytes + PAGE), fdinfo(self->ctx, "devbuf-allocated-nbytes"));
	EXPECT_EQ(0, do_deallocate(self->ctx, id));
	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-allocated-nbytes"));
}

TEST_F(size, the_largest_piece_is_at_least_a_page_and_no_more_than_the_memory)
{
	__u64 nbytes = variant->pages * PAGE + variant->nbytes;
	__u64 id = new_allocated(self->ctx, nbytes);
	struct devbuf_query q = query(self->ctx, id);

	EXPECT_LE(PAGE, 1ull << q.out_largest_page_shift);
	EXPECT_GT(nbytes + PAGE, 1ull << q.out_largest_page_shift);
}

/* --- more than there is ----------------------------------------------------------------------- */

/* CREATE may refuse such a size at once, or leave it to ALLOCATE. */
static int create_and_allocate(int ctx, __u64 nbytes)
{
	__u64 id;
	int ret = do_create(ctx, SYSTEM_DEVICE, nbytes, 0, &id);

	return ret ?: do_allocate(ctx, id);
}

TEST_F(create, more_than_the_machine_has_is_ENOMEM)
{
	__u64 total = sysconf(_SC_PHYS_PAGES) * PAGE;

	EXPECT_EQ(-ENOMEM, create_and_allocate(self->ctx, total + PAGE));
	EXPECT_EQ(-ENOMEM, create_and_allocate(self->ctx, 2 * total));
	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-allocated-nbytes"));
}

TEST_F(create, more_than_any_machine_has_is_refused)
{
	static const __u64 sizes[] = {
		1ull << 40,       1ull << 44,        1ull << 52,     (1ull << 63) - 1, 1ull << 63,
		(1ull << 63) + 1, UINT64_MAX - 4096, UINT64_MAX - 1, UINT64_MAX,
	};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int ret = create_and_allocate(self->ctx, sizes[i]);

		EXPECT_TRUE(ret == -ENOMEM || ret == -EOVERFLOW || ret == -EINVAL)
		TH_LOG("%#llx bytes: %d", (unsigned long long)sizes[i], ret);
	}
	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-allocated-nbytes"));
}

TEST_HARNESS_MAIN
