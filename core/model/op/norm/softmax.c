/* core/model/op/norm/softmax.c - at each sample and pixel, the channels' exponentials over their sum. */
#include "core/model/op.h"

const struct ghp_op_facts ghp_op_facts_softmax = {
    .least_inputs = 1,
    .most_inputs = 1,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_Y | GHP_AT_DY, GHP_AT_DX}},
    .divides = ghp_divides_samples,
    .by_position = true,
};
