/* planner/search/search.c - objective, the order of searches, and ties. */
#include "planner/search/search.h"

#include "planner/search/memory.h"
#include "planner/search/milp.h"
#include "core/base/clock.h"
#include "core/plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fraction of the time for the search without the memory limit. It is smaller if parameters may be sharded, since the
 * limit is the reason for that. */
static const double free_fraction = 0.4, sharded_free_fraction = 0.1;
static const double least_fraction = 0.1; /* of the time then left, for the least memory */

/* ---- objective ---- */

enum ghp_status ghp_search_evaluate(const struct ghp_instance *instance, const int *choice,
                                    int64_t bucket_bytes, double *step_s, int64_t *peak_bytes)
{
    struct ghp_lowering lowering = *instance->lowering;
    struct ghp_split *splits = ghp_alloc((size_t)instance->n_layers, sizeof *splits);
    enum ghp_status status;

    if (splits == NULL) return GHP_NO_MEMORY();
    lowering.method.bucket_bytes = bucket_bytes;
    ghp_instance_splits(instance, choice, splits);
    status = ghp_plan_predict_step(&lowering, splits, instance->profile, step_s, peak_bytes);
    free(splits);
    return status;
}

/* Layers that are not split by data. */
static int count_split_layers(const struct ghp_instance *instance, const int *choice)
{
    int n = 0;

    for (int v = 0; v < instance->n_layers; v++)
        n += instance->choices[instance->first_choice[v] + choice[v]].kind != GHP_SPLIT_DATA;
    return n;
}

struct evaluate {
    const struct ghp_search_job *job;
    struct ghp_search_result *result;
    bool bytes;     /* the objective is memory */
    bool unlimited; /* plans above the limit count too */
};

static bool same_choice(const struct evaluate *j, const int *a, const int *b)
{
    return memcmp(a, b, (size_t)j->job->instance->n_layers * sizeof *a) == 0;
}

/* Keeps the plan among the best, in order. */
static enum ghp_status keep(struct evaluate *j, const int *choice, double step_s,
                            int64_t peak_bytes)
{
    struct ghp_search_result *r = j->result;
    size_t bytes = (size_t)j->job->instance->n_layers * sizeof *choice;
    int at = r->n_kept;

    for (int k = 0; k < r->n_kept; k++)
        if (same_choice(j, r->kept[k].choice, choice)) return GHP_OK;
    if (at == GHP_SEARCH_KEPT && step_s >= r->kept[at - 1].step_s) return GHP_OK;
    if (at == GHP_SEARCH_KEPT)
        --at;
    else if ((r->kept[at].choice = ghp_alloc(bytes, 1)) == NULL)
        return GHP_NO_MEMORY();
    else
        r->n_kept++;
    struct ghp_search_plan plan = {
        .choice = r->kept[at].choice, .step_s = step_s, .peak_bytes = peak_bytes};
    memcpy(plan.choice, choice, bytes);
    for (; at > 0 && r->kept[at - 1].step_s > step_s; --at)
        r->kept[at] = r->kept[at - 1];
    r->kept[at] = plan;
    return GHP_OK;
}

/* Whether it is as fast as one of the best, or there is room among them. */
static bool is_of_the_best(const struct ghp_search_result *r, double step_s)
{
    return r->n_kept < GHP_SEARCH_KEPT || step_s < r->kept[r->n_kept - 1].step_s;
}

/* Placing a plan's buffers takes as long as all else, and is done if the peak decides something. */
static enum ghp_status evaluate_plan(void *context, const int *choice, double *value)
{
    struct evaluate *j = context;
    const struct ghp_instance *in = j->job->instance;
    int64_t limit = j->job->limit_bytes, bucket = in->lowering->method.bucket_bytes, peak = 0;
    bool decides = j->bytes || (!j->unlimited && limit > 0), kept;
    double step_s = 0;

