/* executor/mixing/mixer.c - see mixing/mixer.h: what all synchronisers that mix share. */
#include "executor/mixing/mixer_private.h"

#include "core/model/precision.h"
#include "executor/engine/server.h"
#include "executor/platform/backoff.h"

#include <stdlib.h>
#include <string.h>

/* During a step that wants the core. */
static const struct ghp_backoff carrying = {0, 50000, 200000, 4};

static const struct ghp_mixer_ops *const all[] = {
    &ghp_mixer_asp,   &ghp_mixer_ssp,        &ghp_mixer_easgd, &ghp_mixer_aladdin,
    &ghp_mixer_gosgd, &ghp_mixer_ad_psgd,    &ghp_mixer_lsgd,  &ghp_mixer_dgd,
    &ghp_mixer_sgp,   &ghp_mixer_sgp_overlap};

/* ---- opening ---- */

static const struct ghp_instr *mix_of(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].kind == GHP_INSTR_MIX) return &program->instrs[i];
    return NULL;
}

static const struct ghp_mixer_ops *ops_of(const struct ghp_program *program)
{
    size_t i = 0;

    while (strcmp(all[i]->name, program->mix.scheme) != 0) {
        i++;
        GHP_ASSERT(i < sizeof all / sizeof all[0]);
    }
    return all[i];
}

/* A server's part of the weights, or without servers all of them, go in one message. */
static enum ghp_status check_message(const struct ghp_mixer_place *place,
                                     const struct ghp_mixer_ops *ops)
{
    const struct ghp_instr *mix = mix_of(place->program);
    int64_t server_shard_bytes = place->program->buckets[mix->bucket].server_shard_bytes;

    if (mix->servers == 0 && !ops->in_segments && mix->bytes > GHP_P2P_MESSAGE_BYTES)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "by '%s' a worker sends %lld bytes of weights, and a message has at most "
                        "%d; plan with --sync local:8, or with --sync easgd:8 --servers %lld",
                        ops->name, (long long)mix->bytes, (int)GHP_P2P_MESSAGE_BYTES,
                        (long long)(mix->bytes / GHP_P2P_MESSAGE_BYTES + 1));
    if (server_shard_bytes <= GHP_P2P_MESSAGE_BYTES) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "by '%s' a server has %lld bytes of weights, and a message has at most %d; "
                    "plan with --servers %lld or more",
                    ops->name, (long long)server_shard_bytes, (int)GHP_P2P_MESSAGE_BYTES,
                    (long long)(mix->bytes / GHP_P2P_MESSAGE_BYTES + 1));
}

enum ghp_status ghp_mixer_open(const struct ghp_mixer_place *place, struct ghp_mixer **mixer)
{
    struct ghp_mixer *m;
    size_t each;

    *mixer = NULL;
    if (mix_of(place->program) == NULL) return GHP_OK;
    GHP_TRY(check_message(place, ops_of(place->program)));
    m = ghp_alloc(1, sizeof *m);
    if (m == NULL) return GHP_NO_MEMORY();
    m->place = *place;
    m->instr = mix_of(place->program);
    m->rank = place->program->rank;
    m->workers = place->program->problem.workers;
    m->servers = place->program->servers;
    m->terms = &place->program->mix;
    m->ops = ops_of(place->program);
    each = (size_t)(m->servers > 0 ? m->servers : m->workers);
    m->n_slots = m->ops->slots * (int)each + m->ops->other_slots + 1;
    m->slots = ghp_alloc((size_t)m->n_slots, sizeof *m->slots);
    m->own = ghp_alloc(1, m->ops->own_bytes + each * m->ops->own_bytes_each);
    place->numbers->sum_weight = place->program->mixing->whole_sum_weights ? 1 : 1.0 / m->workers;
    *mixer = m;
    if (m->slots == NULL || m->own == NULL) return GHP_NO_MEMORY();
    if (m->ops->prepare != NULL) m->ops->prepare(m);
    return GHP_OK;
}

enum ghp_status ghp_mixer_connect(struct ghp_mixer *m)
{
    struct ghp_p2p *p2p = m->place.exec->transport->p2p;
    double watchdog_s = m->place.exec->transport->control->watchdog_s;
    struct ghp_ranks workers = {.count = m->workers, .stride = 1};

    m->limit_s = watchdog_s * (m->servers > 0 ? GHP_SERVED_PATIENCE : 1);
    if (m->ops->in_step)
        GHP_TRY(ghp_collectives_group(m->place.exec->transport->host, workers, GHP_STREAM_COMPUTE,
                                      &m->world));
    else
        m->place.exec->transport->control->patience = GHP_WORKER_PATIENCE;
    return p2p->ops->open(p2p, m->n_slots, &m->channel);
}

