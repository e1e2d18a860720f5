/* ghp-test: timeout=300
 *
 * Convolutions as graphs of cuDNN's operations, without a GPU: for the properties of an H100 and an A100 that are not
 * there, cuDNN itself says which engines take a graph. Every convolution of the tests and of VGG-16, ResNet-50 and
 * AlexNet, every pass and precision has one that follows the rules; a plan is found again by its name; workspaces are
 * within the limit; names and numbers of engines turn into each other; if one way to ask fails, the others' plans stay.
 * What ResNet-50's convolutions run in bf16 on an H100 is printed. Skipped where cuDNN's library is not installed. */
#include "tests/executor/op_case.h"
#include "tests/check.h"
#include "tests/executor/backend/cuda/gpu_properties.h"

#include "executor/backend/cuda/graph.h"

static const struct ghp_cudnn *cudnn;

static const struct precision_case {
    const char *name;
    bool bf16;
    struct ghp_graph_rules rules;
} precisions[] = {{"float", false, {false, false, INT64_C(1) << 30}},
                  {"float exact", false, {false, true, INT64_C(1) << 30}},
                  {"tf32", false, {true, false, INT64_C(1) << 30}},
                  {"bf16", true, {true, false, INT64_C(1) << 30}},
                  {"bf16 exact", true, {true, true, INT64_C(1) << 30}}};

struct tally {
    int asked, none;
    int fusable,
        fused;      /* forward passes in tf32 with a bias; and those that cuDNN has an engine for */
    size_t longest; /* name */
    bool prints;    /* the first engine of each pass in bf16 */
};

static struct tally *counting;

/* The engine of this name, and the heuristics, for a part of the GPU. */
static void check_part(struct ghp_graph_request request, struct ghp_graph_target target,
                       const struct precision_case *precision, const char *name)
{
    struct ghp_graph *graph = NULL;
    struct ghp_graph_plans plans = {0};
    struct ghp_graph_plan named;

    request.multiprocessors = 96;
    CHECK_STATUS(ghp_graph_open(cudnn, target, &request, &graph), GHP_OK);
    if (CHECK_STATUS(ghp_graph_find(graph, name, &named), GHP_OK))
        ghp_graph_plan_release(cudnn, &named);
    CHECK_STATUS(ghp_graph_list(graph, &precision->rules, 1, &plans), GHP_OK);
    CHECK_EQ(plans.n, 1);
    while (plans.n > 0)
        ghp_graph_plan_release(cudnn, &plans.items[--plans.n]);
    ghp_graph_close(graph);
}

/* One graph: its plans, and the first of them again by its name. */
static bool has_plans(const struct ghp_graph_request *request, struct ghp_graph_target target,
                      const struct precision_case *precision)
{
    struct ghp_graph *graph = NULL;
    struct ghp_graph_plans plans = {0};
    struct ghp_graph_plan again;
    bool has = false;

    if (ghp_graph_open(cudnn, target, request, &graph) != GHP_OK) return false;
    CHECK_STATUS(ghp_graph_list(graph, &precision->rules, 3, &plans), GHP_OK);
    if (counting->prints && request->bf16 && !precision->rules.repeatable)
        fprintf(stderr, "  %s: %s, workspace %.1f MiB\n",
                op_case_text(&request->local, request->pass),
                plans.n > 0 ? plans.items[0].name : "no engine",
                plans.n > 0 ? (double)plans.items[0].workspace_bytes / 1048576 : 0.0);
    for (int i = 0; i < plans.n; i++) {
        if (strlen(plans.items[i].name) > counting->longest)
            counting->longest = strlen(plans.items[i].name);
        CHECK(plans.items[i].workspace_bytes >= 0 &&
              plans.items[i].workspace_bytes <= precision->rules.most_workspace_bytes);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(plans.items[i].name, plans.items[j].name) != 0);
    }
    has = plans.n > 0;
    if (has && CHECK_STATUS(ghp_graph_find(graph, plans.items[0].name, &again), GHP_OK)) {
        CHECK_EQ(again.workspace_bytes, plans.items[0].workspace_bytes);
        CHECK_TEXT(again.name, plans.items[0].name);
        ghp_graph_plan_release(cudnn, &again);
        if (counting->prints) check_part(*request, target, precision, plans.items[0].name);
    }
    while (plans.n > 0)
        ghp_graph_plan_release(cudnn, &plans.items[--plans.n]);
    ghp_graph_close(graph);
    return has;
}

/* With what a forward pass fuses. A ReLU without bias, and all in bf16, runs on engines that cuDNN compiles when they
 * are asked for, which it does not without a driver: there is then no plan, but a graph. */
