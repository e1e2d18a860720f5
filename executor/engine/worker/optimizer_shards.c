/* executor/engine/worker/optimizer_shards.c - what lies in optimizer shards or in servers' shards
 * (core/program/sync.h), made whole between steps; and what a worker does with the servers (engine/server.h).
 *
 * A whole moment has no memory of its own: it lies where the layer's gradient does, which nobody needs between a
 * flush and the next step. */
#include "executor/engine/server.h"
#include "executor/engine/worker_private.h"

#include "core/model/precision.h"

#include <stdlib.h>
#include <string.h>

/* The reduction that leaves a bucket's gradients in optimizer shards; -1: none does. */
static int scatter_of(const struct ghp_worker *w, int bucket)
{
    for (int i = 0; i < w->program.n_instrs; i++)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_REDUCE_SCATTER &&
            ghp_worker_instr(w, i)->bucket == bucket)
            return i;
    return -1;
}

/* A whole bucket from the optimizer shards of a replica group, by instruction i's communicator. */
static enum ghp_status gather_shards(struct ghp_worker *w, int i, int shard, int whole)
{
    const struct ghp_prepared_instr *p = &w->prepared[i];
    int64_t bytes = w->program.buffers[shard].bytes;

    p->comm->label = p->label;
    return p->comm->ops->all_gather(p->comm, w->address[shard], w->address[whole], bytes);
}

/* Floats from n numbers in bfloat16 that lie in the second half of the floats' place: in parts, each as long as what
 * is free before those that are still to be widened, and the last ones by way of scratch. */
static enum ghp_status widen(const struct ghp_worker *w, const struct ghp_instr *gather, int64_t n)
{
    const enum ghp_device_stream stream = GHP_DEVICE_STREAM_COMM;
    struct ghp_device device = w->arena.device;
    float *floats = w->address[gather->at.y];
    const uint16_t *from = (const uint16_t *)floats + n;
    struct ghp_move move = {.kind = GHP_MOVE_FROM_BF16};
    int64_t at = 0;

    for (; 2 * (n - at) > ghp_instr_receive_bytes(gather); at += move.pack.rows) {
        move.pack.rows = (n - at) / 2 / 16 * 16; /* kernels move 16 at once */
        move.from = from + at;
        move.to = floats + at;
        GHP_TRY(ghp_device_move(device, stream, &move));
    }
    GHP_TRY(ghp_device_copy(device, stream,
                            (struct ghp_copy){w->address[gather->at.scratch], from + at,
                                              2 * (n - at), GHP_COPY_ON_DEVICE}));
    move.pack.rows = n - at;
    move.from = w->address[gather->at.scratch];
    move.to = floats + at;
    return ghp_device_move(device, stream, &move);
}

/* The same in half of the bytes: this worker's shard is rounded into the first half of the place of what is gathered,
 * from where all gather into the second half. */
static enum ghp_status gather_in_bf16(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    const struct ghp_prepared_instr *p = &w->prepared[i];
    int64_t each = w->program.buffers[instr->at.x[0]].elements, n = each * instr->ranks.count;
    float *floats = w->address[instr->at.y];
    const struct ghp_move rounds = {
        GHP_MOVE_TO_BF16, {.rows = each}, w->address[instr->at.x[0]], floats, 0};

    p->comm->label = p->label;
    GHP_TRY(ghp_device_move(w->arena.device, GHP_DEVICE_STREAM_COMM, &rounds));
    GHP_TRY(p->comm->ops->all_gather(p->comm, floats, (uint16_t *)floats + n, 2 * each));
    return widen(w, instr, n);
}

static enum ghp_status gather_weights(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);

    return instr->in_bf16 ? gather_in_bf16(w, i) : gather_shards(w, i, instr->at.x[0], instr->at.y);
}

const struct ghp_run_kind ghp_run_kind_all_gather = {ghp_worker_post, gather_weights,
                                                     GHP_FAILPOINT_ALL_GATHER};
const struct ghp_run_kind ghp_run_kind_gather = {ghp_worker_post, gather_weights,
                                                 GHP_FAILPOINT_ALL_GATHER};

