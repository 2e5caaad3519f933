// SPDX-License-Identifier: GPL-2.0-only
/*
 * The io_uring entry: the commands of the table, issued on a ring.
 */
#include <linux/fs.h>
#include <linux/io_uring.h>

#include "devbuf_private.h"

/* What we keep in the ring's command. */
struct devbuf_uring_data {
	struct devbuf_request *request;
};

static struct devbuf_uring_data *devbuf_uring_data(struct io_uring_cmd *ring)
{
	BUILD_BUG_ON(sizeof(struct devbuf_uring_data) > sizeof(ring->pdu));
	return (struct devbuf_uring_data *)ring->pdu;
}

struct devbuf_request *devbuf_uring_request(struct io_uring_cmd *ring)
{
	return devbuf_uring_data(ring)->request;
}

/**
 * devbuf_uring_begin - a command stays with us for a while
 * @cmd: issued on a ring
 * @request: what to cancel when the ring or its task goes away
 */
void devbuf_uring_begin(struct devbuf_command *cmd, struct devbuf_request *request)
{
	devbuf_uring_data(cmd->ring)->request = request;
	devbuf_uring_mark_cancelable(cmd->ring, cmd->issue_flags);
}

bool devbuf_command_is_nonblocking(const struct devbuf_command *cmd)
{
	return cmd->ring && cmd->issue_flags & IO_URING_F_NONBLOCK;
}

bool devbuf_uring_is_fixed(const struct devbuf_command *cmd)
{
	return cmd->ring && cmd->ring->flags & IORING_URING_CMD_FIXED;
}

/**
 * devbuf_uring_import - the caller's bytes, in the buffer that he registered
 * @cmd: issued with IORING_URING_CMD_FIXED
 * @pieces: the copy
 * @nr: how many pieces
 * @in: the caller's memory is read, and not written
 * @iters: set to the bytes of each piece
 *
 * The ring holds the buffer until the command completes.
 *
 * Return: 0 or -EFAULT.
 */
int devbuf_uring_import(struct devbuf_command *cmd, const struct devbuf_piece *pieces,
			u32 nr, bool in, struct iov_iter *iters)
{
	u32 i;

	for (i = 0; i < nr; i++)
		if (io_uring_cmd_import_fixed(pieces[i].user_addr, pieces[i].nbytes,
					      in ? ITER_SOURCE : ITER_DEST,
					      &iters[i], cmd->ring))
			return -EFAULT;
	return 0;
}

/* Linux before 6.7 never calls us so. */
static int devbuf_uring_cancel(struct io_uring_cmd *ring)
{
	struct devbuf_request *request = devbuf_uring_request(ring);

	request->ops->cancel(request);
	return 0;
}

int devbuf_uring_cmd(struct io_uring_cmd *ring, unsigned int issue_flags)
{
	const struct devbuf_uring_cmd *sqe;
	struct devbuf_command cmd = {
		.context = ring->file->private_data,
		.ring = ring,
		.issue_flags = issue_flags,
	};
	int ret;

	if (issue_flags & DEVBUF_URING_CANCEL)
		return devbuf_uring_cancel(ring);
	sqe = devbuf_uring_sqe(ring);
	if (READ_ONCE(sqe->pad))
		return -EINVAL;
	cmd.user = u64_to_user_ptr(READ_ONCE(sqe->arg));
	ret = devbuf_command_run(&cmd, ring->cmd_op);
	/* Rings do not restart what a signal has ended. */
	return ret == -ERESTARTSYS ? -EINTR : ret;
}
