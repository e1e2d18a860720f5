/* executor/mixing/mix_push.c - mixes by stochastic gradient push: sgp, sgp-overlap (executor/mixing/mixer.h).
 *
 * A worker has z, its weights, and w, by how much they count: w z is what it has of the sum of all. In step k it keeps
 * one half, and the other goes to the worker 2^(k mod L) ranks behind it, L the least number with 2^L >= N; what comes
 * from as far before it is added:
 *
 *     z = (w z + w' z') / (w + w');  w = w + w'
 *
 * w goes as a float, and what is kept is what remains of it, so that w of all workers and messages sums up to N. An
 * update moves w z by the rate, hence z by the rate / w.
 *
 * Source   Assran, Loizou, Ballas, Rabbat, ICML 2019 */
#include "executor/mixing/mixer_private.h"

#include <math.h>

/* Messages: w and w z, sent and received. */
enum { SENT_WORD, SENT, TAKEN_WORD, TAKEN, SLOTS };

static bool has(const struct ghp_mixer *m, enum ghp_fault fault)
{
    return m->place.run->fault == fault;
}

static int hop(const struct ghp_mixer *m, int64_t step)
{
    int l = 0;

    while (1 << l < m->workers)
        l++;
    return 1 << step % l;
}

/* Half of w, as it is sent; the rest stays. */
static double part(struct ghp_mixer *m)
{
    m->push.sent = (float)(m->count.share / 2);
    m->count.share -= (double)m->push.sent;
    return (double)m->push.sent;
}

static enum ghp_status post_both(struct ghp_mixer *m, int peer, void *header, struct ghp_flat all,
                                 bool receives)
{
    struct ghp_p2p_message message = {.data = header,
                                      .bytes = sizeof m->push.sent,
                                      .peer = peer,
                                      .tag = GHP_MIX_TAG_SHARE,
                                      .receives = receives};

    GHP_TRY(ghp_mixer_post(m, receives ? TAKEN_WORD : SENT_WORD, message));
    message.data = all.at;
    message.bytes = m->cut_bytes;
    message.tag = GHP_MIX_TAG_X;
    return ghp_mixer_post(m, receives ? TAKEN : SENT, message);
}

static enum ghp_status send(struct ghp_mixer *m, int64_t step, struct ghp_flat all)
{
    m->count.exchanges++;
    m->count.sent_share += (double)m->push.sent;
    return post_both(m, (m->rank + hop(m, step)) % m->workers, &m->push.sent, all, false);
}

static enum ghp_status expect(struct ghp_mixer *m, int64_t step, struct ghp_flat all)
{
    int peer = (m->rank + m->workers - hop(m, step)) % m->workers;

    return post_both(m, peer, &m->push.received, all, true);
}

/* x, which times `kept` is this worker's, gets what others sent. */
static void add(struct ghp_mixer *m, double kept, struct ghp_flat sent, double of_sent)
{
    double sum = m->count.share + of_sent;

    m->count.taken_share += of_sent;
    if (has(m, GHP_FAULT_DROP_REDUCTION)) return;
    if (!has(m, GHP_FAULT_NO_MIXING)) ghp_flat_combine(m->x, kept / sum, sent, 1 / sum);
    m->count.share = sum;
}

/* ---- sgp ---- */

static enum ghp_status mix_sgp(struct ghp_mixer *m, const struct ghp_step *of)
{
    int64_t step = (int64_t)of->index;
    double sent = part(m);

    ghp_flat_scale(m->x, sent, m->x);
    GHP_TRY(expect(m, step, m->copies[0]));
    GHP_TRY(send(m, step, m->x));
    GHP_TRY(ghp_mixer_wait(m, 0, SLOTS, "pushing weights"));
    if (has(m, GHP_FAULT_DROP_REDUCTION)) ghp_flat_scale(m->x, 1 / sent, m->x);
    add(m, m->count.share / sent, m->copies[0], (double)m->push.received);
    return GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_sgp = {.sync = &ghp_sync_sgp,
                                            .other_slots = SLOTS,
                                            .in_step = true,
                                            .whole_shares = true,
                                            .mix = mix_sgp};

/* ---- overlap ---- */

enum { OF_SENT, ARRIVING, ARRIVED }; /* copies */

/* What came is added to what had; then the next message may come, of those that are sent by now. */
static enum ghp_status carry_overlap(struct ghp_mixer *m)
{
    struct ghp_push *p = &m->push;

    if (p->expects && !m->slots[TAKEN].open && !m->slots[TAKEN_WORD].open) {
        if (p->held > 0)
            ghp_flat_add(m->copies[ARRIVED], 1, m->copies[ARRIVING]);
        else
            ghp_flat_copy(m->copies[ARRIVED], m->copies[ARRIVING]);
        p->held += (double)p->received;
        p->expects = false;
        p->next++;
    }
    if (p->expects || p->next > p->last) return GHP_OK;
    p->expects = true;
    return expect(m, p->next, m->copies[ARRIVING]);
}

static bool have_come(const struct ghp_mixer *m, const struct ghp_mixer_awaited *a)
{
    (void)a;
    return m->push.next > m->push.due;
}

/* All that was sent in step `due` and before, and whatever else has come. */
static enum ghp_status take(struct ghp_mixer *m, int64_t due, const char *label)
{
    int64_t before;

    m->push.due = due;
    GHP_TRY(ghp_mixer_wait_for(
        m, &(struct ghp_mixer_awaited){have_come, TAKEN_WORD, SLOTS - TAKEN_WORD, label}));
    do {
        before = m->push.next;
        GHP_TRY(ghp_mixer_progress(m));
    } while (m->push.next > before);
    if (m->push.held > 0) add(m, m->count.share, m->copies[ARRIVED], m->push.held);
    m->push.held = 0;
    return GHP_OK;
}

static enum ghp_status mix_overlap(struct ghp_mixer *m, const struct ghp_step *of)
{
    int64_t step = (int64_t)of->index;

    GHP_TRY(ghp_mixer_wait(m, SENT_WORD, TAKEN_WORD - SENT_WORD, "sending weights"));
    if (m->push.next > m->push.last) { /* nothing is under way */
        m->push.next = step;
        m->push.last = step - 1;
    }
    ghp_flat_scale(m->copies[OF_SENT], part(m), m->x);
    GHP_TRY(send(m, step, m->copies[OF_SENT]));
    GHP_TRY(take(m, step - m->place.program->scheme.argument, "weights of an earlier step"));
    m->push.last = step;
    return GHP_OK;
}

/* All is taken that was sent to it. By then w is 1 but for rounding, if each message took as many steps. */
static enum ghp_status settle_overlap(struct ghp_mixer *m)
{
    double waited_s = m->count.waited_s;

    GHP_TRY(ghp_mixer_wait(m, SENT_WORD, TAKEN_WORD - SENT_WORD, "sending weights"));
    GHP_TRY(take(m, m->push.last, "the last weights"));
    m->count.waited_s = waited_s; /* for no step */
    if (fabs(m->count.share - 1) < 1e-12) m->count.share = 1;
    return GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_sgp_overlap = {.sync = &ghp_sync_sgp_overlap,
                                                    .other_slots = SLOTS,
                                                    .in_step = true,
                                                    .has_share = true,
                                                    .whole_shares = true,
                                                    .mix = mix_overlap,
                                                    .carry = carry_overlap,
                                                    .settle = settle_overlap};
