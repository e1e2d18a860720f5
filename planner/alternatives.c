/* planner/alternatives.c - one search a layer, with a share of the time. */
#include "planner/alternatives.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct runner_up {
    const struct ghp_alternatives_job *job;
    int layer;
    int *choice;   /* the plan's, n_layers */
    int *trial;    /* scratch */
    int best;      /* choice of the layer, -1: none */
    double step_s; /* with it */
};

/* Simulates a plan with the plan's buckets and keeps it where it is the best yet. */
static enum ghp_status weigh(struct runner_up *r, const int *choice)
{
    double step_s;
    int64_t peak;

    GHP_TRY(ghp_search_judge(r->job->instance, choice, r->job->bucket_bytes, &step_s, &peak));
    if (r->job->limit_bytes > 0 && peak > r->job->limit_bytes) return GHP_OK;
    if (step_s >= r->step_s) return GHP_OK;
    r->step_s = step_s;
    r->best = choice[r->layer];
    return GHP_OK;
}

/* Every other split of the layer, all other layers as they are. */
static enum ghp_status change_alone(struct runner_up *r)
{
    const struct ghp_instance *in = r->job->instance;

    memcpy(r->trial, r->choice, (size_t)in->n_layers * sizeof *r->trial);
    for (int i = 0; i < in->n_choices[r->layer]; ++i) {
        if (i == r->choice[r->layer]) continue;
        r->trial[r->layer] = i;
        GHP_TRY(weigh(r, r->trial));
    }
    return GHP_OK;
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
    if (status == GHP_OK && result.feasible) status = weigh(r, result.kept[0].choice);
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
    struct runner_up r = {.job = job};
    enum ghp_status status = GHP_OK;
    int left = 0;

    plan->alternatives = ghp_alloc(layers, sizeof *plan->alternatives);
    r.choice = ghp_alloc(layers, sizeof *r.choice);
    r.trial = ghp_alloc(layers, sizeof *r.trial);
    if (plan->alternatives == NULL || r.choice == NULL || r.trial == NULL) status = GHP_NO_MEMORY();
    for (int v = 0; v < plan->model.n_layers && status == GHP_OK; ++v) {
        r.choice[v] = ghp_instance_find(job->instance, v, plan->splits[v]);
        left += is_weighted(&plan->model, v);
    }
    for (int v = 0; v < plan->model.n_layers && status == GHP_OK; ++v) {
        if (!is_weighted(&plan->model, v) || job->instance->n_choices[v] < 2) continue;
        r.layer = v;
        status = find_one(&r, left--, plan);
    }
    free(r.choice);
    free(r.trial);
    return status;
}
