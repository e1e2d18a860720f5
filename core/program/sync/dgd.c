/* core/program/sync/dgd.c - dgd:GRAPH: decentralised gradient descent. After each step a worker takes the weighted
 * mean of its own weights and its neighbours' (sharding/neighbours.h). Lowered as all that mix (mixing.c); what a mix
 * does is in executor/mixing/mix_neighbours.c. */
#include "core/program/sync/mixing.h"

static bool read(const char *text, struct ghp_sync *sync)
{
    return ghp_neighbours_parse(text, &sync->graph);
}

static void write(struct ghp_sync sync, char text[GHP_NEIGHBOURS_TEXT_BYTES])
{
    ghp_neighbours_format(&sync.graph, text);
}

static enum ghp_status check(struct ghp_sync sync, int workers)
{
    return ghp_neighbours_check(&sync.graph, workers);
}

/* The traffic of the worker with most neighbours, whose messages travel at the same time. */
static struct ghp_mix_traffic traffic(struct ghp_sync sync, int workers)
{
    int degree = ghp_neighbours_most_degree(&sync.graph, workers);

    return (struct ghp_mix_traffic){
        .out = degree, .in = degree, .waits = degree, .latencies = 1 - degree};
}

static const struct ghp_mixing_facts mixing = {.alone_is_sgd = true,
                                               .updates = true,
                                               .copies = 3, /* the mean, and two that arrive */
                                               .in_step = ghp_mixing_always,
                                               .traffic = traffic};

static const char *const shown[] = {"dgd:ring", "dgd:torus", NULL};

const struct ghp_sync_ops ghp_sync_dgd = {
    .name = "dgd",
    .purpose = "each worker takes the weighted mean of its own weights and its neighbours'",
    .argument = "GRAPH",
    .usual = -1,
    .read = read,
    .write = write,
    .wants = "a graph: ring, torus, complete, or at most 32 edges such as '0-1,1-2'",
    .check = check,
    .shown = shown,
    .equality = GHP_SYNC_EQUALS_REPLICAS,
    .gathers = true,
    .replicas = true,
    .mixing = &mixing,
    .emit_start = ghp_emit_mixing_start,
    .emit_before = ghp_emit_mixing_before};
