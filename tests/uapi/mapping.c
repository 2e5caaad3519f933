// SPDX-License-Identifier: GPL-2.0-only
/* The life of a mapping: cut, moved, inherited, and longer than buffer, handle and context. */
#include "common.h"
#include "kselftest_harness.h"

#define NR_PAGES 4

FIXTURE(mapping)
{
	int ctx;
	__u64 id;
	size_t nbytes;
	unsigned char *map;
};

FIXTURE_SETUP(mapping)
{
	self->ctx = new_context();
	self->nbytes = NR_PAGES * PAGE;
	self->id = new_allocated(self->ctx, self->nbytes);
	self->map = new_mapping(self->ctx, self->id, self->nbytes, PROT_READ | PROT_WRITE);
	fill(self->map, self->nbytes, 1);
}

FIXTURE_TEARDOWN(mapping)
{
	close(self->ctx);
}

/* --- cut and moved ---------------------------------------------------------------------------- */

TEST_F(mapping, is_split_by_mprotect)
{
	EXPECT_EQ(0, mprotect(self->map + PAGE, PAGE, PROT_READ));
	EXPECT_TRUE(filled(self->map, self->nbytes, 1));
	fill_from(self->map + 2 * PAGE, 2 * PAGE, 2, 2 * PAGE);
	fill(self->map, PAGE, 2);
	EXPECT_TRUE(buffer_filled_from(self->ctx, self->id, PAGE, PAGE, 1, PAGE));
	EXPECT_TRUE(buffer_filled_from(self->ctx, self->id, 2 * PAGE, 2 * PAGE, 2, 2 * PAGE));
}

TEST_F(mapping, with_a_hole_in_the_middle)
{
	EXPECT_EQ(0, munmap(self->map + PAGE, PAGE));
	EXPECT_TRUE(filled(self->map, PAGE, 1));
	EXPECT_TRUE(filled_from(self->map + 2 * PAGE, 2 * PAGE, 1, 2 * PAGE));
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, self->nbytes, 1));
}

TEST_F(mapping, whose_pages_after_a_hole_are_touched_anew)
{
	EXPECT_EQ(0, munmap(self->map, PAGE));
	EXPECT_EQ(0, madvise(self->map + PAGE, 3 * PAGE, MADV_DONTNEED));
	EXPECT_TRUE(filled_from(self->map + PAGE, 3 * PAGE, 1, PAGE));
}

TEST_F(mapping, that_is_unmapped_piece_by_piece_gives_the_memory_back)
{
	must(do_destroy(self->ctx, self->id));
	EXPECT_EQ(0, munmap(self->map + PAGE, PAGE));
	EXPECT_EQ(0, munmap(self->map + 3 * PAGE, PAGE));
	EXPECT_EQ(0, munmap(self->map, PAGE));
	EXPECT_TRUE(filled_from(self->map + 2 * PAGE, PAGE, 1, 2 * PAGE));
	EXPECT_EQ(0, munmap(self->map + 2 * PAGE, PAGE));
}

TEST_F(mapping, cannot_grow)
{
	unsigned char *map = new_mapping(self->ctx, self->id, PAGE, PROT_READ);

	EXPECT_EQ(MAP_FAILED, mremap(map, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_TRUE(filled(map, PAGE, 1));
}

TEST_F(mapping, can_shrink)
{
	EXPECT_EQ(self->map, mremap(self->map, self->nbytes, PAGE, 0));
	EXPECT_TRUE(filled(self->map, PAGE, 1));
}

TEST_F(mapping, can_move)
{
	unsigned char *place = new_memory(self->nbytes);
	unsigned char *map =
		mremap(self->map, self->nbytes, self->nbytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);

	ASSERT_EQ(place, map);
	EXPECT_TRUE(filled(map, self->nbytes, 1));
	EXPECT_EQ(0, madvise(map, self->nbytes, MADV_DONTNEED));
	EXPECT_TRUE(filled(map, self->nbytes, 1));
	fill(map, self->nbytes, 2);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, self->nbytes, 2));
}

TEST_F(mapping, half_of_it_can_move)
{
	unsigned char *place = new_memory(2 * PAGE);
	unsigned char *map =
		mremap(self->map + PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);

	ASSERT_EQ(place, map);
	EXPECT_EQ(0, madvise(map, 2 * PAGE, MADV_DONTNEED));
	EXPECT_TRUE(filled_from(map, 2 * PAGE, 1, PAGE));
}

