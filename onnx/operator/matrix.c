/* onnx/operator/matrix.c - products with a matrix of weights. */
#include "onnx/operator/operator.h"

#include "onnx/operator/bias.h"
#include "onnx/operator/derived.h"
#include "onnx/operator/product.h"
#include "onnx/operator/rows.h"
#include "onnx/operator/scores.h"
#include "onnx/read/attribute.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <inttypes.h>
#include <string.h>

/* Whether the layer is called as a tensor of the file that is [C][K], where w is [K][C]. */
static bool is_transposed(struct ghp_onnx_layer_name hint, const struct ghp_onnx_array *w)
{
    const struct ghp_onnx_tensor *tensor = w->base->tensor;

    return tensor != NULL && hint.text == tensor->name && tensor->n_dims == 2 &&
           tensor->dims[0] == w->dims[1] && tensor->dims[1] == w->dims[0] && w->offset == 0 &&
           (w->dims[0] == 1 || w->strides[0] == 1);
}

/* linear, and its bias if there is one. x has two dimensions, w is [K][C]. */
static enum ghp_status linear_on(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct ghp_onnx_array *x, struct ghp_onnx_source *w, int *layer)
{
    struct ghp_layer like = {
        .op = GHP_OP_LINEAR, .n_inputs = 1, .out = ghp_shape_image(w->array.dims[0], 1, 1)};
    struct ghp_onnx_layer_name hint = ghp_onnx_hint(im, node, &w->array);

    GHP_TRY(ghp_onnx_part_axes(im, x));
    if (x->n != 2 || w->array.n != 2 || w->array.dims[1] != x->dims[1] || w->array.dims[0] < 1 ||
        w->array.dims[0] > GHP_ONNX_MAX_SIZE * INT64_C(16))
        return ghp_onnx_fail(im, node,
                             "multiplies vectors of %" PRId64
                             " features with a matrix of other size; make them fit",
                             x->n > 1 ? x->dims[1] : 0);
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    like.transposed = is_transposed(hint, &w->array);
    GHP_TRY(ghp_onnx_emit(im, &like, hint, layer));
    w->layer = *layer;
    w->slot = 0;
    return ghp_onnx_weight_from(im, node, *w);
}

/* Makes a product over the last axis: a linear layer for vectors and sequences, a convolution of one pixel for more
 * axes. w is [K][C]. The output has the axes of x, even if samples and positions are joined. */
static enum ghp_status product_on(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  struct ghp_onnx_array *x, struct ghp_onnx_source *w, int *layer)
{
    struct ghp_layer like = {
        .op = GHP_OP_CONV2D, .n_inputs = 1, .window = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, true}};
    struct ghp_onnx_layer_name hint;

    if (!ghp_onnx_are_rows(im, x)) GHP_TRY(ghp_onnx_part_axes(im, x));
    if (w->array.n != 2 || x->n < 2 || w->array.dims[1] != x->dims[x->n - 1])
        return ghp_onnx_fail(im, node,
                             "multiplies with a constant that is not a matrix of as many "
                             "rows as its input has features; ghp has no other product");
    if (x->n == 2) return linear_on(im, node, x, w, layer);
    if (x->n == 3 && x->joined == 0 && x->lead == 0 && ghp_onnx_has_attention(im))
        GHP_TRY(ghp_onnx_as_sequence(im, x));
    GHP_TRY(ghp_onnx_rows_in(im, x, &like.inputs[0]));
    if (ghp_onnx_is_sequence(im, like.inputs[0]))
        like = (struct ghp_layer){.op = GHP_OP_LINEAR, .n_inputs = 1, .inputs = {like.inputs[0]}};
    like.out.c = w->array.dims[0];
    hint = ghp_onnx_hint(im, node, &w->array);
    like.transposed = like.op == GHP_OP_LINEAR && is_transposed(hint, &w->array);
    GHP_TRY(ghp_onnx_emit(im, &like, hint, layer));
    w->layer = *layer;
    return ghp_onnx_weight_from(im, node, *w);
}

static struct ghp_onnx_array product_of(const struct ghp_onnx_import *im,
                                        const struct ghp_onnx_array *x, int layer)
{
    if (x->n > 2) return ghp_onnx_rows_out(im, x, layer);
    return ghp_onnx_of_layer(im, layer, 2, (int64_t[]){0, im->model.layers[layer].out.c});
}

/* Input 0 of a product. If both are constants and a parameter is one of them, its rows, kept in `rows`, for each
 * sample. */
