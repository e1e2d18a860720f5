/* tests/profiler/measure/test_autotuning.c - what is measured is the kernel that training runs: a batch norm that lies
 * plain in every program takes its statistics itself.
 * ghp-test: np=1 timeout=120 */
#include "core/base/log.h"
#include "profiler/run/run.h"
#include "tests/check.h"

#include <unistd.h>

static const char text[] =
    "{\"format\": \"ghp.model/1\", \"name\": \"plain\", "
    "\"input\": {\"channels\": 16, \"height\": 4, \"width\": 4}, \"layers\": [\n"
    "{\"name\": \"conv\", \"op\": \"conv2d\", \"channels\": 16, \"kernel\": 1},\n"
    "{\"name\": \"bn\", \"op\": \"batch_norm\"},\n"
    "{\"name\": \"silu2\", \"op\": \"silu\"},\n"
    "{\"name\": \"gap\", \"op\": \"global_avg_pool\"},\n"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}\n";

static struct ghp_backend_ops watched;
static const struct ghp_kernel *bare, *fused; /* the latest of the norm's data gradient */
static int bare_runs, fused_runs;

static void note(const struct ghp_local *local, enum ghp_pass pass, bool stats,
                 const struct ghp_kernel *kernel)
{
    if (bare == kernel) bare = NULL;
    if (fused == kernel) fused = NULL;
    if (local->op != GHP_OP_BATCH_NORM || pass != GHP_PASS_BACKWARD_DATA) return;
    *(stats ? &fused : &bare) = kernel;
}

static enum ghp_status prepare(struct ghp_backend *backend, const struct ghp_local *local,
                               enum ghp_pass pass, struct ghp_kernel **kernel)
{
    enum ghp_status status = ghp_backend_onednn.prepare(backend, local, pass, kernel);

    note(local, pass, false, *kernel);
    return status;
}

static enum ghp_status prepare_nchw16c(struct ghp_backend *backend, const struct ghp_local *local,
                                       enum ghp_pass pass, const char *algorithm,
                                       struct ghp_kernel_spec spec, struct ghp_kernel **kernel)
{
    enum ghp_status status =
        ghp_backend_onednn.prepare_nchw16c(backend, local, pass, algorithm, spec, kernel);

    if (*kernel != NULL) note(local, pass, spec.stats, *kernel);
    return status;
}

static enum ghp_status run(struct ghp_kernel *kernel, const struct ghp_kernel_arguments *args)
{
    bare_runs += kernel == bare;
    fused_runs += kernel == fused;
    return ghp_backend_onednn.run(kernel, args);
}

CHECK_TEST(autotuning)
{
    static const int64_t batch = 2;
    struct ghp_profiling_request request = {.models = NULL,
                                            .n_models = 1,
                                            .batches = &batch,
                                            .n_batches = 1,
                                            .backend_ops = &watched,
                                            .precision = {.element_bytes = 4},
                                            .threads = 1,
                                            .sample_s = 1e-4,
                                            .budget_s = 300,
                                            .fresh = true,
                                            .intra = {.latency_s = 1e-6, .bandwidth_Bps = 1e10},
                                            .inter = {.latency_s = 2e-5, .bandwidth_Bps = 1e9},
                                            .bucket_bytes = 1 << 16};
    struct ghp_profiling_result result = {0};
    struct ghp_transport *transport;
    struct ghp_model model;
    char path[64];

    if (!CHECK_STATUS(ghp_transport_start(&argc, &argv, 100, &transport), GHP_OK))
        return check_end();
    ghp_log_open("test", false);
    watched = ghp_backend_onednn;
    watched.prepare = prepare;
    watched.prepare_nchw16c = prepare_nchw16c;
    watched.run = run;
    snprintf(path, sizeof path, "/tmp/ghp-autotuning-%d.json", (int)getpid());
    request.output = path;
    CHECK_STATUS(ghp_model_parse(text, "plain", &model), GHP_OK);
    request.models = &model;
    if (CHECK_STATUS(ghp_profiling_run(&request, transport, &result), GHP_OK)) {
        CHECK_EQ(bare_runs, 0);
        CHECK(fused_runs > 0);
    }
    ghp_profile_release(&result.profile);
    ghp_model_release(&model);
    unlink(path);
    ghp_transport_end(transport);
    return check_end();
}
