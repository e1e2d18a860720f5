/* core/model/op/sequence/rotary.c - each head's channels in pairs, turned by angles in proportion to the position.
 *
 * Channel i of a head's first half and of its second half are a pair, turned at position p by p base^(-2 i / size). The
 * gradient is turned back. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

static const struct ghp_attribute attributes[] = {{.key = "head_size",
                                                   .kind = GHP_ATTRIBUTE_INT,
                                                   .required = true,
                                                   .least = 2,
                                                   .most = GHP_MODEL_CHANNELS,
                                                   .at = {offsetof(struct ghp_layer, heads.size)}},
                                                  {.key = "base",
                                                   .kind = GHP_ATTRIBUTE_REAL,
                                                   .least = 1,
                                                   .most = 1e12,
                                                   .usual = 10000,
                                                   .at = {offsetof(struct ghp_layer, heads.base)}},
                                                  {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    int64_t size = layer->heads.size;

    (void)model;
    layer->out = layer->in;
    if (size % 2 != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (rotary) pairs the channels of heads of %" PRId64
                        "; use an even head_size",
                        layer->name, size);
    if (layer->in.c % size != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (rotary) has %" PRId64
                        " channels, which are no whole heads of %" PRId64
                        "; use a head_size that divides them",
                        layer->name, layer->in.c, size);
    return GHP_OK;
}

static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    if (kind == GHP_SPLIT_CHANNEL) return layer->in.c / layer->heads.size;
    return kind == GHP_SPLIT_FULL ? 1 : 0;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    snprintf(text, n, " size%" PRId64, local->heads.size);
}

const struct ghp_op_facts ghp_op_facts_rotary = {
    .name = "rotary",
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES(SEQUENCE),
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .in_place = ghp_in_place_always,
    .divides = divides,
    .key = key,
};
