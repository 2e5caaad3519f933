// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "camera.h"

#define NODES            64 /* /dev/video0 to /dev/video63 */
#define FRAME_TIMEOUT_MS 5000

static int camera_ioctl(const struct camera *camera, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = ioctl(camera->fd, request, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

/* --- finding one --- */

static bool can_stream(struct camera *camera)
{
	const __u32 needed = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
	struct v4l2_capability cap = { 0 };

	if (camera_ioctl(camera, VIDIOC_QUERYCAP, &cap))
		return false;
	snprintf(camera->name, sizeof(camera->name), "%s", (const char *)cap.card);
	return (cap.device_caps & needed) == needed;
}

/* Leaves the size of the picture as it is, and changes nothing if there is no RGB. */
static bool set_rgb(struct camera *camera)
{
	struct v4l2_format format = { .type = V4L2_BUF_TYPE_VIDEO_CAPTURE };
	struct v4l2_pix_format *pix = &format.fmt.pix;

	if (camera_ioctl(camera, VIDIOC_G_FMT, &format))
		return false;
	pix->pixelformat = V4L2_PIX_FMT_RGB24;
	pix->field = V4L2_FIELD_NONE;
	pix->bytesperline = 0;
	pix->sizeimage = 0;
	if (camera_ioctl(camera, VIDIOC_TRY_FMT, &format) ||
	    pix->pixelformat != V4L2_PIX_FMT_RGB24 || camera_ioctl(camera, VIDIOC_S_FMT, &format))
		return false;
	camera->width = pix->width;
	camera->height = pix->height;
	camera->stride = pix->bytesperline;
	camera->nbytes = pix->sizeimage;
	return true;
}

int camera_open(struct camera *camera)
{
	int node;

	for (node = 0; node < NODES; node++) {
		snprintf(camera->path, sizeof(camera->path), "/dev/video%d", node);
		camera->fd = open(camera->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (camera->fd < 0)
			continue;
		if (can_stream(camera) && set_rgb(camera))
			return 0;
		close(camera->fd);
	}
	return -ENODEV;
}

void camera_close(struct camera *camera)
{
	close(camera->fd);
}

/* --- capture --- */

static int set_buffer_count(const struct camera *camera, unsigned int count)
{
	struct v4l2_requestbuffers request = {
		.count = count,
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = V4L2_MEMORY_DMABUF,
	};
	int ret = camera_ioctl(camera, VIDIOC_REQBUFS, &request);

	/* The camera may want more. */
	return ret ? ret : request.count == count ? 0 : -ENOBUFS;
}

/* Give the camera a buffer to fill. */
static int queue(const struct camera *camera, unsigned int index, int dmabuf)
{
	struct v4l2_buffer buffer = {
		.index = index,
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = V4L2_MEMORY_DMABUF,
		.m.fd = dmabuf,
	};

	return camera_ioctl(camera, VIDIOC_QBUF, &buffer);
}

/* Wait for a picture, and take its buffer back. */
static int dequeue(const struct camera *camera, unsigned int *index)
{
	struct pollfd ready = { .fd = camera->fd, .events = POLLIN };
	struct v4l2_buffer buffer = {
		.type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
		.memory = V4L2_MEMORY_DMABUF,
	};
	int ret = poll(&ready, 1, FRAME_TIMEOUT_MS);

	if (ret <= 0)
		return ret ? -errno : -ETIMEDOUT;
	ret = camera_ioctl(camera, VIDIOC_DQBUF, &buffer);
	if (ret)
		return ret;
	*index = buffer.index;
	return buffer.flags & V4L2_BUF_FLAG_ERROR ? -EIO : 0;
}

static int stream(const struct camera *camera, const int *dmabufs, unsigned int frames,
		  unsigned int *last)
{
	int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
	int ret = camera_ioctl(camera, VIDIOC_STREAMON, &type);

	while (!ret && frames--) {
		ret = dequeue(camera, last);
		if (!ret && frames)
			ret = queue(camera, *last, dmabufs[*last]);
	}
	/* Also gives back what is queued; those buffers may be half full. */
	camera_ioctl(camera, VIDIOC_STREAMOFF, &type);
	return ret;
}

int camera_capture(const struct camera *camera, const int *dmabufs, unsigned int count,
		   unsigned int frames, unsigned int *last)
{
	int ret = set_buffer_count(camera, count);
	unsigned int i;

	for (i = 0; i < count && !ret; i++)
		ret = queue(camera, i, dmabufs[i]);
	if (!ret)
		ret = stream(camera, dmabufs, frames, last);
	/* Now the camera lets go of the memory. */
	set_buffer_count(camera, 0);
	return ret;
}
