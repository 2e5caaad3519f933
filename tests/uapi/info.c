// SPDX-License-Identifier: GPL-2.0-only
/* INFO, DEVICE_INFO, and commands that do not exist. */
#include "common.h"

#include <sys/utsname.h>

#include "kselftest_harness.h"

FIXTURE(info)
{
	int ctx;
};

FIXTURE_SETUP(info)
{
	self->ctx = new_context();
}

FIXTURE_TEARDOWN(info)
{
	close(self->ctx);
}

static struct devbuf_info info_of(int ctx)
{
	struct devbuf_info info = { .size = sizeof(info) };

	must(do_command(ctx, DEVBUF_INFO, &info));
	return info;
}

static bool kernel_is_at_least(int major, int minor)
{
	struct utsname name;
	int its_major, its_minor;

	must_libc(uname(&name));
	must_be(sscanf(name.release, "%d.%d", &its_major, &its_minor) == 2);
	return its_major > major || (its_major == major && its_minor >= minor);
}

TEST_F(info, tells_the_optional_parts)
{
	__u64 features = DEVBUF_FEATURE_URING;

	if (kernel_is_at_least(6, 7))
		features |= DEVBUF_FEATURE_URING_CANCEL;
	EXPECT_EQ(features, info_of(self->ctx).out_features);
}

TEST_F(info, tells_the_version_and_limits)
{
	struct devbuf_info info = info_of(self->ctx);

	EXPECT_EQ(DEVBUF_ABI_VERSION, (int)info.out_abi_version);
	EXPECT_EQ(DEVBUF_MAX_RANGES, (int)info.out_max_ranges);
	EXPECT_EQ(PAGE, info.out_page_size);
}

TEST_F(info, the_instance_is_a_random_uuid_and_the_same_for_everybody)
{
	struct devbuf_info info = info_of(self->ctx);
	int other = new_context();
	struct devbuf_info other_info = info_of(other);

	EXPECT_EQ(0, memcmp(info.out_instance, other_info.out_instance, 16));
	EXPECT_EQ(0x40, info.out_instance[6] & 0xf0);
	EXPECT_EQ(0x80, info.out_instance[8] & 0xc0);
	close(other);
}

/* --- the walk of the devices ------------------------------------------------------------------ */

static int next_device(int ctx, struct devbuf_device_info *info)
{
	__u64 cursor = info->out_cursor;

	memset(info, 0xff, sizeof(*info));
	info->size = sizeof(*info);
	info->pad = 0;
	info->cursor = cursor;
	return do_command(ctx, DEVBUF_DEVICE_INFO, info);
}

static int find_device(int ctx, const char *name, struct devbuf_device_info *info)
{
	int ret;

	info->out_cursor = 0;
	do {
		ret = next_device(ctx, info);
	} while (!ret && strcmp((const char *)info->out_name, name));
	return ret;
}

TEST_F(info, the_walk_ends_with_ENODEV)
{
	struct devbuf_device_info info = { 0 };
	int nr_devices = 0;
	int ret;

	while (!(ret = next_device(self->ctx, &info)))
		ASSERT_GT(1000, ++nr_devices);
	EXPECT_EQ(-ENODEV, ret);
	EXPECT_LE(2, nr_devices);
}

TEST_F(info, no_device_is_seen_twice)
{
	char names[16][DEVBUF_DEVICE_NAME_MAX];
	struct devbuf_device_info info = { 0 };
	int nr_devices = 0;

	while (nr_devices < 16 && !next_device(self->ctx, &info)) {
		memcpy(names[nr_devices], info.out_name, sizeof(names[0]));
		for (int i = 0; i < nr_devices; i++)
			EXPECT_STRNE(names[i], names[nr_devices]);
		nr_devices++;
	}
}

