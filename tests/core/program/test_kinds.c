/* tests/core/program/test_kinds.c - what is true of each kind of instruction agrees with itself, and with the programs
 * that have such instructions. */
#include "core/program/liveness.h"
#include "core/program/lower/buffer_assignment.h"
#include "core/program/lower/lower.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static const char *const lenet = GHP_SOURCE_DIR "/models/lenet5.json";
static const char *const resnet = GHP_SOURCE_DIR "/models/small-resnet.json";
static const char *const sequence = GHP_SOURCE_DIR "/tests/executor/sequence.json";

static void check_names(int kind)
{
    const struct ghp_kind_facts *facts = ghp_kinds[kind];

    CHECK(facts->name != NULL && facts->purpose != NULL);
    CHECK(strlen(facts->purpose) > 10 && facts->purpose[strlen(facts->purpose) - 1] != '.');
    for (int other = 0; other < kind; other++)
        CHECK(strcmp(ghp_kinds[other]->name, facts->name) != 0);
}

/* What no other worker is waited for in has nothing to wait for, and nobody to send to. */
static void check_local(const struct ghp_kind_facts *facts)
{
    if (!facts->is_local) return;
    CHECK(facts->stream == GHP_STREAM_COMPUTE && facts->comm == GHP_COMM_NONE);
    CHECK(!facts->waits && !facts->mixes && !facts->is_served && facts->sent_bytes == NULL);
}

static void check_stream(const struct ghp_kind_facts *facts)
{
    if (facts->waits) CHECK_EQ(facts->stream, GHP_STREAM_COMPUTE);
    if (facts->reduces) CHECK_EQ(facts->stream, GHP_STREAM_COMM);
    if (facts->comm != GHP_COMM_NONE) CHECK_EQ(facts->cost, GHP_COST_COLLECTIVE);
    if (facts->stream != GHP_STREAM_COMPUTE || facts->waits) CHECK_EQ(facts->phase, 0);
}

static void test_facts(void)
{
    for (int kind = 0; kind < GHP_INSTR_COUNT; kind++) {
        check_names(kind);
        check_local(ghp_kinds[kind]);
        check_stream(ghp_kinds[kind]);
    }
}

/* GHP_AT_* of an operand, an index into struct ghp_operands. */
static unsigned at_of(int operand)
{
    if (operand >= GHP_OPERAND(x) && operand < GHP_OPERAND(x) + GHP_MAX_INPUTS) return GHP_AT_X;
    if (operand >= GHP_OPERAND(dx) && operand < GHP_OPERAND(dx) + GHP_MAX_INPUTS) return GHP_AT_DX;
    if (operand >= GHP_OPERAND(dw) && operand < GHP_OPERAND(dw) + GHP_MAX_PARAMS) return GHP_AT_DW;
    if (operand == GHP_OPERAND(y)) return GHP_AT_Y;
    if (operand == GHP_OPERAND(saved)) return GHP_AT_SAVED;
    if (operand == GHP_OPERAND(stats)) return GHP_AT_STATS;
    return operand == GHP_OPERAND(labels) ? GHP_AT_LABELS : GHP_AT_DY;
}

/* The tensor that lifetimes say is made is one of the operands that are said to be written; and each that is accessed
 * has a buffer. */
static void check_instr(const struct ghp_lowering *lowering, const struct ghp_program *program,
                        int i)
{
    const struct ghp_instr *instr = &program->instrs[i];
    struct ghp_accesses accesses;
    int ids[sizeof(struct ghp_operands) / sizeof(int)];

    CHECK_EQ(instr->stream, ghp_kind_of(instr)->stream);
    if (ghp_kind_of(instr)->comm != GHP_COMM_NONE) CHECK_EQ(instr->comm, ghp_kind_of(instr)->comm);
    memcpy(ids, &instr->at, sizeof ids);
    ghp_instr_accesses(lowering, program, i, &accesses);
    for (int t = 0; t < accesses.n; t++) {
        const struct ghp_access *access = &accesses.access[t];

        CHECK(ids[access->operand] >= 0);
        if (access->writes && instr->kind != GHP_INSTR_COMPUTE)
            CHECK((ghp_kind_of(instr)->writes & at_of(access->operand)) != 0);
    }
}

/* Lowers a network for four workers, the first layer that can take it by the split; notes the kinds that it has. */
static void check_program(const char *path, struct ghp_split split, struct ghp_method method,
                          struct ghp_staging *staging, bool seen[GHP_INSTR_COUNT])
{
    struct ghp_model model;
    struct ghp_program program;
    struct ghp_lowering lowering = {.model = &model,
                                    .problem = {.workers = 4, .global_batch = 64},
                                    .element_bytes = 4,
                                    .staging = staging,
                                    .method = method};
    struct ghp_split *splits;
    int at = 1;

