/* tests/executor/engine/test_program_formats.c - which tensors of a program lie in blocks of channels: by the rule of
 * sizes, by what a plan says, where slices are exchanged, and between stages. */
#include "tests/check.h"
#include "tests/executor/cases.h"

#include "core/program/lower/lower.h"
#include "core/program/memory_format.h"
#include "executor/engine/kernel_spec.h"
#include "executor/engine/kernels.h"

static const struct ghp_backend_ops *const ops = &ghp_backend_onednn;
static struct ghp_backend *exact, *fast;

static const char *const network =
    "{\"format\": \"ghp.model/1\", \"name\": \"blocks\", \"input\": {\"channels\": 3, \"height\": "
    "16, \"width\": 16},"
    "\"layers\": ["
    "{\"name\": \"first\", \"op\": \"conv2d\", \"channels\": 32, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"relu1\", \"op\": \"relu\"},"
    "{\"name\": \"second\", \"op\": \"conv2d\", \"channels\": 32, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"relu2\", \"op\": \"relu\"},"
    "{\"name\": \"pool\", \"op\": \"max_pool\", \"kernel\": 2, \"stride\": 2},"
    "{\"name\": \"norm\", \"op\": \"conv2d\", \"channels\": 40, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"relu3\", \"op\": \"relu\"},"
    "{\"name\": \"flat\", \"op\": \"flatten\"},"
    "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 10},"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}";

struct lowered {
    struct ghp_model model;
    struct ghp_program program;
    struct ghp_kernels kernels;
};

/* One layer by as many slices of its output's channels as there are workers, the others by data; by what a plan says,
 * or (NULL) by the rule where none says anything. */
static enum ghp_status lower(struct lowered *l, struct ghp_backend *backend,
                             struct ghp_problem problem, const char *split_layer, const bool *named)
{
    struct ghp_split splits[32];
    *l = (struct lowered){0};
    ghp_kernels_init(&l->kernels, ops, backend, NULL);
    if (!CHECK_STATUS(ghp_model_parse(network, "blocks", &l->model), GHP_OK)) exit(1);
    for (int i = 0; i < l->model.n_layers; i++) {
        bool split = strcmp(l->model.layers[i].name, split_layer) == 0;
        splits[i] = split ? (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = problem.workers}
                          : (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    }
    const struct ghp_lowering lowering = {.model = &l->model,
                                          .problem = problem,
                                          .element_bytes = 4,
                                          .nchw16c = named,
                                          .formats = ghp_kernels_formats(&l->kernels),
                                          .scratch = ghp_kernels_scratch(&l->kernels)};
    return ghp_lower(&lowering, splits, 0, &l->program);
}

static void release(struct lowered *l)
{
    ghp_program_release(&l->program);
    ghp_kernels_release(&l->kernels);
    ghp_model_release(&l->model);
}

static struct ghp_kernel_spec spec_at(const struct lowered *l, const char *layer,
                                      enum ghp_pass pass)
{
    for (int i = 0; i < l->program.n_instrs; i++) {
        const struct ghp_instr *instr = &l->program.instrs[i];
        if (instr->kind == GHP_INSTR_COMPUTE && instr->pass == pass &&
            strcmp(l->model.layers[instr->layer].name, layer) == 0)
            return ghp_kernels_spec(&l->kernels, &l->program, instr);
    }
    CHECK(false);
    return (struct ghp_kernel_spec){0};
}

/* Blocks from the first convolution's output to the last one's input: 3 and 40 channels do not fill whole blocks. */
static void check_one_worker(void)
{
    struct lowered l;
    if (!CHECK_STATUS(lower(&l, fast, (struct ghp_problem){1, 8}, "", NULL), GHP_OK)) exit(1);
    for (int p = 0; p < 3; p++) {
        static const enum ghp_pass passes[] = {GHP_PASS_FORWARD, GHP_PASS_BACKWARD_WEIGHT,
                                               GHP_PASS_BACKWARD_DATA};
        CHECK(spec_at(&l, "second", passes[p]).x);
        CHECK(spec_at(&l, "second", passes[p]).y);
        CHECK(spec_at(&l, "second", passes[p]).w);
        CHECK(!spec_at(&l, "norm", passes[p]).w);
        CHECK(!spec_at(&l, "norm", passes[p]).y);
        if (passes[p] == GHP_PASS_BACKWARD_DATA) continue;
        CHECK(!spec_at(&l, "first", passes[p]).x);
        CHECK(spec_at(&l, "first", passes[p]).y);
    }
    CHECK(spec_at(&l, "pool", GHP_PASS_BACKWARD_DATA).x);
    CHECK(!spec_at(&l, "flat", GHP_PASS_FORWARD).x);
    release(&l);
    if (!CHECK_STATUS(lower(&l, exact, (struct ghp_problem){1, 8}, "", NULL), GHP_OK)) exit(1);
    for (int i = 0; i < l.program.n_buffers; i++)
        CHECK(!l.program.buffers[i].nchw16c);
    release(&l);
}

/* The rule by sizes is what the library's kernels for AVX-512 do on plain tensors: those that reorder want blocks,
 * others not. Its kernels for shorter vectors take plain tensors of small images. */
static void check_wants(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx512f")) return;
#endif
    static const struct {
        int64_t n, c, k, p;
        int64_t r, stride;
    } convs[] = {{8, 64, 64, 16, 3, 1}, {1, 64, 64, 8, 3, 1},  {8, 32, 48, 14, 3, 2},
                 {8, 64, 32, 4, 3, 2},  {16, 64, 64, 4, 1, 1}, {8, 16, 64, 16, 3, 1},
                 {8, 64, 64, 16, 1, 1}, {8, 64, 64, 2, 3, 1}};
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) {
        int64_t p = convs[i].p, h = p * convs[i].stride;
        struct ghp_local local = {.op = GHP_OP_CONV2D,
                                  .n = convs[i].n,
                                  .c = convs[i].c,
                                  .h = h,
                                  .w = h,
                                  .k = convs[i].k,
                                  .p = p,
                                  .q = p};
        local.window = (struct ghp_window){.r = convs[i].r,
                                           .s = convs[i].r,
                                           .stride_h = convs[i].stride,
                                           .stride_w = convs[i].stride,
                                           .dilation_h = 1,
                                           .dilation_w = 1,
                                           .pad_top = convs[i].r / 2,
                                           .pad_left = convs[i].r / 2,
                                           .pad_bottom = convs[i].r / 2,
                                           .pad_right = convs[i].r / 2,
                                           .groups = 1};
        for (int pass = GHP_PASS_FORWARD; pass <= GHP_PASS_BACKWARD_WEIGHT; pass++) {
            const struct ghp_kernel_spec weights = {.w = ops->blocks_weights(fast, &local)};
            struct ghp_kernel *kernel = NULL;
            if (!CHECK_STATUS(
                    ops->prepare_nchw16c(fast, &local, (enum ghp_pass)pass, NULL, weights, &kernel),
                    GHP_OK))
                continue;
            CHECK_EQ(strstr(ops->algorithm(kernel), "+reorder") != NULL,
                     ghp_op_of(local.op)->wants_blocks(&local, (enum ghp_pass)pass));
            ops->release(kernel);
        }
    }
}

