/* executor/mixing/mix_gossip.c - mixes of one worker's weights with another one's: gosgd, ad-psgd
 * (executor/mixing/mixer.h).
 *
 * A worker listens to all others. Before it sends weights it says so, in a small message, so that the other can take
 * them when it has room, one after the other. When all meet, each says so to all others: then nothing is under way.
 *
 * Who is chosen is drawn by seed, rank and step, so that chance is the same in every training; what time decides is
 * not.
 *
 * Source   gosgd: Blot et al., arXiv 1804.01852; ad-psgd: Lian et al., ICML 2018 */
#include "executor/mixing/mixer_private.h"

#include "executor/platform/random.h"

enum { HEARD, SAID, PEER_SLOTS };              /* of each worker */
enum { SENT_WHOLE, TAKEN_WHOLE, WHOLE_SLOTS }; /* after these: of weights */

enum hello_kind {
    HELLO_WEIGHTS, /* weights follow, to be taken, or to be answered by others */
    HELLO_MET      /* nothing follows until all have met */
};

struct hello {         /* from a worker to another one */
    int64_t kind;      /* enum hello_kind */
    double sum_weight; /* gosgd: of the weights that follow */
};

struct partner { /* what a worker has to do with another one */
    struct hello heard, said;
    bool listens; /* for its next hello */
    bool waits;   /* it said that weights follow, which nobody has taken */
    bool met;
};

struct gossip {   /* a mixer's own */
    bool listens; /* to all partners */
    int last_heard;
    struct partner *from;      /* whose weights arrive; NULL: nobody's */
    double held_sum_weight;    /* gosgd: of what has arrived and is not in x */
    struct partner partners[]; /* of each worker */
};

/* The key of these draws alone. */
static const uint64_t key = UINT64_C(0x676f73736970);

enum { WHETHER, WITH_WHOM, DRAWS }; /* streams of each rank */

static uint64_t seed_of(const struct ghp_mixer *m)
{
    return m->place.run->seed ^ key;
}

/* A number below n. */
static int draw_one(const struct ghp_mixer *m, const struct ghp_step *of, int n)
{
    uint64_t stream = DRAWS * (uint64_t)m->rank + WITH_WHOM;

    return (int)(ghp_random_u64(seed_of(m), stream, of->index) % (uint64_t)n);
}

/* ---- messages ---- */

static int peer_slot(const struct ghp_mixer *m, int kind, int worker)
{
    return kind * m->workers + worker;
}

static int whole_slot(const struct ghp_mixer *m, int kind)
{
    return PEER_SLOTS * m->workers + kind;
}

static enum ghp_status listen_to(struct ghp_mixer *m, int worker)
{
    struct gossip *own = m->own;

    own->partners[worker].listens = true;
    return ghp_mixer_post(m, peer_slot(m, HEARD, worker),
                          (struct ghp_p2p_message){.data = &own->partners[worker].heard,
                                                   .bytes = sizeof own->partners[worker].heard,
                                                   .peer = worker,
                                                   .tag = GHP_MIX_TAG_WORD,
                                                   .receives = true});
}

static enum ghp_status listen(struct ghp_mixer *m)
{
    struct gossip *own = m->own;

    if (own->listens) return GHP_OK;
    own->listens = true;
    for (int i = 0; i < m->workers; i++)
        if (i != m->rank) GHP_TRY(listen_to(m, i));
    return GHP_OK;
}

/* Notes what the others have said since the last time. Returns a worker that said that weights follow, each in turn,
 * and listens to it no more; -1: none. */
static int next_heard(struct ghp_mixer *m)
{
    struct gossip *own = m->own;

    for (int i = 0; i < m->workers; i++) {
        struct partner *p = &own->partners[i];

        if (!p->listens || m->slots[peer_slot(m, HEARD, i)].open) continue;
        p->listens = false;
        p->waits = p->heard.kind == HELLO_WEIGHTS;
        p->met = !p->waits;
    }
    for (int k = 1; k <= m->workers; k++) {
        int i = (own->last_heard + k) % m->workers;

        if (!own->partners[i].waits) continue;
        own->partners[i].waits = false;
        own->last_heard = i;
        return i;
    }
    return -1;
}

static enum ghp_status say(struct ghp_mixer *m, int worker, struct hello hello)
{
    struct gossip *own = m->own;
    int slot = peer_slot(m, SAID, worker);

    GHP_TRY(ghp_mixer_wait(m, slot, 1, "sending"));
    own->partners[worker].said = hello;
    return ghp_mixer_post(m, slot,
                          (struct ghp_p2p_message){.data = &own->partners[worker].said,
                                                   .bytes = sizeof own->partners[worker].said,
                                                   .peer = worker,
                                                   .tag = GHP_MIX_TAG_WORD});
}

