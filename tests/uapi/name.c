// SPDX-License-Identifier: GPL-2.0-only
/* SET_NAME, and the name that QUERY tells. */
#include "common.h"
#include "kselftest_harness.h"

FIXTURE(name)
{
	int ctx;
	__u64 id;
};

FIXTURE_SETUP(name)
{
	self->ctx = new_context();
	self->id = new_buffer(self->ctx, PAGE);
}

FIXTURE_TEARDOWN(name)
{
	close(self->ctx);
}

/* The name must be this, with zeros behind. */
static void expect_name(struct __test_metadata *_metadata, int ctx, __u64 id, const char *name)
{
	struct devbuf_query q = query(ctx, id);
	char expected[DEVBUF_NAME_MAX] = { 0 };

	memcpy(expected, name, strlen(name));
	EXPECT_EQ(0, memcmp(expected, q.out_name, sizeof(expected)))
	TH_LOG("'%.64s' and not '%s'", q.out_name, name);
}

TEST_F(name, is_told_by_query)
{
	EXPECT_EQ(0, do_set_name(self->ctx, self->id, "weights of layer 3"));
	expect_name(_metadata, self->ctx, self->id, "weights of layer 3");
}

TEST_F(name, can_be_changed_for_a_shorter_one)
{
	must(do_set_name(self->ctx, self->id, "a long name"));
	EXPECT_EQ(0, do_set_name(self->ctx, self->id, "short"));
	expect_name(_metadata, self->ctx, self->id, "short");
}

TEST_F(name, empty_takes_it_away)
{
	must(do_set_name(self->ctx, self->id, "name"));
	EXPECT_EQ(0, do_set_name(self->ctx, self->id, ""));
	expect_name(_metadata, self->ctx, self->id, "");
}

TEST_F(name, has_room_for_63_characters)
{
	char longest[DEVBUF_NAME_MAX] = { 0 };

	memset(longest, 'x', sizeof(longest) - 1);
	EXPECT_EQ(0, do_set_name(self->ctx, self->id, longest));
	expect_name(_metadata, self->ctx, self->id, longest);
}

TEST_F(name, without_a_nul_is_EINVAL)
{
	char longer[DEVBUF_NAME_MAX + 1] = { 0 };

	must(do_set_name(self->ctx, self->id, "before"));
	memset(longer, 'x', sizeof(longer) - 1);
	EXPECT_EQ(-EINVAL, do_set_name(self->ctx, self->id, longer));
	expect_name(_metadata, self->ctx, self->id, "before");
}

TEST_F(name, with_something_behind_the_nul_is_EINVAL)
{
	struct devbuf_set_name set_name = {
		.size = sizeof(set_name),
		.id = self->id,
		.name = "name\0x",
	};

	EXPECT_EQ(-EINVAL, do_command(self->ctx, DEVBUF_SET_NAME, &set_name));
}

TEST_F(name, is_printable_ASCII)
{
	for (int c = 1; c < 256; c++) {
		char name[] = { 'a', c, 'b', 0 };
		int expected = c >= ' ' && c <= '~' ? 0 : -EINVAL;

		EXPECT_EQ(expected, do_set_name(self->ctx, self->id, name))
		TH_LOG("character %#x", c);
	}
}

TEST_F(name, of_a_view_is_its_own)
{
	__u64 view = new_view(self->ctx, self->id, 0, 1);

	must(do_set_name(self->ctx, self->id, "base"));
	expect_name(_metadata, self->ctx, view, "");
	must(do_set_name(self->ctx, view, "view"));
	expect_name(_metadata, self->ctx, view, "view");
	expect_name(_metadata, self->ctx, self->id, "base");
}

TEST_F(name, is_seen_by_importers)
{
	int other = new_context();

	must(do_allocate(self->ctx, self->id));
	give(self->ctx, self->id, 0, other);
	must(do_set_name(self->ctx, self->id, "later"));
	expect_name(_metadata, other, self->id, "later");
	close(other);
}

TEST_F(name, is_not_given_by_importers)
{
	int other = new_context();

	must(do_allocate(self->ctx, self->id));
	give(self->ctx, self->id, DEVBUF_EXPORT_WRITE, other);
	EXPECT_EQ(-EACCES, do_set_name(other, self->id, "mine"));
	expect_name(_metadata, self->ctx, self->id, "");
	close(other);
}

TEST_HARNESS_MAIN
