/* executor/mixing/mix_served.c - mixes with servers: asp, ssp, easgd, aladdin (executor/mixing/mixer.h). */
#include "executor/mixing/mixer_private.h"

/* Of each server: a header, what is pushed, X, the answer beside it. */
enum { WORD, PUSH, X, ANSWER, SLOTS };

static int slot_of(const struct ghp_mixer *m, int kind, int server)
{
    return kind * m->servers + server;
}

static enum ghp_status send_headers(struct ghp_mixer *m, struct ghp_mix_header header)
{
    GHP_TRY(ghp_mixer_wait(m, 0, 2 * m->servers, "sending"));
    m->header = header;
    for (int s = 0; s < m->servers; s++)
        GHP_TRY(ghp_mixer_post(m, slot_of(m, WORD, s),
                               (struct ghp_p2p_message){.data = &m->header,
                                                        .bytes = sizeof m->header,
                                                        .peer = m->workers + s,
                                                        .tag = GHP_MIX_TAG_WORD}));
    return GHP_OK;
}

/* Each server's cut of a flat array. */
static enum ghp_status push(struct ghp_mixer *m, const struct ghp_step *of, struct ghp_flat all,
                            bool pulls)
{
    GHP_TRY(send_headers(m, (struct ghp_mix_header){.kind = GHP_MIX_PUSH,
                                                    .pulls = pulls,
                                                    .hyperparameters = of->hyperparameters}));
    for (int s = 0; s < m->servers; s++)
        GHP_TRY(ghp_mixer_post(m, slot_of(m, PUSH, s),
                               (struct ghp_p2p_message){.data = (char *)all.at + s * m->cut_bytes,
                                                        .bytes = m->cut_bytes,
                                                        .peer = m->workers + s,
                                                        .tag = GHP_MIX_TAG_PUSH}));
    return GHP_OK;
}

/* One server's cut of X, when it comes. */
static enum ghp_status expect(struct ghp_mixer *m, int server, struct ghp_flat all)
{
    GHP_TRY(ghp_mixer_post(m, slot_of(m, ANSWER, server),
                           (struct ghp_p2p_message){.data = &m->answers[server],
                                                    .bytes = sizeof m->answers[server],
                                                    .peer = m->workers + server,
                                                    .tag = GHP_MIX_TAG_ANSWER,
                                                    .receives = true}));
    return ghp_mixer_post(m, slot_of(m, X, server),
                          (struct ghp_p2p_message){.data = (char *)all.at + server * m->cut_bytes,
                                                   .bytes = m->cut_bytes,
                                                   .peer = m->workers + server,
                                                   .tag = GHP_MIX_TAG_X,
                                                   .receives = true});
}

static enum ghp_status take_x(struct ghp_mixer *m)
{
    for (int s = 0; s < m->servers; s++)
        GHP_TRY(expect(m, s, m->x));
    return ghp_mixer_wait(m, 0, SLOTS * m->servers, "taking weights");
}

/* ---- asp ---- */

static enum ghp_status mix_asp(struct ghp_mixer *m, const struct ghp_step *of)
{
    GHP_TRY(push(m, of, m->g, true));
    return take_x(m);
}

const struct ghp_mixer_ops ghp_mixer_asp = {.sync = &ghp_sync_asp, .slots = SLOTS, .mix = mix_asp};

/* ---- ssp ---- */

/* Whether x may still be gone on from: at most S steps since it was pulled, and by the clock of the slowest worker. */
static bool is_fresh(const struct ghp_mixer *m, int64_t clock)
{
    int64_t s = m->place.program->scheme.argument;

    return clock - m->pulled <= s && (m->place.program->scheme.other || m->slowest >= clock - s);
}

static enum ghp_status mix_ssp(struct ghp_mixer *m, const struct ghp_step *of)
{
    int64_t clock = m->count.mixes + 1;
    bool pulls = !is_fresh(m, clock);

    GHP_TRY(ghp_mixer_wait(m, 0, 2 * m->servers, "sending")); /* what is sent lies in the copy */
    ghp_flat_copy(m->copies[0], m->g);
    GHP_TRY(push(m, of, m->copies[0], pulls));
    if (!pulls) return GHP_OK;
    GHP_TRY(take_x(m));
    m->pulled = clock;
    m->slowest = m->answers[0].slowest;
    for (int s = 1; s < m->servers; s++)
        if (m->answers[s].slowest < m->slowest) m->slowest = m->answers[s].slowest;
    return GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_ssp = {.sync = &ghp_sync_ssp, .slots = SLOTS, .mix = mix_ssp};

/* ---- easgd ---- */

static enum ghp_status mix_easgd(struct ghp_mixer *m, const struct ghp_step *of)
{
    if ((m->count.mixes + 1) % m->place.program->scheme.argument != 0) return GHP_OK;
    GHP_TRY(push(m, of, m->x, true));
    GHP_TRY(ghp_mixer_wait(m, 0, 2 * m->servers, "sending")); /* it comes back to the same place */
    return take_x(m);
}

const struct ghp_mixer_ops ghp_mixer_easgd = {
    .sync = &ghp_sync_easgd, .slots = SLOTS, .mix = mix_easgd};

/* ---- aladdin ---- */

enum { BEFORE, SENT, RECEIVED }; /* copies */

static struct ghp_flat part_of(const struct ghp_mixer *m, struct ghp_flat all, int server)
{
    all.n = m->cut_bytes / all.element_bytes;
    all.at = (char *)all.at + server * m->cut_bytes;
    return all;
}

static bool has_come(const struct ghp_mixer *m, int server)
{
    return !m->slots[slot_of(m, X, server)].open && !m->slots[slot_of(m, ANSWER, server)].open;
}

enum ghp_status ghp_mixer_expect_again(struct ghp_mixer *m)
{
    for (int s = 0; s < m->servers; s++)
        if (has_come(m, s) && !(m->answers[s].alpha < 0))
            GHP_TRY(expect(m, s, m->copies[RECEIVED]));
    return GHP_OK;
}

/* What came since the last mix is left for the next one. */
static enum ghp_status start_aladdin(struct ghp_mixer *m)
{
    ghp_flat_copy(m->copies[BEFORE], m->x);
    return m->count.mixes == 0 ? ghp_mixer_expect_again(m) : GHP_OK;
}

/* One server's X came while the step was made, so it lacks that step: what x was before is drawn to it, and the step
 * taken from there. Drawn itself, it would count by 1 - alpha here, and whole in the servers' sum. */
static void draw(struct ghp_mixer *m, int server)
{
    struct ghp_flat x = part_of(m, m->x, server), before = part_of(m, m->copies[BEFORE], server);

    ghp_flat_pull(before, m->answers[server].alpha, part_of(m, m->copies[RECEIVED], server));
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
    GHP_TRY(ghp_mixer_expect_again(m));
    ghp_flat_copy(m->copies[BEFORE], m->x);
    return push(m, of, m->copies[SENT], false);
}

const struct ghp_mixer_ops ghp_mixer_aladdin = {
    .sync = &ghp_sync_aladdin, .slots = SLOTS, .start = start_aladdin, .mix = mix_aladdin};
