/* executor/engine/worker.c - see worker.h: opening, closing, and what others may see. worker_step.c runs steps, worker_instr.c
 * their instructions, engine/worker_concurrent.c those of the other streams, worker_update.c updates. */
#include "executor/engine/worker_private.h"

#include "executor/engine/memory_format.h"
#include "executor/engine/fuse.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- opening ---- */

static enum ghp_status lower(struct ghp_worker *w)
{
    struct ghp_lowering how = {.model = w->work.model,
                               .extent = w->work.extent,
                               .element_bytes = w->work.element_bytes,
                               .bucket_bytes = w->work.bucket_bytes,
                               .staging = w->work.staging,
                               .blocked = w->work.blocked,
                               .scratch = ghp_kernels_scratch(&w->kernels),
                               .forward_only = w->work.lender != NULL,
                               .samples_ahead =
                                   w->work.samples_ahead && ghp_team_device(&w->team).ops == NULL};

    GHP_TRY(ghp_lower(&how, w->work.splits, w->work.rank, &w->program));
    return ghp_program_check(&w->program);
}

static enum ghp_status make_tables(struct ghp_worker *w)
{
    size_t n = (size_t)w->program.n_instrs;

    w->kernel = ghp_alloc(n, sizeof(*w->kernel));
    w->order = ghp_alloc(n, sizeof(*w->order));
    w->absorbed = ghp_alloc(n, sizeof(*w->absorbed));
    w->bias = ghp_alloc(n, sizeof(*w->bias));
    w->gate = ghp_alloc(n, sizeof(*w->gate));
    w->add = ghp_alloc(n, sizeof(*w->add));
    if (w->order == NULL || w->absorbed == NULL || w->bias == NULL || w->gate == NULL ||
        w->add == NULL)
        return GHP_NO_MEMORY();
    for (int i = 0; i < w->program.n_instrs; i++) {
        w->order[i] = i;
        w->bias[i] = -1;
        w->add[i] = -1;
    }
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
    const struct ghp_formats_said said = {w->work.model, w->work.blocked};

    GHP_TRY(ghp_formats_choose(&w->program, &w->kernels, said.blocked != NULL ? &said : NULL,
                               w->blocked));
    return ghp_stopwatch_open(w->program.n_instrs, &w->watch);
}

static int64_t scratch_of(const struct ghp_worker *w, int i)
{
    int scratch = ghp_worker_instr(w, i)->at.scratch;

    return scratch < 0 ? 0 : w->program.buffers[scratch].bytes;
}

static bool stands(const struct ghp_worker *w, int i)
{
    return w->order[i] == i && ghp_worker_instr(w, i)->stream == GHP_STREAM_COMPUTE;
}

/* Two instructions run in each other's place. What other streams do keeps its own: reductions are posted in the order of
 * the list, which updates rely on (worker_update.c). */
static void swap(struct ghp_worker *w, int i, int other)
{
    GHP_ASSERT(stands(w, i));
    GHP_ASSERT(stands(w, other));
    w->order[i] = other;
    w->order[other] = i;
}

/* Instruction i takes its epilogue along, whose own instructions have nothing left to do; a bias is updated before, and a sum
 * is made where its other half is there. */
static void absorb(struct ghp_worker *w, int i, struct ghp_epilogue epilogue)
{
    const int taken[] = {epilogue.bias, epilogue.relu, epilogue.stats, epilogue.add};

    for (size_t t = 0; t < sizeof taken / sizeof taken[0]; t++)
        if (taken[t] >= 0) w->absorbed[taken[t]] = true;
    if (epilogue.bias >= 0) w->bias[i] = ghp_worker_instr(w, epilogue.bias)->at.w[0];
    if (epilogue.update >= 0) swap(w, i, epilogue.update);
    w->add[i] = epilogue.add;
    if (epilogue.add >= 0) swap(w, i, epilogue.add);
}

/* A kernel with what goes along; NULL where the backend has none that the instruction's scratch holds. */
static enum ghp_status find_fused(struct ghp_worker *w, int i, struct ghp_formats formats,
                                  struct ghp_kernel **fused)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    GHP_TRY(ghp_kernels_find(&w->kernels, &instr->local, instr->pass, formats, fused));
    if (*fused != NULL && w->team.backend_ops->scratch_bytes(*fused) > scratch_of(w, i))
        *fused = NULL;
    return GHP_OK;
}

/* Takes what follows the instruction along. */
static enum ghp_status fuse_instr(struct ghp_worker *w, int i)
{
    const struct ghp_backend_ops *ops = w->team.backend_ops;
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_epilogue epilogue = ghp_fuse_find(&w->program, w->work.model, i);
    struct ghp_formats formats =
        ghp_fuse_formats(ghp_formats_of(&w->program, instr, &w->kernels, w->blocked), epilogue);
    struct ghp_kernel *fused = NULL;

