/* core/model/op/ends/softmax_cross_entropy.c - the loss: softmax over the classes, and the mean of -log of the right
 * one.
 *
 * Of a sequence each position has a label and a loss. A negative label is ignored: it has no loss and no gradient. */
#include "core/model/model_private.h"
#include "core/model/op.h"

#define MAX_CLASSES (INT64_C(1) << 24)

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    char text[GHP_SHAPE_TEXT];

    (void)model;
    if (layer->in.c < 2 || layer->in.c > MAX_CLASSES)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (softmax_cross_entropy) takes 2 to 2^24 classes, "
                        "but its input is %s; "
                        "put a linear or global_avg_pool layer before it",
                        layer->name, ghp_shape_format(layer->in, text));
    layer->out = layer->in;
    return GHP_OK;
}

const struct ghp_op_facts ghp_op_facts_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_ROWS,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_LABELS, GHP_AT_Y | GHP_AT_METRICS},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_Y | GHP_AT_LABELS, GHP_AT_DX}},
    .divides = ghp_divides_samples,
    .is_loss = true,
    .runs_once = true,
};
