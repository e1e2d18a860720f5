/* planner/make/write.c - see make/write.h. */
#include "planner/make/write.h"

#include "onnx/network.h"
#include "planner/alternatives/break_even.h"

#include <stdlib.h>
#include <string.h>

/* What was asked for, and of what. */
static enum ghp_status write_request(const struct ghp_plan_context *s, struct ghp_plan *plan)
{
    const struct ghp_plan_request *w = s->request;

    plan->strategy = ghp_request_is_given(w) ? GHP_STRATEGY_GIVEN : w->strategy;
    plan->problem = w->problem;
    plan->method = w->method; /* its buckets come with the decision */
    plan->memory_limit_bytes = w->memory_bytes;
    plan->model_hash = plan->model.hash;
    plan->profile_hash = w->profile->hash;
    GHP_TRY(ghp_network_keep(w->model_path, &plan->model_path));
    if (ghp_network_has_weights(w->model_path, &plan->model_weights) == GHP_ERR_NO_MEMORY)
        return GHP_NO_MEMORY(); /* what else is wrong with them is ghp-run's to say */
    GHP_TRY(ghp_certify_text(&plan->profile_path, w->profile_path));
    return w->what_if != NULL ? ghp_overrides_copy(w->what_if, &plan->what_if) : GHP_OK;
}

/* The decision; its lists are handed over. */
static enum ghp_status write_decision(const struct ghp_plan_context *s, struct ghp_candidate *c,
                                      struct ghp_plan *plan)
{
    size_t layers = (size_t)plan->model.n_layers;

    plan->groups = c->groups;
    plan->group_size = plan->problem.workers / c->groups;
    plan->splits = c->splits;
    plan->staging = c->staging;
    plan->shares = c->shares;
    plan->recompute = c->recompute;
    plan->method.bucket_bytes = c->bucket_bytes;
    plan->predicted = c->predicted;
    if (c->sync.ops != NULL) plan->method.sync = c->sync;
    *c = (struct ghp_candidate){0};
    if (s->nchw16c == NULL) return GHP_OK;
    plan->nchw16c = ghp_alloc(layers, sizeof *plan->nchw16c);
    if (plan->nchw16c == NULL) return GHP_NO_MEMORY();
    memcpy(plan->nchw16c, s->nchw16c, layers * sizeof *plan->nchw16c);
    return GHP_OK;
}

/* How a candidate shards each layer's parameters; NULL: it shards none. */
static enum ghp_status write_sharding(const struct ghp_candidate *c, int layers,
                                      enum ghp_param_sharding **sharding)
{
    bool any = false;

    for (int v = 0; c->splits != NULL && v < layers; v++)
        any = any || c->splits[v].sharding != GHP_SHARDING_NONE;
    if (!any) return GHP_OK;
    *sharding = ghp_alloc((size_t)layers, sizeof **sharding);
    if (*sharding == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v < layers; v++)
        (*sharding)[v] = c->splits[v].sharding;
    return GHP_OK;
}

/* A baseline's plan: what of it is not as in the plan. */
static enum ghp_status write_baseline_plan(const struct ghp_plan_context *s,
                                           const struct ghp_candidate *c,
                                           const struct ghp_plan *plan, struct ghp_baseline *b)
{
    struct ghp_sync sync = c->sync.ops != NULL ? c->sync : s->request->method.sync;
    size_t layers = (size_t)plan->model.n_layers;

    b->predicted = c->predicted;
    b->bucket_bytes = c->bucket_bytes;
    if (ghp_sync_ops_of(sync) != ghp_sync_ops_of(plan->method.sync))
        b->sync.ops = ghp_sync_ops_of(sync);
    GHP_TRY(write_sharding(c, plan->model.n_layers, &b->sharding));
    if (c->recompute == NULL) return GHP_OK;
    b->recompute = ghp_alloc(layers, sizeof *b->recompute);
    if (b->recompute == NULL) return GHP_NO_MEMORY();
    memcpy(b->recompute, c->recompute, layers * sizeof *b->recompute);
    return GHP_OK;
}

