/* onnx/layers.c - ONNX operations that become layers: products, norms, activations, sums, the loss. */
#include "onnx/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum ghp_status ghp_onnx_unary(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               struct ghp_layer *like)
{
    struct ghp_onnx_array *x, made;
    int layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like->inputs[0]));
    like->n_inputs = 1;
    GHP_TRY(ghp_onnx_emit(im, like, ghp_onnx_hint(node, NULL), &layer));
    made = ghp_onnx_of_layer(im, layer, x->n, x->dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- weights ---- */

/* One value a channel from a constant of one axis, or of one value for all. */
static enum ghp_status channel_values(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *from, int64_t channels,
                                      struct ghp_onnx_array *out)
{
    *out = *from;
    GHP_TRY(ghp_onnx_reshape(im, out, 1, (int64_t[1]){ghp_onnx_elements(from)}));
    if (ghp_onnx_expand(out, 1, &channels)) return GHP_OK;
    return ghp_onnx_fail(im, node,
                         "has %" PRId64 " values for %" PRId64 " channels; give one for each",
                         ghp_onnx_elements(from), channels);
}

/* A bias layer on the source's: called as its tensor where that ends in .bias, else as its owner. */
static enum ghp_status bias_on(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               const struct ghp_onnx_source *from, int *layer)
{
    const struct ghp_layer *owner = &im->model.layers[from->layer];
    struct ghp_layer like = {.op = GHP_OP_BIAS, .n_inputs = 1, .inputs = {from->layer}};
    struct ghp_onnx_source source = *from;
    size_t n = from->array.name != NULL ? strlen(from->array.name) : 0;
    struct ghp_onnx_hint hint = ghp_onnx_part(ghp_onnx_called(owner->name), ".bias");

    if (n > 5 && strcmp(from->array.name + n - 5, ".bias") == 0)
        hint = ghp_onnx_called(from->array.name);
    GHP_TRY(channel_values(im, node, &from->array, owner->out.c, &source.array));
    GHP_TRY(ghp_onnx_emit(im, &like, hint, layer));
    source.layer = *layer;
    return ghp_onnx_weight_from(im, node, source);
}

/* linear, and its bias where there is one. x has two dimensions, w is [K][C]. */
static enum ghp_status linear_on(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct ghp_onnx_array *x, struct ghp_onnx_source *w, int *layer)
{
    struct ghp_layer like = {.op = GHP_OP_LINEAR, .n_inputs = 1, .out = {w->array.dims[0], 1, 1}};

    if (x->n != 2 || w->array.n != 2 || w->array.dims[1] != x->dims[1] || w->array.dims[0] < 1 ||
        w->array.dims[0] > GHP_ONNX_MAX_SIZE * INT64_C(16))
        return ghp_onnx_fail(im, node,
                             "multiplies vectors of %" PRId64
                             " features with a matrix of other size; make them fit",
                             x->n > 1 ? x->dims[1] : 0);
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, &w->array), layer));
    w->layer = *layer;
    w->slot = 0;
    return ghp_onnx_weight_from(im, node, *w);
}

enum ghp_status ghp_onnx_gemm(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, *w, *c = ghp_onnx_in(im, node, 2), made;
    struct ghp_onnx_source weight = {.scale = ghp_onnx_real(node, "alpha", 1)};
    struct ghp_onnx_source bias = {.scale = ghp_onnx_real(node, "beta", 1)};
    int layer;

    if (ghp_onnx_int(node, "transA", 0) != 0)
        return ghp_onnx_fail(im, node,
                             "transposes its samples (transA); ghp keeps the batch in "
                             "front: transpose in the file");
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &w));
    weight.array = *w;
    if (w->n == 2 && ghp_onnx_int(node, "transB", 0) == 0)
        ghp_onnx_permute(&weight.array, (const int[]){1, 0});
    GHP_TRY(linear_on(im, node, x, &weight, &layer));
    if (c != NULL && bias.scale != 0) {
        GHP_TRY(ghp_onnx_constant_in(im, node, 2, &c));
        if (c->n > 1 && c->dims[0] != 1)
            return ghp_onnx_fail(im, node,
                                 "adds a matrix, a row to each sample; ghp adds one "
                                 "vector to all: give a vector");
        bias.array = *c;
        bias.layer = layer;
        GHP_TRY(bias_on(im, node, &bias, &layer));
    }
    made = ghp_onnx_of_layer(im, layer, 2, (int64_t[]){0, im->model.layers[layer].out.c});
    return ghp_onnx_define(im, node, 0, &made);
}

/* Over the last axis: vectors are a linear layer, more axes a convolution of one pixel. */
enum ghp_status ghp_onnx_matmul(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {
        .op = GHP_OP_CONV2D, .n_inputs = 1, .window = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, true}};
    struct ghp_onnx_source weight = {.scale = 1};
    int there[GHP_ONNX_MAX_DIMS], back[GHP_ONNX_MAX_DIMS], layer;
    struct ghp_onnx_array *x, *w, made;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &w));
    if (w->n != 2 || x->n < 2 || w->dims[0] != x->dims[x->n - 1])
        return ghp_onnx_fail(im, node,
                             "multiplies with a constant that is no matrix of as many "
                             "rows as its input has features; ghp has no other product");
    weight.array = *w;
    ghp_onnx_permute(&weight.array, (const int[]){1, 0});
    if (x->n == 2) {
        GHP_TRY(linear_on(im, node, x, &weight, &layer));
        made = ghp_onnx_of_layer(im, layer, 2, (int64_t[]){0, w->dims[1]});
        return ghp_onnx_define(im, node, 0, &made);
    }
    for (int i = 0; i < x->n; ++i) {
        there[i] = i == 0 ? 0 : i == 1 ? x->n - 1 : i - 1;
        back[there[i]] = i;
    }
    made = *x;
    ghp_onnx_permute(&made, there);
    GHP_TRY(ghp_onnx_settle(im, &made, ghp_onnx_shape(&made), &like.inputs[0]));
    like.out.c = w->dims[1];
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, w), &weight.layer));
    GHP_TRY(ghp_onnx_weight_from(im, node, weight));
    made.dims[1] = w->dims[1];
    made = ghp_onnx_of_layer(im, weight.layer, made.n, made.dims);
    ghp_onnx_permute(&made, back);
    return ghp_onnx_define(im, node, 0, &made);
}

