/* core/model/op/move/flatten.c - an image or a sequence as a vector, in the order c, h, w. */
#include "core/model/op.h"

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    (void)model;
    layer->out = ghp_shape_image(ghp_shape_elements(layer->in), 1, 1);
    return GHP_OK;
}

/* One pixel is a vector already. */
static bool in_place(struct ghp_shape in)
{
    return in.axes == GHP_AXES_VECTOR;
}

const struct ghp_op_facts ghp_op_facts_flatten = {
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .in_place = in_place,
};
