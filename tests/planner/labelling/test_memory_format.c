/* tests/planner/labelling/test_memory_format.c - which tensors are decided to lie blocked, against all labellings of
 * small networks, each lowered and costed by itself, also with layers split by channels; what passes between stages
 * stays plain; a profile that does not say enough decides nothing.
 *
 * Costs are whole numbers of nanoseconds, some thousand a step: their sums in any order agree to 1e-12. */
#include "core/plan/plan.h"
#include "planner/labelling/memory_format.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 20, ROUNDS = 16 };

static const char *const nets[] = {
    "{\"format\": \"ghp.model/1\", \"name\": \"chain\", \"input\": {\"channels\": 3, \"height\": "
    "8, "
    "\"width\": 8}, \"layers\": ["
    "{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 16, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"r\", \"op\": \"relu\"},"
    "{\"name\": \"b\", \"op\": \"conv2d\", \"channels\": 32, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"p\", \"op\": \"max_pool\", \"kernel\": 2, \"stride\": 2},"
    "{\"name\": \"c\", \"op\": \"conv2d\", \"channels\": 32, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"d\", \"op\": \"conv2d\", \"channels\": 48, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"flat\", \"op\": \"flatten\"},"
    "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 8},"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}",
    "{\"format\": \"ghp.model/1\", \"name\": \"joins\", \"input\": {\"channels\": 3, \"height\": "
    "8, "
    "\"width\": 8}, \"layers\": ["
    "{\"name\": \"a\", \"op\": \"conv2d\", \"channels\": 16, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"b\", \"op\": \"conv2d\", \"channels\": 16, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"c\", \"op\": \"conv2d\", \"channels\": 16, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"s\", \"op\": \"add\", \"inputs\": [\"c\", \"a\"]},"
    "{\"name\": \"d\", \"op\": \"conv2d\", \"channels\": 32, \"kernel\": 3, \"pad\": 1},"
    "{\"name\": \"e\", \"op\": \"conv2d\", \"channels\": 32, \"kernel\": 1, \"inputs\": [\"s\"]},"
    "{\"name\": \"t\", \"op\": \"add\", \"inputs\": [\"d\", \"e\"]},"
    "{\"name\": \"g\", \"op\": \"global_avg_pool\"},"
    "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 8},"
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}"};

static uint64_t state = 7;

static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % n;
}

struct bench {
    struct ghp_model model;
    struct ghp_profile profile;
    struct ghp_split splits[MOST_LAYERS];
    bool nchw16c[MOST_LAYERS];
    int workers;
};

static struct ghp_lowering lowering_of(const struct bench *b, const bool *nchw16c, int workers)
{
    return (struct ghp_lowering){
        .model = &b->model, .problem = {workers, 8}, .element_bytes = 4, .nchw16c = nchw16c};
}

static bool may_block(const struct ghp_local *local)
{
    return local->op == GHP_OP_CONV2D || local->op == GHP_OP_RELU || local->op == GHP_OP_BIAS ||
           local->op == GHP_OP_ADD || local->op == GHP_OP_MAX_POOL || local->op == GHP_OP_FLATTEN ||
           local->op == GHP_OP_GLOBAL_AVG_POOL;
}

static void put_format(struct ghp_op_entry *entry, bool x, bool y)
{
    entry->memory_formats[entry->n_memory_formats++] = (struct ghp_op_memory_format){
        .x = x, .y = y, .seconds = 1e-9 * (double)(1 + draw(1000)), .algorithm = "any"};
}

/* An entry with random seconds in each pair that it can have; mixed ones of convolutions not always. */
static void add_entry(struct bench *b, const struct ghp_instr *instr)
{
    const struct ghp_local *l = &instr->local;
    bool x = may_block(l) && l->h * l->w > 1 && l->c % 16 == 0,
         y = may_block(l) && l->p * l->q > 1 && l->k % 16 == 0, conv = l->op == GHP_OP_CONV2D;
    char key[GHP_KEY_BYTES];
    struct ghp_op_entry entry = {.key = key, .pass = instr->pass, .seconds = 1e-9 * draw(1000)};

    ghp_local_key(l, key);
    if (ghp_profile_find(&b->profile, key, instr->pass) != NULL) return;
    if (x || y || conv) put_format(&entry, false, false);
    if (x || y) put_format(&entry, x, y);
    if (x && y && conv && draw(4) > 0) {
        put_format(&entry, true, false);
        put_format(&entry, false, true);
    }
    CHECK_STATUS(ghp_profile_add_op(&b->profile, &entry), GHP_OK);
}

/* Adds entries of all that `workers` workers compute. */
static void add_entries(struct bench *b, int workers)
{
    struct ghp_lowering lowering = lowering_of(b, NULL, workers);
    struct ghp_program program;

    b->workers = workers;
    if (!CHECK_STATUS(ghp_lower(&lowering, b->splits, 0, &program), GHP_OK)) exit(1);
    for (int i = 0; i < program.n_instrs; i++)
        if (program.instrs[i].kind == GHP_INSTR_COMPUTE) add_entry(b, &program.instrs[i]);
    ghp_program_release(&program);
    CHECK_STATUS(ghp_profile_finalize(&b->profile), GHP_OK);
}

