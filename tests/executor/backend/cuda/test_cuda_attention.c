/* ghp-test: timeout=120
 *
 * Attention as a graph of cuDNN's operations, without a GPU: for the properties of an H100 and an A100 that are not
 * there, cuDNN recognizes the graph, has an engine for each pass that follows the rules, and compiles it. GPT-2's and
 * Llama's shapes, grouped heads, a number of positions that no tile divides; forward, backward, and backward with sums
 * in one order. The workspace is within the limit; a plan is found again by its name. What is printed is what will run.
 * A driver that runs nothing (tests/emulated/driver.c) takes the compiled kernels. Skipped where cuDNN's library is not
 * installed, or no driver's. */
#include "tests/check.h"
#include "tests/executor/backend/cuda/gpu_properties.h"

#include "executor/backend/cuda/backend_cuda_private.h"

#include <dlfcn.h>

static const struct ghp_cudnn *cudnn;

struct shape {
    const char *name;
    int64_t n, positions;
    struct ghp_heads heads;
};

static void check_pass(const struct shape *shape, enum ghp_pass pass, bool exact,
                       struct ghp_graph_target target)
{
    const struct ghp_local local = {
        .op = GHP_OP_ATTENTION, .n = shape->n, .h = shape->positions, .heads = shape->heads};
    const struct ghp_graph_request request = {
        .local = local, .pass = pass, .bf16 = true, .exact = exact};
    const struct ghp_graph_rules rules = {true, exact, INT64_C(8) << 30};
    struct ghp_graph_plans plans = {0};
    struct ghp_graph_plan again;
    struct ghp_graph *graph = NULL;

    CHECK(ghp_cuda_attention_suits(&local, (int64_t)cudnn->cudnnGetVersion()));
    if (!CHECK_STATUS(ghp_graph_open(cudnn, target, &request, &graph), GHP_OK)) return;
    CHECK_STATUS(ghp_graph_list(graph, &rules, 1, &plans), GHP_OK);
    fprintf(stderr, "  %s, %s%s: %s, workspace %.1f MiB\n", shape->name, ghp_pass_name(pass),
            exact ? " exact" : "", plans.n > 0 ? plans.items[0].name : "no engine",
            plans.n > 0 ? (double)plans.items[0].workspace_bytes / 1048576 : 0.0);
    if (CHECK_EQ(plans.n, 1)) {
        CHECK(plans.items[0].workspace_bytes <= rules.most_workspace_bytes);
        if (pass == GHP_PASS_FORWARD &&
            CHECK_STATUS(ghp_graph_find(graph, plans.items[0].name, &again), GHP_OK)) {
            CHECK_EQ(again.workspace_bytes, plans.items[0].workspace_bytes);
            ghp_graph_plan_release(cudnn, &again);
        }
        ghp_graph_plan_release(cudnn, &plans.items[0]);
    }
    ghp_graph_close(graph);
}

static void check_device(const char *json, const char *name, const struct shape *shapes, int n)
{
    struct ghp_graph_target target = {NULL, NULL};

    if (!CHECK_STATUS(ghp_graph_properties(cudnn, json, &target.properties), GHP_OK)) return;
    fprintf(stderr, "%s, cuDNN %lld, bf16:\n", name, (long long)cudnn->cudnnGetVersion());
    for (int i = 0; i < n; i++) {
        check_pass(&shapes[i], GHP_PASS_FORWARD, false, target);
        check_pass(&shapes[i], GHP_PASS_BACKWARD_DATA, false, target);
    }
    if (n > 1) check_pass(&shapes[0], GHP_PASS_BACKWARD_DATA, true, target);
    cudnn->cudnnBackendDestroyDescriptor(target.properties);
}

/* Which attentions own kernels run although cuDNN is there. */
static void check_suits(void)
{
    struct ghp_local local = {.op = GHP_OP_ATTENTION,
                              .n = 8,
                              .h = 1024,
                              .heads = {.size = 64, .n = 12, .n_kv = 12, .causal = true}};

    CHECK(ghp_cuda_attention_suits(&local, 91900));
    CHECK(!ghp_cuda_attention_suits(&local, 91000));
    CHECK(!ghp_cuda_attention_suits(&local, 90500));
    local.h = 1000;
    CHECK(ghp_cuda_attention_suits(&local, 91900));
    CHECK(!ghp_cuda_attention_suits(&local, 91500));
    local.heads.size = 20;
    CHECK(!ghp_cuda_attention_suits(&local, 91900));
}

CHECK_TEST(cuda_attention)
{
    static const struct shape shapes[] = {
        {"GPT-2, b 8, s 1024", 8, 1024, {.size = 64, .n = 12, .n_kv = 12, .causal = true}},
        {"Llama 3 8B, b 1, s 4096", 1, 4096, {.size = 128, .n = 32, .n_kv = 8, .causal = true}},
        {"a ViT, b 4, s 197", 4, 197, {.size = 64, .n = 12, .n_kv = 12, .causal = false}}};

    check_suits();
    if (ghp_cudnn_load(&cudnn) != GHP_OK) SKIP(ghp_status_message());
    if (dlopen("libcuda.so.1", RTLD_LAZY) == NULL)
        SKIP("no driver's library; run this test by ctest");
    check_device(gpu_properties_h100, "H100", shapes, check_full() ? 3 : 1);
    if (check_full()) check_device(gpu_properties_a100, "A100", shapes, 1);
    return check_end();
}
