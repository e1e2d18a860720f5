/* core/model/op/pool/avg_pool.c - the mean of each window. */
#include "core/model/window.h"
#include "core/model/model_private.h"

#include <stdio.h>
#include <string.h>

static bool has_padding(const struct ghp_window *w)
{
    return w->pad_top + w->pad_left + w->pad_bottom + w->pad_right > 0;
}

static void write_count_pad(const struct ghp_layer *layer, const struct ghp_attribute *attribute,
                            struct ghp_json_object at)
{
    if (!layer->window.count_pad && has_padding(&layer->window))
        ghp_attribute_put(at, attribute->key, json_false());
}

static const struct ghp_attribute attributes[] = {GHP_WINDOW_KERNEL,
                                                  {GHP_WINDOW_STRIDE, .usual_at = GHP_WINDOW_AT(r)},
                                                  GHP_WINDOW_PAD,
                                                  GHP_WINDOW_DILATION,
                                                  {.key = "count_pad",
                                                   .kind = GHP_ATTRIBUTE_BOOL,
                                                   .usual = true,
                                                   .at = {GHP_WINDOW_AT(count_pad)},
                                                   .write = write_count_pad},
                                                  {0}};

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    (void)model;
    layer->out.c = layer->in.c;
    return ghp_window_shape(layer, true);
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    size_t used;

    ghp_window_pool_key(local, text, n);
    used = strlen(text);
    if (local->window.count_pad) snprintf(text + used, n - used, " padded");
}

const struct ghp_op_facts ghp_op_facts_avg_pool = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .takes = GHP_TAKES_IMAGES,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .key = key,
};
