/* planner/build/build.c - the order of a plan's build; build/build.h has it. */
#include "planner/build/build_private.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "planner/alternatives/break_even.h"
#include "planner/build/staged.h"
#include "onnx/network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double least_share = 0.05; /* of the time limit, for a plan recomputed */

/* ---- from a finished search to the plan ---- */

static enum ghp_status set_groups(struct ghp_build_context *m)
{
    struct ghp_plan *plan = m->plan;

    plan->groups = m->request->groups > 0
                       ? m->request->groups
                       : ghp_plan_canonical_groups(&plan->model, plan->splits, plan->problem);
    plan->group_size = plan->problem.workers / plan->groups;
    return ghp_plan_check(plan);
}

static enum ghp_status name_plan(struct ghp_build_context *m)
{
    struct ghp_plan *plan = m->plan;
    const struct ghp_plan_request *w = m->request;
    bool given = w->force != NULL || w->stages != NULL || w->micro_batches > 0 ||
                 w->solver == GHP_SOLVER_HEURISTIC;

    plan->strategy = given ? GHP_STRATEGY_GIVEN : w->strategy;
    GHP_TRY(ghp_build_set_text(&plan->model_path, w->model_path));
    GHP_TRY(ghp_build_set_text(&plan->profile_path, w->profile_path));
    plan->memory_limit_bytes = w->memory_bytes;
    plan->model_hash = plan->model.hash;
    plan->profile_hash = w->profile->hash;
    return w->what_if != NULL ? ghp_overrides_copy(w->what_if, &plan->what_if) : GHP_OK;
}

/* Of plans without stages. */
static enum ghp_status finish(struct ghp_build_context *m)
{
    struct ghp_plan *plan = m->plan;
    int kept;

    GHP_TRY(ghp_build_tune_bucket(m, &m->own, &kept, &plan->bucket_bytes));
    GHP_TRY(ghp_build_predict(m, m->own.kept[kept].choice, plan->bucket_bytes, plan->splits,
                              &plan->predicted));
    GHP_TRY(ghp_build_take_faster_baseline(m));
    GHP_TRY(ghp_build_certify(m));
    m->fastest = plan->predicted;
    GHP_TRY(ghp_build_simplify(m));
    GHP_TRY(ghp_build_note_shared(m));
    GHP_TRY(name_plan(m));
    if (!m->request->decision_only) GHP_TRY(ghp_build_second_best(m));
    GHP_TRY(ghp_build_set_margin(m));
    GHP_TRY(set_groups(m));
    GHP_TRY(ghp_staged_subset(m->request->profile, plan));
    if (m->request->decision_only) return GHP_OK;
    if (m->request->break_even && ghp_now_s() > ghp_build_deadline(m, 1))
        return ghp_build_set_text(&plan->break_even_search, "none: the time limit came first");
    return m->request->break_even ? ghp_break_even_compute(m->request->profile, plan)
                                  : ghp_build_set_text(&plan->break_even_search, "off, as asked");
}

/* Of plans with stages, micro-batches, or what was found by trial. */
static enum ghp_status finish_staged(struct ghp_build_context *m, const struct ghp_partition *rules)
{
    struct ghp_plan *plan = m->plan;

    if (m->request->solver == GHP_SOLVER_HEURISTIC) {
        GHP_TRY(ghp_build_adopt_rules(m, rules));
    } else {
        GHP_TRY(ghp_staged_adopt(m->request, &m->how, &m->outer, plan));
        GHP_TRY(ghp_build_certify(m));
    }
    m->fastest = plan->predicted;
    GHP_TRY(name_plan(m));
    GHP_TRY(ghp_build_set_margin(m));
    GHP_TRY(ghp_plan_check(plan));
    GHP_TRY(ghp_staged_subset(m->request->profile, plan));
    return ghp_build_set_text(&plan->break_even_search,
                              "none: not with stages, micro-batches or unequal shares");
}

/* ---- the order ---- */

/* The search that the request asks for, and trials beside it. */
static enum ghp_status own_search(struct ghp_build_context *m)
{
    const struct ghp_plan_request *w = m->request;
    double share = w->pipeline_mode == GHP_PIPELINE_MODE_AUTO ? 0.4
                   : ghp_build_may_recompute(m)               ? 0.6
                                                              : 0.8;

    if (w->stages != NULL || w->micro_batches > 1) return ghp_build_search_given(m);
    if (w->strategy != GHP_STRATEGY_AUTO) return ghp_build_take_baseline(m);
    GHP_TRY(ghp_domain_init(&m->instance, &m->domain));
    if (w->force != NULL) GHP_TRY(ghp_force_restrict(w->force, &m->domain));
    GHP_TRY(ghp_build_search(m, &m->domain, share, &m->own));
    if (w->pipeline_mode == GHP_PIPELINE_MODE_AUTO) GHP_TRY(ghp_build_search_stages(m));
    GHP_TRY(ghp_build_search_recompute(m));
    if (!m->own.feasible && !m->staged) return ghp_build_fail_stages(m);
    return ghp_build_search_load_balance(m);
}

