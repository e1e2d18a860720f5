/* executor/train/sampling.c - see train/sampling.h. */
#include "executor/train/sampling.h"

#include "executor/backend/device.h"
#include "executor/data/order.h"
#include "executor/data/sampler.h"

#include <inttypes.h>
#include <stdlib.h>

const char *const ghp_sampler_names[] = {"uniform", "srg", NULL};

struct ghp_sampling {
    struct ghp_sampler sampler; /* of this worker's samples */
    struct ghp_order once;      /* the order in which each is measured first */
    int64_t samples;            /* of all workers */
    int rank, workers;
    int64_t *batch;       /* [workers]: this worker reads its own place */
    struct ghp_draw draw; /* of the present step */
};

/* ---- what it cannot be combined with ---- */

static enum ghp_status check_layers(const struct ghp_rank_plan *rank_plan)
{
    for (int i = 0; i < rank_plan->lowering.model->n_layers; i++) {
        const struct ghp_layer *layer = &rank_plan->lowering.model->layers[i];
        char text[32];

        if (layer->n_states > 0)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' takes statistics of a batch, and --sampler srg trains one "
                            "sample a worker; use a network without batch norm, or leave --sampler "
                            "out",
                            layer->name);
        if (rank_plan->splits[i].kind == GHP_SPLIT_DATA) continue;
        ghp_split_format(rank_plan->splits[i], text, sizeof text);
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' is split by '%s', and --sampler srg takes norms of each "
                        "worker's own gradients; plan with --strategy data",
                        layer->name, text);
    }
    return GHP_OK;
}

static enum ghp_status check(const struct ghp_sampling_request *r)
{
    const struct ghp_rank_plan *rank_plan = r->rank_plan;
    const struct ghp_problem *problem = &rank_plan->lowering.problem;

    if (!ghp_device_is_host(ghp_exec_context_device(r->exec)))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "--sampler srg takes norms in host memory, and backend '%s' has gradients "
                        "on a device; leave it out, or give --backend onednn",
                        r->exec->backend_ops->name);
    if (ghp_sync_ops_of(rank_plan->lowering.method.sync)->equality != GHP_SYNC_EQUALS_ONE_WORKER)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "--sampler srg is for gradients that are summed over all workers, and by "
                        "'%s' they are not; plan with --sync allreduce",
                        ghp_sync_ops_of(rank_plan->lowering.method.sync)->name);
    if (problem->global_batch != problem->workers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "--sampler srg takes the norm of each sample's gradient, so it trains one "
                        "sample a worker in a step, not %" PRId64 " over %d; plan with --batch %d",
                        problem->global_batch, problem->workers, problem->workers);
    if (ghp_lr_scaling_takes_batches(rank_plan->lowering.method.scaling))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "--sampler srg weights gradients, whose norms --lr-scaling %s compares; "
                        "plan with --lr-scaling none",
                        rank_plan->lowering.method.scaling->name);
    if (r->ignores)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "--ignore-label leaves out labels of other workers, whose samples no worker "
            "knows by --sampler srg; leave one of them out");
    return check_layers(rank_plan);
}

/* ---- opening ---- */

enum ghp_status ghp_sampling_open(const struct ghp_sampling_request *r,
                                  struct ghp_sampling **result)
{
    int workers = r->rank_plan->lowering.problem.workers, rank = r->rank_plan->rank;
    int64_t own = (r->samples - rank + workers - 1) / workers;
    enum ghp_status status;
    struct ghp_sampling *s;

    *result = NULL;
    GHP_TRY(check(r));
    s = ghp_alloc(1, sizeof *s);
    if (s == NULL) return GHP_NO_MEMORY();
    *s = (struct ghp_sampling){.samples = r->samples, .rank = rank, .workers = workers};
    GHP_TRY_GOTO(status,
                 ghp_sampler_init(&s->sampler, own, ghp_sampler_uniform, r->seed, (uint64_t)rank),
                 fail);
    GHP_TRY_GOTO(status, ghp_order_init(&s->once, own, 1, r->seed + (uint64_t)rank), fail);
    s->batch = ghp_alloc((size_t)workers, sizeof *s->batch);
    if (s->batch == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    *result = s;
    return GHP_OK;
fail:
    ghp_sampling_close(s);
    return status;
}

void ghp_sampling_close(struct ghp_sampling *s)
{
    if (s == NULL) return;
    ghp_sampler_release(&s->sampler);
    ghp_order_release(&s->once);
    free(s->batch);
    free(s);
}

/* ---- a step ---- */

void ghp_sampling_choose(struct ghp_sampling *s, struct ghp_step *step)
{
    double fraction = (double)(s->workers * s->sampler.n) / (double)s->samples;

    if (s->sampler.steps < s->sampler.n)
        s->draw = (struct ghp_draw){ghp_order_batch(&s->once, s->sampler.steps)[0], 1, true};
    else
        s->draw = ghp_sampler_draw(&s->sampler, step->index);
    s->sampler.steps++;
    for (int i = 0; i < s->workers; i++)
        s->batch[i] = s->draw.sample * s->workers + s->rank;
    step->samples = s->batch;
    step->weight = fraction * s->draw.weight;
    step->measures = s->draw.measures;
}

void ghp_sampling_learn(struct ghp_sampling *s, const struct ghp_worker *worker)
{
    if (s->draw.measures)
        ghp_sampler_learn(&s->sampler, s->draw.sample, ghp_worker_own_norm(worker));
}

struct ghp_checkpoint_norms ghp_sampling_norms(struct ghp_sampling *s)
{
    if (s == NULL) return (struct ghp_checkpoint_norms){0};
    return (struct ghp_checkpoint_norms){&s->sampler, s->samples, s->rank, s->workers};
}
