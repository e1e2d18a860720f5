/* onnx/operator/bias.c - parts of a product: its bias, a layer of its own here and an input of the product's node
 * there, and some of its channels. */
#include "onnx/operator/bias.h"

#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum ghp_status ghp_onnx_channel_values(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node,
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

enum ghp_status ghp_onnx_bias_on(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 const struct ghp_onnx_source *from, int *layer)
{
    const struct ghp_layer *owner = &im->model.layers[from->layer];
    struct ghp_layer like = {.op = GHP_OP_BIAS, .n_inputs = 1, .inputs = {from->layer}};
    struct ghp_onnx_source source = *from;
    size_t n = from->array.name != NULL ? strlen(from->array.name) : 0;
    struct ghp_onnx_layer_name hint = ghp_onnx_part(ghp_onnx_called(owner->name), ".bias");

    if (n > 5 && strcmp(from->array.name + n - 5, ".bias") == 0)
        hint = ghp_onnx_called(from->array.name);
    GHP_TRY(ghp_onnx_channel_values(im, node, &from->array, owner->out.c, &source.array));
    GHP_TRY(ghp_onnx_emit(im, &like, hint, layer));
    source.layer = *layer;
    return ghp_onnx_weight_from(im, node, source);
}

const struct ghp_layer *ghp_export_own_bias(const struct ghp_model *model, int i)
{
    const struct ghp_layer *layer = &model->layers[i], *next = layer + 1;
    size_t n = strlen(layer->name);

    if (layer->n_consumers != 1 || model->edges[layer->out_edges[0]].to != i + 1 ||
        next->op != GHP_OP_BIAS || strncmp(next->name, layer->name, n) != 0 ||
        strcmp(next->name + n, ".bias") != 0)
        return NULL;
    return next;
}

/* Whether a node's bias is one zero that the file spreads, as PyTorch's exporter gives modules without one: nobody
 * trains that. */
static enum ghp_status is_no_bias(struct ghp_onnx_import *im, const struct ghp_onnx_array *b,
                                  bool *none)
{
    double value = 0;

    *none = false;
    if (b->base->elements >= ghp_onnx_elements(b)) return GHP_OK;
    GHP_TRY(ghp_onnx_uniform(im, b, none, &value));
    *none = *none && value == 0;
    return GHP_OK;
}

enum ghp_status ghp_onnx_bias_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 int i, int *layer)
{
    struct ghp_onnx_source source = {.scale = 1, .layer = *layer};
    struct ghp_onnx_array *b = ghp_onnx_in(im, node, i);
    bool none;

    if (b == NULL) return GHP_OK;
    GHP_TRY(ghp_onnx_constant_in(im, node, i, &b));
    GHP_TRY(is_no_bias(im, b, &none));
    if (none) return GHP_OK;
    source.array = *b;
    return ghp_onnx_bias_on(im, node, &source, layer);
}

/* ---- some channels ---- */

/* The source of a layer's first parameter. */
static struct ghp_onnx_source source_of(const struct ghp_onnx_import *im, int layer)
{
    for (int i = 0; i < im->n_sources; i++)
        if (im->sources[i].layer == layer && im->sources[i].slot == 0) return im->sources[i];
    GHP_ASSERT(false); /* each layer that has parameters got them from somewhere */
    return im->sources[0];
}

/* Some of the first axis of an array. */
static void take_channels(struct ghp_onnx_array *array, struct ghp_onnx_channels channels)
{
    int64_t stride = array->strides[0];

    array->offset += channels.first * stride;
    array->dims[0] = channels.n;
    if (channels.runs == 0) return;
    for (int d = array->n++; d > 0; --d) {
        array->dims[d] = array->dims[d - 1];
        array->strides[d] = array->strides[d - 1];
    }
    array->dims[0] = channels.runs;
    array->dims[1] = channels.n / channels.runs;
    array->strides[0] = channels.step * stride;
}

/* A part of a product that has queries, keys and values of each head by itself: .q4 of four heads, as anyone who
 * joins them again needs to know. */
