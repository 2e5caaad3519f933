// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * load FILE: read a file into a device buffer by direct I/O.
 *
 * The disk writes into the buffer's own memory: the bytes pass neither through the page cache nor
 * through memory of the program. Mappings of ordinary dma-bufs refuse this (EFAULT).
 */
#define _GNU_SOURCE /* O_DIRECT */
#include <devbuf.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK 4096 /* direct I/O wants lengths and addresses like this */

static void check(int ret, const char *what)
{
	if (ret)
		errx(EXIT_FAILURE, "%s: %s", what, devbuf_last_error());
}

/* Returns how many bytes came. */
static size_t read_all(int fd, unsigned char *to, size_t nbytes, const char *name)
{
	size_t done = 0;
	ssize_t got;

	while (done < nbytes) {
		got = pread(fd, to + done, nbytes - done, (off_t)done);
		if (got < 0)
			err(EXIT_FAILURE, "%s", name);
		done += (size_t)got;
		/* The end of the file is no multiple of BLOCK, and the last thing to come. */
		if (got == 0 || got % BLOCK)
			break;
	}
	return done;
}

int main(int argc, char **argv)
{
	struct devbuf_allocator *driver;
	struct devbuf *buffer;
	size_t nbytes;
	off_t length;
	void *bytes;
	int fd;

	if (argc != 2)
		errx(EXIT_FAILURE, "usage: load FILE");
	fd = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
	length = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (length < 0)
		err(EXIT_FAILURE, "%s", argv[1]);
	nbytes = ((size_t)length + BLOCK - 1) / BLOCK * BLOCK;

	check(devbuf_driver_open(NULL, &driver), "open");
	check(devbuf_create(driver, "SYSTEM", nbytes, DEVBUF_UINT8, NULL, &buffer), "create");
	check(devbuf_allocate(buffer), "allocate");
	check(devbuf_map(buffer, PROT_READ | PROT_WRITE, &bytes), "map");
	printf("%zu bytes of %s are in buffer %" PRIu64 ".\n", read_all(fd, bytes, nbytes, argv[1]),
	       argv[1], devbuf_id(buffer));

	devbuf_unref(buffer); /* and its mapping */
	devbuf_allocator_unref(driver);
	close(fd);
	return EXIT_SUCCESS;
}