static void check_fused(struct ghp_graph_request request, struct ghp_graph_target target,
                        const struct precision_case *precision, struct tally *tally)
{
    struct ghp_graph *graph = NULL;

    request.relu = true;
    CHECK_STATUS(ghp_graph_open(cudnn, target, &request, &graph), GHP_OK);
    ghp_graph_close(graph);
    for (int relu = 0; relu < 2; relu++) {
        request.bias = true;
        request.relu = relu > 0;
        CHECK_STATUS(ghp_graph_open(cudnn, target, &request, &graph), GHP_OK);
        ghp_graph_close(graph);
        if (precision->bf16) continue;
        tally->fusable++;
        tally->fused += has_plans(&request, target, precision);
    }
}

static void check_local(const struct ghp_local *local, struct ghp_graph_target target,
                        struct tally *tally)
{
    static const enum ghp_pass passes[] = {GHP_PASS_FORWARD, GHP_PASS_BACKWARD_DATA,
                                           GHP_PASS_BACKWARD_WEIGHT};

    for (size_t p = 0; p < sizeof precisions / sizeof precisions[0]; p++) {
        struct ghp_graph_request request = {
            .local = *local, .pass = GHP_PASS_FORWARD, .bf16 = precisions[p].bf16};

        counting = tally;
        if (precisions[p].rules.tensor_cores && !precisions[p].rules.repeatable)
            check_fused(request, target, &precisions[p], tally);
        for (int i = 0; i < 3; i++) {
            request.pass = passes[i];
            tally->asked++;
            if (has_plans(&request, target, &precisions[p])) continue;
            tally->none++;
            fprintf(stderr, "  no engine for %s, %s\n", op_case_text(local, passes[i]),
                    precisions[p].name);
        }
    }
}

/* Every distinct convolution of a network, as one worker runs it. */
static void check_model(const char *path, int64_t batch, struct ghp_graph_target target,
                        struct tally *tally)
{
    struct ghp_model model;
    char done[64][GHP_KEY_BYTES];
    int n = 0;

    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) return;
    for (int i = 0; i < model.n_layers; i++) {
        struct ghp_local local =
            ghp_local_of(&model, i, (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1},
                         (struct ghp_problem){1, batch});
        bool known = false;

        if (local.op != GHP_OP_CONV2D) continue;
        ghp_local_key(&local, done[n]);
        for (int j = 0; j < n; j++)
            known = known || strcmp(done[j], done[n]) == 0;
        if (known) continue;
        n++;
        check_local(&local, target, tally);
    }
    ghp_model_release(&model);
}

static void check_device(const char *json, const char *name, bool prints)
{
    struct ghp_graph_target target = {NULL, NULL};
    struct tally odd = {0}, networks = {0};
    int n;
    const struct ghp_local *cases = op_case_all(&n);

    if (!CHECK_STATUS(ghp_graph_properties(cudnn, json, &target.properties), GHP_OK)) return;
    for (int i = 0; i < n; i++)
        if (cases[i].op == GHP_OP_CONV2D) check_local(&cases[i], target, &odd);
    check_model(GHP_SOURCE_DIR "/models/vgg16.json", 128, target, &networks);
    networks.prints = prints;
    if (prints)
        fprintf(stderr, "%s, cuDNN %lld, resnet50 at batch 256 in bf16:\n", name,
                (long long)cudnn->cudnnGetVersion());
    check_model(GHP_SOURCE_DIR "/models/resnet50.json", 256, target, &networks);
    networks.prints = false;
    check_model(GHP_SOURCE_DIR "/models/alexnet.json", 512, target, &networks);
    fprintf(stderr, "%s: %d of %d passes at odd shapes without engine, %d of %d of networks\n",
            name, odd.none, odd.asked, networks.none, networks.asked);
    fprintf(stderr, "  with a bias, %d of %d and %d of %d have one; names of up to %zu bytes\n",
            odd.fused, odd.fusable, networks.fused, networks.fusable,
            odd.longest > networks.longest ? odd.longest : networks.longest);
    CHECK_EQ(networks.fused, networks.fusable);
    CHECK_EQ(networks.none, 0); /* odd shapes have ghp's own kernels to fall back to */
    cudnn->cudnnBackendDestroyDescriptor(target.properties);
}

