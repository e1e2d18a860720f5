/* executor/train/verify/replicas.c - see replicas.h. */
#include "executor/train/verify/replicas.h"

#include "core/base/log.h"
#include "executor/state/parameters.h"

#include <stdlib.h>
#include <string.h>

static const struct ghp_tensor *tensor_of(const struct ghp_replicas *r, int entry)
{
    return &r->list.items[entry < r->list.n ? entry : (entry - r->list.n) % r->list.n_trained];
}

static enum ghp_buffer_kind kind_of(const struct ghp_replicas *r, int entry)
{
    if (entry < r->list.n) return ghp_tensor_buffer_kind(tensor_of(r, entry));
    return ghp_moment_kind((entry - r->list.n) / r->list.n_trained);
}

static void release(struct ghp_replicas *r)
{
    for (int i = 0; r->whole != NULL && i < r->rows * r->entries; i++)
        free(r->whole[i]);
    free(r->whole);
    free(r->losses);
    free(r->lost);
    ghp_tensors_release(&r->list);
}

/* What the worker has becomes replica i's. */
static enum ghp_status keep(struct ghp_replicas *r, int i)
{
    for (int e = 0; e < r->entries; e++)
        GHP_TRY(ghp_parameters_gather(r->worker, tensor_of(r, e), kind_of(r, e),
                                      r->whole[i * r->entries + e]));
    return GHP_OK;
}

/* Replica i becomes what the worker has: all of it, or without moments. */
static enum ghp_status use(struct ghp_replicas *r, int i, bool moments)
{
    for (int e = 0; e < (moments ? r->entries : r->list.n); e++)
        GHP_TRY(ghp_parameters_scatter(r->worker, tensor_of(r, e), kind_of(r, e),
                                       r->whole[i * r->entries + e]));
    return GHP_OK;
}

/* All begin with the worker's first weights. */
static enum ghp_status open(struct ghp_worker *worker, const struct ghp_replicas_config *config,
                            struct ghp_replicas *r)
{
    int n = config->n;

    *r = (struct ghp_replicas){
        .worker = worker,
        .sync = config->sync,
        .n = n,
        .rows = ghp_sync_ops_of(config->sync)->mixing != NULL ? 2 * n + 2 : n + 1,
        .n_moments = ghp_worker_program(worker)->optimizer->n_moments,
        .element_bytes = ghp_parameter_bytes(ghp_worker_program(worker)->element_bytes)};
    GHP_TRY(ghp_tensors_list_init(ghp_worker_program(worker)->model, &r->list));
    r->entries = r->list.n + r->n_moments * r->list.n_trained;
    r->whole = ghp_alloc((size_t)(r->rows * r->entries), sizeof *r->whole);
    r->losses = ghp_alloc((size_t)n, sizeof *r->losses);
    r->lost = ghp_alloc((size_t)n, sizeof *r->lost);
    if (r->whole == NULL || r->losses == NULL || r->lost == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < r->rows * r->entries; i++) {
        size_t elements = (size_t)tensor_of(r, i % r->entries)->param->elements;

        r->whole[i] = ghp_alloc(elements, (size_t)r->element_bytes);
        if (r->whole[i] == NULL) return GHP_NO_MEMORY();
    }
    for (int i = 0; i < n; i++)
        GHP_TRY(keep(r, i));
    return GHP_OK;
}

/* The mean of all replicas' weights and statistics, into the further row. */
static void take_mean(struct ghp_replicas *r)
{
    for (int e = 0; e < r->list.n; e++)
        for (int64_t at = 0; at < tensor_of(r, e)->param->elements; at++) {
            double sum = 0;

            for (int i = 0; i < r->n; i++)
                sum += ghp_replicas_value(r, i, e, at);
            ghp_replicas_set(r, r->n, e, at, sum / r->n);
        }
}

static void give_mean(struct ghp_replicas *r, int64_t t)
{
    if ((t + 1) % ghp_sync_period(r->sync) != 0) return;
    take_mean(r);
    for (int i = 0; i < r->n * r->entries; i++)
        if (i % r->entries < r->list.n)
            memcpy(r->whole[i], r->whole[r->n * r->entries + i % r->entries],
                   (size_t)tensor_of(r, i % r->entries)->param->elements *
                       (size_t)r->element_bytes);
}

/* A step of replica i by its own samples. */
static enum ghp_status train_one(struct ghp_replicas *r, int i, const struct ghp_step *all,
                                 struct ghp_snapshot *s)
{
    int64_t own = ghp_worker_program(r->worker)->problem.global_batch;
    struct ghp_step step = *all;
    struct ghp_result result;

    step.first_sample = i * own;
    step.samples += step.first_sample;
    step.valid = own;
    GHP_TRY(use(r, i, true));
    GHP_TRY(ghp_worker_step(r->worker, &step));
    GHP_TRY(ghp_worker_settle(r->worker));
    if (i == 0 && all->index == 0) GHP_TRY(ghp_snapshot_gradients(s, r->worker));
    GHP_TRY(ghp_worker_flush(r->worker));
    if (ghp_worker_result(r->worker, &result)) r->losses[i] = result.loss;
    return keep(r, i);
}

enum ghp_status ghp_verify_replicas(struct ghp_worker *worker,
                                    const struct ghp_replicas_config *config,
                                    struct ghp_training_config *training_config, int64_t steps,
                                    struct ghp_snapshot *s)
{
    struct ghp_replicas r;
    enum ghp_status status = open(worker, config, &r);

    ghp_progress_begin("replicas in turn", 0, steps);
    for (int64_t t = 0; t < steps && status == GHP_OK; t++) {
        struct ghp_step step = ghp_training_config_step(training_config, t);
        double loss = 0;

        for (int i = 0; i < r.n && status == GHP_OK; i++)
            status = train_one(&r, i, &step, s);
        if (status == GHP_OK && !ghp_replicas_mix(&r, t)) give_mean(&r, t);
        for (int i = 0; i < r.n; i++)
            loss += r.losses[i] / r.n;
        ghp_losses_add(&s->losses, loss);
        ghp_progress_step(t + 1, "%s", "");
    }
    ghp_progress_end();
    if (status == GHP_OK) take_mean(&r);
    if (status == GHP_OK) status = use(&r, r.n, false);
    if (status == GHP_OK) status = ghp_snapshot_weights(s, worker);
    release(&r);
    return status;
}
