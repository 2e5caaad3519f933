// SPDX-License-Identifier: GPL-2.0-only
/* IMPORT: the same id in another context or process, with the rights that the dma-buf carries. */
#include "common_vgem.h"

#include <linux/udmabuf.h>

#include "kselftest_harness.h"

#define NBYTES 10000u

FIXTURE(import)
{
	int owner, ctx;
	__u64 id;
};

FIXTURE_SETUP(import)
{
	self->owner = new_context();
	self->ctx = new_context();
	self->id = new_allocated(self->owner, NBYTES);
	buffer_fill(self->owner, self->id, NBYTES, 1);
}

FIXTURE_TEARDOWN(import)
{
	close(self->owner);
	close(self->ctx);
}

static struct devbuf_import import(int ctx, int fd)
{
	struct devbuf_import import = { .size = sizeof(import), .fd = fd };

	must(do_command(ctx, DEVBUF_IMPORT, &import));
	return import;
}

/* --- id, count, rights ------------------------------------------------------------------------ */

TEST_F(import, gives_the_same_id)
{
	struct devbuf_import i = import(self->ctx, new_export(self->owner, self->id, 0));

	EXPECT_EQ(self->id, i.out_id);
	EXPECT_EQ(0u, i.out_pad);
	EXPECT_EQ(NBYTES, query(self->ctx, self->id).out_nbytes);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));
}

TEST_F(import, read_only_gives_no_right_to_write)
{
	struct devbuf_import i = import(self->ctx, new_export(self->owner, self->id, 0));

	EXPECT_EQ(RIGHTS_READER, i.out_rights);
	EXPECT_EQ(RIGHTS_READER, query(self->ctx, self->id).out_rights);
}

TEST_F(import, writable_gives_no_right_to_manage)
{
	struct devbuf_import i =
		import(self->ctx, new_export(self->owner, self->id, DEVBUF_EXPORT_WRITE));

	EXPECT_EQ(RIGHTS_IMPORTED, i.out_rights);
	EXPECT_EQ(RIGHTS_IMPORTED, query(self->ctx, self->id).out_rights);
}

TEST_F(import, unites_the_rights)
{
	give(self->owner, self->id, 0, self->ctx);
	EXPECT_EQ(RIGHTS_READER, query(self->ctx, self->id).out_rights);
	give(self->owner, self->id, DEVBUF_EXPORT_WRITE, self->ctx);
	EXPECT_EQ(RIGHTS_IMPORTED, query(self->ctx, self->id).out_rights);
	give(self->owner, self->id, 0, self->ctx);
	EXPECT_EQ(RIGHTS_IMPORTED, query(self->ctx, self->id).out_rights);
	EXPECT_EQ(3u, query(self->ctx, self->id).out_handle_count);
}

TEST_F(import, at_the_owner_adds_a_count_and_takes_no_right)
{
	give(self->owner, self->id, 0, self->owner);
	EXPECT_EQ(RIGHTS_ALL, query(self->owner, self->id).out_rights);
	EXPECT_EQ(2u, query(self->owner, self->id).out_handle_count);
	EXPECT_EQ(1, fdinfo(self->owner, "devbuf-handles"));
}

TEST_F(import, counts_per_context)
{
	give(self->owner, self->id, 0, self->ctx);
	EXPECT_EQ(1u, query(self->owner, self->id).out_handle_count);
	EXPECT_EQ(1u, query(self->ctx, self->id).out_handle_count);
	EXPECT_EQ(0, do_destroy(self->ctx, self->id));
	EXPECT_EQ(-ENOENT, do_destroy(self->ctx, self->id));
	EXPECT_EQ(0, do_destroy(self->owner, self->id));
}

TEST_F(import, of_a_view)
{
	__u64 view = new_allocated_view(self->owner, self->id, 5000, 100);
	struct devbuf_query q;

	give(self->owner, view, 0, self->ctx);
	q = query(self->ctx, view);
	EXPECT_EQ(self->id, q.out_base_id);
	EXPECT_EQ(5000u, q.out_offset);
	EXPECT_EQ(100u, q.out_nbytes);
	EXPECT_TRUE(buffer_filled_from(self->ctx, view, 0, 100, 1, 5000));
}

/* The dma-buf knows which buffer it is of, not how it was reached. */
TEST_F(import, of_an_import_is_the_same_again)
{
	int third = new_context();

	give(self->owner, self->id, 0, self->ctx);
	give(self->ctx, self->id, 0, third);
	EXPECT_TRUE(buffer_filled(third, self->id, 0, NBYTES, 1));
	close(third);
}

/* --- life ------------------------------------------------------------------------------------- */

TEST_F(import, of_a_buffer_whose_handles_are_all_gone)
{
	int fd = new_export(self->owner, self->id, 0);

	must(do_destroy(self->owner, self->id));
	EXPECT_EQ(self->id, new_import(self->ctx, fd));
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));
}

TEST_F(import, of_a_buffer_whose_context_is_closed)
{
	int fd = new_export(self->owner, self->id, 0);

	close(self->owner);
	self->owner = new_context();
	EXPECT_EQ(self->id, new_import(self->ctx, fd));
	close(fd);
	EXPECT_TRUE(buffer_filled(self->ctx, self->id, 0, NBYTES, 1));
}

TEST_F(import, of_a_deallocated_buffer_has_no_bytes)
{
	int fd = new_export(self->owner, self->id, 0);
	char byte;

	must(do_deallocate(self->owner, self->id));
	EXPECT_EQ(self->id, new_import(self->ctx, fd));
	EXPECT_EQ(0u, query(self->ctx, self->id).out_state);
	EXPECT_EQ(-ENODATA, do_copyout(self->ctx, self->id, 0, &byte, 1));
}