/* Whether the servers with whom it mixes have its moments. */
static bool has_moments_apart(const struct ghp_worker *w)
{
    return w->mixer != NULL && w->program.mixing->server_moments;
}

/* This worker's shard of what lies in a bucket's optimizer shards: weights, gradients or a moment; -1: it is whole. */
static int shard_of(const struct ghp_bucket *bucket, enum ghp_buffer_kind kind)
{
    if (bucket->shard_bytes == 0) return -1;
    if (kind == GHP_BUFFER_WEIGHT)
        return ghp_sharding_gathers(bucket->sharding) ? bucket->weight_shard : -1;
    if (kind == GHP_BUFFER_WEIGHT_GRADIENT) return bucket->gradient_shard;
    return ghp_buffer_kind_is_moment(kind) ? bucket->moment[kind - GHP_BUFFER_MOMENT] : -1;
}

/* What servers have, for all layers at once. */
static enum ghp_status collect_served(struct ghp_worker *w, enum ghp_buffer_kind kind)
{
    bool moments = ghp_buffer_kind_is_moment(kind);

    if ((!moments && kind != GHP_BUFFER_WEIGHT_GRADIENT) || w->collected == kind) return GHP_OK;
    GHP_ASSERT(moments || !ghp_buffer_kind_is_moment(w->collected)); /* the gradients are gone */
    if (ghp_worker_is_served(w)) GHP_TRY(ghp_worker_read_servers(w, kind));
    if (moments && has_moments_apart(w) && !w->program.mixing->updates) /* else its own */
        GHP_TRY(w->run.mixing->move(w->mixer, kind, true));
    w->collected = kind;
    return GHP_OK;
}

enum ghp_status ghp_worker_collect(struct ghp_worker *w, enum ghp_buffer_kind kind, int layer)
{
    int b = ghp_worker_bucket_of(w, layer), shard, i;

    GHP_TRY(collect_served(w, kind));
    if (b < 0 || (w->whole_kind == kind && w->whole_bucket == b)) return GHP_OK;
    shard = shard_of(&w->program.buckets[b], kind);
    i = scatter_of(w, b);
    if (shard < 0 || i < 0) return GHP_OK;
    GHP_ASSERT(kind == GHP_BUFFER_WEIGHT_GRADIENT || !w->updates_pending);
    GHP_TRY(ghp_exec_context_finish(&w->exec, GHP_DEVICE_STREAM_COMPUTE));
    GHP_TRY(gather_shards(w, i, shard, w->program.buckets[b].buffer));
    GHP_TRY(ghp_exec_context_finish(&w->exec, GHP_DEVICE_STREAM_COMM));
    w->whole_kind = kind;
    w->whole_bucket = b;
    return GHP_OK;
}

/* The part of a tensor that is in this worker's shard, into it. */
enum ghp_status ghp_worker_keep(struct ghp_worker *w, enum ghp_buffer_kind kind, int layer,
                                int slot)
{
    int b = ghp_worker_bucket_of(w, layer),
        shard = b >= 0 ? shard_of(&w->program.buckets[b], kind) : -1;

    for (int i = 0; shard >= 0 && i < w->program.n_buffers; i++) {
        const struct ghp_buffer *t = &w->program.buffers[i];
        int64_t begin, end, at = w->program.buckets[b].shard_offset;

        if (t->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT || t->layer != layer || t->slot != slot)
            continue;
        begin = t->storage_offset > at ? t->storage_offset : at;
        end = t->storage_offset + t->bytes;
        if (end > at + w->program.buckets[b].shard_bytes)
            end = at + w->program.buckets[b].shard_bytes;
        if (begin < end)
            GHP_TRY(ghp_device_copy(
                w->arena.device, GHP_DEVICE_STREAM_COMPUTE,
                (struct ghp_copy){(char *)w->address[shard] + (begin - at),
                                  (char *)w->address[i] + (begin - t->storage_offset), end - begin,
                                  GHP_COPY_ON_DEVICE}));
    }
    w->whole_kind = GHP_BUFFER_KIND_COUNT;
    return shard >= 0 ? ghp_device_finish(w->arena.device, GHP_DEVICE_STREAM_COMPUTE) : GHP_OK;
}

