/* tests/profiler/measure/test_rates.c - the line through two timings, and rates and slowdowns of a machine that is
 * there. ghp-test: np=2 np_full=1 timeout=120 */
#include "profiler/measure/arrival.h"
#include "profiler/measure/overlap.h"
#include "profiler/measure/speed_probe.h"
#include "profiler/measure/rates.h"
#include "executor/opbench/opbench.h"
#include "tests/check.h"

static struct ghp_measure m;

static void test_line(void)
{
    double bytes[2] = {1000, 101000};
    struct ghp_timed timed[2] = {{.seconds = 2e-6}, {.seconds = 12e-6, .spread = 0.1}};
    struct ghp_rate rate = ghp_measure_line(bytes, timed);

    CHECK_NEAR(rate.bandwidth_Bps, 1e10, 1);
    CHECK_NEAR(rate.latency_s, 1.9e-6, 1e-12);
    CHECK_NEAR(rate.spread, 0.1, 0);
    timed[0].seconds = 1e-9; /* would start below 0 */
    rate = ghp_measure_line(bytes, timed);
    CHECK_NEAR(rate.latency_s, 0, 0);
    CHECK_NEAR(bytes[1] / rate.bandwidth_Bps, 12e-6, 1e-12);
    timed[0].seconds = 20e-6; /* would fall */
    rate = ghp_measure_line(bytes, timed);
    CHECK_NEAR(rate.latency_s, 0, 0);
    CHECK(rate.bandwidth_Bps > 0);
}

static void check_rate(struct ghp_rate rate)
{
    CHECK(rate.latency_s >= 0 && rate.latency_s < 0.1);
    CHECK(rate.bandwidth_Bps > 1e5 && rate.bandwidth_Bps < 1e13);
    CHECK(rate.spread >= 0);
    CHECK_EQ(rate.source, GHP_SOURCE_MEASURED);
}

static void test_rates(void)
{
    struct ghp_model model = {0};
    struct ghp_profile profile = {0};

    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/lenet5.json", &model), GHP_OK);
    CHECK_STATUS(ghp_measure_rates(&m, &model, 8, &profile), GHP_OK);
    check_rate(profile.copy);
    check_rate(profile.update[GHP_OPTIMIZER_INDEX_sgd]);
    check_rate(profile.update[GHP_OPTIMIZER_INDEX_adamw]);
    check_rate(profile.load);
    check_rate(profile.accumulate);
    ghp_model_release(&model);
}

static enum ghp_status bench_run(void *context, int64_t repeats)
{
    return ghp_opbench_run(context, (int)repeats);
}

static void test_overlap(void)
{
    struct ghp_opbench_task task = {.local = {.op = GHP_OP_LINEAR,
                                              .n = 64,
                                              .c = 256,
                                              .h = 1,
                                              .w = 1,
                                              .k = 256,
                                              .p = 1,
                                              .q = 1,
                                              .n_inputs = 1},
                                    .pass = GHP_PASS_FORWARD};
    struct ghp_opbench *bench = NULL;
    struct ghp_overlap overlap = {0};

    if (!CHECK_STATUS(ghp_opbench_open(m.backend_ops, m.backend, &task, &bench), GHP_OK)) return;
    const struct ghp_task twice[] = {{.run = bench_run, .context = bench},
                                     {.run = bench_run, .context = bench}};
    CHECK_STATUS(ghp_measure_overlap(&m, twice, 2, &overlap), GHP_OK);
    CHECK(overlap.compute >= 1 && overlap.compute < 100);
    CHECK(overlap.comm >= 1 && overlap.comm < 100);
    CHECK(overlap.link >= 1 && overlap.link < 100);
    CHECK(overlap.queueing_delay_s >= 0 && overlap.queueing_delay_s < 10);
    if (m.size == 1)
        CHECK_NEAR(overlap.compute + overlap.comm + overlap.link + overlap.queueing_delay_s, 3, 0);
    CHECK_STATUS(ghp_measure_arrival(&m, twice, 2, &overlap), GHP_OK);
    CHECK(overlap.arrival_delay_s >= 0 && overlap.arrival_delay_s < 10);
    CHECK(overlap.launch_delay_s >= 0 && overlap.launch_delay_s < 10);
    if (m.size == 1) CHECK_NEAR(overlap.arrival_delay_s + overlap.launch_delay_s, 0, 0);
    ghp_opbench_close(bench);
}

/* All ranks have the same means. */
static void test_speed_probe(void)
{
    struct ghp_samples samples[GHP_SPEED_PROBE_JOBS] = {{0}};

    for (int i = 0; i < 2; i++)
        CHECK_STATUS(ghp_measure_speed_probe(&m, samples), GHP_OK);
    for (int job = 0; job < GHP_SPEED_PROBE_JOBS; job++) {
        double most = samples[job].values[1];

        CHECK_EQ(samples[job].n, 2);
        CHECK(samples[job].values[0] > 0 && most > 0);
        CHECK_STATUS(ghp_measure_max(&m, GHP_OK, &most), GHP_OK);
        CHECK_NEAR(most, samples[job].values[1], 0);
    }
}

CHECK_TEST(rates)
{
    struct ghp_ranks all = {.stride = 1};
    struct ghp_backend_config config = {.element_bytes = 4, .threads = 1};

    m.backend_ops = &ghp_backend_reference;
    m.element_bytes = 4;
    m.sample_s = 5e-3;
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 60, &m.transport), GHP_OK))
        return check_end();
    m.rank = m.transport->control->rank;
    m.size = m.transport->control->size;
    all.count = m.size;
    CHECK_STATUS(ghp_collectives_group(m.transport->host, all, GHP_STREAM_COMPUTE, &m.world),
                 GHP_OK);
    CHECK_STATUS(m.backend_ops->open(&config, &m.backend), GHP_OK);
    test_line();
    test_rates();
    test_overlap();
    test_speed_probe();
    m.backend_ops->close(m.backend);
    ghp_transport_end(m.transport);
    return check_end();
}
