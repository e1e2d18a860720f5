/* onnx/file/save.c - writes plain structs as an ONNX file through protobuf-c. */
#include "onnx/file/file.h"
#include "core/base/file.h"

#include <onnx.pb-c.h>

#include <stdlib.h>
#include <string.h>

enum { IR_VERSION = 7 }; /* of opset 13 */

/* Everything of one message comes from here and goes at once. */
struct pool {
    struct pool_block {
        struct pool_block *next;
    } * blocks;
    bool failed;
};

static void *from_pool(struct pool *pool, size_t n, size_t size)
{
    struct pool_block *block = ghp_alloc(1, sizeof *block + n * size);

    if (block == NULL) {
        pool->failed = true;
        return NULL;
    }
    block->next = pool->blocks;
    pool->blocks = block;
    return block + 1;
}

/* n messages and the array that points to them; NULL without memory. */
static void *messages(struct pool *pool, size_t n, size_t size, void ***pointers)
{
    char *all = from_pool(pool, n, size);

    *pointers = from_pool(pool, n, sizeof **pointers);
    for (size_t i = 0; all != NULL && *pointers != NULL && i < n; i++)
        (*pointers)[i] = all + i * size;
    return *pointers == NULL ? NULL : all;
}

static char *text(const char *from)
{
    return (char *)(uintptr_t)from; /* the library's writer changes nothing */
}

static int type_bytes(int type)
{
    return type == GHP_ONNX_INT64 ? 8 : type == GHP_ONNX_BOOL ? 1 : 4;
}

static void put_tensor(const struct ghp_onnx_tensor *from, Onnx__TensorProto *to)
{
    onnx__tensor_proto__init(to);
    to->name = text(from->name);
    to->has_data_type = 1;
    to->data_type = from->type;
    to->n_dims = (size_t)from->n_dims;
    to->dims = (int64_t *)(uintptr_t)from->dims;
    to->has_raw_data = 1;
    to->raw_data.len = (size_t)(from->elements * type_bytes(from->type));
    to->raw_data.data = (uint8_t *)(uintptr_t)from->values;
}

static void put_attribute(struct pool *pool, const struct ghp_onnx_attribute *from,
                          Onnx__AttributeProto *to)
{
    onnx__attribute_proto__init(to);
    to->name = text(from->name);
    to->has_type = 1;
    switch (from->kind) {
    case GHP_ONNX_REAL:
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        to->has_f = 1;
        to->f = (float)from->real;
        break;
    case GHP_ONNX_TEXT:
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        to->has_s = 1;
        to->s.len = strlen(from->text);
        to->s.data = (uint8_t *)(uintptr_t)from->text;
        break;
    case GHP_ONNX_INTS:
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        to->n_ints = (size_t)from->n;
        to->ints = (int64_t *)(uintptr_t)from->ints;
        break;
    case GHP_ONNX_TENSOR:
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
        to->t = from_pool(pool, 1, sizeof *to->t);
        if (to->t != NULL) put_tensor(from->tensor, to->t);
        break;
    default:
        to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        to->has_i = 1;
        to->i = from->integer;
        break;
    }
}

static void put_node(struct pool *pool, const struct ghp_onnx_node *from, Onnx__NodeProto *to)
{
    void **attributes;
    Onnx__AttributeProto *all =
        messages(pool, (size_t)from->n_attributes, sizeof *all, &attributes);

    onnx__node_proto__init(to);
    to->name = text(from->name);
    to->op_type = text(from->op);
    to->n_input = (size_t)from->n_inputs;
    to->input = (char **)(uintptr_t)from->inputs;
    to->n_output = (size_t)from->n_outputs;
    to->output = (char **)(uintptr_t)from->outputs;
    if (all == NULL) return;
    to->n_attribute = (size_t)from->n_attributes;
    to->attribute = (Onnx__AttributeProto **)(void *)attributes;
    for (int i = 0; i < from->n_attributes; i++)
        put_attribute(pool, &from->attributes[i], &all[i]);
}

