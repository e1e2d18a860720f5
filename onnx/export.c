/* onnx/export.c - writes a network as an ONNX graph: a node for each layer, called as the layer. */
#include "onnx/export.h"
#include "core/model/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPSET = 13, OPSET_DILATED_MEAN = 19 };

/* ---- parts of a graph ---- */

void *ghp_export_keep(struct ghp_onnx_export *ex, size_t n, size_t size)
{
    struct export_block *block = ghp_alloc(1, sizeof *block + n * size);

    if (block == NULL) {
        ex->failed = true;
        return NULL;
    }
    block->next = ex->blocks;
    ex->blocks = block;
    return block + 1;
}

const char *ghp_export_text(struct ghp_onnx_export *ex, const char *name, const char *end)
{
    size_t n = strlen(name) + strlen(end) + 1;
    char *text = ghp_export_keep(ex, n, 1);

    if (text == NULL) return "";
    snprintf(text, n, "%s%s", name, end);
    return text;
}

struct ghp_onnx_node *ghp_export_node(struct ghp_onnx_export *ex, const char *op, const char *name,
                                      const char *const *inputs)
{
    static struct ghp_onnx_node nowhere;
    struct ghp_onnx_node *node;
    int n = 0;

    GHP_ASSERT(ex->file.n_nodes < ex->max_nodes);
    while (inputs[n] != NULL)
        ++n;
    node = &ex->file.nodes[ex->file.n_nodes++];
    *node = (struct ghp_onnx_node){.name = name, .op = op, .domain = "", .n_inputs = n};
    node->inputs = ghp_export_keep(ex, (size_t)n, sizeof *node->inputs);
    node->outputs = ghp_export_keep(ex, 1, sizeof *node->outputs);
    node->attributes = ghp_export_keep(ex, 8, sizeof *node->attributes);
    if (node->inputs == NULL || node->outputs == NULL || node->attributes == NULL) return &nowhere;
    memcpy(node->inputs, inputs, (size_t)n * sizeof *inputs);
    node->outputs[0] = name;
    node->n_outputs = 1;
    return node;
}

static void put(const struct ghp_onnx_export *ex, struct ghp_onnx_node *node,
                struct ghp_onnx_attribute attribute)
{
    if (ex->failed) return;
    GHP_ASSERT(node->n_attributes < 8);
    node->attributes[node->n_attributes++] = attribute;
}

void ghp_export_int(struct ghp_onnx_export *ex, struct ghp_onnx_node *node, const char *name,
                    int64_t value)
{
    put(ex, node,
        (struct ghp_onnx_attribute){.name = name, .kind = GHP_ONNX_INT, .integer = value});
}

void ghp_export_real(struct ghp_onnx_export *ex, struct ghp_onnx_node *node, const char *name,
                     double value)
{
    put(ex, node, (struct ghp_onnx_attribute){.name = name, .kind = GHP_ONNX_REAL, .real = value});
}

void ghp_export_text_of(struct ghp_onnx_export *ex, struct ghp_onnx_node *node, const char *name,
                        const char *value)
{
    put(ex, node, (struct ghp_onnx_attribute){.name = name, .kind = GHP_ONNX_TEXT, .text = value});
}

void ghp_export_ints(struct ghp_onnx_export *ex, struct ghp_onnx_node *node, const char *name,
                     const int64_t *values, int n)
{
    int64_t *copy = ghp_export_keep(ex, (size_t)n, sizeof *copy);

    if (copy == NULL) return;
    memcpy(copy, values, (size_t)n * sizeof *copy);
    put(ex, node,
        (struct ghp_onnx_attribute){.name = name, .kind = GHP_ONNX_INTS, .n = n, .ints = copy});
}

static const char *put_constant(struct ghp_onnx_export *ex, struct ghp_onnx_tensor tensor)
{
    GHP_ASSERT(ex->file.n_tensors < ex->max_tensors);
    ex->file.tensors[ex->file.n_tensors++] = tensor;
    return tensor.name;
}

const char *ghp_export_numbers(struct ghp_onnx_export *ex, const char *name, const int64_t *values,
                               int n)
{
    int64_t *copy = ghp_export_keep(ex, (size_t)n, sizeof *copy);

    if (copy == NULL) return "";
    memcpy(copy, values, (size_t)n * sizeof *copy);
    return put_constant(ex, (struct ghp_onnx_tensor){.name = name,
                                                     .type = GHP_ONNX_INT64,
                                                     .n_dims = 1,
                                                     .dims = {n},
                                                     .elements = n,
                                                     .values = copy});
}

