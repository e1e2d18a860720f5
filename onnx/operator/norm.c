/* onnx/operator/norm.c - norms. */
#include "onnx/operator/operator.h"

#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <inttypes.h>

static enum ghp_status read_batch_norm(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_BATCH_NORM, .n_inputs = 1};
    struct ghp_onnx_array *x, *from, made;
    double kept = ghp_onnx_real(node, "momentum", 0.9);
    int layer;

    if (ghp_onnx_int(node, "spatial", 1) == 0)
        return ghp_onnx_fail(im, node,
                             "norms each pixel by itself (spatial 0); ghp norms channels");
    for (int i = 1; i < node->n_outputs; ++i)
        if (ghp_onnx_wanted(im, node, i))
            return ghp_onnx_fail(im, node, "hands its statistics on; ghp keeps them in the layer");
    like.norm.epsilon = ghp_onnx_real(node, "epsilon", 1e-5);
    like.norm.momentum = ghp_onnx_tidy(1 - kept);
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &from));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, from), &layer));
    for (int i = 0; i < 4; ++i) {
        struct ghp_onnx_source source = {
            .scale = 1, .layer = layer, .slot = i < 2 ? i : GHP_MAX_PARAMS + i - 2};

        GHP_TRY(ghp_onnx_constant_in(im, node, 1 + i, &from));
        source.array = *from;
        GHP_TRY(ghp_onnx_weight_from(im, node, source));
    }
    made = ghp_onnx_of_layer(im, layer, x->n, x->dims);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_lrn(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_LRN,
                             .norm = {.size = ghp_onnx_int(node, "size", 0),
                                      .alpha = ghp_onnx_real(node, "alpha", 1e-4),
                                      .beta = ghp_onnx_real(node, "beta", 0.75),
                                      .k = ghp_onnx_real(node, "bias", 1)}};

    if (like.norm.size < 1 || like.norm.size % 2 == 0 || like.norm.size > GHP_ONNX_MAX_SIZE)
        return ghp_onnx_fail(im, node, "has a window of %" PRId64 " channels; ghp takes odd ones",
                             like.norm.size);
    return ghp_onnx_unary(im, node, &like);
}

static enum ghp_status write_batch_norm(struct ghp_onnx_export *ex, int i)
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
        GHP_TRY(ghp_export_param(ex, &l->params[p], 0));
    for (int s = 0; s < 2; ++s)
        GHP_TRY(ghp_export_param(ex, &l->states[s], 0));
    node = ghp_export_node(ex, "BatchNormalization", l->name, inputs);
    ghp_export_real(ex, node, "epsilon", l->norm.epsilon);
    ghp_export_real(ex, node, "momentum", 1 - l->norm.momentum);
    return GHP_OK;
}

static enum ghp_status write_lrn(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *const inputs[] = {ex->names[l->inputs[0]], NULL};
    struct ghp_onnx_node *node = ghp_export_node(ex, "LRN", l->name, inputs);

    ghp_export_int(ex, node, "size", l->norm.size);
    ghp_export_real(ex, node, "alpha", l->norm.alpha);
    ghp_export_real(ex, node, "beta", l->norm.beta);
    ghp_export_real(ex, node, "bias", l->norm.k);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_norm[] = {
    {.name = "BatchNormalization",
     .since = 1,
     .attributes = "epsilon momentum spatial training_mode ",
     .read = read_batch_norm,
     .op = GHP_OP_BATCH_NORM,
     .write = write_batch_norm},
    {.name = "LRN",
     .since = 1,
     .attributes = "alpha beta bias size ",
     .read = read_lrn,
     .op = GHP_OP_LRN,
     .write = write_lrn},
    {0}};
