/* executor/worker.c - see worker.h. The order of everything here is the program's; this file adds only the rules of
 * core/program.h: reductions and transfers run on the other streams, updates wait for the previous step's, a flush runs
 * them alone.
 *
 * On a device the same instructions are enqueued in the same order; what the host learns of a step it learns a step
 * later, from its flight (flight.h). */
#include "executor/worker.h"

#include "executor/call.h"
#include "executor/courier.h"
#include "executor/exchange.h"
#include "executor/flight.h"
#include "executor/formats.h"
#include "executor/kernels.h"
#include "executor/lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_BYTES = 96 };

struct origin {      /* of a job of another stream */
    int64_t step;    /* of the stopwatch */
    double start_s;  /* of that step */
    double posted_s; /* after that */
    int bank;        /* of that step, on a device */
};

struct ghp_worker {
    struct ghp_team team;
    struct ghp_work work;
    struct ghp_kernels kernels;
    struct ghp_program program;
    struct ghp_arena arena;
    struct ghp_lane *lane;     /* NULL: nothing runs beside the compute stream */
    struct ghp_flight *flight; /* NULL: tensors lie in host memory */
    struct ghp_stopwatch *watch;
    struct ghp_kernel **kernel;  /* of each COMPUTE, else NULL */
    struct ghp_comm **comm;      /* of each instruction that sends, else NULL */
    char (*label)[LABEL_BYTES];  /* of each instruction, for the watchdog */
    void **address;              /* of each buffer */
    bool *blocked;               /* each buffer's format */
    bool *updated;               /* of each UPDATE: done in this step */
    struct ghp_update *updates;  /* those that run at once */
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
    struct ghp_step step;  /* whose updates or result are pending, or that runs */
    struct origin *origin; /* of each instruction of another stream: the step that posted it */
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
    w->updated = ghp_alloc(n, sizeof(*w->updated));
    w->updates = ghp_alloc(n * GHP_MAX_PARAMS, sizeof(*w->updates));
    w->origin = ghp_alloc(n, sizeof(*w->origin));
    w->address = ghp_alloc((size_t)w->program.n_buffers, sizeof(*w->address));
    w->parcel = ghp_alloc(n, sizeof(*w->parcel));
    w->parcel_instr = ghp_alloc(n, sizeof(*w->parcel_instr));
    w->parcels = ghp_alloc(n, sizeof(*w->parcels));
    if (w->parcel == NULL || w->parcel_instr == NULL || w->parcels == NULL) return GHP_NO_MEMORY();
    w->blocked = ghp_alloc((size_t)w->program.n_buffers, sizeof(*w->blocked));
    if (w->kernel == NULL || w->comm == NULL || w->label == NULL || w->updated == NULL ||
        w->updates == NULL || w->origin == NULL || w->address == NULL || w->blocked == NULL)
        return GHP_NO_MEMORY();
    GHP_TRY(ghp_formats_choose(&w->program, &w->kernels, w->blocked));
    return ghp_stopwatch_open(w->program.n_instrs, &w->watch);
}

