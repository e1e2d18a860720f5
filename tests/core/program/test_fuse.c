/* tests/core/program/test_fuse.c - what one kernel does in place of several: in programs by their operands, in models
 * by their edges; and that the list stays sound. That such kernels compute the same is test_memory_format.c's and
 * test_fast.c's. */
#include "core/program/fuse.h"
#include "core/program/lower/lower.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static const char *const blocks = GHP_SOURCE_DIR "/tests/executor/blocks.json";
static const char *const resnet = GHP_SOURCE_DIR "/models/small-resnet.json";

static int layer_of(const struct ghp_model *model, const char *name)
{
    for (int i = 0; i < model->n_layers; i++)
        if (strcmp(model->layers[i].name, name) == 0) return i;
    CHECK(false);
    return -1;
}

/* The whole network by data, but for one layer. */
struct lowered {
    struct ghp_model model;
    struct ghp_program program;
};

static void lower(const char *path, struct ghp_problem problem, const char *divided,
                  struct ghp_split split, struct lowered *l)
{
    struct ghp_lowering lowering = {.model = &l->model, .problem = problem, .element_bytes = 4};
    struct ghp_split *splits;

    CHECK_STATUS(ghp_model_load(path, &l->model), GHP_OK);
    splits = ghp_alloc((size_t)l->model.n_layers, sizeof *splits);
    for (int i = 0; i < l->model.n_layers; i++)
        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    splits[layer_of(&l->model, divided)] = split;
    CHECK_STATUS(ghp_lower(&lowering, splits, 0, &l->program), GHP_OK);
    CHECK_STATUS(ghp_program_check(&l->program), GHP_OK);
    free(splits);
}

static void release(struct lowered *l)
{
    ghp_program_release(&l->program);
    ghp_model_release(&l->model);
}

static void check_lives_at(const struct ghp_program *program, int buffer, int point)
{
    if (buffer < 0) return;
    while (program->buffers[buffer].storage != buffer)
        buffer = program->buffers[buffer].storage;
    CHECK(program->buffers[buffer].persistent || (program->buffers[buffer].first_point <= point &&
                                                  point <= program->buffers[buffer].last_point));
}

/* What a forward kernel writes in place of another instruction, or adds, lives where that kernel runs. */
static void check_lifetimes(const struct ghp_program *program)
{
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *done = &program->instrs[i];
        int point;

        if (done->fusion.by < 0 || done->backward) continue;
        point = program->instrs[done->fusion.by].point;
        check_lives_at(program, done->at.y, point);
        for (int x = 0; done->local.op == GHP_OP_ADD && x < 2; x++)
            if (program->instrs[done->fusion.by].fusion.does.add == i)
                check_lives_at(program, done->at.x[x], point);
    }
}

/* Who does whose work is said at both ends. */
static void check_names(const struct ghp_program *program)
{
    check_lifetimes(program);
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_fusion *fusion = &program->instrs[i].fusion;
        const int done[] = {fusion->does.bias, fusion->does.relu, fusion->does.stats,
                            fusion->does.add, fusion->does.gradient};

        for (size_t k = 0; k < sizeof done / sizeof *done; k++)
            if (done[k] >= 0)
                CHECK(program->instrs[done[k]].fusion.by == i ||
                      program->instrs[done[k]].fusion.by == fusion->with);
        if (fusion->with >= 0) CHECK_EQ(program->instrs[fusion->with].fusion.with, i);
    }
}