    GHP_TRY(ghp_search_evaluate(in, choice, bucket, &step_s, decides ? &peak : NULL));
    kept = is_of_the_best(j->result, step_s);
    if (kept && !decides && limit > 0)
        GHP_TRY(ghp_search_evaluate(in, choice, bucket, NULL, &peak));
    *value = j->bytes ? (double)peak : decides && peak > limit ? INFINITY : step_s;
    if (kept && (limit == 0 || peak <= limit)) GHP_TRY(keep(j, choice, step_s, peak));
    return GHP_OK;
}

/* ---- one search ---- */

/* Any plan of the domain: the first choice in play of each layer. */
static void first_plan(const struct ghp_domain *domain, int *choice)
{
    const struct ghp_instance *in = domain->instance;

    for (int v = 0; v < in->n_layers; v++) {
        choice[v] = 0;
        while (choice[v] + 1 < in->n_choices[v] && !domain->choice[in->first_choice[v] + choice[v]])
            choice[v]++;
    }
}

static enum ghp_status set_scale(const struct ghp_instance *in, const struct ghp_domain *domain,
                                 struct ghp_goal *goal)
{
    struct ghp_coefficients coefficients = ghp_instance_coefficients(in);
    struct ghp_accumulated_cost accumulated = {0};
    struct ghp_constraint constraint;
    int *choice = ghp_alloc((size_t)in->n_layers, sizeof *choice);
    enum ghp_status status =
        choice == NULL ? GHP_NO_MEMORY() : ghp_accumulated_cost_init(in, &accumulated);

    if (status == GHP_OK) {
        first_plan(domain, choice);
        ghp_accumulated_cost_set(in, choice, &accumulated);
        goal->scale = goal->bytes ? ghp_constraint_fullest(in, &accumulated, &constraint)
                                  : ghp_constraint_step_s(in, &coefficients, &accumulated);
        if (!(goal->scale > 0)) goal->scale = 1; /* everything is free */
    }
    ghp_accumulated_cost_release(&accumulated);
    free(choice);
    return status;
}

static enum ghp_status run(const struct ghp_branch_job *job, enum ghp_solver solver,
                           struct ghp_branch_result *r)
{
    if (solver == GHP_SOLVER_MILP) return ghp_milp_run(job, r);
    GHP_TRY(ghp_branch_run(job, r));
    return r->wide ? ghp_milp_run(job, r) : GHP_OK;
}

/* Searches with one goal, from the job's starts and the plans kept so far. */
static enum ghp_status search_once(struct evaluate *j, struct ghp_goal goal,
                                   struct ghp_branch_limits limits, struct ghp_branch_result *r)
{
    const struct ghp_search_job *job = j->job;
    size_t layers = (size_t)job->instance->n_layers;
    int *start = ghp_alloc(((size_t)job->n_start + GHP_SEARCH_KEPT) * layers, sizeof *start);
    struct ghp_branch_job b = {.in = job->instance,
                               .domain = job->domain,
                               .start = start,
                               .objective = {.evaluate = evaluate_plan, .context = j},
                               .limits = limits};
    enum ghp_status status;

    if (start == NULL) return GHP_NO_MEMORY();
    if (job->cutoff_s > 0 && !goal.bytes) {
        r->choice = ghp_alloc(layers, sizeof *r->choice);
        r->value = job->cutoff_s;
        if (r->choice == NULL) {
            free(start);
            return GHP_NO_MEMORY();
        }
    }
    if (job->n_start > 0) memcpy(start, job->start, (size_t)job->n_start * layers * sizeof *start);
    b.n_start = job->n_start;
    for (int k = 0; k < j->result->n_kept; k++)
        memcpy(start + (size_t)b.n_start++ * layers, j->result->kept[k].choice,
               layers * sizeof *start);
    status = set_scale(job->instance, job->domain, &goal);
    b.goal = goal;
    if (status == GHP_OK) status = run(&b, job->solver, r);
    j->result->plans += r->plans;
    j->result->nodes += r->nodes;
    free(start);
    return status;
}

