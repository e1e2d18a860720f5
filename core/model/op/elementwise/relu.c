/* core/model/op/elementwise/relu.c - max(x, 0). */
#include "core/model/op.h"

const struct ghp_op_facts ghp_op_facts_relu = {
    .least_inputs = 1,
    .most_inputs = 1,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_Y | GHP_AT_DY, GHP_AT_DX}},
    .in_place = ghp_in_place_always,
    .fused_as = GHP_FUSES_RELU,
    .by_position = true,
};
