/* onnx/operator/scores.c - see scores.h. */
#include "onnx/operator/scores.h"

#include "core/model/attention.h"
#include "core/model/window_attention.h"
#include "onnx/operator/attention.h"
#include "onnx/operator/derived.h"
#include "onnx/operator/operator.h"
#include "onnx/operator/product.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/role.h"

#include <string.h>

bool ghp_onnx_scores_with_constant(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int *at)
{
    for (*at = 0; *at < 2; ++*at) {
        const struct ghp_onnx_array *x = ghp_onnx_in(im, node, *at);
        const struct ghp_onnx_array *c = ghp_onnx_in(im, node, 1 - *at);

        if (x != NULL && c != NULL && x->scores != NULL && c->base != NULL) return true;
    }
    return false;
}

/* Output 0 is the scores of an input, changed. */
static enum ghp_status hand_on(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int at,
                               struct ghp_onnx_scores scores)
{
    struct ghp_onnx_array made = *ghp_onnx_in(im, node, at);
    struct ghp_onnx_scores *kept = ghp_onnx_keep(im, 1, sizeof *kept);

    if (kept == NULL) return GHP_NO_MEMORY();
    *kept = scores;
    made.scores = kept;
    return ghp_onnx_define(im, node, 0, &made);
}

/* Whether a constant mask over scores is causal. */
static enum ghp_status read_mask(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 const struct ghp_onnx_array *mask, enum ghp_onnx_mask kind,
                                 const struct ghp_onnx_scores *scores, bool *causal)
{
    const int64_t sides[2] = {scores->q.dims[scores->q.n - 2], scores->k.dims[scores->k.n - 2]};

    return ghp_onnx_mask_read(im, node, mask, kind, sides, causal);
}

/* Scores before the softmax; what is done to weights is not followed. */
static enum ghp_status scores_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 int at, struct ghp_onnx_scores *scores)
{
    *scores = *ghp_onnx_in(im, node, at)->scores;
    if (!scores->weights) return GHP_OK;
    return ghp_onnx_fail(im, node,
                         "changes weights of an attention after its softmax; ghp multiplies "
                         "values by them as they are");
}

/* The same, to be multiplied. */
static enum ghp_status products_in(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   int at, struct ghp_onnx_scores *scores)
{
    GHP_TRY(scores_in(im, node, at, scores));
    if (scores->table.name == NULL && scores->computed_table == 0 && scores->hidden == NULL)
        return GHP_OK;
    return ghp_onnx_fail(im, node,
                         "multiplies scores to which numbers were added; ghp multiplies the "
                         "products alone: scale them first");
}

/* Scores plus numbers for each place of a key relative to its query, [heads][queries][keys], which layers compute. */
static enum ghp_status plus_computed(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *c, struct ghp_onnx_scores *scores)
{
    int64_t pixels = scores->q.dims[scores->q.n - 2], heads = scores->q.dims[scores->q.n - 3];
    const struct ghp_shape table = im->model.layers[c->base->derived - 1].out;
    const double *places;
    bool fits = ghp_onnx_elements(c) == heads * pixels * pixels && table.c == heads &&
                table.axes == GHP_AXES_SEQUENCE && scores->table.name == NULL &&
                scores->computed_table == 0;

    GHP_TRY(ghp_onnx_places(im, c, &places));
    for (int64_t h = 1; fits && h <= pixels && h <= GHP_WINDOW_MOST; h++) {
        struct ghp_tiles tiles = {.h = h, .w = pixels / h};
        bool same = h * tiles.w == pixels && ghp_window_offsets(&tiles) == table.h;

        for (int64_t i = 0; same && i < heads * pixels * pixels; i++)
            same =
                places[i] == (double)(i / pixels / pixels * table.h +
                                      ghp_window_offset(&tiles, i / pixels % pixels, i % pixels));
        if (!same) continue;
        scores->computed_table = c->base->derived;
        scores->tiles = tiles;
        return GHP_OK;
    }
    return ghp_onnx_fail(
        im, node,
        "adds to scores what is computed of parameters otherwise than by the place "
        "of a key relative to its query in a window; add a parameter in its place");
}

/* Another mask over the scores. */
static enum ghp_status put_mask(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                int at, const struct ghp_onnx_array *mask, enum ghp_onnx_mask kind)
{
    struct ghp_onnx_scores scores;
    bool causal;

