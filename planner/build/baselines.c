/* planner/build/baselines.c - pure data, pure model and OWT: searched first, starts of every later search, and plans
 * of their own. */
#include "planner/build/build_private.h"

#include <stdlib.h>
#include <string.h>

static const enum ghp_strategy baselines[GHP_BUILD_BASELINES] = {
    GHP_STRATEGY_DATA, GHP_STRATEGY_MODEL, GHP_STRATEGY_OWT};

enum ghp_status ghp_build_search(struct ghp_build_context *m, const struct ghp_domain *domain,
                                 double share, struct ghp_search_result *result)
{
    const struct ghp_instance *in = &m->instance;
    size_t layers = (size_t)in->n_layers;
    int *start = ghp_alloc(GHP_BUILD_BASELINES * layers, sizeof *start), n = 0;
    struct ghp_search_job job = {.instance = &m->instance,
                                 .domain = domain,
                                 .limit_bytes = m->request->memory_bytes,
                                 .deadline_s = ghp_build_deadline(m, share),
                                 .gap = m->request->gap,
                                 .start = start,
                                 .solver = m->request->solver,
                                 .canonical = true};
    enum ghp_status status;

    if (start == NULL) return GHP_NO_MEMORY();
    for (int b = 0; b < GHP_BUILD_BASELINES; ++b)
        if (m->baseline[b].feasible)
            memcpy(start + (size_t)n++ * layers, m->baseline[b].kept[0].choice,
                   layers * sizeof(int));
    job.n_start = n;
    status = ghp_search_run(&job, result);
    free(start);
    return status;
}

/* Notes why a baseline is not there; other failures pass. */
static enum ghp_status note_reason(struct ghp_baseline *b, enum ghp_status status)
{
    if (status != GHP_ERR_INFEASIBLE) return status;
    b->feasible = false;
    return ghp_build_set_text(&b->reason, ghp_status_message());
}

static enum ghp_status solve_baseline(struct ghp_build_context *m, int index,
                                      struct ghp_split *splits)
{
    struct ghp_baseline *b = &m->plan->baselines[index];
    struct ghp_search_result *r = &m->baseline[index];
    struct ghp_domain domain = {0};
    enum ghp_status status;
    int64_t *bucket = &m->baseline_bucket[index];
    int *kept = &m->baseline_kept[index];

    b->strategy = baselines[index];
    GHP_TRY(ghp_domain_init(&m->instance, &domain));
    status = ghp_strategy_restrict(baselines[index], &domain);
    if (status == GHP_OK) status = ghp_build_search(m, &domain, 0.1 * (index + 1), r);
    if (status == GHP_OK && !r->feasible) status = ghp_build_fail_memory(m, r);
    if (status == GHP_OK) status = ghp_build_tune_bucket(m, r, kept, bucket);
    if (status == GHP_OK)
        status = ghp_build_predict(m, r->kept[*kept].choice, *bucket, splits, &b->predicted);
    b->feasible = status == GHP_OK;
    ghp_domain_release(&domain);
    return status == GHP_OK ? GHP_OK : note_reason(b, status);
}

enum ghp_status ghp_build_baselines(struct ghp_build_context *m, struct ghp_split *splits)
{
    m->plan->baselines = ghp_alloc(GHP_BUILD_BASELINES + 1, sizeof *m->plan->baselines);
    if (m->plan->baselines == NULL) return GHP_NO_MEMORY();
    for (int b = 0; b < GHP_BUILD_BASELINES; ++b) {
        ++m->plan->n_baselines;
        GHP_TRY(solve_baseline(m, b, splits));
    }
    return GHP_OK;
}

enum ghp_status ghp_build_take_baseline(struct ghp_build_context *m)
{
    for (int b = 0; b < GHP_BUILD_BASELINES; ++b) {
        if (baselines[b] != m->request->strategy) continue;
        if (!m->plan->baselines[b].feasible)
            return GHP_FAIL(GHP_ERR_INFEASIBLE, "%s", m->plan->baselines[b].reason);
        m->own = m->baseline[b];
        m->baseline[b] = (struct ghp_search_result){0};
    }
    return GHP_OK;
}

enum ghp_status ghp_build_take_faster_baseline(struct ghp_build_context *m)
{
    struct ghp_plan *plan = m->plan;

    if (m->request->strategy != GHP_STRATEGY_AUTO || m->request->force != NULL) return GHP_OK;
    for (int b = 0; b < GHP_BUILD_BASELINES; ++b) {
        const struct ghp_baseline *base = &plan->baselines[b];

        if (!base->feasible ||
            base->predicted.step_s >= plan->predicted.step_s * (1 - GHP_BRANCH_SAME))
            continue;
        plan->bucket_bytes = m->baseline_bucket[b];
        GHP_TRY(ghp_build_predict(m, m->baseline[b].kept[m->baseline_kept[b]].choice,
                                  plan->bucket_bytes, plan->splits, &plan->predicted));
    }
    return GHP_OK;
}
