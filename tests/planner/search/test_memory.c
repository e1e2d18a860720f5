/* tests/planner/search/test_memory.c - the linear live bytes against the lowered program's: equal on chains, never
 * above on any graph nor with sharded parameters, over random plans of random networks and of networks in models/. */
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
    for (int v = 0; v < model->n_layers; v++)
        if (model->layers[v].n_inputs > 1 || model->layers[v].n_consumers > 1) return false;
    return true;
}

static void draw_plan(const struct ghp_instance *in, struct random_source *s, int *choice)
{
    for (int v = 0; v < in->n_layers; v++)
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
    for (int v = 0; v < in->n_layers; v++)
        chain = chain && splits[v].sharding == GHP_SHARDING_NONE;
    if (CHECK_STATUS(ghp_lower(in->lowering, splits, 0, &program), GHP_OK)) {
        ghp_program_live(&program, live);
        ghp_accumulated_cost_set(in, choice, load);
        double most = ghp_constraint_fullest(in, load, &row), receive = load->receive[row.receiver];
        CHECK(most <= (double)program.live_bytes + 0.5);
        for (int p = 0; p < in->n_points; p++) {
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
                        struct ghp_problem problem, struct random_source *s)
{
    bool bf16 = random_below(s, 3) == 0;
    struct ghp_lowering lowering = {.model = model,
                                    .problem = problem,
                                    .element_bytes = bf16                      ? 2
                                                     : random_below(s, 2) == 0 ? 4
                                                                               : 8,
                                    .bf16_weights = bf16,
                                    .scratch = {.bytes = some_scratch},
                                    .method.sync = ghp_sync_at(random_below(s, 2)),
                                    .method.reduces_bf16 = random_below(s, 3) == 0,
                                    .method.optimizer =
                                        ghp_optimizer_at(random_below(s, GHP_OPTIMIZERS)),
                                    .shardings = random_case_shardings(s),
                                    .prefetch = random_below(s, 2) == 0};
    struct ghp_instance in;
    struct ghp_accumulated_cost load;
    int *choice = calloc((size_t)model->n_layers, sizeof *choice);

    if (!CHECK_STATUS(ghp_instance_init(&lowering, profile, problem.workers, &in), GHP_OK)) return;
    CHECK_STATUS(ghp_memory_init(&in), GHP_OK);
    CHECK_STATUS(ghp_accumulated_cost_init(&in, &load), GHP_OK);
    for (int k = 0; k < PLANS; k++) {
        if (k > 0) draw_plan(&in, s, choice); /* the first is pure data */
        compare_plan(&in, choice, is_chain(model), &load);
    }
    free(choice);
    ghp_accumulated_cost_release(&load);
    ghp_instance_release(&in);
}

static void check_file(const char *path)
{
    struct random_source s = {.state = 7};
    struct ghp_model model;
    struct ghp_profile profile;

    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) return;
    if (!CHECK_STATUS(analytic_profile(1e12, 1e9, 1e-5, &profile), GHP_OK)) return;
    check_model(&model, &profile, (struct ghp_problem){4, 32}, &s);
    ghp_profile_release(&profile);
    ghp_model_release(&model);
}

/* Tensor parallelism: products by outputs and then by inputs; what is between the pairs by `between`. */
static void tensor_splits(const struct ghp_model *model, struct ghp_split between,
                          struct ghp_split *splits)
{
    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *l = &model->layers[v];
        bool divided =
            l->n_inputs > 0 && ghp_split_layouts(splits[l->inputs[0]]).y.kind == GHP_LAYOUT_CHANNEL;

        splits[v] = between;
        if (l->n_inputs == 0)
            splits[v].kind = GHP_SPLIT_FULL;
        else if (l->op == GHP_OP_EMBEDDING)
            splits[v].kind = GHP_SPLIT_ROWS;
        else if (l->op == GHP_OP_LINEAR)
            splits[v].kind = divided ? GHP_SPLIT_IN : GHP_SPLIT_OUT;
        else if (divided && l->op != GHP_OP_SOFTMAX_CE)
            splits[v].kind = GHP_SPLIT_CHANNEL;
    }
}

/* The program's arena, and the outputs of the layers that have the split. */
static int64_t peak_of(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                       struct ghp_split of, int64_t *outputs)
{
    struct ghp_program program;
    int64_t peak;

    *outputs = 0;
    if (!CHECK_STATUS(ghp_lower(lowering, splits, 0, &program), GHP_OK)) return 0;
    for (int i = 0; i < program.n_buffers; i++)
        if (program.buffers[i].buffer_kind == GHP_BUFFER_OUTPUT && program.buffers[i].layer > 0 &&
            ghp_split_same(splits[program.buffers[i].layer], of))
            *outputs += program.buffers[i].bytes;
    peak = program.peak_bytes;
    ghp_program_release(&program);
    return peak;
}

