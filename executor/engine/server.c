/* executor/engine/server.c - see engine/server.h. */
#include "executor/engine/kernel_arguments.h"
#include "executor/engine/server.h"

#include "core/model/precision.h"
#include "executor/platform/backoff.h"
#include "executor/transport/summands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Many messages are under way at once, on a core of its own or on that of a computing worker. */
static const struct ghp_backoff backoff = {20e-6, 5000, 200000, 4};

struct served {        /* a bucket */
    int64_t applied;   /* steps */
    int here, sending; /* workers whose gradients are here; who have not taken the weights */
    bool *is_awaited, *is_sent; /* a worker: its push is posted; its weights are under way */
};

struct ghp_server {
    struct ghp_exec_context exec;
    enum ghp_fault fault;
    int workers, number, running;
    struct ghp_program program, layout; /* layout: a worker's, if parameters lie in buckets */
    struct ghp_arena arena;
    struct ghp_channel *channel;
    struct ghp_server_header *headers; /* a worker: the last one */
    bool *is_kept;                     /* a worker: its header waits until its step is done */
    int64_t *begun;                    /* a worker: steps */
    struct ghp_hyperparameters hyperparameters;
    struct served *buckets;
    bool *flags; /* of all buckets */
    bool has_weights;
};

/* ---- messages ---- */

static enum ghp_status fail_missing(const struct ghp_server_messages *exchange,
                                    const struct ghp_p2p_message *messages, int n)
{
    char missing[256] = "";

    for (int i = 0; i < n; i++) {
        size_t used = strlen(missing);
        bool done = false;

        if (exchange->channel->ops->poll(exchange->channel, exchange->first_slot + i, &done) ==
                GHP_OK &&
            done)
            continue;
        if (used + 16 < sizeof missing)
            snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "",
                     messages[i].peer);
    }
    return GHP_FAIL(GHP_ERR_COMM,
                    "rank %d waited %.0f s in '%s': %s rank(s) %s; see why they stopped, or raise "
                    "--watchdog if they are only slow",
                    exchange->control->rank, exchange->limit_s, exchange->label,
                    messages[0].receives ? "nothing arrived from" : "not taken by", missing);
}

enum ghp_status ghp_server_exchange(const struct ghp_server_messages *exchange,
                                    const struct ghp_p2p_message *messages, int n)
{
    struct ghp_backoff_wait wait = ghp_backoff_begin(&backoff);
    bool done = false;

    for (int i = 0; i < n; i++)
        GHP_TRY(exchange->channel->ops->post(exchange->channel, exchange->first_slot + i,
                                             &messages[i]));
    for (int i = 0; i < n;) {
        GHP_TRY(exchange->channel->ops->poll(exchange->channel, exchange->first_slot + i, &done));
        if (done) {
            i++;
            continue;
        }
        if (ghp_backoff_pause(&wait) && ghp_backoff_waited_s(&wait) > exchange->limit_s)
            return fail_missing(exchange, messages, n);
    }
    return GHP_OK;
}

/* Slots: a header of each worker, its push and its pull of each bucket, one more. */
static int push_slot(const struct ghp_server *s, int bucket, int worker)
{
    return s->workers * (1 + bucket) + worker;
}

static int pull_slot(const struct ghp_server *s, int bucket, int worker)
{
    return s->workers * (1 + s->program.n_buckets + bucket) + worker;
}

static int spare_slot(const struct ghp_server *s)
{
    return s->workers * (1 + 2 * s->program.n_buckets);
}

static enum ghp_status post(struct ghp_server *s, int slot, const struct ghp_p2p_message *message)
{
    return s->channel->ops->post(s->channel, slot, message);
}

static bool is_served(const struct ghp_server *s, int bucket)
{
    return s->program.buckets[bucket].server_shard_bytes > 0;
}

static char *at(const struct ghp_server *s, int buffer)
{
    return ghp_arena_at(&s->arena, &s->program, buffer);
}

/* ---- opening ---- */

static enum ghp_status make_tables(struct ghp_server *s)
{
    size_t n = (size_t)s->workers, buckets = (size_t)s->program.n_buckets;

    s->headers = ghp_alloc(n, sizeof *s->headers);
    s->is_kept = ghp_alloc(n, sizeof *s->is_kept);
    s->begun = ghp_alloc(n, sizeof *s->begun);
    s->buckets = ghp_alloc(buckets + 1, sizeof *s->buckets);
    s->flags = ghp_alloc(2 * n * buckets + 1, sizeof *s->flags);
    if (s->headers == NULL || s->is_kept == NULL || s->begun == NULL || s->buckets == NULL ||
        s->flags == NULL)
        return GHP_NO_MEMORY();
    for (size_t b = 0; b < buckets; b++) {
        s->buckets[b].is_awaited = s->flags + 2 * b * n;
        s->buckets[b].is_sent = s->flags + (2 * b + 1) * n;
    }
    return GHP_OK;
}

