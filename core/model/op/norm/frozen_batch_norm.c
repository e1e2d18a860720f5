/* core/model/op/norm/frozen_batch_norm.c - a batch norm that stays on its running statistics, in training too: a scale
 * and a shift of each channel, which nothing trains. Its tensors are named as a batch norm's. */
#include "core/model/attributes.h"
#include "core/model/op.h"

static const struct ghp_attribute attributes[] = {GHP_ATTRIBUTE_EPSILON(1e-5), {0}};

const struct ghp_op_facts ghp_op_facts_frozen_batch_norm = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .params = {{"weight", GHP_INIT_ONE, {GHP_DIM_CHANNEL}},
               {"bias", GHP_INIT_ZERO, {GHP_DIM_CHANNEL}}},
    .states = {{"running_mean", GHP_INIT_ZERO, {GHP_DIM_CHANNEL}},
               {"running_var", GHP_INIT_ONE, {GHP_DIM_CHANNEL}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W | GHP_AT_STATE, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY | GHP_AT_W | GHP_AT_STATE, GHP_AT_DX}},
    .stays_fixed = true,
    .in_place = ghp_in_place_always,
    .by_position = true,
};
