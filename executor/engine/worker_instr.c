/* executor/engine/worker_instr.c - runs one instruction of a program, whatever its kind. */
#include "executor/engine/worker_private.h"

#include "core/model/precision.h"
#include "executor/engine/kernel_arguments.h"
#include "executor/engine/reshard.h"
#include "executor/engine/memory_format.h"

#include <string.h>

/* A micro-batch of a step. */
static struct ghp_supply micro_batch_of(const struct ghp_worker *w, const struct ghp_step *step,
                                        int micro)
{
    const struct ghp_seat *seat = &w->program.seat;

    return (struct ghp_supply){.data = step->data,
                               .set = step->set,
                               .samples = step->samples + micro * seat->micro_batch,
                               .n = seat->micro_batch,
                               .step = step->index};
}

/* What is loaded after instruction `instr` can be made from now on. */
static void begin_next(struct ghp_worker *w, const struct ghp_instr *instr)
{
    int after = instr->micro + 1;

    if (after < ghp_staging_micro_batches(w->work.staging)) {
        struct ghp_supply supply = micro_batch_of(w, &w->step, after);

        ghp_ahead_hint(w->ahead, &supply);
    } else if (w->has_next) {
        ghp_ahead_hint(w->ahead, &w->next);
        w->has_next = false;
    }
}

static enum ghp_status load_images(struct ghp_worker *w, const struct ghp_instr *instr,
                                   const struct ghp_load *load, const struct ghp_supply *supply)
{
    void *images = w->address[instr->at.y];

    if (w->ahead == NULL)
        return ghp_samples_images(load, supply, (struct ghp_range){0, load->images}, images);
    GHP_TRY(ghp_ahead_take(w->ahead, supply, images));
    begin_next(w, instr);
    return GHP_OK;
}

/* Samples where the input is owned, labels where the loss is. */
static enum ghp_status run_load(struct ghp_worker *w, const struct ghp_instr *instr)
{
    struct ghp_load load = ghp_worker_load(w);
    struct ghp_supply supply = micro_batch_of(w, &w->step, instr->micro);

    if (w->flight != NULL)
        return ghp_flight_load(w->flight, w->address[instr->at.y], w->address[instr->at.labels]);
    if (instr->at.y >= 0) GHP_TRY(load_images(w, instr, &load, &supply));
    return instr->at.labels >= 0 ? ghp_samples_labels(&load, &supply, w->address[instr->at.labels])
                                 : GHP_OK;
}

/* The wrong bias: added once by each member of the subgroup whose partial sums it should follow. */
static enum ghp_status repeat_bias(struct ghp_worker *w, int i, struct ghp_call *call)
{
    const struct ghp_layer *layer = &w->work.model->layers[ghp_worker_instr(w, i)->layer];
    struct ghp_split before = w->work.splits[layer->inputs[0]];

    if (layer->op != GHP_OP_BIAS || before.kind != GHP_SPLIT_IN) return GHP_OK;
    call->at.x[0] = call->at.y;
    for (int again = 1; again < before.degree; again++)
        GHP_TRY(w->team.backend_ops->run(w->kernel[i], call));
    return GHP_OK;
}

/* Without a reduction of the metrics they are complete behind the loss. */
static enum ghp_status run_loss(struct ghp_worker *w, int i, const struct ghp_call *call)
{
    GHP_TRY(w->team.backend_ops->run(w->kernel[i], call));
    if (w->flight == NULL || ghp_worker_instr(w, i)->wait >= 0) return GHP_OK;
    return ghp_flight_metrics(w->flight, ghp_flight_bank(w->flight), GHP_QUEUE_COMPUTE,
                              w->address[w->metrics]);
}

/* The sums of all ghost batches' statistics, at the start of the scratch. */
static enum ghp_status sum_ghosts(struct ghp_worker *w, const struct ghp_instr *instr,
                                  struct ghp_call *call)
{
    const struct ghp_numbers sums = {2 * instr->local.c, sizeof(double)};
    double *sum = call->at.scratch;

    GHP_TRY(ghp_device_copy(
        w->arena.device, GHP_QUEUE_COMPUTE,
        (struct ghp_copy){sum, call->at.stats, sums.n * sums.bytes, GHP_WAY_WITHIN}));
    for (int g = 1; g < instr->local.repeat; g++)
        GHP_TRY(w->team.backend_ops->accumulate(w->team.backend, sum, call->at.stats + g * sums.n,
                                                sums));
    call->at.stats = sum;
    call->at.scratch = (char *)call->at.scratch + ghp_instr_sums_bytes(instr);
    return GHP_OK;
}

static void *moved(const void *at, int64_t bytes)
{
    return at == NULL ? NULL : (char *)(uintptr_t)at + bytes;
}

/* A batch_norm pass over ghost batches: one after the other; their weight gradients come from the sums of all. */
static enum ghp_status run_ghosts(struct ghp_worker *w, int i, const struct ghp_call *all)
{
    const struct ghp_local *local = &ghp_worker_instr(w, i)->local;
    int64_t e = w->work.element_bytes, tensor = ghp_local_in_elements(local) * e;

    for (int g = 0; g < local->repeat; g++) {
        struct ghp_call call = *all;

        for (int x = 0; x < GHP_MAX_INPUTS; x++)
            call.at.x[x] = moved(all->at.x[x], g * tensor);
        call.at.dx[0] = moved(all->at.dx[0], g * tensor);
        call.at.y = moved(all->at.y, g * tensor);
        call.at.dy = moved(all->at.dy, g * tensor);
        call.at.saved = moved(all->at.saved, g * 2 * local->c * ghp_parameter_bytes((int)e));
        call.at.stats = moved(all->at.stats, g * 2 * local->c * (int64_t)sizeof(double));
        call.first_sample += g * local->n;
        call.drift_adds = all->drift_adds || g > 0;
        GHP_TRY(w->team.backend_ops->run(w->kernel[i], &call));
    }
    return GHP_OK;
}