static enum ghp_status prepare_instr(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = instr_of(w, i);
    const char *layer = instr->layer >= 0 ? w->work.model->layers[instr->layer].name : "metrics";

    snprintf(w->label[i], LABEL_BYTES, "%s of %s%s", ghp_instr_name(instr), layer,
             instr->backward ? ", backward" : "");
    if (instr->kind == GHP_INSTR_COMPUTE) {
        int scratch = instr->at.scratch;

        GHP_TRY(ghp_kernels_find(&w->kernels, &instr->local, instr->pass,
                                 ghp_formats_of(&w->program, instr, w->blocked), &w->kernel[i]));
        GHP_ASSERT(w->team.backend_ops->scratch_bytes(w->kernel[i]) <=
                   (scratch < 0 ? 0 : w->program.buffers[scratch].bytes));
    }
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
        GHP_TRY(
            w->team.carrier_ops->group(w->team.carrier, instr->ranks, instr->stream, &w->comm[i]));
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
    w->team = ghp_team_complete(*team);
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

static const char *label_of(void *context, int i)
{
    const struct ghp_worker *w = context;

    return w->label[i];
}

/* What of a micro-batch this worker loads. */
static struct ghp_load load_of(const struct ghp_worker *w)
{
    const struct ghp_work *work = &w->work;
    const struct ghp_layer *input = &work->model->layers[0];
    int loss = work->model->n_layers - 1;
    const struct ghp_seat *seat = &w->program.seat;
    struct ghp_window_at x =
        ghp_seat_window(seat, ghp_split_layouts(work->splits[0]).y, input->out.c);
    struct ghp_window_at l = ghp_seat_window(seat, ghp_split_layouts(work->splits[loss]).x,
                                             work->model->layers[loss].in.c);

    return (struct ghp_load){.first_image = x.first_sample,
                             .images = x.samples,
                             .first_channel = x.first_channel,
                             .channels = x.channels,
                             .image_bytes =
                                 x.channels * input->out.h * input->out.w * work->element_bytes,
                             .first_label = l.first_sample,
                             .labels = l.samples,
                             .element_bytes = work->element_bytes,
                             .threads = work->threads > 0 ? work->threads : 1};
}

/* Transfers, further micro-batches and ghost batches work in host memory. */
static enum ghp_status check_flight(const struct ghp_worker *w)
{
    bool ghosts = false;

    for (int l = 0; l < w->work.model->n_layers; l++)
        ghosts = ghosts || (w->work.model->layers[l].op == GHP_OP_BATCH_NORM &&
                            w->work.model->layers[l].norm.ghost > 0);
    if (w->work.staging == NULL && !ghosts) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_USAGE,
        "backend '%s' runs plans of one stage and one micro-batch, with statistics over the "
        "global batch; plan with --roles shared, or run on processors",
        w->team.backend_ops->name);
}

static enum ghp_status open_flight(struct ghp_worker *w, bool communicates)
{
    struct ghp_worker *lender = w->work.lender;
    struct ghp_flight_plan plan = {.team = &w->team,
                                   .program = &w->program,
                                   .load = load_of(w),
                                   .lender = lender != NULL ? lender->flight : NULL,
                                   .records = lender == NULL && w->work.fault == GHP_FAULT_NONE &&
                                              !w->work.no_tape,
                                   .label = label_of,
                                   .context = w};

    for (int i = 0; i < w->program.n_instrs; i++) /* all of them enqueue, or none is recorded */
        if (w->comm[i] != NULL && !w->team.carrier_ops->queues) plan.records = false;
    if (communicates && !w->team.carrier_ops->queues) plan.records = false;
    return ghp_flight_open(&plan, &w->flight);
}

static enum ghp_status open_arena(struct ghp_worker *w)
{
    const struct ghp_worker *lender = w->work.lender;
    struct ghp_device device = ghp_team_device(&w->team);

    if (device.ops == NULL) return ghp_arena_open(&w->program, lender == NULL, &w->arena);
    return ghp_arena_open_on(device, &w->program, lender != NULL ? &lender->arena : NULL,
                             &w->arena);
}

enum ghp_status ghp_worker_allocate(struct ghp_worker *w)
{
    bool communicates = false;

    GHP_TRY(open_arena(w));
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
    if (w->arena.device.ops != NULL) {
        GHP_TRY(check_flight(w));
        GHP_TRY(open_flight(w, communicates));
    }
    if (communicates)
        GHP_TRY(ghp_lane_open(&w->team, w->program.n_instrs + 1, reduce_job, w, &w->lane));
    return open_courier(w);
}

void ghp_worker_close(struct ghp_worker *w)
{
    if (w == NULL) return;
    ghp_courier_close(w->courier);
    ghp_lane_close(w->lane);
    ghp_flight_close(w->flight);
    for (int p = 0; p < w->n_parcels; p++)
        ghp_parcel_close(&w->parcels[p]);
    if (w->mailbox != NULL) w->team.transport_ops->empty(w->mailbox);
    ghp_arena_close(&w->arena);
    ghp_stopwatch_close(w->watch);
    free(w->parcels);
    free(w->parcel_instr);
    free(w->parcel);
    free(w->address);
    free(w->blocked);
    free(w->origin);
    free(w->updates);
    free(w->updated);
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
    const struct ghp_instr *instr = instr_of(w, i);
    int data = instr->kind == GHP_INSTR_METRIC_REDUCE ? instr->at.metrics : instr->at.y;

    return sends(instr) && i != w->dropped ? sum_in_place(w, i, data, instr->bytes) : GHP_OK;
}

