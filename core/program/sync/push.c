/* core/program/sync/push.c - stochastic gradient push: after each step a worker sends half of its weights to the next
 * one of a directed graph, and adds what it receives.
 *
 *     sgp               it waits for what is sent to it in the same step
 *     sgp-overlap:TAU   it sends before a step's gradient, and takes what has arrived after it; it waits only for what
 *                       was sent TAU steps ago
 *
 * With the weights it sends how much they count, in 4 bytes. Workers keep in step: their metrics are summed in each
 * step. */
#include "core/program/sync/mixing.h"

enum { WORD_BYTES = 4 };

static struct ghp_mix_traffic sgp_traffic(struct ghp_sync sync, int workers)
{
    (void)sync;
    (void)workers;
    return (struct ghp_mix_traffic){.out = 1, .in = 1, .waits = 1, .word_bytes = WORD_BYTES};
}

static const struct ghp_mixing_facts sgp_mixing = {.alone_is_sgd = true,
                                                   .updates = true,
                                                   .copies = 1, /* received */
                                                   .whole_sum_weights = true,
                                                   .in_step = ghp_mixing_always,
                                                   .traffic = sgp_traffic};

const struct ghp_sync_ops ghp_sync_sgp = {
    .name = "sgp",
    .purpose = "each worker sends half of its weights to the next one of a graph in each step",
    .equality = GHP_SYNC_EQUALS_REPLICAS,
    .gathers = true,
    .replicas = true,
    .mixing = &sgp_mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};

/* ---- overlap ---- */

static struct ghp_mix_traffic overlap_traffic(struct ghp_sync sync, int workers)
{
    (void)sync;
    (void)workers;
    return (struct ghp_mix_traffic){.out = 1, .in = 1, .concurrent = 1, .word_bytes = WORD_BYTES};
}

static int overlap_staleness(struct ghp_sync sync)
{
    return sync.argument;
}

/* By more than one step it depends on when messages come. */
static double overlap_mean_staleness(struct ghp_sync sync, int workers)
{
    if (workers == 1) return 0;
    return sync.argument == 1 ? 1 : -1;
}

static const struct ghp_mixing_facts overlap_mixing = {.alone_is_sgd = true,
                                                       .updates = true,
                                                       .copies = 3, /* sent, arriving, arrived */
                                                       .whole_sum_weights = true,
                                                       .keeps_sum_weight = true,
                                                       .in_step = ghp_mixing_always,
                                                       .traffic = overlap_traffic,
                                                       .staleness = overlap_staleness,
                                                       .mean_staleness = overlap_mean_staleness};

static const char *const shown[] = {"sgp-overlap:1", NULL};

const struct ghp_sync_ops ghp_sync_sgp_overlap = {
    .name = "sgp-overlap",
    .purpose = "the same during the step, waiting only for what was sent TAU steps ago",
    .argument = "TAU",
    .least = 1,
    .usual = -1,
    .shown = shown,
    .equality = GHP_SYNC_EQUALS_NOTHING,
    .gathers = true,
    .replicas = true,
    .mixing = &overlap_mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};
