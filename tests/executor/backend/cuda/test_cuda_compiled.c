/* ghp-test: timeout=600
 *
 * What a convolution fuses in bf16 as one graph of cuDNN's operations, without a GPU: for the properties of an H100
 * that is not there, cuDNN has an engine for a bias and a ReLU after it, and for the mask of the ReLU before it on its
 * gradient, and compiles it. So it has for each of resnet50's convolutions with the sums of its output (in short tests
 * the first three). What is printed is what will run. A driver that runs nothing (tests/emulated/driver.c) takes the
 * compiled kernels. Skipped where cuDNN's library is not installed, or no driver's. */
#include "tests/executor/op_case.h"
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

/* Prints which engine makes the sums of each distinct convolution of a network, as one worker runs it, or of the first
 * `most`; returns how many have none. */
static int check_sums(const char *path, int64_t batch, int most, struct ghp_graph_target target)
{
    const struct ghp_graph_rules rules = {true, false, INT64_C(1) << 30};
    char done[64][GHP_KEY_BYTES];
    struct ghp_model model;
    int n = 0, none = 0;

    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) return 0;
    for (int i = 0; i < model.n_layers; i++) {
        struct ghp_graph_request request = {.pass = GHP_PASS_FORWARD, .bf16 = true, .sums = true};
        struct ghp_graph_plans plans = {0};
        struct ghp_graph *graph = NULL;
        bool known = false;

        if (model.layers[i].op != GHP_OP_CONV2D) continue;
        request.local =
            ghp_local_of(&model, i, (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1},
                         (struct ghp_problem){1, batch});
        ghp_local_key(&request.local, done[n]);
        for (int j = 0; j < n; j++)
            known = known || strcmp(done[j], done[n]) == 0;
        if (known || n == most) continue;
        n++;
        if (!CHECK_STATUS(ghp_graph_open(cudnn, target, &request, &graph), GHP_OK)) continue;
        CHECK_STATUS(ghp_graph_list(graph, &rules, 1, &plans), GHP_OK);
        none += plans.n == 0;
        fprintf(stderr, "  %s + sums: %s, workspace %.1f MiB\n",
                op_case_text(&request.local, request.pass),
                plans.n > 0 ? plans.items[0].name : "no engine",
                plans.n > 0 ? (double)plans.items[0].workspace_bytes / 1048576 : 0.0);
        if (plans.n > 0) ghp_graph_plan_release(cudnn, &plans.items[0]);
        ghp_graph_close(graph);
    }
    ghp_model_release(&model);
    return none;
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
    fprintf(stderr, "resnet50 at batch 256 in bf16:\n");
    CHECK_EQ(check_sums(GHP_SOURCE_DIR "/models/resnet50.json", 256, check_full() ? 63 : 3, target),
             0);
    cudnn->cudnnBackendDestroyDescriptor(target.properties);
    return check_end();
}
