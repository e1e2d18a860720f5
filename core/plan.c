/* core/plan.c - whether a plan is sound, what it should cost, and whether it still says so.
 *
 * Makes no plan (planner/ does) and knows no file (plan_io.c).  Order of a check: structure, then cost by the profile,
 * then memory, then the certificate's own numbers. */
#include "core/plan.h"

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
    ghp_edits_release(&plan->what_if);
    for (int i = 0; i < plan->n_baselines; ++i) {
        free(plan->baselines[i].strategy);
        free(plan->baselines[i].reason);
    }
    free(plan->baselines);
    for (int i = 0; i < plan->n_alternatives; ++i)
        ghp_alternative_release(&plan->alternatives[i]);
    for (int i = 0; i < plan->n_sensitivity; ++i)
        ghp_sensitivity_release(&plan->sensitivity[i]);
    free(plan->alternatives);
    free(plan->sensitivity);
    free(plan->break_even_search);
    free(plan->splits);
    free(plan->strategy);
    free(plan->model_path);
    free(plan->profile_path);
    free(plan->certificate.status);
    free(plan->certificate.preferred);
    free(plan->certificate.margin);
    *plan = (struct ghp_plan){0};
}

static int gcd(int a, int b)
{
    while (b != 0) {
        int rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

int ghp_plan_canonical_groups(const struct ghp_model *model, const struct ghp_split *splits,
                              struct ghp_extent extent)
{
    int multiple = 1; /* least common multiple of the degrees; divides N as they do */

    for (int i = 0; i < model->n_layers; ++i)
        multiple = multiple / gcd(multiple, splits[i].degree) * splits[i].degree;
    return extent.workers / multiple;
}

enum ghp_status ghp_plan_check(const struct ghp_plan *plan)
{
    int workers = plan->extent.workers;

    GHP_TRY(ghp_extent_check(plan->extent));
    if (plan->groups < 1 || plan->group_size < 1 || workers % plan->groups != 0 ||
        workers / plan->groups != plan->group_size)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "%d groups of %d workers are not %d workers; make groups x group_size the workers",
            plan->groups, plan->group_size, workers);
    for (int i = 0; i < plan->model.n_layers; ++i) {
        GHP_TRY(ghp_split_check(&plan->model.layers[i], plan->splits[i], plan->extent));
        if (plan->group_size % plan->splits[i].degree != 0)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' is split over %d workers, but its group has %d; use a "
                            "degree that divides %d, or "
                            "larger groups",
                            plan->model.layers[i].name, plan->splits[i].degree, plan->group_size,
                            plan->group_size);
    }
    return GHP_OK;
}

static enum ghp_status scratch_of(void *context, const struct ghp_local *local, enum ghp_pass pass,
                                  int64_t *bytes)
{
    return ghp_profile_scratch(context, local, pass, bytes);
}

struct ghp_lowering ghp_plan_lowering(const struct ghp_plan *plan,
                                      const struct ghp_profile *profile)
{
    return (struct ghp_lowering){
        .model = &plan->model,
        .extent = plan->extent,
        .element_bytes = profile->element_bytes,
        .bucket_bytes = plan->bucket_bytes,
        .scratch = {.bytes = scratch_of, .context = (void *)(uintptr_t)profile}, /* only read */
    };
}

enum ghp_status ghp_plan_predict(const struct ghp_lowering *how, const struct ghp_split *splits,
                                 const struct ghp_profile *profile,
                                 struct ghp_prediction *predicted)
{
    struct ghp_program program;
    struct ghp_timing timing;
    enum ghp_status status;

    GHP_TRY(ghp_lower(how, splits, 0, &program));
    status = ghp_simulate(&program, profile, &timing);
    if (status == GHP_OK) {
        *predicted = (struct ghp_prediction){
            .step_s = timing.step_s,
            .compute_s = timing.compute_s,
            .comm_s = timing.comm_s,
            .exposed_s = timing.phase_s[GHP_PHASE_EXPOSED],
            .error_s = timing.error_s,
            .measured_share = timing.measured_share,
            .peak_bytes = program.peak_bytes,
            .sent_bytes = ghp_program_sent_bytes(&program),
        };
        ghp_timing_release(&timing);
    }
    ghp_program_release(&program);
    return status;
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
        {"predicted.error_s", said->error_s, found->error_s},
    };

    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; ++i)
        if (!same(seconds[i].said, seconds[i].found, found->step_s))
            return fail_seconds(seconds[i].field, seconds[i].said, seconds[i].found);
    if (!same(said->measured_share, found->measured_share, 1))
        return fail_seconds("predicted.measured_share", said->measured_share,
                            found->measured_share);
    if (said->peak_bytes != found->peak_bytes)
        return fail_bytes("predicted.peak_bytes", said->peak_bytes, found->peak_bytes);
    if (said->sent_bytes != found->sent_bytes)
        return fail_bytes("predicted.sent_bytes", said->sent_bytes, found->sent_bytes);
    return GHP_OK;
}

