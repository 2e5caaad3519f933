/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands by io_uring. */
#ifndef DEVBUF_TESTS_UAPI_COMMON_URING_H
#define DEVBUF_TESTS_UAPI_COMMON_URING_H

#include "common_async.h"

#include <liburing.h>

/* Room for as many commands as a test queues at once. */
#define NR_ENTRIES 256

/* NULL, or why this kernel cannot do that. @flags are IORING_SETUP_*. */
const char *new_command_ring(struct io_uring *ring, unsigned int flags);

/*
 * An SQE of a command. @argument, and what it names, must stay until its completion, which has
 * @user_data.
 */
struct io_uring_sqe *prepare_command(struct io_uring *ring, int ctx, unsigned long command,
				     void *argument, __u64 user_data);

/* What is prepared, goes. */
void submit(struct io_uring *ring);

struct completion {
	__u64 user_data;
	int res;
};
/* The next one, in whatever order they come. */
struct completion next_completion(struct io_uring *ring);
bool has_completion(struct io_uring *ring);
/* Its result, when only one command is under way. */
int complete(struct io_uring *ring);

/* One command: prepared, submitted and complete. */
int ring_command(struct io_uring *ring, int ctx, unsigned long command, void *argument);

#endif