TEST_F(info, names_are_a_prefix_and_a_number_with_zeros_behind)
{
	struct devbuf_device_info info = { 0 };

	while (!next_device(self->ctx, &info)) {
		size_t length = strnlen((char *)info.out_name, sizeof(info.out_name));
		const char *colon = strchr((char *)info.out_name, ':');

		ASSERT_GT(sizeof(info.out_name), length);
		EXPECT_TRUE(all_zero(info.out_name + length, sizeof(info.out_name) - length));
		ASSERT_NE(NULL, colon);
		EXPECT_EQ(strspn(colon + 1, "0123456789"), strlen(colon + 1));
		EXPECT_EQ(0u, info.out_pad);
	}
}

TEST_F(info, a_cursor_past_the_last_device_is_ENODEV)
{
	struct devbuf_device_info info = { .out_cursor = UINT64_MAX };

	EXPECT_EQ(-ENODEV, next_device(self->ctx, &info));
}

TEST_F(info, SYSTEM_is_memory_of_the_machine)
{
	const __u64 caps = DEVBUF_CAP_VIEWS | DEVBUF_CAP_TRANSFER | DEVBUF_CAP_COPY |
			   DEVBUF_CAP_MAP | DEVBUF_CAP_PINNABLE | DEVBUF_CAP_EXPORT |
			   DEVBUF_CAP_REUSE | DEVBUF_CAP_HOST;
	struct devbuf_device_info info;

	ASSERT_EQ(0, find_device(self->ctx, SYSTEM_DEVICE, &info));
	EXPECT_EQ(caps, info.out_caps & ~DEVBUF_CAP_UNCACHED);
	EXPECT_LE(PAGE, info.out_alignment);
	EXPECT_EQ(0u, info.out_alignment & (info.out_alignment - 1));
	EXPECT_LT(0u, info.out_free_nbytes);
	EXPECT_LE(info.out_free_nbytes, info.out_total_nbytes);
	EXPECT_EQ(0, info.out_numa_node);
}

TEST_F(info, USER_has_no_memory_of_its_own)
{
	const __u64 caps = DEVBUF_CAP_VIEWS | DEVBUF_CAP_TRANSFER | DEVBUF_CAP_COPY |
			   DEVBUF_CAP_EXTERNAL;
	const __u64 cannot = DEVBUF_CAP_MAP | DEVBUF_CAP_UNCACHED | DEVBUF_CAP_CONTIGUOUS |
			     DEVBUF_CAP_REUSE;
	struct devbuf_device_info info;

	ASSERT_EQ(0, find_device(self->ctx, USER_DEVICE, &info));
	EXPECT_EQ(caps, info.out_caps & caps);
	EXPECT_EQ(0u, info.out_caps & cannot);
	EXPECT_EQ(0u, info.out_total_nbytes);
	EXPECT_EQ(0u, info.out_free_nbytes);
	EXPECT_EQ(-1, info.out_numa_node);
}

/* --- commands that do not exist --------------------------------------------------------------- */

TEST_F(info, numbers_without_a_command_are_ENOTTY)
{
	struct devbuf_info info = { .size = sizeof(info) };

	for (unsigned int number = DEVBUF_CANCEL - DEVBUF_INFO + 1; number < 256; number++) {
		EXPECT_EQ(-ENOTTY, do_command(self->ctx, _IO(DEVBUF_IOC_TYPE, number), &info))
		TH_LOG("number %#x", number);
	}
}

TEST_F(info, commands_of_another_type_are_ENOTTY)
{
	struct devbuf_info info = { .size = sizeof(info) };

	EXPECT_EQ(-ENOTTY, do_command(self->ctx, _IO(DEVBUF_IOC_TYPE - 1, 0), &info));
	EXPECT_EQ(-ENOTTY, do_command(self->ctx, _IO(0, 0), &info));
}

TEST_F(info, numbers_with_a_direction_are_ENOTTY)
{
	struct devbuf_info info = { .size = sizeof(info) };

	EXPECT_EQ(-ENOTTY, do_command(self->ctx, _IOWR(DEVBUF_IOC_TYPE, 0, info), &info));
}

TEST_F(info, an_unknown_command_does_not_look_at_its_argument)
{
	EXPECT_EQ(-ENOTTY, do_command(self->ctx, _IO(DEVBUF_IOC_TYPE, 0xff), NULL));
}

TEST_HARNESS_MAIN
