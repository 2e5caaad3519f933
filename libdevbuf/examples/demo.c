// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * demo OUTDIR: a camera fills device buffers, and we swap the halves of its picture.
 *
 * The camera writes into our buffers itself: they are handed to it as dma-bufs. Views name the
 * upper and the lower half of the picture that it took; both are copied, swapped, into a second
 * buffer. The two pictures become OUTDIR/frame.png and OUTDIR/swapped.png.
 *
 * Without a camera the capture is left out, and the program draws a picture of its own. Without
 * the driver it does the same on plain memory.
 *
 * An error ends the program. That is all the tidying there is to do: what a process holds is
 * given back when it ends.
 */
#include <devbuf.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "v4l2/camera.h"

#define BUFFERS 4 /* which the camera fills in turn */
#define FRAMES  6 /* that it takes; the first ones of a real camera are dark */

/* What a picture is like: 3 bytes for each pixel. */
struct shape {
	size_t width;
	size_t height;
	size_t stride; /* bytes from one row to the next */
	size_t nbytes;
};

/* A buffer and the views of its halves. */
struct picture {
	struct devbuf *whole;
	struct devbuf *upper;
	struct devbuf *lower;
};

/* A line of the table at the end. */
struct move {
	const char *what;
	size_t nbytes;
	const char *path;
	double ms;
};

static struct move moves[8];
static size_t move_count;

