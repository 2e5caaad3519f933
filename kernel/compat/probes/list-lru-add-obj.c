// SPDX-License-Identifier: GPL-2.0-only
#include <linux/list_lru.h>
bool probe(struct list_lru *lru, struct list_head *item);
bool probe(struct list_lru *lru, struct list_head *item) { return list_lru_add_obj(lru, item); }
