/* onnx/file/file.c - reads an ONNX file through protobuf-c, and trusts nothing in it. */
#include "onnx/file/file_private.h"

#include "core/base/file.h"

#include <onnx.pb-c.h>

#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 24,       /* messages inside messages; plain graphs have 7 */
    MEMORY_PER_BYTE = 24, /* of the parsed message, by the file's size; int64 of one byte take 8 */
    MEMORY_AT_LEAST = 16 << 20, /* bytes */
    /* the format's numbers of what onnx/file/metadata.c reads */
    NODE_METADATA = 9,
    GRAPH_METADATA = 16,
    VALUE_METADATA = 4
};

/* Everything that one open file owns: blocks in a chain, and the library's messages. */
struct block {
    struct block *next;
};

struct owner {
    Onnx__ModelProto *model;
    Onnx__TensorProto *tensor;
    ProtobufCAllocator allocator;
    int64_t left; /* bytes that the library may still take */
    bool short_of_memory;
    struct block *blocks;
};

/* ---- memory ---- */

static void *take(void *data, size_t n)
{
    struct owner *owner = data;
    void *memory;

    if ((int64_t)n > owner->left) return NULL;
    owner->left -= (int64_t)n;
    memory = malloc(n > 0 ? n : 1);
    if (memory == NULL) owner->short_of_memory = true;
    return memory;
}

static void drop(void *data, void *at)
{
    (void)data;
    free(at);
}

static struct owner *new_owner(size_t file_bytes)
{
    struct owner *owner = ghp_alloc(1, sizeof *owner);

    if (owner == NULL) return NULL;
    owner->left = MEMORY_AT_LEAST + MEMORY_PER_BYTE * (int64_t)file_bytes;
    owner->allocator = (ProtobufCAllocator){take, drop, owner};
    return owner;
}

/* A zeroed array that lives as long as the file. */
static void *array(struct owner *owner, size_t n, size_t size)
{
    struct block *block;

    if (size > 0 && n > (SIZE_MAX - sizeof *block) / size) return NULL;
    block = ghp_alloc(1, sizeof *block + n * size);
    if (block == NULL) return NULL;
    block->next = owner->blocks;
    owner->blocks = block;
    return block + 1;
}

void ghp_onnx_file_close(struct ghp_onnx_file *file)
{
    struct owner *owner = file->owned;

    if (owner != NULL) {
        if (owner->model != NULL) onnx__model_proto__free_unpacked(owner->model, &owner->allocator);
        if (owner->tensor != NULL)
            onnx__tensor_proto__free_unpacked(owner->tensor, &owner->allocator);
        while (owner->blocks != NULL) {
            struct block *next = owner->blocks->next;

            free(owner->blocks);
            owner->blocks = next;
        }
        free(owner);
    }
    *file = (struct ghp_onnx_file){0};
}

/* ---- nesting ---- */

