/* tests/executor/engine/test_fuse.c - what one kernel does in place of several: in programs by their operands, in
 * models by their edges. That such kernels compute the same is test_memory_formats.c's and test_fast.c's. */
#include "executor/engine/fuse.h"
#include "core/program/lower.h"
#include "tests/check.h"
#include "tests/executor/cases.h"

static const char *const blocks = GHP_SOURCE_DIR "/tests/executor/blocks.json";
static const char *const resnet = GHP_SOURCE_DIR "/models/small-resnet.json";

static int layer_of(const struct ghp_model *model, const char *name)
{
    for (int i = 0; i < model->n_layers; i++)
        if (strcmp(model->layers[i].name, name) == 0) return i;
    CHECK(false);
    return -1;
}

/* Of the layer's forward pass: "stats add bias relu update", what is there of it. */
static const char *taken_by(const struct ghp_program *program, const struct ghp_model *model,
                            int layer)
{
    static char text[64];

    text[0] = '\0';
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        struct ghp_epilogue found = ghp_fuse_find(program, model, i);

        if (instr->layer != layer || instr->kind != GHP_INSTR_COMPUTE || instr->backward) {
            CHECK(instr->local.op == GHP_OP_CONV2D || instr->local.op == GHP_OP_LINEAR ||
                  found.bias < 0);
            continue;
        }
        if (instr->pass != GHP_PASS_FORWARD) continue;
        snprintf(text, sizeof text, "%s%s%s%s%s", found.stats >= 0 ? "stats " : "",
                 found.add >= 0 ? "add " : "", found.bias >= 0 ? "bias " : "",
                 found.relu >= 0 ? "relu " : "", found.update >= 0 ? "update" : "");
        if (found.stats >= 0) CHECK_EQ(program->instrs[found.stats].pass, GHP_PASS_STATS);
        if (found.add >= 0) CHECK_EQ(program->instrs[found.add].local.op, GHP_OP_ADD);
        if (found.update >= 0)
            CHECK_EQ(program->instrs[found.update].at.w[0], program->instrs[found.bias].at.w[0]);
    }
    return text;
}

