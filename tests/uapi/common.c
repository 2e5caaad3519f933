// SPDX-License-Identifier: GPL-2.0-only
/* Commands, one function each, and the objects that tests begin with. */
#include "common.h"

__u64 PAGE;

__attribute__((constructor)) static void ask_page_size(void)
{
	PAGE = sysconf(_SC_PAGE_SIZE);
}

int libc_result(int ret)
{
	return ret < 0 ? -errno : ret;
}

int must_succeed(int result, const char *call, const char *file, int line)
{
	if (result < 0) {
		fprintf(stderr, "# %s:%d: %s: %s\n", file, line, call, strerror(-result));
		abort();
	}
	return result;
}

int skip_program(const char *reason)
{
	printf("TAP version 13\n1..0 # SKIP %s\n", reason);
	return 4;
}

/* --- commands --------------------------------------------------------------------------------- */

int do_command(int ctx, unsigned long command, void *argument)
{
	return libc_result(ioctl(ctx, command, argument));
}

struct devbuf_create create_argument(const char *device, __u64 nbytes, __u32 flags)
{
	struct devbuf_create create = { .size = sizeof(create), .flags = flags, .nbytes = nbytes };

	memcpy(create.device, device, strnlen(device, sizeof(create.device)));
	return create;
}

int do_create(int ctx, const char *device, __u64 nbytes, __u32 flags, __u64 *id)
{
	struct devbuf_create create = create_argument(device, nbytes, flags);
	int ret = do_command(ctx, DEVBUF_CREATE, &create);

	*id = create.out_id;
	return ret;
}

int do_create_user(int ctx, const void *memory, __u64 nbytes, __u64 *id)
{
	struct devbuf_create create = create_argument(USER_DEVICE, nbytes, 0);
	int ret;

	create.user_addr = (uintptr_t)memory;
	ret = do_command(ctx, DEVBUF_CREATE, &create);
	*id = create.out_id;
	return ret;
}

int do_view(int ctx, __u64 id, __u64 offset, __u64 nbytes, __u64 *view)
{
	struct devbuf_view argument = {
		.size = sizeof(argument),
		.id = id,
		.offset = offset,
		.nbytes = nbytes,
	};
	int ret = do_command(ctx, DEVBUF_VIEW, &argument);

	*view = argument.out_id;
	return ret;
}

int do_allocate_flags(int ctx, __u64 id, __u32 flags)
{
	struct devbuf_allocate allocate = { .size = sizeof(allocate), .flags = flags, .id = id };
	int ret = do_command(ctx, DEVBUF_ALLOCATE, &allocate);

	return ret ?: (int)allocate.out_flags;
}

int do_allocate(int ctx, __u64 id)
{
	int ret = do_allocate_flags(ctx, id, 0);

	return ret < 0 ? ret : 0;
}

static int do_id_command(int ctx, unsigned long command, __u64 id)
{
	struct devbuf_id argument = { .size = sizeof(argument), .id = id };

	return do_command(ctx, command, &argument);
}

int do_deallocate(int ctx, __u64 id)
{
	return do_id_command(ctx, DEVBUF_DEALLOCATE, id);
}

int do_destroy(int ctx, __u64 id)
{
	return do_id_command(ctx, DEVBUF_DESTROY, id);
}

int do_query(int ctx, __u64 id, struct devbuf_query *query)
{
	*query = (struct devbuf_query){ .size = sizeof(*query), .id = id };
	return do_command(ctx, DEVBUF_QUERY, query);
}

int do_set_name(int ctx, __u64 id, const char *name)
{
	struct devbuf_set_name argument = { .size = sizeof(argument), .id = id };

	memcpy(argument.name, name, strnlen(name, sizeof(argument.name)));
	return do_command(ctx, DEVBUF_SET_NAME, &argument);
}

int do_export(int ctx, __u64 id, __u32 flags)
{
	struct devbuf_export argument = { .size = sizeof(argument), .flags = flags, .id = id };
	int ret = do_command(ctx, DEVBUF_EXPORT, &argument);

	return ret ?: argument.out_fd;
}

int do_import(int ctx, int fd, __u64 *id)
{
	struct devbuf_import argument = { .size = sizeof(argument), .fd = fd };
	int ret = do_command(ctx, DEVBUF_IMPORT, &argument);

	*id = argument.out_id;
	return ret;
}

int do_sync(int ctx, __u64 id, __u64 offset, __u64 nbytes, __u32 flags)
{
	struct devbuf_sync argument = {
		.size = sizeof(argument),
		.flags = flags,
		.id = id,
		.offset = offset,
		.nbytes = nbytes,
	};

	return do_command(ctx, DEVBUF_SYNC, &argument);
}

