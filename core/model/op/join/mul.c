/* core/model/op/join/mul.c - the product of its two inputs, element by element. */
#include "core/model/model_private.h"
#include "core/model/op.h"

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    return ghp_shape_join(model, layer, false);
}

const struct ghp_op_facts ghp_op_facts_mul = {
    .least_inputs = 2,
    .most_inputs = 2,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DX}},
    .by_position = true,
};
