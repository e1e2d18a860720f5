/* onnx/read/array.c - arrays: sizes and strides over elements that lie in order somewhere. */
#include "onnx/read/array.h"

#define MAX_ELEMENTS (INT64_C(1) << 40)

int ghp_onnx_first_axis(const struct ghp_onnx_array *array)
{
    return array->base == NULL && array->n > 0 ? 1 : 0;
}

int64_t ghp_onnx_elements(const struct ghp_onnx_array *array)
{
    int64_t elements = 1;

    for (int i = ghp_onnx_first_axis(array); i < array->n; ++i)
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

void ghp_onnx_in_order(struct ghp_onnx_array *array)
{
    int64_t stride = 1;

    for (int i = array->n - 1; i >= ghp_onnx_first_axis(array); --i) {
        array->strides[i] = stride;
        stride *= array->dims[i];
    }
}

struct ghp_shape ghp_onnx_shape(const struct ghp_onnx_array *array)
{
    struct ghp_shape shape = {.c = 1, .h = 1, .w = 1};

    if (array->n > 1) shape.c = array->dims[1];
    if (array->n > 2) shape.w = array->dims[array->n - 1];
    for (int i = 2; i < array->n - 1; ++i)
        shape.h *= array->dims[i];
    return shape;
}

void ghp_onnx_next_element(const struct ghp_onnx_array *array, int64_t index[GHP_ONNX_MAX_DIMS],
                           int64_t *at)
{
    for (int i = array->n - 1; i >= 0; --i) {
        *at += array->strides[i];
        if (++index[i] < array->dims[i]) return;
        *at -= array->strides[i] * array->dims[i];
        index[i] = 0;
    }
}

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

int ghp_onnx_merged(const struct ghp_onnx_array *array, int64_t *dims, int64_t *strides)
{
    int n = 0;

    for (int i = ghp_onnx_first_axis(array); i < array->n; ++i) {
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

bool ghp_onnx_split_strides(const struct ghp_onnx_array *array, struct ghp_onnx_array *out)
{
    int64_t dims[GHP_ONNX_MAX_DIMS], strides[GHP_ONNX_MAX_DIMS];
    int n = ghp_onnx_merged(array, dims, strides), at = n - 1;
    int64_t left = n > 0 ? dims[at] : 1, stride = n > 0 ? strides[at] : 1;

    for (int i = out->n - 1; i >= ghp_onnx_first_axis(out); --i) {
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
