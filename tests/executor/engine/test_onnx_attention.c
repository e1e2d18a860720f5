/* tests/executor/engine/test_onnx_attention.c - attention as files say it, from one product for queries, keys and
 * values or from three: becomes linear layers and attention, and computes what they mean. */
#include "tests/check.h"
#include "tests/executor/onnx_pass.h"
#include "tests/onnx_graph.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 2, S = 5, C = 12, HEADS = 3, SIZE = C / HEADS, ALL = BATCH * S * C };

static char path[64];
static float samples[ALL], qkv_weight[C * 3 * C], qkv_bias[3 * C], mask[S * S];
static float cosines[S * SIZE], sines[S * SIZE];
static float half_cosines[S * SIZE / 2], half_sines[S * SIZE / 2];
static bool turned;                 /* queries and keys have rotary positions */
static bool shared;                 /* all heads have the first head's keys and values */
static double other_scale, softcap; /* 0: 1 over the root of a head's channels; none */
static double dropped;              /* the share of weights that the layer is to drop */

/* Turns pairs of each head's channels by an angle in proportion to the position. */
static void turn_heads(double *x, int p)
{
    for (int head = 0; head < C; head += SIZE)
        for (int i = 0; i < SIZE / 2; i++) {
            double angle = p * pow(10000, -2.0 * i / SIZE), a = x[head + i],
                   b = x[head + SIZE / 2 + i];

            x[head + i] = a * cos(angle) - b * sin(angle);
            x[head + SIZE / 2 + i] = b * cos(angle) + a * sin(angle);
        }
}

/* What the network computes: the product, attention by heads. */
static void expected(bool causal, double *out)
{
    double qkv[S][3 * C];

    for (int n = 0; n < BATCH; n++) {
        for (int p = 0; p < S; p++)
            for (int k = 0; k < 3 * C; k++) {
                qkv[p][k] = (double)qkv_bias[k];
                for (int c = 0; c < C; c++)
                    qkv[p][k] +=
                        (double)samples[(n * S + p) * C + c] * (double)qkv_weight[c * 3 * C + k];
            }
        for (int p = 0; turned && p < S; p++) {
            turn_heads(qkv[p], p);
            turn_heads(qkv[p] + C, p);
        }
        for (int p = 0; p < S; p++)
            for (int at = 0; at < C; at++) {
                int head = at / SIZE * SIZE, kv = shared ? 0 : head;
                double sum = 0, value = 0;

                for (int to = 0; to < (causal ? p + 1 : S); to++) {
                    double score = 0;

                    for (int d = 0; d < SIZE; d++)
                        score += qkv[p][head + d] * qkv[to][C + kv + d];
                    score *= other_scale > 0 ? other_scale : 1 / sqrt(SIZE);
                    if (softcap > 0) score = softcap * tanh(score / softcap);
                    score = exp(score);
                    sum += score;
                    value += score * qkv[to][2 * C + kv + at % SIZE];
                }
                out[(n * S + p) * C + at] = value / sum;
            }
    }
}

static void begin_sequence(int64_t opset)
{
    begin(opset, BATCH, S, C, 0);
    ends[0].n_dims = 3;
}

static void means(const char *output, int layers, bool causal)
{
    const struct ghp_onnx_options options = {.output = output, .open_end = true};
    struct ghp_onnx_import import = {0};
    struct ghp_onnx_file file;
    double wanted[ALL];
    float *out;

    expected(causal, wanted);
    save(path, output);
    if (!CHECK_STATUS(ghp_onnx_file_open(path, &file), GHP_OK)) return;
    if (CHECK_STATUS(ghp_onnx_import(&file, &options, &import), GHP_OK) &&
        CHECK_EQ(import.model.n_layers, layers) &&
        CHECK_EQ(import.model.layers[layers - 1].op, GHP_OP_ATTENTION) &&
        CHECK_EQ(import.model.layers[layers - 1].heads.causal, causal) &&
        CHECK_NEAR(import.model.layers[layers - 1].heads.dropout, dropped, 1e-7)) {
        out = onnx_pass_run(
            &(struct onnx_pass){.import = &import, .batch = BATCH, .samples = samples});
        for (int i = 0; i < ALL; i++) /* sums of five to twelve products of floats, 6e-8 each */
            CHECK_NEAR((double)out[i], wanted[i], 4e-6 * (1 + fabs(wanted[i])));
        free(out);
    }
    ghp_onnx_import_release(&import);
    ghp_onnx_file_close(&file);
}

