// SPDX-License-Identifier: GPL-2.0-only
/* The operations on devbuf that are measured. */
#include "common.h"

void open_devbuf(struct subject *subject)
{
	subject->device = open("/dev/devbuf", O_RDWR | O_CLOEXEC);
}

bool can_queue(const struct subject *subject)
{
	struct devbuf_info info = { .size = sizeof(info) };

	return !do_command(subject->device, DEVBUF_INFO, &info) &&
	       info.out_features & DEVBUF_FEATURE_URING;
}

void wait_for_writes(int ctx, __u64 id, __u64 nbytes)
{
	struct devbuf_wait wait = {
		.size = sizeof(wait),
		.flags = DEVBUF_WAIT_WRITE,
		.id = id,
		.nbytes = nbytes,
		.deadline_ns = DEVBUF_NO_DEADLINE,
	};

	must(do_command(ctx, DEVBUF_WAIT, &wait));
}

/* --- what a command costs --------------------------------------------------------------------- */

static void system_call(struct subject *subject)
{
	(void)subject;
	getppid();
}

static void unknown_command(struct subject *subject)
{
	do_command(subject->device, _IO(DEVBUF_IOC_TYPE, 0xff), NULL);
}

static void info(struct subject *subject)
{
	struct devbuf_info info = { .size = sizeof(info) };

	must(do_command(subject->device, DEVBUF_INFO, &info));
}

/* --- buffers ---------------------------------------------------------------------------------- */

static void begin_allocated(struct subject *subject)
{
	subject->id = new_allocated(subject->device, subject->nbytes);
}

static void end_allocated(struct subject *subject)
{
	must(do_destroy(subject->device, subject->id));
}

static void query_buffer(struct subject *subject)
{
	query(subject->device, subject->id);
}

static void create_cold(struct subject *subject)
{
	__u64 id = new_allocated(subject->device, subject->nbytes);

	must(do_destroy(subject->device, id));
}

/* All but the first get the memory of the one before. */
static void create_warm(struct subject *subject)
{
	__u64 id = new_allocated_flags(subject->device, subject->nbytes, DEVBUF_CREATE_REUSE);

	must(do_destroy(subject->device, id));
}

static void create_exported(struct subject *subject)
{
	__u64 id = new_allocated(subject->device, subject->nbytes);

	close(new_export(subject->device, id, DEVBUF_EXPORT_WRITE));
	must(do_destroy(subject->device, id));
}

static void create_view(struct subject *subject)
{
	__u64 view = new_view(subject->device, subject->id, 1, subject->nbytes - 1);

	must(do_destroy(subject->device, view));
}

static void create_allocated_view(struct subject *subject)
{
	__u64 view = new_allocated_view(subject->device, subject->id, 1, subject->nbytes - 1);

	must(do_destroy(subject->device, view));
}

/* --- bytes ------------------------------------------------------------------------------------ */

static void map(struct subject *subject)
{
	void *map =
		new_mapping(subject->device, subject->id, subject->nbytes, PROT_READ | PROT_WRITE);

	touch_pages(map, subject->nbytes);
	munmap(map, subject->nbytes);
}

static void begin_exported(struct subject *subject)
{
	begin_allocated(subject);
	subject->buffer = new_export(subject->device, subject->id, DEVBUF_EXPORT_WRITE);
}

static void end_exported(struct subject *subject)
{
	close(subject->buffer);
	end_allocated(subject);
}

static void export_again(struct subject *subject)
{
	close(new_export(subject->device, subject->id, DEVBUF_EXPORT_WRITE));
}

static void sync_buffer(struct subject *subject)
{
	__u32 access = DEVBUF_SYNC_READ | DEVBUF_SYNC_WRITE;

	must(do_sync(subject->device, subject->id, 0, subject->nbytes, access));
	must(do_sync(subject->device, subject->id, 0, subject->nbytes, access | DEVBUF_SYNC_END));
}

