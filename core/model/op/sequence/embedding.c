/* core/model/op/sequence/embedding.c - the row of a table that each token id names.
 *
 * If the rows of the table are divided, each worker gives its own rows, and zeros for those of others; the results are
 * added up. If the rows cannot be divided evenly, the last parts end in rows of zeros, which no token names. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

static const struct ghp_attribute attributes[] = {
    GHP_ATTRIBUTE_CHANNELS("channels"), GHP_ATTRIBUTE_DEVIATION, GHP_ATTRIBUTE_FIXED, {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    (void)model;
    layer->out = ghp_shape_sequence(layer->out.c, layer->in.h);
    return GHP_OK;
}

static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    if (kind == GHP_SPLIT_OUT) return layer->out.c;
    return kind == GHP_SPLIT_ROWS ? layer->in.vocabulary : 0;
}

static void localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                     struct ghp_local *local)
{
    int64_t rows = layer->rows > 0 ? layer->rows : layer->in.vocabulary;

    (void)model;
    local->vocabulary = (rows + parts - 1) / parts;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " k%" PRId64 " v%" PRId64, local->k, local->vocabulary);
}

const struct ghp_op_facts ghp_op_facts_embedding = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = shape,
    .params = {{"weight", GHP_INIT_NORMAL, {GHP_DIM_VOCABULARY, GHP_DIM_OUT}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DW}},
    .divides = divides,
    .pads = 1u << GHP_SPLIT_ROWS,
    .localize = localize,
    .key = key,
    .takes_ids = true,
};
