/* planner/make.c - the order of a plan's making; make.h has it. */
#include "planner/make.h"

#include "core/log.h"
#include "core/units.h"
#include "planner/alternatives.h"
#include "planner/break_even.h"
#include "planner/heuristic.h"
#include "planner/make_remade.h"
#include "planner/make_staged.h"
#include "planner/uneven.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BASELINES = 3, BUCKET_SIZES = 11, RUNNER_UP_ROUNDS = 3 };

/* What travels through the making. */
enum by_trial { KEPT, REMADE, UNEVEN };

struct making {
    const struct ghp_wishes *wishes;
    struct ghp_plan *plan;
    struct ghp_lowering how;
    struct ghp_instance instance;
    struct ghp_search_result baseline[BASELINES]; /* data, model, owt */
    int64_t baseline_bucket[BASELINES];           /* the fastest that was tried with its plan: */
    int baseline_kept[BASELINES];                 /* this one of the plans kept */
    struct ghp_search_result own;                 /* the plan's search, without stages */
    struct ghp_allocation outer;                  /* the search over stages and micro-batches */
    bool searches_outer;                          /* there was one */
    bool staged;                                  /* its plan is taken */
    enum by_trial by_trial;                       /* what it has that no proof is about */
    struct ghp_domain domain;                     /* what it may choose from */
    struct ghp_prediction fastest;                /* before a simpler plan was taken */
    bool kept_fits;                               /* a plan with all layers kept does */
    int64_t remade_bytes; /* the least arena with layers made again; 0: not looked for */
    double began_s;
};

static const enum ghp_strategy baselines[BASELINES] = {GHP_STRATEGY_DATA, GHP_STRATEGY_MODEL,
                                                       GHP_STRATEGY_OWT};

static char *copy_text(const char *text)
{
    char *copy = ghp_alloc(strlen(text) + 1, 1);

    if (copy != NULL) memcpy(copy, text, strlen(text));
    return copy;
}

static double deadline(const struct making *m, double share)
{
    return m->began_s + share * m->wishes->time_limit_s;
}

/* ---- searches ---- */

static enum ghp_status search(struct making *m, const struct ghp_domain *domain, double share,
                              struct ghp_search_result *result)
{
    const struct ghp_instance *in = &m->instance;
    size_t layers = (size_t)in->n_layers;
    int *start = ghp_alloc(BASELINES * layers, sizeof *start), n = 0;
    struct ghp_search_job job = {.instance = &m->instance,
                                 .domain = domain,
                                 .limit_bytes = m->wishes->memory_bytes,
                                 .deadline_s = deadline(m, share),
                                 .gap = m->wishes->gap,
                                 .start = start,
                                 .solver = m->wishes->solver,
                                 .canonical = true};
    enum ghp_status status;

    if (start == NULL) return GHP_NO_MEMORY();
    for (int b = 0; b < BASELINES; ++b)
        if (m->baseline[b].feasible)
            memcpy(start + (size_t)n++ * layers, m->baseline[b].kept[0].choice,
                   layers * sizeof(int));
    job.n_start = n;
    status = ghp_search_run(&job, result);
    free(start);
    return status;
}

/* Why nothing fits, and what would. */
static enum ghp_status fail_memory(const struct making *m, const struct ghp_search_result *r)
{
    const struct ghp_extent *extent = &m->how.extent;
    char limit[32], least[32];

    ghp_bytes_text((double)m->wishes->memory_bytes, limit, sizeof limit);
    ghp_bytes_text((double)r->least_bytes, least, sizeof least);
    if (!r->closed)
        return GHP_FAIL(
            GHP_ERR_INFEASIBLE,
            "no plan of '%s' within %s a worker was found in the time; give --memory %" PRId64
            " (%s: the least found so far), or a longer --time-limit",
            m->plan->model.name, limit, r->least_bytes, least);
    return GHP_FAIL(
        GHP_ERR_INFEASIBLE,
        "memory binds: no plan of '%s' for %d workers and batch %" PRId64
        " fits into %s a worker; the least %s is "
        "%" PRId64 " bytes (%s); give --memory %" PRId64 ", a smaller --batch or more --workers",
        m->plan->model.name, extent->workers, extent->global_batch, limit,
        r->least_proven ? "that would do" : "found", r->least_bytes, least, r->least_bytes);
}

