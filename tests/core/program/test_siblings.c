/* tests/core/program/test_siblings.c - products of one tensor that may run at once (core/program/fuse.h): which are
 * found, and that the tensors in which they differ, and their scratch, lie in rows where they run. Trainings show that
 * they compute the same (tests/executor/engine/test_device.c, tests/emulated). */
#include "core/program/fuse.h"
#include "core/program/lower/lower.h"
#include "tests/check.h"

enum { SCRATCH_BYTES = 100 };

static const char *const gpt = GHP_SOURCE_DIR "/models/gpt-nano.json";
static const char *const llama = GHP_SOURCE_DIR "/models/llama-nano.json";

static enum ghp_status some_scratch(void *context, const struct ghp_local *local,
                                    enum ghp_pass pass, int64_t *bytes)
{
    (void)context;
    (void)pass;
    *bytes = local->op == GHP_OP_LINEAR ? SCRATCH_BYTES : 0;
    return GHP_OK;
}

static void lower(const struct ghp_model *model, struct ghp_lowering lowering,
                  struct ghp_program *program)
{
    struct ghp_split *splits = ghp_alloc((size_t)model->n_layers, sizeof *splits);

    for (int i = 0; i < model->n_layers; i++)
        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    lowering.model = model;
    lowering.element_bytes = 2;
    lowering.scratch.bytes = some_scratch;
    CHECK_STATUS(ghp_lower(&lowering, splits, 0, program), GHP_OK);
    CHECK_STATUS(ghp_program_check(program), GHP_OK);
    free(splits);
}

/* The n-th buffer of a row: it lives where all run, right after the one before it. */
static void check_in_row(const struct ghp_program *program, int first, int buffer, int n, int point)
{
    const struct ghp_buffer *b = &program->buffers[buffer];

    CHECK(b->first_point <= point && point <= b->last_point);
    CHECK_EQ(b->offset, program->buffers[first].offset + n * b->bytes);
}

/* Writes a letter for each of the products that begin with one. */
static void check_group(const struct ghp_program *program, int first, char *letters)
{
    const struct ghp_operands *start = &program->instrs[first].at;
    int point = program->instrs[ghp_siblings_at(program, first)].point, n = 0;

    for (int i = first; i >= 0; i = program->instrs[i].fusion.next) {
        const struct ghp_instr *instr = &program->instrs[i];
        const struct ghp_operands *at = &instr->at;

        CHECK_EQ(instr->fusion.first, first);
        CHECK_EQ(at->x[0], start->x[0]);
        check_in_row(program, instr->backward ? start->dy : start->y,
                     instr->backward ? at->dy : at->y, n, point);
        check_in_row(program, start->scratch, at->scratch, n, point);
        letters[n++] = strrchr(program->model->layers[instr->layer].name, '.')[1];
    }
    letters[n] = '\0';
}

/* All that run at once, in the order of the list. */
static void check_model(const char *path, struct ghp_lowering lowering, const char *expected)
{
    struct ghp_model model;
    struct ghp_program program, plain;
    char found[1024] = "";
    size_t used = 0;

    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) return;
    lower(&model, lowering, &plain);
    lowering.joins_products = true;
    lower(&model, lowering, &program);
    CHECK(ghp_program_hash(&program, 0) == ghp_program_hash(&plain, 0));
    for (int i = 0; i < program.n_instrs; i++) {
        char letters[GHP_MOST_SIBLINGS + 1];

        CHECK(plain.instrs[i].fusion.first < 0 && plain.instrs[i].fusion.next < 0);
        if (program.instrs[i].fusion.first != i) continue;
        check_group(&program, i, letters);
        used += (size_t)snprintf(found + used, sizeof found - used, "%s ", letters);
    }
    CHECK_TEXT(found, expected);
    ghp_program_release(&plain);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

/* What stands between two products changes what the first made, in place; after them it does not. */
static void check_in_the_way(bool between, const char *expected)
{
    static const char *const linear = "{\"name\": \"a.%c\", \"op\": \"linear\", \"features\": 8, "
                                      "\"inputs\": [\"input\"]}, ";
    static const char *const act = "{\"name\": \"a.act\", \"op\": \"activation\", \"function\": "
                                   "\"tanh\", \"inputs\": [\"a.q\"]}, ";
    const struct ghp_lowering lowering = {.problem = {1, 4}};
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/small.json", check_folder());
    f = fopen(path, "w");
    if (!CHECK(f != NULL)) return;
    fprintf(f, "{\"format\": \"ghp.model/1\", \"name\": \"small\", \"input\": {\"channels\": 8}, "
               "\"layers\": [");
    fprintf(f, linear, 'q');
    if (between) fputs(act, f);
    fprintf(f, linear, 'k');
    if (!between) fputs(act, f);
    fprintf(f, "{\"name\": \"sum\", \"op\": \"add\", \"inputs\": [\"a.act\", \"a.k\"]}, "
               "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}");
    CHECK_EQ(fclose(f), 0);
    check_model(path, lowering, expected);
}

CHECK_TEST(siblings)
{
    struct ghp_lowering lowering = {.problem = {1, 8}};

    check_model(gpt, lowering, "qkv qkv vkq vkq ");
    check_model(llama, lowering, "kv gu kv gu ug vk ug vk ");
    lowering.problem.workers = 2;
    check_model(gpt, lowering, "qkv qkv vkq vkq ");
    lowering.forward_only = true;
    check_model(gpt, lowering, "qkv qkv ");
    check_in_the_way(true, "");
    check_in_the_way(false, "qk kq ");
    return check_end();
}
