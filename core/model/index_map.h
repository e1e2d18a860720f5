/* core/model/index_map.h - view and pad: output elements that are input elements of the same sample, or a constant.
 *
 * One table says for each output element which input element it is; going back, gradients are added along the same
 * table. So every slice, transposition, reshaping, repetition and padding is one loop (executor/backend/cpu/index_map.c), and
 * this is the only place that knows what the attributes mean. A table is 32-bit: no sample of theirs has more than
 * 2^31 - 1 elements.
 *
 * Tested  tests/core/test_gather.c */
#ifndef GHP_CORE_MODEL_INDEX_MAP_H
#define GHP_CORE_MODEL_INDEX_MAP_H

#include "core/sharding/local.h"

enum { GHP_GATHER_NOTHING = -1 }; /* table: the constant */

/* The view's sizes, strides and offset against its layer's input and output shapes.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the layer and what would fit */
enum ghp_status ghp_gather_check_view(const struct ghp_layer *layer);

/* Fills in the output shape of a pad.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT */
enum ghp_status ghp_gather_check_pad(struct ghp_layer *layer);

/* Whether output channel c takes from input channel c alone, all channels in the same way: then channels can be divided
 * among workers. */
bool ghp_gather_keeps_channels(const struct ghp_layer *layer);

/* For each output element of a sample, as it lies in memory (h, w, c), the input element's place in memory, or
 * GHP_GATHER_NOTHING. table: k p q entries. */
void ghp_gather_table(const struct ghp_local *local, int32_t *table);

uint64_t ghp_gather_hash(const struct ghp_local *local); /* of the attributes */

#endif
