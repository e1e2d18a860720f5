/* core/model/write.c - a network's description as text, from its layers: the counterpart of model/read.c.
 *
 * Writes each key only where it differs from its default, so that equal networks have equal texts and equal hashes,
 * whoever described them. */
#include "core/base/json_lines.h"
#include "core/model/model_private.h"

#include <stdlib.h>
#include <string.h>

/* An object being written; without memory `whole` turns false, and what is written then is thrown away. */
struct object {
    json_t *json;
    bool *whole;
};

static void put(struct object at, const char *key, json_t *value)
{
    if (json_object_set_new(at.json, key, value) != 0) *at.whole = false;
}

static void put_int(struct object at, const char *key, int64_t value, int64_t usual)
{
    if (value != usual) put(at, key, json_integer(value));
}

static void put_real(struct object at, const char *key, double value, double usual)
{
    if (value != usual) put(at, key, json_real(value));
}

static void append(json_t *array, json_t *value, bool *whole)
{
    if (json_array_append_new(array, value) != 0) *whole = false;
}

static void put_list(struct object at, const char *key, const int64_t *values, int n)
{
    json_t *array = json_array();

    for (int i = 0; i < n; ++i)
        append(array, json_integer(values[i]), at.whole);
    put(at, key, array);
}

/* A number where all are equal, nothing where they are `usual`. */
static void put_pair(struct object at, const char *key, const int64_t pair[2],
                     const int64_t usual[2])
{
    if (pair[0] == usual[0] && pair[1] == usual[1]) return;
    if (pair[0] == pair[1])
        put(at, key, json_integer(pair[0]));
    else
        put_list(at, key, pair, 2);
}

/* [top, left, bottom, right] */
static void put_pad(struct object at, const int64_t pad[4])
{
    static const int64_t none[2] = {0, 0};

    if (pad[0] == pad[2] && pad[1] == pad[3])
        put_pair(at, "pad", pad, none);
    else
        put_list(at, "pad", pad, 4);
}

static void put_window(struct object at, const struct ghp_layer *layer)
{
    static const int64_t ones[2] = {1, 1}, none[2] = {0, 0};
    const struct ghp_window *w = &layer->window;
    const int64_t kernel[2] = {w->r, w->s}, stride[2] = {w->stride_h, w->stride_w};
    const int64_t dilation[2] = {w->dilation_h, w->dilation_w};

    put_pair(at, "kernel", kernel, none);
    put_pair(at, "stride", stride, layer->op == GHP_OP_CONV2D ? ones : kernel);
    put_pad(at, (int64_t[4]){w->pad_top, w->pad_left, w->pad_bottom, w->pad_right});
    put_pair(at, "dilation", dilation, ones);
    if (layer->op == GHP_OP_CONV2D) put_int(at, "groups", w->groups, 1);
    if (layer->op == GHP_OP_AVG_POOL && !w->count_pad &&
        w->pad_top + w->pad_left + w->pad_bottom + w->pad_right > 0)
        put(at, "count_pad", json_false());
}

static void put_norm(struct object at, const struct ghp_layer *layer)
{
    const struct ghp_norm *n = &layer->norm;

    if (layer->op == GHP_OP_DROPOUT) put_real(at, "ratio", n->ratio, 0.5);
    if (layer->op == GHP_OP_BATCH_NORM) {
        put_real(at, "epsilon", n->epsilon, 1e-5);
        put_real(at, "momentum", n->momentum, 0.1);
        if (n->local_stats) put(at, "statistics", json_string("local"));
        if (n->ghost_batch > 0)
            put(at, "statistics",
                json_sprintf("local:%" JSON_INTEGER_FORMAT, (json_int_t)n->ghost_batch));
    }
    if (layer->op != GHP_OP_LRN) return;
    put_int(at, "size", n->size, 0);
    put_real(at, "alpha", n->alpha, 1e-4);
    put_real(at, "beta", n->beta, 0.75);
    put_real(at, "k", n->k, 1);
}

static void put_activation(struct object at, const struct ghp_activation *a)
{
    put(at, "function", json_string(ghp_function_name(a->function)));
    switch (a->function) {
    case GHP_FUNCTION_LEAKY_RELU: put_real(at, "alpha", a->alpha, 0.01); break;
    case GHP_FUNCTION_CLIP:
        put(at, "alpha", json_real(a->alpha));
        put(at, "beta", json_real(a->beta));
        break;
    case GHP_FUNCTION_AFFINE:
        put_real(at, "alpha", a->alpha, 1);
        put_real(at, "beta", a->beta, 0);
        break;
    default: break;
    }
}