static void check_text(void)
{
    static const char *const wrong[] = {"",       "eng",     "engine3",   "eng-1",     "eng3 ",
                                        "eng3 2", "eng3 2=", "eng3 2=4;", "eng3 2=4,", "eng3,2=4"};
    struct ghp_engine engine = {.id = 62, .n_knobs = 2, .types = {2, 13}, .values = {4, -1}}, read;
    char text[GHP_GRAPH_NAME_BYTES];

    CHECK(ghp_engine_text(&engine, text, sizeof text));
    CHECK(!ghp_engine_text(&engine, text, strlen(text)));
    CHECK(ghp_engine_text(&engine, text, strlen("eng62 2=4,13=-1") + 1));
    CHECK_TEXT(text, "eng62 2=4,13=-1");
    CHECK(ghp_engine_parse(text, &read));
    CHECK(memcmp(&engine, &read, sizeof read) == 0);
    CHECK(ghp_engine_parse("eng0", &read));
    CHECK_EQ(read.n_knobs, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (!CHECK(!ghp_engine_parse(wrong[i], &read))) fprintf(stderr, "  '%s'\n", wrong[i]);
}

static void check_refusals(void)
{
    struct ghp_graph_target target = {NULL, NULL};
    struct ghp_graph_request request = {.pass = GHP_PASS_FORWARD};
    struct ghp_graph *graph = NULL;
    struct ghp_graph_plan plan;
    cudnnBackendDescriptor_t none = NULL;
    int n;

    CHECK_STATUS(ghp_graph_properties(cudnn, "{}", &none), GHP_ERR_BACKEND);
    if (none != NULL) cudnn->cudnnBackendDestroyDescriptor(none);
    CHECK_STATUS(ghp_graph_properties(cudnn, gpu_properties_h100, &target.properties), GHP_OK);
    request.local = op_case_all(&n)[0];
    CHECK_STATUS(ghp_graph_open(cudnn, target, &request, &graph), GHP_OK);
    CHECK_STATUS(ghp_graph_find(graph, "fast", &plan), GHP_ERR_BACKEND);
    CHECK_STATUS(ghp_graph_find(graph, "eng100000", &plan), GHP_ERR_BACKEND);
    ghp_graph_close(graph);
    cudnn->cudnnBackendDestroyDescriptor(target.properties);
}

static int heuristics_asked;
static unsigned heuristics_fail; /* a bit for each time that they are asked */

static cudnnStatus_t get_or_fail(cudnnBackendDescriptor_t descriptor,
                                 cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                 int64_t most, int64_t *n, void *values)
{
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && heuristics_fail >> heuristics_asked++ & 1)
        return CUDNN_STATUS_INTERNAL_ERROR;
    return cudnn->cudnnBackendGetAttribute(descriptor, name, type, most, n, values);
}

/* Plans of one way to ask stay if another one fails; an error is told if none has any. */
static void check_failing_ways(void)
{
    struct ghp_cudnn failing = *cudnn;
    struct ghp_graph_target target = {NULL, NULL};
    struct ghp_graph_request request = {.pass = GHP_PASS_FORWARD};
    struct ghp_graph *graph = NULL;
    int n;

    failing.cudnnBackendGetAttribute = get_or_fail;
    CHECK_STATUS(ghp_graph_properties(cudnn, gpu_properties_h100, &target.properties), GHP_OK);
    request.local = op_case_all(&n)[0];
    CHECK_STATUS(ghp_graph_open(&failing, target, &request, &graph), GHP_OK);
    for (int fails = 0; fails < 3; fails++) { /* none; the first; all but the first */
        struct ghp_graph_plans plans = {0};

        heuristics_asked = 0;
        heuristics_fail = fails == 2 ? ~1u : (unsigned)fails;
        CHECK_STATUS(ghp_graph_list(graph, &precisions[0].rules, GHP_GRAPH_CANDIDATES, &plans),
                     GHP_OK);
        CHECK(plans.n > 0 && heuristics_asked > 1);
        while (plans.n > 0)
            ghp_graph_plan_release(cudnn, &plans.items[--plans.n]);
    }
    struct ghp_graph_plans none = {0};
    heuristics_asked = 0;
    heuristics_fail = ~0u;
    CHECK_STATUS(ghp_graph_list(graph, &precisions[0].rules, GHP_GRAPH_CANDIDATES, &none),
                 GHP_ERR_BACKEND);
    CHECK_EQ(none.n, 0);
    ghp_graph_close(graph);
    cudnn->cudnnBackendDestroyDescriptor(target.properties);
}

CHECK_TEST(cuda_graph)
{
    check_text();
    if (ghp_cudnn_load(&cudnn) != GHP_OK) SKIP(ghp_status_message());
    check_refusals();
    check_failing_ways();
    check_device(gpu_properties_h100, "H100", true);
    if (check_full()) check_device(gpu_properties_a100, "A100", false);
    return check_end();
}