/* ---- ties ---- */

static int tp_size_of(const struct ghp_instance *in, const int *choice)
{
    int k = 1; /* TP sizes divide N, so their least common multiple does */

    for (int v = 0; v < in->n_layers; v++) {
        int d = in->choices[in->first_choice[v] + choice[v]].tp_size;

        k = k / (int)ghp_gcd(k, d) * d;
    }
    return k;
}

/* The equal plan with the most groups: for each smaller group size, whether some plan of it is as fast. */
static enum ghp_status fewest_members(struct evaluate *j, const struct ghp_goal *goal,
                                      struct ghp_branch_result *best)
{
    const struct ghp_search_job *job = j->job;
    const double same = best->value * (1 + GHP_BRANCH_SAME);
    int now = tp_size_of(job->instance, best->choice);
    struct ghp_domain domain = {0};
    enum ghp_status status = GHP_OK;

    for (int k = 1; k < now && status == GHP_OK; k++) {
        struct ghp_branch_result r = {0};
        struct ghp_branch_job b = {.in = job->instance,
                                   .goal = *goal,
                                   .domain = &domain,
                                   .objective = {.evaluate = evaluate_plan, .context = j},
                                   .limits = {.deadline_s = job->deadline_s, .enough = same}};

        if (now % k != 0) continue;
        GHP_TRY(ghp_domain_copy(job->domain, &domain));
        ghp_domain_limit_tp_size(&domain, k);
        r.choice = ghp_alloc((size_t)job->instance->n_layers, sizeof *r.choice);
        r.value = same * (1 + 1e-12);
        for (int v = 0; v < job->instance->n_layers; v++)
            if (ghp_domain_count(&domain, v) == 0) r.value = -INFINITY; /* nothing to search */
        status = r.choice == NULL ? GHP_NO_MEMORY() : set_scale(job->instance, &domain, &b.goal);
        if (status == GHP_OK && r.value > 0) status = ghp_branch_run(&b, &r);
        if (status == GHP_OK && r.value > 0 && r.value <= same) {
            memcpy(best->choice, r.choice, (size_t)job->instance->n_layers * sizeof *r.choice);
            now = 0; /* found: no larger one is wanted */
        }
        ghp_branch_release(&r);
        ghp_domain_release(&domain);
    }
    return status;
}

/* Sets runs of layers to data if the plan stays as fast: long runs first. */
static enum ghp_status fewest_splits(struct evaluate *j, double step_s, int *choice)
{
    const struct ghp_instance *in = j->job->instance;
    struct ghp_coefficients coefficients = ghp_instance_coefficients(in);
    struct ghp_accumulated_cost accumulated;
    int *trial = ghp_alloc((size_t)in->n_layers, sizeof *trial);
    enum ghp_status status = ghp_accumulated_cost_init(in, &accumulated);

    if (trial == NULL) status = GHP_NO_MEMORY();
    for (int length = 8; length > 0 && status == GHP_OK; length /= 2)
        for (int v = 0; v + length <= in->n_layers && status == GHP_OK; v++) {
            double value = INFINITY;

            memcpy(trial, choice, (size_t)in->n_layers * sizeof *trial);
            for (int k = v; k < v + length; k++)
                ghp_instance_choose(in, k, 0, trial); /* data comes first */
            if (count_split_layers(in, trial) >= count_split_layers(in, choice)) continue;
            if (!ghp_domain_has(j->job->domain, trial)) continue;
            ghp_accumulated_cost_set(in, trial, &accumulated);
            if (ghp_constraint_step_s(in, &coefficients, &accumulated) >
                step_s * (1 + GHP_BRANCH_SAME))
                continue;
            status = evaluate_plan(j, trial, &value);
            if (status == GHP_OK && value <= step_s * (1 + GHP_BRANCH_SAME))
                memcpy(choice, trial, (size_t)in->n_layers * sizeof *trial);
        }
    ghp_accumulated_cost_release(&accumulated);
    free(trial);
    return status;
}