const char *ghp_export_number(struct ghp_onnx_export *ex, const char *name, double value)
{
    float *copy = ghp_export_keep(ex, 1, sizeof *copy);

    if (copy == NULL) return "";
    *copy = (float)value;
    return put_constant(ex,
                        (struct ghp_onnx_tensor){
                            .name = name, .type = GHP_ONNX_FLOAT, .elements = 1, .values = copy});
}

/* A parameter: its values, or where there are none what a ConstantOfShape makes. `spread` adds axes of 1 behind. */
static enum ghp_status put_param(struct ghp_onnx_export *ex, const struct ghp_param *param,
                                 int spread)
{
    struct ghp_onnx_tensor tensor = {.name = param->name,
                                     .type = GHP_ONNX_FLOAT,
                                     .n_dims = param->n_dims + spread,
                                     .dims = {1, 1, 1, 1},
                                     .elements = param->elements};
    float *values;

    memcpy(tensor.dims, param->dims, (size_t)param->n_dims * sizeof *param->dims);
    if (ex->weights == NULL) {
        const char *shape = ghp_export_numbers(ex, ghp_export_text(ex, param->name, ".shape"),
                                               tensor.dims, tensor.n_dims);
        const char *const inputs[] = {shape, NULL};
        struct ghp_onnx_node *node = ghp_export_node(ex, "ConstantOfShape", param->name, inputs);
        struct ghp_onnx_tensor *fill = ghp_export_keep(ex, 1, sizeof *fill);
        float *value = ghp_export_keep(ex, 1, sizeof *value);

        if (fill == NULL || value == NULL) return GHP_NO_MEMORY();
        *value = param->init == GHP_INIT_ONE ? 1 : 0;
        *fill = (struct ghp_onnx_tensor){.name = "",
                                         .type = GHP_ONNX_FLOAT,
                                         .n_dims = 1,
                                         .dims = {1},
                                         .elements = 1,
                                         .values = value};
        put(ex, node,
            (struct ghp_onnx_attribute){.name = "value", .kind = GHP_ONNX_TENSOR, .tensor = fill});
        return GHP_OK;
    }
    values = ghp_export_keep(ex, (size_t)param->elements, sizeof *values);
    if (values == NULL) return GHP_NO_MEMORY();
    tensor.values = values;
    put_constant(ex, tensor);
    return ex->weights->read(ex->weights->context, param, values);
}

/* ---- layers ---- */

/* The tensor of a layer with 2 or 4 axes; vectors alone have both. */
static const char *with_rank(struct ghp_onnx_export *ex, int from, int rank, const char *reader)
{
    const char *name = ex->names[from], *out;
    const int64_t pixels[2] = {2, 3};

    if (ex->ranks[from] == rank) return name;
    out = ghp_export_text(ex, reader, rank == 2 ? ".vector" : ".image");
    out = ghp_export_text(ex, ghp_export_text(ex, out, "."), name);
    const char *const inputs[] = {
        name, ghp_export_numbers(ex, ghp_export_text(ex, out, ".axes"), pixels, 2), NULL};

    ghp_export_node(ex, rank == 2 ? "Squeeze" : "Unsqueeze", out, inputs);
    return out;
}

static void put_window(struct ghp_onnx_export *ex, struct ghp_onnx_node *node,
                       const struct ghp_layer *layer)
{
    const struct ghp_window *w = &layer->window;

    ghp_export_ints(ex, node, "kernel_shape", (int64_t[]){w->r, w->s}, 2);
    ghp_export_ints(ex, node, "strides", (int64_t[]){w->stride_h, w->stride_w}, 2);
    ghp_export_ints(ex, node, "pads",
                    (int64_t[]){w->pad_top, w->pad_left, w->pad_bottom, w->pad_right}, 4);
    if (layer->op == GHP_OP_CONV2D) ghp_export_int(ex, node, "group", w->groups);
    if (layer->op == GHP_OP_AVG_POOL) ghp_export_int(ex, node, "count_include_pad", w->count_pad);
    if (w->dilation_h * w->dilation_w == 1) return;
    ghp_export_ints(ex, node, "dilations", (int64_t[]){w->dilation_h, w->dilation_w}, 2);
    if (layer->op == GHP_OP_AVG_POOL) ex->file.opset = OPSET_DILATED_MEAN;
}

