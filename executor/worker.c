/* executor/worker.c - see worker.h. The order of everything here is the program's; this file adds only the rules of
 * core/program.h: reductions and transfers run on the other streams, updates wait for the previous step's, a flush runs
 * them alone. */
#include "executor/worker.h"

#include "executor/call.h"
#include "executor/courier.h"
#include "executor/exchange.h"
#include "executor/kernels.h"
#include "executor/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_BYTES = 96 };

struct ghp_worker {
    struct ghp_team team;
    struct ghp_work work;
    struct ghp_kernels kernels;
    struct ghp_program program;
    struct ghp_arena arena;
    struct ghp_stream_thread *stream;
    struct ghp_stopwatch *watch;
    struct ghp_kernel **kernel; /* of each COMPUTE, else NULL */
    struct ghp_comm **comm;     /* of each instruction that sends, else NULL */
    char (*label)[LABEL_BYTES]; /* of each instruction, for the watchdog */
    void **address;             /* of each buffer */
    int64_t *ticket; /* of each instruction of the communication stream: its latest run */
    struct ghp_mailbox *mailbox; /* NULL: no other stages */
    struct ghp_courier *courier;
    struct ghp_parcel *parcels; /* sends and receives, in list order */
    int n_parcels;
    int *parcel_instr; /* of each parcel */
    int *parcel;       /* of each instruction, -1: it is none */
    int metrics;       /* buffer */
    int turning;       /* instruction before which the last step's metrics are taken */
    int dropped;       /* instruction that GHP_FAULT_DROP_REDUCTION leaves out, else -1 */
    bool updates_pending, result_pending;
    struct ghp_step step;   /* whose updates or result are pending, or that runs */
    struct ghp_lap *origin; /* of each communication instruction: the step that posted it */
    bool has_result;
    struct ghp_result result;
};

static const struct ghp_instr *instr_of(const struct ghp_worker *w, int i)
{
    return &w->program.instrs[i];
}

static bool sends(const struct ghp_instr *instr)
{
    return instr->comm != GHP_COMM_NONE && instr->ranks.count > 1;
}

/* ---- opening ---- */

static enum ghp_status lower(struct ghp_worker *w)
{
    struct ghp_lowering how = {.model = w->work.model,
                               .extent = w->work.extent,
                               .element_bytes = w->work.element_bytes,
                               .bucket_bytes = w->work.bucket_bytes,
                               .staging = w->work.staging,
                               .scratch = ghp_kernels_scratch(&w->kernels),
                               .forward_only = w->work.lender != NULL};

    GHP_TRY(ghp_lower(&how, w->work.splits, w->work.rank, &w->program));
    return ghp_program_check(&w->program);
}

static enum ghp_status make_tables(struct ghp_worker *w)
{
    size_t n = (size_t)w->program.n_instrs;

    w->kernel = ghp_alloc(n, sizeof(*w->kernel));
    w->comm = ghp_alloc(n, sizeof(*w->comm));
    w->label = ghp_alloc(n, sizeof(*w->label));
    w->ticket = ghp_alloc(n, sizeof(*w->ticket));
    w->origin = ghp_alloc(n, sizeof(*w->origin));
    w->address = ghp_alloc((size_t)w->program.n_buffers, sizeof(*w->address));
    w->parcel = ghp_alloc(n, sizeof(*w->parcel));
    w->parcel_instr = ghp_alloc(n, sizeof(*w->parcel_instr));
    w->parcels = ghp_alloc(n, sizeof(*w->parcels));
    if (w->parcel == NULL || w->parcel_instr == NULL || w->parcels == NULL) return GHP_NO_MEMORY();
    if (w->kernel == NULL || w->comm == NULL || w->label == NULL || w->ticket == NULL ||
        w->origin == NULL || w->address == NULL)
        return GHP_NO_MEMORY();
    return ghp_stopwatch_open(w->program.n_instrs, &w->watch);
}