/* What the layer's forward pass takes along: those of "stats add bias relu update" that are there. */
static const char *taken_by(const struct ghp_program *program, int layer)
{
    static char text[64];

    text[0] = '\0';
    check_names(program);
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i], *before = instr - 1;
        const struct ghp_epilogue *does = &instr->fusion.does;
        bool updates = i > 0 && does->bias >= 0 && before->kind == GHP_INSTR_UPDATE &&
                       before->layer != instr->layer;

        if (instr->layer != layer || instr->kind != GHP_INSTR_COMPUTE || instr->backward) {
            CHECK((ghp_op_of(instr->local.op)->fuses & GHP_FUSES_BIAS) != 0 || does->bias < 0);
            continue;
        }
        if (instr->pass != GHP_PASS_FORWARD) continue;
        snprintf(text, sizeof text, "%s%s%s%s%s", does->stats >= 0 ? "stats " : "",
                 does->add >= 0 ? "add " : "", does->bias >= 0 ? "bias " : "",
                 does->relu >= 0 ? "relu " : "", updates ? "update" : "");
        if (does->stats >= 0) CHECK_EQ(program->instrs[does->stats].pass, GHP_PASS_STATS);
        if (does->add >= 0) CHECK_EQ(program->instrs[does->add].local.op, GHP_OP_ADD);
        if (updates) CHECK_EQ(before->at.w[0], program->instrs[does->bias].at.w[0]);
    }
    return text;
}

/* By a plan in which one layer is divided otherwise. */
static void check_program(const char *divided, struct ghp_split split, const char *layer,
                          const char *expected)
{
    struct lowered l;

    lower(blocks, (struct ghp_problem){2, 8}, divided, split, &l);
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, layer)), expected);
    release(&l);
}

/* A loss's gradient lies over its output, and its forward pass may make it; not where it is made again in between. */
static void check_loss(void)
{
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1};
    struct lowered l;
    int forward = -1, found = 0;

    lower(blocks, (struct ghp_problem){2, 8}, "fc", data, &l);
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *instr = &l.program.instrs[i];

        if (instr->kind != GHP_INSTR_COMPUTE || instr->layer != l.model.n_layers - 1) continue;
        if (instr->pass == GHP_PASS_FORWARD) forward = i;
        if (instr->pass != GHP_PASS_BACKWARD_DATA) continue;
        CHECK_EQ(instr->fusion.by, forward);
        CHECK_EQ(l.program.instrs[forward].fusion.does.gradient, i);
        CHECK_EQ(l.program.instrs[forward].at.y, instr->at.dx[0]);
        found++;
    }
    CHECK_EQ(found, 1);
    release(&l);
}

static const bool but_linear[GHP_OP_COUNT] = {
    [GHP_OP_CONV2D] = true, [GHP_OP_BATCH_NORM] = true, [GHP_OP_ADD] = true};
static const struct ghp_fuse_scope alone = {.local_stats = true, .fuses = but_linear},
                                   shared = {.fuses = but_linear},
                                   with_linear = {.local_stats = true};

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

    CHECK_STATUS(ghp_model_load(blocks, &model), GHP_OK);
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
    CHECK(ghp_fuse_always(&model, model.n_layers - 1, GHP_PASS_BACKWARD_DATA, with_linear));
    CHECK_EQ(ghp_fuse_layers(&model, model.n_layers - 1, with_linear).gradient, model.n_layers - 1);
    CHECK_EQ(ghp_fuse_layers(&model, model.n_layers - 1, alone).gradient, -1);
    ghp_model_release(&model);
    CHECK_STATUS(ghp_model_load(resnet, &model), GHP_OK);
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
    struct lowered l;
    int found = 0, sums = 0;

    lower(resnet, (struct ghp_problem){2, 8}, "a.relu1", of_relu, &l);
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "a.bn1")), fuses ? "relu " : "");
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "a.add")), "relu ");
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "a.bn2")), "");
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *instr = &l.program.instrs[i], *relu, *stats;
        const struct ghp_epilogue *does = &instr->fusion.does;

        if (!instr->backward) continue;
        CHECK(does->stats < 0); /* two workers share them */
        if (does->relu < 0 || instr->pass == GHP_PASS_BACKWARD_STATS) continue;
        relu = &l.program.instrs[does->relu];
        CHECK(relu->local.op == GHP_OP_RELU && relu->pass == GHP_PASS_BACKWARD_DATA);
        if (instr->kind == GHP_INSTR_ACCUMULATE) {
            CHECK_EQ(does->relu, i + 1);
            CHECK_EQ(relu->layer, l.model.edges[instr->edge].from);
            sums++;
            continue;
        }
        CHECK(does->relu < instr->fusion.with && instr->fusion.with < i);
        stats = &l.program.instrs[instr->fusion.with];
        CHECK_EQ(instr->pass, GHP_PASS_BACKWARD_DATA);
        CHECK_EQ(l.model.layers[relu->layer].inputs[0], instr->layer);
        CHECK_EQ(stats->layer, instr->layer);
        CHECK_EQ(stats->pass, GHP_PASS_BACKWARD_STATS);
        CHECK_EQ(stats->fusion.does.relu, does->relu);
        CHECK(stats->at.w[1] >= 0 && instr->at.w[1] >= 0);
        found++;
    }
    CHECK_EQ(found, fuses ? 2 : 1); /* a.bn1 and b.bn1; bn1's ReLU is a sum's */
    CHECK_EQ(sums, 2);              /* relu1 and a.relu */
    release(&l);
}

