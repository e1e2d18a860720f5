/* onnx/operator/product.c - see product.h. */
#include "onnx/operator/product.h"

#include "onnx/operator/embedding.h"
#include "onnx/operator/operator.h"
#include "onnx/operator/rows.h"
#include "onnx/read/attribute.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Elements of a sample that are multiplied: 32 MiB of floats, several times. */
enum { MOST = 1 << 23 };

/* The batch, axes that stay and axes that are summed, the same of both factors; a factor that lacks one has 1. */
struct product {
    struct ghp_onnx_array of[2];
    int stay, summed;
    double scale;
    unsigned joined; /* of the axes that stay, as the file has them */
};

/* The factors at their joint sizes. */
static enum ghp_status spread(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                              struct product *p, int64_t dims[GHP_ONNX_MAX_DIMS])
{
    struct ghp_onnx_array *a = &p->of[0], *b = &p->of[1];
    int n = 1 + p->stay + p->summed;

    dims[0] = im->batch;
    for (int d = 1; d < n; d++)
        dims[d] = a->dims[d] == 1 ? b->dims[d] : a->dims[d];
    if (a->n != n || b->n != n || !ghp_onnx_sized(n, dims) || !ghp_onnx_expand(a, n, dims) ||
        !ghp_onnx_expand(b, n, dims))
        return ghp_onnx_fail(im, node,
                             "multiplies tensors whose sizes do not fit; repair the file");
    if (ghp_onnx_elements(a) <= MOST) return GHP_OK;
    return ghp_onnx_fail(im, node,
                         "is a product of two computed tensors that takes %" PRId64
                         " multiplications a sample; ghp takes at most %d where it is not an "
                         "attention: use fewer positions or channels",
                         ghp_onnx_elements(a), MOST);
}

/* The layer of the sum, an element for each of the axes that stay. */
static enum ghp_status emit_sum(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                struct product *p, int *layer)
{
    struct ghp_onnx_layer_name hint = ghp_onnx_hint(im, node, NULL);
    struct ghp_layer mul = {.op = GHP_OP_MUL, .n_inputs = 2},
                     mean = {.op = GHP_OP_GLOBAL_AVG_POOL, .n_inputs = 1},
                     times = {.op = GHP_OP_ACTIVATION, .n_inputs = 1},
                     copy = {.op = GHP_OP_VIEW, .n_inputs = 1};
    struct ghp_shape shape = {.c = 1, .h = 1, .w = 1};

    for (int d = 1; d < p->of[0].n; d++)
        *(d <= p->stay ? &shape.c : &shape.h) *= p->of[0].dims[d];
    times.activation = (struct ghp_activation){GHP_FUNCTION_AFFINE, p->scale * (double)shape.h, 0};
    for (int i = 0; i < 2; i++) {
        GHP_TRY(ghp_onnx_settle(im, &p->of[i], shape, &copy.inputs[0]));
        mul.inputs[i] = copy.inputs[0];
        if (!ghp_onnx_is_sequence(im, mul.inputs[i]) && (i == 0 || mul.inputs[i] != mul.inputs[0]))
            continue;
        copy.out = shape; /* operations take no layer twice, and no sequence next to an image */
        GHP_TRY(ghp_onnx_view_of(&p->of[i], shape, &copy.view));
        GHP_TRY(ghp_onnx_emit(im, &copy, ghp_onnx_part(hint, ".copy"), &mul.inputs[i]));
    }
    GHP_TRY(ghp_onnx_emit(im, &mul, ghp_onnx_part(hint, ".each"), layer));
    mean.inputs[0] = *layer;
    if (shape.h > 1) GHP_TRY(ghp_onnx_emit(im, &mean, ghp_onnx_part(hint, ".mean"), layer));
    times.inputs[0] = *layer;
    return ghp_onnx_emit(im, &times, hint, layer);
}

static enum ghp_status multiply(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                struct product *p, struct ghp_onnx_array *made)
{
    int64_t dims[GHP_ONNX_MAX_DIMS];
    int layer;

