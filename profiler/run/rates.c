/* profiler/run/rates.c - rates, and slowdowns during reductions, unless an earlier file has them. */
#include "profiler/run/run_private.h"

#include "core/base/log.h"
#include "executor/opbench/opbench.h"
#include "profiler/measure/arrival.h"
#include "profiler/measure/autotuning.h"
#include "profiler/measure/overlap.h"
#include "profiler/measure/rates.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RATES_ALONE = 1, RATES_AFTER_LAYERS, RATES_COUNT }; /* parts that are done, for the bar */

static enum ghp_status task_run(void *context, int64_t repeats)
{
    return ghp_opbench_run(context, (int)fmin((double)repeats, INT_MAX));
}

/* The work that is done while gradients are reduced: backward operations of pure data parallelism. */
static double concurrent_reductions(const struct ghp_worklist_op *op)
{
    return op->value == GHP_VALUE_DATA && op->pass != GHP_PASS_FORWARD ? op->flops : 0;
}

/* What stands between collectives: any operation of data parallelism. */
static double any_layer(const struct ghp_worklist_op *op)
{
    return op->value == GHP_VALUE_DATA ? 1 : 0;
}

typedef enum ghp_status measure_fn(const struct ghp_measure *m, const struct ghp_task *tasks, int n,
                                   struct ghp_overlap *overlap);

/* Measures by operations drawn by weight; nothing if none weighs anything. */
static enum ghp_status measure_by(struct ghp_profiling *run, measure_fn *measure,
                                  double (*weight)(const struct ghp_worklist_op *))
{
    const struct ghp_worklist_op *ops[GHP_OVERLAP_TASKS];
    struct ghp_opbench *benches[GHP_OVERLAP_TASKS] = {NULL};
    struct ghp_task tasks[GHP_OVERLAP_TASKS];
    int n = ghp_worklist_draw(&run->worklist, weight, GHP_OVERLAP_TASKS, ops);
    double unused = 0;
    enum ghp_status status = GHP_OK;

    if (n == 0) return GHP_OK;
    for (int i = 0; i < n && status == GHP_OK; i++) {
        struct ghp_opbench_task task = ghp_measure_op_task(&run->m, ops[i]);

        task.other_bytes /= n; /* they run in turns */
        status = ghp_opbench_open(run->m.backend_ops, run->m.backend, &task, &benches[i]);
        tasks[i] = (struct ghp_task){
            .run = task_run, .context = benches[i], .clock = ghp_measure_clock(&run->m)};
    }
    GHP_TRY_GOTO(status, ghp_measure_max(&run->m, status, &unused), done);
    status = measure(&run->m, tasks, n, &run->profile->overlap);
done:
    for (int i = 0; i < n; i++)
        ghp_opbench_close(benches[i]);
    return status;
}

static enum ghp_status measure_overlap(struct ghp_profiling *run)
{
    bool late;

    ghp_progress_step(RATES_ALONE, "%s", "how much computing and reductions slow each other down");
    GHP_TRY(measure_by(run, ghp_measure_overlap, concurrent_reductions));
    GHP_TRY(ghp_measure_late(&run->m, &late));
    if (late) {
        ghp_note("rates took half of the time, so some were not measured but count as others; give "
                 "a larger --budget");
        return GHP_OK;
    }
    ghp_progress_step(RATES_AFTER_LAYERS, "%s", "what collectives take after layers");
    return measure_by(run, ghp_measure_arrival, any_layer);
}

/* Whether loading is to be measured: an earlier file may have it of other samples. */
static bool wants_load(const struct ghp_profiling *run)
{
    const char *wanted = run->request->data, *had = run->profile->data;

    if (ghp_measure_device(&run->m).ops != NULL && wanted == NULL) return false;
    return wanted != NULL ? had == NULL || strcmp(had, wanted) != 0
                          : had != NULL || !(run->profile->load.bandwidth_Bps > 0);
}

static enum ghp_status measure_loading(struct ghp_profiling *run, int64_t samples)
{
    unsigned char wants = wants_load(run) ? 0 : 1; /* on any rank: on all */

    GHP_TRY(ghp_measure_broadcast(&run->m, GHP_OK, &wants, 1));
    if (wants == 1) return GHP_OK;
    GHP_TRY(ghp_measure_load(&run->m, &run->request->models[0], run->request->data, samples,
                             &run->profile->load));
    free(run->profile->data);
    run->profile->data = run->request->data != NULL ? strdup(run->request->data) : NULL;
    return run->request->data == NULL || run->profile->data != NULL ? GHP_OK : GHP_NO_MEMORY();
}

static enum ghp_status measure_rates(struct ghp_profiling *run, bool rates, bool slowdowns)
{
    int64_t samples = ghp_part_of(run->request->batches[0], run->result->workers);

    ghp_progress_step(0, "%s", "copies, updates and loading");
    if (rates) GHP_TRY(ghp_measure_rates(&run->m, &run->request->models[0], samples, run->profile));
    GHP_TRY(measure_loading(run, samples));
    return slowdowns ? measure_overlap(run) : GHP_OK;
}

enum ghp_status ghp_profiling_rates(struct ghp_profiling *run)
{
    const struct ghp_profile *old = run->profile;
    unsigned char known[3] = {1, old->overlap.compute >= 1, !wants_load(run)};
    enum ghp_status status;

    for (int i = 0; i < GHP_OPTIMIZERS; i++)
        if (old->update[i].source != GHP_SOURCE_MEASURED || !(old->update[i].bandwidth_Bps > 0))
            known[0] = 0;
    GHP_TRY(ghp_measure_broadcast(&run->m, GHP_OK, known, 3));
    if (known[0] && known[1] && known[2]) return GHP_OK;
    ghp_progress_begin("rates", 0, RATES_COUNT);
    status = measure_rates(run, !known[0], !known[0] || !known[1]);
    ghp_progress_end();
    return status;
}