enum ghp_status ghp_server_open(const struct ghp_exec_context *exec,
                                struct ghp_server_programs *programs, enum ghp_fault fault,
                                struct ghp_server **result)
{
    struct ghp_server *s = ghp_alloc(1, sizeof *s);
    enum ghp_status status = GHP_OK;

    *result = NULL;
    if (s == NULL) {
        ghp_program_release(&programs->own);
        ghp_program_release(&programs->layout);
        return GHP_NO_MEMORY();
    }
    s->exec = ghp_exec_context_complete(*exec);
    s->program = programs->own;
    s->layout = programs->layout;
    *programs = (struct ghp_server_programs){0};
    s->fault = fault;
    s->workers = s->running = s->program.problem.workers;
    s->number = s->program.rank - s->workers;
    GHP_TRY_GOTO(status, ghp_program_check(&s->program), fail);
    GHP_TRY_GOTO(status, make_tables(s), fail);
    GHP_TRY_GOTO(
        status,
        ghp_arena_open(ghp_exec_context_device(&s->exec), &s->program, NULL, NULL, &s->arena),
        fail);
    *result = s;
    return GHP_OK;
fail:
    ghp_server_close(s);
    return status;
}

void ghp_server_close(struct ghp_server *s)
{
    if (s == NULL) return;
    if (s->channel != NULL) s->channel->ops->close(s->channel);
    ghp_arena_close(&s->arena);
    ghp_program_release(&s->program);
    ghp_program_release(&s->layout);
    free(s->headers);
    free(s->is_kept);
    free(s->begun);
    free(s->buckets);
    free(s->flags);
    free(s);
}

enum ghp_status ghp_server_connect(struct ghp_server *s)
{
    struct ghp_p2p *p2p = s->exec.transport->p2p;

    return p2p->ops->open(p2p, spare_slot(s) + 1, &s->channel);
}

const struct ghp_program *ghp_server_program(const struct ghp_server *s)
{
    return &s->program;
}

const struct ghp_arena *ghp_server_arena(const struct ghp_server *s)
{
    return &s->arena;
}

/* ---- updates ---- */

static void add_up(struct ghp_server *s, const struct ghp_bucket *bucket)
{
    int element_bytes = ghp_parameter_bytes(s->program.element_bytes);
    int64_t n = bucket->server_shard_bytes / element_bytes;
    bool drops = s->fault == GHP_FAULT_DROP_REDUCTION;
    struct ghp_summands summands = {.count = drops ? 1 : s->workers,
                                    .n = n,
                                    .stride = n,
                                    .own = at(s, bucket->buffer),
                                    .scratch = at(s, bucket->buffer)};

    if (summands.count > 1)
        ghp_summands_add(&summands, element_bytes, at(s, bucket->gradient_shard));
}

struct ghp_update ghp_server_part(const struct ghp_program *program, int bucket,
                                  const struct ghp_buffer *parameter,
                                  struct ghp_hyperparameters given, int64_t *skipped)
{
    const struct ghp_bucket *shard = &program->buckets[bucket];
    int64_t bytes = ghp_parameter_bytes(program->element_bytes);
    int64_t shard_first = (program->rank - program->problem.workers) * shard->server_shard_bytes,
            first =
                parameter->storage_offset > shard_first ? parameter->storage_offset : shard_first,
            end = parameter->storage_offset + parameter->elements * bytes;
    struct ghp_update update = {.optimizer = program->optimizer, .given = given};

    if (end > shard_first + shard->server_shard_bytes)
        end = shard_first + shard->server_shard_bytes;
    if (end <= first) return update;
    *skipped = first - shard_first;
    update.elements = (end - first) / bytes;
    ghp_kernel_update_group(&program->model->layers[parameter->layer], parameter->slot, &update);
    return update;
}

enum ghp_status ghp_server_update(const struct ghp_exec_context *exec, struct ghp_update *update,
                                  int element_bytes)
{
    struct ghp_not_finite found = {.first = GHP_ALL_FINITE};

    update->not_finite = &found;
    GHP_TRY(exec->backend_ops->update(exec->backend, update));
    if (found.first == GHP_ALL_FINITE) return GHP_OK;
    if (element_bytes == 8)
        *(double *)update->w = NAN;
    else
        *(float *)update->w = NAN;
    return GHP_OK;
}