/* The sum's place for the result, and what is added to it. */
static void take_addition(const struct ghp_worker *w, int i, struct ghp_call *call)
{
    const struct ghp_operands *add = &ghp_worker_instr(w, w->add[i])->at;
    const void *one = w->address[add->x[0]], *other = w->address[add->x[1]];

    call->at.x[1] = one == call->at.y ? other : one;
    call->at.y = w->address[add->y];
}

static enum ghp_status run_compute(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    struct ghp_call call = ghp_call_of(&w->work, &w->program.seat, instr, &w->step);

    if (w->absorbed[i]) return GHP_OK;
    call.at = ghp_call_tensors(instr, w->address);
    if (w->bias[i] >= 0) call.at.w[1] = w->address[w->bias[i]];
    if (w->add[i] >= 0) take_addition(w, i, &call);
    if (w->flight != NULL) call.numbers = ghp_flight_numbers(w->flight);
    if (instr->at.metrics >= 0) return run_loss(w, i, &call);
    if (instr->local.repeat > 1 && instr->pass != GHP_PASS_BACKWARD_WEIGHT)
        return run_ghosts(w, i, &call);
    if (instr->local.repeat > 1) GHP_TRY(sum_ghosts(w, instr, &call));
    GHP_TRY(w->team.backend_ops->run(w->kernel[i], &call));
    if (w->work.fault == GHP_FAULT_BIAS_TIMES_K && instr->pass == GHP_PASS_FORWARD)
        GHP_TRY(repeat_bias(w, i, &call));
    return GHP_OK;
}

static enum ghp_status run_reshard(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_operands *at = &instr->at;
    struct ghp_exchange exchange = {.instr = instr,
                                    .extent = w->program.seat.extent,
                                    .rank = w->program.seat.number,
                                    .element_bytes = w->work.element_bytes,
                                    .transport_ops = w->team.carrier_ops,
                                    .comm = w->comm[i],
                                    .x = w->address[at->x[0]],
                                    .y = w->address[at->y],
                                    .blocked = ghp_formats_sides(&w->program, instr, w->blocked),
                                    .device = w->arena.device};

    if (at->scratch >= 0) exchange.scratch = w->address[at->scratch];
    if (at->saved >= 0) {
        exchange.receive = w->address[at->saved];
        exchange.receive_bytes = w->program.buffers[at->saved].bytes;
    }
    if (w->comm[i] != NULL) w->team.carrier_ops->label(w->comm[i], w->label[i]);
    return ghp_exchange_run(&exchange);
}

/* A further gradient of a tensor, or a further micro-batch's gradients of a layer's weights. */
static enum ghp_status run_accumulate(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_operands *at = &instr->at;
    const struct ghp_numbers tensor = {ghp_local_in_elements(&instr->local), w->work.element_bytes};

    if (w->gate[i] >= 0)
        return w->team.backend_ops->accumulate_gated(
            w->team.backend, &(struct ghp_gated_sum){w->address[at->dy], w->address[at->x[0]],
                                                     w->address[w->gate[i]], tensor});
    if (instr->edge >= 0) return ghp_worker_accumulate(w, at->dy, at->x[0], tensor);
    for (int p = 0; p < GHP_MAX_PARAMS; p++)
        if (at->dw[p] >= 0)
            GHP_TRY(
                ghp_worker_accumulate(w, at->dw[p], at->x[p], ghp_worker_parameters(w, at->dw[p])));
    return GHP_OK;
}

/* Where all stages sum the metrics, one worker of each subgroup counts its samples. */
static void keep_metrics(struct ghp_worker *w)
{
    int loss = w->work.model->n_layers - 1, degree = w->work.splits[loss].degree;

    if (w->program.seat.n_stages == 1) return;
    if (ghp_worker_owns(w, loss) && w->program.seat.number % degree == 0) return;
    memset(w->address[w->metrics], 0, GHP_METRIC_COUNT * sizeof(double));
}

enum ghp_status ghp_worker_run(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_operands *at = &instr->at;

    switch (instr->kind) {
    case GHP_INSTR_LOAD: return run_load(w, instr);
    case GHP_INSTR_COMPUTE: return run_compute(w, i);
    case GHP_INSTR_RESHARD: return run_reshard(w, i);
    case GHP_INSTR_ACCUMULATE: return run_accumulate(w, i);
    case GHP_INSTR_STAT_REDUCE:
        if (w->comm[i] == NULL || w->work.fault == GHP_FAULT_LOCAL_STATISTICS) return GHP_OK;
        return ghp_worker_sum(w, i, at->stats, instr->bytes);
    case GHP_INSTR_UPDATE: return ghp_worker_update(w, i, previous);
    case GHP_INSTR_METRIC_REDUCE: keep_metrics(w); /* fall through */
    case GHP_INSTR_ALL_REDUCE:
    case GHP_INSTR_SEND:
    case GHP_INSTR_RECEIVE: return ghp_worker_post(w, i);
    case GHP_INSTR_WAIT: return ghp_courier_wait(w->courier, w->parcel[instr->after]);
    case GHP_INSTR_COUNT: break;
    }
    return GHP_FAIL(GHP_ERR_INTERNAL, "instruction %d has no meaning; report this", i);
}
