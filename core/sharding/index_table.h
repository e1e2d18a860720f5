/* core/sharding/index_table.h - which input element each output element of a view or a pad is.
 *
 * One table says it for a sample; going back, gradients are added along the same table. So every slice, transposition,
 * reshaping, repetition and padding is one loop (executor/backend/cpu/index_map.c), and only the operation's `source`
 * (core/model/op.h) knows what its attributes mean. A table is 32-bit: no sample of theirs has more than 2^31 - 1
 * elements.
 *
 * Tested  tests/core/sharding/test_index_map.c */
#ifndef GHP_CORE_SHARDING_INDEX_TABLE_H
#define GHP_CORE_SHARDING_INDEX_TABLE_H

#include "core/sharding/local.h"

/* For each `run`th output element of a sample, as it lies in memory (h, w, c), the input element's place in memory, or
 * GHP_INDEX_MAP_NOTHING. table: k p q / run entries. */
void ghp_index_map_table(const struct ghp_local *local, int64_t run, int32_t *table);
/* The longest run whose elements follow their first one in the input, too, or are all nothing. */
int64_t ghp_index_map_run(const struct ghp_local *local);

#endif
