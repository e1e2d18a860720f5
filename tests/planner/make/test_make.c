/* ghp-test: timeout=120
 * tests/planner/make/test_make.c - whole plans: speed and gap of the networks in models/, buckets, memory, groups,
 * ties, data parallelism where nothing is surely faster, second-best choices, and slowdowns. */
#include "planner/make/make.h"
#include "core/model/statistics.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
/* how much longer a search may take here than on a quiet machine */
static const double slack = 100;
#else
static const double slack = 10;
#endif

static struct ghp_profile profile;

static struct ghp_plan_request request_for(const char *path, int workers, int64_t batch)
{
    return (struct ghp_plan_request){.model_path = path,
                                     .profile_path = "analytic",
                                     .profile = &profile,
                                     .problem = {workers, batch},
                                     .time_limit_s = 30,
                                     .simplify = true};
}

#define MODEL(name) GHP_SOURCE_DIR "/models/" name ".json"

/* Certified with gap 0, verified, and not slower than any baseline. */
static void check_plan(const struct ghp_plan *plan)
{
    CHECK(plan->certificate.gap <= 0);
    CHECK_STATUS(ghp_plan_verify(plan, &profile), GHP_OK);
    CHECK_STATUS(ghp_plan_verify(plan, &plan->profile), GHP_OK);
    CHECK_EQ(plan->n_baselines, 3 + ghp_model_has_global_statistics(&plan->model));
    for (int b = 0; b < plan->n_baselines; b++)
        CHECK(!plan->baselines[b].feasible || plan->baselines[b].local_statistics ||
              plan->predicted.step_s <= plan->baselines[b].predicted.step_s * (1 + 1e-9));
}

static void test_networks(void)
{
    static const struct {
        const char *path;
        int workers;
        int64_t batch;
        double seconds; /* of the search on a quiet machine */
    } cases[] = {
        {MODEL("alexnet"), 64, 4096, 0.1},    {MODEL("vgg16"), 64, 4096, 1},
        {MODEL("resnet50"), 64, 4096, 5},     {MODEL("vgg16"), 1024, 65536, 2},
        {MODEL("resnet50"), 1024, 65536, 10}, {MODEL("small-resnet"), 8, 64, 1},
        {MODEL("vgg-a"), 128, 512, 1},        {MODEL("overfeat-fast"), 64, 256, 1},
        {MODEL("cd-dnn"), 16, 1024, 1},
    };

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct ghp_plan_request request =
            request_for(cases[k].path, cases[k].workers, cases[k].batch);
        struct ghp_plan plan;

        if (!check_full() && cases[k].seconds > 2) continue;
        request.method.bucket_bytes = k % 2 == 0 ? 0 : GHP_BUCKET_AUTO;
        if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) continue;
        check_plan(&plan);
        if (request.method.bucket_bytes == 0) CHECK_EQ(plan.certificate.proof, GHP_PROOF_OPTIMAL);
        if (!CHECK(plan.certificate.seconds < slack * cases[k].seconds))
            fprintf(stderr, "%s: %.2f s\n", cases[k].path, plan.certificate.seconds);
        printf("%s, %d workers: %.3f ms, %.3f s\n", plan.model.name, cases[k].workers,
               1e3 * plan.predicted.step_s, plan.certificate.seconds);
        ghp_plan_release(&plan);
    }
}

/* Latency binds and buckets decide: what is fastest with each layer alone need not be fastest with buckets, yet no
 * baseline with its bucket is faster than the plan. */
static void test_bucketed_baselines(void)
{
    struct ghp_plan_request request = request_for(MODEL("resnet50"), 4096, 4096);
    struct ghp_profile fast;
    struct ghp_plan plan;

    if (!CHECK_STATUS(analytic_profile(6e12, 12.5e9, 2e-6, &fast), GHP_OK)) return;
    request.profile = &fast;
    request.method.bucket_bytes = GHP_BUCKET_AUTO;
    request.time_limit_s = 5;
    request.decision_only = true;
    if (CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) {
        for (int b = 0; b < plan.n_baselines; b++)
            CHECK(!plan.baselines[b].feasible ||
                  plan.predicted.step_s <= plan.baselines[b].predicted.step_s * (1 + 1e-9));
        CHECK_EQ(plan.n_alternatives, 0);
        CHECK_STATUS(ghp_plan_verify(&plan, &fast), GHP_OK);
        ghp_plan_release(&plan);
    }
    ghp_profile_release(&fast);
}

