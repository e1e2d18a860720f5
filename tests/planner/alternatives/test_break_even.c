/* ghp-test: timeout=60
 * tests/planner/alternatives/test_break_even.c - break-even values against a closed form, and on either side of them;
 * what a plan says of other splits against a simulation of each; terms against the sums of the streams. */
#include "core/plan/profile_scale.h"
#include "planner/alternatives/break_even.h"
#include "planner/make/make.h"
#include "planner/alternatives/quantity.h"
#include "core/cost/terms.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

/* Two linear layers without biases: 256 -> 512 -> 8. */
static const char *const net =
    "{\"format\": \"ghp.model/1\", \"name\": \"two\", \"input\": {\"channels\": 256}, \"layers\": ["
    "{\"name\": \"a\", \"op\": \"linear\", \"features\": 512, \"bias\": false}, "
    "{\"name\": \"b\", \"op\": \"linear\", \"features\": 8, \"bias\": false}, "
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}";

static const double bandwidth_Bps = 1e9, latency_s = 20e-6;

/* Two workers, batch 64: `a` is split, its second best is data. */
static struct ghp_plan two_layers(const struct ghp_profile *profile)
{
    struct ghp_plan plan = {.problem = {2, 64}, .groups = 1, .group_size = 2};
    struct ghp_lowering lowering;
    struct ghp_program program;
    struct ghp_prediction second_best;

    CHECK_STATUS(ghp_model_parse(net, "two", &plan.model), GHP_OK);
    plan.splits = ghp_alloc((size_t)plan.model.n_layers, sizeof *plan.splits);
    for (int v = 0; v < plan.model.n_layers; v++)
        plan.splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    lowering = ghp_plan_lowering(&plan, profile);
    CHECK_STATUS(ghp_plan_predict(&lowering, plan.splits, profile, &second_best), GHP_OK);
    plan.splits[1] = (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 2};
    CHECK_STATUS(ghp_plan_predict(&lowering, plan.splits, profile, &plan.predicted), GHP_OK);
    CHECK_STATUS(ghp_lower(&lowering, plan.splits, 0, &program), GHP_OK);
    CHECK_STATUS(ghp_profile_subset(profile, &program, &plan.profile), GHP_OK);
    plan.alternatives = ghp_alloc(1, sizeof *plan.alternatives);
    plan.n_alternatives = 1;
    plan.alternatives[0] = (struct ghp_alternative){
        .layer = 1, .split = {.kind = GHP_SPLIT_DATA, .tp_size = 1}, .step_s = second_best.step_s};
    ghp_program_release(&program);
    return plan;
}

static const struct ghp_break_even *value_of(const struct ghp_break_even *values, int n,
                                             enum ghp_quantity quantity)
{
    for (int i = 0; i < n; i++)
        if (values[i].quantity == quantity) return &values[i];
    return NULL;
}

/* The reductions of `b` and of the metrics hide behind the passes of `a` (8 ms each at 1 GFLOP/s) in either plan, so
 *
 *     data:   C + W / beta + 2 alpha                            W: a's weights; nothing hides their reduction
 *     out:2:  C + (X / 2) / beta + alpha + 2 ((Y / 2 / 2) / beta + alpha)
 *
 * with X, Y the bytes of a's input and output for the whole batch: gathered, and twice changed from channels to samples
 * and back. Equal where (W - (X + Y) / 2) / beta = alpha. */
