// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands of 32-bit callers: the structs are the same, and so is what happens. A 64-bit program
 * can call the kernel as a 32-bit one does, by interrupt 0x80, with addresses below 4 GiB.
 */
#include "common.h"

#include "kselftest_harness.h"

#define NBYTES 10000u

#ifdef __x86_64__

enum { IA32_GETPID = 20, IA32_IOCTL = 54 };

static int call_as_32_bit(int number, int first, int second, int third)
{
	int ret;

	asm volatile("int $0x80"
		     : "=a"(ret)
		     : "a"(number), "b"(first), "c"(second), "d"(third)
		     : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

#else

enum { IA32_GETPID, IA32_IOCTL };

static int call_as_32_bit(int number, int first, int second, int third)
{
	return -ENOSYS;
}

#endif

/* A kernel without 32-bit programs answers with a signal. */
static bool has_32_bit_calls(void)
{
	pid_t child = must_libc(fork());

	if (!child)
		_exit(call_as_32_bit(IA32_GETPID, 0, 0, 0) == getpid() ? 0 : 1);
	return wait_for(child) == 0;
}

FIXTURE(compat)
{
	int ctx;
	/* Below 4 GiB: first the argument, and a page further the bytes. */
	unsigned char *low;
};

FIXTURE_SETUP(compat)
{
	if (!has_32_bit_calls())
		SKIP(return, "this kernel runs no 32-bit programs");
	self->ctx = new_context();
	self->low = mmap(NULL, PAGE + NBYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ASSERT_NE(MAP_FAILED, self->low);
}

FIXTURE_TEARDOWN(compat)
{
	close(self->ctx);
}

/* The argument is copied to @low, and back from there. */
static int do_compat(int ctx, unsigned long command, void *argument, size_t nbytes, void *low)
{
	int ret;

	memcpy(low, argument, nbytes);
	ret = call_as_32_bit(IA32_IOCTL, ctx, command, (uintptr_t)low);
	memcpy(argument, low, nbytes);
	return ret;
}

TEST_F(compat, buffer_is_created_and_queried)
{
	struct devbuf_create create = create_argument(SYSTEM_DEVICE, 5 * GIB, 0);
	struct devbuf_query q = { .size = sizeof(q) };

	create.dtype = 0x80706050;
	ASSERT_EQ(0, do_compat(self->ctx, DEVBUF_CREATE, &create, sizeof(create), self->low));
	q.id = create.out_id;
	ASSERT_EQ(0, do_compat(self->ctx, DEVBUF_QUERY, &q, sizeof(q), self->low));
	EXPECT_EQ(5 * GIB, q.out_nbytes);
	EXPECT_EQ(0x80706050, q.out_dtype);
	EXPECT_STREQ(SYSTEM_DEVICE, (char *)q.out_device);
}

TEST_F(compat, bytes_are_copied)
{
	__u64 id = new_allocated(self->ctx, NBYTES);
	struct devbuf_copy_range *range = (void *)(self->low + 1024);
	struct devbuf_copy copy = {
		.size = sizeof(copy),
		.ranges = (uintptr_t)range,
		.nr_ranges = 1,
	};

	*range = (struct devbuf_copy_range){
		.id = id,
		.user_addr = (uintptr_t)self->low + PAGE,
		.nbytes = NBYTES,
	};
	fill(self->low + PAGE, NBYTES, 1);
	EXPECT_EQ(0, do_compat(self->ctx, DEVBUF_COPYIN, &copy, sizeof(copy), self->low));
	EXPECT_EQ(NBYTES, copy.out_done_nbytes);
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 1));
	memset(self->low + PAGE, 0, NBYTES);
	EXPECT_EQ(0, do_compat(self->ctx, DEVBUF_COPYOUT, &copy, sizeof(copy), self->low));
	EXPECT_TRUE(filled(self->low + PAGE, NBYTES, 1));
}

TEST_F(compat, errors_are_the_same)
{
	struct devbuf_id argument = { .size = sizeof(argument), .id = UINT64_MAX };

	EXPECT_EQ(-ENOENT,
		  do_compat(self->ctx, DEVBUF_DESTROY, &argument, sizeof(argument), self->low));
	argument.size--;
	EXPECT_EQ(-EINVAL,
		  do_compat(self->ctx, DEVBUF_DESTROY, &argument, sizeof(argument), self->low));
	EXPECT_EQ(-ENOTTY, call_as_32_bit(IA32_IOCTL, self->ctx, 0xbdff, 0));
	EXPECT_EQ(-EFAULT, call_as_32_bit(IA32_IOCTL, self->ctx, DEVBUF_QUERY, 0));
}

TEST_HARNESS_MAIN
