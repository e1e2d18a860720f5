/* core/model/op/sequence/position_embedding.c - a learned vector for each position, added. */
#include "core/model/attributes.h"
#include "core/model/op.h"

static const struct ghp_attribute attributes[] = {
    GHP_ATTRIBUTE_DEVIATION, GHP_ATTRIBUTE_FIXED, {0}};

const struct ghp_op_facts ghp_op_facts_position_embedding = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES(SEQUENCE),
    .params = {{"weight", GHP_INIT_NORMAL, {GHP_DIM_POSITION, GHP_DIM_CHANNEL}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_DY, GHP_AT_DW}},
    .in_place = ghp_in_place_always,
    .hands_gradient_on = true,
    .by_position = true,
};
