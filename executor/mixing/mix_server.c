/* executor/mixing/mix_server.c - see mixing/mix_server.h. */
#include "executor/engine/kernel_arguments.h"
#include "executor/mixing/mix_server.h"

#include "core/model/precision.h"
#include "executor/mixing/flat.h"
#include "executor/engine/server.h"
#include "executor/platform/backoff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Many messages are under way at once, on a core of its own or on that of a computing worker. */
static const struct ghp_backoff backoff = {20e-6, 5000, 200000, 4};

static const double easgd_alpha = .9; /* over N */

enum slot { WORD, PUSH, X, ANSWER, SLOTS }; /* of a worker */

enum state { AWAITS_WORD, AWAITS_PUSH, HELD, ANSWERS, ENDED };

struct client { /* a worker */
    enum state state;
    struct ghp_mix_header header;
    struct ghp_mix_answer answer;
    int64_t clock; /* what it has pushed */
    int64_t seen;  /* updates of X when it last had it */
    int64_t count; /* aladdin: c_i; */
    double alpha;  /* what of X its weights become */
    bool answered; /* aladdin: X is under way to it; */
    bool owed;     /* and a newer one is due */
    bool leaves;   /* aladdin: it takes X once more, with an alpha below 0, and no further */
};

struct rule { /* of one scheme */
    const char *name;
    enum ghp_status (*take)(struct ghp_mix_server *s, int worker); /* what a worker has pushed */
    bool offers; /* X to workers who do not wait for it: once more when one ends */
};

struct ghp_mix_server {
    const struct rule *rule;
    struct ghp_exec_context exec;
    enum ghp_fault fault;
    int workers, number, running;
    struct ghp_program program, layout; /* layout: a worker's, if parameters lie in the bucket */
    struct ghp_arena arena;
    struct ghp_channel *channel;
    struct client *clients;
    int64_t since; /* aladdin: c, messages since the last update */
    struct ghp_mix_server_count count;
};

static const struct ghp_bucket *shard_of(const struct ghp_mix_server *s)
{
    return &s->program.buckets[0];
}

static struct ghp_flat flat_at(const struct ghp_mix_server *s, int buffer, int slot)
{
    int element_bytes = ghp_parameter_bytes(s->program.element_bytes);
    char *at = ghp_arena_at(&s->arena, &s->program, buffer);

    return (struct ghp_flat){at + slot * shard_of(s)->server_shard_bytes,
                             shard_of(s)->server_shard_bytes / element_bytes, element_bytes};
}

static struct ghp_flat x_of(const struct ghp_mix_server *s)
{
    return flat_at(s, shard_of(s)->weight_shard, 0);
}

static struct ghp_flat arrival_of(const struct ghp_mix_server *s, int worker)
{
    return flat_at(s, shard_of(s)->buffer, worker);
}

/* ---- updates ---- */

/* Applies what worker i has pushed, as an update by its gradient. */
static enum ghp_status apply(struct ghp_mix_server *s, int i)
{
    struct ghp_hyperparameters given = s->clients[i].header.hyperparameters;

    given.learning_rate /= s->workers;
    for (int b = 0; b < s->layout.n_buffers; b++) {
        const struct ghp_buffer *parameter = &s->layout.buffers[b];
        struct ghp_update update;
        int64_t skipped = 0;

        if (parameter->buffer_kind != GHP_BUFFER_WEIGHT_GRADIENT) continue;
        update = ghp_server_part(&s->program, 0, parameter, given, &skipped);
        if (update.elements == 0) continue;
        update.w = (char *)x_of(s).at + skipped;
        update.dw = (char *)arrival_of(s, i).at + skipped;
        for (int m = 0; m < update.optimizer->n_moments; m++)
            update.moment[m] = (char *)flat_at(s, shard_of(s)->moment[m], i).at + skipped;
        GHP_TRY(
            ghp_server_update(&s->exec, &update, ghp_parameter_bytes(s->program.element_bytes)));
    }
    s->count.versions++;
    return GHP_OK;
}

/* ---- messages ---- */

static enum ghp_status post(struct ghp_mix_server *s, int worker, enum slot slot,
                            struct ghp_p2p_message message)
{
    message.peer = worker;
    return s->channel->ops->post(s->channel, SLOTS * worker + (int)slot, &message);
}

static enum ghp_status is_done(struct ghp_mix_server *s, int worker, enum slot slot, bool *done)
{
    return s->channel->ops->poll(s->channel, SLOTS * worker + (int)slot, done);
}

static enum ghp_status await_header(struct ghp_mix_server *s, int worker)
{
    s->clients[worker].state = AWAITS_WORD;
    return post(s, worker, WORD,
                (struct ghp_p2p_message){.data = &s->clients[worker].header,
                                         .bytes = sizeof s->clients[worker].header,
                                         .tag = GHP_MIX_TAG_WORD,
                                         .receives = true});
}

