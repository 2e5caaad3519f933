// SPDX-License-Identifier: GPL-2.0-only
/*
 * What /proc/<pid>/fdinfo tells about a context.
 */
#include <linux/fs.h>
#include <linux/seq_file.h>

#include "devbuf_private.h"

void devbuf_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct devbuf_context *context = file->private_data;
	struct devbuf_reuse *reuse = &context->reuse;
	u64 handles, allocated_nbytes;

	devbuf_context_usage(context, &handles, &allocated_nbytes);
	seq_printf(m, "devbuf-handles:\t%llu\n", handles);
	seq_printf(m, "devbuf-allocated-nbytes:\t%llu\n", allocated_nbytes);
	seq_printf(m, "devbuf-cached-nbytes:\t%llu\n", READ_ONCE(reuse->nbytes));
	seq_printf(m, "devbuf-reuse-hits:\t%llu\n", READ_ONCE(reuse->hits));
	seq_printf(m, "devbuf-reuse-misses:\t%llu\n", READ_ONCE(reuse->misses));
}
