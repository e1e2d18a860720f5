/* tests/core/plan/test_plan.c - the plan file: what is saved is loaded, what was edited is refused or does
 * not verify. */
#include "core/base/file.h"
#include "core/plan/plan_set.h"
#include "tests/check.h"

#include <unistd.h>

static const char *const net =
    "{\"format\": \"ghp.model/1\", \"name\": \"t\", \"input\": {\"channels\": 8, \"height\": 4, "
    "\"width\": 4}, \"layers\": [\n"
    "{\"name\": \"c\", \"op\": \"conv2d\", \"channels\": 16, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"r\", \"op\": \"relu\"}, {\"name\": \"f\", \"op\": \"flatten\"},\n"
    "{\"name\": \"l\", \"op\": \"linear\", \"features\": 8}, {\"name\": \"loss\", \"op\": "
    "\"softmax_cross_entropy\"}]}";

static char *copy_text(const char *text)
{
    char *copy = strdup(text);

    if (copy == NULL) exit(1);
    return copy;
}

static struct ghp_profile analytic(void)
{
    struct ghp_profile profile;

    CHECK_STATUS(ghp_profile_init(&profile, "analytic", "exact", 4), GHP_OK);
    profile.machine.nodes = 8;
    profile.machine.intra = profile.machine.inter = (struct ghp_link){20e-6, 1.25e9, 0};
    profile.analytic = (struct ghp_analytic_model){.flops_per_s = 1e9};
    profile.copy = profile.update[0] = (struct ghp_rate){1e-6, 1e9, 0.1, GHP_SOURCE_ANALYTIC};
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    return profile;
}

/* A second best with all that a plan can say of it: values found, not found, and equal as it is. */
static void add_alternative(struct ghp_plan *plan)
{
    const double step_s = plan->predicted.step_s;
    const size_t layers = (size_t)plan->model.n_layers;
    struct ghp_alternative *a = ghp_alloc(1, sizeof *a);
    struct ghp_split *splits = ghp_alloc(layers, sizeof *splits);
    struct ghp_profile whole = analytic();
    struct ghp_lowering lowering = ghp_plan_lowering(plan, &whole);
    struct ghp_prediction second_best = {0};

    *a = (struct ghp_alternative){.layer = 1, .split = {.kind = GHP_SPLIT_IN, .tp_size = 2}};
    a->n_changes = 1;
    a->changes = ghp_alloc(1, sizeof *a->changes);
    a->changes[0] = (struct ghp_change){ghp_model_find(&plan->model, "r"),
                                        {.kind = GHP_SPLIT_CHANNEL, .tp_size = 2}};
    ghp_alternative_splits(a, plan->splits, layers, splits);
    CHECK_STATUS(ghp_plan_predict(&lowering, splits, &whole, &second_best), GHP_OK);
    a->step_s = second_best.step_s;
    free(splits);
    ghp_profile_release(&whole);
    a->n_choices = 2;
    a->choices = ghp_alloc(2, sizeof *a->choices);
    a->choices[0] = (struct ghp_choice_cost){
        {.kind = GHP_SPLIT_DATA, .tp_size = 1}, step_s, 1e-3, 2e-3, 0.1, 0.2, 0.3, 1e-5, 4096};
    a->choices[1] = (struct ghp_choice_cost){
        {.kind = GHP_SPLIT_IN, .tp_size = 2}, step_s * 1.5, 1, 2, 3, 4, 5, 6, 8192};
    a->n_break_even = 2;
    a->break_even[0] =
        (struct ghp_break_even){GHP_QUANTITY_INTER_BANDWIDTH, 1.25e9, 1.0 / 3 * 1e9, NAN};
    a->break_even[1] = (struct ghp_break_even){GHP_QUANTITY_BATCH, 16, 16, 16};
    plan->alternatives = a;
    plan->n_alternatives = 1;
    plan->break_even_search = copy_text("1 of 1 layers");
    plan->certificate.margin = copy_text("beyond the error");
}

