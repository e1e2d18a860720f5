/* tests/profiler/run/test_budget.c - a measuring run keeps its budget, trials of algorithms counted, or says what took
 * longer; it asks once for what convolutions fuse, and takes less than half of the time where what to measure is named.
 *
 * The backend's kernels only sleep, so what they took is the number of their runs times that: however slow the
 * machine, no more of them may have been started than the budget holds.
 * ghp-test: np_full=1 timeout=240 */
#include "core/base/log.h"
#include "executor/engine/kernel_spec.h"
#include "profiler/worklist/time_estimate.h"
#include "profiler/run/run.h"
#include "tests/check.h"

#include <time.h>
#include <unistd.h>

static const char text[] =
    "{\"format\": \"ghp.model/1\", \"name\": \"tiny\", "
    "\"input\": {\"channels\": 16, \"height\": 8, \"width\": 8}, \"layers\": [\n"
    "{\"name\": \"conv\", \"op\": \"conv2d\", \"channels\": 16, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"relu\", \"op\": \"relu\"},\n"
    "{\"name\": \"conv2\", \"op\": \"conv2d\", \"channels\": 32, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"relu2\", \"op\": \"relu\"},\n"
    "{\"name\": \"pool\", \"op\": \"max_pool\", \"kernel\": 2},\n"
    "{\"name\": \"conv3\", \"op\": \"conv2d\", \"channels\": 48, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"relu3\", \"op\": \"relu\"},\n"
    "{\"name\": \"flat\", \"op\": \"flatten\"},\n"
    "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 16},\n"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}\n";

static const double run_s = 10e-3;
static struct ghp_backend_ops sleepy;
static struct ghp_transport *transport;
static struct ghp_model model;
static char path[64];
static int runs, relus; /* kernels run; forward passes of ReLUs prepared */
static int updates;     /* optimizers with a rate of their own */

static enum ghp_status sleep_a_run(struct ghp_kernel *kernel,
                                   const struct ghp_kernel_arguments *args)
{
    const struct timespec pause = {.tv_nsec = (long)(1e9 * run_s)};

    (void)kernel;
    (void)args;
    runs++;
    nanosleep(&pause, NULL);
    return GHP_OK;
}

static enum ghp_status prepare_counted(struct ghp_backend *backend, const struct ghp_local *local,
                                       enum ghp_pass pass, const char *algorithm,
                                       struct ghp_kernel_spec spec, struct ghp_kernel **kernel)
{
    relus += local->op == GHP_OP_RELU && pass == GHP_PASS_FORWARD;
    return ghp_backend_onednn.prepare_nchw16c(backend, local, pass, algorithm, spec, kernel);
}

/* named   as in ghp_profiling_request.only */
static struct ghp_profiling_result measure(double budget_s, const char *named)
{
    static const int64_t batch = 4;
    const struct ghp_profiling_request request = {
        .models = &model,
        .n_models = 1,
        .batches = &batch,
        .n_batches = 1,
        .backend_ops = &sleepy,
        .precision = {.element_bytes = 4},
        .threads = 1,
        .sample_s = 1e-3,
        .budget_s = budget_s,
        .fresh = true,
        .output = path,
        .only = named,
        .intra = {.latency_s = 1e-6, .bandwidth_Bps = 1e10},
        .inter = {.latency_s = 2e-5, .bandwidth_Bps = 1e9},
        .bucket_bytes = 1 << 16};
    struct ghp_profiling_result result = {0};

    runs = relus = updates = 0;
    CHECK_STATUS(ghp_profiling_run(&request, transport, &result), GHP_OK);
    CHECK_EQ(result.overrun[0] != '\0', result.seconds > 1.1 * budget_s);
    for (int i = 0; i < GHP_OPTIMIZERS; i++)
        updates += result.profile.update[i].bandwidth_Bps > 0;
    ghp_profile_release(&result.profile);
    return result;
}

/* What most plans hang on has its formats at once; of the rest, all have one before any has a second. */
static void test_memory_formats_wait(void)
{
    struct ghp_worklist_op op = {.value = GHP_VALUE_DATA, .n_variants = 4, .flops = 1};
    struct ghp_time_estimate estimate = {0};
    const struct ghp_visit_plan visit_plan = {.samples = 2, .sample_s = 1, .chooses = true};
    double all_s = ghp_time_estimate_s(&estimate, &op, visit_plan);

    CHECK_EQ(ghp_time_estimate_variants(&op), 4);
    op.value = GHP_VALUE_REST;
    CHECK_EQ(ghp_time_estimate_variants(&op), 1);
    CHECK(ghp_time_estimate_s(&estimate, &op, visit_plan) < all_s / 3);
    op.variants[0].samples = (struct ghp_samples){.n = 1, .values = {1e-9}};
    CHECK_EQ(ghp_time_estimate_variants(&op), 4);
    CHECK_EQ(ghp_time_estimate_kind(&op, true), GHP_VISIT_MEMORY_FORMATS);
    for (int w = 1; w < 4; w++)
        op.variants[w].samples.n = 1;
    CHECK_EQ(ghp_time_estimate_kind(&op, true), GHP_VISIT_AGAIN);
}

static void test_budget(void)
{
    struct ghp_profiling_result whole = measure(300, NULL), part, named;
    double whole_s = runs * run_s;

    CHECK_EQ(whole.ops.analytic, 0);
    CHECK_TEXT(whole.overrun, "");
    CHECK_EQ(updates, GHP_OPTIMIZERS);
    CHECK(relus > 0 && relus <= 3 * GHP_KERNEL_SPEC_MAX); /* three sizes, once */
    part = measure(whole_s / 2, NULL);
    CHECK(part.ops.measured > 0);
    CHECK(part.ops.analytic + part.ops.interpolated > 0 || runs * run_s < whole_s);
    CHECK(runs * run_s <= 1.1 * whole_s / 2);
    part = measure(1e-3, NULL); /* not even the rates */
    CHECK(part.overrun[0] != '\0');
    CHECK_EQ(updates, 1); /* which the others count as */
    CHECK(part.ops.measured > 0); /* what analytic models are made of */
    named = measure(300, "data"); /* of one worker that is all: less thoroughly */
    CHECK_EQ(named.ops.measured, whole.ops.measured);
    CHECK_EQ(named.ops.analytic, 0);
    CHECK(runs * run_s < whole_s / 2);
}

CHECK_TEST(budget)
{
    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 100, &transport), GHP_OK))
        return check_end();
    ghp_log_open("test", false);
    sleepy = ghp_backend_onednn;
    sleepy.run = sleep_a_run;
    sleepy.prepare_nchw16c = prepare_counted;
    snprintf(path, sizeof path, "/tmp/ghp-budget-%d.json", (int)getpid());
    CHECK_STATUS(ghp_model_parse(text, "tiny", &model), GHP_OK);
    test_memory_formats_wait();
    test_budget();
    unlink(path);
    ghp_model_release(&model);
    ghp_transport_end(transport);
    return check_end();
}