static enum ghp_status factor_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct ghp_onnx_array *rows, struct ghp_onnx_array **x)
{
    const struct ghp_onnx_array *w = ghp_onnx_in(im, node, 1);

    *x = ghp_onnx_in(im, node, 0);
    if (*x == NULL || (*x)->base == NULL || w == NULL || w->base == NULL ||
        !(ghp_onnx_is_derived(*x) || ghp_onnx_role_may_train(w)))
        return ghp_onnx_joined_in(im, node, 0, x);
    GHP_TRY(ghp_onnx_derived_rows(im, node, *x, rows));
    *x = rows;
    return GHP_OK;
}

/* Output 0 is what the layer makes of x. */
static enum ghp_status put_product(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   const struct ghp_onnx_array *x, int layer)
{
    const struct ghp_onnx_array *in = ghp_onnx_in(im, node, 0);
    struct ghp_onnx_array made;

    if (in->base != NULL) return ghp_onnx_derive_rows(im, node, in, layer);
    made = product_of(im, x, layer);
    return ghp_onnx_define(im, node, 0, &made);
}

/* Whether the weights are a matrix that is computed of parameters. */
static bool is_by_derived(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0), *w = ghp_onnx_in(im, node, 1);

    return x != NULL && x->base == NULL && x->joined == 0 && ghp_onnx_is_derived(w) && w->n == 2;
}

/* Such a Gemm, as MatMul and Add. */
static enum ghp_status gemm_by_derived(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    bool plain = ghp_onnx_real(node, "alpha", 1) == 1 && ghp_onnx_real(node, "beta", 1) == 1;
    const char *weights = node->inputs[1], *product;
    struct ghp_onnx_array turned = *ghp_onnx_in(im, node, 1);
    char *name = ghp_onnx_keep(im, strlen(weights) + 8, 1);

    if (name == NULL) return GHP_NO_MEMORY();
    if (!plain)
        return ghp_onnx_fail(im, node,
                             "scales a product with what is computed of parameters (alpha, beta); "
                             "multiply in a node of its own");
    memcpy(name, weights, strlen(weights));
    memcpy(name + strlen(weights), ".turned", 7);
    if (ghp_onnx_int(node, "transB", 0) != 0) {
        ghp_onnx_permute(&turned, (const int[]){1, 0});
        turned.name = weights = name;
        *ghp_onnx_named(im, name) = turned;
    }
    if (ghp_onnx_in(im, node, 2) == NULL)
        return ghp_onnx_part_run(im, node, "MatMul",
                                 (const char *const[]){node->inputs[0], weights}, NULL, NULL);
    GHP_TRY(ghp_onnx_part_run(im, node, "MatMul", (const char *const[]){node->inputs[0], weights},
                              "product", &product));
    return ghp_onnx_part_run(im, node, "Add", (const char *const[]){product, node->inputs[2]}, NULL,
                             NULL);
}

static enum ghp_status read_gemm(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, *w, *c = ghp_onnx_in(im, node, 2), rows;
    struct ghp_onnx_source weight = {.scale = ghp_onnx_real(node, "alpha", 1)};
    struct ghp_onnx_source bias = {.scale = ghp_onnx_real(node, "beta", 1)};
    int layer;

    if (ghp_onnx_int(node, "transA", 0) != 0)
        return ghp_onnx_fail(im, node,
                             "transposes its samples (transA); ghp keeps the batch in "
                             "front: transpose in the file");
    if (is_by_derived(im, node)) return gemm_by_derived(im, node);
    GHP_TRY(factor_in(im, node, &rows, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &w));
    weight.array = *w;
    if (w->n == 2 && ghp_onnx_int(node, "transB", 0) == 0)
        ghp_onnx_permute(&weight.array, (const int[]){1, 0});
    if (x == &rows || (ghp_onnx_are_rows(im, x) && x->joined != 0))
        GHP_TRY(product_on(im, node, x, &weight, &layer));
    else
        GHP_TRY(linear_on(im, node, x, &weight, &layer));
    if (c != NULL && bias.scale != 0) {
        GHP_TRY(ghp_onnx_constant_in(im, node, 2, &c));
        if (c->n > 1 && c->dims[0] != 1)
            return ghp_onnx_fail(im, node,
                                 "adds a matrix, a row to each sample; ghp adds one "
                                 "vector to all: give a vector");
        bias.array = *c;
        bias.layer = layer;
        GHP_TRY(ghp_onnx_bias_on(im, node, &bias, &layer));
    }
    return put_product(im, node, x, layer);
}

