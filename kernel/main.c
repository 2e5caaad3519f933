// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module, the file operations of /dev/devbuf, and the command table.
 *
 * A command is written once: a row of the table names its struct and its
 * handler. This file alone knows the envelope in which the struct comes.
 */
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>
#include <linux/uuid.h>

#include "devbuf_private.h"
#include "test/test.h"

/**
 * enum devbuf_on_ring - what a command does when it comes by a ring
 * @DEVBUF_ASKS_A_WORKER: it may sleep, and so is left to one of the ring's workers
 * @DEVBUF_IS_QUICK: it never sleeps for long
 * @DEVBUF_QUEUES: it knows about rings
 * @DEVBUF_COPIES: and about registered buffers
 */
enum devbuf_on_ring {
	DEVBUF_ASKS_A_WORKER,
	DEVBUF_IS_QUICK,
	DEVBUF_QUEUES,
	DEVBUF_COPIES,
};

/**
 * struct devbuf_command_row - a row of the command table
 * @cmd: the ioctl number
 * @size: bytes of the struct
 * @min_size: bytes of its first published form
 * @out: where its @out_* members begin
 * @out_end: where they end
 * @on_ring: what a ring that may not block can expect
 * @handler: does it
 */
struct devbuf_command_row {
	u32 cmd;
	u32 size;
	u32 min_size;
	u32 out;
	u32 out_end;
	enum devbuf_on_ring on_ring;
	int (*handler)(struct devbuf_command *cmd);
};

#define DEVBUF_FEATURES							\
	((IS_ENABLED(CONFIG_IO_URING) ? DEVBUF_FEATURE_URING : 0) |	\
	 (DEVBUF_URING_CANCEL ? DEVBUF_FEATURE_URING_CANCEL : 0))

static uuid_t devbuf_instance;

static int devbuf_ioctl_info(struct devbuf_command *cmd)
{
	struct devbuf_info *info = &cmd->arg.info;

	info->out_abi_version = DEVBUF_ABI_VERSION;
	info->out_features = DEVBUF_FEATURES;
	export_uuid(info->out_instance, &devbuf_instance);
	info->out_max_ranges = DEVBUF_MAX_RANGES;
	info->out_page_size = PAGE_SIZE;
	return devbuf_command_reply(cmd);
}

/* A command whose struct ends, in its first form, with these @out_* members. */
#define DEVBUF_ROW(_cmd, _struct, _first_out, _last_out, _handler, ...)	\
	[_IOC_NR(_cmd)] = {						\
		.cmd = _cmd,						\
		.size = sizeof(_struct),				\
		.min_size = offsetofend(_struct, _last_out),		\
		.out = offsetof(_struct, _first_out),			\
		.out_end = offsetofend(_struct, _last_out),		\
		.handler = _handler,					\
		##__VA_ARGS__						\
	}

/* Likewise, but @out_* members were appended since: _last_out is the last now. */
#define DEVBUF_ROW_GROWN(_cmd, _struct, _first_out, _first_form, _last_out,	\
			 _handler, ...)						\
	[_IOC_NR(_cmd)] = {						\
		.cmd = _cmd,						\
		.size = sizeof(_struct),				\
		.min_size = offsetofend(_struct, _first_form),		\
		.out = offsetof(_struct, _first_out),			\
		.out_end = offsetofend(_struct, _last_out),		\
		.handler = _handler,					\
		##__VA_ARGS__						\
	}

/* A command that has nothing to tell. */
#define DEVBUF_ROW_SILENT(_cmd, _struct, _last, _handler)		\
	[_IOC_NR(_cmd)] = {						\
		.cmd = _cmd,						\
		.size = sizeof(_struct),				\
		.min_size = offsetofend(_struct, _last),		\
		.handler = _handler,					\
	}

