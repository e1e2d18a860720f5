/* tests/core/plan/test_profile_scale.c - scaled links and processors: by the analytic model, entries in proportion,
 * the other link as it was, and refusals. */
#include "core/plan/profile_scale.h"
#include "tests/check.h"

static const struct ghp_link intra = {1e-6, 8e9, 0}, inter = {20e-6, 1e9, 0};

/* Two nodes of two workers; entries of a pair inside a node, of pairs across, of all four; one operation. */
static struct ghp_profile measured(void)
{
    const struct ghp_comm_entry entries[] = {
        {GHP_COMM_ALL_REDUCE, 2, 1, 1 << 20, 3e-4, 0.1, GHP_SOURCE_MEASURED},
        {GHP_COMM_ALL_REDUCE, 2, 2, 1 << 20, 4e-3, 0.1, GHP_SOURCE_MEASURED},
        {GHP_COMM_ALL_GATHER, 4, 1, 1 << 20, 2e-3, 0.1, GHP_SOURCE_MEASURED},
    };
    char key[] = "relu n4 c8 h4 w4", algorithm[] = "plain";
    const struct ghp_op_entry op = {.key = key,
                                    .pass = GHP_PASS_FORWARD,
                                    .seconds = 6e-3,
                                    .spread = 0.2,
                                    .source = GHP_SOURCE_MEASURED,
                                    .scratch_bytes = 64,
                                    .algorithm = algorithm};
    struct ghp_profile profile;

