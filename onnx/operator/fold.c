/* onnx/operator/fold.c - operators that are computed of constants alone.
 *
 * Exporters write the mask of an attention, and the angles of rotary positions, as some forty nodes of these. */
#include "onnx/operator/fold.h"

#include "onnx/operator/derived.h"
#include "onnx/operator/operator.h"
#include "onnx/operator/scores.h"
#include "onnx/operator/unary.h"
#include "onnx/read/attribute.h"
#include "onnx/read/role.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- element by element ---- */

bool ghp_onnx_joint_dims(const struct ghp_onnx_array *a, const struct ghp_onnx_array *b, int *n,
                         int64_t *dims)
{
    int64_t joint[GHP_ONNX_MAX_DIMS] = {0};
    int most = a->n > b->n ? a->n : b->n;

    for (int i = 0; i < most; i++) {
        int64_t x = i < most - a->n ? 1 : a->dims[i - (most - a->n)];
        int64_t y = i < most - b->n ? 1 : b->dims[i - (most - b->n)];

        if (x != y && x != 1 && y != 1) return false;
        joint[i] = x == 1 ? y : x;
    }
    *n = most;
    memcpy(dims, joint, sizeof joint);
    return true;
}

enum ghp_status ghp_onnx_folded(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                bool whole, struct ghp_onnx_sizes sizes, double *values)
{
    int64_t kept[GHP_ONNX_MAX_DIMS] = {0}, elements = 1, each;
    struct ghp_onnx_array made;
    enum ghp_status status;
    double *copy;
    bool same = sizes.n > 0 && sizes.dims[0] == im->batch;

    for (int i = 0; i < sizes.n; i++)
        elements *= kept[i] = sizes.dims[i];
    each = same ? elements / im->batch : 0;
    for (int64_t i = 1; same && i < im->batch; i++)
        same = memcmp(values, values + i * each, (size_t)each * sizeof *values) == 0;
    if (same) kept[0] = 1;
    elements = same ? each : elements;
    status = ghp_onnx_room(im, elements, &copy);
    if (status == GHP_OK) memcpy(copy, values, (size_t)elements * sizeof *copy);
    free(values);
    GHP_TRY(status);
    GHP_TRY(ghp_onnx_of_values(im, whole, (struct ghp_onnx_sizes){sizes.n, kept}, copy, &made));
    if (!ghp_onnx_expand(&made, sizes.n, sizes.dims))
        return ghp_onnx_fail(im, node, "makes a constant of no shape; repair the file");
    return ghp_onnx_define(im, node, 0, &made);
}

struct operands { /* of a function: expanded to the same dimensions */
    int n;
    int64_t dims[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_array *arrays;
    struct cursor {
        const double *values; /* of the array's base; NULL: its fill */
        int64_t index[GHP_ONNX_MAX_DIMS], at;
    } * cursors;
    double *each; /* one element of each */
};

static enum ghp_status find_operands(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     struct operands *o)
{
    struct ghp_onnx_array joint = {.n = 0};
    size_t n = (size_t)node->n_inputs;

    o->arrays = ghp_onnx_keep(im, n, sizeof *o->arrays);
    o->cursors = ghp_onnx_keep(im, n, sizeof *o->cursors);
    o->each = ghp_onnx_keep(im, n, sizeof *o->each);
    if (o->arrays == NULL || o->cursors == NULL || o->each == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < node->n_inputs; i++) {
        struct ghp_onnx_array *from;

        GHP_TRY(ghp_onnx_constant_in(im, node, i, &from));
        o->arrays[i] = *from;
        if (!ghp_onnx_joint_dims(&joint, from, &joint.n, joint.dims) ||
            !ghp_onnx_sized(joint.n, joint.dims))
            return ghp_onnx_fail(im, node,
                                 "has constants of shapes that do not fit; repair the file");
    }
    o->n = joint.n;
    memcpy(o->dims, joint.dims, sizeof o->dims);
    for (int i = 0; i < node->n_inputs; i++)
        if (!ghp_onnx_expand(&o->arrays[i], o->n, o->dims))
            return ghp_onnx_fail(im, node,
                                 "has constants of shapes that do not fit; repair the file");
    return GHP_OK;
}

/* Axes along which all operands repeat get one element; `out` has them as they will be seen. */
static void drop_repeats(struct operands *o, int n_arrays, int64_t *out)
{
    memcpy(out, o->dims, sizeof o->dims);
    for (int d = 0; d < o->n; d++) {
        bool repeats = o->dims[d] > 1;

        for (int i = 0; i < n_arrays; i++)
            repeats = repeats && o->arrays[i].strides[d] == 0;
        if (!repeats) continue;
        o->dims[d] = 1;
        for (int i = 0; i < n_arrays; i++)
            o->arrays[i].dims[d] = 1;
    }
}

enum ghp_status ghp_onnx_fold(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              ghp_onnx_function *function, bool whole)
{
    struct ghp_onnx_array *made;
    int64_t elements = 1, dims[GHP_ONNX_MAX_DIMS];
    struct operands o;
    double *out;

