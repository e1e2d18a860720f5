/* tests/core/sharding/test_crossing.c - how much goes through a node's link: the closed form compared with a walk over
 * all members.
 *
 * With latency 0 and bandwidth p - 1 a collective's analytic model is its bytes by p times the messages that leave a
 * node, all whole numbers but for the last division. All-to-alls send one for every pair; gathers and sums one for
 * every node, if groups fill their nodes. */
#include "core/cost/profile.h"
#include "tests/check.h"

enum { MOST_NODES = 128 };

/* The reference: looks at each pair of members of every whole group. */
static int64_t leaving_by_walk(const struct ghp_machine *machine, struct ghp_ranks kind,
                               int workers)
{
    int per_node = ghp_machine_workers_per_node(machine, workers);
    int block = kind.count * kind.stride;
    int64_t most = 0;

    for (int node = 0; node * per_node < workers; node++) {
        int64_t leaving = 0;

        for (int base = 0; base + block <= workers; base += block)
            for (int j = 0; j < kind.stride; j++)
                for (int from = 0; from < kind.count; from++)
                    for (int to = 0; to < kind.count; to++)
                        leaving += (base + j + from * kind.stride) / per_node == node &&
                                   (base + j + to * kind.stride) / per_node != node;
        if (leaving > most) most = leaving;
    }
    return most;
}

/* The same for one slice a node: each member sends to the nodes where others of its group are. Returns -1 if some group
 * has different numbers of members in its nodes, or its nodes have others than members of such groups. */
static int64_t leaving_by_node(const struct ghp_machine *machine, struct ghp_ranks kind,
                               int workers)
{
    int per_node = ghp_machine_workers_per_node(machine, workers);
    int block = kind.count * kind.stride, here[MOST_NODES] = {0};
    int64_t leaving[MOST_NODES] = {0}, most = 0;

    if (block % per_node != 0) return -1; /* blocks begin and end with nodes */
    for (int base = 0; base + block <= workers; base += block)
        for (int j = 0; j < kind.stride; j++) {
            memset(here, 0, sizeof here);
            for (int i = 0; i < kind.count; i++)
                here[(base + j + i * kind.stride) / per_node]++;
            for (int a = 0; a < MOST_NODES; a++)
                for (int b = 0; b < MOST_NODES; b++) {
                    if (here[a] == 0 || here[b] == 0 || a == b) continue;
                    if (here[a] != here[b]) return -1;
                    leaving[a] += here[a];
                }
        }
    for (int a = 0; a < MOST_NODES; a++)
        if (leaving[a] > most) most = leaving[a];
    return most;
}

static void check_analytic(enum ghp_comm_op op, struct ghp_machine machine, struct ghp_ranks kind,
                           int workers)
{
    int64_t walked = op == GHP_COMM_ALL_TO_ALL ? -1 : leaving_by_node(&machine, kind, workers);
    double seconds = ghp_machine_comm_s(&machine, op, (int64_t)kind.count << 20, kind, workers);

    if (walked <= 0) walked = leaving_by_walk(&machine, kind, workers);
    if (!CHECK_NEAR(seconds / (1 << 20) * (kind.count - 1), walked, 1e-6))
        fprintf(stderr, "%s, %d workers, %d nodes, %d ranks at stride %d\n", ghp_comm_name(op),
                workers, machine.nodes, kind.count, kind.stride);
}

static void check_kind(int workers, int nodes, int count, int stride)
{
    /* the inner link takes no time that counts */
    struct ghp_machine machine = {
        .nodes = nodes, .intra = {.bandwidth_Bps = 1e15}, .inter = {.bandwidth_Bps = count - 1}};
    struct ghp_ranks kind = {.first = 0, .count = count, .stride = stride};

    check_analytic(GHP_COMM_ALL_TO_ALL, machine, kind, workers);
    check_analytic(GHP_COMM_ALL_GATHER, machine, kind, workers);
    check_analytic(GHP_COMM_REDUCE_SCATTER, machine, kind, workers);
}

CHECK_TEST(crossing)
{
    static const int workers[] = {2, 3, 4, 6, 7, 8, 12, 16, 24, 30};

    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++)
        for (int nodes = 1; nodes <= workers[w] + 1; nodes++)
            for (int count = 2; count <= workers[w]; count++)
                for (int stride = 1; count * stride <= workers[w]; stride++)
                    check_kind(workers[w], nodes, count, stride);
    check_kind(512, 64, 64, 8);
    check_kind(512, 100, 32, 2);
    return check_end();
}