/* By a plan in which one layer is divided otherwise. */
static void check_program(const char *divided, struct ghp_split split, const char *layer,
                          const char *expected)
{
    struct ghp_model model;
    struct ghp_program program = {0};
    struct ghp_problem problem = {2, 8};

    case_model(blocks, &model);
    struct ghp_split *splits = case_splits(&model, problem, CASE_DATA, 0, 1);
    const struct ghp_lowering how = {.model = &model, .problem = problem, .element_bytes = 4};

    splits[layer_of(&model, divided)] = split;
    CHECK_STATUS(ghp_lower(&how, splits, 0, &program), GHP_OK);
    CHECK_TEXT(taken_by(&program, &model, layer_of(&model, layer)), expected);
    free(splits);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

static const struct ghp_fuse_scope alone = {.local_stats = true}, shared = {.local_stats = false},
                                   with_linear = {.local_stats = true, .linear = true};

/* Which passes of a layer of the residual network are always another's work. */
static void check_always(const struct ghp_model *model, int layer, struct ghp_fuse_scope scope)
{
    enum ghp_op op = model->layers[layer].op;
    bool relu = op == GHP_OP_RELU, norm = op == GHP_OP_BATCH_NORM;
    enum ghp_op before = relu ? model->layers[model->layers[layer].inputs[0]].op : GHP_OP_INPUT;

    CHECK(!ghp_fuse_always(model, layer, GHP_PASS_BACKWARD_WEIGHT, scope));
    CHECK_EQ(ghp_fuse_always(model, layer, GHP_PASS_STATS, scope), norm && scope.local_stats);
    CHECK_EQ(ghp_fuse_always(model, layer, GHP_PASS_BACKWARD_STATS, scope),
             norm && scope.local_stats);
    CHECK_EQ(ghp_fuse_always(model, layer, GHP_PASS_FORWARD, scope),
             before == GHP_OP_BATCH_NORM || before == GHP_OP_ADD ||
                 (op == GHP_OP_ADD && scope.local_stats));
    /* b.relu's gradient is nobody's to complete, and b.relu1 is of its size */
    CHECK_EQ(ghp_fuse_always(model, layer, GHP_PASS_BACKWARD_DATA, scope),
             relu && before != GHP_OP_LINEAR && model->layers[layer].out.c == 16);
}

static void check_model(void)
{
    struct ghp_model model;
    struct ghp_epilogue found;

    case_model(blocks, &model);
    found = ghp_fuse_layers(&model, layer_of(&model, "second"), shared);
    CHECK_EQ(found.bias, layer_of(&model, "second.bias"));
    CHECK_EQ(found.relu, layer_of(&model, "relu2"));
    found = ghp_fuse_layers(&model, layer_of(&model, "small"), alone);
    CHECK_EQ(found.bias, layer_of(&model, "small.bias"));
    CHECK_EQ(found.relu, -1);
    CHECK_EQ(ghp_fuse_layers(&model, layer_of(&model, "fc"), alone).bias, -1);
    CHECK(ghp_fuse_always(&model, layer_of(&model, "second.bias"), GHP_PASS_FORWARD, alone));
    CHECK(ghp_fuse_always(&model, layer_of(&model, "relu2"), GHP_PASS_FORWARD, alone));
    CHECK(!ghp_fuse_always(&model, layer_of(&model, "fc.bias"), GHP_PASS_FORWARD, alone));
    CHECK_EQ(ghp_fuse_layers(&model, layer_of(&model, "fc"), with_linear).bias,
             layer_of(&model, "fc.bias"));
    CHECK(ghp_fuse_always(&model, layer_of(&model, "fc.bias"), GHP_PASS_FORWARD, with_linear));
    CHECK(!ghp_fuse_always(&model, layer_of(&model, "pool"), GHP_PASS_FORWARD, alone));
    ghp_model_release(&model);
    case_model(resnet, &model);
    for (int own = 0; own < 2; own++)
        for (int i = 0; i < model.n_layers; i++)
            check_always(&model, i, own == 1 ? alone : shared);
    found = ghp_fuse_layers(&model, layer_of(&model, "a.bn1"), shared);
    CHECK_EQ(found.relu, layer_of(&model, "a.relu1"));
    CHECK(found.stats < 0 && found.add < 0);
    CHECK_EQ(ghp_fuse_layers(&model, layer_of(&model, "a.add"), shared).relu,
             layer_of(&model, "a.relu"));
    CHECK_EQ(ghp_fuse_layers(&model, layer_of(&model, "a.bn2"), shared).relu, -1);
    found = ghp_fuse_layers(&model, layer_of(&model, "a.bn2"), alone);
    CHECK_EQ(found.stats, layer_of(&model, "a.bn2"));
    CHECK_EQ(found.add, layer_of(&model, "a.add"));
    CHECK_EQ(found.relu, layer_of(&model, "a.relu"));
    found = ghp_fuse_layers(&model, layer_of(&model, "b.short_bn"), alone);
    CHECK(found.stats >= 0 && found.add == layer_of(&model, "b.add"));
    CHECK_EQ(ghp_fuse_layers(&model, layer_of(&model, "b.bn2"), alone).add,
             -1); /* not the last of the two */
    ghp_model_release(&model);
}

/* Batch norms and additions forward; backward the batch norm that a ReLU alone reads, unless its gradient changes its
 * layout on the way. */
static void check_norms(struct ghp_split of_relu, bool fuses)
{
    struct ghp_model model;
    struct ghp_program program = {0};
    struct ghp_problem problem = {2, 8};
    int found = 0, sums = 0;

    case_model(resnet, &model);
    struct ghp_split *splits = case_splits(&model, problem, CASE_DATA, 0, 1);
    const struct ghp_lowering how = {.model = &model, .problem = problem, .element_bytes = 4};

    splits[layer_of(&model, "a.relu1")] = of_relu;
    CHECK_STATUS(ghp_lower(&how, splits, 0, &program), GHP_OK);
    CHECK_TEXT(taken_by(&program, &model, layer_of(&model, "a.bn1")), fuses ? "relu " : "");
    CHECK_TEXT(taken_by(&program, &model, layer_of(&model, "a.add")), "relu ");
    CHECK_TEXT(taken_by(&program, &model, layer_of(&model, "a.bn2")), "");
    for (int i = 0; i < program.n_instrs; i++) {
        const struct ghp_prologue p = ghp_fuse_find_back(&program, &model, i);
        const struct ghp_instr *data = &program.instrs[i],
                               *relu = &program.instrs[p.relu < 0 ? 0 : p.relu];
        int masked = ghp_fuse_find_sum(&program, i);

        if (masked >= 0) {
            CHECK_EQ(program.instrs[masked].local.op, GHP_OP_RELU);
            CHECK_EQ(program.instrs[masked].layer, model.edges[data->edge].from);
            sums++;
        }
        CHECK(!p.local_stats); /* two workers share them */
        if (p.relu < 0) continue;
        CHECK(p.relu < p.stats && p.stats < i);
        CHECK_EQ(relu->local.op, GHP_OP_RELU);
        CHECK(relu->pass == GHP_PASS_BACKWARD_DATA && data->pass == GHP_PASS_BACKWARD_DATA);
        CHECK_EQ(model.layers[relu->layer].inputs[0], data->layer);
        CHECK_EQ(program.instrs[p.stats].layer, data->layer);
        CHECK_EQ(program.instrs[p.stats].pass, GHP_PASS_BACKWARD_STATS);
        CHECK(program.instrs[p.stats].at.w[1] >= 0 && data->at.w[1] >= 0);
        found++;
    }
    CHECK_EQ(found, fuses ? 3 : 2); /* bn1, a.bn1 and b.bn1 */
    CHECK_EQ(sums, 2);              /* relu1 and a.relu */
    free(splits);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

/* Where a worker has its statistics for itself. */
static void check_own(void)
{
    struct ghp_model model;
    struct ghp_program program = {0};
    const struct ghp_problem problem = {1, 8};
    int own = 0, norms = 0;

    case_model(resnet, &model);
    struct ghp_split *splits = case_splits(&model, problem, CASE_DATA, 0, 1);
    const struct ghp_lowering how = {.model = &model, .problem = problem, .element_bytes = 4};

    CHECK_STATUS(ghp_lower(&how, splits, 0, &program), GHP_OK);
    CHECK_TEXT(taken_by(&program, &model, layer_of(&model, "a.bn1")), "stats relu ");
    CHECK_TEXT(taken_by(&program, &model, layer_of(&model, "a.bn2")), "stats add relu ");
    CHECK_TEXT(taken_by(&program, &model, layer_of(&model, "b.bn2")), "stats ");
    CHECK_TEXT(taken_by(&program, &model, layer_of(&model, "b.short_bn")), "stats add relu ");
    for (int i = 0; i < program.n_instrs; i++) {
        const struct ghp_prologue p = ghp_fuse_find_back(&program, &model, i);

        own += p.local_stats;
        if (p.local_stats) CHECK_EQ(program.instrs[p.stats].point, program.instrs[i].point);
    }
    for (int i = 0; i < model.n_layers; i++)
        norms += model.layers[i].op == GHP_OP_BATCH_NORM;
    CHECK_EQ(own, norms);
    free(splits);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

/* ReLUs right before max pools, unless a gradient changes its layout between the two. */
static void check_gates(struct ghp_split of_pool, int expected)
{
    struct ghp_model model;
    struct ghp_program program = {0};
    const struct ghp_problem problem = {2, 8};
    int found = 0;

    case_model(blocks, &model);
    struct ghp_split *splits = case_splits(&model, problem, CASE_DATA, 0, 1);
    const struct ghp_lowering how = {.model = &model, .problem = problem, .element_bytes = 4};

    splits[layer_of(&model, "pool")] = of_pool;
    CHECK_STATUS(ghp_lower(&how, splits, 0, &program), GHP_OK);
    for (int i = 0; i < program.n_instrs; i++) {
        const struct ghp_relu_mask mask = ghp_fuse_find_relu_mask(&program, &model, i);
        const struct ghp_instr *pool = &program.instrs[i];

        if (mask.relu < 0) continue;
        CHECK(mask.forward < i && mask.relu == i + 1);
        CHECK_EQ(program.instrs[mask.relu].layer, model.layers[pool->layer].inputs[0]);
        CHECK_EQ(program.instrs[mask.forward].layer, pool->layer);
        CHECK_EQ(program.instrs[mask.forward].at.saved, pool->at.saved);
        found++;
    }
    CHECK_EQ(found, expected);
    CHECK(ghp_fuse_always(&model, layer_of(&model, "relu3"), GHP_PASS_BACKWARD_DATA, shared));
    CHECK(!ghp_fuse_always(&model, layer_of(&model, "relu2"), GHP_PASS_BACKWARD_DATA, shared));
    free(splits);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

CHECK_TEST(fuse)
{
    const struct ghp_split data = {GHP_SPLIT_DATA, 1}, out = {GHP_SPLIT_OUT, 2},
                           in = {GHP_SPLIT_IN, 2};

    check_program("second", data, "second", "bias relu update");
    check_program("small", data, "small", "bias update");
    check_program("second", in, "second", "");  /* a sum comes first */
    check_program("second", out, "second", ""); /* its output is exchanged before the bias */
    check_program("second", data, "fc", "bias update"); /* where the backend can */
    check_program("fc", in, "fc", "");
    check_model();
    check_norms(data, true);
    check_norms((struct ghp_split){GHP_SPLIT_CHANNEL, 2}, false);
    check_own();
    check_gates(data, 2);
    check_gates((struct ghp_split){GHP_SPLIT_CHANNEL, 2}, 1);
    return check_end();
}
