/* onnx/joins.c - ONNX operations on several tensors: sums, products, concatenation. */
#include "onnx/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- constants with constants ---- */

static double combine(const char *op, double a, double b, bool whole)
{
    if (strcmp(op, "Mul") == 0) return a * b;
    if (strcmp(op, "Sub") == 0) return a - b;
    if (strcmp(op, "Div") != 0) return a + b;
    if (!whole) return a / b;
    return b == 0 ? 0 : (double)(int64_t)(a / b); /* sizes are far below 2^53 */
}

/* Dimensions that two shapes broadcast to; false where they do not. */
static bool joint_dims(const struct ghp_onnx_array *a, const struct ghp_onnx_array *b, int *n,
                       int64_t *dims)
{
    *n = a->n > b->n ? a->n : b->n;
    for (int i = 0; i < *n; ++i) {
        int64_t x = i < *n - a->n ? 1 : a->dims[i - (*n - a->n)];
        int64_t y = i < *n - b->n ? 1 : b->dims[i - (*n - b->n)];

        if (x != y && x != 1 && y != 1) return false;
        dims[i] = x == 1 ? y : x;
    }
    return true;
}

static enum ghp_status fold(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                            const struct ghp_onnx_array *left, const struct ghp_onnx_array *right)
{
    struct ghp_onnx_array a = *left, b = *right, made;
    int64_t dims[GHP_ONNX_MAX_DIMS], elements;
    const double *x, *y;
    double *out;
    int n;

