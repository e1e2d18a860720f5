/* onnx/read/array.c - arrays: sizes and strides over elements that lie in order somewhere. */
#include "onnx/read/array.h"
#include "core/base/units.h"

#define MAX_ELEMENTS (INT64_C(1) << 40)

int ghp_onnx_first_axis(const struct ghp_onnx_array *array)
{
    return array->base == NULL && array->n > 0 ? 1 : 0;
}

int64_t ghp_onnx_elements(const struct ghp_onnx_array *array)
{
    int64_t elements = 1;

    for (int i = ghp_onnx_first_axis(array); i < array->n; i++)
        elements *= array->dims[i];
    return elements;
}

bool ghp_onnx_sized(int n, const int64_t *dims)
{
    int64_t elements = 1;

    for (int i = 0; i < n; i++) {
        if (dims[i] < 0 || !ghp_product_fits(elements, dims[i], MAX_ELEMENTS)) return false;
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
    for (int i = 2; i < array->n - 1; i++)
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

    for (int i = 0; i < array->n; i++) {
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
    for (int i = 0; i < n; i++) {
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

    for (int i = ghp_onnx_first_axis(array); i < array->n; i++) {
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

int ghp_onnx_seen(const struct ghp_onnx_array *array, int64_t dims[GHP_ONNX_MAX_DIMS])
{
    int n = 0;

    for (int i = 0; i < array->n; i++)
        if ((array->joined & 1u << i) != 0)
            dims[n - 1] *= array->dims[i];
        else
            dims[n++] = array->dims[i];
    return n;
}

struct rest { /* of the axes that are dealt out: what is left of axis `at` */
    int at;
    int64_t left;
};

/* The next piece of an axis that is a part of `wanted`, with its stride; false where none is. */
static bool next_piece(const struct ghp_onnx_array *from, struct rest *rest, int64_t wanted,
                       int64_t *piece, int64_t *stride)
{
    while (rest->left == 1) {
        if (++rest->at >= from->n) return false;
        rest->left = from->dims[rest->at];
    }
    if (rest->left < 1 || (wanted % rest->left != 0 && rest->left % wanted != 0)) return false;
    *piece = wanted < rest->left ? wanted : rest->left;
    rest->left /= *piece;
    *stride = from->strides[rest->at] * rest->left;
    return true;
}

/* Adds an axis of `wanted` elements, or the parts that are joined to it; `begun`: to the axis before. */
static bool put_axis(const struct ghp_onnx_array *from, struct rest *rest, int64_t wanted,
                     bool begun, struct ghp_onnx_array *out)
{
    int64_t piece = 1, stride = 0;

    do {
        if (wanted > 1 && !next_piece(from, rest, wanted, &piece, &stride)) return false;
        wanted /= piece;
        if (begun && out->n > 1 && out->strides[out->n - 1] == piece * stride) {
            out->dims[out->n - 1] *= piece;
            out->strides[out->n - 1] = stride;
            continue;
        }
        if (out->n == GHP_ONNX_MAX_DIMS) return false;
        if (begun) out->joined |= 1u << out->n;
        out->dims[out->n] = piece;
        out->strides[out->n++] = stride;
        begun = true;
    } while (wanted > 1);
    return true;
}

bool ghp_onnx_regroup(const struct ghp_onnx_array *array, int n, const int64_t *dims,
                      struct ghp_onnx_array *out)
{
    struct rest rest = {.at = 0, .left = 1};
    int64_t batch = array->dims[0];

    GHP_ASSERT(array->base == NULL && array->n > 0);
    *out = *array;
    out->n = 1; /* the batch, which no piece is taken from */
    out->joined = 0;
    if (n < 1 || dims[0] < 1 || dims[0] % batch != 0) return false;
    if (dims[0] > batch && !put_axis(array, &rest, dims[0] / batch, true, out)) return false;
    for (int i = 1; i < n; i++)
        if (dims[i] < 1 || !put_axis(array, &rest, dims[i], false, out)) return false;
    return true;
}