    CHECK_STATUS(ghp_profile_init(&profile, "onednn", "fast", 4), GHP_OK);
    profile.machine.nodes = 2;
    profile.machine.intra = intra;
    profile.machine.inter = inter;
    profile.workers = 4;
    profile.analytic = (struct ghp_analytic_model){.flops_per_s = 1e9, .memory_Bps = 2e9};
    profile.copy = (struct ghp_rate){1e-6, 1e9, 0.1, GHP_SOURCE_MEASURED};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        CHECK_STATUS(ghp_profile_add_comm(&profile, &entries[i]), GHP_OK);
    CHECK_STATUS(ghp_profile_add_op(&profile, &op), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    return profile;
}

static double comm_s(const struct ghp_profile *profile, enum ghp_comm_op op, int64_t bytes,
                     int count, int stride)
{
    struct ghp_cost cost;

    CHECK_STATUS(ghp_profile_comm(profile, op, bytes,
                                  (struct ghp_ranks){.count = count, .stride = stride}, 4, &cost),
                 GHP_OK);
    return cost.seconds;
}

/* The entry's seconds by hand: a ring over two ranks, bandwidth shared by `groups` that cross. */
static double pair_s(struct ghp_link link, int groups)
{
    return (1 << 20) / (link.bandwidth_Bps / groups) + 2 * link.latency_s;
}

static void test_links(void)
{
    struct ghp_profile p = measured();
    struct ghp_link slow = {inter.latency_s * 3, inter.bandwidth_Bps / 4, 0};
    double all = comm_s(&p, GHP_COMM_ALL_GATHER, 1 << 22, 4, 1);
    /* two of four ranks in a node: a quarter of each through its link, to the other node */
    double all_analytic = 0.5 * (1 << 22) / inter.bandwidth_Bps + 3 * inter.latency_s;
    double slow_analytic = 0.5 * (1 << 22) / slow.bandwidth_Bps + 3 * slow.latency_s;

    CHECK_STATUS(ghp_profile_scale_link(&p, GHP_LINK_INTER, 0.25, 3), GHP_OK);
    CHECK(p.finalized && p.hash == 0);
    CHECK_NEAR(p.machine.inter.bandwidth_Bps, slow.bandwidth_Bps, 0);
    CHECK_NEAR(p.machine.inter.latency_s, slow.latency_s, 1e-20);
    CHECK_NEAR(p.machine.intra.bandwidth_Bps, intra.bandwidth_Bps, 0);
    /* inside a node nothing changed; both pairs across share the node's link */
    CHECK_NEAR(comm_s(&p, GHP_COMM_ALL_REDUCE, 1 << 20, 2, 1), 3e-4, 0);
    CHECK_EQ(p.comms[0].source, GHP_SOURCE_MEASURED);
    CHECK_NEAR(comm_s(&p, GHP_COMM_ALL_REDUCE, 1 << 20, 2, 2),
               4e-3 * pair_s(slow, 2) / pair_s(inter, 2), 1e-15);
    CHECK_EQ(p.comms[1].source, GHP_SOURCE_ANALYTIC);
    /* beyond the table: the analytic model, as far off the analytic model as the entry was */
    CHECK_NEAR(comm_s(&p, GHP_COMM_ALL_GATHER, 1 << 22, 4, 1), all * slow_analytic / all_analytic,
               1e-14);
    CHECK_STATUS(ghp_profile_scale_link(&p, GHP_LINK_INTER, 4, 1.0 / 3), GHP_OK);
    CHECK_NEAR(comm_s(&p, GHP_COMM_ALL_REDUCE, 1 << 20, 2, 2), 4e-3, 1e-16);
    CHECK_STATUS(ghp_profile_scale_link(&p, GHP_LINK_INTRA, 2, 1), GHP_OK);
    CHECK_NEAR(comm_s(&p, GHP_COMM_ALL_REDUCE, 1 << 20, 2, 1),
               3e-4 * pair_s((struct ghp_link){intra.latency_s, intra.bandwidth_Bps * 2, 0}, 1) /
                   pair_s(intra, 1),
               1e-16);
    CHECK_NEAR(comm_s(&p, GHP_COMM_ALL_REDUCE, 1 << 20, 2, 2), 4e-3, 1e-16);
    CHECK_EQ(ghp_profile_link_of(&p, (struct ghp_ranks){.count = 2, .stride = 1}, 4),
             GHP_LINK_INTRA);
    CHECK_EQ(ghp_profile_link_of(&p, (struct ghp_ranks){.count = 2, .stride = 2}, 4),
             GHP_LINK_INTER);
    CHECK_EQ(ghp_profile_link_of(&p, (struct ghp_ranks){.count = 4, .stride = 1}, 4),
             GHP_LINK_INTER);
    ghp_profile_release(&p);
}

static void test_compute(void)
{
    struct ghp_profile p = measured();

    CHECK_STATUS(ghp_profile_scale_compute(&p, 4), GHP_OK);
    CHECK_NEAR(p.ops[0].seconds, 1.5e-3, 1e-18);
    CHECK_EQ(p.ops[0].source, GHP_SOURCE_ANALYTIC);
    CHECK_NEAR(p.analytic.flops_per_s, 4e9, 0);
    CHECK_NEAR(p.analytic.memory_Bps, 8e9, 0);
    CHECK_NEAR(p.copy.bandwidth_Bps, 1e9, 0);
    CHECK_NEAR(p.comms[0].seconds, 3e-4, 0);
    CHECK(p.finalized && p.hash == 0);
    CHECK_STATUS(ghp_profile_scale_compute(&p, 0), GHP_ERR_INPUT);
    CHECK_STATUS(ghp_profile_scale_compute(&p, NAN), GHP_ERR_INPUT);
    ghp_profile_release(&p);
}

static void test_copy(void)
{
    struct ghp_profile p = measured(), copy;
    uint64_t hash = p.hash;

    CHECK_STATUS(ghp_profile_copy(&p, &copy), GHP_OK);
    CHECK(copy.finalized && copy.hash == hash);
    CHECK_STATUS(ghp_profile_finalize(&copy), GHP_OK);
    CHECK(copy.hash == hash); /* the same text */
    CHECK_STATUS(ghp_profile_scale_link(&copy, GHP_LINK_INTER, 2, 1), GHP_OK);
    CHECK_STATUS(ghp_profile_scale_compute(&copy, 2), GHP_OK);
    CHECK_NEAR(p.ops[0].seconds, 6e-3, 0); /* the original stays */
    CHECK_NEAR(p.comms[1].seconds, 4e-3, 0);
    CHECK_NEAR(p.machine.inter.bandwidth_Bps, 1e9, 0);
    CHECK_STATUS(ghp_profile_finalize(&copy), GHP_OK);
    CHECK(copy.hash != 0 && copy.hash != hash);
    ghp_profile_release(&copy);
    ghp_profile_release(&p);
}

static void test_refusals(void)
{
    struct ghp_profile p = measured();
    uint64_t hash = p.hash;

    CHECK_STATUS(ghp_profile_scale_link(&p, GHP_LINK_INTER, 0, 1), GHP_ERR_INPUT);
    CHECK_MESSAGE("finite");
    CHECK_STATUS(ghp_profile_scale_link(&p, GHP_LINK_INTER, INFINITY, 1), GHP_ERR_INPUT);
    CHECK_STATUS(ghp_profile_scale_link(&p, GHP_LINK_INTER, 1, -1), GHP_ERR_INPUT);
    CHECK_STATUS(ghp_profile_scale_link(&p, GHP_LINK_INTER, NAN, 1), GHP_ERR_INPUT);
    CHECK(p.hash == hash);
    p.machine.intra.bandwidth_Bps = 0;
    CHECK_STATUS(ghp_profile_scale_link(&p, GHP_LINK_INTRA, 2, 1), GHP_ERR_INPUT);
    CHECK_MESSAGE("set bandwidth_Bps");
    CHECK_NEAR(p.comms[0].seconds, 3e-4, 0);
    ghp_profile_release(&p);
}

CHECK_TEST(profile_scale)
{
    test_links();
    test_compute();
    test_copy();
    test_refusals();
    return check_end();
}