/* The bias that belongs to a conv2d or linear layer and is written in its node, or NULL. */
static const struct ghp_layer *own_bias(const struct ghp_model *model, int i)
{
    const struct ghp_layer *layer = &model->layers[i], *next = layer + 1;
    size_t n = strlen(layer->name);

    if (layer->n_consumers != 1 || model->edges[layer->out_edges[0]].to != i + 1 ||
        next->op != GHP_OP_BIAS || strncmp(next->name, layer->name, n) != 0 ||
        strcmp(next->name + n, ".bias") != 0)
        return NULL;
    return next;
}

static enum ghp_status put_weighted(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *layer = &ex->model->layers[i], *bias = own_bias(ex->model, i);
    bool conv = layer->op == GHP_OP_CONV2D;
    const char *inputs[4] = {with_rank(ex, layer->inputs[0], conv ? 4 : 2, layer->name),
                             layer->params[0].name, bias != NULL ? bias->params[0].name : NULL};
    struct ghp_onnx_node *node;

    GHP_TRY(put_param(ex, &layer->params[0], 0));
    if (bias != NULL) GHP_TRY(put_param(ex, &bias->params[0], 0));
    node = ghp_export_node(ex, conv ? "Conv" : "Gemm", layer->name, inputs);
    if (conv)
        put_window(ex, node, layer);
    else
        ghp_export_int(ex, node, "transB", 1);
    ex->ranks[i] = conv ? 4 : 2;
    return GHP_OK;
}

/* A bias that is no conv2d's or linear's own; those are passed by. */
static enum ghp_status put_bias(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *layer = &ex->model->layers[i], *before = layer - 1;
    int from = layer->inputs[0];

    ex->ranks[i] = ex->ranks[from];
    if (from == i - 1 && (before->op == GHP_OP_CONV2D || before->op == GHP_OP_LINEAR) &&
        own_bias(ex->model, from) == layer) {
        ex->names[i] = ex->names[from];
        return GHP_OK;
    }
    GHP_TRY(put_param(ex, &layer->params[0], ex->ranks[i] == 4 ? 2 : 0));
    const char *const inputs[] = {ex->names[from], layer->params[0].name, NULL};

    ghp_export_node(ex, "Add", layer->name, inputs);
    return GHP_OK;
}

static enum ghp_status put_batch_norm(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *const inputs[] = {ex->names[l->inputs[0]], l->params[0].name, l->params[1].name,
                                  l->states[0].name,       l->states[1].name, NULL};
    struct ghp_onnx_node *node;

    if (l->norm.local_stats || l->norm.ghost_batch > 0)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%s' (batch_norm) takes statistics of each worker, which ONNX cannot "
            "say; use global statistics",
            l->name);
    for (int p = 0; p < 2; ++p)
        GHP_TRY(put_param(ex, &l->params[p], 0));
    for (int s = 0; s < 2; ++s)
        GHP_TRY(put_param(ex, &l->states[s], 0));
    node = ghp_export_node(ex, "BatchNormalization", l->name, inputs);
    ghp_export_real(ex, node, "epsilon", l->norm.epsilon);
    ghp_export_real(ex, node, "momentum", 1 - l->norm.momentum);
    return GHP_OK;
}

static void put_activation(struct ghp_onnx_export *ex, const struct ghp_layer *l, const char *from)
{
    const struct ghp_activation *a = &l->activation;
    const char *inputs[4] = {from};
    struct ghp_onnx_node *node;

    switch (a->function) {
    case GHP_FUNCTION_LEAKY_RELU:
        node = ghp_export_node(ex, "LeakyRelu", l->name, inputs);
        ghp_export_real(ex, node, "alpha", a->alpha);
        return;
    case GHP_FUNCTION_SIGMOID: ghp_export_node(ex, "Sigmoid", l->name, inputs); return;
    case GHP_FUNCTION_TANH: ghp_export_node(ex, "Tanh", l->name, inputs); return;
    case GHP_FUNCTION_CLIP:
        inputs[1] = ghp_export_number(ex, ghp_export_text(ex, l->name, ".min"), a->alpha);
        inputs[2] = ghp_export_number(ex, ghp_export_text(ex, l->name, ".max"), a->beta);
        ghp_export_node(ex, "Clip", l->name, inputs);
        return;
    default: break;
    }
    inputs[1] = ghp_export_number(ex, ghp_export_text(ex, l->name, ".factor"), a->alpha);
    if (a->beta == 0) {
        ghp_export_node(ex, "Mul", l->name, inputs);
        return;
    }
    if (a->alpha != 1) {
        const char *scaled = ghp_export_text(ex, l->name, ".scaled");

        ghp_export_node(ex, "Mul", scaled, inputs);
        inputs[0] = scaled;
    }
    inputs[1] = ghp_export_number(ex, ghp_export_text(ex, l->name, ".term"), a->beta);
    ghp_export_node(ex, "Add", l->name, inputs);
}

