/* planner/make/recompute.c - see make/recompute.h. */
#include "planner/make/recompute.h"

#include "core/base/clock.h"
#include "planner/recompute/recompute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* of the time left: what a search without the limit may take */
static const double search_fraction = 0.2;
static const double plan_fraction = 0.3; /* what one plan may take, but for the last */
enum { SOME_SETS = 2000 };               /* of each plan */

struct recompute_search {
    const struct ghp_recompute_job *job;
    const struct ghp_lowering *lowering;
    int layers;
    struct ghp_split *splits; /* of the plan that is looked at */
    int most;                 /* sets of layers for each plan */
    struct ghp_partition *best;
};

static double until_s(const struct recompute_search *r, double fraction)
{
    double now_s = ghp_now_s();

    return now_s + fraction * (r->job->partition->deadline_s - now_s);
}

static bool any_of(const bool *marks, int n)
{
    for (int v = 0; v < n; v++)
        if (marks[v]) return true;
    return false;
}

static enum ghp_status take(struct recompute_search *r, const struct ghp_staging *staging,
                            struct ghp_recompute *recompute)
{
    struct ghp_partition *best = r->best;
    size_t layers = (size_t)r->layers;

    if (best->splits == NULL) best->splits = ghp_alloc(layers, sizeof *best->splits);
    if (best->recompute == NULL) best->recompute = ghp_alloc(layers, sizeof *best->recompute);
    if (best->splits == NULL || best->recompute == NULL) return GHP_NO_MEMORY();
    memcpy(best->splits, r->splits, layers * sizeof *best->splits);
    memcpy(best->recompute, recompute->recompute, layers * sizeof *best->recompute);
    best->found = true;
    best->staging = *staging;
    best->staging.recompute = any_of(best->recompute, r->layers) ? best->recompute : NULL;
    best->step_s = recompute->step_s;
    best->peak_bytes = recompute->peak_bytes;
    return GHP_OK;
}

/* The plan at hand with each set of layers. */
static enum ghp_status look_at(struct recompute_search *r, const struct ghp_staging *staging)
{
    struct ghp_partition_job own = *r->job->partition;
    struct ghp_partition *best = r->best;
    struct ghp_recompute recompute;
    enum ghp_status status;

    if (r->most < GHP_RECOMPUTE_ALL) own.deadline_s = until_s(r, plan_fraction);
    if (best->found) own.best_s = best->step_s;
    GHP_TRY(ghp_recompute_compute(&own, staging, r->splits, r->most, &recompute));
    best->plans += recompute.plans;
    if (recompute.least_bytes > 0 &&
        (best->least_bytes == 0 || recompute.least_bytes < best->least_bytes))
        best->least_bytes = recompute.least_bytes;
    status = recompute.found ? take(r, staging, &recompute) : GHP_OK;
    ghp_recompute_release(&recompute);
    return status;
}

/* Whether the splits are possible with the staging's micro-batches. */
static bool can_be(const struct recompute_search *r, const struct ghp_staging *staging)
{
    struct ghp_problem problem = r->lowering->problem;

    if (ghp_staging_check(staging, r->lowering->model, problem) != GHP_OK) return false;
    problem.global_batch /= ghp_staging_micro_batches(staging);
    for (int v = 0; v < r->layers; v++)
        if (ghp_split_check(&r->lowering->model->layers[v], r->splits[v], problem) != GHP_OK)
            return false;
    return true;
}

/* The plan at hand, and in micro-batches if stages are searched. */
static enum ghp_status look_at_all(struct recompute_search *r)
{
    int most = r->job->search_stages ? r->job->partition->space.max_micro_batches : 1;

    for (int u = 1; u <= most && ghp_now_s() < r->job->partition->deadline_s; u *= 2) {
        struct ghp_staging staging = {.micro_batches = u};

        if (can_be(r, &staging)) GHP_TRY(look_at(r, &staging));
    }
    return GHP_OK;
}

