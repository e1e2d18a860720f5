/* core/model/op/sequence/window_attention.c - attention within windows of an image, with a learned number for each
 * place of a key relative to its query.
 *
 * Queries, keys and values are sequences of all pixels, window after window: first the windows of the top row, from
 * left to right, and of each window its pixels in the same order. Each head of a window looks at the window alone.
 *
 * With a shift, the image was rolled up and to the left by that number of pixels before it was cut. The last row and
 * the last column of windows then have pixels of both ends of the image, which do not see each other.
 *
 * A fourth input is a table like the learned one, with the places as positions and the heads as channels. What layers
 * compute there is added, too. */
#include "core/model/window_attention.h"

#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "core/model/precision.h"

#include <inttypes.h>
#include <stdio.h>

#define SIZE(name, field, ...)                                                                     \
    {                                                                                              \
        .key = name, .kind = GHP_ATTRIBUTE_INT, .most = GHP_MODEL_CHANNELS,                        \
        .at = {offsetof(struct ghp_layer, field)}, __VA_ARGS__                                     \
    }

static const struct ghp_attribute attributes[] = {
    SIZE("heads", heads.n, .required = true, .least = 1),
    SIZE("window_height", tiles.h, .required = true, .least = 1),
    SIZE("window_width", tiles.w, .required = true, .least = 1),
    SIZE("windows_across", tiles.across, .required = true, .least = 1),
    SIZE("shift_height", tiles.shift_h, .least = 0),
    SIZE("shift_width", tiles.shift_w, .least = 0),
    {.key = "scale",
     .kind = GHP_ATTRIBUTE_REAL,
     .least = 1e-6,
     .most = 1e6,
     .at = {offsetof(struct ghp_layer, heads.scale)}},
    GHP_ATTRIBUTE_DEVIATION,
    GHP_ATTRIBUTE_FIXED,
    {0}};

static enum ghp_status check_windows(const struct ghp_layer *layer)
{
    const struct ghp_tiles *tiles = &layer->tiles;
    int64_t rows = layer->in.h / (tiles->h * tiles->w) / tiles->across;

    if (tiles->h > GHP_WINDOW_MOST || tiles->w > GHP_WINDOW_MOST)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (window_attention) has windows of %" PRId64 " x %" PRId64
                        " pixels; use at most %d on a side",
                        layer->name, tiles->h, tiles->w, GHP_WINDOW_MOST);
    if (rows * tiles->across * tiles->h * tiles->w != layer->in.h)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (window_attention) has %" PRId64
                        " positions, which do not make rows of %" PRId64 " windows of %" PRId64
                        " x %" PRId64 " pixels; use sizes that divide them",
                        layer->name, layer->in.h, tiles->across, tiles->h, tiles->w);
    if (tiles->shift_h >= tiles->h || tiles->shift_w >= tiles->w)
        return ghp_model_fail(layer, "is shifted by a window or more; use a shift below the "
                                     "window's size");
    return GHP_OK;
}

/* The table that it reads. */
static enum ghp_status check_table(const struct ghp_model *model, const struct ghp_layer *layer)
{
    const struct ghp_layer *table = layer->n_inputs > 3 ? &model->layers[layer->inputs[3]] : NULL;
    struct ghp_shape wanted = ghp_shape_sequence(layer->heads.n, ghp_window_offsets(&layer->tiles));
    char text[GHP_SHAPE_TEXT], right[GHP_SHAPE_TEXT];

    if (table == NULL || ghp_shape_equal(table->out, wanted)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' (window_attention) reads a table from '%s' of shape %s; make it "
                    "%s, a channel for each head and a position for each place of a key relative "
                    "to its query",
                    layer->name, table->name, ghp_shape_format(table->out, text),
                    ghp_shape_format(wanted, right));
}

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    int64_t c = layer->in.c, heads = layer->heads.n;

    if (c % heads != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (window_attention) cannot make %" PRId64 " heads of %" PRId64
                        " channels; use a number of heads that divides them",
                        layer->name, heads, c);
    GHP_TRY(check_windows(layer));
    layer->out = layer->in;
    layer->heads.size = c / heads;
    for (int i = 1; i < 3; i++) {
        const struct ghp_layer *input = &model->layers[layer->inputs[i]];
        char text[GHP_SHAPE_TEXT], right[GHP_SHAPE_TEXT];

        if (ghp_shape_equal(input->out, layer->in)) continue;
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (window_attention) reads %s from '%s' of shape %s; make it %s",
                        layer->name, i == 1 ? "keys" : "values", input->name,
                        ghp_shape_format(input->out, text), ghp_shape_format(layer->in, right));
    }
    return check_table(model, layer);
}

/* Forward: scores, and the mean of the values. Backward: scores again, gradients of weights, queries, keys and values;
 * of the table's gradient scores and gradients of weights. */
static int64_t flops(const struct ghp_local *local, enum ghp_pass pass)
{
    int64_t product = 2 * local->n * local->h * local->tiles.h * local->tiles.w * local->k;

    return product * (pass == GHP_PASS_BACKWARD_DATA ? 5 : 2);
}

/* The logarithm of the sum of exponentials of each head and position. */
static int64_t saved_bytes(const struct ghp_local *local, int element_bytes)
{
    return local->n * local->h * local->heads.n * ghp_parameter_bytes(element_bytes);
}

static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    return kind == GHP_SPLIT_CHANNEL ? layer->heads.n : ghp_divides_samples(layer, kind);
}

static void localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                     struct ghp_local *local)
{
    (void)model, (void)layer;
    local->heads.n /= parts;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    const struct ghp_tiles *t = &local->tiles;

    snprintf(text, n, " heads%" PRId64 " window%" PRId64 "x%" PRId64 "%s%s", local->heads.n, t->h,
             t->w, t->shift_h + t->shift_w > 0 ? " shifted" : "",
             ghp_window_has_table(local) ? " table" : "");
}

const struct ghp_op_facts ghp_op_facts_window_attention = {
    .attributes = attributes,
    .least_inputs = 3,
    .most_inputs = 4,
    .takes = GHP_TAKES(SEQUENCE),
    .shape = shape,
    .params = {{"weight", GHP_INIT_NORMAL, {GHP_DIM_OFFSET, GHP_DIM_HEADS}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y | GHP_AT_SAVED},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_W | GHP_AT_Y | GHP_AT_DY |
                                               GHP_AT_SAVED,
                                           GHP_AT_DX},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_X | GHP_AT_W | GHP_AT_Y | GHP_AT_DY |
                                                 GHP_AT_SAVED,
                                             GHP_AT_DW}},
    .flops = flops,
    .saved_bytes = {saved_bytes},
    .divides = divides,
    .localize = localize,
    .key = key,
};
