/* tests/profiler/worklist/test_analytic.c - the analytic model's text, its defaults, its errors, and that equal texts
 * give equal files. */
#include "profiler/worklist/analytic.h"
#include "tests/check.h"

#include <unistd.h>

static void test_defaults(void)
{
    struct ghp_analytic a = {0};

    CHECK_STATUS(ghp_analytic_parse("F=6e12,bandwidth=1.25e9,latency=20e-6", &a), GHP_OK);
    CHECK_NEAR(a.flops_per_s, 6e12, 0);
    CHECK_NEAR(a.inter.bandwidth_Bps, 1.25e9, 0);
    CHECK_NEAR(a.inter.latency_s, 20e-6, 0);
    CHECK_NEAR(a.intra.bandwidth_Bps, 1.25e9, 0);
    CHECK_NEAR(a.intra.latency_s, 20e-6, 0);
    CHECK_EQ(a.nodes, GHP_ANALYTIC_NODES);
    CHECK_EQ(a.cores, 1);
    CHECK_EQ(a.memory_bytes, INT64_C(1) << 40);
    CHECK_NEAR(a.memory_Bps, 0, 0);
    CHECK_NEAR(a.batch_half, 0, 0);
    CHECK_NEAR(a.overlap.compute, 1, 0);
    CHECK_NEAR(a.overlap.comm, 1, 0);
    CHECK_NEAR(a.overlap.link, 1, 0);
}

static void test_all(void)
{
    struct ghp_analytic a = {0};

    CHECK_STATUS(ghp_analytic_parse(
                     "latency=0,F=1e9,bandwidth=1e6,intra_bandwidth=1e8,"
                     "intra_latency=1e-6,memory=2GiB,memory_bandwidth=1e10,batch_half=1.5,nodes=4,"
                     "cores=8,compute_slowdown=1.5,comm_slowdown=1.25,"
                     "link_slowdown=2",
                     &a),
                 GHP_OK);
    CHECK_NEAR(a.inter.latency_s, 0, 0);
    CHECK_NEAR(a.intra.bandwidth_Bps, 1e8, 0);
    CHECK_NEAR(a.intra.latency_s, 1e-6, 0);
    CHECK_EQ(a.memory_bytes, INT64_C(2) << 30);
    CHECK_NEAR(a.memory_Bps, 1e10, 0);
    CHECK_NEAR(a.batch_half, 1.5, 0);
    CHECK_EQ(a.nodes, 4);
    CHECK_EQ(a.cores, 8);
    CHECK_NEAR(a.overlap.compute, 1.5, 0);
    CHECK_NEAR(a.overlap.comm, 1.25, 0);
    CHECK_NEAR(a.overlap.link, 2, 0);
}

static void test_bad(void)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "no value"},
        {"F=6e12", "'bandwidth' is missing"},
        {"F=6e12,bandwidth=1e9", "'latency' is missing"},
        {"F=fast,bandwidth=1e9,latency=0", "is not a number"},
        {"F=nan,bandwidth=1e9,latency=0", "above 0"},
        {"F=0,bandwidth=1e9,latency=0", "above 0"},
        {"F=1,bandwidth=-1,latency=0", "above 0"},
        {"F=1,bandwidth=1,latency=-1", "at least 0"},
        {"F=1,F=2,bandwidth=1,latency=0", "twice"},
        {"F=1,bandwith=1,latency=0", "did you mean 'bandwidth'"},
        {"F=1,bandwidth=1,latency=0,", "no value"},
        {"F=1,bandwidth=1,latency=0,nodes=2", "'cores'"},
        {"F=1,bandwidth=1,latency=0,nodes=1.5,cores=1", "whole number"},
        {"F=1,bandwidth=1,latency=0,link_slowdown=0.5", "at least 1"},
        {"F=1,bandwidth=1,latency=0,memory=lots", "lots"},
        {"F=1,bandwidth=1,latency=0,batch_half=-1", "at least 0"},
    };
    struct ghp_analytic a = {0};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_STATUS(ghp_analytic_parse(cases[i].text, &a), GHP_ERR_USAGE);
        CHECK_MESSAGE(cases[i].part);
    }
}

