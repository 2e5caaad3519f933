// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fences outlive contexts, and whoever holds one may ask it anything at any time: so the module
 * cannot be unloaded before the last of them is gone. Each test unloads the module at its end, and
 * loads it again. Needs the module vgem, and the module's file where the VM runner puts it.
 */
#include "common_async.h"
#include "common_vgem.h"

#include <sys/syscall.h>

#include <linux/dma-buf.h>
#include <linux/sync_file.h>

#include "kselftest_harness.h"

#define MODULE_FILE       "/modules/devbuf.ko"
#define MODULE_PARAMETERS "/etc/devbuf"

#define NBYTES            20000u

static int unload(void)
{
	return libc_result(syscall(SYS_delete_module, "devbuf", O_NONBLOCK));
}

static void load(void)
{
	int file = must_libc(open(MODULE_FILE, O_RDONLY | O_CLOEXEC));
	FILE *parameters = fopen(MODULE_PARAMETERS, "re");
	char line[512] = "";

	if (parameters) {
		if (!fgets(line, sizeof(line), parameters))
			line[0] = 0;
		fclose(parameters);
	}
	line[strcspn(line, "\n")] = 0;
	must_libc(syscall(SYS_finit_module, file, line, 0));
	close(file);
}

FIXTURE(unload)
{
	int card, ctx;
	struct ends ends;
	struct gate gate;
};

FIXTURE_SETUP(unload)
{
	self->card = open_vgem();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	self->gate = new_gate(self->card);
}

/* What the test held is gone now. */
FIXTURE_TEARDOWN(unload)
{
	close(self->ctx);
	close(self->card);
	EXPECT_TRUE(module_uses_fall_to(0));
	EXPECT_EQ(0, unload());
	load();
	self->ctx = new_context();
	new_ends(&self->ends, self->ctx, NBYTES);
	EXPECT_EQ(0, end_fence(must(queue_copy_of(&self->ends, TRANSFER, NULL))));
	close(self->ctx);
}

TEST_F(unload, works_when_nothing_is_left)
{
	must(end_fence(must(queue_copy_of(&self->ends, TRANSFER, NULL))));
}

TEST_F(unload, does_not_work_while_a_fence_has_not_signalled)
{
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));

	close(self->ctx);
	self->ctx = -1;
	EXPECT_EQ(-EWOULDBLOCK, unload());
	EXPECT_EQ(0, fence_status(fence));
	open_gate(&self->gate);
	EXPECT_EQ(-ECANCELED, end_fence(fence));
}

TEST_F(unload, does_not_work_while_a_fence_that_has_signalled_is_open)
{
	int fence = must(queue_copy_of(&self->ends, TRANSFER, NULL));
	struct sync_fence_info info = { 0 };
	struct sync_file_info file = { .num_fences = 1, .sync_fence_info = (uintptr_t)&info };

	EXPECT_EQ(0, fence_result(fence));
	close(self->ctx);
	self->ctx = -1;
	/* All but the fence has ended; it is asked for its names. */
	EXPECT_EQ(-EWOULDBLOCK, unload());
	EXPECT_EQ(0, ioctl(fence, SYNC_IOC_FILE_INFO, &file));
	EXPECT_STREQ("devbuf", info.driver_name);
	EXPECT_EQ(-EWOULDBLOCK, unload());
	close(fence);
}

/* Nobody holds its fence, and it will never be made; but it comes after the gate. */
TEST_F(unload, does_not_work_while_a_copy_is_held)
{
	struct queueing how = { .in_fences = &self->gate.fd, .nr_in_fences = 1 };

	must(queue_copy_of(&self->ends, COPYOUT, &how));
	close(self->ctx);
	self->ctx = -1;
	EXPECT_EQ(-EWOULDBLOCK, unload());
	open_gate(&self->gate);
	EXPECT_TRUE(module_uses_fall_to(0));
	EXPECT_TRUE(untouched(&self->ends, COPYOUT));
}

TEST_F(unload, does_not_work_while_another_drivers_buffer_has_a_fence)
{
	__u32 handle = vgem_create(self->card);
	int dma_buf = vgem_export(self->card, handle);
	int fence = must(queue_copy_of(&self->ends, TRANSFER, AFTER(self->gate.fd)));

	dma_buf_add_fence(dma_buf, DMA_BUF_SYNC_WRITE, fence);
	close(fence);
	close(self->ctx);
	self->ctx = -1;
	EXPECT_EQ(-EWOULDBLOCK, unload());
	open_gate(&self->gate);
	/* With the buffer it goes, in the teardown. */
	close(dma_buf);
	vgem_close(self->card, handle);
}

TEST_F(unload, does_not_work_while_a_merged_fence_is_open)
{
	int fence = must(queue_copy_of(&self->ends, TRANSFER, NULL));
	struct sync_merge_data merge = { .name = "both", .fd2 = self->gate.fd };

	must_libc(ioctl(fence, SYNC_IOC_MERGE, &merge));
	close(fence);
	close(self->ctx);
	self->ctx = -1;
	open_gate(&self->gate);
	EXPECT_EQ(0, end_fence(merge.fence));
}

int main(int argc, char **argv)
{
	int card = open_vgem();

	if (card < 0)
		return skip_program("the module vgem is not loaded");
	close(card);
	if (access(MODULE_FILE, R_OK))
		return skip_program("this is not the VM: no " MODULE_FILE);
	return test_harness_run(argc, argv);
}
