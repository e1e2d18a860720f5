/* core/plan/plan.c - whether a plan is sound, what it should cost, and whether it still says so.
 *
 * Makes no plan (planner/ does) and knows no file (plan_io.c). Order of a check: structure, then cost by the profile,
 * then memory, then the certificate's own numbers. */
#include "core/plan/plan.h"

#include "core/base/hash.h"
#include "core/plan/method_io.h"
#include "core/plan/plan_private.h"
#include "core/program/lower/scaling.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two predictions of one plan differ by the rounding of another compiler or libm at most. */
static const double same_relative = 1e-9;

void ghp_plan_release(struct ghp_plan *plan)
{
    if (plan == NULL) return;
    ghp_model_release(&plan->model);
    ghp_profile_release(&plan->profile);
    ghp_overrides_release(&plan->what_if);
    for (int i = 0; i < plan->n_baselines; i++) {
        free(plan->baselines[i].reason);
        free(plan->baselines[i].recompute);
        free(plan->baselines[i].sharding);
    }
    free(plan->baselines);
    for (int i = 0; i < plan->n_alternatives; i++)
        ghp_alternative_release(&plan->alternatives[i]);
    free(plan->alternatives);
    free(plan->break_even_search);
    free(plan->splits);
    free(plan->shares);
    free(plan->recompute);
    free(plan->nchw16c);
    free(plan->model_path);
    free(plan->profile_path);
    free(plan->certificate.preferred);
    free(plan->certificate.margin);
    free(plan->certificate.unfinished);
    free(plan->certificate.sync);
    *plan = (struct ghp_plan){0};
}

int ghp_plan_canonical_groups(const struct ghp_model *model, const struct ghp_split *splits,
                              struct ghp_problem problem)
{
    int multiple = 1; /* least common multiple of the TP sizes; divides N as they do */

    for (int i = 0; i < model->n_layers; i++)
        multiple = multiple / (int)ghp_gcd(multiple, splits[i].tp_size) * splits[i].tp_size;
    return problem.workers / multiple;
}

enum ghp_status ghp_plan_check_split(const struct ghp_plan *plan, int layer, struct ghp_split split)
{
    const struct ghp_staging *s = &plan->staging;
    int stage = ghp_stage_of(s, layer);
    int rank = ghp_stage_representative(s, stage, plan->problem);
    struct ghp_placement placement = ghp_placement_of(s, plan->model.n_layers, plan->problem, rank);

    GHP_TRY(ghp_split_check(&plan->model.layers[layer], split, placement.problem));
    GHP_TRY(ghp_stage_check_sharding(&plan->model, s, layer, split));
    if (ghp_stage_takes_tp_size(s, stage, plan->problem, split.tp_size)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' is split over %d workers, which do not divide its stage into "
                    "blocks of equal shares; use a TP size that does",
                    plan->model.layers[layer].name, split.tp_size);
}

static enum ghp_status check_scaling(const struct ghp_plan *plan)
{
    const struct ghp_lowering lowering = {.model = &plan->model,
                                          .problem = plan->problem,
                                          .staging = ghp_staging_or_none(&plan->staging),
                                          .method = plan->method};

    return ghp_lower_check_scaling(&lowering, plan->splits);
}

static bool shards(const struct ghp_plan *plan)
{
    bool any = false;

    for (int i = 0; i < plan->model.n_layers; i++)
        any = any || plan->splits[i].sharding != GHP_SHARDING_NONE;
    return any;
}

enum ghp_status ghp_plan_check(const struct ghp_plan *plan)
{
    int workers = plan->problem.workers;