/* What add_alternative made, after a file. */
static void check_alternative(const struct ghp_plan *plan)
{
    const struct ghp_alternative *a = &plan->alternatives[0];

    CHECK_EQ(plan->n_alternatives, 1);
    CHECK(a->layer == 1 &&
          ghp_split_same(a->split, (struct ghp_split){.kind = GHP_SPLIT_IN, .tp_size = 2}));
    CHECK(a->n_changes == 1 && a->n_choices == 2 && a->n_break_even == 2);
    CHECK_EQ(a->changes[0].layer, ghp_model_find(&plan->model, "r"));
    CHECK_EQ(a->choices[1].split.tp_size, 2);
    CHECK_NEAR(a->choices[0].reshard_s, 0.1, 0);
    CHECK_NEAR(a->choices[0].exposed_s, 0.3, 0);
    CHECK_EQ(a->choices[1].peak_bytes, 8192);
    CHECK_EQ(a->break_even[0].quantity, GHP_QUANTITY_INTER_BANDWIDTH);
    CHECK_NEAR(a->break_even[0].low, 1.0 / 3 * 1e9, 0);
    CHECK(isnan(a->break_even[0].high));
    CHECK_NEAR(a->break_even[1].high, 16, 0);
    CHECK_TEXT(plan->break_even_search, "1 of 1 layers");
    CHECK_TEXT(plan->certificate.margin, "beyond the error");
}

/* A plan of 4 workers: the linear layer split over 2. */
static struct ghp_plan make_plan(void)
{
    struct ghp_plan plan = {
        .problem = {4, 16}, .groups = 2, .group_size = 2, .method.bucket_bytes = 1 << 20};
    struct ghp_lowering lowering;
    struct ghp_program program;
    struct ghp_profile whole = analytic();

    CHECK_STATUS(ghp_model_parse(net, "net", &plan.model), GHP_OK);
    plan.splits = ghp_alloc((size_t)plan.model.n_layers, sizeof *plan.splits);
    for (int i = 0; i < plan.model.n_layers; i++)
        plan.splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    plan.splits[ghp_model_find(&plan.model, "l")] =
        (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 2};
    plan.strategy = GHP_STRATEGY_AUTO;
    plan.profile_path = copy_text("p.json");
    plan.profile_hash = whole.hash;
    lowering = ghp_plan_lowering(&plan, &whole);
    CHECK_STATUS(ghp_lower(&lowering, plan.splits, 0, &program), GHP_OK);
    CHECK_STATUS(ghp_profile_subset(&whole, &program, &plan.profile), GHP_OK);
    lowering = ghp_plan_lowering(&plan, &plan.profile);
    CHECK_STATUS(ghp_plan_predict(&lowering, plan.splits, &plan.profile, &plan.predicted), GHP_OK);
    CHECK(plan.predicted.step_s > 0 && plan.predicted.peak_bytes > 0 &&
          plan.predicted.sent_bytes > 0);
    plan.certificate = (struct ghp_certificate){
        .step_s = plan.predicted.step_s, .bound_s = plan.predicted.step_s, .plans = 3};
    plan.certificate.proof = GHP_PROOF_OPTIMAL;
    plan.certificate.trial = GHP_TRIAL_BUCKETS;
    plan.n_baselines = 2;
    plan.baselines = ghp_alloc(2, sizeof *plan.baselines);
    plan.baselines[0] = (struct ghp_baseline){.strategy = GHP_STRATEGY_DATA,
                                              .feasible = true,
                                              .predicted = plan.predicted,
                                              .bucket_bytes = 4096};
    plan.baselines[0].predicted.step_s *= 2;
    plan.baselines[1] = (struct ghp_baseline){.strategy = GHP_STRATEGY_MODEL,
                                              .reason = copy_text("needs more memory")};
    plan.n_alternatives = 1;
    add_alternative(&plan);
    plan.memory_limit_bytes = plan.predicted.peak_bytes;
    ghp_program_release(&program);
    ghp_profile_release(&whole);
    return plan;
}

