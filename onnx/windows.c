/* onnx/windows.c - ONNX operations with windows and borders: convolutions, pools, means, pads. */
#include "core/model/window.h"
#include "onnx/import.h"

#include <inttypes.h>
#include <string.h>

/* One or two axes of pixels; one axis is the columns of a single row. */
struct pixels {
    int axes;
    int64_t size[2], kernel[2], stride[2], dilation[2], before[2], after[2];
};

/* A list of one number an axis, into the last places of `out`. */
static enum ghp_status read_axes(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 const char *name, struct pixels *p, int64_t *out)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2];
    int n;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){-1, name}, list, &n));
    if (n < 0) return GHP_OK;
    if (n != p->axes)
        return ghp_onnx_fail(im, node, "has %d numbers as %s for %d axes; give one an axis", n,
                             name, p->axes);
    for (int i = 0; i < n; ++i) {
        if (list[i] < 1 || list[i] > GHP_ONNX_MAX_SIZE)
            return ghp_onnx_fail(im, node, "has %" PRId64 " in %s; use 1 to %d", list[i], name,
                                 GHP_ONNX_MAX_SIZE);
        out[2 - n + i] = list[i];
    }
    return GHP_OK;
}

/* Padding that gives ceil(size / stride) outputs, the odd pixel behind or in front. */
static void same_pads(struct pixels *p, bool lower)
{
    for (int i = 0; i < 2; ++i) {
        int64_t count = (p->size[i] + p->stride[i] - 1) / p->stride[i];
        int64_t reach = (p->kernel[i] - 1) * p->dilation[i] + 1;
        int64_t all = (count - 1) * p->stride[i] + reach - p->size[i];

        if (all < 0) all = 0;
        p->before[i] = lower ? all - all / 2 : all / 2;
        p->after[i] = all - p->before[i];
    }
}

static enum ghp_status read_pads(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct pixels *p)
{
    const char *mode = ghp_onnx_text(node, "auto_pad", "NOTSET");
    int64_t list[GHP_ONNX_MAX_DIMS * 2];
    int n;

    if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0) {
        same_pads(p, mode[5] == 'L');
        return GHP_OK;
    }
    if (strcmp(mode, "VALID") == 0) return GHP_OK;
    if (strcmp(mode, "NOTSET") != 0)
        return ghp_onnx_fail(im, node,
                             "has auto_pad '%.40s'; use NOTSET, VALID, SAME_UPPER or "
                             "SAME_LOWER",
                             mode);
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){-1, "pads"}, list, &n));
    if (n < 0) return GHP_OK;
    if (n != 2 * p->axes)
        return ghp_onnx_fail(im, node, "has %d pads for %d axes; give two an axis", n, p->axes);
    for (int i = 0; i < n; ++i) {
        int64_t *side = i < p->axes ? p->before : p->after;

        if (list[i] < 0 || list[i] > GHP_ONNX_MAX_SIZE)
            return ghp_onnx_fail(im, node, "has a pad of %" PRId64 "; use 0 to %d", list[i],
                                 GHP_ONNX_MAX_SIZE);
        side[2 - p->axes + i % p->axes] = list[i];
    }
    return GHP_OK;
}

/* Everything but the kernel's default, which is given in p->kernel. */
static enum ghp_status read_window(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   const struct ghp_onnx_array *x, struct pixels *p)
{
    if (x->n != 3 && x->n != 4)
        return ghp_onnx_fail(im, node, "has %d axes of pixels; ghp has 1 and 2", x->n - 2);
    p->axes = x->n - 2;
    for (int i = 0; i < 2; ++i) {
        bool there = i >= 2 - p->axes;

        p->size[i] = there ? x->dims[x->n - 2 + i] : 1;
        if (!there) p->kernel[i] = 1;
        p->stride[i] = p->dilation[i] = 1;
    }
    GHP_TRY(read_axes(im, node, "kernel_shape", p, p->kernel));
    GHP_TRY(read_axes(im, node, "strides", p, p->stride));
    GHP_TRY(read_axes(im, node, "dilations", p, p->dilation));
    if (p->kernel[0] < 1 || p->kernel[1] < 1)
        return ghp_onnx_fail(im, node, "has no kernel_shape; give one");
    return read_pads(im, node, p);
}

static struct ghp_window window_of(const struct pixels *p)
{
    return (struct ghp_window){.r = p->kernel[0],
                               .s = p->kernel[1],
                               .stride_h = p->stride[0],
                               .stride_w = p->stride[1],
                               .pad_top = p->before[0],
                               .pad_left = p->before[1],
                               .pad_bottom = p->after[0],
                               .pad_right = p->after[1],
                               .dilation_h = p->dilation[0],
                               .dilation_w = p->dilation[1],
                               .groups = 1,
                               .count_pad = true};
}

