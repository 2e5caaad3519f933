/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of the library share. */
#ifndef DEVBUF_TESTS_UNIT_H
#define DEVBUF_TESTS_UNIT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <devbuf.h>

#include "kselftest_harness.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

size_t __sanitizer_get_current_allocated_bytes(void); /* gcc brings no header for it */
#endif

/*
 * Leaks: the harness ends its children by _exit(), before the sanitizer would look for them.
 * Asking it takes a while, so that is done only when there is more than there was before.
 */
#ifdef __SANITIZE_ADDRESS__
static size_t nbytes_before;

static inline void remember_memory(void)
{
	nbytes_before = __sanitizer_get_current_allocated_bytes();
}

static inline int leaks_found(void)
{
	if (__sanitizer_get_current_allocated_bytes() <= nbytes_before)
		return 0;
	return __lsan_do_recoverable_leak_check();
}
#else
static inline void remember_memory(void)
{
}

static inline int leaks_found(void)
{
	return 0;
}
#endif

/* The last failure was told with these words. */
#define EXPECT_SAID(words)                                                   \
	EXPECT_TRUE(strstr(devbuf_last_error(), (words)) != NULL)            \
	{                                                                    \
		TH_LOG("\"%s\" lacks \"%s\"", devbuf_last_error(), (words)); \
	}

#define EXPECT_OK(call)                            \
	EXPECT_EQ(0, (call))                       \
	{                                          \
		TH_LOG("%s", devbuf_last_error()); \
	}

#define ASSERT_OK(call)                            \
	ASSERT_EQ(0, (call))                       \
	{                                          \
		TH_LOG("%s", devbuf_last_error()); \
	}

/* Run @call in the child of a fork; what it returns must be negative or small. */
#define IN_CHILD(call)                                             \
	({                                                         \
		int status_ = 0;                                   \
		pid_t pid_ = fork();                               \
		if (!pid_)                                         \
			_exit(-(call));                            \
		waitpid(pid_, &status_, 0);                        \
		WIFEXITED(status_) ? -WEXITSTATUS(status_) : -999; \
	})

static inline void fill_pattern(void *bytes, size_t nbytes, unsigned int seed)
{
	unsigned char *p = bytes;

	for (size_t i = 0; i < nbytes; i++)
		p[i] = (unsigned char)((i * 7 + (i >> 8) * 13 + seed) ^ seed);
}

static inline bool is_pattern(const void *bytes, size_t nbytes, unsigned int seed)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < nbytes; i++)
		if (p[i] != (unsigned char)((i * 7 + (i >> 8) * 13 + seed) ^ seed))
			return false;
	return true;
}

static inline bool is_zero(const void *bytes, size_t nbytes)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < nbytes; i++)
		if (p[i])
			return false;
	return true;
}

#endif /* DEVBUF_TESTS_UNIT_H */
