/* executor/engine/worker/results.c - what steps came to: losses, hits and samples of all workers.
 *
 * They are summed for each step, while the next one runs. If workers average their weights rarely (METRIC_REDUCE has a
 * period), each worker keeps its own, and those of some steps are summed in one message, element by element, to the
 * same numbers. They lie after the sums of the step that runs, in the buffer of metrics. */
#include "executor/engine/worker_private.h"

#include <math.h>
#include <string.h>

bool ghp_worker_keeps_metrics(const struct ghp_worker *w)
{
    return w->metric_reduce >= 0 && ghp_worker_instr(w, w->metric_reduce)->period > 1;
}

enum ghp_status ghp_worker_open_results(struct ghp_worker *w)
{
    w->most_results =
        ghp_worker_keeps_metrics(w) ? ghp_worker_instr(w, w->metric_reduce)->period : 1;
    w->results = ghp_alloc((size_t)w->most_results, sizeof *w->results);
    return w->results == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

void ghp_worker_take_result(struct ghp_worker *w, uint64_t step, const double *m, double squares)
{
    w->results[w->n_results++ % w->most_results] = (struct ghp_result){
        .step = step,
        .loss = m[GHP_METRIC_SAMPLES] > 0 ? m[GHP_METRIC_LOSS] / m[GHP_METRIC_SAMPLES]
                                          : m[GHP_METRIC_LOSS],
        .correct = m[GHP_METRIC_CORRECT],
        .samples = m[GHP_METRIC_SAMPLES],
        .gradient_norm = sqrt(squares)};
}

enum ghp_status ghp_worker_not_finite(const struct ghp_worker *w, struct ghp_not_finite *found)
{
    return ghp_in_flight_read_not_finite(w->in_flight, found);
}

bool ghp_worker_result(const struct ghp_worker *w, struct ghp_result *result)
{
    *result = w->results[(w->n_results + w->most_results - 1) % w->most_results];
    return w->n_results > 0;
}

bool ghp_worker_result_of(const struct ghp_worker *w, uint64_t step, struct ghp_result *result)
{
    struct ghp_result latest;
    int64_t back;

    if (!ghp_worker_result(w, &latest) || step > latest.step) return false;
    back = (int64_t)(latest.step - step);
    if (back >= w->most_results || back >= w->n_results) return false;
    *result = w->results[(w->n_results - 1 - back) % w->most_results];
    return result->step == step;
}

/* ---- of workers who keep them ---- */

/* In host memory: a device's worker whose weights differ from others' is not opened. */
static double *kept(const struct ghp_worker *w, int n)
{
    return (double *)w->address[w->metrics] + (1 + n) * GHP_METRIC_COUNT;
}

bool ghp_worker_keep_metrics(struct ghp_worker *w)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, w->metric_reduce);

    if (w->sums_metrics) ghp_worker_take_kept(w); /* this step's loss has waited for the sums */
    memcpy(kept(w, w->kept_metrics++), w->address[w->metrics], GHP_METRIC_COUNT * sizeof(double));
    w->kept_last = w->step.index;
    w->sums_metrics = w->kept_metrics == instr->period || ghp_worker_averages(instr, &w->step);
    return w->sums_metrics;
}

enum ghp_status ghp_worker_sum_kept(struct ghp_worker *w)
{
    return ghp_worker_sum_at(w, w->metric_reduce, kept(w, 0),
                             w->kept_metrics * GHP_METRIC_COUNT * (int64_t)sizeof(double));
}

void ghp_worker_take_kept(struct ghp_worker *w)
{
    uint64_t first = w->kept_last + 1 - (uint64_t)w->kept_metrics;

    for (int n = 0; n < w->kept_metrics; n++)
        ghp_worker_take_result(w, first + (uint64_t)n, kept(w, n), 0);
    w->kept_metrics = 0;
    w->sums_metrics = false;
}