static enum ghp_status update_all(struct ghp_server *s, int bucket)
{
    const struct ghp_bucket *shard = &s->program.buckets[bucket];

    for (int i = 0; i < s->layout.n_buffers; i++) {
        const struct ghp_buffer *parameter = &s->layout.buffers[i];
        struct ghp_update update;
        int64_t skipped = 0;

        if (parameter->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT ||
            parameter->storage != s->layout.buckets[bucket].buffer)
            continue;
        update = ghp_server_part(&s->program, bucket, parameter, s->hyperparameters, &skipped);
        if (update.elements == 0) continue;
        update.w = at(s, shard->weight_shard) + skipped;
        update.dw = at(s, shard->gradient_shard) + skipped;
        for (int m = 0; m < update.optimizer->n_moments; m++)
            update.moment[m] = at(s, shard->moment[m]) + skipped;
        GHP_TRY(
            ghp_server_update(&s->exec, &update, ghp_parameter_bytes(s->program.element_bytes)));
    }
    return GHP_OK;
}

/* All gradients of a bucket are here: one step of its weights, which go to all workers. */
static enum ghp_status apply(struct ghp_server *s, int b)
{
    const struct ghp_bucket *shard = &s->program.buckets[b];
    struct served *bucket = &s->buckets[b];

    add_up(s, shard);
    GHP_TRY(update_all(s, b));
    bucket->here = 0;
    bucket->applied++;
    for (int i = 0; i < s->workers; i++) {
        GHP_TRY(post(s, pull_slot(s, b, i),
                     &(struct ghp_p2p_message){.data = at(s, shard->weight_shard),
                                               .bytes = shard->server_shard_bytes,
                                               .peer = i,
                                               .tag = b}));
        bucket->is_sent[i] = true;
        bucket->sending++;
    }
    return GHP_OK;
}

static enum ghp_status look(struct ghp_server *s, int slot, bool *open, bool *progress)
{
    bool done = false;

    if (!*open) return GHP_OK;
    GHP_TRY(s->channel->ops->poll(s->channel, slot, &done));
    if (done) *open = false;
    *progress = *progress || done;
    return GHP_OK;
}

static enum ghp_status serve_bucket(struct ghp_server *s, int b, bool *progress)
{
    struct served *bucket = &s->buckets[b];

    for (int i = 0; i < s->workers; i++) {
        bool awaited = bucket->is_awaited[i], sent = bucket->is_sent[i];

        GHP_TRY(look(s, push_slot(s, b, i), &bucket->is_awaited[i], progress));
        GHP_TRY(look(s, pull_slot(s, b, i), &bucket->is_sent[i], progress));
        bucket->here += awaited && !bucket->is_awaited[i];
        bucket->sending -= sent && !bucket->is_sent[i];
    }
    return bucket->here == s->workers && bucket->sending == 0 && s->has_weights ? apply(s, b)
                                                                                : GHP_OK;
}

/* ---- headers ---- */

static enum ghp_status await_header(struct ghp_server *s, int worker)
{
    return post(s, worker,
                &(struct ghp_p2p_message){.data = &s->headers[worker],
                                          .bytes = sizeof *s->headers,
                                          .peer = worker,
                                          .tag = ghp_server_header_tag(&s->program),
                                          .receives = true});
}

/* Pushes of a step. What the last step's were, all have been added: their sender has pulled since. */
static enum ghp_status begin_step(struct ghp_server *s, int worker)
{
    if (worker == 0) s->hyperparameters = s->headers[worker].hyperparameters;
    s->begun[worker]++;
    for (int b = 0; b < s->program.n_buckets; b++) {
        const struct ghp_bucket *shard = &s->program.buckets[b];

        if (!is_served(s, b)) continue;
        GHP_TRY(post(s, push_slot(s, b, worker),
                     &(struct ghp_p2p_message){.data = (char *)at(s, shard->buffer) +
                                                       worker * shard->server_shard_bytes,
                                               .bytes = shard->server_shard_bytes,
                                               .peer = worker,
                                               .tag = b,
                                               .receives = true}));
        s->buckets[b].is_awaited[worker] = true;
    }
    return GHP_OK;
}

static int buffer_of(const struct ghp_bucket *shard, int64_t tensor)
{
    if (tensor == GHP_BUFFER_WEIGHT) return shard->weight_shard;
    if (tensor == GHP_BUFFER_WEIGHT_GRADIENT) return shard->gradient_shard;
    return shard->moment[tensor - GHP_BUFFER_MOMENT];
}