static void put_pad(struct ghp_onnx_export *ex, const struct ghp_layer *l)
{
    const struct ghp_border *b = &l->border;
    const int64_t pads[8] = {0, b->before[0], b->before[1], b->before[2],
                             0, b->after[0],  b->after[1],  b->after[2]};
    const char *inputs[4] = {
        with_rank(ex, l->inputs[0], 4, l->name),
        ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".pads"), pads, 8)};

    if (b->fill == GHP_FILL_CONSTANT)
        inputs[2] = ghp_export_number(ex, ghp_export_text(ex, l->name, ".value"), b->value);
    ghp_export_text_of(ex, ghp_export_node(ex, "Pad", l->name, inputs), "mode",
                       ghp_fill_name(b->fill));
}

static void put_join(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *inputs[GHP_MAX_INPUTS + 1] = {NULL};
    const char *op = l->op == GHP_OP_CONCAT ? "Concat" : l->op == GHP_OP_MUL ? "Mul" : "Add";
    struct ghp_onnx_node *node;

    if (l->op == GHP_OP_ADD && l->n_inputs > 2) op = "Sum";
    ex->ranks[i] = ex->ranks[l->inputs[0]];
    for (int k = 0; k < l->n_inputs; ++k)
        inputs[k] = with_rank(ex, l->inputs[k], ex->ranks[i], l->name);
    node = ghp_export_node(ex, op, l->name, inputs);
    if (l->op == GHP_OP_CONCAT) ghp_export_int(ex, node, "axis", 1);
}

/* Operations of one input whose output has the axes of the input. */
static void put_plain(struct ghp_onnx_export *ex, const struct ghp_layer *l, const char *from)
{
    const char *inputs[4] = {from};
    struct ghp_onnx_node *node;

    switch (l->op) {
    case GHP_OP_RELU: ghp_export_node(ex, "Relu", l->name, inputs); break;
    case GHP_OP_ACTIVATION: put_activation(ex, l, from); break;
    case GHP_OP_LRN:
        node = ghp_export_node(ex, "LRN", l->name, inputs);
        ghp_export_int(ex, node, "size", l->norm.size);
        ghp_export_real(ex, node, "alpha", l->norm.alpha);
        ghp_export_real(ex, node, "beta", l->norm.beta);
        ghp_export_real(ex, node, "bias", l->norm.k);
        break;
    default:
        inputs[1] = ghp_export_number(ex, ghp_export_text(ex, l->name, ".ratio"), l->norm.ratio);
        ghp_export_node(ex, "Dropout", l->name, inputs);
    }
}

