/* onnx/operator/pool.c - maxima, means and sums over windows, all pixels or some axes. */
#include "onnx/operator/operator.h"

#include "core/model/window.h"
#include "onnx/operator/rows.h"
#include "onnx/operator/window.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <string.h>

/* Adds the padding of ceil_mode after each axis; true if it adds any. */
static bool read_ceil(const struct ghp_onnx_node *node, struct ghp_onnx_pixels *p)
{
    int64_t before = p->after[0] + p->after[1];

    if (ghp_onnx_int(node, "ceil_mode", 0) == 0) return false;
    for (int i = 0; i < 2; i++)
        ghp_window_ceil(p->size[i], p->before[i], (p->kernel[i] - 1) * p->dilation[i] + 1,
                        p->stride[i], &p->after[i]);
    return p->after[0] + p->after[1] > before;
}

static enum ghp_status read_max_pool(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_MAX_POOL, .n_inputs = 1};
    struct ghp_onnx_pixels p = {.axes = 0};
    struct ghp_onnx_array *x;
    int layer;

    if (ghp_onnx_wanted(im, node, 1))
        return ghp_onnx_fail(im, node, "hands the places of its maxima on; ghp has values only");
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_window_read(im, node, x, &p));
    read_ceil(node, &p);
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    like.window = ghp_onnx_window_of(&p);
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    return ghp_onnx_window_define(im, node, layer, x->n);
}

/* Whether a call such as "... args = (%x, [3, 3], [2, 2], [1, 1], False, True, 5), ..." has a divisor, its seventh
 * argument, or the one that is named so. */
static bool has_divisor(const char *call)
{
    const char *at = strstr(call, "args = ("), *named = strstr(call, "divisor_override: ");
    int depth = 0, commas = 0;

    if (named != NULL) return strncmp(named + strlen("divisor_override: "), "None", 4) != 0;
    if (at == NULL) return false;
    for (at += strlen("args = ("); *at != '\0' && (depth > 0 || *at != ')'); at++) {
        depth += *at == '[' || *at == '(';
        depth -= *at == ']' || *at == ')';
        commas += depth == 0 && *at == ',';
        if (commas == 6) return strncmp(at, ", None", 6) != 0;
    }
    return false;
}

static enum ghp_status read_average_pool(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node)
{
    bool counts = ghp_onnx_int(node, "count_include_pad", 0) != 0, ceil, padded;
    struct ghp_layer like = {.op = GHP_OP_AVG_POOL, .n_inputs = 1};
    struct ghp_onnx_pixels p = {.axes = 0}, plain;
    struct ghp_onnx_array *x;
    int layer;

    if (node->call != NULL && has_divisor(node->call))
        return ghp_onnx_fail(
            im, node,
            "has a divisor_override in the module, which ONNX cannot express; leave it "
            "out, and multiply the pool's output by window / divisor");
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_window_read(im, node, x, &p));
    plain = p;
    ceil = read_ceil(node, &p);
    padded = plain.before[0] + plain.before[1] + plain.after[0] + plain.after[1] > 0;
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    if (counts && ceil && padded) { /* its own padding counts, what ceil_mode adds does not */
        struct ghp_layer pad = {.op = GHP_OP_PAD, .n_inputs = 1, .inputs = {like.inputs[0]}};

        for (int i = 0; i < 2; i++) {
            pad.border.before[1 + i] = plain.before[i];
            pad.border.after[1 + i] = plain.after[i];
            p.before[i] = 0;
            p.after[i] -= plain.after[i];
        }
        GHP_TRY(ghp_onnx_emit(im, &pad, ghp_onnx_part(ghp_onnx_hint(im, node, NULL), ".padded"),
                              &like.inputs[0]));
    } else if (!ceil && (counts || !padded)) {
        int before = like.inputs[0];

        ghp_onnx_window_pad(im, &p, &like.inputs[0]);
        counts = counts || before != like.inputs[0];
    }
    like.window = ghp_onnx_window_of(&p);
    like.window.count_pad = counts && !ceil;
    if (p.before[0] + p.before[1] + p.after[0] + p.after[1] == 0) like.window.count_pad = true;
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    return ghp_onnx_window_define(im, node, layer, x->n);
}