/* A tensor of every bucket, from or to a worker who does nothing else meanwhile. */
static enum ghp_status move_tensor(struct ghp_server *s, int worker, bool receives)
{
    const struct ghp_server_messages exchange = {.channel = s->channel,
                                                 .control = s->exec.transport->control,
                                                 .first_slot = spare_slot(s),
                                                 .limit_s = s->exec.transport->control->watchdog_s,
                                                 .label = "tensors of servers"};

    for (int b = 0; b < s->program.n_buckets; b++) {
        const struct ghp_bucket *shard = &s->program.buckets[b];

        if (is_served(s, b))
            GHP_TRY(
                ghp_server_exchange(&exchange,
                                    &(struct ghp_p2p_message){
                                        .data = at(s, buffer_of(shard, s->headers[worker].tensor)),
                                        .bytes = shard->server_shard_bytes,
                                        .peer = worker,
                                        .tag = ghp_server_tensor_tag(&s->program, b),
                                        .receives = receives},
                                    1));
    }
    if (receives && s->headers[worker].tensor == GHP_BUFFER_WEIGHT) s->has_weights = true;
    return GHP_OK;
}

static bool has_done(const struct ghp_server *s, int worker)
{
    for (int b = 0; b < s->program.n_buckets; b++)
        if (is_served(s, b) && s->buckets[b].applied < s->begun[worker]) return false;
    return true;
}

static enum ghp_status serve_word(struct ghp_server *s, int worker, bool *progress)
{
    bool open = true;

    if (s->is_kept[worker]) {
        if (!has_done(s, worker)) return GHP_OK;
    } else {
        if (s->begun[worker] < 0) return GHP_OK; /* it has ended */
        GHP_TRY(look(s, worker, &open, progress));
        if (open) return GHP_OK;
    }
    s->is_kept[worker] = s->headers[worker].kind == GHP_SERVER_READ && !has_done(s, worker);
    if (s->is_kept[worker]) return GHP_OK;
    *progress = true;
    switch (s->headers[worker].kind) {
    case GHP_SERVER_STEP: GHP_TRY(begin_step(s, worker)); break;
    case GHP_SERVER_READ: GHP_TRY(move_tensor(s, worker, false)); break;
    case GHP_SERVER_WRITE: GHP_TRY(move_tensor(s, worker, true)); break;
    default:
        s->begun[worker] = -1;
        s->running--;
        return GHP_OK;
    }
    return await_header(s, worker);
}

/* ---- the loop ---- */

/* Who lets the others wait: workers whose push of a bucket is not here, where another one's is. */
static enum ghp_status check_missing(const struct ghp_server *s)
{
    char missing[256] = "";
    int waiting = -1;

    for (int b = 0; b < s->program.n_buckets && waiting < 0; b++)
        if (s->buckets[b].here > 0 && s->buckets[b].here < s->workers) waiting = b;
    for (int i = 0; i < s->workers && waiting >= 0; i++) {
        size_t used = strlen(missing);

        if (s->begun[i] <= s->buckets[waiting].applied || s->buckets[waiting].is_awaited[i])
            snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "", i);
    }
    if (waiting < 0) return GHP_OK; /* nobody waits: workers evaluate, save or verify */
    return GHP_FAIL(
        GHP_ERR_COMM,
        "server %d (rank %d) waited %.0f s for gradients of layer '%s': nothing arrived "
        "from worker(s) %s; see why they stopped, or raise --watchdog if they are only "
        "slow",
        s->number, s->exec.transport->control->rank, s->exec.transport->control->watchdog_s,
        s->program.model->layers[s->layout.buffers[s->layout.buckets[waiting].buffer].layer].name,
        missing);
}

enum ghp_status ghp_server_run(struct ghp_server *s)
{
    struct ghp_backoff_wait wait = ghp_backoff_begin(&backoff);

    for (int i = 0; i < s->workers; i++)
        GHP_TRY(await_header(s, i));
    while (s->running > 0) {
        bool progress = false;

        for (int i = 0; i < s->workers; i++)
            GHP_TRY(serve_word(s, i, &progress));
        for (int b = 0; b < s->program.n_buckets; b++)
            if (is_served(s, b)) GHP_TRY(serve_bucket(s, b, &progress));
        if (progress)
            wait = ghp_backoff_begin(&backoff);
        else if (ghp_backoff_pause(&wait) &&
                 ghp_backoff_waited_s(&wait) > s->exec.transport->control->watchdog_s)
            GHP_TRY(check_missing(s));
    }
    return GHP_OK;
}