static void name(bool *named, const struct ghp_model *model, const char *layer)
{
    named[ghp_model_find(model, layer)] = true;
}

/* A plan's word in place of the rule, where it can be kept. */
static void check_said(void)
{
    const struct ghp_problem problem = {1, 8};
    struct lowered l;
    bool named[32] = {false};
    if (!CHECK_STATUS(lower(&l, fast, problem, "", named), GHP_OK)) exit(1);
    for (int i = 0; i < l.program.n_buffers; i++)
        CHECK(!l.program.buffers[i].nchw16c); /* whatever the convolutions want */
    name(named, &l.model, "first");
    name(named, &l.model, "relu1");
    release(&l);
    CHECK_STATUS(lower(&l, fast, problem, "", named), GHP_ERR_INPUT); /* the bias lies between */
    CHECK_MESSAGE("layer 'first");
    name(named, &l.model, "first.bias");
    name(named, &l.model, "norm"); /* 40 channels */
    name(named, &l.model, "relu3");
    release(&l);
    if (!CHECK_STATUS(lower(&l, fast, problem, "", named), GHP_OK)) exit(1);
    for (int p = 0; p < 2; p++) {
        enum ghp_pass pass = p == 0 ? GHP_PASS_FORWARD : GHP_PASS_BACKWARD_WEIGHT;
        CHECK(!spec_at(&l, "first", pass).x && spec_at(&l, "first", pass).y);
        CHECK(spec_at(&l, "second", pass).x && !spec_at(&l, "second", pass).y);
        CHECK(!spec_at(&l, "norm", pass).x && !spec_at(&l, "norm", pass).y);
    }
    CHECK(spec_at(&l, "second", GHP_PASS_BACKWARD_DATA).x);
    CHECK(spec_at(&l, "relu1", GHP_PASS_BACKWARD_DATA).y);
    CHECK(!spec_at(&l, "relu2", GHP_PASS_FORWARD).x);
    release(&l);
    CHECK_STATUS(lower(&l, exact, problem, "", named), GHP_ERR_INPUT);
    release(&l);
}

