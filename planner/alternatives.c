/* planner/alternatives.c - one search a layer, with a share of the time.
 *
 * A plan is simulated only where its rows leave room below the best one yet: a lower bound costs a hundredth of a
 * simulation, and most plans with one layer changed are far worse. */
#include "planner/alternatives.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct runner_up {
    const struct ghp_alternatives_job *job;
    int layer;
    int *choice;   /* the plan's, n_layers */
    int *trial;    /* scratch */
    struct ghp_charges charges;
    struct ghp_load load; /* of the trial */
    int best;             /* choice of the layer, -1: none */
    double step_s;        /* with it */
};

/* Seconds that no program of the plan undercuts: its rows where layers are reduced alone, as they are priced; with
 * buckets the computation, which buckets do not change. */
static double least_step_s(struct runner_up *r, const int *choice)
{
    const struct ghp_instance *in = r->job->instance;
    double sum = 0;

    ghp_load_set(in, choice, &r->load);
    if (in->alone && r->job->bucket_bytes == 0)
        return ghp_row_step_s(in, &r->charges, &r->load) * (1 - GHP_BRANCH_SAME);
    for (int k = 0; k < GHP_WORK_COUNT; ++k)
        sum += r->load.work[k][in->n_slots];
    return sum * (1 - GHP_BRANCH_SAME);
}

/* Simulates a plan with the plan's buckets and keeps it where it is the best yet; of equal ones the earlier choice,
 * where `ties` says so. */
static enum ghp_status weigh(struct runner_up *r, const int *choice, bool ties)
{
    double step_s;
    int64_t peak;

    if (least_step_s(r, choice) > r->step_s) return GHP_OK;
    GHP_TRY(ghp_search_judge(r->job->instance, choice, r->job->bucket_bytes, &step_s, &peak));
    if (r->job->limit_bytes > 0 && peak > r->job->limit_bytes) return GHP_OK;
    if (step_s > r->step_s) return GHP_OK;
    if (step_s >= r->step_s && !(ties && choice[r->layer] < r->best)) return GHP_OK;
    r->step_s = step_s;
    r->best = choice[r->layer];
    return GHP_OK;
}

/* Every other split of the layer, all other layers as they are; the most promising first. */
static enum ghp_status change_alone(struct runner_up *r)
{
    const struct ghp_instance *in = r->job->instance;
    const int n = in->n_choices[r->layer];
    double least_s[GHP_MAX_CHOICES];

    memcpy(r->trial, r->choice, (size_t)in->n_layers * sizeof *r->trial);
    for (int i = 0; i < n; ++i) {
        r->trial[r->layer] = i;
        least_s[i] = i == r->choice[r->layer] ? INFINITY : least_step_s(r, r->trial);
    }
    for (;;) {
        int next = 0;

        for (int i = 1; i < n; ++i)
            if (least_s[i] < least_s[next]) next = i;
        if (!(least_s[next] < INFINITY) || least_s[next] > r->step_s) return GHP_OK;
        least_s[next] = INFINITY;
        r->trial[r->layer] = next;
        GHP_TRY(weigh(r, r->trial, true));
    }
}

/* The best plan without the layer's split. */
static enum ghp_status search_others(struct runner_up *r, double deadline_s)
{
    struct ghp_domain domain = {0};
    struct ghp_search_job job = {.instance = r->job->instance,
                                 .domain = &domain,
                                 .limit_bytes = r->job->limit_bytes,
                                 .deadline_s = deadline_s,
                                 .start = r->trial,
                                 .n_start = 1};
    struct ghp_search_result result = {0};
    enum ghp_status status;

    GHP_TRY(ghp_domain_init(r->job->instance, &domain));
    ghp_domain_drop(&domain, r->layer, r->choice[r->layer]);
    memcpy(r->trial, r->choice, (size_t)r->job->instance->n_layers * sizeof *r->trial);
    r->trial[r->layer] = r->best >= 0 ? r->best : r->choice[r->layer];
    status = ghp_search_run(&job, &result);
    if (status == GHP_OK && result.feasible) status = weigh(r, result.kept[0].choice, false);
    ghp_search_release(&result);
    ghp_domain_release(&domain);
    return status;
}

static bool is_weighted(const struct ghp_model *model, int v)
{
    return model->layers[v].op == GHP_OP_CONV2D || model->layers[v].op == GHP_OP_LINEAR;
}

static enum ghp_status find_one(struct runner_up *r, int left, struct ghp_plan *plan)
{
    double now_s = ghp_now_s();

    r->best = -1;
    r->step_s = INFINITY;
    GHP_TRY(change_alone(r));
    if (now_s < r->job->deadline_s)
        GHP_TRY(search_others(r, now_s + (r->job->deadline_s - now_s) / left));
    if (r->best < 0) return GHP_OK; /* one split only, or no other fits the memory */
    plan->alternatives[plan->n_alternatives++] = (struct ghp_alternative){
        .layer = r->layer,
        .split = r->job->instance->choices[r->job->instance->first_choice[r->layer] + r->best],
        .step_s = r->step_s,
    };
    return GHP_OK;
}

enum ghp_status ghp_alternatives_find(const struct ghp_alternatives_job *job, struct ghp_plan *plan)
{
    size_t layers = (size_t)plan->model.n_layers;
    struct runner_up r = {.job = job,
                          .charges = ghp_charges_of(&job->instance->profile->overlap)};
    enum ghp_status status = GHP_OK;
    int left = 0;

    plan->alternatives = ghp_alloc(layers, sizeof *plan->alternatives);
    r.choice = ghp_alloc(layers, sizeof *r.choice);
    r.trial = ghp_alloc(layers, sizeof *r.trial);
    if (plan->alternatives == NULL || r.choice == NULL || r.trial == NULL) status = GHP_NO_MEMORY();
    if (status == GHP_OK) status = ghp_load_init(job->instance, &r.load);
    for (int v = 0; v < plan->model.n_layers && status == GHP_OK; ++v) {
        r.choice[v] = ghp_instance_find(job->instance, v, plan->splits[v]);
        left += is_weighted(&plan->model, v);
    }
    for (int v = 0; v < plan->model.n_layers && status == GHP_OK; ++v) {
        if (!is_weighted(&plan->model, v) || job->instance->n_choices[v] < 2) continue;
        r.layer = v;
        status = find_one(&r, left--, plan);
    }
    ghp_load_release(&r.load);
    free(r.choice);
    free(r.trial);
    return status;
}
