/* executor/mixing/mix_leaders.c - lsgd: workers are pulled to those with the least loss (core/program/sync/lsgd.c).
 *
 * All tell their losses, so each knows all leaders. A leader's weights go by a chain: from the leader to the worker
 * after it, from each to the next, in segments, so that a worker passes one on while the next arrives. */
#include "executor/mixing/mixer_private.h"

enum { AHEAD = 4, SEGMENTS = 64, LEAST_SEGMENT_BYTES = 1 << 14, SLOTS = 2 * AHEAD };

static const double pull = .1; /* at once; after each step this over the steps to the next leader */

struct level { /* the workers of one leader */
    int first, count;
    int64_t every; /* steps from one leader to the next */
    struct ghp_flat leader;
};

/* The group's, if there are several, and that of all workers. Returns   how many */
static int levels_of(const struct ghp_mixer *m, struct level levels[2])
{
    const struct ghp_mix_terms *terms = m->terms;
    int n = 0, size = m->workers / terms->groups;

    if (terms->groups > 1)
        levels[n++] = (struct level){m->rank / size * size, size, terms->argument, m->copies[0]};
    levels[n] = (struct level){0, m->workers, terms->leader_period, m->copies[n]};
    return n + 1;
}

int ghp_mixer_leader(const struct ghp_control_message *losses, int first, int count)
{
    int leader = first;

    for (int i = first + 1; i < first + count; i++)
        if (losses[i].value < losses[leader].value) leader = i;
    return leader;
}

/* The bytes of a segment; the last one may be smaller. */
static int64_t segment_bytes(const struct ghp_mixer *m)
{
    int64_t segment = m->instr->bytes / SEGMENTS;

    return segment < LEAST_SEGMENT_BYTES ? LEAST_SEGMENT_BYTES : segment;
}

/* Segment k of the leader's weights, in the chain's direction. */
static enum ghp_status post_segment(struct ghp_mixer *m, struct ghp_flat leader, int64_t k,
                                    struct ghp_p2p_message message)
{
    int64_t all = m->instr->bytes, segment = segment_bytes(m);

    message.data = (char *)leader.at + k * segment;
    message.bytes = all - k * segment < segment ? all - k * segment : segment;
    message.tag = GHP_MIX_TAG_X;
    return ghp_mixer_post(m, (int)(k % AHEAD) + (message.receives ? 0 : AHEAD), message);
}

static int64_t segments_of(const struct ghp_mixer *m)
{
    int64_t segment = segment_bytes(m);

    return (m->instr->bytes + segment - 1) / segment;
}

/* The leader's weights to all of the level, each of whom passes them on. */
static enum ghp_status pass_on(struct ghp_mixer *m, const struct level *l, int leader)
{
    int place = (m->rank - leader + l->count) % l->count;
    int before = l->first + (m->rank - l->first + l->count - 1) % l->count,
        behind = l->first + (m->rank - l->first + 1) % l->count;
    int64_t n = segments_of(m), posted = 0;

    if (place == 0) ghp_flat_copy(l->leader, m->x);
    for (int64_t k = 0; k < n; k++) {
        for (; place > 0 && posted < n && posted < k + AHEAD; posted++)
            GHP_TRY(post_segment(m, l->leader, posted,
                                 (struct ghp_p2p_message){.peer = before, .receives = true}));
        if (place > 0) GHP_TRY(ghp_mixer_wait(m, (int)(k % AHEAD), 1, "a leader's weights"));
        if (place == l->count - 1) continue;
        GHP_TRY(ghp_mixer_wait(m, AHEAD + (int)(k % AHEAD), 1, "passing a leader's weights on"));
        GHP_TRY(post_segment(m, l->leader, k, (struct ghp_p2p_message){.peer = behind}));
    }
    return ghp_mixer_wait(m, 0, SLOTS, "passing a leader's weights on");
}

/* x + c (y - x) keeps the bits of x if y is x; the fault's x (1 - c) + c y does not. */
static void pull_to(struct ghp_mixer *m, double by, struct ghp_flat leader)
{
    if (ghp_mixer_has(m, GHP_FAULT_ROUNDED_PULL)) {
        ghp_flat_add(m->x, -by, m->x);
        ghp_flat_add(m->x, by, leader);
    } else {
        ghp_flat_pull(m->x, by, leader);
    }
}

static enum ghp_status follow(struct ghp_mixer *m, const struct level *l,
                              const struct ghp_control_message *losses)
{
    int leader = ghp_mixer_leader(losses, l->first, l->count);

    GHP_TRY(pass_on(m, l, leader));
    if (ghp_mixer_has(m, GHP_FAULT_DROP_REDUCTION)) ghp_flat_copy(l->leader, m->x);
    pull_to(m, pull, l->leader);
    return GHP_OK;
}

static void count_leaders(struct ghp_mixer *m, const struct ghp_control_message *losses)
{
    int groups = m->terms->groups, size = m->workers / groups;
    int64_t *led = m->own; /* how often each worker led a group */

    for (int g = 0; g < groups; g++)
        led[ghp_mixer_leader(losses, g * size, size)]++;
    m->count.led_least = m->count.led_most = led[0];
    for (int i = 1; i < m->workers; i++) {
        if (led[i] < m->count.led_least) m->count.led_least = led[i];
        if (led[i] > m->count.led_most) m->count.led_most = led[i];
    }
}

static enum ghp_status mix_lsgd(struct ghp_mixer *m, const struct ghp_step *of)
{
    struct ghp_control *control = m->place.exec->transport->control;
    int64_t done = (int64_t)of->index + 1;
    double *lost = &m->place.numbers->lost;
    const struct ghp_control_message *losses;
    struct level levels[2];
    int n = levels_of(m, levels);

    for (int i = 0; i < n; i++) /* if there was a leader before */
        if (done > levels[i].every) pull_to(m, pull / (double)levels[i].every, levels[i].leader);
    if (done % m->terms->argument != 0) return GHP_OK;
    m->world->label = "the leaders' losses";
    GHP_TRY(control->ops->tell(control, m->world, (struct ghp_control_message){.value = *lost},
                               &losses));
    count_leaders(m, losses);
    for (int i = 0; i < n; i++)
        if (done % levels[i].every == 0) GHP_TRY(follow(m, &levels[i], losses));
    *lost = 0;
    return GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_lsgd = {.name = "lsgd",
                                             .other_slots = SLOTS,
                                             .in_step = true,
                                             .in_segments = true,
                                             .own_bytes_each = sizeof(int64_t),
                                             .mix = mix_lsgd};