TEST_F(import, sees_the_owner_deallocate)
{
	unsigned char *map;
	char byte;

	give(self->owner, self->id, 0, self->ctx);
	map = new_mapping(self->ctx, self->id, 3 * PAGE, PROT_READ);
	must(do_deallocate(self->owner, self->id));
	EXPECT_EQ(0u, query(self->ctx, self->id).out_state);
	EXPECT_EQ(-ENODATA, do_copyout(self->ctx, self->id, 0, &byte, 1));
	EXPECT_EQ(-ENODATA, do_export(self->ctx, self->id, 0));
	EXPECT_EQ(-ENODATA, do_map(self->ctx, self->id, PAGE, PROT_READ, NULL));
	EXPECT_TRUE(filled(map, NBYTES, 1));
}

TEST_F(import, sees_the_owner_allocate_again)
{
	give(self->owner, self->id, 0, self->ctx);
	must(do_deallocate(self->owner, self->id));
	must(do_allocate(self->owner, self->id));
	EXPECT_TRUE(buffer_zero(self->ctx, self->id, 0, NBYTES));
}

/* --- what cannot be imported ------------------------------------------------------------------ */

static int import_error(int ctx, int fd)
{
	__u64 id;

	return do_import(ctx, fd, &id);
}

TEST_F(import, of_no_file_is_EBADF)
{
	EXPECT_EQ(-EBADF, import_error(self->ctx, -1));
	EXPECT_EQ(-EBADF, import_error(self->ctx, 1000000));
}

TEST_F(import, of_a_mere_path_is_EBADF)
{
	EXPECT_EQ(-EBADF, import_error(self->ctx, open("/", O_PATH | O_CLOEXEC)));
}

TEST_F(import, of_a_closed_file_is_EBADF)
{
	int fd = new_export(self->owner, self->id, 0);

	close(fd);
	EXPECT_EQ(-EBADF, import_error(self->ctx, fd));
}

TEST_F(import, of_a_file_that_is_no_dma_buf_is_EINVAL)
{
	EXPECT_EQ(-EINVAL, import_error(self->ctx, new_memfd(PAGE, 1)));
	EXPECT_EQ(-EINVAL, import_error(self->ctx, self->ctx));
	EXPECT_EQ(-EINVAL, import_error(self->ctx, self->owner));
}

/* Of whichever other exporter there is; -1 when there is none. */
static int new_foreign_dma_buf(void)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = PAGE };
	int udmabuf = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int card = open_vgem();

	if (udmabuf >= 0) {
		create.memfd = new_memfd(PAGE, 1);
		must_libc(fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
		return must_libc(ioctl(udmabuf, UDMABUF_CREATE, &create));
	}
	return card < 0 ? -1 : vgem_export(card, vgem_create(card));
}

TEST_F(import, of_another_exporter_s_dma_buf_is_EOPNOTSUPP)
{
	int dma_buf = new_foreign_dma_buf();

	if (dma_buf < 0)
		SKIP(return, "neither udmabuf nor vgem is there");
	EXPECT_EQ(-EOPNOTSUPP, import_error(self->ctx, dma_buf));
	EXPECT_EQ(0, fdinfo(self->ctx, "devbuf-handles"));
}

/* --- another process -------------------------------------------------------------------------- */

static int importer(int socket)
{
	int ctx = new_context();
	int fd = receive_fd(socket);
	struct devbuf_import i = import(ctx, fd);
	char byte;

	close(fd);
	if (!buffer_filled(ctx, i.out_id, 0, NBYTES, 1) ||
	    query(ctx, i.out_id).out_nbytes != NBYTES)
		return 1;
	buffer_fill(ctx, i.out_id, NBYTES, 2);
	must_libc(write(socket, &i.out_id, sizeof(i.out_id)));
	/* The owner deallocates meanwhile. */
	await_peer(socket);
	return do_copyout(ctx, i.out_id, 0, &byte, 1) == -ENODATA ? 0 : 2;
}

TEST_F(import, in_another_process_by_way_of_a_socket)
{
	__u64 id = 0;
	int sockets[2];
	pid_t child;

	new_socket_pair(sockets);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		close(self->owner);
		close(self->ctx);
		close(sockets[0]);
		_exit(importer(sockets[1]));
	}
	close(sockets[1]);
	send_fd(sockets[0], new_export(self->owner, self->id, DEVBUF_EXPORT_WRITE));
	EXPECT_EQ((ssize_t)sizeof(id), read(sockets[0], &id, sizeof(id)));
	EXPECT_EQ(self->id, id);
	EXPECT_TRUE(buffer_filled(self->owner, self->id, 0, NBYTES, 2));
	EXPECT_EQ(1u, query(self->owner, self->id).out_handle_count);
	EXPECT_EQ(0, do_deallocate(self->owner, self->id));
	signal_peer(sockets[0]);
	EXPECT_EQ(0, wait_for(child));
}

TEST_F(import, of_a_process_that_has_ended)
{
	int sockets[2];
	pid_t child;
	__u64 id;

	new_socket_pair(sockets);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		int ctx = new_context();

		id = new_allocated(ctx, NBYTES);
		buffer_fill(ctx, id, NBYTES, 3);
		send_fd(sockets[1], new_export(ctx, id, 0));
		_exit(0);
	}
	EXPECT_EQ(0, wait_for(child));
	id = new_import(self->ctx, receive_fd(sockets[0]));
	EXPECT_TRUE(buffer_filled(self->ctx, id, 0, NBYTES, 3));
}

TEST_HARNESS_MAIN
