// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
int probe(void);
int probe(void) { return FOLL_PCI_P2PDMA; }
