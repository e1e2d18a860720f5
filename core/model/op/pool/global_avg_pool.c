/* core/model/op/pool/global_avg_pool.c - the mean of each channel over all pixels. */
#include "core/model/op.h"

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    (void)model;
    layer->out = ghp_shape_image(layer->in.c, 1, 1);
    return GHP_OK;
}

const struct ghp_op_facts ghp_op_facts_global_avg_pool = {
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_IMAGES,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
};
