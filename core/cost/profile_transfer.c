/* core/cost/profile_transfer.c - seconds of a transfer between two stages: the analytic model over its messages,
 * scaled by what was measured.
 *
 *     max over workers and nodes of (bytes out, bytes in) / bandwidth + most messages of a worker * latency
 *
 * over the link each message crosses, a node's outer link shared by its workers, all groups at once. If single messages
 * (or, without those, all-gathers of two) were measured at that size and distance, their ratio to the same analytic
 * model is taken over.
 *
 * Source   docs/explanation/stages.md 4
 * Tested   tests/core/sharding/test_transfer.c */
#include "core/cost/profile_private.h"

#include <math.h>
#include <stdlib.h>

/* Bytes on their way, of the groups looked at. */
struct load {
    int64_t *out, *in;           /* of workers, inside their node */
    int64_t *node_out, *node_in; /* of nodes */
    int64_t most_bytes;          /* of one worker, sent or received */
    int most_messages;
    bool crosses; /* some message leaves its node */
};

static void note_worker(struct load *load, struct ghp_traffic traffic)
{
    if (traffic.bytes > load->most_bytes) load->most_bytes = traffic.bytes;
    if (traffic.messages > load->most_messages) load->most_messages = traffic.messages;
}

/* The messages of one sender. */
static void add_sender(const struct ghp_transfer *t, int rank, int per_node, struct load *load)
{
    struct ghp_placement own = ghp_placement_of(t->staging, t->n_layers, t->whole, rank);
    struct ghp_peers to = ghp_transfer_receivers(t, &own);

    for (int r = to.first; r < to.first + to.n; r++) {
        struct ghp_placement other = ghp_placement_of(t->staging, t->n_layers, t->whole, r);
        struct ghp_slice slice;
        int64_t bytes;

        if (!ghp_transfer_slice(t, &own, &other, &slice)) continue;
        bytes = ghp_slice_bytes(t, &slice);
        if (ghp_node_of(rank, per_node) == ghp_node_of(r, per_node)) {
            load->out[rank] += bytes;
            load->in[r] += bytes;
            continue;
        }
        load->crosses = true;
        load->node_out[ghp_node_of(rank, per_node)] += bytes;
        load->node_in[ghp_node_of(r, per_node)] += bytes;
    }
}

/* All groups until the pattern of groups on nodes repeats. */
static void add_groups(const struct ghp_transfer *t, int per_node, struct load *load)
{
    int size = ghp_staging_group(t->staging, t->whole.workers), from = 0, to = 0;

    for (int i = 0; i < t->from_stage; i++)
        from += t->staging->stage[i].workers;
    for (int i = 0; i < t->to_stage; i++)
        to += t->staging->stage[i].workers;
    for (int first = 0; first < t->whole.workers; first += size) {
        if (first > 0 && t->staging->shares == NULL &&
            (first % per_node == 0 || per_node >= t->whole.workers))
            break;
        for (int k = 0; k < t->staging->stage[t->from_stage].workers; k++) {
            add_sender(t, first + from + k, per_node, load);
            note_worker(load, ghp_transfer_sent(t, first + from + k));
        }
        for (int k = 0; k < t->staging->stage[t->to_stage].workers; k++)
            note_worker(load, ghp_transfer_received(t, first + to + k));
    }
}

static int64_t most_of(const int64_t *values, int n)
{
    int64_t most = 0;

    for (int i = 0; i < n; i++)
        if (values[i] > most) most = values[i];
    return most;
}

static double link_s(struct ghp_link link, int64_t bytes)
{
    return bytes > 0 ? (double)bytes / link.bandwidth_Bps : 0;
}

static double analytic_of_load(const struct ghp_machine *machine, const struct load *load,
                               int workers)
{
    int64_t inside = most_of(load->out, workers), outside = most_of(load->node_out, workers);
    struct ghp_link inter = ghp_machine_inter(machine, workers),
                    slowest = load->crosses ? inter : machine->intra;

    if (most_of(load->in, workers) > inside) inside = most_of(load->in, workers);
    if (most_of(load->node_in, workers) > outside) outside = most_of(load->node_in, workers);
    return fmax(link_s(machine->intra, inside), link_s(inter, outside)) +
           load->most_messages * slowest.latency_s;
}

static enum ghp_status load_of(const struct ghp_profile *profile, const struct ghp_transfer *t,
                               struct load *load)
{
    size_t n = (size_t)t->whole.workers;
    int per_node = ghp_machine_workers_per_node(&profile->machine, t->whole.workers);

    *load = (struct load){.out = ghp_alloc(4 * n, sizeof *load->out)};
    if (load->out == NULL) return GHP_NO_MEMORY();
    load->in = load->out + n;
    load->node_out = load->in + n;
    load->node_in = load->node_out + n;
    add_groups(t, per_node, load);
    return GHP_OK;
}

static bool has_table(const struct ghp_profile *profile, enum ghp_comm_op op)
{
    for (int i = 0; i < profile->n_comms; i++)
        if (profile->comms[i].op == op) return true;
    return false;
}

/* What a transfer is compared with: the measured operation, at its bytes and distance. */
struct pair {
    enum ghp_comm_op op;
    int64_t bytes;
    struct ghp_ranks ranks;
};

static struct pair pair_of(const struct ghp_profile *profile, const struct ghp_transfer *t,
                           const struct load *load)
{
    bool single = has_table(profile, GHP_COMM_TRANSFER);
    int a = t->from_stage < t->to_stage ? t->from_stage : t->to_stage, distance = 0;

    for (int i = a; i < t->from_stage + t->to_stage - a; i++)
        distance += t->staging->stage[i].workers;
    return (struct pair){.op = single ? GHP_COMM_TRANSFER : GHP_COMM_ALL_GATHER,
                         .bytes = (single ? 1 : 2) * load->most_bytes,
                         .ranks = {.count = 2, .stride = distance}};
}

enum ghp_status ghp_profile_transfer(const struct ghp_profile *profile,
                                     const struct ghp_transfer *t, struct ghp_cost *cost)
{
    struct load load = {0};
    enum ghp_status status = load_of(profile, t, &load);
    struct pair pair;
    double analytic_s;

    *cost = (struct ghp_cost){.source = GHP_SOURCE_ANALYTIC};
    if (status == GHP_OK && load.most_bytes > 0) {
        pair = pair_of(profile, t, &load);
        status = ghp_profile_comm(profile, pair.op, pair.bytes, pair.ranks, t->whole.workers, cost);
        analytic_s = ghp_machine_comm_s(&profile->machine, pair.op, pair.bytes, pair.ranks,
                                        t->whole.workers);
        if (status == GHP_OK)
            cost->seconds *=
                analytic_of_load(&profile->machine, &load, t->whole.workers) / analytic_s;
        if (status == GHP_OK && pair.op != GHP_COMM_TRANSFER) cost->source = GHP_SOURCE_ANALYTIC;
    }
    free(load.out);
    return status;
}

enum ghp_status ghp_profile_transfer_points(const struct ghp_profile *profile,
                                            const struct ghp_transfer *t,
                                            struct ghp_comm_interpolation *points)
{
    struct load load = {0};
    struct pair pair;

    *points = (struct ghp_comm_interpolation){0};
    GHP_TRY(load_of(profile, t, &load));
    pair = pair_of(profile, t, &load);
    if (load.most_bytes > 0)
        *points =
            ghp_profile_comm_points(profile, pair.op, pair.bytes, pair.ranks, t->whole.workers);
    free(load.out);
    return GHP_OK;
}
