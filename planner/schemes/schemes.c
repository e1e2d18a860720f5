/* planner/schemes/schemes.c - see schemes.h. */
#include "planner/schemes/schemes.h"

#include "planner/make/sync_choice.h"

#include <stdlib.h>
#include <string.h>

static const double later_fraction = 0.3; /* of the time limit, for a search of another scheme */

/* A row from its plan, with what slow workers do to it. */
static enum ghp_status fill(const struct ghp_schemes_job *job, const struct ghp_plan *plan,
                            struct ghp_scheme *scheme)
{
    struct ghp_lowering lowering = ghp_plan_lowering(plan, job->request->profile);

    scheme->sync = plan->method.sync;
    scheme->strategy = plan->strategy;
    scheme->predicted = scheme->slowed = plan->predicted;
    if (job->stragglers.n == 0) return GHP_OK;
    return ghp_plan_predict_slowed(&lowering, plan->splits, job->request->profile, &job->stragglers,
                                   &scheme->slowed);
}

/* Whether a failure is an answer about this scheme. */
static bool is_refusal(enum ghp_status status)
{
    return status == GHP_ERR_INFEASIBLE || status == GHP_ERR_INPUT || status == GHP_ERR_USAGE ||
           status == GHP_ERR_MISSING;
}

/* The last row but one is the same plan. */
static bool repeats(const struct ghp_schemes *s)
{
    const struct ghp_scheme *last = &s->of[s->n - 1];

    return s->n > 1 && last->reason == NULL && last[-1].reason == NULL &&
           ghp_sync_same(last->sync, last[-1].sync) &&
           last->predicted.program_hash == last[-1].predicted.program_hash;
}

static enum ghp_status add(const struct ghp_schemes_job *job, struct ghp_sync sync,
                           enum ghp_strategy strategy, struct ghp_schemes *s)
{
    struct ghp_plan_request own = *job->request;
    struct ghp_scheme *scheme = &s->of[s->n];
    struct ghp_plan plan = {0};
    enum ghp_status status;

    GHP_ASSERT(s->n < GHP_SCHEMES_MOST);
    own.method.sync = sync;
    own.strategy = strategy;
    own.decision_only = true;
    own.time_limit_s *= later_fraction;
    if (strategy != GHP_STRATEGY_AUTO) own.pipeline_mode = GHP_PIPELINE_MODE_OFF;
    *scheme = (struct ghp_scheme){.sync = sync, .strategy = strategy};
    s->n++;
    status = ghp_plan_make_synced(&own, &plan);
    if (is_refusal(status)) {
        scheme->reason = strdup(ghp_status_message());
        return scheme->reason == NULL ? GHP_NO_MEMORY() : GHP_OK;
    }
    if (status == GHP_OK) status = fill(job, &plan, scheme);
    ghp_plan_release(&plan);
    if (status == GHP_OK && repeats(s)) s->n--;
    return status;
}

static enum ghp_status add_chosen(const struct ghp_schemes_job *job, struct ghp_schemes *s)
{
    struct ghp_scheme *scheme = &s->of[s->n++];

    scheme->chosen = true;
    return fill(job, job->plan, scheme);
}

/* With the splits that are searched for, then all by data, unless splits or stages are given. */
static enum ghp_status add_searched(const struct ghp_schemes_job *job, struct ghp_sync sync,
                                    struct ghp_schemes *s)
{
    bool free = ghp_request_is_free(job->request) && !ghp_request_is_given(job->request);

    GHP_TRY(ghp_sync_same(sync, job->plan->method.sync)
                ? add_chosen(job, s)
                : add(job, sync, job->request->strategy, s));
    return free ? add(job, sync, GHP_STRATEGY_DATA, s) : GHP_OK;
}

static enum ghp_status add_all(const struct ghp_schemes_job *job, struct ghp_schemes *s)
{
    for (int i = 0; ghp_sync_names[i] != NULL; i++) {
        struct ghp_sync sync = ghp_sync_at(i);
        bool data = ghp_sync_wants_data(sync) && ghp_request_is_free(job->request) &&
                    !ghp_request_is_given(job->request);
        enum ghp_strategy strategy = data ? GHP_STRATEGY_DATA : job->request->strategy;
        const char *const *shown = ghp_sync_ops_of(sync)->shown;

        if (i < GHP_SYNC_PLAIN)
            GHP_TRY(add_searched(job, sync, s));
        else if (shown == NULL)
            GHP_TRY(add(job, sync, strategy, s));
        for (; shown != NULL && *shown != NULL; shown++) {
            GHP_TRY(ghp_sync_parse(*shown, &sync));
            GHP_TRY(add(job, sync, strategy, s));
        }
    }
    return GHP_OK;
}

/* The plan and the strategies that it is compared with. */
static enum ghp_status add_baselines(const struct ghp_schemes_job *job, struct ghp_schemes *s)
{
    GHP_TRY(add_chosen(job, s));
    if (ghp_sync_wants_data(job->plan->method.sync)) return GHP_OK; /* by data, all of them */
    for (int b = 0; b < job->plan->n_baselines; b++) {
        enum ghp_strategy strategy = job->plan->baselines[b].strategy;

        bool again = b > 0 && strategy == job->plan->baselines[0].strategy; /* in other words */

        if (!again && job->plan->baselines[b].feasible &&
            !job->plan->baselines[b].local_statistics && strategy != job->plan->strategy &&
            strategy != GHP_STRATEGY_HEURISTIC && ghp_request_is_free(job->request) &&
            !ghp_request_is_given(job->request))
            GHP_TRY(add(job, job->plan->method.sync, strategy, s));
    }
    return GHP_OK;
}

enum ghp_status ghp_schemes_find(const struct ghp_schemes_job *job, struct ghp_schemes *schemes)
{
    enum ghp_status status;

    *schemes = (struct ghp_schemes){.profile = job->request->profile_path,
                                    .problem = job->request->problem,
                                    .all = job->all,
                                    .stragglers = job->stragglers};
    schemes->model = strdup(job->plan->model.name);
    if (schemes->model == NULL) return GHP_NO_MEMORY();
    status = job->all ? add_all(job, schemes) : add_baselines(job, schemes);
    if (status != GHP_OK) ghp_schemes_release(schemes);
    return status;
}

void ghp_schemes_release(struct ghp_schemes *schemes)
{
    for (int i = 0; i < schemes->n; i++)
        free(schemes->of[i].reason);
    free(schemes->model);
    *schemes = (struct ghp_schemes){0};
}
