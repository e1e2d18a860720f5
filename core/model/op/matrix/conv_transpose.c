/* core/model/op/matrix/conv_transpose.c - transposed convolution: what a convolution of its output, with the same
 * window, does to gradients. */
#include "core/model/model_private.h"
#include "core/model/window.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    const struct ghp_window *w = &layer->window;

    (void)model;
    GHP_TRY(ghp_window_check_groups(layer));
    layer->out.h = (layer->in.h - 1) * w->stride_h + (w->r - 1) * w->dilation_h + 1 - w->pad_top -
                   w->pad_bottom;
    layer->out.w = (layer->in.w - 1) * w->stride_w + (w->s - 1) * w->dilation_w + 1 - w->pad_left -
                   w->pad_right;
    if (layer->out.h > 0 && layer->out.w > 0) return GHP_OK;
    return ghp_model_fail(layer, "cuts all of its output away; use less padding");
}

/* Every weight is multiplied once an input pixel. */
static int64_t flops(const struct ghp_local *local, enum ghp_pass pass)
{
    const struct ghp_window *w = &local->window;

    (void)pass;
    return 2 * local->n * local->h * local->w * local->c *
           (local->k / (w->groups > 1 ? w->groups : 1)) * w->r * w->s;
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    const struct ghp_window *w = &local->window;
    char window[GHP_KEY_BYTES];

    ghp_window_key(w, window, sizeof window);
    snprintf(text, n, " k%" PRId64 "%s d%" PRId64 "x%" PRId64, local->k, window, w->dilation_h,
             w->dilation_w);
    if (w->groups > 1) snprintf(text + strlen(text), n - strlen(text), " g%" PRId64, w->groups);
}

const struct ghp_op_facts ghp_op_facts_conv_transpose = {
    .attributes = ghp_window_convolution,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_IMAGES,
    .shape = shape,
    .params = {{"weight",
                GHP_INIT_KAIMING,
                {GHP_DIM_CHANNEL, GHP_DIM_GROUP, GHP_DIM_R, GHP_DIM_S}}},
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_W, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY | GHP_AT_W, GHP_AT_DX},
               [GHP_PASS_BACKWARD_WEIGHT] = {GHP_AT_X | GHP_AT_DY, GHP_AT_DW}},
    .flops = flops,
    .divides = ghp_divides_samples,
    .key = key,
    .has_bias = true,
};