/* If a worker has its statistics for itself, dx comes right after the sums. */
static void check_own(void)
{
    struct lowered l;
    int own = 0, norms = 0;

    lower(resnet, (struct ghp_problem){1, 8}, "a.relu1",
          (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1}, &l);
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "a.bn1")), "stats relu ");
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "a.bn2")), "stats add relu ");
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "b.bn2")), "stats ");
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "b.short_bn")), "stats add relu ");
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "b.add")), ""); /* the batch norm has it */
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *instr = &l.program.instrs[i];

        if (!instr->backward || instr->fusion.does.stats < 0) continue;
        CHECK_EQ(instr->fusion.does.stats, i - 1);
        CHECK_EQ(instr[-1].pass, GHP_PASS_BACKWARD_STATS);
        CHECK_EQ(instr[-1].point, instr->point);
        CHECK(instr[-1].layer == instr->layer && instr->pass == GHP_PASS_BACKWARD_DATA);
        own++;
    }
    for (int i = 0; i < l.model.n_layers; i++)
        norms += l.model.layers[i].op == GHP_OP_BATCH_NORM;
    CHECK_EQ(own, norms);
    release(&l);
}

/* Every batch norm has the sums of its input from the convolution before it, unless a tensor changes its layout between
 * the two. */
static void check_summed(int workers, struct ghp_split of_norm, int expected)
{
    struct lowered l;
    int found = 0, stats = 0;

    lower(resnet, (struct ghp_problem){workers, 8}, "a.bn1", of_norm, &l);
    check_names(&l.program);
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *instr = &l.program.instrs[i], *other;

        if (instr->fusion.does.sums < 0) continue;
        other = &l.program.instrs[instr->fusion.does.sums];
        if (instr->local.op == GHP_OP_CONV2D) {
            CHECK(instr->pass == GHP_PASS_FORWARD && other->pass == GHP_PASS_FORWARD);
            CHECK_EQ(other->layer, instr->layer + 1);
            CHECK_EQ(other->fusion.does.sums, i);
            check_lives_at(&l.program, other->at.saved, instr->point);
            found++;
        } else {
            CHECK_EQ(other->layer, l.model.layers[instr->layer].inputs[0]);
            CHECK(instr->local.op == GHP_OP_BATCH_NORM && other->local.op == GHP_OP_CONV2D);
            stats += instr->pass == GHP_PASS_STATS;
        }
    }
    CHECK_EQ(found, expected);
    CHECK_EQ(stats, expected);
    int norm = layer_of(&l.model, "a.bn2");
    CHECK_EQ(ghp_fuse_layers(&l.model, norm, shared).sums, norm - 1);
    CHECK_EQ(ghp_fuse_layers(&l.model, norm - 1, shared).sums, norm);
    CHECK_EQ(ghp_fuse_layers(&l.model, norm + 1, shared).sums, -1);
    CHECK(ghp_fuse_usual(&l.model, norm, GHP_PASS_STATS, shared).sums >= 0);
    CHECK_EQ(ghp_fuse_usual(&l.model, norm, GHP_PASS_BACKWARD_DATA, shared).sums, -1);
    CHECK_EQ(ghp_fuse_usual(&l.model, norm - 1, GHP_PASS_BACKWARD_DATA, shared).sums, -1);
    l.model.layers[norm].norm.ghost_batch = 4; /* sums of their own */
    CHECK_EQ(ghp_fuse_layers(&l.model, norm, shared).sums, -1);
    release(&l);
}