static void test_round_trip(void)
{
    struct ghp_plan plan = make_plan(), again;
    char path[] = "/tmp/ghp-plan-XXXXXX", *first = NULL, *second = NULL;
    struct ghp_profile whole = analytic();
    int fd = mkstemp(path);

    CHECK_STATUS(ghp_plan_save(path, &plan), GHP_OK);
    CHECK_STATUS(ghp_file_read(path, &first, NULL), GHP_OK);
    CHECK_STATUS(ghp_plan_load(path, &again), GHP_OK);
    CHECK_STATUS(ghp_plan_save(path, &again), GHP_OK);
    CHECK_STATUS(ghp_file_read(path, &second, NULL), GHP_OK);
    CHECK_TEXT(second, first);
    CHECK_STATUS(ghp_plan_verify(&again, &again.profile), GHP_OK);
    CHECK_STATUS(ghp_plan_verify(&again, &whole), GHP_OK);
    CHECK(again.predicted.program_hash != 0);
    again.predicted.program_hash ^= 1;
    CHECK_STATUS(ghp_plan_verify(&again, &whole), GHP_ERR_INPUT);
    CHECK_MESSAGE("is lowered to program");
    again.predicted.program_hash = 0; /* not said */
    CHECK_STATUS(ghp_plan_verify(&again, &whole), GHP_OK);
    check_alternative(&again);
    CHECK_EQ(again.n_baselines, 2);
    CHECK_TEXT(again.baselines[1].reason, "needs more memory");
    CHECK_EQ(again.splits[ghp_model_find(&again.model, "l")].tp_size, 2);
    CHECK(again.profile_hash == whole.hash);
    CHECK_EQ(ghp_plan_canonical_groups(&again.model, again.splits, again.problem), 2);
    again.splits[1] = (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 4};
    CHECK_EQ(ghp_plan_canonical_groups(&again.model, again.splits, again.problem), 1);
    CHECK_STATUS(ghp_plan_check(&again), GHP_ERR_INPUT);
    CHECK_MESSAGE("larger groups");
    CHECK_STATUS(ghp_plan_save("/nonexistent/plan.json", &plan), GHP_ERR_IO);
    free(first);
    free(second);
    ghp_profile_release(&whole);
    ghp_plan_release(&again);
    ghp_plan_release(&plan);
    close(fd);
    unlink(path);
}

/* Baselines that shard parameters are read as they are written, and say so; the data-parallel plan has the first
 * one's. */
static void test_sharded_baselines(void)
{
    static const struct {
        enum ghp_param_sharding first, others; /* of the layers with parameters */
        int within;
        const char *text;
    } rows[] = {
        {GHP_SHARDING_PASS, GHP_SHARDING_PASS, 0, "data, parameters sharded (FSDP)"},
        {GHP_SHARDING_PASS, GHP_SHARDING_PASS, 2, "data, parameters sharded (HSDP)"},
        {GHP_SHARDING_PASS, GHP_SHARDING_PASS, 4, "data, parameters sharded (FSDP)"},
        {GHP_SHARDING_STEP, GHP_SHARDING_STEP, 0, "data, parameters sharded (ZeRO-3)"},
        {GHP_SHARDING_STEP, GHP_SHARDING_STEP, 2, "data, parameters sharded (HSDP)"},
        {GHP_SHARDING_GRADIENTS, GHP_SHARDING_GRADIENTS, 0, "data, gradients sharded (ZeRO-2)"},
        {GHP_SHARDING_NONE, GHP_SHARDING_PASS, 0, "data, parameters sharded"},
    };
    char path[256];

    snprintf(path, sizeof path, "%s/sharded.json", check_folder());
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct ghp_plan plan = make_plan(), again;
        char text[GHP_BASELINE_TEXT_SIZE];
        int seen = 0;

        plan.method.shard_within = rows[k].within;
        plan.baselines[0].sharding =
            ghp_alloc((size_t)plan.model.n_layers, sizeof *plan.baselines[0].sharding);
        for (int v = 0; v < plan.model.n_layers; v++)
            if (plan.model.layers[v].n_params > 0)
                plan.baselines[0].sharding[v] = seen++ == 0 ? rows[k].first : rows[k].others;
        CHECK(seen > 1);
        CHECK_STATUS(ghp_plan_save(path, &plan), GHP_OK);
        CHECK_STATUS(ghp_plan_load(path, &again), GHP_OK);
        CHECK_TEXT(ghp_baseline_format(&again, &again.baselines[0], text), rows[k].text);
        CHECK_STATUS(ghp_plan_make_data(&again), GHP_OK);
        for (int v = 0; v < plan.model.n_layers; v++)
            CHECK_EQ(again.splits[v].sharding, plan.baselines[0].sharding[v]);
        ghp_plan_release(&again);
        ghp_plan_release(&plan);
    }
}

