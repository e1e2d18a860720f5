/* tests/core/sharding/test_split.c - layouts of splits, and every layout change against what it must do to real
 * tensors.
 *
 * The oracle: tensors whose element is its own global (sample, position, channel) number are laid out by hand for every
 * worker; each change of layout is then carried out step by step on all workers and must end in the layout laid out by
 * hand. */
#include "core/sharding/split.h"
#include "core/sharding/stage.h"
#include "tests/check.h"

enum { WORKERS = 12, BATCH = 24, POSITIONS = 12, CHANNELS = 12, SAMPLE = POSITIONS * CHANNELS };

/* What one worker holds of the global BATCH x POSITIONS x CHANNELS tensor: 0 if it holds nothing. */
struct held {
    double value[BATCH][SAMPLE];
};

static struct held lay_out(struct ghp_layout layout, int rank)
{
    struct held held = {0};
    int m = layout.tp_size, member = rank % m, samples = BATCH / WORKERS * m;
    for (int n = rank / m * samples; n < (rank / m + 1) * samples; n++)
        for (int i = 0; i < SAMPLE; i++) {
            bool mine =
                (layout.kind != GHP_LAYOUT_CHANNEL || i % CHANNELS / (CHANNELS / m) == member) &&
                (layout.kind != GHP_LAYOUT_SEQUENCE || i / CHANNELS / (POSITIONS / m) == member);
            /* partial sums: member i holds (i + 1) / (1 + ... + m) of the truth */
            double part =
                layout.kind == GHP_LAYOUT_PARTIAL ? 2.0 * (member + 1) / (m * (m + 1.0)) : 1.0;
            if (mine) held.value[n][i] = part * (1.0 + n * SAMPLE + i);
        }
    return held;
}

/* Carries out one step by its definition: who gets what from whom in the subgroup. */
static void step(const struct ghp_reshard_step *s, const struct held *before, struct held *after)
{
    bool sum = s->from.kind == GHP_LAYOUT_PARTIAL;
    for (int rank = 0; rank < WORKERS; rank++) {
        struct held wanted = lay_out(s->to, rank);
        memset(&after[rank], 0, sizeof after[rank]);
        int first = rank / s->tp_size * s->tp_size;
        for (int n = 0; n < BATCH; n++)
            for (int c = 0; c < SAMPLE; c++) {
                if (wanted.value[n][c] == 0.0) continue;
                for (int peer = first; peer < first + s->tp_size; peer++) {
                    double v = before[peer].value[n][c];
                    if (sum)
                        after[rank].value[n][c] += v;
                    else if (v != 0.0)
                        after[rank].value[n][c] = v;
                }
            }
    }
}

static bool is_local(enum ghp_reshard_op op)
{
    return ghp_reshard_comm(op) == GHP_COMM_NONE;
}

static void check_change(struct ghp_layout from, struct ghp_layout to)
{
    static struct held now[WORKERS], next[WORKERS];
    struct ghp_reshard reshard;
    bool possible = ghp_reshard_find(from, to, &reshard);
    CHECK(possible == (to.kind != GHP_LAYOUT_PARTIAL || ghp_layout_same(from, to)));
    if (!possible) return;
    CHECK((reshard.n_steps == 0) == ghp_layout_same(from, to));
    for (int rank = 0; rank < WORKERS; rank++)
        now[rank] = lay_out(from, rank);
    for (int i = 0; i < reshard.n_steps; i++) {
        step(&reshard.steps[i], now, next);
        if (is_local(reshard.steps[i].op)) /* what a worker keeps it must have had */
            for (int rank = 0; rank < WORKERS; rank++)
                for (int n = 0; n < BATCH; n++)
                    for (int c = 0; c < SAMPLE; c++)
                        CHECK(next[rank].value[n][c] == 0.0 ||
                              next[rank].value[n][c] == now[rank].value[n][c]);
        memcpy(now, next, sizeof now);
    }
    double worst = 0.0;
    for (int rank = 0; rank < WORKERS; rank++) {
        struct held wanted = lay_out(to, rank);
        for (int n = 0; n < BATCH; n++)
            for (int c = 0; c < SAMPLE; c++)
                worst = fmax(worst, fabs(wanted.value[n][c] - now[rank].value[n][c]));
    }
    CHECK_NEAR(worst, 0.0, 1e-9); /* sums of at most 12 fractions of numbers below 3,500 */
}