static const char *part_by_heads(struct ghp_onnx_import *im, int64_t heads, const char *part)
{
    enum { TEXT = 9 };
    char *text = ghp_onnx_keep(im, TEXT, 1);

    if (text != NULL) snprintf(text, TEXT, "%.2s%" PRId64, part, heads);
    return text != NULL ? text : part;
}

enum ghp_status ghp_onnx_take_channels(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       struct ghp_onnx_channels channels, const char *part,
                                       int *layer)
{
    const struct ghp_layer from = im->model.layers[channels.layer];
    struct ghp_layer like = {.op = from.op, .n_inputs = 1, .inputs = {from.inputs[0]}};
    struct ghp_onnx_layer_name hint = ghp_onnx_part(ghp_onnx_called(from.name), part);
    struct ghp_onnx_source source;

    *layer = channels.layer;
    if (channels.first == 0 && channels.n == from.out.c) return GHP_OK;
    if (channels.runs > 0) hint = ghp_onnx_part(hint, part_by_heads(im, channels.runs, part));
    if (from.op == GHP_OP_LINEAR) {
        like.out.c = channels.n;
    } else if (from.op == GHP_OP_BIAS) {
        channels.layer = from.inputs[0];
        GHP_TRY(ghp_onnx_take_channels(im, node, channels, part, &like.inputs[0]));
        hint = ghp_onnx_part(ghp_onnx_called(im->model.layers[like.inputs[0]].name), ".bias");
    } else {
        return ghp_onnx_fail(im, node,
                             "reads some channels of '%.96s', which is not a linear layer; make a "
                             "product for each input in the file",
                             from.name);
    }
    source = source_of(im, *layer);
    take_channels(&source.array, channels);
    if (from.op == GHP_OP_BIAS && ghp_onnx_role_zeros(&source.array) == channels.n) {
        *layer = like.inputs[0]; /* such as Swin v2's of keys */
        return GHP_OK;
    }
    GHP_TRY(ghp_onnx_emit(im, &like, hint, &source.layer));
    *layer = source.layer;
    return ghp_onnx_weight_from(im, node, source);
}

/* ---- writing ---- */

static bool is_passed_by(const struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *layer = &ex->model->layers[i];

    return layer->inputs[0] == i - 1 && ghp_op_of(layer[-1].op)->has_bias &&
           ghp_export_own_bias(ex->model, i - 1) == layer;
}

/* A tensor has as many axes as its first use has. */
static enum ghp_status check_tied(const struct ghp_onnx_export *ex, int i)
{
    int owner = ghp_model_owner(ex->model, i);

    if (is_passed_by(ex, i) == is_passed_by(ex, owner) &&
        (is_passed_by(ex, i) || ex->ranks[i] == ex->ranks[owner]))
        return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "layer '%s' cannot be written as ONNX, for it is tied to '%s', whose tensor has "
        "other axes there; keep the network as a model file",
        ex->model->layers[i].name, ex->model->layers[owner].name);
}

/* A bias that belongs to no other layer; those are passed by. */
static enum ghp_status write_bias(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *layer = &ex->model->layers[i];
    int from = layer->inputs[0];

    ex->ranks[i] = ex->ranks[from];
    GHP_TRY(check_tied(ex, i));
    if (is_passed_by(ex, i)) {
        ex->names[i] = ex->names[from];
        return GHP_OK;
    }
    GHP_TRY(ghp_export_param_of(ex, layer, 0, ex->ranks[i] == 4 ? 2 : 0));
    const char *const inputs[] = {ex->names[from], ghp_export_owner(ex, layer)->params[0].name,
                                  NULL};

    /* a tensor can be called as its layer: 'fc.bias' of a layer that is not fc's */
    if (strcmp(ghp_export_owner(ex, layer)->params[0].name, layer->name) == 0)
        ex->names[i] = ghp_export_text(ex, layer->name, ".sum");
    ghp_export_node(ex, "Add", ex->names[i], inputs);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_bias[] = {
    {.name = "Add", .since = 1, .op = GHP_OP_BIAS, .write = write_bias}, {0}};
