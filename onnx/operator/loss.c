/* onnx/operator/loss.c - softmax at the end, which is the loss. */
#include "onnx/operator/operator.h"

#include "onnx/operator/rows.h"
#include "onnx/operator/scores.h"
#include "onnx/read/attribute.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

/* Of each position by itself, as the loss is. */
static enum ghp_status of_positions(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    int from)
{
    struct ghp_layer like = {.op = GHP_OP_SOFTMAX_CE, .n_inputs = 1, .inputs = {from}};
    struct ghp_onnx_array made;
    int layer;

    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    made = ghp_onnx_of_sequence(im, layer);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_softmax(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_SOFTMAX_CE, .n_inputs = 1};
    struct ghp_shape vector = {.c = 1, .h = 1, .w = 1};
    struct ghp_onnx_array *x, flat, made;
    int64_t summed = 1;
    int axis, layer;

    x = ghp_onnx_in(im, node, 0);
    if (x == NULL || x->scores == NULL) GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", im->file->opset < 13 ? 1 : -1), x->n,
                          &axis));
    if (x->scores != NULL) return ghp_onnx_scores_softmax(im, node, axis);
    if (ghp_onnx_whole_sequence(im, x) && axis == 2) return of_positions(im, node, x->layer);
    for (int i = axis; i < x->n && (i == axis || im->file->opset < 13); i++)
        summed *= x->dims[i];
    if (axis == 0 || summed != ghp_onnx_elements(x))
        return ghp_onnx_fail(
            im, node,
            "is over axis %d of %d, a part of a sample or several samples; ghp has "
            "softmax in attentions and as the loss, of one vector of classes for "
            "each sample or position: leave it out, or use Sigmoid",
            axis, x->n);
    flat = *x;
    vector.c = summed;
    GHP_TRY(ghp_onnx_settle(im, &flat, vector, &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    made = ghp_onnx_of_layer(im, layer, x->n, x->dims);
    return ghp_onnx_define(im, node, 0, &made);
}

const struct ghp_onnx_operator ghp_onnx_loss[] = {
    {.name = "Softmax", .since = 1, .attributes = "axis ", .read = read_softmax},
    {.name = "LogSoftmax", .since = 1, .attributes = "axis ", .read = read_softmax},
    {0}};
