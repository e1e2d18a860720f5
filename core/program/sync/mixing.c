/* core/program/sync/mixing.c - synchronisers that mix workers' weights between two steps, in one instruction.
 *
 * All weights lie in one bucket, as their gradients do. If workers update, a step begins with the updates by the
 * gradients of the step before. The MIX follows. A CARRY stands for the messages that travel during the step, which the
 * next MIX waits for. What a mix does is the executor's (executor/mixing/mixer.h); here is what it costs. */
#include "core/program/sync/mixing.h"

#include "core/base/hash.h"

#include <string.h>

static int bucket_of(const struct ghp_emitter *e)
{
    for (int layer = 0; layer < e->lowering->model->n_layers; layer++)
        if (e->buckets->of_layer[layer] >= 0) return e->buckets->of_layer[layer];
    return -1;
}

/* Names the synchroniser, whose argument decides what a mix does. */
static uint64_t rule_of(struct ghp_sync sync)
{
    char text[GHP_SYNC_TEXT_BYTES];

    ghp_sync_format(sync, text);
    return ghp_hash(text, strlen(text), GHP_HASH_SEED);
}

static enum ghp_status emit_mix(const struct ghp_emitter *e)
{
    static const enum ghp_instr_kind kinds[2] = {GHP_INSTR_CARRY, GHP_INSTR_MIX};
    int bucket = bucket_of(e);

    if (!ghp_lowering_mixes(e->lowering) || bucket < 0) return GHP_OK;
    for (int i = 0; i < 2; i++) {
        struct ghp_instr *instr = ghp_emitter_add(e, kinds[i], e->forward_base);

        if (instr == NULL) return GHP_NO_MEMORY();
        instr->bucket = bucket;
        instr->bytes = e->buckets->ranges[bucket].bytes;
        instr->servers = e->lowering->method.sync.servers;
        instr->mix.rule = rule_of(e->lowering->method.sync);
        instr->optimizer = ghp_lowering_optimizer(e->lowering);
        instr->ranks = (struct ghp_ranks){.count = e->lowering->problem.workers, .stride = 1};
        instr->mix.traffic =
            ghp_lowering_sync(e->lowering)
                ->mixing->traffic(e->lowering->method.sync, e->lowering->problem.workers);
    }
    return GHP_OK;
}

enum ghp_status ghp_emit_mixing_start(const struct ghp_emitter *e)
{
    for (int layer = 0; layer < e->lowering->model->n_layers; layer++)
        if (ghp_placement_owns(&e->placement, layer) &&
            ghp_lowering_sync(e->lowering)->mixing->updates)
            GHP_TRY(ghp_emit_layer_update(e, layer, e->splits[layer], e->forward_base));
    return emit_mix(e);
}

/* A piece has its update alone: no layer's mix is its own. */
enum ghp_status ghp_emit_mixing_before(const struct ghp_emitter *e, int layer,
                                       struct ghp_split split)
{
    if (e->buckets != NULL || !ghp_lowering_sync(e->lowering)->mixing->updates) return GHP_OK;
    return ghp_emit_whole_update(e, layer, split);
}

bool ghp_mixing_always(struct ghp_sync sync)
{
    (void)sync;
    return true;
}

bool ghp_mixing_never(struct ghp_sync sync)
{
    (void)sync;
    return false;
}

int ghp_mixing_unbounded(struct ghp_sync sync)
{
    (void)sync;
    return -1;
}

double ghp_mixing_unknown(struct ghp_sync sync, int workers)
{
    (void)sync;
    return workers > 1 ? -1 : 0;
}

/* ---- asp ---- */

static struct ghp_mix_traffic asp_traffic(struct ghp_sync sync, int workers)
{
    (void)sync;
    (void)workers;
    return (struct ghp_mix_traffic){.out = 1, .in = 1, .waits = 2, .applies = 1};
}

static double all_others(struct ghp_sync sync, int workers)
{
    (void)sync;
    return workers - 1;
}

static const struct ghp_mixing_facts asp_mixing = {.asynchronous = true,
                                                   .alone_is_sgd = true,
                                                   .arrivals = 1,
                                                   .server_moments = true,
                                                   .in_step = ghp_mixing_never,
                                                   .traffic = asp_traffic,
                                                   .staleness = ghp_mixing_unbounded,
                                                   .mean_staleness = all_others};

