// SPDX-License-Identifier: GPL-2.0-only
/* Compiles everywhere: if it does not, the probes tell nothing (compat.h). */
#include <linux/module.h>