/* What lies at `from` goes to the worker, with the answer. */
static enum ghp_status answer(struct ghp_mix_server *s, int worker, struct ghp_flat from)
{
    GHP_TRY(post(s, worker, ANSWER,
                 (struct ghp_p2p_message){.data = &s->clients[worker].answer,
                                          .bytes = sizeof s->clients[worker].answer,
                                          .tag = GHP_MIX_TAG_ANSWER}));
    return post(s, worker, X,
                (struct ghp_p2p_message){.data = from.at,
                                         .bytes = shard_of(s)->server_shard_bytes,
                                         .tag = GHP_MIX_TAG_X});
}

/* X as it is now goes to a worker who waits for it. */
static enum ghp_status answer_x(struct ghp_mix_server *s, int worker)
{
    ghp_flat_copy(arrival_of(s, worker), x_of(s));
    s->clients[worker].seen = s->count.versions;
    s->clients[worker].state = ANSWERS;
    return answer(s, worker, arrival_of(s, worker));
}

/* ---- ssp ---- */

static int64_t slowest(const struct ghp_mix_server *s)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < s->workers; i++)
        if (s->clients[i].state != ENDED && s->clients[i].clock < least)
            least = s->clients[i].clock;
    return least;
}

/* By the clock, X is given when the slowest worker lags at most S steps. A worker that pulls is answered with its push,
 * so before those that this push releases: the slowest never queues after them. */
static enum ghp_status answer_pull(struct ghp_mix_server *s, int worker)
{
    struct client *c = &s->clients[worker];
    bool holds = !s->program.mix.other && s->fault != GHP_FAULT_DROP_REDUCTION;

    if (holds && slowest(s) < c->clock - s->program.mix.argument) {
        c->state = HELD;
        return GHP_OK;
    }
    c->answer.slowest = slowest(s);
    return answer_x(s, worker);
}

/* ---- aladdin ---- */

/* The newest X goes to a worker who does not wait for it, one at a time. */
static enum ghp_status offer(struct ghp_mix_server *s, int worker)
{
    struct client *c = &s->clients[worker];
    struct ghp_flat room = arrival_of(s, s->workers + worker);

    c->owed = c->answered;
    if (c->answered) return GHP_OK;
    c->answered = true;
    c->answer.alpha = c->leaves ? -1 : c->alpha;
    ghp_flat_copy(room, x_of(s));
    return answer(s, worker, room);
}

static void take_sum(struct ghp_mix_server *s, double divisor)
{
    struct ghp_flat sum = flat_at(s, shard_of(s)->gradient_shard, 0);

    ghp_flat_add(x_of(s), -1 / divisor, sum);
    ghp_flat_clear(sum);
    s->count.versions++;
    s->count.triggered += s->since;
    s->since = 0;
}

static enum ghp_status take_step(struct ghp_mix_server *s, int worker)
{
    struct client *c = &s->clients[worker];
    bool printed = s->program.mix.other, loses = s->fault == GHP_FAULT_DROP_REDUCTION;
    int64_t pi = s->program.mix.argument;
    bool triggers = c->count + 1 >= pi;

    c->count++;
    if (!loses || worker == 0) s->since++;
    if (!(printed && triggers) && (!loses || worker == 0))
        ghp_flat_add(flat_at(s, shard_of(s)->gradient_shard, 0), 1, arrival_of(s, worker));
    if (!triggers) {
        if (c->count > s->count.most_count) s->count.most_count = c->count;
        return GHP_OK;
    }
    c->alpha = s->fault == GHP_FAULT_NO_MIXING
                   ? 0
                   : 1 - 1 / sqrt((double)(printed ? s->since : s->workers * pi));
    take_sum(s, (double)(printed ? s->since : s->workers));
    c->count = 0;
    return offer(s, worker);
}

/* ---- what a worker has pushed ---- */

static enum ghp_status take_asp(struct ghp_mix_server *s, int worker)
{
    bool drops = s->fault == GHP_FAULT_DROP_REDUCTION && s->clients[worker].clock % 2 == 0;

    if (!drops) GHP_TRY(apply(s, worker));
    return answer_x(s, worker);
}

static enum ghp_status take_ssp(struct ghp_mix_server *s, int worker)
{
    GHP_TRY(apply(s, worker));
    return s->clients[worker].header.pulls != 0 ? answer_pull(s, worker) : await_header(s, worker);
}