static void test_closed_form(void)
{
    const double w = 256 * 512 * 4, x = 64 * 256 * 4, y = 64 * 512 * 4, d = w - (x + y) / 2;
    struct ghp_profile profile;
    struct ghp_plan plan;
    const struct ghp_break_even *b;
    const struct ghp_break_even_layer *layer;
    struct ghp_break_evens found;

    CHECK_STATUS(analytic_profile(1e9, bandwidth_Bps, latency_s, &profile), GHP_OK);
    plan = two_layers(&profile);
    CHECK_NEAR(plan.alternatives[0].step_s - plan.predicted.step_s, d / bandwidth_Bps - latency_s,
               1e-12);
    CHECK_STATUS(ghp_break_even_compute(&profile, &plan, &found), GHP_OK);
    layer = &found.layers[0];
    CHECK(strstr(found.search, "1 of 1") != NULL);
    b = value_of(layer->of, layer->n, GHP_QUANTITY_INTER_BANDWIDTH);
    if (CHECK(b != NULL)) {
        CHECK_NEAR(b->nominal, bandwidth_Bps, 0);
        CHECK(isnan(b->low));
        CHECK_NEAR(b->high * latency_s / d, 1, 1e-6);
    }
    b = value_of(layer->of, layer->n, GHP_QUANTITY_INTER_LATENCY);
    if (CHECK(b != NULL)) {
        CHECK(isnan(b->low));
        CHECK_NEAR(b->high * bandwidth_Bps / d, 1, 1e-6);
    }
    b = value_of(layer->of, layer->n, GHP_QUANTITY_BATCH);
    if (CHECK(b != NULL)) {
        /* X + Y grow with the batch: equal at 328.3 samples, an even number from 330 on */
        CHECK(isnan(b->low));
        CHECK_NEAR(b->high, 2 * ceil((w - latency_s * bandwidth_Bps) / ((x + y) / 2 / 64) / 2), 0);
    }
    CHECK(value_of(layer->of, layer->n, GHP_QUANTITY_INTRA_BANDWIDTH) == NULL);
    CHECK(value_of(layer->of, layer->n, GHP_QUANTITY_MEMORY) != NULL);
    ghp_break_even_release(&found);
    ghp_plan_release(&plan);
    ghp_profile_release(&profile);
}

/* Seconds by which an alternative is slower where one link is another. */
static double slower_at(const struct ghp_plan *plan, const struct ghp_alternative *a,
                        const struct ghp_profile *profile, double factor)
{
    struct ghp_split *splits = ghp_alloc((size_t)plan->model.n_layers, sizeof *splits);
    struct ghp_prediction mine = {0}, other = {0};
    struct ghp_profile scaled = {0};
    struct ghp_lowering lowering;

    ghp_alternative_splits(a, plan->splits, (size_t)plan->model.n_layers, splits);
    CHECK_STATUS(ghp_profile_copy(profile, &scaled), GHP_OK);
    CHECK_STATUS(ghp_quantity_scale_profile(&scaled, GHP_QUANTITY_INTER_BANDWIDTH, factor), GHP_OK);
    lowering = ghp_plan_lowering(plan, &scaled);
    CHECK_STATUS(ghp_plan_predict(&lowering, plan->splits, &scaled, &mine), GHP_OK);
    CHECK_STATUS(ghp_plan_predict(&lowering, splits, &scaled, &other), GHP_OK);
    ghp_profile_release(&scaled);
    free(splits);
    return other.step_s - mine.step_s;
}

