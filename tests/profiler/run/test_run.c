/* tests/profiler/run/test_run.c - a whole measuring run: every operation and collective of the space ends in the
 * file, a second run measures nothing again, speeds of the workers in it stay, a tiny budget leaves the rest to the
 * analytic models. ghp-test: np=2 np_full=1,4 timeout=240 */
#include "core/base/log.h"
#include "profiler/run/run.h"
#include "tests/check.h"

#include <string.h>
#include <unistd.h>

/* Small layers: what counts here is that each is there. */
static const char text[] =
    "{\"format\": \"ghp.model/1\", \"name\": \"tiny\", "
    "\"input\": {\"channels\": 4, \"height\": 6, \"width\": 6}, \"layers\": [\n"
    "{\"name\": \"conv\", \"op\": \"conv2d\", \"channels\": 12, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"bn\", \"op\": \"batch_norm\"},\n"
    "{\"name\": \"relu\", \"op\": \"relu\"},\n"
    "{\"name\": \"pool\", \"op\": \"max_pool\", \"kernel\": 2},\n"
    "{\"name\": \"conv2\", \"op\": \"conv2d\", \"channels\": 12, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"sum\", \"op\": \"add\", \"inputs\": [\"conv2\", \"pool\"]},\n"
    "{\"name\": \"flat\", \"op\": \"flatten\"},\n"
    "{\"name\": \"drop\", \"op\": \"dropout\", \"ratio\": 0.5},\n"
    "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 12},\n"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}\n";

static struct ghp_transport *transport;
static struct ghp_model model;
static int rank, size;
static char path[64];

static struct ghp_profiling_request request(void)
{
    static const int64_t batch = 12;

    return (struct ghp_profiling_request){.models = &model,
                                          .n_models = 1,
                                          .batches = &batch,
                                          .n_batches = 1,
                                          .backend_ops = &ghp_backend_reference,
                                          .precision = {.element_bytes = 4},
                                          .sample_s = 1e-3,
                                          .budget_s = 200,
                                          .output = path,
                                          .intra = {.latency_s = 1e-6, .bandwidth_Bps = 1e10},
                                          .inter = {.latency_s = 2e-5, .bandwidth_Bps = 1e9},
                                          .bucket_bytes = 1 << 16};
}

/* Runs it; where the ranks have lost each other there is nothing left to test. */
static enum ghp_status run(const struct ghp_profiling_request *wanted,
                           struct ghp_profiling_result *result)
{
    enum ghp_status status = ghp_profiling_run(wanted, transport, result);

    if (status != GHP_ERR_COMM || ghp_measure_is_echo()) return status;
    fprintf(stderr, "rank %d: %s\n", rank, ghp_status_message());
    transport->control->ops->abort(transport->control, 1);
    return status;
}

static int loaded_source(enum ghp_source source)
{
    struct ghp_profile profile = {0};
    int n = 0;

    CHECK_STATUS(ghp_profile_load(path, &profile), GHP_OK);
    for (int i = 0; i < profile.n_ops; i++)
        n += profile.ops[i].source == source;
    ghp_profile_release(&profile);
    return n;
}

/* Every entry of the file can be used: a rate, a time, a price for each. */
static void check_file(void)
{
    struct ghp_profile profile = {0};

    CHECK_STATUS(ghp_profile_load(path, &profile), GHP_OK);
    CHECK_EQ(profile.workers, size);
    CHECK_TEXT(profile.backend, "reference");
    CHECK_STATUS(ghp_profile_check_model(&profile, &model), GHP_OK);
    CHECK(profile.knows_has);
    CHECK(profile.analytic.flops_per_s > 0 && profile.analytic.memory_Bps > 0);
    CHECK(profile.copy.bandwidth_Bps > 0 && profile.update[0].bandwidth_Bps > 0);
    CHECK(profile.load.bandwidth_Bps > 0 && profile.accumulate.bandwidth_Bps > 0);
    CHECK_EQ(profile.copy.source, GHP_SOURCE_MEASURED);
    CHECK(profile.overlap.compute >= 1 && profile.overlap.comm >= 1 && profile.overlap.link >= 1);
    CHECK(size == 1 || profile.overlap.compute > 1 || profile.overlap.comm > 1 ||
          profile.overlap.link > 1 ||
          profile.overlap.launch_delay_s > 0); /* not what it began with */
    CHECK(profile.machine.intra.bandwidth_Bps > 0 && profile.machine.cores >= 1);
    CHECK_EQ(profile.n_comms > 0, size > 1);
    for (int i = 0; i < profile.n_ops; i++)
        CHECK(profile.ops[i].seconds > 0);
    for (int i = 0; i < profile.n_comms; i++)
        CHECK(profile.comms[i].seconds > 0);
    ghp_profile_release(&profile);
}

static void test_run(void)
{
    struct ghp_profiling_request wanted = request();
    struct ghp_profiling_result first = {0}, second = {0};

    CHECK_STATUS(run(&wanted, &first), GHP_OK);
    CHECK_EQ(first.ranks, size);
    CHECK_EQ(first.nodes, 1);
    CHECK(first.ops.measured > 20);
    CHECK_EQ(first.ops.kept, 0);
    CHECK_EQ(first.comms_left, 0);
    if (rank == 0) check_file();
    if (rank == 0) CHECK_EQ(loaded_source(GHP_SOURCE_MEASURED), first.ops.measured);

    CHECK_STATUS(run(&wanted, &second), GHP_OK);
    CHECK_EQ(second.ops.measured, 0);
    CHECK_EQ(second.ops.kept, first.ops.measured);
    CHECK_EQ(second.comms_kept, first.comms_measured);
    if (rank == 0) check_file();
    ghp_profile_release(&first.profile);
    ghp_profile_release(&second.profile);
}