    if (plan->staging.n < 2 && plan->shares == NULL) GHP_TRY(ghp_problem_check(plan->problem));
    GHP_TRY(ghp_model_check_sizes(&plan->model, plan->problem.global_batch, workers));
    if (plan->groups < 1 || plan->group_size < 1 || workers % plan->groups != 0 ||
        workers / plan->groups != plan->group_size)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "%d groups of %d workers are not %d workers; make groups x group_size the workers",
            plan->groups, plan->group_size, workers);
    GHP_TRY(ghp_staging_check(&plan->staging, &plan->model, plan->problem));
    GHP_TRY(ghp_sync_check(plan->method.sync,
                           &(struct ghp_sync_place){&plan->model, plan->splits, &plan->staging,
                                                    ghp_method_clips(&plan->method), workers}));
    GHP_TRY(check_scaling(plan));
    GHP_TRY(ghp_method_check_within(plan->method.shard_within, workers));
    GHP_TRY(ghp_method_check_reduced(&plan->method, shards(plan), plan->profile.element_bytes));
    if (plan->staging.n > 1 && ghp_staging_group(&plan->staging, workers) != plan->group_size)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the stages have %d workers together, but a group has %d; make them equal",
                        ghp_staging_group(&plan->staging, workers), plan->group_size);
    for (int i = 0; i < plan->model.n_layers; i++) {
        GHP_TRY(ghp_plan_check_split(plan, i, plan->splits[i]));
        if (plan->staging.n < 2 && plan->group_size % plan->splits[i].tp_size != 0)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' is split over %d workers, but its group has %d; use a TP "
                            "size that divides %d, or larger groups",
                            plan->model.layers[i].name, plan->splits[i].tp_size, plan->group_size,
                            plan->group_size);
    }
    return GHP_OK;
}

static enum ghp_status scratch_of(void *context, const struct ghp_local *local, enum ghp_pass pass,
                                  int64_t *bytes)
{
    return ghp_profile_scratch(context, local, pass, bytes);
}

struct ghp_lowering ghp_lowering_of(const struct ghp_model *model, struct ghp_problem problem,
                                    const struct ghp_profile *profile)
{
    return (struct ghp_lowering){
        .model = model,
        .problem = problem,
        .element_bytes = profile->element_bytes,
        .bf16_weights = profile->on_device && profile->element_bytes == 2,
        .joins_products = profile->on_device,
        .prefetch = profile->prefetch,
        .scratch = {.bytes = scratch_of, .context = (void *)(uintptr_t)profile}, /* only read */
    };
}

struct ghp_lowering ghp_plan_lowering(const struct ghp_plan *plan,
                                      const struct ghp_profile *profile)
{
    struct ghp_lowering lowering = ghp_lowering_of(&plan->model, plan->problem, profile);

    lowering.method = plan->method;
    lowering.staging = ghp_staging_or_none(&plan->staging);
    lowering.nchw16c = plan->nchw16c;
    return lowering;
}

/* The measured part of the costed seconds of all stages. */
static double measured_share(const struct ghp_timing *timings, int n)
{
    double measured_s = 0, all_s = 0;

    if (n == 1) return timings[0].measured_share;
    for (int k = 0; k < n; k++) {
        measured_s += timings[k].measured_share * timings[k].serial_s;
        all_s += timings[k].serial_s;
    }
    return all_s > 0 ? measured_s / all_s : 0;
}

double ghp_prediction_computing_s(const struct ghp_prediction *p)
{
    double reshard_s = isnan(p->reshard_s) ? 0 : p->reshard_s;

    return fmax(0, p->step_s - reshard_s - p->exposed_s);
}

const char *ghp_prediction_error_format(const struct ghp_prediction *p,
                                        char text[GHP_ERROR_TEXT_SIZE])
{
    double ms = 1e3 * p->error_s;

    if (ms > 0)
        snprintf(text, GHP_ERROR_TEXT_SIZE, ms < 0.01 ? "%.1g" : "%.2f", ms);
    else
        snprintf(text, GHP_ERROR_TEXT_SIZE, "?");
    return text;
}

/* disturbed   of the profile: all that it has may be off by so much, together */
static void fill_prediction(const struct ghp_programs *programs, const struct ghp_timing *timings,
                            double disturbed, struct ghp_prediction *p)
{
    int busiest = 0;

    *p = (struct ghp_prediction){.step_s = timings[0].step_s,
                                 .peak_bytes = ghp_programs_peak_bytes(programs),
                                 .sent_bytes = ghp_programs_sent_bytes(programs),
                                 .server_bytes = programs->server.peak_bytes,
                                 .program_hash = ghp_programs_hash(programs)};
    for (int k = 0; k < programs->n; k++) {
        if (timings[k].compute_s > timings[busiest].compute_s) busiest = k;
        p->comm_s = fmax(p->comm_s, timings[k].comm_s);
    }
    p->compute_s = timings[busiest].compute_s;
    p->exposed_s = timings[busiest].phase_s[GHP_PHASE_EXPOSED];
    p->reshard_s = timings[busiest].phase_s[GHP_PHASE_RESHARD];
    p->error_s = timings[busiest].error_s + disturbed * p->step_s;
    p->measured_share = measured_share(timings, programs->n);
}

