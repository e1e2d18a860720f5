/* core/model/op/ends/squared_error.c - the loss of least squares classification: (x - t)^2 / 2, t = 1 of the label's
 * output and -1 of every other, summed over the outputs; of one output t = -1 of label 0 and 1 of label 1. A negative
 * label is ignored. */
#include "core/model/attributes.h"
#include "core/model/op.h"

static const struct ghp_attribute attributes[] = {GHP_ATTRIBUTES_OUTPUTS, {0}};

const struct ghp_op_facts ghp_op_facts_squared_error = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_ROWS,
    .shape = ghp_loss_shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_LABELS, GHP_AT_Y | GHP_AT_METRICS},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_Y | GHP_AT_LABELS, GHP_AT_DX}},
    .divides = ghp_divides_samples,
    .localize = ghp_loss_localize,
    .is_loss = true,
    .runs_once = true,
    .by_position = true,
};
