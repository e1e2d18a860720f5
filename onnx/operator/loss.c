/* onnx/operator/loss.c - softmax: at the end the loss, else a layer. */
#include "onnx/operator/operator.h"

#include "onnx/operator/rows.h"
#include "onnx/operator/scores.h"
#include "onnx/read/attribute.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <string.h>

/* Makes the loss layer, which takes each position of the sequence by itself. */
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

/* Whether a node computes with a tensor, also by way of others that only hand it on: it is not the network's end. Nodes
 * before `first` are not looked at. */
static bool is_inside(struct ghp_onnx_import *im, const char *name, int first)
{
    static const char *const passes[] = {"Identity", "Cast",      "Reshape",   "Flatten",
                                         "Squeeze",  "Unsqueeze", "Transpose", "Log"};

    for (int i = first; i < im->file->n_nodes; i++) {
        const struct ghp_onnx_node *reader = &im->nodes[i];
        bool reads = false, passes_on = false;

        for (int k = 0; k < reader->n_inputs; k++)
            reads = reads || strcmp(reader->inputs[k], name) == 0;
        if (!reads || !ghp_onnx_wanted(im, reader, 0)) continue;
        for (size_t k = 0; k < sizeof passes / sizeof passes[0]; k++)
            passes_on = passes_on || strcmp(reader->op, passes[k]) == 0;
        if (!passes_on || is_inside(im, reader->outputs[0], i + 1)) return true;
    }
    return false;
}

/* Over one axis, in the midst of a network. */
static enum ghp_status of_axis(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               const struct ghp_onnx_array *x, int axis)
{
    struct ghp_layer like = {.op = GHP_OP_SOFTMAX, .n_inputs = 1},
                     log = {
                         .op = GHP_OP_POINTWISE, .n_inputs = 1, .pointwise.curve = GHP_CURVE_LOG};
    bool logs = strcmp(node->op, "LogSoftmax") == 0;
    struct ghp_onnx_layer_name hint = ghp_onnx_hint(im, node, NULL);
    int there[GHP_ONNX_MAX_DIMS], back[GHP_ONNX_MAX_DIMS], layer;
    struct ghp_onnx_array moved = *x, made;

    for (int i = 0; i < x->n; i++)
        there[i] = i < axis ? i : i < x->n - 1 ? i + 1 : axis;
    for (int i = 0; i < x->n; i++)
        back[there[i]] = i;
    ghp_onnx_permute(&moved, there);
    GHP_TRY(ghp_onnx_rows_in(im, &moved, &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, logs ? ghp_onnx_part(hint, ".part") : hint, &layer));
    log.inputs[0] = layer;
    if (logs) GHP_TRY(ghp_onnx_emit(im, &log, hint, &layer));
    made = ghp_onnx_rows_out(im, &moved, layer);
    ghp_onnx_permute(&made, back);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_softmax(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_SOFTMAX_CE, .n_inputs = 1};
    struct ghp_shape vector = {.c = 1, .h = 1, .w = 1};
    struct ghp_onnx_array *x, flat, made;
    int64_t summed = 1, seen[GHP_ONNX_MAX_DIMS];
    int axis, layer;

    x = ghp_onnx_in(im, node, 0);
    if (x == NULL || x->scores == NULL) GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", im->file->opset < 13 ? 1 : -1),
                          x->scores != NULL ? ghp_onnx_seen(x, seen) : x->n, &axis));
    if (x->scores != NULL) return ghp_onnx_scores_softmax(im, node, axis);
    if (axis > 0 && (im->file->opset >= 13 || axis == x->n - 1) &&
        is_inside(im, node->outputs[0], 0))
        return of_axis(im, node, x, axis);
    if (ghp_onnx_whole_sequence(im, x) && axis == 2) return of_positions(im, node, x->layer);
    for (int i = axis; i < x->n && (i == axis || im->file->opset < 13); i++)
        summed *= x->dims[i];
    if (axis == 0 || summed != ghp_onnx_elements(x))
        return ghp_onnx_fail(
            im, node,
            "is over axis %d of %d, a part of a sample or several samples; ghp has "
            "softmax inside networks and as the loss, of one vector of classes for "
            "each sample or position: leave it out at the end, or use Sigmoid",
            axis, x->n);
    flat = *x;
    vector.c = summed;
    GHP_TRY(ghp_onnx_settle(im, &flat, vector, &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    made = ghp_onnx_of_layer(im, layer, x->n, x->dims);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status write_softmax(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *const inputs[] = {ex->names[l->inputs[0]], NULL};

    for (int k = 0; k < l->n_consumers; k++)
        if (ghp_op_of(ex->model->layers[ex->model->edges[l->out_edges[k]].to].op)->is_loss)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' (softmax) is read by the loss, as which ONNX files are "
                            "read that end so; leave it out",
                            l->name);
    ghp_export_int(ex, ghp_export_node(ex, "Softmax", l->name, inputs), "axis",
                   ex->ranks[i] == 3 ? 2 : 1);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_loss[] = {
    {.name = "Softmax",
     .since = 1,
     .attributes = "axis ",
     .read = read_softmax,
     .op = GHP_OP_SOFTMAX,
     .write = write_softmax},
    {.name = "LogSoftmax", .since = 1, .attributes = "axis ", .read = read_softmax},
    {0}};
