/* executor/mixing/mix_push.c - mixes by stochastic gradient push: sgp, sgp-overlap (executor/mixing/mixer.h).
 *
 * A worker has z, its weights, and w, by how much they count: w z is what it has of the sum of all. In step k it keeps
 * one half, and the other goes to the worker 2^(k mod L) ranks after it, L the least number with 2^L >= N; what comes
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

struct push {             /* a mixer's own */
    float sent, received; /* sum weights of the messages under way */
    /* ---- overlap ---- */
    double held;       /* of what has come and is not in x */
    bool expects;      /* a message of the step `next` may come */
    int64_t next, end; /* step whose message comes next; after the last one that was sent */
    int64_t due;       /* waited for: of this step and before */
};

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
    struct push *p = m->own;

    p->sent = (float)(m->place.numbers->sum_weight / 2);
    m->place.numbers->sum_weight -= (double)p->sent;
    return (double)p->sent;
}

static enum ghp_status post_both(struct ghp_mixer *m, int peer, void *header, struct ghp_flat all,
                                 bool receives)
{
    struct ghp_p2p_message message = {.data = header,
                                      .bytes = sizeof(float),
                                      .peer = peer,
                                      .tag = GHP_MIX_TAG_SUM_WEIGHT,
                                      .receives = receives};

    GHP_TRY(ghp_mixer_post(m, receives ? TAKEN_WORD : SENT_WORD, message));
    message.data = all.at;
    message.bytes = m->server_shard_bytes;
    message.tag = GHP_MIX_TAG_X;
    return ghp_mixer_post(m, receives ? TAKEN : SENT, message);
}

static enum ghp_status send(struct ghp_mixer *m, int64_t step, struct ghp_flat all)
{
    struct push *p = m->own;

    m->count.exchanges++;
    m->count.sent_sum_weight += (double)p->sent;
    return post_both(m, (m->rank + hop(m, step)) % m->workers, &p->sent, all, false);
}

static enum ghp_status expect(struct ghp_mixer *m, int64_t step, struct ghp_flat all)
{
    struct push *p = m->own;

    return post_both(m, (m->rank + m->workers - hop(m, step)) % m->workers, &p->received, all,
                     true);
}

/* x, which times `kept` is this worker's, gets what others sent. */
static void add(struct ghp_mixer *m, double kept, struct ghp_flat sent, double of_sent)
{
    double sum = m->place.numbers->sum_weight + of_sent;

    m->count.taken_sum_weight += of_sent;
    if (ghp_mixer_has(m, GHP_FAULT_DROP_REDUCTION)) return;
    if (!ghp_mixer_has(m, GHP_FAULT_NO_MIXING)) ghp_flat_combine(m->x, kept / sum, sent, 1 / sum);
    m->place.numbers->sum_weight = sum;
}

/* ---- sgp ---- */

static enum ghp_status mix_sgp(struct ghp_mixer *m, const struct ghp_step *of)
{
    int64_t step = (int64_t)of->index;
    const struct push *p = m->own;
    double sent = part(m);

    ghp_flat_scale(m->x, sent, m->x);
    GHP_TRY(expect(m, step, m->copies[0]));
    GHP_TRY(send(m, step, m->x));
    GHP_TRY(ghp_mixer_wait(m, 0, SLOTS, "pushing weights"));
    if (ghp_mixer_has(m, GHP_FAULT_DROP_REDUCTION)) ghp_flat_scale(m->x, 1 / sent, m->x);
    add(m, m->place.numbers->sum_weight / sent, m->copies[0], (double)p->received);
    return GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_sgp = {.name = "sgp",
                                            .other_slots = SLOTS,
                                            .in_step = true,
                                            .own_bytes = sizeof(struct push),
                                            .mix = mix_sgp};

/* ---- overlap ---- */

enum { OF_SENT, ARRIVING, ARRIVED }; /* copies */

/* What came is added to what had; then the next message may come, of those that are sent by now. */
static enum ghp_status carry_overlap(struct ghp_mixer *m)
{
    struct push *p = m->own;

    if (p->expects && !m->slots[TAKEN].open && !m->slots[TAKEN_WORD].open) {
        if (p->held > 0)
            ghp_flat_add(m->copies[ARRIVED], 1, m->copies[ARRIVING]);
        else
            ghp_flat_copy(m->copies[ARRIVED], m->copies[ARRIVING]);
        p->held += (double)p->received;
        p->expects = false;
        p->next++;
    }
    if (p->expects || p->next >= p->end) return GHP_OK;
    p->expects = true;
    return expect(m, p->next, m->copies[ARRIVING]);
}

static bool have_come(const struct ghp_mixer *m, const struct ghp_mixer_awaited *a)
{
    const struct push *p = m->own;

    (void)a;
    return p->next > p->due;
}

/* All that was sent in step `due` and before, and whatever else has come. */
static enum ghp_status take(struct ghp_mixer *m, int64_t due, const char *label)
{
    struct push *p = m->own;
    int64_t before;

    p->due = due;
    GHP_TRY(ghp_mixer_wait_for(
        m, &(struct ghp_mixer_awaited){have_come, TAKEN_WORD, SLOTS - TAKEN_WORD, label}));
    do {
        before = p->next;
        GHP_TRY(ghp_mixer_progress(m));
    } while (p->next > before);
    if (p->held > 0) add(m, m->place.numbers->sum_weight, m->copies[ARRIVED], p->held);
    p->held = 0;
    return GHP_OK;
}

static enum ghp_status mix_overlap(struct ghp_mixer *m, const struct ghp_step *of)
{
    struct push *p = m->own;
    int64_t step = (int64_t)of->index;

    GHP_TRY(ghp_mixer_wait(m, SENT_WORD, TAKEN_WORD - SENT_WORD, "sending weights"));
    if (p->next >= p->end) { /* nothing is under way */
        p->next = step;
        p->end = step;
    }
    ghp_flat_scale(m->copies[OF_SENT], part(m), m->x);
    GHP_TRY(send(m, step, m->copies[OF_SENT]));
    GHP_TRY(take(m, step - m->terms->argument, "weights of an earlier step"));
    p->end = step + 1;
    return GHP_OK;
}

/* All is taken that was sent to it. By then w is 1 but for rounding, if each message took as many steps. */
static enum ghp_status settle_overlap(struct ghp_mixer *m)
{
    double waited_s = m->count.waited_s;

    GHP_TRY(ghp_mixer_wait(m, SENT_WORD, TAKEN_WORD - SENT_WORD, "sending weights"));
    GHP_TRY(take(m, ((struct push *)m->own)->end - 1, "the last weights"));
    m->count.waited_s = waited_s; /* for no step */
    if (fabs(m->place.numbers->sum_weight - 1) < 1e-12) m->place.numbers->sum_weight = 1;
    return GHP_OK;
}

static enum ghp_status end_overlap(struct ghp_mixer *m)
{
    return m->x.at != NULL ? settle_overlap(m) : GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_sgp_overlap = {.name = "sgp-overlap",
                                                    .other_slots = SLOTS,
                                                    .in_step = true,
                                                    .own_bytes = sizeof(struct push),
                                                    .mix = mix_overlap,
                                                    .carry = carry_overlap,
                                                    .settle = settle_overlap,
                                                    .end = end_overlap};
