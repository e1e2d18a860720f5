/* core/model/op/matrix/bias.c - one number a channel, added. */
#include "core/model/attributes.h"
#include "core/model/op.h"

static const struct ghp_attribute attributes[] = {GHP_ATTRIBUTE_FIXED, {0}};

const struct ghp_op_facts ghp_op_facts_bias = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .params = {{"bias", GHP_INIT_ZERO, {GHP_DIM_CHANNEL}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_DY, GHP_AT_DW}},
    .pads = 1u << GHP_SPLIT_CHANNEL,
    .in_place = ghp_in_place_always,
    .hands_gradient_on = true,
    .fused_as = GHP_FUSES_BIAS,
    .by_position = true,
};