static enum ghp_status prepare(struct ghp_build_context *m)
{
    const struct ghp_plan_request *w = m->request;
    struct ghp_plan *plan = m->plan;
    int workers = w->problem.workers, tp_sizes;

    GHP_TRY(ghp_network_load(w->model_path, &plan->model));
    plan->problem = w->problem;
    plan->bucket_bytes = w->bucket_bytes == GHP_BUCKET_AUTO ? 0 : w->bucket_bytes;
    plan->sync = w->sync;
    GHP_TRY(ghp_problem_check(w->problem));
    if (w->groups > 0 && workers % w->groups != 0)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot make %d groups of %d workers; give --groups a divisor of %d",
                        w->groups, workers, workers);
    tp_sizes = w->groups > 0 ? workers / w->groups : workers;
    plan->splits = ghp_alloc((size_t)plan->model.n_layers, sizeof *plan->splits);
    if (plan->splits == NULL) return GHP_NO_MEMORY();
    m->how = ghp_plan_lowering(plan, w->profile);
    GHP_TRY(ghp_build_set_memory_format(m));
    return ghp_instance_init(&m->how, w->profile, tp_sizes, &m->instance);
}

/* formats   which layers' outputs lie blocked; NULL: as data parallelism has them */
static enum ghp_status make_once(const struct ghp_plan_request *request, const bool *memory_formats,
                                 struct ghp_plan *plan)
{
    struct ghp_build_context m = {
        .request = request, .plan = plan, .memory_formats = memory_formats, .began_s = ghp_now_s()};
    struct ghp_partition rules = {0};
    enum ghp_status status;
    bool shows;

    *plan = (struct ghp_plan){0};
    shows = ghp_progress_clock("searching", request->time_limit_s);
    GHP_TRY_GOTO(status, prepare(&m), done);
    GHP_TRY_GOTO(status, ghp_build_baselines(&m, plan->splits), done);
    GHP_TRY_GOTO(status, own_search(&m), done);
    if (request->pipeline_mode == GHP_PIPELINE_MODE_AUTO || request->solver == GHP_SOLVER_HEURISTIC)
        GHP_TRY_GOTO(status, ghp_build_rules(&m, &rules), done);
    status = m.staged || request->solver == GHP_SOLVER_HEURISTIC ? finish_staged(&m, &rules)
                                                                 : finish(&m);
done:
    if (shows) ghp_progress_end();
    for (int b = 0; b < GHP_BUILD_BASELINES; ++b)
        ghp_search_release(&m.baseline[b]);
    ghp_partition_release(&rules);
    ghp_partition_release(&m.outer);
    ghp_search_release(&m.own);
    ghp_domain_release(&m.domain);
    ghp_instance_release(&m.instance);
    if (status != GHP_OK) ghp_plan_release(plan);
    return status;
}

/* Seconds of data parallelism in a plan's own formats; INFINITY where it cannot be had, or something else was asked
 * for. */
static double data_s(const struct ghp_plan_request *request, const struct ghp_plan *plan)
{
    const struct ghp_baseline *data = &plan->baselines[0];
    bool whole = request->strategy == GHP_STRATEGY_AUTO && request->force == NULL &&
                 request->stages == NULL && request->micro_batches < 2 &&
                 request->solver != GHP_SOLVER_HEURISTIC;

    return whole && data->feasible ? data->predicted.step_s : INFINITY;
}

/* Of the time limit, what the next attempt may take: half of what is left, if a plan may be recomputed in other
 * formats. */
static double attempt_s(const struct ghp_plan_request *request, double began_s)
{
    double all = request->time_limit_s, left = all - (ghp_now_s() - began_s);

    return fmax(left * (ghp_profile_has_memory_formats(request->profile) ? 0.5 : 1),
                least_share * all);
}

enum ghp_status ghp_plan_make(const struct ghp_plan_request *request, struct ghp_plan *plan)
{
    struct ghp_plan_request own = *request;
    bool *memory_formats = NULL, hold = false;
    double best_data_s = INFINITY, began_s = ghp_now_s();
    enum ghp_status status = GHP_OK;

    for (int attempt = 0; !hold && status == GHP_OK; ++attempt) {
        own.time_limit_s = attempt_s(request, began_s);
        status = make_once(&own, memory_formats, plan);
        if (status == GHP_OK && attempt == 0) best_data_s = data_s(request, plan);
        if (status == GHP_OK)
            status = ghp_build_memory_format_holds(request, plan, attempt, &memory_formats, &hold);
        if (status != GHP_OK || !hold) ghp_plan_release(plan);
    }
    free(memory_formats);
    if (status != GHP_OK || plan->predicted.step_s <= best_data_s * (1 + GHP_BRANCH_SAME))
        return status;
    ghp_plan_release(plan); /* what other stages would gain, blocks gain more */
    own.strategy = GHP_STRATEGY_DATA;
    own.time_limit_s = attempt_s(request, began_s);
    return make_once(&own, NULL, plan);
}