    if (node->n_inputs < 1) return ghp_onnx_fail(im, node, "has no inputs; repair the file");
    GHP_TRY(find_operands(im, node, &o));
    drop_repeats(&o, node->n_inputs, dims);
    for (int d = 0; d < o.n; d++)
        elements *= o.dims[d];
    if (elements > GHP_ONNX_MAX_FOLDED)
        return ghp_onnx_fail(
            im, node, "makes a constant of %" PRId64 " elements; fold it in the file", elements);
    for (int i = 0; i < node->n_inputs; i++) {
        o.cursors[i].at = o.arrays[i].offset;
        GHP_TRY(ghp_onnx_base_values(im, o.arrays[i].base, &o.cursors[i].values));
    }
    out = ghp_alloc((size_t)elements, sizeof *out);
    if (out == NULL) return GHP_NO_MEMORY();
    for (int64_t at = 0; at < elements; at++) {
        for (int i = 0; i < node->n_inputs; i++) {
            struct cursor *c = &o.cursors[i];

            o.each[i] = c->values != NULL ? c->values[c->at] : o.arrays[i].base->fill;
            ghp_onnx_next_element(&o.arrays[i], c->index, &c->at);
        }
        out[at] = function(o.each, node->n_inputs);
    }
    GHP_TRY(ghp_onnx_folded(im, node, whole, (struct ghp_onnx_sizes){o.n, o.dims}, out));
    made = ghp_onnx_named(im, node->outputs[0]);
    if (!ghp_onnx_expand(made, o.n, dims))
        return ghp_onnx_fail(im, node, "makes a constant of no shape; repair the file");
    return GHP_OK;
}

/* ---- the functions ---- */

#define FOLDED(name, of)                                                                           \
    static double name(const double *x, int n)                                                     \
    {                                                                                              \
        (void)n;                                                                                   \
        return of;                                                                                 \
    }

FOLDED(equal, x[0] == x[1])
FOLDED(less, x[0] < x[1])
FOLDED(less_or_equal, x[0] <= x[1])
FOLDED(greater, x[0] > x[1])
FOLDED(greater_or_equal, x[0] >= x[1])
FOLDED(both, x[0] != 0 && x[1] != 0)
FOLDED(either, x[0] != 0 || x[1] != 0)
FOLDED(one_of, (x[0] != 0) != (x[1] != 0))
FOLDED(negated, x[0] == 0)
FOLDED(is_nan, isnan(x[0]))
FOLDED(magnitude, fabs(x[0]))
FOLDED(inverse, 1 / x[0])
FOLDED(square_root, sqrt(x[0]))
FOLDED(exponential, exp(x[0]))
FOLDED(logarithm, log(x[0]))
FOLDED(sine, sin(x[0]))
FOLDED(cosine, cos(x[0]))
FOLDED(round_down, floor(x[0]))
FOLDED(round_up, ceil(x[0]))
FOLDED(power, pow(x[0], x[1]))
FOLDED(chosen, x[0] != 0 ? x[1] : x[2])
FOLDED(remainder_of, x[1] == 0 ? 0 : x[0] - x[1] * floor(x[0] / x[1]))
FOLDED(remainder_c, x[1] == 0 ? 0 : fmod(x[0], x[1]))

static double greatest(const double *x, int n)
{
    double most = x[0];

    for (int i = 1; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

static double smallest(const double *x, int n)
{
    double least = x[0];

    for (int i = 1; i < n; i++)
        least = x[i] < least ? x[i] : least;
    return least;
}

static const struct function {
    const char *op;
    int least, most; /* inputs */
    bool truth;      /* the result is true or false, else of the first input's kind */
    ghp_onnx_function *of;
} functions[] = {{"Equal", 2, 2, true, equal},
                 {"Less", 2, 2, true, less},
                 {"LessOrEqual", 2, 2, true, less_or_equal},
                 {"Greater", 2, 2, true, greater},
                 {"GreaterOrEqual", 2, 2, true, greater_or_equal},
                 {"And", 2, 2, true, both},
                 {"Or", 2, 2, true, either},
                 {"Xor", 2, 2, true, one_of},
                 {"Not", 1, 1, true, negated},
                 {"IsNaN", 1, 1, true, is_nan},
                 {"Abs", 1, 1, false, magnitude},
                 {"Reciprocal", 1, 1, false, inverse},
                 {"Sqrt", 1, 1, false, square_root},
                 {"Exp", 1, 1, false, exponential},
                 {"Log", 1, 1, false, logarithm},
                 {"Sin", 1, 1, false, sine},
                 {"Cos", 1, 1, false, cosine},
                 {"Floor", 1, 1, false, round_down},
                 {"Ceil", 1, 1, false, round_up},
                 {"Pow", 2, 2, false, power},
                 {"Mod", 2, 2, false, remainder_of},
                 {"Max", 1, 1 << 16, false, greatest},
                 {"Min", 1, 1 << 16, false, smallest}};

enum ghp_status ghp_onnx_fold_function(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct function *f = functions;
    struct ghp_onnx_array *first;

    while (strcmp(f->op, node->op) != 0)
        f++;
    if (node->n_inputs < f->least || node->n_inputs > f->most)
        return ghp_onnx_fail(im, node, "has %d inputs; repair the file", node->n_inputs);
    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &first));
    return ghp_onnx_fold(im, node, ghp_onnx_int(node, "fmod", 0) != 0 ? remainder_c : f->of,
                         f->truth || first->base->whole);
}

/* Weights of an attention are always numbers, since each position sees itself. */
static enum ghp_status read_is_nan(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, made;

    GHP_TRY(ghp_onnx_seen_in(im, node, &x));
    if (x->scores == NULL) return ghp_onnx_fold_function(im, node);
    GHP_TRY(ghp_onnx_of_values(im, true, (struct ghp_onnx_sizes){0, NULL}, NULL, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status read_where(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *condition, *branch[2];
    bool uniform;
    double value;
    int n;

    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &condition));
    for (int i = 0; i < 2; i++) {
        branch[i] = ghp_onnx_in(im, node, 1 + i);
        if (branch[i] == NULL)
            return ghp_onnx_fail(im, node, "has no input %d; repair the file", 1 + i);
    }
    if (branch[0]->base != NULL && branch[1]->base != NULL)
        return ghp_onnx_fold(im, node, chosen, branch[0]->base->whole);
    GHP_TRY(ghp_onnx_uniform(im, condition, &uniform, &value));
    if (uniform) {
        struct ghp_onnx_array *kept = branch[value == 0], joint = *kept;

        if (kept->base == NULL && ghp_onnx_joint_dims(kept, condition, &n, joint.dims) &&
            n == kept->n && memcmp(joint.dims, kept->dims, (size_t)n * sizeof(int64_t)) == 0)
            return ghp_onnx_define(im, node, 0, kept);
    }
    for (int i = 0; i < 2; i++)
        if (branch[i]->scores != NULL && branch[1 - i]->base != NULL)
            return ghp_onnx_scores_where(im, node, condition, i == 0);
    return ghp_onnx_fail(im, node,
                         "chooses among what is computed from samples; ghp does so of constants, "
                         "and of the scores of an attention by a mask: leave it out");
}

/* ---- others ---- */

static enum ghp_status read_range(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *from;
    double x[3], *out;
    const double *value;
    int64_t n;

    for (int i = 0; i < 3; i++) {
        GHP_TRY(ghp_onnx_constant_in(im, node, i, &from));
        if (ghp_onnx_elements(from) != 1)
            return ghp_onnx_fail(im, node, "has no single number as input %d; repair the file", i);
        GHP_TRY(ghp_onnx_values(im, from, &value));
        x[i] = value[0];
    }
    if (!(fabs((x[1] - x[0]) / x[2]) <= 1 << 24))
        return ghp_onnx_fail(im, node, "counts more than 2^24 numbers; use fewer");
    n = (int64_t)ceil((x[1] - x[0]) / x[2]);
    n = n > 0 ? n : 0;
    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &from));
    out = ghp_alloc((size_t)n + 1, sizeof *out);
    if (out == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < n; i++)
        out[i] = x[0] + (double)i * x[2];
    return ghp_onnx_folded(im, node, from->base->whole, (struct ghp_onnx_sizes){1, &n}, out);
}

