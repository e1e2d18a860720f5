/* executor/engine/worker_concurrent.c - what runs beside the compute stream: reductions on the lane, parcels with the courier.
 *
 * On a device reductions are enqueued in its communication queue, and marks take the place of the clock. */
#include "executor/engine/worker_private.h"
#include "core/base/clock.h"

enum ghp_status ghp_worker_sum(struct ghp_worker *w, int i, int data, int64_t bytes)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    bool wide = instr->kind == GHP_INSTR_METRIC_REDUCE ||
                instr->kind == GHP_INSTR_STAT_REDUCE; /* double always */
    int element_bytes = wide ? (int)sizeof(double) : ghp_parameter_bytes(w->work.element_bytes);
    struct ghp_reduction sum = {.in = w->address[data],
                                .out = w->address[data],
                                .elements = bytes / element_bytes,
                                .element_bytes = element_bytes,
                                .scratch = w->address[instr->at.scratch],
                                .scratch_bytes = w->program.buffers[instr->at.scratch].bytes};

    w->team.carrier_ops->label(w->comm[i], w->label[i]);
    return w->team.carrier_ops->all_reduce(w->comm[i], &sum);
}

static enum ghp_status reduce(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    int data = instr->kind == GHP_INSTR_METRIC_REDUCE ? instr->at.metrics : instr->at.y;

    return ghp_instr_sends(instr) && i != w->dropped ? ghp_worker_sum(w, i, data, instr->bytes)
                                                     : GHP_OK;
}

/* On a device: in its communication queue, by marks in place of the clock. */
static enum ghp_status enqueue_reduce(struct ghp_worker *w, int i)
{
    int bank = w->origin[i].bank;

    GHP_TRY(ghp_flight_start(w->flight, bank, i));
    GHP_TRY(reduce(w, i));
    if (ghp_worker_instr(w, i)->kind == GHP_INSTR_METRIC_REDUCE)
        GHP_TRY(ghp_flight_metrics(w->flight, bank, GHP_QUEUE_COMM, w->address[w->metrics]));
    return ghp_flight_finish(w->flight, bank, i);
}

/* On the lane: on its thread, or at once where the carrier enqueues. */
enum ghp_status ghp_worker_reduce(void *context, int i)
{
    struct ghp_worker *w = context;
    double origin_s = w->origin[i].start_s;
    struct ghp_lap lap = {.step = w->origin[i].step, .start_s = ghp_now_s() - origin_s};

    if (w->flight != NULL) return enqueue_reduce(w, i);
    GHP_TRY(reduce(w, i));
    lap.finish_s = ghp_now_s() - origin_s;
    ghp_stopwatch_lap(w->watch, i, lap);
    return GHP_OK;
}

/* Hands an instruction to the stream that runs it. */
enum ghp_status ghp_worker_post(struct ghp_worker *w, int i)
{
    double begin_s = ghp_stopwatch_start_s(w->watch);

    w->origin[i] = (struct ghp_origin){.step = ghp_stopwatch_step(w->watch),
                                       .start_s = begin_s,
                                       .posted_s = ghp_now_s() - begin_s,
                                       .bank = w->flight != NULL ? ghp_flight_bank(w->flight) : 0};
    if (w->parcel[i] < 0) return ghp_lane_post(w->lane, i);
    ghp_courier_post(w->courier, w->parcel[i]);
    return GHP_OK;
}

/* On the transfer thread. */
static void note_parcel(void *context, int parcel)
{
    struct ghp_worker *w = context;
    int i = w->parcel_instr[parcel];
    const struct ghp_origin *origin = &w->origin[i];

    ghp_stopwatch_lap(w->watch, i,
                      (struct ghp_lap){.step = origin->step,
                                       .start_s = origin->posted_s,
                                       .finish_s = ghp_now_s() - origin->start_s});
}

static const char *parcel_name(void *context, int parcel)
{
    const struct ghp_worker *w = context;

    return w->label[w->parcel_instr[parcel]];
}

enum ghp_status ghp_worker_open_mailbox(struct ghp_worker *w)
{
    int slots = 0;

    for (int p = 0; p < w->n_parcels; p++)
        slots += w->parcels[p].n;
    return w->team.transport_ops->mail(w->team.transport, slots, &w->mailbox);
}

/* The parcels at their addresses, and the thread that carries them. */
enum ghp_status ghp_worker_open_courier(struct ghp_worker *w)
{
    struct ghp_courier_job job = {.ops = w->team.transport_ops,
                                  .transport = w->team.transport,
                                  .mailbox = w->mailbox,
                                  .parcels = w->parcels,
                                  .n = w->n_parcels,
                                  .done = note_parcel,
                                  .name = parcel_name,
                                  .context = w};

    for (int p = 0; p < w->n_parcels; p++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, w->parcel_instr[p]);
        int tensor = w->parcels[p].receives ? instr->at.y : instr->at.x[0];
        void *scratch = instr->at.scratch >= 0 ? w->address[instr->at.scratch] : NULL;

        ghp_parcel_place(&w->parcels[p], w->address[tensor], scratch);
    }
    return w->n_parcels > 0 ? ghp_courier_open(&job, &w->courier) : GHP_OK;
}