static enum ghp_status write_baselines(const struct ghp_plan_context *s,
                                       const struct ghp_candidates *c, struct ghp_plan *plan)
{
    struct ghp_baseline *local;

    plan->baselines = ghp_alloc(GHP_BASELINES + 3, sizeof *plan->baselines);
    if (plan->baselines == NULL) return GHP_NO_MEMORY();
    for (int b = 0; b < GHP_BASELINES; b++) {
        const struct ghp_baseline_found *found = &c->baseline[b];

        plan->baselines[plan->n_baselines++] = (struct ghp_baseline){
            .strategy = ghp_baseline_strategy(b), .feasible = found->reason == NULL};
        GHP_TRY(write_baseline_plan(s, &found->plan, plan, &plan->baselines[b]));
        GHP_TRY(ghp_certify_text(&plan->baselines[b].reason, found->reason));
    }
    if (c->local_data.splits != NULL) {
        local = &plan->baselines[plan->n_baselines++];
        *local = (struct ghp_baseline){
            .strategy = GHP_STRATEGY_DATA, .feasible = true, .local_statistics = true};
        GHP_TRY(write_baseline_plan(s, &c->local_data, plan, local));
    }
    if (c->fsdp.splits != NULL) {
        struct ghp_baseline *fsdp = &plan->baselines[plan->n_baselines++];

        *fsdp = (struct ghp_baseline){.strategy = GHP_STRATEGY_DATA, .feasible = true};
        GHP_TRY(write_baseline_plan(s, &c->fsdp, plan, fsdp));
    }
    if (!c->rules_tried) return GHP_OK;
    plan->baselines[plan->n_baselines++] = (struct ghp_baseline){.strategy = GHP_STRATEGY_HEURISTIC,
                                                                 .feasible = c->rules.found,
                                                                 .predicted = c->rules_predicted,
                                                                 .bucket_bytes = -1};
    return c->rules.found ? GHP_OK
                          : ghp_certify_text(&plan->baselines[plan->n_baselines - 1].reason,
                                             "none of its plans fits the memory");
}

static enum ghp_status write_certificate(const struct ghp_plan_context *s,
                                         const struct ghp_candidates *c, struct ghp_choice *choice,
                                         struct ghp_plan *plan)
{
    char margin[GHP_MARGIN_SIZE];

    ghp_choice_margin(s, c, choice, margin);
    plan->certificate = choice->certificate;
    choice->certificate = (struct ghp_certificate){0};
    return ghp_certify_text(&plan->certificate.margin, margin);
}

/* Whether an earlier rank has the same shapes. */
static bool has_same_shapes(const struct ghp_plan *plan, int rank)
{
    const struct ghp_staging *s = &plan->staging;
    int layers = plan->model.n_layers;
    struct ghp_placement own = ghp_placement_of(s, layers, plan->problem, rank);

    if (s->shares == NULL && s->n < 2) return rank > 0;
    for (int r = 0; r < rank; r++) {
        struct ghp_placement other = ghp_placement_of(s, layers, plan->problem, r);

        if (other.stage == own.stage && other.problem.global_batch == own.problem.global_batch)
            return true;
    }
    return false;
}

/* The program of data parallelism, which ghp-run may turn to. */
static enum ghp_status lower_data(struct ghp_lowering lowering, const struct ghp_candidate *data,
                                  struct ghp_program *program)
{
    lowering.staging = ghp_staging_or_none(&data->staging);
    lowering.unplaced = true;
    lowering.method.bucket_bytes = data->bucket_bytes;
    if (data->sync.ops != NULL) lowering.method.sync = data->sync;
    return ghp_lower(&lowering, data->splits, 0, program);
}

/* The entries that the plan's programs ask for: of every worker whose shapes differ from the others' of its stage, and
 * of data parallelism (NULL: there is no such plan). */
