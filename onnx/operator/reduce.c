/* onnx/operator/reduce.c - means, sums and maxima over some of a sample's axes. */
#include "onnx/operator/operator.h"

#include "onnx/read/attribute.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

/* Which axes go: of the list, or all but none where noop_with_empty_axes says so. */
static enum ghp_status read_reduced(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_array *x, int since, bool reduced[])
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2];
    int n, axis;

    GHP_TRY(ghp_onnx_list(
        im, node, (struct ghp_onnx_place){im->file->opset < since ? -1 : 1, "axes"}, list, &n));
    for (int i = 0; i < x->n; ++i)
        reduced[i] = n <= 0 && ghp_onnx_int(node, "noop_with_empty_axes", 0) == 0;
    for (int i = 0; i < n; ++i) {
        GHP_TRY(ghp_onnx_axis(im, node, list[i], x->n, &axis));
        reduced[axis] = true;
    }
    if (x->n > 0 && reduced[0])
        return ghp_onnx_fail(im, node, "takes samples together; ghp keeps the batch as it is");
    return GHP_OK;
}

struct reduction {
    enum ghp_op op; /* over all pixels */
    bool sum;       /* the result times the number of elements */
    int since;      /* the opset from which on the axes are an input */
};

/* The layers of a reduction: x's elements are shape, of which the pixels are taken together. */
static enum ghp_status layers_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct reduction how, struct ghp_shape shape, int *layer)
{
    struct ghp_layer like = {.op = how.op, .n_inputs = 1, .inputs = {*layer}};
    struct ghp_onnx_hint hint = ghp_onnx_hint(node, NULL);

    if (how.op == GHP_OP_MAX_POOL)
        like.window = (struct ghp_window){shape.h, shape.w, 1, 1, 0, 0, 0, 0, 1, 1, 1, true};
    GHP_TRY(ghp_onnx_emit(im, &like, how.sum ? ghp_onnx_part(hint, ".mean") : hint, layer));
    if (!how.sum) return GHP_OK;
    like = (struct ghp_layer){
        .op = GHP_OP_ACTIVATION,
        .n_inputs = 1,
        .inputs = {*layer},
        .activation = {GHP_FUNCTION_AFFINE, (double)(shape.h * shape.w), 0}};
    return ghp_onnx_emit(im, &like, hint, layer);
}

/* The axes that stay become the channels, the others pixels. */
static enum ghp_status reduce(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct reduction how)
{
    bool reduced[GHP_ONNX_MAX_DIMS], keep = ghp_onnx_int(node, "keepdims", 1) != 0;
    int order[GHP_ONNX_MAX_DIMS], at = 0, n = 0, layer;
    int64_t dims[GHP_ONNX_MAX_DIMS];
    struct ghp_shape shape = {.c = 1, .h = 1, .w = 1};
    struct ghp_onnx_array *x, *from, moved, made;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(read_reduced(im, node, x, how.since, reduced));
    for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < x->n; ++i)
            if (reduced[i] == (pass == 1)) order[at++] = i;
    for (int i = 1; i < x->n; ++i)
        *(reduced[i] ? &shape.h : &shape.c) *= x->dims[i];
    for (int i = 0; i < x->n; ++i)
        if (!reduced[i] || keep) dims[n++] = reduced[i] ? 1 : x->dims[i];
    moved = *x;
    if (shape.h == 1) { /* nothing to take together */
        GHP_TRY(ghp_onnx_reshape(im, &moved, n, dims));
        return ghp_onnx_define(im, node, 0, &moved);
    }
    from = x->n == 4 && reduced[2] && reduced[3] && !reduced[1] ? x : &moved;
    ghp_onnx_permute(&moved, order);
    if (from == x) shape = ghp_onnx_shape(x);
    GHP_TRY(ghp_onnx_settle(im, from, shape, &layer));
    GHP_TRY(layers_of(im, node, how, shape, &layer));
    made = ghp_onnx_of_layer(im, layer, n, dims);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_mean(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return reduce(im, node, (struct reduction){GHP_OP_GLOBAL_AVG_POOL, false, 18});
}

static enum ghp_status read_sum(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return reduce(im, node, (struct reduction){GHP_OP_GLOBAL_AVG_POOL, true, 13});
}

static enum ghp_status read_max(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return reduce(im, node, (struct reduction){GHP_OP_MAX_POOL, false, 18});
}

#define REDUCTION(op, by)                                                                          \
    {                                                                                              \
        .name = op, .since = 1, .attributes = "axes keepdims noop_with_empty_axes ", .read = by    \
    }

const struct ghp_onnx_operator ghp_onnx_reduce[] = {REDUCTION("ReduceMean", read_mean),
                                                    REDUCTION("ReduceSum", read_sum),
                                                    REDUCTION("ReduceMax", read_max),
                                                    {0}};
