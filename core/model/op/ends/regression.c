/* core/model/op/ends/regression.c - the loss of outputs that are to be numbers: the mean over all outputs of the error of
 * d = output less label.
 *
 * Each output of a sample, of whatever shape, has a label of its own, a real number. */
#include "core/model/attributes.h"
#include "core/model/op.h"

static const char *const errors[] = {
#define ERROR_NAME(id, text) text,
    GHP_ERROR_LIST(ERROR_NAME)
#undef ERROR_NAME
        NULL};

static const struct ghp_attribute bend[] = {{.key = "delta",
                                             .kind = GHP_ATTRIBUTE_REAL,
                                             .least = 1e-9,
                                             .most = 1e9,
                                             .usual = 1,
                                             .at = {offsetof(struct ghp_layer, loss.delta)}},
                                            {0}};
static const struct ghp_attribute *const brings[GHP_ERROR_COUNT] = {
    [GHP_ERROR_HUBER] = bend, [GHP_ERROR_SMOOTH_L1] = bend};

static const struct ghp_attribute attributes[] = {{.key = "error",
                                                   .kind = GHP_ATTRIBUTE_CHOICE,
                                                   .at = {offsetof(struct ghp_layer, loss.error)},
                                                   .choices = errors,
                                                   .brings = brings},
                                                  GHP_ATTRIBUTES_OUTPUTS,
                                                  {0}};

const struct ghp_op_facts ghp_op_facts_regression = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = ghp_loss_shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_LABELS, GHP_AT_Y | GHP_AT_METRICS},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_Y | GHP_AT_LABELS, GHP_AT_DX}},
    .divides = ghp_divides_samples,
    .localize = ghp_loss_localize,
    .is_loss = true,
    .takes_numbers = true,
    .runs_once = true,
    .by_position = true,
};
