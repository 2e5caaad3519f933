/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Queues from inside. Types of queues: queue_in_order.c, queue_ring.c. Kinds of
 * operations: queue_copy.c, queue_file.c.
 *
 *	devbuf_queue_copyin()      takes a place, fills in an operation, adds it
 *	devbuf_queue_submit()      in order: runs each; ring: prepares an entry of each
 *	devbuf_queue_wait()        in order: those that ran; ring: finishes what the kernel tells of
 *
 * An operation is in one place of its queue from the call that queues it until
 * its completion has been handed out. Queues have no lock: one thread at a time.
 */
#ifndef DEVBUF_QUEUE_H
#define DEVBUF_QUEUE_H

#include "internal.h"

#include <linux/devbuf.h>

struct io_uring_sqe;
struct operation;

/* What is particular to one kind of operation. */
struct operation_kind {
	/* In order: do it, and set done_nbytes and path. 0 or a negative errno. */
	int (*run)(struct operation *o);
	/*
	 * On a ring: fill the entry, whose user_data is taken; and take in its result. Unless it
	 * was the last one (true) another entry is prepared. Sets result, done_nbytes and path.
	 */
	void (*prepare)(struct operation *o, struct io_uring_sqe *sqe);
	bool (*finish)(struct operation *o, int res);
	/* Optional: let go of what only this kind has. Buffers of the piece are let go of anyway. */
	void (*release)(struct operation *o);
};

enum operation_state {
	OPERATION_FREE,
	OPERATION_QUEUED, /* in the list of what is to be submitted */
	OPERATION_SUBMITTED, /* on a ring: the kernel has it */
	OPERATION_DONE, /* in order: in the list of what has run */
};

struct operation {
	const struct operation_kind *kind;
	struct operation *next; /* in its list */
	enum operation_state state;
	bool cancelled; /* before it was submitted: it will not run */

	/* What its completion will say. */
	uint64_t cookie;
	uint64_t done_nbytes;
	int result;
	enum devbuf_copy_path path;

	/* What to do. Both ends are held, if they are there; the other end is memory, or a file. */
	struct devbuf_transfer_piece piece;
	void *memory;
	int fd;
	int64_t file_offset;
	struct mapping mapping; /* on a ring, of the buffer that goes to or comes from a file */
	unsigned int flags;
	struct many *many; /* transfers of many pieces */

	/* On a ring: the argument of the command, which the kernel writes to. */
	union {
		struct devbuf_copy copy;
		struct devbuf_transfer transfer;
	} argument;
	union {
		struct devbuf_copy_range copy;
		struct devbuf_transfer_range transfer;
	} range;
	uint64_t command_cookie; /* by which DEVBUF_CANCEL finds it; zero: it cannot be cancelled */
};

/* The pieces of one operation, which are held, and their ranges. */
struct many {
	struct devbuf_transfer_piece *pieces;
	struct devbuf_transfer_range *ranges;
	size_t nr;
};

struct list {
	struct operation *first;
	struct operation **end;
};

/* How a queue works. */
struct queue_type {
	int (*submit)(struct devbuf_queue *q);
	/* Submits too. 0 with *nr completions, or an errno if there are none. */
	int (*wait)(struct devbuf_queue *q, size_t min, uint64_t deadline_ns,
		    struct devbuf_completion *out, size_t max, size_t *nr);
	bool (*cancel)(struct devbuf_queue *q, struct operation *o); /* one that was submitted */
	void (*destroy)(struct devbuf_queue *q, bool forked); /* nothing runs afterwards */
};

struct devbuf_queue {
	const struct queue_type *type;
	struct devbuf_allocator *allocator; /* held */
	struct process_mark process;
	unsigned int depth;
	unsigned int nr_used; /* operations that are not free */
	struct operation *operations; /* all, depth of them */
	struct list free, queued, done;
	int fd; /* what to poll: the ring, or in order an eventfd */
	struct ring *ring;
};

/* --- queue.c: for functions that queue an operation ------------------------------------------- */

int dbuf_queue_usable(const struct devbuf_queue *q); /* not NULL, not after fork */

/* Whether @b can be in an operation of @q: 0, or an errno in words. */
int dbuf_queue_check(const struct devbuf_queue *q, const struct devbuf *b);

/* A free operation, all zero but kind and cookie; or NULL: the queue is full (-EAGAIN, in words). */
struct operation *dbuf_queue_take(struct devbuf_queue *q, const struct operation_kind *kind,
				  uint64_t cookie);

/* It is complete, and comes after those that were added before. */
void dbuf_queue_add(struct devbuf_queue *q, struct operation *o);

/* It is over, or will not be added: let go of what it holds, and free its place. */
void dbuf_queue_drop(struct devbuf_queue *q, struct operation *o);

/* --- queue.c: for types of queues ------------------------------------------------------------- */

struct operation *dbuf_list_pop(struct list *l);
void dbuf_list_push(struct list *l, struct operation *o);

/* Tell of it, and drop it. */
void dbuf_queue_complete(struct devbuf_queue *q, struct operation *o,
			 struct devbuf_completion *out);

uint64_t dbuf_now_ns(void);

/* --- queue_in_order.c ------------------------------------------------------------------------- */

int dbuf_queue_in_order(struct devbuf_queue *q);

/* --- queue_ring.c ----------------------------------------------------------------------------- */

/* Make @q one with a ring; -EOPNOTSUPP when there is none for its allocator. */
int dbuf_queue_ring(struct devbuf_queue *q);

void dbuf_prepare_copyin(struct operation *o, struct io_uring_sqe *sqe);
void dbuf_prepare_copyout(struct operation *o, struct io_uring_sqe *sqe);
bool dbuf_finish_copy(struct operation *o, int res);
void dbuf_prepare_transfer(struct operation *o, struct io_uring_sqe *sqe);
bool dbuf_finish_transfer(struct operation *o, int res);

#endif /* DEVBUF_QUEUE_H */