int do_copy_ranges(int ctx, unsigned long command, const struct devbuf_copy_range *ranges,
		   __u32 nr_ranges, __u64 *done)
{
	struct devbuf_copy copy = {
		.size = sizeof(copy),
		.ranges = (uintptr_t)ranges,
		.nr_ranges = nr_ranges,
	};
	int ret = do_command(ctx, command, &copy);

	if (done)
		*done = copy.out_done_nbytes;
	return ret;
}

static int do_copy(int ctx, unsigned long command, __u64 id, __u64 offset, const void *memory,
		   __u64 nbytes)
{
	struct devbuf_copy_range range = {
		.id = id,
		.offset = offset,
		.user_addr = (uintptr_t)memory,
		.nbytes = nbytes,
	};

	return do_copy_ranges(ctx, command, &range, 1, NULL);
}

int do_copyin(int ctx, __u64 id, __u64 offset, const void *from, __u64 nbytes)
{
	return do_copy(ctx, DEVBUF_COPYIN, id, offset, from, nbytes);
}

int do_copyout(int ctx, __u64 id, __u64 offset, void *to, __u64 nbytes)
{
	return do_copy(ctx, DEVBUF_COPYOUT, id, offset, to, nbytes);
}

int do_transfer_ranges(int ctx, struct devbuf_transfer *transfer,
		       const struct devbuf_transfer_range *ranges, __u32 nr_ranges)
{
	transfer->size = sizeof(*transfer);
	transfer->ranges = (uintptr_t)ranges;
	transfer->nr_ranges = nr_ranges;
	return do_command(ctx, DEVBUF_TRANSFER, transfer);
}

int do_transfer(int ctx, __u64 dst, __u64 dst_offset, __u64 src, __u64 src_offset, __u64 nbytes)
{
	struct devbuf_transfer_range range = {
		.dst_id = dst,
		.dst_offset = dst_offset,
		.src_id = src,
		.src_offset = src_offset,
		.nbytes = nbytes,
	};
	struct devbuf_transfer transfer = { 0 };

	return do_transfer_ranges(ctx, &transfer, &range, 1);
}

int do_map(int ctx, __u64 id, size_t nbytes, int prot, void **map)
{
	void *address = mmap(NULL, nbytes, prot, MAP_SHARED, ctx, id * PAGE);

	if (address == MAP_FAILED)
		return -errno;
	if (map)
		*map = address;
	return 0;
}

/* --- objects that a test needs ---------------------------------------------------------------- */

int new_context(void)
{
	return must_libc(open("/dev/devbuf", O_RDWR | O_CLOEXEC));
}

__u64 new_buffer(int ctx, __u64 nbytes)
{
	__u64 id;

	must(do_create(ctx, SYSTEM_DEVICE, nbytes, 0, &id));
	return id;
}

__u64 new_allocated_flags(int ctx, __u64 nbytes, __u32 create_flags)
{
	__u64 id;

	must(do_create(ctx, SYSTEM_DEVICE, nbytes, create_flags, &id));
	must(do_allocate(ctx, id));
	return id;
}

__u64 new_allocated(int ctx, __u64 nbytes)
{
	return new_allocated_flags(ctx, nbytes, 0);
}

__u64 new_user_buffer(int ctx, const void *memory, __u64 nbytes)
{
	__u64 id;

	must(do_create_user(ctx, memory, nbytes, &id));
	must(do_allocate(ctx, id));
	return id;
}

__u64 new_view(int ctx, __u64 id, __u64 offset, __u64 nbytes)
{
	__u64 view;

	must(do_view(ctx, id, offset, nbytes, &view));
	return view;
}

__u64 new_allocated_view(int ctx, __u64 id, __u64 offset, __u64 nbytes)
{
	__u64 view = new_view(ctx, id, offset, nbytes);

	must(do_allocate(ctx, view));
	return view;
}

int new_export(int ctx, __u64 id, __u32 flags)
{
	return must(do_export(ctx, id, flags));
}

__u64 new_import(int ctx, int fd)
{
	__u64 id;

	must(do_import(ctx, fd, &id));
	return id;
}

void give(int from, __u64 id, __u32 export_flags, int to)
{
	int fd = new_export(from, id, export_flags);

	new_import(to, fd);
	close(fd);
}

void *new_mapping(int ctx, __u64 id, size_t nbytes, int prot)
{
	void *map = NULL;

	must(do_map(ctx, id, nbytes, prot, &map));
	return map;
}

struct devbuf_query query(int ctx, __u64 id)
{
	struct devbuf_query query;

	must(do_query(ctx, id, &query));
	return query;
}

__u64 capabilities(int ctx, const char *device)
{
	struct devbuf_device_info info = { .size = sizeof(info) };

	do {
		info.cursor = info.out_cursor;
		must(do_command(ctx, DEVBUF_DEVICE_INFO, &info));
	} while (strcmp((const char *)info.out_name, device));
	return info.out_caps;
}

long long fdinfo(int ctx, const char *key)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", ctx);
	return read_key(path, key);
}
