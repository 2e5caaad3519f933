/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A driver that is none: it expects commands in an order, compares every byte
 * of their arguments, and answers what the test says.
 *
 * ioctl() is defined here, so that the library's calls come here; so are open()
 * and madvise(), for what else can fail. The device node is a memfd, which can
 * be mapped.
 */
#ifndef DEVBUF_TESTS_UNIT_DRIVER_MOCK_H
#define DEVBUF_TESTS_UNIT_DRIVER_MOCK_H

#include "unit.h"

#include <linux/devbuf.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define MAX_STEPS 64

/* One command that is expected, and its answer. */
struct step {
	unsigned long command;
	size_t nbytes;
	unsigned char expected[256];
	unsigned char reply[256]; /* the argument afterwards, if there is one */
	bool replies;
	int error;
	struct devbuf_copy_range copy; /* what COPYIN's or COPYOUT's ranges point at */
	bool user_addr_any; /* wherever their memory is */
	struct devbuf_transfer_range transfer; /* TRANSFER's */
};

static struct {
	struct step steps[MAX_STEPS];
	int nr_steps, done;
	int surprises;
	bool fail_madvise;
	int node;
} mock;

static inline struct step *expect_bytes(unsigned long command, const void *expected, size_t nbytes,
					int error, const void *reply)
{
	struct step *s = &mock.steps[mock.nr_steps++];

	if (mock.nr_steps > MAX_STEPS || nbytes > sizeof(s->expected))
		abort();
	memset(s, 0, sizeof(*s));
	s->command = command;
	s->nbytes = nbytes;
	s->error = error;
	memcpy(s->expected, expected, nbytes);
	if (reply) {
		memcpy(s->reply, reply, nbytes);
		s->replies = true;
	}
	return s;
}

/* @expected and @reply are pointers to the command's struct; @reply may be NULL. */
#define expect(command, expected, error, reply) \
	expect_bytes((command), (expected), sizeof(*(expected)), (error), (reply))

static inline void surprise(const char *what, unsigned long command)
{
	fprintf(stderr, "# mock: command %#lx: %s (step %d of %d)\n", command & 0xff, what,
		mock.done, mock.nr_steps);
	mock.surprises++;
}

/* Ranges are told by a pointer into the library's stack: compare what it points at. */
static inline void check_ranges(const struct step *s, unsigned char *argument)
{
	struct devbuf_copy *copy = (struct devbuf_copy *)argument; /* as devbuf_transfer begins */
	const void *ranges = (const void *)(uintptr_t)copy->ranges;

	if (s->command == DEVBUF_COPYIN || s->command == DEVBUF_COPYOUT) {
		struct devbuf_copy_range range;

		memcpy(&range, ranges, sizeof(range));
		if (s->user_addr_any)
			range.user_addr = s->copy.user_addr;
		if (memcmp(&range, &s->copy, sizeof(range)))
			surprise("another range", s->command);
		copy->ranges = 0;
	} else if (s->command == DEVBUF_TRANSFER) {
		if (memcmp(ranges, &s->transfer, sizeof(s->transfer)))
			surprise("another range", s->command);
		copy->ranges = 0;
	}
}

static inline void check_argument(const struct step *s, const void *argument)
{
	unsigned char seen[sizeof(s->expected)];

	memcpy(seen, argument, s->nbytes);
	check_ranges(s, seen);
	for (size_t i = 0; i < s->nbytes; i++) {
		if (seen[i] != s->expected[i]) {
			fprintf(stderr, "# byte %zu is %#x, not %#x\n", i, seen[i], s->expected[i]);
			surprise("another argument", s->command);
			return;
		}
	}
}

/* What was told by a pointer stays where it is. */
static inline void answer(const struct step *s, void *argument)
{
	struct devbuf_copy *copy = argument;
	__u64 ranges = s->copy.nbytes || s->transfer.nbytes ? copy->ranges : 0;

	memcpy(argument, s->reply, s->nbytes);
	if (ranges)
		copy->ranges = ranges;
}

