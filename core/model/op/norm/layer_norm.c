/* core/model/op/norm/layer_norm.c - at each sample and pixel, the channels less their mean, over their deviation; then
 * a weight a channel. Its bias is a layer of its own, as a convolution's. */
#include "core/model/attributes.h"
#include "core/model/op.h"
#include "core/model/precision.h"

static const struct ghp_attribute attributes[] = {
    GHP_ATTRIBUTE_EPSILON(1e-5), GHP_ATTRIBUTE_FIXED, {0}};

/* Inverse deviation and mean of each pixel; no less exact than weights. */
static int64_t saved_bytes(const struct ghp_local *local, int element_bytes)
{
    return 2 * local->n * local->h * local->w * ghp_parameter_bytes(element_bytes);
}

const struct ghp_op_facts ghp_op_facts_layer_norm = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .params = {{"weight", GHP_INIT_ONE, {GHP_DIM_CHANNEL}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y | GHP_AT_SAVED},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY | GHP_AT_W | GHP_AT_SAVED,
                                           GHP_AT_DX},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_X | GHP_AT_DY | GHP_AT_SAVED, GHP_AT_DW}},
    .saved_bytes = {saved_bytes},
    .fuses = GHP_FUSES_BIAS | GHP_FUSES_SUM | GHP_FUSES_ADD_BEFORE,
    .divides = ghp_divides_samples,
    .has_bias = true,
    .by_position = true,
};