/* ---- buckets ---- */

static bool fits(const struct making *m, int64_t peak_bytes)
{
    return m->wishes->memory_bytes == 0 || peak_bytes <= m->wishes->memory_bytes;
}

/* The fastest (plan, bucket size) among the plans that a search kept; each layer alone where that is as fast. */
static enum ghp_status tune_bucket(const struct making *m, const struct ghp_search_result *r,
                                   int *kept, int64_t *bucket)
{
    static const int64_t sizes[BUCKET_SIZES] = {0,       1 << 18, 1 << 19,         1 << 20,
                                                1 << 21, 1 << 22, 1 << 23,         1 << 24,
                                                1 << 25, 1 << 26, (int64_t)1 << 50};
    double best_s = r->kept[0].step_s;

    *kept = 0;
    *bucket = m->how.bucket_bytes;
    if (m->wishes->bucket_bytes != GHP_BUCKET_AUTO) return GHP_OK;
    for (int k = 0; k < r->n_kept; ++k)
        for (int s = 1; s < BUCKET_SIZES; ++s) {
            double step_s;
            int64_t peak;

            GHP_TRY(ghp_search_judge(&m->instance, r->kept[k].choice, sizes[s], &step_s, &peak));
            if (!fits(m, peak) || step_s >= best_s * (1 - GHP_BRANCH_SAME)) continue;
            best_s = step_s;
            *kept = k;
            *bucket = sizes[s];
        }
    return GHP_OK;
}

static enum ghp_status predict(const struct making *m, const int *choice, int64_t bucket,
                               struct ghp_split *splits, struct ghp_prediction *predicted)
{
    struct ghp_lowering how = m->how;

    how.bucket_bytes = bucket;
    ghp_instance_splits(&m->instance, choice, splits);
    return ghp_plan_predict(&how, splits, m->wishes->profile, predicted);
}

/* ---- baselines ---- */

/* Notes why a baseline is not there; other failures pass. */
static enum ghp_status note_reason(struct ghp_baseline *b, enum ghp_status status)
{
    if (status != GHP_ERR_INFEASIBLE) return status;
    b->feasible = false;
    b->reason = copy_text(ghp_status_message());
    return b->reason == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

static enum ghp_status solve_baseline(struct making *m, int index, struct ghp_split *splits)
{
    struct ghp_baseline *b = &m->plan->baselines[index];
    struct ghp_search_result *r = &m->baseline[index];
    struct ghp_domain domain = {0};
    enum ghp_status status;
    int64_t *bucket = &m->baseline_bucket[index];
    int *kept = &m->baseline_kept[index];

    b->strategy = copy_text(ghp_strategy_name(baselines[index]));
    if (b->strategy == NULL) return GHP_NO_MEMORY();
    GHP_TRY(ghp_domain_init(&m->instance, &domain));
    status = ghp_strategy_restrict(baselines[index], &domain);
    if (status == GHP_OK) status = search(m, &domain, 0.1 * (index + 1), r);
    if (status == GHP_OK && !r->feasible) status = fail_memory(m, r);
    if (status == GHP_OK) status = tune_bucket(m, r, kept, bucket);
    if (status == GHP_OK)
        status = predict(m, r->kept[*kept].choice, *bucket, splits, &b->predicted);
    b->feasible = status == GHP_OK;
    ghp_domain_release(&domain);
    return status == GHP_OK ? GHP_OK : note_reason(b, status);
}

static enum ghp_status solve_baselines(struct making *m, struct ghp_split *splits)
{
    m->plan->baselines = ghp_alloc(BASELINES + 1, sizeof *m->plan->baselines);
    if (m->plan->baselines == NULL) return GHP_NO_MEMORY();
    for (int b = 0; b < BASELINES; ++b) {
        ++m->plan->n_baselines;
        GHP_TRY(solve_baseline(m, b, splits));
    }
    return GHP_OK;
}

/* ---- the plan ---- */

/* What is proven, over all that was searched. */
struct proof {
    double bound_s, own_s; /* own_s: of the plan, before buckets were tuned */
    bool closed;
    int64_t plans, nodes;
};

static struct proof proof_of(const struct making *m)
{
    const struct ghp_search_result *r = &m->own;
    struct proof p = {.bound_s = r->bound_s,
                      .closed = r->closed,
                      .plans = r->plans + m->outer.plans,
                      .nodes = r->nodes + m->outer.nodes};