/* Bias of a convolution; in onnx_windows.c the rest. */
enum ghp_status ghp_onnx_conv_bias(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int *layer)
{
    struct ghp_onnx_source source = {.scale = 1, .layer = *layer};
    struct ghp_onnx_array *b = ghp_onnx_in(im, node, 2);

    if (b == NULL) return GHP_OK;
    GHP_TRY(ghp_onnx_constant_in(im, node, 2, &b));
    source.array = *b;
    return bias_on(im, node, &source, layer);
}

/* ---- norms ---- */

enum ghp_status ghp_onnx_batch_norm(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
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

enum ghp_status ghp_onnx_lrn(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
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

enum ghp_status ghp_onnx_dropout(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_DROPOUT,
                             .norm = {.ratio = ghp_onnx_real(node, "ratio", 0.5)}};
    struct ghp_onnx_array *ratio = ghp_onnx_in(im, node, 1);
    const double *value;

    if (ghp_onnx_wanted(im, node, 1))
        return ghp_onnx_fail(im, node, "hands its mask on; ghp has masks inside the layer only");
    if (ratio != NULL) {
        GHP_TRY(ghp_onnx_constant_in(im, node, 1, &ratio));
        GHP_TRY(ghp_onnx_values(im, ratio, &value));
        if (ghp_onnx_elements(ratio) > 0) like.norm.ratio = ghp_onnx_tidy(value[0]);
    }
    if (!(like.norm.ratio >= 0 && like.norm.ratio <= 0.999))
        return ghp_onnx_fail(im, node, "drops %g of its values; use 0 to 0.999", like.norm.ratio);
    return like.norm.ratio == 0 ? ghp_onnx_identity(im, node) : ghp_onnx_unary(im, node, &like);
}

/* ---- activations ---- */

enum ghp_status ghp_onnx_activation(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_ACTIVATION};

    if (strcmp(node->op, "Relu") == 0) like.op = GHP_OP_RELU;
    if (strcmp(node->op, "Sigmoid") == 0) like.activation.function = GHP_FUNCTION_SIGMOID;
    if (strcmp(node->op, "Tanh") == 0) like.activation.function = GHP_FUNCTION_TANH;
    if (strcmp(node->op, "LeakyRelu") == 0) {
        like.activation.function = GHP_FUNCTION_LEAKY_RELU;
        like.activation.alpha = ghp_onnx_real(node, "alpha", 0.01);
    }
    return ghp_onnx_unary(im, node, &like);
}

static enum ghp_status bound_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i,
                                double *bound)
{
    const double most = 1e30; /* what ghp.model/1 allows */
    struct ghp_onnx_array *array = ghp_onnx_in(im, node, i);
    const double *value;

    if (array != NULL) {
        GHP_TRY(ghp_onnx_constant_in(im, node, i, &array));
        GHP_TRY(ghp_onnx_values(im, array, &value));
        if (ghp_onnx_elements(array) > 0) *bound = ghp_onnx_tidy(value[0]);
    }
    if (*bound > most) *bound = most;
    if (*bound < -most) *bound = -most;
    return GHP_OK;
}

enum ghp_status ghp_onnx_clip(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_activation a = {.function = GHP_FUNCTION_CLIP,
                               .alpha = ghp_onnx_real(node, "min", -1e30),
                               .beta = ghp_onnx_real(node, "max", 1e30)};
    struct ghp_layer like = {.op = GHP_OP_ACTIVATION};

    GHP_TRY(bound_of(im, node, 1, &a.alpha));
    GHP_TRY(bound_of(im, node, 2, &a.beta));
    if (a.alpha <= -1e30 && a.beta >= 1e30) return ghp_onnx_identity(im, node);
    if (a.alpha == 0 && a.beta >= 1e30) {
        like.op = GHP_OP_RELU;
        return ghp_onnx_unary(im, node, &like);
    }
    like.activation = a;
    return ghp_onnx_unary(im, node, &like);
}

enum ghp_status ghp_onnx_softmax(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_SOFTMAX_CE, .n_inputs = 1};
    struct ghp_shape vector = {1, 1, 1};
    struct ghp_onnx_array *x, flat, made;
    int64_t summed = 1;
    int axis, layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", im->file->opset < 13 ? 1 : -1), x->n,
                          &axis));
    for (int i = axis; i < x->n && (i == axis || im->file->opset < 13); ++i)
        summed *= x->dims[i];
    if (axis == 0 || summed != ghp_onnx_elements(x))
        return ghp_onnx_fail(im, node,
                             "is over a part of a sample or over several; ghp has softmax only as "
                             "the loss, over all values of a sample");
    flat = *x;
    vector.c = summed;
    GHP_TRY(ghp_onnx_settle(im, &flat, vector, &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, NULL), &layer));
    made = ghp_onnx_of_layer(im, layer, x->n, x->dims);
    return ghp_onnx_define(im, node, 0, &made);
}