static enum ghp_status prepare_instr(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = instr_of(w, i);
    const char *layer = instr->layer >= 0 ? w->work.model->layers[instr->layer].name : "metrics";

    snprintf(w->label[i], LABEL_BYTES, "%s of %s%s", ghp_instr_name(instr), layer,
             instr->backward ? ", backward" : "");
    if (instr->kind == GHP_INSTR_COMPUTE)
        GHP_TRY(ghp_kernels_find(&w->kernels, &instr->local, instr->pass, &w->kernel[i]));
    if (instr->at.metrics >= 0) w->metrics = instr->at.metrics;
    w->parcel[i] = -1;
    if (instr->stream != GHP_STREAM_TRANSFER) return GHP_OK;
    w->parcel[i] = w->n_parcels;
    w->parcel_instr[w->n_parcels] = i;
    return ghp_parcel_open(instr, w->work.rank, &w->parcels[w->n_parcels++]);
}

/* The instruction that waits for the metrics; where nothing is reduced, the loss of the first micro-batch. */
static void choose_turning(struct ghp_worker *w)
{
    w->turning = -1;
    for (int i = 0; i < w->program.n_instrs && w->turning < 0; i++) {
        int wait = instr_of(w, i)->wait;

        if (wait >= 0 && instr_of(w, wait)->kind == GHP_INSTR_METRIC_REDUCE) w->turning = i;
    }
    for (int i = 0; i < w->program.n_instrs && w->turning < 0; i++)
        if (instr_of(w, i)->kind == GHP_INSTR_COMPUTE && instr_of(w, i)->at.metrics >= 0)
            w->turning = i;
}

static enum ghp_status open_mailbox(struct ghp_worker *w)
{
    int slots = 0;

    for (int p = 0; p < w->n_parcels; p++)
        slots += w->parcels[p].n;
    return w->team.transport_ops->mail(w->team.transport, slots, &w->mailbox);
}

/* One communicator for each distinct (ranks, stream); every worker of a stage meets them in the same order. */
enum ghp_status ghp_worker_connect(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++) {
        const struct ghp_instr *instr = instr_of(w, i);

        if (!sends(instr)) continue;
        GHP_TRY(w->team.transport_ops->group(w->team.transport, instr->ranks, instr->stream,
                                             &w->comm[i]));
    }
    return w->program.seat.n_stages > 1 ? open_mailbox(w) : GHP_OK;
}

static void choose_dropped(struct ghp_worker *w)
{
    w->dropped = -1;
    if (w->work.fault != GHP_FAULT_DROP_REDUCTION) return;
    for (int i = w->program.n_instrs - 1; i >= 0; i--)
        if (instr_of(w, i)->kind == GHP_INSTR_ALL_REDUCE) w->dropped = i;
}

enum ghp_status ghp_worker_open(const struct ghp_team *team, const struct ghp_work *work,
                                struct ghp_worker **worker)
{
    enum ghp_status status = GHP_OK;
    struct ghp_worker *w = ghp_alloc(1, sizeof(*w));

    *worker = NULL;
    if (w == NULL) return GHP_NO_MEMORY();
    w->team = *team;
    w->work = *work;
    w->metrics = -1;
    w->arena.point = -1;
    ghp_kernels_init(&w->kernels, team->backend_ops, team->backend, work->profile);
    GHP_TRY_GOTO(status, lower(w), fail);
    if (work->lender == NULL)
        GHP_TRY_GOTO(
            status,
            ghp_fault_check(work->fault, work->model, work->splits, &w->program, work->groups),
            fail);
    GHP_TRY_GOTO(status, make_tables(w), fail);
    for (int i = 0; i < w->program.n_instrs; i++)
        GHP_TRY_GOTO(status, prepare_instr(w, i), fail);
    choose_dropped(w);
    choose_turning(w);
    GHP_ASSERT(w->metrics >= 0);
    *worker = w;
    return GHP_OK;
fail:
    ghp_worker_close(w);
    return status;
}

