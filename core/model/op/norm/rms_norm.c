/* core/model/op/norm/rms_norm.c - at each sample and pixel, the channels over the root of their mean square; then a
 * weight a channel. With heads the channels of each head by themselves, and all heads have the same weights. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "core/model/precision.h"

#include <inttypes.h>
#include <stdio.h>

static const struct ghp_attribute attributes[] = {
    {.key = "epsilon",
     .kind = GHP_ATTRIBUTE_REAL,
     .least = 1e-36, /* a vector over its length, or a tiny number if that is more */
     .most = 1,
     .usual = 1e-6,
     .at = {offsetof(struct ghp_layer, norm.epsilon)}},
    {.key = "head_size",
     .kind = GHP_ATTRIBUTE_INT,
     .least = 1,
     .most = GHP_MODEL_CHANNELS,
     .at = {offsetof(struct ghp_layer, heads.size)}},
    {.key = "offset",
     .kind = GHP_ATTRIBUTE_REAL,
     .least = -1e6,
     .most = 1e6,
     .at = {offsetof(struct ghp_layer, norm.offset)}},
    GHP_ATTRIBUTE_FIXED,
    {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    (void)model;
    layer->out = layer->in;
    if (layer->heads.size == 0 || layer->in.c % layer->heads.size == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' (rms_norm) has %" PRId64
                    " channels, which do not divide into heads of %" PRId64
                    "; use a head_size that divides them",
                    layer->name, layer->in.c, layer->heads.size);
}

static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    if (kind == GHP_SPLIT_CHANNEL)
        return layer->heads.size > 0 ? layer->in.c / layer->heads.size : 0;
    return ghp_divides_samples(layer, kind);
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    if (local->heads.size > 0) snprintf(text, n, " size%" PRId64, local->heads.size);
}

/* Inverse root mean square of each pixel and head; no less exact than weights. */
static int64_t saved_bytes(const struct ghp_local *local, int element_bytes)
{
    return local->n * local->h * local->w * (local->c / ghp_local_head(local)) *
           ghp_parameter_bytes(element_bytes);
}

const struct ghp_op_facts ghp_op_facts_rms_norm = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = shape,
    .params = {{"weight", GHP_INIT_ONE, {GHP_DIM_HEAD}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y | GHP_AT_SAVED},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_DY | GHP_AT_W | GHP_AT_SAVED,
                                           GHP_AT_DX},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_X | GHP_AT_DY | GHP_AT_SAVED, GHP_AT_DW}},
    .saved_bytes = {saved_bytes},
    .fuses = GHP_FUSES_SUM | GHP_FUSES_ADD_BEFORE,
    .divides = divides,
    .by_position = true,
    .key = key,
};
