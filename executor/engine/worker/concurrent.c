/* executor/engine/worker/concurrent.c - what runs at the same time as the compute stream: reductions on the
 * communication stream, messages on lanes or with the point-to-point thread. */
#include "executor/engine/worker_private.h"

enum ghp_status ghp_worker_sum(struct ghp_worker *w, int i, int data, int64_t bytes)
{
    return ghp_worker_sum_at(w, i, w->address[data], bytes);
}

enum ghp_status ghp_worker_sum_at(struct ghp_worker *w, int i, void *data, int64_t bytes)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_prepared_instr *p = &w->prepared[i];
    int element_bytes = ghp_kind_of(instr)->is_double
                            ? (int)sizeof(double)
                            : ghp_parameter_bytes(w->program.element_bytes);
    struct ghp_reduction sum = {.in = data,
                                .out = data,
                                .elements = bytes / element_bytes,
                                .element_bytes = element_bytes,
                                .scratch = w->address[instr->at.scratch],
                                .scratch_bytes = w->program.buffers[instr->at.scratch].bytes};

    p->comm->label = p->label;
    return p->comm->ops->all_reduce(p->comm, &sum);
}

/* Into this worker's optimizer shard, in place. */
static enum ghp_status reduce_scatter(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_prepared_instr *p = &w->prepared[i];
    struct ghp_reduction sum = {.in = w->address[instr->at.x[0]],
                                .out = w->address[instr->at.y],
                                .elements = w->program.buffers[instr->at.y].elements,
                                .element_bytes = ghp_parameter_bytes(w->program.element_bytes),
                                .scratch = w->address[instr->at.scratch],
                                .scratch_bytes = w->program.buffers[instr->at.scratch].bytes};

    if (i == w->dropped) return GHP_OK;
    p->comm->label = p->label;
    return p->comm->ops->reduce_scatter(p->comm, &sum);
}

const struct ghp_run_kind ghp_run_kind_reduce_scatter = {ghp_worker_post, reduce_scatter,
                                                         GHP_FAILPOINT_REDUCE_SCATTER};

/* The same in half of the bytes, by way of scratch, after what the sum receives into. */
static enum ghp_status sum_in_bf16(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_prepared_instr *p = &w->prepared[i];
    const struct ghp_pack numbers = {.rows = instr->bytes / 2};
    int64_t segment = ghp_receive_bytes(instr->bytes, instr->ranks.count);
    char *scratch = w->address[instr->at.scratch], *travels = scratch + segment;
    void *gradients = w->address[instr->at.y];
    struct ghp_reduction sum = {.in = travels,
                                .out = travels,
                                .elements = numbers.rows,
                                .element_bytes = 2,
                                .scratch = scratch,
                                .scratch_bytes = segment};
    const struct ghp_move rounds = {GHP_MOVE_TO_BF16, numbers, gradients, travels, 0},
                          widens = {GHP_MOVE_FROM_BF16, numbers, travels, gradients, 0};

    p->comm->label = p->label;
    GHP_TRY(ghp_device_move(w->arena.device, GHP_DEVICE_STREAM_COMM, &rounds));
    GHP_TRY(p->comm->ops->all_reduce(p->comm, &sum));
    return ghp_device_move(w->arena.device, GHP_DEVICE_STREAM_COMM, &widens);
}

static enum ghp_status all_reduce(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    if (!ghp_instr_sends(instr) || i == w->dropped) return GHP_OK;
    return instr->in_bf16 ? sum_in_bf16(w, i) : ghp_worker_sum(w, i, instr->at.y, instr->bytes);
}

const struct ghp_run_kind ghp_run_kind_all_reduce = {ghp_worker_post, all_reduce,
                                                     GHP_FAILPOINT_ALL_REDUCE};

const struct ghp_run_kind ghp_run_kind_shard_reduce = {ghp_worker_post, all_reduce,
                                                       GHP_FAILPOINT_ALL_REDUCE};

enum ghp_status ghp_worker_post(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    (void)previous;
    w->prepared[i].half = ghp_in_flight_half(w->in_flight);
    GHP_TRY(ghp_comm_stream_post(w->comm_stream, i));
    return ghp_in_flight_posted(w->in_flight, i);
}

