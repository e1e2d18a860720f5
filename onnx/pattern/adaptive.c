/* onnx/pattern/adaptive.c - an average pool to sizes that do not divide, as PyTorch's exporter with dynamo writes it:
 * rows and columns of each output's window are gathered by GatherND, those beyond a smaller window become zeros, and
 * what is there is summed element by element and divided by the windows' sizes. */
#include "onnx/pattern/pattern.h"
#include "onnx/pattern/question.h"
#include "onnx/read/attribute.h"

#include <string.h>

struct axis {
    double from, to; /* pixels */
    int most;        /* pixels of the largest window */
    bool even;       /* all windows are as large */
};

/* Takes Unsqueezes away. */
static const char *narrow(struct ghp_onnx_import *im, const char *name)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Unsqueeze", 1);

    for (int i = 0; node != NULL && i < 4; i++) {
        name = node->inputs[0];
        node = ghp_onnx_made_by(im, name, "Unsqueeze", 1);
    }
    return name;
}

/* The dividend of PyTorch's division rounded toward zero by `*by`, or NULL. */
static const char *divided(struct ghp_onnx_import *im, const char *name, double *by)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Mul", 2), *sign;

    if (node == NULL) return NULL;
    sign = ghp_onnx_made_by(im, node->inputs[1], "Sign", 1);
    node = ghp_onnx_made_by(im, node->inputs[0], "Floor", 1);
    if (node != NULL) node = ghp_onnx_made_by(im, node->inputs[0], "Abs", 1);
    if (node == NULL || sign == NULL || !ghp_onnx_same(im, node->inputs[0], sign->inputs[0]))
        return NULL;
    node = ghp_onnx_made_by(im, node->inputs[0], "Div", 2);
    return node != NULL && ghp_onnx_scalar(im, node->inputs[1], by) ? node->inputs[0] : NULL;
}

/* What of `op` with a number is made: the other input, or NULL. */
static const char *with_number(struct ghp_onnx_import *im, const char *name, const char *op,
                               double *value)
{
    const struct ghp_onnx_node *node = name != NULL ? ghp_onnx_made_by(im, name, op, 2) : NULL;
    const char *rest;

    return node != NULL && ghp_onnx_with_scalar(im, node, &rest, value) ? rest : NULL;
}

/* Whether a tensor has the windows' sizes: ((i + 1) from + to - 1) / to - i from / to. */
static bool is_sizes(struct ghp_onnx_import *im, const char *name, const struct axis *axis)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Sub", 2);
    const char *first, *last, *i, *next;
    double by[2], one[2], to, from[2];

    if (node == NULL) return false;
    first = divided(im, node->inputs[1], &by[0]);
    i = with_number(im, first, "Mul", &from[0]);
    last = divided(im, node->inputs[0], &by[1]);
    last = with_number(im, last, "Sub", &one[0]);
    last = with_number(im, last, "Add", &to);
    last = with_number(im, last, "Mul", &from[1]);
    next = with_number(im, last, "Add", &one[1]);
    return i != NULL && next != NULL && ghp_onnx_same(im, i, next) && by[0] == axis->to &&
           by[1] == axis->to && to == axis->to && from[0] == axis->from && from[1] == axis->from &&
           one[0] == 1 && one[1] == 1;
}

/* The axis whose places are i from / to and those after it, cut at the last pixel. */
static bool find_axis(struct ghp_onnx_import *im, const char *name, struct axis *axis)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, narrow(im, name), "Expand", 1), *least;
    const char *i;
    double last = -1;
    int64_t from, to, size;

    if (node == NULL) return false;
    name = narrow(im, node->inputs[0]);
    least = ghp_onnx_made_by(im, name, "Min", 2);
    if (least != NULL) {
        const struct ghp_onnx_node *cast = ghp_onnx_made_by(im, least->inputs[1], "Cast", 1);

        name = least->inputs[0];
        if (!ghp_onnx_scalar(im, cast != NULL ? cast->inputs[0] : least->inputs[1], &last))
            return false;
    }
    node = ghp_onnx_made_by(im, name, "Add", 2);
    if (node == NULL || ghp_onnx_made_by(im, node->inputs[1], "Range", 3) == NULL) return false;
    i = divided(im, narrow(im, node->inputs[0]), &axis->to);
    i = with_number(im, i, "Mul", &axis->from);
    if (i == NULL || ghp_onnx_made_by(im, i, "Range", 3) == NULL || !(axis->to >= 1) ||
        !(axis->from >= 1) || axis->to > GHP_ONNX_MAX_SIZE || axis->from > GHP_ONNX_MAX_SIZE)
        return false;
    from = (int64_t)axis->from;
    to = (int64_t)axis->to;
    axis->most = 0;
    axis->even = true;
    for (int64_t k = 0; k < to; k++) {
        size = ((k + 1) * from + to - 1) / to - k * from / to;
        axis->even = axis->even && (k == 0 || size == axis->most);
        if (size > axis->most) axis->most = (int)size;
    }
    return least == NULL ? axis->even : last == axis->from - 1;
}

