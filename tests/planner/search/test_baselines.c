/* tests/planner/search/test_baselines.c - what the strategies and splits given by hand leave of a domain. */
#include "planner/search/baselines.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

static struct ghp_model model;
static struct ghp_profile profile;

static const struct ghp_split *only_split(const struct ghp_domain *domain, const char *layer)
{
    const struct ghp_instance *in = domain->instance;
    int v = ghp_model_find(&model, layer);

    if (!CHECK(v >= 0)) return NULL;
    CHECK_EQ(ghp_domain_count(domain, v), 1);
    for (int i = 0; i < in->n_choices[v]; i++)
        if (domain->choice[in->first_choice[v] + i]) return &in->choices[in->first_choice[v] + i];
    return NULL;
}

static bool is_split(const struct ghp_split *split, enum ghp_split_kind kind, int tp_size)
{
    return split != NULL && split->kind == kind && split->tp_size == tp_size;
}

static int kept(const struct ghp_domain *domain, const char *layer)
{
    return ghp_domain_count(domain, ghp_model_find(&model, layer));
}

static void test_strategies(const struct ghp_instance *in)
{
    struct ghp_domain domain;

    CHECK_STATUS(ghp_domain_init(in, &domain), GHP_OK);
    CHECK_STATUS(ghp_strategy_restrict(GHP_STRATEGY_DATA, &domain), GHP_OK);
    for (int v = 0; v < model.n_layers; v++)
        CHECK_EQ(ghp_domain_count(&domain, v), 1);
    CHECK(is_split(only_split(&domain, "conv1"), GHP_SPLIT_DATA, 1));
    ghp_domain_release(&domain);

    CHECK_STATUS(ghp_domain_init(in, &domain), GHP_OK);
    CHECK_STATUS(ghp_strategy_restrict(GHP_STRATEGY_OWT, &domain), GHP_OK);
    CHECK(is_split(only_split(&domain, "conv2"), GHP_SPLIT_DATA, 1));
    CHECK_EQ(kept(&domain, "fc1"), 2);                                /* out:4 and in:4 */
    CHECK(is_split(only_split(&domain, "relu1"), GHP_SPLIT_DATA, 1)); /* between convolutions */
    CHECK_EQ(kept(&domain, "relu_fc1"), in->n_choices[ghp_model_find(&model, "relu_fc1")]);
    ghp_domain_release(&domain);

    CHECK_STATUS(ghp_domain_init(in, &domain), GHP_OK);
    CHECK_STATUS(ghp_strategy_restrict(GHP_STRATEGY_MODEL, &domain), GHP_OK);
    CHECK_EQ(kept(&domain, "conv2"), 2);
    CHECK(is_split(only_split(&domain, "conv1"), GHP_SPLIT_OUT,
                   4)); /* 3 input channels do not divide */
    CHECK(kept(&domain, "relu1") == in->n_choices[ghp_model_find(&model, "relu1")] - 1);
    ghp_domain_release(&domain);
}

static void test_alone(void)
{
    struct ghp_lowering lowering = {.model = &model, .problem = {1, 8}, .element_bytes = 4};
    struct ghp_instance in;
    struct ghp_domain domain;

    CHECK_STATUS(ghp_instance_init(&lowering, &profile, 1, &in), GHP_OK);
    CHECK_STATUS(ghp_domain_init(&in, &domain), GHP_OK);
    CHECK_STATUS(ghp_strategy_restrict(GHP_STRATEGY_OWT, &domain), GHP_ERR_INFEASIBLE);
    CHECK_MESSAGE("at least 2 workers");
    CHECK_STATUS(ghp_strategy_restrict(GHP_STRATEGY_DATA, &domain), GHP_OK);
    ghp_domain_release(&domain);
    ghp_instance_release(&in);
}

/* Each seed fixes the layers with weights and no other; two seeds in 16 that agree in all layers would be a fault. */
static void test_random(const struct ghp_instance *in)
{
    int differ = 0, first = -1;

    for (int seed = 0; seed < 16; seed++) {
        struct ghp_domain domain;
        char text[32];

        snprintf(text, sizeof text, "random:%d", seed);
        CHECK_STATUS(ghp_domain_init(in, &domain), GHP_OK);
        CHECK_STATUS(ghp_force_restrict(text, &domain), GHP_OK);
        CHECK_EQ(kept(&domain, "fc1"), 1);
        CHECK_EQ(kept(&domain, "conv1"), 1);
        CHECK(kept(&domain, "relu1") > 1);
        const struct ghp_split *fc1 = only_split(&domain, "fc1");
        int now = 100 * (int)fc1->kind + fc1->tp_size;
        differ += first >= 0 && now != first;
        first = first < 0 ? now : first;
        ghp_domain_release(&domain);
    }
    CHECK(differ > 0);
}