/* What a whole plan says of each layer, costed again from outside. */
static void test_plan(void)
{
    struct ghp_profile profile;
    struct ghp_plan plan;
    int values = 0;

    CHECK_STATUS(analytic_profile(6e12, 1.25e9, 20e-6, &profile), GHP_OK);
    struct ghp_plan_request request = {.model_path = GHP_SOURCE_DIR "/models/vgg16.json",
                                       .profile_path = "analytic",
                                       .profile = &profile,
                                       .problem = {16, 1024},
                                       .method.bucket_bytes = GHP_BUCKET_AUTO,
                                       .time_limit_s = 30,
                                       .simplify = true,
                                       .break_even = true};
    if (!CHECK_STATUS(ghp_plan_make(&request, &plan), GHP_OK)) return;
    CHECK_EQ(plan.n_alternatives, 16);
    for (int i = 0; i < plan.n_alternatives; i++) {
        const struct ghp_alternative *a = &plan.alternatives[i];
        const struct ghp_break_even *b =
            value_of(a->break_even, a->n_break_even, GHP_QUANTITY_INTER_BANDWIDTH);
        double costs_s = a->step_s - plan.predicted.step_s, least_s = INFINITY;
        bool own = false;

        CHECK_NEAR(slower_at(&plan, a, &profile, 1), costs_s, 1e-12);
        for (int k = 0; k < a->n_choices; k++) {
            const struct ghp_choice_cost *c = &a->choices[k];

            if (ghp_split_same(c->split, plan.splits[a->layer])) {
                own = true;
                CHECK_NEAR(c->step_s, plan.predicted.step_s, 1e-12);
                CHECK_EQ(c->peak_bytes, plan.predicted.peak_bytes);
            } else {
                least_s = fmin(least_s, c->step_s);
            }
        }
        CHECK(own);
        CHECK(a->step_s <= least_s * (1 + 1e-9)); /* the search never ends worse than one change */
        CHECK_EQ(a->n_break_even > 0, costs_s <= 0.5 * plan.predicted.step_s);
        if (b == NULL) continue;
        for (int high = 0; high < 2; high++) {
            double at = (high ? b->high : b->low) / b->nominal, out = high ? 1 + 1e-4 : 1 - 1e-4;

            if (isnan(at)) continue;
            values++;
            /* the steps are equal to 1e-7 of the value, and the sign has turned after it */
            CHECK(fabs(slower_at(&plan, a, &profile, at)) <= 1e-6 * plan.predicted.step_s);
            CHECK(slower_at(&plan, a, &profile, at * out) * costs_s <= 0);
            CHECK(slower_at(&plan, a, &profile, at / out) * costs_s > 0);
        }
    }
    CHECK(values >= 2); /* fc7 and fc8 flip at lower bandwidths */
    ghp_plan_release(&plan);
    ghp_profile_release(&profile);
}

/* Layers' terms sum to the streams' work, and their waiting to the waiting of the step. */
static void test_terms(void)
{
    for (uint64_t seed = 1; seed <= (uint64_t)check_cases(60); seed++) {
        struct random_case c;
        struct ghp_program program;
        struct ghp_timing timing;
        struct ghp_term terms[32] = {{0}};
        struct ghp_split splits[32];
        double compute_s = 0, comm_s = 0, exposed_s = 0;
        struct random_source source = {seed * 77};

        if (!CHECK_STATUS(random_case_make(seed, 1e6, &c), GHP_OK)) continue;
        struct ghp_lowering lowering = {.model = &c.model,
                                        .problem = c.problem,
                                        .element_bytes = 4,
                                        .method.bucket_bytes = seed % 2 == 0 ? 1 << 12 : 0};
        CHECK(c.model.n_layers <= 32);
        for (int v = 0; v < c.model.n_layers; v++) {
            struct ghp_split all[GHP_MAX_CHOICES];
            int n = ghp_split_choices(&c.model.layers[v], c.problem, all, GHP_MAX_CHOICES);

            splits[v] = all[random_below(&source, n)];
        }
        CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK);
        CHECK_STATUS(ghp_simulate(&program, &c.profile, &timing), GHP_OK);
        ghp_terms_of(&program, &timing, c.model.n_layers, terms);
        for (int v = 0; v < c.model.n_layers; v++) {
            compute_s +=
                terms[v].forward_s + terms[v].backward_s + terms[v].reshard_s + terms[v].update_s;
            comm_s += terms[v].reduce_s;
            exposed_s += terms[v].exposed_s;
        }
        /* sums of some hundred doubles in another order */
        CHECK_NEAR(compute_s, timing.compute_s, 1e-12 * timing.step_s);
        CHECK_NEAR(comm_s, timing.comm_s, 1e-12 * timing.step_s);
        CHECK_NEAR(exposed_s, timing.phase_s[GHP_PHASE_EXPOSED], 1e-9 * timing.step_s);
        ghp_timing_release(&timing);
        ghp_program_release(&program);
        random_case_release(&c);
    }
}

CHECK_TEST(break_even)
{
    test_closed_form();
    test_plan();
    test_terms();
    return check_end();
}
