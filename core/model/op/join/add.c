/* core/model/op/join/add.c - the sum of its inputs. */
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <stdio.h>

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    return ghp_shape_join(model, layer, false);
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " inputs%d", local->n_inputs);
}

const struct ghp_op_facts ghp_op_facts_add = {
    .least_inputs = 2,
    .most_inputs = GHP_MAX_INPUTS,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .key = key,
    .hands_gradient_on = true,
    .fuses = GHP_FUSES_RELU,
    .fused_as = GHP_FUSES_ADD,
    .by_position = true,
};
