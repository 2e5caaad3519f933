// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The program of README.md: the rest of this file stands there too; tests/docs/check compares. */

#include <devbuf.h>
#include <inttypes.h>
#include <stdio.h>

int main(void)
{
	const float values[4] = { 1, 2, 3, 4 };
	struct devbuf_allocator *driver;
	struct devbuf *matrix, *row;
	int fd;

	if (devbuf_driver_open(NULL, &driver) ||
	    devbuf_create(driver, "SYSTEM", 1000 * 4, DEVBUF_FLOAT32, NULL, &matrix) ||
	    devbuf_view(matrix, 4, DEVBUF_FLOAT32, 7 * sizeof(values), &row) ||
	    devbuf_allocate(row) || /* and with it the matrix */
	    devbuf_copyin(row, values, sizeof(values)) ||
	    devbuf_export(matrix, DEVBUF_FD_WRITE, &fd, NULL)) {
		fprintf(stderr, "%s\n", devbuf_last_error());
		return 1;
	}
	printf("row %" PRIu64 " of matrix %" PRIu64 ", which is dma-buf fd %d\n", devbuf_id(row),
	       devbuf_base_id(row), fd);
	devbuf_unref(row);
	devbuf_unref(matrix);
	devbuf_allocator_unref(driver);
	return 0;
}
