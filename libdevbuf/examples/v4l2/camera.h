/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * A camera that fills the memory of others: V4L2 capture into dma-bufs.
 *
 * Functions return 0 or a negative errno.
 */
#ifndef CAMERA_H
#define CAMERA_H

#include <stddef.h>

/**
 * struct camera - a V4L2 capture device, set to RGB pictures
 * @fd: the device
 * @path: its node
 * @name: its name, for people
 * @width: pixels of a row
 * @height: rows
 * @stride: bytes from one row to the next
 * @nbytes: bytes of a picture, and of the memory that each one needs
 */
struct camera {
	int fd;
	char path[32];
	char name[32];
	size_t width;
	size_t height;
	size_t stride;
	size_t nbytes;
};

/* The first camera that gives RGB pictures; -ENODEV when there is none. */
int camera_open(struct camera *camera);
void camera_close(struct camera *camera);

/*
 * Let the camera fill @count dma-bufs in turn, and stop after @frames pictures.
 * The last one is then in dma-buf number *@last.
 */
int camera_capture(const struct camera *camera, const int *dmabufs, unsigned int count,
		   unsigned int frames, unsigned int *last);

#endif /* CAMERA_H */