/* Where x is what a pad of zeros made, takes that padding over into the window, and reads what was padded. */
static void take_over_pad(const struct ghp_onnx_import *im, struct pixels *p, int *layer)
{
    const struct ghp_layer *pad = &im->model.layers[*layer];
    const struct ghp_border *b = &pad->border;

    if (pad->op != GHP_OP_PAD || b->fill != GHP_FILL_CONSTANT || b->value != 0 ||
        b->before[0] + b->after[0] > 0)
        return;
    for (int i = 0; i < 2; ++i) {
        p->before[i] += b->before[1 + i];
        p->after[i] += b->after[1 + i];
        p->size[i] -= b->before[1 + i] + b->after[1 + i];
    }
    *layer = pad->inputs[0];
}

/* The output of a window's layer, with the array's axes. */
static enum ghp_status define_window(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     int layer, int n)
{
    struct ghp_shape s = im->model.layers[layer].out;
    const int64_t dims[2][4] = {{0, s.c, s.w, 0}, {0, s.c, s.h, s.w}};
    struct ghp_onnx_array made = ghp_onnx_of_layer(im, layer, n, dims[n - 3]);

    return ghp_onnx_define(im, node, 0, &made);
}

enum ghp_status ghp_onnx_conv(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_CONV2D, .n_inputs = 1};
    struct ghp_onnx_source weight = {.scale = 1};
    struct ghp_onnx_array *x, *w;
    struct pixels p = {.axes = 0};
    int64_t groups = ghp_onnx_int(node, "group", 1);
    int layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &w));
    if ((x->n != 3 && x->n != 4) || w->n != x->n)
        return ghp_onnx_fail(im, node, "has %d axes of pixels and a kernel of %d; ghp has 1 and 2",
                             x->n - 2, w->n - 2);
    p.kernel[0] = x->n == 4 ? w->dims[2] : 1;
    p.kernel[1] = w->dims[x->n - 1];
    GHP_TRY(read_window(im, node, x, &p));
    if (p.kernel[1] != w->dims[x->n - 1] || (x->n == 4 && p.kernel[0] != w->dims[2]) ||
        w->dims[0] < 1 || w->dims[0] > GHP_ONNX_MAX_SIZE || groups < 1 || groups > x->dims[1] ||
        x->dims[1] % groups != 0 || w->dims[1] != x->dims[1] / groups)
        return ghp_onnx_fail(im, node,
                             "has weights that do not fit its kernel, groups or channels; "
                             "repair the file");
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    take_over_pad(im, &p, &like.inputs[0]);
    like.window = window_of(&p);
    like.window.groups = groups;
    like.out.c = w->dims[0];
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, w), &layer));
    weight.array = *w;
    weight.layer = layer;
    GHP_TRY(ghp_onnx_weight_from(im, node, weight));
    GHP_TRY(ghp_onnx_conv_bias(im, node, &layer));
    return define_window(im, node, layer, x->n);
}

/* Padding that ceil_mode adds behind; true where it adds any. */
static bool read_ceil(const struct ghp_onnx_node *node, struct pixels *p)
{
    int64_t before = p->after[0] + p->after[1];

    if (ghp_onnx_int(node, "ceil_mode", 0) == 0) return false;
    for (int i = 0; i < 2; ++i)
        ghp_window_ceil(p->size[i], p->before[i], (p->kernel[i] - 1) * p->dilation[i] + 1,
                        p->stride[i], &p->after[i]);
    return p->after[0] + p->after[1] > before;
}

enum ghp_status ghp_onnx_max_pool(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_MAX_POOL, .n_inputs = 1};
    struct pixels p = {.axes = 0};
    struct ghp_onnx_array *x;
    int layer;

    if (ghp_onnx_wanted(im, node, 1))
        return ghp_onnx_fail(im, node, "hands the places of its maxima on; ghp has values only");
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(read_window(im, node, x, &p));
    read_ceil(node, &p);
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    like.window = window_of(&p);
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, NULL), &layer));
    return define_window(im, node, layer, x->n);
}

