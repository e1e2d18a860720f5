/* core/program/sync/gossip.c - synchronisers that mix without servers: a worker's weights meet another worker's.
 *
 *     gosgd:P   after a step, with probability P, a worker sends its weights to another one, who mixes them in at
 *               its next step; nobody waits
 *     ad-psgd   workers of even rank are passive, the others active, so that waits have no cycle: during each step an
 *               active one and a passive one exchange weights, and both move to the middle */
#include "core/program/sync/mixing.h"

/* ---- gosgd ---- */

static struct ghp_mix_traffic gosgd_traffic(struct ghp_sync sync, int workers)
{
    double chance = (double)sync.argument / GHP_SYNC_SURE;

    (void)workers;
    return (struct ghp_mix_traffic){.out = chance, .in = chance, .concurrent = chance};
}

static const struct ghp_mixing_facts gosgd_mixing = {.asynchronous = true,
                                                     .alone_is_sgd = true,
                                                     .updates = true,
                                                     .copies =
                                                         3, /* sent, arriving, what has arrived */
                                                     .keeps_sum_weight = true,
                                                     .in_step = ghp_mixing_never,
                                                     .traffic = gosgd_traffic,
                                                     .staleness = ghp_mixing_unbounded,
                                                     .mean_staleness = ghp_mixing_unknown};

static const char *const gosgd_shown[] = {"gosgd:0.1", "gosgd:0.01", NULL};

const struct ghp_sync_ops ghp_sync_gosgd = {
    .name = "gosgd",
    .purpose = "each worker trains alone, and by chance sends its weights to another one",
    .argument = "P",
    .least = 1,
    .usual = -1,
    .is_chance = true,
    .shown = gosgd_shown,
    .equality = GHP_SYNC_EQUALS_NOTHING,
    .gathers = true,
    .replicas = true,
    .mixing = &gosgd_mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};

/* ---- ad-psgd ---- */

static struct ghp_mix_traffic ad_psgd_traffic(struct ghp_sync sync, int workers)
{
    (void)sync;
    (void)workers;
    return (struct ghp_mix_traffic){.out = 1, .in = 1, .concurrent = 1};
}

static const struct ghp_mixing_facts ad_psgd_mixing = {
    .asynchronous = true,
    .alone_is_sgd = true,
    .updates = true,
    .copies = 4, /* as exchanges have it, by what they moved it, sent, arriving */
    .in_step = ghp_mixing_never,
    .traffic = ad_psgd_traffic,
    .staleness = ghp_mixing_unbounded,
    .mean_staleness = ghp_mixing_unknown};

const struct ghp_sync_ops ghp_sync_ad_psgd = {
    .name = "ad-psgd",
    .purpose = "each worker trains alone, and during a step meets another half-way",
    .least_workers = 2,
    .equality = GHP_SYNC_EQUALS_NOTHING,
    .gathers = true,
    .replicas = true,
    .mixing = &ad_psgd_mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};