static enum ghp_status reduce_job(void *context, int i);
static void note_parcel(void *context, int parcel);

static const char *parcel_name(void *context, int parcel)
{
    const struct ghp_worker *w = context;

    return w->label[w->parcel_instr[parcel]];
}

/* The parcels at their addresses, and the thread that carries them. */
static enum ghp_status open_courier(struct ghp_worker *w)
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
        const struct ghp_instr *instr = instr_of(w, w->parcel_instr[p]);
        int tensor = w->parcels[p].receives ? instr->at.y : instr->at.x[0];
        void *scratch = instr->at.scratch >= 0 ? w->address[instr->at.scratch] : NULL;

        ghp_parcel_place(&w->parcels[p], w->address[tensor], scratch);
    }
    return w->n_parcels > 0 ? ghp_courier_open(&job, &w->courier) : GHP_OK;
}

enum ghp_status ghp_worker_allocate(struct ghp_worker *w)
{
    bool communicates = false;

    GHP_TRY(ghp_arena_open(&w->program, w->work.lender == NULL, &w->arena));
    for (int i = 0; i < w->program.n_buffers; i++) {
        const struct ghp_buffer *b = &w->program.buffers[i];
        bool borrowed =
            w->work.lender != NULL && (b->role == GHP_ROLE_WEIGHT || b->role == GHP_ROLE_STATE);

        w->address[i] = borrowed
                            ? ghp_worker_tensor(w->work.lender, b->role, b->layer, b->slot, NULL)
                            : ghp_arena_at(&w->arena, &w->program, i);
    }
    for (int i = 0; i < w->program.n_instrs; i++)
        communicates = communicates || instr_of(w, i)->stream == GHP_STREAM_COMM;
    if (communicates) GHP_TRY(ghp_stream_open(w->program.n_instrs + 1, reduce_job, w, &w->stream));
    return open_courier(w);
}

void ghp_worker_close(struct ghp_worker *w)
{
    if (w == NULL) return;
    ghp_courier_close(w->courier);
    ghp_stream_close(w->stream);
    for (int p = 0; p < w->n_parcels; p++)
        ghp_parcel_close(&w->parcels[p]);
    if (w->mailbox != NULL) w->team.transport_ops->empty(w->mailbox);
    ghp_arena_close(&w->arena);
    ghp_stopwatch_close(w->watch);
    free(w->parcels);
    free(w->parcel_instr);
    free(w->parcel);
    free(w->address);
    free(w->origin);
    free(w->ticket);
    free(w->label);
    free(w->comm);
    free(w->kernel);
    ghp_program_release(&w->program);
    ghp_kernels_release(&w->kernels);
    free(w);
}

/* ---- instructions ---- */

static enum ghp_status sum_in_place(struct ghp_worker *w, int i, int data, int64_t bytes)
{
    const struct ghp_instr *instr = instr_of(w, i);
    bool wide = instr->kind == GHP_INSTR_METRIC_REDUCE ||
                instr->kind == GHP_INSTR_STAT_REDUCE; /* double always */
    int element_bytes = wide ? (int)sizeof(double) : w->work.element_bytes;
    struct ghp_reduction sum = {.in = w->address[data],
                                .out = w->address[data],
                                .elements = bytes / element_bytes,
                                .element_bytes = element_bytes,
                                .scratch = w->address[instr->at.scratch],
                                .scratch_bytes = w->program.buffers[instr->at.scratch].bytes};

    w->team.transport_ops->label(w->comm[i], w->label[i]);
    return w->team.transport_ops->all_reduce(w->comm[i], &sum);
}

/* On the communication thread. */
static enum ghp_status reduce_job(void *context, int i)
{
    struct ghp_worker *w = context;
    const struct ghp_instr *instr = instr_of(w, i);
    double origin_s = w->origin[i].start_s;
    struct ghp_lap lap = {.step = w->origin[i].step, .start_s = ghp_stopwatch_now_s() - origin_s};
    int data = instr->kind == GHP_INSTR_METRIC_REDUCE ? instr->at.metrics : instr->at.y;