/* A tighter limit never makes a faster plan, and what is named as the least does. */
static void test_memory(void)
{
    struct ghp_plan_request request = request_for(MODEL("vgg-a-32"), 8, 256);
    struct ghp_plan plan;
    int64_t free_bytes, least;
    double free_s; /* an equal plan may differ by the rounding of sums */

    request.time_limit_s = 10;
    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    free_bytes = plan.predicted.peak_bytes;
    free_s = plan.predicted.step_s * (1 - 1e-13);
    ghp_plan_release(&plan);
    request.memory_bytes = 1;
    CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_ERR_INFEASIBLE);
    CHECK_MESSAGE("memory binds");
    const char *found = strstr(ghp_status_message(), "--memory ");
    if (!CHECK(found != NULL)) return;
    least = strtoll(found + 9, NULL, 10);
    CHECK(least > 0 && least <= free_bytes);
    request.memory_bytes = least + least / 50;
    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    CHECK(plan.predicted.peak_bytes <= request.memory_bytes);
    CHECK(plan.predicted.step_s >= free_s);
    ghp_plan_release(&plan);
    request.memory_bytes = (least + free_bytes) / 2;
    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    CHECK(plan.predicted.peak_bytes <= request.memory_bytes && plan.predicted.step_s >= free_s);
    CHECK_STATUS(ghp_plan_verify(&plan, &profile), GHP_OK);
    ghp_plan_release(&plan);
}

static void test_groups(void)
{
    struct ghp_plan_request request = request_for(MODEL("vgg16"), 16, 1024);
    struct ghp_plan plan;

    for (int groups = 1; groups <= 16; groups *= 4) {
        request.groups = groups;
        if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
        CHECK_EQ(plan.groups, groups);
        for (int v = 0; v < plan.model.n_layers; v++)
            CHECK_EQ(16 / groups % plan.splits[v].tp_size, 0);
        ghp_plan_release(&plan);
    }
    request.groups = 3;
    CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_ERR_USAGE);
    CHECK_MESSAGE("divisor of 16");
}

/* One worker: nothing to split, nothing to reduce. */
static void test_one_worker(void)
{
    struct ghp_plan_request request = request_for(MODEL("lenet5"), 1, 32);
    struct ghp_plan plan;

    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    CHECK_EQ(plan.groups, 1);
    CHECK_EQ(plan.predicted.sent_bytes, 0);
    CHECK_EQ(plan.n_alternatives, 0);
    CHECK(!plan.baselines[1].feasible &&
          strstr(plan.baselines[1].reason, "at least 2 workers") != NULL);
    ghp_plan_release(&plan);
}

/* Strategies as plans of their own, and splits by hand. */
static void test_strategies(void)
{
    struct ghp_plan_request request = request_for(MODEL("alexnet"), 8, 256);
    struct ghp_plan plan;
    double best_s;

    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    best_s = plan.predicted.step_s;
    CHECK_EQ(plan.n_alternatives, 8);
    for (int a = 0; a < plan.n_alternatives; a++) {
        CHECK(!ghp_split_same(plan.alternatives[a].split, plan.splits[plan.alternatives[a].layer]));
        CHECK(plan.alternatives[a].step_s >= best_s * (1 - 1e-9));
    }
    ghp_plan_release(&plan);
    for (int s = GHP_STRATEGY_DATA; s < GHP_STRATEGY_GIVEN; s++) {
        request.strategy = (enum ghp_strategy)s;
        if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
        CHECK_EQ(plan.strategy, request.strategy);
        CHECK_NEAR(plan.predicted.step_s, plan.baselines[s - 1].predicted.step_s, 1e-12);
        CHECK(plan.predicted.step_s >= best_s);
        CHECK_STATUS(ghp_plan_verify(&plan, &profile), GHP_OK);
        ghp_plan_release(&plan);
    }
    request.strategy = GHP_STRATEGY_AUTO;
    request.force = "*=data,fc7=out:2";
    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    CHECK_EQ(plan.strategy, GHP_STRATEGY_GIVEN);
    CHECK_EQ(plan.groups, 4);
    CHECK_STATUS(ghp_plan_verify(&plan, &profile), GHP_OK);
    ghp_plan_release(&plan);
}

