// SPDX-License-Identifier: GPL-2.0-only
/* Cgroups with a limit on memory. */
#include "common_cgroup.h"

#include <sys/stat.h>

struct group_file {
	char path[160];
};

static struct group_file file_of(const struct group *group, const char *name)
{
	struct group_file file;

	snprintf(file.path, sizeof(file.path), "%s/%s", group->path, name);
	return file;
}

bool has_memory_groups(void)
{
	return !write_text(CGROUPS "/cgroup.subtree_control", "+memory");
}

void new_group(struct group *group, const char *name, __u64 limit)
{
	snprintf(group->path, sizeof(group->path), CGROUPS "/devbuf-%s-%d", name, getpid());
	must_libc(mkdir(group->path, 0755));
	set_limit(group, limit);
	/* Is not there on a kernel without swap. */
	write_text(file_of(group, "memory.swap.max").path, "0");
}

void remove_group(const struct group *group)
{
	rmdir(group->path);
}

void set_limit(const struct group *group, __u64 limit)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", limit);
	must(write_text(file_of(group, "memory.max").path, text));
}

void join(const struct group *group)
{
	must(write_text(file_of(group, "cgroup.procs").path, "0"));
}

int in_group(const struct group *group, void (*work)(const struct group *group))
{
	pid_t child = must_libc(fork());

	if (!child) {
		join(group);
		work(group);
		_exit(0);
	}
	return wait_for(child);
}

long long memory_current(const struct group *group)
{
	return read_number(file_of(group, "memory.current").path);
}

long long nr_killed(const struct group *group)
{
	return read_key(file_of(group, "memory.events").path, "oom_kill");
}

void touch(size_t nbytes)
{
	unsigned char *memory = new_memory(nbytes);

	for (size_t i = 0; i < nbytes; i += PAGE)
		memory[i] = 1;
	must_libc(munmap(memory, nbytes));
}