/* By how much the slowest worker of each stage slows its stage; 1: there is none. */
static void slow_stages(const struct ghp_lowering *lowering, const struct ghp_profile *profile,
                        const struct ghp_stragglers *stragglers, double slow[GHP_MAX_STAGES])
{
    const double *speed = ghp_speeds_of(&profile->speeds, lowering->problem.workers);
    bool dealt =
        lowering->staging != NULL && lowering->staging->shares != NULL; /* all are equally long */

    for (int k = 0; k < GHP_MAX_STAGES; k++)
        slow[k] = 1;
    for (int i = 0; i < stragglers->n; i++) {
        int rank = stragglers->of[i].rank;
        int stage =
            ghp_placement_of(lowering->staging, lowering->model->n_layers, lowering->problem, rank)
                .stage;
        double faster = speed != NULL && !dealt ? speed[rank] : 1;

        slow[stage] = fmax(slow[stage], stragglers->of[i].factor / faster);
    }
}

static enum ghp_status predict_together(const struct ghp_lowering *lowering,
                                        const struct ghp_split *splits,
                                        const struct ghp_profile *profile,
                                        const struct ghp_stragglers *stragglers,
                                        struct ghp_prediction *predicted)
{
    struct ghp_programs programs;
    struct ghp_timing timings[GHP_MAX_STAGES];
    double slow[GHP_MAX_STAGES];
    enum ghp_status status;

    slow_stages(lowering, profile, stragglers, slow);
    GHP_TRY(ghp_lower_all(lowering, splits, &programs));
    status = ghp_simulate_slowed(&programs, profile, slow, timings);
    if (status == GHP_OK) {
        fill_prediction(&programs, timings, profile->disturbed, predicted);
        for (int k = 0; k < programs.n; k++)
            ghp_timing_release(&timings[k]);
    }
    ghp_programs_release(&programs);
    return status;
}

/* Who waits for nobody's step loses his own steps alone: N steps last N / (sum of 1 / T of each worker). */
static enum ghp_status predict_apart(const struct ghp_lowering *lowering,
                                     const struct ghp_split *splits,
                                     const struct ghp_profile *profile,
                                     const struct ghp_stragglers *stragglers,
                                     struct ghp_prediction *predicted)
{
    double rate, workers = lowering->problem.workers;

    GHP_TRY(
        predict_together(lowering, splits, profile, &(const struct ghp_stragglers){0}, predicted));
    rate = (workers - stragglers->n) / predicted->step_s;
    for (int i = 0; i < stragglers->n; i++) {
        const struct ghp_stragglers one = {.n = 1, .of = {stragglers->of[i]}};
        struct ghp_prediction slow;

        GHP_TRY(predict_together(lowering, splits, profile, &one, &slow));
        rate += 1 / slow.step_s;
    }
    predicted->step_s = workers / rate;
    return GHP_OK;
}

enum ghp_status ghp_plan_predict_slowed(const struct ghp_lowering *lowering,
                                        const struct ghp_split *splits,
                                        const struct ghp_profile *profile,
                                        const struct ghp_stragglers *stragglers,
                                        struct ghp_prediction *predicted)
{
    bool together = stragglers->n == 0 || ghp_sync_keeps_step(lowering->method.sync);

    return (together ? predict_together : predict_apart)(lowering, splits, profile, stragglers,
                                                         predicted);
}

enum ghp_status ghp_plan_predict(const struct ghp_lowering *lowering,
                                 const struct ghp_split *splits, const struct ghp_profile *profile,
                                 struct ghp_prediction *predicted)
{
    return ghp_plan_predict_slowed(lowering, splits, profile, &(const struct ghp_stragglers){0},
                                   predicted);
}

/* Within rounding; `scale` is what the difference is small against. */
static bool same(double a, double b, double scale)
{
    return fabs(a - b) <= same_relative * (fabs(scale) + 1e-12);
}