/* On a device: in its communication queue, by marks in place of the clock. */
static enum ghp_status enqueue_reduce(struct ghp_worker *w, int i)
{
    int bank = w->origin[i].bank;

    GHP_TRY(ghp_flight_start(w->flight, bank, i));
    GHP_TRY(reduce(w, i));
    if (instr_of(w, i)->kind == GHP_INSTR_METRIC_REDUCE)
        GHP_TRY(ghp_flight_metrics(w->flight, bank, GHP_QUEUE_COMM, w->address[w->metrics]));
    return ghp_flight_finish(w->flight, bank, i);
}

/* On the lane: on its thread, or at once where the carrier enqueues. */
static enum ghp_status reduce_job(void *context, int i)
{
    struct ghp_worker *w = context;
    double origin_s = w->origin[i].start_s;
    struct ghp_lap lap = {.step = w->origin[i].step, .start_s = ghp_stopwatch_now_s() - origin_s};

    if (w->flight != NULL) return enqueue_reduce(w, i);
    GHP_TRY(reduce(w, i));
    lap.finish_s = ghp_stopwatch_now_s() - origin_s;
    ghp_stopwatch_lap(w->watch, i, lap);
    return GHP_OK;
}

/* On the transfer thread. */
static void note_parcel(void *context, int parcel)
{
    struct ghp_worker *w = context;
    int i = w->parcel_instr[parcel];
    const struct origin *origin = &w->origin[i];

    ghp_stopwatch_lap(w->watch, i,
                      (struct ghp_lap){.step = origin->step,
                                       .start_s = origin->posted_s,
                                       .finish_s = ghp_stopwatch_now_s() - origin->start_s});
}

/* Samples where the input is owned, labels where the loss is. */
static enum ghp_status run_load(struct ghp_worker *w, const struct ghp_instr *instr)
{
    const struct ghp_step *step = &w->step;
    const int64_t *samples = step->samples + instr->micro * w->program.seat.micro_batch;
    struct ghp_load load = load_of(w);
    struct ghp_batch batch = {.set = step->set,
                              .samples = samples + load.first_image,
                              .n = load.images,
                              .first_channel = load.first_channel,
                              .channels = load.channels,
                              .element_bytes = load.element_bytes};

    if (w->flight != NULL)
        return ghp_flight_load(w->flight, w->address[instr->at.y], w->address[instr->at.labels]);
    if (instr->at.y >= 0) {
        batch.images = w->address[instr->at.y];
        GHP_TRY(ghp_data_images(step->data, &batch));
    }
    if (instr->at.labels < 0) return GHP_OK;
    return ghp_data_labels(step->data, step->set, samples + load.first_label, load.labels,
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

static void take_result(struct ghp_worker *w, uint64_t step, const double *m)
{
    w->result = (struct ghp_result){
        .step = step,
        .loss = m[GHP_METRIC_SAMPLES] > 0 ? m[GHP_METRIC_LOSS] / m[GHP_METRIC_SAMPLES] : 0,
        .correct = m[GHP_METRIC_CORRECT],
        .samples = m[GHP_METRIC_SAMPLES]};
    w->has_result = true;
}

/* Without a reduction of the metrics they are complete behind the loss. */
static enum ghp_status run_loss(struct ghp_worker *w, int i, const struct ghp_call *call)
{
    GHP_TRY(w->team.backend_ops->run(w->kernel[i], call));
    if (w->flight == NULL || instr_of(w, i)->wait >= 0) return GHP_OK;
    return ghp_flight_metrics(w->flight, ghp_flight_bank(w->flight), GHP_QUEUE_COMPUTE,
                              w->address[w->metrics]);
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
    if (w->flight != NULL) call.numbers = ghp_flight_numbers(w->flight);
    if (instr->at.metrics >= 0) return run_loss(w, i, &call);
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
                                    .transport_ops = w->team.carrier_ops,
                                    .comm = w->comm[i],
                                    .x = w->address[at->x[0]],
                                    .y = w->address[at->y],
                                    .device = w->arena.device};

    if (at->scratch >= 0) exchange.scratch = w->address[at->scratch];
    if (at->saved >= 0) {
        exchange.receive = w->address[at->saved];
        exchange.receive_bytes = w->program.buffers[at->saved].bytes;
    }
    if (w->comm[i] != NULL) w->team.carrier_ops->label(w->comm[i], w->label[i]);
    return ghp_exchange_run(&exchange);
}

/* An instruction's updates, by the rates of the step whose gradient it is; returns their number. */
static int list_updates(const struct ghp_worker *w, int i, const struct ghp_step *of,
                        struct ghp_update *updates)
{
    const struct ghp_instr *instr = instr_of(w, i);
    int n = 0;