/* The certificate's numbers among themselves and beside the prediction. */
static enum ghp_status check_certificate(const struct ghp_plan *plan)
{
    const struct ghp_certificate *c = &plan->certificate;
    double step_s = plan->predicted.step_s, gap;

    if (!(c->step_s > 0)) { /* nothing was searched: a plan that was given */
        if (strcmp(plan->strategy, "auto") != 0) return GHP_OK;
        return fail_seconds("certificate.step_s", c->step_s, step_s);
    }
    if (c->preferred == NULL && !same(c->step_s, step_s, step_s))
        return fail_seconds("certificate.step_s", c->step_s, step_s);
    if (c->preferred != NULL && c->step_s > step_s && !same(c->step_s, step_s, step_s))
        return fail_seconds("certificate.step_s", c->step_s, step_s);
    if (c->bound_s < 0 || (c->bound_s > c->step_s && !same(c->bound_s, c->step_s, c->step_s)))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan does not hold: 'certificate.bound_s' of %.9g is no lower bound "
                        "of %.9g; make the plan "
                        "again with ghp-plan",
                        c->bound_s, c->step_s);
    gap = fmax(0, (c->step_s - c->bound_s) / c->step_s);
    if (fabs(c->gap - gap) > 1e-8) return fail_seconds("certificate.gap", c->gap, gap);
    if (strcmp(c->status, "optimal") == 0 && c->gap > 1e-6)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the plan does not hold: it calls itself optimal with a gap of %.3g; make "
                        "the plan again with "
                        "ghp-plan",
                        c->gap);
    return GHP_OK;
}

/* A plan that was chosen freely is never slower than pure data parallelism. */
static enum ghp_status check_baselines(const struct ghp_plan *plan)
{
    if (strcmp(plan->strategy, "auto") != 0) return GHP_OK;
    for (int i = 0; i < plan->n_baselines; ++i) {
        const struct ghp_baseline *b = &plan->baselines[i];

        if (!b->feasible || strcmp(b->strategy, "data") != 0 ||
            plan->predicted.step_s <= b->predicted.step_s ||
            same(plan->predicted.step_s, b->predicted.step_s, b->predicted.step_s))
            continue;
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
    struct ghp_lowering how = ghp_plan_lowering(plan, profile);
    struct ghp_prediction found;

    GHP_TRY(ghp_plan_predict(&how, plan->splits, profile, &found));
    return compare(&plan->predicted, &found);
}

/* The runners-up by the whole profile: the plan does not carry their prices. */
static enum ghp_status check_alternatives(const struct ghp_plan *plan,
                                          const struct ghp_profile *profile)
{
    struct ghp_lowering how = ghp_plan_lowering(plan, profile);
    size_t layers = (size_t)plan->model.n_layers;
    struct ghp_split *splits = ghp_alloc(layers, sizeof *splits);
    enum ghp_status status = splits == NULL ? GHP_NO_MEMORY() : GHP_OK;

    for (int i = 0; i < plan->n_alternatives && status == GHP_OK; ++i) {
        const struct ghp_alternative *a = &plan->alternatives[i];
        struct ghp_prediction found;

        if (a->n_choices == 0) continue; /* of an earlier version: its changes were not written */
        ghp_alternative_splits(a, plan->splits, layers, splits);
        status = ghp_plan_predict(&how, splits, profile, &found);
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
                        ghp_precision_name(ghp_profile_precision(&plan->profile)),
                        profile->backend, profile->numerics,
                        ghp_precision_name(ghp_profile_precision(profile)));
    GHP_TRY(check_cost(plan, profile));
    if (profile != &plan->profile) {
        /* the prices that ghp-run will compare with are the same */
        enum ghp_status status = check_cost(plan, &plan->profile);

        if (status != GHP_OK) {
            ghp_status_prefix("by the prices inside the plan");
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
