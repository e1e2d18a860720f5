/* core/program/sync/lsgd.c - lsgd:GROUPS,TAU: each worker trains alone, drawn to leaders.
 *
 * Every TAU steps all workers share the mean loss of their last TAU batches. The worker with the least loss leads its
 * group, and the group gets its weights. Every 4 TAU steps the same is done among all workers. With one group that is
 * done every TAU steps. Lowered as all that mix (mixing.c); what a mix does is in executor/mixing/mix_leaders.c.
 *
 * Source  Teng et al., NeurIPS 2019 */
#include "core/program/sync/mixing.h"

#include <stdio.h>
#include <stdlib.h>

/* Reads a whole number and moves *at past it. */
static bool read_number(const char **at, int least, int *value)
{
    char *end = NULL;
    long number = **at >= '0' && **at <= '9' ? strtol(*at, &end, 10) : -1;

    if (number < least || number > GHP_SYNC_MOST) return false;
    *at = end;
    *value = (int)number;
    return true;
}

static bool read(const char *text, struct ghp_sync *sync)
{
    if (!read_number(&text, 1, &sync->groups) || *text != ',') return false;
    text++;
    return read_number(&text, 1, &sync->argument) && *text == '\0';
}

static void write(struct ghp_sync sync, char text[GHP_NEIGHBOURS_TEXT_BYTES])
{
    snprintf(text, GHP_NEIGHBOURS_TEXT_BYTES, "%d,%d", sync.groups, sync.argument);
}

static enum ghp_status check(struct ghp_sync sync, int workers)
{
    if (sync.groups > workers)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'lsgd:%d,%d' has %d groups, more than the %d worker(s); use at most as "
                        "many groups",
                        sync.groups, sync.argument, sync.groups, workers);
    if (workers % sync.groups != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'lsgd:%d,%d' has %d groups, which do not divide %d workers; use a number "
                        "of groups that does",
                        sync.groups, sync.argument, sync.groups, workers);
    return GHP_OK;
}

/* A pull of n workers: all but the last of a chain send what the leader has. */
static void add_pull(struct ghp_mix_traffic *t, int n, double often)
{
    if (n < 2) return;
    t->out += often * (n - 1) / n;
    t->in = t->out;
    t->waits += often;
    t->latencies += often * (n - 2);
}

static struct ghp_mix_traffic traffic(struct ghp_sync sync, int workers)
{
    double often = 1.0 / sync.argument;
    struct ghp_mix_traffic t = {.latencies = often * (workers - 1)}; /* the losses */

    if (sync.groups > 1) add_pull(&t, workers / sync.groups, often);
    add_pull(&t, workers, 1.0 / ghp_sync_leader_period(sync));
    return t;
}

static int staleness(struct ghp_sync sync)
{
    return ghp_sync_leader_period(sync) - 1;
}

static double mean_staleness(struct ghp_sync sync, int workers)
{
    return workers > 1 ? staleness(sync) / 2.0 : 0;
}

static const struct ghp_mixing_facts mixing = {.alone_is_sgd = true,
                                               .updates = true,
                                               .copies = 2, /* leaders of the group and of all */
                                               .keeps_loss = true,
                                               .kept = {"group-leader.", "leader."},
                                               .in_step = ghp_mixing_always,
                                               .traffic = traffic,
                                               .staleness = staleness,
                                               .mean_staleness = mean_staleness};

static const char *const shown[] = {"lsgd:2,4", "lsgd:2,16", NULL};

const struct ghp_sync_ops ghp_sync_lsgd = {
    .name = "lsgd",
    .purpose = "each worker trains alone, drawn to those with the least loss",
    .argument = "GROUPS,TAU",
    .least = 1,
    .usual = -1,
    .read = read,
    .write = write,
    .wants = "groups of workers and steps from one leader to the next; write 'lsgd:2,8' for 2 "
             "groups and 8 steps",
    .check = check,
    .shown = shown,
    .equality = GHP_SYNC_EQUALS_REPLICAS,
    .gathers = true,
    .replicas = true,
    .mixing = &mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};