/* A constant's values, to be changed; the caller frees them. */
static enum ghp_status copy_of_values(struct ghp_onnx_import *im, const struct ghp_onnx_array *x,
                                      double **copy)
{
    size_t n = (size_t)ghp_onnx_elements(x);
    const double *values;

    GHP_TRY(ghp_onnx_values(im, x, &values));
    *copy = ghp_alloc(n + 1, sizeof **copy);
    if (*copy == NULL) return GHP_NO_MEMORY();
    memcpy(*copy, values, n * sizeof **copy);
    return GHP_OK;
}

/* Sums along an axis, of all up to each element; exclusive: of those before it; reverse: from the end. */
static enum ghp_status read_cumulated(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    bool reverse = ghp_onnx_int(node, "reverse", 0) != 0;
    bool exclusive = ghp_onnx_int(node, "exclusive", 0) != 0;
    struct ghp_onnx_array *x;
    int64_t axes[GHP_ONNX_MAX_DIMS * 2], inner = 1, size;
    double *out;
    int n, axis;

    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){1, ""}, axes, &n));
    if (n != 1) return ghp_onnx_fail(im, node, "sums along no axis, or along several; name one");
    GHP_TRY(ghp_onnx_axis(im, node, axes[0], x->n, &axis));
    GHP_TRY(copy_of_values(im, x, &out));
    size = x->dims[axis];
    for (int d = axis + 1; d < x->n; d++)
        inner *= x->dims[d];
    for (int64_t run = 0; size > 0 && run < ghp_onnx_elements(x) / size; run++) {
        int64_t first = run / inner * inner * size + run % inner;
        double sum = 0, value;

        for (int64_t k = 0; k < size; k++) {
            double *at = &out[first + (reverse ? size - 1 - k : k) * inner];

            value = *at;
            *at = exclusive ? sum : sum + value;
            sum += value;
        }
    }
    return ghp_onnx_folded(im, node, x->base->whole, (struct ghp_onnx_sizes){x->n, x->dims}, out);
}