/* One product and its parts as 'q', 'k' and 'v', of three axes or of four. */
static void put_qkv(bool four)
{
    static const int64_t by_heads[4] = {0, 0, HEADS, SIZE}, turn[4] = {0, 2, 1, 3};
    static const char *const names[2][3] = {{"q", "k", "v"}, {"q3", "k3", "v3"}};
    static const char *const wide[3] = {"q4", "k4", "v4"};
    struct ghp_onnx_node *split;

    constant("w", GHP_ONNX_FLOAT, 2, (int64_t[]){C, 3 * C}, qkv_weight);
    constant("b", GHP_ONNX_FLOAT, 1, (int64_t[]){3 * C}, qkv_bias);
    constant("heads", GHP_ONNX_INT64, 1, (int64_t[]){4}, by_heads);
    constant("mask", GHP_ONNX_FLOAT, 4, (int64_t[]){1, 1, S, S}, mask);
    node("MatMul", "product", "x", "w");
    node("Add", "qkv", "product", "b");
    split = node("Split", names[four][0], "qkv", NULL);
    split->n_outputs = 3;
    out_names[2][1] = names[four][1];
    out_names[2][2] = names[four][2];
    number(split, "axis", -1);
    for (int i = 0; four && i < 3; i++) {
        node("Reshape", wide[i], names[1][i], "heads");
        list(node("Transpose", names[0][i], wide[i], NULL), "perm", turn, 4);
    }
}

static struct ghp_onnx_node *put_attention(const char *out, bool masked)
{
    struct ghp_onnx_node *at = node("Attention", out, "q", "k");
    int i = graph.n_nodes - 1;

    in_names[i][2] = "v";
    in_names[i][3] = "mask";
    at->n_inputs = masked ? 4 : 3;
    return at;
}

/* The output of four axes as rows again. */
static void put_rows(const char *out, const char *from)
{
    static const int64_t turn[4] = {0, 2, 1, 3}, rows[3] = {0, 0, -1};

    constant("rows", GHP_ONNX_INT64, 1, (int64_t[]){3}, rows);
    list(node("Transpose", "turned", from, NULL), "perm", turn, 4);
    node("Reshape", out, "turned", "rows");
}

static void check_operator(void)
{
    struct ghp_onnx_node *at;

    for (int causal = 0; causal < 2; causal++) {
        begin_sequence(23);
        put_qkv(false);
        at = put_attention("y", false);
        number(at, "q_num_heads", HEADS);
        number(at, "kv_num_heads", HEADS);
        number(at, "is_causal", causal);
        means("y", 8, causal);
    }
    begin_sequence(23);
    put_qkv(true);
    put_attention("z", true);
    put_rows("y", "z");
    means("y", 8, true);
    begin_sequence(23);
    put_qkv(true);
    number(put_attention("z", false), "softcap", 1); /* no real number: 0 */
    put_rows("y", "z");
    means("y", 8, false);
}

/* ---- written out ---- */

/* How a file may say the scale and the mask. */
enum scale { OVER_SCORES, TIMES_SCORES, TIMES_QUERIES, TIMES_BOTH, SCALES };
enum masked { ADDED, CHOSEN, FILLED, MULTIPLIED, UNMASKED, MASKS };

static float root, share, half_share, hidden = -INFINITY, big = 10000, one = 1;
static float ones[(S + 2) * (S + 2)]; /* and zeros above */
static uint8_t seen[S * S], unseen[S * S];