/* All weights: a worker's come to `all`, or go to it from there. */
static enum ghp_status move_weights(struct ghp_mixer *m, int worker, struct ghp_flat all,
                                    bool receives)
{
    if (!receives) m->count.exchanges++;
    return ghp_mixer_post(m, whole_slot(m, receives ? TAKEN_WHOLE : SENT_WHOLE),
                          (struct ghp_p2p_message){.data = all.at,
                                                   .bytes = m->server_shard_bytes,
                                                   .peer = worker,
                                                   .tag = GHP_MIX_TAG_X,
                                                   .receives = receives});
}

/* ---- meeting ---- */

static bool is_under_way(const struct ghp_mixer *m, int kind)
{
    return m->slots[whole_slot(m, kind)].open;
}

/* Everybody has said that nothing follows, and all that was said before is taken. */
static bool have_met(const struct ghp_mixer *m, const struct ghp_mixer_awaited *a)
{
    struct gossip *own = m->own;

    for (int i = 0; i < m->workers; i++)
        if (i != m->rank && !own->partners[i].met) return false;
    for (int i = a->first; i < a->first + a->n; i++)
        if (m->slots[i].open) return false;
    return own->from == NULL;
}

/* All that anybody has sent is there. Collective over all workers. */
static enum ghp_status meet(struct ghp_mixer *m)
{
    struct gossip *own = m->own;
    const struct ghp_mixer_awaited all = {have_met, 0, m->n_slots, "meeting"};
    double waited_s = m->count.waited_s;

    GHP_TRY(listen(m));
    GHP_TRY(ghp_mixer_wait(m, whole_slot(m, 0), WHOLE_SLOTS, "sending"));
    for (int i = 0; i < m->workers; i++)
        if (i != m->rank) GHP_TRY(say(m, i, (struct hello){.kind = HELLO_MET}));
    GHP_TRY(ghp_mixer_wait_for(m, &all));
    m->count.waited_s = waited_s; /* for no step */
    own->listens = false;
    for (int i = 0; i < m->workers; i++)
        own->partners[i].met = false;
    return GHP_OK;
}

static enum ghp_status end(struct ghp_mixer *m)
{
    struct gossip *own = m->own;

    return own->listens ? meet(m) : GHP_OK;
}

/* ---- gosgd ---- */

enum {
    SENT,
    ARRIVING,
    HELD
}; /* copies; held: the mean of what has arrived since the last mix, by sum weights */

/* x becomes the mean of x and y, whose share is `share`. */
static void average_in(struct ghp_flat x, double *of_x, struct ghp_flat y, double sum_weight)
{
    double sum = *of_x + sum_weight;

    if (*of_x > 0)
        ghp_flat_pull(x, sum_weight / sum, y);
    else
        ghp_flat_copy(x, y);
    *of_x = sum;
}

static enum ghp_status carry_gosgd(struct ghp_mixer *m)
{
    struct gossip *own = m->own;
    int from;

    if (own->from != NULL && !is_under_way(m, TAKEN_WHOLE)) {
        average_in(m->copies[HELD], &own->held_sum_weight, m->copies[ARRIVING],
                   own->from->heard.sum_weight);
        GHP_TRY(listen_to(m, (int)(own->from - own->partners)));
        own->from = NULL;
    }
    from = own->from == NULL ? next_heard(m) : -1;
    if (from < 0) return GHP_OK;
    own->from = &own->partners[from];
    return move_weights(m, from, m->copies[ARRIVING], true);
}

static void take_held(struct ghp_mixer *m)
{
    struct gossip *own = m->own;

    if (!(own->held_sum_weight > 0)) return;
    m->count.taken_sum_weight += own->held_sum_weight;
    if (ghp_mixer_has(m, GHP_FAULT_NO_MIXING))
        m->place.numbers->sum_weight += own->held_sum_weight;
    else
        average_in(m->x, &m->place.numbers->sum_weight, m->copies[HELD], own->held_sum_weight);
    own->held_sum_weight = 0;
}

static enum ghp_status send_half(struct ghp_mixer *m, int to)
{
    m->place.numbers->sum_weight /= 2;
    if (ghp_mixer_has(m, GHP_FAULT_DROP_REDUCTION)) return GHP_OK;
    GHP_TRY(ghp_mixer_wait(m, whole_slot(m, SENT_WHOLE), 1, "sending weights"));
    ghp_flat_copy(m->copies[SENT], m->x);
    GHP_TRY(say(m, to,
                (struct hello){.kind = HELLO_WEIGHTS, .sum_weight = m->place.numbers->sum_weight}));
    m->count.sent_sum_weight += m->place.numbers->sum_weight;
    return move_weights(m, to, m->copies[SENT], false);
}