static enum ghp_status read_trilu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    bool upper = ghp_onnx_int(node, "upper", 1) != 0;
    struct ghp_onnx_array *x;
    int64_t k[GHP_ONNX_MAX_DIMS * 2] = {0}, columns, rows;
    double *out;
    int n;

    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){1, ""}, k, &n));
    if (x->n < 2 || n > 1)
        return ghp_onnx_fail(im, node, "takes a triangle of no matrix; repair the file");
    GHP_TRY(copy_of_values(im, x, &out));
    rows = x->dims[x->n - 2];
    columns = x->dims[x->n - 1];
    for (int64_t i = 0; i < ghp_onnx_elements(x); i++) {
        int64_t from = i / columns % rows, to = i % columns;

        if (upper ? to - from < k[0] : to - from > k[0]) out[i] = 0;
    }
    return ghp_onnx_folded(im, node, x->base->whole, (struct ghp_onnx_sizes){x->n, x->dims}, out);
}

/* The place in x of the run that `depth` whole numbers name; -1 if it is beyond its axes. */
static int64_t place_of(const struct ghp_onnx_array *x, const double *numbers, int64_t depth)
{
    int64_t at = 0;

    for (int64_t d = 0; d < depth; d++) {
        double number = numbers[d] + (numbers[d] < 0 ? (double)x->dims[d] : 0);

        if (!(number >= 0 && number < (double)x->dims[d])) return -1;
        at = at * x->dims[d] + (int64_t)number;
    }
    return at;
}

