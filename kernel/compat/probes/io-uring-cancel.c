// SPDX-License-Identifier: GPL-2.0-only
#include <linux/io_uring/cmd.h>

void probe(struct io_uring_cmd *ring);

void probe(struct io_uring_cmd *ring)
{
	io_uring_cmd_mark_cancelable(ring, IO_URING_F_CANCEL);
}
