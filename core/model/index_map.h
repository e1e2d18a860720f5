/* core/model/index_map.h - view and pad: output elements that are input elements of the same sample, or a constant.
 *
 * This is the only place that knows which attributes are right; what they mean, core/sharding/index_table.h says.
 *
 * Tested  tests/core/model/test_index_map.c */
#ifndef GHP_CORE_MODEL_INDEX_MAP_H
#define GHP_CORE_MODEL_INDEX_MAP_H

#include "core/model/model.h"

/* The view's sizes, strides and offset against its layer's input and output shapes.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the layer and what would fit */
enum ghp_status ghp_index_map_check_view(const struct ghp_layer *layer);

/* Fills in the output shape of a pad.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT */
enum ghp_status ghp_index_map_check_pad(struct ghp_layer *layer);

/* Whether output channel c takes from input channel c alone, all channels in the same way: then channels can be divided
 * among workers. */
bool ghp_index_map_keeps_channels(const struct ghp_layer *layer);

#endif
