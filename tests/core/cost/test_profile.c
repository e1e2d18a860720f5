/* tests/core/cost/test_profile.c - the profile file, costs of operations and collectives, and the part a
 * plan carries. */
#include "core/cost/profile_private.h"
#include "core/cost/simulate.h"
#include "core/program/lower/lower.h"
#include "tests/check.h"

#include <unistd.h>

static const char *const net =
    "{\"format\": \"ghp.model/1\", \"name\": \"t\", \"input\": {\"channels\": 8, \"height\": 4, "
    "\"width\": 4}, \"layers\": [\n"
    "{\"name\": \"c\", \"op\": \"conv2d\", \"channels\": 16, \"kernel\": 3, \"pad\": 1},\n"
    "{\"name\": \"r\", \"op\": \"relu\"}, {\"name\": \"f\", \"op\": \"flatten\"},\n"
    "{\"name\": \"l\", \"op\": \"linear\", \"features\": 8}, {\"name\": \"loss\", \"op\": "
    "\"softmax_cross_entropy\"}]}";

static struct ghp_profile empty(void)
{
    struct ghp_profile profile;

    CHECK_STATUS(ghp_profile_init(&profile, "onednn", "exact", 4), GHP_OK);
    profile.machine.nodes = 16;
    profile.machine.intra = profile.machine.inter = (struct ghp_link){20e-6, 1.25e9, 0};
    return profile;
}

static void add_op(struct ghp_profile *profile, const char *key, double seconds, int64_t scratch)
{
    struct ghp_op_entry entry = {.key = (char *)(uintptr_t)key,
                                 .pass = GHP_PASS_FORWARD,
                                 .seconds = seconds,
                                 .spread = 0.1,
                                 .scratch_bytes = scratch};

    CHECK_STATUS(ghp_profile_add_op(profile, &entry), GHP_OK);
}

/* Says of the operation added last that all plain takes as long, and all blocked half. */
static void add_memory_formats(struct ghp_profile *profile)
{
    struct ghp_op_entry *last = &profile->ops[profile->n_ops - 1];

    last->n_memory_formats = 2;
    last->memory_formats[0] =
        (struct ghp_op_memory_format){.seconds = last->seconds, .algorithm = "direct"};
    last->memory_formats[1] =
        (struct ghp_op_memory_format){true, true, last->seconds / 2, "winograd"};
}

static void add_comm(struct ghp_profile *profile, struct ghp_ranks ranks, int64_t bytes,
                     double seconds)
{
    struct ghp_comm_entry entry = {.op = GHP_COMM_ALL_REDUCE,
                                   .count = ranks.count,
                                   .stride = ranks.stride,
                                   .bytes = bytes,
                                   .seconds = seconds};

    CHECK_STATUS(ghp_profile_add_comm(profile, &entry), GHP_OK);
}

/* The convolution of `net` over n samples. */
static struct ghp_local conv(int64_t n)
{
    struct ghp_local local = {.op = GHP_OP_CONV2D,
                              .n = n,
                              .c = 8,
                              .h = 4,
                              .w = 4,
                              .k = 16,
                              .p = 4,
                              .q = 4,
                              .n_inputs = 1};

    local.window = (struct ghp_window){3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, false};
    return local;
}

/* The key of conv(n). */
static const char *conv_key(int64_t n, char key[GHP_KEY_BYTES])
{
    struct ghp_local local = conv(n);

    ghp_local_key(&local, key);
    return key;
}

static void check_op(const struct ghp_profile *profile, int64_t n, double seconds,
                     enum ghp_source source)
{
    struct ghp_local local = conv(n);
    struct ghp_cost cost;

    if (!CHECK_STATUS(ghp_profile_op(profile, &local, GHP_PASS_FORWARD, &cost), GHP_OK)) return;
    CHECK_NEAR(cost.seconds, seconds, 1e-15);
    CHECK_TEXT(ghp_source_name(cost.source), ghp_source_name(source));
}