/* A margin within the error bar: data parallelism, and the reason said. */
static void test_simplify(void)
{
    struct ghp_plan_request request = request_for(MODEL("vgg16"), 16, 1024);
    struct ghp_plan plan;
    struct ghp_rate load = profile.load;

    profile.load = (struct ghp_rate){
        .latency_s = 1e-3, .bandwidth_Bps = 1e12, .spread = 1e3, .source = GHP_SOURCE_MEASURED};
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    if (CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) {
        CHECK(plan.certificate.preferred != NULL &&
              strstr(plan.certificate.preferred, "within") != NULL);
        CHECK_EQ(plan.groups, 16);
        CHECK_STATUS(ghp_plan_verify(&plan, &profile), GHP_OK);
        ghp_plan_release(&plan);
    }
    request.simplify = false;
    if (CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) {
        CHECK(plan.certificate.preferred == NULL);
        CHECK(plan.groups < 16);
        ghp_plan_release(&plan);
    }
    profile.load = load;
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
}

/* Reductions of high latency are worth few buckets: what is slower layer by layer may be the fastest in one. */
static void test_costly_reductions(void)
{
    struct ghp_plan_request request = request_for(MODEL("lenet5"), 4, 64);
    const struct ghp_machine machine = profile.machine;
    struct ghp_plan plan;

    request.method.bucket_bytes = GHP_BUCKET_AUTO;
    profile.machine.intra.latency_s = profile.machine.inter.latency_s = 2e-3;
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    for (int simplify = 0; simplify < 2; simplify++) {
        request.simplify = simplify == 1;
        if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) continue;
        check_plan(&plan);
        CHECK(plan.method.bucket_bytes > 0);
        ghp_plan_release(&plan);
    }
    profile.machine = machine;
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
}

/* With slowdowns, or a fixed bucket, or little time, the bound still holds and the gap is said. */
static void test_gap(void)
{
    struct ghp_plan_request request = request_for(MODEL("vgg-a-32"), 4, 256);
    struct ghp_plan plan;

    request.time_limit_s = 2;
    profile.overlap = (struct ghp_overlap){.compute = 1.3, .comm = 1.4, .link = 1.8};
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    for (int k = 0; k < 2; k++) {
        request.method.bucket_bytes = k == 0 ? 0 : 1 << 20;
        if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) continue;
        CHECK(plan.certificate.bound_s <= plan.certificate.step_s);
        CHECK(plan.certificate.gap >= 0 && plan.certificate.gap < 0.5);
        CHECK_STATUS(ghp_plan_verify(&plan, &profile), GHP_OK);
        ghp_plan_release(&plan);
    }
    request.method.bucket_bytes = 0;
    request.gap = 0.05;
    if (CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) {
        CHECK_EQ(plan.certificate.proof, GHP_PROOF_WITHIN_GAP);
        CHECK(plan.certificate.gap <= 0.05 + 1e-12);
        CHECK_STATUS(ghp_plan_verify(&plan, &profile), GHP_OK);
        ghp_plan_release(&plan);
    }
    profile.overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
}

/* One sample over all workers: every layer is split, and data parallelism says why it cannot be. */
static void test_few_samples(void)
{
    struct ghp_plan_request request = request_for(MODEL("llama-nano"), 4, 1);
    struct ghp_plan plan;

    if (CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) {
        for (int v = 0; v < plan.model.n_layers; v++)
            CHECK_EQ(plan.splits[v].tp_size, 4);
        CHECK(!plan.baselines[0].feasible &&
              strstr(plan.baselines[0].reason, "a batch of 1 is less than one sample") != NULL);
        check_plan(&plan);
        ghp_plan_release(&plan);
    }
    request.strategy = GHP_STRATEGY_DATA;
    CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_ERR_INFEASIBLE);
    CHECK_MESSAGE("or a batch of 4");
    request = request_for(MODEL("lenet5"), 4, 1); /* six channels of one */
    CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_ERR_INFEASIBLE);
    CHECK_MESSAGE("layer 'conv1' has no split over 4; use a batch of 4, or 1 worker");
}

/* An operation that the backend lacks is refused before anything is searched. */
static void test_operations(void)
{
    struct ghp_plan_request request = request_for(MODEL("lenet5"), 2, 24);
    struct ghp_plan plan;

    profile.knows_has = true;
    for (int op = 0; op < GHP_OP_COUNT; op++)
        profile.has[op] = op != GHP_OP_MAX_POOL;
    CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_ERR_INPUT);
    CHECK_MESSAGE("of the profile has no 'max_pool', which layer 'pool1' is");
    profile.knows_has = false;
}

CHECK_TEST(make)
{
    if (!CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK)) return check_end();
    test_networks();
    test_bucketed_baselines();
    test_memory();
    test_groups();
    test_one_worker();
    test_strategies();
    test_simplify();
    test_costly_reductions();
    test_gap();
    test_few_samples();
    test_operations();
    ghp_profile_release(&profile);
    return check_end();
}