static void test_changes(void)
{
    struct ghp_layout all[1 + 4 * 5] = {{GHP_LAYOUT_BATCH, 1}};
    int n = 1;
    for (int m = 2; m <= WORKERS; m++)
        for (int kind = GHP_LAYOUT_CHANNEL; kind < GHP_LAYOUT_COUNT && WORKERS % m == 0; kind++)
            all[n++] = (struct ghp_layout){(enum ghp_layout_kind)kind, m};
    CHECK_EQ(n, 21);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            check_change(all[i], all[j]);
}

static void test_choices(void)
{
    struct ghp_layer conv = {.name = "c",
                             .op = GHP_OP_CONV2D,
                             .in = ghp_shape_image(3, 8, 8),
                             .out = ghp_shape_image(8, 8, 8)};
    conv.window.groups = 1;
    struct ghp_split splits[GHP_MAX_CHOICES];
    struct ghp_problem four = {4, 8};
    CHECK_EQ(ghp_split_choices(&conv, four, splits, GHP_MAX_CHOICES), 3); /* data, out:2, out:4 */
    CHECK_STATUS(
        ghp_split_check(&conv, (struct ghp_split){.kind = GHP_SPLIT_IN, .tp_size = 2}, four),
        GHP_ERR_INPUT);
    CHECK_MESSAGE("use data");
    CHECK_STATUS(
        ghp_split_check(&conv, (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 3}, four),
        GHP_ERR_INPUT);
    CHECK_MESSAGE("divisor of 4");
    CHECK_STATUS(
        ghp_split_check(&conv, (struct ghp_split){.kind = GHP_SPLIT_FULL, .tp_size = 2}, four),
        GHP_ERR_INPUT);
    CHECK_MESSAGE("data, out, in");
    struct ghp_layer table = {.name = "e",
                              .op = GHP_OP_EMBEDDING,
                              .in = ghp_shape_tokens(5, 6),
                              .out = ghp_shape_sequence(8, 5)};
    CHECK_EQ(ghp_split_choices(&table, four, splits, GHP_MAX_CHOICES),
             5); /* data, out:2, rows:2, out:4, rows:4 of which the last have padding */
    CHECK(!ghp_split_is_even(&table, (struct ghp_split){.kind = GHP_SPLIT_ROWS, .tp_size = 4}));
    CHECK_STATUS(ghp_split_check(&table, (struct ghp_split){.kind = GHP_SPLIT_OUT, .tp_size = 3},
                                 (struct ghp_problem){3, 6}),
                 GHP_ERR_INPUT);
    CHECK_MESSAGE("8 channels are not a multiple of 3");
    CHECK_STATUS(
        ghp_split_check(&table, (struct ghp_split){.kind = GHP_SPLIT_IN, .tp_size = 2}, four),
        GHP_ERR_INPUT);
    CHECK_MESSAGE("data, out, rows");
    struct ghp_layer loss = {.name = "l",
                             .op = GHP_OP_SOFTMAX_CE,
                             .in = ghp_shape_image(10, 1, 1),
                             .out = ghp_shape_image(10, 1, 1)};
    CHECK_EQ(ghp_split_choices(&loss, four, splits, GHP_MAX_CHOICES), 3); /* data, full:2, full:4 */
    CHECK_STATUS(
        ghp_split_check(&loss, (struct ghp_split){.kind = GHP_SPLIT_POSITION, .tp_size = 2}, four),
        GHP_ERR_INPUT);
    CHECK_MESSAGE("use one of data, full");
    CHECK_STATUS(
        ghp_split_check(&loss, (struct ghp_split){.kind = GHP_SPLIT_FULL, .tp_size = 4}, four),
        GHP_OK);
}