static void put_constants(void)
{
    static const int64_t square[4] = {1, 1, S, S}, places[2] = {2, 3}, four[1] = {4},
                         zeros[2] = {0, 0};

    constant("root", GHP_ONNX_FLOAT, 0, NULL, &root);
    constant("share", GHP_ONNX_FLOAT, 0, NULL, &share);
    constant("half", GHP_ONNX_FLOAT, 0, NULL, &half_share);
    constant("hidden", GHP_ONNX_FLOAT, 0, NULL, &hidden);
    constant("big", GHP_ONNX_FLOAT, 0, NULL, &big);
    constant("one", GHP_ONNX_FLOAT, 0, NULL, &one);
    constant("table", GHP_ONNX_FLOAT, 4, (int64_t[]){1, 1, S + 2, S + 2}, ones);
    constant("two", GHP_ONNX_INT64, 1, (int64_t[]){1}, places);
    constant("four", GHP_ONNX_INT64, 1, (int64_t[]){1}, four);
    constant("zeros", GHP_ONNX_INT64, 1, (int64_t[]){2}, zeros);
    constant("places", GHP_ONNX_INT64, 1, (int64_t[]){2}, places);
    constant("nothing", GHP_ONNX_FLOAT, 0, NULL, &mask[0]);
    constant("seen", GHP_ONNX_BOOL, 4, square, seen);
    constant("unseen", GHP_ONNX_BOOL, 4, square, unseen);
}

/* Scores of q and k as 'scaled', k with channels before positions. */
static void put_scores(enum scale scale, const char *q, const char *k)
{
    static const int64_t turn[4] = {0, 1, 3, 2};

    list(node("Transpose", "turned", k, NULL), "perm", turn, 4);
    if (scale == TIMES_QUERIES) node("Mul", "q.scaled", q, "share");
    if (scale == TIMES_BOTH) node("Mul", "q.scaled", "half", q);
    if (scale == TIMES_BOTH) node("Mul", "k.scaled", "turned", "half");
    node("MatMul", scale < TIMES_QUERIES ? "scores" : "scaled",
         scale < TIMES_QUERIES ? q : "q.scaled", scale == TIMES_BOTH ? "k.scaled" : "turned");
    if (scale == OVER_SCORES) node("Div", "scaled", "scores", "root");
    if (scale == TIMES_SCORES) node("Mul", "scaled", "share", "scores");
}

/* 'scaled', masked, softmaxed and by v. */
static void put_weights(enum masked masked, const char *v)
{
    switch (masked) {
    case ADDED: node("Add", "masked", "scaled", "mask"); break;
    case CHOSEN: node3("Where", "masked", "seen", "scaled", "hidden"); break;
    case FILLED: node3("Where", "masked", "unseen", "hidden", "scaled"); break;
    case MULTIPLIED: /* as the first GPT-2 had it, a part of a table for longer sequences */
        node("Shape", "sizes", "scaled", NULL);
        node3("Slice", "ends", "sizes", "two", "four");
        node3("Slice", "ones", "table", "zeros", "ends")->n_inputs = 4;
        in_names[graph.n_nodes - 1][3] = "places";
        node("Mul", "cut", "scaled", "ones");
        node("Sub", "others", "one", "ones");
        node("Mul", "far", "others", "big");
        node("Sub", "masked", "cut", "far");
        break;
    default: node("Identity", "masked", "scaled", NULL);
    }
    number(node("Softmax", "weights", "masked", NULL), "axis", -1);
    if (masked == CHOSEN) { /* as newer exporters guard it */
        node("IsNaN", "bad", "weights", NULL);
        node3("Where", "guarded", "bad", "nothing", "weights");
    }
    node("MatMul", "z", masked == CHOSEN ? "guarded" : "weights", v);
}

