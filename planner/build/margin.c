/* planner/build/margin.c - a plan's margin over data parallelism: what it is worth beside the prediction's error, and
 * what follows. */
#include "planner/build/build_private.h"

#include <math.h>
#include <stdio.h>

static int split_layers(const struct ghp_plan *plan)
{
    int n = 0;

    for (int v = 0; v < plan->model.n_layers; ++v)
        n += plan->splits[v].kind != GHP_SPLIT_DATA;
    return n;
}

/* What two predictions may both be off by, at least one of them. */
static double margin_error_s(const struct ghp_build_context *m)
{
    return fmax(m->fastest.error_s, m->plan->baselines[0].predicted.error_s);
}

enum ghp_status ghp_build_simplify(struct ghp_build_context *m)
{
    const struct ghp_baseline *data = &m->plan->baselines[0];
    struct ghp_prediction *p = &m->plan->predicted;
    double margin_s = data->predicted.step_s - p->step_s;
    char text[256];

    if (!m->request->simplify || m->request->strategy != GHP_STRATEGY_AUTO ||
        m->request->force != NULL || !data->feasible)
        return GHP_OK;
    if (split_layers(m->plan) == 0 || margin_s > margin_error_s(m)) return GHP_OK;
    snprintf(text, sizeof text,
             "data parallelism: simpler, and the fastest plan's margin of %.3g ms is within the "
             "prediction's error of %.3g ms",
             1e3 * margin_s, 1e3 * margin_error_s(m));
    m->plan->bucket_bytes = m->baseline_bucket[0];
    GHP_TRY(ghp_build_predict(m, m->baseline[0].kept[m->baseline_kept[0]].choice,
                              m->plan->bucket_bytes, m->plan->splits, p));
    return ghp_build_set_text(&m->plan->certificate.preferred, text);
}

/* Which of the two was taken, and why. */
static const char *margin_verdict(const struct ghp_build_context *m)
{
    bool within = m->plan->baselines[0].predicted.step_s - m->fastest.step_s <= margin_error_s(m);

    if (m->request->strategy != GHP_STRATEGY_AUTO || m->request->force != NULL ||
        m->request->stages != NULL || m->request->micro_batches > 0 ||
        m->request->solver == GHP_SOLVER_HEURISTIC)
        return "this plan was asked for";
    if (m->plan->certificate.preferred != NULL)
        return "within the error, so the simpler plan was taken: data parallelism";
    if (split_layers(m->plan) == 0 && !m->staged) return "the fastest plan is data parallelism";
    return !within ? "beyond the error, so the faster plan was taken"
                   : "within the error, but the faster plan was asked for";
}

enum ghp_status ghp_build_set_margin(struct ghp_build_context *m)
{
    const struct ghp_baseline *data = &m->plan->baselines[0];
    double margin_s = data->predicted.step_s - m->fastest.step_s;
    char text[512];

    if (data->feasible)
        snprintf(
            text, sizeof text,
            "%.6g ms a step against %.6g ms by data parallelism: %.4g ms (%.2f %%) less; error "
            "of a prediction %.3g ms (half the interquartile range of each entry that was "
            "timed, as if independent; analytic models have none; %.0f %% of the time was "
            "measured): %s",
            1e3 * m->fastest.step_s, 1e3 * data->predicted.step_s, 1e3 * margin_s,
            100 * margin_s / data->predicted.step_s, 1e3 * margin_error_s(m),
            100 * m->fastest.measured_share, margin_verdict(m));
    else
        snprintf(text, sizeof text, "%.6g ms a step; data parallelism is not possible: %.300s",
                 1e3 * m->fastest.step_s, data->reason);
    return ghp_build_set_text(&m->plan->certificate.margin, text);
}
