/* planner/make/candidate.c - see make/candidate.h. */
#include "planner/make/candidate.h"

#include <stdlib.h>
#include <string.h>

/* Tried if the request leaves it open [bytes]; the first: each layer alone. */
const int64_t ghp_candidate_bucket_sizes[GHP_CANDIDATE_BUCKET_SIZES] = {
    0,       1 << 18, 1 << 19, 1 << 20, 1 << 21,         1 << 22,
    1 << 23, 1 << 24, 1 << 25, 1 << 26, (int64_t)1 << 50};

bool ghp_candidate_fits(const struct ghp_plan_context *context, int64_t peak_bytes)
{
    return context->request->memory_bytes == 0 || peak_bytes <= context->request->memory_bytes;
}

/* Copies a list of n items of `bytes` bytes each; a copy of NULL is NULL. */
static enum ghp_status copy_list(const void *from, size_t n, size_t bytes, void **to)
{
    if (from == NULL) return GHP_OK;
    *to = ghp_alloc(n, bytes);
    if (*to == NULL) return GHP_NO_MEMORY();
    memcpy(*to, from, n * bytes);
    return GHP_OK;
}

/* Splits, stages and their lists; groups. Nothing is predicted. */
static enum ghp_status copy_plan(const struct ghp_plan_context *s, const struct ghp_split *splits,
                                 const struct ghp_staging *staging, struct ghp_candidate *c)
{
    size_t layers = (size_t)s->model->n_layers, workers = (size_t)s->request->problem.workers;
    const struct ghp_problem problem = s->request->problem;
    void *shares = NULL, *recompute = NULL, *own = NULL;
    enum ghp_status status;

    status = copy_list(splits, layers, sizeof *splits, &own);
    if (status == GHP_OK)
        status = copy_list(staging->shares, workers, sizeof *staging->shares, &shares);
    if (status == GHP_OK)
        status = copy_list(staging->recompute, layers, sizeof *staging->recompute, &recompute);
    *c = (struct ghp_candidate){
        .splits = own, .staging = *staging, .shares = shares, .recompute = recompute};
    c->staging.shares = c->shares;
    c->staging.recompute = c->recompute;
    if (c->shares != NULL) /* groups of their own samples */
        c->staging.speeds = ghp_speeds_of(&s->request->profile->speeds, problem.workers);
    if (status != GHP_OK) return status;
    c->groups = staging->n > 1 ? problem.workers / ghp_staging_group(staging, problem.workers)
                : s->request->groups > 0 ? s->request->groups
                                         : ghp_plan_canonical_groups(s->model, splits, problem);
    return GHP_OK;
}

/* What it takes with another bucket size. */
static enum ghp_status predict(const struct ghp_plan_context *s, const struct ghp_candidate *c,
                               int64_t bucket_bytes, struct ghp_prediction *predicted)
{
    struct ghp_lowering lowering = s->lowering;

    lowering.method.bucket_bytes = bucket_bytes;
    lowering.staging = ghp_staging_or_none(&c->staging);
    return ghp_plan_predict(&lowering, c->splits, s->request->profile, predicted);
}

enum ghp_status ghp_candidate_of_splits(const struct ghp_plan_context *context,
                                        const struct ghp_split *splits, int64_t bucket_bytes,
                                        struct ghp_candidate *candidate)
{
    enum ghp_status status = copy_plan(context, splits, &(const struct ghp_staging){0}, candidate);

    candidate->bucket_bytes = bucket_bytes;
    if (status == GHP_OK) status = predict(context, candidate, bucket_bytes, &candidate->predicted);
    if (status != GHP_OK) ghp_candidate_release(candidate);
    return status;
}

/* The fastest (plan, bucket size) among those kept. */
static enum ghp_status tune_kept(const struct ghp_plan_context *s,
                                 const struct ghp_search_result *r, int *kept,
                                 int64_t *bucket_bytes)
{
    double best_s = r->kept[0].step_s;

    *kept = 0;
    *bucket_bytes = s->lowering.method.bucket_bytes;
    if (s->request->method.bucket_bytes != GHP_BUCKET_AUTO) return GHP_OK;
    for (int k = 0; k < r->n_kept; k++)
        for (int b = 1; b < GHP_CANDIDATE_BUCKET_SIZES && !ghp_plan_context_is_late(s); b++) {
            double step_s;
            int64_t peak = 0;

            GHP_TRY(ghp_search_evaluate(s->instance, r->kept[k].choice,
                                        ghp_candidate_bucket_sizes[b], &step_s,
                                        s->request->memory_bytes > 0 ? &peak : NULL));
            if (!ghp_candidate_fits(s, peak) || step_s >= best_s * (1 - GHP_BRANCH_SAME)) continue;
            best_s = step_s;
            *kept = k;
            *bucket_bytes = ghp_candidate_bucket_sizes[b];
        }
    return GHP_OK;
}