    GHP_TRY(scores_in(im, node, at, &scores));
    GHP_TRY(read_mask(im, node, mask, kind, &scores, &causal));
    scores.causal = scores.causal || causal;
    return hand_on(im, node, at, scores);
}

enum ghp_status ghp_onnx_scores_plus(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     int at, int sign)
{
    const struct ghp_onnx_array *c = ghp_onnx_in(im, node, 1 - at);
    struct ghp_onnx_scores scores;

    GHP_TRY(scores_in(im, node, at, &scores));
    if (sign > 0 && ghp_onnx_is_derived(c))
        GHP_TRY(plus_computed(im, node, c, &scores));
    else if (sign > 0 && ghp_onnx_windows_is_bias(im, c))
        GHP_TRY(ghp_onnx_windows_bias(im, node, c, &scores));
    else if (sign > 0 && ghp_onnx_windows_is_mask(&scores, c))
        GHP_TRY(ghp_onnx_windows_mask(im, node, c, &scores));
    else
        return put_mask(im, node, at, c, sign > 0 ? GHP_ONNX_MASK_ADDED : GHP_ONNX_MASK_TAKEN);
    return hand_on(im, node, at, scores);
}

enum ghp_status ghp_onnx_scores_reshaped(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node, int n,
                                         const int64_t *dims)
{
    struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0), made;

    if (!ghp_onnx_regroup(x, n, dims, &made) || made.n != x->n || made.lead != x->lead ||
        memcmp(made.dims, x->dims, (size_t)x->n * sizeof *x->dims) != 0)
        return ghp_onnx_check_plain(im, node, x);
    return ghp_onnx_define(im, node, 0, &made);
}

enum ghp_status ghp_onnx_scores_where(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      const struct ghp_onnx_array *condition, bool keeps)
{
    int at = keeps ? 1 : 2;
    bool uniform;
    double hidden;

    GHP_TRY(ghp_onnx_uniform(im, ghp_onnx_in(im, node, 3 - at), &uniform, &hidden));
    if (!uniform || !(hidden <= -1e4))
        return ghp_onnx_fail(im, node,
                             "puts other numbers than -10000 or less where scores are hidden; ghp "
                             "hides them altogether");
    return put_mask(im, node, at, condition, keeps ? GHP_ONNX_MASK_KEEPS : GHP_ONNX_MASK_HIDES);
}

enum ghp_status ghp_onnx_scores_times(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                      int at)
{
    const struct ghp_onnx_array *by = ghp_onnx_in(im, node, 1 - at);
    struct ghp_onnx_scores scores;
    bool uniform, causal;
    double value;

    GHP_TRY(scores_in(im, node, at, &scores));
    GHP_TRY(ghp_onnx_uniform(im, by, &uniform, &value));
    if (uniform && value != 0) {
        if (by->base->computed) return ghp_onnx_role_fail_computed(im, node, by);
        GHP_TRY(products_in(im, node, at, &scores));
        scores.scale *= value;
        return hand_on(im, node, at, scores);
    }
    GHP_TRY(read_mask(im, node, by, GHP_ONNX_MASK_KEEPS, &scores, &causal));
    scores.zeroed = true;
    return hand_on(im, node, at, scores);
}

enum ghp_status ghp_onnx_scores_times_heads(struct ghp_onnx_import *im,
                                            const struct ghp_onnx_node *node, int at)
{
    const struct ghp_onnx_array *c = ghp_onnx_in(im, node, 1 - at);
    struct ghp_onnx_scores scores;
    struct ghp_onnx_array factors;
    const double *places;
    int64_t n = ghp_onnx_elements(c);

    GHP_TRY(products_in(im, node, at, &scores));
    if (scores.factors > 0)
        return ghp_onnx_fail(
            im, node, "multiplies each head of scores twice; multiply the factors in the module");
    GHP_TRY(ghp_onnx_derived_of(im, node, c, &factors));
    GHP_TRY(ghp_onnx_places(im, &factors, &places));
    scores.factors = factors.base->derived;
    scores.first_factor = (int64_t)places[0];
    scores.factor_step = n > 1 ? (int64_t)(places[1] - places[0]) : 0;
    for (int64_t i = 1; i < n; i++)
        if (places[i] != places[0] + (double)(i * scores.factor_step))
            return ghp_onnx_fail(im, node,
                                 "multiplies heads of scores by factors that are not one after the "
                                 "other; give a parameter with one for each head");
    return hand_on(im, node, at, scores);
}