    if (!ghp_formats_fused(formats) ||
        !ghp_formats_fuses(ops, w->team.backend, instr->local.op, instr->pass))
        return GHP_OK;
    GHP_TRY(find_fused(w, i, formats, &fused));
    if (fused == NULL) return GHP_OK;
    w->kernel[i] = fused;
    absorb(w, i, epilogue);
    return GHP_OK;
}

/* The backward passes of a batch norm, with that of the ReLU behind it; instruction i is the last of them. */
static enum ghp_status fuse_back(struct ghp_worker *w, int i)
{
    const struct ghp_prologue prologue = ghp_fuse_find_back(&w->program, w->work.model, i);
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    bool relu = prologue.relu >= 0 && !w->absorbed[prologue.relu]; /* else a sum has it */
    struct ghp_kernel *stats = NULL, *data = NULL;
    struct ghp_formats formats;

    if (!(relu || prologue.own) ||
        !ghp_formats_fuses(w->team.backend_ops, w->team.backend, instr->local.op, instr->pass))
        return GHP_OK;
    formats = ghp_formats_of(&w->program, instr, &w->kernels, w->blocked);
    formats.relu = relu;
    formats.stats = prologue.own;
    GHP_TRY(find_fused(w, i, formats, &data));
    if (!prologue.own) GHP_TRY(find_fused(w, prologue.stats, formats, &stats));
    if (data == NULL || (stats == NULL && !prologue.own)) return GHP_OK;
    w->kernel[i] = data;
    if (relu) w->absorbed[prologue.relu] = true;
    if (!prologue.own) {
        w->kernel[prologue.stats] = stats;
        return GHP_OK;
    }
    w->absorbed[prologue.stats] = true;
    swap(w, i, prologue.stats);
    return GHP_OK;
}

/* The ReLU before a max pool; instruction i is the pool's backward pass. */
static enum ghp_status fuse_gate(struct ghp_worker *w, int i)
{
    const struct ghp_gate gate = ghp_fuse_find_gate(&w->program, w->work.model, i);
    const struct ghp_instr *forward = ghp_worker_instr(w, gate.forward < 0 ? 0 : gate.forward);
    struct ghp_kernel *fused = NULL;
    struct ghp_formats formats;

    if (gate.relu < 0 ||
        !ghp_formats_fuses(w->team.backend_ops, w->team.backend, forward->local.op, forward->pass))
        return GHP_OK;
    formats = ghp_formats_of(&w->program, forward, &w->kernels, w->blocked);
    formats.relu = true;
    GHP_TRY(find_fused(w, gate.forward, formats, &fused));
    if (fused == NULL) return GHP_OK;
    w->kernel[gate.forward] = fused;
    w->absorbed[gate.relu] = true;
    return GHP_OK;
}

/* The ReLU whose gradient a sum completes. */
static void fuse_sum(struct ghp_worker *w, int i)
{
    int relu = ghp_fuse_find_sum(&w->program, i);

    w->gate[i] = -1;
    if (relu < 0 || !ghp_formats_fuses(w->team.backend_ops, w->team.backend, GHP_OP_RELU,
                                       GHP_PASS_BACKWARD_DATA))
        return;
    w->gate[i] = ghp_worker_instr(w, relu)->at.y;
    w->absorbed[relu] = true;
}

static enum ghp_status prepare_instr(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const char *layer = instr->layer >= 0 ? w->work.model->layers[instr->layer].name : "metrics";

    snprintf(w->label[i], GHP_WORKER_LABEL_BYTES, "%s of %s%s", ghp_instr_name(instr), layer,
             instr->backward ? ", backward" : "");
    if (instr->kind == GHP_INSTR_COMPUTE) {
        GHP_TRY(ghp_kernels_find(&w->kernels, &instr->local, instr->pass,
                                 ghp_formats_of(&w->program, instr, &w->kernels, w->blocked),
                                 &w->kernel[i]));
        GHP_ASSERT(w->team.backend_ops->scratch_bytes(w->kernel[i]) <= scratch_of(w, i));
        GHP_TRY(fuse_instr(w, i));
        GHP_TRY(fuse_back(w, i));
        GHP_TRY(fuse_gate(w, i));
    }
    fuse_sum(w, i);
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
        int wait = ghp_worker_instr(w, i)->wait;

        if (wait >= 0 && ghp_worker_instr(w, wait)->kind == GHP_INSTR_METRIC_REDUCE) w->turning = i;
    }
    for (int i = 0; i < w->program.n_instrs && w->turning < 0; i++)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_COMPUTE &&
            ghp_worker_instr(w, i)->at.metrics >= 0)
            w->turning = i;
}