/* Whether a term of the sum is the element [row][column] of each window; of which tensor. */
static const char *term_of(struct ghp_onnx_import *im, const char *name, double place[2])
{
    for (int k = 1; k >= 0; --k) {
        const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Gather", 2);

        if (node == NULL || ghp_onnx_int(node, "axis", 0) != 3 + k ||
            !ghp_onnx_scalar(im, node->inputs[1], &place[k]))
            return NULL;
        name = node->inputs[0];
    }
    return name;
}

/* The tensor of which a sum has each element of the windows once, the last one first; NULL: there is not one. */
static const char *summed(struct ghp_onnx_import *im, const char *name, double rows, double columns)
{
    const char *all = NULL, *of;
    double place[2], row = rows - 1, column = columns - 1;

    for (int i = 0; i < im->file->n_nodes; i++) {
        const struct ghp_onnx_node *sum = ghp_onnx_made_by(im, name, "Add", 2);

        of = term_of(im, sum != NULL ? sum->inputs[1] : name, place);
        if (of == NULL || (all != NULL && !ghp_onnx_same(im, of, all))) return NULL;
        if (place[0] != row || place[1] != column) return NULL;
        all = of;
        if (sum == NULL) return row == 0 && column == 0 ? all : NULL;
        name = sum->inputs[0];
        if (--column >= 0) continue;
        column = columns - 1;
        --row;
    }
    return NULL;
}

/* What is masked: Where(number >= the windows' sizes, 0, x). */
static const char *masked(struct ghp_onnx_import *im, const char *name, const char *sizes)
{
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Where", 3), *beyond;
    double zero;

    if (node == NULL || !ghp_onnx_scalar(im, node->inputs[1], &zero) || zero != 0) return NULL;
    beyond = ghp_onnx_made_by(im, narrow(im, node->inputs[0]), "GreaterOrEqual", 2);
    if (beyond == NULL || !ghp_onnx_same(im, narrow(im, beyond->inputs[1]), sizes)) return NULL;
    return node->inputs[2];
}

/* The tensor before Transpose, GatherND, Transpose, and its axes. */
static const char *gathered_from(struct ghp_onnx_import *im, const char *name, struct axis axes[2])
{
    static const int64_t back[] = {4, 5, 0, 1, 2, 3}, there[] = {2, 3, 0, 1};
    const struct ghp_onnx_node *node = ghp_onnx_made_by(im, name, "Transpose", 1), *places;
    const struct ghp_onnx_attribute *perm =
        node != NULL ? ghp_onnx_attribute_of(node, "perm") : NULL;

    if (perm == NULL || perm->n != 6 || memcmp(perm->ints, back, sizeof back) != 0) return NULL;
    node = ghp_onnx_made_by(im, node->inputs[0], "GatherND", 2);
    places = node != NULL ? ghp_onnx_made_by(im, node->inputs[1], "Concat", 2) : NULL;
    if (places == NULL || places->n_inputs != 2 || !find_axis(im, places->inputs[0], &axes[0]) ||
        !find_axis(im, places->inputs[1], &axes[1]))
        return NULL;
    node = ghp_onnx_made_by(im, node->inputs[0], "Transpose", 1);
    perm = node != NULL ? ghp_onnx_attribute_of(node, "perm") : NULL;
    if (perm == NULL || perm->n != 4 || memcmp(perm->ints, there, sizeof there) != 0) return NULL;
    return node->inputs[0];
}

static bool put(struct ghp_onnx_import *im, const char *x, const struct axis axes[2],
                struct ghp_onnx_found *found)
{
    int64_t *pixels = ghp_onnx_keep(im, 4, sizeof *pixels);