enum ghp_status ghp_onnx_scores_over(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *by = ghp_onnx_in(im, node, 1);
    struct ghp_onnx_scores scores;
    bool uniform;
    double value;

    GHP_TRY(products_in(im, node, 0, &scores));
    GHP_TRY(ghp_onnx_uniform(im, by, &uniform, &value));
    if (by->base->computed) return ghp_onnx_role_fail_computed(im, node, by);
    if (!uniform || value == 0)
        return ghp_onnx_fail(
            im, node, "divides scores of an attention by zero or by several numbers; use one");
    scores.scale /= value;
    return hand_on(im, node, 0, scores);
}

enum ghp_status ghp_onnx_scores_softmax(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node, int axis)
{
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0);
    int64_t seen[GHP_ONNX_MAX_DIMS];
    struct ghp_onnx_scores scores;

    GHP_TRY(scores_in(im, node, 0, &scores));
    if (axis != ghp_onnx_seen(x, seen) - 1 || strcmp(node->op, "Softmax") != 0)
        return ghp_onnx_fail(im, node,
                             "is a softmax of scores over another axis than the keys, or its "
                             "logarithm; ghp takes it over the last axis");
    if (scores.zeroed && !scores.causal)
        return ghp_onnx_fail(im, node,
                             "takes scores that a mask made zeros and none hides; add -10000 to "
                             "them in the file");
    scores.weights = true;
    return hand_on(im, node, 0, scores);
}

enum ghp_status ghp_onnx_scores_drop(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     double ratio)
{
    struct ghp_onnx_scores scores = *ghp_onnx_in(im, node, 0)->scores;

    if (!scores.weights || scores.dropout > 0)
        return ghp_onnx_fail(im, node,
                             "drops scores of an attention before its softmax, or weights twice; "
                             "ghp drops weights once, after the softmax: drop them there");
    scores.dropout = ratio;
    return hand_on(im, node, 0, scores);
}

/* ---- products ---- */

/* turned    keys come with channels before positions */
static enum ghp_status begin_scores(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    bool turned)
{
    struct ghp_onnx_scores *scores = ghp_onnx_keep(im, 1, sizeof *scores);
    struct ghp_onnx_array *q, *k, made;
    struct ghp_onnx_heads of_q, of_k;

    if (scores == NULL) return GHP_NO_MEMORY();
    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &q));
    GHP_TRY(ghp_onnx_joined_in(im, node, 1, &k));
    *scores = (struct ghp_onnx_scores){.q = *q, .k = *k, .scale = 1};
    if (turned && k->n > 1) ghp_onnx_turn_last(&scores->k);
    GHP_TRY(ghp_onnx_heads_of(im, node, &scores->q, 0, "input 0", &of_q));
    GHP_TRY(ghp_onnx_heads_of(im, node, &scores->k, 0, "input 1", &of_k));
    made = *q;
    made.dims[made.n - 1] = of_k.positions;
    made.scores = scores;
    return ghp_onnx_define(im, node, 0, &made);
}

/* Scores if the tensors have heads, else their product. */
static enum ghp_status begin(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                             bool turned)
{
    enum ghp_status status = begin_scores(im, node, turned);

    return status == GHP_ERR_INPUT ? ghp_onnx_multiply(im, node, turned) : status;
}

enum ghp_status ghp_onnx_scores_product(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *weights = ghp_onnx_in(im, node, 0);
    struct ghp_onnx_attended of = {.scale = 0};
    struct ghp_onnx_array *v;

    if (weights->scores == NULL || !weights->scores->weights) return begin(im, node, true);
    GHP_TRY(ghp_onnx_joined_in(im, node, 1, &v));
    of.x[0] = weights->scores->q;
    of.x[1] = weights->scores->k;
    of.x[2] = *v;
    of.scale = weights->scores->scale;
    of.causal = weights->scores->causal;
    of.dropout = weights->scores->dropout;
    of.table = weights->scores->table;
    of.tiles = weights->scores->tiles;
    of.hidden = weights->scores->hidden;
    of.computed_table = weights->scores->computed_table;
    of.factors = weights->scores->factors;
    of.first_factor = weights->scores->first_factor;
    of.factor_step = weights->scores->factor_step;
    return ghp_onnx_attend(im, node, &of);
}