/* The plan that it was compared with, and what has none. */
static void test_data(void)
{
    struct ghp_plan plan = make_plan();

    CHECK(!ghp_plan_is_data(&plan));
    CHECK_STATUS(ghp_plan_make_data(&plan), GHP_OK);
    CHECK(ghp_plan_is_data(&plan));
    CHECK_EQ(plan.groups, 4);
    CHECK_EQ(plan.group_size, 1);
    CHECK_EQ(plan.method.bucket_bytes, 4096);
    CHECK_NEAR(plan.predicted.step_s, plan.baselines[0].predicted.step_s, 0);
    CHECK_STATUS(ghp_plan_check(&plan), GHP_OK);
    plan.splits[ghp_model_find(&plan.model, "l")] =
        (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 2};
    plan.baselines[0].feasible = false;
    plan.baselines[0].reason = copy_text("needs 3 GiB");
    CHECK_STATUS(ghp_plan_make_data(&plan), GHP_ERR_INFEASIBLE);
    CHECK_MESSAGE("needs 3 GiB");
    CHECK(!ghp_plan_is_data(&plan));
    ghp_plan_release(&plan);
}

/* Two plans that differ in their workers, and three workers left out. */
static struct ghp_plan_set make_set(void)
{
    struct ghp_plan_set set = {.n = 2, .n_left_out = 1};

    set.plans[0] = make_plan();
    set.plans[1] = make_plan();
    set.plans[1].problem.workers = 2;
    set.plans[1].groups = 1;
    set.left_out[0].workers = 3;
    set.left_out[0].reason = copy_text("3 do not divide 16");
    return set;
}

static void test_set(void)
{
    struct ghp_plan_set set = make_set(), again;
    struct ghp_plan one;
    char path[] = "/tmp/ghp-plan-XXXXXX";
    int fd = mkstemp(path);

    CHECK_STATUS(ghp_plan_set_save(path, &set), GHP_OK);
    CHECK_STATUS(ghp_plan_set_load(path, &again), GHP_OK);
    CHECK_EQ(again.n, 2);
    CHECK_EQ(again.plans[0].problem.workers, 4);
    CHECK_EQ(again.plans[1].problem.workers, 2);
    CHECK_EQ(again.n_left_out, 1);
    CHECK_TEXT(again.left_out[0].reason, "3 do not divide 16");
    ghp_plan_set_release(&again);
    CHECK_STATUS(ghp_plan_load_for(path, 2, &one), GHP_OK);
    CHECK_EQ(one.problem.workers, 2);
    ghp_plan_release(&one);
    CHECK_STATUS(ghp_plan_load_for(path, 3, &one), GHP_ERR_INPUT);
    CHECK_MESSAGE("3 do not divide 16");
    CHECK_STATUS(ghp_plan_load_for(path, 8, &one), GHP_ERR_INPUT);
    CHECK_MESSAGE("but for 4, 2");
    CHECK_STATUS(ghp_plan_load(path, &one), GHP_ERR_FORMAT);
    /* not one training, not in order */
    set.plans[1].method.clip_norm = 1;
    CHECK_STATUS(ghp_plan_set_save(path, &set), GHP_OK);
    CHECK_STATUS(ghp_plan_set_load(path, &again), GHP_ERR_INPUT);
    CHECK_MESSAGE("clip");
    set.plans[1].method.clip_norm = 0;
    set.plans[0].problem.workers = 2;
    set.plans[0].groups = 1;
    CHECK_STATUS(ghp_plan_set_save(path, &set), GHP_OK);
    CHECK_STATUS(ghp_plan_set_load(path, &again), GHP_ERR_INPUT);
    CHECK_MESSAGE("from the most workers");
    /* a file of one plan is a set of one, for any number of workers */
    CHECK_STATUS(ghp_plan_save(path, &set.plans[0]), GHP_OK);
    CHECK_STATUS(ghp_plan_load_for(path, 8, &one), GHP_OK);
    CHECK_EQ(one.problem.workers, 2);
    ghp_plan_release(&one);
    ghp_plan_set_release(&set);
    close(fd);
    unlink(path);
}

struct edit {
    const char *from, *to, *message;
    bool loads; /* verify refuses it, not load */
};