static const struct devbuf_command_row devbuf_commands[] = {
	DEVBUF_ROW(DEVBUF_INFO, struct devbuf_info, out_abi_version,
		   out_page_size, devbuf_ioctl_info,
		   .on_ring = DEVBUF_IS_QUICK),
	DEVBUF_ROW_GROWN(DEVBUF_DEVICE_INFO, struct devbuf_device_info, out_cursor,
			 out_pad, out_largest_free_nbytes,
			 devbuf_ioctl_device_info, .on_ring = DEVBUF_IS_QUICK),
	DEVBUF_ROW(DEVBUF_CREATE, struct devbuf_create, out_id, out_id,
		   devbuf_ioctl_create),
	DEVBUF_ROW(DEVBUF_VIEW, struct devbuf_view, out_id, out_offset,
		   devbuf_ioctl_view),
	DEVBUF_ROW(DEVBUF_ALLOCATE, struct devbuf_allocate, out_flags, out_pad,
		   devbuf_ioctl_allocate),
	DEVBUF_ROW_SILENT(DEVBUF_DEALLOCATE, struct devbuf_id, id,
			  devbuf_ioctl_deallocate),
	DEVBUF_ROW_SILENT(DEVBUF_DESTROY, struct devbuf_id, id,
			  devbuf_ioctl_destroy),
	DEVBUF_ROW_GROWN(DEVBUF_QUERY, struct devbuf_query, out_base_id, out_name,
			 out_address, devbuf_ioctl_query,
			 .on_ring = DEVBUF_IS_QUICK),
	DEVBUF_ROW_SILENT(DEVBUF_SET_NAME, struct devbuf_set_name, name,
			  devbuf_ioctl_set_name),
	DEVBUF_ROW_GROWN(DEVBUF_EXPORT, struct devbuf_export, out_fd, out_nbytes,
			 out_pad2, devbuf_ioctl_export),
	DEVBUF_ROW(DEVBUF_IMPORT, struct devbuf_import, out_id, out_pad,
		   devbuf_ioctl_import),
	DEVBUF_ROW_SILENT(DEVBUF_SYNC, struct devbuf_sync, nbytes,
			  devbuf_ioctl_sync),
	DEVBUF_ROW(DEVBUF_COPYIN, struct devbuf_copy, out_done_nbytes, out_fence,
		   devbuf_ioctl_copyin, .on_ring = DEVBUF_COPIES),
	DEVBUF_ROW(DEVBUF_COPYOUT, struct devbuf_copy, out_done_nbytes, out_fence,
		   devbuf_ioctl_copyout, .on_ring = DEVBUF_COPIES),
	DEVBUF_ROW(DEVBUF_PATH, struct devbuf_path, out_path, out_reasons,
		   devbuf_ioctl_path,
		   .on_ring = DEVBUF_IS_QUICK),
	DEVBUF_ROW(DEVBUF_TRANSFER, struct devbuf_transfer, out_done_nbytes,
		   out_fence, devbuf_ioctl_transfer, .on_ring = DEVBUF_QUEUES),
	DEVBUF_ROW(DEVBUF_WAIT, struct devbuf_wait, out_error, out_pad,
		   devbuf_ioctl_wait, .on_ring = DEVBUF_QUEUES),
	DEVBUF_ROW(DEVBUF_CANCEL, struct devbuf_cancel, out_count, out_pad,
		   devbuf_ioctl_cancel, .on_ring = DEVBUF_IS_QUICK),
};

/**
 * devbuf_command_reply - give the caller the @out_* members
 * @cmd: the command, its @out_* members set
 *
 * Called by handlers just before what they made becomes visible: should this
 * fail, they undo it, and nobody has seen it.
 *
 * Return: 0 or -EFAULT.
 */
int devbuf_command_reply(struct devbuf_command *cmd)
{
	u32 out = cmd->row->out;
	u32 end = min(cmd->user_size, cmd->row->out_end);

	if (end <= out)
		return 0;
	if (copy_to_user(cmd->user + out, (void *)&cmd->arg + out, end - out))
		return -EFAULT;
	return 0;
}

/**
 * devbuf_command_run - find the command, copy its struct, and do it
 * @cmd: its @context, @user, @ring and @issue_flags
 * @number: DEVBUF_*
 *
 * Return: what the handler returns, or -ENOTTY, -EFAULT, -EINVAL or -E2BIG.
 */