    p.own_s = m->staged ? m->outer.step_s : r->kept[0].step_s;
    if (!m->searches_outer || m->by_trial != KEPT) return p;
    if (!r->feasible) p.bound_s = INFINITY;
    p.bound_s = fmin(p.bound_s, m->outer.bound_s);
    if (m->staged && m->outer.closed && p.closed && !(m->wishes->gap > 0)) p.bound_s = p.own_s;
    p.closed = p.closed && m->outer.closed;
    return p;
}

/* How far the search got, in words. */
static void status_text(const struct making *m, const struct proof *p, char *text, size_t n)
{
    const bool tuned = m->plan->bucket_bytes != m->how.bucket_bytes;
    const char *reached = !p->closed           ? "time limit"
                          : m->wishes->gap > 0 ? "within the gap"
                                               : "optimal";

    if (m->by_trial == UNEVEN)
        snprintf(text, n, "shares by the workers' speeds, by trial; with equal shares %s", reached);
    else if (m->by_trial == REMADE)
        snprintf(text, n, "layers made again by trial; with all layers kept %s",
                 m->kept_fits ? reached : "nothing fits");
    else if (tuned && p->closed)
        snprintf(text, n, "%s with each layer reduced alone; bucket size by trial", reached);
    else if (tuned)
        snprintf(text, n, "%s, gap %.2g with each layer reduced alone; bucket size by trial",
                 reached, (p->own_s - p->bound_s) / p->own_s);
    else
        snprintf(text, n, "%s", reached);
}

static enum ghp_status set_certificate(struct making *m, double fastest_s)
{
    struct ghp_certificate *c = &m->plan->certificate;
    struct proof p = proof_of(m);
    char status[128];

    c->step_s = fastest_s;
    c->bound_s = fmin(p.bound_s, fastest_s);
    c->gap = fmax(0, (c->step_s - c->bound_s) / c->step_s);
    if (c->gap <= 2 * GHP_BRANCH_SAME) {
        c->bound_s = c->step_s;
        c->gap = 0;
    }
    status_text(m, &p, status, sizeof status);
    c->status = copy_text(status);
    c->plans = p.plans;
    c->nodes = p.nodes;
    c->seconds = ghp_now_s() - m->began_s;
    return c->status == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

static int split_layers(const struct ghp_plan *plan)
{
    int n = 0;

    for (int v = 0; v < plan->model.n_layers; ++v)
        n += plan->splits[v].kind != GHP_SPLIT_DATA;
    return n;
}

/* What two predictions may both be off by, at least one of them. */
static double margin_error_s(const struct making *m)
{
    return fmax(m->fastest.error_s, m->plan->baselines[0].predicted.error_s);
}

/* Takes data parallelism where the plan is not surely faster. */
static enum ghp_status simplify(struct making *m)
{
    const struct ghp_baseline *data = &m->plan->baselines[0];
    struct ghp_prediction *p = &m->plan->predicted;
    double margin_s = data->predicted.step_s - p->step_s;
    char text[256];

    if (!m->wishes->simplify || m->wishes->strategy != GHP_STRATEGY_AUTO ||
        m->wishes->force != NULL || !data->feasible)
        return GHP_OK;
    if (split_layers(m->plan) == 0 || margin_s > margin_error_s(m)) return GHP_OK;
    snprintf(text, sizeof text,
             "data parallelism: simpler, and the fastest plan's margin of %.3g ms is within the "
             "prediction's error of %.3g ms",
             1e3 * margin_s, 1e3 * margin_error_s(m));
    m->plan->bucket_bytes = m->baseline_bucket[0];
    GHP_TRY(predict(m, m->baseline[0].kept[m->baseline_kept[0]].choice, m->plan->bucket_bytes,
                    m->plan->splits, p));
    m->plan->certificate.preferred = copy_text(text);
    return m->plan->certificate.preferred == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* Says that shared roles were kept though stages are faster, by no more than the prediction's error. */
static enum ghp_status note_kept_shared(struct making *m)
{
    struct ghp_certificate *c = &m->plan->certificate;
    char text[256];