/* ReLUs right before max pools, unless a gradient changes its layout between the two. */
static void check_masks(struct ghp_split of_pool, int expected)
{
    struct lowered l;
    int found = 0;

    lower(blocks, (struct ghp_problem){2, 8}, "pool", of_pool, &l);
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *pool = &l.program.instrs[i];
        int relu = pool->fusion.does.relu;

        if (pool->kind != GHP_INSTR_COMPUTE || pool->local.op != GHP_OP_MAX_POOL || relu < 0)
            continue;
        CHECK_EQ(pool->pass, GHP_PASS_FORWARD);
        CHECK(i < relu && l.program.instrs[relu].pass == GHP_PASS_BACKWARD_DATA);
        CHECK_EQ(l.program.instrs[relu].layer, l.model.layers[pool->layer].inputs[0]);
        CHECK_EQ(l.program.instrs[relu - 1].layer, pool->layer);
        CHECK_EQ(l.program.instrs[relu - 1].at.saved, pool->at.saved);
        found++;
    }
    CHECK_EQ(found, expected);
    CHECK(ghp_fuse_always(&l.model, layer_of(&l.model, "relu3"), GHP_PASS_BACKWARD_DATA, shared));
    CHECK(!ghp_fuse_always(&l.model, layer_of(&l.model, "relu2"), GHP_PASS_BACKWARD_DATA, shared));
    release(&l);
}

/* The ReLU right before a convolution, unless the gradient changes its layout between the two. */
static void check_masked_gradient(struct ghp_split split, bool expected)
{
    const struct ghp_fuse_scope masks = {.masks = true};
    struct lowered l;
    bool found = false;

    lower(blocks, (struct ghp_problem){2, 8}, "second", split, &l);
    check_names(&l.program);
    int conv = layer_of(&l.model, "second"), relu = layer_of(&l.model, "relu1");
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *instr = &l.program.instrs[i];
        int done = instr->fusion.does.relu;

        if (instr->kind != GHP_INSTR_COMPUTE || instr->local.op != GHP_OP_CONV2D ||
            instr->pass != GHP_PASS_BACKWARD_DATA || done < 0)
            continue;
        CHECK(instr->layer == conv && l.program.instrs[done].layer == relu && done == i + 1);
        CHECK_EQ(l.program.instrs[done].pass, GHP_PASS_BACKWARD_DATA);
        found = true;
    }
    CHECK_EQ(found, expected);
    CHECK_EQ(ghp_fuse_usual(&l.model, conv, GHP_PASS_BACKWARD_DATA, masks).relu, relu);
    CHECK_EQ(ghp_fuse_usual(&l.model, conv, GHP_PASS_BACKWARD_DATA, shared).relu, -1);
    CHECK_EQ(ghp_fuse_usual(&l.model, conv, GHP_PASS_BACKWARD_WEIGHT, masks).relu, -1);
    CHECK_EQ(ghp_fuse_usual(&l.model, conv, GHP_PASS_FORWARD, masks).relu, relu + 3);
    CHECK(ghp_fuse_always(&l.model, relu, GHP_PASS_BACKWARD_DATA, masks));
    CHECK(!ghp_fuse_always(&l.model, relu, GHP_PASS_BACKWARD_DATA, shared));
    release(&l);
}

/* Sums are priced with the mask where they take it, before any program is fused. */
static void check_sums(void)
{
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1};
    struct lowered l;
    int sums = 0, masked = 0;

    lower(resnet, (struct ghp_problem){2, 8}, "a.add", data, &l);
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *sum = &l.program.instrs[i];

        if (sum->kind != GHP_INSTR_ACCUMULATE) continue;
        CHECK_EQ(sum->masks, sum->fusion.does.relu >= 0);
        masked += sum->masks;
        sums++;
    }
    CHECK(sums > 0 && masked > 0);
    release(&l);
}

