/* tests/core/program/test_fixed.c - nothing computes gradients for layers that are fixed.
 *
 * Oracles: the lists of instructions and buffers themselves, on a network whose first layers, one in the middle and
 * one bias are fixed, under each synchroniser that keeps the weights together. That the numbers are right is the
 * business of tests/executor/engine/test_gradients and tests/tools/learn. */
#include "core/program/lower/lower.h"
#include "tests/check.h"

#include <string.h>

#define CHAIN(fixed)                                                                               \
    "{\"format\":\"ghp.model/1\",\"name\":\"chain\","                                              \
    "\"input\":{\"channels\":4,\"height\":4,\"width\":4},\"layers\":["                             \
    "{\"name\":\"one\",\"op\":\"conv2d\",\"channels\":8,\"kernel\":3,\"pad\":1" fixed "},"         \
    "{\"name\":\"norm\",\"op\":\"layer_norm\"" fixed "},"                                          \
    "{\"name\":\"relu\",\"op\":\"relu\"},"                                                         \
    "{\"name\":\"two\",\"op\":\"conv2d\",\"channels\":8,\"kernel\":3,\"pad\":1,\"bias\":false},"   \
    "{\"name\":\"shift\",\"op\":\"bias\"" fixed "},"                                               \
    "{\"name\":\"flat\",\"op\":\"flatten\"},"                                                      \
    "{\"name\":\"three\",\"op\":\"linear\",\"features\":16" fixed "},"                             \
    "{\"name\":\"four\",\"op\":\"linear\",\"features\":8},"                                        \
    "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}"

static const char *const syncs[] = {"allreduce", "sharded", "local:2", "bsp", "sgp"};

static enum ghp_status lower(const struct ghp_model *model, const char *sync,
                             struct ghp_split *splits, struct ghp_program *program)
{
    struct ghp_lowering lowering = {.model = model,
                                    .problem = {.global_batch = 8, .workers = 2},
                                    .element_bytes = 4,
                                    .method = {.optimizer = &ghp_optimizer_adamw}};

    GHP_TRY(ghp_sync_parse(sync, &lowering.method.sync));
    if (strcmp(sync, "bsp") == 0) lowering.method.sync.servers = 1;
    for (int i = 0; i < model->n_layers; i++)
        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    return ghp_lower(&lowering, splits, 0, program);
}

static int64_t bytes_of(const struct ghp_program *program, const struct ghp_model *model,
                        enum ghp_buffer_kind kind, bool fixed)
{
    int64_t sum = 0;

    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];

        if (b->buffer_kind == kind && b->layer >= 0 && model->layers[b->layer].fixed == fixed)
            sum += b->bytes;
    }
    return sum;
}

static void check_instrs(const struct ghp_program *program, const struct ghp_model *model)
{
    int two = ghp_model_find(model, "two");

    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];

        if (instr->layer < 0) continue;
        if (instr->backward && instr->stream == GHP_STREAM_COMPUTE && instr->edge < 0)
            CHECK(instr->layer >= two);
        if (instr->layer == two) CHECK(instr->pass != GHP_PASS_BACKWARD_DATA);
        if (instr->kind == GHP_INSTR_COMPUTE && instr->pass == GHP_PASS_BACKWARD_WEIGHT)
            CHECK(!model->layers[instr->layer].fixed);
        if (instr->kind == GHP_INSTR_UPDATE) CHECK(!model->layers[instr->layer].fixed);
    }
}

static void check_sync(const char *sync)
{
    struct ghp_model model, free_model;
    struct ghp_program program, whole;
    struct ghp_split splits[16], more[16];

    CHECK_STATUS(ghp_model_parse(CHAIN(",\"fixed\":true"), "fixed", &model), GHP_OK);
    CHECK_STATUS(ghp_model_parse(CHAIN(""), "free", &free_model), GHP_OK);
    CHECK_STATUS(lower(&model, sync, splits, &program), GHP_OK);
    CHECK_STATUS(lower(&free_model, sync, more, &whole), GHP_OK);
    check_instrs(&program, &model);
    CHECK(bytes_of(&program, &model, GHP_BUFFER_WEIGHT, true) > 0);
    CHECK_EQ(bytes_of(&program, &model, GHP_BUFFER_WEIGHT_GRADIENT, true), 0);
    CHECK_EQ(bytes_of(&program, &model, GHP_BUFFER_MOMENT, true), 0);
    CHECK(bytes_of(&program, &model, GHP_BUFFER_WEIGHT_GRADIENT, false) > 0);
    CHECK(program.n_instrs < whole.n_instrs);
    CHECK(program.peak_bytes < whole.peak_bytes);
    CHECK(ghp_program_sent_bytes(&program) < ghp_program_sent_bytes(&whole));
    ghp_program_release(&program);
    ghp_program_release(&whole);
    ghp_model_release(&model);
    ghp_model_release(&free_model);
}

CHECK_TEST(fixed)
{
    for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++)
        check_sync(syncs[i]);
    return check_end();
}