    GHP_TRY(spread(im, node, p, dims));
    GHP_TRY(emit_sum(im, node, p, &layer));
    *made = ghp_onnx_of_layer(im, layer, 1 + p->stay, dims);
    made->joined = p->joined;
    return GHP_OK;
}

/* x with an axis of one element before axis `at`. */
static void insert_axis(struct ghp_onnx_array *x, int at)
{
    size_t n = (size_t)(x->n - at);

    memmove(x->dims + at + 1, x->dims + at, n * sizeof *x->dims);
    memmove(x->strides + at + 1, x->strides + at, n * sizeof *x->strides);
    x->dims[at] = 1;
    x->strides[at] = 0;
    x->n++;
}

/* Lets samples and heads that are one axis, as PyTorch's multi-head attention has them, be two; *joined says so. */
static enum ghp_status part(struct ghp_onnx_import *im, struct ghp_onnx_array *x, unsigned *joined)
{
    bool by_head = x->n == 4 && x->joined == 2u && x->lead == 0;

    *joined = by_head ? x->joined : 0;
    if (!by_head) return ghp_onnx_part_axes(im, x);
    x->joined = 0;
    return GHP_OK;
}

/* [batch][...][rows][summed] times [batch][...][columns][summed] */
static enum ghp_status of_matrices(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   struct ghp_onnx_array a, struct ghp_onnx_array b, double scale,
                                   struct ghp_onnx_array *made)
{
    struct product p = {.summed = 1, .scale = scale};
    unsigned joined[2];

    GHP_TRY(part(im, &a, &joined[0]));
    GHP_TRY(part(im, &b, &joined[1]));
    if (a.n < 3 || a.n != b.n || joined[0] != joined[1] || a.n == GHP_ONNX_MAX_DIMS)
        return ghp_onnx_fail(im, node,
                             "multiplies computed tensors of %d and %d axes; ghp multiplies "
                             "matrices of each sample by themselves: give both batch, rows and "
                             "columns",
                             a.n, b.n);
    p.joined = joined[0];
    p.stay = a.n - 1;
    insert_axis(&a, a.n - 1);
    insert_axis(&b, b.n - 2);
    p.of[0] = a;
    p.of[1] = b;
    return multiply(im, node, &p, made);
}

void ghp_onnx_turn_last(struct ghp_onnx_array *x)
{
    int order[GHP_ONNX_MAX_DIMS];

    for (int i = 0; i < x->n; i++)
        order[i] = i < x->n - 2 ? i : 2 * x->n - 3 - i;
    ghp_onnx_permute(x, order);
}

/* Input i; a constant as a parameter of `rank` axes, the batch in front. */
static enum ghp_status factor_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 int i, int rank, struct ghp_onnx_array *factor)
{
    struct ghp_onnx_array *x = ghp_onnx_in(im, node, i);

    if (x != NULL && x->base != NULL) return ghp_onnx_parameter(im, node, x, rank, factor);
    GHP_TRY(ghp_onnx_joined_in(im, node, i, &x));
    *factor = *x;
    return GHP_OK;
}

enum ghp_status ghp_onnx_multiply(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                  bool turned)
{
    const struct ghp_onnx_array *first = ghp_onnx_in(im, node, 0),
                                *second = ghp_onnx_in(im, node, 1);
    bool vectors = first != NULL && second != NULL && first->base == NULL && first->n == 2 &&
                   second->base != NULL; /* one row a sample */
    struct ghp_onnx_array of[2], made;

    for (int i = 0; i < 2; i++) {
        const struct ghp_onnx_array *other = i == 0 ? second : first;

        GHP_TRY(factor_in(im, node, i, (other != NULL ? other->n : 0) + vectors, &of[i]));
    }
    if (vectors) insert_axis(&of[0], 1);
    if (turned && of[1].n > 1) ghp_onnx_turn_last(&of[1]);
    GHP_TRY(of_matrices(im, node, of[0], of[1], 1, &made));
    if (vectors) {
        made.n = 2;
        made.dims[1] = made.dims[2];
        made.strides[1] = made.strides[2];
    }
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- axes by letters ---- */

/* A factor whose axes are letters, as one with the axes `all`; false if it has others, or one twice. */
static bool by_letters(const struct ghp_onnx_array *x, const char *letters, const char *all,
                       struct ghp_onnx_array *out)
{
    int n = (int)strlen(all);