enum ghp_status ghp_onnx_average_pool(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    bool counts = ghp_onnx_int(node, "count_include_pad", 0) != 0, ceil, padded;
    struct ghp_layer like = {.op = GHP_OP_AVG_POOL, .n_inputs = 1};
    struct pixels p = {.axes = 0}, plain;
    struct ghp_onnx_array *x;
    int layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(read_window(im, node, x, &p));
    plain = p;
    ceil = read_ceil(node, &p);
    padded = plain.before[0] + plain.before[1] + plain.after[0] + plain.after[1] > 0;
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    if (counts && ceil && padded) { /* its own padding counts, what ceil_mode adds does not */
        struct ghp_layer pad = {.op = GHP_OP_PAD, .n_inputs = 1, .inputs = {like.inputs[0]}};

        for (int i = 0; i < 2; ++i) {
            pad.border.before[1 + i] = plain.before[i];
            pad.border.after[1 + i] = plain.after[i];
            p.before[i] = 0;
            p.after[i] -= plain.after[i];
        }
        GHP_TRY(ghp_onnx_emit(im, &pad, ghp_onnx_part(ghp_onnx_hint(node, NULL), ".padded"),
                              &like.inputs[0]));
    } else if (!ceil && (counts || !padded)) {
        int before = like.inputs[0];

        take_over_pad(im, &p, &like.inputs[0]);
        counts = counts || before != like.inputs[0];
    }
    like.window = window_of(&p);
    like.window.count_pad = counts && !ceil;
    if (p.before[0] + p.before[1] + p.after[0] + p.after[1] == 0) like.window.count_pad = true;
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, NULL), &layer));
    return define_window(im, node, layer, x->n);
}

/* GlobalAveragePool, GlobalMaxPool */
enum ghp_status ghp_onnx_global_pool(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_GLOBAL_AVG_POOL, .n_inputs = 1};
    int64_t dims[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array *x, made;
    struct ghp_shape shape;
    int layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    if (x->n < 3) return ghp_onnx_fail(im, node, "has an input without pixels; give it some");
    shape = ghp_onnx_shape(x);
    GHP_TRY(ghp_onnx_settle(im, x, shape, &like.inputs[0]));
    if (strcmp(node->op, "GlobalMaxPool") == 0) {
        like.op = GHP_OP_MAX_POOL;
        like.window = (struct ghp_window){shape.h, shape.w, 1, 1, 0, 0, 0, 0, 1, 1, 1, true};
    }
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, NULL), &layer));
    for (int i = 0; i < x->n; ++i)
        dims[i] = i == 1 ? x->dims[1] : 1;
    made = ghp_onnx_of_layer(im, layer, x->n, dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- means ---- */

/* Which axes are averaged: of the list, or all but none where noop_with_empty_axes says so. */
static enum ghp_status read_reduced(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_array *x, bool reduced[])
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2];
    int n, axis;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){im->file->opset < 18 ? -1 : 1, "axes"},
                          list, &n));
    for (int i = 0; i < x->n; ++i)
        reduced[i] = n <= 0 && ghp_onnx_int(node, "noop_with_empty_axes", 0) == 0;
    for (int i = 0; i < n; ++i) {
        GHP_TRY(ghp_onnx_axis(im, node, list[i], x->n, &axis));
        reduced[axis] = true;
    }
    if (x->n > 0 && reduced[0])
        return ghp_onnx_fail(im, node, "averages over samples; ghp keeps the batch as it is");
    return GHP_OK;
}