    CHECK_STATUS(ghp_model_load(path, &model), GHP_OK);
    while (ghp_split_check(&model.layers[at], split, lowering.problem) != GHP_OK)
        at++;
    splits = ghp_alloc((size_t)model.n_layers, sizeof *splits);
    for (int i = 0; i < model.n_layers; i++)
        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    splits[at] = split;
    CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK);
    CHECK_STATUS(ghp_program_check(&program), GHP_OK);
    for (int i = 0; i < program.n_instrs; i++) {
        check_instr(&lowering, &program, i);
        seen[program.instrs[i].kind] = true;
    }
    free(splits);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

static struct ghp_sync sync_of(const char *text)
{
    struct ghp_sync sync = {0};

    CHECK_STATUS(ghp_sync_parse(text, &sync), GHP_OK);
    return sync;
}

/* One that takes norms of each worker batch's gradients. */
static const struct ghp_lr_scaling *batches_scaling(void)
{
    for (int i = 0; ghp_lr_scaling_names[i] != NULL; i++)
        if (ghp_lr_scaling_takes_batches(ghp_lr_scaling_at(i))) return ghp_lr_scaling_at(i);
    return NULL;
}

static void test_programs(void)
{
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1},
                           out = {.kind = GHP_SPLIT_OUT, .tp_size = 2},
                           ring = {.kind = GHP_SPLIT_RING, .tp_size = 2},
                           pass = {
                               .kind = GHP_SPLIT_DATA, .tp_size = 1, .sharding = GHP_SHARDING_PASS};
    struct ghp_staging staging = {
        .n = 2, .micro_batches = 2, .stage = {{.workers = 2}, {.first_layer = 5, .workers = 2}}};
    struct ghp_method served = {.sync = sync_of("bsp")};
    struct ghp_staging parts = {.micro_batches = 2};
    bool seen[GHP_INSTR_COUNT] = {false};

    served.sync.servers = 1;
    check_program(resnet, out, (struct ghp_method){.clip_norm = 1}, NULL, seen);
    check_program(lenet, data, (struct ghp_method){0}, &staging, seen);
    check_program(lenet, data, (struct ghp_method){.scaling = batches_scaling()}, &parts, seen);
    check_program(lenet, data, (struct ghp_method){.sync = sync_of("sharded")}, NULL, seen);
    check_program(lenet, data, (struct ghp_method){.sync = sync_of("local:2")}, NULL, seen);
    check_program(lenet, data, (struct ghp_method){.sync = sync_of("dgd:ring")}, NULL, seen);
    check_program(lenet, data, served, NULL, seen);
    check_program(lenet, pass, (struct ghp_method){0}, &parts, seen);
    check_program(lenet, pass, (struct ghp_method){.shard_within = 2}, &parts, seen);
    check_program(sequence, ring, (struct ghp_method){0}, NULL, seen);
    for (int kind = 0; kind < GHP_INSTR_COUNT; kind++)
        if (!CHECK(seen[kind])) fprintf(stderr, "no program has '%s'\n", ghp_kinds[kind]->name);
}

/* In bf16 the weights of products are gathered in half of the bytes that their floats take, and those of biases, which
 * no kernel rounds, as they are. */
static void test_gathers(void)
{
    const struct ghp_split pass = {
        .kind = GHP_SPLIT_DATA, .tp_size = 1, .sharding = GHP_SHARDING_PASS};
    struct ghp_model model;
    struct ghp_program program;
    struct ghp_lowering lowering = {
        .model = &model, .problem = {.workers = 4, .global_batch = 64}, .element_bytes = 2};
    struct ghp_split *splits;
    int n[2] = {0};

    CHECK_STATUS(ghp_model_load(lenet, &model), GHP_OK);
    splits = ghp_alloc((size_t)model.n_layers, sizeof *splits);
    for (int i = 0; i < model.n_layers; i++) {
        splits[i] = pass;
        if (ghp_sharding_check(&model.layers[i], pass, lowering.problem) != GHP_OK)
            splits[i].sharding = GHP_SHARDING_NONE;
    }
    CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK);
    for (int i = 0; i < program.n_instrs; i++) {
        const struct ghp_instr *instr = &program.instrs[i];
        const struct ghp_buffer *whole = &program.buffers[instr->at.y];

        if (instr->kind != GHP_INSTR_GATHER) continue;
        n[instr->in_bf16]++;
        CHECK_EQ(instr->in_bf16, model.layers[instr->layer].op != GHP_OP_BIAS);
        CHECK_EQ(whole->bytes, program.buckets[instr->bucket].bytes);
        CHECK_EQ(instr->bytes, instr->in_bf16 ? whole->bytes / 2 : whole->bytes);
        CHECK_EQ(instr->copy_bytes, instr->in_bf16 ? whole->bytes + instr->bytes / 4 : 0);
        CHECK_EQ(ghp_instr_sent_bytes(instr), instr->bytes / 4 * 3);
        if (instr->in_bf16)
            CHECK(program.buffers[instr->at.scratch].bytes >= ghp_instr_receive_bytes(instr));
    }
    CHECK(n[0] > 0 && n[1] > 0);
    free(splits);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

CHECK_TEST(kinds)
{
    (void)argc, (void)argv;
    test_facts();
    test_programs();
    test_gathers();
    return check_end();
}
