/* core/model_read.c - the reader of models/NAME.json: keys, ranges, defaults, and names resolved to layers.
 *
 * Knows no shape rule (model.c does), but completes each layer as it is read, so that an error of the shape chain
 * points at the layer's line.  To add an operation: its keys in the table `attributes`, its reader in read_attributes. */
#include "core/json_lines.h"
#include "core/file.h"
#include "core/model_private.h"
#include "core/onnx.h"

#include <stdlib.h>
#include <string.h>

#define FORMAT "ghp.model/1"

enum { MAX_CHANNELS = 1 << 24, MAX_SIZE = 1 << 20, MAX_LAYERS = 1 << 16, MAX_KEYS = 16 };

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

/* What one name in the file stands for: the last layer made from it (a biased convolution is two). */
struct reader {
    struct ghp_model *model;
    int max_layers;
    json_t *names; /* of the layers so far, each with its index */
    int *heads;    /* per layer: the layer its name means when read as an input */
    size_t *item;  /* per layer: the item of `layers` it was made from */
    size_t now;    /* item being read */
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
        GHP_TRY(ghp_json_int(object, key, min, MAX_SIZE, &out[0]));
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
        if (!json_is_integer(item.value) || value < min || value > MAX_SIZE)
            return ghp_json_fail(&item, GHP_ERR_INPUT,
                                 "this is no size; use a whole number from %lld to %d",
                                 (long long)min, MAX_SIZE);
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
    GHP_TRY(ghp_json_opt_int(at, "groups", 1, MAX_CHANNELS, &layer->window.groups));
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
        sound = *end == '\0' && samples <= MAX_SIZE;
    }
    norm->ghost = (int64_t)samples;
    free(text);
    if (sound) return GHP_OK;
    GHP_TRY(ghp_json_get(at, "statistics", &where));
    return ghp_json_fail(&where, GHP_ERR_FORMAT,
                         "unknown statistics; use one of global, local, local:S (S samples, 1 to "
                         "%d)",
                         (int)MAX_SIZE);
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
    GHP_TRY(ghp_json_int(at, "size", 1, MAX_SIZE, &norm->size));
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
    GHP_TRY(ghp_json_int(at, "channels", 1, MAX_CHANNELS, &layer->out.c));
    GHP_TRY(ghp_json_opt_int(at, "height", 1, MAX_SIZE, &layer->out.h));
    GHP_TRY(ghp_json_opt_int(at, "width", 1, MAX_SIZE, &layer->out.w));
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