/* Places of a table's first axes, each by as many numbers as there are axes. */
static enum ghp_status read_gather_nd(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, *places;
    int64_t dims[GHP_ONNX_MAX_DIMS], each = 1, runs = 1, depth;
    const double *from, *place;
    double *out;
    int n;

    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &places));
    depth = places->n > 0 ? places->dims[places->n - 1] : 0;
    n = places->n - 1 + x->n - (int)depth;
    if (ghp_onnx_int(node, "batch_dims", 0) != 0 || depth < 1 || depth > x->n ||
        n > GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node, "takes from axes that ghp does not follow; fold it");
    for (int d = 0; d < n; d++)
        dims[d] = d < places->n - 1 ? places->dims[d] : x->dims[d - (places->n - 1) + (int)depth];
    if (!ghp_onnx_sized(n, dims))
        return ghp_onnx_fail(im, node, "makes too large a constant; fold it in the file");
    GHP_TRY(ghp_onnx_is_derived(x) ? ghp_onnx_places(im, x, &from)
                                   : ghp_onnx_values(im, x, &from));
    GHP_TRY(ghp_onnx_values(im, places, &place));
    for (int d = (int)depth; d < x->n; d++)
        each *= x->dims[d];
    runs = ghp_onnx_elements(places) / depth;
    if (each > GHP_ONNX_MAX_FOLDED || runs * each > GHP_ONNX_MAX_FOLDED)
        return ghp_onnx_fail(im, node, "makes a constant of more than 2^24 elements; use a weight");
    out = ghp_alloc((size_t)(runs * each) + 1, sizeof *out);
    if (out == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < runs; i++) {
        int64_t at = place_of(x, place + i * depth, depth);

        if (at < 0) {
            free(out);
            return ghp_onnx_fail(im, node, "takes from places beyond its axes; repair it");
        }
        memcpy(out + i * each, from + at * each, (size_t)each * sizeof *out);
    }
    GHP_TRY(ghp_onnx_folded(im, node, x->base->whole, (struct ghp_onnx_sizes){n, dims}, out));
    if (ghp_onnx_is_derived(x)) ghp_onnx_derive_places(im, node, x);
    return GHP_OK;
}

/* A table with some of its elements replaced, as masks are written that are filled part by part. Those of a parameter
 * are held. */
static enum ghp_status read_scatter_nd(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, *places, *updates;
    const double *from, *place, *value;
    int64_t depth, runs, each = 1, n;
    double *out;
    bool *held;

    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &places));
    GHP_TRY(ghp_onnx_constant_in(im, node, 2, &updates));
    depth = places->n > 0 ? places->dims[places->n - 1] : 0;
    n = ghp_onnx_elements(x);
    if (strcmp(ghp_onnx_text(node, "reduction", "none"), "none") != 0 || depth < 1 ||
        depth > x->n || n > GHP_ONNX_MAX_FOLDED)
        return ghp_onnx_fail(im, node,
                             "replaces elements in a way that ghp does not follow; fold "
                             "it in the file");
    for (int64_t d = depth; d < x->n; d++)
        each *= x->dims[d];
    runs = ghp_onnx_elements(places) / depth;
    if (ghp_onnx_elements(updates) != runs * each)
        return ghp_onnx_fail(im, node, "has values of another number than places; repair the file");
    GHP_TRY(ghp_onnx_values(im, x, &from));
    GHP_TRY(ghp_onnx_values(im, places, &place));
    GHP_TRY(ghp_onnx_values(im, updates, &value));
    held = ghp_onnx_keep(im, (size_t)n, sizeof *held);
    out = held != NULL ? ghp_alloc((size_t)n + 1, sizeof *out) : NULL;
    if (out == NULL) return GHP_NO_MEMORY();
    memcpy(out, from, (size_t)n * sizeof *out);
    for (int64_t i = 0; i < runs; i++) {
        int64_t at = place_of(x, place + i * depth, depth);

        if (at < 0) {
            free(out);
            return ghp_onnx_fail(im, node, "puts values beyond its axes; repair the file");
        }
        memcpy(out + at * each, value + i * each, (size_t)each * sizeof *out);
        memset(held + at * each, 1, (size_t)each * sizeof *held);
    }
    GHP_TRY(ghp_onnx_folded(im, node, x->base->whole, (struct ghp_onnx_sizes){x->n, x->dims}, out));
    if (ghp_onnx_role_may_train(x) && x->base->held == NULL && ghp_onnx_role_is_number(updates) &&
        ghp_onnx_named(im, node->outputs[0])->base->elements == n)
        ghp_onnx_role_hold(x, ghp_onnx_named(im, node->outputs[0]), held);
    return GHP_OK;
}