    im->failed = im->failed || pixels == NULL;
    if (pixels == NULL) return false;
    for (int k = 0; k < 2; k++) {
        pixels[k] = (int64_t)axes[k].from;
        pixels[2 + k] = (int64_t)axes[k].to;
    }
    *found = (struct ghp_onnx_found){.n_inputs = 1, .inputs = {x}, .n_attributes = 2};
    found->attributes[0] =
        (struct ghp_onnx_attribute){.name = "mode", .kind = GHP_ONNX_TEXT, .text = "area"};
    found->attributes[1] = (struct ghp_onnx_attribute){
        .name = "pixels", .kind = GHP_ONNX_INTS, .n = 4, .ints = pixels};
    return true;
}

/* Whether one of the divisor's factors is that of an axis: its windows' sizes, or if all are alike this number. */
static bool is_factor(struct ghp_onnx_import *im, const char *name, const struct axis *axis)
{
    double size;

    if (axis->even) return ghp_onnx_scalar(im, name, &size) && size == axis->most;
    return is_sizes(im, narrow(im, name), axis);
}

/* The first tensor of a sum of elements of windows. */
static const char *first_term(struct ghp_onnx_import *im, const char *name)
{
    const struct ghp_onnx_node *sum = ghp_onnx_made_by(im, name, "Add", 2);
    double place[2];

    for (int i = 0; sum != NULL && i < im->file->n_nodes; i++) {
        name = sum->inputs[0];
        sum = ghp_onnx_made_by(im, name, "Add", 2);
    }
    return term_of(im, name, place);
}

/* Sums over windows of different sizes. */
static bool match_uneven(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                         struct ghp_onnx_found *found)
{
    const struct ghp_onnx_node *count =
        node->n_inputs == 2 ? ghp_onnx_made_by(im, node->inputs[1], "Mul", 2) : NULL;
    const char *of = count != NULL ? first_term(im, node->inputs[0]) : NULL, *x = of;
    struct axis axes[2];
    int at[2] = {0, 1};

    for (const struct ghp_onnx_node *where = NULL; x != NULL; x = where->inputs[2]) {
        where = ghp_onnx_made_by(im, x, "Where", 3);
        if (where == NULL) break;
    }
    if (x == NULL) return false;
    x = gathered_from(im, x, axes);
    if (x == NULL || (axes[0].even && axes[1].even)) return false;
    if (!is_factor(im, count->inputs[0], &axes[0])) at[0] = 1, at[1] = 0;
    for (int k = 0; k < 2; k++)
        if (!is_factor(im, count->inputs[at[k]], &axes[k])) return false;
    if (summed(im, node->inputs[0], axes[0].most, axes[1].most) == NULL) return false;
    for (int k = 1; k >= 0 && of != NULL; --k)
        if (!axes[k].even) of = masked(im, of, narrow(im, count->inputs[at[k]]));
    return of != NULL && ghp_onnx_made_by(im, of, "Where", 3) == NULL && put(im, x, axes, found);
}

/* The mean of windows of one size that overlap. */
static bool match_even(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                       struct ghp_onnx_found *found)
{
    const struct ghp_onnx_node *list =
        node->n_inputs == 2 ? ghp_onnx_made_by(im, node->inputs[1], "Reshape", 1) : NULL;
    const struct ghp_onnx_attribute *value;
    struct axis axes[2];
    int64_t over[2];
    const char *x;

    list = list != NULL ? ghp_onnx_made_by(im, list->inputs[0], "Constant", 0) : NULL;
    value = list != NULL ? ghp_onnx_attribute_of(list, "value") : NULL;
    if (value == NULL || value->kind != GHP_ONNX_TENSOR || value->tensor->elements != 2 ||
        !ghp_onnx_type_whole(value->tensor->type) || ghp_onnx_int(node, "keepdims", 1) != 0 ||
        ghp_onnx_tensor_ints(im->file, value->tensor, over) != GHP_OK || over[0] != -3 ||
        over[1] != -1)
        return false;
    x = gathered_from(im, node->inputs[0], axes);
    return x != NULL && axes[0].even && axes[1].even && put(im, x, axes, found);
}

const struct ghp_onnx_pattern ghp_onnx_pattern_adaptive[] = {
    {"Div", "Resize", match_uneven}, {"ReduceMean", "Resize", match_even}, {0}};
