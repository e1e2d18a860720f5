/* executor/train/alone.c - see alone.h. */
#include "executor/train/alone.h"

#include <stdlib.h>
#include <string.h>

/* Layers of its own, where batch norms over a worker's own samples are over as many consecutive ones: the same sums. */
static enum ghp_status own_model(const struct ghp_work *like, struct ghp_alone *alone)
{
    const struct ghp_model *model = like->model;
    size_t bytes = (size_t)model->n_layers * sizeof(*model->layers);
    bool replicas = ghp_sync_replicas(like->method.sync, like->problem.workers) > 1;

    alone->model = *model;
    alone->model.layers = ghp_alloc((size_t)model->n_layers, sizeof(*model->layers));
    if (alone->model.layers == NULL) return GHP_NO_MEMORY();
    memcpy(alone->model.layers, model->layers, bytes);
    for (int i = 0; i < model->n_layers && !replicas; i++) {
        struct ghp_norm *norm = &alone->model.layers[i].norm;
        int stage = ghp_stage_of(like->staging, i);

        if (model->layers[i].op != GHP_OP_BATCH_NORM || !norm->local_stats) continue;
        if (like->staging != NULL && like->staging->shares != NULL)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' takes statistics of each worker's own samples, and with "
                            "unequal shares one worker cannot do the same; plan with "
                            "--load-balance equal to verify",
                            model->layers[i].name);
        struct ghp_placement placement =
            ghp_placement_of(like->staging, model->n_layers, like->problem,
                             ghp_stage_representative(like->staging, stage, like->problem));
        norm->ghost_batch = ghp_local_of(model, i, like->splits[i], placement.problem).n;
        norm->local_stats = false;
    }
    return GHP_OK;
}

enum ghp_status ghp_alone_open(const struct ghp_exec_context *exec, const struct ghp_work *like,
                               const struct ghp_init_choice *init, struct ghp_alone *alone)
{
    enum ghp_status status = GHP_OK;
    struct ghp_work work = *like;
    int replicas = ghp_sync_replicas(like->method.sync, like->problem.workers);

    *alone = (struct ghp_alone){
        .splits = ghp_alloc((size_t)like->model->n_layers, sizeof(*alone->splits))};
    if (alone->splits == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, own_model(like, alone), fail);
    work.model = &alone->model;
    for (int i = 0; i < like->model->n_layers; i++)
        alone->splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    work.splits = alone->splits;
    work.staging = NULL;
    if (ghp_lr_scaling_takes_norms(like->method.scaling) && like->method.scaling->batches) {
        alone->batches.micro_batches =
            like->problem.workers * ghp_staging_micro_batches(like->staging);
        work.staging = &alone->batches;
    }
    work.nchw16c = NULL;
    work.method.sync = (struct ghp_sync){0};
    work.problem.workers = 1;
    work.problem.global_batch /= replicas;
    work.rank = 0;
    work.fault = GHP_FAULT_NONE;
    work.groups = 1;
    work.profile = NULL;
    work.prefetch = false; /* nobody hints */
    work.emulated_step_s = 0;
    GHP_TRY_GOTO(status, ghp_worker_open(exec, &work, &alone->worker), fail);
    GHP_TRY_GOTO(status, ghp_worker_connect(alone->worker), fail);
    GHP_TRY_GOTO(status, ghp_worker_allocate(alone->worker), fail);
    GHP_TRY_GOTO(status, ghp_init_weights(alone->worker, init), fail);
    return GHP_OK;
fail:
    ghp_alone_close(alone);
    return status;
}

void ghp_alone_close(struct ghp_alone *alone)
{
    ghp_worker_close(alone->worker);
    free(alone->splits);
    free(alone->model.layers);
    *alone = (struct ghp_alone){0};
}