/* Positions of a sequence, where each depends on itself alone. */
static void test_positions(void)
{
    const struct ghp_split two = {.kind = GHP_SPLIT_POSITION, .tp_size = 2},
                           four = {.kind = GHP_SPLIT_POSITION, .tp_size = 4};
    struct ghp_layer norm = {.name = "n",
                             .op = GHP_OP_LAYER_NORM,
                             .in = ghp_shape_sequence(12, 6),
                             .out = ghp_shape_sequence(12, 6)};
    struct ghp_split splits[GHP_MAX_CHOICES];
    struct ghp_problem problem = {4, 8};
    /* data, full:2, position:2, full:4 */
    CHECK_EQ(ghp_split_choices(&norm, problem, splits, GHP_MAX_CHOICES), 4);
    CHECK_STATUS(ghp_split_check(&norm, two, problem), GHP_OK);
    CHECK_STATUS(ghp_split_check(&norm, four, problem), GHP_ERR_INPUT);
    CHECK_MESSAGE("6 positions are not a multiple of 4; use TP size 2");
    norm.in = norm.out = ghp_shape_image(12, 6, 1);
    CHECK_STATUS(ghp_split_check(&norm, two, problem), GHP_ERR_INPUT);
    CHECK_MESSAGE("use one of data, full");
    norm.op = GHP_OP_ATTENTION; /* keys and values whole, and summands of their gradients */
    norm.in = norm.out = ghp_shape_sequence(12, 6);
    CHECK_STATUS(ghp_split_check(&norm, two, problem), GHP_OK);
    for (int slot = 0; slot < 3; slot++) {
        struct ghp_layouts at = ghp_split_layouts_at(&norm, slot, two);
        CHECK_EQ(at.x.kind, slot == 0 ? GHP_LAYOUT_SEQUENCE : GHP_LAYOUT_FULL);
        CHECK_EQ(at.dx.kind, slot == 0 ? GHP_LAYOUT_SEQUENCE : GHP_LAYOUT_PARTIAL);
        CHECK(at.y.kind == GHP_LAYOUT_SEQUENCE && at.dy.kind == GHP_LAYOUT_SEQUENCE);
    }
    norm.op = GHP_OP_LINEAR;
    CHECK_STATUS(ghp_split_check(&norm, two, problem), GHP_ERR_INPUT);
    CHECK_EQ(ghp_split_sharers(two), 1);
    CHECK_EQ(ghp_split_sharers((struct ghp_split){.kind = GHP_SPLIT_FULL, .tp_size = 2}), 2);
}

/* Layers that share parameters hold the same parts of them, in one stage or two. */
static void test_tied(void)
{
    static const char text[] =
        "{\"format\":\"ghp.model/1\",\"name\":\"t\",\"input\":{\"positions\":4,\"vocabulary\":8},"
        "\"layers\":[{\"name\":\"e\",\"op\":\"embedding\",\"channels\":6},{\"name\":\"o\",\"op\":"
        "\"linear\",\"features\":8,\"tied\":\"e\",\"bias\":false},"
        "{\"name\":\"l\",\"op\":\"softmax_cross_entropy\"}]}";
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1},
                           rows = {.kind = GHP_SPLIT_ROWS, .tp_size = 2},
                           out = {.kind = GHP_SPLIT_OUT, .tp_size = 2},
                           in = {.kind = GHP_SPLIT_IN, .tp_size = 2};
    struct ghp_split splits[4] = {data, data, data, data}, choices[GHP_MAX_CHOICES];
    struct ghp_problem two = {2, 8};
    struct ghp_staging staging = {.n = 2,
                                  .stage = {{.workers = 2}, {.first_layer = 2, .workers = 2}}};
    struct ghp_model model;
    if (!CHECK_STATUS(ghp_model_parse(text, "t.json", &model), GHP_OK)) return;
    CHECK_EQ(ghp_split_choices(&model.layers[1], two, choices, GHP_MAX_CHOICES), 3);
    CHECK_EQ(ghp_split_choices(&model.layers[2], two, choices, GHP_MAX_CHOICES), 3);
    CHECK_STATUS(ghp_split_check_tied(&model, splits), GHP_OK);
    splits[1] = rows;
    CHECK_STATUS(ghp_split_check_tied(&model, splits), GHP_ERR_INPUT);
    CHECK_MESSAGE("layer 'o' (split 'data') and 'e' (split 'rows:2') share parameters");
    splits[2] = in;
    CHECK_STATUS(ghp_split_check_tied(&model, splits), GHP_ERR_INPUT);
    splits[2] = out;
    CHECK_STATUS(ghp_split_check_tied(&model, splits), GHP_OK);
    splits[1] = out;
    CHECK_STATUS(ghp_split_check_tied(&model, splits), GHP_ERR_INPUT);
    splits[2] = in;
    CHECK_STATUS(ghp_split_check_tied(&model, splits), GHP_OK);
    CHECK_STATUS(ghp_staging_check_tied(&staging, &model, splits), GHP_OK);
    staging.stage[0].workers = 1; /* two workers cannot both have half of what one has */
    CHECK_STATUS(ghp_staging_check_tied(&staging, &model, splits), GHP_ERR_INPUT);
    CHECK_MESSAGE("their stages have 2 and 1 of each group; use a divisor of both");
    splits[1] = splits[2] = data;
    CHECK_STATUS(ghp_staging_check_tied(&staging, &model, splits), GHP_OK);
    ghp_model_release(&model);
}

