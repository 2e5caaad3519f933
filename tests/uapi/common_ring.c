// SPDX-License-Identifier: GPL-2.0-only
/* An io_uring with one registered buffer. */
#include "common_ring.h"

const char *new_ring(struct io_uring *ring, void *memory, size_t nbytes)
{
	struct iovec vector = { .iov_base = memory, .iov_len = nbytes };
	int ret = io_uring_queue_init(4, ring, 0);

	if (ret == -ENOSYS || ret == -EPERM)
		return "this kernel has no io_uring";
	must(ret);
	ret = io_uring_register_buffers(ring, &vector, 1);
	/* That of 6.1 takes none of a file that is not in memory, whichever. */
	if (ret == -EOPNOTSUPP)
		return "this kernel's io_uring registers no mappings of devices";
	must(ret);
	return NULL;
}

static int complete(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	int ret;

	must(io_uring_submit_and_wait(ring, 1));
	must(io_uring_wait_cqe(ring, &cqe));
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

int ring_read(struct io_uring *ring, int fd, void *memory, unsigned int nbytes)
{
	io_uring_prep_read_fixed(io_uring_get_sqe(ring), fd, memory, nbytes, 0, 0);
	return complete(ring);
}

int ring_write(struct io_uring *ring, int fd, void *memory, unsigned int nbytes)
{
	io_uring_prep_write_fixed(io_uring_get_sqe(ring), fd, memory, nbytes, 0, 0);
	return complete(ring);
}