/* A matrix times each sample's: rows are products with the columns of the samples. */
static enum ghp_status matrix_first(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_source weight = {.array = *ghp_onnx_in(im, node, 0), .scale = 1};
    struct ghp_onnx_array *x, turned, made;
    int layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 1, &x));
    turned = *x;
    ghp_onnx_turn_last(&turned);
    GHP_TRY(product_on(im, node, &turned, &weight, &layer));
    made = product_of(im, &turned, layer);
    ghp_onnx_turn_last(&made);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_matmul(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_source weight = {.scale = 1};
    struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0), *w = ghp_onnx_in(im, node, 1), rows;
    int layer;

    if (x != NULL && w != NULL && x->base == NULL && w->base == NULL)
        return ghp_onnx_scores_product(im, node);
    if (x != NULL && w != NULL && x->base != NULL && w->base == NULL && w->n > 2)
        return x->n == 2 && !ghp_onnx_is_derived(x) ? matrix_first(im, node)
                                                    : ghp_onnx_multiply(im, node, true);
    if (x != NULL && w != NULL && x->base == NULL && w->base != NULL && w->n > 2)
        return ghp_onnx_multiply(im, node, true);
    if (is_by_derived(im, node)) return ghp_onnx_multiply(im, node, true);
    GHP_TRY(factor_in(im, node, &rows, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &w));
    weight.array = *w;
    if (w->n == 2) ghp_onnx_permute(&weight.array, (const int[]){1, 0});
    GHP_TRY(product_on(im, node, x, &weight, &layer));
    return put_product(im, node, x, layer);
}

/* Writes the product of a sequence, for which ONNX does not have one with a bias. Nodes are named after the layers, so
 * that these keep their names when the file is read. */
static enum ghp_status write_at_positions(struct ghp_onnx_export *ex, int i)
{
    static const int64_t turned[2] = {1, 0};
    const struct ghp_layer *layer = &ex->model->layers[i];
    const struct ghp_layer *bias = ghp_export_own_bias(ex->model, i);
    const char *name = bias != NULL ? ghp_export_text(ex, layer->name, ".product") : layer->name;
    const char *inputs[3] = {ex->names[layer->inputs[0]]};
    const char *weight = ghp_export_owner(ex, layer)->params[0].name;

    GHP_TRY(ghp_export_param_of(ex, layer, 0, 0));
    inputs[1] = ghp_export_owner(ex, layer)->transposed
                    ? weight
                    : ghp_export_turned(ex, ghp_export_text(ex, layer->name, ".weight.turned"),
                                        weight, turned, 2);
    ghp_export_node(ex, "MatMul", name, inputs)->name = layer->name;
    if (bias == NULL) return GHP_OK;
    GHP_TRY(ghp_export_param_of(ex, bias, 0, 0));
    inputs[0] = name;
    inputs[1] = ghp_export_owner(ex, bias)->params[0].name;
    ghp_export_node(ex, "Add", layer->name, inputs)->name = bias->name;
    return GHP_OK;
}

static enum ghp_status write_vector(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *layer = &ex->model->layers[i];
    const struct ghp_layer *bias = ghp_export_own_bias(ex->model, i);
    const char *inputs[4] = {ghp_export_ranked(ex, layer->inputs[0], 2, layer->name), NULL,
                             bias != NULL ? ghp_export_owner(ex, bias)->params[0].name : NULL};

    inputs[1] = ghp_export_owner(ex, layer)->params[0].name;
    GHP_TRY(ghp_export_param_of(ex, layer, 0, 0));
    if (bias != NULL) GHP_TRY(ghp_export_param_of(ex, bias, 0, 0));
    ghp_export_int(ex, ghp_export_node(ex, "Gemm", layer->name, inputs), "transB",
                   ghp_export_owner(ex, layer)->transposed ? 0 : 1);
    ex->ranks[i] = 2;
    return GHP_OK;
}

static enum ghp_status write_linear(struct ghp_onnx_export *ex, int i)
{
    return ex->ranks[i] == 3 ? write_at_positions(ex, i) : write_vector(ex, i);
}

const struct ghp_onnx_operator ghp_onnx_matrix[] = {
    {.name = "Gemm",
     .since = 1,
     .attributes = "alpha beta transA transB ",
     .read = read_gemm,
     .op = GHP_OP_LINEAR,
     .write = write_linear},
    {.name = "MatMul", .since = 1, .attributes = "", .read = read_matmul},
    {0}};
