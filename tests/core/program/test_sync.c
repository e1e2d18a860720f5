/* tests/core/program/test_sync.c - synchronisers as texts; what is refused where workers' weights differ, by name; and
 * the program that averages: each average behind the updates of its bucket and before their layers, bytes of an
 * all-reduce in every so many steps, all of the weights and statistics once. One worker averages nothing. */
#include "core/program/lower.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static struct ghp_sync local(int period)
{
    return (struct ghp_sync){&ghp_sync_local, period};
}

static void check_texts(void)
{
    static const char *const good[] = {"allreduce", "sharded", "local:1", "local:8",
                                       "local:1048576"};
    static const char *const bad[] = {
        "",         "auto",     "local",         "local:", "local:0",   "local:x",
        "local:8x", "local:-1", "local:1048577", "loca:8", "sharded:2", "allreduce:"};
    char text[GHP_SYNC_TEXT_BYTES];
    struct ghp_sync sync;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_STATUS(ghp_sync_parse(good[i], &sync), GHP_OK);
        ghp_sync_format(sync, text);
        CHECK(strcmp(text, good[i]) == 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_STATUS(ghp_sync_parse(bad[i], &sync), GHP_ERR_INPUT);
    CHECK_EQ(ghp_sync_staleness(local(8)), 7);
    CHECK(ghp_sync_same((struct ghp_sync){0}, ghp_sync_at(0)) &&
          !ghp_sync_same(local(1), local(2)));
}

struct lowered {
    struct ghp_model model;
    struct ghp_split *splits;
    struct ghp_lowering how;
    struct ghp_program program;
};

static enum ghp_status lower(struct lowered *l)
{
    ghp_program_release(&l->program);
    return ghp_lower(&l->how, l->splits, 0, &l->program);
}

static void open(const char *path, int workers, struct lowered *l)
{
    *l = (struct lowered){0};
    CHECK_STATUS(ghp_model_load(path, &l->model), GHP_OK);
    l->how = (struct ghp_lowering){.model = &l->model,
                                   .problem = {workers, 8 * workers},
                                   .element_bytes = 4,
                                   .bucket_bytes = 20000,
                                   .sync = local(4)};
    l->splits = ghp_alloc((size_t)l->model.n_layers, sizeof *l->splits);
    for (int i = 0; i < l->model.n_layers; i++)
        l->splits[i] = (struct ghp_split){GHP_SPLIT_DATA, 1};
    CHECK_STATUS(lower(l), GHP_OK);
    CHECK_STATUS(ghp_program_check(&l->program), GHP_OK);
}

static void close(struct lowered *l)
{
    ghp_program_release(&l->program);
    free(l->splits);
    ghp_model_release(&l->model);
}

/* Each with the word that its message has to have. */
static void check_refusals(void)
{
    struct ghp_staging staging = {.micro_batches = 2};
    struct lowered l;

    open(GHP_SOURCE_DIR "/models/small-resnet.json", 2, &l);
    l.how.clips = true;
    CHECK_STATUS(lower(&l), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "--clip-norm") != NULL);
    l.how.clips = false;
    l.how.staging = &staging;
    CHECK_STATUS(lower(&l), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "micro-batches") != NULL);
    l.how.staging = NULL;
    l.splits[1] = (struct ghp_split){GHP_SPLIT_OUT, 2};
    CHECK_STATUS(lower(&l), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), l.model.layers[1].name) != NULL);
    l.splits[1] = (struct ghp_split){GHP_SPLIT_DATA, 1};
    for (int i = 0; i < l.model.n_layers; i++)
        l.model.layers[i].norm.ghost_batch = l.model.layers[i].op == GHP_OP_BATCH_NORM ? 2 : 0;
    CHECK_STATUS(lower(&l), GHP_ERR_INPUT);
    CHECK(strstr(ghp_status_message(), "ghost") != NULL);
    close(&l);
}

/* Weights and statistics in buckets, in bytes. */
static int64_t averaged_bytes(const struct ghp_program *program)
{
    int64_t sum = 0;

    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];

        if (b->buffer_kind != GHP_BUFFER_WEIGHT && b->buffer_kind != GHP_BUFFER_STATE) continue;
        CHECK(program->buffers[b->storage].buffer_kind == GHP_BUFFER_WEIGHT_BUCKET);
        sum += b->bytes;
    }
    return sum;
}

static void check_average(const struct ghp_program *program, int i)
{
    const struct ghp_instr *average = &program->instrs[i];

    for (int j = 0; j < program->n_instrs; j++) {
        const struct ghp_instr *instr = &program->instrs[j];

        if (instr->kind == GHP_INSTR_UPDATE && instr->bucket == average->bucket) CHECK(j < i);
        if (instr->kind == GHP_INSTR_WAIT && instr->after == i)
            CHECK_EQ(instr->layer, average->layer);
        if (instr->kind == GHP_INSTR_COMPUTE && instr->layer == average->layer &&
            instr->pass == GHP_PASS_FORWARD)
            CHECK(program->instrs[j - 1].after == i ||
                  program->instrs[j - 1].pass == GHP_PASS_STATS);
    }
}

static void check_program(const char *path)
{
    int64_t bytes = 0, metrics = 0;
    struct lowered l;

    open(path, 3, &l);
    for (int i = 0; i < l.program.n_instrs; i++) {
        const struct ghp_instr *instr = &l.program.instrs[i];

        CHECK(!ghp_instr_reduces(instr) && instr->kind != GHP_INSTR_STAT_REDUCE);
        if (instr->kind == GHP_INSTR_METRIC_REDUCE) metrics += ghp_instr_sent_bytes(instr);
        if (instr->kind != GHP_INSTR_AVERAGE) continue;
        CHECK_EQ(instr->ranks.count, 3);
        CHECK_EQ(ghp_instr_sent_bytes(instr), 2 * (instr->bytes * 2 / 3) / 4);
        bytes += instr->bytes;
        check_average(&l.program, i);
    }
    CHECK_EQ(bytes, averaged_bytes(&l.program));
    CHECK(ghp_program_sent_bytes(&l.program) - metrics <= bytes / 3);
    close(&l);
    open(path, 1, &l);
    for (int i = 0; i < l.program.n_instrs; i++)
        CHECK(l.program.instrs[i].kind != GHP_INSTR_AVERAGE);
    close(&l);
}

CHECK_TEST(sync)
{
    (void)argc, (void)argv;
    check_texts();
    check_refusals();
    check_program(GHP_SOURCE_DIR "/models/lenet5.json");
    check_program(GHP_SOURCE_DIR "/models/small-resnet.json");
    return check_end();
}