/* A tensor of floats; the first dimension is the batch, which has a name in place of a number. */
static void put_value(struct pool *pool, const struct ghp_onnx_value *from,
                      Onnx__ValueInfoProto *to)
{
    size_t n = (size_t)from->n_dims;
    void **dims;
    Onnx__TensorShapeProto__Dimension *dim = messages(pool, n, sizeof *dim, &dims);
    Onnx__TypeProto *type = from_pool(pool, 1, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = from_pool(pool, 1, sizeof *tensor);
    Onnx__TensorShapeProto *shape = from_pool(pool, 1, sizeof *shape);

    onnx__value_info_proto__init(to);
    if (dim == NULL || type == NULL || tensor == NULL || shape == NULL) return;
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    for (size_t i = 0; i < n; i++) {
        onnx__tensor_shape_proto__dimension__init(&dim[i]);
        dim[i].value_case = i == 0 ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                   : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (i == 0)
            dim[i].dim_param = text("N");
        else
            dim[i].dim_value = from->dims[i];
    }
    shape->n_dim = n;
    shape->dim = (Onnx__TensorShapeProto__Dimension **)(void *)dims;
    tensor->has_elem_type = 1;
    tensor->elem_type = from->type;
    tensor->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    to->name = text(from->name);
    to->type = type;
}

static void put_graph(struct pool *pool, const struct ghp_onnx_file *file, Onnx__GraphProto *graph)
{
    void **nodes, **tensors, **inputs, **outputs;
    Onnx__NodeProto *node = messages(pool, (size_t)file->n_nodes, sizeof *node, &nodes);
    Onnx__TensorProto *tensor = messages(pool, (size_t)file->n_tensors, sizeof *tensor, &tensors);
    Onnx__ValueInfoProto *input = messages(pool, (size_t)file->n_inputs, sizeof *input, &inputs);
    Onnx__ValueInfoProto *output =
        messages(pool, (size_t)file->n_outputs, sizeof *output, &outputs);

    onnx__graph_proto__init(graph);
    if (pool->failed) return;
    graph->name = text(file->name);
    graph->n_node = (size_t)file->n_nodes;
    graph->node = (Onnx__NodeProto **)(void *)nodes;
    graph->n_initializer = (size_t)file->n_tensors;
    graph->initializer = (Onnx__TensorProto **)(void *)tensors;
    graph->n_input = (size_t)file->n_inputs;
    graph->input = (Onnx__ValueInfoProto **)(void *)inputs;
    graph->n_output = (size_t)file->n_outputs;
    graph->output = (Onnx__ValueInfoProto **)(void *)outputs;
    for (int i = 0; i < file->n_nodes; i++)
        put_node(pool, &file->nodes[i], &node[i]);
    for (int i = 0; i < file->n_tensors; i++)
        put_tensor(&file->tensors[i], &tensor[i]);
    for (int i = 0; i < file->n_inputs; i++)
        put_value(pool, &file->inputs[i], &input[i]);
    for (int i = 0; i < file->n_outputs; i++)
        put_value(pool, &file->outputs[i], &output[i]);
}

static void put_texts(struct pool *pool, const struct ghp_onnx_file *file, Onnx__ModelProto *model)
{
    void **texts;
    Onnx__StringStringEntryProto *entry =
        messages(pool, (size_t)file->n_texts, sizeof *entry, &texts);

    if (entry == NULL) return;
    model->n_metadata_props = (size_t)file->n_texts;
    model->metadata_props = (Onnx__StringStringEntryProto **)(void *)texts;
    for (int i = 0; i < file->n_texts; i++) {
        onnx__string_string_entry_proto__init(&entry[i]);
        entry[i].key = text(file->texts[i].key);
        entry[i].value = text(file->texts[i].value);
    }
}

enum ghp_status ghp_onnx_file_save(const char *path, const struct ghp_onnx_file *file)
{
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets = &opset;
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph;
    struct pool pool = {0};
    enum ghp_status status;
    uint8_t *bytes = NULL;
    size_t n;

    opset.domain = text("");
    opset.has_version = 1;
    opset.version = file->opset;
    model.has_ir_version = 1;
    model.ir_version = IR_VERSION;
    model.producer_name = text(file->producer != NULL ? file->producer : "ghp");
    model.n_opset_import = 1;
    model.opset_import = &opsets;
    model.graph = &graph;
    put_graph(&pool, file, &graph);
    put_texts(&pool, file, &model);
    if (!pool.failed) {
        n = onnx__model_proto__get_packed_size(&model);
        bytes = ghp_alloc(n, 1);
    }
    if (bytes == NULL) {
        status = GHP_NO_MEMORY();
    } else {
        onnx__model_proto__pack(&model, bytes);
        status = ghp_file_write_atomic(path, bytes, n);
    }
    free(bytes);
    while (pool.blocks != NULL) {
        struct pool_block *next = pool.blocks->next;

        free(pool.blocks);
        pool.blocks = next;
    }
    return status;
}