    if (!joint_dims(&a, &b, &n, dims) || !ghp_onnx_sized(n, dims) ||
        !ghp_onnx_expand(&a, n, dims) || !ghp_onnx_expand(&b, n, dims))
        return ghp_onnx_fail(im, node, "has constants of shapes that do not fit; repair the file");
    GHP_TRY(ghp_onnx_values(im, &a, &x));
    GHP_TRY(ghp_onnx_values(im, &b, &y));
    elements = ghp_onnx_elements(&a);
    out = ghp_onnx_keep(im, (size_t)elements, sizeof *out);
    if (out == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < elements; ++i)
        out[i] = combine(node->op, x[i], y[i], a.base->whole);
    GHP_TRY(ghp_onnx_of_values(im, a.base->whole, (struct ghp_onnx_sizes){n, dims}, out, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- a tensor with a constant ---- */

/* Whether the constant has one value for each channel of x, broadcast over everything else. */
static bool by_channel(const struct ghp_onnx_array *x, const struct ghp_onnx_array *c)
{
    if (c->n > x->n || x->n < 2 || c->n < x->n - 1) return false;
    for (int i = 0; i < c->n; ++i) {
        int axis = i + x->n - c->n;

        if (c->dims[i] != (axis == 1 ? x->dims[1] : 1)) return false;
    }
    return true;
}

static enum ghp_status affine(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              const struct ghp_onnx_array *x, double alpha, double beta)
{
    struct ghp_layer like = {
        .op = GHP_OP_ACTIVATION,
        .n_inputs = 1,
        .activation = {GHP_FUNCTION_AFFINE, ghp_onnx_tidy(alpha), ghp_onnx_tidy(beta)}};
    struct ghp_onnx_array settled = *x, made;
    int layer;

    if (!(alpha >= -1e30 && alpha <= 1e30 && beta >= -1e30 && beta <= 1e30))
        return ghp_onnx_fail(im, node, "has a constant beyond 1e30; use smaller ones");
    GHP_TRY(ghp_onnx_settle(im, &settled, ghp_onnx_shape(x), &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, NULL), &layer));
    made = ghp_onnx_of_layer(im, layer, x->n, x->dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* The constant as a parameter of one value a channel: trained like any other. Products are a convolution of one pixel
 * with a group for each channel. */
static enum ghp_status channel_layer(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     struct ghp_onnx_array *x, struct ghp_onnx_source from)
{
    bool product = strcmp(node->op, "Mul") == 0 || strcmp(node->op, "Div") == 0;
    int64_t c = x->dims[1];
    struct ghp_layer like = {.op = product ? GHP_OP_CONV2D : GHP_OP_BIAS,
                             .n_inputs = 1,
                             .out = {product ? c : 0, 0, 0},
                             .window = {1, 1, 1, 1, 0, 0, 0, 0, 1, 1, product ? c : 1, true}};
    struct ghp_onnx_array made;

    if (!product) like.window = (struct ghp_window){0};
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, &from.array), &from.layer));
    GHP_TRY(ghp_onnx_weight_from(im, node, from));
    made = ghp_onnx_of_layer(im, from.layer, x->n, x->dims);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status with_constant(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     bool constant_first)
{
    bool sub = strcmp(node->op, "Sub") == 0, div = strcmp(node->op, "Div") == 0;
    bool mul = strcmp(node->op, "Mul") == 0;
    struct ghp_onnx_source from = {.scale = sub ? -1 : 1};
    struct ghp_onnx_array *x, *c;
    const double *value;

    GHP_TRY(ghp_onnx_layer_in(im, node, constant_first ? 1 : 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, constant_first ? 0 : 1, &c));
    if (by_channel(x, c) && !div && !(sub && constant_first) && (x->dims[1] > 1 || c->n > 1)) {
        from.array = *c;
        return channel_layer(im, node, x, from);
    }
    if (ghp_onnx_elements(c) != 1 || c->n > x->n || (div && constant_first))
        return ghp_onnx_fail(im, node,
                             "combines with a constant that is neither one value nor one for each "
                             "channel; ghp has no constant tensors of other shapes");
    GHP_TRY(ghp_onnx_values(im, c, &value));
    if (mul) return affine(im, node, x, value[0], 0);
    if (div) return affine(im, node, x, 1 / value[0], 0);
    if (sub && constant_first) return affine(im, node, x, -1, value[0]);
    return affine(im, node, x, 1, from.scale * value[0]);
}

/* ---- tensors with tensors ---- */

/* A layer that is a copy of another: operations take no layer twice. */
static enum ghp_status copy_of(struct ghp_onnx_import *im, int from, struct ghp_onnx_hint hint,
                               int *layer)
{
    struct ghp_shape s = im->model.layers[from].out;
    struct ghp_layer like = {.op = GHP_OP_VIEW, .n_inputs = 1, .inputs = {from}, .out = s};
    const int64_t sizes[3] = {s.c, s.h, s.w}, strides[3] = {s.h * s.w, s.w, 1};

    for (int i = 0; i < 3; ++i) {
        if (sizes[i] == 1) continue;
        like.view.sizes[like.view.n] = sizes[i];
        like.view.strides[like.view.n++] = strides[i];
    }
    return ghp_onnx_emit(im, &like, ghp_onnx_part(hint, ".copy"), layer);
}

/* add, mul or concat over settled layers, one for each input of the node, 16 at a time. */
static enum ghp_status join(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                            struct ghp_layer like, const int *layers, int *layer)
{
    struct ghp_onnx_hint hint = ghp_onnx_hint(node, NULL);

    like.n_inputs = 0;
    for (int i = 0; i < node->n_inputs; ++i) {
        int from = layers[i];

        for (int j = 0; j < like.n_inputs; ++j)
            if (like.inputs[j] == from) GHP_TRY(copy_of(im, layers[i], hint, &from));
        like.inputs[like.n_inputs++] = from;
        if (like.n_inputs < GHP_MAX_INPUTS || i == node->n_inputs - 1) continue;
        GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_part(hint, ".part"), layer));
        like.inputs[0] = *layer;
        like.n_inputs = 1;
    }
    return ghp_onnx_emit(im, &like, hint, layer);
}

static enum ghp_status of_tensors(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  struct ghp_layer like)
{
    int64_t dims[GHP_ONNX_MAX_DIMS];
    int *layers = ghp_onnx_keep(im, (size_t)node->n_inputs, sizeof *layers), n = 0, layer;
    struct ghp_onnx_array *x, joint, made;

