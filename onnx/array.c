/* onnx/array.c - arrays: strides over constants and layers' outputs, and what makes them real. */
#include "onnx/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Constants that are folded, not weights: shapes and scales. */
#define MAX_FOLDED (INT64_C(1) << 24)
#define MAX_ELEMENTS (INT64_C(1) << 40)

static int first_axis(const struct ghp_onnx_array *array)
{
    return array->base == NULL && array->n > 0 ? 1 : 0;
}

int64_t ghp_onnx_elements(const struct ghp_onnx_array *array)
{
    int64_t elements = 1;

    for (int i = first_axis(array); i < array->n; ++i)
        elements *= array->dims[i];
    return elements;
}

bool ghp_onnx_sized(int n, const int64_t *dims)
{
    int64_t elements = 1;

    for (int i = 0; i < n; ++i) {
        if (dims[i] < 0 || (dims[i] > 0 && elements > MAX_ELEMENTS / dims[i])) return false;
        if (dims[i] > 0) elements *= dims[i]; /* what a 0 hides is bounded too */
    }
    return true;
}

/* Row-major strides. */
static void in_order(struct ghp_onnx_array *array)
{
    int64_t stride = 1;

    for (int i = array->n - 1; i >= first_axis(array); --i) {
        array->strides[i] = stride;
        stride *= array->dims[i];
    }
}

struct ghp_onnx_array ghp_onnx_of_layer(const struct ghp_onnx_import *im, int layer, int n,
                                        const int64_t *dims)
{
    struct ghp_onnx_array array = {.layer = layer, .n = n};

    memcpy(array.dims, dims, (size_t)n * sizeof *dims);
    array.dims[0] = im->batch;
    in_order(&array);
    return array;
}

enum ghp_status ghp_onnx_of_values(struct ghp_onnx_import *im, bool whole,
                                   struct ghp_onnx_sizes sizes, const double *values,
                                   struct ghp_onnx_array *array)
{
    struct ghp_onnx_base *base = ghp_onnx_keep(im, 1, sizeof *base);

    *array = (struct ghp_onnx_array){.n = sizes.n, .base = base};
    if (base == NULL) return GHP_NO_MEMORY();
    if (!ghp_onnx_sized(sizes.n, sizes.dims))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a constant has a negative size or more than 2^40 elements; repair it");
    memcpy(array->dims, sizes.dims, (size_t)sizes.n * sizeof *sizes.dims);
    in_order(array);
    *base = (struct ghp_onnx_base){
        .whole = whole, .elements = ghp_onnx_elements(array), .values = values};
    return GHP_OK;
}

struct ghp_shape ghp_onnx_shape(const struct ghp_onnx_array *array)
{
    struct ghp_shape shape = {1, 1, 1};

    if (array->n > 1) shape.c = array->dims[1];
    if (array->n > 2) shape.w = array->dims[array->n - 1];
    for (int i = 2; i < array->n - 1; ++i)
        shape.h *= array->dims[i];
    return shape;
}

/* ---- constants ---- */

/* All values of a stored tensor, as long as the import lives. */
static enum ghp_status stored_values(struct ghp_onnx_import *im, const struct ghp_onnx_base *base,
                                     const double **stored)
{
    size_t n = (size_t)base->elements;
    double *values = ghp_onnx_keep(im, n, sizeof *values);
    int64_t *ints = base->whole ? ghp_onnx_keep(im, n, sizeof *ints) : NULL;
    float *floats = base->whole ? NULL : ghp_onnx_keep(im, n, sizeof *floats);

    if (values == NULL || (ints == NULL && floats == NULL)) return GHP_NO_MEMORY();
    GHP_TRY(base->whole ? ghp_onnx_tensor_ints(base->file, base->tensor, ints)
                        : ghp_onnx_tensor_floats(base->file, base->tensor, floats));
    for (int64_t i = 0; i < base->elements; ++i)
        values[i] = base->whole ? (double)ints[i] : (double)floats[i];
    *stored = values;
    return GHP_OK;
}

/* Steps to the next element in row-major order; `at` is its place in the base. */
static void next_element(const struct ghp_onnx_array *array, int64_t index[GHP_ONNX_MAX_DIMS],
                         int64_t *at)
{
    for (int i = array->n - 1; i >= 0; --i) {
        *at += array->strides[i];
        if (++index[i] < array->dims[i]) return;
        *at -= array->strides[i] * array->dims[i];
        index[i] = 0;
    }
}

enum ghp_status ghp_onnx_values(struct ghp_onnx_import *im, const struct ghp_onnx_array *array,
                                const double **values)
{
    const struct ghp_onnx_base *base = array->base;
    int64_t n = ghp_onnx_elements(array), index[GHP_ONNX_MAX_DIMS] = {0}, at = array->offset;
    const double *from = base->values;
    double *out;

    if (n > MAX_FOLDED || (base->tensor != NULL && base->elements > MAX_FOLDED))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a constant of %" PRId64 " elements is computed with; fold it in the file",
                        n > MAX_FOLDED ? n : base->elements);
    if (base->tensor != NULL) GHP_TRY(stored_values(im, base, &from));
    out = ghp_onnx_keep(im, (size_t)n, sizeof *out);
    if (out == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < n; ++i) {
        out[i] = from != NULL ? from[at] : base->fill;
        next_element(array, index, &at);
    }
    *values = out;
    return GHP_OK;
}

