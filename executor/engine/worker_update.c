/* executor/engine/worker_update.c - weights by gradients: one instruction's updates, or all that are ready at once. */
#include "executor/engine/worker_private.h"

#include "core/model/precision.h"

/* Of what an instruction names as parameter p, by the rates of the step whose gradient it is. */
static struct ghp_update update_of(const struct ghp_worker *w, const struct ghp_instr *instr, int p,
                                   const struct ghp_step *of)
{
    struct ghp_update update = {.optimizer = instr->optimizer,
                                .w = w->address[instr->at.w[p]],
                                .dw = w->address[instr->at.dw[p]],
                                .elements = w->program.buffers[instr->at.w[p]].elements,
                                .squares = instr->at.x[0] >= 0 ? w->address[instr->at.x[0]] : NULL,
                                .decays = true,
                                .given = of->hyperparameters,
                                .hyperparameters = ghp_in_flight_hyperparameters(w->in_flight)};

    for (int m = 0; m < instr->optimizer->n_moments; m++)
        update.moment[m] = w->address[instr->at.moment[m][p]];
    return update;
}

static bool decays(const struct ghp_worker *w, const struct ghp_instr *instr, int layer, int slot)
{
    return w->work.model->layers[layer].params[slot].n_dims >= instr->optimizer->decay_dims;
}

/* The part of an update in elements `at` of it. */
static struct ghp_update part_of(const struct ghp_worker *w, const struct ghp_update *all,
                                 struct ghp_range at)
{
    int64_t skipped = at.first * ghp_parameter_bytes(w->work.element_bytes);
    struct ghp_update part = *all;

    part.w = (char *)all->w + skipped;
    part.dw = (const char *)all->dw + skipped;
    for (int m = 0; m < GHP_MAX_MOMENTS; m++)
        if (part.moment[m] != NULL) part.moment[m] = (char *)all->moment[m] + skipped;
    part.elements = at.end - at.first;
    return part;
}

/* A strip's updates where some of its parameters decay and others do not: each one's piece of it. What pads the
 * parameters stays zero. Returns their number. */
static int list_strip(const struct ghp_worker *w, const struct ghp_instr *instr,
                      const struct ghp_update *strip, struct ghp_update *updates)
{
    const struct ghp_buffer *buffers = w->program.buffers, *own = &buffers[instr->at.dw[0]];
    int64_t bytes = ghp_parameter_bytes(w->work.element_bytes);
    int n = 0;

    for (int i = 0; i < w->program.n_buffers; i++) {
        const struct ghp_buffer *b = &buffers[i];
        struct ghp_range at = {(b->storage_offset - own->storage_offset) / bytes, 0};

        if (b->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT || b->storage != own->storage) continue;
        at.end = at.first + b->elements;
        if (at.first < 0) at.first = 0;
        if (at.end > strip->elements) at.end = strip->elements;
        if (at.first >= at.end) continue;
        updates[n] = part_of(w, strip, at);
        updates[n++].decays = decays(w, instr, b->layer, b->slot);
    }
    return n;
}

/* An instruction's updates; returns their number. */
static int list_updates(const struct ghp_worker *w, int i, const struct ghp_step *of,
                        struct ghp_update *updates)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    bool strip = w->program.buckets[instr->bucket].strip_bytes > 0;
    int n = 0;

    for (int p = 0; p < GHP_MAX_PARAMS; p++) {
        if (instr->at.w[p] < 0) continue;
        updates[n] = update_of(w, instr, p, of);
        if (strip && instr->optimizer->decay_dims > 0) {
            struct ghp_update all = updates[n];

            return list_strip(w, instr, &all, updates);
        }
        updates[n].decays = strip || decays(w, instr, instr->layer, p);
        n++;
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

enum ghp_status ghp_worker_square(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    int64_t bytes = ghp_parameter_bytes(w->work.element_bytes);
    int n = 0;

    for (int b = 0; b < w->program.n_buffers; b++) {
        const struct ghp_buffer *buffer = &w->program.buffers[b];
        struct ghp_norm_share share;

        if (buffer->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT) continue;
        share = ghp_norm_share_of(&w->program, &w->work.model->layers[buffer->layer],
                                  w->work.splits[buffer->layer], b);
        if (share.first < share.end)
            w->squares[n++] = (struct ghp_squares){(char *)w->address[b] + share.first * bytes,
                                                   {share.end - share.first, (int)bytes}};
    }
    return w->exec.backend_ops->square(
        w->exec.backend, &(struct ghp_square_sum){w->squares, n, w->address[instr->at.scratch],
                                                  w->address[instr->at.y]});
}

void ghp_worker_begin_updates(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        w->prepared[i].updated = false;
}

enum ghp_status ghp_worker_update(struct ghp_worker *w, int i, const struct ghp_step *of)
{
    int n;

    if (w->work.fault == GHP_FAULT_SKIP_UPDATE && i == w->dropped) return GHP_OK;
    if (w->exec.backend_ops->update_all != NULL) return update_together(w, i, of);
    n = list_updates(w, i, of, w->updates);
    for (int p = 0; p < n; p++)
        GHP_TRY(w->exec.backend_ops->update(w->exec.backend, &w->updates[p]));
    return add_stats_deltas(w, i);
}
