// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * devbuf load FILE...: read files into device buffers.
 *
 * A whole file goes into one buffer, from its first byte on: so file and memory
 * are aligned alike, and the disk writes into the buffer itself. The tensors of
 * a .safetensors file are views, wherever their bytes happen to begin.
 */
#include <ctype.h>
#include <devbuf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "safetensors.h"
#include "tool.h"

#define BAR_WIDTH       40
#define BAR_INTERVAL_NS INT64_C(100000000)

/* Where files go. */
struct target {
	struct devbuf_allocator *allocator;
	const char *device;
	const char *memory; /* whose, to tell */
};

/* A file while it is loaded. */
struct load {
	const char *path;
	int fd;
	uint64_t nbytes;
	struct devbuf *buffer;
	struct devbuf_file_io io;
	int64_t begun_ns, shown_ns;
	bool bar;
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Names in files and of files may hold anything, also what a terminal obeys. */
static void print_visible(FILE *to, const char *text)
{
	for (; *text; text++)
		putc(iscntrl((unsigned char)*text) ? '?' : *text, to);
}

static bool fail(const char *path, const char *words)
{
	fputs("devbuf: ", stderr);
	print_visible(stderr, path);
	fputs(": ", stderr);
	print_visible(stderr, words);
	putc('\n', stderr);
	return false;
}

/* --- progress --------------------------------------------------------------------------------- */

static double megabytes_per_second(uint64_t nbytes, int64_t ns)
{
	return ns > 0 ? (double)nbytes * 1e3 / (double)ns : 0;
}

static int show_progress(void *user, size_t nbytes_done, size_t nbytes)
{
	struct load *l = user;
	int64_t now = now_ns();
	int filled = (int)((double)nbytes_done / (double)nbytes * BAR_WIDTH);

	if (now - l->shown_ns < BAR_INTERVAL_NS && nbytes_done < nbytes)
		return 0;
	l->shown_ns = now;
	fprintf(stderr, "\r[%.*s%*s] %3d%%  %8.1f MB/s ", filled,
		"########################################", BAR_WIDTH - filled, "",
		(int)((double)nbytes_done / (double)nbytes * 100),
		megabytes_per_second(nbytes_done, now - l->begun_ns));
	return 0;
}

static void end_progress(const struct load *l)
{
	if (l->bar)
		fputs("\r\033[K", stderr);
}

/* --- one file --------------------------------------------------------------------------------- */

static bool open_file(struct load *l)
{
	struct stat status;
	off_t end;

	l->fd = open(l->path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0 || fstat(l->fd, &status))
		return fail(l->path, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return fail(l->path, strerror(EISDIR));
	end = lseek(l->fd, 0, SEEK_END); /* of disks too, of which the status has no size */
	if (end < 0)
		return fail(l->path, strerror(errno));
	if (!end)
		return fail(l->path, "there is nothing in it");
	l->nbytes = (uint64_t)end;
	return true;
}

static bool fill_buffer(struct load *l, const struct target *to)
{
	if (devbuf_create(to->allocator, to->device, l->nbytes, DEVBUF_UINT8, NULL, &l->buffer) ||
	    devbuf_allocate(l->buffer))
		return fail(l->path, devbuf_last_error());
	l->io = (struct devbuf_file_io)DEVBUF_FILE_IO_INIT;
	l->bar = isatty(STDERR_FILENO);
	if (l->bar) {
		l->io.progress = show_progress;
		l->io.user = l;
	}
	l->begun_ns = now_ns();
	if (devbuf_read_file(l->buffer, 0, l->fd, 0, l->nbytes, &l->io)) {
		end_progress(l);
		return fail(l->path, devbuf_last_error());
	}
	end_progress(l);
	return true;
}

static void print_summary(const struct load *l, const struct target *to)
{
	int64_t ns = now_ns() - l->begun_ns;

	print_visible(stdout, l->path);
	printf(": buffer %" PRIu64 " on %s, %s\n", devbuf_id(l->buffer), devbuf_device(l->buffer),
	       to->memory);
	print_visible(stdout, l->path);
	printf(": %zu bytes in %.3f s, %.1f MB/s; %zu bytes directly\n", l->io.nbytes_done,
	       (double)ns / 1e9, megabytes_per_second(l->io.nbytes_done, ns), l->io.nbytes_direct);
}

/* --- tensors ---------------------------------------------------------------------------------- */

static void print_shape(const json_t *shape)
{
	const char *comma = "";
	size_t i;
	json_t *n;

	putchar('[');
	json_array_foreach(shape, i, n)
	{
		printf("%s%" JSON_INTEGER_FORMAT, comma, json_integer_value(n));
		comma = ", ";
	}
	putchar(']');
}

/* An empty tensor has no bytes to have a view of. */
static bool list_tensor(const struct load *l, const struct safetensors *s, const struct tensor *t)
{
	uint64_t offset = s->data_offset + t->begin;
	struct devbuf *view = NULL;

	if (t->size && devbuf_view(l->buffer, t->size, t->dtype, (int64_t)offset, &view))
		return fail(l->path, devbuf_last_error());
	if (view)
		printf("%20" PRIu64, devbuf_id(view));
	else
		printf("%20s", "-");
	printf("  %-14s %12" PRIu64 " %12" PRIu64 "  ", devbuf_dtype_name(t->dtype), offset,
	       t->end - t->begin);
	print_visible(stdout, t->name);
	putchar(' ');
	print_shape(t->shape);
	putchar('\n');
	devbuf_unref(view);
	return true;
}

static bool list_tensors(const struct load *l, const struct safetensors *s)
{
	printf("%20s  %-14s %12s %12s  %s\n", "view", "dtype", "offset", "bytes", "tensor");
	for (size_t i = 0; i < s->nr; i++)
		if (!list_tensor(l, s, &s->tensors[i]))
			return false;
	return true;
}

static bool has_tensors(const char *path)
{
	const char *suffix = strrchr(path, '.');

	return suffix && !strcmp(suffix, ".safetensors");
}

/* --- the command ------------------------------------------------------------------------------ */

static bool load_file(struct load *l, const struct target *to)
{
	struct safetensors s = { 0 };
	struct complaint why;
	bool fine;

	if (!open_file(l))
		return false;
	if (has_tensors(l->path) && !safetensors_read(l->fd, l->nbytes, &s, &why))
		return fail(l->path, why.words);
	fine = fill_buffer(l, to);
	if (fine) {
		print_summary(l, to);
		if (s.header)
			fine = list_tensors(l, &s);
	}
	safetensors_release(&s);
	return fine;
}

static bool load(const char *path, const struct target *to)
{
	struct load l = { .path = path, .fd = -1 };
	bool fine = load_file(&l, to);

	devbuf_unref(l.buffer);
	if (l.fd >= 0)
		close(l.fd);
	return fine;
}

static int open_target(const char *device, struct target *to)
{
	int rc = -ENOENT;

	*to = (struct target){ .device = device ? device : "SYSTEM:0", .memory = "of the driver" };
	if (!device || strcmp(device, "host"))
		rc = devbuf_driver_open(NULL, &to->allocator);
	if (rc != -ENOENT || (device && strcmp(device, "host")))
		return rc;
	to->device = "HOST";
	to->memory = device ? "memory of this process" :
			      "memory of this process: there is no driver";
	return devbuf_host_allocator(&to->allocator);
}

static void help(FILE *to)
{
	fputs("usage: devbuf load [--device NAME] FILE...\n\n"
	      "Reads each FILE into a device buffer, by direct I/O as far as that can be, and says\n"
	      "how many bytes went so. Of a .safetensors file it lists the tensors, as views.\n\n"
	      "  -d, --device NAME  on that device of the driver; \"host\": memory of this process.\n"
	      "                     Default: SYSTEM:0, or host if there is no driver\n",
	      to);
}

int command_load(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *device = NULL;
	struct target to;
	bool fine = true;
	int option;

	while ((option = getopt_long(argc, argv, "d:h", options, NULL)) != -1) {
		switch (option) {
		case 'd':
			device = optarg;
			break;
		case 'h':
			help(stdout);
			return DONE;
		default:
			help(stderr);
			return USAGE;
		}
	}
	if (optind == argc) {
		help(stderr);
		return USAGE;
	}
	if (open_target(device, &to)) {
		fprintf(stderr, "devbuf: %s\n", devbuf_last_error());
		return FAILED;
	}
	for (int i = optind; i < argc; i++)
		fine &= load(argv[i], &to);
	devbuf_allocator_unref(to.allocator);
	return fine ? DONE : FAILED;
}
