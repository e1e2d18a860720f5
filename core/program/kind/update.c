/* core/program/kind/update.c - the optimizer's step, of one layer or of this worker's optimizer shard of a bucket. */
#include "core/program/lower/buffer_assignment_private.h"
#include "core/program/lower/flow.h"

static void assign_shard(const struct ghp_bucket *bucket, struct ghp_instr *instr)
{
    instr->at.w[0] = bucket->weight_shard;
    instr->at.dw[0] = bucket->gradient_shard;
    for (int m = 0; m < instr->optimizer->n_moments; m++)
        instr->at.moment[m][0] = bucket->moment[m];
}

static void assign_layer(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_layer *l = &k->lowering->model->layers[instr->layer];

    for (int p = 0; p < l->n_params && !l->fixed; p++) {
        int at = instr->layer * GHP_MAX_PARAMS + p;

        instr->at.w[p] = k->weights[at];
        instr->at.w_bf16[p] = k->bf16[at];
        instr->at.dw[p] = k->gradients[at];
        for (int m = 0; m < instr->optimizer->n_moments; m++)
            instr->at.moment[m][p] = k->moments[m][at];
    }
    for (int s = 0; ghp_lowering_has_stats_delta(k->lowering, l) && s < l->n_states; s++) {
        instr->at.state[s] = k->states[instr->layer * GHP_MAX_STATES + s];
        instr->at.stats_delta[s] = k->stats_deltas[instr->layer * GHP_MAX_STATES + s];
    }
}

static void assign(const struct ghp_buffer_assignment *k, struct ghp_instr *instr)
{
    const struct ghp_bucket *bucket;

    instr->bucket = k->buckets->of_layer[instr->layer];
    bucket = &k->program->buckets[instr->bucket];
    if (ghp_method_clips(&k->lowering->method)) instr->at.x[0] = k->squares;
    if (bucket->shard_bytes > 0)
        assign_shard(bucket, instr);
    else
        assign_layer(k, instr);
}

const struct ghp_kind_facts ghp_kind_facts_update = {
    .name = "update",
    .purpose =
        "the optimizer's step of a layer, or of an optimizer shard of a bucket, by the step before",
    .phase = GHP_PHASE_UPDATE,
    .cost = GHP_COST_UPDATE,
    .is_local = true,
    .of_updates = true,
    .assign = assign,
};
