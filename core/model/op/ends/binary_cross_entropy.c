/* core/model/op/ends/binary_cross_entropy.c - the loss of outputs that each say yes or no, as logits: log(1 + e^(-t
 * x)), t = 1 of yes and -1 of no, in the mean over the outputs.
 *
 * A row's label says yes at its output and no at all others; of one output, no by 0 and yes by 1. With `multi_label`
 * each output of a vector has a label of its own, 0 or 1. A negative label is ignored. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

static const struct ghp_attribute attributes[] = {
    {.key = "multi_label",
     .kind = GHP_ATTRIBUTE_BOOL,
     .at = {offsetof(struct ghp_layer, loss.multi_label)}},
    GHP_ATTRIBUTES_OUTPUTS,
    {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    GHP_TRY(ghp_loss_shape(model, layer));
    if (!layer->loss.multi_label || layer->in.axes == GHP_AXES_VECTOR) return GHP_OK;
    return ghp_model_fail(layer, "has a label for each output (multi_label) of a vector alone; put "
                                 "flatten before it or leave multi_label out");
}

const struct ghp_op_facts ghp_op_facts_binary_cross_entropy = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_ROWS,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_LABELS, GHP_AT_Y | GHP_AT_METRICS},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_Y | GHP_AT_LABELS, GHP_AT_DX}},
    .divides = ghp_divides_samples,
    .localize = ghp_loss_localize,
    .is_loss = true,
    .runs_once = true,
    .by_position = true,
};