    if (!m->outer.found || m->outer.step_s >= m->plan->predicted.step_s) return GHP_OK;
    c->step_s = m->outer.step_s;
    c->bound_s = fmin(c->bound_s, c->step_s);
    c->gap = (c->step_s - c->bound_s) / c->step_s;
    if (c->preferred != NULL) return GHP_OK;
    snprintf(text, sizeof text,
             "shared roles: simpler, and the margin of %.3g ms by stages or micro-batches is "
             "within the prediction's error",
             1e3 * (m->plan->predicted.step_s - c->step_s));
    c->preferred = copy_text(text);
    return c->preferred == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* Which of the two was taken, and why. */
static const char *margin_verdict(const struct making *m)
{
    bool within = m->plan->baselines[0].predicted.step_s - m->fastest.step_s <= margin_error_s(m);

    if (m->wishes->strategy != GHP_STRATEGY_AUTO || m->wishes->force != NULL ||
        m->wishes->stages != NULL || m->wishes->micro_batches > 0 || m->wishes->heuristic)
        return "this plan was asked for";
    if (m->plan->certificate.preferred != NULL)
        return "within the error, so the simpler plan was taken: data parallelism";
    if (split_layers(m->plan) == 0 && !m->staged) return "the fastest plan is data parallelism";
    return !within ? "beyond the error, so the faster plan was taken"
                   : "within the error, but the faster plan was asked for";
}

/* The margin over data parallelism, what it is worth, and what followed. */
static enum ghp_status set_margin(struct making *m)
{
    const struct ghp_baseline *data = &m->plan->baselines[0];
    double margin_s = data->predicted.step_s - m->fastest.step_s;
    char text[512];

    if (data->feasible)
        snprintf(
            text, sizeof text,
            "%.6g ms a step against %.6g ms by data parallelism: %.4g ms (%.2f %%) less; error "
            "of a prediction %.3g ms (half the interquartile range of each entry that was "
            "timed, as if independent; laws have none; %.0f %% of the time was measured): %s",
            1e3 * m->fastest.step_s, 1e3 * data->predicted.step_s, 1e3 * margin_s,
            100 * margin_s / data->predicted.step_s, 1e3 * margin_error_s(m),
            100 * m->fastest.measured_share, margin_verdict(m));
    else
        snprintf(text, sizeof text, "%.6g ms a step; data parallelism is not possible: %.300s",
                 1e3 * m->fastest.step_s, data->reason);
    m->plan->certificate.margin = copy_text(text);
    return m->plan->certificate.margin == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

static enum ghp_status set_groups(struct making *m)
{
    struct ghp_plan *plan = m->plan;

    plan->groups = m->wishes->groups > 0
                       ? m->wishes->groups
                       : ghp_plan_canonical_groups(&plan->model, plan->splits, plan->extent);
    plan->group_size = plan->extent.workers / plan->groups;
    return ghp_plan_check(plan);
}

static enum ghp_status name_plan(struct making *m)
{
    struct ghp_plan *plan = m->plan;
    const struct ghp_wishes *w = m->wishes;
    bool given = w->force != NULL || w->stages != NULL || w->micro_batches > 0 || w->heuristic;
    const char *strategy = given ? "given" : ghp_strategy_name(w->strategy);

    plan->strategy = copy_text(strategy);
    plan->model_path = copy_text(m->wishes->model_path);
    plan->profile_path = copy_text(m->wishes->profile_path);
    if (m->wishes->what_if != NULL) GHP_TRY(ghp_edits_copy(m->wishes->what_if, &plan->what_if));
    plan->memory_limit_bytes = m->wishes->memory_bytes;
    plan->model_hash = plan->model.hash;
    plan->profile_hash = m->wishes->profile->hash;
    return plan->strategy == NULL || plan->model_path == NULL || plan->profile_path == NULL
               ? GHP_NO_MEMORY()
               : GHP_OK;
}

/* Takes a baseline that is faster: with each layer reduced alone none is, but buckets help one plan more than another. */
static enum ghp_status take_faster_baseline(struct making *m)
{
    struct ghp_plan *plan = m->plan;

