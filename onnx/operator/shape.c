/* onnx/operator/shape.c - other axes of the same elements in the same order, or in another. */
#include "onnx/operator/operator.h"

#include "onnx/operator/embedding.h"
#include "onnx/operator/rows.h"
#include "onnx/operator/scores.h"
#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"

#include <inttypes.h>
#include <string.h>

static int64_t all_elements(const struct ghp_onnx_import *im, const struct ghp_onnx_array *x)
{
    return ghp_onnx_elements(x) * (x->base == NULL ? im->batch : 1);
}

/* Input 0, whose axes may be joined. */
static enum ghp_status axes_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                               struct ghp_onnx_array **x)
{
    GHP_TRY(ghp_onnx_seen_in(im, node, x));
    return ghp_onnx_check_plain(im, node, *x);
}

static enum ghp_status read_reshape(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t dims[GHP_ONNX_MAX_DIMS * 2], seen[GHP_ONNX_MAX_DIMS], left;
    bool zeros = ghp_onnx_int(node, "allowzero", 0) != 0;
    struct ghp_onnx_array *x;
    int n, n_seen, open = -1;

    GHP_TRY(ghp_onnx_seen_in(im, node, &x));
    /* the attribute is onnx/pattern/strided.c's */
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){node->n_inputs > 1 ? 1 : -1, "shape"},
                          dims, &n));
    left = all_elements(im, x);
    n_seen = ghp_onnx_seen(x, seen);
    for (int i = 0; i < n; i++) {
        if (dims[i] == 0 && !zeros && i < n_seen) dims[i] = seen[i];
        if (dims[i] == -1 && open < 0) {
            open = i;
            continue;
        }
        if (dims[i] < 1 || left % dims[i] != 0)
            return ghp_onnx_fail(im, node,
                                 "makes a shape of other size (%" PRId64 " at place %d); if that "
                                 "has the number of samples in it, export with a symbolic batch, "
                                 "and write x.shape[0] in the module, not len(x)",
                                 dims[i], i);
        left /= dims[i];
    }
    if (n < 0 || (open < 0 && left != 1))
        return ghp_onnx_fail(im, node, "makes a shape of fewer elements; repair the file");
    if (open >= 0) dims[open] = left;
    if (x->scores != NULL) return ghp_onnx_scores_reshaped(im, node, n, dims);
    return ghp_onnx_reshaped(im, node, x, n, dims);
}

/* Makes a flatten layer of a whole image, as a description in ghp's own format has one; else does as Reshape. */
static enum ghp_status read_flatten(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_FLATTEN, .n_inputs = 1};
    int64_t dims[2] = {1, 1}, axis = ghp_onnx_int(node, "axis", 1);
    struct ghp_onnx_array *x, made;
    int layer;

    GHP_TRY(ghp_onnx_any_in(im, node, 0, &x));
    if (axis < 0) axis += x->n;
    if (axis < 0 || axis > x->n)
        return ghp_onnx_fail(im, node, "names an axis beyond the %d of its input; use one of them",
                             x->n);
    for (int i = 0; i < x->n; i++)
        dims[i < axis ? 0 : 1] *= x->dims[i];
    if (x->base == NULL && axis == 1 && x->n == 4 && ghp_onnx_whole(im, x)) {
        GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
        GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
        made = ghp_onnx_of_layer(im, layer, 2, dims);
        return ghp_onnx_define(im, node, 0, &made);
    }
    return ghp_onnx_reshaped(im, node, x, 2, dims);
}

static enum ghp_status read_squeeze(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2], dims[GHP_ONNX_MAX_DIMS];
    bool gone[GHP_ONNX_MAX_DIMS] = {false};
    int64_t seen[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array *x;
    int n, axis, left = 0, axes, batch;

    GHP_TRY(axes_in(im, node, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){im->file->opset < 13 ? -1 : 1, "axes"},
                          list, &n));
    axes = ghp_onnx_seen(x, seen);
    batch = x->base == NULL ? x->lead : -1; /* it alone can be of one sample there */
    for (int i = 0; i < n; i++) {
        GHP_TRY(ghp_onnx_axis(im, node, list[i], axes, &axis));
        if (seen[axis] != 1 || axis == batch)
            return ghp_onnx_fail(im, node,
                                 "drops axis %d, which is the batch or has more than one "
                                 "element; name another",
                                 axis);
        gone[axis] = true;
    }
    for (int i = 0; i < axes; i++) { /* without axes: all of one element but the batch */
        bool all = n < 0 && seen[i] == 1 && i != batch;

        if (!gone[i] && !all) dims[left++] = seen[i];
    }
    return ghp_onnx_reshaped(im, node, x, left, dims);
}

