/* executor/mixing/mix_served.c - mixes with servers: asp, ssp, easgd, aladdin (executor/mixing/mixer.h). */
#include "executor/mixing/mixer_private.h"

/* The slots of each server: a header, what is pushed, X, and the answer that comes with it. */
enum { WORD, PUSH, X, ANSWER, SLOTS };

struct served {                   /* a mixer's own */
    bool gave_weights;            /* to the servers */
    struct ghp_mix_header header; /* under way */
    int64_t pulled, slowest; /* ssp: mixes when X was pulled; steps of the slowest worker then */
    struct ghp_mix_answer answers[]; /* of each server */
};

static int slot_of(const struct ghp_mixer *m, int kind, int server)
{
    return kind * m->servers + server;
}

/* To or from a server: what lies at `data`, or `data` has a shard for each. */
static struct ghp_p2p_message message_of(const struct ghp_mixer *m, int server,
                                         struct ghp_p2p_message all)
{
    all.peer = m->workers + server;
    if (all.bytes == 0) {
        all.data = (char *)all.data + server * m->server_shard_bytes;
        all.bytes = m->server_shard_bytes;
    }
    return all;
}

static enum ghp_status post_each(struct ghp_mixer *m, int kind, struct ghp_p2p_message all)
{
    for (int s = 0; s < m->servers; s++)
        GHP_TRY(ghp_mixer_post(m, slot_of(m, kind, s), message_of(m, s, all)));
    return GHP_OK;
}

/* Each server's shard of a flat array. */
static enum ghp_status push(struct ghp_mixer *m, const struct ghp_step *of, struct ghp_flat all,
                            bool pulls)
{
    struct served *own = m->own;

    GHP_TRY(ghp_mixer_wait(m, 0, 2 * m->servers, "sending"));
    own->header = (struct ghp_mix_header){
        .kind = GHP_MIX_PUSH, .pulls = pulls, .hyperparameters = of->hyperparameters};
    GHP_TRY(post_each(m, WORD,
                      (struct ghp_p2p_message){.data = &own->header,
                                               .bytes = sizeof own->header,
                                               .tag = GHP_MIX_TAG_WORD}));
    return post_each(m, PUSH, (struct ghp_p2p_message){.data = all.at, .tag = GHP_MIX_TAG_PUSH});
}

/* One server's shard of X, when it comes. */
static enum ghp_status expect(struct ghp_mixer *m, int server, struct ghp_flat all)
{
    struct served *own = m->own;
    struct ghp_p2p_message answer = {.data = &own->answers[server],
                                     .bytes = sizeof own->answers[server],
                                     .tag = GHP_MIX_TAG_ANSWER,
                                     .receives = true},
                           x = {.data = all.at, .tag = GHP_MIX_TAG_X, .receives = true};

    GHP_TRY(ghp_mixer_post(m, slot_of(m, ANSWER, server), message_of(m, server, answer)));
    return ghp_mixer_post(m, slot_of(m, X, server), message_of(m, server, x));
}

static enum ghp_status take_x(struct ghp_mixer *m)
{
    for (int s = 0; s < m->servers; s++)
        GHP_TRY(expect(m, s, m->x));
    return ghp_mixer_wait(m, 0, SLOTS * m->servers, "taking weights");
}

/* ---- between steps ---- */

/* A message to or from each server, one after the other. */
static enum ghp_status exchange(struct ghp_mixer *m, const char *label, struct ghp_p2p_message all)
{
    const struct ghp_server_messages messages = {.channel = m->channel,
                                                 .control = m->place.exec->transport->control,
                                                 .first_slot = m->n_slots - 1,
                                                 .limit_s = m->limit_s,
                                                 .label = label};

    for (int s = 0; s < m->servers; s++) {
        const struct ghp_p2p_message message = message_of(m, s, all);

        GHP_TRY(ghp_server_exchange(&messages, &message, 1));
    }
    return GHP_OK;
}