static const struct edit edits[] = {
    {"\"format\": \"ghp.plan/2\"", "\"format\": \"ghp.plan/7\"",
     "this version of ghp reads 'ghp.plan/2'", false},
    {"\"strategy\": \"auto\"", "\"strategy\": \"best\"", "use one of auto, data", false},
    {"\"strategy\": \"model\"", "\"strategy\": \"rules\"", "use one of data, model", false},
    {"\"status\": \"optimal with", "\"status\": \"best with", "no certificate has the status",
     false},
    {"\"groups\": 2", "\"groups\": 3", "make groups x group_size the workers", false},
    {"\"global_batch\": 16", "\"global_batch\": 18", "'global_batch'", false},
    {"\"layer\": \"l\", \"split\": \"out\", \"tp_size\": 2",
     "\"layer\": \"l\", \"split\": \"out\", \"tp_size\": 4", "does not divide the group", false},
    {"\"layer\": \"l\", \"split\": \"out\", \"tp_size\": 2",
     "\"layer\": \"l\", \"split\": \"data\", \"tp_size\": 1", "the plan does not hold", true},
    {"\"layer\": \"l\", \"split\": \"out\"", "\"layer\": \"l\", \"split\": \"in\"",
     "the plan does not hold", true},
    {"\"layer\": \"c\", \"split\": \"data\"", "\"layer\": \"d\", \"split\": \"data\"",
     "this is the place of layer 'c'", false},
    {"\"features\": 8", "\"features\": 16", "'model_hash'", false},
    {"\"kernel\": 3", "\"kernels\": 3", "did you mean 'kernel'", false},
    {"\"nodes\": 8", "\"nodes\": 4", "'machine_hash'", false},
    {"\"flops_per_s\": 1e+09", "\"flops_per_s\": 2e+09", "predicted", true},
    {"\"peak_bytes\": ", "\"peak_bytes\": 1", "predicted.peak_bytes", true},
    {"\"sent_bytes\": ", "\"sent_bytes\": 1", "predicted.sent_bytes", true},
    {"\"predicted_step_s\": 0.0", "\"predicted_step_s\": 0.1", "predicted_step_s", true},
    {"\"memory_limit_bytes\": ", "\"memory_limit_bytes\": 1 , \"gap_\": ", "unknown key 'gap_'",
     false},
    {"\"gap\": 0.0", "\"gap\": 0.5", "certificate.gap", true},
    {"\"bound_s\": 0.0", "\"bound_s\": 0.9", "not a lower bound", true},
    {"\"plans_simulated\": 3", "\"plans_simulated\": -3", "'certificate.plans_simulated'", false},
    {"\"profile_hash\": \"", "\"profile_hash\": \"x", "16", false},
    {"\"program_hash\": \"", "\"program_hash\": \"x", "16", false},
    {"\"high\": \"none\"", "\"high\": \"never\"", "give a number or \"none\"", false},
    {"\"high\": \"none\"", "\"high\": -1.0", "'alternatives[0].break_even[0].high'", false},
    {"\"quantity\": \"global_batch\"", "\"quantity\": \"batch\"", "use one of inter_bandwidth_Bps",
     false},
    {"\"exposed_s\": 0.3", "\"exposed\": 0.3", "did you mean 'exposed_s'", false},
    {"{\"layer\": \"r\", \"split\": \"channel\", \"tp_size\": 2}",
     "{\"layer\": \"r\", \"split\": \"full\", \"tp_size\": 2}", "alternatives.predicted_step_s",
     true},
    {"{\"layer\": \"r\", \"split\": \"channel\", \"tp_size\": 2}",
     "{\"layer\": \"q\", \"split\": \"channel\", \"tp_size\": 2}", "the model has no layer 'q'",
     false},
    {"{\"layer\": \"r\", \"split\": \"channel\", \"tp_size\": 2}",
     "{\"layer\": \"r\", \"split\": \"in\", \"tp_size\": 2}", "'r'", false},
};

static void test_edits(void)
{
    struct ghp_plan plan = make_plan(), again;
    char path[] = "/tmp/ghp-plan-XXXXXX", *text = NULL;
    struct ghp_profile whole = analytic();
    int fd = mkstemp(path);

    CHECK_STATUS(ghp_plan_save(path, &plan), GHP_OK);
    CHECK_STATUS(ghp_file_read(path, &text, NULL), GHP_OK);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        const char *place = strstr(text, edits[i].from);
        char edited[32768];

        if (!CHECK(place != NULL)) {
            fprintf(stderr, "no %s in\n%s\n", edits[i].from, text);
            break;
        }
        snprintf(edited, sizeof edited, "%.*s%s%s", (int)(place - text), text, edits[i].to,
                 place + strlen(edits[i].from));
        CHECK_STATUS(ghp_file_write_atomic(path, edited, strlen(edited)), GHP_OK);
        if (!edits[i].loads) {
            CHECK(ghp_plan_load(path, &again) != GHP_OK);
            CHECK(again.splits == NULL);
        } else if (CHECK_STATUS(ghp_plan_load(path, &again), GHP_OK)) {
            CHECK_STATUS(ghp_plan_verify(&again, &whole), GHP_ERR_INPUT);
            ghp_plan_release(&again);
        }
        if (!CHECK_MESSAGE(edits[i].message)) fprintf(stderr, "edit %s\n", edits[i].to);
    }
    free(text);
    ghp_profile_release(&whole);
    ghp_plan_release(&plan);
    close(fd);
    unlink(path);
}

