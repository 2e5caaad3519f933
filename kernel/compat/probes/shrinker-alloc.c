// SPDX-License-Identifier: GPL-2.0-only
#include <linux/shrinker.h>
struct shrinker *probe(void);
struct shrinker *probe(void) { return shrinker_alloc(0, "probe"); }
