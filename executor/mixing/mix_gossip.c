/* executor/mixing/mix_gossip.c - mixes of one worker's weights with another one's: gosgd, ad-psgd
 * (executor/mixing/mixer.h).
 *
 * Who is chosen is drawn by seed, rank and step, so that chance is the same in every training; what time decides is
 * not.
 *
 * Source   gosgd: Blot et al., arXiv 1804.01852; ad-psgd: Lian et al., ICML 2018 */
#include "executor/mixing/mixer_private.h"

#include "executor/platform/random.h"

/* Of these draws alone. */
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

static bool has(const struct ghp_mixer *m, enum ghp_fault fault)
{
    return m->place.run->fault == fault;
}

static bool is_under_way(const struct ghp_mixer *m, int kind)
{
    return m->slots[ghp_mixer_whole_slot(m, kind)].open;
}

/* ---- gosgd ---- */

enum {
    SENT,
    ARRIVING,
    HELD
}; /* copies; held: the mean of what has arrived since the last mix, by shares */

/* x becomes the mean of x and y, whose share is `share`. */
static void average_in(struct ghp_flat x, double *of_x, struct ghp_flat y, double share)
{
    double sum = *of_x + share;

    if (*of_x > 0)
        ghp_flat_pull(x, share / sum, y);
    else
        ghp_flat_copy(x, y);
    *of_x = sum;
}

static enum ghp_status carry_gosgd(struct ghp_mixer *m)
{
    if (m->from >= 0 && !is_under_way(m, GHP_MIXER_TAKEN)) {
        double share = m->partners[m->from].heard.share;

        average_in(m->copies[HELD], &m->held_share, m->copies[ARRIVING], share);
        GHP_TRY(ghp_mixer_listen_to(m, m->from));
        m->from = -1;
    }
    if (m->from >= 0) return GHP_OK;
    m->from = ghp_mixer_heard(m);
    return m->from < 0 ? GHP_OK : ghp_mixer_take_weights(m, m->from, m->copies[ARRIVING]);
}

static void take_held(struct ghp_mixer *m)
{
    if (!(m->held_share > 0)) return;
    m->count.taken_share += m->held_share;
    if (has(m, GHP_FAULT_NO_MIXING))
        m->count.share += m->held_share;
    else
        average_in(m->x, &m->count.share, m->copies[HELD], m->held_share);
    m->held_share = 0;
}

static enum ghp_status send_half(struct ghp_mixer *m, int to)
{
    m->count.share /= 2;
    if (has(m, GHP_FAULT_DROP_REDUCTION)) return GHP_OK;
    GHP_TRY(ghp_mixer_wait(m, ghp_mixer_whole_slot(m, GHP_MIXER_SENT), 1, "sending weights"));
    ghp_flat_copy(m->copies[SENT], m->x);
    GHP_TRY(ghp_mixer_say(
        m, to, (struct ghp_mix_hello){.kind = GHP_MIX_HELLO_WEIGHTS, .share = m->count.share}));
    m->count.sent_share += m->count.share;
    return ghp_mixer_send_weights(m, to, m->copies[SENT]);
}

static enum ghp_status mix_gosgd(struct ghp_mixer *m, const struct ghp_step *of)
{
    double chance = (double)m->place.program->scheme.argument / GHP_SYNC_SURE;
    int to = draw_one(m, of, m->workers - 1);

    if (ghp_random_unit(seed_of(m), DRAWS * (uint64_t)m->rank + WHETHER, of->index) < chance)
        GHP_TRY(send_half(m, to < m->rank ? to : to + 1));
    GHP_TRY(ghp_mixer_progress(m));
    take_held(m);
    return GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_gosgd = {.sync = &ghp_sync_gosgd,
                                              .slots = GHP_MIXER_PEER_SLOTS,
                                              .other_slots = GHP_MIXER_WHOLE_SLOTS,
                                              .has_share = true,
                                              .mix = mix_gosgd,
                                              .carry = carry_gosgd,
                                              .take = take_held};

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
    m->from = with;
    ghp_flat_copy(m->copies[AS_SENT], m->copies[OWN]);
    GHP_TRY(ghp_mixer_send_weights(m, with, m->copies[AS_SENT]));
    return ghp_mixer_take_weights(m, with, m->copies[OTHER]);
}

/* An exchange that is done; a passive worker begins the next one that it is asked for. */
static enum ghp_status carry_ad_psgd(struct ghp_mixer *m)
{
    if (m->from >= 0 && !is_under_way(m, GHP_MIXER_SENT) && !is_under_way(m, GHP_MIXER_TAKEN)) {
        if (is_passive(m) || !has(m, GHP_FAULT_DROP_REDUCTION))
            ghp_flat_meet(m->copies[OWN], m->copies[MOVED], m->copies[AS_SENT], m->copies[OTHER]);
        if (is_passive(m)) GHP_TRY(ghp_mixer_listen_to(m, m->from));
        m->from = -1;
    }
    if (m->from < 0) {
        int asks = ghp_mixer_heard(m);

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
    take_moved(m);
    return GHP_OK;
}

static enum ghp_status mix_ad_psgd(struct ghp_mixer *m, const struct ghp_step *of)
{
    int with = 2 * draw_one(m, of, (m->workers + 1) / 2);
    bool asks = !is_passive(m) && !has(m, GHP_FAULT_NO_MIXING);

    if (asks)
        GHP_TRY(ghp_mixer_wait(m, ghp_mixer_whole_slot(m, 0), GHP_MIXER_WHOLE_SLOTS, "exchanging"));
    take_moved(m);
    if (!asks) return GHP_OK;
    GHP_TRY(ghp_mixer_say(m, with, (struct ghp_mix_hello){.kind = GHP_MIX_HELLO_WEIGHTS}));
    return exchange(m, with);
}

const struct ghp_mixer_ops ghp_mixer_ad_psgd = {.sync = &ghp_sync_ad_psgd,
                                                .slots = GHP_MIXER_PEER_SLOTS,
                                                .other_slots = GHP_MIXER_WHOLE_SLOTS,
                                                .start = start_ad_psgd,
                                                .mix = mix_ad_psgd,
                                                .carry = carry_ad_psgd,
                                                .take = take_moved};
