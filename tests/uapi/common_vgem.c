// SPDX-License-Identifier: GPL-2.0-only
/* vgem, a GPU without hardware, at the other end of a dma-buf. */
#include "common_vgem.h"

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
#define DRM_RDWR                     O_RDWR

static bool is_vgem(int card)
{
	char name[5] = { 0 };
	struct drm_version version = { .name_len = 4, .name = name };

	return !ioctl(card, DRM_IOCTL_VERSION, &version) && !strcmp(name, "vgem");
}

int open_vgem(void)
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

int vgem_import(int card, int dma_buf, __u32 *handle)
{
	struct drm_prime_handle prime = { .fd = dma_buf };
	int ret = ioctl(card, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime) < 0 ? -errno : 0;

	*handle = prime.handle;
	return ret;
}

__u32 vgem_create(int card)
{
	struct drm_mode_create_dumb dumb = { .height = 1, .width = PAGE / 4, .bpp = 32 };

	must_libc(ioctl(card, DRM_IOCTL_MODE_CREATE_DUMB, &dumb));
	return dumb.handle;
}

int vgem_export(int card, __u32 handle)
{
	struct drm_prime_handle prime = { .handle = handle, .flags = O_CLOEXEC | DRM_RDWR };

	must_libc(ioctl(card, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime));
	return prime.fd;
}

void vgem_close(int card, __u32 handle)
{
	struct drm_gem_close argument = { .handle = handle };

	must_libc(ioctl(card, DRM_IOCTL_GEM_CLOSE, &argument));
}

int do_vgem_attach_fence(int card, __u32 handle, __u32 flags)
{
	struct drm_vgem_fence_attach attach = { .handle = handle, .flags = flags };
	int ret = libc_result(ioctl(card, DRM_IOCTL_VGEM_FENCE_ATTACH, &attach));

	return ret ?: (int)attach.out_fence;
}

__u32 vgem_attach_fence(int card, __u32 handle, __u32 flags)
{
	return must(do_vgem_attach_fence(card, handle, flags));
}

void vgem_signal_fence(int card, __u32 fence)
{
	struct drm_vgem_fence_signal signal = { .fence = fence };
	int ret = libc_result(ioctl(card, DRM_IOCTL_VGEM_FENCE_SIGNAL, &signal));

	/* On a slow machine its time may be over; then it has ended already. */
	must(ret == -ETIMEDOUT ? 0 : ret);
}

__u32 vgem_import_export(int card, int ctx, __u64 id)
{
	int fd = new_export(ctx, id, DEVBUF_EXPORT_WRITE);
	__u32 handle;

	must(vgem_import(card, fd, &handle));
	close(fd);
	return handle;
}
