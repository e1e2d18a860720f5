/* onnx/shapes.c - ONNX operations that move nothing: they change how an array is seen, or make constants. */
#include "onnx/import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Input 0 of any kind, that has `least` axes or more. */
static enum ghp_status any_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              int least, struct ghp_onnx_array **x)
{
    *x = ghp_onnx_in(im, node, 0);
    if (*x == NULL) return ghp_onnx_fail(im, node, "has no input; repair the file");
    if ((*x)->n < least)
        return ghp_onnx_fail(im, node, "has an input of %d axes; it takes %d or more", (*x)->n,
                             least);
    return GHP_OK;
}

enum ghp_status ghp_onnx_identity(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x;

    GHP_TRY(any_in(im, node, 0, &x));
    return ghp_onnx_define(im, node, 0, x);
}

enum ghp_status ghp_onnx_cast(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int type = (int)ghp_onnx_int(node, "to", 0);
    bool whole = ghp_onnx_type_whole(type);
    struct ghp_onnx_array *x, made;
    const double *values;
    double *out;

    GHP_TRY(any_in(im, node, 0, &x));
    if (!whole && !ghp_onnx_type_real(type))
        return ghp_onnx_fail(im, node, "casts to type %d; ghp has whole and floating-point numbers",
                             type);
    if (x->base == NULL && whole)
        return ghp_onnx_fail(im, node, "casts samples to whole numbers; ghp computes in floats");
    if (x->base == NULL || x->base->whole == whole) return ghp_onnx_identity(im, node);
    GHP_TRY(ghp_onnx_values(im, x, &values));
    out = ghp_onnx_keep(im, (size_t)ghp_onnx_elements(x), sizeof *out);
    if (out == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < ghp_onnx_elements(x); ++i)
        out[i] = whole ? trunc(values[i]) : values[i];
    GHP_TRY(ghp_onnx_of_values(im, whole, (struct ghp_onnx_sizes){x->n, x->dims}, out, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- constants ---- */

static enum ghp_status of_list(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               const struct ghp_onnx_attribute *a)
{
    bool list = a->kind == GHP_ONNX_INTS || a->kind == GHP_ONNX_REALS;
    bool whole = a->kind == GHP_ONNX_INTS || a->kind == GHP_ONNX_INT;
    int64_t n = list ? a->n : 1;
    double *values = ghp_onnx_keep(im, (size_t)n, sizeof *values);
    struct ghp_onnx_array made;

    if (values == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < n; ++i)
        values[i] = a->kind == GHP_ONNX_INTS    ? (double)a->ints[i]
                    : a->kind == GHP_ONNX_REALS ? (double)a->reals[i]
                    : a->kind == GHP_ONNX_INT   ? (double)a->integer
                                                : a->real;
    GHP_TRY(
        ghp_onnx_of_values(im, whole, (struct ghp_onnx_sizes){list ? 1 : 0, &n}, values, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

/* The array of a tensor that the file holds. */
static enum ghp_status of_tensor(struct ghp_onnx_import *im, const struct ghp_onnx_tensor *tensor,
                                 struct ghp_onnx_array *array)
{
    struct ghp_onnx_base *base;

    GHP_TRY(ghp_onnx_of_values(im, ghp_onnx_type_whole(tensor->type),
                               (struct ghp_onnx_sizes){tensor->n_dims, tensor->dims}, NULL, array));
    base = (struct ghp_onnx_base *)(uintptr_t)array->base;
    base->file = im->file;
    base->tensor = tensor;
    return GHP_OK;
}

enum ghp_status ghp_onnx_constant(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_attribute *a = node->n_attributes > 0 ? node->attributes : NULL;
    struct ghp_onnx_array made;

    if (a == NULL || a->kind == GHP_ONNX_NONE || a->kind == GHP_ONNX_TEXT)
        return ghp_onnx_fail(im, node, "has no value that ghp reads; give numbers");
    if (a->kind != GHP_ONNX_TENSOR) return of_list(im, node, a);
    GHP_TRY(of_tensor(im, a->tensor, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

enum ghp_status ghp_onnx_constant_of_shape(struct ghp_onnx_import *im,
                                           const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_attribute *a = ghp_onnx_attribute(node, "value");
    int64_t dims[GHP_ONNX_MAX_DIMS * 2];
    struct ghp_onnx_array value, made;
    const double *values;
    double fill = 0;
    bool whole = false;
    int n;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){0, ""}, dims, &n));
    if (n < 0 || n > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node, "has no shape of at most %d numbers; give one",
                             GHP_ONNX_MAX_DIMS);
    if (a != NULL && a->kind == GHP_ONNX_TENSOR && a->tensor->elements == 1) {
        GHP_TRY(of_tensor(im, a->tensor, &value));
        GHP_TRY(ghp_onnx_values(im, &value, &values));
        fill = values[0];
        whole = value.base->whole;
    }
    if (!ghp_onnx_sized(n, dims))
        return ghp_onnx_fail(im, node,
                             "makes a constant of a negative size or more than 2^40 "
                             "elements; use smaller sizes");
    GHP_TRY(ghp_onnx_of_values(im, whole, (struct ghp_onnx_sizes){n, dims}, NULL, &made));
    ((struct ghp_onnx_base *)(uintptr_t)made.base)->fill = fill;
    return ghp_onnx_define(im, node, 0, &made);
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

enum ghp_status ghp_onnx_shape_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, made;
    int64_t start = ghp_onnx_int(node, "start", 0), end, n;
    double *values;

    GHP_TRY(any_in(im, node, 0, &x));
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

/* ---- other dimensions of the same elements ---- */

static enum ghp_status define_reshaped(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       struct ghp_onnx_array *x, int n, const int64_t *dims)
{
    struct ghp_onnx_array made = *x;

    made.name = node->n_outputs > 0 ? node->outputs[0] : x->name;
    if (n > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node, "makes %d axes; use at most %d", n, GHP_ONNX_MAX_DIMS);
    if (x->base == NULL && (n < 1 || dims[0] != im->batch))
        return ghp_onnx_fail(im, node, "does not keep the batch in front; ghp never mixes samples");
    GHP_TRY(ghp_onnx_reshape(im, &made, n, dims));
    return ghp_onnx_define(im, node, 0, &made);
}

static int64_t all_elements(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x)
{
    return ghp_onnx_elements(x) * (x->base == NULL ? im->batch : 1);
}

enum ghp_status ghp_onnx_reshape_to(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t dims[GHP_ONNX_MAX_DIMS * 2], left;
    bool zeros = ghp_onnx_int(node, "allowzero", 0) != 0;
    struct ghp_onnx_array *x;
    int n, open = -1;

    GHP_TRY(any_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){1, ""}, dims, &n));
    left = all_elements(im, x);
    for (int i = 0; i < n; ++i) {
        if (dims[i] == 0 && !zeros && i < x->n) dims[i] = x->dims[i];
        if (dims[i] == -1 && open < 0) {
            open = i;
            continue;
        }
        if (dims[i] < 1 || left % dims[i] != 0)
            return ghp_onnx_fail(
                im, node, "makes a shape of other size (%" PRId64 " at place %d); repair the file",
                dims[i], i);
        left /= dims[i];
    }
    if (n < 0 || (open < 0 && left != 1))
        return ghp_onnx_fail(im, node, "makes a shape of fewer elements; repair the file");
    if (open >= 0) dims[open] = left;
    return define_reshaped(im, node, x, n, dims);
}

/* Of a whole image a flatten layer, as a description in ghp's own words has one; else as Reshape. */
enum ghp_status ghp_onnx_flatten(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_FLATTEN, .n_inputs = 1};
    int64_t dims[2] = {1, 1}, axis = ghp_onnx_int(node, "axis", 1);
    struct ghp_onnx_array *x, made;
    int layer;

    GHP_TRY(any_in(im, node, 0, &x));
    if (axis < 0) axis += x->n;
    if (axis < 0 || axis > x->n)
        return ghp_onnx_fail(im, node, "names an axis beyond the %d of its input; use one of them",
                             x->n);
    for (int i = 0; i < x->n; ++i)
        dims[i < axis ? 0 : 1] *= x->dims[i];
    if (x->base == NULL && axis == 1 && x->n == 4 && ghp_onnx_whole(im, x)) {
        GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
        GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, NULL), &layer));
        made = ghp_onnx_of_layer(im, layer, 2, dims);
        return ghp_onnx_define(im, node, 0, &made);
    }
    return define_reshaped(im, node, x, 2, dims);
}

enum ghp_status ghp_onnx_squeeze(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2], dims[GHP_ONNX_MAX_DIMS];
    bool gone[GHP_ONNX_MAX_DIMS] = {false};
    struct ghp_onnx_array *x;
    int n, axis, left = 0;

    GHP_TRY(any_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){im->file->opset < 13 ? -1 : 1, "axes"},
                          list, &n));
    for (int i = 0; i < n; ++i) {
        GHP_TRY(ghp_onnx_axis(im, node, list[i], x->n, &axis));
        if (x->dims[axis] != 1 || (axis == 0 && x->base == NULL))
            return ghp_onnx_fail(im, node,
                                 "drops axis %d, which is the batch or has more than one "
                                 "element; name another",
                                 axis);
        gone[axis] = true;
    }
    for (int i = 0; i < x->n; ++i) { /* without axes: all of one element but the batch */
        bool all = n < 0 && x->dims[i] == 1 && (i > 0 || x->base != NULL);

        if (!gone[i] && !all) dims[left++] = x->dims[i];
    }
    return define_reshaped(im, node, x, left, dims);
}