static enum ghp_status tell(struct ghp_mixer *m, struct ghp_mix_header header)
{
    return exchange(
        m, "telling the servers",
        (struct ghp_p2p_message){.data = &header, .bytes = sizeof header, .tag = GHP_MIX_TAG_WORD});
}

static enum ghp_status move_tensor(struct ghp_mixer *m, enum ghp_buffer_kind kind, bool receives)
{
    GHP_TRY(tell(m, (struct ghp_mix_header){.kind = receives ? GHP_MIX_READ : GHP_MIX_WRITE,
                                            .tensor = kind}));
    return exchange(m, "tensors of servers",
                    (struct ghp_p2p_message){.data = kind == GHP_BUFFER_WEIGHT ? m->x.at : m->g.at,
                                             .tag = GHP_MIX_TAG_TENSOR,
                                             .receives = receives});
}

/* Servers begin with a worker's weights. */
static enum ghp_status give_first(struct ghp_mixer *m)
{
    struct served *own = m->own;

    if (own->gave_weights) return GHP_OK;
    own->gave_weights = true;
    return move_tensor(m, GHP_BUFFER_WEIGHT, false);
}

static enum ghp_status move(struct ghp_mixer *m, enum ghp_buffer_kind kind, bool receives)
{
    struct served *own = m->own;

    if (receives) GHP_TRY(give_first(m));
    if (!receives && kind == GHP_BUFFER_WEIGHT) own->gave_weights = true;
    return move_tensor(m, kind, receives);
}

/* A message that waits to be received stays: it is the other side's to send. */
static enum ghp_status settle(struct ghp_mixer *m)
{
    const struct served *own = m->own;
    int number;

    if (!own->gave_weights) return GHP_OK;
    GHP_TRY(ghp_mixer_wait(m, 0, 2 * m->servers, "sending"));
    GHP_TRY(tell(m, (struct ghp_mix_header){.kind = GHP_MIX_SETTLE}));
    return exchange(
        m, "settling with the servers",
        (struct ghp_p2p_message){
            .data = &number, .bytes = sizeof(number), .tag = GHP_MIX_TAG_TENSOR, .receives = true});
}

static enum ghp_status end(struct ghp_mixer *m)
{
    GHP_TRY(ghp_mixer_wait(m, 0, 2 * m->servers, "sending"));
    return tell(m, (struct ghp_mix_header){.kind = GHP_MIX_END});
}

/* What they all have. */
#define SERVED                                                                                     \
    .slots = SLOTS, .own_bytes = sizeof(struct served),                                            \
    .own_bytes_each = sizeof(struct ghp_mix_answer), .settle = settle, .move = move

/* ---- asp ---- */

static enum ghp_status mix_asp(struct ghp_mixer *m, const struct ghp_step *of)
{
    GHP_TRY(push(m, of, m->g, true));
    return take_x(m);
}

const struct ghp_mixer_ops ghp_mixer_asp = {SERVED, .name = "asp", .start = give_first,
                                            .mix = mix_asp, .end = end};

/* ---- ssp ---- */

/* Whether training may still continue from x: at most S steps since it was pulled, and by the clock of the slowest
 * worker. */
static bool is_fresh(const struct ghp_mixer *m, int64_t clock)
{
    const struct served *own = m->own;
    int64_t s = m->terms->argument;

    return clock - own->pulled <= s && (m->terms->other || own->slowest >= clock - s);
}

static enum ghp_status mix_ssp(struct ghp_mixer *m, const struct ghp_step *of)
{
    struct served *own = m->own;
    int64_t clock = m->count.mixes + 1;
    bool pulls = !is_fresh(m, clock);