static void test_ops(void)
{
    struct ghp_profile profile = empty();
    struct ghp_local local = conv(4);
    char key[GHP_KEY_BYTES];
    struct ghp_cost cost;
    int64_t bytes;

    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_STATUS(ghp_profile_op(&profile, &local, GHP_PASS_FORWARD, &cost), GHP_ERR_MISSING);
    CHECK_MESSAGE("measure it with ghp-profile");
    profile.analytic.flops_per_s = 1e9;
    check_op(&profile, 4, 4 * 2 * 16 * 16 * 72 / 1e9, GHP_SOURCE_ANALYTIC);
    CHECK_STATUS(ghp_profile_scratch(&profile, &local, GHP_PASS_FORWARD, &bytes), GHP_OK);
    CHECK_EQ(bytes, 0);
    profile.analytic.memory_Bps = 1; /* very slow: the larger of the two */
    CHECK_STATUS(ghp_profile_op(&profile, &local, GHP_PASS_FORWARD, &cost), GHP_OK);
    CHECK_NEAR(cost.seconds, (double)ghp_local_bytes(&local, GHP_PASS_FORWARD, 4), 1e-9);

    add_op(&profile, conv_key(8, key), 3e-3, 800);
    add_op(&profile, "conv2d n4 c9 h4 w4 k16", 1.0, 0); /* other shapes as well */
    add_op(&profile, "conv2d n7", 1.0, 0);
    add_op(&profile, "conv2d nx c8", 1.0, 0);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    check_op(&profile, 8, 3e-3, GHP_SOURCE_MEASURED);
    check_op(&profile, 4, 1.5e-3, GHP_SOURCE_ANALYTIC); /* proportional */
    check_op(&profile, 16, 6e-3, GHP_SOURCE_ANALYTIC);

    add_op(&profile, conv_key(16, key), 5e-3, 1600);
    add_op(&profile, conv_key(128, key), 30e-3, 1600);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    check_op(&profile, 16, 5e-3, GHP_SOURCE_MEASURED);
    check_op(&profile, 12, 4e-3, GHP_SOURCE_INTERPOLATED); /* 1 ms + n / 4 */
    check_op(&profile, 4, 2e-3, GHP_SOURCE_ANALYTIC);
    check_op(&profile, 1, 1.25e-3, GHP_SOURCE_ANALYTIC);
    check_op(&profile, 240, 55e-3, GHP_SOURCE_ANALYTIC); /* the nearest two: 16 and 128 */
    local = conv(12);
    CHECK_STATUS(ghp_profile_scratch(&profile, &local, GHP_PASS_FORWARD, &bytes), GHP_OK);
    CHECK_EQ(bytes, 1200);

    add_op(&profile, conv_key(8, key), 9e-3,
           0); /* replaces; noise now makes the smaller batch slower */
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_EQ(profile.n_ops, 6);
    check_op(&profile, 4, 9e-3, GHP_SOURCE_ANALYTIC);
    CHECK(ghp_profile_find(&profile, conv_key(8, key), GHP_PASS_BACKWARD_DATA) == NULL);
    ghp_profile_release(&profile);
}

static double comm_s(const struct ghp_profile *profile, int64_t bytes, struct ghp_ranks ranks,
                     enum ghp_source source)
{
    struct ghp_cost cost = {0};

    CHECK_STATUS(ghp_profile_comm(profile, GHP_COMM_ALL_REDUCE, bytes, ranks, 16, &cost), GHP_OK);
    CHECK_TEXT(ghp_source_name(cost.source), ghp_source_name(source));
    return cost.seconds;
}

static double analytic_s(const struct ghp_profile *profile, int64_t bytes, struct ghp_ranks ranks)
{
    return ghp_machine_comm_s(&profile->machine, GHP_COMM_ALL_REDUCE, bytes, ranks, 16);
}

/* The analytic model's seconds without latency. */
static double wire_s(const struct ghp_profile *profile, struct ghp_ranks ranks)
{
    struct ghp_machine machine = profile->machine; /* borrows the names */

    machine.intra.latency_s = machine.inter.latency_s = 0;
    return ghp_machine_comm_s(&machine, GHP_COMM_ALL_REDUCE, 1 << 20, ranks, 16);
}