/* What stands for the axes of two tensors and of their product, such as bhid,bhjd->bhij. */
struct equation {
    char text[3 * (GHP_ONNX_MAX_DIMS + 1)];
    const char *a, *b, *out;
    size_t n;   /* letters of a */
    bool heads; /* b and out have as many, and the same before the last two */
};

static bool has_letter_twice(const char *letters)
{
    for (; *letters != '\0'; letters++)
        if (strchr(letters + 1, *letters) != NULL) return true;
    return false;
}

/* Takes an equation apart; false if it is not of two tensors, each with its axes once. */
static bool take_apart(const char *text, struct equation *e)
{
    char *comma, *arrow;
    size_t n = 0;

    *e = (struct equation){.a = e->text};
    for (; *text != '\0' && n < sizeof e->text - 1; text++)
        if (*text != ' ') e->text[n++] = *text;
    comma = strchr(e->text, ',');
    arrow = strstr(e->text, "->");
    if (*text != '\0' || comma == NULL || arrow == NULL || comma > arrow ||
        strchr(e->text, '.') != NULL)
        return false;
    *comma = *arrow = '\0';
    e->n = strlen(e->a);
    e->b = comma + 1;
    e->out = arrow + 2;
    e->heads = e->n >= 3 && strlen(e->b) == e->n && strlen(e->out) == e->n &&
               memcmp(e->a, e->b, e->n - 2) == 0 && memcmp(e->a, e->out, e->n - 2) == 0;
    return !has_letter_twice(e->a) && !has_letter_twice(e->b) && !has_letter_twice(e->out);
}

static enum ghp_status read_einsum(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *a = ghp_onnx_in(im, node, 0), *b = ghp_onnx_in(im, node, 1);
    struct equation e;
    const char *row, *column, *out;

    if (node->n_inputs != 2 || a == NULL || b == NULL ||
        !take_apart(ghp_onnx_text(node, "equation", ""), &e))
        return ghp_onnx_fail(im, node, "is not a sum of products of two tensors; %s",
                             ghp_onnx_operator_instead("Einsum"));
    if (e.heads && a->base == NULL && b->base == NULL) {
        row = e.a + e.n - 2;
        column = e.b + e.n - 2;
        out = e.out + e.n - 2;
        if (row[1] == column[0] && out[0] == row[0] && out[1] == column[1])
            return ghp_onnx_scores_product(im, node);
        if (row[1] == column[1] && out[0] == row[0] && out[1] == column[0] && a->scores == NULL)
            return begin(im, node, false);
    }
    return ghp_onnx_sum_of_products(im, node, e.a, e.b, e.out);
}

/* ---- writing: windows of an image, for which ONNX does not have an operator ---- */

static const char *written(struct ghp_onnx_export *ex, const char *op, const char *name,
                           const char *a, const char *b)
{
    const char *const inputs[] = {a, b, NULL};

    ghp_export_node(ex, op, name, inputs);
    return name;
}

/* An input of a layer as [sample][window][head] of matrices: [pixel][channel], or the other way round if turned. */
static const char *write_heads(struct ghp_onnx_export *ex, const struct ghp_layer *l, int input,
                               bool turned)
{
    static const char *const names[3] = {".queries", ".keys", ".values"};
    static const int64_t order[2][5] = {{0, 1, 3, 2, 4}, {0, 1, 3, 4, 2}};
    int64_t pixels = l->tiles.h * l->tiles.w;
    const int64_t dims[5] = {0, l->in.h / pixels, pixels, l->heads.n, l->heads.size};
    const char *name = ghp_export_text(ex, l->name, names[input]),
               *parted = ghp_export_text(ex, name, ".parted");

    written(ex, "Reshape", parted, ex->names[l->inputs[input]],
            ghp_export_numbers(ex, ghp_export_text(ex, name, ".sizes"), dims, 5));
    return ghp_export_turned(ex, name, parted, order[turned], 5);
}

