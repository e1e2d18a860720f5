/* core/model/op/elementwise/silu.c - x times its sigmoid. */
#include "core/model/op.h"

const struct ghp_op_facts ghp_op_facts_silu = {
    .least_inputs = 1,
    .most_inputs = 1,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DX}},
    .by_position = true,
};