static void put_end(void)
{
    static const int64_t turn[4] = {0, 2, 1, 3}, rows[3] = {0, 0, -1};

    constant("rows", GHP_ONNX_INT64, 1, (int64_t[]){3}, rows);
    list(node("Transpose", "back", "z", NULL), "perm", turn, 4);
    node("Reshape", "y", "back", "rows");
}

static void check_written_out(void)
{
    for (int scale = 0; scale < SCALES; scale++)
        for (int masked = 0; masked < MASKS; masked++) {
            begin_sequence(17);
            put_qkv(true);
            put_constants();
            put_scores((enum scale)scale, "q", "k");
            put_weights((enum masked)masked, "v");
            put_end();
            means("y", 8, masked != UNMASKED);
        }
}

/* Weights that are dropped, of which evaluations see nothing; and scores. */
static void check_dropped(void)
{
    static const float ratio = 0.25f;

    for (int early = 0; early < 2; early++) {
        begin_sequence(17);
        put_qkv(true);
        put_constants();
        constant("ratio", GHP_ONNX_FLOAT, 0, NULL, &ratio);
        put_scores(OVER_SCORES, "q", "k");
        if (early) node("Dropout", "kept", "scaled", "ratio");
        number(node("Softmax", "weights", early ? "kept" : "scaled", NULL), "axis", -1);
        if (!early) node("Dropout", "kept", "weights", "ratio");
        node("MatMul", "z", early ? "weights" : "kept", "v");
        put_end();
        dropped = 0.25;
        if (early)
            refused(path, "y", GHP_ERR_INPUT, "before its softmax");
        else
            means("y", 8, false);
        dropped = 0;
    }
}

/* Scores of another scale, and capped ones. */
static void check_scores(void)
{
    struct ghp_onnx_node *at;

    begin_sequence(17);
    root = 3;
    other_scale = 1 / 3.0;
    put_qkv(true);
    put_constants();
    put_scores(OVER_SCORES, "q", "k");
    put_weights(FILLED, "v");
    put_end();
    means("y", 8, true);
    root = sqrtf(SIZE);
    other_scale = 0.25;
    softcap = 0.5;
    begin_sequence(23);
    put_qkv(true);
    at = put_attention("z", false);
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = "scale", .kind = GHP_ONNX_REAL, .real = 0.25};
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = "softcap", .kind = GHP_ONNX_REAL, .real = 0.5};
    put_rows("y", "z");
    means("y", 8, false);
    other_scale = softcap = 0;
}

/* The first head of x for all heads. */
static void put_repeated(const char *out, const char *x, const char *const made[3])
{
    node3("Slice", made[0], x, "from", "to")->n_inputs = 4;
    in_names[graph.n_nodes - 1][3] = "head";
    node("Unsqueeze", made[1], made[0], "more");
    node("Expand", made[2], made[1], "wide");
    node("Reshape", out, made[2], "all heads");
}

static void check_repeated(void)
{
    static const char *const of_k[3] = {"k one", "k apart", "k wide"}, *const of_v[3] = {"v one",
                                                                                         "v apart",
                                                                                         "v wide"};
    static const int64_t from[1] = {0}, to[1] = {1}, more[1] = {2}, wide[5] = {1, 1, HEADS, 1, 1},
                         heads[4] = {0, HEADS, S, SIZE};

    shared = true;
    for (int scale = 0; scale < SCALES; scale++) {
        begin_sequence(17);
        put_qkv(true);
        put_constants();
        constant("from", GHP_ONNX_INT64, 1, (int64_t[]){1}, from);
        constant("to", GHP_ONNX_INT64, 1, (int64_t[]){1}, to);
        constant("head", GHP_ONNX_INT64, 1, (int64_t[]){1}, to);
        constant("more", GHP_ONNX_INT64, 1, (int64_t[]){1}, more);
        constant("wide", GHP_ONNX_INT64, 1, (int64_t[]){5}, wide);
        constant("all heads", GHP_ONNX_INT64, 1, (int64_t[]){4}, heads);
        put_repeated("k.all", "k", of_k);
        put_repeated("v.all", "v", of_v);
        put_scores((enum scale)scale, "q", "k.all");
        put_weights(FILLED, "v.all");
        put_end();
        means("y", 8, true);
    }
    shared = false;
}

