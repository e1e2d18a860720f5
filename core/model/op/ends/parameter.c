/* core/model/op/ends/parameter.c - a learned tensor, the same for every sample. Its input, the network's, says how many
 * samples there are, and nothing else. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

static const struct ghp_attribute attributes[] = {GHP_ATTRIBUTE_CHANNELS("channels"),
                                                  {.key = "height",
                                                   .kind = GHP_ATTRIBUTE_INT,
                                                   .least = 1,
                                                   .most = GHP_MODEL_SIZE,
                                                   .usual = 1,
                                                   .at = {offsetof(struct ghp_layer, out.h)}},
                                                  {.key = "width",
                                                   .kind = GHP_ATTRIBUTE_INT,
                                                   .least = 1,
                                                   .most = GHP_MODEL_SIZE,
                                                   .usual = 1,
                                                   .at = {offsetof(struct ghp_layer, out.w)}},
                                                  GHP_ATTRIBUTE_DEVIATION,
                                                  GHP_ATTRIBUTE_FIXED,
                                                  {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    if (layer->inputs[0] != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (parameter) reads '%s', which it does not depend on; give it "
                        "the network's input: \"inputs\": [\"input\"]",
                        layer->name, model->layers[layer->inputs[0]].name);
    layer->out = ghp_shape_image(layer->out.c, layer->out.h, layer->out.w);
    return GHP_OK;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " k%" PRId64 " o%" PRId64 "x%" PRId64, local->k, local->p, local->q);
}

const struct ghp_op_facts ghp_op_facts_parameter = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = shape,
    .params = {{"weight", GHP_INIT_NORMAL, {GHP_DIM_OUT, GHP_DIM_HEIGHT, GHP_DIM_WIDTH}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_W, GHP_AT_Y},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_DY, GHP_AT_DW}},
    .divides = ghp_divides_samples,
    .key = key,
    .takes_samples = true,
};