enum ghp_status ghp_onnx_unsqueeze(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2], dims[GHP_ONNX_MAX_DIMS];
    bool fresh[GHP_ONNX_MAX_DIMS] = {false};
    struct ghp_onnx_array *x;
    int n, axis, from = 0;

    GHP_TRY(any_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){im->file->opset < 13 ? -1 : 1, "axes"},
                          list, &n));
    if (n < 0 || x->n + n > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node, "makes more than %d axes, or names none; name some",
                             GHP_ONNX_MAX_DIMS);
    for (int i = 0; i < n; ++i) {
        GHP_TRY(ghp_onnx_axis(im, node, list[i], x->n + n, &axis));
        if (fresh[axis]) return ghp_onnx_fail(im, node, "names axis %d twice; name it once", axis);
        fresh[axis] = true;
    }
    for (int i = 0; i < x->n + n; ++i)
        dims[i] = fresh[i] ? 1 : x->dims[from++];
    return define_reshaped(im, node, x, x->n + n, dims);
}

enum ghp_status ghp_onnx_expand_to(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t dims[GHP_ONNX_MAX_DIMS * 2];
    struct ghp_onnx_array *x, made;
    int n;

    GHP_TRY(any_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){1, ""}, dims, &n));
    made = *x;
    for (int i = 0; i < n && n == x->n; ++i)
        if (dims[i] == 1) dims[i] = x->dims[i];
    if (n < 0 || n > GHP_ONNX_MAX_DIMS || !ghp_onnx_sized(n, dims) ||
        (x->base == NULL && (n != x->n || dims[0] != im->batch)) ||
        !ghp_onnx_expand(&made, n, dims))
        return ghp_onnx_fail(im, node,
                             "expands to a shape that does not fit its input, or changes "
                             "the batch; repair the file");
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- other order, or fewer elements ---- */

