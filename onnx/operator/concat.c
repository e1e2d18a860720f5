/* onnx/operator/concat.c - tensors one behind another along an axis. */
#include "onnx/operator/operator.h"

#include "onnx/operator/join.h"
#include "onnx/operator/rows.h"
#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <string.h>

/* Values of constants in a row: shapes are put together so. */
static enum ghp_status concat_constants(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node, int axis)
{
    struct ghp_onnx_array *first = ghp_onnx_in(im, node, 0), made;
    int64_t dims[GHP_ONNX_MAX_DIMS], outer = 1, inner = 1, total = 0, at = 0;
    double *out;

    memcpy(dims, first->dims, sizeof dims);
    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *c = ghp_onnx_in(im, node, i);

        if (c->n != first->n)
            return ghp_onnx_fail(im, node, "joins constants of different ranks; repair the file");
        for (int d = 0; d < c->n; d++)
            if (d != axis && c->dims[d] != first->dims[d])
                return ghp_onnx_fail(im, node, "joins constants that do not fit; repair the file");
        total += c->dims[axis];
    }
    dims[axis] = total;
    if (!ghp_onnx_sized(first->n, dims))
        return ghp_onnx_fail(im, node, "makes too large a constant; fold it in the file");
    for (int d = 0; d < axis; d++)
        outer *= dims[d];
    for (int d = axis + 1; d < first->n; d++)
        inner *= dims[d];
    GHP_TRY(ghp_onnx_room(im, outer * inner * total, &out));
    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *c = ghp_onnx_in(im, node, i);
        int64_t run = c->dims[axis] * inner;
        const double *values;

        GHP_TRY(ghp_onnx_values(im, c, &values));
        for (int64_t o = 0; run > 0 && o < outer; o++)
            memcpy(out + o * total * inner + at, values + o * run, (size_t)run * sizeof *out);
        at += run;
    }
    GHP_TRY(ghp_onnx_of_values(im, first->base->whole, (struct ghp_onnx_sizes){first->n, dims}, out,
                               &made));
    return ghp_onnx_define(im, node, 0, &made);
}

/* Channels of sequences one behind another; *done is false where the inputs are others. */
static enum ghp_status concat_sequences(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node, int *layers, bool *done)
{
    const struct ghp_layer like = {.op = GHP_OP_CONCAT};
    struct ghp_onnx_array *x, made;
    int layer;

    *done = false;
    for (int i = 0; i < node->n_inputs; i++) {
        GHP_TRY(ghp_onnx_layer_in(im, node, i, &x));
        if (!ghp_onnx_whole_sequence(im, x)) return GHP_OK;
        layers[i] = x->layer;
    }
    *done = true;
    GHP_TRY(ghp_onnx_join(im, node, like, layers, &layer));
    made = ghp_onnx_of_sequence(im, layer);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_concat(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_CONCAT};
    int order[GHP_ONNX_MAX_DIMS], *layers, axis, constants, layer;
    struct ghp_onnx_array *x, made;
    int64_t total = 0;
    bool done = false;

    GHP_TRY(ghp_onnx_count_constants(im, node, &constants));
    x = ghp_onnx_in(im, node, 0);
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", 1), x->n, &axis));
    if (constants == node->n_inputs) return concat_constants(im, node, axis);
    if (axis == 0)
        return ghp_onnx_fail(im, node, "joins along the batch; ghp keeps the batch as it is");
    if (node->n_inputs == 1) return ghp_onnx_identity(im, node);
    layers = ghp_onnx_keep(im, (size_t)node->n_inputs, sizeof *layers);
    if (layers == NULL) return GHP_NO_MEMORY();
    if (axis == 2) GHP_TRY(concat_sequences(im, node, layers, &done));
    if (done) return GHP_OK;
    for (int i = 0; i < GHP_ONNX_MAX_DIMS; i++)
        order[i] = i == 1 ? axis : i == axis ? 1 : i; /* its own inverse */
    made = *x;
    for (int i = 0; i < node->n_inputs; i++) {
        struct ghp_onnx_array moved;

        GHP_TRY(ghp_onnx_layer_in(im, node, i, &x));
        for (int d = 0; d < x->n; d++)
            if (x->n != made.n || (d != axis && x->dims[d] != made.dims[d]))
                return ghp_onnx_fail(im, node, "joins tensors that do not fit; repair the file");
        total += x->dims[axis];
        moved = *x;
        ghp_onnx_permute(&moved, order);
        GHP_TRY(ghp_onnx_settle(im, &moved, ghp_onnx_shape(&moved), &layers[i]));
        if (axis == 1) *x = moved; /* settled for its other readers too */
    }
    GHP_TRY(ghp_onnx_join(im, node, like, layers, &layer));
    made.dims[axis] = total;
    ghp_onnx_permute(&made, order);
    made = ghp_onnx_of_layer(im, layer, made.n, made.dims);
    ghp_onnx_permute(&made, order);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status write_concat(struct ghp_onnx_export *ex, int i)
{
    ghp_export_int(ex, ghp_export_join(ex, i, "Concat"), "axis", ex->ranks[i] == 3 ? 2 : 1);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_concat[] = {{.name = "Concat",
                                                     .since = 1,
                                                     .attributes = "axis ",
                                                     .read = read_concat,
                                                     .op = GHP_OP_CONCAT,
                                                     .write = write_concat},
                                                    {0}};