    if (sends(instr) && i != w->dropped) GHP_TRY(sum_in_place(w, i, data, instr->bytes));
    lap.finish_s = ghp_stopwatch_now_s() - origin_s;
    ghp_stopwatch_lap(w->watch, i, lap);
    return GHP_OK;
}

/* On the transfer thread. */
static void note_parcel(void *context, int parcel)
{
    struct ghp_worker *w = context;
    int i = w->parcel_instr[parcel];
    struct ghp_lap lap = w->origin[i];

    lap.finish_s = ghp_stopwatch_now_s() - lap.finish_s;
    ghp_stopwatch_lap(w->watch, i, lap);
}

/* Samples where the input is owned, labels where the loss is. */
static enum ghp_status run_load(struct ghp_worker *w, const struct ghp_instr *instr)
{
    const struct ghp_work *work = &w->work;
    const struct ghp_step *step = &w->step;
    const struct ghp_seat *seat = &w->program.seat;
    const int64_t *samples = step->samples + instr->micro * seat->micro_batch;
    int loss = work->model->n_layers - 1;
    struct ghp_window_at x =
        ghp_seat_window(seat, ghp_split_layouts(work->splits[0]).y, work->model->layers[0].out.c);
    struct ghp_window_at l = ghp_seat_window(seat, ghp_split_layouts(work->splits[loss]).x,
                                             work->model->layers[loss].in.c);
    struct ghp_batch batch = {.set = step->set,
                              .samples = samples + x.first_sample,
                              .n = x.samples,
                              .first_channel = x.first_channel,
                              .channels = x.channels,
                              .element_bytes = work->element_bytes};

    if (instr->at.y >= 0) {
        batch.images = w->address[instr->at.y];
        GHP_TRY(ghp_data_images(step->data, &batch));
    }
    if (instr->at.labels < 0) return GHP_OK;
    return ghp_data_labels(step->data, step->set, samples + l.first_sample, l.samples,
                           w->address[instr->at.labels]);
}

/* The wrong bias: added once by each member of the subgroup whose partial sums it should follow. */
static enum ghp_status repeat_bias(struct ghp_worker *w, int i, struct ghp_call *call)
{
    const struct ghp_layer *layer = &w->work.model->layers[instr_of(w, i)->layer];
    struct ghp_split before = w->work.splits[layer->inputs[0]];

    if (layer->op != GHP_OP_BIAS || before.kind != GHP_SPLIT_IN) return GHP_OK;
    call->at.x[0] = call->at.y;
    for (int again = 1; again < before.degree; again++)
        GHP_TRY(w->team.backend_ops->run(w->kernel[i], call));
    return GHP_OK;
}

static void take_result(struct ghp_worker *w, uint64_t step)
{
    const double *m = w->address[w->metrics];

    w->result = (struct ghp_result){
        .step = step,
        .loss = m[GHP_METRIC_SAMPLES] > 0 ? m[GHP_METRIC_LOSS] / m[GHP_METRIC_SAMPLES] : 0,
        .correct = m[GHP_METRIC_CORRECT],
        .samples = m[GHP_METRIC_SAMPLES]};
    w->has_result = true;
    w->result_pending = false;
}

/* The sums of all ghost batches' statistics, at the start of the scratch. */
static void sum_ghosts(const struct ghp_instr *instr, struct ghp_call *call)
{
    int64_t n = 2 * instr->local.c;
    double *sum = call->at.scratch;

    memcpy(sum, call->at.stats, (size_t)n * sizeof(*sum));
    for (int g = 1; g < instr->local.repeat; g++)
        for (int64_t i = 0; i < n; i++)
            sum[i] += call->at.stats[g * n + i];
    call->at.stats = sum;
    call->at.scratch = (char *)call->at.scratch + ghp_instr_sums_bytes(instr);
}

