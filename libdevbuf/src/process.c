// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Whether this is still the process that made something, or the child of a fork. */
#define _GNU_SOURCE /* MADV_WIPEONFORK */
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

void dbuf_process_mark(struct process_mark *m)
{
	size_t nbytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	m->page = NULL;
	m->pid = getpid();
	if (page == MAP_FAILED)
		return;
	if (madvise(page, nbytes, MADV_WIPEONFORK)) {
		munmap(page, nbytes);
		return;
	}
	m->page = page;
	*m->page = 1;
}

void dbuf_process_unmark(struct process_mark *m)
{
	if (m->page)
		munmap(m->page, (size_t)sysconf(_SC_PAGESIZE));
}

bool dbuf_process_forked(const struct process_mark *m)
{
	return m->page ? !*m->page : m->pid != getpid();
}
