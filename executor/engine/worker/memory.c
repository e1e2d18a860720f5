/* executor/engine/worker/memory.c - what a worker allocates: its arena, the steps that it has under way with their
 * samples, and its other streams. */
#include "core/base/hash.h"
#include "executor/engine/worker_private.h"

/* The layouts of a layer's tensors. If this worker does not run the layer, they are those of one worker. */
static struct ghp_layouts layouts_of(const struct ghp_program *program, int layer)
{
    const struct ghp_layout whole = {GHP_LAYOUT_BATCH, 1};

    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].layer == layer && (program->instrs[i].kind == GHP_INSTR_COMPUTE ||
                                                  program->instrs[i].kind == GHP_INSTR_LOAD))
            return program->instrs[i].layouts;
    return (struct ghp_layouts){whole, whole, whole, whole};
}

/* What of a micro-batch this worker loads; of a stage without the input or without the loss: none. */
static struct ghp_load load_of(const struct ghp_worker *w)
{
    const struct ghp_program *program = &w->program;
    const struct ghp_layer *input = &program->model->layers[0];
    int loss = program->model->n_layers - 1;
    struct ghp_layout samples = layouts_of(program, 0).y, logits = layouts_of(program, loss).x;
    const struct ghp_placement *placement = &w->program.placement;
    struct ghp_region x = ghp_placement_region(placement, samples, input->out);
    const struct ghp_shape out = program->model->layers[loss].in;
    struct ghp_region l = ghp_placement_region(placement, logits, out);
    int64_t sample_labels = ghp_model_labels(program->model);

    return (struct ghp_load){.first_image = x.first_sample,
                             .images = ghp_worker_owns(w, 0) ? x.samples : 0,
                             .first_channel = x.first_channel,
                             .channels = x.channels,
                             .image_bytes =
                                 x.channels * input->out.h * input->out.w *
                                 ghp_shape_element_bytes(input->out, program->element_bytes),
                             .first_label = l.first_sample,
                             .labels = ghp_worker_owns(w, loss) ? l.samples : 0,
                             .sample_labels = sample_labels,
                             .first_position = l.first_position * (sample_labels / out.h),
                             .positions = ghp_layout_positions(logits, sample_labels),
                             .element_bytes = program->element_bytes,
                             .threads = w->run.threads > 0 ? w->run.threads : 1,
                             .blends = w->run.blends && w->run.weight_owner == NULL};
}

static enum ghp_status open_arena(struct ghp_worker *w)
{
    struct ghp_worker *weight_owner = w->run.weight_owner;
    struct ghp_collectives *collectives = w->exec.collectives;

    if (weight_owner == NULL && collectives->ops->allocate_memory != NULL)
        GHP_TRY(
            collectives->ops->allocate_memory(collectives, w->program.peak_bytes, &w->comm_memory));
    GHP_TRY(ghp_arena_open(ghp_exec_context_device(&w->exec), &w->program,
                           weight_owner != NULL ? &weight_owner->arena : NULL, w->comm_memory,
                           &w->arena));
    for (int i = 0; i < w->program.n_buffers; i++) {
        const struct ghp_buffer *b = &w->program.buffers[i];
        bool borrowed = weight_owner != NULL && ghp_arena_borrows(b);

        w->address[i] =
            borrowed ? ghp_worker_tensor(weight_owner, b->buffer_kind, b->layer, b->slot, NULL)
                     : ghp_arena_at(&w->arena, &w->program, i);
    }
    return GHP_OK;
}

static bool communicates(const struct ghp_worker *w)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        if (ghp_run_kinds[ghp_worker_instr(w, i)->kind]->concurrent != NULL) return true;
    return false;
}

/* Whether all that a step exchanges is only enqueued: else none of its work can be recorded. */
static bool enqueues(const struct ghp_worker *w)
{
    bool carries = communicates(w);

    if (w->n_messages > 0 && w->lanes == NULL) return false;

    for (int i = 0; i < w->program.n_instrs; i++)
        carries = carries || w->prepared[i].comm != NULL;
    return !carries || w->exec.collectives->ops->enqueues;
}

static const char *label_of(void *context, int i)
{
    const struct ghp_worker *w = context;

    return w->prepared[i].label;
}

static enum ghp_status open_in_flight(struct ghp_worker *w)
{
    /* as all workers of the plan say */
    bool records = w->run.weight_owner == NULL && w->program.is_recordable &&
                   w->run.fault == GHP_FAULT_NONE && !w->run.no_graph;
    struct ghp_in_flight_plan plan = {
        .exec = &w->exec,
        .program = &w->program,
        .loader = {.load = load_of(w),
                   .micro_batches = w->program.micro_batches,
                   .micro_batch = w->program.placement.micro_batch},
        .weight_owner = w->run.weight_owner != NULL ? w->run.weight_owner->in_flight : NULL,
        .captures = records && enqueues(w),
        .agreeing = records ? w->program.problem.workers : 1,
        .label = label_of,
        .context = w};

    for (int i = 0; i < w->program.n_buffers; i++)
        if (w->program.buffers[i].buffer_kind == GHP_BUFFER_PREFETCH)
            plan.loader.place = w->address[i];
    return ghp_in_flight_open(&plan, &w->in_flight);
}

static enum ghp_status place_class_weights(struct ghp_worker *w)
{
    int64_t bytes = w->program.model->classes * (int64_t)sizeof(double);
    void *copy = NULL;

    if (w->run.class_weights == NULL || w->run.weight_owner != NULL) return GHP_OK;
    GHP_TRY(ghp_device_allocate(w->arena.device, bytes, &copy));
    w->class_weights = copy;
    return ghp_device_write(w->arena.device, copy, w->run.class_weights, bytes);
}

enum ghp_status ghp_worker_allocate(struct ghp_worker *w)
{
    struct ghp_comm_stream_work comm_stream = {.jobs = w->program.n_instrs + 1,
                                               .run = ghp_worker_reduce,
                                               .context = w,
                                               .late = w->run.reduces_late};

    GHP_TRY(open_arena(w));
    GHP_TRY(place_class_weights(w));
    GHP_TRY(open_in_flight(w));
    if (w->mixer != NULL) GHP_TRY(w->run.mixing->begin(w->mixer, w->address));
    if (communicates(w)) GHP_TRY(ghp_comm_stream_open(&w->exec, &comm_stream, &w->comm_stream));
    return ghp_worker_open_p2p_thread(w);
}

/* The places of the program's tensors in the arena. */
static uint64_t layout_of(const struct ghp_program *program)
{
    uint64_t hash = GHP_HASH_SEED;

    for (int i = 0; i < program->n_buffers; i++) {
        int64_t offset = ghp_buffer_offset(program, i);

        hash = ghp_hash(&offset, sizeof offset, hash);
    }
    return hash;
}

enum ghp_status ghp_worker_register_memory(struct ghp_worker *w)
{
    const struct ghp_comm_memory memory = {w->comm_memory, w->program.peak_bytes,
                                           layout_of(&w->program)};

    for (int i = 0; i < w->program.n_instrs; i++) {
        struct ghp_comm *comm = w->prepared[i].comm;
        bool known = comm == NULL || comm->ops->register_memory == NULL;

        for (int k = 0; k < i && !known; k++)
            known = w->prepared[k].comm == comm;
        if (!known) GHP_TRY(comm->ops->register_memory(comm, &memory));
    }
    return GHP_OK;
}

void ghp_worker_rest(struct ghp_worker *w)
{
    ghp_arena_rest(&w->arena, &w->program);
}