static void test_force(const struct ghp_instance *in)
{
    struct ghp_domain domain;

    CHECK_STATUS(ghp_domain_init(in, &domain), GHP_OK);
    CHECK_STATUS(ghp_force_restrict("*=data,fc*=in:2,fc1=out:max,conv?=out:2", &domain), GHP_OK);
    CHECK(is_split(only_split(&domain, "fc1"), GHP_SPLIT_OUT, 4));
    CHECK(is_split(only_split(&domain, "fc2"), GHP_SPLIT_IN, 2));
    CHECK(is_split(only_split(&domain, "conv1"), GHP_SPLIT_OUT, 2));
    CHECK(is_split(only_split(&domain, "relu1"), GHP_SPLIT_DATA, 1));
    ghp_domain_release(&domain);

    test_random(in);
    CHECK_STATUS(ghp_domain_init(in, &domain), GHP_OK);
    CHECK_STATUS(ghp_force_restrict("random:x", &domain), GHP_ERR_USAGE);
    CHECK_MESSAGE("random:1");
    CHECK_STATUS(ghp_force_restrict("conv1=in:2", &domain), GHP_ERR_USAGE);
    CHECK_MESSAGE("use one of data, out:2, out:4");
    CHECK_STATUS(ghp_force_restrict("conv1*=in:2", &domain), GHP_ERR_USAGE); /* none can */
    CHECK_MESSAGE("use one of data, out:2, out:4");
    CHECK_STATUS(ghp_force_restrict("conv9=data", &domain), GHP_ERR_USAGE);
    CHECK_MESSAGE("did you mean 'conv1'");
    CHECK_STATUS(ghp_force_restrict("attention=data", &domain), GHP_ERR_USAGE);
    CHECK_MESSAGE("ghp-inspect");
    CHECK_STATUS(ghp_force_restrict("conv1", &domain), GHP_ERR_USAGE);
    CHECK_STATUS(ghp_force_restrict("conv1=sideways:2", &domain), GHP_ERR_USAGE);
    CHECK_STATUS(ghp_force_restrict("conv1=sideways:max", &domain), GHP_ERR_USAGE);
    CHECK_EQ(kept(&domain, "conv1"),
             in->n_choices[ghp_model_find(&model, "conv1")]); /* nothing was changed */
    ghp_domain_release(&domain);
}

/* A layer that shares parameters gets the split that goes with the other's. */
static void test_tied(void)
{
    static const struct {
        const char *force;
        enum ghp_split_kind embed, out;
        int tp_size;
    } cases[] = {{"embed=rows:2", GHP_SPLIT_ROWS, GHP_SPLIT_OUT, 2},
                 {"out=in:4", GHP_SPLIT_OUT, GHP_SPLIT_IN, 4},
                 {"embed=rows:2,out=out:4", GHP_SPLIT_ROWS, GHP_SPLIT_OUT, 4},
                 {"out=out:2,*=data", GHP_SPLIT_DATA, GHP_SPLIT_DATA, 1}};
    struct ghp_lowering lowering = {.model = &model, .problem = {4, 64}, .element_bytes = 4};
    struct ghp_instance in;
    struct ghp_domain domain;

    if (!CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/tests/executor/tied.json", &model), GHP_OK))
        return;
    CHECK_STATUS(ghp_instance_init(&lowering, &profile, 4, &in), GHP_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_STATUS(ghp_domain_init(&in, &domain), GHP_OK);
        CHECK_STATUS(ghp_force_restrict(cases[i].force, &domain), GHP_OK);
        CHECK(is_split(only_split(&domain, "embed"), cases[i].embed, cases[i].tp_size));
        CHECK(is_split(only_split(&domain, "out"), cases[i].out, cases[i].tp_size));
        ghp_domain_release(&domain);
    }
    ghp_instance_release(&in);
    ghp_model_release(&model);
}

/* Two layers that share parameters, in stages of unlike size: what one of the stages cannot hold is not offered. */
static void test_tied_stages(void)
{
    static const char *const refused[] = {"out=out:2", "out=in:2", "embed=rows:2", "out=out:max"};
    struct ghp_staging staging = {.n = 2, .stage = {{.workers = 1}, {.workers = 2}}};
    struct ghp_lowering lowering = {
        .model = &model, .problem = {3, 6}, .element_bytes = 4, .staging = &staging};
    struct ghp_instance in;
    struct ghp_domain domain;

    if (!CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/tests/executor/tied.json", &model), GHP_OK))
        return;
    staging.stage[1].first_layer = ghp_model_find(&model, "norm");
    CHECK_STATUS(ghp_instance_init(&lowering, &profile, 3, &in), GHP_OK);
    CHECK_STATUS(ghp_domain_init(&in, &domain), GHP_OK);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        CHECK_STATUS(ghp_force_restrict(refused[i], &domain), GHP_ERR_USAGE);
        CHECK_MESSAGE("use one of data");
    }
    CHECK_STATUS(ghp_force_restrict("out=data", &domain), GHP_OK);
    for (int seed = 0; seed < 16; seed++) {
        char text[32];

        snprintf(text, sizeof text, "random:%d", seed);
        CHECK_STATUS(ghp_force_restrict(text, &domain), GHP_OK);
        CHECK(is_split(only_split(&domain, "out"), GHP_SPLIT_DATA, 1));
    }
    ghp_domain_release(&domain);
    ghp_instance_release(&in);
    ghp_model_release(&model);
}

CHECK_TEST(baselines)
{
    struct ghp_lowering lowering = {.model = &model, .problem = {4, 64}, .element_bytes = 4};
    struct ghp_instance in;

    if (!CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/vgg-a-32.json", &model), GHP_OK))
        return check_end();
    if (!CHECK_STATUS(analytic_profile(1e12, 1e9, 1e-5, &profile), GHP_OK)) return check_end();
    if (!CHECK_STATUS(ghp_instance_init(&lowering, &profile, 4, &in), GHP_OK)) return check_end();
    test_strategies(&in);
    test_force(&in);
    test_alone();
    ghp_instance_release(&in);
    ghp_model_release(&model);
    test_tied();
    test_tied_stages();
    ghp_profile_release(&profile);
    return check_end();
}