static enum ghp_status fail_seconds(const char *field, double said, double found)
{
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the plan does not hold: '%s' says %.9g, but it comes to %.9g; make the plan "
                    "again with ghp-plan",
                    field, said, found);
}

static enum ghp_status fail_bytes(const char *field, int64_t said, int64_t found)
{
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the plan does not hold: '%s' says %" PRId64 ", but it comes to %" PRId64
                    "; make the plan again with ghp-plan",
                    field, said, found);
}

static enum ghp_status fail_program(uint64_t said, uint64_t found)
{
    char priced[17], lowered[17];

    ghp_hash_text(said, priced);
    ghp_hash_text(found, lowered);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the plan does not hold: it was costed as program %s, but is lowered to "
                    "program %s; make the plan again with ghp-plan",
                    priced, lowered);
}

/* What the plan says against what was found. */
static enum ghp_status compare(const struct ghp_prediction *said,
                               const struct ghp_prediction *found)
{
    const struct {
        const char *field;
        double said, found;
    } seconds[] = {
        {"predicted.predicted_step_s", said->step_s, found->step_s},
        {"predicted.compute_s", said->compute_s, found->compute_s},
        {"predicted.comm_s", said->comm_s, found->comm_s},
        {"predicted.exposed_s", said->exposed_s, found->exposed_s},
        {"predicted.reshard_s", said->reshard_s, found->reshard_s},
        {"predicted.error_s", said->error_s, found->error_s},
    };

    if (said->program_hash != 0 && said->program_hash != found->program_hash)
        return fail_program(said->program_hash, found->program_hash);
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++)
        if (!isnan(seconds[i].said) && !same(seconds[i].said, seconds[i].found, found->step_s))
            return fail_seconds(seconds[i].field, seconds[i].said, seconds[i].found);
    if (!same(said->measured_share, found->measured_share, 1))
        return fail_seconds("predicted.measured_share", said->measured_share,
                            found->measured_share);
    if (said->peak_bytes != found->peak_bytes)
        return fail_bytes("predicted.peak_bytes", said->peak_bytes, found->peak_bytes);
    if (said->sent_bytes != found->sent_bytes)
        return fail_bytes("predicted.sent_bytes", said->sent_bytes, found->sent_bytes);
    if (said->server_bytes != found->server_bytes)
        return fail_bytes("predicted.server_bytes", said->server_bytes, found->server_bytes);
    return GHP_OK;
}

/* Whether the plan has what no search is about, so that it may be faster than the best plan searched for: a bucket
 * size, unequal shares, layers recomputed, virtual stages. */
static bool found_by_trial(const struct ghp_plan *plan)
{
    return plan->method.bucket_bytes > 0 || plan->shares != NULL || plan->recompute != NULL ||
           plan->staging.chunks > 1;
}

/* Whether the certificate's numbers agree with each other and with the prediction. */
static enum ghp_status check_certificate(const struct ghp_plan *plan)
{
    const struct ghp_certificate *c = &plan->certificate;
    double step_s = plan->predicted.step_s, gap;

    if (!(c->step_s > 0)) { /* nothing was searched: a plan that was given */
        if (plan->strategy != GHP_STRATEGY_AUTO) return GHP_OK;
        return fail_seconds("certificate.step_s", c->step_s, step_s);
    }
    if (!same(c->step_s, step_s, step_s) &&
        (c->step_s > step_s ? !found_by_trial(plan) : c->preferred == NULL))
        return fail_seconds("certificate.step_s", c->step_s, step_s);
    if (c->bound_s < 0 || (c->bound_s > c->step_s && !same(c->bound_s, c->step_s, c->step_s)))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan does not hold: 'certificate.bound_s' of %.9g is not a lower "
                        "bound of %.9g; make the plan "
                        "again with ghp-plan",
                        c->bound_s, c->step_s);
    gap = fmax(0, (c->step_s - c->bound_s) / c->step_s);
    if (fabs(c->gap - gap) > 1e-8) return fail_seconds("certificate.gap", c->gap, gap);
    if (c->proof == GHP_PROOF_OPTIMAL && c->gap > 1e-6)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan does not hold: it calls itself optimal with a gap of %.3g; make "
                        "the plan again with "
                        "ghp-plan",
                        c->gap);
    return GHP_OK;
}