/* Moments that the worker has, too, in the gradients' place, where each parameter's gradient lies. */
static void lay_moments(struct ghp_worker *w, enum ghp_buffer_kind moment)
{
    const struct ghp_buffer *buffers = w->program.buffers;
    size_t bytes = (size_t)ghp_parameter_bytes(w->program.element_bytes);

    for (int i = 0; i < w->program.n_buffers; i++)
        for (int j = 0; buffers[i].buffer_kind == moment && j < w->program.n_buffers; j++)
            if (buffers[j].buffer_kind == GHP_BUFFER_WEIGHT_GRADIENT &&
                buffers[j].layer == buffers[i].layer && buffers[j].slot == buffers[i].slot)
                memcpy(w->address[j], w->address[i], (size_t)buffers[i].elements * bytes);
}

enum ghp_status ghp_worker_distribute(struct ghp_worker *w, enum ghp_buffer_kind moment)
{
    if (ghp_worker_is_served(w)) GHP_TRY(ghp_worker_write_servers(w, moment));
    if (has_moments_apart(w)) {
        lay_moments(w, moment);
        GHP_TRY(w->run.mixing->move(w->mixer, moment, false));
    }
    w->collected = GHP_BUFFER_KIND_COUNT;
    return ghp_device_finish(w->arena.device, GHP_DEVICE_STREAM_COMPUTE);
}

/* ---- servers ---- */

bool ghp_worker_is_served(const struct ghp_worker *w)
{
    return w->program.servers > 0 && w->program.mixing == NULL && w->run.weight_owner == NULL;
}

enum ghp_status ghp_worker_open_servers(struct ghp_worker *w)
{
    struct ghp_p2p *p2p = w->exec.transport->p2p;
    size_t n = (size_t)w->program.servers;

    if (!ghp_worker_is_served(w)) return GHP_OK;
    w->server_messages = ghp_alloc(n, sizeof *w->server_messages);
    if (w->server_messages == NULL) return GHP_NO_MEMORY();
    w->exec.transport->control->patience = GHP_WORKER_PATIENCE;
    for (int i = w->program.n_instrs - 1; i >= 0; i--)
        if (ghp_worker_instr(w, i)->kind == GHP_INSTR_PUSH) w->first_push = i;
    return p2p->ops->open(p2p, (int)n, &w->servers);
}

/* The n messages with servers that lie at w->server_messages. */
static enum ghp_status exchange_messages(struct ghp_worker *w, int n, const char *label)
{
    const struct ghp_control *control = w->exec.transport->control;
    const struct ghp_server_messages exchange = {.channel = w->servers,
                                                 .control = control,
                                                 .limit_s =
                                                     GHP_SERVED_PATIENCE * control->watchdog_s,
                                                 .label = label};

    return ghp_server_exchange(&exchange, w->server_messages, n);
}

/* To or from a server its shard of what lies at message.data. */
static struct ghp_p2p_message server_message(const struct ghp_worker *w,
                                             struct ghp_p2p_message message, int server)
{
    message.peer = w->program.problem.workers + server;
    message.data = (char *)message.data + server * message.bytes;
    return message;
}

static enum ghp_status tell(struct ghp_worker *w, struct ghp_server_header header)
{
    for (int s = 0; s < w->program.servers; s++)
        w->server_messages[s] = (struct ghp_p2p_message){.data = &header,
                                                         .bytes = sizeof header,
                                                         .peer = w->program.problem.workers + s,
                                                         .tag = ghp_server_header_tag(&w->program)};
    return exchange_messages(w, w->program.servers, "telling the servers");
}

/* All buckets of weights, or of what lies in the gradients' place. A server serves one worker after the other, so every
 * worker is done with one server before it turns to the next: else each of two could wait for the other's server. */