    if (m->wishes->strategy != GHP_STRATEGY_AUTO || m->wishes->force != NULL) return GHP_OK;
    for (int b = 0; b < BASELINES; ++b) {
        const struct ghp_baseline *base = &plan->baselines[b];

        if (!base->feasible ||
            base->predicted.step_s >= plan->predicted.step_s * (1 - GHP_BRANCH_SAME))
            continue;
        plan->bucket_bytes = m->baseline_bucket[b];
        GHP_TRY(predict(m, m->baseline[b].kept[m->baseline_kept[b]].choice, plan->bucket_bytes,
                        plan->splits, &plan->predicted));
    }
    return GHP_OK;
}

/* ---- alternatives ---- */

static void release_alternatives(struct ghp_plan *plan)
{
    for (int i = 0; i < plan->n_alternatives; ++i)
        ghp_alternative_release(&plan->alternatives[i]);
    free(plan->alternatives);
    plan->alternatives = NULL;
    plan->n_alternatives = 0;
}

/* share   of the time limit that the searches may take */
static enum ghp_status find_alternatives(struct making *m, double share)
{
    struct ghp_alternatives_job job = {
        .instance = &m->instance,
        .bucket_bytes = m->plan->bucket_bytes,
        .limit_bytes = m->wishes->memory_bytes,
        .deadline_s = fmin(deadline(m, 1), ghp_now_s() + share * m->wishes->time_limit_s)};

    release_alternatives(m->plan);
    return ghp_alternatives_find(&job, m->plan);
}

/* The proof is about layers reduced alone; with buckets a runner-up may be faster than the plan.  Whether one was taken
 * in its place. */
static enum ghp_status take_runner_up(struct making *m, bool *taken)
{
    struct ghp_plan *plan = m->plan;
    const struct ghp_alternative *best = NULL;
    struct ghp_lowering how = m->how;

    *taken = false;
    if (m->wishes->strategy != GHP_STRATEGY_AUTO || m->wishes->force != NULL ||
        plan->certificate.preferred != NULL)
        return GHP_OK;
    for (int i = 0; i < plan->n_alternatives; ++i)
        if (plan->alternatives[i].step_s < plan->predicted.step_s * (1 - GHP_BRANCH_SAME) &&
            (best == NULL || plan->alternatives[i].step_s < best->step_s))
            best = &plan->alternatives[i];
    if (best == NULL) return GHP_OK;
    ghp_alternative_splits(best, plan->splits, (size_t)plan->model.n_layers, plan->splits);
    how.bucket_bytes = plan->bucket_bytes;
    GHP_TRY(ghp_plan_predict(&how, plan->splits, m->wishes->profile, &plan->predicted));
    free(plan->certificate.status);
    *taken = true;
    return set_certificate(m, plan->predicted.step_s);
}

static enum ghp_status note_no_break_even(struct ghp_plan *plan)
{
    plan->break_even_search = copy_text("off, as asked");
    return plan->break_even_search == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* From the finished search to the plan. */
static enum ghp_status finish(struct making *m)
{
    struct ghp_plan *plan = m->plan;
    bool changed;
    int kept;

    GHP_TRY(tune_bucket(m, &m->own, &kept, &plan->bucket_bytes));
    GHP_TRY(
        predict(m, m->own.kept[kept].choice, plan->bucket_bytes, plan->splits, &plan->predicted));
    GHP_TRY(take_faster_baseline(m));
    GHP_TRY(set_certificate(m, plan->predicted.step_s));
    m->fastest = plan->predicted;
    GHP_TRY(simplify(m));
    GHP_TRY(note_kept_shared(m));
    GHP_TRY(name_plan(m));
    for (int round = 0; round < RUNNER_UP_ROUNDS && !m->wishes->decision_only; ++round) {
        GHP_TRY(find_alternatives(m, round == 0 ? 0.06 : 0.03));
        GHP_TRY(take_runner_up(m, &changed));
        if (!changed) break;
        m->fastest = plan->predicted;
    }
    GHP_TRY(set_margin(m));
    GHP_TRY(set_groups(m));
    GHP_TRY(ghp_staged_subset(m->wishes->profile, plan));
    if (m->wishes->decision_only) return GHP_OK;
    return m->wishes->break_even ? ghp_break_even_find(m->wishes->profile, plan)
                                 : note_no_break_even(plan);
}

/* ---- stages and micro-batches ---- */

/* Whether layers made again going backward are looked for. */
static bool may_remake(const struct making *m)
{
    const struct ghp_wishes *w = m->wishes;

    return w->memory_bytes > 0 && !w->keep_layers && !w->heuristic && w->force == NULL &&
           w->groups == 0 && strcmp(w->profile->backend, "cuda") != 0;
}

static struct ghp_allocate_job outer_job(const struct making *m, double share)
{
    return (struct ghp_allocate_job){.how = &m->how,
                                     .profile = m->wishes->profile,
                                     .space = m->wishes->space,
                                     .limit_bytes = m->wishes->memory_bytes,
                                     .deadline_s = deadline(m, share),
                                     .gap = m->wishes->gap,
                                     .solver = m->wishes->solver,
                                     .best_s = m->own.feasible ? m->own.kept[0].step_s : INFINITY};
}

static enum ghp_status fail_allocation(const struct making *m)
{
    char least[32];