/* An operation over all pixels of each channel. */
static enum ghp_status over_pixels(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   enum ghp_op op)
{
    struct ghp_layer like = {.op = op, .n_inputs = 1};
    int64_t dims[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array *x, made;
    struct ghp_shape shape;
    int layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    if (x->n < 3) return ghp_onnx_fail(im, node, "has an input without pixels; give it some");
    shape = ghp_onnx_shape(x);
    GHP_TRY(ghp_onnx_settle(im, x, shape, &like.inputs[0]));
    if (op == GHP_OP_MAX_POOL)
        like.window = (struct ghp_window){shape.h, shape.w, 1, 1, 0, 0, 0, 0, 1, 1, 1, true};
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    for (int i = 0; i < x->n; i++)
        dims[i] = i == 1 ? x->dims[1] : 1;
    made = ghp_onnx_of_layer(im, layer, x->n, dims);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_global_average_pool(struct ghp_onnx_import *im,
                                                const struct ghp_onnx_node *node)
{
    return over_pixels(im, node, GHP_OP_GLOBAL_AVG_POOL);
}

static enum ghp_status read_global_max_pool(struct ghp_onnx_import *im,
                                            const struct ghp_onnx_node *node)
{
    return over_pixels(im, node, GHP_OP_MAX_POOL);
}

/* ---- over some axes ---- */

/* Which axes go: of the list, or all but none if noop_with_empty_axes says so. */
static enum ghp_status read_reduced(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_array *x, bool reduced[])
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2];
    int n, axis;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){1, "axes"}, list, &n));
    for (int i = 0; i < x->n; i++)
        reduced[i] = n <= 0 && ghp_onnx_int(node, "noop_with_empty_axes", 0) == 0;
    for (int i = 0; i < n; i++) {
        GHP_TRY(ghp_onnx_axis(im, node, list[i], x->n, &axis));
        reduced[axis] = true;
    }
    if (x->n > 0 && reduced[0])
        return ghp_onnx_fail(im, node, "takes samples together; ghp keeps the batch as it is");
    return GHP_OK;
}

struct reduction {
    enum ghp_op op;  /* over all pixels */
    bool sum;        /* the result times the number of elements */
    double more;     /* what is added to the sum */
    const char *end; /* what is done to the result: "Neg", "Sqrt"; NULL: nothing */
};

/* The layers of a reduction: x's elements are shape, of which the pixels are taken together. */
static enum ghp_status layers_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct reduction reduction, struct ghp_shape shape, int *layer)
{
    struct ghp_layer like = {.op = reduction.op, .n_inputs = 1, .inputs = {*layer}};
    struct ghp_onnx_layer_name hint = ghp_onnx_hint(im, node, NULL), all = hint;

    if (reduction.end != NULL) all = ghp_onnx_part(hint, reduction.sum ? ".sum" : ".all");
    if (reduction.op == GHP_OP_MAX_POOL)
        like.window = (struct ghp_window){shape.h, shape.w, 1, 1, 0, 0, 0, 0, 1, 1, 1, true};
    GHP_TRY(ghp_onnx_emit(im, &like, reduction.sum ? ghp_onnx_part(hint, ".mean") : all, layer));
    like = (struct ghp_layer){
        .op = GHP_OP_ACTIVATION,
        .n_inputs = 1,
        .inputs = {*layer},
        .activation = {GHP_FUNCTION_AFFINE, (double)(shape.h * shape.w), reduction.more}};
    if (reduction.sum) GHP_TRY(ghp_onnx_emit(im, &like, all, layer));
    if (reduction.end == NULL) return GHP_OK;
    like = (struct ghp_layer){.op = GHP_OP_ACTIVATION, .n_inputs = 1, .inputs = {*layer}};
    like.activation = (struct ghp_activation){GHP_FUNCTION_AFFINE, -1, 0};
    if (strcmp(reduction.end, "Sqrt") == 0) {
        like.op = GHP_OP_POINTWISE;
        like.pointwise = (struct ghp_pointwise){.curve = GHP_CURVE_POW, .exponent = 0.5};
    }
    return ghp_onnx_emit(im, &like, hint, layer);
}

/* Refuses to take a parameter's elements together, as norms of weights do. */
static enum ghp_status check_computed(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0);

    if (x == NULL || x->base == NULL || ghp_onnx_role_is_number(x)) return GHP_OK;
    return ghp_onnx_role_fail_computed(im, node, x);
}

