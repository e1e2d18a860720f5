/* core/model/op/pool/max_pool.c - the largest value of each window. */
#include "core/model/window.h"
#include "core/model/model_private.h"

/* Reads whether a last, incomplete window counts too. If so, padding is added at the end of the axes. */
static enum ghp_status read_ceil(const struct ghp_node *at, const struct ghp_attribute *attribute,
                                 struct ghp_layer *layer)
{
    struct ghp_window *w = &layer->window;
    bool ceil = false;

    GHP_TRY(ghp_json_opt_bool(at, attribute->key, &ceil));
    if (!ceil) return GHP_OK;
    ghp_window_ceil(layer->in.h, w->pad_top, (w->r - 1) * w->dilation_h + 1, w->stride_h,
                    &w->pad_bottom);
    ghp_window_ceil(layer->in.w, w->pad_left, (w->s - 1) * w->dilation_w + 1, w->stride_w,
                    &w->pad_right);
    return GHP_OK;
}

static const struct ghp_attribute attributes[] = {
    GHP_WINDOW_KERNEL,
    {GHP_WINDOW_STRIDE, .usual_at = GHP_WINDOW_AT(r)},
    GHP_WINDOW_PAD,
    GHP_WINDOW_DILATION,
    {.key = "ceil", .kind = GHP_ATTRIBUTE_OTHER, .read = read_ceil},
    {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    (void)model;
    layer->out.c = layer->in.c;
    return ghp_window_shape(layer, true);
}

/* Saved is, for each output, the place in its window where it was found. */
static int64_t saved_bytes(const struct ghp_local *local, int element_bytes)
{
    (void)element_bytes;
    return local->n * local->k * local->p * local->q *
           (local->window.r * local->window.s <= 255 ? 1 : 4);
}

const struct ghp_op_facts ghp_op_facts_max_pool = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_IMAGES,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y | GHP_AT_SAVED},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY | GHP_AT_SAVED, GHP_AT_DX}},
    .saved_bytes = {saved_bytes},
    .key = ghp_window_pool_key,
    .fuses = GHP_FUSES_RELU_BEFORE,
};
