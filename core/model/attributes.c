/* core/model/attributes.c - what a layer of models/NAME.json says beside its name, operation and inputs: keys,
 * ranges, defaults.
 *
 * To add an operation: its keys in the table `attributes`, its reader in ghp_model_read_attributes. */
#include "core/model/model_private.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 16 };

/* The keys that each operation takes beside name, op and inputs; NULL-terminated. */
static const char *const attributes[GHP_OP_COUNT][10] = {
    [GHP_OP_CONV2D] = {"channels", "kernel", "stride", "pad", "dilation", "groups", "bias"},
    [GHP_OP_LINEAR] = {"features", "bias"},
    [GHP_OP_ACTIVATION] = {"function", "alpha", "beta"},
    [GHP_OP_MAX_POOL] = {"kernel", "stride", "pad", "dilation", "ceil"},
    [GHP_OP_AVG_POOL] = {"kernel", "stride", "pad", "dilation", "count_pad"},
    [GHP_OP_BATCH_NORM] = {"epsilon", "momentum", "statistics"},
    [GHP_OP_LRN] = {"size", "alpha", "beta", "k"},
    [GHP_OP_DROPOUT] = {"ratio"},
    [GHP_OP_VIEW] = {"channels", "height", "width", "sizes", "strides", "offset"},
    [GHP_OP_PAD] = {"pad", "pad_channels", "fill", "value"},
};

/* A number, or an array of n numbers; a single number fills all. */
static enum ghp_status read_numbers(const struct ghp_node *object, const char *key, int64_t min,
                                    int n, int64_t *out)
{
    struct ghp_node at;
    size_t items;

    if (!ghp_json_has(object, key)) return GHP_OK;
    GHP_TRY(ghp_json_get(object, key, &at));
    if (!json_is_array(at.value)) {
        GHP_TRY(ghp_json_int(object, key, min, GHP_MODEL_SIZE, &out[0]));
        for (int i = 1; i < n; ++i)
            out[i] = out[0];
        return GHP_OK;
    }
    items = json_array_size(at.value);
    if (items != (size_t)n && !(n == 4 && items == 2))
        return ghp_json_fail(
            &at, GHP_ERR_FORMAT, "there are %zu numbers; write one number%s", items,
            n == 4 ? ", [height, width] or [top, left, bottom, right]" : " or [height, width]");
    for (size_t i = 0; i < items; ++i) {
        struct ghp_node item;
        json_int_t value;

        GHP_TRY(ghp_json_item(&at, i, &item));
        value = json_integer_value(item.value);
        if (!json_is_integer(item.value) || value < min || value > GHP_MODEL_SIZE)
            return ghp_json_fail(&item, GHP_ERR_INPUT,
                                 "this is no size; use a whole number from %lld to %d",
                                 (long long)min, GHP_MODEL_SIZE);
        out[i] = value;
    }
    if (n == 4 && items == 2) {
        out[2] = out[0];
        out[3] = out[1];
    }
    return GHP_OK;
}

static enum ghp_status read_window(const struct ghp_node *at, const struct ghp_model *model,
                                   struct ghp_layer *layer)
{
    int64_t kernel[2] = {0, 0}, stride[2] = {1, 1}, pad[4] = {0}, dilation[2] = {1, 1};
    bool pool = layer->op != GHP_OP_CONV2D, ceil = false;
    struct ghp_node node;

    GHP_TRY(ghp_json_get(at, "kernel", &node));
    GHP_TRY(read_numbers(at, "kernel", 1, 2, kernel));
    if (pool) memcpy(stride, kernel, sizeof stride);
    GHP_TRY(read_numbers(at, "stride", 1, 2, stride));
    GHP_TRY(read_numbers(at, "pad", 0, 4, pad));
    GHP_TRY(read_numbers(at, "dilation", 1, 2, dilation));
    layer->window.groups = 1;
    layer->window.count_pad = true;
    GHP_TRY(ghp_json_opt_int(at, "groups", 1, GHP_MODEL_CHANNELS, &layer->window.groups));
    GHP_TRY(ghp_json_opt_bool(at, "count_pad", &layer->window.count_pad));
    GHP_TRY(ghp_json_opt_bool(at, "ceil", &ceil));
    if (ceil) {
        struct ghp_shape in = model->layers[layer->inputs[0]].out;

        ghp_window_ceil(in.h, pad[0], (kernel[0] - 1) * dilation[0] + 1, stride[0], &pad[2]);
        ghp_window_ceil(in.w, pad[1], (kernel[1] - 1) * dilation[1] + 1, stride[1], &pad[3]);
    }
    layer->window.r = kernel[0];
    layer->window.s = kernel[1];
    layer->window.stride_h = stride[0];
    layer->window.stride_w = stride[1];
    layer->window.pad_top = pad[0];
    layer->window.pad_left = pad[1];
    layer->window.pad_bottom = pad[2];
    layer->window.pad_right = pad[3];
    layer->window.dilation_h = dilation[0];
    layer->window.dilation_w = dilation[1];
    return GHP_OK;
}