/* One number of 7 bits a byte; false at the end or if it is too long. */
static bool varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;

        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static const ProtobufCMessageDescriptor *message_of(const ProtobufCMessageDescriptor *message,
                                                    uint64_t id)
{
    for (unsigned i = 0; i < message->n_fields; i++)
        if (message->fields[i].id == id && message->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            return message->fields[i].descriptor;
    return NULL;
}

/* Whether messages nest at most `depth` deep, so that the library's recursion ends in time. The library itself finds
 * whatever else is malformed. */
static bool shallow(const uint8_t *at, const uint8_t *end,
                    const ProtobufCMessageDescriptor *message, int depth)
{
    uint64_t tag, n;

    if (depth == 0) return false;
    while (at < end && varint(&at, end, &tag)) {
        const ProtobufCMessageDescriptor *inner = message_of(message, tag >> 3);

        switch (tag & 7) {
        case 0:
            if (!varint(&at, end, &n)) return true;
            continue;
        case 1: n = 8; break;
        case 2:
            if (!varint(&at, end, &n)) return true;
            break;
        case 5: n = 4; break;
        default: return true;
        }
        if (n > (uint64_t)(end - at)) return true;
        if ((tag & 7) == 2 && inner != NULL && !shallow(at, at + n, inner, depth - 1)) return false;
        at += n;
    }
    return true;
}

/* ---- nodes and values ---- */

/* What a key of a message's metadata says, "" if nothing (onnx/file/metadata.c); the file owns it. */
static enum ghp_status read_metadata(struct owner *owner, const void *message, unsigned field,
                                     const char *key, const char **out)
{
    enum ghp_status status = GHP_OK;
    char *value = NULL, *copy;

    *out = "";
    GHP_TRY(ghp_onnx_metadata_find(message, field, key, &value));
    if (value == NULL) return GHP_OK;
    copy = array(owner, strlen(value) + 1, 1);
    if (copy != NULL)
        *out = memcpy(copy, value, strlen(value));
    else
        status = GHP_NO_MEMORY();
    free(value);
    return status;
}

static enum ghp_status read_attribute(struct owner *owner, const Onnx__AttributeProto *a,
                                      struct ghp_onnx_attribute *out)
{
    *out = (struct ghp_onnx_attribute){.name = ghp_onnx_text_of(a->name)};
    if (a->n_ints > INT32_MAX || a->n_floats > INT32_MAX)
        return GHP_FAIL(GHP_ERR_FORMAT, "attribute '%s' has too many values; use fewer", out->name);
    if (a->has_i) out->kind = GHP_ONNX_INT;
    if (a->has_f) out->kind = GHP_ONNX_REAL;
    out->integer = a->i;
    out->real = (double)a->f;
    if (a->has_s) {
        char *text = array(owner, a->s.len + 1, 1);

        if (text == NULL) return GHP_NO_MEMORY();
        if (a->s.len > 0) memcpy(text, a->s.data, a->s.len);
        out->kind = GHP_ONNX_TEXT;
        out->text = text;
    }
    if (a->n_ints > 0 || a->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS) {
        out->kind = GHP_ONNX_INTS;
        out->n = (int)a->n_ints;
        out->ints = a->ints;
    }
    if (a->n_floats > 0) {
        out->kind = GHP_ONNX_REALS;
        out->n = (int)a->n_floats;
        out->reals = a->floats;
    }
    if (a->t != NULL) {
        struct ghp_onnx_tensor *tensor = array(owner, 1, sizeof *tensor);

        if (tensor == NULL) return GHP_NO_MEMORY();
        out->kind = GHP_ONNX_TENSOR;
        out->tensor = tensor;
        return ghp_onnx_tensor_read(a->t, tensor);
    }
    return GHP_OK;
}

static enum ghp_status read_names(struct owner *owner, char *const *names, size_t n, int *count,
                                  const char ***out)
{
    const char **copy = array(owner, n, sizeof *copy);

    if (copy == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < n; i++)
        copy[i] = ghp_onnx_text_of(names[i]);
    *out = copy;
    *count = (int)n;
    return GHP_OK;
}

/* A part that PyTorch ran in a graph of its own has that graph's code as the outermost line of its stack. */
static enum ghp_status read_apart(const Onnx__NodeProto *node, bool *apart)
{
    static const char code[] = "File \"<eval_with_key>";
    char *stack = NULL;

    GHP_TRY(ghp_onnx_metadata_find(node, NODE_METADATA, "pkg.torch.onnx.stack_trace", &stack));
    *apart = stack != NULL && strncmp(stack, code, sizeof code - 1) == 0;
    free(stack);
    return GHP_OK;
}

static enum ghp_status read_node(struct owner *owner, const Onnx__NodeProto *node,
                                 struct ghp_onnx_node *out)
{
    out->name = ghp_onnx_text_of(node->name);
    out->op = ghp_onnx_text_of(node->op_type);
    out->domain = ghp_onnx_text_of(node->domain);
    GHP_TRY(read_metadata(owner, node, NODE_METADATA, "pkg.onnxscript.rewriter.rule_name",
                          &out->rules));
    GHP_TRY(read_metadata(owner, node, NODE_METADATA, "pkg.torch.onnx.name_scopes", &out->scopes));
    out->call = "";
    if (strcmp(out->op, "AveragePool") == 0)
        GHP_TRY(read_metadata(owner, node, NODE_METADATA, "pkg.torch.onnx.fx_node", &out->call));
    GHP_TRY(read_apart(node, &out->apart));
    if (node->n_input > INT32_MAX || node->n_output > INT32_MAX || node->n_attribute > INT32_MAX)
        return GHP_FAIL(GHP_ERR_FORMAT, "node '%s' is too large; the file is damaged", out->name);
    GHP_TRY(read_names(owner, node->input, node->n_input, &out->n_inputs, &out->inputs));
    GHP_TRY(read_names(owner, node->output, node->n_output, &out->n_outputs, &out->outputs));
    out->n_attributes = (int)node->n_attribute;
    out->attributes = array(owner, node->n_attribute, sizeof *out->attributes);
    if (out->attributes == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < out->n_attributes; i++)
        GHP_TRY(read_attribute(owner, node->attribute[i], &out->attributes[i]));
    return GHP_OK;
}

static enum ghp_status read_value(const Onnx__ValueInfoProto *value, struct ghp_onnx_value *out)
{
    const Onnx__TypeProto *type = value->type;
    const Onnx__TensorShapeProto *shape;

    *out = (struct ghp_onnx_value){.name = ghp_onnx_text_of(value->name)};
    if (type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        type->tensor_type == NULL)
        return GHP_OK;
    out->type = type->tensor_type->elem_type;
    shape = type->tensor_type->shape;
    if (shape == NULL) return GHP_OK;
    if (shape->n_dim > GHP_ONNX_MAX_DIMS)
        return GHP_FAIL(GHP_ERR_FORMAT, "'%s' has %zu dimensions; use at most %d", out->name,
                        shape->n_dim, GHP_ONNX_MAX_DIMS);
    out->shaped = true;
    out->n_dims = (int)shape->n_dim;
    for (int i = 0; i < out->n_dims; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        bool number = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;

        out->dims[i] = number && dim->dim_value > 0 ? dim->dim_value : -1;
    }
    return GHP_OK;
}

/* What PyTorch's exporter says of tensors: which are parameters, and of what computed ones are made. */
static enum ghp_status read_tensors_of(struct owner *owner, const Onnx__GraphProto *graph,
                                       struct ghp_onnx_file *file)
{
    GHP_TRY(read_metadata(owner, graph, GRAPH_METADATA,
                          "pkg.torch.export.ExportedProgram.graph_signature", &file->signature));
    file->folded = array(owner, graph->n_value_info, sizeof *file->folded);
    if (file->folded == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < graph->n_value_info && i < INT32_MAX; i++) {
        struct ghp_onnx_metadatum *folded = &file->folded[file->n_folded];

        folded->key = ghp_onnx_text_of(graph->value_info[i]->name);
        GHP_TRY(read_metadata(owner, graph->value_info[i], VALUE_METADATA,
                              "pkg.onnxscript.optimizer.folded_from", &folded->value));
        if (folded->value[0] != '\0') file->n_folded++;
    }
    return GHP_OK;
}

static enum ghp_status read_graph(struct owner *owner, const Onnx__GraphProto *graph,
                                  struct ghp_onnx_file *file)
{
    file->name = ghp_onnx_text_of(graph->name);
    if (graph->n_node > INT32_MAX || graph->n_initializer > INT32_MAX ||
        graph->n_input > INT32_MAX || graph->n_output > INT32_MAX)
        return GHP_FAIL(GHP_ERR_FORMAT, "%s: the graph is too large; the file is damaged",
                        file->path);
    file->nodes = array(owner, graph->n_node, sizeof *file->nodes);
    file->tensors = array(owner, graph->n_initializer, sizeof *file->tensors);
    file->inputs = array(owner, graph->n_input, sizeof *file->inputs);
    file->outputs = array(owner, graph->n_output, sizeof *file->outputs);
    if (file->nodes == NULL || file->tensors == NULL || file->inputs == NULL ||
        file->outputs == NULL)
        return GHP_NO_MEMORY();
    file->n_nodes = (int)graph->n_node;
    file->n_tensors = (int)graph->n_initializer;
    file->n_inputs = (int)graph->n_input;
    file->n_outputs = (int)graph->n_output;
    for (int i = 0; i < file->n_nodes; i++)
        GHP_TRY(read_node(owner, graph->node[i], &file->nodes[i]));
    for (int i = 0; i < file->n_tensors; i++)
        GHP_TRY(ghp_onnx_tensor_read(graph->initializer[i], &file->tensors[i]));
    for (int i = 0; i < file->n_inputs; i++)
        GHP_TRY(read_value(graph->input[i], &file->inputs[i]));
    for (int i = 0; i < file->n_outputs; i++)
        GHP_TRY(read_value(graph->output[i], &file->outputs[i]));
    return read_tensors_of(owner, graph, file);
}

static enum ghp_status read_model(struct owner *owner, struct ghp_onnx_file *file)
{
    const Onnx__ModelProto *model = owner->model;

    file->producer = ghp_onnx_text_of(model->producer_name);
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const char *domain = ghp_onnx_text_of(model->opset_import[i]->domain);

        if (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0)
            file->opset = model->opset_import[i]->version;
    }
    file->texts = array(owner, model->n_metadata_props, sizeof *file->texts);
    if (file->texts == NULL) return GHP_NO_MEMORY();
    for (size_t i = 0; i < model->n_metadata_props; i++)
        file->texts[i] =
            (struct ghp_onnx_metadatum){ghp_onnx_text_of(model->metadata_props[i]->key),
                                        ghp_onnx_text_of(model->metadata_props[i]->value)};
    file->n_texts = (int)model->n_metadata_props;
    if (model->graph == NULL)
        return GHP_FAIL(GHP_ERR_FORMAT, "%s: no graph is in it; give an ONNX model", file->path);
    return read_graph(owner, model->graph, file);
}