/* A plan that was chosen freely is never slower than pure data parallelism, the first of its kind among baselines. */
static enum ghp_status check_baselines(const struct ghp_plan *plan)
{
    if (plan->strategy != GHP_STRATEGY_AUTO) return GHP_OK;
    for (int i = 0; i < plan->n_baselines; i++) {
        const struct ghp_baseline *b = &plan->baselines[i];

        if (b->strategy != GHP_STRATEGY_DATA || b->local_statistics) continue;
        if (!b->feasible || plan->predicted.step_s <= b->predicted.step_s ||
            same(plan->predicted.step_s, b->predicted.step_s, b->predicted.step_s))
            return GHP_OK;
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan does not hold: its step of %.9g s is slower than data "
                        "parallelism's %.9g s; make the "
                        "plan again with ghp-plan",
                        plan->predicted.step_s, b->predicted.step_s);
    }
    return GHP_OK;
}

/* The prediction by one profile against what the plan says. */
static enum ghp_status check_cost(const struct ghp_plan *plan, const struct ghp_profile *profile)
{
    struct ghp_lowering lowering = ghp_plan_lowering(plan, profile);
    struct ghp_prediction found;

    GHP_TRY(ghp_plan_predict(&lowering, plan->splits, profile, &found));
    return compare(&plan->predicted, &found);
}

/* The second-best choices by the whole profile: the plan does not carry their costs. */
static enum ghp_status check_alternatives(const struct ghp_plan *plan,
                                          const struct ghp_profile *profile)
{
    struct ghp_lowering lowering = ghp_plan_lowering(plan, profile);
    size_t layers = (size_t)plan->model.n_layers;
    struct ghp_split *splits = ghp_alloc(layers, sizeof *splits);
    enum ghp_status status = splits == NULL ? GHP_NO_MEMORY() : GHP_OK;

    for (int i = 0; i < plan->n_alternatives && status == GHP_OK; i++) {
        const struct ghp_alternative *a = &plan->alternatives[i];
        struct ghp_prediction found;

        if (a->n_choices == 0) continue; /* of an earlier version: its changes were not written */
        ghp_alternative_splits(a, plan->splits, layers, splits);
        status = ghp_plan_predict(&lowering, splits, profile, &found);
        if (status == GHP_OK && !same(a->step_s, found.step_s, found.step_s))
            status = fail_seconds("alternatives.predicted_step_s", a->step_s, found.step_s);
    }
    free(splits);
    return status;
}

enum ghp_status ghp_plan_verify(const struct ghp_plan *plan, const struct ghp_profile *profile)
{
    GHP_TRY(ghp_plan_check(plan));
    if (!ghp_precision_same(ghp_profile_precision(&plan->profile),
                            ghp_profile_precision(profile)) ||
        strcmp(plan->profile.backend, profile->backend) != 0 ||
        strcmp(plan->profile.numerics, profile->numerics) != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan was made for %s, %s, %s, but this profile is of %s, %s, %s; "
                        "give the profile that the plan was made with",
                        plan->profile.backend, plan->profile.numerics,
                        ghp_precision_name(ghp_profile_precision(&plan->profile)), profile->backend,
                        profile->numerics, ghp_precision_name(ghp_profile_precision(profile)));
    GHP_TRY(check_cost(plan, profile));
    if (profile != &plan->profile) {
        /* the costs that ghp-run will compare with are the same */
        enum ghp_status status = check_cost(plan, &plan->profile);

        if (status != GHP_OK) {
            ghp_status_prefix("by the costs inside the plan");
            return status;
        }
        GHP_TRY(check_alternatives(plan, profile));
    }
    if (plan->memory_limit_bytes > 0 && plan->predicted.peak_bytes > plan->memory_limit_bytes)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan does not hold: it needs %" PRId64
                        " bytes a worker, but its limit is %" PRId64
                        "; make the plan again with ghp-plan --memory",
                        plan->predicted.peak_bytes, plan->memory_limit_bytes);
    GHP_TRY(check_certificate(plan));
    return check_baselines(plan);
}
