/* onnx/operator/unary.c - what many operators come down to: a layer of one input, other axes, or nothing. */
#include "onnx/operator/unary.h"

#include "onnx/operator/derived.h"
#include "onnx/operator/rows.h"
#include "onnx/read/attribute.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <string.h>

enum ghp_status ghp_onnx_seen_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct ghp_onnx_array **x)
{
    *x = ghp_onnx_in(im, node, 0);
    return *x != NULL ? GHP_OK : ghp_onnx_fail(im, node, "has no input; repair the file");
}

enum ghp_status ghp_onnx_any_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                int least, struct ghp_onnx_array **x)
{
    GHP_TRY(ghp_onnx_seen_in(im, node, x));
    GHP_TRY(ghp_onnx_check_plain(im, node, *x));
    GHP_TRY(ghp_onnx_part_axes(im, *x));
    if ((*x)->n < least)
        return ghp_onnx_fail(im, node, "has an input of %d axes; it takes %d or more", (*x)->n,
                             least);
    return GHP_OK;
}

enum ghp_status ghp_onnx_identity(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x;

    GHP_TRY(ghp_onnx_seen_in(im, node, &x));
    return ghp_onnx_define(im, node, 0, x);
}

/* Whether it is a function that all samples share. */
static bool is_function(enum ghp_op op)
{
    return op == GHP_OP_RELU || op == GHP_OP_ACTIVATION || op == GHP_OP_POINTWISE ||
           op == GHP_OP_GELU || op == GHP_OP_SILU || op == GHP_OP_HARD_SWISH;
}

enum ghp_status ghp_onnx_unary(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               struct ghp_layer *like)
{
    struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0), made;
    int layer;

    if (x != NULL && x->base != NULL && is_function(like->op) && ghp_onnx_may_derive(x))
        return ghp_onnx_derive_each(im, node, x, *like);
    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_each_in(im, x, &like->inputs[0]));
    like->n_inputs = 1;
    GHP_TRY(ghp_onnx_emit(im, like, ghp_onnx_hint(im, node, NULL), &layer));
    made = ghp_onnx_each_out(x, layer);
    return ghp_onnx_define(im, node, 0, &made);
}

/* A constant that is the same for all samples, whose windows are joined with them: the windows alone. */
static bool drop_samples(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x, int n,
                         const int64_t *dims, struct ghp_onnx_array *made, int64_t *rest)
{
    if (x->base == NULL || im->batch != GHP_ONNX_BATCH || x->n < 4 || n < 4 ||
        x->dims[0] != im->batch || x->strides[0] != 0 || dims[0] <= im->batch ||
        dims[0] % im->batch != 0)
        return false;
    *made = *x;
    made->n--;
    for (int i = 0; i < made->n; i++) {
        made->dims[i] = x->dims[i + 1];
        made->strides[i] = x->strides[i + 1];
    }
    memcpy(rest, dims, (size_t)n * sizeof *rest);
    rest[0] /= im->batch;
    return true;
}

enum ghp_status ghp_onnx_reshaped(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  struct ghp_onnx_array *x, int n, const int64_t *dims)
{
    struct ghp_onnx_array made, parted;
    int64_t rest[GHP_ONNX_MAX_DIMS];
    bool done = false, regroups, sequence = x->base == NULL && ghp_onnx_is_sequence(im, x->layer);

    if (n > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node, "makes %d axes; use at most %d", n, GHP_ONNX_MAX_DIMS);
    regroups = sequence && ghp_onnx_regroup(x, n, dims, &made);
    if (regroups && (made.joined & ~2u) != 0) { /* windows have a sequence of their own */
        GHP_TRY(ghp_onnx_windows_part(im, x, n, dims, &parted, &done));
        if (done) made = parted;
    }
    if (regroups) return ghp_onnx_define(im, node, 0, &made);
    if (sequence) GHP_TRY(ghp_onnx_part_axes(im, x));
    if (x->base == NULL) GHP_TRY(ghp_onnx_windows_part(im, x, n, dims, &made, &done));
    /* samples and channels of an image as one axis, for a while */
    if (x->base == NULL && !done && (dims[0] != im->batch || (x->joined & 2u) != 0))
        done = ghp_onnx_regroup(x, n, dims, &made);
    if (done) return ghp_onnx_define(im, node, 0, &made);
    if (x->base == NULL) GHP_TRY(ghp_onnx_part_axes(im, x));
    made = *x;
    if (drop_samples(im, x, n, dims, &made, rest)) dims = rest;
    made.name = node->n_outputs > 0 ? node->outputs[0] : x->name;
    if (x->base == NULL && (n < 1 || dims[0] != im->batch))
        return ghp_onnx_fail(im, node, "does not keep the batch in front; ghp never mixes samples");
    GHP_TRY(ghp_onnx_reshape(im, &made, n, dims));
    return ghp_onnx_define(im, node, 0, &made);
}