/* The table's numbers as [head][query][key]. */
static const char *write_table(struct ghp_onnx_export *ex, const struct ghp_layer *l)
{
    static const int64_t order[3] = {2, 0, 1};
    int64_t pixels = l->tiles.h * l->tiles.w;
    const int64_t dims[3] = {pixels, pixels, l->heads.n};
    const char *name = ghp_export_text(ex, l->name, ".places"),
               *found = ghp_export_text(ex, name, ".found"),
               *parted = ghp_export_text(ex, name, ".parted");
    int64_t *rows = ghp_export_keep(ex, (size_t)(pixels * pixels), sizeof *rows);

    for (int64_t i = 0; rows != NULL && i < pixels * pixels; i++)
        rows[i] = ghp_window_offset(&l->tiles, i / pixels, i % pixels);
    if (rows == NULL) return "";
    written(
        ex, "Gather", found, ghp_export_owner(ex, l)->params[0].name,
        ghp_export_numbers(ex, ghp_export_text(ex, name, ".rows"), rows, (int)(pixels * pixels)));
    written(ex, "Reshape", parted, found,
            ghp_export_numbers(ex, ghp_export_text(ex, name, ".sizes"), dims, 3));
    return ghp_export_turned(ex, name, parted, order, 3);
}

/* What hides pixels of both ends of a rolled image from each other, as [window][1][query][key]. */
static const char *write_hidden(struct ghp_onnx_export *ex, const struct ghp_layer *l)
{
    int64_t pixels = l->tiles.h * l->tiles.w, windows = l->in.h / pixels;
    const int64_t dims[4] = {windows, 1, pixels, pixels};
    float *values = ghp_export_keep(ex, (size_t)(windows * pixels * pixels), sizeof *values);

    for (int64_t i = 0; values != NULL && i < windows * pixels * pixels; i++)
        values[i] = ghp_window_sees(&l->tiles, i / pixels / pixels, windows, i / pixels % pixels,
                                    i % pixels)
                        ? 0
                        : -1e4f;
    return ghp_export_floats(ex, ghp_export_text(ex, l->name, ".hidden"), dims, 4, values);
}

static enum ghp_status write_windows(struct ghp_onnx_export *ex, int i)
{
    static const int64_t order[5] = {0, 1, 3, 2, 4};
    const struct ghp_layer *l = &ex->model->layers[i];
    const int64_t dims[3] = {0, l->in.h, l->in.c};
    const char *q = write_heads(ex, l, 0, false), *k = write_heads(ex, l, 1, true),
               *v = write_heads(ex, l, 2, false), *scores;

    if (l->n_inputs > 3)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%s' (window_attention) reads a table of each sample, which ghp does "
            "not write as ONNX; load the checkpoint into the module, as "
            "docs/how-to/weights-back.md does",
            l->name);
    GHP_TRY(ghp_export_param_of(ex, l, 0, 0));
    scores = written(ex, "MatMul", ghp_export_text(ex, l->name, ".products"), q, k);
    scores = written(ex, "Mul", ghp_export_text(ex, l->name, ".scaled"), scores,
                     ghp_export_number(ex, ghp_export_text(ex, l->name, ".scale"),
                                       ghp_attention_scale(&l->heads)));
    scores =
        written(ex, "Add", ghp_export_text(ex, l->name, ".placed"), scores, write_table(ex, l));
    if (l->tiles.shift_h + l->tiles.shift_w > 0)
        scores =
            written(ex, "Add", ghp_export_text(ex, l->name, ".seen"), scores, write_hidden(ex, l));
    scores = written(ex, "Softmax", ghp_export_text(ex, l->name, ".weights"), scores, NULL);
    scores = written(ex, "MatMul", ghp_export_text(ex, l->name, ".means"), scores, v);
    scores = ghp_export_turned(ex, ghp_export_text(ex, l->name, ".turned"), scores, order, 5);
    written(ex, "Reshape", l->name, scores,
            ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".sizes"), dims, 3));
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_scores[] = {
    {.name = "Einsum", .since = 12, .attributes = "equation ", .read = read_einsum},
    {.name = "Softmax", .since = 13, .op = GHP_OP_WINDOW_ATTENTION, .write = write_windows},
    {0}};