/* Between the pairs of products each worker has its positions, not a copy: its outputs there take an m-th, and its
 * arena is smaller. */
static void check_positions(void)
{
    enum { WORKERS = 4 };
    const struct ghp_split copy = {.kind = GHP_SPLIT_FULL, .tp_size = WORKERS},
                           position = {.kind = GHP_SPLIT_POSITION, .tp_size = WORKERS};
    struct ghp_split splits[64];
    struct ghp_model model;
    int64_t copied, divided, peak, less;

    if (!CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/gpt-nano.json", &model), GHP_OK))
        return;
    struct ghp_lowering lowering = {
        .model = &model, .problem = {WORKERS, 4 * WORKERS}, .element_bytes = 4};
    CHECK(model.n_layers <= 64);
    tensor_splits(&model, copy, splits);
    peak = peak_of(&lowering, splits, copy, &copied);
    tensor_splits(&model, position, splits);
    less = peak_of(&lowering, splits, position, &divided);
    CHECK(divided > 0);
    CHECK_EQ(divided * WORKERS, copied);
    CHECK(less < peak);
    ghp_model_release(&model);
}

/* Attention keeps no matrix of positions by positions: on one worker a network of long sequences fits into less than
 * one such matrix, each tensor and all together, by the program and by the sums of its pieces. */
static void check_long_sequences(void)
{
    static const char text[] =
        "{\"format\": \"ghp.model/1\", \"name\": \"long\","
        "\"input\": {\"vocabulary\": 256, \"positions\": 8192}, \"layers\": ["
        "{\"name\": \"wte\", \"op\": \"embedding\", \"channels\": 32},"
        "{\"name\": \"wpe\", \"op\": \"position_embedding\"},"
        "{\"name\": \"norm\", \"op\": \"layer_norm\"},"
        "{\"name\": \"q\", \"op\": \"linear\", \"features\": 32},"
        "{\"name\": \"k\", \"op\": \"linear\", \"features\": 32, \"inputs\": [\"norm\"]},"
        "{\"name\": \"v\", \"op\": \"linear\", \"features\": 32, \"inputs\": [\"norm\"]},"
        "{\"name\": \"heads\", \"op\": \"attention\", \"heads\": 4, \"inputs\": [\"q\", \"k\", "
        "\"v\"]},"
        "{\"name\": \"sum\", \"op\": \"add\", \"inputs\": [\"wpe\", \"heads\"]},"
        "{\"name\": \"head\", \"op\": \"linear\", \"features\": 256, \"bias\": false},"
        "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}";
    const int64_t matrix = (int64_t)8192 * 8192 * 4;
    struct random_source s = {.state = 11};
    struct ghp_split splits[16];
    struct ghp_program program;
    struct ghp_profile profile;
    struct ghp_model model;

    if (!CHECK_STATUS(ghp_model_parse(text, "long", &model), GHP_OK) ||
        !CHECK_STATUS(analytic_profile(1e12, 1e9, 1e-5, &profile), GHP_OK))
        return;
    struct ghp_lowering lowering = {.model = &model, .problem = {1, 1}, .element_bytes = 4};
    CHECK(model.n_layers <= 16);
    for (int v = 0; v < model.n_layers; v++)
        splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    if (CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) {
        for (int i = 0; i < program.n_buffers; i++)
            CHECK(program.buffers[i].bytes * 8 < matrix);
        CHECK(program.peak_bytes < matrix);
        ghp_program_release(&program);
    }
    check_model(&model, &profile, lowering.problem, &s);
    ghp_profile_release(&profile);
    ghp_model_release(&model);
}

CHECK_TEST(memory)
{
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(CASES); seed++) {
        struct random_source s = {.state = seed};
        struct random_case c;

        if (!CHECK_STATUS(random_case_make(3000 + seed, 1e5, &c), GHP_OK)) break;
        check_model(&c.model, &c.profile, c.problem, &s);
        random_case_release(&c);
    }
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(TIED_CASES); seed++) {
        struct random_source s = {.state = seed};
        struct random_case c;

        if (!CHECK_STATUS(random_case_tied(seed, 1e5, &c), GHP_OK)) break;
        check_model(&c.model, &c.profile, c.problem, &s);
        random_case_release(&c);
    }
    check_long_sequences();
    check_file(GHP_SOURCE_DIR "/models/lenet5.json");
    check_file(GHP_SOURCE_DIR "/models/vgg-a-32.json");
    check_file(GHP_SOURCE_DIR "/models/alexnet.json");
    check_file(GHP_SOURCE_DIR "/models/small-resnet.json");
    check_file(GHP_SOURCE_DIR "/tests/executor/sequence.json");
    check_file(GHP_SOURCE_DIR "/tests/executor/tokens.json");
    check_file(GHP_SOURCE_DIR "/tests/executor/padded.json");
    check_positions();
    return check_end();
}
