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

int ghp_onnx_axis_at(const struct ghp_onnx_array *array, int i)
{
    return i < array->lead ? i + 1 : i == array->lead ? 0 : i;
}

int ghp_onnx_seen(const struct ghp_onnx_array *array, int64_t dims[GHP_ONNX_MAX_DIMS])
{
    int n = 0;

    for (int i = 0; i < array->n; i++) {
        int axis = ghp_onnx_axis_at(array, i);

        if ((array->joined & 1u << axis) != 0)
            dims[n - 1] *= array->dims[axis];
        else
            dims[n++] = array->dims[axis];
    }
    return n;
}

/* Axes in the graph's order. */
struct axes {
    int n;
    struct {
        int64_t size, stride;
        bool batch, joined;
    } at[GHP_ONNX_MAX_DIMS];
};

static struct axes axes_of(const struct ghp_onnx_array *array)
{
    struct axes axes = {.n = array->n};

    for (int i = 0; i < array->n; i++) {
        int axis = ghp_onnx_axis_at(array, i);

        axes.at[i].size = array->dims[axis];
        axes.at[i].stride = array->strides[axis];
        axes.at[i].batch = axis == 0;
        axes.at[i].joined = (array->joined & 1u << axis) != 0;
    }
    return axes;
}

/* Lets an array have these axes, one of which is the batch. */
static void put_axes(const struct axes *axes, struct ghp_onnx_array *out)
{
    out->n = axes->n;
    out->lead = 0;
    out->joined = 0;
    while (!axes->at[out->lead].batch)
        out->lead++;
    for (int i = 0; i < axes->n; i++) {
        int axis = ghp_onnx_axis_at(out, i);

        out->dims[axis] = axes->at[i].size;
        out->strides[axis] = axes->at[i].stride;
        if (axes->at[i].joined) out->joined |= 1u << axis;
    }
}

struct ghp_onnx_array ghp_onnx_reordered(const struct ghp_onnx_array *array, const int *order,
                                         int n)
{
    struct axes from = axes_of(array), to = {.n = 0};
    struct ghp_onnx_array made = *array;
    int first[GHP_ONNX_MAX_DIMS + 1], seen = 0;

    for (int i = 0; i < from.n; i++)
        if (!from.at[i].joined) first[seen++] = i;
    first[seen] = from.n;
    for (int i = 0; i < n; i++)
        for (int k = first[order[i]]; k < first[order[i] + 1]; k++)
            to.at[to.n++] = from.at[k];
    put_axes(&to, &made);
    return made;
}

struct rest { /* of the axes that are dealt out: what is left of axis `at` */
    int at;
    int64_t left;
};

/* Takes the next factor of an axis that is a part of `wanted` to the end of `to`; false if none is. The batch is one
 * factor. */
static bool next_factor(const struct axes *from, struct rest *rest, int64_t wanted, bool begun,
                        struct axes *to)
{
    int64_t factor, stride;
    bool batch;

    while (rest->left == 1) {
        if (++rest->at >= from->n) return false;
        rest->left = from->at[rest->at].size;
        if (from->at[rest->at].batch) break;
    }
    batch = from->at[rest->at].batch;
    if (rest->left < 1 || (wanted % rest->left != 0 && (batch || rest->left % wanted != 0)))
        return false;
    factor = wanted < rest->left ? wanted : rest->left;
    rest->left /= factor;
    stride = from->at[rest->at].stride * rest->left;
    if (begun && !batch && !to->at[to->n - 1].batch &&
        to->at[to->n - 1].stride == factor * stride) {
        to->at[to->n - 1].size *= factor;
        to->at[to->n - 1].stride = stride;
        return true;
    }
    if (to->n == GHP_ONNX_MAX_DIMS) return false;
    to->at[to->n].size = factor;
    to->at[to->n].stride = stride;
    to->at[to->n].batch = batch;
    to->at[to->n++].joined = begun;
    return true;
}

/* Adds an axis of `wanted` elements, or the parts that are joined to it. */
static bool put_axis(const struct axes *from, struct rest *rest, int64_t wanted, struct axes *to)
{
    bool begun = false;

    if (wanted == 1) {
        if (to->n == GHP_ONNX_MAX_DIMS) return false;
        to->at[to->n].size = 1;
        to->at[to->n++].stride = 0;
        return true;
    }
    while (wanted > 1) {
        int n = to->n;
        int64_t before = begun ? to->at[n - 1].size : 1;

        if (!next_factor(from, rest, wanted, begun, to)) return false;
        wanted /= to->n > n ? to->at[n].size : to->at[n - 1].size / before;
        begun = true;
    }
    return true;
}

bool ghp_onnx_regroup(const struct ghp_onnx_array *array, int n, const int64_t *dims,
                      struct ghp_onnx_array *out)
{
    struct axes from = axes_of(array), to = {.n = 0};
    struct rest rest = {.at = -1, .left = 1};
    int batches = 0, first = 0;

    GHP_ASSERT(array->base == NULL && array->n > 0);
    if (n < 1 || array->dims[0] < 1) return false;
    if (array->dims[0] == 1) { /* it has no place of its own among other axes of 1 */
        if (array->lead > 0 || dims[0] != 1) return false;
        to = (struct axes){.n = 1, .at = {from.at[0]}};
        rest.at = 0;
        first = 1;
    }
    for (int i = first; i < n; i++)
        if (dims[i] < 1 || !put_axis(&from, &rest, dims[i], &to)) return false;
    for (int i = 0; i < to.n; i++)
        batches += to.at[i].batch;
    if (batches != 1) return false;
    *out = *array;
    put_axes(&to, out);
    return true;
}
