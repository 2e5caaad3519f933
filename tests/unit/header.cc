// SPDX-License-Identifier: GPL-2.0-only
/*
 * The header in C++, together with the ABI's: compiled by tests/check with
 * -Wall -Wextra -Wpedantic -Werror.
 */
#include <devbuf.h>
#include <linux/devbuf.h>

static const devbuf_dtype constant = DEVBUF_FLOAT32_INIT;
static devbuf_spec spec = DEVBUF_SPEC_INIT;
static devbuf_device_props props = DEVBUF_DEVICE_PROPS_INIT;
static devbuf_plan plan = DEVBUF_PLAN_INIT;
static devbuf_async how = DEVBUF_ASYNC_INIT;

int use(devbuf_allocator *a)
{
	struct devbuf_status status = DEVBUF_STATUS_INIT;
	struct devbuf_allocator_ops ops = {};
	struct devbuf_create create = {}; /* the ABI's; devbuf_create() is ours */
	enum devbuf_copy_path took;
	struct devbuf *b, *v;
	size_t itemsize = devbuf_dtype_itemsize(DEVBUF_BFLOAT16);

	ops.size = sizeof(ops);
	create.size = sizeof(create);
	if (devbuf_create(a, "SYSTEM", 64, DEVBUF_FLOAT32, &spec, &b))
		return -1;
	if (devbuf_view(b, 4, devbuf_dtype_vector(DEVBUF_INT8, 4), 16, &v) ||
	    devbuf_copy(v, b, &took) || devbuf_get_status(b, &status) ||
	    devbuf_sync(b, 0, 1, DEVBUF_CPU_READ | DEVBUF_CPU_END))
		return -1;
	if (devbuf_transfer_async(v, 0, b, 0, 16, DEVBUF_NO_CPU, &how) ||
	    devbuf_wait(v, 0, 16, DEVBUF_CPU_READ, DEVBUF_FOREVER, NULL) || devbuf_cancel(a, 1, NULL))
		return -1;
	return devbuf_dtype_equal(devbuf_dtype_of(b), constant) && took == DEVBUF_VIA_CPU &&
	       itemsize == 2 && props.caps & DEVBUF_CAN_VIEW && !plan.why[0];
}