/* Rotary positions of q or k, of four axes. */
static void put_turned(const char *out, const char *x, const char *const made[5])
{
    node3("Slice", made[0], x, "zero", "middle")->n_inputs = 4;
    in_names[graph.n_nodes - 1][3] = "last";
    node3("Slice", made[1], x, "middle", "far end")->n_inputs = 4;
    in_names[graph.n_nodes - 1][3] = "last";
    node("Neg", made[2], made[1], NULL);
    number(node("Concat", made[3], made[2], made[0]), "axis", -1);
    node("Mul", made[4], made[3], "sin");
    node("Mul", out, x, "cos");
}

static void put_rotary(void)
{
    static const char *const of_q[5] = {"q1", "q2", "-q2", "-q2q1", "q.sin"};
    static const char *const of_k[5] = {"k1", "k2", "-k2", "-k2k1", "k.sin"};
    static const int64_t zero[1] = {0}, middle[1] = {SIZE / 2}, end[1] = {INT64_MAX}, last[1] = {3};

    constant("zero", GHP_ONNX_INT64, 1, (int64_t[]){1}, zero);
    constant("middle", GHP_ONNX_INT64, 1, (int64_t[]){1}, middle);
    constant("far end", GHP_ONNX_INT64, 1, (int64_t[]){1}, end);
    constant("last", GHP_ONNX_INT64, 1, (int64_t[]){1}, last);
    constant("cos", GHP_ONNX_FLOAT, 3, (int64_t[]){1, S, SIZE}, cosines);
    constant("sin", GHP_ONNX_FLOAT, 2, (int64_t[]){S, SIZE}, sines);
    put_turned("q.cos", "q", of_q);
    node("Add", "q.rotary", "q.cos", "q.sin");
    put_turned("k.cos", "k", of_k);
    node("Add", "k.rotary", "k.sin", "k.cos");
}

/* One node each for queries and keys, of four axes, or of three before heads are made. */
static void check_rotary_operator(bool four)
{
    static const int64_t places[S] = {0, 1, 2, 3, 4};
    const char *const from[2] = {"q", "k"}, *const made[2] = {"q.rotary", "k.rotary"};
    struct ghp_onnx_node *at;

    begin_sequence(23);
    put_qkv(four);
    constant("cos", GHP_ONNX_FLOAT, 2, (int64_t[]){S, SIZE / 2}, half_cosines);
    constant("sin", GHP_ONNX_FLOAT, 2, (int64_t[]){S, SIZE / 2}, half_sines);
    constant("places", GHP_ONNX_INT64, 2, (int64_t[]){1, S}, places);
    for (int i = 0; i < 2; i++) {
        at = node3("RotaryEmbedding", made[i], from[i], "cos", "sin");
        in_names[graph.n_nodes - 1][3] = "places";
        at->n_inputs = 4;
        number(at, "num_heads", HEADS);
    }
    at = node3("Attention", four ? "z" : "y", "q.rotary", "k.rotary", "v");
    number(at, "q_num_heads", HEADS);
    number(at, "kv_num_heads", HEADS);
    number(at, "is_causal", 1);
    if (four) put_rows("y", "z");
    means("y", 10, true);
}

static void check_rotary(void)
{
    turned = true;
    begin_sequence(17);
    put_qkv(true);
    put_constants();
    put_rotary();
    put_scores(TIMES_BOTH, "q.rotary", "k.rotary");
    put_weights(CHOSEN, "v");
    put_end();
    means("y", 10, true);
    check_rotary_operator(true);
    check_rotary_operator(false);
    turned = false;
    begin_sequence(17);
    put_qkv(true);
    put_rotary();
    cosines[SIZE] += 0.01f; /* of position 1 */
    refused(path, "q.rotary", GHP_ERR_INPUT,
            "node 'q.rotary' (RotaryEmbedding, opset 17) turns by angles");
    cosines[SIZE] -= 0.01f;
}

