/* core/model/op/sequence/prepend.c - learned positions before those of a sequence: class and register tokens. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

static const struct ghp_attribute attributes[] = {{.key = "positions",
                                                   .kind = GHP_ATTRIBUTE_INT,
                                                   .least = 1,
                                                   .most = GHP_MODEL_SIZE,
                                                   .usual = 1,
                                                   .at = {offsetof(struct ghp_layer, prepended)}},
                                                  GHP_ATTRIBUTE_DEVIATION,
                                                  GHP_ATTRIBUTE_FIXED,
                                                  {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    (void)model;
    layer->out = ghp_shape_sequence(layer->in.c, layer->in.h + layer->prepended);
    return GHP_OK;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " positions%" PRId64, local->p);
}

const struct ghp_op_facts ghp_op_facts_prepend = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES(SEQUENCE),
    .shape = shape,
    .params = {{"weight", GHP_INIT_NORMAL, {GHP_DIM_ADDED, GHP_DIM_CHANNEL}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_DY, GHP_AT_DW}},
    .key = key,
};