static void test_verify(void)
{
    struct ghp_plan plan = make_plan();
    struct ghp_profile whole = analytic();

    plan.memory_limit_bytes = plan.predicted.peak_bytes - 1;
    CHECK_STATUS(ghp_plan_verify(&plan, &whole), GHP_ERR_INPUT);
    CHECK_MESSAGE("its limit is");
    plan.memory_limit_bytes = 0;
    CHECK_STATUS(ghp_plan_verify(&plan, &whole), GHP_OK);
    plan.baselines[0].predicted.step_s = plan.predicted.step_s * 0.9;
    CHECK_STATUS(ghp_plan_verify(&plan, &whole), GHP_ERR_INPUT);
    CHECK_MESSAGE("slower than data parallelism");
    plan.baselines[0].predicted.step_s = plan.predicted.step_s;
    whole.analytic.flops_per_s *= 1.001;
    CHECK_STATUS(ghp_plan_verify(&plan, &whole), GHP_ERR_INPUT);
    plan.profile.analytic.flops_per_s *=
        1.001; /* the cost inside changed, but not the whole profile's */
    whole.analytic.flops_per_s /= 1.001;
    CHECK_STATUS(ghp_plan_verify(&plan, &whole), GHP_ERR_INPUT);
    CHECK_MESSAGE("by the costs inside the plan");
    whole.element_bytes = 8;
    CHECK_STATUS(ghp_plan_verify(&plan, &whole), GHP_ERR_INPUT);
    CHECK_MESSAGE("give the profile that the plan was made with");
    ghp_profile_release(&whole);
    ghp_plan_release(&plan);
}

static void test_sentences(void)
{
    static const struct {
        struct ghp_certificate c;
        const char *sentence;
    } cases[] = {
        {{.proof = GHP_PROOF_GIVEN},
         "the plan was given, not searched for, so nothing is proven of it"},
        {{0.004, 0.004, 0, .proof = GHP_PROOF_OPTIMAL},
         "optimal: the best plan takes 4.000 ms a step, and none takes less"},
        {{0.004, 0.004, 0, .proof = GHP_PROOF_OPTIMAL, .trial = GHP_TRIAL_BUCKETS},
         "optimal: the best plan with each layer reduced alone takes 4.000 ms a step, and none "
         "takes less; the bucket size was then chosen by trial"},
        {{0.004, 0.003, 0.25, .proof = GHP_PROOF_TIME_LIMIT, .trial = GHP_TRIAL_LOAD_BALANCE},
         "the time limit came first: the best plan found with equal shares takes 4.000 ms a step, "
         "and none takes less than 3.000 ms, which is 25 % less; shares by the workers' speeds "
         "were chosen by trial"},
        {{0.004, 0.003, 0.25, .proof = GHP_PROOF_WITHIN_GAP},
         "within the gap that was asked for: the best plan found takes 4.000 ms a step, and none "
         "takes less than 3.000 ms, which is 25 % less"},
        {{0.004, 0, 1, .proof = GHP_PROOF_TIME_LIMIT},
         "the time limit came first: the best plan found takes 4.000 ms a step, and no bound on "
         "others is known"},
        {{0.004, 0.00001, 0.9975, .proof = GHP_PROOF_TIME_LIMIT},
         "the time limit came first: the best plan found takes 4.000 ms a step, and none takes "
         "less "
         "than 0.010 ms, which is 99.8 % less"},
        {{0.004, 0, 1, .proof = GHP_PROOF_NOTHING_FITS, .trial = GHP_TRIAL_RECOMPUTE},
         "no plan that fits was found with all layers kept, so no bound is known; the layers to "
         "recompute were chosen by trial"}};
    char text[GHP_CERTIFICATE_SENTENCE_SIZE];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_TEXT(ghp_certificate_sentence(&cases[i].c, text), cases[i].sentence);
}

CHECK_TEST(plan)
{
    test_sentences();
    test_round_trip();
    test_data();
    test_sharded_baselines();
    test_set();
    test_edits();
    test_verify();
    return check_end();
}