static void open_bench(struct bench *b, const char *net)
{
    *b = (struct bench){0};
    if (!CHECK_STATUS(ghp_model_parse(net, "net", &b->model), GHP_OK)) exit(1);
    CHECK_STATUS(ghp_profile_init(&b->profile, "onednn", "fast", 4), GHP_OK);
    for (int v = 0; v < b->model.n_layers; v++)
        b->splits[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    add_entries(b, 1);
}

static void close_bench(struct bench *b)
{
    ghp_profile_release(&b->profile);
    ghp_model_release(&b->model);
}

static bool has_one_cost(const struct ghp_op_entry *entry)
{
    return strncmp(entry->key, "conv2d", 6) == 0 && entry->n_memory_formats == 0;
}

/* Seconds of a step's passes with these labels; INFINITY if an executor could not keep to them. */
static double seconds_of(const struct bench *b, const bool *nchw16c)
{
    struct ghp_lowering lowering = lowering_of(b, nchw16c, b->workers);
    struct ghp_program program;
    double sum = 0;

    for (int v = 0; v < b->model.n_layers; v++) {
        const struct ghp_layer *l = &b->model.layers[v];

        if (nchw16c[v] && (l->op == GHP_OP_INPUT || l->out.h * l->out.w == 1)) return INFINITY;
        for (int i = 1; i < l->n_inputs; i++)
            if (nchw16c[l->inputs[i]] != nchw16c[l->inputs[0]]) return INFINITY;
        if (l->n_inputs > 0 && l->op != GHP_OP_CONV2D && l->out.h * l->out.w > 1 &&
            nchw16c[v] != nchw16c[l->inputs[0]])
            return INFINITY;
    }
    CHECK_STATUS(ghp_lower(&lowering, b->splits, 0, &program), GHP_OK);
    for (int i = 0; i < program.n_instrs; i++) {
        const struct ghp_instr *instr = &program.instrs[i];
        struct ghp_cost cost = {0};
        char key[GHP_KEY_BYTES];

        if (instr->kind != GHP_INSTR_COMPUTE) continue;
        CHECK(instr->nchw16c.requested);
        ghp_local_key(&instr->local, key);
        if ((instr->nchw16c.x || instr->nchw16c.y) &&
            !has_one_cost(ghp_profile_find(&b->profile, key, instr->pass)) &&
            ghp_op_entry_in(ghp_profile_find(&b->profile, key, instr->pass), instr->nchw16c) ==
                NULL)
            sum = INFINITY;
        CHECK_STATUS(ghp_profile_cost(&b->profile, instr, b->workers, &cost), GHP_OK);
        sum += cost.seconds;
    }
    ghp_program_release(&program);
    return sum;
}

static double least_of_all(const struct bench *b)
{
    double least = INFINITY;

    for (unsigned bits = 0; bits < 1u << b->model.n_layers; bits += 2) { /* the input is plain */
        bool nchw16c[MOST_LAYERS];

        for (int v = 0; v < b->model.n_layers; v++)
            nchw16c[v] = (bits >> v & 1) != 0;
        least = fmin(least, seconds_of(b, nchw16c));
    }
    return least;
}

static bool decide(struct bench *b)
{
    struct ghp_lowering lowering = lowering_of(b, NULL, b->workers);
    bool choice = false;

    CHECK_STATUS(ghp_memory_format_decide(&lowering, b->splits, &b->profile, b->nchw16c, &choice),
                 GHP_OK);
    CHECK(ghp_plan_formats_hold(&lowering, b->nchw16c));
    return choice;
}

static void test_all(void)
{
    int nchw16c = 0, plain = 0, borders = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct bench b;
        double least;

        open_bench(&b, nets[round % 2]);
        CHECK(decide(&b));
        least = least_of_all(&b);
        CHECK(least > 0 && !isinf(least));
        CHECK_NEAR(seconds_of(&b, b.nchw16c), least, 1e-12 * least);
        for (int v = 1; v < b.model.n_layers; v++) {
            const struct ghp_layer *l = &b.model.layers[v];

            *(b.nchw16c[v] ? &nchw16c : &plain) += 1;
            borders += l->op == GHP_OP_CONV2D && b.nchw16c[v] != b.nchw16c[l->inputs[0]];
        }
        close_bench(&b);
    }
    CHECK(nchw16c > 0 && plain > 0 && borders > 0);
}

/* What a layer split by channels reads and makes lies as all does, where its slices are whole blocks: 16 and 8
 * channels of 32. */
static void test_split(enum ghp_split_kind kind, int workers)
{
    int nchw16c = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct bench b;
        double least;
        int c;

        open_bench(&b, nets[0]);
        c = ghp_model_find(&b.model, "c");
        b.splits[c] = (struct ghp_split){.kind = kind, .tp_size = workers};
        add_entries(&b, workers);
        CHECK(decide(&b));
        least = least_of_all(&b);
        CHECK(least > 0 && !isinf(least));
        CHECK_NEAR(seconds_of(&b, b.nchw16c), least, 1e-12 * least);
        nchw16c += b.nchw16c[c];
        close_bench(&b);
    }
    CHECK(nchw16c > 0);
}

