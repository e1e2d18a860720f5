/* core/model/op/matrix/conv2d.c - two-dimensional convolution with dilation and groups. */
#include "core/model/window.h"
#include "core/model/model_private.h"

#include <inttypes.h>
#include <stdio.h>

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    (void)model;
    GHP_TRY(ghp_window_check_groups(layer));
    return ghp_window_shape(layer, false);
}

/* Groups are independent of each other; one alone is a matrix. */
static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    if (layer->window.groups == 1) return ghp_divides_matrix(layer, kind);
    return kind == GHP_SPLIT_CHANNEL ? layer->window.groups : 0;
}

static void localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                     struct ghp_local *local)
{
    (void)model;
    local->window.groups = layer->window.groups / parts;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    const struct ghp_window *w = &local->window;
    char window[GHP_KEY_BYTES];

    ghp_window_key(w, window, sizeof window);
    snprintf(text, n, " k%" PRId64 "%s d%" PRId64 "x%" PRId64 " g%" PRId64, local->k, window,
             w->dilation_h, w->dilation_w, w->groups);
}

/* Every weight is multiplied once a pixel. */
static int64_t flops(const struct ghp_local *local, enum ghp_pass pass)
{
    const struct ghp_window *w = &local->window;

    (void)pass;
    return 2 * local->n * local->p * local->q * local->k *
           (local->c / (w->groups > 1 ? w->groups : 1)) * w->r * w->s;
}

bool ghp_conv_has_tiles(const struct ghp_local *local)
{
    const struct ghp_window *w = &local->window;

    return local->op == GHP_OP_CONV2D && w->groups == 1 && (w->r == 3 || w->r == 5) &&
           w->s == w->r && w->stride_h == 1 && w->stride_w == 1 && w->dilation_h == 1 &&
           w->dilation_w == 1;
}

bool ghp_conv_tiles_pay(const struct ghp_local *local, enum ghp_pass pass)
{
    int64_t m = GHP_CONV_TILE + 1 - local->window.r,
            least = pass == GHP_PASS_BACKWARD_WEIGHT ? 4 : 2;
    int64_t tiles, outputs = local->n * local->p * local->q;

    if (!ghp_conv_has_tiles(local)) return false;
    tiles = local->n * ((local->p + m - 1) / m) * ((local->q + m - 1) / m);
    return local->c >= 32 && local->k >= 32 && tiles >= 32 && least * outputs >= m * m * tiles;
}

/* Libraries' Winograd of 3 x 3 windows has blocks alone; small images go forward 1.5 to 3 times as fast in blocks
 * (executor/backend/onednn/conv.c). */
static bool wants_blocks(const struct ghp_local *local, enum ghp_pass pass)
{
    return (local->window.r == 3 && ghp_conv_tiles_pay(local, pass)) ||
           (pass == GHP_PASS_FORWARD && local->p * local->q <= 16);
}

const struct ghp_op_facts ghp_op_facts_conv2d = {
    .attributes = ghp_window_convolution,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_IMAGES,
    .shape = shape,
    .params = {{"weight", GHP_INIT_KAIMING, {GHP_DIM_OUT, GHP_DIM_IN, GHP_DIM_R, GHP_DIM_S}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY | GHP_AT_W, GHP_AT_DX},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DW}},
    .flops = flops,
    .divides = divides,
    .localize = localize,
    .wants_blocks = wants_blocks,
    .key = key,
    .is_weighted = true,
    .has_bias = true,
    .chooses_format = true,
    .fuses = GHP_FUSES_BIAS | GHP_FUSES_RELU | GHP_FUSES_MASK | GHP_FUSES_SUMS,
};