/* Reduces x, whose axes are given by strides. The axes that stay become the channels, the others pixels. */
static enum ghp_status reduce(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct reduction reduction, struct ghp_onnx_array *x)
{
    bool reduced[GHP_ONNX_MAX_DIMS], keep = ghp_onnx_int(node, "keepdims", 1) != 0;
    int order[GHP_ONNX_MAX_DIMS], at = 0, n = 0, layer;
    int64_t dims[GHP_ONNX_MAX_DIMS];
    struct ghp_shape shape = {.c = 1, .h = 1, .w = 1};
    struct ghp_onnx_array *from, moved, made;

    GHP_TRY(read_reduced(im, node, x, reduced));
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < x->n; i++)
            if (reduced[i] == (pass == 1)) order[at++] = i;
    for (int i = 1; i < x->n; i++)
        *(reduced[i] ? &shape.h : &shape.c) *= x->dims[i];
    for (int i = 0; i < x->n; i++)
        if (!reduced[i] || keep) dims[n++] = reduced[i] ? 1 : x->dims[i];
    moved = *x;
    if (shape.h == 1 && reduction.end == NULL) { /* nothing to take together */
        GHP_TRY(ghp_onnx_reshape(im, &moved, n, dims));
        return ghp_onnx_define(im, node, 0, &moved);
    }
    from = x->n == 4 && reduced[2] && reduced[3] && !reduced[1] ? x : &moved;
    ghp_onnx_permute(&moved, order);
    if (from == x) shape = ghp_onnx_shape(x);
    GHP_TRY(ghp_onnx_settle(im, from, shape, &layer));
    GHP_TRY(layers_of(im, node, reduction, shape, &layer));
    made = ghp_onnx_of_layer(im, layer, n, dims);
    return ghp_onnx_define(im, node, 0, &made);
}

/* Reduces the node's input or, if `each` is not NULL, that function of each of its elements. */
static enum ghp_status reduce_input(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_layer *each, struct reduction reduction)
{
    struct ghp_onnx_array *x, made;
    struct ghp_layer like;
    int layer;

    GHP_TRY(check_computed(im, node));
    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    if (each == NULL) return reduce(im, node, reduction, x);
    like = *each;
    like.n_inputs = 1;
    made = *x;
    GHP_TRY(ghp_onnx_each_in(im, &made, &like.inputs[0]));
    GHP_TRY(
        ghp_onnx_emit(im, &like, ghp_onnx_part(ghp_onnx_hint(im, node, NULL), ".each"), &layer));
    made = ghp_onnx_each_out(&made, layer);
    GHP_TRY(ghp_onnx_part_axes(im, &made));
    return reduce(im, node, reduction, &made);
}

static const struct ghp_layer size_of_each = {.op = GHP_OP_POINTWISE,
                                              .pointwise = {.curve = GHP_CURVE_ABS}};
static const struct ghp_layer square_of_each = {
    .op = GHP_OP_POINTWISE, .pointwise = {.curve = GHP_CURVE_POW, .exponent = 2}};
static const struct ghp_layer negated_each = {.op = GHP_OP_ACTIVATION,
                                              .activation = {GHP_FUNCTION_AFFINE, -1, 0}};

static enum ghp_status read_mean(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return reduce_input(im, node, NULL, (struct reduction){.op = GHP_OP_GLOBAL_AVG_POOL});
}

/* ReduceSum, ReduceL1, ReduceSumSquare */
static enum ghp_status read_sum(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_layer *each = strcmp(node->op, "ReduceL1") == 0          ? &size_of_each
                                   : strcmp(node->op, "ReduceSumSquare") == 0 ? &square_of_each
                                                                              : NULL;

    return reduce_input(im, node, each,
                        (struct reduction){.op = GHP_OP_GLOBAL_AVG_POOL, .sum = true});
}

/* The root of the sum of squares. Its derivative at zeros alone is 0, as PyTorch's is: what is added is far below the
 * rounding of a float. */
static enum ghp_status read_length(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return reduce_input(
        im, node, &square_of_each,
        (struct reduction){
            .op = GHP_OP_GLOBAL_AVG_POOL, .sum = true, .more = 1e-36, .end = "Sqrt"});
}