TEST_F(mapping, its_bytes_cannot_be_punched_out)
{
	EXPECT_EQ(-1, madvise(self->map, self->nbytes, MADV_REMOVE));
	EXPECT_TRUE(filled(self->map, self->nbytes, 1));
}

/* --- inherited -------------------------------------------------------------------------------- */

TEST_F(mapping, is_shared_by_a_child)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		bool seen = filled(self->map, self->nbytes, 1);

		fill(self->map, self->nbytes, 2);
		_exit(seen ? 0 : 1);
	}
	EXPECT_EQ(0, wait_for(child));
	EXPECT_TRUE(filled(self->map, self->nbytes, 2));
}

TEST_F(mapping, of_a_child_outlives_that_of_its_parent)
{
	int sockets[2];
	pid_t child;

	new_socket_pair(sockets);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		close(self->ctx);
		close(sockets[0]);
		await_peer(sockets[1]);
		_exit(filled(self->map, self->nbytes, 1) ? 0 : 1);
	}
	must_libc(munmap(self->map, self->nbytes));
	close(self->ctx);
	self->ctx = new_context();
	buffer_fill(self->ctx, new_allocated(self->ctx, self->nbytes), self->nbytes, 2);
	signal_peer(sockets[0]);
	EXPECT_EQ(0, wait_for(child));
}

TEST_F(mapping, whose_parent_s_child_has_died_stays)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child)
		_exit(0);
	EXPECT_EQ(0, wait_for(child));
	EXPECT_TRUE(filled(self->map, self->nbytes, 1));
}

/* --- longer than what it was made of ---------------------------------------------------------- */

/* The mapping keeps its bytes, and they are not those of a buffer that is made afterwards. */
static void expect_old_memory(struct __test_metadata *_metadata, unsigned char *map, size_t nbytes)
{
	int ctx = new_context();
	__u64 ids[8];

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		ids[i] = new_allocated(ctx, nbytes);
		buffer_fill(ctx, ids[i], nbytes, 2);
	}
	EXPECT_TRUE(filled(map, nbytes, 1));
	EXPECT_EQ(0, madvise(map, nbytes, MADV_DONTNEED));
	EXPECT_TRUE(filled(map, nbytes, 1));
	fill(map, nbytes, 3);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		EXPECT_TRUE(buffer_filled(ctx, ids[i], 0, nbytes, 2));
	EXPECT_TRUE(filled(map, nbytes, 3));
	close(ctx);
}

TEST_F(mapping, outlives_the_memory_of_its_buffer)
{
	must(do_deallocate(self->ctx, self->id));
	expect_old_memory(_metadata, self->map, self->nbytes);
}

TEST_F(mapping, outlives_the_handle)
{
	must(do_destroy(self->ctx, self->id));
	expect_old_memory(_metadata, self->map, self->nbytes);
}

TEST_F(mapping, outlives_the_context)
{
	close(self->ctx);
	expect_old_memory(_metadata, self->map, self->nbytes);
	self->ctx = new_context();
}

TEST_F(mapping, is_not_of_the_memory_that_its_buffer_gets_afterwards)
{
	must(do_deallocate(self->ctx, self->id));
	must(do_allocate(self->ctx, self->id));
	EXPECT_TRUE(buffer_zero(self->ctx, self->id, 0, self->nbytes));
	EXPECT_TRUE(filled(self->map, self->nbytes, 1));
	buffer_fill(self->ctx, self->id, self->nbytes, 2);
	EXPECT_TRUE(filled(self->map, self->nbytes, 1));
}

TEST_F(mapping, made_after_a_reallocation_is_of_the_new_memory)
{
	unsigned char *map;

	must(do_deallocate(self->ctx, self->id));
	must(do_allocate(self->ctx, self->id));
	map = new_mapping(self->ctx, self->id, self->nbytes, PROT_READ | PROT_WRITE);
	EXPECT_TRUE(all_zero(map, self->nbytes));
	fill(map, self->nbytes, 2);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, self->nbytes, 2));
	EXPECT_TRUE(filled(self->map, self->nbytes, 1));
}

TEST_F(mapping, of_a_view_outlives_view_and_base)
{
	__u64 view = new_allocated_view(self->ctx, self->id, PAGE, PAGE);
	unsigned char *map = new_mapping(self->ctx, view, PAGE, PROT_READ | PROT_WRITE);

	must(do_destroy(self->ctx, view));
	must(do_destroy(self->ctx, self->id));
	must_libc(munmap(self->map, self->nbytes));
	EXPECT_TRUE(filled_from(map, PAGE, 1, PAGE));
}

TEST_HARNESS_MAIN
