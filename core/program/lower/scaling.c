/* core/program/lower/scaling.c - what learning rates by norms (core/optimizer/lr_scaling.h) need of a program: the
 * check of what is not possible, and the norms of a worker batch's gradients, taken before anything is added to
 * them. */
#include "core/model/precision.h"
#include "core/program/lower/scaling.h"

static enum ghp_status check_batches_layer(const struct ghp_lowering *lowering, int layer,
                                           const struct ghp_split *split)
{
    const struct ghp_layer *l = &lowering->model->layers[layer];
    const char *name = lowering->method.scaling->name;
    char text[32];

    if (l->tied > 0 || l->shared)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' shares its weights, and --lr-scaling %s takes norms of each "
                        "layer's own gradients; use --lr-scaling linear or lars",
                        l->name, name);
    if (split != NULL && split->tp_size > 1) {
        ghp_split_format(*split, text, sizeof text);
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' is split by '%s', and --lr-scaling %s takes norms of each "
                        "worker's own gradients; split it by data, or use --lr-scaling linear or "
                        "lars",
                        l->name, text, name);
    }
    if (ghp_layer_trains(lowering->model, layer) && l->tied == 0 && lowering->problem.workers > 1 &&
        ghp_layer_reduce_tp_size(lowering, layer,
                                 (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1}) == 0)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%s' takes statistics of the global batch, so no worker has a "
            "gradient of its own samples for --lr-scaling %s; give ghp-plan --batch-norm local, or "
            "the layer \"statistics\": \"local:S\" of S samples, or use --lr-scaling linear or "
            "lars",
            l->name, name);
    return GHP_OK;
}

static enum ghp_status check_staging(const struct ghp_lowering *lowering)
{
    const struct ghp_staging *s = lowering->staging;

    if (s == NULL || (s->n < 2 && s->shares == NULL)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "--lr-scaling %s is for workers that have all layers and equally many samples; "
                    "leave stages and unequal shares out, or use --lr-scaling linear",
                    lowering->method.scaling->name);
}

enum ghp_status ghp_lower_check_scaling(const struct ghp_lowering *lowering,
                                        const struct ghp_split *splits)
{
    GHP_TRY(ghp_lr_scaling_check(lowering->method.scaling, lowering->method.optimizer,
                                 ghp_method_clips(&lowering->method)));
    if (!ghp_lr_scaling_takes_norms(lowering->method.scaling)) return GHP_OK;
    if (ghp_sync_wants_data(lowering->method.sync))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "by '%s' no worker has the sum of all gradients, whose norms --lr-scaling "
                        "%s takes; use --lr-scaling none or linear, or --sync allreduce",
                        ghp_sync_ops_of(lowering->method.sync)->name,
                        lowering->method.scaling->name);
    GHP_TRY(check_staging(lowering));
    for (int i = 0; i < lowering->model->n_layers && lowering->method.scaling->rule->batches; i++)
        GHP_TRY(check_batches_layer(lowering, i, splits != NULL ? &splits[i] : NULL));
    return GHP_OK;
}

enum ghp_status ghp_emit_batch_norms(const struct ghp_emitter *e, int layer, struct ghp_split split,
                                     const struct ghp_local *local)
{
    struct ghp_instr *norm;

    if (!ghp_lr_scaling_takes_batches(e->lowering->method.scaling)) return GHP_OK;
    norm = ghp_emitter_add(e, GHP_INSTR_WORKER_NORM, ghp_emitter_point(e, layer, true));
    if (norm == NULL) return GHP_NO_MEMORY();
    norm->layer = layer;
    norm->backward = true;
    norm->local = *local;
    norm->sharding = ghp_emitter_sharding(e, layer, split);
    norm->bytes =
        ghp_local_weight_elements(local) * ghp_parameter_bytes(e->lowering->element_bytes);
    return GHP_OK;
}