int ioctl(int fd, unsigned long command, ...)
{
	const struct step *s;
	va_list args;
	void *argument;

	va_start(args, command);
	argument = va_arg(args, void *);
	va_end(args);
	if (_IOC_TYPE(command) != DEVBUF_IOC_TYPE)
		return (int)syscall(SYS_ioctl, fd, command, argument);

	if (mock.done >= mock.nr_steps || mock.steps[mock.done].command != command) {
		surprise("not expected", command);
		errno = ENOTTY;
		return -1;
	}
	s = &mock.steps[mock.done++];
	check_argument(s, argument);
	if (s->replies)
		answer(s, argument);
	errno = s->error;
	return s->error ? -1 : 0;
}

/* "/mock/13" cannot be opened, with that errno. */
int open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	if (!strncmp(path, "/mock/", 6)) {
		errno = atoi(path + 6);
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int madvise(void *addr, size_t length, int advice)
{
	if (mock.fail_madvise && advice == MADV_WIPEONFORK) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, addr, length, advice);
}

/* --- what most tests begin with --------------------------------------------------------------- */

static inline void expect_info_with(__u64 features)
{
	struct devbuf_info info = { .size = sizeof(info) }, reply = info;

	reply.out_abi_version = DEVBUF_ABI_VERSION;
	reply.out_features = features;
	reply.out_max_ranges = DEVBUF_MAX_RANGES;
	reply.out_page_size = (__u32)sysconf(_SC_PAGESIZE);
	memcpy(reply.out_instance, "instance of mock", 16);
	expect(DEVBUF_INFO, &info, 0, &reply);
}

static inline void expect_info(void)
{
	expect_info_with(0);
}

/* Another connection, to a driver with these DEVBUF_FEATURE_* bits. */
static inline int open_mock_with(__u64 features, struct devbuf_allocator **out)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", mock.node);
	expect_info_with(features);
	return devbuf_driver_open(path, out);
}

static inline int open_mock(struct devbuf_allocator **out)
{
	memset(&mock, 0, sizeof(mock));
	mock.node = memfd_create("mock", MFD_CLOEXEC);
	return open_mock_with(0, out);
}

static inline void expect_device(__u64 cursor, const char *name, __u64 caps)
{
	struct devbuf_device_info info = { .size = sizeof(info) }, reply;

	/* The library asks again with what it got, its cursor moved on. */
	if (cursor) {
		const struct step *last = &mock.steps[mock.nr_steps - 1];

		memcpy(&info, last->reply, sizeof(info));
		info.cursor = cursor;
	}
	reply = info;
	reply.out_cursor = cursor + 10;
	reply.out_caps = caps;
	memset(reply.out_name, 0, sizeof(reply.out_name));
	if (name)
		memcpy(reply.out_name, name, strlen(name));
	expect(DEVBUF_DEVICE_INFO, &info, name ? 0 : ENODEV, name ? &reply : NULL);
}

#define SYSTEM_CAPS                                                                  \
	(DEVBUF_CAP_VIEWS | DEVBUF_CAP_TRANSFER | DEVBUF_CAP_COPY | DEVBUF_CAP_MAP | \
	 DEVBUF_CAP_EXPORT | DEVBUF_CAP_UNCACHED | DEVBUF_CAP_REUSE)

static inline void expect_devices(void)
{
	expect_device(0, "SYSTEM:0", SYSTEM_CAPS);
	expect_device(10, "USER:0", DEVBUF_CAP_COPY | DEVBUF_CAP_VIEWS | DEVBUF_CAP_EXTERNAL);
	expect_device(20, NULL, 0);
}

static inline __u32 dtype_bytes(devbuf_dtype dtype)
{
	__u32 bytes;

	memcpy(&bytes, &dtype, sizeof(bytes));
	return bytes;
}

static inline struct devbuf_create create_of(const char *device, __u64 nbytes, devbuf_dtype dtype)
{
	struct devbuf_create create = {
		.size = sizeof(create),
		.nbytes = nbytes,
		.dtype = dtype_bytes(dtype),
	};

	memcpy(create.device, device, strlen(device));
	return create;
}

static inline void expect_create(struct devbuf_create create, int error, __u64 id)
{
	struct devbuf_create reply = create;

	reply.out_id = id;
	expect(DEVBUF_CREATE, &create, error, &reply);
}

/* A command of which the argument is an id alone. */
static inline void expect_id(unsigned long command, __u64 id, int error)
{
	struct devbuf_id argument = { .size = sizeof(argument), .id = id };

	expect(command, &argument, error, NULL);
}