static void put_view(struct object at, const struct ghp_layer *layer)
{
    const struct ghp_view *view = &layer->view;

    put_int(at, "channels", layer->out.c, 0);
    put_int(at, "height", layer->out.h, 1);
    put_int(at, "width", layer->out.w, 1);
    put_list(at, "sizes", view->sizes, view->n);
    put_list(at, "strides", view->strides, view->n);
    put_int(at, "offset", view->offset, 0);
}

static void put_border(struct object at, const struct ghp_border *b)
{
    static const int64_t none[2] = {0, 0};
    const int64_t channels[2] = {b->before[0], b->after[0]};

    put_pad(at, (int64_t[4]){b->before[1], b->before[2], b->after[1], b->after[2]});
    put_pair(at, "pad_channels", channels, none);
    if (b->fill != GHP_FILL_CONSTANT) put(at, "fill", json_string(ghp_fill_name(b->fill)));
    put_real(at, "value", b->value, 0);
}

static void put_attributes(struct object at, const struct ghp_layer *layer)
{
    switch (layer->op) {
    case GHP_OP_CONV2D: put_int(at, "channels", layer->out.c, 0); break;
    case GHP_OP_LINEAR: put_int(at, "features", layer->out.c, 0); return;
    case GHP_OP_ACTIVATION: put_activation(at, &layer->activation); return;
    case GHP_OP_VIEW: put_view(at, layer); return;
    case GHP_OP_PAD: put_border(at, &layer->border); return;
    case GHP_OP_MAX_POOL:
    case GHP_OP_AVG_POOL: break;
    default: put_norm(at, layer); return;
    }
    put_window(at, layer);
}

/* Whether layer i is the bias that conv2d and linear make by themselves: directly behind, named after its maker, which
 * nobody else reads. */
static bool own_bias(const struct ghp_model *model, int i)
{
    const struct ghp_layer *bias = &model->layers[i], *maker = bias - 1;
    size_t n;

    if (i < 1 || i >= model->n_layers || bias->op != GHP_OP_BIAS || bias->inputs[0] != i - 1)
        return false;
    if (!ghp_op_is_weighted(maker->op)) return false;
    n = strlen(maker->name);
    if (strncmp(bias->name, maker->name, n) != 0 || strcmp(bias->name + n, ".bias") != 0)
        return false;
    for (int j = i + 1; j < model->n_layers; ++j)
        for (int k = 0; k < model->layers[j].n_inputs; ++k)
            if (model->layers[j].inputs[k] == i - 1) return false;
    return true;
}

int ghp_model_item_layer(const struct ghp_model *model, int64_t item)
{
    for (int i = 1; i < model->n_layers; ++i)
        if (!own_bias(model, i) && item-- == 0) return i;
    return -1;
}

static json_t *layer_json(const struct ghp_model *model, int i, bool *whole)
{
    const struct ghp_layer *layer = &model->layers[i];
    bool weighted = ghp_op_is_weighted(layer->op);
    struct object at = {json_object(), whole};
    json_t *inputs;

    put(at, "name", json_string(layer->name));
    put(at, "op", json_string(ghp_op_name(layer->op)));
    put_attributes(at, layer);
    if (weighted && !own_bias(model, i + 1)) put(at, "bias", json_false());
    if (layer->n_inputs == 1 && layer->inputs[0] == i - 1) return at.json;
    inputs = json_array();
    for (int j = 0; j < layer->n_inputs; ++j) {
        int from = layer->inputs[j];

        if (own_bias(model, from)) --from;
        append(inputs, json_string(model->layers[from].name), whole);
    }
    put(at, "inputs", inputs);
    return at.json;
}

enum ghp_status ghp_model_write(const struct ghp_model *model, char **text)
{
    struct ghp_shape in = model->layers[0].out;
    bool whole = true;
    struct object root = {json_object(), &whole}, input = {json_object(), &whole};
    json_t *layers = json_array();
    enum ghp_status status;

    *text = NULL;
    put_int(input, "channels", in.c, 0);
    put_int(input, "height", in.h, 1);
    put_int(input, "width", in.w, 1);
    for (int i = 1; i < model->n_layers; ++i)
        if (!own_bias(model, i)) append(layers, layer_json(model, i, &whole), &whole);
    put(root, "format", json_string("ghp.model/1"));
    put(root, "name", json_string(model->name));
    put(root, "input", input.json);
    put(root, "layers", layers);
    status = whole ? ghp_json_compact(root.json, text) : GHP_NO_MEMORY();
    json_decref(root.json);
    return status;
}
