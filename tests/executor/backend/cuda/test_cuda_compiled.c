/* ghp-test: timeout=120
 *
 * What a convolution fuses in bf16 as one graph of cuDNN's operations, without a GPU: for the properties of an H100
 * that is not there, cuDNN has an engine for a bias and a ReLU after it, and for the mask of the ReLU before it on its
 * gradient, and compiles it. What is printed is what will run. A driver that runs nothing (tests/emulated/driver.c)
 * takes the compiled kernels. Skipped where cuDNN's library is not installed, or no driver's. */
#include "tests/check.h"
#include "tests/executor/backend/cuda/gpu_properties.h"

#include "executor/backend/cuda/graph.h"

#include <dlfcn.h>

static const struct ghp_cudnn *cudnn;

static void check_compiled(const struct ghp_graph_request *request, struct ghp_graph_target target)
{
    const struct ghp_graph_rules rules = {true, false, INT64_C(1) << 30};
    struct ghp_graph_plans plans = {0};
    struct ghp_graph *graph = NULL;

    if (!CHECK_STATUS(ghp_graph_open(cudnn, target, request, &graph), GHP_OK)) return;
    CHECK_STATUS(ghp_graph_list(graph, &rules, 1, &plans), GHP_OK);
    fprintf(stderr, "  %s%s + ReLU: %s, workspace %lld bytes\n", ghp_pass_name(request->pass),
            request->bias ? " + bias" : "", plans.n > 0 ? plans.items[0].name : "no engine",
            plans.n > 0 ? (long long)plans.items[0].workspace_bytes : 0);
    if (CHECK_EQ(plans.n, 1)) ghp_graph_plan_release(cudnn, &plans.items[0]);
    ghp_graph_close(graph);
}

CHECK_TEST(cuda_compiled)
{
    /* conv6 of models/vgg16.json, between two ReLUs */
    struct ghp_graph_request request = {.local = {.op = GHP_OP_CONV2D,
                                                  .n = 128,
                                                  .c = 256,
                                                  .h = 56,
                                                  .w = 56,
                                                  .k = 256,
                                                  .p = 56,
                                                  .q = 56,
                                                  .n_inputs = 1,
                                                  .window = {.r = 3,
                                                             .s = 3,
                                                             .stride_h = 1,
                                                             .stride_w = 1,
                                                             .pad_top = 1,
                                                             .pad_left = 1,
                                                             .pad_bottom = 1,
                                                             .pad_right = 1,
                                                             .dilation_h = 1,
                                                             .dilation_w = 1,
                                                             .groups = 1}},
                                        .pass = GHP_PASS_FORWARD,
                                        .bf16 = true,
                                        .bias = true,
                                        .relu = true};
    struct ghp_graph_target target = {NULL, NULL};

    if (ghp_cudnn_load(&cudnn) != GHP_OK) SKIP(ghp_status_message());
    if (dlopen("libcuda.so.1", RTLD_LAZY) == NULL)
        SKIP("no driver's library; run this test by ctest");
    CHECK_STATUS(ghp_graph_properties(cudnn, gpu_properties_h100, &target.properties), GHP_OK);
    fprintf(stderr, "H100, cuDNN %lld, a convolution of vgg16 at batch 128 in bf16:\n",
            (long long)cudnn->cudnnGetVersion());
    check_compiled(&request, target);
    request.pass = GHP_PASS_BACKWARD_DATA;
    request.bias = false;
    check_compiled(&request, target);
    cudnn->cudnnBackendDestroyDescriptor(target.properties);
    return check_end();
}