static inline void expect_allocate(__u64 id, int error)
{
	struct devbuf_allocate argument = { .size = sizeof(argument), .id = id };

	expect(DEVBUF_ALLOCATE, &argument, error, NULL);
}

static inline void expect_view(__u64 id, __u64 offset, __u64 nbytes, devbuf_dtype dtype, int error,
			       __u64 out_id)
{
	struct devbuf_view view = {
		.size = sizeof(view),
		.id = id,
		.offset = offset,
		.nbytes = nbytes,
		.dtype = dtype_bytes(dtype),
	};
	struct devbuf_view reply = view;

	reply.out_id = out_id;
	expect(DEVBUF_VIEW, &view, error, &reply);
}

/* What is not said in @reply is zero, except for what a query always tells. */
static inline void expect_query(__u64 id, int error, struct devbuf_query reply)
{
	struct devbuf_query query = { .size = sizeof(query), .id = id };

	reply.size = sizeof(reply);
	reply.id = id;
	expect(DEVBUF_QUERY, &query, error, &reply);
}

static inline void expect_state(__u64 id, __u32 state)
{
	expect_query(id, 0, (struct devbuf_query){ .out_state = state });
}

static inline struct step *expect_copy(unsigned long command, __u64 id, __u64 offset,
				       const void *memory, __u64 nbytes, int error, __u64 done)
{
	struct devbuf_copy copy = { .size = sizeof(copy), .nr_ranges = 1 }, reply = copy;
	struct step *s;

	reply.out_done_nbytes = done;
	s = expect(command, &copy, error, &reply);
	s->copy = (struct devbuf_copy_range){
		.id = id, .offset = offset, .user_addr = (uintptr_t)memory, .nbytes = nbytes
	};
	return s;
}

static inline void expect_transfer(struct devbuf_transfer_range range, __u32 flags, int error,
				   __u32 path)
{
	struct devbuf_transfer transfer = { .size = sizeof(transfer),
					    .flags = flags,
					    .nr_ranges = 1 };
	struct devbuf_transfer reply = transfer;

	reply.out_path = path;
	expect(DEVBUF_TRANSFER, &transfer, error, &reply)->transfer = range;
}

/* A buffer of bytes on SYSTEM:0, the first on its connection. */
static inline struct devbuf *new_mocked(struct devbuf_allocator *a, __u64 nbytes, __u64 id)
{
	struct devbuf *b = NULL;

	expect_devices();
	expect_create(create_of("SYSTEM:0", nbytes, DEVBUF_UINT8), 0, id);
	devbuf_create(a, "SYSTEM", nbytes, DEVBUF_UINT8, NULL, &b);
	return b;
}

static inline struct devbuf *next_mocked(struct devbuf_allocator *a, __u64 nbytes, __u64 id)
{
	struct devbuf *b = NULL;

	expect_create(create_of("SYSTEM:0", nbytes, DEVBUF_UINT8), 0, id);
	devbuf_create(a, "SYSTEM", nbytes, DEVBUF_UINT8, NULL, &b);
	return b;
}

static inline struct devbuf *view_mocked(struct devbuf *b, __u64 offset, __u64 nbytes, __u64 id)
{
	struct devbuf *v = NULL;

	expect_view(devbuf_id(b), offset, nbytes, DEVBUF_UINT8, 0, id);
	devbuf_view(b, nbytes, DEVBUF_UINT8, (int64_t)offset, &v);
	return v;
}

static inline void unref_mocked(struct devbuf *b)
{
	expect_id(DEVBUF_DESTROY, devbuf_id(b), 0);
	devbuf_unref(b);
}

/* A connection to the mock, which gets what it expects, and no more. */
FIXTURE(driver)
{
	struct devbuf_allocator *a;
	size_t page;
};

FIXTURE_SETUP(driver)
{
	remember_memory();
	self->page = (size_t)sysconf(_SC_PAGESIZE);
	ASSERT_OK(open_mock(&self->a));
}

FIXTURE_TEARDOWN(driver)
{
	devbuf_allocator_unref(self->a);
	EXPECT_EQ(0, mock.surprises);
	EXPECT_EQ(mock.nr_steps, mock.done);
	close(mock.node);
	EXPECT_EQ(0, leaks_found());
}

#endif /* DEVBUF_TESTS_UNIT_DRIVER_MOCK_H */