/* "global", "local", or "local:S": of each S samples. */
static enum ghp_status read_statistics(const struct ghp_node *at, struct ghp_norm *norm)
{
    char *text = NULL, *end = NULL;
    struct ghp_node where;
    long long samples = 0;
    bool sound;

    GHP_TRY(ghp_json_opt_text(at, "statistics", &text));
    if (text == NULL) return GHP_OK;
    norm->local_stats = strcmp(text, "local") == 0;
    sound = norm->local_stats || strcmp(text, "global") == 0;
    if (strncmp(text, "local:", 6) == 0 && text[6] >= '1' && text[6] <= '9') {
        samples = strtoll(text + 6, &end, 10);
        sound = *end == '\0' && samples <= GHP_MODEL_SIZE;
    }
    norm->ghost_batch = (int64_t)samples;
    free(text);
    if (sound) return GHP_OK;
    GHP_TRY(ghp_json_get(at, "statistics", &where));
    return ghp_json_fail(&where, GHP_ERR_FORMAT,
                         "unknown statistics; use one of global, local, local:S (S samples, 1 to "
                         "%d)",
                         (int)GHP_MODEL_SIZE);
}

static enum ghp_status read_batch_norm(const struct ghp_node *at, struct ghp_norm *norm)
{
    norm->epsilon = 1e-5;
    norm->momentum = 0.1;
    GHP_TRY(ghp_json_opt_real(at, "epsilon", 1e-12, 1, &norm->epsilon));
    GHP_TRY(ghp_json_opt_real(at, "momentum", 0, 1, &norm->momentum));
    return read_statistics(at, norm);
}

static enum ghp_status read_lrn(const struct ghp_node *at, struct ghp_norm *norm)
{
    struct ghp_node size;

    norm->alpha = 1e-4;
    norm->beta = 0.75;
    norm->k = 1;
    GHP_TRY(ghp_json_int(at, "size", 1, GHP_MODEL_SIZE, &norm->size));
    if (norm->size % 2 == 0) {
        GHP_TRY(ghp_json_get(at, "size", &size));
        return ghp_json_fail(
            &size, GHP_ERR_INPUT, "the window of %lld channels has no middle; use %lld or %lld",
            (long long)norm->size, (long long)norm->size - 1, (long long)norm->size + 1);
    }
    GHP_TRY(ghp_json_opt_real(at, "alpha", 0, 1e6, &norm->alpha));
    GHP_TRY(ghp_json_opt_real(at, "beta", 0, 100, &norm->beta));
    return ghp_json_opt_real(at, "k", 1e-12, 1e6, &norm->k);
}

static enum ghp_status read_activation(const struct ghp_node *at, struct ghp_activation *a)
{
    static const char *const functions[] = {
#define FUNCTION_NAME(id, text) text,
        GHP_FUNCTION_LIST(FUNCTION_NAME)
#undef FUNCTION_NAME
            NULL};
    static const char *const plain[] = {"name", "op", "inputs", "function", NULL};
    static const char *const leaky[] = {"name", "op", "inputs", "function", "alpha", NULL};
    const double most = 1e30;
    int function;

    GHP_TRY(ghp_json_choice(at, "function", functions, &function));
    a->function = (enum ghp_function)function;
    switch (a->function) {
    case GHP_FUNCTION_LEAKY_RELU:
        GHP_TRY(ghp_json_only_keys(at, leaky));
        a->alpha = 0.01;
        return ghp_json_opt_real(at, "alpha", 0, most, &a->alpha);
    case GHP_FUNCTION_CLIP:
        GHP_TRY(ghp_json_real(at, "alpha", -most, most, &a->alpha));
        return ghp_json_real(at, "beta", -most, most, &a->beta);
    case GHP_FUNCTION_AFFINE:
        a->alpha = 1;
        GHP_TRY(ghp_json_opt_real(at, "alpha", -most, most, &a->alpha));
        return ghp_json_opt_real(at, "beta", -most, most, &a->beta);
    default: return ghp_json_only_keys(at, plain);
    }
}