static void test_comms(void)
{
    struct ghp_profile profile = empty();
    struct ghp_ranks four = {.count = 4, .stride = 1}, two = {.count = 2, .stride = 8},
                     alone = {.first = 3, .count = 1, .stride = 1};
    struct ghp_cost cost;
    double load;

    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_NEAR(comm_s(&profile, 1 << 20, four, GHP_SOURCE_ANALYTIC),
               analytic_s(&profile, 1 << 20, four), 0);
    CHECK_NEAR(comm_s(&profile, 1 << 20, alone, GHP_SOURCE_MEASURED), 0, 0);
    add_comm(&profile, four, 1 << 20, 4e-3);
    add_comm(&profile, four, 1 << 16, 1e-3);
    add_comm(&profile, (struct ghp_ranks){.count = 8, .stride = 1}, 1 << 16, 1.0);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_NEAR(comm_s(&profile, 1 << 16, four, GHP_SOURCE_MEASURED), 1e-3, 0);
    CHECK_NEAR(comm_s(&profile, 1 << 18, four, GHP_SOURCE_INTERPOLATED), 1.6e-3, 1e-15);
    /* beyond the end: the line through (64 KiB, 1 ms) and (1 MiB, 4 ms) */
    CHECK_NEAR(comm_s(&profile, 1 << 22, four, GHP_SOURCE_ANALYTIC), 13.6e-3, 1e-15);
    /* a table of one entry has no line: in proportion to the analytic model */
    CHECK_NEAR(
        comm_s(&profile, 1 << 18, (struct ghp_ranks){.count = 8, .stride = 1}, GHP_SOURCE_ANALYTIC),
        analytic_s(&profile, 1 << 18, (struct ghp_ranks){.count = 8, .stride = 1}) /
            analytic_s(&profile, 1 << 16, (struct ghp_ranks){.count = 8, .stride = 1}),
        1e-12);
    CHECK_NEAR(comm_s(&profile, 1 << 10, four, GHP_SOURCE_ANALYTIC),
               1e-3 * analytic_s(&profile, 1 << 10, four) / analytic_s(&profile, 1 << 16, four),
               1e-15);
    /* another count: the nearest table, where it loads the link as much */
    load = (1 << 18) * wire_s(&profile, (struct ghp_ranks){.count = 2, .stride = 1}) /
           wire_s(&profile, four);
    CHECK_NEAR(
        comm_s(&profile, 1 << 18, (struct ghp_ranks){.count = 2, .stride = 1}, GHP_SOURCE_ANALYTIC),
        1e-3 + (load - 0x1p16) / (0x1p20 - 0x1p16) * 3e-3, 1e-8);
    /* another operation over the same groups: a gather is half a reduction */
    CHECK_STATUS(ghp_profile_comm(&profile, GHP_COMM_ALL_GATHER, 1 << 18, four, 16, &cost), GHP_OK);
    CHECK_NEAR(cost.seconds, 0.8e-3, 1e-15);
    CHECK_EQ(cost.source, GHP_SOURCE_ANALYTIC);
    profile.machine.inter.bandwidth_Bps = 0;
    CHECK_NEAR(comm_s(&profile, 1 << 18, four, GHP_SOURCE_INTERPOLATED), 1.6e-3, 1e-15);
    CHECK_STATUS(ghp_profile_comm(&profile, GHP_COMM_ALL_REDUCE, 8, two, 16, &cost),
                 GHP_ERR_MISSING);
    CHECK_MESSAGE("set bandwidth_Bps");
    CHECK_STATUS(ghp_profile_comm(&profile, GHP_COMM_ALL_GATHER, 8, four, 16, &cost),
                 GHP_ERR_MISSING);
    ghp_profile_release(&profile);
}

/* A table of short messages continues at the rate of long ones, and the time by which a short one passed faster is
 * owed. */
