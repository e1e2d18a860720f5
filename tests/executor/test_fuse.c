/* tests/executor/test_fuse.c - which biases and ReLUs convolutions take along: in programs by their operands, in models by
 * their edges. That kernels which take them along compute the same is test_formats.c's and test_fast.c's. */
#include "executor/fuse.h"
#include "core/lower.h"
#include "tests/check.h"
#include "tests/executor/cases.h"

static const char *const blocks = GHP_SOURCE_DIR "/tests/executor/blocks.json";

static int layer_of(const struct ghp_model *model, const char *name)
{
    for (int i = 0; i < model->n_layers; i++)
        if (strcmp(model->layers[i].name, name) == 0) return i;
    CHECK(false);
    return -1;
}

/* Of the layer's forward pass: "bias relu update", what is there of it. */
static const char *taken_by(const struct ghp_program *program, int layer)
{
    static char text[64];

    text[0] = '\0';
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        struct ghp_epilogue found = ghp_fuse_find(program, i);

        if (instr->layer != layer || instr->kind != GHP_INSTR_COMPUTE || instr->backward) {
            CHECK(instr->local.op == GHP_OP_CONV2D || (found.bias < 0 && found.relu < 0));
            continue;
        }
        snprintf(text, sizeof text, "%s%s%s", found.bias >= 0 ? "bias " : "",
                 found.relu >= 0 ? "relu " : "", found.update >= 0 ? "update" : "");
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
    struct ghp_extent extent = {2, 8};

    case_model(blocks, &model);
    struct ghp_split *splits = case_splits(&model, extent, CASE_DATA, 0, 1);
    const struct ghp_lowering how = {.model = &model, .extent = extent, .element_bytes = 4};

    splits[layer_of(&model, divided)] = split;
    CHECK_STATUS(ghp_lower(&how, splits, 0, &program), GHP_OK);
    CHECK_TEXT(taken_by(&program, layer_of(&model, layer)), expected);
    free(splits);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

static void check_model(void)
{
    struct ghp_model model;
    struct ghp_epilogue found;

    case_model(blocks, &model);
    found = ghp_fuse_layers(&model, layer_of(&model, "second"));
    CHECK_EQ(found.bias, layer_of(&model, "second.bias"));
    CHECK_EQ(found.relu, layer_of(&model, "relu2"));
    found = ghp_fuse_layers(&model, layer_of(&model, "small"));
    CHECK_EQ(found.bias, layer_of(&model, "small.bias"));
    CHECK_EQ(found.relu, -1);
    CHECK_EQ(ghp_fuse_layers(&model, layer_of(&model, "fc")).bias, -1);
    CHECK(ghp_fuse_always(&model, layer_of(&model, "second.bias")));
    CHECK(ghp_fuse_always(&model, layer_of(&model, "relu2")));
    CHECK(!ghp_fuse_always(&model, layer_of(&model, "fc.bias")));
    CHECK(!ghp_fuse_always(&model, layer_of(&model, "pool")));
    ghp_model_release(&model);
    case_model(GHP_SOURCE_DIR "/models/small-resnet.json", &model);
    for (int i = 0; i < model.n_layers; i++) /* behind batch norms and additions */
        CHECK(!ghp_fuse_always(&model, i));
    ghp_model_release(&model);
}

int main(void)
{
    const struct ghp_split data = {GHP_SPLIT_DATA, 1}, out = {GHP_SPLIT_OUT, 2},
                           in = {GHP_SPLIT_IN, 2};

    check_program("second", data, "second", "bias relu update");
    check_program("small", data, "small", "bias update");
    check_program("second", in, "second", "");  /* a sum comes first */
    check_program("second", out, "second", ""); /* its output is exchanged before the bias */
    check_program("second", data, "fc", "");
    check_model();
    return check_end();
}