/* Chooses among equally fast plans. If a gap is allowed, the first of the two searches is not worth its time. */
static enum ghp_status break_ties(struct evaluate *j, const struct ghp_goal *goal,
                                  struct ghp_branch_result *best)
{
    double step_s = best->value;

    if (!(j->job->gap > 0)) GHP_TRY(fewest_members(j, goal, best));
    return fewest_splits(j, step_s, best->choice);
}

/* ---- the whole ---- */

/* Puts the winner first among the kept plans, in the last one's place if it is not among them. */
static enum ghp_status place_winner(struct evaluate *j, const int *choice)
{
    struct ghp_search_result *r = j->result;
    size_t bytes = (size_t)j->job->instance->n_layers * sizeof *choice;
    struct ghp_search_plan winner;
    int k = 0;

    while (k < r->n_kept && !same_choice(j, r->kept[k].choice, choice))
        k++;
    if (k == r->n_kept && k > 0) --k;
    if (r->n_kept == 0) {
        r->kept[0].choice = ghp_alloc(bytes, 1);
        if (r->kept[0].choice == NULL) return GHP_NO_MEMORY();
        r->n_kept = 1;
    }
    memcpy(r->kept[k].choice, choice, bytes);
    GHP_TRY(ghp_search_evaluate(j->job->instance, choice,
                                j->job->instance->lowering->method.bucket_bytes, &r->kept[k].step_s,
                                &r->kept[k].peak_bytes));
    winner = r->kept[k];
    memmove(&r->kept[1], &r->kept[0], (size_t)k * sizeof r->kept[0]);
    r->kept[0] = winner;
    return GHP_OK;
}

/* Whether the search has a plan of its own. */
static bool is_found(const struct evaluate *j, const struct ghp_branch_result *best)
{
    return best->value < (j->job->cutoff_s > 0 ? j->job->cutoff_s : INFINITY);
}

static enum ghp_status conclude(struct evaluate *j, const struct ghp_goal *goal,
                                struct ghp_branch_result *best)
{
    struct ghp_search_result *r = j->result;

    r->feasible = is_found(j, best);
    r->proven = best->proven;
    r->bound_s = best->bound;
    if (!r->feasible) return GHP_OK;
    if (best->proven && j->job->canonical) GHP_TRY(break_ties(j, goal, best));
    GHP_TRY(place_winner(j, best->choice));
    if (r->proven && !(j->job->gap > 0)) r->bound_s = r->kept[0].step_s;
    return GHP_OK;
}

/* A plan that fits, or the least memory of any: for a part of the time if the live bytes alone rule the limit out,
 * since how well a plan's buffers can be placed has no bound as sharp; else for as long as it takes. */
static enum ghp_status search_least(struct evaluate *j, struct ghp_branch_result *least)
{
    const struct ghp_goal bytes = {.bytes = true};
    const double limit = (double)j->job->limit_bytes, now_s = ghp_now_s();
    struct ghp_branch_limits limits = {
        .deadline_s = now_s + least_fraction * (j->job->deadline_s - now_s), .enough = limit};
    enum ghp_status status;

    j->bytes = true;
    status = search_once(j, bytes, limits, least);
    limits.deadline_s = j->job->deadline_s;
    if (status == GHP_OK && least->value > limit && !least->proven && least->bound <= limit)
        status = search_once(j, bytes, limits, least);
    j->bytes = false;
    return status;
}

/* Tries data parallelism with all parameters sharded alike, by each kind that is offered: what fits starts the
 * searches, which would come to it late among many layers and splits. */
static enum ghp_status try_sharded(struct evaluate *j)
{
    const struct ghp_instance *in = j->job->instance;
    int *choice = ghp_alloc((size_t)in->n_layers, sizeof *choice);
    enum ghp_status status = choice == NULL ? GHP_NO_MEMORY() : GHP_OK;

