// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another driver at the other end of a dma-buf: vgem, a GPU without hardware. It attaches and maps
 * what it imports, exports buffers of its own, and has fences that userspace signals.
 * Needs the module vgem.
 */
#include "common.h"

#include <linux/dma-buf.h>

#include "kselftest_harness.h"

/* --- the parts of the DRM ABI that are used here ---------------------------------------------- */

struct drm_version {
	int version[3];
	size_t name_len;
	char *name;
	size_t date_len;
	char *date;
	size_t desc_len;
	char *desc;
};

struct drm_gem_close {
	__u32 handle, pad;
};

struct drm_prime_handle {
	__u32 handle, flags;
	__s32 fd;
};

struct drm_mode_create_dumb {
	__u32 height, width, bpp, flags, handle, pitch;
	__u64 size;
};

struct drm_vgem_fence_attach {
	__u32 handle, flags, out_fence, pad;
};

struct drm_vgem_fence_signal {
	__u32 fence, flags;
};

#define DRM_IOCTL_VERSION            _IOWR('d', 0x00, struct drm_version)
#define DRM_IOCTL_GEM_CLOSE          _IOW('d', 0x09, struct drm_gem_close)
#define DRM_IOCTL_PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct drm_prime_handle)
#define DRM_IOCTL_PRIME_FD_TO_HANDLE _IOWR('d', 0x2e, struct drm_prime_handle)
#define DRM_IOCTL_VGEM_FENCE_ATTACH  _IOWR('d', 0x41, struct drm_vgem_fence_attach)
#define DRM_IOCTL_VGEM_FENCE_SIGNAL  _IOW('d', 0x42, struct drm_vgem_fence_signal)
#define DRM_IOCTL_MODE_CREATE_DUMB   _IOWR('d', 0xb2, struct drm_mode_create_dumb)
#define VGEM_FENCE_WRITE             1
#define DRM_RDWR                     O_RDWR

static bool is_vgem(int card)
{
	char name[5] = { 0 };
	struct drm_version version = { .name_len = 4, .name = name };

	return !ioctl(card, DRM_IOCTL_VERSION, &version) && !strcmp(name, "vgem");
}

/* -1 when there is none. */
static int open_vgem(void)
{
	char path[32];

	for (int i = 0; i < 8; i++) {
		int card;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		card = open(path, O_RDWR | O_CLOEXEC);
		if (card >= 0 && is_vgem(card))
			return card;
		close(card);
	}
	return -1;
}

static int vgem_import(int card, int dma_buf, __u32 *handle)
{
	struct drm_prime_handle prime = { .fd = dma_buf };
	int ret = ioctl(card, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime) < 0 ? -errno : 0;

	*handle = prime.handle;
	return ret;
}

static int vgem_export(int card, __u32 handle)
{
	struct drm_prime_handle prime = { .handle = handle, .flags = O_CLOEXEC | DRM_RDWR };

	must_libc(ioctl(card, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime));
	return prime.fd;
}

static void vgem_close(int card, __u32 handle)
{
	struct drm_gem_close argument = { .handle = handle };

	must_libc(ioctl(card, DRM_IOCTL_GEM_CLOSE, &argument));
}

static __u32 vgem_attach_fence(int card, __u32 handle, __u32 flags)
{
	struct drm_vgem_fence_attach attach = { .handle = handle, .flags = flags };

	must_libc(ioctl(card, DRM_IOCTL_VGEM_FENCE_ATTACH, &attach));
	return attach.out_fence;
}

static void vgem_signal_fence(int card, __u32 fence)
{
	struct drm_vgem_fence_signal signal = { .fence = fence };

	must_libc(ioctl(card, DRM_IOCTL_VGEM_FENCE_SIGNAL, &signal));
}

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
	if (self->card < 0)
		SKIP(return, "the module vgem is not loaded");
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, NBYTES);
	buffer_fill(self->ctx, self->id, NBYTES, 1);
}

FIXTURE_TEARDOWN(vgem)
{
	close(self->ctx);
	close(self->card);
}

static __u32 import_export(int card, int ctx, __u64 id)
{
	int fd = new_export(ctx, id, DEVBUF_EXPORT_WRITE);
	__u32 handle;

	must(vgem_import(card, fd, &handle));
	close(fd);
	return handle;
}

TEST_F(vgem, imports_a_writable_export)
{
	__u32 handle = import_export(self->card, self->ctx, self->id);

	vgem_close(self->card, handle);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));
}

TEST_F(vgem, imports_many_views_of_one_base)
{
	__u32 handles[16];

	for (size_t i = 0; i < ARRAY_SIZE(handles); i++) {
		__u64 view = new_allocated_view(self->ctx, self->id, i * 5000, 7000);

		handles[i] = import_export(self->card, self->ctx, view);
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
	int back = vgem_export(self->card, import_export(self->card, self->ctx, self->id));
	int other = new_context();

	EXPECT_EQ(inode_of(fd), inode_of(back));
	EXPECT_EQ(self->id, new_import(other, back));
	EXPECT_TRUE(buffer_filled(other, self->id, 0, NBYTES, 1));
	close(other);
}

TEST_F(vgem, holds_the_memory_when_everything_else_is_gone)
{
	__u32 handle = import_export(self->card, self->ctx, self->id);
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
	import_export(self->card, self->ctx, self->id);
	EXPECT_EQ(0, do_sync(self->ctx, self->id, 0, 100, DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE));
	EXPECT_EQ(0, do_sync(self->ctx, self->id, 0, 100,
			     DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE | DEVBUF_SYNC_END));
}

TEST_F(vgem, memory_that_it_has_imported_is_not_kept_for_reuse)
{
	__u64 id = new_allocated_flags(self->ctx, PAGE, DEVBUF_CREATE_REUSE);
	__u32 handle = import_export(self->card, self->ctx, id);

	buffer_fill(self->ctx, id, PAGE, 1);
	must(do_deallocate(self->ctx, id));
	EXPECT_EQ(0, do_allocate_flags(self->ctx, id, 0));
	EXPECT_TRUE(buffer_zero(self->ctx, id, 0, PAGE));
	vgem_close(self->card, handle);
}

/* --- export from the other driver ------------------------------------------------------------- */

TEST_F(vgem, its_own_buffers_are_EOPNOTSUPP)
{
	struct drm_mode_create_dumb dumb = { .height = 1, .width = PAGE / 4, .bpp = 32 };
	__u64 id;

	must_libc(ioctl(self->card, DRM_IOCTL_MODE_CREATE_DUMB, &dumb));
	EXPECT_EQ(-EOPNOTSUPP, do_import(self->ctx, vgem_export(self->card, dumb.handle), &id));
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
	if (self->card < 0)
		SKIP(return, "the module vgem is not loaded");
	self->ctx = new_context();
	self->id = new_allocated(self->ctx, PAGE);
	self->other = new_allocated(self->ctx, PAGE);
	self->handle = import_export(self->card, self->ctx, self->id);
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

	work.fence = vgem_attach_fence(self->card, import_export(self->card, self->ctx, view),
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

TEST_HARNESS_MAIN
