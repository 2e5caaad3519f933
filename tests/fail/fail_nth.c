// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every point at which an operation of the driver can run out of memory or meet a bad page: the
 * kernel is told to fail the 1st, 2nd, 3rd... allocation or user access of one system call, until
 * the call succeeds without one having failed. Each failure must give an errno of the ABI and leave
 * everything as it was; what it may have leaked is found by the VM runner (kmemleak, rmmod).
 *
 * Needs a kernel with fault injection; tests/vm/init sets it up.
 */
#include "../uapi/common.h"

#include <linux/dma-buf.h>

#include "kselftest_harness.h"

#define FAIL_NTH   "/proc/thread-self/fail-nth"
#define MAX_POINTS 2000
#define NBYTES     (5 * 4096)
#define NR_RANGES  6

/* All of them, over the tests' processes; told when the first of these ends. */
static long *total_points;
static pid_t first_process;

__attribute__((constructor)) static void share_total(void)
{
	first_process = getpid();
	total_points = mmap(NULL, sizeof(*total_points), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

__attribute__((destructor)) static void tell_total(void)
{
	if (getpid() == first_process)
		printf("# %ld points in all\n", *total_points);
}

FIXTURE(fail_nth)
{
	int fail_nth;
	int ctx, other;
	/* Allocated; and a view of it, allocated too. */
	__u64 base, view;
	/* Not allocated: a base, a view of a base, and what is special about memory. */
	__u64 idle, idle_view, uncached, user, kept;
	/* A dma-buf of @base, for reading. */
	int dmabuf;
	unsigned char *memory;
	void *map;

	/* What an operation has made, for its undo. */
	__u64 made;
	int made_fd;
	void *made_map;
};

/**
 * struct operation - what is swept
 * @name: for people
 * @prepare: before each try; may be NULL
 * @run: one system call, 0 or a negative errno
 * @undo: after success; may be NULL
 */
struct operation {
	const char *name;
	void (*prepare)(FIXTURE_DATA(fail_nth) *self);
	int (*run)(FIXTURE_DATA(fail_nth) *self);
	void (*undo)(FIXTURE_DATA(fail_nth) *self);
};

/* What no failure may change. */
struct state {
	long long handles, other_handles, allocated;
	__u32 states[5];
	int open_files;
};

FIXTURE_SETUP(fail_nth)
{
	self->fail_nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	if (self->fail_nth < 0)
		SKIP(return, "this kernel has no fault injection (" FAIL_NTH ")");
	self->ctx = new_context();
	self->other = new_context();
	self->memory = new_memory(NBYTES + 4096);
	self->base = new_allocated(self->ctx, NBYTES);
	self->view = new_allocated_view(self->ctx, self->base, 4096, 4096);
	self->idle = new_buffer(self->ctx, NBYTES);
	self->idle_view = new_view(self->ctx, new_buffer(self->ctx, NBYTES), 100, 100);
	must(do_create(self->ctx, SYSTEM_DEVICE, NBYTES, DEVBUF_CREATE_UNCACHED, &self->uncached));
	must(do_create(self->ctx, SYSTEM_DEVICE, NBYTES, DEVBUF_CREATE_REUSE, &self->kept));
	must(do_create_user(self->ctx, self->memory + 5, NBYTES, &self->user));
	self->dmabuf = new_export(self->ctx, self->base, 0);
	self->map = new_mapping(self->ctx, self->base, NBYTES, PROT_READ | PROT_WRITE);
}

FIXTURE_TEARDOWN(fail_nth)
{
	close(self->dmabuf);
	close(self->other);
	close(self->ctx);
	close(self->fail_nth);
}

/* --- the sweep -------------------------------------------------------------------------------- */

static struct state state_of(FIXTURE_DATA(fail_nth) *self)
{
	const __u64 ids[] = { self->base, self->view, self->idle, self->idle_view, self->kept };
	struct state state = {
		.handles = fdinfo(self->ctx, "devbuf-handles"),
		.other_handles = fdinfo(self->other, "devbuf-handles"),
		.allocated = fdinfo(self->ctx, "devbuf-allocated-nbytes"),
		.open_files = nr_open_files(),
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		state.states[i] = query(self->ctx, ids[i]).out_state;
	return state;
}

/* The @nth point from here on will fail. */
static void arm(FIXTURE_DATA(fail_nth) *self, int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", nth);

	must_libc(pwrite(self->fail_nth, text, length, 0));
}

/*
 * Disarms; was the point reached, and so failed? If not, it is still ahead, and may be met by what
 * we do here ourselves: then it is spent, and the next try succeeds.
 */
static bool was_reached(FIXTURE_DATA(fail_nth) *self)
{
	char text[16] = { 0 };

	if (pread(self->fail_nth, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0)
		return true;
	if (pwrite(self->fail_nth, "0", 1, 0) < 0)
		must_libc(pwrite(self->fail_nth, "0", 1, 0));
	return false;
}

static bool is_expected(int ret)
{
	return ret == -ENOMEM || ret == -EFAULT || ret == -EMFILE || ret == -ENFILE;
}

static void check_failure(struct __test_metadata *_metadata, FIXTURE_DATA(fail_nth) *self,
			  const char *name, int point, int ret, const struct state *before)
{
	struct state after = state_of(self);

	EXPECT_TRUE(is_expected(ret))
	{
		TH_LOG("%s: point %d gave %d (%s)", name, point, ret, strerror(-ret));
	}
	EXPECT_EQ(0, memcmp(before, &after, sizeof(after)))
	{
		TH_LOG("%s: point %d (%d) changed something: handles %lld to %lld and %lld to %lld, "
		       "bytes %lld to %lld, files %d to %d",
		       name, point, ret, before->handles, after.handles, before->other_handles,
		       after.other_handles, before->allocated, after.allocated, before->open_files,
		       after.open_files);
	}
}

static void sweep(struct __test_metadata *_metadata, FIXTURE_DATA(fail_nth) *self,
		  const struct operation *operation)
{
	bool reached = true;
	int failed = 0, point, ret;

	for (point = 0; reached && point < MAX_POINTS; point++) {
		struct state before;

		if (operation->prepare)
			operation->prepare(self);
		memset(&before, 0, sizeof(before));
		before = state_of(self);
		arm(self, point + 1);
		ret = operation->run(self);
		reached = was_reached(self);
		if (ret < 0) {
			failed++;
			check_failure(_metadata, self, operation->name, point + 1, ret, &before);
		} else if (operation->undo) {
			operation->undo(self);
		}
	}
	EXPECT_FALSE(reached)
	{
		TH_LOG("%s: still failing at point %d", operation->name, point);
	}
	EXPECT_EQ(0, ret);
	point--;
	printf("# %s: %d points, %d of them failures\n", operation->name, point, failed);
	fflush(stdout);
	__atomic_fetch_add(total_points, point, __ATOMIC_RELAXED);
}

/* A test that sweeps one operation, whose functions are given as for struct operation. */
#define SWEEP(_name, ...)                                                                          \
	TEST_F(fail_nth, _name)                                                                    \
	{                                                                                          \
		const struct operation operation = { .name = #_name, __VA_ARGS__ };                \
                                                                                                   \
		sweep(_metadata, self, &operation);                                                \
	}

/* --- ids -------------------------------------------------------------------------------------- */

static int run_open(FIXTURE_DATA(fail_nth) *self)
{
	self->made_fd = open("/dev/devbuf", O_RDWR | O_CLOEXEC);
	return self->made_fd < 0 ? -errno : 0;
}

static void undo_fd(FIXTURE_DATA(fail_nth) *self)
{
	close(self->made_fd);
}

static int run_info(FIXTURE_DATA(fail_nth) *self)
{
	struct devbuf_info info = { .size = sizeof(info) };

	return do_command(self->ctx, DEVBUF_INFO, &info);
}

static int run_device_info(FIXTURE_DATA(fail_nth) *self)
{
	struct devbuf_device_info info = { .size = sizeof(info) };

	return do_command(self->ctx, DEVBUF_DEVICE_INFO, &info);
}

static int run_create(FIXTURE_DATA(fail_nth) *self)
{
	return do_create(self->ctx, SYSTEM_DEVICE, NBYTES, 0, &self->made);
}

static int run_view(FIXTURE_DATA(fail_nth) *self)
{
	return do_view(self->ctx, self->view, 10, 100, &self->made);
}

static void undo_made(FIXTURE_DATA(fail_nth) *self)
{
	must(do_destroy(self->ctx, self->made));
}

static int run_query(FIXTURE_DATA(fail_nth) *self)
{
	struct devbuf_query argument;

	return do_query(self->ctx, self->base, &argument);
}

static int run_set_name(FIXTURE_DATA(fail_nth) *self)
{
	return do_set_name(self->ctx, self->base, "swept");
}

SWEEP(open, .run = run_open, .undo = undo_fd)
SWEEP(info, .run = run_info)
SWEEP(device_info, .run = run_device_info)
SWEEP(create, .run = run_create, .undo = undo_made)
SWEEP(view, .run = run_view, .undo = undo_made)
SWEEP(query, .run = run_query)
SWEEP(set_name, .run = run_set_name)

/* --- memory ----------------------------------------------------------------------------------- */

/* ALLOCATE of the buffer that the fixture's member names, and what undoes it. */
#define ALLOCATE_OF(_member)                                                                       \
	static int run_allocate_##_member(FIXTURE_DATA(fail_nth) *self)                            \
	{                                                                                          \
		return do_allocate(self->ctx, self->_member);                                      \
	}                                                                                          \
                                                                                                   \
	static void undo_allocate_##_member(FIXTURE_DATA(fail_nth) *self)                          \
	{                                                                                          \
		must(do_deallocate(self->ctx, self->_member));                                     \
	}                                                                                          \
                                                                                                   \
	SWEEP(allocate_##_member, .run = run_allocate_##_member, .undo = undo_allocate_##_member)

ALLOCATE_OF(idle)
ALLOCATE_OF(uncached)
ALLOCATE_OF(user)
ALLOCATE_OF(kept)

static int run_allocate_view(FIXTURE_DATA(fail_nth) *self)
{
	return do_allocate(self->ctx, self->idle_view);
}

/* And its base, which was allocated with it. */
static void undo_allocate_view(FIXTURE_DATA(fail_nth) *self)
{
	must(do_deallocate(self->ctx, self->idle_view));
	must(do_deallocate(self->ctx, query(self->ctx, self->idle_view).out_base_id));
}

static void prepare_kept(FIXTURE_DATA(fail_nth) *self)
{
	must(do_allocate_flags(self->ctx, self->kept, DEVBUF_ALLOCATE_IF_NEEDED));
}

static int run_deallocate(FIXTURE_DATA(fail_nth) *self)
{
	return do_deallocate(self->ctx, self->kept);
}

static void prepare_destroy(FIXTURE_DATA(fail_nth) *self)
{
	self->made = new_allocated_flags(self->ctx, NBYTES, DEVBUF_CREATE_REUSE);
}

static int run_destroy(FIXTURE_DATA(fail_nth) *self)
{
	return do_destroy(self->ctx, self->made);
}

SWEEP(allocate_view_and_base, .run = run_allocate_view, .undo = undo_allocate_view)
SWEEP(deallocate, .prepare = prepare_kept, .run = run_deallocate)
SWEEP(destroy, .prepare = prepare_destroy, .run = run_destroy)

/* --- copies ----------------------------------------------------------------------------------- */

static int run_copies(FIXTURE_DATA(fail_nth) *self, unsigned long command, __u32 nr)
{
	struct devbuf_copy_range ranges[NR_RANGES];

	for (__u32 i = 0; i < nr; i++)
		ranges[i] = (struct devbuf_copy_range){
			.id = i % 2 ? self->view : self->base,
			.offset = i,
			.user_addr = (uintptr_t)self->memory + i,
			.nbytes = 4000,
		};
	return do_copy_ranges(self->ctx, command, ranges, nr, NULL);
}

static int run_copyin(FIXTURE_DATA(fail_nth) *self)
{
	return run_copies(self, DEVBUF_COPYIN, 1);
}

static int run_copyin_many(FIXTURE_DATA(fail_nth) *self)
{
	return run_copies(self, DEVBUF_COPYIN, NR_RANGES);
}

static int run_copyout(FIXTURE_DATA(fail_nth) *self)
{
	return run_copies(self, DEVBUF_COPYOUT, 1);
}

static int run_copyout_many(FIXTURE_DATA(fail_nth) *self)
{
	return run_copies(self, DEVBUF_COPYOUT, NR_RANGES);
}

static int run_transfer_many(FIXTURE_DATA(fail_nth) *self)
{
	struct devbuf_transfer transfer = { .size = sizeof(transfer) };
	struct devbuf_transfer_range ranges[NR_RANGES];

	for (int i = 0; i < NR_RANGES; i++)
		ranges[i] = (struct devbuf_transfer_range){
			.dst_id = self->base,
			.dst_offset = i,
			.src_id = self->view,
			.nbytes = 4096,
		};
	return do_transfer_ranges(self->ctx, &transfer, ranges, NR_RANGES);
}

static int run_transfer(FIXTURE_DATA(fail_nth) *self)
{
	return do_transfer(self->ctx, self->base, 0, self->view, 0, 4096);
}

static int run_path(FIXTURE_DATA(fail_nth) *self)
{
	struct devbuf_path path = {
		.size = sizeof(path),
		.dst_id = self->base,
		.src_id = self->view,
	};

	return do_command(self->ctx, DEVBUF_PATH, &path);
}

static int run_sync(FIXTURE_DATA(fail_nth) *self)
{
	return do_sync(self->ctx, self->base, 0, NBYTES, DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE);
}

SWEEP(copyin, .run = run_copyin)
SWEEP(copyin_of_many_ranges, .run = run_copyin_many)
SWEEP(copyout, .run = run_copyout)
SWEEP(copyout_of_many_ranges, .run = run_copyout_many)
SWEEP(transfer, .run = run_transfer)
SWEEP(transfer_of_many_ranges, .run = run_transfer_many)
SWEEP(path, .run = run_path)
SWEEP(sync, .run = run_sync)

/* --- mappings --------------------------------------------------------------------------------- */

static int run_map(FIXTURE_DATA(fail_nth) *self)
{
	return do_map(self->ctx, self->base, NBYTES, PROT_READ | PROT_WRITE, &self->made_map);
}

/* The first mapping of a storage makes its pseudo-file. */
static void prepare_first_map(FIXTURE_DATA(fail_nth) *self)
{
	if (self->map)
		munmap(self->map, NBYTES);
	self->map = NULL;
}

static void undo_map(FIXTURE_DATA(fail_nth) *self)
{
	munmap(self->made_map, NBYTES);
}

static int run_map_dmabuf(FIXTURE_DATA(fail_nth) *self)
{
	self->made_map = mmap(NULL, NBYTES, PROT_READ, MAP_SHARED, self->dmabuf, 0);
	return self->made_map == MAP_FAILED ? -errno : 0;
}

SWEEP(first_map, .prepare = prepare_first_map, .run = run_map, .undo = undo_map)
SWEEP(map, .run = run_map, .undo = undo_map)
SWEEP(map_dmabuf, .run = run_map_dmabuf, .undo = undo_map)

/* --- dma-bufs --------------------------------------------------------------------------------- */

static int run_export(FIXTURE_DATA(fail_nth) *self)
{
	self->made_fd = do_export(self->ctx, self->view, DEVBUF_EXPORT_WRITE);
	return self->made_fd < 0 ? self->made_fd : 0;
}

/* Forgets the export that the driver remembers. */
static void undo_export(FIXTURE_DATA(fail_nth) *self)
{
	close(self->made_fd);
	must(do_deallocate(self->ctx, self->view));
	must(do_allocate(self->ctx, self->view));
}

static int run_export_again(FIXTURE_DATA(fail_nth) *self)
{
	self->made_fd = do_export(self->ctx, self->base, 0);
	return self->made_fd < 0 ? self->made_fd : 0;
}

static int run_import(FIXTURE_DATA(fail_nth) *self)
{
	return do_import(self->other, self->dmabuf, &self->made);
}

static void undo_import(FIXTURE_DATA(fail_nth) *self)
{
	must(do_destroy(self->other, self->made));
}

static void prepare_import_again(FIXTURE_DATA(fail_nth) *self)
{
	if (fdinfo(self->other, "devbuf-handles") == 0)
		new_import(self->other, self->dmabuf);
}

SWEEP(export, .run = run_export, .undo = undo_export)
SWEEP(export_again, .run = run_export_again, .undo = undo_fd)
SWEEP(import, .run = run_import, .undo = undo_import)
SWEEP(import_again, .prepare = prepare_import_again, .run = run_import, .undo = undo_import)

/* An importer: vgem attaches to the dma-buf, and maps it for DMA. */

struct drm_prime_handle {
	__u32 handle, flags;
	__s32 fd;
};

struct drm_gem_close {
	__u32 handle, pad;
};

#define DRM_IOCTL_GEM_CLOSE          _IOW('d', 0x09, struct drm_gem_close)
#define DRM_IOCTL_PRIME_FD_TO_HANDLE _IOWR('d', 0x2e, struct drm_prime_handle)

static int vgem = -1, writable_dmabuf = -1;

static void prepare_attach(FIXTURE_DATA(fail_nth) *self)
{
	if (writable_dmabuf < 0)
		writable_dmabuf = new_export(self->ctx, self->base, DEVBUF_EXPORT_WRITE);
}

static int run_attach(FIXTURE_DATA(fail_nth) *self)
{
	struct drm_prime_handle prime = { .fd = writable_dmabuf };

	if (ioctl(vgem, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime) < 0)
		return -errno;
	self->made = prime.handle;
	return 0;
}

static void undo_attach(FIXTURE_DATA(fail_nth) *self)
{
	struct drm_gem_close argument = { .handle = self->made };

	must_libc(ioctl(vgem, DRM_IOCTL_GEM_CLOSE, &argument));
}

TEST_F(fail_nth, attach)
{
	const struct operation operation = {
		.name = "attach",
		.prepare = prepare_attach,
		.run = run_attach,
		.undo = undo_attach,
	};

	vgem = open("/dev/dri/card0", O_RDWR | O_CLOEXEC);
	if (vgem < 0)
		SKIP(return, "the module vgem is not loaded: no /dev/dri/card0");
	sweep(_metadata, self, &operation);
}

TEST_HARNESS_MAIN