/* The sums whose gradient the kernel before them adds; of all sums, how many are priced so. */
static int joined(const struct ghp_program *program, int *priced)
{
    int found = 0;

    *priced = 0;
    check_names(program);
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *sum = &program->instrs[i], *maker = sum - 1;

        if (sum->kind != GHP_INSTR_ACCUMULATE) continue;
        *priced += sum->joins;
        if (sum->fusion.by < 0) continue;
        found++;
        CHECK_EQ(sum->fusion.by, i - 1);
        CHECK_EQ(maker->fusion.does.add, i);
        CHECK_EQ(maker->pass, GHP_PASS_BACKWARD_DATA);
        CHECK(maker->local.op == GHP_OP_LINEAR || maker->local.op == GHP_OP_LAYER_NORM);
        CHECK_EQ(maker->at.dx[0], sum->at.x[0]);
    }
    return found;
}

/* In each block two of q, k and v, and both norms; not where q's gradient is summed over workers first. */
static void check_joined(struct ghp_split split, int expected)
{
    struct lowered l;
    int priced;

    lower(GHP_SOURCE_DIR "/models/gpt-nano.json", (struct ghp_problem){2, 8}, "h.1.attn.k", split,
          &l);
    CHECK_EQ(joined(&l.program, &priced), expected);
    CHECK_EQ(priced, expected);
    release(&l);
}

/* The bias after each layer norm and each linear layer, and no ReLU after a norm. */
static void check_biases(void)
{
    static const char text[] =
        "{\"format\": \"ghp.model/1\", \"name\": \"t\", \"input\": {\"channels\": 4}, \"layers\": ["
        "{\"name\": \"a\", \"op\": \"linear\", \"features\": 4},"
        "{\"name\": \"norm\", \"op\": \"layer_norm\"}, {\"name\": \"relu\", \"op\": \"relu\"},"
        "{\"name\": \"plain\", \"op\": \"layer_norm\", \"bias\": false},"
        "{\"name\": \"relu2\", \"op\": \"relu\"},"
        "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}";
    struct ghp_split splits[9];
    struct lowered l;
    struct ghp_lowering lowering = {.model = &l.model, .problem = {1, 8}, .element_bytes = 4};

    CHECK_STATUS(ghp_model_parse(text, "t", &l.model), GHP_OK);
    for (int i = 0; i < 9; i++)
        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    CHECK_EQ(l.model.n_layers, 9);
    CHECK_STATUS(ghp_lower(&lowering, splits, 0, &l.program), GHP_OK);
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "a")), "bias update");
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "norm")), "bias update");
    CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "plain")), "");
    CHECK(
        ghp_fuse_always(&l.model, layer_of(&l.model, "norm.bias"), GHP_PASS_FORWARD, with_linear));
    CHECK_EQ(ghp_fuse_layers(&l.model, layer_of(&l.model, "norm"), with_linear).relu, -1);
    release(&l);
}

/* Each addition of a transformer is its norm's, which adds its bias too; but not where it is laid out otherwise
 * between.
 */
static void check_residual(void)
{
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1};
    const struct ghp_split channel = {.kind = GHP_SPLIT_CHANNEL, .tp_size = 2};
    struct lowered l;

    for (int split = 0; split < 2; split++) {
        lower(GHP_SOURCE_DIR "/models/gpt-nano.json", (struct ghp_problem){2, 8}, "h.0.add_1",
              split > 0 ? channel : data, &l);
        CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "h.0.ln_1")), "bias update");
        CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "h.0.ln_2")),
                   split > 0 ? "bias update" : "add bias update");
        CHECK_TEXT(taken_by(&l.program, layer_of(&l.model, "ln_f")), "add bias update");
        CHECK(ghp_fuse_always(&l.model, layer_of(&l.model, "h.0.add_1"), GHP_PASS_FORWARD,
                              with_linear));
        CHECK(
            ghp_fuse_usual(&l.model, layer_of(&l.model, "h.0.ln_1"), GHP_PASS_FORWARD, with_linear)
                .add >= 0);
        release(&l);
    }
}

