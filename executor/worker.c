/* executor/worker.c - see worker.h. The order of everything here is the program's; this file adds only the three rules
 * of core/program.h: reductions run on the other stream, updates wait for the previous step's, a flush runs them alone. */
#include "executor/worker.h"

#include "executor/call.h"
#include "executor/exchange.h"
#include "executor/formats.h"
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
    bool *blocked;              /* each buffer's format */
    int64_t *ticket; /* of each instruction of the communication stream: its latest run */
    int metrics;     /* buffer */
    int dropped;     /* instruction that GHP_FAULT_DROP_REDUCTION leaves out, else -1 */
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
    w->blocked = ghp_alloc((size_t)w->program.n_buffers, sizeof(*w->blocked));
    if (w->kernel == NULL || w->comm == NULL || w->label == NULL || w->ticket == NULL ||
        w->origin == NULL || w->address == NULL || w->blocked == NULL)
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
    return GHP_OK;
}

/* One communicator for each distinct (ranks, stream); every worker meets them in the same order. */
enum ghp_status ghp_worker_connect(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++) {
        const struct ghp_instr *instr = instr_of(w, i);

        if (!sends(instr)) continue;
        GHP_TRY(w->team.transport_ops->group(w->team.transport, instr->ranks, instr->stream,
                                             &w->comm[i]));
    }
    return GHP_OK;
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
    GHP_ASSERT(w->metrics >= 0);
    *worker = w;
    return GHP_OK;
fail:
    ghp_worker_close(w);
    return status;
}

static enum ghp_status reduce_job(void *context, int i);

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
    return communicates ? ghp_stream_open(w->program.n_instrs + 1, reduce_job, w, &w->stream)
                        : GHP_OK;
}

void ghp_worker_close(struct ghp_worker *w)
{
    if (w == NULL) return;
    ghp_stream_close(w->stream);
    ghp_arena_close(&w->arena);
    ghp_stopwatch_close(w->watch);
    free(w->address);
    free(w->blocked);
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

static enum ghp_status run_load(struct ghp_worker *w, const struct ghp_instr *instr)
{
    const struct ghp_work *work = &w->work;
    const struct ghp_step *step = &w->step;
    int loss = work->model->n_layers - 1;
    struct ghp_window_at x = ghp_window_of(ghp_split_layouts(work->splits[0]).y,
                                           work->model->layers[0].out.c, work->extent, work->rank);
    struct ghp_window_at l =
        ghp_window_of(ghp_split_layouts(work->splits[loss]).x, work->model->layers[loss].in.c,
                      work->extent, work->rank);
    struct ghp_batch batch = {.set = step->set,
                              .samples = step->samples + x.first_sample,
                              .n = x.samples,
                              .first_channel = x.first_channel,
                              .channels = x.channels,
                              .element_bytes = work->element_bytes,
                              .images = w->address[instr->at.y]};

    GHP_TRY(ghp_data_images(step->data, &batch));
    return ghp_data_labels(step->data, step->set, step->samples + l.first_sample, l.samples,
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

static enum ghp_status run_compute(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = instr_of(w, i);
    struct ghp_call call = ghp_call_of(&w->work, instr, &w->step);

    call.at = ghp_call_tensors(instr, w->address);
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
                                    .extent = w->work.extent,
                                    .rank = w->work.rank,
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
}

static enum ghp_status run_instr(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = instr_of(w, i);
    const struct ghp_operands *at = &instr->at;

    switch (instr->kind) {
    case GHP_INSTR_LOAD: return run_load(w, instr);
    case GHP_INSTR_COMPUTE: return run_compute(w, i);
    case GHP_INSTR_RESHARD: return run_reshard(w, i);
    case GHP_INSTR_ACCUMULATE:
        w->team.backend_ops->accumulate(w->team.backend, w->address[at->dy], w->address[at->x[0]],
                                        ghp_local_in_elements(&instr->local));
        return GHP_OK;
    case GHP_INSTR_STAT_REDUCE:
        if (w->comm[i] == NULL || w->work.fault == GHP_FAULT_LOCAL_STATISTICS) return GHP_OK;
        return sum_in_place(w, i, at->stats, instr->bytes);
    case GHP_INSTR_UPDATE: run_update(w, instr, previous); return GHP_OK;
    case GHP_INSTR_ALL_REDUCE:
    case GHP_INSTR_METRIC_REDUCE:
        w->origin[i] = (struct ghp_lap){.step = ghp_stopwatch_step(w->watch),
                                        .start_s = ghp_stopwatch_start_s(w->watch)};
        w->ticket[i] = ghp_stream_post(w->stream, i);
        return GHP_OK;
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
        if (instr->kind == GHP_INSTR_COMPUTE && instr->at.metrics >= 0) turn_metrics(w, previous);
        GHP_TRY(run_instr(w, i, previous));
        if (instr->stream == GHP_STREAM_COMM) continue;
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
