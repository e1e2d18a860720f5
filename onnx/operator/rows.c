/* onnx/operator/rows.c - arrays as rows of their last axis: it goes to the place of the channels, and back. */
#include "onnx/operator/rows.h"

#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

/* The order that brings the last of n axes to the second place, and its inverse. */
static void find_orders(int n, int there[GHP_ONNX_MAX_DIMS], int back[GHP_ONNX_MAX_DIMS])
{
    for (int i = 0; i < n; ++i) {
        there[i] = i == 0 ? 0 : i == 1 ? n - 1 : i - 1;
        back[there[i]] = i;
    }
}

enum ghp_status ghp_onnx_rows_in(struct ghp_onnx_import *im, const struct ghp_onnx_array *x,
                                 int *layer)
{
    int there[GHP_ONNX_MAX_DIMS], back[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array moved = *x;

    find_orders(x->n, there, back);
    ghp_onnx_permute(&moved, there);
    return ghp_onnx_settle(im, &moved, ghp_onnx_shape(&moved), layer);
}

struct ghp_onnx_array ghp_onnx_rows_out(const struct ghp_onnx_import *im,
                                        const struct ghp_onnx_array *x, int layer)
{
    int there[GHP_ONNX_MAX_DIMS], back[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array made = *x;

    find_orders(x->n, there, back);
    ghp_onnx_permute(&made, there);
    made.dims[1] = im->model.layers[layer].out.c;
    made = ghp_onnx_of_layer(im, layer, made.n, made.dims);
    ghp_onnx_permute(&made, back);
    return made;
}
