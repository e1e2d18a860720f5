/* tests/core/test_crossing.c - how much goes through a node's link: the closed form beside a walk over all members.
 *
 * With latency 0 and bandwidth p - 1 a collective's law is its bytes by p times the messages that leave a node, all whole
 * numbers but for the last division. */
#include "core/profile.h"
#include "tests/check.h"

/* The slow twin: looks at each pair of members of every whole group. */
static int64_t leaving_by_walk(const struct ghp_machine *machine, struct ghp_ranks kind, int workers)
{
    int per_node = ghp_machine_workers_per_node(machine, workers);
    int block = kind.count * kind.stride;
    int64_t most = 0;

    for (int node = 0; node * per_node < workers; ++node) {
        int64_t leaving = 0;

        for (int base = 0; base + block <= workers; base += block)
            for (int j = 0; j < kind.stride; ++j)
                for (int from = 0; from < kind.count; ++from)
                    for (int to = 0; to < kind.count; ++to)
                        leaving += (base + j + from * kind.stride) / per_node == node &&
                                   (base + j + to * kind.stride) / per_node != node;
        if (leaving > most) most = leaving;
    }
    return most;
}

static void check_kind(int workers, int nodes, int count, int stride)
{
    /* the inner link takes no time that counts */
    struct ghp_machine machine = {.nodes = nodes, .intra = {0, 1e15}, .inter = {0, count - 1}};
    struct ghp_ranks kind = {.first = 0, .count = count, .stride = stride};
    int64_t walked = leaving_by_walk(&machine, kind, workers);
    double seconds = ghp_machine_comm_s(&machine, GHP_COMM_ALL_GATHER, (int64_t)count << 20, kind, workers);

    if (!CHECK_NEAR(seconds / (1 << 20) * (count - 1), walked, 1e-6))
        fprintf(stderr, "%d workers, %d nodes, %d ranks at stride %d\n", workers, nodes, count, stride);
}

int main(void)
{
    static const int workers[] = {2, 3, 4, 6, 7, 8, 12, 16, 24, 30};

    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; ++w)
        for (int nodes = 1; nodes <= workers[w] + 1; ++nodes)
            for (int count = 2; count <= workers[w]; ++count)
                for (int stride = 1; count * stride <= workers[w]; ++stride)
                    check_kind(workers[w], nodes, count, stride);
    check_kind(512, 64, 64, 8);
    check_kind(512, 100, 32, 2);
    return check_end();
}