static enum ghp_status take_easgd(struct ghp_mix_server *s, int worker)
{
    s->count.versions++;
    if (s->fault == GHP_FAULT_DROP_REDUCTION)
        ghp_flat_pull(arrival_of(s, worker), easgd_alpha / s->workers, x_of(s));
    else
        ghp_flat_draw(arrival_of(s, worker), x_of(s), easgd_alpha / s->workers);
    s->clients[worker].state = ANSWERS;
    return answer(s, worker, arrival_of(s, worker));
}

static enum ghp_status take_aladdin(struct ghp_mix_server *s, int worker)
{
    GHP_TRY(take_step(s, worker));
    return await_header(s, worker);
}

static const struct rule rules[] = {{.name = "asp", .take = take_asp},
                                    {.name = "ssp", .take = take_ssp},
                                    {.name = "easgd", .take = take_easgd},
                                    {.name = "aladdin", .take = take_aladdin, .offers = true}};

static const struct rule *rule_of(const struct ghp_program *program)
{
    const struct rule *rule = rules;

    while (strcmp(rule->name, program->mix.scheme) != 0) {
        rule++;
        GHP_ASSERT(rule < rules + sizeof rules / sizeof *rules);
    }
    return rule;
}

/* ---- a worker's messages ---- */

static enum ghp_status take_push(struct ghp_mix_server *s, int worker)
{
    struct client *c = &s->clients[worker];

    c->clock++;
    s->count.received++;
    s->count.stale += (double)(s->count.versions - c->seen);
    if (c->clock - slowest(s) > s->count.most_gap) s->count.most_gap = c->clock - slowest(s);
    return s->rule->take(s, worker);
}

/* A message to or from a worker who does nothing else meanwhile. */
static enum ghp_status exchange(struct ghp_mix_server *s, struct ghp_p2p_message message)
{
    const struct ghp_server_messages messages = {.channel = s->channel,
                                                 .control = s->exec.transport->control,
                                                 .first_slot = SLOTS * s->workers,
                                                 .limit_s = s->exec.transport->control->watchdog_s,
                                                 .label = "what workers ask between steps"};

    message.tag = GHP_MIX_TAG_TENSOR;
    return ghp_server_exchange(&messages, &message, 1);
}

/* A tensor: X, or the worker's own moments. */
static enum ghp_status move_tensor(struct ghp_mix_server *s, int worker, bool receives)
{
    int64_t kind = s->clients[worker].header.tensor;
    bool weights = kind == GHP_BUFFER_WEIGHT, drops = receives && s->count.received > 0;
    struct ghp_flat tensor = !weights
                                 ? flat_at(s, shard_of(s)->moment[kind - GHP_BUFFER_MOMENT], worker)
                             : drops ? arrival_of(s, worker)
                                     : x_of(s);

    if (weights && !receives && s->since > 0) take_sum(s, s->workers);
    return exchange(s, (struct ghp_p2p_message){.data = tensor.at,
                                                .bytes = shard_of(s)->server_shard_bytes,
                                                .peer = worker,
                                                .receives = receives});
}

static enum ghp_status take_word(struct ghp_mix_server *s, int worker)
{
    struct client *c = &s->clients[worker];

    switch (c->header.kind) {
    case GHP_MIX_PUSH:
        c->state = AWAITS_PUSH;
        return post(s, worker, PUSH,
                    (struct ghp_p2p_message){.data = arrival_of(s, worker).at,
                                             .bytes = shard_of(s)->server_shard_bytes,
                                             .tag = GHP_MIX_TAG_PUSH,
                                             .receives = true});
    case GHP_MIX_READ: GHP_TRY(move_tensor(s, worker, false)); break;
    case GHP_MIX_WRITE: GHP_TRY(move_tensor(s, worker, true)); break;
    case GHP_MIX_SETTLE:
        GHP_TRY(exchange(s, (struct ghp_p2p_message){
                                .data = &s->number, .bytes = sizeof s->number, .peer = worker}));
        break;
    default:
        c->state = ENDED;
        s->running--;
        c->leaves = s->rule->offers;
        return c->leaves ? offer(s, worker) : GHP_OK;
    }
    return await_header(s, worker);
}

static enum ghp_status serve(struct ghp_mix_server *s, int worker, bool *progress)
{
    struct client *c = &s->clients[worker];
    bool done = false, x_done = false;