static void *moved(const void *at, int64_t bytes)
{
    return at == NULL ? NULL : (char *)(uintptr_t)at + bytes;
}

/* A batch_norm pass over ghost batches: one after the other; their weight gradients come from the sums of all. */
static enum ghp_status run_ghosts(struct ghp_worker *w, int i, const struct ghp_call *all)
{
    const struct ghp_local *local = &instr_of(w, i)->local;
    int64_t e = w->work.element_bytes, tensor = ghp_local_in_elements(local) * e;

    for (int g = 0; g < local->repeat; g++) {
        struct ghp_call call = *all;

        call.at.x[0] = moved(all->at.x[0], g * tensor);
        call.at.dx[0] = moved(all->at.dx[0], g * tensor);
        call.at.y = moved(all->at.y, g * tensor);
        call.at.dy = moved(all->at.dy, g * tensor);
        call.at.saved = moved(all->at.saved, g * 2 * local->c * e);
        call.at.stats = moved(all->at.stats, g * 2 * local->c * (int64_t)sizeof(double));
        call.first_sample += g * local->n;
        call.drift_adds = all->drift_adds || g > 0;
        GHP_TRY(w->team.backend_ops->run(w->kernel[i], &call));
    }
    return GHP_OK;
}

static enum ghp_status run_compute(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = instr_of(w, i);
    struct ghp_call call = ghp_call_of(&w->work, &w->program.seat, instr, &w->step);

    call.at = ghp_call_tensors(instr, w->address);
    if (instr->local.repeat > 1 && instr->pass != GHP_PASS_BACKWARD_WEIGHT)
        return run_ghosts(w, i, &call);
    if (instr->local.repeat > 1) sum_ghosts(instr, &call);
    GHP_TRY(w->team.backend_ops->run(w->kernel[i], &call));
    if (w->work.fault == GHP_FAULT_BIAS_TIMES_K && instr->pass == GHP_PASS_FORWARD)
        GHP_TRY(repeat_bias(w, i, &call));
    return GHP_OK;
}

static enum ghp_status run_reshard(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = instr_of(w, i);
    const struct ghp_operands *at = &instr->at;
    struct ghp_exchange exchange = {.instr = instr,
                                    .extent = w->program.seat.extent,
                                    .rank = w->program.seat.number,
                                    .element_bytes = w->work.element_bytes,
                                    .transport_ops = w->team.transport_ops,
                                    .comm = w->comm[i],
                                    .x = w->address[at->x[0]],
                                    .y = w->address[at->y]};

    if (at->scratch >= 0) exchange.scratch = w->address[at->scratch];
    if (at->saved >= 0) {
        exchange.receive = w->address[at->saved];
        exchange.receive_bytes = w->program.buffers[at->saved].bytes;
    }
    if (w->comm[i] != NULL) w->team.transport_ops->label(w->comm[i], w->label[i]);
    return ghp_exchange_run(&exchange);
}

/* By the rates of the step whose gradient it is. */
static void run_update(struct ghp_worker *w, const struct ghp_instr *instr,
                       const struct ghp_step *of)
{
    for (int p = 0; p < GHP_MAX_PARAMS; p++) {
        struct ghp_update update;

        if (instr->at.w[p] < 0) continue;
        update = (struct ghp_update){.w = w->address[instr->at.w[p]],
                                     .v = w->address[instr->at.momentum[p]],
                                     .dw = w->address[instr->at.dw[p]],
                                     .elements = w->program.buffers[instr->at.w[p]].elements,
                                     .learning_rate = of->learning_rate,
                                     .momentum = of->momentum,
                                     .weight_decay = of->weight_decay};
        w->team.backend_ops->update(w->team.backend, &update);
    }
    for (int s = 0; s < GHP_MAX_STATES; s++)
        if (instr->at.drift[s] >= 0)
            w->team.backend_ops->accumulate(w->team.backend, w->address[instr->at.state[s]],
                                            w->address[instr->at.drift[s]],
                                            w->program.buffers[instr->at.state[s]].elements);
}

