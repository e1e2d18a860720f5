/* executor/opbench/speed_probe.c - see opbench/speed_probe.h. */
#include "executor/opbench/speed_probe.h"
#include "core/base/clock.h"

#include "executor/backend/backend_private.h"
#include "executor/opbench/opbench.h"

#include <stdlib.h>

enum { WEIGHTS_BYTES = 8 << 20, FEATURES = 512, SAMPLES = 64, BURST = 32 };
/* at least so long are repeats of a job timed: several time slices of a shared core */
static const double job_s = 20e-3;

struct ghp_speed_prober {
    const struct ghp_backend_ops *ops;
    struct ghp_backend *backend;
    struct ghp_opbench *layer;
    struct ghp_update update;
    char *weights; /* weights, moments, gradients; where the backend's tensors lie */
};

enum ghp_status ghp_speed_prober_open(const struct ghp_backend_ops *ops,
                                      struct ghp_backend *backend, struct ghp_speed_prober **prober)
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
    struct ghp_speed_prober *p = ghp_alloc(1, sizeof *p);
    void *weights = NULL;
    enum ghp_status status;

    *prober = NULL;
    if (p == NULL) return GHP_NO_MEMORY();
    p->ops = ops;
    p->backend = backend;
    status =
        ghp_device_allocate(ghp_backend_device(ops, backend), 3 * (int64_t)WEIGHTS_BYTES, &weights);
    p->weights = weights;
    if (status == GHP_OK) status = ghp_opbench_open(ops, backend, &task, &p->layer);
    if (status != GHP_OK) {
        ghp_speed_prober_close(p);
        return status;
    }
    p->update = (struct ghp_update){.optimizer = &ghp_optimizer_sgd,
                                    .w = p->weights,
                                    .moment = {p->weights + WEIGHTS_BYTES},
                                    .dw = p->weights + 2 * WEIGHTS_BYTES,
                                    .elements = WEIGHTS_BYTES /
                                                ghp_parameter_bytes(backend->config.element_bytes),
                                    .given = ghp_optimizer_usual(&ghp_optimizer_sgd)};
    *prober = p;
    return GHP_OK;
}

void ghp_speed_prober_close(struct ghp_speed_prober *prober)
{
    if (prober == NULL) return;
    ghp_opbench_close(prober->layer);
    ghp_device_release(ghp_backend_device(prober->ops, prober->backend), prober->weights);
    free(prober);
}

static enum ghp_status compute_once(struct ghp_speed_prober *prober)
{
    return ghp_opbench_run(prober->layer, 1);
}

static enum ghp_status update_once(struct ghp_speed_prober *prober)
{
    return prober->ops->update(prober->backend, &prober->update);
}

/* Runs of a device come in bursts, so that waiting for it does not count. */
static enum ghp_status burst(struct ghp_speed_prober *prober,
                             enum ghp_status (*run)(struct ghp_speed_prober *), int64_t *runs)
{
    struct ghp_device device = ghp_backend_device(prober->ops, prober->backend);
    int n = device.ops != NULL ? BURST : 1;

    for (int i = 0; i < n; i++)
        GHP_TRY(run(prober));
    *runs += n;
    return ghp_device_finish(device, GHP_DEVICE_STREAM_COMPUTE);
}

/* The first runs warm up and are not counted. */
static enum ghp_status time_job(struct ghp_speed_prober *prober,
                                enum ghp_status (*run)(struct ghp_speed_prober *), double last_s,
                                double *seconds)
{
    double begin, now;
    int64_t runs = 0;

    GHP_TRY(burst(prober, run, &runs));
    runs = 0;
    begin = now = ghp_now_s();
    while (now - begin < last_s) {
        GHP_TRY(burst(prober, run, &runs));
        now = ghp_now_s();
    }
    *seconds = (now - begin) / (double)runs;
    return GHP_OK;
}

enum ghp_status ghp_speed_prober_time(struct ghp_speed_prober *prober,
                                      struct ghp_speed_probe *speed_probe)
{
    GHP_TRY(time_job(prober, compute_once, job_s, &speed_probe->compute_s));
    return time_job(prober, update_once, job_s, &speed_probe->memory_s);
}

enum ghp_status ghp_speed_prober_time_compute(struct ghp_speed_prober *prober, double last_s,
                                              double *seconds)
{
    return time_job(prober, compute_once, last_s, seconds);
}

struct ghp_speed_probe ghp_speed_probe_ratio(const struct ghp_speed_probe *now,
                                             const struct ghp_speed_probe *profiled)
{
    struct ghp_speed_probe ratio = {0};

    if (profiled->compute_s > 0) ratio.compute_s = now->compute_s / profiled->compute_s;
    if (profiled->memory_s > 0) ratio.memory_s = now->memory_s / profiled->memory_s;
    return ratio;
}