static enum ghp_status read_unsqueeze(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2], dims[GHP_ONNX_MAX_DIMS];
    bool fresh[GHP_ONNX_MAX_DIMS] = {false};
    int64_t seen[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array *x;
    int n, axis, from = 0, axes;

    GHP_TRY(axes_in(im, node, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){im->file->opset < 13 ? -1 : 1, "axes"},
                          list, &n));
    axes = ghp_onnx_seen(x, seen);
    if (n < 0 || axes + n > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node, "makes more than %d axes, or names none; name some",
                             GHP_ONNX_MAX_DIMS);
    for (int i = 0; i < n; i++) {
        GHP_TRY(ghp_onnx_axis(im, node, list[i], axes + n, &axis));
        if (fresh[axis]) return ghp_onnx_fail(im, node, "names axis %d twice; name it once", axis);
        fresh[axis] = true;
    }
    for (int i = 0; i < axes + n; i++)
        dims[i] = fresh[i] ? 1 : seen[from++];
    return ghp_onnx_reshaped(im, node, x, axes + n, dims);
}

static bool is_among(const char *op, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(op, *names) == 0) return true;
    return false;
}

/* Whether a product or a norm reads the tensor, or another arrangement of its elements, as what it computes with. */
static bool is_computed_with(const struct ghp_onnx_import *im, const char *name, int depth)
{
    static const char *const products[] = {"MatMul",           "Gemm",
                                           "Attention",        "LayerNormalization",
                                           "RMSNormalization", NULL},
                             *const arrangements[] = {"Transpose", "Reshape",   "Identity",
                                                      "Squeeze",   "Unsqueeze", NULL};

    for (int i = 0; i < im->file->n_nodes && depth > 0; i++) {
        const struct ghp_onnx_node *node = &im->nodes[i];

        if (node->n_inputs < 1 || strcmp(node->inputs[0], name) != 0) continue;
        if (is_among(node->op, products)) return true;
        if (is_among(node->op, arrangements) && node->n_outputs > 0 &&
            is_computed_with(im, node->outputs[0], depth - 1))
            return true;
    }
    return false;
}

/* Output 0 is an array that is repeated to these dimensions. Parameters that are repeated for each sample, such as
 * queries that are learned, become a layer if a layer computes with them. */
static enum ghp_status repeated(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                const struct ghp_onnx_array *x, int n, const int64_t *dims)
{
    struct ghp_onnx_array made = *x;

    if (x->base != NULL && n > 1 && n <= GHP_ONNX_MAX_DIMS && dims[0] == im->batch &&
        ghp_onnx_role_may_train(x) && is_computed_with(im, node->outputs[0], 4))
        GHP_TRY(ghp_onnx_parameter(im, node, x, n, &made));
    if (n < 0 || n > GHP_ONNX_MAX_DIMS || !ghp_onnx_sized(n, dims) ||
        (x->base == NULL && (n < 1 || n != x->n || dims[0] != im->batch)) ||
        !ghp_onnx_expand(&made, n, dims))
        return ghp_onnx_fail(im, node,
                             "expands to a shape that does not fit its input, or changes "
                             "the batch; repair the file");
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_expand(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t dims[GHP_ONNX_MAX_DIMS * 2];
    struct ghp_onnx_array *x;
    int n;

    GHP_TRY(ghp_onnx_any_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){1, ""}, dims, &n));
    for (int i = 0; i < n && n == x->n; i++)
        if (dims[i] == 1) dims[i] = x->dims[i];
    return repeated(im, node, x, n, dims);
}

/* Whole runs of an axis one after another: it becomes two, of which the first repeats. */
static enum ghp_status read_tile(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t times[GHP_ONNX_MAX_DIMS * 2], dims[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array *x, wide;
    bool runs = false;
    int n;

    GHP_TRY(ghp_onnx_any_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){1, ""}, times, &n));
    if (n != x->n)
        return ghp_onnx_fail(im, node, "has %d numbers for %d axes; repair the file", n, x->n);
    wide = *x;
    wide.n = 0;
    for (int i = 0; i < n; i++) {
        bool batch = x->base == NULL && i == 0, run = times[i] != 1 && x->dims[i] > 1 && !batch;

        if (times[i] < 1 || times[i] > GHP_ONNX_MAX_SIZE || (batch && times[i] != 1) ||
            wide.n + 1 + run > GHP_ONNX_MAX_DIMS)
            return ghp_onnx_fail(im, node,
                                 "repeats samples, or an axis other than 1 to %d times; ghp keeps "
                                 "the batch as it is: repeat other axes",
                                 GHP_ONNX_MAX_SIZE);
        dims[i] = x->dims[i] * times[i];
        runs = runs || run;
        if (run) {
            wide.dims[wide.n] = times[i];
            wide.strides[wide.n++] = 0;
        }
        wide.dims[wide.n] = run ? x->dims[i] : dims[i];
        wide.strides[wide.n++] = x->dims[i] == 1 && times[i] > 1 ? 0 : x->strides[i];
    }
    if (!ghp_onnx_sized(n, dims))
        return ghp_onnx_fail(im, node, "makes more than 2^40 elements; repeat them less often");
    return runs ? ghp_onnx_reshaped(im, node, &wide, n, dims) : repeated(im, node, x, n, dims);
}

