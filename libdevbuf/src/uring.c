// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The driver's commands as entries of an io_uring: of the library's, or of the caller's own. */
#include <liburing.h>

#include "driver.h"

_Static_assert(sizeof(struct io_uring_sqe) - offsetof(struct io_uring_sqe, cmd) ==
		       sizeof(struct devbuf_uring_cmd),
	       "");

void dbuf_fill_entry(struct io_uring_sqe *sqe, const struct connection *c, unsigned long command,
		     const void *argument)
{
	const struct devbuf_uring_cmd cmd = { .arg = (uintptr_t)argument };
	__u64 user_data = sqe->user_data;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = c->fd;
	sqe->cmd_op = (__u32)command;
	sqe->user_data = user_data;
	memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), &cmd, sizeof(cmd));
}

/* What is in a struct devbuf_operation. */
struct __attribute__((may_alias)) prepared {
	bool is_transfer;
	union {
		struct devbuf_copy copy;
		struct devbuf_transfer transfer;
	} argument;
	union {
		struct devbuf_copy_range copy;
		struct devbuf_transfer_range transfer;
	} range;
};

_Static_assert(sizeof(struct prepared) <= sizeof(struct devbuf_operation), "");
_Static_assert(_Alignof(struct prepared) <= _Alignof(struct devbuf_operation), "");

static struct prepared *prepared(struct devbuf_operation *op)
{
	return (struct prepared *)op;
}

static int check(const struct io_uring_sqe *sqe, const struct devbuf_operation *op,
		 const struct devbuf *b, const struct devbuf_async *how, struct devbuf_async *order)
{
	int rc;

	if (!sqe || !op)
		return dbuf_fail(-EINVAL, "no entry of a ring, or no memory for the operation");
	if (dbuf_backend(b) != &dbuf_driver_backend)
		return dbuf_fail(-EOPNOTSUPP, "a ring has commands of the driver's only: %s",
				 b->device);
	if (!(dbuf_connection(b)->features & DEVBUF_FEATURE_URING))
		return dbuf_fail(-EOPNOTSUPP, "the driver has no commands by io_uring here");
	rc = dbuf_async_read(order, how);
	if (rc)
		return rc;
	if (order->out_fence)
		return dbuf_fail(-EINVAL, "an operation of a ring has no out_fence");
	return 0;
}

static int prepare_copy(struct io_uring_sqe *sqe, struct devbuf_operation *op, struct devbuf *b,
			unsigned long command, size_t offset, const void *memory, size_t nbytes,
			const struct devbuf_async *how)
{
	struct prepared *p = prepared(op);
	struct devbuf_async order;
	int rc;

	rc = dbuf_check_part(b, offset, memory, nbytes);
	if (!rc)
		rc = check(sqe, op, b, how, &order);
	if (rc)
		return rc;
	p->is_transfer = false;
	dbuf_fill_copy(&p->argument.copy, &p->range.copy, b, offset, memory, nbytes);
	dbuf_fill_copy_order(&p->argument.copy, &order);
	dbuf_fill_entry(sqe, dbuf_connection(b), command, &p->argument.copy);
	return 0;
}

int devbuf_prepare_copyin(struct io_uring_sqe *sqe, struct devbuf_operation *op, struct devbuf *dst,
			  size_t dst_offset, const void *src, size_t nbytes,
			  const struct devbuf_async *how)
{
	return prepare_copy(sqe, op, dst, DEVBUF_COPYIN, dst_offset, src, nbytes, how);
}

int devbuf_prepare_copyout(struct io_uring_sqe *sqe, struct devbuf_operation *op,
			   struct devbuf *src, size_t src_offset, void *dst, size_t nbytes,
			   const struct devbuf_async *how)
{
	return prepare_copy(sqe, op, src, DEVBUF_COPYOUT, src_offset, dst, nbytes, how);
}

int devbuf_prepare_transfer(struct io_uring_sqe *sqe, struct devbuf_operation *op,
			    struct devbuf *dst, size_t dst_offset, struct devbuf *src,
			    size_t src_offset, size_t nbytes, unsigned int flags,
			    const struct devbuf_async *how)
{
	const struct devbuf_transfer_piece piece = { dst, dst_offset, src, src_offset, nbytes };
	struct prepared *p = prepared(op);
	struct devbuf_async order;
	struct made_piece made;
	int rc;

	rc = dbuf_check_piece(&piece, flags);
	if (!rc)
		rc = check(sqe, op, dst, how, &order);
	if (!rc && !dbuf_alike(dst, src))
		rc = dbuf_fail(-EOPNOTSUPP, "from %s to %s not by the driver", src->device,
			       dst->device);
	if (!rc)
		rc = dbuf_ensure_piece(&piece, &made);
	if (rc)
		return rc;
	p->is_transfer = true;
	dbuf_fill_range(&p->range.transfer, &piece);
	dbuf_fill_transfer(&p->argument.transfer, &p->range.transfer, 1, flags);
	dbuf_fill_transfer_order(&p->argument.transfer, &order);
	dbuf_fill_entry(sqe, dbuf_connection(dst), DEVBUF_TRANSFER, &p->argument.transfer);
	return 0;
}

int devbuf_operation_done(const struct devbuf_operation *op, uint64_t *done_nbytes,
			  enum devbuf_copy_path *path)
{
	const struct prepared *p = (const struct prepared *)op;

	if (!op)
		return dbuf_fail(-EINVAL, "no operation");
	if (done_nbytes)
		*done_nbytes = p->is_transfer ? p->argument.transfer.out_done_nbytes :
						p->argument.copy.out_done_nbytes;
	if (path)
		*path = dbuf_path_from_uapi(p->is_transfer ? p->argument.transfer.out_path :
							     p->argument.copy.out_path);
	return 0;
}