static void copyin(struct subject *subject)
{
	must(do_copyin(subject->device, subject->id, 0, subject->bytes, subject->nbytes));
}

static void copyout(struct subject *subject)
{
	must(do_copyout(subject->device, subject->id, 0, subject->bytes, subject->nbytes));
}

/*
 * Where the bytes begin in the second buffer. At the beginning both ends could have addresses of the
 * same low bits: see new_bytes() in bench.c.
 */
#define SOURCE_OFFSET (90 * PAGE)

static void begin_two(struct subject *subject)
{
	begin_allocated(subject);
	subject->source_id = new_allocated(subject->device, SOURCE_OFFSET + subject->nbytes);
}

static void end_two(struct subject *subject)
{
	must(do_destroy(subject->device, subject->source_id));
	end_allocated(subject);
}

static void transfer(struct subject *subject)
{
	must(do_transfer(subject->device, subject->id, 0, subject->source_id, SOURCE_OFFSET,
			 subject->nbytes));
}

static void queue_transfer(struct subject *subject)
{
	const struct devbuf_transfer_range range = {
		.dst_id = subject->id,
		.src_id = subject->source_id,
		.src_offset = SOURCE_OFFSET,
		.nbytes = subject->nbytes,
	};
	struct devbuf_transfer transfer = { .flags = DEVBUF_ASYNC };

	must(do_transfer_ranges(subject->device, &transfer, &range, 1));
	wait_for_writes(subject->device, subject->id, subject->nbytes);
}

/* What a transfer saves: the same by way of the caller's memory. */
static void bounce(struct subject *subject)
{
	must(do_copyout(subject->device, subject->source_id, SOURCE_OFFSET, subject->bytes,
			subject->nbytes));
	must(do_copyin(subject->device, subject->id, 0, subject->bytes, subject->nbytes));
}

/* --- from a disk ------------------------------------------------------------------------------ */

static void begin_mapped(struct subject *subject)
{
	begin_allocated(subject);
	subject->map =
		new_mapping(subject->device, subject->id, subject->nbytes, PROT_READ | PROT_WRITE);
}

static void begin_direct(struct subject *subject)
{
	begin_mapped(subject);
	try_direct_load(subject);
}

static void end_mapped(struct subject *subject)
{
	munmap(subject->map, subject->nbytes);
	end_allocated(subject);
}

static void load_direct_copyin(struct subject *subject)
{
	load_direct(subject->bytes, subject->nbytes);
	copyin(subject);
}

static void load_copyin(struct subject *subject)
{
	load_cached(subject->bytes, subject->nbytes);
	copyin(subject);
}

/* --- all of them ------------------------------------------------------------------------------ */

const struct devbuf_operations on_devbuf = {
	.system_call = { .run = system_call },
	.unknown_command = { .run = unknown_command },
	.info = { .run = info },
	.query = { begin_allocated, query_buffer, end_allocated },
	.create_cold = { .run = create_cold },
	.create_warm = { .run = create_warm },
	.create_view = { begin_allocated, create_view, end_allocated },
	.create_allocated_view = { begin_allocated, create_allocated_view, end_allocated },
	.create_exported = { .run = create_exported },
	.export_again = { begin_exported, export_again, end_exported },
	.map = { begin_allocated, map, end_allocated },
	.sync = { begin_exported, sync_buffer, end_exported },
	.copyin = { begin_allocated, copyin, end_allocated },
	.copyout = { begin_allocated, copyout, end_allocated },
	.attach = { begin_exported, attach_and_map, end_exported },
	.transfer = { begin_two, transfer, end_two },
	.queue_transfer = { begin_two, queue_transfer, end_two },
	.bounce = { begin_two, bounce, end_two },
	.load_into_mapping = { begin_mapped, load_map_cached, end_mapped },
	.load_direct = { begin_direct, load_map_direct, end_mapped },
	.load_direct_copyin = { begin_allocated, load_direct_copyin, end_allocated },
	.load_copyin = { begin_allocated, load_copyin, end_allocated },
};