/* A saved profile reads back as the same analytic model, and is written alike again. */
static void test_profile(void)
{
    char path[] = "/tmp/ghp-analytic-XXXXXX";
    struct ghp_analytic a = {0};
    struct ghp_profile profile = {0}, again = {0}, read = {0};
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    CHECK_STATUS(ghp_analytic_parse("F=6e12,bandwidth=1.25e9,latency=20e-6", &a), GHP_OK);
    CHECK_STATUS(ghp_analytic_profile(&a, "fast", 4, &profile), GHP_OK);
    CHECK_STATUS(ghp_analytic_profile(&a, "fast", 4, &again), GHP_OK);
    CHECK(profile.hash == again.hash);
    CHECK_EQ(profile.workers, 0);
    CHECK_EQ(profile.n_ops, 0);
    CHECK_TEXT(profile.backend, "analytic");
    CHECK_STATUS(ghp_profile_save(path, &profile), GHP_OK);
    CHECK_STATUS(ghp_profile_load(path, &read), GHP_OK);
    CHECK(profile.hash == read.hash);
    CHECK_NEAR(read.analytic.flops_per_s, 6e12, 0);
    CHECK_NEAR(read.machine.inter.bandwidth_Bps, 1.25e9, 0);
    CHECK_EQ(read.machine.nodes, GHP_ANALYTIC_NODES);
    ghp_profile_release(&read);
    ghp_profile_release(&again);
    ghp_profile_release(&profile);
    unlink(path);
}

/* An all-reduce among one-worker nodes costs what the ring's closed form says (docs/explanation/time-model.md, section
 * 1). */
static void test_ring(void)
{
    struct ghp_analytic a = {0};
    struct ghp_profile profile = {0};
    struct ghp_cost cost = {0};
    struct ghp_ranks ranks = {.first = 0, .count = 16, .stride = 1};
    double bytes = 4.0 * 138344128.0;

    CHECK_STATUS(ghp_analytic_parse("F=6e12,bandwidth=1.25e9,latency=20e-6", &a), GHP_OK);
    CHECK_STATUS(ghp_analytic_profile(&a, "fast", 4, &profile), GHP_OK);
    CHECK_STATUS(ghp_profile_comm(&profile, GHP_COMM_ALL_REDUCE, (int64_t)bytes, ranks, 16, &cost),
                 GHP_OK);
    CHECK_NEAR(cost.seconds, 2 * 15.0 / 16 * bytes / 1.25e9 + 2 * 15 * 20e-6, 1e-9);
    CHECK_NEAR(cost.seconds, 830.66e-3, 5e-6);
    CHECK_EQ(cost.source, GHP_SOURCE_ANALYTIC);
    ghp_profile_release(&profile);
}

/* Half of the rate at batch_half samples, near all of it at many; the file keeps the analytic model and names it only
 * if it is given. */
static void test_batch_half(void)
{
    static const struct {
        int64_t samples;
        double times; /* of the seconds at the full rate */
    } cases[] = {{1, 4}, {3, 2}, {12, 1.25}, {3000, 1.001}};
    char path[] = "/tmp/ghp-analytic-XXXXXX";
    struct ghp_analytic a = {0};
    struct ghp_profile plain = {0}, profile = {0}, read = {0};
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    CHECK_STATUS(ghp_analytic_parse("F=1e9,bandwidth=1,latency=0", &a), GHP_OK);
    CHECK_STATUS(ghp_analytic_profile(&a, "fast", 4, &plain), GHP_OK);
    CHECK_STATUS(ghp_analytic_parse("F=1e9,bandwidth=1,latency=0,batch_half=3", &a), GHP_OK);
    CHECK_STATUS(ghp_analytic_profile(&a, "fast", 4, &profile), GHP_OK);
    CHECK(plain.hash != profile.hash);
    CHECK_STATUS(ghp_profile_save(path, &profile), GHP_OK);
    CHECK_STATUS(ghp_profile_load(path, &read), GHP_OK);
    CHECK(read.hash == profile.hash);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ghp_local local = {.op = GHP_OP_LINEAR,
                                  .n = cases[i].samples,
                                  .c = 1000,
                                  .h = 1,
                                  .w = 1,
                                  .k = 500,
                                  .p = 1,
                                  .q = 1};
        struct ghp_cost full = {0}, half = {0};

        CHECK_STATUS(ghp_profile_op(&plain, &local, GHP_PASS_FORWARD, &full), GHP_OK);
        CHECK_STATUS(ghp_profile_op(&read, &local, GHP_PASS_FORWARD, &half), GHP_OK);
        CHECK_NEAR(full.seconds, 1e-3 * (double)cases[i].samples, 1e-12);
        CHECK_NEAR(half.seconds / full.seconds, cases[i].times, 1e-12);
    }
    ghp_profile_release(&read);
    ghp_profile_release(&profile);
    ghp_profile_release(&plain);
    unlink(path);
}

CHECK_TEST(analytic)
{
    test_defaults();
    test_all();
    test_bad();
    test_profile();
    test_ring();
    test_batch_half();
    return check_end();
}
