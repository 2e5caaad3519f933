// SPDX-License-Identifier: GPL-2.0-only
/* Commands by io_uring. */
#include "common_uring.h"

const char *new_command_ring(struct io_uring *ring, unsigned int flags)
{
	int ret = io_uring_queue_init(NR_ENTRIES, ring, flags);

	if (ret == -ENOSYS || ret == -EPERM)
		return "this kernel has no io_uring";
	if (ret == -EINVAL)
		return "this kernel's io_uring has no such ring";
	must(ret);
	return NULL;
}

struct io_uring_sqe *prepare_command(struct io_uring *ring, int ctx, unsigned long command,
				     void *argument, __u64 user_data)
{
	struct devbuf_uring_cmd cmd = { .arg = (uintptr_t)argument };
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	must_be(sqe != NULL);
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, ctx, NULL, 0, 0);
	sqe->cmd_op = command;
	sqe->user_data = user_data;
	/* liburing gives the member no length. */
	memcpy((unsigned char *)sqe + offsetof(struct io_uring_sqe, cmd), &cmd, sizeof(cmd));
	return sqe;
}

void submit(struct io_uring *ring)
{
	must(io_uring_submit(ring));
}

struct completion next_completion(struct io_uring *ring)
{
	struct __kernel_timespec deadline = { .tv_sec = DEADLINE_MS / 1000 };
	struct completion completion;
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_wait_cqe_timeout(ring, &cqe, &deadline);
	} while (ret == -EINTR);
	must(ret);
	completion = (struct completion){ cqe->user_data, cqe->res };
	io_uring_cqe_seen(ring, cqe);
	return completion;
}

bool has_completion(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;

	/* Completions are made in the task that submitted; so let it look whether there are some. */
	io_uring_get_events(ring);
	return io_uring_peek_cqe(ring, &cqe) == 0;
}

int complete(struct io_uring *ring)
{
	return next_completion(ring).res;
}

int ring_command(struct io_uring *ring, int ctx, unsigned long command, void *argument)
{
	prepare_command(ring, ctx, command, argument, 0);
	submit(ring);
	return complete(ring);
}
