/* onnx/read/import.c - what an import owns, its names, and how it fails. */
#include "onnx/read/import.h"

#include "core/base/hash.h"
#include "core/base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ghp_onnx_node_name(const struct ghp_onnx_node *node)
{
    return node->name[0] != '\0' ? node->name : node->n_outputs > 0 ? node->outputs[0] : "";
}

bool ghp_onnx_is_cache(const char *output)
{
    return ghp_text_begins(output, "present") || ghp_text_begins(output, "past");
}

enum ghp_status(ghp_onnx_fail)(const struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               const char *fmt, ...)
{
    char message[800];
    va_list arguments;

    va_start(arguments, fmt);
    vsnprintf(message, sizeof message, fmt, arguments);
    va_end(arguments);
    return GHP_FAIL(GHP_ERR_INPUT, "%s: node '%.96s' (%.40s, opset %" PRId64 ") %s", im->file->path,
                    ghp_onnx_node_name(node), node->op, im->file->opset, message);
}

struct ghp_onnx_block {
    struct ghp_onnx_block *next;
};

void *ghp_onnx_keep(struct ghp_onnx_import *im, size_t n, size_t size)
{
    struct ghp_onnx_block *block;

    if (size > 0 && n > (SIZE_MAX - sizeof *block) / size) return NULL;
    block = ghp_alloc(1, sizeof *block + n * size);
    if (block == NULL) return NULL;
    block->next = im->blocks;
    im->blocks = block;
    return block + 1;
}

void ghp_onnx_import_release(struct ghp_onnx_import *im)
{
    while (im->blocks != NULL) {
        struct ghp_onnx_block *next = im->blocks->next;

        free(im->blocks);
        im->blocks = next;
    }
    ghp_hash_table_release(&im->names);
    ghp_model_release(&im->model);
    json_decref(im->layer_names);
    json_decref(im->tensor_names);
    json_decref(im->parameters);
    json_decref(im->shared_names);
    free(im->makers);
    free(im->sources);
    *im = (struct ghp_onnx_import){0};
}

/* ---- names ---- */

static bool same_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b) == 0;
}

struct ghp_onnx_array *ghp_onnx_named(struct ghp_onnx_import *im, const char *name)
{
    uint64_t hash = ghp_hash(name, strlen(name), GHP_HASH_SEED);
    size_t index = SIZE_MAX; /* a put that fails leaves it so */

    (void)ghp_hash_table_put(&im->names, hash, &name, &index);
    GHP_ASSERT(index < (size_t)im->max_arrays);
    return &im->arrays[index];
}

/* Copies the file's nodes, for patterns to replace, and finds what each makes. */
static enum ghp_status copy_nodes(struct ghp_onnx_import *im)
{
    const struct ghp_onnx_file *file = im->file;

    im->nodes = ghp_onnx_keep(im, (size_t)file->n_nodes, sizeof *im->nodes);
    im->made_in = ghp_onnx_keep(im, (size_t)im->max_arrays, sizeof *im->made_in);
    if (im->nodes == NULL || im->made_in == NULL) return GHP_NO_MEMORY();
    for (int i = file->n_nodes - 1; i >= 0; --i) {
        im->nodes[i] = file->nodes[i];
        for (int o = 0; o < file->nodes[i].n_outputs; o++)
            im->made_in[ghp_onnx_named(im, file->nodes[i].outputs[o]) - im->arrays] = i + 1;
    }
    return GHP_OK;
}

enum ghp_status ghp_onnx_reserve_names(struct ghp_onnx_import *im)
{
    int64_t names = 1 + im->file->n_tensors + im->file->n_inputs + im->file->n_outputs;

    for (int i = 0; i < im->file->n_nodes; i++)
        names += im->file->nodes[i].n_inputs + im->file->nodes[i].n_outputs + GHP_ONNX_MAX_PARTS;
    if (names > INT32_MAX / 8)
        return GHP_FAIL(GHP_ERR_FORMAT, "%s: the graph has %" PRId64 " names; give a smaller one",
                        im->file->path, names);
    im->max_arrays = (int)names;
    im->arrays = ghp_onnx_keep(im, (size_t)names, sizeof *im->arrays);
    im->wanted = ghp_onnx_keep(im, (size_t)names, sizeof *im->wanted);
    if (im->arrays == NULL || im->wanted == NULL) return GHP_NO_MEMORY();
    im->names.item_bytes = sizeof(const char *);
    im->names.same = same_name;
    GHP_TRY(ghp_hash_table_reserve(&im->names, (size_t)names));
    return copy_nodes(im);
}

const struct ghp_onnx_node *ghp_onnx_maker_of(struct ghp_onnx_import *im, const char *name)
{
    int made_in = im->made_in[ghp_onnx_named(im, name) - im->arrays];

    return made_in > 0 ? &im->nodes[made_in - 1] : NULL;
}

bool *ghp_onnx_wanted_of(struct ghp_onnx_import *im, const char *name)
{
    return &im->wanted[ghp_onnx_named(im, name) - im->arrays];
}

struct ghp_onnx_array *ghp_onnx_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int i)
{
    return i < node->n_inputs && node->inputs[i][0] != '\0' ? ghp_onnx_named(im, node->inputs[i])
                                                            : NULL;
}

bool ghp_onnx_wanted(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i)
{
    return i < node->n_outputs && node->outputs[i][0] != '\0' &&
           *ghp_onnx_wanted_of(im, node->outputs[i]);
}

enum ghp_status ghp_onnx_define(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i,
                                const struct ghp_onnx_array *array)
{
    struct ghp_onnx_array *out;

    if (i >= node->n_outputs || node->outputs[i][0] == '\0') return GHP_OK;
    out = ghp_onnx_named(im, node->outputs[i]);
    if (out->name != NULL)
        return ghp_onnx_fail(im, node, "makes '%.96s', which exists already; rename one",
                             node->outputs[i]);
    for (int d = 0; d < array->n; d++)
        if (array->base == NULL && (array->dims[d] < 1 || array->dims[d] > INT32_MAX))
            return ghp_onnx_fail(im, node,
                                 "makes a tensor with a dimension of %" PRId64
                                 "; use sizes of 1 to 2^31 - 1",
                                 array->dims[d]);
    if (array->base == NULL && !ghp_onnx_sized(array->n - 1, array->dims + 1))
        return ghp_onnx_fail(im, node, "makes more than 2^40 values a sample; use smaller sizes");
    *out = *array;
    out->name = node->outputs[i];
    return GHP_OK;
}
