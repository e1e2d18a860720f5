/* tests/profiler/measure/test_comm.c - collectives are timed at every rank count, and the fitted analytic model finds
 * the links again. ghp-test: np=3 np_full=1,4 timeout=60 */
#include "profiler/measure/comm.h"
#include "core/base/clock.h"
#include "tests/check.h"

static struct ghp_measure m;

static void test_ranks(void)
{
    struct ghp_ranks ranks = ghp_measure_ranks(5, 8, 2, 4);

    CHECK_EQ(ranks.first, 1);
    CHECK_EQ(ranks.count, 2);
    CHECK_EQ(ranks.stride, 4);
    ranks = ghp_measure_ranks(5, 8, 4, 1);
    CHECK_EQ(ranks.first, 4);
    ranks = ghp_measure_ranks(7, 8, 3, 1); /* 6 and 7 are left over */
    CHECK_EQ(ranks.first, 7);
    CHECK_EQ(ranks.count, 1);
    for (int rank = 0; rank < 12; rank++) { /* a rank is in its own group */
        ranks = ghp_measure_ranks(rank, 12, 3, 2);
        CHECK_EQ((rank - ranks.first) % ranks.stride, 0);
        CHECK(rank >= ranks.first && rank <= ranks.first + (ranks.count - 1) * ranks.stride);
    }
}

/* Entries made by the analytic model of two known links: the fit must give these links back. */
static void test_fit(void)
{
    static const struct ghp_link intra = {2e-6, 8e9, 0}, inter = {30e-6, 1e9, 0};
    static const int kinds[][2] = {{2, 1}, {4, 1}, {2, 4}, {8, 1}};
    struct ghp_profile profile = {0};

    CHECK_STATUS(ghp_profile_init(&profile, "reference", "fast", 4), GHP_OK);
    profile.machine.nodes = 2;
    profile.machine.intra = intra;
    profile.machine.inter = inter;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int64_t bytes = 1024; bytes < (64 << 20); bytes *= 4) {
            struct ghp_comm_entry entry = {.op = GHP_COMM_ALL_REDUCE,
                                           .count = kinds[k][0],
                                           .stride = kinds[k][1],
                                           .bytes = bytes};

            entry.seconds =
                ghp_machine_comm_s(&profile.machine, entry.op, bytes,
                                   ghp_measure_ranks(0, 8, entry.count, entry.stride), 8);
            CHECK_STATUS(ghp_profile_add_comm(&profile, &entry), GHP_OK);
        }
    }
    profile.machine.intra = profile.machine.inter = (struct ghp_link){1, 1, 0};
    ghp_measure_fit_links(&profile, 8);
    CHECK_NEAR(profile.machine.intra.latency_s, intra.latency_s, 1e-9);
    CHECK_NEAR(profile.machine.intra.bandwidth_Bps / intra.bandwidth_Bps, 1, 1e-6);
    CHECK_NEAR(profile.machine.inter.latency_s, inter.latency_s, 1e-9);
    CHECK_NEAR(profile.machine.inter.bandwidth_Bps / inter.bandwidth_Bps, 1, 1e-6);
    CHECK_NEAR(profile.machine.intra.asymptotic_Bps / intra.bandwidth_Bps, 1, 1e-6);
    CHECK_NEAR(profile.machine.inter.asymptotic_Bps / inter.bandwidth_Bps, 1, 1e-6);
    ghp_profile_release(&profile);
}

/* Short messages pass in a burst, at three times the rate: it is the long ones that say what the rate is. The law is then
 * off by what the burst saves, two thirds of 64 KiB of each message, and its error says no more. */
static void test_burst(void)
{
    struct ghp_profile profile = {0};
    const double rate_Bps = 1e9;

    CHECK_STATUS(ghp_profile_init(&profile, "reference", "fast", 4), GHP_OK);
    profile.machine.nodes = 2;
    for (int64_t bytes = 16 << 10; bytes <= (4 << 20); bytes *= 4) {
        double burst = fmin(64 << 10, (double)bytes);
        struct ghp_comm_entry entry = {
            .op = GHP_COMM_ALL_REDUCE, .count = 2, .stride = 1, .bytes = bytes};

        /* over two ranks a sum sends as many bytes as it has */
        entry.seconds = (burst / 3 + (double)bytes - burst) / rate_Bps;
        CHECK_STATUS(ghp_profile_add_comm(&profile, &entry), GHP_OK);
    }
    ghp_measure_fit_links(&profile, 2);
    CHECK_NEAR(profile.machine.inter.asymptotic_Bps / rate_Bps, 1, 1e-9);
    CHECK_NEAR(profile.machine.inter.bandwidth_Bps / rate_Bps, 1, 1e-9);
    CHECK_NEAR(profile.machine.inter.latency_s, 0, 0);
    CHECK(profile.analytic.comm_spread > 0 && profile.analytic.comm_spread < 0.12);
    ghp_profile_release(&profile);
}