static bool is_data(const struct recompute_search *r)
{
    for (int v = 0; v < r->layers; v++)
        if (r->splits[v].kind != GHP_SPLIT_DATA) return false;
    return true;
}

/* Sets every split to data, and says whether that may be chosen. */
static bool choose_data(struct recompute_search *r)
{
    const struct ghp_instance *in = r->job->instance;
    bool offered = true;

    for (int v = 0; v < r->layers; v++) {
        int choice;

        r->splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
        choice = ghp_instance_find(in, v, r->splits[v]);
        offered = offered && choice >= 0 && r->job->domain->choice[in->first_choice[v] + choice];
    }
    return offered;
}

/* Plans without stages, the fastest first. */
static enum ghp_status look_at_kept(struct recompute_search *r,
                                    const struct ghp_search_result *result)
{
    bool data = false;

    for (int k = 0; k < result->n_kept; k++) {
        ghp_instance_splits(r->job->instance, result->kept[k].choice, r->splits);
        data = data || is_data(r);
        GHP_TRY(look_at_all(r));
    }
    return data || !choose_data(r) ? GHP_OK : look_at_all(r);
}

static enum ghp_status look_at_shared(struct recompute_search *r)
{
    const struct ghp_partition_job *a = r->job->partition;
    struct ghp_search_job search = {.instance = r->job->instance,
                                    .domain = r->job->domain,
                                    .deadline_s = until_s(r, search_fraction),
                                    .gap = a->gap,
                                    .solver = a->solver};
    struct ghp_search_result result;
    enum ghp_status status;

    GHP_TRY(ghp_search_run(&search, &result));
    r->best->nodes += result.nodes;
    status = look_at_kept(r, &result);
    r->most = SOME_SETS;
    if (status == GHP_OK) status = look_at_kept(r, &result);
    r->most = GHP_RECOMPUTE_FIRST;
    ghp_search_release(&result);
    return status;
}

/* The best staging without the limit. */
static enum ghp_status look_at_staged(struct recompute_search *r)
{
    struct ghp_partition_job own = *r->job->partition;
    struct ghp_partition staged;
    enum ghp_status status = GHP_OK;

    own.limit_bytes = 0;
    own.deadline_s = until_s(r, search_fraction);
    if (r->best->found) own.best_s = r->best->step_s;
    GHP_TRY(ghp_partition_compute(&own, &staged));
    r->best->nodes += staged.nodes;
    if (staged.found) {
        memcpy(r->splits, staged.splits, (size_t)r->layers * sizeof *r->splits);
        status = look_at(r, &staged.staging);
    }
    ghp_partition_release(&staged);
    return status;
}

/* All sets of the best plan found. */
static enum ghp_status look_again(struct recompute_search *r)
{
    struct ghp_staging staging = r->best->staging;

    if (!r->best->found) return GHP_OK;
    staging.recompute = NULL;
    memcpy(r->splits, r->best->splits, (size_t)r->layers * sizeof *r->splits);
    r->most = GHP_RECOMPUTE_ALL;
    return look_at(r, &staging);
}

enum ghp_status ghp_recompute_plan_compute(const struct ghp_recompute_job *job,
                                           struct ghp_partition *found)
{
    struct recompute_search r = {.job = job, .lowering = job->partition->lowering, .best = found};
    enum ghp_status status;

    *found = (struct ghp_partition){.bound_s = INFINITY};
    r.layers = r.lowering->model->n_layers;
    r.splits = ghp_alloc((size_t)r.layers, sizeof *r.splits);
    status = r.splits == NULL ? GHP_NO_MEMORY() : look_at_shared(&r);
    if (status == GHP_OK && job->search_stages) status = look_at_staged(&r);
    if (status == GHP_OK) status = look_again(&r);
    free(r.splits);
    if (status != GHP_OK) ghp_partition_release(found);
    return status;
}