/* Lets an array be a sequence's whose axis 1 has the positions, such as heads of queries, keys and values. */
static enum ghp_status as_positions(struct ghp_onnx_import *im, struct ghp_onnx_array *x)
{
    const struct ghp_onnx_array seen = *x;
    const int64_t dims[3] = {x->dims[0], x->dims[1], ghp_onnx_elements(x) / x->dims[1]};

    if (seen.n == 3) return ghp_onnx_as_sequence(im, x);
    if (ghp_onnx_is_sequence(im, x->layer)) return GHP_OK;
    GHP_TRY(ghp_onnx_reshape(im, x, 3, dims));
    GHP_TRY(ghp_onnx_as_sequence(im, x));
    return ghp_onnx_reshape(im, x, seen.n, seen.dims);
}

/* Batch, channels and positions with the positions before the batch: two transpositions of a sequence in one. */
static enum ghp_status put_positions_first(struct ghp_onnx_import *im,
                                           const struct ghp_onnx_node *node,
                                           const struct ghp_onnx_array *x)
{
    static const int order[3] = {1, 0, 2};
    struct ghp_onnx_array made = *x;

    ghp_onnx_permute(&made, (const int[]){0, 2, 1});
    GHP_TRY(ghp_onnx_as_sequence(im, &made));
    made = ghp_onnx_reordered(&made, order, 3);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_transpose(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2], seen_dims[GHP_ONNX_MAX_DIMS];
    int order[GHP_ONNX_MAX_DIMS] = {0}, n, axes;
    struct ghp_onnx_array *x, made;
    unsigned seen = 0;

    GHP_TRY(axes_in(im, node, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){-1, "perm"}, list, &n));
    axes = ghp_onnx_seen(x, seen_dims);
    for (int i = 0; i < axes; i++) {
        int64_t from = n < 0 ? axes - 1 - i : n == axes ? list[i] : -1;

        if (from < 0 || from >= axes || (seen & 1u << from) != 0)
            return ghp_onnx_fail(im, node, "has a perm that is not an order of %d axes; repair it",
                                 axes);
        seen |= 1u << from;
        order[i] = (int)from;
    }
    if (x->base != NULL) {
        made = *x;
        ghp_onnx_permute(&made, order);
        return ghp_onnx_define(im, node, 0, &made);
    }
    if (axes == 3 && order[0] == 2 && order[1] == 0 && x->joined == 0 && x->lead == 0 &&
        !ghp_onnx_whole_sequence(im, x))
        return put_positions_first(im, node, x);
    if (order[0] != 0 && x->n >= 3 && x->joined == 0 && x->lead == 0) GHP_TRY(as_positions(im, x));
    if (order[0] != 0 && !ghp_onnx_is_sequence(im, x->layer))
        return ghp_onnx_fail(im, node, "moves the batch; ghp keeps it in front");
    made = ghp_onnx_reordered(x, order, axes);
    if (axes == 4 && x->joined == 0 && order[1] == 2 && order[2] == 1 && x->dims[2] > 1 &&
        ghp_onnx_are_windows(im, x))
        GHP_TRY(ghp_onnx_windows_turned(im, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status write_flatten(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *const inputs[] = {ex->names[l->inputs[0]], NULL};

    ghp_export_node(ex, "Flatten", l->name, inputs);
    ex->ranks[i] = 2;
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_shape_rows[] = {
    {.name = "Reshape", .since = 1, .attributes = "allowzero shape ", .read = read_reshape},
    {.name = "Flatten",
     .since = 1,
     .attributes = "axis ",
     .read = read_flatten,
     .op = GHP_OP_FLATTEN,
     .write = write_flatten},
    {.name = "Squeeze", .since = 1, .attributes = "axes ", .read = read_squeeze},
    {.name = "Unsqueeze", .since = 1, .attributes = "axes ", .read = read_unsqueeze},
    {.name = "Expand", .since = 8, .attributes = "", .read = read_expand},
    {.name = "Tile", .since = 6, .attributes = "", .read = read_tile},
    {.name = "Transpose", .since = 1, .attributes = "perm ", .read = read_transpose},
    {0}};