/* The entry's algorithm in those formats, and its own where it says nothing of them. */
static void check_algorithms(void)
{
    const struct ghp_op_entry entry = {
        .algorithm = (char[]){"own"},
        .n_memory_formats = 2,
        .memory_formats = {{false, false, 1, "plain"}, {true, false, 2, "mixed"}}};
    CHECK_TEXT(ghp_kernel_spec_algorithm(&entry, (struct ghp_kernel_spec){.w = true}), "plain");
    CHECK_TEXT(ghp_kernel_spec_algorithm(&entry, (struct ghp_kernel_spec){.x = true}), "mixed");
    CHECK_TEXT(ghp_kernel_spec_algorithm(&entry, (struct ghp_kernel_spec){.x = true, .y = true}),
               "own");
    CHECK(ghp_kernel_spec_algorithm(NULL, (struct ghp_kernel_spec){0}) == NULL);
}

/* All that can be. */
static void name_all(const struct ghp_staging *staging, bool *named)
{
    struct ghp_model model;
    if (!CHECK_STATUS(ghp_model_parse(network, "blocks", &model), GHP_OK)) exit(1);
    for (int v = 0; v < model.n_layers; v++)
        named[v] = true;
    case_formats(&model, staging, named);
    ghp_model_release(&model);
}

/* What is exchanged lies blocked where its slices of channels are whole blocks, whatever lies on the other side.
 * Returns how many sides do. */
static int check_exchange(const char *split_layer, int workers)
{
    struct lowered l;
    bool named[32];
    int exchanges = 0, nchw16c = 0;
    name_all(NULL, named);
    if (!CHECK_STATUS(lower(&l, fast, (struct ghp_problem){workers, 16}, split_layer, named),
                      GHP_OK))
        exit(1);
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *instr = &l.program.instrs[i];
        if (instr->kind != GHP_INSTR_RESHARD) continue;
        int64_t x = ghp_layout_channels(instr->step.from, instr->local.c),
                y = ghp_layout_channels(instr->step.to, instr->local.c);
        const struct ghp_nchw16c sides = ghp_instr_formats(&l.program, instr);
        CHECK_EQ(sides.x, ghp_whole_blocks(x));
        CHECK_EQ(sides.y, ghp_whole_blocks(y));
        CHECK_EQ(l.program.buffers[instr->at.x[0]].nchw16c, sides.x);
        CHECK_EQ(l.program.buffers[instr->at.y].nchw16c, sides.y);
        exchanges++;
        nchw16c += sides.x + sides.y;
    }
    CHECK_EQ(exchanges, 4); /* input, output, and their gradients */
    release(&l);
    return nchw16c;
}

/* What passes between stages lies plain, with all that is tied to it; what stays may lie blocked. */
static void check_stages(void)
{
    struct lowered l = {0};
    struct ghp_split splits[32];
    bool named[32];
    int sent = 0;
    ghp_kernels_init(&l.kernels, ops, fast, NULL);
    if (!CHECK_STATUS(ghp_model_parse(network, "blocks", &l.model), GHP_OK)) exit(1);
    for (int v = 0; v < 32; v++)
        splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    const struct ghp_staging staging = {
        .n = 2,
        .micro_batches = 1,
        .stage = {{.first_layer = 0, .workers = 1},
                  {.first_layer = ghp_model_find(&l.model, "second"), .workers = 1}}};
    name_all(&staging, named);
    const struct ghp_lowering lowering = {.model = &l.model,
                                          .problem = {2, 8},
                                          .element_bytes = 4,
                                          .staging = &staging,
                                          .nchw16c = named,
                                          .formats = ghp_kernels_formats(&l.kernels),
                                          .scratch = ghp_kernels_scratch(&l.kernels)};
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 1, &l.program), GHP_OK)) exit(1);
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *instr = &l.program.instrs[i];
        if (instr->kind == GHP_INSTR_SEND) CHECK(!l.program.buffers[instr->at.x[0]].nchw16c);
        if (instr->kind == GHP_INSTR_RECEIVE) CHECK(!l.program.buffers[instr->at.y].nchw16c);
        sent += instr->kind == GHP_INSTR_SEND || instr->kind == GHP_INSTR_RECEIVE;
    }
    CHECK_EQ(sent, 2);
    CHECK(!spec_at(&l, "second", GHP_PASS_FORWARD).x);
    CHECK(spec_at(&l, "second", GHP_PASS_FORWARD).y);
    release(&l);
}

CHECK_TEST(program_formats)
{
    const struct ghp_backend_config configs[] = {{.element_bytes = 4, .threads = 1, .exact = true},
                                                 {.element_bytes = 4, .threads = 2}};
    if (!CHECK_STATUS(ops->open(&configs[0], &exact), GHP_OK) ||
        !CHECK_STATUS(ops->open(&configs[1], &fast), GHP_OK))
        return 1;
    check_one_worker();
    check_wants();
    check_said();
    check_algorithms();
    CHECK_EQ(check_exchange("second", 2), 8);
    CHECK_EQ(check_exchange("second", 4), 6); /* slices of 8 channels of its output */
    CHECK_EQ(check_exchange("norm", 2), 4);   /* 20 of 40 */
    check_stages();
    ops->close(fast);
    ops->close(exact);
    return check_end();
}