enum ghp_status ghp_onnx_floats(const struct ghp_onnx_array *array, double scale, float *values)
{
    const struct ghp_onnx_base *base = array->base;
    int64_t n = ghp_onnx_elements(array), index[GHP_ONNX_MAX_DIMS] = {0}, at = array->offset;
    float *from = NULL;

    if (base->tensor != NULL) {
        from = ghp_alloc((size_t)base->elements, sizeof *from);
        if (from == NULL) return GHP_NO_MEMORY();
        enum ghp_status status = ghp_onnx_tensor_floats(base->file, base->tensor, from);

        if (status != GHP_OK) {
            free(from);
            return status;
        }
    }
    for (int64_t i = 0; i < n; ++i) {
        double value = from != NULL           ? (double)from[at]
                       : base->values != NULL ? base->values[at]
                                              : base->fill;

        values[i] = (float)(scale * value);
        next_element(array, index, &at);
    }
    free(from);
    return GHP_OK;
}

/* ---- strides ---- */

void ghp_onnx_permute(struct ghp_onnx_array *array, const int *order)
{
    struct ghp_onnx_array old = *array;

    for (int i = 0; i < array->n; ++i) {
        array->dims[i] = old.dims[order[i]];
        array->strides[i] = old.strides[order[i]];
    }
}

bool ghp_onnx_expand(struct ghp_onnx_array *array, int n, const int64_t *dims)
{
    struct ghp_onnx_array old = *array;
    int more = n - old.n;

    if (more < 0 || n > GHP_ONNX_MAX_DIMS || (array->base == NULL && more > 0)) return false;
    array->n = n;
    for (int i = 0; i < n; ++i) {
        int64_t size = i < more ? 1 : old.dims[i - more];

        if (size != dims[i] && size != 1) return false;
        array->dims[i] = dims[i];
        array->strides[i] = size == 1 ? 0 : old.strides[i - more];
    }
    return true;
}

/* The array's dimensions of more than one element, neighbours that lie in order joined; returns their number. */
static int merged(const struct ghp_onnx_array *array, int64_t *dims, int64_t *strides)
{
    int n = 0;

    for (int i = first_axis(array); i < array->n; ++i) {
        if (array->dims[i] == 1) continue;
        if (n > 0 && strides[n - 1] == array->dims[i] * array->strides[i]) {
            dims[n - 1] *= array->dims[i];
            strides[n - 1] = array->strides[i];
            continue;
        }
        dims[n] = array->dims[i];
        strides[n++] = array->strides[i];
    }
    return n;
}

/* Strides for new dimensions of the same elements; false where the old strides do not give any. */
static bool split_strides(const struct ghp_onnx_array *array, struct ghp_onnx_array *out)
{
    int64_t dims[GHP_ONNX_MAX_DIMS], strides[GHP_ONNX_MAX_DIMS];
    int n = merged(array, dims, strides), at = n - 1;
    int64_t left = n > 0 ? dims[at] : 1, stride = n > 0 ? strides[at] : 1;

    for (int i = out->n - 1; i >= first_axis(out); --i) {
        out->strides[i] = stride;
        if (out->dims[i] <= 1) continue; /* 0: there are no elements, and any stride will do */
        if (left == 1) {
            if (--at < 0) return false;
            left = dims[at];
            stride = strides[at];
            out->strides[i] = stride;
        }
        if (left % out->dims[i] != 0) return false;
        left /= out->dims[i];
        stride *= out->dims[i];
    }
    return true;
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
    if (!split_strides(array, &out)) {
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

/* ---- layers ---- */

bool ghp_onnx_whole(const struct ghp_onnx_import *im, const struct ghp_onnx_array *array)
{
    int64_t dims[GHP_ONNX_MAX_DIMS], strides[GHP_ONNX_MAX_DIMS];
    int n = merged(array, dims, strides);
    int64_t all = ghp_shape_elements(im->model.layers[array->layer].out);

    if (array->offset != 0) return false;
    return n == 0 ? all == 1 : n == 1 && dims[0] == all && strides[0] == 1;
}

/* The array's dimensions as a view's, cut at the bounds of channels, rows and columns. */
static enum ghp_status make_view(struct ghp_onnx_array array, struct ghp_shape shape,
                                 struct ghp_view *view)
{
    const int64_t wanted[3] = {shape.c, shape.h, shape.w};
    int64_t dims[GHP_ONNX_MAX_DIMS], strides[GHP_ONNX_MAX_DIMS];
    int at = first_axis(&array);

    *view = (struct ghp_view){.offset = array.offset};
    for (int group = 0; group < 3; ++group) {
        struct ghp_onnx_array part = {.base = NULL, .n = 1, .dims = {1}};
        int64_t product = 1;
        int n;

        while (at < array.n && product < wanted[group]) {
            part.dims[part.n] = array.dims[at];
            part.strides[part.n++] = array.strides[at];
            product *= array.dims[at++];
        }
        n = merged(&part, dims, strides);
        if (product != wanted[group] || view->n + n > GHP_MAX_VIEW)
            return GHP_FAIL(GHP_ERR_INPUT, "its axes cannot be regrouped; reshape it in the file");
        for (int i = 0; i < n; ++i) {
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
    if (in_place && from.c == shape.c && from.h == shape.h && from.w == shape.w) return GHP_OK;
    if (in_place && shape.h * shape.w == 1) {
        like.op = GHP_OP_FLATTEN;
    } else {
        like.out = shape;
        GHP_TRY(make_view(*array, shape, &like.view));
    }
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_called(array->name), layer));
    *array = ghp_onnx_of_layer(im, *layer, array->n, array->dims);
    array->name = name;
    return GHP_OK;
}
