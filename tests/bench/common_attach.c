// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device at the other end of a dma-buf: vgem, a GPU without hardware. It attaches to what it
 * imports and maps it for DMA at once, and lets go of both when the handle is closed.
 *
 * What vgem does besides (a handle, an object, looking whether it has the dma-buf already) is in the
 * figures, and is the same for every exporter.
 */
#include "../uapi/common_vgem.h"
#include "common.h"

static int vgem = -1;

const char *open_importer(void)
{
	vgem = open_vgem();
	return vgem < 0 ? NULL : "vgem, which maps at import";
}

void attach_and_map(struct subject *subject)
{
	__u32 handle;

	must(vgem_import(vgem, subject->buffer, &handle));
	vgem_close(vgem, handle);
}