/* An array of at most GHP_MAX_VIEW whole numbers. */
static enum ghp_status read_list(const struct ghp_node *object, const char *key, int64_t *out,
                                 int *n)
{
    struct ghp_node at, item;
    size_t items;

    GHP_TRY(ghp_json_array(object, key, &at, &items));
    if (items > GHP_MAX_VIEW)
        return ghp_json_fail(&at, GHP_ERR_INPUT, "there are %zu numbers; give at most %d", items,
                             GHP_MAX_VIEW);
    for (size_t i = 0; i < items; ++i) {
        GHP_TRY(ghp_json_item(&at, i, &item));
        if (!json_is_integer(item.value))
            return ghp_json_fail(&item, GHP_ERR_FORMAT, "this is no whole number; use one");
        out[i] = json_integer_value(item.value);
    }
    *n = (int)items;
    return GHP_OK;
}

static enum ghp_status read_view(const struct ghp_node *at, struct ghp_layer *layer)
{
    struct ghp_node strides;
    int n;

    layer->out.h = layer->out.w = 1;
    GHP_TRY(ghp_json_int(at, "channels", 1, GHP_MODEL_CHANNELS, &layer->out.c));
    GHP_TRY(ghp_json_opt_int(at, "height", 1, GHP_MODEL_SIZE, &layer->out.h));
    GHP_TRY(ghp_json_opt_int(at, "width", 1, GHP_MODEL_SIZE, &layer->out.w));
    GHP_TRY(ghp_json_opt_int(at, "offset", 0, INT32_MAX, &layer->view.offset));
    GHP_TRY(read_list(at, "sizes", layer->view.sizes, &layer->view.n));
    GHP_TRY(read_list(at, "strides", layer->view.strides, &n));
    if (n == layer->view.n) return GHP_OK;
    GHP_TRY(ghp_json_get(at, "strides", &strides));
    return ghp_json_fail(&strides, GHP_ERR_INPUT, "there are %d strides for %d sizes; give %d", n,
                         layer->view.n, layer->view.n);
}

static enum ghp_status read_pad(const struct ghp_node *at, struct ghp_border *border)
{
    static const char *const fills[] = {
#define FILL_NAME(id, text) text,
        GHP_FILL_LIST(FILL_NAME)
#undef FILL_NAME
            NULL};
    int64_t pad[4] = {0}, channels[2] = {0};
    int fill = 0;

    GHP_TRY(read_numbers(at, "pad", 0, 4, pad));
    GHP_TRY(read_numbers(at, "pad_channels", 0, 2, channels));
    GHP_TRY(ghp_json_opt_choice(at, "fill", fills, &fill));
    GHP_TRY(ghp_json_opt_real(at, "value", -1e30, 1e30, &border->value));
    *border = (struct ghp_border){.before = {channels[0], pad[0], pad[1]},
                                  .after = {channels[1], pad[2], pad[3]},
                                  .fill = (enum ghp_fill)fill,
                                  .value = border->value};
    return GHP_OK;
}

enum ghp_status ghp_model_read_attributes(const struct ghp_node *at, const struct ghp_model *model,
                                          struct ghp_layer *layer)
{
    switch (layer->op) {
    case GHP_OP_CONV2D:
        GHP_TRY(ghp_json_int(at, "channels", 1, GHP_MODEL_CHANNELS, &layer->out.c));
        return read_window(at, model, layer);
    case GHP_OP_LINEAR: return ghp_json_int(at, "features", 1, GHP_MODEL_CHANNELS, &layer->out.c);
    case GHP_OP_ACTIVATION: return read_activation(at, &layer->activation);
    case GHP_OP_VIEW: return read_view(at, layer);
    case GHP_OP_PAD: return read_pad(at, &layer->border);
    case GHP_OP_MAX_POOL:
    case GHP_OP_AVG_POOL: return read_window(at, model, layer);
    case GHP_OP_BATCH_NORM: return read_batch_norm(at, &layer->norm);
    case GHP_OP_LRN: return read_lrn(at, &layer->norm);
    case GHP_OP_DROPOUT:
        layer->norm.ratio = 0.5;
        return ghp_json_opt_real(at, "ratio", 0, 0.999, &layer->norm.ratio);
    default: return GHP_OK;
    }
}

enum ghp_status ghp_model_check_keys(const struct ghp_node *at, enum ghp_op op)
{
    const char *keys[MAX_KEYS] = {"name", "op", "inputs"};
    size_t n = 3;

    for (size_t i = 0; attributes[op][i] != NULL; ++i)
        keys[n++] = attributes[op][i];
    keys[n] = NULL;
    return ghp_json_only_keys(at, keys);
}