const struct ghp_sync_ops ghp_sync_asp = {
    .name = "asp",
    .purpose = "servers update their weights by each worker's gradients when they come",
    .equality = GHP_SYNC_EQUALS_NOTHING,
    .gathers = true,
    .replicas = true,
    .serves = true,
    .mixing = &asp_mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};

/* ---- ssp ---- */

static struct ghp_mix_traffic ssp_traffic(struct ghp_sync sync, int workers)
{
    double pulls = 1.0 / (sync.argument + 1);

    (void)workers; /* who pulls waits for his own gradients to be sent first */
    return (struct ghp_mix_traffic){
        .out = 1, .in = pulls, .waits = 2 * pulls, .concurrent = 1 - pulls};
}

static bool ssp_in_step(struct ghp_sync sync)
{
    return !sync.other;
}

static int ssp_staleness(struct ghp_sync sync)
{
    return sync.other ? -1 : sync.argument + 1;
}

static const struct ghp_mixing_facts ssp_mixing = {.asynchronous = true,
                                                   .alone_is_sgd = true,
                                                   .updates = true,
                                                   .copies = 1,
                                                   .arrivals = 1,
                                                   .server_moments = true,
                                                   .in_step = ssp_in_step,
                                                   .traffic = ssp_traffic,
                                                   .staleness = ssp_staleness,
                                                   .mean_staleness = ghp_mixing_unknown};

static const char *const ssp_shown[] = {"ssp:3", "ssp:10", "ssp:10,free", NULL};

const struct ghp_sync_ops ghp_sync_ssp = {
    .name = "ssp",
    .purpose = "as asp, but workers continue with their own gradients for up to S steps",
    .argument = "S",
    .usual = -1,
    .other = "free",
    .shown = ssp_shown,
    .equality = GHP_SYNC_EQUALS_NOTHING,
    .gathers = true,
    .replicas = true,
    .serves = true,
    .mixing = &ssp_mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};

/* ---- easgd ---- */

static struct ghp_mix_traffic easgd_traffic(struct ghp_sync sync, int workers)
{
    double each = 1.0 / sync.argument;

    (void)workers;
    return (struct ghp_mix_traffic){.out = each, .in = each, .waits = 2 * each, .applies = each};
}

static const struct ghp_mixing_facts easgd_mixing = {.asynchronous = true,
                                                     .updates = true,
                                                     .copies = 0,
                                                     .arrivals = 1,
                                                     .in_step = ghp_mixing_never,
                                                     .traffic = easgd_traffic,
                                                     .staleness = ghp_mixing_unbounded,
                                                     .mean_staleness = ghp_mixing_unknown};

static const char *const easgd_shown[] = {"easgd:2", "easgd:8", NULL};

const struct ghp_sync_ops ghp_sync_easgd = {
    .name = "easgd",
    .purpose = "each worker trains alone, drawn to the servers' weights and these to it",
    .argument = "TAU",
    .least = 1,
    .usual = -1,
    .shown = easgd_shown,
    .equality = GHP_SYNC_EQUALS_NOTHING,
    .gathers = true,
    .replicas = true,
    .serves = true,
    .mixing = &easgd_mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};

/* ---- aladdin ---- */

static struct ghp_mix_traffic aladdin_traffic(struct ghp_sync sync, int workers)
{
    (void)workers;
    return (struct ghp_mix_traffic){.out = 1, .in = 1.0 / sync.argument, .concurrent = 1};
}

static const struct ghp_mixing_facts aladdin_mixing = {.asynchronous = true,
                                                       .updates = true,
                                                       .copies = 3, /* before, sent, received */
                                                       .arrivals = 2,
                                                       .server_sum = true,
                                                       .in_step = ghp_mixing_never,
                                                       .traffic = aladdin_traffic,
                                                       .staleness = ghp_mixing_unbounded,
                                                       .mean_staleness = ghp_mixing_unknown};

static const char *const aladdin_shown[] = {"aladdin:4", NULL};

const struct ghp_sync_ops ghp_sync_aladdin = {
    .name = "aladdin",
    .purpose = "each worker trains alone and sends its steps, whose sums draw it to the servers'",
    .argument = "PI",
    .least = 1,
    .usual = 4,
    .other = "printed",
    .shown = aladdin_shown,
    .equality = GHP_SYNC_EQUALS_NOTHING,
    .gathers = true,
    .replicas = true,
    .serves = true,
    .mixing = &aladdin_mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};