    if (m->outer.least_bytes == 0)
        return GHP_FAIL(
            GHP_ERR_INFEASIBLE,
            "no plan of '%s' has these stages and micro-batches: some layer can take no "
            "split there (statistics of each S samples want whole ones); use other "
            "stages or fewer micro-batches",
            m->plan->model.name);
    ghp_bytes_text((double)m->outer.least_bytes, least, sizeof least);
    return GHP_FAIL(GHP_ERR_INFEASIBLE,
                    "memory binds: no plan of '%s' with these stages and micro-batches fits into "
                    "%" PRId64 " bytes a worker; the least %s is %" PRId64
                    " bytes (%s); give --memory %" PRId64
                    ", more --micro-batches or more --workers",
                    m->plan->model.name, m->wishes->memory_bytes,
                    m->outer.least_proven ? "that would do" : "found", m->outer.least_bytes, least,
                    m->outer.least_bytes);
}

/* The staging that was asked for. */
static enum ghp_status search_given(struct making *m)
{
    struct ghp_allocate_job job = outer_job(m, 0.9);
    struct ghp_staging staging;

    GHP_TRY(ghp_staged_given(m->wishes, &m->plan->model, &staging));
    GHP_TRY(ghp_allocate_one(&job, &staging, m->wishes->force, &m->outer));
    m->own.bound_s = INFINITY;
    m->own.closed = m->searches_outer = m->staged = true;
    return m->outer.found ? GHP_OK : fail_allocation(m);
}

/* Nothing fits, with or without stages. */
static enum ghp_status fail_roles(const struct making *m)
{
    struct ghp_search_result all = {.closed =
                                        m->own.closed && (m->outer.closed || !m->searches_outer),
                                    .least_bytes = m->own.least_bytes,
                                    .least_proven = m->own.least_proven};

    if (m->remade_bytes > 0 && m->remade_bytes < all.least_bytes) {
        all.least_proven = false;
        all.least_bytes = m->remade_bytes;
    }
    if (m->outer.least_bytes > 0) {
        all.least_proven = all.least_proven && m->outer.least_proven;
        if (m->outer.least_bytes < all.least_bytes) all.least_bytes = m->outer.least_bytes;
    }
    return fail_memory(m, &all);
}

/* All of them; taken where the best is surely faster than the best without stages. */
static enum ghp_status search_outer(struct making *m)
{
    struct ghp_allocate_job job = outer_job(m, may_remake(m) ? 0.7 : 0.9);
    struct ghp_lowering how = m->how;
    struct ghp_prediction p = {0};
    double shared_s = m->own.feasible ? m->own.kept[0].step_s : INFINITY;

