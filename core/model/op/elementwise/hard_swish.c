/* core/model/op/elementwise/hard_swish.c - x times a sixth of x + 3, which is kept between 0 and 6. */
#include "core/model/op.h"

const struct ghp_op_facts ghp_op_facts_hard_swish = {
    .least_inputs = 1,
    .most_inputs = 1,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DX}},
    .by_position = true,
};