static enum ghp_status read_max(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return reduce_input(im, node, NULL, (struct reduction){.op = GHP_OP_MAX_POOL});
}

/* -max(-x) */
static enum ghp_status read_min(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return reduce_input(im, node, &negated_each,
                        (struct reduction){.op = GHP_OP_MAX_POOL, .end = "Neg"});
}

/* The product of all elements of a constant, such as a shape. */
static enum ghp_status read_prod(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const int64_t ones[GHP_ONNX_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct ghp_onnx_array *x, made;
    const double *values;
    double *product;
    int n;

    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &x));
    if (node->n_inputs > 1 || ghp_onnx_attribute_of(node, "axes") != NULL)
        return ghp_onnx_fail(im, node, "multiplies along an axis; ghp multiplies all elements");
    n = ghp_onnx_int(node, "keepdims", 1) != 0 ? x->n : 0;
    GHP_TRY(ghp_onnx_values(im, x, &values));
    GHP_TRY(ghp_onnx_room(im, 1, &product));
    *product = 1;
    for (int64_t i = 0; i < ghp_onnx_elements(x); i++)
        *product *= values[i];
    GHP_TRY(
        ghp_onnx_of_values(im, x->base->whole, (struct ghp_onnx_sizes){n, ones}, product, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- writing ---- */

/* A node of a window or of all pixels. */
static struct ghp_onnx_node *pool_node(struct ghp_onnx_export *ex, int i, const char *op)
{
    const struct ghp_layer *layer = &ex->model->layers[i];
    const char *const inputs[] = {ghp_export_ranked(ex, layer->inputs[0], 4, layer->name), NULL};

    ex->ranks[i] = 4;
    return ghp_export_node(ex, op, layer->name, inputs);
}

static enum ghp_status write_max_pool(struct ghp_onnx_export *ex, int i)
{
    ghp_export_window(ex, pool_node(ex, i, "MaxPool"), &ex->model->layers[i]);
    return GHP_OK;
}

static enum ghp_status write_average_pool(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *layer = &ex->model->layers[i];
    const struct ghp_window *w = &layer->window;
    struct ghp_onnx_node *node = pool_node(ex, i, "AveragePool");

    ghp_export_window(ex, node, layer);
    ghp_export_int(ex, node, "count_include_pad", w->count_pad);
    if (w->dilation_h * w->dilation_w > 1) ghp_export_since(ex, 19);
    return GHP_OK;
}

static enum ghp_status write_global_average_pool(struct ghp_onnx_export *ex, int i)
{
    pool_node(ex, i, "GlobalAveragePool");
    return GHP_OK;
}

#define REDUCTION(op, by)                                                                          \
    {                                                                                              \
        .name = op, .since = 1, .attributes = "axes keepdims noop_with_empty_axes ", .read = by    \
    }

const struct ghp_onnx_operator ghp_onnx_pool[] = {
    {.name = "MaxPool",
     .since = 1,
     .attributes = "auto_pad ceil_mode dilations kernel_shape pads storage_order strides ",
     .read = read_max_pool,
     .op = GHP_OP_MAX_POOL,
     .write = write_max_pool},
    {.name = "AveragePool",
     .since = 1,
     .attributes = "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides ",
     .read = read_average_pool,
     .op = GHP_OP_AVG_POOL,
     .write = write_average_pool},
    {.name = "GlobalAveragePool",
     .since = 1,
     .attributes = "",
     .read = read_global_average_pool,
     .op = GHP_OP_GLOBAL_AVG_POOL,
     .write = write_global_average_pool},
    {.name = "GlobalMaxPool", .since = 1, .attributes = "", .read = read_global_max_pool},
    REDUCTION("ReduceMean", read_mean),
    REDUCTION("ReduceSum", read_sum),
    REDUCTION("ReduceMax", read_max),
    REDUCTION("ReduceMin", read_min),
    REDUCTION("ReduceL1", read_sum),
    REDUCTION("ReduceL2", read_length),
    REDUCTION("ReduceSumSquare", read_sum),
    {.name = "ReduceProd",
     .since = 1,
     .attributes = "axes keepdims noop_with_empty_axes ",
     .folds = true,
     .read = read_prod},
    {0}};