static void test_queue(void)
{
    struct ghp_profile profile = empty();
    const struct ghp_ranks four = {.count = 4, .stride = 1}, two = {.count = 2, .stride = 1};
    const double rise = 2 * 0.75 / 1e8; /* of a sum over four at 1e8 bytes/s */
    struct ghp_cost cost;

    add_comm(&profile, four, 1 << 14, 1e-4);
    add_comm(&profile, four, 1 << 16, 3e-4);
    profile.machine.inter.asymptotic_Bps = 1e8;
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_NEAR(comm_s(&profile, 1 << 18, four, GHP_SOURCE_ANALYTIC), 3e-4 + rise * 3 * 0x1p16,
               1e-15);
    CHECK_STATUS(ghp_profile_comm(&profile, GHP_COMM_ALL_REDUCE, 1 << 16, four, 16, &cost), GHP_OK);
    CHECK(cost.crosses);
    CHECK_NEAR(cost.seconds + cost.owed_s, rise * 0x1p16, 1e-15);
    /* as much of a table that stands in: half the exchanges of as many bytes */
    CHECK_STATUS(ghp_profile_comm(&profile, GHP_COMM_ALL_GATHER, 1 << 16, four, 16, &cost), GHP_OK);
    CHECK_NEAR(cost.seconds + cost.owed_s, rise * 0x1p16 / 2, 1e-15);
    /* a table of one entry */
    add_comm(&profile, two, 1 << 16, 1e-3);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_NEAR(comm_s(&profile, 1 << 17, two, GHP_SOURCE_ANALYTIC), 1e-3 + 0x1p16 / 1e8, 1e-15);
    /* what takes longer than the rate allows owes nothing, nor does what stays in a node */
    CHECK_STATUS(ghp_profile_comm(&profile, GHP_COMM_ALL_REDUCE, 1 << 16, two, 16, &cost), GHP_OK);
    CHECK_NEAR(cost.owed_s, 0, 0);
    profile.machine.nodes = 1;
    profile.machine.intra.asymptotic_Bps = 1e8;
    CHECK_STATUS(ghp_profile_comm(&profile, GHP_COMM_ALL_REDUCE, 1 << 16, four, 16, &cost), GHP_OK);
    CHECK(!cost.crosses);
    CHECK_NEAR(cost.owed_s, 0, 0);
    ghp_profile_release(&profile);
}

/* Without a table of its own an operation is read from the same groups if it exchanges as often, else from other groups
 * that cross the same link. Halves and wholes stand in for each other only if nothing else is near. */
