/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asynchronous copies, the fences (sync_files) that they give and take, and gates: fences that hold
 * a copy back for as long as a test wants.
 */
#ifndef DEVBUF_TESTS_UAPI_COMMON_ASYNC_H
#define DEVBUF_TESTS_UAPI_COMMON_ASYNC_H

#include "common.h"

/* Far longer than anything takes; for what would otherwise never end. */
#define DEADLINE_MS 60000

/* --- commands --------------------------------------------------------------------------------- */

/* How a copy is queued; DEVBUF_ASYNC is added to the flags. */
struct queueing {
	__u32 flags;
	__u32 nr_in_fences;
	const __s32 *in_fences;
	__u64 cookie;
};

/*
 * Queue a copy. With @how NULL it asks for a fence. Returns the file descriptor of the fence if
 * one was asked for, otherwise 0; or a negative errno.
 */
int queue_copyin(int ctx, __u64 id, __u64 offset, const void *from, __u64 nbytes,
		 const struct queueing *how);
int queue_copyout(int ctx, __u64 id, __u64 offset, void *to, __u64 nbytes,
		  const struct queueing *how);
int queue_transfer(int ctx, __u64 dst, __u64 dst_offset, __u64 src, __u64 src_offset, __u64 nbytes,
		   const struct queueing *how);

/* For what only this fence holds back. */
#define AFTER(fence) (&(struct queueing){ DEVBUF_ASYNC_OUT_FENCE, 1, &(fence), 0 })
/* The same for a command that can be cancelled. */
#define AFTER_COOKIE(fence, number) \
	(&(struct queueing){ DEVBUF_ASYNC_OUT_FENCE, 1, &(fence), number })

/*
 * The three kinds of copies on like terms: each brings the pattern 1 from its source to its
 * destination, where zeros were.
 */
enum kind { COPYIN, COPYOUT, TRANSFER };

struct ends {
	int ctx;
	__u64 src, dst;
	unsigned char *from, *to;
	__u64 nbytes;
};

void new_ends(struct ends *ends, int ctx, __u64 nbytes);
int queue_copy_of(const struct ends *ends, enum kind kind, const struct queueing *how);
/* Into whichever end it went. */
bool arrived(const struct ends *ends, enum kind kind);
bool untouched(const struct ends *ends, enum kind kind);

/* The command as such, to change one thing in it. It points into itself. */
struct copy_command {
	unsigned long command;
	/* The members of both have the same places; layout.c sees to that. */
	union {
		struct devbuf_copy copy;
		struct devbuf_transfer transfer;
	};
	struct devbuf_copy_range copy_range;
	struct devbuf_transfer_range transfer_range;
};
void prepare_copy_of(struct copy_command *command, const struct ends *ends, enum kind kind,
		     __u32 flags);

/* An argument that waits for one byte of @id, without a deadline. */
struct devbuf_wait wait_argument(__u64 id, __u32 flags);
/* For fences alone. */
struct devbuf_wait wait_fences_argument(const __s32 *fences, __u32 nr_fences);
int do_wait(int ctx, struct devbuf_wait *wait);
/* Until some copy that touches its first byte is queued and not over. */
void await_queued(int ctx, __u64 id);
/* The current time of DEVBUF_WAIT's clock. */
__u64 now_ns(void);

/* These return how many commands were cancelled. */
int do_cancel(int ctx, __u64 cookie);
int do_cancel_all(int ctx);

/* --- fences ----------------------------------------------------------------------------------- */

/* 1 when it has signalled, 0 when not yet, or the negative errno with which it has. */
int fence_status(int fence);
/* Waits until it has signalled, and returns 0 or the error. */
int fence_result(int fence);
/* The same, and closes it. */
int end_fence(int fence);

/*
 * What is queued and may run has had every chance to: others of this context's copies, queued
 * later, have run to their end meanwhile.
 */
void give_every_chance(int ctx);
/* It is still held back. */
bool is_held(int ctx, int fence);

/* The fences that somebody who means to read (DMA_BUF_SYNC_READ) or write has to wait for. */
int dma_buf_fence(int dma_buf, __u32 flags);
void dma_buf_add_fence(int dma_buf, __u32 flags, int fence);

/*
 * Whether every file of the module's gets closed, and every fence goes: at last nobody uses it.
 * What ends does so by itself, but not at once.
 */
bool module_uses_fall_to(long long uses);
/* Fences that are over are freed some time later. */
long long module_uses_at_rest(void);

/* --- gates ------------------------------------------------------------------------------------ */

/* A fence of vgem's, which opens by itself after ten seconds, or when @card is closed. */
struct gate {
	int card;
	__u32 vgem_fence;
	__s32 fd;
};
struct gate new_gate(int card);
void open_gate(struct gate *gate);

/*
 * Opens a gate as soon as the calling thread sleeps in an ioctl. has_waited() tells, when the
 * thread is back, whether it came back only then.
 */
struct opener {
	struct gate *gate;
	pid_t waiter;
	volatile bool returned;
	bool returned_early;
	pthread_t thread;
};
void open_when_asleep(struct opener *opener, struct gate *gate);
bool has_waited(struct opener *opener);

/* sw_sync: fences for tests, on the debugging kernel only. -1 if there is none. */
int new_timeline(void);
/* Signals when the timeline has come to @value. */
int new_timeline_fence(int timeline, unsigned int value);
void advance_timeline(int timeline, unsigned int by);

#endif