enum ghp_status ghp_onnx_transpose(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2];
    int order[GHP_ONNX_MAX_DIMS], n;
    struct ghp_onnx_array *x, made;
    unsigned seen = 0;

    GHP_TRY(any_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){-1, "perm"}, list, &n));
    for (int i = 0; i < x->n; ++i) {
        int64_t from = n < 0 ? x->n - 1 - i : n == x->n ? list[i] : -1;

        if (from < 0 || from >= x->n || (seen & 1u << from) != 0)
            return ghp_onnx_fail(im, node, "has a perm that is no order of %d axes; repair it",
                                 x->n);
        seen |= 1u << from;
        order[i] = (int)from;
    }
    if (x->base == NULL && order[0] != 0)
        return ghp_onnx_fail(im, node, "moves the batch; ghp keeps it in front");
    made = *x;
    ghp_onnx_permute(&made, order);
    return ghp_onnx_define(im, node, 0, &made);
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

enum ghp_status ghp_onnx_slice(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    enum { ROOM = GHP_ONNX_MAX_DIMS * 2 };
    int64_t starts[ROOM], ends[ROOM], axes[ROOM], steps[ROOM];
    bool inputs = im->file->opset >= 10;
    int n, n_ends, n_axes, n_steps, axis;
    struct ghp_onnx_array *x, made;

    GHP_TRY(any_in(im, node, 1, &x));
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

enum ghp_status ghp_onnx_split(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t parts[GHP_ONNX_MAX_DIMS * 2], first = 0, even;
    struct ghp_onnx_array *x, made;
    int n, axis;

    GHP_TRY(any_in(im, node, 1, &x));
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
enum ghp_status ghp_onnx_gather(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, *places, made;
    int64_t n, size, dims[GHP_ONNX_MAX_DIMS];
    const double *values;
    int axis, left = 0;
    struct range range;

    GHP_TRY(any_in(im, node, 1, &x));
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
    return define_reshaped(im, node, &made, left, dims);
}
