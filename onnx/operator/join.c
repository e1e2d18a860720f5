/* onnx/operator/join.c - layers of several inputs. */
#include "onnx/operator/join.h"

#include "onnx/read/layer.h"

/* A layer that is a copy of another: operations take no layer twice. */
static enum ghp_status copy_of(struct ghp_onnx_import *im, int from, struct ghp_onnx_hint hint,
                               int *layer)
{
    struct ghp_shape s = im->model.layers[from].out;
    struct ghp_layer like = {.op = GHP_OP_VIEW, .n_inputs = 1, .inputs = {from}, .out = s};
    const int64_t sizes[3] = {s.c, s.h, s.w}, strides[3] = {s.h * s.w, s.w, 1};

    for (int i = 0; i < 3; i++) {
        if (sizes[i] == 1) continue;
        like.view.sizes[like.view.n] = sizes[i];
        like.view.strides[like.view.n++] = strides[i];
    }
    return ghp_onnx_emit(im, &like, ghp_onnx_part(hint, ".copy"), layer);
}

enum ghp_status ghp_onnx_join(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct ghp_layer like, const int *layers, int *layer)
{
    struct ghp_onnx_hint hint = ghp_onnx_hint(im, node, NULL);

    like.n_inputs = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        int from = layers[i];

        for (int j = 0; j < like.n_inputs; j++)
            if (like.inputs[j] == from) GHP_TRY(copy_of(im, layers[i], hint, &from));
        like.inputs[like.n_inputs++] = from;
        if (like.n_inputs < GHP_MAX_INPUTS || i == node->n_inputs - 1) continue;
        GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_part(hint, ".part"), layer));
        like.inputs[0] = *layer;
        like.n_inputs = 1;
    }
    return ghp_onnx_emit(im, &like, hint, layer);
}

enum ghp_status ghp_onnx_count_constants(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node, int *n)
{
    *n = 0;
    if (node->n_inputs < 1) return ghp_onnx_fail(im, node, "has no inputs; repair the file");
    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *array = ghp_onnx_in(im, node, i);

        if (array == NULL) return ghp_onnx_fail(im, node, "has no input %d; repair the file", i);
        if (array->base != NULL) ++*n;
    }
    return GHP_OK;
}

struct ghp_onnx_node *ghp_export_join(struct ghp_onnx_export *ex, int layer, const char *op)
{
    const struct ghp_layer *l = &ex->model->layers[layer];
    const char *inputs[GHP_MAX_INPUTS + 1] = {NULL};

    for (int k = 0; k < l->n_inputs; k++)
        inputs[k] = ghp_export_ranked(ex, l->inputs[k], ex->ranks[layer], l->name);
    return ghp_export_node(ex, op, l->name, inputs);
}