static void check_refused_parts(void)
{
    float once = seen[1];

    begin_sequence(17);
    put_qkv(true);
    put_constants();
    put_scores(OVER_SCORES, "q", "k");
    put_weights(CHOSEN, "v");
    put_end();
    seen[1] = 1; /* position 0 sees 1 */
    refused(path, "y", GHP_ERR_INPUT, "node 'masked' (Where, opset 17) has a mask that is neither");
    seen[1] = (uint8_t)once;
    hidden = -3;
    refused(path, "y", GHP_ERR_INPUT, "puts other numbers than -10000");
    hidden = -INFINITY;
    refused(path, "weights", GHP_ERR_INPUT, "scores of an attention");
    node("Relu", "r", "weights", NULL);
    refused(path, "r", GHP_ERR_INPUT, "reads scores of an attention");
    node("Dropout", "d", "weights", NULL);
    refused(path, "d", GHP_ERR_INPUT, "scores of an attention");
    node("Mul", "m", "weights", "share");
    node("MatMul", "n", "m", "v");
    refused(path, "n", GHP_ERR_INPUT, "changes weights of an attention after its softmax");
}

static void check_refusals(void)
{
    struct ghp_onnx_node *at;

    begin_sequence(23);
    put_qkv(true);
    at = put_attention("y", false);
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = "scale", .kind = GHP_ONNX_REAL, .real = -0.25};
    refused(path, "y", GHP_ERR_INPUT, "scales its scores by -0.25");
    begin_sequence(23);
    put_qkv(true);
    mask[1] = 0;
    put_attention("y", true);
    refused(path, "y", GHP_ERR_INPUT, "neither causal nor empty");
    mask[1] = -INFINITY;
    begin_sequence(23);
    put_qkv(false);
    put_attention("y", false);
    refused(path, "y", GHP_ERR_INPUT, "not a sequence with heads");
}

CHECK_TEST(onnx_attention)
{
    snprintf(path, sizeof path, "/tmp/ghp-attention-%ld.onnx", (long)getpid());
    for (int i = 0; i < ALL; i++)
        samples[i] = (float)((i * 37 + 11) % 64 - 32) / 32;
    for (int i = 0; i < C * 3 * C; i++)
        qkv_weight[i] = (float)((i * 29 + 5) % 61 - 30) / 32;
    for (int i = 0; i < 3 * C; i++)
        qkv_bias[i] = (float)(i % 5 - 2) / 4;
    for (int i = 0; i < S * S; i++)
        mask[i] = i % S <= i / S ? 0 : -INFINITY;
    for (int i = 0; i < S * S; i++) {
        seen[i] = i % S <= i / S;
        unseen[i] = !seen[i];
    }
    for (int i = 0; i < (S + 2) * (S + 2); i++)
        ones[i] = i % (S + 2) <= i / (S + 2);
    for (int i = 0; i < S * SIZE; i++) {
        double angle = i / SIZE * pow(10000, -2.0 * (i % SIZE % (SIZE / 2)) / SIZE);

        cosines[i] = (float)cos(angle);
        sines[i] = (float)sin(angle);
        if (i % SIZE >= SIZE / 2) continue;
        half_cosines[i / SIZE * SIZE / 2 + i % SIZE] = cosines[i];
        half_sines[i / SIZE * SIZE / 2 + i % SIZE] = sines[i];
    }
    root = sqrtf(SIZE);
    share = 1 / root;
    half_share = sqrtf(share);
    check_operator();
    check_written_out();
    check_scores();
    check_dropped();
    check_repeated();
    check_rotary();
    check_refused_parts();
    check_refusals();
    unlink(path);
    return check_end();
}