static enum ghp_status write_profile(const struct ghp_profile *profile,
                                     const struct ghp_candidate *data, struct ghp_plan *plan)
{
    struct ghp_lowering lowering = ghp_plan_lowering(plan, profile);
    struct ghp_program *programs = ghp_alloc((size_t)plan->problem.workers + 1, sizeof *programs);
    enum ghp_status status = programs == NULL ? GHP_NO_MEMORY() : GHP_OK;
    int n = 0;

    lowering.unplaced = true;
    for (int r = 0; r < plan->problem.workers && status == GHP_OK; r++) {
        if (has_same_shapes(plan, r)) continue;
        status = ghp_lower(&lowering, plan->splits, r, &programs[n]);
        n += status == GHP_OK;
    }
    if (status == GHP_OK && data != NULL && (!ghp_plan_is_data(plan) || data->sync.ops != NULL)) {
        status = lower_data(lowering, data, &programs[n]);
        n += status == GHP_OK;
    }
    if (status == GHP_OK) status = ghp_profile_subset_of(profile, programs, n, &plan->profile);
    for (int k = 0; k < n; k++)
        ghp_program_release(&programs[k]);
    free(programs);
    if (status == GHP_OK && plan->shares != NULL)
        plan->staging.speeds = ghp_speeds_of(&plan->profile.speeds, plan->problem.workers);
    return status;
}

/* The values at which each alternative would be the better one. */
static enum ghp_status write_break_even(const struct ghp_profile *profile, struct ghp_plan *plan)
{
    struct ghp_break_evens found;

    GHP_TRY(ghp_break_even_compute(profile, plan, &found));
    for (int i = 0; i < plan->n_alternatives; i++) {
        plan->alternatives[i].n_break_even = found.layers[i].n;
        memcpy(plan->alternatives[i].break_even, found.layers[i].of, sizeof found.layers[i].of);
    }
    plan->break_even_search = found.search;
    found.search = NULL;
    ghp_break_even_release(&found);
    return GHP_OK;
}

/* The second best of each layer. */
static enum ghp_status write_alternatives(const struct ghp_plan_context *s,
                                          struct ghp_choice *choice, struct ghp_plan *plan)
{
    plan->alternatives = choice->alternatives.of;
    plan->n_alternatives = choice->alternatives.n;
    choice->alternatives = (struct ghp_alternatives){0};
    if (choice->staged)
        return ghp_certify_text(&plan->break_even_search,
                                "none: not with stages, micro-batches or unequal shares");
    if (s->request->decision_only) return GHP_OK;
    if (!s->request->break_even)
        return ghp_certify_text(&plan->break_even_search, "off, as asked");
    if (ghp_plan_context_is_late(s))
        return ghp_certify_text(&plan->break_even_search, "none: the time limit came first");
    return write_break_even(s->request->profile, plan);
}

enum ghp_status ghp_write_plan(const struct ghp_plan_context *context,
                               const struct ghp_candidates *candidates, struct ghp_choice *choice,
                               const struct ghp_model *model, struct ghp_plan *plan)
{
    const struct ghp_candidate *data;
    enum ghp_status status;

    *plan = (struct ghp_plan){.model = *model};
    GHP_TRY_GOTO(status, write_request(context, plan), done);
    GHP_TRY_GOTO(status, write_certificate(context, candidates, choice, plan), done);
    GHP_TRY_GOTO(status, write_decision(context, &choice->plan, plan), done);
    GHP_TRY_GOTO(status, write_baselines(context, candidates, plan), done);
    GHP_TRY_GOTO(status, ghp_plan_check(plan), done);
    data = candidates->baseline[0].reason == NULL ? &candidates->baseline[0].plan : NULL;
    GHP_TRY_GOTO(status, write_profile(context->request->profile, data, plan), done);
    status = write_alternatives(context, choice, plan);
done:
    ghp_choice_release(choice);
    if (status != GHP_OK) ghp_plan_release(plan);
    return status;
}
