// SPDX-License-Identifier: GPL-2.0-only
/* Asynchronous copies, fences and gates. */
#include "common_async.h"

#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include <linux/dma-buf.h>
#include <linux/membarrier.h>
#include <linux/sync_file.h>

#include "common_vgem.h"

/* --- commands --------------------------------------------------------------------------------- */

static const struct queueing with_fence = { .flags = DEVBUF_ASYNC_OUT_FENCE };

static int queue_copy(int ctx, unsigned long command, struct devbuf_copy_range range,
		      const struct queueing *how)
{
	struct devbuf_copy copy = {
		.size = sizeof(copy),
		.ranges = (uintptr_t)&range,
		.nr_ranges = 1,
	};
	int ret;

	if (!how)
		how = &with_fence;
	copy.flags = DEVBUF_ASYNC | how->flags;
	copy.nr_in_fences = how->nr_in_fences;
	copy.in_fences = (uintptr_t)how->in_fences;
	copy.cookie = how->cookie;
	ret = do_command(ctx, command, &copy);
	return ret ?: copy.out_fence;
}

int queue_copyin(int ctx, __u64 id, __u64 offset, const void *from, __u64 nbytes,
		 const struct queueing *how)
{
	struct devbuf_copy_range range = { id, offset, (uintptr_t)from, nbytes };

	return queue_copy(ctx, DEVBUF_COPYIN, range, how);
}

int queue_copyout(int ctx, __u64 id, __u64 offset, void *to, __u64 nbytes,
		  const struct queueing *how)
{
	struct devbuf_copy_range range = { id, offset, (uintptr_t)to, nbytes };

	return queue_copy(ctx, DEVBUF_COPYOUT, range, how);
}

int queue_transfer(int ctx, __u64 dst, __u64 dst_offset, __u64 src, __u64 src_offset, __u64 nbytes,
		   const struct queueing *how)
{
	struct devbuf_transfer_range range = { dst, dst_offset, src, src_offset, nbytes };
	struct devbuf_transfer transfer = { 0 };
	int ret;

	if (!how)
		how = &with_fence;
	transfer.flags = DEVBUF_ASYNC | how->flags;
	transfer.nr_in_fences = how->nr_in_fences;
	transfer.in_fences = (uintptr_t)how->in_fences;
	transfer.cookie = how->cookie;
	ret = do_transfer_ranges(ctx, &transfer, &range, 1);
	return ret ?: transfer.out_fence;
}

void new_ends(struct ends *ends, int ctx, __u64 nbytes)
{
	*ends = (struct ends){
		.ctx = ctx,
		.src = new_allocated(ctx, nbytes),
		.dst = new_allocated(ctx, nbytes),
		.from = new_memory(nbytes),
		.to = new_memory(nbytes),
		.nbytes = nbytes,
	};
	buffer_fill(ctx, ends->src, nbytes, 1);
	fill(ends->from, nbytes, 1);
}

int queue_copy_of(const struct ends *ends, enum kind kind, const struct queueing *how)
{
	switch (kind) {
	case COPYIN:
		return queue_copyin(ends->ctx, ends->dst, 0, ends->from, ends->nbytes, how);
	case COPYOUT:
		return queue_copyout(ends->ctx, ends->src, 0, ends->to, ends->nbytes, how);
	default:
		return queue_transfer(ends->ctx, ends->dst, 0, ends->src, 0, ends->nbytes, how);
	}
}

bool arrived(const struct ends *ends, enum kind kind)
{
	if (kind == COPYOUT)
		return filled(ends->to, ends->nbytes, 1);
	return buffer_filled(ends->ctx, ends->dst, 0, ends->nbytes, 1);
}

bool untouched(const struct ends *ends, enum kind kind)
{
	if (kind == COPYOUT)
		return all_zero(ends->to, ends->nbytes);
	return buffer_zero(ends->ctx, ends->dst, 0, ends->nbytes);
}

void prepare_copy_of(struct copy_command *command, const struct ends *ends, enum kind kind,
		     __u32 flags)
{
	static const unsigned long commands[] = { DEVBUF_COPYIN, DEVBUF_COPYOUT, DEVBUF_TRANSFER };
	const bool in = kind == COPYIN;

	*command = (struct copy_command){
		.command = commands[kind],
		.copy_range = {
			.id = in ? ends->dst : ends->src,
			.user_addr = (uintptr_t)(in ? ends->from : ends->to),
			.nbytes = ends->nbytes,
		},
		.transfer_range = {
			.dst_id = ends->dst,
			.src_id = ends->src,
			.nbytes = ends->nbytes,
		},
	};
	command->copy = (struct devbuf_copy){
		.size = sizeof(command->copy),
		.flags = flags,
		.ranges = kind == TRANSFER ? (uintptr_t)&command->transfer_range :
					     (uintptr_t)&command->copy_range,
		.nr_ranges = 1,
	};
}

struct devbuf_wait wait_argument(__u64 id, __u32 flags)
{
	return (struct devbuf_wait){
		.size = sizeof(struct devbuf_wait),
		.flags = flags,
		.id = id,
		.nbytes = 1,
		.deadline_ns = DEVBUF_NO_DEADLINE,
	};
}

struct devbuf_wait wait_fences_argument(const __s32 *fences, __u32 nr_fences)
{
	return (struct devbuf_wait){
		.size = sizeof(struct devbuf_wait),
		.deadline_ns = DEVBUF_NO_DEADLINE,
		.in_fences = (uintptr_t)fences,
		.nr_in_fences = nr_fences,
	};
}