static enum ghp_status move_tensor(struct ghp_worker *w, bool weights, bool receives)
{
    for (int s = 0; s < w->program.servers; s++)
        for (int b = 0; b < w->program.n_buckets; b++) {
            const struct ghp_bucket *bucket = &w->program.buckets[b];
            struct ghp_p2p_message all = {
                .data = w->address[weights ? bucket->weights : bucket->buffer],
                .bytes = bucket->server_shard_bytes,
                .tag = ghp_server_tensor_tag(&w->program, b),
                .receives = receives};

            if (bucket->server_shard_bytes == 0) continue;
            w->server_messages[0] = server_message(w, all, s);
            GHP_TRY(exchange_messages(w, 1, "tensors of servers"));
        }
    return GHP_OK;
}

/* The next push of one worker would overwrite the sum of the gradients that another still reads. */
enum ghp_status ghp_worker_read_servers(struct ghp_worker *w, enum ghp_buffer_kind kind)
{
    struct ghp_transport *transport = w->exec.transport;
    struct ghp_ranks all = {.count = w->program.problem.workers, .stride = 1};
    struct ghp_comm *world = NULL;

    GHP_TRY(tell(w, (struct ghp_server_header){.kind = GHP_SERVER_READ, .tensor = kind}));
    GHP_TRY(move_tensor(w, kind == GHP_BUFFER_WEIGHT, true));
    if (all.count == 1) return GHP_OK;
    GHP_TRY(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, &world));
    world->label = "reading from the servers";
    return ghp_control_barrier(transport->control, world);
}

enum ghp_status ghp_worker_write_servers(struct ghp_worker *w, enum ghp_buffer_kind kind)
{
    GHP_TRY(tell(w, (struct ghp_server_header){.kind = GHP_SERVER_WRITE, .tensor = kind}));
    return move_tensor(w, kind == GHP_BUFFER_WEIGHT, false);
}

/* Before a step's first push what comes; before the first of all, the weights. */
static enum ghp_status begin(struct ghp_worker *w)
{
    if (!w->gave_weights) GHP_TRY(ghp_worker_write_servers(w, GHP_BUFFER_WEIGHT));
    w->gave_weights = true;
    return tell(w,
                (struct ghp_server_header){.kind = GHP_SERVER_STEP, .hyperparameters = w->pushed});
}

static enum ghp_status exchange(struct ghp_worker *w, int i)
{
    const struct ghp_instr *instr = ghp_worker_instr(w, i);
    bool pulls = instr->kind == GHP_INSTR_PULL;
    const struct ghp_p2p_message all = {.data = w->address[pulls ? instr->at.y : instr->at.x[0]],
                                        .bytes =
                                            w->program.buckets[instr->bucket].server_shard_bytes,
                                        .tag = instr->bucket,
                                        .receives = pulls};

    if (i == w->first_push) GHP_TRY(begin(w));
    for (int s = 0; s < w->program.servers; s++)
        w->server_messages[s] = server_message(w, all, s);
    GHP_TRY(exchange_messages(w, w->program.servers, w->prepared[i].label));
    if (pulls) ghp_worker_look_at_pulled(w, instr->bucket);
    return GHP_OK;
}

static enum ghp_status run_push(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    if (i == w->first_push) w->pushed = w->step.hyperparameters;
    return ghp_worker_post(w, i, previous);
}

const struct ghp_run_kind ghp_run_kind_push = {.run = run_push, .concurrent = exchange};
const struct ghp_run_kind ghp_run_kind_pull = {.run = ghp_worker_post, .concurrent = exchange};

static enum ghp_status run_mix(struct ghp_worker *w, int i, const struct ghp_step *previous)
{
    (void)i;
    GHP_TRY(w->run.mixing->mix(w->mixer, previous));
    if (w->program.servers > 0) ghp_worker_look_at_pulled(w, -1);
    return GHP_OK;
}

const struct ghp_run_kind ghp_run_kind_mix = {.run = run_mix};
const struct ghp_run_kind ghp_run_kind_carry = {.run = NULL}; /* the mixer's thread does it */

void ghp_worker_close_servers(struct ghp_worker *w)
{
    if (w->servers != NULL) {
        tell(w, (struct ghp_server_header){.kind = GHP_SERVER_END}); /* or the watchdog ends them */
        w->servers->ops->close(w->servers);
        w->exec.transport->control->patience = 1;
    }
    free(w->server_messages);
}
