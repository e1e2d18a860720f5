/* tests/core/test_crossing.c - how many groups share a node's link: the closed form beside a walk over all ranks.
 *
 * With latency 0 and a bandwidth of 1, a collective's law is its bytes times the groups on the link: all whole numbers. */
#include "core/profile.h"
#include "tests/check.h"

/* The slow twin: looks at the members of every group. */
static int crossing_by_walk(const struct ghp_machine *machine, struct ghp_ranks kind, int workers)
{
    int per_node = ghp_machine_workers_per_node(machine, workers), most = 0;
    int64_t block = (int64_t)kind.count * kind.stride;

    for (int a = 0; a < workers; a += per_node) {
        int crossing = 0;

        for (int64_t base = 0; base < workers; base += block)
            for (int j = 0; j < kind.stride; ++j) {
                bool inside = false, outside = false;

                for (int i = 0; i < kind.count && base + j < workers; ++i) {
                    int64_t rank = base + j + (int64_t)i * kind.stride;
                    bool real = rank < workers;

                    if (!real) rank = workers - 1; /* a group that is cut off reaches to the end */
                    if (rank < a || rank >= a + per_node)
                        outside = true;
                    else if (real)
                        inside = true;
                }
                crossing += inside && outside;
            }
        if (crossing > most) most = crossing;
    }
    return most;
}

static int crossing_by_law(const struct ghp_machine *machine, struct ghp_ranks kind, int workers)
{
    double seconds = ghp_machine_comm_s(machine, GHP_COMM_ALL_GATHER, 1 << 20, kind, workers);

    /* (n - 1) / n * bytes / (inter / crossing), or over the intra link, a million times as fast */
    return (int)llround(seconds / ((kind.count - 1.0) / kind.count * (1 << 20)));
}

static void check_kind(int workers, int nodes, int count, int stride)
{
    struct ghp_machine machine = {.nodes = nodes, .intra = {0, 1e6}, .inter = {0, 1}};
    struct ghp_ranks kind = {.first = 0, .count = count, .stride = stride};
    int walked = crossing_by_walk(&machine, kind, workers);

    if (!CHECK_EQ(crossing_by_law(&machine, kind, workers), walked))
        fprintf(stderr, "%d workers, %d nodes, %d ranks at stride %d\n", workers, nodes, count,
                stride);
}

int main(void)
{
    static const int workers[] = {1, 2, 3, 4, 6, 7, 8, 12, 16, 24, 30, 36, 64};

    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; ++w)
        for (int nodes = 1; nodes <= workers[w] + 1; ++nodes)
            for (int count = 2; count <= workers[w]; ++count)
                for (int stride = 1; stride <= workers[w]; ++stride)
                    if (workers[w] % count == 0 || stride <= 3)
                        check_kind(workers[w], nodes, count, stride);
    check_kind(4096, 1024, 64, 16);
    check_kind(4096, 512, 4096, 1);
    check_kind(4096, 100, 32, 2);
    return check_end();
}
