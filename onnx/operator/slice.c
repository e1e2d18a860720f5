/* onnx/operator/slice.c - some of an axis, or of the list of axes. */
#include "onnx/operator/operator.h"

#include "onnx/operator/derived.h"
#include "onnx/operator/embedding.h"
#include "onnx/operator/fold.h"
#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/settle.h"

#include <inttypes.h>
#include <string.h>

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Elements first, first + step, ... of an axis; `count` of them. */
struct range {
    int64_t first, step, count;
};

static void take(struct ghp_onnx_array *array, int axis, struct range range)
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

/* Whether the graph has an axis before the batch, and none that are joined before it. */
static bool is_in_front(const struct ghp_onnx_array *x, int axis)
{
    return axis >= 1 && axis <= x->lead && (x->joined & ((1u << (x->lead + 1)) - 1)) == 0;
}

/* Input 0, which the graph may have with axes before the batch. */
static enum ghp_status whole_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                struct ghp_onnx_array **x)
{
    GHP_TRY(ghp_onnx_seen_in(im, node, x));
    if ((*x)->base == NULL && (*x)->scores == NULL && is_in_front(*x, 1)) return GHP_OK;
    return ghp_onnx_any_in(im, node, 1, x);
}

/* The axis of an array that the graph slices: of joined ones those before the batch alone. */
static enum ghp_status axis_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               struct ghp_onnx_array *x, int64_t said, int *axis)
{
    GHP_TRY(ghp_onnx_axis(im, node, said, x->n, axis));
    if (x->base != NULL) return GHP_OK;
    *axis = ghp_onnx_axis_at(x, *axis);
    return x->joined == 0 || is_in_front(x, *axis) ? GHP_OK : ghp_onnx_part_axes(im, x);
}

static enum ghp_status read_slice(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    enum { ROOM = GHP_ONNX_MAX_DIMS * 2 };
    int64_t starts[ROOM], ends[ROOM], axes[ROOM], steps[ROOM];
    bool inputs = im->file->opset >= 10;
    int n, n_ends, n_axes, n_steps, axis;
    struct ghp_onnx_array *x, made;

    GHP_TRY(whole_in(im, node, &x));
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
    for (int i = 0; i < n; i++) {
        int64_t step = n_steps < 0 ? 1 : steps[i];
        struct range range;

        GHP_TRY(axis_of(im, node, x, n_axes < 0 ? i : axes[i], &axis));
        if (step == 0 || step > INT32_MAX || step < -INT32_MAX)
            return ghp_onnx_fail(im, node, "has step %" PRId64 "; use 1 to 2^31 - 1 or negative",
                                 step);
        range = range_of(starts[i], ends[i], step, made.dims[axis]);
        if (x->base == NULL && axis == 0 && (range.first != 0 || range.count != x->dims[0]))
            return ghp_onnx_fail(im, node,
                                 "takes some of the samples; ghp keeps the batch as it "
                                 "is");
        if (axis > 0 || x->base != NULL) take(&made, axis, range);
    }
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_split(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t parts[GHP_ONNX_MAX_DIMS * 2], first = 0, even;
    struct ghp_onnx_array *x, made;
    int n, axis;

    GHP_TRY(whole_in(im, node, &x));
    GHP_TRY(axis_of(im, node, x, ghp_onnx_int(node, "axis", 0), &axis));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){im->file->opset < 13 ? -1 : 1, "split"},
                          parts, &n));
    if (x->base == NULL && axis == 0)
        return ghp_onnx_fail(im, node, "splits the batch; ghp keeps it as it is");
    if (n >= 0 && n != node->n_outputs)
        return ghp_onnx_fail(im, node, "names %d parts for %d outputs; repair the file", n,
                             node->n_outputs);
    even = (x->dims[axis] + node->n_outputs - 1) / node->n_outputs;
    for (int i = 0; i < node->n_outputs; i++) {
        int64_t size = n >= 0 ? parts[i] : clamp(even, 0, x->dims[axis] - first);

        if (size < 0 || size > x->dims[axis] - first)
            return ghp_onnx_fail(im, node, "has parts larger than the whole; repair the file");
        made = *x;
        take(&made, axis, (struct range){first, 1, size});
        if (ghp_onnx_wanted(im, node, i)) GHP_TRY(ghp_onnx_define(im, node, i, &made));
        first += size;
    }
    return GHP_OK;
}

