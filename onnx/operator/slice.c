/* onnx/operator/slice.c - some of an axis, or of the list of axes. */
#include "onnx/operator/operator.h"

#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/settle.h"

#include <inttypes.h>

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Elements first, first + step, ... of an axis; `count` of them. */
struct range {
    int64_t first, step, count;
};

static void cut(struct ghp_onnx_array *array, int axis, struct range range)
{
    array->offset += range.first * array->strides[axis];
    array->strides[axis] *= range.step;
    array->dims[axis] = range.count;
}

/* Start, end and step as ONNX means them: negative ones count from the end, and ends are cut to the axis. */
static struct range range_of(int64_t start, int64_t end, int64_t step, int64_t size)
{
    struct range range = {.step = step};

    if (start < 0 && start >= -size) start += size;
    if (end < 0 && end >= -size) end += size;
    if (step > 0) {
        range.first = clamp(start, 0, size);
        end = clamp(end, 0, size);
        range.count = end > range.first ? (end - range.first - 1) / step + 1 : 0;
    } else {
        range.first = clamp(start, 0, size - 1);
        end = clamp(end, -1, size - 1);
        range.count = range.first > end ? (range.first - end - 1) / -step + 1 : 0;
    }
    return range;
}

static enum ghp_status read_slice(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    enum { ROOM = GHP_ONNX_MAX_DIMS * 2 };
    int64_t starts[ROOM], ends[ROOM], axes[ROOM], steps[ROOM];
    bool inputs = im->file->opset >= 10;
    int n, n_ends, n_axes, n_steps, axis;
    struct ghp_onnx_array *x, made;

    GHP_TRY(ghp_onnx_any_in(im, node, 1, &x));
    GHP_TRY(
        ghp_onnx_list(im, node, (struct ghp_onnx_place){inputs ? 1 : -1, "starts"}, starts, &n));
    GHP_TRY(
        ghp_onnx_list(im, node, (struct ghp_onnx_place){inputs ? 2 : -1, "ends"}, ends, &n_ends));
    GHP_TRY(
        ghp_onnx_list(im, node, (struct ghp_onnx_place){inputs ? 3 : -1, "axes"}, axes, &n_axes));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){inputs ? 4 : -1, "steps"}, steps,
                          &n_steps));
    if (n < 0 || n_ends != n || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n))
        return ghp_onnx_fail(im, node,
                             "has starts, ends, axes and steps of different numbers; "
                             "repair the file");
    made = *x;
    for (int i = 0; i < n; ++i) {
        int64_t step = n_steps < 0 ? 1 : steps[i];
        struct range range;

        GHP_TRY(ghp_onnx_axis(im, node, n_axes < 0 ? i : axes[i], x->n, &axis));
        if (step == 0 || step > INT32_MAX || step < -INT32_MAX)
            return ghp_onnx_fail(im, node, "has step %" PRId64 "; use 1 to 2^31 - 1 or negative",
                                 step);
        range = range_of(starts[i], ends[i], step, made.dims[axis]);
        if (x->base == NULL && axis == 0 && (range.first != 0 || range.count != x->dims[0]))
            return ghp_onnx_fail(im, node,
                                 "takes some of the samples; ghp keeps the batch as it "
                                 "is");
        if (axis > 0 || x->base != NULL) cut(&made, axis, range);
    }
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_split(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t parts[GHP_ONNX_MAX_DIMS * 2], first = 0, even;
    struct ghp_onnx_array *x, made;
    int n, axis;

    GHP_TRY(ghp_onnx_any_in(im, node, 1, &x));
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", 0), x->n, &axis));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){im->file->opset < 13 ? -1 : 1, "split"},
                          parts, &n));
    if (x->base == NULL && axis == 0)
        return ghp_onnx_fail(im, node, "splits the batch; ghp keeps it as it is");
    if (n >= 0 && n != node->n_outputs)
        return ghp_onnx_fail(im, node, "names %d parts for %d outputs; repair the file", n,
                             node->n_outputs);
    even = (x->dims[axis] + node->n_outputs - 1) / node->n_outputs;
    for (int i = 0; i < node->n_outputs; ++i) {
        int64_t size = n >= 0 ? parts[i] : clamp(even, 0, x->dims[axis] - first);

        if (size < 0 || size > x->dims[axis] - first)
            return ghp_onnx_fail(im, node, "has parts larger than the whole; repair the file");
        made = *x;
        cut(&made, axis, (struct range){first, 1, size});
        if (ghp_onnx_wanted(im, node, i)) GHP_TRY(ghp_onnx_define(im, node, i, &made));
        first += size;
    }
    return GHP_OK;
}

/* Elements of an axis at constant places that are evenly spaced. */
static enum ghp_status read_gather(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, *places, made;
    int64_t n, size, dims[GHP_ONNX_MAX_DIMS];
    const double *values;
    int axis, left = 0;
    struct range range;

    GHP_TRY(ghp_onnx_any_in(im, node, 1, &x));
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", 0), x->n, &axis));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &places));
    GHP_TRY(ghp_onnx_values(im, places, &values));
    n = ghp_onnx_elements(places);
    size = x->dims[axis];
    if (n < 1 || places->n > 1 || (x->base == NULL && axis == 0))
        return ghp_onnx_fail(im, node,
                             "takes some of the samples, or by a table of places; ghp "
                             "takes from one axis but the batch, by a list");
    for (int64_t i = 0; i < n; ++i)
        if (!(values[i] >= (double)-size && values[i] < (double)size) ||
            (i > 1 && values[i] - values[i - 1] != values[1] - values[0]))
            return ghp_onnx_fail(im, node,
                                 "takes from places beyond its axis, or not evenly "
                                 "spaced; slice in the file");
    range = (struct range){(int64_t)values[0], n > 1 ? (int64_t)(values[1] - values[0]) : 1, n};
    if (range.first < 0) range.first += size;
    if (range.first + range.step * (n - 1) < 0 || range.first + range.step * (n - 1) >= size)
        return ghp_onnx_fail(im, node,
                             "takes from places on both sides of 0; use one way to count");
    made = *x;
    cut(&made, axis, range);
    for (int i = 0; i < x->n; ++i)
        if (i != axis || places->n == 1) dims[left++] = made.dims[i];
    return ghp_onnx_reshaped(im, node, &made, left, dims);
}

static enum ghp_status read_shape_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, made;
    int64_t start = ghp_onnx_int(node, "start", 0), end, n;
    double *values;

    GHP_TRY(ghp_onnx_any_in(im, node, 0, &x));
    end = ghp_onnx_int(node, "end", x->n);
    start = clamp(start < 0 ? start + x->n : start, 0, x->n);
    end = clamp(end < 0 ? end + x->n : end, start, x->n);
    n = end - start;
    values = ghp_onnx_keep(im, (size_t)n, sizeof *values);
    if (values == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < n; ++i)
        values[i] = (double)x->dims[start + i];
    GHP_TRY(ghp_onnx_of_values(im, true, (struct ghp_onnx_sizes){1, &n}, values, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

const struct ghp_onnx_operator ghp_onnx_slice[] = {
    {.name = "Slice", .since = 1, .attributes = "axes ends starts ", .read = read_slice},
    {.name = "Split", .since = 1, .attributes = "axis num_outputs split ", .read = read_split},
    {.name = "Gather", .since = 1, .attributes = "axis ", .read = read_gather},
    {.name = "Shape", .since = 1, .attributes = "end start ", .read = read_shape_of},
    {0}};