int do_wait(int ctx, struct devbuf_wait *wait)
{
	return do_command(ctx, DEVBUF_WAIT, wait);
}

void await_queued(int ctx, __u64 id)
{
	struct devbuf_wait wait;

	do {
		wait = wait_argument(id, DEVBUF_WAIT_WRITE);
		wait.deadline_ns = 0;
	} while (do_wait(ctx, &wait) != -ETIMEDOUT);
}

__u64 now_ns(void)
{
	struct timespec now;

	must_libc(clock_gettime(CLOCK_MONOTONIC, &now));
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

int do_cancel(int ctx, __u64 cookie)
{
	struct devbuf_cancel cancel = { .size = sizeof(cancel), .cookie = cookie };
	int ret = do_command(ctx, DEVBUF_CANCEL, &cancel);

	return ret ?: (int)cancel.out_count;
}

int do_cancel_all(int ctx)
{
	struct devbuf_cancel cancel = { .size = sizeof(cancel), .flags = DEVBUF_CANCEL_ALL };
	int ret = do_command(ctx, DEVBUF_CANCEL, &cancel);

	return ret ?: (int)cancel.out_count;
}

/* --- fences ----------------------------------------------------------------------------------- */

int fence_status(int fence)
{
	struct sync_file_info info = { 0 };

	must_libc(ioctl(fence, SYNC_IOC_FILE_INFO, &info));
	return info.status;
}

int fence_result(int fence)
{
	struct pollfd file = { .fd = fence, .events = POLLIN };
	int ret;

	must_be(poll(&file, 1, DEADLINE_MS) == 1);
	must_be(file.revents == POLLIN);
	ret = fence_status(fence);
	must_be(ret != 0);
	return ret < 0 ? ret : 0;
}

int end_fence(int fence)
{
	int ret = fence_result(fence);

	close(fence);
	return ret;
}

void give_every_chance(int ctx)
{
	__u64 one = new_allocated(ctx, PAGE), other = new_allocated(ctx, PAGE);

	for (int i = 0; i < 4; i++)
		must(end_fence(must(queue_transfer(ctx, one, 0, other, 0, PAGE, NULL))));
	must(do_destroy(ctx, one));
	must(do_destroy(ctx, other));
}

bool is_held(int ctx, int fence)
{
	give_every_chance(ctx);
	return fence_status(fence) == 0;
}

int dma_buf_fence(int dma_buf, __u32 flags)
{
	struct dma_buf_export_sync_file argument = { .flags = flags };

	must_libc(ioctl(dma_buf, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &argument));
	return argument.fd;
}

void dma_buf_add_fence(int dma_buf, __u32 flags, int fence)
{
	struct dma_buf_import_sync_file argument = { .flags = flags, .fd = fence };

	must_libc(ioctl(dma_buf, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &argument));
}

static long long module_uses(void)
{
	return read_number("/sys/module/devbuf/refcnt");
}

long long module_uses_at_rest(void)
{
	long long uses;

	do {
		uses = module_uses();
		must_libc(syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));
		usleep(20000);
	} while (module_uses() != uses);
	return uses;
}

bool module_uses_fall_to(long long uses)
{
	const __u64 end = now_ns() + DEADLINE_MS * 1000000ULL;

	while (module_uses() > uses) {
		if (now_ns() > end)
			return false;
		sched_yield();
	}
	return true;
}

/* --- gates ------------------------------------------------------------------------------------ */

struct gate new_gate(int card)
{
	struct gate gate = { .card = card };
	__u32 handle = vgem_create(card);
	int dma_buf = vgem_export(card, handle);

	gate.vgem_fence = vgem_attach_fence(card, handle, VGEM_FENCE_WRITE);
	gate.fd = dma_buf_fence(dma_buf, DMA_BUF_SYNC_WRITE);
	close(dma_buf);
	vgem_close(card, handle);
	return gate;
}

void open_gate(struct gate *gate)
{
	vgem_signal_fence(gate->card, gate->vgem_fence);
	close(gate->fd);
}

static void *open_then(void *argument)
{
	struct opener *opener = argument;

	while (!opener->returned && !sleeps_in_ioctl(opener->waiter, 0))
		;
	opener->returned_early = opener->returned;
	open_gate(opener->gate);
	return NULL;
}

void open_when_asleep(struct opener *opener, struct gate *gate)
{
	*opener = (struct opener){ .gate = gate, .waiter = gettid() };
	must(-pthread_create(&opener->thread, NULL, open_then, opener));
}

bool has_waited(struct opener *opener)
{
	opener->returned = true;
	must(-pthread_join(opener->thread, NULL));
	return !opener->returned_early;
}

struct sw_sync_create_fence_data {
	__u32 value;
	char name[32];
	__s32 fence;
};

#define SW_SYNC_IOC_CREATE_FENCE _IOWR('W', 0, struct sw_sync_create_fence_data)
#define SW_SYNC_IOC_INC          _IOW('W', 1, __u32)

int new_timeline(void)
{
	return open("/sys/kernel/debug/sync/sw_sync", O_RDWR | O_CLOEXEC);
}

int new_timeline_fence(int timeline, unsigned int value)
{
	struct sw_sync_create_fence_data data = { .value = value, .name = "devbuf-test" };

	must_libc(ioctl(timeline, SW_SYNC_IOC_CREATE_FENCE, &data));
	return data.fence;
}

void advance_timeline(int timeline, unsigned int by)
{
	__u32 value = by;

	must_libc(ioctl(timeline, SW_SYNC_IOC_INC, &value));
}