/* A list of parts is its whole until SequenceAt, which alone may read it, takes one of them. */
static enum ghp_status read_parts(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x;
    bool read = false;

    GHP_TRY(ghp_onnx_any_in(im, node, 1, &x));
    for (int i = 0; i < im->file->n_nodes; i++)
        for (int k = 0; k < im->nodes[i].n_inputs; k++) {
            if (strcmp(im->nodes[i].inputs[k], node->outputs[0]) != 0) continue;
            if (strcmp(im->nodes[i].op, "SequenceAt") != 0)
                return ghp_onnx_fail(im, node, "hands a list on; ghp takes its parts alone");
            read = true;
        }
    if (!read) return ghp_onnx_fail(im, node, "makes a list that is an output; take a part of it");
    return ghp_onnx_define(im, node, 0, x);
}

/* Part i of a list of parts of an axis: each of `split` elements, or as many as a list of them says. */
static enum ghp_status read_part(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_node *of;
    int64_t at[GHP_ONNX_MAX_DIMS * 2], split[GHP_ONNX_MAX_DIMS * 2], size, first = 0, part;
    struct ghp_onnx_array *x, made;
    int n, n_split, axis;

    GHP_TRY(ghp_onnx_any_in(im, node, 1, &x));
    of = ghp_onnx_maker_of(im, node->inputs[0]);
    if (of == NULL || strcmp(of->op, "SplitToSequence") != 0 ||
        ghp_onnx_int(of, "keepdims", 1) == 0)
        return ghp_onnx_fail(im, node,
                             "takes a part of a list that no SplitToSequence with keepdims "
                             "makes; ghp has no other lists");
    GHP_TRY(ghp_onnx_axis(im, of, ghp_onnx_int(of, "axis", 0), x->n, &axis));
    GHP_TRY(ghp_onnx_list(im, of, (struct ghp_onnx_place){1, ""}, split, &n_split));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){1, ""}, at, &n));
    size = x->dims[axis];
    for (int i = 0; i < n_split; i++)
        if (split[i] < 1 || (n_split > 1 && split[i] > size)) n_split = 0;
    if ((x->base == NULL && axis == 0) || n != 1 || n_split < 1)
        return ghp_onnx_fail(im, node, "takes a part of the batch, or none that is said");
    part = n_split > 1 ? n_split : (size + split[0] - 1) / split[0];
    if (at[0] < 0) at[0] += part;
    if (at[0] < 0 || at[0] >= part)
        return ghp_onnx_fail(im, node, "takes a part after the last; repair the file");
    for (int64_t i = 0; i < at[0]; i++)
        first += split[n_split > 1 ? i : 0];
    part = clamp(split[n_split > 1 ? at[0] : 0], 0, size - first);
    if (part < 1) return ghp_onnx_fail(im, node, "takes no element; repair the file");
    made = *x;
    take(&made, axis, (struct range){first, 1, part});
    return ghp_onnx_define(im, node, 0, &made);
}

/* Whether places are evenly spaced, so that strides say them. */
static bool is_even(const double *places, int64_t n)
{
    for (int64_t i = 2; i < n; i++)
        if (places[i] - places[i - 1] != places[1] - places[0]) return false;
    return true;
}

/* The same of a constant by any table of places: axes before, those of the table, axes after. */
static enum ghp_status gather_constant(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       const struct ghp_onnx_array *places, int axis)
{
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0);
    int64_t dims[GHP_ONNX_MAX_DIMS], outer = 1, inner = 1, n = ghp_onnx_elements(places);
    int left = 0;
    const double *from, *place;
    double *out;

    if (x->n - 1 + places->n > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node, "makes more than %d axes; use fewer", GHP_ONNX_MAX_DIMS);
    for (int d = 0; d < axis; d++)
        outer *= dims[left++] = x->dims[d];
    for (int d = 0; d < places->n; d++)
        dims[left++] = places->dims[d];
    for (int d = axis + 1; d < x->n; d++)
        inner *= dims[left++] = x->dims[d];
    if (!ghp_onnx_sized(left, dims) || outer * n * inner > GHP_ONNX_MAX_FOLDED)
        return ghp_onnx_fail(im, node, "makes a constant of more than 2^24 elements; use a weight");
    GHP_TRY(ghp_onnx_is_derived(x) ? ghp_onnx_places(im, x, &from) : ghp_onnx_values(im, x, &from));
    GHP_TRY(ghp_onnx_values(im, places, &place));
    out = ghp_alloc((size_t)(outer * n * inner) + 1, sizeof *out);
    if (out == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < outer * n; i++) {
        double at = place[i % n] + (place[i % n] < 0 ? (double)x->dims[axis] : 0);

        memcpy(out + i * inner, from + (i / n * x->dims[axis] + (int64_t)at) * inner,
               (size_t)inner * sizeof *out);
    }
    GHP_TRY(ghp_onnx_folded(im, node, x->base->whole, (struct ghp_onnx_sizes){left, dims}, out));
    if (ghp_onnx_is_derived(x)) ghp_onnx_derive_places(im, node, x);
    return GHP_OK;
}

