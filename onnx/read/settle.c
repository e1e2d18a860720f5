/* onnx/read/settle.c - arrays made real: the layer whose output an array is, through a view if there is none. */
#include "onnx/read/settle.h"

#include "onnx/read/constant.h"
#include "onnx/read/layer.h"

#include <string.h>

bool ghp_onnx_whole(const struct ghp_onnx_import *im, const struct ghp_onnx_array *array)
{
    int64_t dims[GHP_ONNX_MAX_DIMS], strides[GHP_ONNX_MAX_DIMS];
    int n = ghp_onnx_merged(array, dims, strides);
    int64_t all = ghp_shape_elements(im->model.layers[array->layer].out);

    if (array->offset != 0) return false;
    return n == 0 ? all == 1 : n == 1 && dims[0] == all && strides[0] == 1;
}

enum ghp_status ghp_onnx_view_of(const struct ghp_onnx_array *array, struct ghp_shape shape,
                                 struct ghp_view *view)
{
    const int64_t wanted[3] = {shape.c, shape.h, shape.w};
    int64_t dims[GHP_ONNX_MAX_DIMS], strides[GHP_ONNX_MAX_DIMS];
    int at = ghp_onnx_first_axis(array);

    *view = (struct ghp_view){.offset = array->offset};
    for (int group = 0; group < 3; group++) {
        struct ghp_onnx_array part = {.base = NULL, .n = 1, .dims = {1}};
        int64_t product = 1;
        int n;

        while (at < array->n && product < wanted[group]) {
            part.dims[part.n] = array->dims[at];
            part.strides[part.n++] = array->strides[at];
            product *= array->dims[at++];
        }
        n = ghp_onnx_merged(&part, dims, strides);
        if (product != wanted[group] || view->n + n > GHP_MAX_VIEW)
            return GHP_FAIL(GHP_ERR_INPUT, "its axes cannot be regrouped; reshape it in the file");
        for (int i = 0; i < n; i++) {
            view->sizes[view->n] = dims[i];
            view->strides[view->n++] = strides[i];
        }
    }
    return GHP_OK;
}

enum ghp_status ghp_onnx_settle(struct ghp_onnx_import *im, struct ghp_onnx_array *array,
                                struct ghp_shape shape, int *layer)
{
    struct ghp_shape from = im->model.layers[array->layer].out;
    struct ghp_layer like = {.op = GHP_OP_VIEW, .n_inputs = 1, .inputs = {array->layer}};
    const char *name = array->name;
    bool in_place = ghp_onnx_whole(im, array);

    *layer = array->layer;
    if (in_place && from.c == shape.c && from.h == shape.h && from.w == shape.w &&
        (array->n != 2 || from.axes != GHP_AXES_SEQUENCE)) /* of one position, as a vector */
        return GHP_OK;
    if (in_place && shape.h * shape.w == 1) {
        like.op = GHP_OP_FLATTEN;
    } else {
        like.out = shape;
        GHP_TRY(ghp_onnx_view_of(array, shape, &like.view));
    }
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_called(array->name), layer));
    *array = ghp_onnx_of_layer(im, *layer, array->n, array->dims);
    array->name = name;
    return GHP_OK;
}

enum ghp_status ghp_onnx_reshape(struct ghp_onnx_import *im, struct ghp_onnx_array *array, int n,
                                 const int64_t *dims)
{
    struct ghp_onnx_array out = *array;
    const double *values;
    enum ghp_status status;
    int layer;

    out.n = n;
    memcpy(out.dims, dims, (size_t)n * sizeof *dims);
    GHP_ASSERT(ghp_onnx_elements(&out) == ghp_onnx_elements(array));
    if (!ghp_onnx_split_strides(array, &out)) {
        if (array->base != NULL) {
            GHP_TRY(ghp_onnx_values(im, array, &values));
            return ghp_onnx_of_values(im, array->base->whole, (struct ghp_onnx_sizes){n, dims},
                                      values, array);
        }
        status = ghp_onnx_settle(im, array, ghp_onnx_shape(&out), &layer);
        if (status == GHP_ERR_INPUT)
            status = ghp_onnx_settle(im, array, ghp_onnx_shape(array), &layer);
        GHP_TRY(status);
        out = ghp_onnx_of_layer(im, layer, n, dims);
        out.name = array->name;
    }
    *array = out;
    return GHP_OK;
}

enum ghp_status ghp_onnx_part_axes(struct ghp_onnx_import *im, struct ghp_onnx_array *array)
{
    int64_t dims[GHP_ONNX_MAX_DIMS];
    int n = ghp_onnx_seen(array, dims);

    if (array->lead > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "its input has other axes before the samples; only products, biases, "
                        "Reshape and Transpose may come between, so put the batch in front");
    if (array->joined == 0) return GHP_OK;
    if ((array->joined & 2u) != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "its input joins samples with their positions; only products "
                        "and Reshape may come between, so split them in the file");
    array->joined = 0;
    return ghp_onnx_reshape(im, array, n, dims);
}
