// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * share: hand a buffer to another process, without a copy.
 *
 * The owner exports the buffer and sends the dma-buf over a socket. The reader imports it into a
 * connection of its own, where it has the same id, and reads what the owner wrote.
 */
#include <devbuf.h>
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void check(int ret, const char *what)
{
	if (ret)
		errx(EXIT_FAILURE, "%s: %s", what, devbuf_last_error());
}

/* Send *@fd over @socket, or set it to what comes; -1 when none does. */
static void pass_fd(int socket, int *fd, bool send)
{
	union {
		char bytes[CMSG_SPACE(sizeof(*fd))];
		struct cmsghdr header;
	} control = { .bytes = { 0 } };
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	message.msg_control = control.bytes;
	message.msg_controllen = sizeof(control.bytes);
	if (send) {
		control.header.cmsg_len = CMSG_LEN(sizeof(*fd));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.header), fd, sizeof(*fd));
		if (sendmsg(socket, &message, 0) != 1)
			err(EXIT_FAILURE, "sendmsg");
		return;
	}
	*fd = -1;
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(fd, CMSG_DATA(&control.header), sizeof(*fd));
}

static void owner(struct devbuf_allocator *driver, int socket)
{
	static const char text[4096] = "Written by the owner.";
	struct devbuf *buffer;
	int fd;

	check(devbuf_create(driver, "SYSTEM", sizeof(text), DEVBUF_UINT8, NULL, &buffer), "create");
	check(devbuf_allocate(buffer), "allocate");
	check(devbuf_copyin(buffer, text, sizeof(text)), "copyin");
	check(devbuf_export(buffer, 0, &fd, NULL), "export"); /* 0: to be read only */
	printf("owner: buffer %" PRIu64 "\n", devbuf_id(buffer));
	pass_fd(socket, &fd, true);
	close(fd);
	devbuf_unref(buffer); /* The dma-buf on its way keeps the memory. */
}

static void reader(struct devbuf_allocator *driver, int socket)
{
	struct devbuf *buffer;
	char text[4096];
	int fd;

	pass_fd(socket, &fd, false);
	check(devbuf_import(driver, fd, &buffer), "import");
	close(fd);
	check(devbuf_copyout(buffer, text, sizeof(text)), "copyout");
	printf("reader: buffer %" PRIu64 ": \"%s\"\n", devbuf_id(buffer), text);
	if (devbuf_copyin(buffer, text, sizeof(text)))
		printf("reader: writing is refused: %s\n", devbuf_last_error());
	devbuf_unref(buffer);
}

int main(void)
{
	struct devbuf_allocator *driver;
	int sockets[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) || (child = fork()) < 0)
		err(EXIT_FAILURE, "socketpair or fork");
	/* After the fork: each process has a connection of its own. */
	check(devbuf_driver_open(NULL, &driver), "open");
	if (child == 0) {
		owner(driver, sockets[0]);
	} else {
		close(sockets[0]); /* so that we notice if the owner ends early */
		reader(driver, sockets[1]);
	}
	devbuf_allocator_unref(driver);
	return EXIT_SUCCESS;
}
