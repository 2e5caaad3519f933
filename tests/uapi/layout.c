// SPDX-License-Identifier: GPL-2.0-only
/*
 * The layout of every struct of the ABI, as it was published. Members lie one behind the other
 * without holes, and those of eight bytes at multiples of eight, so the layout is the same for
 * 32-bit programs.
 */
#include "common.h"
#include "kselftest_harness.h"

struct field {
	const char *name;
	size_t offset, nbytes, published_nbytes;
};

struct layout {
	size_t nbytes, published_nbytes;
	struct field fields[24];
};

#define LAYOUT(type, nbytes, ...)                     \
	{                                             \
		sizeof(struct devbuf_##type), nbytes, \
		{                                     \
			__VA_ARGS__                   \
		}                                     \
	}

#define FIELD(type, member, nbytes)                                         \
	{                                                                   \
#type "." #member, offsetof(struct devbuf_##type, member),  \
			sizeof(((struct devbuf_##type *)0)->member), nbytes \
	}

static const struct layout layouts[] = {
	LAYOUT(info, 40, FIELD(info, size, 4), FIELD(info, out_abi_version, 4),
	       FIELD(info, out_features, 8), FIELD(info, out_instance, 16),
	       FIELD(info, out_max_ranges, 4), FIELD(info, out_page_size, 4)),
	LAYOUT(device_info, 104, FIELD(device_info, size, 4), FIELD(device_info, pad, 4),
	       FIELD(device_info, cursor, 8), FIELD(device_info, out_cursor, 8),
	       FIELD(device_info, out_caps, 8), FIELD(device_info, out_alignment, 8),
	       FIELD(device_info, out_total_nbytes, 8), FIELD(device_info, out_free_nbytes, 8),
	       FIELD(device_info, out_name, 32), FIELD(device_info, out_numa_node, 4),
	       FIELD(device_info, out_pad, 4), FIELD(device_info, out_largest_free_nbytes, 8)),
	LAYOUT(create, 80, FIELD(create, size, 4), FIELD(create, flags, 4),
	       FIELD(create, device, 32), FIELD(create, nbytes, 8), FIELD(create, alignment, 8),
	       FIELD(create, user_addr, 8), FIELD(create, dtype, 4), FIELD(create, pad, 4),
	       FIELD(create, out_id, 8)),
	LAYOUT(view, 64, FIELD(view, size, 4), FIELD(view, flags, 4), FIELD(view, id, 8),
	       FIELD(view, offset, 8), FIELD(view, nbytes, 8), FIELD(view, dtype, 4),
	       FIELD(view, pad, 4), FIELD(view, out_id, 8), FIELD(view, out_base_id, 8),
	       FIELD(view, out_offset, 8)),
	LAYOUT(allocate, 24, FIELD(allocate, size, 4), FIELD(allocate, flags, 4),
	       FIELD(allocate, id, 8), FIELD(allocate, out_flags, 4), FIELD(allocate, out_pad, 4)),
	LAYOUT(id, 16, FIELD(id, size, 4), FIELD(id, flags, 4), FIELD(id, id, 8)),
	LAYOUT(query, 176, FIELD(query, size, 4), FIELD(query, flags, 4), FIELD(query, id, 8),
	       FIELD(query, out_base_id, 8), FIELD(query, out_nbytes, 8),
	       FIELD(query, out_offset, 8), FIELD(query, out_alignment, 8),
	       FIELD(query, out_dtype, 4), FIELD(query, out_create_flags, 4),
	       FIELD(query, out_state, 4), FIELD(query, out_rights, 4),
	       FIELD(query, out_handle_count, 4), FIELD(query, out_largest_page_shift, 4),
	       FIELD(query, out_device, 32), FIELD(query, out_name, 64),
	       FIELD(query, out_address, 8)),
	LAYOUT(set_name, 80, FIELD(set_name, size, 4), FIELD(set_name, flags, 4),
	       FIELD(set_name, id, 8), FIELD(set_name, name, 64)),
	LAYOUT(export, 48, FIELD(export, size, 4), FIELD(export, flags, 4), FIELD(export, id, 8),
	       FIELD(export, out_fd, 4), FIELD(export, out_pad, 4), FIELD(export, out_offset, 8),
	       FIELD(export, out_nbytes, 8), FIELD(export, out_reason, 4), FIELD(export, out_pad2, 4)),
	LAYOUT(import, 32, FIELD(import, size, 4), FIELD(import, flags, 4), FIELD(import, fd, 4),
	       FIELD(import, pad, 4), FIELD(import, out_id, 8), FIELD(import, out_rights, 4),
	       FIELD(import, out_pad, 4)),
	LAYOUT(sync, 32, FIELD(sync, size, 4), FIELD(sync, flags, 4), FIELD(sync, id, 8),
	       FIELD(sync, offset, 8), FIELD(sync, nbytes, 8)),
	LAYOUT(copy_range, 32, FIELD(copy_range, id, 8), FIELD(copy_range, offset, 8),
	       FIELD(copy_range, user_addr, 8), FIELD(copy_range, nbytes, 8)),
	LAYOUT(copy, 56, FIELD(copy, size, 4), FIELD(copy, flags, 4), FIELD(copy, ranges, 8),
	       FIELD(copy, nr_ranges, 4), FIELD(copy, nr_in_fences, 4),
	       FIELD(copy, out_done_nbytes, 8), FIELD(copy, out_path, 4), FIELD(copy, out_fence, 4),
	       FIELD(copy, in_fences, 8), FIELD(copy, cookie, 8)),
	LAYOUT(path, 64, FIELD(path, size, 4), FIELD(path, flags, 4), FIELD(path, dst_id, 8),
	       FIELD(path, src_id, 8), FIELD(path, out_path, 4), FIELD(path, out_pad, 4),
	       FIELD(path, out_reasons, 32)),
	LAYOUT(transfer_range, 40, FIELD(transfer_range, dst_id, 8),
	       FIELD(transfer_range, dst_offset, 8), FIELD(transfer_range, src_id, 8),
	       FIELD(transfer_range, src_offset, 8), FIELD(transfer_range, nbytes, 8)),
	LAYOUT(transfer, 64, FIELD(transfer, size, 4), FIELD(transfer, flags, 4),
	       FIELD(transfer, ranges, 8), FIELD(transfer, nr_ranges, 4),
	       FIELD(transfer, nr_in_fences, 4), FIELD(transfer, out_done_nbytes, 8),
	       FIELD(transfer, out_path, 4), FIELD(transfer, out_fence, 4),
	       FIELD(transfer, in_fences, 8), FIELD(transfer, cookie, 8),
	       FIELD(transfer, operation, 4), FIELD(transfer, pad, 4)),
	LAYOUT(wait, 72, FIELD(wait, size, 4), FIELD(wait, flags, 4), FIELD(wait, id, 8),
	       FIELD(wait, offset, 8), FIELD(wait, nbytes, 8), FIELD(wait, deadline_ns, 8),
	       FIELD(wait, in_fences, 8), FIELD(wait, nr_in_fences, 4), FIELD(wait, pad, 4),
	       FIELD(wait, cookie, 8), FIELD(wait, out_error, 4), FIELD(wait, out_pad, 4)),
	LAYOUT(cancel, 24, FIELD(cancel, size, 4), FIELD(cancel, flags, 4),
	       FIELD(cancel, cookie, 8), FIELD(cancel, out_count, 4), FIELD(cancel, out_pad, 4)),
	LAYOUT(uring_cmd, 16, FIELD(uring_cmd, arg, 8), FIELD(uring_cmd, pad, 8)),
};

TEST(structs_are_as_published)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		const struct layout *layout = &layouts[i];
		size_t end = 0;

		for (const struct field *field = layout->fields; field->name; field++) {
			EXPECT_EQ(end, field->offset) TH_LOG("%s", field->name);
			EXPECT_EQ(field->published_nbytes, field->nbytes) TH_LOG("%s", field->name);
			end += field->nbytes;
		}
		EXPECT_EQ(layout->nbytes, end) TH_LOG("%s", layout->fields[0].name);
		EXPECT_EQ(layout->published_nbytes, end) TH_LOG("%s", layout->fields[0].name);
	}
}

TEST(members_of_eight_bytes_are_aligned_to_eight)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		for (const struct field *field = layouts[i].fields; field->name; field++) {
			if (field->nbytes == 8) {
				EXPECT_EQ(0u, field->offset % 8) TH_LOG("%s", field->name);
			}
		}
	}
}

TEST(commands_have_their_published_numbers)
{
	static const unsigned long commands[] = {
		DEVBUF_INFO,     DEVBUF_DEVICE_INFO, DEVBUF_CREATE,  DEVBUF_VIEW,
		DEVBUF_ALLOCATE, DEVBUF_DEALLOCATE,  DEVBUF_DESTROY, DEVBUF_QUERY,
		DEVBUF_SET_NAME, DEVBUF_EXPORT,      DEVBUF_IMPORT,  DEVBUF_SYNC,
		DEVBUF_COPYIN,   DEVBUF_COPYOUT,     DEVBUF_PATH,    DEVBUF_TRANSFER,
		DEVBUF_WAIT,     DEVBUF_CANCEL,
	};

	for (unsigned long i = 0; i < ARRAY_SIZE(commands); i++)
		EXPECT_EQ(0xbd00 + i, commands[i]);
}

TEST_HARNESS_MAIN
