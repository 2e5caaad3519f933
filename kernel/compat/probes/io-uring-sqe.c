// SPDX-License-Identifier: GPL-2.0-only
#include <linux/io_uring/cmd.h>

const void *probe(struct io_uring_cmd *ring);

const void *probe(struct io_uring_cmd *ring)
{
	return io_uring_sqe_cmd(ring->sqe);
}
