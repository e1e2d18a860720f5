/* core/model/op/move/pad.c - elements added before and after channels, rows and columns. */
#include "core/base/hash.h"
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

#define AT(field) offsetof(struct ghp_layer, border.field)

static const char *const fills[] = {
#define FILL_NAME(id, text) text,
    GHP_FILL_LIST(FILL_NAME)
#undef FILL_NAME
        NULL};

static const struct ghp_attribute attributes[] = {
    {.key = "pad",
     .kind = GHP_ATTRIBUTE_SIZES,
     .most = GHP_MODEL_SIZE,
     .at = {AT(before[1]), AT(before[2]), AT(after[1]), AT(after[2])}},
    {.key = "pad_channels",
     .kind = GHP_ATTRIBUTE_SIZES,
     .most = GHP_MODEL_SIZE,
     .at = {AT(before[0]), AT(after[0])}},
    {.key = "fill", .kind = GHP_ATTRIBUTE_CHOICE, .at = {AT(fill)}, .choices = fills},
    {.key = "value", .kind = GHP_ATTRIBUTE_REAL, .least = -1e30, .most = 1e30, .at = {AT(value)}},
    {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    const struct ghp_border *b = &layer->border;
    const int64_t in[3] = {layer->in.c, layer->in.h, layer->in.w};
    int64_t out[3];

    (void)model;
    for (int i = 0; i < 3; i++) {
        bool mirrors = b->fill == GHP_FILL_REFLECT;

        if (b->before[i] < 0 || b->after[i] < 0 || b->before[i] > GHP_MAX_INDEXED ||
            b->after[i] > GHP_MAX_INDEXED ||
            (mirrors && (b->before[i] >= in[i] || b->after[i] >= in[i])))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' (pad) adds %" PRId64 " and %" PRId64
                            " elements to an axis of %" PRId64 "; use 0 to %" PRId64,
                            layer->name, b->before[i], b->after[i], in[i],
                            mirrors ? in[i] - 1 : GHP_MAX_INDEXED);
        out[i] = in[i] + b->before[i] + b->after[i];
    }
    layer->out = ghp_shape_image(out[0], out[1], out[2]);
    return ghp_shape_check_indexed(layer);
}

static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    return layer->border.before[0] == 0 && layer->border.after[0] == 0
               ? ghp_divides_channels(layer, kind)
               : ghp_divides_samples(layer, kind);
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    const struct ghp_border *b = &local->border;
    uint64_t hash = ghp_hash(b->before, sizeof b->before, GHP_HASH_SEED);

    hash = ghp_hash(b->after, sizeof b->after, hash);
    hash = ghp_hash(&b->fill, sizeof b->fill, hash);
    snprintf(text, n, " k%" PRId64 " o%" PRId64 "x%" PRId64 " x%016" PRIx64, local->k, local->p,
             local->q, hash);
}

static int32_t source(const struct ghp_local *local, const int64_t out[3])
{
    const struct ghp_border *b = &local->border;
    const int64_t size[3] = {local->c, local->h, local->w};
    int64_t at[3];

    for (int i = 0; i < 3; i++) {
        at[i] = out[i] - b->before[i];
        if (at[i] >= 0 && at[i] < size[i]) continue;
        if (b->fill == GHP_FILL_CONSTANT) return GHP_INDEX_MAP_NOTHING;
        if (b->fill == GHP_FILL_REFLECT)
            at[i] = at[i] < 0 ? -at[i] : 2 * (size[i] - 1) - at[i];
        else
            at[i] = at[i] < 0 ? 0 : size[i] - 1;
    }
    return ghp_local_place(local, at);
}

static int64_t run(const struct ghp_local *local)
{
    return local->border.before[0] == 0 && local->border.after[0] == 0 ? local->k : 1;
}

const struct ghp_op_facts ghp_op_facts_pad = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_IMAGES,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .source = source,
    .run = run,
    .divides = divides,
    .key = key,
};