/* Reads the whole file into a message; `tensor`: of one tensor, else of a model. */
static enum ghp_status unpack(struct ghp_onnx_file *file, bool tensor)
{
    const ProtobufCMessageDescriptor *kind =
        tensor ? &onnx__tensor_proto__descriptor : &onnx__model_proto__descriptor;
    enum ghp_status status = GHP_OK;
    struct owner *owner;
    char *bytes = NULL;
    ProtobufCMessage *message;
    size_t n = 0;

    GHP_TRY(ghp_file_read(file->path, &bytes, &n));
    file->owned = owner = new_owner(n);
    if (owner == NULL) {
        free(bytes);
        return GHP_NO_MEMORY();
    }
    if (!shallow((const uint8_t *)bytes, (const uint8_t *)bytes + n, kind, MAX_DEPTH)) {
        status = GHP_FAIL(GHP_ERR_FORMAT,
                          "%s: graphs inside graphs, more than %d levels deep; give a plain model",
                          file->path, MAX_DEPTH);
    } else {
        message = protobuf_c_message_unpack(kind, &owner->allocator, n, (const uint8_t *)bytes);
        owner->model = tensor ? NULL : (Onnx__ModelProto *)(void *)message;
        owner->tensor = tensor ? (Onnx__TensorProto *)(void *)message : NULL;
        if (owner->short_of_memory)
            status = GHP_NO_MEMORY();
        else if (message == NULL)
            status =
                GHP_FAIL(GHP_ERR_FORMAT,
                         "%s: this is not an ONNX %s, or it is damaged; give one that is whole",
                         file->path, tensor ? "tensor" : "model");
    }
    free(bytes);
    return status;
}

