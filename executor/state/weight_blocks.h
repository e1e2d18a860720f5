/* executor/state/weight_blocks.h - a convolution's weights as they lie between steps if oneDNN's primitives want
 * blocks.
 *
 *     plain    [k][c][r][s]                             the field's order: checkpoints, slices, comparisons
 *     blocked  [k / 16][c / 16][r][s][16 of c][16 of k]
 *
 * Both take the same bytes. Weights, gradients and momentum of a layer lie alike, so that updates and reductions, which
 * treat every number alike, need not know. Which weights lie so: ghp_backend_blocks_weights
 * (core/program/memory_format.h). */
#ifndef GHP_EXECUTOR_STATE_WEIGHT_BLOCKS_H
#define GHP_EXECUTOR_STATE_WEIGHT_BLOCKS_H

#include "executor/backend/device.h"

/* form   n_dims 4, the first two multiples of GHP_BLOCK_CHANNELS; float
 *
 * Local. Tested tests/executor/backend/test_kernel_spec.c */
void ghp_weight_blocks_put(const struct ghp_param_descriptor *descriptor, const void *plain,
                           void *nchw16c);
void ghp_weight_blocks_get(const struct ghp_param_descriptor *descriptor, const void *nchw16c,
                           void *plain);

#endif