    for (int s = GHP_SHARDING_COUNT - 1; s > GHP_SHARDING_NONE && status == GHP_OK; s--) {
        double value;

        if ((in->lowering->shardings >> s & 1) == 0) continue;
        for (int v = 0; v < in->n_layers; v++) {
            const struct ghp_split *of = &in->choices[in->first_choice[v]];

            choice[v] = 0; /* data comes first, by each sharding */
            for (int i = 1; i < in->n_choices[v] && ghp_split_alike(of[i], of[0]); i++)
                if ((int)of[i].sharding == s) choice[v] = i;
        }
        if (ghp_domain_has(j->job->domain, choice)) status = evaluate_plan(j, choice, &value);
    }
    free(choice);
    return status;
}

/* The search with a limit that the fastest plan breaks.
 *
 * free_bound   of plans by the search without the limit [s] */
static enum ghp_status search_limited(struct evaluate *j, double free_bound)
{
    const struct ghp_goal time = {.limit_bytes = (double)j->job->limit_bytes};
    const struct ghp_branch_limits limits = {
        .deadline_s = j->job->deadline_s, .enough = -INFINITY, .gap = j->job->gap};
    struct ghp_branch_result least = {0}, best = {0};
    struct ghp_search_result *r = j->result;
    enum ghp_status status;

    GHP_TRY(ghp_memory_init(j->job->instance));
    GHP_TRY(try_sharded(j));
    GHP_TRY_GOTO(status, search_least(j, &least), done);
    if (least.value > (double)j->job->limit_bytes) {
        r->least_bytes = (int64_t)least.value;
        r->least_proven = least.proven;
        r->bound_s = INFINITY;
        r->proven = least.proven || least.bound > (double)j->job->limit_bytes;
        goto done;
    }
    GHP_TRY_GOTO(status, search_once(j, time, limits, &best), done);
    best.bound = fmax(best.bound, fmin(free_bound, best.value));
    GHP_TRY_GOTO(status, conclude(j, &time, &best), done);
done:
    ghp_branch_release(&least);
    ghp_branch_release(&best);
    return status;
}

enum ghp_status ghp_search_run(const struct ghp_search_job *job, struct ghp_search_result *result)
{
    struct evaluate j = {.job = job, .result = result, .unlimited = true};
    struct ghp_branch_result best = {0};
    const struct ghp_goal goal = {0};
    const bool shards = job->instance->lowering->shardings != 0;
    const double began_s = ghp_now_s(), fraction = job->limit_bytes == 0 ? 1
                                                   : shards              ? sharded_free_fraction
                                                                         : free_fraction;
    const struct ghp_branch_limits limits = {.deadline_s =
                                                 began_s + fraction * (job->deadline_s - began_s),
                                             .enough = -INFINITY,
                                             .gap = job->gap};
    int64_t peak = 0;
    enum ghp_status status;

    *result = (struct ghp_search_result){0};
    GHP_TRY_GOTO(status, search_once(&j, goal, limits, &best), done);
    if (job->limit_bytes > 0 && is_found(&j, &best))
        GHP_TRY_GOTO(status,
                     ghp_search_evaluate(job->instance, best.choice,
                                         job->instance->lowering->method.bucket_bytes, NULL, &peak),
                     done);
    j.unlimited = false;
    if (job->limit_bytes > 0 && (peak > job->limit_bytes || (shards && !best.proven)))
        GHP_TRY_GOTO(status, search_limited(&j, best.bound), done);
    else
        GHP_TRY_GOTO(status, conclude(&j, &goal, &best), done);
    result->seconds = ghp_now_s() - began_s;
done:
    ghp_branch_release(&best);
    if (status != GHP_OK) ghp_search_release(result);
    return status;
}

void ghp_search_release(struct ghp_search_result *result)
{
    if (result == NULL) return;
    for (int k = 0; k < GHP_SEARCH_KEPT; k++)
        free(result->kept[k].choice);
    memset(result, 0, sizeof *result);
}