int devbuf_command_run(struct devbuf_command *cmd, unsigned int number)
{
	const struct devbuf_command_row *row;
	unsigned int nr = _IOC_NR(number);
	int ret;

	if (nr >= ARRAY_SIZE(devbuf_commands))
		return -ENOTTY;
	row = &devbuf_commands[array_index_nospec(nr, ARRAY_SIZE(devbuf_commands))];
	if (row->cmd != number)
		return -ENOTTY;
	if (devbuf_uring_is_fixed(cmd) && row->on_ring != DEVBUF_COPIES)
		return -EINVAL;
	if (devbuf_command_is_nonblocking(cmd) && row->on_ring == DEVBUF_ASKS_A_WORKER)
		return -EAGAIN;

	cmd->row = row;
	if (get_user(cmd->user_size, (u32 __user *)cmd->user))
		return -EFAULT;
	if (cmd->user_size < row->min_size)
		return -EINVAL;
	if (cmd->user_size > DEVBUF_STRUCT_MAX)
		return -E2BIG;
	ret = copy_struct_from_user(&cmd->arg, row->size, cmd->user, cmd->user_size);
	if (ret)
		return ret;
	memset((void *)&cmd->arg + row->out, 0, row->out_end - row->out);
	return row->handler(cmd);
}

static long devbuf_ioctl(struct file *file, unsigned int number,
			 unsigned long arg)
{
	struct devbuf_command cmd;

	cmd.context = file->private_data;
	cmd.user = (void __user *)arg;
	cmd.ring = NULL;
	return devbuf_command_run(&cmd, number);
}

static int devbuf_open(struct inode *inode, struct file *file)
{
	struct devbuf_context *context = devbuf_context_create();

	if (IS_ERR(context))
		return PTR_ERR(context);
	file->private_data = context;
	return 0;
}

static int devbuf_release(struct inode *inode, struct file *file)
{
	devbuf_context_close(file->private_data);
	return 0;
}

static const struct file_operations devbuf_fops = {
	.owner		= THIS_MODULE,
	.open		= devbuf_open,
	.release	= devbuf_release,
	.unlocked_ioctl	= devbuf_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.uring_cmd	= devbuf_uring_cmd,
	.mmap		= devbuf_mmap,
#ifdef CONFIG_PROC_FS
	.show_fdinfo	= devbuf_show_fdinfo,
#endif
	.llseek		= noop_llseek,
};

static struct miscdevice devbuf_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "devbuf",
	.fops	= &devbuf_fops,
	.mode	= 0660,
};

/* What the module is made of, in the order in which it comes to life. */
static const struct devbuf_part {
	int (*init)(void);
	void (*exit)(void);
} devbuf_parts[] = {
	{ devbuf_fence_init, devbuf_fence_exit },
	{ devbuf_queues_init, devbuf_queues_exit },
	{ devbuf_jobs_init, devbuf_jobs_exit },
	{ devbuf_storage_init, devbuf_storage_exit },
	{ devbuf_system_register, devbuf_system_unregister },
	{ devbuf_userptr_register, devbuf_userptr_unregister },
	{ devbuf_mock_register, devbuf_mock_unregister },
};

static void devbuf_parts_exit(size_t count)
{
	while (count--)
		devbuf_parts[count].exit();
}

static int __init devbuf_init(void)
{
	size_t i;
	int ret;

	uuid_gen(&devbuf_instance);
	for (i = 0; i < ARRAY_SIZE(devbuf_parts); i++) {
		ret = devbuf_parts[i].init();
		if (ret)
			goto err_parts;
	}
	ret = misc_register(&devbuf_misc);
	if (ret)
		goto err_parts;
	return 0;

err_parts:
	devbuf_parts_exit(i);
	return ret;
}
module_init(devbuf_init);

static void __exit devbuf_exit(void)
{
	misc_deregister(&devbuf_misc);
	devbuf_parts_exit(ARRAY_SIZE(devbuf_parts));
}
module_exit(devbuf_exit);

MODULE_DESCRIPTION("Device buffers: shareable memory with stable ids and offset views");
MODULE_AUTHOR("The devbuf authors");
MODULE_LICENSE("GPL");
DEVBUF_IMPORT_DMA_BUF_NS;
