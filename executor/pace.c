/* executor/pace.c - see pace.h. */
#include "executor/pace.h"

#include "executor/backend_private.h"
#include "executor/opbench.h"
#include "executor/stopwatch.h"

#include <stdlib.h>

enum { WEIGHTS_BYTES = 8 << 20, FEATURES = 512, SAMPLES = 64 };
static const double job_s = 20e-3; /* at least so long are repeats of a job timed: several time slices of a shared core */

struct ghp_pacer {
    const struct ghp_backend_ops *ops;
    struct ghp_backend *backend;
    struct ghp_opbench *layer;
    struct ghp_update update;
    char *weights; /* weights, momenta, gradients */
};

enum ghp_status ghp_pacer_open(const struct ghp_backend_ops *ops, struct ghp_backend *backend,
                               struct ghp_pacer **pacer)
{
    const struct ghp_opbench_task task = {.local = {.op = GHP_OP_LINEAR,
                                                    .n = SAMPLES,
                                                    .c = FEATURES,
                                                    .h = 1,
                                                    .w = 1,
                                                    .k = FEATURES,
                                                    .p = 1,
                                                    .q = 1,
                                                    .n_inputs = 1},
                                          .pass = GHP_PASS_FORWARD};
    struct ghp_pacer *p = ghp_alloc(1, sizeof *p);
    enum ghp_status status;

    *pacer = NULL;
    if (p == NULL) return GHP_NO_MEMORY();
    p->ops = ops;
    p->backend = backend;
    p->weights = ghp_alloc(3, WEIGHTS_BYTES);
    status = p->weights != NULL ? GHP_OK : GHP_NO_MEMORY();
    if (status == GHP_OK) status = ghp_opbench_open(ops, backend, &task, &p->layer);
    if (status != GHP_OK) {
        ghp_pacer_close(p);
        return status;
    }
    p->update = (struct ghp_update){.w = p->weights,
                                    .v = p->weights + WEIGHTS_BYTES,
                                    .dw = p->weights + 2 * WEIGHTS_BYTES,
                                    .elements = WEIGHTS_BYTES / backend->config.element_bytes,
                                    .learning_rate = 0.01,
                                    .momentum = 0.9};
    *pacer = p;
    return GHP_OK;
}

void ghp_pacer_close(struct ghp_pacer *pacer)
{
    if (pacer == NULL) return;
    ghp_opbench_close(pacer->layer);
    free(pacer->weights);
    free(pacer);
}

static enum ghp_status compute_once(struct ghp_pacer *pacer)
{
    return ghp_opbench_run(pacer->layer, 1);
}

static enum ghp_status update_once(struct ghp_pacer *pacer)
{
    pacer->ops->update(pacer->backend, &pacer->update);
    return GHP_OK;
}

/* The first run warms up and is not counted. */
static enum ghp_status time_job(struct ghp_pacer *pacer, enum ghp_status (*run)(struct ghp_pacer *),
                                double *seconds)
{
    double begin, now;
    int64_t runs = 0;

    GHP_TRY(run(pacer));
    begin = now = ghp_stopwatch_now_s();
    while (now - begin < job_s) {
        GHP_TRY(run(pacer));
        now = ghp_stopwatch_now_s();
        runs++;
    }
    *seconds = (now - begin) / (double)runs;
    return GHP_OK;
}

enum ghp_status ghp_pacer_time(struct ghp_pacer *pacer, struct ghp_pace *pace)
{
    GHP_TRY(time_job(pacer, compute_once, &pace->compute_s));
    return time_job(pacer, update_once, &pace->memory_s);
}

struct ghp_pace ghp_pace_ratio(const struct ghp_pace *now, const struct ghp_pace *profiled)
{
    struct ghp_pace ratio = {0};

    if (profiled->compute_s > 0) ratio.compute_s = now->compute_s / profiled->compute_s;
    if (profiled->memory_s > 0) ratio.memory_s = now->memory_s / profiled->memory_s;
    return ratio;
}