/* A layer next to an addition reads the gradient that its own is added to. */
static void check_alias(void)
{
    static const char text[] =
        "{\"format\": \"ghp.model/1\", \"name\": \"t\", \"input\": {\"channels\": 4}, \"layers\": ["
        "{\"name\": \"a\", \"op\": \"linear\", \"features\": 4, \"bias\": false},"
        "{\"name\": \"act\", \"op\": \"gelu\"},"
        "{\"name\": \"b\", \"op\": \"linear\", \"features\": 4, \"bias\": false},"
        "{\"name\": \"sum\", \"op\": \"add\", \"inputs\": [\"act\", \"b\"]},"
        "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}";
    struct ghp_split splits[6];
    struct lowered l;
    struct ghp_lowering lowering = {.model = &l.model, .problem = {1, 8}, .element_bytes = 4};
    int priced;

    CHECK_STATUS(ghp_model_parse(text, "t", &l.model), GHP_OK);
    for (int i = 0; i < 6; i++)
        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    CHECK_EQ(l.model.n_layers, 6);
    CHECK_STATUS(ghp_lower(&lowering, splits, 0, &l.program), GHP_OK);
    for (int i = 1; i < l.program.n_instrs; i++) {
        const struct ghp_instr *sum = &l.program.instrs[i], *maker = sum - 1;
        int to = sum->at.dy, from = maker->at.dy;

        if (sum->kind != GHP_INSTR_ACCUMULATE) continue;
        while (l.program.buffers[to].storage != to)
            to = l.program.buffers[to].storage;
        while (l.program.buffers[from].storage != from)
            from = l.program.buffers[from].storage;
        CHECK(sum->fusion.by < 0 && to == from);
    }
    (void)joined(&l.program, &priced);
    CHECK_EQ(priced, 1);
    release(&l);
}

/* An addition that is recomputed reads again what the batch norm before it writes. */
static void check_recomputed(void)
{
    struct ghp_model model;
    struct ghp_split *splits;
    struct ghp_program program;
    struct ghp_staging staging = {0};
    struct ghp_lowering lowering = {
        .model = &model, .problem = {1, 8}, .element_bytes = 4, .staging = &staging};
    bool *recompute;

    CHECK_STATUS(ghp_model_load(resnet, &model), GHP_OK);
    splits = ghp_alloc((size_t)model.n_layers, sizeof *splits);
    recompute = ghp_alloc((size_t)model.n_layers, sizeof *recompute);
    for (int i = 0; i < model.n_layers; i++)
        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    recompute[layer_of(&model, "a.add")] = true;
    staging.recompute = recompute;
    CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK);
    CHECK_TEXT(taken_by(&program, layer_of(&model, "a.bn2")), "stats ");
    CHECK_TEXT(taken_by(&program, layer_of(&model, "a.add")), "relu ");
    CHECK_TEXT(taken_by(&program, layer_of(&model, "b.short_bn")), "stats add relu ");
    ghp_program_release(&program);
    ghp_model_release(&model);
    free(recompute);
    free(splits);
}

CHECK_TEST(fuse)
{
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1},
                           out = {.kind = GHP_SPLIT_OUT, .tp_size = 2},
                           in = {.kind = GHP_SPLIT_IN, .tp_size = 2};

    check_program("second", data, "second", "bias relu update");
    check_program("small", data, "small", "bias update");
    check_program("second", in, "second", "");  /* a sum comes first */
    check_program("second", out, "second", ""); /* its output is exchanged before the bias */
    check_program("second", data, "fc", "bias update"); /* where the backend can */
    check_program("fc", in, "fc", "");
    check_model();
    check_loss();
    check_norms(data, true);
    check_norms((struct ghp_split){.kind = GHP_SPLIT_CHANNEL, .tp_size = 2}, false);
    check_own();
    check_summed(1, data, 6);
    check_summed(2, data, 6);
    check_summed(2, (struct ghp_split){.kind = GHP_SPLIT_CHANNEL, .tp_size = 2}, 5);
    check_recomputed();
    check_masked_gradient(data, true);
    check_masked_gradient(in, false);
    check_sums();
    check_joined(data, 8);
    check_joined(out, 7);
    check_biases();
    check_residual();
    check_alias();
    check_masks(data, 2);
    check_masks((struct ghp_split){.kind = GHP_SPLIT_CHANNEL, .tp_size = 2}, 1);
    return check_end();
}