static enum ghp_status carry(void *context, int job)
{
    struct ghp_mixer *m = context;
    struct ghp_backoff_wait wait = ghp_backoff_begin(&carrying);

    (void)job;
    while (!atomic_load(&m->halts)) {
        GHP_TRY(ghp_mixer_progress(m));
        ghp_backoff_pause(&wait);
    }
    return GHP_OK;
}

enum ghp_status ghp_mixer_begin(struct ghp_mixer *m, void *const *address)
{
    const struct ghp_bucket *bucket = &m->place.program->buckets[m->instr->bucket];
    int element_bytes = ghp_parameter_bytes(m->place.program->element_bytes);

    m->x =
        (struct ghp_flat){address[m->instr->at.y], m->instr->bytes / element_bytes, element_bytes};
    m->g = m->x;
    m->g.at = address[m->instr->at.x[0]];
    m->server_shard_bytes = m->servers > 0 ? bucket->server_shard_bytes : m->instr->bytes;
    for (int c = 0; c < m->place.program->mixing->copies; c++) {
        m->copies[c] = m->x;
        m->copies[c].at = (char *)address[m->instr->at.scratch] + c * m->instr->bytes;
        ghp_flat_clear(m->copies[c]);
    }
    return m->instr->mix.traffic.concurrent > 0 ? ghp_task_thread_open(2, carry, m, &m->thread)
                                                : GHP_OK;
}

/* ---- the thread ---- */

/* It stops; what is under way stays so. */
static enum ghp_status halt(struct ghp_mixer *m)
{
    if (m->ticket == 0) return GHP_OK;
    atomic_store(&m->halts, true);
    return ghp_task_thread_wait(m->thread, m->ticket);
}

/* Lets the thread continue during the step. */
static void go_on(struct ghp_mixer *m)
{
    if (m->thread == NULL) return;
    atomic_store(&m->halts, false);
    m->ticket = ghp_task_thread_post(m->thread, 0);
}

/* ---- between steps ---- */

enum ghp_status ghp_mixer_move(struct ghp_mixer *m, enum ghp_buffer_kind kind, bool receives)
{
    GHP_TRY(halt(m));
    return m->ops->move(m, kind, receives);
}

enum ghp_status ghp_mixer_start(struct ghp_mixer *m)
{
    GHP_TRY(halt(m));
    if (m->ops->start != NULL) GHP_TRY(m->ops->start(m));
    go_on(m);
    return GHP_OK;
}

enum ghp_status ghp_mixer_mix(struct ghp_mixer *m, const struct ghp_step *of)
{
    GHP_TRY(halt(m));
    GHP_TRY(m->ops->mix(m, of));
    m->count.mixes++;
    go_on(m);
    return GHP_OK;
}

enum ghp_status ghp_mixer_settle(struct ghp_mixer *m)
{
    GHP_TRY(halt(m));
    return m->ops->settle != NULL ? m->ops->settle(m) : GHP_OK;
}

void ghp_mixer_close(struct ghp_mixer *m)
{
    if (m == NULL) return;
    halt(m);
    ghp_task_thread_close(m->thread);
    if (m->channel != NULL) {
        if (m->ops->end != NULL) m->ops->end(m); /* or the watchdog ends the others */
        m->channel->ops->close(m->channel);
    }
    free(m->slots);
    free(m->own);
    free(m);
}

struct ghp_mix_count ghp_mixer_counted(struct ghp_mixer *m)
{
    struct ghp_mix_count count;
    bool goes_on;

    if (m == NULL) return (struct ghp_mix_count){0};
    goes_on = m->ticket != 0 && !atomic_load(&m->halts);
    halt(m); /* it counts, too; its failure is the next mix's */
    count = m->count;
    count.sum_weight = m->place.numbers->sum_weight;
    if (goes_on) go_on(m); /* others may wait for it */
    return count;
}

const struct ghp_mixer_hooks ghp_host_mixer = {.open = ghp_mixer_open,
                                               .connect = ghp_mixer_connect,
                                               .begin = ghp_mixer_begin,
                                               .close = ghp_mixer_close,
                                               .start = ghp_mixer_start,
                                               .mix = ghp_mixer_mix,
                                               .settle = ghp_mixer_settle,
                                               .move = ghp_mixer_move,
                                               .counted = ghp_mixer_counted};
