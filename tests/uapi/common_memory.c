// SPDX-License-Identifier: GPL-2.0-only
/* Patterns of bytes, and memory with peculiarities. */
#include "common.h"

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <linux/userfaultfd.h>

/* --- patterns --------------------------------------------------------------------------------- */

static unsigned char pattern(unsigned int seed, size_t place)
{
	return (place ^ place >> 8 ^ place >> 16) * 37 + seed * 101;
}

void fill_from(void *memory, size_t nbytes, unsigned int seed, size_t first)
{
	unsigned char *bytes = memory;

	for (size_t i = 0; i < nbytes; i++)
		bytes[i] = pattern(seed, first + i);
}

void fill(void *memory, size_t nbytes, unsigned int seed)
{
	fill_from(memory, nbytes, seed, 0);
}

bool filled_from(const void *memory, size_t nbytes, unsigned int seed, size_t first)
{
	const unsigned char *bytes = memory;

	for (size_t i = 0; i < nbytes; i++) {
		if (bytes[i] == pattern(seed, first + i))
			continue;
		fprintf(stderr, "# byte %zu of %zu is %#x and not %#x\n", i, nbytes, bytes[i],
			pattern(seed, first + i));
		return false;
	}
	return true;
}

bool filled(const void *memory, size_t nbytes, unsigned int seed)
{
	return filled_from(memory, nbytes, seed, 0);
}

bool all_bytes(const void *memory, size_t nbytes, unsigned char byte)
{
	const unsigned char *bytes = memory;

	for (size_t i = 0; i < nbytes; i++) {
		if (bytes[i] == byte)
			continue;
		fprintf(stderr, "# byte %zu of %zu is %#x and not %#x\n", i, nbytes, bytes[i],
			byte);
		return false;
	}
	return true;
}

bool all_zero(const void *memory, size_t nbytes)
{
	return all_bytes(memory, nbytes, 0);
}

void buffer_fill(int ctx, __u64 id, __u64 nbytes, unsigned int seed)
{
	void *copy = malloc(nbytes);

	fill(copy, nbytes, seed);
	must(do_copyin(ctx, id, 0, copy, nbytes));
	free(copy);
}

static void *copy_of(int ctx, __u64 id, __u64 offset, __u64 nbytes)
{
	void *copy = malloc(nbytes);

	must(do_copyout(ctx, id, offset, copy, nbytes));
	return copy;
}

bool buffer_filled_from(int ctx, __u64 id, __u64 offset, __u64 nbytes, unsigned int seed,
			size_t first)
{
	void *copy = copy_of(ctx, id, offset, nbytes);
	bool yes = filled_from(copy, nbytes, seed, first);

	free(copy);
	return yes;
}

bool buffer_filled(int ctx, __u64 id, __u64 offset, __u64 nbytes, unsigned int seed)
{
	return buffer_filled_from(ctx, id, offset, nbytes, seed, 0);
}

bool buffer_zero(int ctx, __u64 id, __u64 offset, __u64 nbytes)
{
	void *copy = copy_of(ctx, id, offset, nbytes);
	bool yes = all_zero(copy, nbytes);

	free(copy);
	return yes;
}

/* --- memory ----------------------------------------------------------------------------------- */

static size_t whole_pages(size_t nbytes)
{
	return (nbytes + PAGE - 1) / PAGE * PAGE;
}

void *new_memory(size_t nbytes)
{
	void *memory = mmap(NULL, whole_pages(nbytes), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must_libc(memory == MAP_FAILED ? -1 : 0);
	return memory;
}

void *new_edge(size_t nbytes)
{
	unsigned char *memory = new_memory(whole_pages(nbytes) + PAGE);
	unsigned char *edge = memory + whole_pages(nbytes);

	must_libc(mprotect(edge, PAGE, PROT_NONE));
	return edge - nbytes;
}

/* --- memory whose pages arrive late ----------------------------------------------------------- */

static void serve_fault(struct late_memory *late, __u64 address)
{
	unsigned char *page = (void *)(uintptr_t)(address & ~(PAGE - 1));
	struct uffdio_copy copy = { .dst = (uintptr_t)page, .len = PAGE };
	void *contents = new_memory(PAGE);

	late->nr_faults++;
	if (late->on_fault)
		late->on_fault(late->argument);
	fill_from(contents, PAGE, late->seed, page - late->memory);
	copy.src = (uintptr_t)contents;
	/* EEXIST: the fault was reported twice. */
	if (ioctl(late->uffd, UFFDIO_COPY, &copy) && errno != EEXIST)
		must_libc(-1);
	munmap(contents, PAGE);
}

static void *serve_faults(void *argument)
{
	struct late_memory *late = argument;
	struct pollfd files[] = {
		{ .fd = late->uffd, .events = POLLIN },
		{ .fd = late->stop[0], .events = POLLIN },
	};
	struct uffd_msg message;

	for (;;) {
		must_libc(poll(files, 2, -1));
		if (files[0].revents && read(late->uffd, &message, sizeof(message)) > 0)
			serve_fault(late, message.arg.pagefault.address);
		else if (files[1].revents)
			return NULL;
	}
}

struct late_memory *new_late_memory(size_t nbytes, unsigned int seed,
				    void (*on_fault)(void *argument), void *argument)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct late_memory *late;
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0)
		return NULL;
	late = calloc(1, sizeof(*late));
	*late = (struct late_memory){
		.memory = new_memory(nbytes),
		.nbytes = whole_pages(nbytes),
		.seed = seed,
		.on_fault = on_fault,
		.argument = argument,
		.uffd = uffd,
	};
	/* A huge page would arrive in one fault. */
	madvise(late->memory, late->nbytes, MADV_NOHUGEPAGE);
	must_libc(ioctl(uffd, UFFDIO_API, &api));
	range.range.start = (uintptr_t)late->memory;
	range.range.len = late->nbytes;
	must_libc(ioctl(uffd, UFFDIO_REGISTER, &range));
	must_libc(pipe2(late->stop, O_CLOEXEC));
	must(-pthread_create(&late->thread, NULL, serve_faults, late));
	return late;
}

void end_late_memory(struct late_memory *late)
{
	must_libc(write(late->stop[1], "", 1));
	pthread_join(late->thread, NULL);
	close(late->stop[0]);
	close(late->stop[1]);
	close(late->uffd);
	munmap(late->memory, late->nbytes);
	free(late);
}