static enum ghp_status mix_gosgd(struct ghp_mixer *m, const struct ghp_step *of)
{
    int to = draw_one(m, of, m->workers - 1);

    if (ghp_random_unit(seed_of(m), DRAWS * (uint64_t)m->rank + WHETHER, of->index) <
        m->terms->chance)
        GHP_TRY(send_half(m, to < m->rank ? to : to + 1));
    GHP_TRY(ghp_mixer_progress(m));
    take_held(m);
    return GHP_OK;
}

static enum ghp_status settle_gosgd(struct ghp_mixer *m)
{
    GHP_TRY(meet(m));
    take_held(m);
    return listen(m);
}

const struct ghp_mixer_ops ghp_mixer_gosgd = {.name = "gosgd",
                                              .slots = PEER_SLOTS,
                                              .other_slots = WHOLE_SLOTS,
                                              .own_bytes = sizeof(struct gossip),
                                              .own_bytes_each = sizeof(struct partner),

                                              .start = listen,
                                              .mix = mix_gosgd,
                                              .carry = carry_gosgd,
                                              .settle = settle_gosgd,
                                              .end = end};

/* ---- ad-psgd ---- */

/* Copies. OWN is what exchanges have of x: they move it, and MOVED, while a step reads and changes x; a mix adds what
 * MOVED came to. */
enum { OWN, MOVED, AS_SENT, OTHER };

static bool is_passive(const struct ghp_mixer *m)
{
    return m->rank % 2 == 0;
}

static enum ghp_status exchange(struct ghp_mixer *m, int with)
{
    struct gossip *own = m->own;

    own->from = &own->partners[with];
    ghp_flat_copy(m->copies[AS_SENT], m->copies[OWN]);
    GHP_TRY(move_weights(m, with, m->copies[AS_SENT], false));
    return move_weights(m, with, m->copies[OTHER], true);
}

/* An exchange that is done; a passive worker begins the next one that it is asked for. */
static enum ghp_status carry_ad_psgd(struct ghp_mixer *m)
{
    struct gossip *own = m->own;

    if (own->from != NULL && !is_under_way(m, SENT_WHOLE) && !is_under_way(m, TAKEN_WHOLE)) {
        if (is_passive(m) || !ghp_mixer_has(m, GHP_FAULT_DROP_REDUCTION))
            ghp_flat_meet(m->copies[OWN], m->copies[MOVED], m->copies[AS_SENT], m->copies[OTHER]);
        if (is_passive(m)) GHP_TRY(listen_to(m, (int)(own->from - own->partners)));
        own->from = NULL;
    }
    if (own->from == NULL) {
        int asks = next_heard(m);

        if (asks >= 0) return exchange(m, asks);
    }
    return GHP_OK;
}

static void take_moved(struct ghp_mixer *m)
{
    ghp_flat_add(m->x, 1, m->copies[MOVED]);
    ghp_flat_clear(m->copies[MOVED]);
    ghp_flat_copy(m->copies[OWN], m->x);
}

static enum ghp_status start_ad_psgd(struct ghp_mixer *m)
{
    GHP_TRY(listen(m));
    take_moved(m);
    return GHP_OK;
}

static enum ghp_status settle_ad_psgd(struct ghp_mixer *m)
{
    GHP_TRY(meet(m));
    take_moved(m);
    return listen(m);
}

static enum ghp_status mix_ad_psgd(struct ghp_mixer *m, const struct ghp_step *of)
{
    int with = 2 * draw_one(m, of, (m->workers + 1) / 2);
    bool asks = !is_passive(m) && !ghp_mixer_has(m, GHP_FAULT_NO_MIXING);

    if (asks) GHP_TRY(ghp_mixer_wait(m, whole_slot(m, 0), WHOLE_SLOTS, "exchanging"));
    take_moved(m);
    if (!asks) return GHP_OK;
    GHP_TRY(say(m, with, (struct hello){.kind = HELLO_WEIGHTS}));
    return exchange(m, with);
}

const struct ghp_mixer_ops ghp_mixer_ad_psgd = {.name = "ad-psgd",
                                                .slots = PEER_SLOTS,
                                                .other_slots = WHOLE_SLOTS,
                                                .own_bytes = sizeof(struct gossip),
                                                .own_bytes_each = sizeof(struct partner),

                                                .start = start_ad_psgd,
                                                .mix = mix_ad_psgd,
                                                .carry = carry_ad_psgd,
                                                .settle = settle_ad_psgd,
                                                .end = end};
