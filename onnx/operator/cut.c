/* onnx/operator/cut.c - see cut.h. */
#include "onnx/operator/cut.h"

#include "onnx/read/layer.h"

/* The source of a layer's first parameter. */
static struct ghp_onnx_source source_of(const struct ghp_onnx_import *im, int layer)
{
    for (int i = 0; i < im->n_sources; i++)
        if (im->sources[i].layer == layer && im->sources[i].slot == 0) return im->sources[i];
    GHP_ASSERT(false); /* each layer that has parameters got them from somewhere */
    return im->sources[0];
}

enum ghp_status ghp_onnx_cut(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                             struct ghp_onnx_channels channels, const char *part, int *layer)
{
    const struct ghp_layer from = im->model.layers[channels.layer];
    struct ghp_layer like = {.op = from.op, .n_inputs = 1, .inputs = {from.inputs[0]}};
    struct ghp_onnx_hint hint = ghp_onnx_part(ghp_onnx_called(from.name), part);
    struct ghp_onnx_source source;

    *layer = channels.layer;
    if (channels.first == 0 && channels.n == from.out.c) return GHP_OK;
    if (from.op == GHP_OP_LINEAR) {
        like.out.c = channels.n;
    } else if (from.op == GHP_OP_BIAS) {
        channels.layer = from.inputs[0];
        GHP_TRY(ghp_onnx_cut(im, node, channels, part, &like.inputs[0]));
        hint = ghp_onnx_part(ghp_onnx_called(im->model.layers[like.inputs[0]].name), ".bias");
    } else {
        return ghp_onnx_fail(im, node,
                             "reads some channels of '%.96s', which is no linear layer; make a "
                             "product for each input in the file",
                             from.name);
    }
    source = source_of(im, *layer);
    source.array.offset += channels.first * source.array.strides[0];
    source.array.dims[0] = channels.n;
    GHP_TRY(ghp_onnx_emit(im, &like, hint, &source.layer));
    *layer = source.layer;
    return ghp_onnx_weight_from(im, node, source);
}
