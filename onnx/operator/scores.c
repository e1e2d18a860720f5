/* onnx/operator/scores.c - see scores.h. */
#include "onnx/operator/scores.h"

#include "onnx/operator/attention.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"

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

static int64_t positions_of(const struct ghp_onnx_scores *scores)
{
    return scores->q.dims[scores->q.n - 2];
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

/* Another mask over the scores. */
static enum ghp_status put_mask(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                int at, const struct ghp_onnx_array *mask, enum ghp_onnx_mask kind)
{
    struct ghp_onnx_scores scores;
    bool causal;

    GHP_TRY(scores_in(im, node, at, &scores));
    GHP_TRY(ghp_onnx_mask_read(im, node, mask, kind, positions_of(&scores), &causal));
    scores.causal = scores.causal || causal;
    return hand_on(im, node, at, scores);
}

enum ghp_status ghp_onnx_scores_plus(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     int at, int sign)
{
    const struct ghp_onnx_array *c = ghp_onnx_in(im, node, 1 - at);
    struct ghp_onnx_scores scores;

    GHP_TRY(scores_in(im, node, at, &scores));
    if (sign > 0 && ghp_onnx_windows_is_bias(im, c))
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
        scores.scale *= value;
        return hand_on(im, node, at, scores);
    }
    GHP_TRY(ghp_onnx_mask_read(im, node, by, GHP_ONNX_MASK_KEEPS, positions_of(&scores), &causal));
    scores.zeroed = true;
    return hand_on(im, node, at, scores);
}

enum ghp_status ghp_onnx_scores_over(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_scores scores;
    bool uniform;
    double value;

    GHP_TRY(scores_in(im, node, 0, &scores));
    GHP_TRY(ghp_onnx_uniform(im, ghp_onnx_in(im, node, 1), &uniform, &value));
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

/* Keys come with channels before positions. */
static void turn_last(struct ghp_onnx_array *x)
{
    int order[GHP_ONNX_MAX_DIMS];

    for (int i = 0; i < x->n; i++)
        order[i] = i < x->n - 2 ? i : 2 * x->n - 3 - i;
    ghp_onnx_permute(x, order);
}

static enum ghp_status begin(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_onnx_scores *scores = ghp_onnx_keep(im, 1, sizeof *scores);
    struct ghp_onnx_array *q, *k, made;
    struct ghp_onnx_heads of_q, of_k;

    if (scores == NULL) return GHP_NO_MEMORY();
    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &q));
    GHP_TRY(ghp_onnx_joined_in(im, node, 1, &k));
    *scores = (struct ghp_onnx_scores){.q = *q, .k = *k, .scale = 1};
    if (k->n < 3)
        return ghp_onnx_fail(im, node,
                             "multiplies two computed matrices; ghp has an attention of "
                             "heads and no other such product");
    turn_last(&scores->k);
    GHP_TRY(ghp_onnx_heads_of(im, node, &scores->q, 0, "input 0", &of_q));
    GHP_TRY(ghp_onnx_heads_of(im, node, &scores->k, 0, "input 1", &of_k));
    if (of_q.positions != of_k.positions)
        return ghp_onnx_fail(im, node,
                             "looks from one sequence at another; ghp has attention of a "
                             "sequence to itself");
    made = *q;
    made.dims[made.n - 1] = of_k.positions;
    made.scores = scores;
    return ghp_onnx_define(im, node, 0, &made);
}

enum ghp_status ghp_onnx_scores_product(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_array *weights = ghp_onnx_in(im, node, 0);
    struct ghp_onnx_attended of = {.scale = 0};
    struct ghp_onnx_array *v;

    if (weights->scores == NULL || !weights->scores->weights) return begin(im, node);
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
    return ghp_onnx_attend(im, node, &of);
}