/* A slice that does not fill whole blocks lies plain, and is costed so; a tensor that has no other form is not said to
 * be blocked. */
static void test_slices(void)
{
    struct bench b;
    struct ghp_program program;
    bool all[MOST_LAYERS];
    int first, found = 0;

    open_bench(&b, nets[0]);
    memset(all, 1, sizeof all);
    first = ghp_model_find(&b.model, "a"); /* 16 channels */
    for (int v = first; v < ghp_model_find(&b.model, "b"); v++)
        b.splits[v] = (struct ghp_split){
            .kind = b.model.layers[v].op == GHP_OP_CONV2D ? GHP_SPLIT_OUT : GHP_SPLIT_CHANNEL,
            .tp_size = 2};
    b.splits[ghp_model_find(&b.model, "b")] =
        (struct ghp_split){.kind = GHP_SPLIT_IN, .tp_size = 2};
    add_entries(&b, 2);
    decide(&b);
    CHECK(!b.nchw16c[first] && !b.nchw16c[first + 1]);
    struct ghp_lowering lowering = lowering_of(&b, all, 2);
    if (!CHECK_STATUS(ghp_lower(&lowering, b.splits, 0, &program), GHP_OK)) exit(1);
    for (int i = 0; i < program.n_instrs; i++) {
        const struct ghp_instr *instr = &program.instrs[i];

        if (instr->kind != GHP_INSTR_COMPUTE) continue;
        CHECK_EQ(instr->nchw16c.x, instr->local.c % 16 == 0);
        CHECK_EQ(instr->nchw16c.y, instr->local.k % 16 == 0);
        found += instr->local.c == 8 || instr->local.k == 8;
    }
    CHECK(found > 0);
    ghp_program_release(&program);
    close_bench(&b);
}

/* What passes between stages lies plain. */
static void test_stages(void)
{
    struct bench b;

    open_bench(&b, nets[0]);
    add_entries(&b, 2);
    int c = ghp_model_find(&b.model, "c");
    const struct ghp_staging staging = {
        .n = 2, .stage = {{.first_layer = 0, .workers = 1}, {.first_layer = c, .workers = 1}}};
    struct ghp_lowering lowering = lowering_of(&b, NULL, 2);
    bool choice = false;

    lowering.staging = &staging;
    CHECK_STATUS(ghp_memory_format_decide(&lowering, b.splits, &b.profile, b.nchw16c, &choice),
                 GHP_OK);
    CHECK(choice && !b.nchw16c[c - 1]);
    CHECK(ghp_plan_formats_hold(&lowering, b.nchw16c));
    b.nchw16c[c - 1] = true;
    CHECK(!ghp_plan_formats_hold(&lowering, b.nchw16c));
    lowering.staging = NULL;
    CHECK(ghp_plan_formats_hold(&lowering, b.nchw16c));
    b.nchw16c[0] = true; /* loaded */
    CHECK(!ghp_plan_formats_hold(&lowering, b.nchw16c));
    close_bench(&b);
}

/* Split by channels, a convolution of one cost is as quick either way: the others decide. */
static void test_one_cost(void)
{
    struct bench b;
    int c, found = 0;
    double least;

    open_bench(&b, nets[0]);
    c = ghp_model_find(&b.model, "c");
    b.splits[c] = (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 2};
    add_entries(&b, 2);
    for (int i = 0; i < b.profile.n_ops; i++)
        if (strstr(b.profile.ops[i].key, " c32 ") != NULL &&
            strstr(b.profile.ops[i].key, " k16 ") != NULL) {
            b.profile.ops[i].n_memory_formats = 0;
            found++;
        }
    CHECK_EQ(found, 3);
    CHECK(decide(&b));
    least = least_of_all(&b);
    CHECK_NEAR(seconds_of(&b, b.nchw16c), least, 1e-12 * least);
    close_bench(&b);
}

/* A convolution by data that nobody measured in any formats leaves all to the executor's rule; a profile without
 * formats too. */
static void test_blind(void)
{
    struct bench b;
    int i = 0;

    open_bench(&b, nets[0]);
    while (strncmp(b.profile.ops[i].key, "conv2d", 6) != 0)
        i++;
    b.profile.ops[i].n_memory_formats = 0;
    CHECK(!decide(&b));
    for (i = 0; i < b.profile.n_ops; i++)
        b.profile.ops[i].n_memory_formats = 0;
    CHECK(!decide(&b));
    for (int v = 0; v < b.model.n_layers; v++)
        CHECK(!b.nchw16c[v]);
    close_bench(&b);
}

CHECK_TEST(memory_format)
{
    test_all();
    test_split(GHP_SPLIT_OUT, 2);
    test_split(GHP_SPLIT_IN, 2);
    test_split(GHP_SPLIT_OUT, 4);
    test_split(GHP_SPLIT_IN, 4);
    test_slices();
    test_one_cost();
    test_stages();
    test_blind();
    return check_end();
}