/* One communicator for each distinct (ranks, stream); every worker of a stage meets them in the same order. */
enum ghp_status ghp_worker_connect(struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, i);

        if (!ghp_instr_sends(instr)) continue;
        GHP_TRY(
            w->team.carrier_ops->group(w->team.carrier, instr->ranks, instr->stream, &w->comm[i]));
    }
    return w->program.seat.n_stages > 1 ? ghp_worker_open_mailbox(w) : GHP_OK;
}

static void choose_dropped(struct ghp_worker *w)
{
    w->dropped = -1;
    if (w->work.fault != GHP_FAULT_DROP_REDUCTION) return;
    for (int i = w->program.n_instrs - 1; i >= 0; i--)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_ALL_REDUCE) w->dropped = i;
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

static const char *label_of(void *context, int i)
{
    const struct ghp_worker *w = context;

    return w->label[i];
}

/* What of a micro-batch this worker loads. */
struct ghp_load ghp_worker_load(const struct ghp_worker *w)
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

/* Transfers and further micro-batches work in host memory. */
static enum ghp_status check_flight(const struct ghp_worker *w)
{
    if (w->work.staging == NULL) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "backend '%s' runs plans of one stage and one micro-batch; plan with --roles "
                    "shared, or run on processors",
                    w->team.backend_ops->name);
}

static enum ghp_status open_flight(struct ghp_worker *w, bool communicates)
{
    struct ghp_worker *lender = w->work.lender;
    struct ghp_flight_plan plan = {.team = &w->team,
                                   .program = &w->program,
                                   .load = ghp_worker_load(w),
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

/* The thread that makes samples, where the program has room for them. */
static enum ghp_status open_ahead(struct ghp_worker *w)
{
    struct ghp_load load = ghp_worker_load(w);
    int place = -1;

    for (int i = 0; i < w->program.n_buffers; i++)
        if (w->program.buffers[i].role == GHP_ROLE_AHEAD) place = i;
    if (place < 0) return GHP_OK;
    w->next.samples = ghp_alloc((size_t)w->program.seat.micro_batch, sizeof(*w->next.samples));
    return w->next.samples != NULL ? ghp_ahead_open(&load, w->address[place], &w->ahead)
                                   : GHP_NO_MEMORY();
}

enum ghp_status ghp_worker_allocate(struct ghp_worker *w)
{
    struct ghp_lane_work lane = {.jobs = w->program.n_instrs + 1,
                                 .run = ghp_worker_reduce,
                                 .context = w,
                                 .late = w->work.reduces_late};
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
        communicates = communicates || ghp_worker_instr(w, i)->stream == GHP_STREAM_COMM;
    if (w->arena.device.ops != NULL) {
        GHP_TRY(check_flight(w));
        GHP_TRY(open_flight(w, communicates));
    }
    GHP_TRY(open_ahead(w));
    if (communicates) GHP_TRY(ghp_lane_open(&w->team, &lane, &w->lane));
    return ghp_worker_open_courier(w);
}

void ghp_worker_close(struct ghp_worker *w)
{
    if (w == NULL) return;
    ghp_courier_close(w->courier);
    ghp_lane_close(w->lane);
    ghp_flight_close(w->flight);
    ghp_ahead_close(w->ahead);
    for (int p = 0; p < w->n_parcels; p++)
        ghp_parcel_close(&w->parcels[p]);
    if (w->mailbox != NULL) w->team.transport_ops->empty(w->mailbox);
    ghp_arena_close(&w->arena);
    ghp_stopwatch_close(w->watch);
    free((int64_t *)(uintptr_t)w->next.samples);
    free(w->parcels);
    free(w->parcel_instr);
    free(w->parcel);
    free(w->address);
    free(w->blocked);
    free(w->order);
    free(w->absorbed);
    free(w->bias);
    free(w->gate);
    free(w->add);
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

struct ghp_ahead_count ghp_worker_made_ahead(const struct ghp_worker *w)
{
    return ghp_ahead_counted(w->ahead);
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

bool ghp_worker_blocks_weights(const struct ghp_worker *w, int layer)
{
    struct ghp_local local =
        ghp_local_of(w->work.model, layer, w->work.splits[layer], w->program.seat.extent);

    return ghp_formats_weights(w->team.backend_ops, w->team.backend, &local);
}

void ghp_worker_rest(struct ghp_worker *w)
{
    ghp_arena_rest(&w->arena, &w->program);
}