static void test_problem(void)
{
    CHECK_STATUS(ghp_problem_check((struct ghp_problem){4, 128}), GHP_OK);
    CHECK_STATUS(ghp_problem_check((struct ghp_problem){6, 128}), GHP_ERR_INPUT);
    CHECK_MESSAGE("use 4 or 8 workers, or batch 126 or 132");
    CHECK_STATUS(ghp_problem_check((struct ghp_problem){8, 4}), GHP_OK);
    CHECK_EQ(ghp_problem_sharers((struct ghp_problem){8, 4}), 2);
    CHECK_EQ(ghp_problem_sharers((struct ghp_problem){8, 16}), 1);
    CHECK_STATUS(ghp_problem_check((struct ghp_problem){8, 5}), GHP_ERR_INPUT);
    CHECK_MESSAGE("at most 5 workers, or batch 4 or 8");
    CHECK_STATUS(ghp_problem_check((struct ghp_problem){0, 4}), GHP_ERR_INPUT);
}

/* Fewer samples than workers leave each layer the splits of one TP size. */
static void test_few_samples(void)
{
    static const char text[] = "{\"format\": \"ghp.model/1\", \"name\": \"few\", "
                               "\"input\": {\"channels\": 4, \"positions\": 4}, \"layers\": ["
                               "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 8}, "
                               "{\"name\": \"norm\", \"op\": \"layer_norm\"}, "
                               "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}";
    const struct ghp_problem few = {.workers = 8, .global_batch = 4};
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1},
                           over_four = {.kind = GHP_SPLIT_OUT, .tp_size = 4};
    struct ghp_split choices[GHP_MAX_CHOICES];
    struct ghp_model model;

    if (!CHECK_STATUS(ghp_model_parse(text, "few", &model), GHP_OK)) return;
    for (int v = 0; v < model.n_layers; v++) {
        int n = ghp_split_choices(&model.layers[v], few, choices, GHP_MAX_CHOICES);

        for (int i = 0; i < n; i++) {
            CHECK_EQ(choices[i].tp_size, 2);
            CHECK_EQ(ghp_layout_samples(ghp_split_layouts(choices[i]).x, few), 1);
            CHECK_STATUS(ghp_split_check(&model.layers[v], choices[i], few), GHP_OK);
        }
        CHECK(n > 0);
        CHECK_STATUS(ghp_split_check(&model.layers[v], data, few), GHP_ERR_INPUT);
        CHECK_MESSAGE("use a split of TP size 2, or a batch of 8");
    }
    CHECK_STATUS(ghp_split_check(&model.layers[1], over_four, few), GHP_ERR_INPUT);
    ghp_model_release(&model);
}

static void test_text(void)
{
    struct ghp_split split;
    char text[32];
    CHECK_STATUS(ghp_split_parse("out:4", &split), GHP_OK);
    CHECK(split.kind == GHP_SPLIT_OUT && split.tp_size == 4);
    ghp_split_format(split, text, sizeof text);
    CHECK_TEXT(text, "out:4");
    CHECK_STATUS(ghp_split_parse("data", &split), GHP_OK);
    CHECK(split.tp_size == 1);
    const char *bad[] = {"data:2", "out", "out:", "out:x", "side:2", "", "in:1", "in:-2", "out:4 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_STATUS(ghp_split_parse(bad[i], &split), GHP_ERR_INPUT);
}

/* Against the first number from above that divides both. */
static void test_gcd(void)
{
    for (int64_t a = 1; a <= 48; a++)
        for (int64_t b = 1; b <= 48; b++) {
            int64_t greatest = a;

            while (a % greatest != 0 || b % greatest != 0)
                greatest--;
            CHECK_EQ(ghp_gcd(a, b), greatest);
        }
    CHECK_EQ(ghp_gcd(0, 6), 6);
    CHECK_EQ(ghp_gcd(6, 0), 6);
}

CHECK_TEST(split)
{
    test_changes();
    test_choices();
    test_positions();
    test_tied();
    test_problem();
    test_few_samples();
    test_text();
    test_gcd();
    return check_end();
}