    for (int p = 0; p < GHP_MAX_PARAMS; p++) {
        if (instr->at.w[p] < 0) continue;
        updates[n++] = (struct ghp_update){
            .w = w->address[instr->at.w[p]],
            .v = w->address[instr->at.momentum[p]],
            .dw = w->address[instr->at.dw[p]],
            .elements = w->program.buffers[instr->at.w[p]].elements,
            .learning_rate = of->learning_rate,
            .momentum = of->momentum,
            .weight_decay = of->weight_decay,
            .numbers = w->flight != NULL ? ghp_flight_numbers(w->flight) : NULL};
    }
    return n;
}

/* Where a launch costs more than an update: with this one, all later ones whose gradients are there too. The lane is
 * first in, first out, so a reduction that is done has all before it done. */
static enum ghp_status update_together(struct ghp_worker *w, int i, const struct ghp_step *of)
{
    int n = 0;

    if (w->updated[i]) return GHP_OK;
    for (int j = i; j < w->program.n_instrs; j++) {
        const struct ghp_instr *instr = instr_of(w, j);

        if (instr->kind != GHP_INSTR_UPDATE || w->updated[j] || instr->wait > instr_of(w, i)->wait)
            continue;
        w->updated[j] = true;
        n += list_updates(w, j, of, w->updates + n);
    }
    return w->team.backend_ops->update_all(w->team.backend, w->updates, n);
}

static enum ghp_status accumulate(struct ghp_worker *w, int sum, int more, int64_t elements)
{
    return w->team.backend_ops->accumulate(w->team.backend, w->address[sum], w->address[more],
                                           elements);
}

static enum ghp_status run_update(struct ghp_worker *w, int i, const struct ghp_step *of)
{
    const struct ghp_operands *at = &instr_of(w, i)->at;
    struct ghp_update updates[GHP_MAX_PARAMS];
    int n;

    if (w->team.backend_ops->update_all != NULL) return update_together(w, i, of);
    n = list_updates(w, i, of, updates);
    for (int p = 0; p < n; p++)
        GHP_TRY(w->team.backend_ops->update(w->team.backend, &updates[p]));
    for (int s = 0; s < GHP_MAX_STATES; s++)
        if (at->drift[s] >= 0)
            GHP_TRY(accumulate(w, at->state[s], at->drift[s],
                               w->program.buffers[at->state[s]].elements));
    return GHP_OK;
}

/* A further gradient of a tensor, or a further micro-batch's gradients of a layer's weights. */
static enum ghp_status run_accumulate(struct ghp_worker *w, const struct ghp_instr *instr)
{
    const struct ghp_operands *at = &instr->at;

    if (instr->edge >= 0)
        return accumulate(w, at->dy, at->x[0], ghp_local_in_elements(&instr->local));
    for (int p = 0; p < GHP_MAX_PARAMS; p++)
        if (at->dw[p] >= 0)
            GHP_TRY(accumulate(w, at->dw[p], at->x[p], w->program.buffers[at->dw[p]].elements));
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

/* Hands an instruction to the stream that runs it. */
static enum ghp_status post(struct ghp_worker *w, int i)
{
    double begin_s = ghp_stopwatch_start_s(w->watch);