    if (layers == NULL) return GHP_NO_MEMORY();
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    joint = *x;
    for (int i = 1; i < node->n_inputs; ++i) {
        GHP_TRY(ghp_onnx_layer_in(im, node, i, &x));
        if (x->n != joint.n || !joint_dims(&joint, x, &n, dims))
            return ghp_onnx_fail(im, node,
                                 "combines tensors of shapes that do not fit, or of "
                                 "different ranks; reshape them in the file");
        memcpy(joint.dims, dims, sizeof dims);
    }
    for (int i = 0; i < node->n_inputs; ++i) {
        GHP_TRY(ghp_onnx_layer_in(im, node, i, &x));
        made = *x;
        if (memcmp(made.dims, joint.dims, (size_t)joint.n * sizeof(int64_t)) == 0) {
            GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &layers[i]));
            continue;
        }
        if (!ghp_onnx_expand(&made, joint.n, joint.dims))
            return ghp_onnx_fail(im, node, "repeats samples; ghp keeps the batch as it is");
        GHP_TRY(ghp_onnx_settle(im, &made, ghp_onnx_shape(&made), &layers[i]));
    }
    GHP_TRY(join(im, node, like, layers, &layer));
    made = ghp_onnx_of_layer(im, layer, joint.n, joint.dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* -x as a layer of its own, for differences. */
static enum ghp_status subtract(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer minus = {
        .op = GHP_OP_ACTIVATION, .n_inputs = 1, .activation = {GHP_FUNCTION_AFFINE, -1, 0}};
    struct ghp_layer like = {.op = GHP_OP_ADD};
    struct ghp_onnx_array *a, *b, made;
    int layers[2], layer;

    if (node->n_inputs != 2)
        return ghp_onnx_fail(im, node,
                             "has %d inputs, but subtracts one from another; repair the file",
                             node->n_inputs);
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &a));
    GHP_TRY(ghp_onnx_layer_in(im, node, 1, &b));
    if (a->n != b->n || memcmp(a->dims, b->dims, (size_t)a->n * sizeof(int64_t)) != 0)
        return ghp_onnx_fail(im, node,
                             "subtracts a tensor of another shape; expand it in the file");
    GHP_TRY(ghp_onnx_settle(im, a, ghp_onnx_shape(a), &layers[0]));
    GHP_TRY(ghp_onnx_settle(im, b, ghp_onnx_shape(b), &minus.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &minus, ghp_onnx_part(ghp_onnx_hint(node, NULL), ".negated"),
                          &layers[1]));
    GHP_TRY(join(im, node, like, layers, &layer));
    made = ghp_onnx_of_layer(im, layer, a->n, a->dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* How many of the inputs are constants; GHP_ERR_INPUT where one is left out. */
static enum ghp_status count_constants(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       int *n)
{
    *n = 0;
    if (node->n_inputs < 1) return ghp_onnx_fail(im, node, "has no inputs; repair the file");
    for (int i = 0; i < node->n_inputs; ++i) {
        const struct ghp_onnx_array *array = ghp_onnx_in(im, node, i);

        if (array == NULL) return ghp_onnx_fail(im, node, "has no input %d; repair the file", i);
        if (array->base != NULL) ++*n;
    }
    return GHP_OK;
}

/* Add, Sub, Sum */
enum ghp_status ghp_onnx_add(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_ADD};
    int constants;

    GHP_TRY(count_constants(im, node, &constants));
    if (node->n_inputs == 1) return ghp_onnx_identity(im, node);
    if (constants == 0)
        return strcmp(node->op, "Sub") == 0 ? subtract(im, node) : of_tensors(im, node, like);
    if (node->n_inputs == 2 && constants == 2)
        return fold(im, node, ghp_onnx_in(im, node, 0), ghp_onnx_in(im, node, 1));
    if (node->n_inputs == 2) return with_constant(im, node, ghp_onnx_in(im, node, 0)->base != NULL);
    return ghp_onnx_fail(im, node, "sums constants and tensors; add the constants one by one");
}

/* Mul, Div */
enum ghp_status ghp_onnx_mul(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_MUL};
    int constants;

    GHP_TRY(count_constants(im, node, &constants));
    if (node->n_inputs != 2) return ghp_onnx_fail(im, node, "has not two inputs; repair the file");
    if (constants == 2) return fold(im, node, ghp_onnx_in(im, node, 0), ghp_onnx_in(im, node, 1));
    if (constants == 1) return with_constant(im, node, ghp_onnx_in(im, node, 0)->base != NULL);
    if (strcmp(node->op, "Div") == 0)
        return ghp_onnx_fail(im, node, "divides by a tensor; ghp divides by one constant only");
    return of_tensors(im, node, like);
}

