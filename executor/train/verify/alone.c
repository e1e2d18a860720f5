/* executor/train/verify/alone.c - see alone.h. */
#include "executor/train/verify/alone.h"

#include <stdlib.h>
#include <string.h>

/* Layers of its own, if batch norms over a worker's own samples are over as many consecutive ones: the same sums. */
static enum ghp_status own_model(const struct ghp_rank_plan *like, struct ghp_alone *alone)
{
    const struct ghp_model *model = like->lowering.model;
    size_t bytes = (size_t)model->n_layers * sizeof *model->layers;
    bool replicas =
        ghp_sync_replicas(like->lowering.method.sync, like->lowering.problem.workers) > 1;

    alone->model = *model;
    alone->model.layers = ghp_alloc((size_t)model->n_layers, sizeof *model->layers);
    if (alone->model.layers == NULL) return GHP_NO_MEMORY();
    memcpy(alone->model.layers, model->layers, bytes);
    for (int i = 0; i < model->n_layers && !replicas; i++) {
        struct ghp_norm *norm = &alone->model.layers[i].norm;
        int stage = ghp_stage_of(like->lowering.staging, i);

        if (model->layers[i].op != GHP_OP_BATCH_NORM || !norm->local_stats) continue;
        if (like->lowering.staging != NULL && like->lowering.staging->shares != NULL)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' takes statistics of each worker's own samples, and with "
                            "unequal shares one worker cannot do the same; plan with "
                            "--load-balance equal to verify",
                            model->layers[i].name);
        struct ghp_placement placement = ghp_placement_of(
            like->lowering.staging, model->n_layers, like->lowering.problem,
            ghp_stage_representative(like->lowering.staging, stage, like->lowering.problem));
        norm->ghost_batch = ghp_local_of(model, i, like->splits[i], placement.problem).n;
        norm->local_stats = false;
    }
    return GHP_OK;
}

enum ghp_status ghp_alone_open(const struct ghp_exec_context *exec,
                               const struct ghp_rank_plan *like, const struct ghp_init_choice *init,
                               struct ghp_alone *alone)
{
    enum ghp_status status = GHP_OK;
    struct ghp_rank_plan rank_plan = *like;
    int replicas = ghp_sync_replicas(like->lowering.method.sync, like->lowering.problem.workers);

    *alone = (struct ghp_alone){
        .splits = ghp_alloc((size_t)like->lowering.model->n_layers, sizeof *alone->splits)};
    if (alone->splits == NULL) return GHP_NO_MEMORY();
    GHP_TRY_GOTO(status, own_model(like, alone), fail);
    rank_plan.lowering.model = &alone->model;
    for (int i = 0; i < like->lowering.model->n_layers; i++)
        alone->splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    rank_plan.splits = alone->splits;
    rank_plan.lowering.staging = NULL;
    if (ghp_lr_scaling_takes_batches(like->lowering.method.scaling)) {
        alone->batches.micro_batches =
            like->lowering.problem.workers * ghp_staging_micro_batches(like->lowering.staging);
        rank_plan.lowering.staging = &alone->batches;
    }
    rank_plan.lowering.nchw16c = NULL;
    rank_plan.lowering.method.sync = (struct ghp_sync){0};
    rank_plan.lowering.problem.workers = 1;
    rank_plan.lowering.problem.global_batch /= replicas;
    rank_plan.rank = 0;
    rank_plan.run.fault = GHP_FAULT_NONE;
    rank_plan.run.groups = 1;
    rank_plan.run.profile = NULL;
    rank_plan.lowering.prefetch = false; /* nobody hints */
    rank_plan.run.emulated_step_s = 0;
    GHP_TRY_GOTO(status, ghp_rank_plan_open(exec, &rank_plan, &alone->worker), fail);
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