    if (c->answered) {
        GHP_TRY(is_done(s, worker, ANSWER, &done));
        if (done) GHP_TRY(is_done(s, worker, X, &x_done));
        c->answered = !x_done;
        *progress = *progress || x_done;
        if (x_done && c->owed) GHP_TRY(offer(s, worker));
    }
    switch (c->state) {
    case AWAITS_WORD:
    case AWAITS_PUSH:
        GHP_TRY(is_done(s, worker, c->state == AWAITS_WORD ? WORD : PUSH, &done));
        if (!done) return GHP_OK;
        *progress = true;
        return c->state == AWAITS_WORD ? take_word(s, worker) : take_push(s, worker);
    case HELD:
        GHP_TRY(answer_pull(s, worker));
        *progress = *progress || c->state != HELD;
        return GHP_OK;
    case ANSWERS:
        GHP_TRY(is_done(s, worker, ANSWER, &done));
        if (done) GHP_TRY(is_done(s, worker, X, &done));
        if (!done) return GHP_OK;
        *progress = true;
        return await_header(s, worker);
    case ENDED: break;
    }
    return GHP_OK;
}

/* Who lets the others wait: workers whose gradients others wait for, by the clock. */
static enum ghp_status check_held(const struct ghp_mix_server *s)
{
    const struct ghp_control *control = s->exec.transport->control;
    char missing[256] = "";
    bool holds = false;

    for (int i = 0; i < s->workers; i++) {
        size_t used = strlen(missing);

        holds = holds || s->clients[i].state == HELD;
        if (s->clients[i].state != HELD && s->clients[i].state != ENDED &&
            s->clients[i].clock == slowest(s) && used + 16 < sizeof missing)
            snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "", i);
    }
    if (!holds) return GHP_OK; /* nobody waits: workers compute, evaluate or save */
    return GHP_FAIL(GHP_ERR_COMM,
                    "server %d (rank %d) waited %.0f s for the slowest worker's gradients: nothing "
                    "arrived from worker(s) %s; see why they stopped, or raise --watchdog if they "
                    "are only slow",
                    s->number, control->rank, control->watchdog_s, missing);
}

/* An X that is under way to a worker who has ended arrives: it waits for it. */
static bool answers(const struct ghp_mix_server *s)
{
    for (int i = 0; i < s->workers; i++)
        if (s->clients[i].answered) return true;
    return false;
}

enum ghp_status ghp_mix_server_run(struct ghp_mix_server *s)
{
    struct ghp_backoff_wait wait = ghp_backoff_begin(&backoff);

    for (int i = 0; i < s->workers; i++)
        GHP_TRY(await_header(s, i));
    while (s->running > 0 || answers(s)) {
        bool progress = false;

        for (int i = 0; i < s->workers; i++)
            GHP_TRY(serve(s, i, &progress));
        if (progress)
            wait = ghp_backoff_begin(&backoff);
        else if (ghp_backoff_pause(&wait) &&
                 ghp_backoff_waited_s(&wait) > s->exec.transport->control->watchdog_s)
            GHP_TRY(check_held(s));
    }
    return GHP_OK;
}

/* ---- opening ---- */

enum ghp_status ghp_mix_server_open(const struct ghp_exec_context *exec,
                                    struct ghp_server_programs *programs, enum ghp_fault fault,
                                    struct ghp_mix_server **result)
{
    struct ghp_mix_server *s = ghp_alloc(1, sizeof *s);
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
    s->rule = rule_of(&s->program);
    s->workers = s->running = s->program.problem.workers;
    s->number = s->program.rank - s->workers;
    s->clients = ghp_alloc((size_t)s->workers, sizeof *s->clients);
    if (s->clients == NULL) GHP_TRY_GOTO(status, GHP_NO_MEMORY(), fail);
    GHP_TRY_GOTO(status, ghp_program_check(&s->program), fail);
    GHP_TRY_GOTO(
        status,
        ghp_arena_open(ghp_exec_context_device(&s->exec), &s->program, NULL, NULL, &s->arena),
        fail);
    *result = s;
    return GHP_OK;
fail:
    ghp_mix_server_close(s);
    return status;
}

void ghp_mix_server_close(struct ghp_mix_server *s)
{
    if (s == NULL) return;
    if (s->channel != NULL) s->channel->ops->close(s->channel);
    ghp_arena_close(&s->arena);
    ghp_program_release(&s->program);
    ghp_program_release(&s->layout);
    free(s->clients);
    free(s);
}

enum ghp_status ghp_mix_server_connect(struct ghp_mix_server *s)
{
    struct ghp_p2p *p2p = s->exec.transport->p2p;

    return p2p->ops->open(p2p, SLOTS * s->workers + 1, &s->channel);
}

const struct ghp_program *ghp_mix_server_program(const struct ghp_mix_server *s)
{
    return &s->program;
}

const struct ghp_arena *ghp_mix_server_arena(const struct ghp_mix_server *s)
{
    return &s->arena;
}

struct ghp_mix_server_count ghp_mix_server_counted(const struct ghp_mix_server *s)
{
    struct ghp_mix_server_count count = s->count;

    count.left = s->since;
    return count;
}
