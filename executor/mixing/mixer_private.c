/* executor/mixing/mixer_private.c - see mixer_private.h: the messages that schemes send, and waiting for them. */
#include "executor/mixing/mixer_private.h"

#include "core/base/clock.h"
#include "executor/platform/backoff.h"

#include <stdio.h>
#include <string.h>

/* The other side may answer at once. */
static const struct ghp_backoff waiting = {20e-6, 5000, 200000, 4};

enum ghp_status ghp_mixer_post(struct ghp_mixer *m, int slot, struct ghp_p2p_message message)
{
    bool weights = message.tag == GHP_MIX_TAG_PUSH || message.tag == GHP_MIX_TAG_X ||
                   message.tag == GHP_MIX_TAG_SUM_WEIGHT;

    GHP_ASSERT(!m->slots[slot].open);
    m->slots[slot] =
        (struct ghp_mixer_slot){true, message.receives, message.peer, weights ? message.bytes : 0};
    if (weights && !message.receives) m->count.sent_bytes += message.bytes;
    return m->channel->ops->post(m->channel, slot, &message);
}

enum ghp_status ghp_mixer_progress(struct ghp_mixer *m)
{
    for (int i = 0; i < m->n_slots; i++) {
        bool done = false;

        if (!m->slots[i].open) continue;
        GHP_TRY(m->channel->ops->poll(m->channel, i, &done));
        m->slots[i].open = !done;
        if (done && m->slots[i].receives) m->count.received_bytes += m->slots[i].weight_bytes;
    }
    return m->ops->carry != NULL ? m->ops->carry(m) : GHP_OK;
}

/* Names the ranks that did not send, or did not take, what is waited for. */
static enum ghp_status fail_missing(const struct ghp_mixer *m, const struct ghp_mixer_awaited *a,
                                    double waited_s)
{
    const struct ghp_mixer_slot *one = NULL;
    char missing[256] = "";
    int last = -1;

    for (int i = a->first; i < a->first + a->n; i++) {
        size_t used = strlen(missing);

        if (!m->slots[i].open || m->slots[i].peer == last || used + 16 > sizeof missing) continue;
        one = &m->slots[i];
        last = one->peer;
        snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "", last);
    }
    return GHP_FAIL(GHP_ERR_COMM,
                    "rank %d waited %.0f s in '%s' of '%s': %s rank(s) %s; see why they stopped, "
                    "or raise --watchdog if they are only slow",
                    m->place.exec->transport->control->rank, waited_s, a->label, m->ops->name,
                    one != NULL && !one->receives ? "not taken by" : "nothing arrived from",
                    missing);
}

enum ghp_status ghp_mixer_wait_for(struct ghp_mixer *m, const struct ghp_mixer_awaited *a)
{
    struct ghp_backoff_wait wait = ghp_backoff_begin(&waiting);
    double begin_s = ghp_now_s();

    while (!a->is_done(m, a)) {
        GHP_TRY(ghp_mixer_progress(m));
        if (a->is_done(m, a)) break;
        if (ghp_backoff_pause(&wait) && ghp_backoff_waited_s(&wait) > m->limit_s)
            return fail_missing(m, a, ghp_backoff_waited_s(&wait));
    }
    m->count.waited_s += ghp_now_s() - begin_s;
    return GHP_OK;
}

static bool are_empty(const struct ghp_mixer *m, const struct ghp_mixer_awaited *a)
{
    for (int i = a->first; i < a->first + a->n; i++)
        if (m->slots[i].open) return false;
    return true;
}

enum ghp_status ghp_mixer_wait(struct ghp_mixer *m, int first, int n, const char *label)
{
    return ghp_mixer_wait_for(m, &(struct ghp_mixer_awaited){are_empty, first, n, label});
}