enum ghp_status ghp_candidate_of_search(const struct ghp_plan_context *context,
                                        const struct ghp_search_result *result,
                                        struct ghp_candidate *candidate)
{
    struct ghp_split *splits = ghp_alloc((size_t)context->model->n_layers, sizeof *splits);
    enum ghp_status status = splits == NULL ? GHP_NO_MEMORY() : GHP_OK;
    int64_t bucket_bytes = 0;
    int kept = 0;

    *candidate = (struct ghp_candidate){0};
    if (status == GHP_OK) status = tune_kept(context, result, &kept, &bucket_bytes);
    if (status == GHP_OK) {
        ghp_instance_splits(context->instance, result->kept[kept].choice, splits);
        status = ghp_candidate_of_splits(context, splits, bucket_bytes, candidate);
    }
    free(splits);
    return status;
}

/* The fastest bucket size: the search's, unless another one tried in time is faster and fits. */
static enum ghp_status tune(const struct ghp_plan_context *s, struct ghp_candidate *c)
{
    struct ghp_lowering lowering = s->lowering;
    double best_s;

    c->bucket_bytes = s->lowering.method.bucket_bytes;
    GHP_TRY(predict(s, c, c->bucket_bytes, &c->predicted));
    if (s->request->method.bucket_bytes != GHP_BUCKET_AUTO) return GHP_OK;
    best_s = c->predicted.step_s;
    lowering.staging = ghp_staging_or_none(&c->staging);
    for (int b = 1; b < GHP_CANDIDATE_BUCKET_SIZES && !ghp_plan_context_is_late(s); b++) {
        double step_s;
        int64_t peak = 0;

        lowering.method.bucket_bytes = ghp_candidate_bucket_sizes[b];
        GHP_TRY(ghp_plan_predict_step(&lowering, c->splits, s->request->profile, &step_s,
                                      s->request->memory_bytes > 0 ? &peak : NULL));
        if (!ghp_candidate_fits(s, peak) || step_s >= best_s * (1 - GHP_BRANCH_SAME)) continue;
        best_s = step_s;
        c->bucket_bytes = lowering.method.bucket_bytes;
    }
    return c->bucket_bytes == s->lowering.method.bucket_bytes
               ? GHP_OK
               : predict(s, c, c->bucket_bytes, &c->predicted);
}

enum ghp_status ghp_candidate_of_partition(const struct ghp_plan_context *context,
                                           const struct ghp_partition *partition,
                                           struct ghp_candidate *candidate)
{
    enum ghp_status status = copy_plan(context, partition->splits, &partition->staging, candidate);

    if (status == GHP_OK) status = tune(context, candidate);
    if (status != GHP_OK) ghp_candidate_release(candidate);
    return status;
}

enum ghp_status ghp_candidate_copy(const struct ghp_plan_context *context,
                                   const struct ghp_candidate *from, struct ghp_candidate *to)
{
    enum ghp_status status = copy_plan(context, from->splits, &from->staging, to);

    to->bucket_bytes = from->bucket_bytes;
    to->sync = from->sync;
    to->predicted = from->predicted;
    if (status != GHP_OK) ghp_candidate_release(to);
    return status;
}

void ghp_candidate_release(struct ghp_candidate *candidate)
{
    free(candidate->splits);
    free(candidate->shares);
    free(candidate->recompute);
    *candidate = (struct ghp_candidate){0};
}

bool ghp_candidate_is_tuned(const struct ghp_plan_context *context,
                            const struct ghp_candidate *candidate)
{
    return candidate->bucket_bytes != context->lowering.method.bucket_bytes;
}

int ghp_candidate_split_layers(const struct ghp_plan_context *context,
                               const struct ghp_candidate *candidate)
{
    int n = 0;

    for (int v = 0; v < context->model->n_layers; v++)
        n += candidate->splits[v].kind != GHP_SPLIT_DATA;
    return n;
}