/* Places without leading axes along which they repeat, which are then axes of the result. */
static int drop_repeats(struct ghp_onnx_array *places, int64_t dims[GHP_ONNX_MAX_DIMS])
{
    int n = 0;

    while (n < places->n && places->dims[n] > 1 && places->strides[n] == 0) {
        dims[n] = places->dims[n];
        n++;
    }
    for (int d = n; d < places->n; d++) {
        places->dims[d - n] = places->dims[d];
        places->strides[d - n] = places->strides[d];
    }
    places->n -= n;
    return n;
}

/* Elements of an axis at places that are evenly spaced, as axes like those of the table of places. */
static enum ghp_status gather_even(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   const struct ghp_onnx_array *places, int axis,
                                   struct range range)
{
    struct ghp_onnx_array made = *ghp_onnx_in(im, node, 0);
    int64_t dims[GHP_ONNX_MAX_DIMS * 2];
    int left = 0;

    take(&made, axis, range);
    for (int d = 0; d < made.n; d++) {
        if (d != axis) dims[left++] = made.dims[d];
        for (int k = 0; d == axis && k < places->n; k++)
            dims[left++] = places->dims[k];
    }
    return ghp_onnx_reshaped(im, node, &made, left, dims);
}

/* Output 0, a constant, repeated along further axes in front. */
static enum ghp_status repeat_front(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    int n, const int64_t *repeats)
{
    struct ghp_onnx_array *made = ghp_onnx_named(im, node->outputs[0]);
    int64_t dims[GHP_ONNX_MAX_DIMS * 2];

    memcpy(dims, repeats, (size_t)n * sizeof *dims);
    memcpy(dims + n, made->dims, sizeof made->dims);
    if (n == 0 || ghp_onnx_expand(made, made->n + n, dims)) return GHP_OK;
    return ghp_onnx_fail(im, node, "makes more than %d axes; use fewer", GHP_ONNX_MAX_DIMS);
}

/* The steps along each of a table's axes, if its places are the first one and whole numbers of these steps. */
static bool find_steps(const struct ghp_onnx_array *table, const double *places, int64_t *steps)
{
    int64_t inner = 1, n = ghp_onnx_elements(table);

    for (int d = table->n - 1; d >= 0; inner *= table->dims[d], --d)
        steps[d] = table->dims[d] > 1 ? (int64_t)(places[inner] - places[0]) : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t place = (int64_t)places[0], rest = i;

        for (int d = table->n - 1; d >= 0; rest /= table->dims[d], --d)
            place += rest % table->dims[d] * steps[d];
        if (places[i] != (double)place) return false;
    }
    return true;
}

/* Elements of an axis of a layer's array by a table of places, such as the windows of nn.Unfold, with its axes. */
static enum ghp_status gather_table(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_array *x,
                                    const struct ghp_onnx_array *table, int axis)
{
    struct ghp_onnx_array made = *x;
    int64_t steps[GHP_ONNX_MAX_DIMS], least, most;
    const double *places;

    GHP_TRY(ghp_onnx_values(im, table, &places));
    if (!find_steps(table, places, steps) || x->n - 1 + table->n > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node,
                             "takes by a table of places that are not evenly spaced along each of "
                             "its axes, or makes more than %d axes; take by lists in the file",
                             GHP_ONNX_MAX_DIMS);
    least = most = (int64_t)places[0] + (places[0] < 0 ? x->dims[axis] : 0);
    made.n = axis;
    made.offset += least * x->strides[axis];
    for (int d = 0; d < table->n; d++) {
        *(steps[d] < 0 ? &least : &most) += steps[d] * (table->dims[d] - 1);
        made.dims[made.n] = table->dims[d];
        made.strides[made.n++] = steps[d] * x->strides[axis];
    }
    if (least < 0 || most >= x->dims[axis])
        return ghp_onnx_fail(im, node, "takes from places on both sides of 0; slice in the file");
    for (int d = axis + 1; d < x->n; d++, made.n++) {
        made.dims[made.n] = x->dims[d];
        made.strides[made.n] = x->strides[d];
    }
    return ghp_onnx_define(im, node, 0, &made);
}

