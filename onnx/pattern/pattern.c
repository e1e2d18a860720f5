/* onnx/pattern/pattern.c - the walk that tries patterns. */
#include "onnx/pattern/pattern.h"

#include <string.h>

static enum ghp_status replace(struct ghp_onnx_import *im, struct ghp_onnx_node *node,
                               const char *op, const struct ghp_onnx_found *found)
{
    const char **inputs = ghp_onnx_keep(im, (size_t)found->n_inputs, sizeof *inputs);
    struct ghp_onnx_attribute *attributes =
        ghp_onnx_keep(im, (size_t)found->n_attributes, sizeof *attributes);

    if (inputs == NULL || attributes == NULL) return GHP_NO_MEMORY();
    memcpy(inputs, found->inputs, (size_t)found->n_inputs * sizeof *inputs);
    memcpy(attributes, found->attributes, (size_t)found->n_attributes * sizeof *attributes);
    node->op = op;
    node->domain = "";
    node->n_inputs = found->n_inputs;
    node->inputs = inputs;
    node->n_attributes = found->n_attributes;
    node->attributes = attributes;
    return GHP_OK;
}

/* Tries all patterns on a node; the first that matches replaces it. */
static enum ghp_status try_node(struct ghp_onnx_import *im, struct ghp_onnx_node *node)
{
    for (size_t t = 0; ghp_onnx_patterns[t] != NULL; t++)
        for (const struct ghp_onnx_pattern *row = ghp_onnx_patterns[t]; row->last != NULL; row++) {
            struct ghp_onnx_found found = {0};

            if (strcmp(node->op, row->last) == 0 && node->n_outputs == 1 &&
                row->match(im, node, &found))
                return replace(im, node, row->becomes, &found);
        }
    return GHP_OK;
}

enum ghp_status ghp_onnx_pattern_apply(struct ghp_onnx_import *im)
{
    for (int i = 0; i < im->file->n_nodes; i++) {
        GHP_TRY(try_node(im, &im->nodes[i]));
        if (im->failed) return GHP_NO_MEMORY();
    }
    return GHP_OK;
}