enum ghp_status ghp_onnx_reduce_mean(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_GLOBAL_AVG_POOL, .n_inputs = 1};
    bool reduced[GHP_ONNX_MAX_DIMS], keep = ghp_onnx_int(node, "keepdims", 1) != 0;
    int order[GHP_ONNX_MAX_DIMS], at = 0, n = 0, layer;
    int64_t dims[GHP_ONNX_MAX_DIMS];
    struct ghp_shape shape = {1, 1, 1};
    struct ghp_onnx_array *x, moved, made;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(read_reduced(im, node, x, reduced));
    for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < x->n; ++i)
            if (reduced[i] == (pass == 1)) order[at++] = i;
    for (int i = 1; i < x->n; ++i)
        *(reduced[i] ? &shape.h : &shape.c) *= x->dims[i];
    for (int i = 0; i < x->n; ++i)
        if (!reduced[i] || keep) dims[n++] = reduced[i] ? 1 : x->dims[i];
    if (shape.h == 1) { /* nothing to average */
        moved = *x;
        GHP_TRY(ghp_onnx_reshape(im, &moved, n, dims));
        return ghp_onnx_define(im, node, 0, &moved);
    }
    moved = *x;
    if (x->n == 4 && reduced[2] && reduced[3] && !reduced[1]) {
        GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    } else {
        ghp_onnx_permute(&moved, order);
        GHP_TRY(ghp_onnx_settle(im, &moved, shape, &like.inputs[0]));
    }
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, NULL), &layer));
    made = ghp_onnx_of_layer(im, layer, n, dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- pads ---- */

/* before and after of each axis of x, from an attribute, or from input 1 and the axes of input 3. */
static enum ghp_status read_borders(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_array *x, int64_t *before, int64_t *after)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2], axes[GHP_ONNX_MAX_DIMS * 2];
    int n, named, axis;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){im->file->opset < 11 ? -1 : 1, "pads"},
                          list, &n));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){3, "axes"}, axes, &named));
    if (named < 0) {
        named = x->n;
        for (int i = 0; i < named; ++i)
            axes[i] = i;
    }
    if (n != 2 * named)
        return ghp_onnx_fail(im, node, "has %d pads for %d axes; give two an axis", n, named);
    for (int i = 0; i < named; ++i) {
        GHP_TRY(ghp_onnx_axis(im, node, axes[i], x->n, &axis));
        if (list[i] > GHP_ONNX_MAX_SIZE || list[named + i] > GHP_ONNX_MAX_SIZE)
            return ghp_onnx_fail(im, node, "pads by more than %d; use less", GHP_ONNX_MAX_SIZE);
        before[axis] = list[i];
        after[axis] = list[named + i];
    }
    if (before[0] != 0 || after[0] != 0)
        return ghp_onnx_fail(im, node, "pads the batch; ghp keeps it as it is");
    return GHP_OK;
}

static enum ghp_status read_fill(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct ghp_border *border)
{
    const char *mode = ghp_onnx_text(node, "mode", "constant");
    struct ghp_onnx_array *value = ghp_onnx_in(im, node, 2);
    const double *values;

    for (int fill = 0; fill <= GHP_FILL_COUNT; ++fill) {
        if (fill == GHP_FILL_COUNT)
            return ghp_onnx_fail(im, node, "has mode '%.40s'; ghp has constant, reflect and edge",
                                 mode);
        border->fill = (enum ghp_fill)fill;
        if (strcmp(mode, ghp_fill_name(border->fill)) == 0) break;
    }
    if (border->fill != GHP_FILL_CONSTANT) return GHP_OK;
    border->value = ghp_onnx_real(node, "value", 0);
    if (im->file->opset >= 11 && value != NULL) {
        GHP_TRY(ghp_onnx_constant_in(im, node, 2, &value));
        GHP_TRY(ghp_onnx_values(im, value, &values));
        if (ghp_onnx_elements(value) > 0) border->value = ghp_onnx_tidy(values[0]);
    }
    return GHP_OK;
}

enum ghp_status ghp_onnx_pad(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t before[GHP_ONNX_MAX_DIMS] = {0}, after[GHP_ONNX_MAX_DIMS] = {0};
    struct ghp_layer like = {.op = GHP_OP_PAD, .n_inputs = 1};
    struct ghp_onnx_array *x, cut, made;
    bool any = false;
    int layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(read_borders(im, node, x, before, after));
    GHP_TRY(read_fill(im, node, &like.border));
    cut = made = *x;
    for (int i = 1; i < x->n; ++i) {
        int place = i == 1 ? 0 : i == x->n - 1 ? 2 : 1;

        if (before[i] < -GHP_ONNX_MAX_SIZE || after[i] < -GHP_ONNX_MAX_SIZE)
            return ghp_onnx_fail(im, node, "cuts more than %d away; cut less", GHP_ONNX_MAX_SIZE);
        if (before[i] < 0) cut.offset -= before[i] * cut.strides[i];
        cut.dims[i] += (before[i] < 0 ? before[i] : 0) + (after[i] < 0 ? after[i] : 0);
        if (cut.dims[i] < 1)
            return ghp_onnx_fail(im, node, "cuts away a whole axis; leave some of it");
        made.dims[i] += before[i] + after[i];
        if (before[i] <= 0 && after[i] <= 0) continue;
        if (place == 1 && x->n > 4)
            return ghp_onnx_fail(im, node, "pads one of more than two axes of pixels");
        like.border.before[place] = before[i] > 0 ? before[i] : 0;
        like.border.after[place] = after[i] > 0 ? after[i] : 0;
        any = true;
    }
    if (!any) return ghp_onnx_define(im, node, 0, &cut);
    GHP_TRY(ghp_onnx_settle(im, &cut, ghp_onnx_shape(&cut), &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(node, NULL), &layer));
    made = ghp_onnx_of_layer(im, layer, made.n, made.dims);
    return ghp_onnx_define(im, node, 0, &made);
}