    w->origin[i] = (struct origin){.step = ghp_stopwatch_step(w->watch),
                                   .start_s = begin_s,
                                   .posted_s = ghp_stopwatch_now_s() - begin_s,
                                   .bank = w->flight != NULL ? ghp_flight_bank(w->flight) : 0};
    if (w->parcel[i] < 0) return ghp_lane_post(w->lane, i);
    ghp_courier_post(w->courier, w->parcel[i]);
    return GHP_OK;
}

static enum ghp_status run_instr(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = instr_of(w, i);
    const struct ghp_operands *at = &instr->at;

    switch (instr->kind) {
    case GHP_INSTR_LOAD: return run_load(w, instr);
    case GHP_INSTR_COMPUTE: return run_compute(w, i);
    case GHP_INSTR_RESHARD: return run_reshard(w, i);
    case GHP_INSTR_ACCUMULATE: return run_accumulate(w, instr);
    case GHP_INSTR_STAT_REDUCE:
        if (w->comm[i] == NULL || w->work.fault == GHP_FAULT_LOCAL_STATISTICS) return GHP_OK;
        return sum_in_place(w, i, at->stats, instr->bytes);
    case GHP_INSTR_UPDATE: return run_update(w, i, previous);
    case GHP_INSTR_METRIC_REDUCE: keep_metrics(w); /* fall through */
    case GHP_INSTR_ALL_REDUCE:
    case GHP_INSTR_SEND:
    case GHP_INSTR_RECEIVE: return post(w, i);
    case GHP_INSTR_WAIT: return ghp_courier_wait(w->courier, w->parcel[instr->after]);
    case GHP_INSTR_COUNT: break;
    }
    return GHP_FAIL(GHP_ERR_INTERNAL, "instruction %d has no meaning; report this", i);
}

/* ---- steps ---- */

/* The compute stream goes on when the reduction that the instruction waits for is done. A tape begins with all of them
 * done. */
static enum ghp_status wait_for(struct ghp_worker *w, int i)
{
    bool joined = w->flight != NULL && ghp_flight_recording(w->flight);

    return i < 0 || w->lane == NULL || joined ? GHP_OK : ghp_lane_follow(w->lane, i);
}

/* The last step's metrics are complete: keeps them, and clears the sums for the next. */
static enum ghp_status turn_metrics(struct ghp_worker *w, const struct ghp_step *previous)
{
    if (w->flight == NULL && w->result_pending) {
        take_result(w, previous->index, w->address[w->metrics]);
        w->result_pending = false;
    }
    return ghp_device_clear(w->arena.device, GHP_QUEUE_COMPUTE, w->address[w->metrics],
                            GHP_METRIC_COUNT * sizeof(double));
}

struct moment { /* of an instruction, by the host's clock */
    double before_s, start_s;
};

/* Waits for what the instruction waits for. */
static enum ghp_status enter(struct ghp_worker *w, int i, struct moment *moment)
{
    const struct ghp_instr *instr = instr_of(w, i);

    moment->before_s = ghp_stopwatch_now_s();
    ghp_arena_visit(&w->arena, &w->program, instr->point);
    GHP_TRY(wait_for(w, instr->wait));
    moment->start_s = ghp_stopwatch_now_s();
    if (w->flight == NULL || instr->stream != GHP_STREAM_COMPUTE) return GHP_OK;
    return ghp_flight_start(w->flight, ghp_flight_bank(w->flight), i);
}

static enum ghp_status leave(struct ghp_worker *w, int i, struct moment moment)
{
    double begin = ghp_stopwatch_start_s(w->watch);
    struct ghp_lap lap = {.step = ghp_stopwatch_step(w->watch),
                          .start_s = moment.start_s - begin,
                          .finish_s = ghp_stopwatch_now_s() - begin,
                          .wait_s = moment.start_s - moment.before_s};

    if (instr_of(w, i)->stream != GHP_STREAM_COMPUTE) return GHP_OK; /* its job says when */
    if (w->flight != NULL) return ghp_flight_finish(w->flight, ghp_flight_bank(w->flight), i);
    ghp_stopwatch_lap(w->watch, i, lap);
    return GHP_OK;
}

static enum ghp_status run_step(struct ghp_worker *w, const struct ghp_step *previous)
{
    memset(w->updated, 0, (size_t)w->program.n_instrs * sizeof(*w->updated));
    for (int i = 0; i < w->program.n_instrs; i++) {
        const struct ghp_instr *instr = instr_of(w, i);
        struct moment moment;

        if (instr->kind == GHP_INSTR_UPDATE && !w->updates_pending) continue;
        GHP_TRY(enter(w, i, &moment));
        if (i == w->turning) GHP_TRY(turn_metrics(w, previous));
        GHP_TRY(run_instr(w, i, previous));
        GHP_TRY(leave(w, i, moment));
    }
    return GHP_OK;
}

/* On a device. */
struct enqueuing {
    struct ghp_worker *worker;
    const struct ghp_step *previous;
};

static enum ghp_status enqueue_step(void *context)
{
    const struct enqueuing *e = context;
    struct ghp_worker *w = e->worker;
    int bank = ghp_flight_bank(w->flight);

