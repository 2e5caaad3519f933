/* SPDX-License-Identifier: GPL-2.0-only */
/* Cgroups with a limit on memory, at /sys/fs/cgroup. */
#ifndef DEVBUF_TESTS_UAPI_COMMON_CGROUP_H
#define DEVBUF_TESTS_UAPI_COMMON_CGROUP_H

#include "common.h"

#define CGROUPS "/sys/fs/cgroup"

struct group {
	char path[96];
};

bool has_memory_groups(void);
/* @name tells groups of one process apart. */
void new_group(struct group *group, const char *name, __u64 limit);
/* Its processes have ended. It may be gone already. */
void remove_group(const struct group *group);
void set_limit(const struct group *group, __u64 limit);
/* This process goes into the group. */
void join(const struct group *group);
/* Runs @work in a child in the group: 0, or minus the signal that ended it. */
int in_group(const struct group *group, void (*work)(const struct group *group));
long long memory_current(const struct group *group);
/* How many processes of the group were killed for want of memory. */
long long nr_killed(const struct group *group);
/* Uses so many bytes of anonymous memory for a moment. */
void touch(size_t nbytes);

#endif