/* A further gradient of a tensor, or a further micro-batch's gradients of a layer's weights. */
static void run_accumulate(struct ghp_worker *w, const struct ghp_instr *instr)
{
    const struct ghp_operands *at = &instr->at;

    if (instr->edge >= 0)
        w->team.backend_ops->accumulate(w->team.backend, w->address[at->dy], w->address[at->x[0]],
                                        ghp_local_in_elements(&instr->local));
    for (int p = 0; instr->edge < 0 && p < GHP_MAX_PARAMS; p++)
        if (at->dw[p] >= 0)
            w->team.backend_ops->accumulate(w->team.backend, w->address[at->dw[p]],
                                            w->address[at->x[p]],
                                            w->program.buffers[at->dw[p]].elements);
}

/* Where all stages sum the metrics, one worker of each subgroup counts its samples. */
static void keep_metrics(struct ghp_worker *w)
{
    int loss = w->work.model->n_layers - 1, degree = w->work.splits[loss].degree;

    if (w->program.seat.n_stages == 1) return;
    if (ghp_worker_owns(w, loss) && w->program.seat.number % degree == 0) return;
    memset(w->address[w->metrics], 0, GHP_METRIC_COUNT * sizeof(double));
}

/* Hands an instruction to the stream that runs it. */
static void post(struct ghp_worker *w, int i)
{
    w->origin[i] = (struct ghp_lap){.step = ghp_stopwatch_step(w->watch),
                                    .start_s = ghp_stopwatch_start_s(w->watch)};
    if (w->parcel[i] < 0) {
        w->ticket[i] = ghp_stream_post(w->stream, i);
        return;
    }
    w->origin[i].finish_s = w->origin[i].start_s; /* when the step began: laps count from there */
    w->origin[i].start_s = ghp_stopwatch_now_s() - w->origin[i].finish_s;
    ghp_courier_post(w->courier, w->parcel[i]);
}

static enum ghp_status run_instr(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = instr_of(w, i);
    const struct ghp_operands *at = &instr->at;

    switch (instr->kind) {
    case GHP_INSTR_LOAD: return run_load(w, instr);
    case GHP_INSTR_COMPUTE: return run_compute(w, i);
    case GHP_INSTR_RESHARD: return run_reshard(w, i);
    case GHP_INSTR_ACCUMULATE: run_accumulate(w, instr); return GHP_OK;
    case GHP_INSTR_STAT_REDUCE:
        if (w->comm[i] == NULL || w->work.fault == GHP_FAULT_LOCAL_STATISTICS) return GHP_OK;
        return sum_in_place(w, i, at->stats, instr->bytes);
    case GHP_INSTR_UPDATE: run_update(w, instr, previous); return GHP_OK;
    case GHP_INSTR_METRIC_REDUCE: keep_metrics(w); /* fall through */
    case GHP_INSTR_ALL_REDUCE:
    case GHP_INSTR_SEND:
    case GHP_INSTR_RECEIVE: post(w, i); return GHP_OK;
    case GHP_INSTR_WAIT: return ghp_courier_wait(w->courier, w->parcel[instr->after]);
    case GHP_INSTR_COUNT: break;
    }
    return GHP_FAIL(GHP_ERR_INTERNAL, "instruction %d has no meaning; report this", i);
}

/* ---- steps ---- */

static enum ghp_status wait_for(struct ghp_worker *w, int i)
{
    return i < 0 || w->stream == NULL ? GHP_OK : ghp_stream_wait(w->stream, w->ticket[i]);
}

/* The last step's metrics are complete: keeps them, and clears the sums for the next. */
static void turn_metrics(struct ghp_worker *w, const struct ghp_step *previous)
{
    if (w->result_pending) take_result(w, previous->index);
    memset(w->address[w->metrics], 0, GHP_METRIC_COUNT * sizeof(double));
}