/* Elements of an axis at constant places. */
static enum ghp_status gather(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct ghp_onnx_array *x, const struct ghp_onnx_array *places)
{
    int64_t n = ghp_onnx_elements(places), size, last;
    const double *values;
    struct range range;
    int axis;

    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", 0), x->n, &axis));
    GHP_TRY(ghp_onnx_values(im, places, &values));
    size = x->dims[axis];
    if (n < 1 || (x->base == NULL && axis == 0))
        return ghp_onnx_fail(im, node,
                             "takes some of the samples, or nothing; ghp keeps the batch as it "
                             "is: take from another axis");
    for (int64_t i = 0; i < n; i++)
        if (!(values[i] >= (double)-size && values[i] < (double)size))
            return ghp_onnx_fail(im, node, "takes from places beyond its axis; slice in the file");
    if (x->base == NULL && places->n > 1) return gather_table(im, node, x, places, axis);
    range = (struct range){(int64_t)values[0], n > 1 ? (int64_t)(values[1] - values[0]) : 1, n};
    if (range.first < 0) range.first += size;
    last = range.first + range.step * (n - 1);
    if (is_even(values, n) && last >= 0 && last < size)
        return gather_even(im, node, places, axis, range);
    if (x->base != NULL) return gather_constant(im, node, places, axis);
    return ghp_onnx_fail(im, node,
                         "takes from places that are not evenly spaced, or on both sides of 0; "
                         "slice in the file");
}

/* One place of an axis of a layer's array whose batch is not in front. */
static enum ghp_status gather_behind(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *x)
{
    struct ghp_onnx_array *places, made = *x;
    const double *values;
    int64_t place;
    int axis;

    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &places));
    GHP_TRY(ghp_onnx_values(im, places, &values));
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", 0), x->n, &axis));
    axis = ghp_onnx_axis_at(x, axis);
    if ((x->joined != 0 && !is_in_front(x, axis)) || axis == 0 || places->n != 0)
        return ghp_onnx_fail(im, node,
                             "takes other than one place of an axis where the batch is not in "
                             "front; put the batch in front");
    place = (int64_t)(values[0] < 0 ? values[0] + (double)x->dims[axis] : values[0]);
    if (!(place >= 0 && place < x->dims[axis]))
        return ghp_onnx_fail(im, node, "takes from places beyond its axis; slice in the file");
    made.offset += place * made.strides[axis];
    if (axis <= made.lead) made.lead--;
    made.joined >>= 1; /* none before the axis */
    made.n--;
    for (int d = axis; d < made.n; d++) {
        made.dims[d] = made.dims[d + 1];
        made.strides[d] = made.strides[d + 1];
    }
    return ghp_onnx_define(im, node, 0, &made);
}

/* Places are constants, or token ids, which look up an embedding. */
static enum ghp_status read_gather(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, *places = ghp_onnx_in(im, node, 1), once;
    int64_t repeats[GHP_ONNX_MAX_DIMS];
    int n = 0;

    if (places != NULL && ghp_onnx_is_ids(im, places)) return ghp_onnx_embed(im, node);
    GHP_TRY(ghp_onnx_seen_in(im, node, &x));
    if (x->base == NULL && x->scores == NULL && x->lead > 0) return gather_behind(im, node, x);
    GHP_TRY(ghp_onnx_any_in(im, node, 1, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &places));
    once = *places;
    if (x->base != NULL && ghp_onnx_int(node, "axis", 0) == 0) n = drop_repeats(&once, repeats);
    GHP_TRY(gather(im, node, x, &once));
    return repeat_front(im, node, n, repeats);
}

static enum ghp_status read_shape_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, made;
    int64_t start = ghp_onnx_int(node, "start", 0), end, n, dims[GHP_ONNX_MAX_DIMS];
    double *values;
    int axes;

    GHP_TRY(ghp_onnx_seen_in(im, node, &x));
    axes = ghp_onnx_seen(x, dims);
    end = ghp_onnx_int(node, "end", axes);
    start = clamp(start < 0 ? start + axes : start, 0, axes);
    end = clamp(end < 0 ? end + axes : end, start, axes);
    n = end - start;
    values = ghp_onnx_keep(im, (size_t)n, sizeof *values);
    if (values == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < n; i++)
        values[i] = (double)dims[start + i];
    GHP_TRY(ghp_onnx_of_values(im, true, (struct ghp_onnx_sizes){1, &n}, values, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

const struct ghp_onnx_operator ghp_onnx_slice[] = {
    {.name = "Slice", .since = 1, .attributes = "axes ends starts ", .read = read_slice},
    {.name = "Split", .since = 1, .attributes = "axis num_outputs split ", .read = read_split},
    {.name = "SplitToSequence", .since = 11, .attributes = "axis keepdims ", .read = read_parts},
    {.name = "SequenceAt", .since = 11, .attributes = "", .read = read_part},
    {.name = "Gather", .since = 1, .attributes = "axis ", .read = read_gather},
    {.name = "Shape", .since = 1, .attributes = "end start ", .read = read_shape_of},
    {0}};
