/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of the raw ABI share.
 *
 * do_<command>() issues one command and returns 0 (or what its comment says) or a negative errno:
 * it is for the call that a test is about. new_<object>() and the like are for what a test needs
 * before it begins: they abort the test when they fail, after saying what failed. So they can be
 * used in threads and in child processes too.
 */
#ifndef DEVBUF_TESTS_UAPI_COMMON_H
#define DEVBUF_TESTS_UAPI_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <linux/devbuf.h>

#define SYSTEM_DEVICE "SYSTEM:0"
#define USER_DEVICE   "USER:0"

#define KIB           1024ULL
#define MIB           (1024 * KIB)
#define GIB           (1024 * MIB)

#define RIGHTS_ALL \
	(DEVBUF_RIGHT_READ | DEVBUF_RIGHT_WRITE | DEVBUF_RIGHT_EXPORT | DEVBUF_RIGHT_MANAGE)
#define RIGHTS_IMPORTED (DEVBUF_RIGHT_READ | DEVBUF_RIGHT_WRITE | DEVBUF_RIGHT_EXPORT)
#define RIGHTS_READER   (DEVBUF_RIGHT_READ | DEVBUF_RIGHT_EXPORT)

/* Bytes of a page. */
extern __u64 PAGE;

/* @call's result, which is not negative; a negative errno ends the test. */
#define must(call)         must_succeed((call), #call, __FILE__, __LINE__)
/* The same for calls that return -1 and set errno. */
#define must_libc(call)    must_succeed(libc_result(call), #call, __FILE__, __LINE__)
/* For anything else that has to be so. */
#define must_be(condition) must_succeed((condition) ? 0 : -EBADE, #condition, __FILE__, __LINE__)
int libc_result(int ret);
int must_succeed(int result, const char *call, const char *file, int line);

/* For a program's main() when this machine has nothing to run it on: prints why, returns the status. */
int skip_program(const char *reason);

/* --- commands (common.c) ---------------------------------------------------------------------- */

int do_command(int ctx, unsigned long command, void *argument);

/* Arguments that are right, for a test to make one of them wrong. */
struct devbuf_create create_argument(const char *device, __u64 nbytes, __u32 flags);

int do_create(int ctx, const char *device, __u64 nbytes, __u32 flags, __u64 *id);
int do_create_user(int ctx, const void *memory, __u64 nbytes, __u64 *id);
int do_view(int ctx, __u64 id, __u64 offset, __u64 nbytes, __u64 *view);
int do_allocate(int ctx, __u64 id);
/* Returns the DEVBUF_ALLOCATED_* bits. */
int do_allocate_flags(int ctx, __u64 id, __u32 flags);
int do_deallocate(int ctx, __u64 id);
int do_destroy(int ctx, __u64 id);
int do_query(int ctx, __u64 id, struct devbuf_query *query);
int do_set_name(int ctx, __u64 id, const char *name);
/* Returns the new file descriptor. */
int do_export(int ctx, __u64 id, __u32 flags);
int do_import(int ctx, int fd, __u64 *id);
int do_sync(int ctx, __u64 id, __u64 offset, __u64 nbytes, __u32 flags);
int do_copyin(int ctx, __u64 id, __u64 offset, const void *from, __u64 nbytes);
int do_copyout(int ctx, __u64 id, __u64 offset, void *to, __u64 nbytes);
/* DEVBUF_COPYIN or DEVBUF_COPYOUT of many ranges. @done may be NULL. */
int do_copy_ranges(int ctx, unsigned long command, const struct devbuf_copy_range *ranges,
		   __u32 nr_ranges, __u64 *done);
int do_transfer(int ctx, __u64 dst, __u64 dst_offset, __u64 src, __u64 src_offset, __u64 nbytes);
/* @transfer->ranges and @nr_ranges are filled in. */
int do_transfer_ranges(int ctx, struct devbuf_transfer *transfer,
		       const struct devbuf_transfer_range *ranges, __u32 nr_ranges);
/* mmap() of the context with MAP_SHARED. @map may be NULL when it should fail. */
int do_map(int ctx, __u64 id, size_t nbytes, int prot, void **map);

/* --- objects that a test needs (common.c) ----------------------------------------------------- */