static enum ghp_status run_step(struct ghp_worker *w, const struct ghp_step *previous)
{
    double begin = ghp_stopwatch_start_s(w->watch);

    for (int i = 0; i < w->program.n_instrs; i++) {
        const struct ghp_instr *instr = instr_of(w, i);
        double before = ghp_stopwatch_now_s(), start;
        struct ghp_lap lap;

        if (instr->kind == GHP_INSTR_UPDATE && !w->updates_pending) continue;
        ghp_arena_visit(&w->arena, &w->program, instr->point);
        GHP_TRY(wait_for(w, instr->wait));
        start = ghp_stopwatch_now_s();
        if (i == w->turning) turn_metrics(w, previous);
        GHP_TRY(run_instr(w, i, previous));
        if (instr->stream != GHP_STREAM_COMPUTE) continue;
        lap = (struct ghp_lap){.step = ghp_stopwatch_step(w->watch),
                               .start_s = start - begin,
                               .finish_s = ghp_stopwatch_now_s() - begin,
                               .wait_s = start - before};
        ghp_stopwatch_lap(w->watch, i, lap);
    }
    return GHP_OK;
}

enum ghp_status ghp_worker_step(struct ghp_worker *w, const struct ghp_step *step)
{
    struct ghp_step previous = w->step;

    w->step = *step;
    ghp_stopwatch_begin(w->watch);
    GHP_TRY(run_step(w, &previous));
    ghp_stopwatch_end(w->watch);
    w->updates_pending = w->work.lender == NULL;
    w->result_pending = true;
    return GHP_OK;
}

enum ghp_status ghp_worker_settle(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        if (instr_of(w, i)->stream == GHP_STREAM_COMM) GHP_TRY(wait_for(w, i));
    ghp_arena_visit(&w->arena, &w->program, -1);
    if (w->result_pending) take_result(w, w->step.index);
    return GHP_OK;
}

enum ghp_status ghp_worker_flush(struct ghp_worker *w)
{
    GHP_TRY(ghp_worker_settle(w));
    for (int i = 0; w->updates_pending && i < w->program.n_instrs; i++)
        if (instr_of(w, i)->kind == GHP_INSTR_UPDATE) run_update(w, instr_of(w, i), &w->step);
    w->updates_pending = false;
    return GHP_OK;
}

/* ---- what others may see ---- */

bool ghp_worker_result(const struct ghp_worker *w, struct ghp_result *result)
{
    *result = w->result;
    return w->has_result;
}

const struct ghp_program *ghp_worker_program(const struct ghp_worker *w)
{
    return &w->program;
}

const struct ghp_arena *ghp_worker_arena(const struct ghp_worker *w)
{
    return &w->arena;
}

const struct ghp_team *ghp_worker_team(const struct ghp_worker *w)
{
    return &w->team;
}

const struct ghp_work *ghp_worker_work(const struct ghp_worker *w)
{
    return &w->work;
}

const struct ghp_seat *ghp_worker_seat(const struct ghp_worker *w)
{
    return &w->program.seat;
}

bool ghp_worker_owns(const struct ghp_worker *w, int layer)
{
    return layer >= w->program.seat.first_layer && layer < w->program.seat.end_layer;
}

struct ghp_stopwatch *ghp_worker_stopwatch(struct ghp_worker *w)
{
    return w->watch;
}

void *ghp_worker_tensor(struct ghp_worker *w, enum ghp_role role, int layer, int slot,
                        int64_t *elements)
{
    for (int i = 0; i < w->program.n_buffers; i++) {
        const struct ghp_buffer *b = &w->program.buffers[i];

        if (b->role != role || b->layer != layer || b->slot != slot) continue;
        if (elements != NULL) *elements = b->elements;
        return w->address[i];
    }
    return NULL;
}

void ghp_worker_rest(struct ghp_worker *w)
{
    ghp_arena_rest(&w->arena, &w->program);
}