static void test_stand_ins(void)
{
    static const struct ghp_comm_entry entries[] = {
        {.op = GHP_COMM_ALL_REDUCE, .count = 2, .stride = 8, .bytes = 1 << 16, .seconds = 1e-3},
        {.op = GHP_COMM_REDUCE_SCATTER, .count = 2, .stride = 4, .bytes = 1 << 16, .seconds = 7e-4},
        {.op = GHP_COMM_ALL_TO_ALL, .count = 2, .stride = 8, .bytes = 1 << 16, .seconds = 5e-4},
        {.op = GHP_COMM_ALL_GATHER, .count = 8, .stride = 1, .bytes = 1 << 16, .seconds = 2e-3}};
    const struct ghp_ranks pairs = {.count = 2, .stride = 4}, eight = {.count = 8, .stride = 1};
    struct ghp_profile profile = empty();
    struct ghp_comm_interpolation points;

    profile.machine.nodes = 16; /* a worker each */
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        CHECK_STATUS(ghp_profile_add_comm(&profile, &entries[i]), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    points = ghp_profile_comm_points(&profile, GHP_COMM_ALL_REDUCE, 1 << 16, pairs, 16);
    CHECK_EQ(points.entry[0]->op, GHP_COMM_ALL_REDUCE); /* not twice the scatter */
    CHECK_NEAR(points.factor, 1, 0);
    points = ghp_profile_comm_points(&profile, GHP_COMM_ALL_GATHER, 1 << 16, pairs, 16);
    CHECK_EQ(points.entry[0]->op, GHP_COMM_REDUCE_SCATTER); /* of the same groups */
    points = ghp_profile_comm_points(&profile, GHP_COMM_REDUCE_SCATTER, 1 << 16,
                                     (struct ghp_ranks){.count = 2, .stride = 8}, 16);
    CHECK_EQ(points.entry[0]->op, GHP_COMM_ALL_TO_ALL); /* not half the sum of the same groups */
    points = ghp_profile_comm_points(&profile, GHP_COMM_ALL_REDUCE, 1 << 16, eight, 16);
    CHECK_EQ(points.entry[0]->op, GHP_COMM_ALL_GATHER); /* nearer than the sum over two */
    CHECK_NEAR(points.factor, 2, 0);
    ghp_profile_release(&profile);
}

/* What contention adds falls with those that are elsewhere, and scales with what is picked. */
static void test_contention(void)
{
    struct ghp_profile profile = empty();
    char key[GHP_KEY_BYTES];
    struct ghp_op_entry entry = {.key = (char *)(uintptr_t)conv_key(8, key),
                                 .pass = GHP_PASS_FORWARD,
                                 .seconds = 3e-3,
                                 .source = GHP_SOURCE_MEASURED,
                                 .contention = 0.5};
    struct ghp_instr instr = {
        .kind = GHP_INSTR_COMPUTE, .pass = GHP_PASS_FORWARD, .local = conv(8)};
    struct ghp_cost cost;

    CHECK_STATUS(ghp_profile_add_op(&profile, &entry), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_STATUS(ghp_profile_cost(&profile, &instr, 4, &cost), GHP_OK);
    CHECK_NEAR(ghp_cost_contended(&instr, &cost, (struct ghp_contention){4, 4, 1}), 3e-3, 1e-15);
    CHECK_NEAR(ghp_cost_contended(&instr, &cost, (struct ghp_contention){1, 4, 1}), 1.5e-3, 1e-15);
    CHECK_NEAR(ghp_cost_contended(&instr, &cost, (struct ghp_contention){3, 4, 2}), 1.25e-3, 1e-15);
    CHECK_NEAR(ghp_cost_contended(&instr, &cost, (struct ghp_contention){1, 1, 1}), 3e-3, 1e-15);
    instr.local = conv(4); /* in proportion */
    CHECK_STATUS(ghp_profile_cost(&profile, &instr, 4, &cost), GHP_OK);
    CHECK_NEAR(ghp_cost_contended(&instr, &cost, (struct ghp_contention){1, 4, 1}), 0.75e-3, 1e-15);
    /* on the lines: 5 ms together and 4 alone at 16, so 4 and 2.75 at 12 */
    conv_key(16, key);
    entry.seconds = 5e-3;
    entry.contention = 0.2;
    CHECK_STATUS(ghp_profile_add_op(&profile, &entry), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    instr.local = conv(12);
    CHECK_STATUS(ghp_profile_cost(&profile, &instr, 4, &cost), GHP_OK);
    CHECK_NEAR(cost.seconds, 4e-3, 1e-15);
    CHECK_NEAR(ghp_cost_contended(&instr, &cost, (struct ghp_contention){1, 4, 1}), 2.75e-3, 1e-15);
    /* other operations cost more than its own: 6 ms among them at 16, and 3 at 8, so 4.5 at 12 */
    profile.ops[0].contention = profile.ops[1].contention = 0;
    (profile.ops[0].seconds > 4e-3 ? &profile.ops[0] : &profile.ops[1])->contention = -0.2;
    CHECK_STATUS(ghp_profile_cost(&profile, &instr, 4, &cost), GHP_OK);
    CHECK_NEAR(ghp_cost_contended(&instr, &cost, (struct ghp_contention){1, 4, 1}), 4.5e-3, 1e-15);
    ghp_profile_release(&profile);
}

static void test_instructions(void)
{
    struct ghp_profile profile = empty();
    struct ghp_instr instr = {
        .kind = GHP_INSTR_UPDATE, .bytes = 1000, .ranks = {.count = 1, .stride = 1}};
    struct ghp_cost cost;

    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_STATUS(ghp_profile_cost(&profile, &instr, 4, &cost), GHP_OK);
    CHECK_NEAR(cost.seconds, 0, 0); /* bandwidth 0: free */
    profile.update[0] = (struct ghp_rate){1e-6, 1e9, 0.2, GHP_SOURCE_MEASURED};
    profile.copy = (struct ghp_rate){0, 1e9, 0.2, GHP_SOURCE_MEASURED};
    CHECK_STATUS(ghp_profile_cost(&profile, &instr, 4, &cost), GHP_OK);
    CHECK_NEAR(cost.seconds, 2e-6, 1e-20);
    instr = (struct ghp_instr){
        .kind = GHP_INSTR_RESHARD, .comm = GHP_COMM_ALL_GATHER, .bytes = 1000, .copy_bytes = 500};
    instr.ranks = (struct ghp_ranks){.count = 2, .stride = 1};
    CHECK_STATUS(ghp_profile_cost(&profile, &instr, 4, &cost), GHP_OK);
    CHECK_NEAR(cost.seconds, 0.5 * 1000 / 1.25e9 + 20e-6 + 0.5e-6, 1e-18);
    CHECK_TEXT(ghp_source_name(cost.source), "analytic");
    instr.comm = GHP_COMM_NONE;
    CHECK_STATUS(ghp_profile_cost(&profile, &instr, 4, &cost), GHP_OK);
    CHECK_NEAR(cost.seconds, 0.5e-6, 1e-20);
    CHECK_TEXT(ghp_source_name(cost.source), "measured");
    ghp_profile_release(&profile);
}

/* Entries of all kinds: exact, in a family, in no family; tables of collectives that fit and that do not. */
static struct ghp_profile varied(const struct ghp_program *program)
{
    struct ghp_profile profile = empty();
    int odd = 0;

    profile.analytic.flops_per_s = 1e9;
    profile.analytic.memory_Bps = 1e9;
    profile.copy = profile.update[0] = (struct ghp_rate){1e-6, 1e9, 0.1, GHP_SOURCE_MEASURED};
    for (int i = 0; i < program->n_instrs; i++) {
        struct ghp_instr instr = program->instrs[i];
        char key[GHP_KEY_BYTES];
        struct ghp_op_entry op = {.key = key,
                                  .pass = instr.pass,
                                  .spread = 0.1,
                                  .seconds = 1e-3 + 1e-5 * i,
                                  .scratch_bytes = 64 * i};

        if (instr.kind != GHP_INSTR_COMPUTE) continue;
        if (++odd % 4 == 0) continue; /* left to the analytic model */
        for (int64_t n = instr.local.n * (odd % 4 == 1 ? 1 : 3); n < 100; n *= 2) {
            instr.local.n = n;
            ghp_local_key(&instr.local, key);
            op.seconds *= 1.9;
            CHECK_STATUS(ghp_profile_add_op(&profile, &op), GHP_OK);
        }
    }
    for (int count = 2; count <= 4; count += 2)
        for (int64_t bytes = 64; bytes < 1 << 20; bytes *= 4)
            for (int op = GHP_COMM_ALL_REDUCE; op < GHP_COMM_ALL_TO_ALL; op++)
                CHECK_STATUS(
                    ghp_profile_add_comm(
                        &profile, &(struct ghp_comm_entry){.op = (enum ghp_comm_op)op,
                                                           .count = count,
                                                           .stride = 1,
                                                           .bytes = bytes,
                                                           .seconds = 1e-5 + 1e-9 * (double)bytes}),
                    GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    return profile;
}

static void test_subset(void)
{
    struct ghp_split splits[8] = {{.kind = GHP_SPLIT_DATA, .tp_size = 1}};
    struct ghp_profile profile, subset, again;
    struct ghp_program program;
    struct ghp_model model;
    struct ghp_lowering lowering = {.model = &model, .problem = {8, 16}, .element_bytes = 4};

    CHECK_STATUS(ghp_model_parse(net, "net", &model), GHP_OK);
    CHECK_EQ(model.n_layers, 8);
    for (int i = 0; i < model.n_layers; i++)
        splits[i] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    splits[ghp_model_find(&model, "l")] = (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 4};
    splits[ghp_model_find(&model, "c")] = (struct ghp_split){.kind = GHP_SPLIT_IN, .tp_size = 2};
    if (!CHECK_STATUS(ghp_lower(&lowering, splits, 0, &program), GHP_OK)) return;
    profile = varied(&program);
    CHECK_STATUS(ghp_profile_subset(&profile, &program, &subset), GHP_OK);
    CHECK(subset.n_ops > 0 && subset.n_ops < profile.n_ops);
    CHECK(subset.n_comms > 0 && subset.n_comms < profile.n_comms);
    for (int i = 0; i < program.n_instrs; i++) {
        struct ghp_cost a = {0}, b = {.seconds = 1, .spread = 1};

        CHECK_STATUS(ghp_profile_cost(&profile, &program.instrs[i], 8, &a), GHP_OK);
        CHECK_STATUS(ghp_profile_cost(&subset, &program.instrs[i], 8, &b), GHP_OK);
        CHECK(memcmp(&a, &b, sizeof a.seconds + sizeof a.spread) == 0 && a.source == b.source);
        if (program.instrs[i].kind != GHP_INSTR_COMPUTE) continue;
        int64_t x = 0, y = 1;

        CHECK_STATUS(
            ghp_profile_scratch(&profile, &program.instrs[i].local, program.instrs[i].pass, &x),
            GHP_OK);
        CHECK_STATUS(
            ghp_profile_scratch(&subset, &program.instrs[i].local, program.instrs[i].pass, &y),
            GHP_OK);
        CHECK_EQ(x, y);
    }
    CHECK_STATUS(ghp_profile_subset(&subset, &program, &again), GHP_OK);
    CHECK(again.hash == subset.hash && subset.hash != profile.hash);
    ghp_profile_release(&again);
    ghp_profile_release(&subset);
    ghp_profile_release(&profile);
    ghp_program_release(&program);
    ghp_model_release(&model);
}

/* Checks the formats of conv(17), as add_memory_formats() made them. */
static void check_memory_formats(const struct ghp_profile *profile)
{
    char key[GHP_KEY_BYTES];
    const struct ghp_op_entry *entry =
        ghp_profile_find(profile, conv_key(17, key), GHP_PASS_FORWARD);

    if (!CHECK(entry != NULL)) return;
    CHECK_EQ(entry->n_memory_formats, 2);
    CHECK_NEAR(entry->memory_formats[0].seconds, 1e-3 / 17, 0);
    CHECK(!entry->memory_formats[0].x && !entry->memory_formats[0].y);
    CHECK_TEXT(entry->memory_formats[0].algorithm, "direct");
    CHECK_NEAR(entry->memory_formats[1].seconds, 1e-3 / 17 / 2, 0);
    CHECK(entry->memory_formats[1].x && entry->memory_formats[1].y);
    CHECK_TEXT(entry->memory_formats[1].algorithm, "winograd");
    CHECK(ghp_profile_has_memory_formats(profile));
}

static void test_file(void)
{
    struct ghp_profile profile = empty(), again;
    char path[] = "/tmp/ghp-profile-XXXXXX", key[GHP_KEY_BYTES];
    int fd = mkstemp(path);
    double slower;

    for (int64_t n = 1; n < 40; n++) {
        add_op(&profile, conv_key(n, key), 1e-3 / (double)n, n);
        if (n == 17) add_memory_formats(&profile);
    }
    add_comm(&profile, (struct ghp_ranks){.count = 2, .stride = 1}, 1000, 1.0 / 3);
    profile.overlap.link = 1.3;
    profile.overlap.comm_long = 1.1;
    profile.overlap.queueing_delay_s = 2e-3;
    profile.overlap.arrival_delay_s = 3e-5;
    profile.analytic.spread = 0.3;
    profile.analytic.comm_spread = 0.4;
    profile.overlap.launch_delay_s = 4e-5;
    profile.speed_probe = (struct ghp_speed_probe){1e-4, 3e-3};
    profile.disturbed = 0.06;
    profile.workers = 4;
    profile.knows_has = profile.has[GHP_OP_GELU] = profile.has[GHP_OP_INPUT] = true;
    CHECK_STATUS(ghp_speeds_slow(&profile.speeds, 4, 3, 1.9, &slower), GHP_OK);
    CHECK_STATUS(ghp_profile_finalize(&profile), GHP_OK);
    CHECK_STATUS(ghp_profile_save(path, &profile), GHP_OK);
    CHECK_STATUS(ghp_profile_load(path, &again), GHP_OK);
    CHECK(again.hash == profile.hash && again.finalized);
    CHECK_EQ(again.n_ops, 39);
    CHECK_NEAR(again.comms[0].seconds, 1.0 / 3, 0);
    CHECK_NEAR(again.overlap.link, 1.3, 0);
    CHECK_NEAR(again.overlap.comm_long, 1.1, 0);
    CHECK_NEAR(again.overlap.queueing_delay_s, 2e-3, 0);
    CHECK_NEAR(again.overlap.arrival_delay_s, 3e-5, 0);
    CHECK_NEAR(again.analytic.spread, 0.3, 0);
    CHECK_NEAR(again.analytic.comm_spread, 0.4, 0);
    CHECK_NEAR(again.overlap.launch_delay_s, 4e-5, 0);
    CHECK_NEAR(again.speed_probe.compute_s, 1e-4, 0);
    CHECK_NEAR(again.disturbed, 0.06, 0);
    CHECK_NEAR(again.speed_probe.memory_s, 3e-3, 0);
    CHECK(again.knows_has && again.has[GHP_OP_GELU] && !again.has[GHP_OP_LRN]);
    CHECK_EQ(again.speeds.n, 4);
    CHECK_NEAR(again.speeds.of[0], profile.speeds.of[0], 0);
    CHECK_NEAR(again.speeds.of[3], 1, 0);
    check_memory_formats(&again);
    ghp_profile_release(&again);
    CHECK_STATUS(ghp_profile_save("/nonexistent/p.json", &profile), GHP_ERR_IO);
    ghp_profile_release(&profile);
    close(fd);
    unlink(path);
}

/* Operations are refused by name where it is known that they are not there, and only there. */
static void test_operations(void)
{
    struct ghp_profile profile = empty();
    struct ghp_model model;

    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/lenet5.json", &model), GHP_OK);
    CHECK_STATUS(ghp_profile_check_model(&profile, &model), GHP_OK);
    profile.knows_has = true;
    for (int op = 0; op < GHP_OP_COUNT; op++)
        profile.has[op] = true;
    CHECK_STATUS(ghp_profile_check_model(&profile, &model), GHP_OK);
    profile.has[GHP_OP_GELU] = false;
    CHECK_STATUS(ghp_profile_check_model(&profile, &model), GHP_OK);
    profile.has[GHP_OP_LINEAR] = false;
    CHECK_STATUS(ghp_profile_check_model(&profile, &model), GHP_ERR_INPUT);
    CHECK_MESSAGE("has no 'linear', which layer 'fc1' is");
    ghp_model_release(&model);
    ghp_profile_release(&profile);
}

/* Saves a profile with one text replaced by another, and loads that. */
static void refuse(const char *from, const char *to, const char *message)
{
    struct ghp_profile profile = empty(), again;
    char path[] = "/tmp/ghp-profile-XXXXXX", text[8192] = "", edited[8192], key[GHP_KEY_BYTES];
    int fd = mkstemp(path);
    char *place;
    FILE *file;

    add_op(&profile, conv_key(1, key), 1e-3, 0);
    add_memory_formats(&profile);
    add_op(&profile, conv_key(2, key), 1e-3, 0);
    add_comm(&profile, (struct ghp_ranks){.count = 2, .stride = 1}, 1000, 1e-3);
    CHECK_STATUS(ghp_profile_save(path, &profile), GHP_OK);
    ghp_profile_release(&profile);
    CHECK(read(fd, text, 1) >= 0);
    file = fopen(path, "r+");
    CHECK(file != NULL && fread(text, 1, sizeof text - 1, file) > 0);
    place = strstr(text, from);
    if (CHECK(place != NULL)) {
        snprintf(edited, sizeof edited, "%.*s%s%s", (int)(place - text), text, to,
                 place + strlen(from));
        rewind(file);
        CHECK(fwrite(edited, 1, strlen(edited), file) == strlen(edited) &&
              ftruncate(fileno(file), (off_t)strlen(edited)) == 0);
    }
    fclose(file);
    CHECK(ghp_profile_load(path, &again) != GHP_OK);
    CHECK_MESSAGE(message);
    CHECK(again.ops == NULL);
    close(fd);
    unlink(path);
}

CHECK_TEST(profile)
{
    test_ops();
    test_comms();
    test_queue();
    test_stand_ins();
    test_contention();
    test_instructions();
    test_subset();
    test_file();
    test_operations();
    refuse("\"backend\"", "\"backends\"", "did you mean 'backend'");
    refuse("\"element_bytes\": 4", "\"element_bytes\": 5", "use 2, 4 or 8");
    refuse("\"mean_s\"", "\"seconds\"", "'operations[0]");
    refuse("measured", "guessed", "use one of measured, interpolated, analytic");
    refuse("conv2d n1 ", "conv2d n2 ", "has two entries of 'conv2d n2");
    refuse("\"x\": \"nChw16c\", \"y\": \"nChw16c\"", "\"x\": \"plain\", \"y\": \"plain\"",
           "give each pair once");
    refuse("\"x\": \"nChw16c\"", "\"x\": \"odd\"", "'operations[0].memory_formats[1].x'");
    refuse("\"algorithm\": \"direct\"", "\"algorithm\": 3", "the name of an algorithm is a text");
    refuse("\"ranks\": 2", "\"ranks\": 1", "'collectives[0].ranks'");
    refuse("\"overlap\": {\"compute\": 1.0", "\"overlap\": {\"compute\": 0.5", "from 1 to");
    refuse("\"rates\"", "\"backend_operations\": [\"relu\", \"rely\"], \"rates\"",
           "this is not an operation");
    refuse("\"rates\"", "\"worker_speed\": [2, 3], \"rates\"", "divide all by 2");
    refuse("\"rates\"", "\"worker_speed\": [1, 0.5], \"rates\"", "from 1 to 1000");
    refuse("\"rates\"", "\"worker_speed\": [1], \"rates\"", "one for each worker");
    return check_end();
}
