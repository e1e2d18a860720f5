/* tests/planner/search/test_memory.c - the linear live bytes against the lowered program's: equal on chains, never
 * above on any graph, over random plans of random networks and of networks in models/. */
#include "planner/search/memory.h"
#include "planner/search/constraints.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

enum { CASES = 200, TIED_CASES = 40, PLANS = 12 };

/* Scratch that differs from pass to pass, as a backend's does. */
static enum ghp_status some_scratch(void *context, const struct ghp_local *local,
                                    enum ghp_pass pass, int64_t *bytes)
{
    (void)context;
    *bytes = ((int64_t)local->op * 7 + (int64_t)pass * 13 + local->n * 3 + local->c) % 5 * 100;
    return GHP_OK;
}

static bool is_chain(const struct ghp_model *model)
{
    for (int v = 0; v < model->n_layers; ++v)
        if (model->layers[v].n_inputs > 1 || model->layers[v].n_consumers > 1) return false;
    return true;
}

static void draw_plan(const struct ghp_instance *in, struct random_source *s, int *choice)
{
    for (int v = 0; v < in->n_layers; ++v)
        ghp_instance_choose(in, v, random_below(s, in->n_choices[v]), choice);
}

static void compare_plan(const struct ghp_instance *in, const int *choice, bool chain,
                         struct ghp_accumulated_cost *load)
{
    struct ghp_split *splits = calloc((size_t)in->n_layers, sizeof *splits);
    int64_t *live = calloc((size_t)in->n_points, sizeof *live);
    struct ghp_constraint row;
    struct ghp_program program;

    ghp_instance_splits(in, choice, splits);
    if (CHECK_STATUS(ghp_lower(in->how, splits, 0, &program), GHP_OK)) {
        ghp_program_live(&program, live);
        ghp_accumulated_cost_set(in, choice, load);
        double most = ghp_constraint_fullest(in, load, &row), receive = load->receive[row.receiver];
        CHECK(most <= (double)program.live_bytes + 0.5);
        for (int p = 0; p < in->n_points; ++p) {
            if (chain)
                CHECK_NEAR(load->live[p] + receive, live[p], 0.5);
            else
                CHECK(load->live[p] + receive <= (double)live[p] + 0.5);
        }
        ghp_program_release(&program);
    }
    free(splits);
    free(live);
}

static void check_model(const struct ghp_model *model, const struct ghp_profile *profile,
                        struct ghp_problem problem, struct random_source *s, bool input_gradient)
{
    struct ghp_lowering how = {.model = model,
                               .problem = problem,
                               .element_bytes = random_below(s, 2) == 0 ? 4 : 8,
                               .scratch = {.bytes = some_scratch},
                               .input_gradient = input_gradient,
                               .sync = ghp_sync_at(random_below(s, 2)),
                               .optimizer = ghp_optimizer_at(random_below(s, GHP_OPTIMIZERS)),
                               .prefetch = random_below(s, 2) == 0};
    struct ghp_instance in;
    struct ghp_accumulated_cost load;
    int *choice = calloc((size_t)model->n_layers, sizeof *choice);

    if (!CHECK_STATUS(ghp_instance_init(&how, profile, problem.workers, &in), GHP_OK)) return;
    CHECK_STATUS(ghp_memory_init(&in), GHP_OK);
    CHECK_STATUS(ghp_accumulated_cost_init(&in, &load), GHP_OK);
    for (int k = 0; k < PLANS; ++k) {
        if (k > 0) draw_plan(&in, s, choice); /* the first is pure data */
        compare_plan(&in, choice, is_chain(model), &load);
    }
    free(choice);
    ghp_accumulated_cost_release(&load);
    ghp_instance_release(&in);
}

static void check_file(const char *path, bool input_gradient)
{
    struct random_source s = {.state = 7};
    struct ghp_model model;
    struct ghp_profile profile;

    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) return;
    if (!CHECK_STATUS(analytic_profile(1e12, 1e9, 1e-5, &profile), GHP_OK)) return;
    check_model(&model, &profile, (struct ghp_problem){4, 32}, &s, input_gradient);
    ghp_profile_release(&profile);
    ghp_model_release(&model);
}

CHECK_TEST(memory)
{
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(CASES); ++seed) {
        struct random_source s = {.state = seed};
        struct random_case c;

        if (!CHECK_STATUS(random_case_make(3000 + seed, 1e5, &c), GHP_OK)) break;
        check_model(&c.model, &c.profile, c.problem, &s, seed % 5 == 0);
        random_case_release(&c);
    }
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(TIED_CASES); ++seed) {
        struct random_source s = {.state = seed};
        struct random_case c;

        if (!CHECK_STATUS(random_case_tied(seed, 1e5, &c), GHP_OK)) break;
        check_model(&c.model, &c.profile, c.problem, &s, false);
        random_case_release(&c);
    }
    check_file(GHP_SOURCE_DIR "/models/lenet5.json", false);
    check_file(GHP_SOURCE_DIR "/models/vgg-a-32.json", true);
    check_file(GHP_SOURCE_DIR "/models/alexnet.json", false);
    check_file(GHP_SOURCE_DIR "/models/small-resnet.json", true);
    return check_end();
}