/* The file with these speeds of its workers. */
static void write_speeds(const double *speed)
{
    struct ghp_profile profile = {0};

    CHECK_STATUS(ghp_profile_load(path, &profile), GHP_OK);
    ghp_speeds_release(&profile.speeds);
    profile.speeds = (struct ghp_speeds){.n = size, .of = ghp_alloc((size_t)size, sizeof *speed)};
    memcpy(profile.speeds.of, speed, (size_t)size * sizeof *speed);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_STATUS(ghp_profile_save(path, &profile), GHP_OK);
    ghp_profile_release(&profile);
}

static bool has_samples(const struct ghp_profile *profile, int64_t samples)
{
    char wanted[32];

    snprintf(wanted, sizeof wanted, "conv2d n%d ", (int)samples);
    for (int i = 0; i < profile->n_ops; i++)
        if (profile->ops[i].source == GHP_SOURCE_MEASURED &&
            strncmp(profile->ops[i].key, wanted, strlen(wanted)) == 0)
            return true;
    return false;
}

/* A file whose workers are unlike is continued by its own speeds, whatever the workers are now: it gets the
 * operations of the shares that these give. */
static void test_speeds(void)
{
    double speed[4] = {2, 1, 1, 1};
    int64_t shares[4];
    struct ghp_profiling_request wanted = request();
    struct ghp_profiling_result result = {0};

    if (size == 1) return;
    if (rank == 0) write_speeds(speed);
    CHECK_STATUS(run(&wanted, &result), GHP_OK);
    if (rank == 0) {
        CHECK_EQ(result.profile.speeds.n, size);
        CHECK_NEAR(result.profile.speeds.of[0], 2, 0);
        CHECK(result.ops.measured > 0);
        ghp_speeds_deal(speed, size, 1, wanted.batches[0], shares);
        for (int r = 0; r < size; r++)
            CHECK(has_samples(&result.profile, shares[r]));
    }
    ghp_profile_release(&result.profile);
}

/* Memory for almost nothing: what does not fit is there all the same, by the analytic models. */
static void test_laws(void)
{
    struct ghp_profiling_request wanted = request();
    struct ghp_profiling_result result = {0};

    wanted.fresh = true;
    wanted.memory_bytes = 100000 * size;
    CHECK_STATUS(run(&wanted, &result), GHP_OK);
    if (rank == 0) {
        CHECK(result.ops.measured > 0);
        CHECK(result.ops.interpolated + result.ops.analytic > 0);
        CHECK_EQ(loaded_source(GHP_SOURCE_ANALYTIC), result.ops.analytic);
        CHECK_EQ(loaded_source(GHP_SOURCE_INTERPOLATED), result.ops.interpolated);
        check_file();
    }
    ghp_profile_release(&result.profile);
}

static bool has_but_pool(enum ghp_op op, enum ghp_pass pass)
{
    return op != GHP_OP_MAX_POOL && ghp_backend_reference.has(op, pass);
}

static void test_refusals(void)
{
    struct ghp_backend_ops without_pool = ghp_backend_reference;
    struct ghp_profiling_request wanted = request();
    struct ghp_profiling_result result = {0};
    bool speaks = false;

    wanted.workers = size > 1 ? size - 1 : 7;
    CHECK_STATUS(run(&wanted, &result), GHP_ERR_INPUT);
    CHECK_MESSAGE(size > 1 ? "mpirun -n" : "7");
    wanted = request();
    without_pool.has = has_but_pool;
    wanted.backend_ops = &without_pool;
    CHECK_STATUS(run(&wanted, &result), GHP_ERR_INPUT);
    CHECK_MESSAGE("has no 'max_pool', which layer 'pool' of 'tiny' is");
    wanted = request();
    wanted.precision.element_bytes = 2;
    CHECK_STATUS(run(&wanted, &result), GHP_ERR_INPUT);
    wanted = request();
    wanted.output = "/tmp/no/such/folder/profile.json"; /* seen by rank 0 alone, known to all */
    CHECK_STATUS(run(&wanted, &result), rank == 0 ? GHP_ERR_IO : GHP_ERR_COMM);
    CHECK_STATUS(ghp_profiling_reporter(transport, &speaks), GHP_OK);
    CHECK_EQ(speaks, rank == 0);
}

CHECK_TEST(run)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 100, &transport), GHP_OK))
        return check_end();
    rank = transport->control->rank;
    size = transport->control->size;
    ghp_log_open("test", false);
    snprintf(path, sizeof path, "/tmp/ghp-measured-%d.json", (int)getppid());
    CHECK_STATUS(ghp_model_parse(text, "tiny", &model), GHP_OK);
    if (rank == 0) unlink(path);
    test_run();
    test_speeds();
    test_laws();
    test_refusals();
    if (rank == 0) unlink(path);
    ghp_model_release(&model);
    ghp_transport_end(transport);
    return check_end();
}
