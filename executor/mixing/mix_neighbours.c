/* executor/mixing/mix_neighbours.c - dgd: the weighted mean of a worker's weights and its neighbours'
 * (core/program/sync/dgd.c), added up in the order of their ranks, its own first. All sends are posted before anything
 * is waited for, so no graph can stand still. */
#include "executor/mixing/mixer_private.h"

enum { MEAN, ARRIVES, ALSO_ARRIVES }; /* copies */
enum { SLOTS = 2 };                   /* a message to and from each neighbour */

struct neighbours { /* a mixer's own */
    int n;
    int at[]; /* by rank */
};

static void find_neighbours(struct ghp_mixer *m)
{
    struct neighbours *neighbours = m->own;

    for (int u = 0; u < m->workers; u++)
        if (ghp_neighbours_joins(&m->terms->graph, m->workers, m->rank, u))
            neighbours->at[neighbours->n++] = u;
}

/* Neighbour i's weights, into one of two copies. */
static enum ghp_status expect(struct ghp_mixer *m, int i)
{
    const struct neighbours *neighbours = m->own;

    if (i >= neighbours->n) return GHP_OK;
    return ghp_mixer_post(m, i,
                          (struct ghp_p2p_message){.data = m->copies[ARRIVES + i % 2].at,
                                                   .bytes = m->instr->bytes,
                                                   .peer = neighbours->at[i],
                                                   .tag = GHP_MIX_TAG_X,
                                                   .receives = true});
}

static enum ghp_status send_all(struct ghp_mixer *m)
{
    const struct neighbours *neighbours = m->own;

    for (int i = 0; i < neighbours->n; i++)
        GHP_TRY(ghp_mixer_post(m, m->workers + i,
                               (struct ghp_p2p_message){.data = m->x.at,
                                                        .bytes = m->instr->bytes,
                                                        .peer = neighbours->at[i],
                                                        .tag = GHP_MIX_TAG_X}));
    return GHP_OK;
}

static enum ghp_status mix_dgd(struct ghp_mixer *m, const struct ghp_step *of)
{
    const struct ghp_neighbours *graph = &m->terms->graph;
    const struct neighbours *neighbours = m->own;
    bool deaf = ghp_mixer_has(m, GHP_FAULT_DROP_REDUCTION); /* adds its own instead */

    (void)of;
    GHP_TRY(expect(m, 0));
    GHP_TRY(expect(m, 1));
    GHP_TRY(send_all(m));
    ghp_flat_clear(m->copies[MEAN]);
    ghp_flat_add(m->copies[MEAN], ghp_neighbours_weight(graph, m->workers, m->rank, m->rank), m->x);
    for (int i = 0; i < neighbours->n; i++) {
        GHP_TRY(ghp_mixer_wait(m, i, 1, "a neighbour's weights"));
        ghp_flat_add(m->copies[MEAN],
                     ghp_neighbours_weight(graph, m->workers, m->rank, neighbours->at[i]),
                     deaf && i == 0 ? m->x : m->copies[ARRIVES + i % 2]);
        GHP_TRY(expect(m, i + 2));
    }
    GHP_TRY(ghp_mixer_wait(m, 0, SLOTS * m->workers, "sending to neighbours"));
    ghp_flat_copy(m->x, m->copies[MEAN]);
    return GHP_OK;
}

const struct ghp_mixer_ops ghp_mixer_dgd = {.name = "dgd",
                                            .slots = SLOTS,
                                            .in_step = true,
                                            .own_bytes = sizeof(struct neighbours),
                                            .own_bytes_each = sizeof(int),
                                            .prepare = find_neighbours,
                                            .mix = mix_dgd};
