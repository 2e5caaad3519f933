// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The version, and failures in words: one sentence per thread. */
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

#define STRING(x)  #x
#define VERSION(x) STRING(x)

static _Thread_local char words[256];

const char *devbuf_version(void)
{
	return VERSION(DEVBUF_VERSION_MAJOR) "." VERSION(DEVBUF_VERSION_MINOR) "." VERSION(
		DEVBUF_VERSION_PATCH);
}

const char *devbuf_last_error(void)
{
	return words;
}

/* Words that tell of earlier words may be among the arguments. */
int dbuf_fail(int error, const char *format, ...)
{
	char fresh[sizeof(words)];
	va_list args;

	va_start(args, format);
	vsnprintf(fresh, sizeof(fresh), format, args);
	va_end(args);
	memcpy(words, fresh, sizeof(words));
	return error;
}

/* One errno has one meaning, that of the header; strerror() knows what is not in it. */
static const struct {
	int error;
	const char *reason;
} reasons[] = {
	{ -EINVAL, "an argument is wrong" },
	{ -EOVERFLOW, "a size or an offset wraps around" },
	{ -ENOENT, "this connection holds no such id" },
	{ -EACCES, "the handle lacks the right, or does not reach these bytes" },
	{ -EPERM, "the caller lacks a capability, or is another process" },
	{ -EALREADY, "it is allocated already" },
	{ -ENODATA, "it is not allocated" },
	{ -EBUSY, "it is in use" },
	{ -EOPNOTSUPP, "the device or the kernel cannot do that" },
	{ -ENODEV, "there is no such device, or it is gone" },
	{ -ENOMEM, "out of memory, or over a limit on it" },
	{ -EMFILE, "the process has too many open files" },
	{ -ENFILE, "the system has too many open files" },
	{ -EBADF, "not an open file" },
	{ -EFAULT, "a pointer leads nowhere" },
	{ -EINTR, "a signal ended it" },
	{ -ETIMEDOUT, "a deadline passed" },
	{ -EAGAIN, "the queue is full" },
	{ -EDQUOT, "too much is queued" },
	{ -EIO, "the device failed" },
	{ -ECANCELED, "it was cancelled" },
	{ -ENOTTY, "the driver does not know the command" },
	{ -E2BIG, "the driver is older than the library" },
};

const char *dbuf_reason(int error)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].error == error)
			return reasons[i].reason;
	return strerror(-error);
}