/* At each place of the output the element whose number on one axis is said there. */
static enum ghp_status read_gather_elements(struct ghp_onnx_import *im,
                                            const struct ghp_onnx_node *node)
{
    struct ghp_onnx_array *x, *places;
    int64_t index[GHP_ONNX_MAX_DIMS] = {0}, at = 0, n;
    const double *from, *place;
    double *out;
    int axis;
    bool fits;

    GHP_TRY(ghp_onnx_constant_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &places));
    GHP_TRY(ghp_onnx_axis(im, node, ghp_onnx_int(node, "axis", 0), x->n, &axis));
    fits = x->n == places->n;
    for (int d = 0; fits && d < x->n; d++)
        fits = d == axis || places->dims[d] <= x->dims[d];
    n = ghp_onnx_elements(places);
    if (!fits || n > GHP_ONNX_MAX_FOLDED)
        return ghp_onnx_fail(im, node, "takes by places of another shape; repair the file");
    GHP_TRY(ghp_onnx_base_values(im, x->base, &from));
    GHP_TRY(ghp_onnx_values(im, places, &place));
    out = ghp_alloc((size_t)n + 1, sizeof *out);
    if (out == NULL) return GHP_NO_MEMORY();
    for (int64_t i = 0; i < n; i++) {
        double value = place[i] + (place[i] < 0 ? (double)x->dims[axis] : 0);

        if (!(value >= 0 && value < (double)x->dims[axis])) {
            free(out);
            return ghp_onnx_fail(im, node, "takes from places beyond its axis; repair the file");
        }
        at = x->offset + ((int64_t)value - index[axis]) * x->strides[axis];
        for (int d = 0; d < x->n; d++)
            at += index[d] * x->strides[d];
        out[i] = from != NULL ? from[at] : x->base->fill;
        for (int d = x->n - 1; d >= 0 && ++index[d] == places->dims[d]; --d)
            index[d] = 0;
    }
    return ghp_onnx_folded(im, node, x->base->whole,
                           (struct ghp_onnx_sizes){places->n, places->dims}, out);
}

#define FUNCTION(op, known)                                                                        \
    {                                                                                              \
        .name = op, .since = 1, .attributes = known, .folds = true, .read = ghp_onnx_fold_function \
    }

const struct ghp_onnx_operator ghp_onnx_fold_rows[] = {
    FUNCTION("Equal", ""),
    FUNCTION("Less", ""),
    FUNCTION("LessOrEqual", ""),
    FUNCTION("Greater", ""),
    FUNCTION("GreaterOrEqual", ""),
    FUNCTION("And", ""),
    FUNCTION("Or", ""),
    FUNCTION("Xor", ""),
    FUNCTION("Not", ""),
    FUNCTION("Floor", ""),
    FUNCTION("Ceil", ""),
    FUNCTION("Mod", "fmod "),
    {.name = "IsNaN", .since = 9, .attributes = "", .folds = true, .read = read_is_nan},
    {.name = "Where", .since = 9, .attributes = "", .read = read_where},
    {.name = "Range", .since = 11, .attributes = "", .folds = true, .read = read_range},
    {.name = "CumSum",
     .since = 11,
     .attributes = "exclusive reverse ",
     .folds = true,
     .read = read_cumulated},
    {.name = "Trilu", .since = 14, .attributes = "upper ", .folds = true, .read = read_trilu},
    {.name = "GatherElements",
     .since = 11,
     .attributes = "axis ",
     .folds = true,
     .read = read_gather_elements},
    {.name = "GatherND",
     .since = 11,
     .attributes = "batch_dims ",
     .folds = true,
     .read = read_gather_nd},
    {.name = "ScatterND",
     .since = 11,
     .attributes = "reduction ",
     .folds = true,
     .read = read_scatter_nd},
    {0}};
