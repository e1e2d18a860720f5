/* tests/profiler/measure/test_background_load.c - one worker's operation among others that run typical ones: who has
 * background load, and that the profile's contention is the difference between all workers' running an operation and
 * this.
 *
 * The backend's kernels only sleep, rank 0's for a third of the others' time: all at once an operation takes as long as
 * the others', among background load as long as rank 0's.
 * ghp-test: np_full=1,2,3 timeout=240 */
#include "core/base/log.h"
#include "core/base/clock.h"
#include "profiler/measure/background_load.h"
#include "profiler/run/run.h"
#include "tests/check.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char text[] =
    "{\"format\": \"ghp.model/1\", \"name\": \"tiny\", "
    "\"input\": {\"channels\": 4, \"height\": 6, \"width\": 6}, \"layers\": [\n"
    "{\"name\": \"conv\", \"op\": \"conv2d\", \"channels\": 12, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"relu\", \"op\": \"relu\"},\n"
    "{\"name\": \"flat\", \"op\": \"flatten\"},\n"
    "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 12},\n"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}\n";

static const double first_s = 2e-3, others_s = 6e-3;
static const int64_t batch = 12;
static struct ghp_backend_ops sleepy;
static struct ghp_transport *transport;
static struct ghp_model model;
static int rank, size, runs;
static char path[64];

static enum ghp_status sleep_a_run(struct ghp_kernel *kernel,
                                   const struct ghp_kernel_arguments *args)
{
    const struct timespec pause = {.tv_nsec = (long)(1e9 * (rank == 0 ? first_s : others_s))};

    (void)kernel;
    (void)args;
    runs++;
    nanosleep(&pause, NULL);
    return GHP_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The contention of the median operation of the file. Sleeping lasts longer on a busy machine, for some more than for
 * others. */
static double median_contention(void)
{
    struct ghp_profile profile = {0};
    double companies[256], median = 0;
    int n = 0;

    CHECK_STATUS(ghp_profile_load(path, &profile), GHP_OK);
    for (int i = 0; i < profile.n_ops && n < 256; i++)
        if (profile.ops[i].seconds > 0) companies[n++] = profile.ops[i].contention;
    qsort(companies, (size_t)n, sizeof *companies, ascending);
    if (CHECK(n > 5)) median = companies[n / 2];
    ghp_profile_release(&profile);
    return median;
}

static void test_contention(void)
{
    const struct ghp_profiling_request wanted = {
        .models = &model,
        .n_models = 1,
        .batches = &batch,
        .n_batches = 1,
        .backend_ops = &sleepy,
        .precision = {.element_bytes = 4},
        .threads = 1,
        .alike = true,
        .sample_s = 1e-3,
        .budget_s = 200,
        .fresh = true,
        .output = path,
        .intra = {.latency_s = 1e-6, .bandwidth_Bps = 1e10},
        .inter = {.latency_s = 2e-5, .bandwidth_Bps = 1e9},
        .bucket_bytes = 1 << 16};
    struct ghp_profiling_result result = {0};

    CHECK_STATUS(ghp_profiling_run(&wanted, transport, &result), GHP_OK);
    CHECK_EQ(result.ops.analytic, 0);
    if (rank == 0 && (size == 1 || result.oversubscribed)) CHECK_NEAR(median_contention(), 0, 0);
    if (rank == 0 && size > 1 && !result.oversubscribed) CHECK(median_contention() > 0.3);
    ghp_profile_release(&result.profile);
}

static struct ghp_measure measure(struct ghp_backend *backend)
{
    struct ghp_measure m = {.transport = transport,
                            .rank = rank,
                            .size = size,
                            .backend_ops = &sleepy,
                            .backend = backend,
                            .element_bytes = 4,
                            .sample_s = 1e-3};
    struct ghp_ranks all = {.first = 0, .count = size, .stride = 1};

    CHECK_STATUS(ghp_collectives_group(transport->host, all, GHP_STREAM_COMPUTE, &m.world), GHP_OK);
    return m;
}

/* Whether the ranks have background load; they run for as long as they are asked to. */
static bool any(const struct ghp_measure *m, const struct ghp_worklist *worklist,
                int64_t memory_bytes)
{
    struct ghp_background_load *b = NULL;
    double start_s;
    bool there;

    CHECK_STATUS(ghp_background_load_open(m, worklist, memory_bytes, &b), GHP_OK);
    there = b != NULL;
    if (there) CHECK_EQ(ghp_background_load_count(b) > 0, rank != 0);
    if (there && rank != 0) {
        runs = 0;
        start_s = ghp_now_s();
        CHECK_STATUS(ghp_background_load_run(b, 4 * others_s), GHP_OK);
        CHECK(ghp_now_s() - start_s >= 4 * others_s);
        CHECK(runs >= 1 && runs <= 5);
    }
    ghp_background_load_close(b);
    return there;
}

static void test_open(void)
{
    const int64_t plenty = 1 << 30;
    struct ghp_worklist_request wanted = {.models = &model,
                                          .n_models = 1,
                                          .batches = &batch,
                                          .n_batches = 1,
                                          .workers = size,
                                          .ranks = size,
                                          .element_bytes = 4,
                                          .bucket_bytes = 1 << 16};
    struct ghp_backend_config config = {.threads = 1, .element_bytes = 4};
    struct ghp_worklist worklist = {0};
    struct ghp_backend *backend = NULL;
    struct ghp_measure m;

    CHECK_STATUS(sleepy.open(&config, &backend), GHP_OK);
    CHECK_STATUS(ghp_worklist_collect(&wanted, &worklist), GHP_OK);
    m = measure(backend);
    CHECK(!any(&m, &worklist, plenty)); /* nothing timed yet */
    for (int i = 0; i < worklist.n_ops; i++)
        worklist.ops[i].variants[0].samples = (struct ghp_samples){1, {1e-3 * (i + 1)}};
    CHECK_EQ(any(&m, &worklist, plenty), size > 1);
    CHECK(!any(&m, &worklist, 1));
    m.shares_cores = true;
    CHECK(!any(&m, &worklist, plenty));
    m.shares_cores = false;
    m.fastest = 2;
    CHECK(!any(&m, &worklist, plenty));
    ghp_worklist_release(&worklist);
    sleepy.close(backend);
}

CHECK_TEST(background_load)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 100, &transport), GHP_OK))
        return check_end();
    ghp_log_open("test", false);
    rank = transport->control->rank;
    size = transport->control->size;
    sleepy = ghp_backend_reference;
    sleepy.run = sleep_a_run;
    snprintf(path, sizeof path, "/tmp/ghp-background-load-%d.json", (int)getpid());
    CHECK_STATUS(ghp_model_parse(text, "tiny", &model), GHP_OK);
    test_open();
    test_contention();
    if (rank == 0) unlink(path);
    ghp_model_release(&model);
    ghp_transport_end(transport);
    return check_end();
}