/* ---- concatenation ---- */

/* Values of constants in a row: shapes are put together so. */
static enum ghp_status concat_constants(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node, int axis)
{
    struct ghp_onnx_array *first = ghp_onnx_in(im, node, 0), made;
    int64_t dims[GHP_ONNX_MAX_DIMS], outer = 1, inner = 1, total = 0, at = 0;
    double *out;

    memcpy(dims, first->dims, sizeof dims);
    for (int i = 0; i < node->n_inputs; ++i) {
        const struct ghp_onnx_array *c = ghp_onnx_in(im, node, i);

        if (c->n != first->n)
            return ghp_onnx_fail(im, node, "joins constants of different ranks; repair the file");
        for (int d = 0; d < c->n; ++d)
            if (d != axis && c->dims[d] != first->dims[d])
                return ghp_onnx_fail(im, node, "joins constants that do not fit; repair the file");
        total += c->dims[axis];
    }
    dims[axis] = total;
    if (!ghp_onnx_sized(first->n, dims))
        return ghp_onnx_fail(im, node, "makes too large a constant; fold it in the file");
    for (int d = 0; d < axis; ++d)
        outer *= dims[d];
    for (int d = axis + 1; d < first->n; ++d)
        inner *= dims[d];
    out = ghp_onnx_keep(im, (size_t)(outer * inner * total), sizeof *out);
    if (out == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < node->n_inputs; ++i) {
        const struct ghp_onnx_array *c = ghp_onnx_in(im, node, i);
        int64_t run = c->dims[axis] * inner;
        const double *values;

        GHP_TRY(ghp_onnx_values(im, c, &values));
        for (int64_t o = 0; run > 0 && o < outer; ++o)
            memcpy(out + o * total * inner + at, values + o * run, (size_t)run * sizeof *out);
        at += run;
    }
    GHP_TRY(ghp_onnx_of_values(im, first->base->whole, (struct ghp_onnx_sizes){first->n, dims}, out,
                               &made));
    return ghp_onnx_define(im, node, 0, &made);
}

enum ghp_status ghp_onnx_concat(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_CONCAT};
    int order[GHP_ONNX_MAX_DIMS], *layers, axis, constants, layer;
    struct ghp_onnx_array *x, made;
    int64_t total = 0;

    GHP_TRY(count_constants(im, node, &constants));
    x = ghp_onnx_in(im, node, 0);
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", 1), x->n, &axis));
    if (constants == node->n_inputs) return concat_constants(im, node, axis);
    if (axis == 0)
        return ghp_onnx_fail(im, node, "joins along the batch; ghp keeps the batch as it is");
    if (node->n_inputs == 1) return ghp_onnx_identity(im, node);
    layers = ghp_onnx_keep(im, (size_t)node->n_inputs, sizeof *layers);
    if (layers == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < GHP_ONNX_MAX_DIMS; ++i)
        order[i] = i == 1 ? axis : i == axis ? 1 : i; /* its own inverse */
    made = *x;
    for (int i = 0; i < node->n_inputs; ++i) {
        struct ghp_onnx_array moved;

        GHP_TRY(ghp_onnx_layer_in(im, node, i, &x));
        for (int d = 0; d < x->n; ++d)
            if (x->n != made.n || (d != axis && x->dims[d] != made.dims[d]))
                return ghp_onnx_fail(im, node, "joins tensors that do not fit; repair the file");
        total += x->dims[axis];
        moved = *x;
        ghp_onnx_permute(&moved, order);
        GHP_TRY(ghp_onnx_settle(im, &moved, ghp_onnx_shape(&moved), &layers[i]));
        if (axis == 1) *x = moved; /* settled for its other readers too */
    }
    GHP_TRY(join(im, node, like, layers, &layer));
    made.dims[axis] = total;
    ghp_onnx_permute(&made, order);
    made = ghp_onnx_of_layer(im, layer, made.n, made.dims);
    ghp_onnx_permute(&made, order);
    return ghp_onnx_define(im, node, 0, &made);
}
