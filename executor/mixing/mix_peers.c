/* executor/mixing/mix_peers.c - messages of mixes between workers (executor/mixing/mixer.h).
 *
 * A worker listens to all others. Before it sends weights it says so, in a small message; so that who hears it can take
 * them when it has room, one after the other. Where all meet each says so to all others: then nothing is under way. */
#include "executor/mixing/mixer_private.h"

int ghp_mixer_peer_slot(const struct ghp_mixer *m, int kind, int worker)
{
    return kind * m->workers + worker;
}

int ghp_mixer_whole_slot(const struct ghp_mixer *m, int kind)
{
    return GHP_MIXER_PEER_SLOTS * m->workers + kind;
}

enum ghp_status ghp_mixer_listen_to(struct ghp_mixer *m, int worker)
{
    m->partners[worker].listens = true;
    return ghp_mixer_post(m, ghp_mixer_peer_slot(m, GHP_MIXER_HEARD, worker),
                          (struct ghp_p2p_message){.data = &m->partners[worker].heard,
                                                   .bytes = sizeof m->partners[worker].heard,
                                                   .peer = worker,
                                                   .tag = GHP_MIX_TAG_WORD,
                                                   .receives = true});
}

enum ghp_status ghp_mixer_listen(struct ghp_mixer *m)
{
    m->listens = true;
    for (int i = 0; i < m->workers; i++)
        if (i != m->rank) GHP_TRY(ghp_mixer_listen_to(m, i));
    return GHP_OK;
}

/* What the others have said since the last time. */
static void note_hellos(struct ghp_mixer *m)
{
    for (int i = 0; i < m->workers; i++) {
        struct ghp_mix_partner *p = &m->partners[i];

        if (!p->listens || m->slots[ghp_mixer_peer_slot(m, GHP_MIXER_HEARD, i)].open) continue;
        p->listens = false;
        if (p->heard.kind == GHP_MIX_HELLO_WEIGHTS)
            p->waits = true;
        else
            p->met = true;
    }
}

int ghp_mixer_heard(struct ghp_mixer *m)
{
    note_hellos(m);
    for (int k = 1; k <= m->workers; k++) {
        int i = (m->last_heard + k) % m->workers;

        if (!m->partners[i].waits) continue;
        m->partners[i].waits = false;
        m->last_heard = i;
        return i;
    }
    return -1;
}

enum ghp_status ghp_mixer_say(struct ghp_mixer *m, int worker, struct ghp_mix_hello hello)
{
    int slot = ghp_mixer_peer_slot(m, GHP_MIXER_SAID, worker);

    GHP_TRY(ghp_mixer_wait(m, slot, 1, "sending"));
    m->partners[worker].said = hello;
    return ghp_mixer_post(m, slot,
                          (struct ghp_p2p_message){.data = &m->partners[worker].said,
                                                   .bytes = sizeof m->partners[worker].said,
                                                   .peer = worker,
                                                   .tag = GHP_MIX_TAG_WORD});
}

static enum ghp_status post_weights(struct ghp_mixer *m, int worker, struct ghp_flat all,
                                    bool receives)
{
    return ghp_mixer_post(m, ghp_mixer_whole_slot(m, receives ? GHP_MIXER_TAKEN : GHP_MIXER_SENT),
                          (struct ghp_p2p_message){.data = all.at,
                                                   .bytes = m->cut_bytes,
                                                   .peer = worker,
                                                   .tag = GHP_MIX_TAG_X,
                                                   .receives = receives});
}

enum ghp_status ghp_mixer_send_weights(struct ghp_mixer *m, int worker, struct ghp_flat from)
{
    m->count.exchanges++;
    return post_weights(m, worker, from, false);
}

enum ghp_status ghp_mixer_take_weights(struct ghp_mixer *m, int worker, struct ghp_flat to)
{
    return post_weights(m, worker, to, true);
}

/* ---- meeting ---- */

/* Everybody has said that nothing follows, and all that was said before is taken. */
static bool have_met(const struct ghp_mixer *m, const struct ghp_mixer_awaited *a)
{
    for (int i = 0; i < m->workers; i++)
        if (i != m->rank && !m->partners[i].met) return false;
    for (int i = a->first; i < a->first + a->n; i++)
        if (m->slots[i].open) return false;
    return m->from < 0;
}

enum ghp_status ghp_mixer_meet(struct ghp_mixer *m, bool last)
{
    const struct ghp_mixer_awaited all = {have_met, 0, m->n_slots, "meeting"};
    double waited_s = m->count.waited_s;

    if (!m->listens) GHP_TRY(ghp_mixer_listen(m));
    GHP_TRY(ghp_mixer_wait(m, ghp_mixer_whole_slot(m, 0), GHP_MIXER_WHOLE_SLOTS, "sending"));
    for (int i = 0; i < m->workers; i++)
        if (i != m->rank)
            GHP_TRY(ghp_mixer_say(m, i, (struct ghp_mix_hello){.kind = GHP_MIX_HELLO_MET}));
    GHP_TRY(ghp_mixer_wait_for(m, &all));
    m->count.waited_s = waited_s; /* for no step */
    m->ops->take(m);
    m->listens = false;
    for (int i = 0; i < m->workers; i++)
        m->partners[i].met = false;
    return last ? GHP_OK : ghp_mixer_listen(m);
}