    m->searches_outer = true;
    GHP_TRY(ghp_allocate(&job, &m->outer));
    if (!m->outer.found) return GHP_OK;
    how.staging = &m->outer.staging;
    GHP_TRY(ghp_plan_predict(&how, m->outer.splits, m->wishes->profile, &p));
    m->staged = !m->wishes->simplify || shared_s - p.step_s > p.error_s;
    return GHP_OK;
}

static double best_so_far(const struct making *m)
{
    if (m->staged) return m->outer.step_s;
    return m->own.feasible ? m->own.kept[0].step_s : INFINITY;
}

/* Takes what was found by trial in the place of the best so far, where it is surely faster. */
static void take_trial(struct making *m, struct ghp_allocation *found, enum by_trial by_trial)
{
    double before_s = best_so_far(m);
    double margin_s = m->wishes->simplify ? m->plan->baselines[0].predicted.error_s : 0;

    m->own.plans += found->plans;
    m->own.nodes += found->nodes;
    found->plans = found->nodes = 0;
    if (!found->found || before_s - found->step_s <= margin_s) {
        ghp_allocation_release(found);
        return;
    }
    ghp_allocation_release(&m->outer);
    m->outer = *found;
    m->searches_outer = m->staged = true;
    m->by_trial = by_trial;
}

/* Layers made again, where the memory keeps a faster plan away. */
static enum ghp_status search_remade(struct making *m)
{
    struct ghp_allocate_job job = outer_job(m, 0.95);
    const struct ghp_remade_job remade = {.allocate = &job,
                                          .instance = &m->instance,
                                          .domain = &m->domain,
                                          .all_roles = m->wishes->all_roles};
    struct ghp_allocation found = {0};

    if (!may_remake(m)) return GHP_OK;
    job.best_s = best_so_far(m);
    m->kept_fits = isfinite(job.best_s);
    GHP_TRY(ghp_remade_find(&remade, &found));
    m->remade_bytes = found.least_bytes;
    take_trial(m, &found, REMADE);
    return GHP_OK;
}

/* Unequal shares for workers that are not equally fast; taken where they are surely faster than what was found before. */
static enum ghp_status search_uneven(struct making *m)
{
    const struct ghp_wishes *w = m->wishes;
    const double *speed = ghp_speeds_of(&w->profile->speeds, w->extent.workers);
    struct ghp_allocate_job job = outer_job(m, 0.95);
    struct ghp_allocation found = {0};

    if (speed == NULL || w->even_shares || w->force != NULL || w->groups > 0 || w->heuristic ||
        strcmp(w->profile->backend, "cuda") == 0)
        return GHP_OK;
    job.best_s = best_so_far(m);
    GHP_TRY(ghp_uneven_find(&job, speed, &found));
    take_trial(m, &found, UNEVEN);
    return GHP_OK;
}

/* The plan by rules, beside the baselines. */
static enum ghp_status solve_rules(struct making *m, struct ghp_allocation *rules)
{
    struct ghp_allocate_job job = outer_job(m, 1);
    struct ghp_baseline *b = &m->plan->baselines[m->plan->n_baselines];
    struct ghp_lowering how = m->how;

    GHP_TRY(ghp_heuristic(&job, rules));
    b->strategy = copy_text("heuristic");
    if (b->strategy == NULL) return GHP_NO_MEMORY();
    ++m->plan->n_baselines;
    b->feasible = rules->found;
    how.staging = ghp_staged(&rules->staging) ? &rules->staging : NULL;
    if (b->feasible)
        return ghp_plan_predict(&how, rules->splits, m->wishes->profile, &b->predicted);
    b->reason = copy_text("none of its plans fits the memory");
    return b->reason == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* How far the rules' plan, which was asked for, is from the best. */
static enum ghp_status adopt_rules(struct making *m, const struct ghp_allocation *rules)
{
    struct ghp_plan *plan = m->plan;
    double best_s = m->staged ? m->outer.step_s : m->own.kept[0].step_s;
    char text[160];

    if (!rules->found) return GHP_FAIL(GHP_ERR_INFEASIBLE, "none of the rules' plans can be");
    GHP_TRY(ghp_staged_adopt(m->wishes, &m->how, rules, plan));
    GHP_TRY(set_certificate(m, fmin(best_s, plan->predicted.step_s)));
    snprintf(text, sizeof text, "by rules, as asked: the best found takes %.6g ms, %.2f %% less",
             1e3 * best_s, 100 * (1 - best_s / plan->predicted.step_s));
    plan->certificate.preferred = copy_text(text);
    return plan->certificate.preferred == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

static enum ghp_status note_no_break_even_search(struct ghp_plan *plan)
{
    plan->break_even_search = copy_text("none: not with stages, micro-batches or unequal shares");
    return plan->break_even_search == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* From a finished search over stages to the plan. */
static enum ghp_status finish_staged(struct making *m, const struct ghp_allocation *rules)
{
    struct ghp_plan *plan = m->plan;