    GHP_TRY(ghp_mixer_wait(m, 0, 2 * m->servers, "sending")); /* what is sent lies in the copy */
    ghp_flat_copy(m->copies[0], m->g);
    GHP_TRY(push(m, of, m->copies[0], pulls));
    if (!pulls) return GHP_OK;
    GHP_TRY(take_x(m));
    own->pulled = clock;
    own->slowest = own->answers[0].slowest;
    for (int s = 1; s < m->servers; s++)
        if (own->answers[s].slowest < own->slowest) own->slowest = own->answers[s].slowest;
    return GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_ssp = {SERVED, .name = "ssp", .start = give_first,
                                            .mix = mix_ssp, .end = end};

/* ---- easgd ---- */

static enum ghp_status mix_easgd(struct ghp_mixer *m, const struct ghp_step *of)
{
    if ((m->count.mixes + 1) % m->terms->argument != 0) return GHP_OK;
    GHP_TRY(push(m, of, m->x, true));
    GHP_TRY(ghp_mixer_wait(m, 0, 2 * m->servers, "sending")); /* it comes back to the same place */
    return take_x(m);
}

const struct ghp_mixer_ops ghp_mixer_easgd = {SERVED, .name = "easgd", .start = give_first,
                                              .mix = mix_easgd, .end = end};

/* ---- aladdin ---- */

enum { BEFORE, SENT, RECEIVED }; /* copies */

static struct ghp_flat part_of(const struct ghp_mixer *m, struct ghp_flat all, int server)
{
    all.n = m->server_shard_bytes / all.element_bytes;
    all.at = (char *)all.at + server * m->server_shard_bytes;
    return all;
}

static bool has_come(const struct ghp_mixer *m, int server)
{
    return !m->slots[slot_of(m, X, server)].open && !m->slots[slot_of(m, ANSWER, server)].open;
}

/* X of each server that has come, again. */
static enum ghp_status expect_again(struct ghp_mixer *m)
{
    const struct served *own = m->own;

    for (int s = 0; s < m->servers; s++)
        if (has_come(m, s) && !(own->answers[s].alpha < 0))
            GHP_TRY(expect(m, s, m->copies[RECEIVED]));
    return GHP_OK;
}

/* What came since the last mix is left for the next one. */
static enum ghp_status start_aladdin(struct ghp_mixer *m)
{
    GHP_TRY(give_first(m));
    ghp_flat_copy(m->copies[BEFORE], m->x);
    return m->count.mixes == 0 ? expect_again(m) : GHP_OK;
}

/* One server's X came while the step was made, so it lacks that step: what x was before is drawn to it, and the step
 * taken from there. Drawn itself, it would count by 1 - alpha here, and whole in the servers' sum. */
static void draw(struct ghp_mixer *m, int server)
{
    const struct served *own = m->own;
    struct ghp_flat x = part_of(m, m->x, server), before = part_of(m, m->copies[BEFORE], server);

    ghp_flat_pull(before, own->answers[server].alpha, part_of(m, m->copies[RECEIVED], server));
    ghp_flat_subtract(x, before, part_of(m, m->copies[SENT], server));
}

/* What has come is taken; then the step that x has taken since the last mix goes. */
static enum ghp_status mix_aladdin(struct ghp_mixer *m, const struct ghp_step *of)
{
    GHP_TRY(ghp_mixer_wait(m, 0, 2 * m->servers, "sending"));
    ghp_flat_subtract(m->copies[SENT], m->copies[BEFORE], m->x);
    GHP_TRY(ghp_mixer_progress(m));
    for (int s = 0; s < m->servers; s++)
        if (has_come(m, s)) draw(m, s);
    GHP_TRY(expect_again(m));
    ghp_flat_copy(m->copies[BEFORE], m->x);
    return push(m, of, m->copies[SENT], false);
}

/* The servers send X once more, to the receive that waits for it. */
static enum ghp_status end_aladdin(struct ghp_mixer *m)
{
    const struct served *own = m->own;

    GHP_TRY(end(m));
    for (bool last = m->x.at == NULL; !last;) {
        GHP_TRY(ghp_mixer_wait(m, 0, m->n_slots - 1, "ending"));
        last = true;
        for (int s = 0; s < m->servers; s++)
            last = last && own->answers[s].alpha < 0;
        if (!last) GHP_TRY(expect_again(m));
    }
    return GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_aladdin = {SERVED, .name = "aladdin", .start = start_aladdin,
                                                .mix = mix_aladdin, .end = end_aladdin};