static enum ghp_status put_layer(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    int from = l->n_inputs > 0 ? l->inputs[0] : 0;
    const char *image[] = {NULL, NULL};

    ex->names[i] = l->name;
    ex->ranks[i] = ex->ranks[from];
    switch (l->op) {
    case GHP_OP_INPUT: ex->ranks[i] = l->out.h * l->out.w == 1 ? 2 : 4; return GHP_OK;
    case GHP_OP_CONV2D:
    case GHP_OP_LINEAR: return put_weighted(ex, i);
    case GHP_OP_BIAS: return put_bias(ex, i);
    case GHP_OP_BATCH_NORM: return put_batch_norm(ex, i);
    case GHP_OP_VIEW: return ghp_export_view(ex, i);
    case GHP_OP_ADD:
    case GHP_OP_MUL:
    case GHP_OP_CONCAT: put_join(ex, i); return GHP_OK;
    case GHP_OP_FLATTEN:
        image[0] = ex->names[from];
        ex->ranks[i] = 2;
        ghp_export_node(ex, "Flatten", l->name, image);
        return GHP_OK;
    case GHP_OP_PAD: put_pad(ex, l); break;
    case GHP_OP_MAX_POOL:
    case GHP_OP_AVG_POOL:
        image[0] = with_rank(ex, from, 4, l->name);
        put_window(ex,
                   ghp_export_node(ex, l->op == GHP_OP_MAX_POOL ? "MaxPool" : "AveragePool",
                                   l->name, image),
                   l);
        break;
    case GHP_OP_GLOBAL_AVG_POOL:
        image[0] = with_rank(ex, from, 4, l->name);
        ghp_export_node(ex, "GlobalAveragePool", l->name, image);
        break;
    case GHP_OP_SOFTMAX_CE: return GHP_OK; /* the end */
    case GHP_OP_RELU:
    case GHP_OP_ACTIVATION:
    case GHP_OP_LRN:
    case GHP_OP_DROPOUT: put_plain(ex, l, ex->names[from]); return GHP_OK;
    default:
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%.96s' cannot be written as ONNX, for ghp has no ONNX operation for "
            "'%s'; keep the network as a model file",
            l->name, ghp_op_name(l->op));
    }
    ex->ranks[i] = 4;
    return GHP_OK;
}

/* ---- the whole ---- */

static enum ghp_status make_room(struct ghp_onnx_export *ex)
{
    size_t layers = (size_t)ex->model->n_layers;

    ex->max_nodes = (int)(layers * 12 + (size_t)ex->model->n_edges); /* a view has 6, a norm 5 */
    ex->max_tensors = (int)(layers * 16 + (size_t)ex->model->n_edges);
    ex->file.nodes = ghp_export_keep(ex, (size_t)ex->max_nodes, sizeof *ex->file.nodes);
    ex->file.tensors = ghp_export_keep(ex, (size_t)ex->max_tensors, sizeof *ex->file.tensors);
    ex->file.inputs = ghp_export_keep(ex, 2, sizeof *ex->file.inputs);
    ex->file.texts = ghp_export_keep(ex, 1, sizeof *ex->file.texts);
    ex->names = ghp_export_keep(ex, layers, sizeof *ex->names);
    ex->ranks = ghp_export_keep(ex, layers, sizeof *ex->ranks);
    return ex->failed ? GHP_NO_MEMORY() : GHP_OK;
}

static void put_ends(struct ghp_onnx_export *ex)
{
    const struct ghp_layer *in = &ex->model->layers[0];
    const struct ghp_layer *loss = &ex->model->layers[ex->model->n_layers - 1];

    ex->file.inputs[0] = (struct ghp_onnx_value){.name = in->name,
                                                 .type = GHP_ONNX_FLOAT,
                                                 .n_dims = ex->ranks[0],
                                                 .dims = {-1, in->out.c, in->out.h, in->out.w}};
    ex->file.outputs = ex->file.inputs + 1;
    ex->file.outputs[0] =
        (struct ghp_onnx_value){.name = with_rank(ex, loss->inputs[0], 2, loss->name),
                                .type = GHP_ONNX_FLOAT,
                                .n_dims = 2,
                                .dims = {-1, loss->in.c}};
    ex->file.n_inputs = ex->file.n_outputs = ex->file.n_texts = 1;
    ex->file.texts[0] = (struct ghp_onnx_text){"ghp.loss", loss->name};
}

enum ghp_status ghp_onnx_save(const char *path, const struct ghp_model *model,
                              const struct ghp_onnx_weights *weights)
{
    struct ghp_onnx_export ex = {
        .model = model, .weights = weights, .file = {.name = model->name, .opset = OPSET}};
    enum ghp_status status = make_room(&ex);

    for (int i = 0; status == GHP_OK && i < model->n_layers; ++i)
        status = put_layer(&ex, i);
    if (status == GHP_OK) put_ends(&ex);
    if (status == GHP_OK && ex.failed) status = GHP_NO_MEMORY();
    if (status == GHP_OK) status = ghp_onnx_file_save(path, &ex.file);
    while (ex.blocks != NULL) {
        struct export_block *next = ex.blocks->next;

        free(ex.blocks);
        ex.blocks = next;
    }
    return status;
}