    if (m->wishes->heuristic) {
        GHP_TRY(adopt_rules(m, rules));
    } else {
        GHP_TRY(ghp_staged_adopt(m->wishes, &m->how, &m->outer, plan));
        GHP_TRY(set_certificate(m, plan->predicted.step_s));
    }
    m->fastest = plan->predicted;
    GHP_TRY(name_plan(m));
    GHP_TRY(set_margin(m));
    GHP_TRY(ghp_plan_check(plan));
    GHP_TRY(ghp_staged_subset(m->wishes->profile, plan));
    return note_no_break_even_search(plan);
}

/* A baseline as a plan of its own: what was found for the table. */
static enum ghp_status take_baseline(struct making *m)
{
    for (int b = 0; b < BASELINES; ++b) {
        if (baselines[b] != m->wishes->strategy) continue;
        if (!m->plan->baselines[b].feasible)
            return GHP_FAIL(GHP_ERR_INFEASIBLE, "%s", m->plan->baselines[b].reason);
        m->own = m->baseline[b];
        m->baseline[b] = (struct ghp_search_result){0};
    }
    return GHP_OK;
}

static enum ghp_status own_search(struct making *m)
{
    if (m->wishes->stages != NULL || m->wishes->micro_batches > 1) return search_given(m);
    if (m->wishes->strategy != GHP_STRATEGY_AUTO) return take_baseline(m);
    GHP_TRY(ghp_domain_init(&m->instance, &m->domain));
    if (m->wishes->force != NULL) GHP_TRY(ghp_force_restrict(m->wishes->force, &m->domain));
    GHP_TRY(search(m, &m->domain, m->wishes->all_roles ? 0.4 : may_remake(m) ? 0.6 : 0.8, &m->own));
    if (m->wishes->all_roles) GHP_TRY(search_outer(m));
    GHP_TRY(search_remade(m));
    if (!m->own.feasible && !m->staged) return fail_roles(m);
    return search_uneven(m);
}

static enum ghp_status prepare(struct making *m)
{
    const struct ghp_wishes *w = m->wishes;
    struct ghp_plan *plan = m->plan;
    int workers = w->extent.workers, degrees;

    GHP_TRY(ghp_model_load(w->model_path, &plan->model));
    plan->extent = w->extent;
    plan->bucket_bytes = w->bucket_bytes == GHP_BUCKET_AUTO ? 0 : w->bucket_bytes;
    GHP_TRY(ghp_extent_check(w->extent));
    if (w->groups > 0 && workers % w->groups != 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot make %d groups of %d workers; give --groups a divisor of %d",
                        w->groups, workers, workers);
    degrees = w->groups > 0 ? workers / w->groups : workers;
    m->how = ghp_plan_lowering(plan, w->profile);
    GHP_TRY(ghp_instance_init(&m->how, w->profile, degrees, &m->instance));
    plan->splits = ghp_alloc((size_t)plan->model.n_layers, sizeof *plan->splits);
    return plan->splits == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

enum ghp_status ghp_make_plan(const struct ghp_wishes *wishes, struct ghp_plan *plan)
{
    struct making m = {.wishes = wishes, .plan = plan, .began_s = ghp_now_s()};
    struct ghp_allocation rules = {0};
    enum ghp_status status;
    bool shows;

    *plan = (struct ghp_plan){0};
    shows = ghp_progress_clock("searching", wishes->time_limit_s);
    GHP_TRY_GOTO(status, prepare(&m), done);
    GHP_TRY_GOTO(status, solve_baselines(&m, plan->splits), done);
    GHP_TRY_GOTO(status, own_search(&m), done);
    if (wishes->all_roles || wishes->heuristic) GHP_TRY_GOTO(status, solve_rules(&m, &rules), done);
    status = m.staged || wishes->heuristic ? finish_staged(&m, &rules) : finish(&m);
done:
    if (shows) ghp_progress_end();
    for (int b = 0; b < BASELINES; ++b)
        ghp_search_release(&m.baseline[b]);
    ghp_allocation_release(&rules);
    ghp_allocation_release(&m.outer);
    ghp_search_release(&m.own);
    ghp_domain_release(&m.domain);
    ghp_instance_release(&m.instance);
    if (status != GHP_OK) ghp_plan_release(plan);
    return status;
}