/* The keys of the layer's operation. */
static enum ghp_status read_attributes(const struct ghp_node *at, const struct ghp_model *model,
                                       struct ghp_layer *layer)
{
    switch (layer->op) {
    case GHP_OP_CONV2D:
        GHP_TRY(ghp_json_int(at, "channels", 1, MAX_CHANNELS, &layer->out.c));
        return read_window(at, model, layer);
    case GHP_OP_LINEAR: return ghp_json_int(at, "features", 1, MAX_CHANNELS, &layer->out.c);
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

static enum ghp_status check_keys(const struct ghp_node *at, enum ghp_op op)
{
    const char *keys[MAX_KEYS] = {"name", "op", "inputs"};
    size_t n = 3;

    for (size_t i = 0; attributes[op][i] != NULL; ++i)
        keys[n++] = attributes[op][i];
    keys[n] = NULL;
    return ghp_json_only_keys(at, keys);
}

/* The layer of a name among those so far, or -1. */
static int find_layer(const struct reader *reader, const char *name)
{
    const json_t *index = json_object_get(reader->names, name);

    return index != NULL ? (int)json_integer_value(index) : -1;
}

/* A further layer, zeroed but for its name; reader->heads names it. */
static enum ghp_status add_layer(struct reader *reader, const char *name, struct ghp_layer **layer)
{
    struct ghp_model *model = reader->model;

    GHP_ASSERT(model->n_layers < reader->max_layers);
    *layer = &model->layers[model->n_layers];
    (*layer)->name = strdup(name);
    if ((*layer)->name == NULL ||
        json_object_set_new(reader->names, name, json_integer(model->n_layers)) != 0)
        return GHP_NO_MEMORY();
    reader->heads[model->n_layers] = model->n_layers;
    reader->item[model->n_layers] = reader->now;
    ++model->n_layers;
    return GHP_OK;
}

/* Names are letters, digits and _ - . /, so that they can be file keys and parts of option values. */
static enum ghp_status read_name(const struct ghp_node *at, const struct reader *reader,
                                 char **name)
{
    struct ghp_node node;
    const char *text;

    GHP_TRY(ghp_json_text(at, "name", name));
    GHP_TRY(ghp_json_get(at, "name", &node));
    text = *name;
    if (text[0] == '\0' || strlen(text) > 96 ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") !=
            strlen(text))
        return ghp_json_fail(&node, GHP_ERR_INPUT,
                             "'%.96s' is no name; use 1 to 96 letters, digits and _ - . /", text);
    if (find_layer(reader, text) >= 0)
        return ghp_json_fail(&node, GHP_ERR_INPUT, "the name '%s' is taken; choose another", text);
    return GHP_OK;
}

static enum ghp_status read_inputs(const struct ghp_node *at, const struct reader *reader,
                                   struct ghp_layer *layer)
{
    const struct ghp_model *model = reader->model;
    struct ghp_node inputs, item;
    size_t n;

    if (!ghp_json_has(at, "inputs")) {
        layer->n_inputs = 1;
        layer->inputs[0] = model->n_layers - 2; /* the layer before this one */
        return GHP_OK;
    }
    GHP_TRY(ghp_json_array(at, "inputs", &inputs, &n));
    if (n < 1 || n > GHP_MAX_INPUTS)
        return ghp_json_fail(&inputs, GHP_ERR_INPUT, "there are %zu inputs; name 1 to %d", n,
                             GHP_MAX_INPUTS);
    for (size_t i = 0; i < n; ++i) {
        const char *name;
        int found;

        GHP_TRY(ghp_json_item(&inputs, i, &item));
        name = json_string_value(item.value);
        found = name != NULL ? find_layer(reader, name) : -1;
        if (found < 0 || found == model->n_layers - 1)
            return ghp_json_fail(
                &item, GHP_ERR_INPUT,
                "there is no layer '%s' before this one; name an earlier layer or 'input'",
                name != NULL ? name : "(no text)");
        layer->inputs[i] = reader->heads[found];
    }
    layer->n_inputs = (int)n;
    return GHP_OK;
}

/* The bias that conv2d and linear have unless told otherwise, as a layer of its own. */
static enum ghp_status add_bias(const struct ghp_node *at, struct reader *reader)
{
    int owner = reader->model->n_layers - 1;
    enum ghp_op op = reader->model->layers[owner].op;
    bool bias = op == GHP_OP_CONV2D || op == GHP_OP_LINEAR;
    struct ghp_layer *layer;
    char name[128];

    if (!bias) return GHP_OK;
    GHP_TRY(ghp_json_opt_bool(at, "bias", &bias));
    if (!bias) return GHP_OK;
    snprintf(name, sizeof name, "%s.bias", reader->model->layers[owner].name);
    if (find_layer(reader, name) >= 0)
        return ghp_json_fail(at, GHP_ERR_INPUT,
                             "the name '%s' is taken, but this layer's bias needs it; rename one",
                             name);
    GHP_TRY(add_layer(reader, name, &layer));
    layer->op = GHP_OP_BIAS;
    layer->n_inputs = 1;
    layer->inputs[0] = owner;
    reader->heads[owner] = owner + 1;
    return ghp_model_complete_layer(reader->model, owner + 1);
}

static enum ghp_status read_layer(const struct ghp_node *at, struct reader *reader)
{
    static const char *const ops[] = {
#define OP_NAME(id, text) text,
        GHP_OP_LIST(OP_NAME)
#undef OP_NAME
            NULL};
    struct ghp_layer *layer;
    enum ghp_status status;
    char *name = NULL;
    int op = 0;

    GHP_TRY(ghp_json_choice(at, "op", ops + 1, &op)); /* the input layer is not written */
    ++op;
    GHP_TRY(check_keys(at, (enum ghp_op)op));
    GHP_TRY_GOTO(status, read_name(at, reader, &name), out);
    GHP_TRY_GOTO(status, add_layer(reader, name, &layer), out);
    layer->op = (enum ghp_op)op;
    GHP_TRY_GOTO(status, read_inputs(at, reader, layer), out);
    GHP_TRY_GOTO(status, read_attributes(at, reader->model, layer), out);
    status = ghp_model_complete_layer(reader->model, reader->model->n_layers - 1);
    if (status != GHP_OK) {
        status = ghp_json_fail(at, status, "%s", ghp_status_message());
        goto out;
    }
    status = add_bias(at, reader);

out:
    free(name);
    return status;
}

static enum ghp_status read_input(const struct ghp_node *root, struct reader *reader)
{
    static const char *const keys[] = {"channels", "height", "width", NULL};
    struct ghp_layer *layer;
    struct ghp_node at;

    GHP_TRY(ghp_json_get(root, "input", &at));
    GHP_TRY(ghp_json_only_keys(&at, keys));
    GHP_TRY(add_layer(reader, "input", &layer));
    layer->op = GHP_OP_INPUT;
    layer->out.h = layer->out.w = 1;
    GHP_TRY(ghp_json_int(&at, "channels", 1, MAX_CHANNELS, &layer->out.c));
    GHP_TRY(ghp_json_opt_int(&at, "height", 1, MAX_SIZE, &layer->out.h));
    GHP_TRY(ghp_json_opt_int(&at, "width", 1, MAX_SIZE, &layer->out.w));
    if (ghp_model_complete_layer(reader->model, 0) != GHP_OK)
        return ghp_json_fail(&at, GHP_ERR_INPUT, "%s", ghp_status_message());
    return GHP_OK;
}

static enum ghp_status read_layers(const struct ghp_node *root, struct reader *reader)
{
    struct ghp_node layers, item;
    enum ghp_status status;
    size_t n;
    int wrong;

    GHP_TRY(ghp_json_array(root, "layers", &layers, &n));
    if (n < 1 || n > MAX_LAYERS)
        return ghp_json_fail(&layers, GHP_ERR_INPUT, "there are %zu layers; give 1 to %d", n,
                             MAX_LAYERS);
    reader->max_layers = 1 + 2 * (int)n;
    reader->model->layers = ghp_alloc((size_t)reader->max_layers, sizeof *reader->model->layers);
    reader->heads = ghp_alloc((size_t)reader->max_layers, sizeof *reader->heads);
    reader->item = ghp_alloc((size_t)reader->max_layers, sizeof *reader->item);
    if (reader->model->layers == NULL || reader->heads == NULL || reader->item == NULL)
        return GHP_NO_MEMORY();
    GHP_TRY(read_input(root, reader));
    for (size_t i = 0; i < n; ++i) {
        reader->now = i;
        GHP_TRY(ghp_json_item(&layers, i, &item));
        GHP_TRY(read_layer(&item, reader));
    }
    status = ghp_model_connect(reader->model, &wrong);
    if (status == GHP_ERR_INPUT) {
        char message[512];

        snprintf(message, sizeof message, "%s", ghp_status_message());
        item = *root;
        if (wrong > 0) GHP_TRY(ghp_json_item(&layers, reader->item[wrong], &item));
        status = ghp_json_fail(&item, status, "%s", message);
    }
    return status;
}

/* The description as one line, and its hash. */
static enum ghp_status keep_text(const struct ghp_node *at, struct ghp_model *model)
{
    GHP_TRY(ghp_json_compact(at->value, &model->text));
    model->hash = ghp_hash(model->text, strlen(model->text), GHP_HASH_SEED);
    return GHP_OK;
}

enum ghp_status ghp_model_read(const struct ghp_node *at, struct ghp_model *model)
{
    static const char *const keys[] = {"format", "name", "input", "layers", NULL};
    static const char *const formats[] = {FORMAT, NULL};
    struct reader reader = {.model = model, .names = json_object()};
    enum ghp_status status;
    int format;

    *model = (struct ghp_model){0};
    GHP_TRY_GOTO(status, ghp_json_only_keys(at, keys), out);
    GHP_TRY_GOTO(status, ghp_json_choice(at, "format", formats, &format), out);
    GHP_TRY_GOTO(status, ghp_json_text(at, "name", &model->name), out);
    GHP_TRY_GOTO(status, read_layers(at, &reader), out);
    status = keep_text(at, model);

out:
    json_decref(reader.names);
    free(reader.heads);
    free(reader.item);
    if (status != GHP_OK) ghp_model_release(model);
    return status;
}

/* Reads the loaded document and releases it. */
static enum ghp_status read_document(struct ghp_json *doc, struct ghp_model *model)
{
    struct ghp_node root = ghp_json_root(doc);
    enum ghp_status status = ghp_model_read(&root, model);

    ghp_json_release(doc);
    return status;
}

enum ghp_status ghp_model_load(const char *path, struct ghp_model *model)
{
    struct ghp_json doc;

    *model = (struct ghp_model){0};
    if (ghp_onnx_names(path)) return ghp_onnx_load(path, model);
    GHP_TRY(ghp_json_load(path, FORMAT, &doc));
    return read_document(&doc, model);
}

enum ghp_status ghp_model_parse(const char *text, const char *name, struct ghp_model *model)
{
    struct ghp_json doc;

    *model = (struct ghp_model){0};
    GHP_TRY(ghp_json_parse(text, name, FORMAT, &doc));
    return read_document(&doc, model);
}