/* For what libdevbuf returns. */
static void check(int ret, const char *what)
{
	if (ret)
		errx(EXIT_FAILURE, "%s: %s", what, devbuf_last_error());
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void note_move(const char *what, size_t nbytes, const char *path, double begun_ms)
{
	moves[move_count++] = (struct move){ what, nbytes, path, now_ms() - begun_ms };
}

/* --- buffers --- */

static struct devbuf_allocator *open_allocator(void)
{
	struct devbuf_allocator *allocator;
	int ret = devbuf_driver_open(NULL, &allocator);

	if (ret == -ENOENT) {
		printf("On plain memory: %s.\n", devbuf_last_error());
		ret = devbuf_host_allocator(&allocator);
	}
	check(ret, "opening");
	return allocator;
}

static struct devbuf *create(struct devbuf_allocator *allocator, const struct shape *shape,
			     const char *name)
{
	struct devbuf *buffer;

	check(devbuf_create(allocator, "SYSTEM", shape->nbytes, DEVBUF_UINT8, NULL, &buffer),
	      "creating a buffer");
	check(devbuf_allocate(buffer), "allocating a buffer");
	check(devbuf_set_name(buffer, name), "naming a buffer");
	return buffer;
}

static struct devbuf *view_rows(struct devbuf *buffer, const struct shape *shape, size_t row,
				size_t rows, const char *name)
{
	struct devbuf *view;

	check(devbuf_view(buffer, rows * shape->stride, DEVBUF_UINT8,
			  (int64_t)(row * shape->stride), &view),
	      "making a view");
	check(devbuf_set_name(view, name), "naming a view");
	return view;
}

/* --- the picture: from the camera, or drawn --- */

/* Returns the buffer that the camera filled last. */
static struct devbuf *capture(const struct camera *camera, struct devbuf_allocator *allocator,
			      const struct shape *shape)
{
	struct devbuf *buffers[BUFFERS];
	int dmabufs[BUFFERS];
	unsigned int i, last;
	double begun;
	int ret;

	for (i = 0; i < BUFFERS; i++) {
		buffers[i] = create(allocator, shape, "frame");
		/* NULL: a base begins where its dma-buf does. */
		check(devbuf_export(buffers[i], DEVBUF_FD_WRITE, &dmabufs[i], NULL), "exporting");
	}
	begun = now_ms();
	ret = camera_capture(camera, dmabufs, BUFFERS, FRAMES, &last);
	if (ret)
		errx(EXIT_FAILURE, "%s: %s", camera->path, strerror(-ret));
	note_move("camera -> buffers", FRAMES * shape->nbytes, "dma-buf", begun);

	for (i = 0; i < BUFFERS; i++) {
		close(dmabufs[i]);
		if (i != last)
			devbuf_unref(buffers[i]);
	}
	return buffers[last];
}

/* Colour bars above, a grey ramp below. */
static void draw(unsigned char *pixels, const struct shape *shape)
{
	size_t x, y, bar;

	for (y = 0; y < shape->height; y++) {
		unsigned char *pixel = pixels + y * shape->stride;

		for (x = 0; x < shape->width; x++, pixel += 3) {
			bar = 7 - x * 8 / shape->width;
			if (y >= shape->height / 2) {
				memset(pixel, (int)(x * 255 / shape->width), 3);
				continue;
			}
			pixel[0] = bar & 2 ? 255 : 0;
			pixel[1] = bar & 4 ? 255 : 0;
			pixel[2] = bar & 1 ? 255 : 0;
		}
	}
}

/* Returns a buffer that we filled ourselves, through a mapping. */
static struct devbuf *invent(struct devbuf_allocator *allocator, const struct shape *shape)
{
	struct devbuf *buffer = create(allocator, shape, "frame");
	double begun = now_ms();
	void *pixels;

	check(devbuf_map(buffer, PROT_READ | PROT_WRITE, &pixels), "mapping");
	draw(pixels, shape); /* No devbuf_sync(): no device has the buffer. */
	check(devbuf_unmap(buffer), "unmapping");
	note_move("drawn through a mapping", shape->nbytes, "mapping", begun);
	return buffer;
}

static struct devbuf *take_picture(struct devbuf_allocator *allocator, struct shape *shape)
{
	struct devbuf_device_props device = DEVBUF_DEVICE_PROPS_INIT;
	struct camera camera;
	struct devbuf *frame;
	const char *lack = NULL;

	if (devbuf_device_find(allocator, "SYSTEM", &device) || !(device.caps & DEVBUF_CAN_EXPORT))
		lack = "this memory cannot be exported";
	else if (camera_open(&camera))
		lack = "there is no camera that gives RGB pictures";
	if (lack) {
		printf("The capture is left out: %s. Drawing a picture instead.\n", lack);
		*shape = (struct shape){ 640, 360, 640 * 3, 640 * 3 * 360 };
		return invent(allocator, shape);
	}
	*shape = (struct shape){ camera.width, camera.height, camera.stride, camera.nbytes };
	printf("Camera %s (%s), %zux%zu: it fills %d buffers with %d pictures.\n", camera.path,
	       camera.name, shape->width, shape->height, BUFFERS, FRAMES);
	frame = capture(&camera, allocator, shape);
	camera_close(&camera);
	return frame;
}

/* --- what we do with it --- */

/* Of an odd number of rows the one in the middle is in neither half. */
static struct picture cut(struct devbuf *whole, const struct shape *shape, const char *upper,
			  const char *lower)
{
	size_t rows = shape->height / 2;

	return (struct picture){
		.whole = whole,
		.upper = view_rows(whole, shape, 0, rows, upper),
		.lower = view_rows(whole, shape, shape->height - rows, rows, lower),
	};
}

static void transfer(struct devbuf *dst, struct devbuf *src, const char *what)
{
	enum devbuf_copy_path path;
	double begun = now_ms();

	check(devbuf_copy(dst, src, &path), what);
	note_move(what, devbuf_nbytes(src), devbuf_copy_path_name(path), begun);
}

static void save(struct devbuf *buffer, const struct shape *shape, const char *dir,
		 const char *name, const char *what)
{
	png_image image = {
		.version = PNG_IMAGE_VERSION,
		.width = (png_uint_32)shape->width,
		.height = (png_uint_32)shape->height,
		.format = PNG_FORMAT_RGB,
	};
	double begun = now_ms();
	char file[4096];
	void *pixels;

	check(devbuf_as_bytes(buffer, &pixels, NULL), what);
	note_move(what, shape->nbytes, "copyout", begun);
	snprintf(file, sizeof(file), "%s/%s", dir, name);
	if (!png_image_write_to_file(&image, file, 0, pixels, (png_int_32)shape->stride, NULL))
		errx(EXIT_FAILURE, "%s: %s", file, image.message);
	free(pixels);
	printf("Wrote %s.\n", file);
}

/* --- the table --- */

static void print_buffer(struct devbuf *b, int width)
{
	char name[DEVBUF_NAME_BYTES];

	check(devbuf_get_name(b, name), "asking for a name");
	printf("%-22s %*" PRIu64 " %*" PRIu64 " %9zu %9zu\n", name, width, devbuf_id(b), width,
	       devbuf_base_id(b), devbuf_offset(b), devbuf_nbytes(b));
}

static void print_picture(const struct picture *picture, int width)
{
	print_buffer(picture->whole, width);
	print_buffer(picture->upper, width);
	print_buffer(picture->lower, width);
}

static void print_table(const struct picture *frame, const struct picture *swapped)
{
	/* The driver's ids are small; those of plain memory have their top bit set. */
	int width = devbuf_id(frame->whole) >> 63 ? 20 : 8;
	struct devbuf_plan plan = DEVBUF_PLAN_INIT;
	size_t i;

	printf("\n%-22s %*s %*s %9s %9s\n", "buffer", width, "id", width, "base id", "offset",
	       "bytes");
	print_picture(frame, width);
	print_picture(swapped, width);

	printf("\n%-30s %9s  %-8s %12s\n", "move", "bytes", "path", "time");
	for (i = 0; i < move_count; i++)
		printf("%-30s %9zu  %-8s %9.2f ms\n", moves[i].what, moves[i].nbytes, moves[i].path,
		       moves[i].ms);

	check(devbuf_copy_plan(swapped->upper, frame->lower, &plan), "asking for the path");
	if (plan.why[0])
		printf("\nNo better path than %s: %s.\n", devbuf_copy_path_name(plan.path),
		       plan.why);
}

int main(int argc, char **argv)
{
	struct devbuf_allocator *allocator;
	struct picture frame, swapped;
	struct shape shape;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		errx(EXIT_FAILURE, "usage: demo OUTDIR");
	if (mkdir(argv[1], 0777) && errno != EEXIST)
		err(EXIT_FAILURE, "%s", argv[1]);

	allocator = open_allocator();
	frame = cut(take_picture(allocator, &shape), &shape, "frame, upper half",
		    "frame, lower half");
	swapped = cut(create(allocator, &shape, "swapped"), &shape, "swapped, upper half",
		      "swapped, lower half");
	transfer(swapped.upper, frame.lower, "frame, lower -> swapped, upper");
	transfer(swapped.lower, frame.upper, "frame, upper -> swapped, lower");
	save(frame.whole, &shape, argv[1], "frame.png", "frame -> memory");
	save(swapped.whole, &shape, argv[1], "swapped.png", "swapped -> memory");
	print_table(&frame, &swapped);
	return 0;
}
