/* onnx/write/export.c - parts of a graph that is being written: nodes, attributes, constants. */
#include "onnx/write/export.h"

#include "core/model/orientation.h"

#include <stdio.h>
#include <string.h>

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
        n++;
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

const char *ghp_export_floats(struct ghp_onnx_export *ex, const char *name, const int64_t *dims,
                              int n, const float *values)
{
    struct ghp_onnx_tensor tensor = {
        .name = name, .type = GHP_ONNX_FLOAT, .n_dims = n, .elements = 1, .values = values};

    if (values == NULL) return "";
    for (int i = 0; i < n; i++)
        tensor.elements *= tensor.dims[i] = dims[i];
    return put_constant(ex, tensor);
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

static enum ghp_status export_param(struct ghp_onnx_export *ex, const struct ghp_param *param,
                                    int spread)
{
    struct ghp_onnx_tensor tensor = {.name = param->name,
                                     .type = GHP_ONNX_FLOAT,
                                     .n_dims = param->n_dims + spread,
                                     .dims = {1, 1, 1, 1},
                                     .elements = param->elements};
    int64_t dims[GHP_MAX_DIMS];
    float *values;

    ghp_param_file_dims(param, dims);
    memcpy(tensor.dims, dims, (size_t)param->n_dims * sizeof *dims);
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
    GHP_TRY(ex->weights->read(ex->weights->context, param, values));
    return ghp_param_to_file(param, (int)sizeof *values, values);
}

const struct ghp_layer *ghp_export_owner(const struct ghp_onnx_export *ex,
                                         const struct ghp_layer *layer)
{
    return &ex->model->layers[ghp_model_owner(ex->model, (int)(layer - ex->model->layers))];
}

enum ghp_status ghp_export_param_of(struct ghp_onnx_export *ex, const struct ghp_layer *layer,
                                    int slot, int spread)
{
    if (layer->tied > 0) return GHP_OK;
    return export_param(
        ex, slot < GHP_MAX_PARAMS ? &layer->params[slot] : &layer->states[slot - GHP_MAX_PARAMS],
        spread);
}

const char *ghp_export_ranked(struct ghp_onnx_export *ex, int from, int rank, const char *reader)
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

const char *ghp_export_turned(struct ghp_onnx_export *ex, const char *name, const char *from,
                              const int64_t *order, int n)
{
    const char *const inputs[] = {from, NULL};

    ghp_export_ints(ex, ghp_export_node(ex, "Transpose", name, inputs), "perm", order, n);
    return name;
}

const char *ghp_export_samples(struct ghp_onnx_export *ex, const char *name, const char *from)
{
    struct ghp_onnx_node *node =
        ghp_export_node(ex, "Shape", name, (const char *const[]){from, NULL});

    ghp_export_since(ex, 15); /* Shape with start and end */
    ghp_export_int(ex, node, "start", 0);
    ghp_export_int(ex, node, "end", 1);
    return name;
}

void ghp_export_since(struct ghp_onnx_export *ex, int opset)
{
    if (ex->file.opset < opset) ex->file.opset = opset;
}