int new_context(void);
__u64 new_buffer(int ctx, __u64 nbytes);
__u64 new_allocated(int ctx, __u64 nbytes);
__u64 new_allocated_flags(int ctx, __u64 nbytes, __u32 create_flags);
__u64 new_user_buffer(int ctx, const void *memory, __u64 nbytes);
__u64 new_view(int ctx, __u64 id, __u64 offset, __u64 nbytes);
__u64 new_allocated_view(int ctx, __u64 id, __u64 offset, __u64 nbytes);
int new_export(int ctx, __u64 id, __u32 flags);
__u64 new_import(int ctx, int fd);
/* @id of context @from into context @to, by way of a dma-buf that is closed again. */
void give(int from, __u64 id, __u32 export_flags, int to);
void *new_mapping(int ctx, __u64 id, size_t nbytes, int prot);

struct devbuf_query query(int ctx, __u64 id);
/* DEVBUF_CAP_* bits of a device. */
__u64 capabilities(int ctx, const char *device);
/* A number of the context's /proc/self/fdinfo, such as "devbuf-handles"; -1 when it is missing. */
long long fdinfo(int ctx, const char *key);

/* --- bytes (common_memory.c) ------------------------------------------------------------------ */

/*
 * A pattern is an endless row of bytes, another one for every seed, in which neighbouring pages
 * and shifted places differ. The _from functions begin at its byte number @first.
 */
void fill(void *memory, size_t nbytes, unsigned int seed);
void fill_from(void *memory, size_t nbytes, unsigned int seed, size_t first);
bool filled(const void *memory, size_t nbytes, unsigned int seed);
bool filled_from(const void *memory, size_t nbytes, unsigned int seed, size_t first);
bool all_bytes(const void *memory, size_t nbytes, unsigned char byte);
bool all_zero(const void *memory, size_t nbytes);

/* The same for bytes of a buffer, by COPYIN and COPYOUT. */
void buffer_fill(int ctx, __u64 id, __u64 nbytes, unsigned int seed);
bool buffer_filled(int ctx, __u64 id, __u64 offset, __u64 nbytes, unsigned int seed);
bool buffer_filled_from(int ctx, __u64 id, __u64 offset, __u64 nbytes, unsigned int seed,
			size_t first);
bool buffer_zero(int ctx, __u64 id, __u64 offset, __u64 nbytes);

/* Private anonymous memory, whole pages. */
void *new_memory(size_t nbytes);
/* @nbytes bytes, zero, behind the last of which is a page that nobody may touch. */
void *new_edge(size_t nbytes);

/*
 * Memory whose pages arrive late. A thread waits for the faults, calls @on_fault(@argument) at
 * each, and only then fills the page with the pattern of @seed. NULL when this kernel has no
 * userfaultfd.
 */
struct late_memory {
	unsigned char *memory;
	int nr_faults;
	/* The rest is private. */
	size_t nbytes;
	unsigned int seed;
	void (*on_fault)(void *argument);
	void *argument;
	int uffd;
	int stop[2];
	pthread_t thread;
};
struct late_memory *new_late_memory(size_t nbytes, unsigned int seed,
				    void (*on_fault)(void *argument), void *argument);
void end_late_memory(struct late_memory *late);

/* --- processes and files (common_process.c) --------------------------------------------------- */

/* The exit status of a child, or minus the signal that ended it. */
int wait_for(pid_t child);
/* 'R' for a process or thread that runs, another letter for one that waits or is dead. */
char task_state(pid_t task);
/*
 * Whether a process or thread sleeps in an ioctl, by its number; zero for any. await_ioctl() waits
 * until it does.
 */
bool sleeps_in_ioctl(pid_t task, unsigned long command);
void await_ioctl(pid_t task, unsigned long command);
/* Let another process go on, and wait to be let on: one byte over a socket or pipe. */
void signal_peer(int socket);
void await_peer(int socket);
void new_socket_pair(int sockets[2]);
void send_fd(int socket, int fd);
int receive_fd(int socket);
/* How many files this process has open. */
int nr_open_files(void);
/* The number of the file that @fd refers to; dma-bufs have one each. */
__u64 inode_of(int fd);
/* A file with @nbytes of a pattern in it, without a name. */
int new_memfd(size_t nbytes, unsigned int seed);
/*
 * A disk that tests may overwrite, or NULL: the one that the VM runner adds, which is known by its
 * serial number, or the one that the environment variable DEVBUF_TEST_DISK names.
 */
const char *scratch_disk(void);
/* The first number in a file; -1 when there is none. */
long long read_number(const char *path);
/* The number in a file's line that begins with @key; -1 when there is none. */
long long read_key(const char *path, const char *key);
int write_text(const char *path, const char *text);

#endif