/* Nothing measured: given links stay. */
static void test_fit_nothing(void)
{
    struct ghp_profile profile = {0};

    CHECK_STATUS(ghp_profile_init(&profile, "reference", "fast", 4), GHP_OK);
    profile.machine.intra = (struct ghp_link){1e-6, 5e9, 0};
    ghp_measure_fit_links(&profile, 4);
    CHECK_NEAR(profile.machine.intra.latency_s, 1e-6, 0);
    CHECK_NEAR(profile.machine.intra.bandwidth_Bps, 5e9, 0);
    CHECK_NEAR(profile.machine.intra.asymptotic_Bps, 0, 0);
    ghp_profile_release(&profile);
}

/* One brief message says what the latency is at most, and nothing of the bandwidth. */
static void test_fit_brief(void)
{
    const struct ghp_comm_entry entry = {
        .op = GHP_COMM_ALL_REDUCE, .count = 2, .stride = 1, .bytes = 24, .seconds = 3e-3};
    struct ghp_profile profile = {0};

    CHECK_STATUS(ghp_profile_init(&profile, "reference", "fast", 4), GHP_OK);
    profile.machine.intra = (struct ghp_link){1e-6, 5e9, 0};
    CHECK_STATUS(ghp_profile_add_comm(&profile, &entry), GHP_OK);
    ghp_measure_fit_links(&profile, 2);
    CHECK_NEAR(profile.machine.intra.bandwidth_Bps, 5e9, 0);
    CHECK(profile.machine.intra.latency_s > 1e-4 && profile.machine.intra.latency_s <= 3e-3);
    CHECK_NEAR(profile.machine.intra.asymptotic_Bps, 0, 0);
    ghp_profile_release(&profile);
}

static void test_measured(void)
{
    int most = m.size > 1 ? m.size : 2; /* a lone rank takes part in nothing, but does so in step */
    struct ghp_worklist_comm comms[] = {
        {.op = GHP_COMM_ALL_REDUCE, .count = most, .stride = 1, .bytes = 1200},
        {.op = GHP_COMM_ALL_REDUCE, .count = 2, .stride = 1, .bytes = 1 << 20},
        {.op = GHP_COMM_ALL_REDUCE, .count = 2, .stride = 2, .bytes = 4096},
        {.op = GHP_COMM_ALL_GATHER, .count = most, .stride = 1, .bytes = 12000},
        {.op = GHP_COMM_REDUCE_SCATTER, .count = most, .stride = 1, .bytes = 12000},
        {.op = GHP_COMM_ALL_TO_ALL, .count = most, .stride = 1, .bytes = 12000},
        {.op = GHP_COMM_ALL_TO_ALL, .count = most, .stride = 1, .bytes = 1 << 30},
    };
    struct ghp_worklist worklist = {.n_comms = (int)(sizeof comms / sizeof comms[0]),
                                    .comms = comms};
    struct ghp_comm_limits limits = {
        .samples = 2, .deadline_s = ghp_now_s() + 60, .memory_bytes = 8 << 20};
    struct ghp_profile profile = {0};

    CHECK_STATUS(ghp_profile_init(&profile, "reference", "fast", 4), GHP_OK);
    CHECK_STATUS(ghp_measure_comms(&m, &worklist, limits, &profile), GHP_OK);
    CHECK_EQ(comms[6].samples.n, 0); /* too large */
    CHECK_EQ(comms[5].samples.n, 2);
    CHECK_EQ(profile.n_comms, m.rank == 0 ? 6 : 0);
    for (int i = 0; i < profile.n_comms; i++) {
        CHECK(profile.comms[i].seconds > 0);
        CHECK(profile.comms[i].spread >= 0);
        CHECK_EQ(profile.comms[i].source, GHP_SOURCE_MEASURED);
    }
    comms[0].kept = true;
    CHECK_STATUS(ghp_measure_comms(&m, &worklist, limits, &profile), GHP_OK); /* another round */
    CHECK_EQ(comms[0].samples.n, 2);
    CHECK_EQ(comms[5].samples.n, 4);
    CHECK_EQ(profile.n_comms, m.rank == 0 ? 6 : 0);
    limits.deadline_s = 0;
    CHECK_STATUS(ghp_measure_comms(&m, &worklist, limits, &profile), GHP_OK); /* no time */
    CHECK_EQ(comms[5].samples.n, 4);
    for (int i = 0; i < worklist.n_comms; i++) {
        comms[i].kept = false;
        comms[i].samples.n = 0;
    }
    CHECK_STATUS(ghp_measure_comms(&m, &worklist, limits, &profile), GHP_OK); /* one all the same */
    for (int i = 0; i < worklist.n_comms; i++)
        CHECK_EQ(comms[i].samples.n, i == 1 ? 2 : 0); /* of 1 MiB */
    ghp_profile_release(&profile);
}

CHECK_TEST(comm)
{
    struct ghp_ranks all = {.stride = 1};

    m.element_bytes = 4;
    m.sample_s = 2e-3;
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 30, &m.transport), GHP_OK))
        return check_end();
    m.rank = m.transport->control->rank;
    m.size = m.transport->control->size;
    all.count = m.size;
    CHECK_STATUS(ghp_collectives_group(m.transport->host, all, GHP_STREAM_COMPUTE, &m.world),
                 GHP_OK);
    test_ranks();
    test_fit();
    test_burst();
    test_fit_nothing();
    test_fit_brief();
    test_measured();
    ghp_transport_end(m.transport);
    return check_end();
}