static enum ghp_status post_message(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    struct ghp_prepared_instr *p = &w->prepared[i];

    (void)previous;
    p->half = ghp_in_flight_half(w->in_flight);
    GHP_TRY(ghp_in_flight_start(w->in_flight, p->half, i));
    if (w->lanes != NULL) {
        GHP_TRY(ghp_lanes_start(w->lanes, p->message));
        GHP_TRY(ghp_in_flight_finish(w->in_flight, p->half, i));
        GHP_TRY(ghp_lanes_finish(w->lanes, p->message));
        return ghp_in_flight_posted(w->in_flight, i);
    }
    GHP_TRY(ghp_bounce_posted(w->messages[p->message].bounce));
    ghp_p2p_thread_post(w->p2p_thread, p->message);
    return ghp_in_flight_posted(w->in_flight, i);
}

const struct ghp_run_kind ghp_run_kind_send = {.run = post_message,
                                               .failpoint = GHP_FAILPOINT_SEND};

/* Channels of padding (core/sharding/split.h) are in no message: they are zeros. */
static enum ghp_status post_receive(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_transfer *t = &instr->transfer;
    int y = instr->at.y;

    if (t->to.kind == GHP_LAYOUT_CHANNEL && ghp_shape_columns(t->shape) % t->to.tp_size != 0)
        GHP_TRY(ghp_device_clear(w->arena.device, GHP_DEVICE_STREAM_COMPUTE, w->address[y],
                                 w->program.buffers[y].bytes));
    return post_message(w, i, previous);
}

const struct ghp_run_kind ghp_run_kind_receive = {.run = post_receive,
                                                  .failpoint = GHP_FAILPOINT_RECEIVE};

/* On the transfer thread. */
static enum ghp_status note_message(void *context, int message)
{
    struct ghp_worker *w = context;
    int i = w->message_instr[message];

    return ghp_in_flight_finish(w->in_flight, w->prepared[i].half, i);
}

static const char *message_name(void *context, int message)
{
    const struct ghp_worker *w = context;

    return w->prepared[w->message_instr[message]].label;
}

enum ghp_status ghp_worker_open_channel(struct ghp_worker *w)
{
    const struct ghp_lanes_job job = {.exec = &w->exec,
                                      .messages = w->messages,
                                      .n = w->n_messages,
                                      .name = message_name,
                                      .context = w};
    int slots = 0;

    if (w->exec.collectives->ops->lane != NULL) return ghp_lanes_open(&job, &w->lanes);
    for (int p = 0; p < w->n_messages; p++)
        slots += w->messages[p].n;
    return w->exec.transport->p2p->ops->open(w->exec.transport->p2p, slots, &w->channel);
}

/* The messages at their addresses, and the thread that carries them. */
enum ghp_status ghp_worker_open_p2p_thread(struct ghp_worker *w)
{
    struct ghp_p2p_thread_job job = {.control = w->exec.transport->control,
                                     .channel = w->channel,
                                     .messages = w->messages,
                                     .n = w->n_messages,
                                     .done = note_message,
                                     .name = message_name,
                                     .context = w};

    for (int p = 0; p < w->n_messages; p++) {
        const struct ghp_instr *instr = ghp_worker_instr(w, w->message_instr[p]);
        int tensor = w->messages[p].receives ? instr->at.y : instr->at.x[0];
        void *scratch = instr->at.scratch >= 0 ? w->address[instr->at.scratch] : NULL;

        ghp_message_place(&w->messages[p], w->address[tensor], scratch);
        if (w->lanes != NULL)
            ghp_in_flight_divert(w->in_flight, w->message_instr[p], ghp_lanes_stream(w->lanes, p));
        else
            GHP_TRY(ghp_message_bounce(&w->messages[p], w->arena.device));
    }
    return w->n_messages > 0 && w->lanes == NULL ? ghp_p2p_thread_open(&job, &w->p2p_thread)
                                                 : GHP_OK;
}
