/* core/model/op/join/concat.c - the channels of its inputs, one after the other. */
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    return ghp_shape_join(model, layer, true);
}

static void localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                     struct ghp_local *local)
{
    (void)parts;
    local->c = 0;
    for (int i = 0; i < layer->n_inputs; i++) {
        local->slice[i] = model->layers[layer->inputs[i]].out.c;
        local->c += local->slice[i];
    }
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    size_t at = 0;

    for (int i = 0; i < local->n_inputs && at < n; i++)
        at += (size_t)snprintf(text + at, n - at, "%s%" PRId64, i == 0 ? " slices" : "+",
                               local->slice[i]);
}

const struct ghp_op_facts ghp_op_facts_concat = {
    .least_inputs = 2,
    .most_inputs = GHP_MAX_INPUTS,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .divides = ghp_divides_samples,
    .localize = localize,
    .key = key,
    .by_position = true,
};