    *out = *x;
    out->n = n;
    if ((size_t)x->n != strlen(letters)) return false;
    for (int i = 0; i < x->n; i++)
        if (strchr(all, letters[i]) == NULL || strchr(letters + i + 1, letters[i]) != NULL)
            return false;
    for (int i = 0; i < n; i++) {
        const char *at = strchr(letters, all[i]);

        out->dims[i] = at != NULL ? x->dims[at - letters] : 1;
        out->strides[i] = at != NULL ? x->strides[at - letters] : 0;
    }
    return true;
}

enum ghp_status ghp_onnx_sum_of_products(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node, const char *a,
                                         const char *b, const char *out)
{
    const char *const given[2] = {a, b};
    char all[GHP_ONNX_MAX_DIMS + 1] = "", letters[2][GHP_ONNX_MAX_DIMS + 2];
    struct product p = {.stay = (int)strlen(out) - 1, .scale = 1};
    struct ghp_onnx_array made;
    size_t n = strlen(out);
    bool fits = n > 0 && n <= GHP_ONNX_MAX_DIMS && strlen(a) <= GHP_ONNX_MAX_DIMS &&
                strlen(b) <= GHP_ONNX_MAX_DIMS;

    if (fits) memcpy(all, out, n);
    for (int i = 0; fits && i < 2; i++)
        for (const char *at = given[i]; fits && *at != '\0'; at++) {
            if (strchr(all, *at) != NULL) continue;
            fits = n < GHP_ONNX_MAX_DIMS;
            if (fits) all[n++] = *at;
        }
    p.summed = (int)n - 1 - p.stay;
    for (int i = 0; fits && i < 2; i++) {
        struct ghp_onnx_array factor;
        bool batch = given[i][0] == out[0];

        letters[i][0] = out[0];
        snprintf(letters[i] + 1, sizeof letters[i] - 1, "%s", given[i] + batch);
        GHP_TRY(factor_in(im, node, i, (int)strlen(letters[i]), &factor));
        GHP_TRY(ghp_onnx_part_axes(im, &factor));
        fits = (batch || ghp_onnx_in(im, node, i)->base != NULL) &&
               by_letters(&factor, letters[i], all, &p.of[i]);
    }
    if (!fits)
        return ghp_onnx_fail(im, node,
                             "does not keep samples apart, or has an axis twice; write the sum of "
                             "products with the batch first in both tensors and in what is made");
    GHP_TRY(multiply(im, node, &p, &made));
    return ghp_onnx_define(im, node, 0, &made);
}

/* ---- scores ---- */

enum ghp_status ghp_onnx_scores_settle(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       struct ghp_onnx_array *x, bool *done)
{
    const struct ghp_onnx_scores *s = x->scores;
    struct ghp_layer softmax = {.op = GHP_OP_SOFTMAX, .n_inputs = 1},
                     drop = {.op = GHP_OP_DROPOUT, .n_inputs = 1, .norm.ratio = s->dropout};
    struct ghp_onnx_array made;
    unsigned joined;
    int layer;

    *done = !s->causal && !s->zeroed && s->hidden == NULL && s->table.name == NULL &&
            s->computed_table == 0 && s->factors == 0;
    if (!*done) return GHP_OK;
    GHP_TRY(of_matrices(im, node, s->q, s->k, s->scale, &made));
    joined = made.joined;
    made.joined = 0;
    if (s->weights) {
        GHP_TRY(ghp_onnx_rows_in(im, &made, &softmax.inputs[0]));
        GHP_TRY(ghp_onnx_emit(im, &softmax, ghp_onnx_hint(im, node, NULL), &layer));
        drop.inputs[0] = layer;
        if (s->dropout > 0)
            GHP_TRY(ghp_onnx_emit(im, &drop, ghp_onnx_hint(im, node, NULL), &layer));
        made = ghp_onnx_rows_out(im, &made, layer);
    }
    made.joined = joined;
    made.name = x->name;
    *x = made;
    return GHP_OK;
}
