/* executor/engine/worker_update.c - weights by gradients: one instruction's updates, or all that are ready at once. */
#include "executor/engine/worker_private.h"

#include "core/model/precision.h"

/* An instruction's updates, by the rates of the step whose gradient it is; returns their number. */
static int list_updates(const struct ghp_worker *w, int i, const struct ghp_step *of,
                        struct ghp_update *updates)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    int n = 0;

    for (int p = 0; p < GHP_MAX_PARAMS; p++) {
        if (instr->at.w[p] < 0) continue;
        updates[n++] =
            (struct ghp_update){.w = w->address[instr->at.w[p]],
                                .v = w->address[instr->at.momentum[p]],
                                .dw = w->address[instr->at.dw[p]],
                                .elements = w->program.buffers[instr->at.w[p]].elements,
                                .learning_rate = of->learning_rate,
                                .momentum = of->momentum,
                                .weight_decay = of->weight_decay,
                                .hyperparameters = ghp_in_flight_hyperparameters(w->in_flight)};
    }
    return n;
}

enum ghp_status ghp_worker_accumulate(struct ghp_worker *w, int sum, int more,
                                      struct ghp_buffer_extent extent)
{
    return w->exec.backend_ops->accumulate(w->exec.backend, w->address[sum], w->address[more],
                                           extent);
}

struct ghp_buffer_extent ghp_worker_parameters(const struct ghp_worker *w, int buffer)
{
    return (struct ghp_buffer_extent){w->program.buffers[buffer].elements,
                                      ghp_parameter_bytes(w->work.element_bytes)};
}

/* Running statistics that moved apart come together. */
static enum ghp_status add_stats_deltas(struct ghp_worker *w, int i)
{
    const struct ghp_operands *at = &ghp_worker_instr(w, i)->at;

    for (int s = 0; s < GHP_MAX_STATES; s++)
        if (at->stats_delta[s] >= 0)
            GHP_TRY(ghp_worker_accumulate(w, at->state[s], at->stats_delta[s],
                                          ghp_worker_parameters(w, at->state[s])));
    return GHP_OK;
}

/* Where a launch costs more than an update: with this one, all later ones whose gradients are there too. The
 * communication stream is first in, first out, so a reduction that is done has all before it done; they are posted in
 * the order of the list. */
static enum ghp_status update_together(struct ghp_worker *w, int i, const struct ghp_step *of)
{
    int n = 0;

    if (w->prepared[i].updated) return GHP_OK;
    for (int j = i; j < w->program.n_instrs; j++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, j);

        if (instr->kind != GHP_INSTR_UPDATE || w->prepared[j].updated ||
            instr->wait > ghp_worker_instr(w, i)->wait)
            continue;
        w->prepared[j].updated = true;
        n += list_updates(w, j, of, w->updates + n);
        GHP_TRY(add_stats_deltas(w, j));
    }
    return w->exec.backend_ops->update_all(w->exec.backend, w->updates, n);
}

void ghp_worker_begin_updates(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        w->prepared[i].updated = false;
}

enum ghp_status ghp_worker_update(struct ghp_worker *w, int i, const struct ghp_step *of)
{
    struct ghp_update updates[GHP_MAX_PARAMS];
    int n;

    if (w->exec.backend_ops->update_all != NULL) return update_together(w, i, of);
    n = list_updates(w, i, of, updates);
    for (int p = 0; p < n; p++)
        GHP_TRY(w->exec.backend_ops->update(w->exec.backend, &updates[p]));
    return add_stats_deltas(w, i);
}