static enum ghp_status open_file(const char *path, bool tensor, struct ghp_onnx_file *file)
{
    enum ghp_status status;
    struct owner *owner;
    char *copy;

    *file = (struct ghp_onnx_file){.path = path, .signature = ""};
    GHP_TRY_GOTO(status, unpack(file, tensor), fail);
    owner = file->owned;
    copy = array(owner, strlen(path) + 1, 1);
    file->tensors = tensor ? array(owner, 1, sizeof *file->tensors) : NULL;
    if (copy == NULL || (tensor && file->tensors == NULL)) {
        status = GHP_NO_MEMORY();
        goto fail;
    }
    memcpy(copy, path, strlen(path) + 1);
    file->path = copy;
    file->n_tensors = tensor ? 1 : 0;
    status = tensor ? ghp_onnx_tensor_read(owner->tensor, file->tensors) : read_model(owner, file);
    if (status != GHP_OK && strncmp(ghp_status_message(), path, strlen(path)) != 0)
        ghp_status_prefix("%s", path);
fail:
    if (status != GHP_OK) ghp_onnx_file_close(file);
    return status;
}

enum ghp_status ghp_onnx_file_open(const char *path, struct ghp_onnx_file *file)
{
    return open_file(path, false, file);
}

enum ghp_status ghp_onnx_file_open_tensor(const char *path, struct ghp_onnx_file *file)
{
    return open_file(path, true, file);
}