    GHP_TRY(ghp_flight_start(w->flight, bank, GHP_WHOLE_STEP));
    GHP_TRY(run_step(w, e->previous));
    if (w->lane != NULL && ghp_flight_records(w->flight)) GHP_TRY(ghp_lane_join(w->lane));
    return ghp_flight_finish(w->flight, bank, GHP_WHOLE_STEP);
}

static struct ghp_supply supply_of(const struct ghp_worker *w, const struct ghp_step *step)
{
    return (struct ghp_supply){.data = step->data,
                               .set = step->set,
                               .samples = step->samples,
                               .n = w->work.extent.global_batch,
                               .step = step->index};
}

static struct ghp_step_numbers numbers_of(uint64_t index, const struct ghp_step *rates)
{
    return (struct ghp_step_numbers){.step = index,
                                     .learning_rate = rates->learning_rate,
                                     .momentum = rates->momentum,
                                     .weight_decay = rates->weight_decay};
}

static enum ghp_status collect(struct ghp_worker *w, bool all)
{
    struct ghp_landed landed;

    GHP_TRY(ghp_flight_collect(w->flight, all, w->watch, &landed));
    for (int i = 0; i < landed.n; i++)
        take_result(w, landed.step[i], landed.metrics[i]);
    return GHP_OK;
}

static enum ghp_status fly(struct ghp_worker *w, const struct ghp_step *previous)
{
    struct ghp_supply supply = supply_of(w, &w->step);
    struct ghp_step_numbers numbers = numbers_of(w->step.index, previous);
    struct enqueuing enqueuing = {w, previous};

    GHP_TRY(ghp_flight_begin(w->flight, &supply, &numbers));
    GHP_TRY(ghp_flight_run(w->flight, w->updates_pending, enqueue_step, &enqueuing));
    return collect(w, false);
}

enum ghp_status ghp_worker_step(struct ghp_worker *w, const struct ghp_step *step)
{
    struct ghp_step previous = w->step;

    w->step = *step;
    if (w->flight != NULL) {
        GHP_TRY(fly(w, &previous));
    } else {
        ghp_stopwatch_begin(w->watch);
        GHP_TRY(run_step(w, &previous));
        ghp_stopwatch_end(w->watch);
        w->result_pending = true;
    }
    w->updates_pending = w->work.lender == NULL;
    return GHP_OK;
}

bool ghp_worker_takes_hints(const struct ghp_worker *w)
{
    return w->flight != NULL;
}

void ghp_worker_hint(struct ghp_worker *w, const struct ghp_step *next)
{
    struct ghp_supply supply = supply_of(w, next);

    if (w->flight != NULL) ghp_flight_hint(w->flight, &supply);
}

enum ghp_status ghp_worker_settle(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        if (instr_of(w, i)->stream == GHP_STREAM_COMM) GHP_TRY(wait_for(w, i));
    ghp_arena_visit(&w->arena, &w->program, -1);
    if (w->flight != NULL) {
        GHP_TRY(collect(w, true));
        return ghp_device_finish(w->arena.device, GHP_QUEUE_COMPUTE);
    }
    if (w->result_pending) take_result(w, w->step.index, w->address[w->metrics]);
    w->result_pending = false;
    return GHP_OK;
}

enum ghp_status ghp_worker_flush(struct ghp_worker *w)
{
    struct ghp_step_numbers numbers = numbers_of(w->step.index, &w->step);

    GHP_TRY(ghp_worker_settle(w));
    if (!w->updates_pending) return GHP_OK;
    if (w->flight != NULL) GHP_TRY(ghp_flight_set(w->flight, &numbers));
    memset(w->updated, 0, (size_t)w->program.n_instrs * sizeof(*w->updated));
    for (int i = 0; i < w->program.n_instrs; i++)
        if (instr_of(w, i)->kind == GHP_INSTR_UPDATE) GHP_TRY(run_update(w, i, &w->step));
    w->updates_pending = false;
    return ghp_device_finish(w->arena.device, GHP_QUEUE_COMPUTE);
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
