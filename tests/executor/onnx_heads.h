/* tests/executor/onnx_heads.h - attention by heads of one product, as files say it, and what it computes: for the tests
 * of what becomes of it.
 *
 *     begin_heads("attention");                numbers, and the file's name
 *     begin_sequence(17); put_qkv(true);       a graph with queries, keys and values; then what a file makes of them
 *     means("y", 8, causal);                   it is read as that many layers, which compute the same */
#ifndef GHP_TESTS_EXECUTOR_ONNX_HEADS_H
#define GHP_TESTS_EXECUTOR_ONNX_HEADS_H

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
static double dropped;              /* the part of weights that the layer is to drop */
/* of heads of unit vectors: logarithms of the factors of their scores, at most `most`; NULL: without */
static const float *factors, most = 1.5f;
/* of a window of one row: its coordinates, each times a slope of the head, are added to scores */
static bool placed;
static float coordinates[2 * S - 1], slopes[HEADS] = {0.5f, -0.25f, 1};

/* Turns pairs of each head's channels by an angle in proportion to the position. */
static inline void turn_heads(double *x, int p)
{
    for (int head = 0; head < C; head += SIZE)
        for (int i = 0; i < SIZE / 2; i++) {
            double angle = p * pow(10000, -2.0 * i / SIZE), a = x[head + i],
                   b = x[head + SIZE / 2 + i];

            x[head + i] = a * cos(angle) - b * sin(angle);
            x[head + SIZE / 2 + i] = b * cos(angle) + a * sin(angle);
        }
}

static inline void unit_heads(double *x)
{
    for (int head = 0; head < C; head += SIZE) {
        double square = 0;

        for (int i = 0; i < SIZE; i++)
            square += x[head + i] * x[head + i];
        for (int i = 0; i < SIZE; i++)
            x[head + i] /= sqrt(square);
    }
}

/* What the products of a head are multiplied by. */
static inline double scale_of(int head)
{
    if (factors != NULL) return exp(fmin((double)factors[head], (double)most));
    return other_scale > 0 ? other_scale : 1 / sqrt(SIZE);
}

/* What the network computes: the product, attention by heads. */
static inline void expected(bool causal, double *out)
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
        for (int p = 0; factors != NULL && p < S; p++) {
            unit_heads(qkv[p]);
            unit_heads(qkv[p] + C);
        }
        for (int p = 0; p < S; p++)
            for (int at = 0; at < C; at++) {
                int head = at / SIZE * SIZE, kv = shared ? 0 : head;
                double sum = 0, value = 0;

                for (int to = 0; to < (causal ? p + 1 : S); to++) {
                    double score = 0;

                    for (int d = 0; d < SIZE; d++)
                        score += qkv[p][head + d] * qkv[to][C + kv + d];
                    score *= scale_of(head / SIZE);
                    if (placed)
                        score += (double)coordinates[p - to + S - 1] * (double)slopes[head / SIZE];
                    if (softcap > 0) score = softcap * tanh(score / softcap);
                    score = exp(score);
                    sum += score;
                    value += score * qkv[to][2 * C + kv + at % SIZE];
                }
                out[(n * S + p) * C + at] = value / sum;
            }
    }
}

static inline void begin_sequence(int64_t opset)
{
    begin(opset, BATCH, S, C, 0);
    ends[0].n_dims = 3;
}

static inline void means(const char *output, int layers, bool causal)
{
    const struct ghp_onnx_options options = {.output = output, .open_end = true};
    struct ghp_onnx_import import = {0};
    struct ghp_onnx_file file;
    double wanted[ALL];
    float *out;

    expected(causal, wanted);
    save(path, output);
    if (!CHECK_STATUS(ghp_onnx_file_open(path, &file), GHP_OK)) return;
    if (CHECK_STATUS(ghp_onnx_import_graph(&file, &options, &import), GHP_OK) &&
        CHECK_EQ(import.model.n_layers, layers) &&
        CHECK_EQ(import.model.layers[layers - 1].op,
                 placed ? GHP_OP_WINDOW_ATTENTION : GHP_OP_ATTENTION) &&
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
static inline void put_qkv(bool four)
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

/* How a file may say the scale and the mask. */
enum scale { OVER_SCORES, TIMES_SCORES, TIMES_QUERIES, TIMES_BOTH, SCALES };
enum masked { ADDED, CHOSEN, FILLED, MULTIPLIED, UNMASKED, MASKS };

static float root, factor, half_factor, hidden = -INFINITY, big = 10000, one = 1;
static float ones[(S + 2) * (S + 2)]; /* and zeros above */
static uint8_t seen[S * S], unseen[S * S];

static inline void put_constants(void)
{
    static const int64_t square[4] = {1, 1, S, S}, places[2] = {2, 3}, four[1] = {4},
                         zeros[2] = {0, 0};

    constant("root", GHP_ONNX_FLOAT, 0, NULL, &root);
    constant("factor", GHP_ONNX_FLOAT, 0, NULL, &factor);
    constant("half", GHP_ONNX_FLOAT, 0, NULL, &half_factor);
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
static inline void put_scores(enum scale scale, const char *q, const char *k)
{
    static const int64_t turn[4] = {0, 1, 3, 2};

    list(node("Transpose", "turned", k, NULL), "perm", turn, 4);
    if (scale == TIMES_QUERIES) node("Mul", "q.scaled", q, "factor");
    if (scale == TIMES_BOTH) node("Mul", "q.scaled", "half", q);
    if (scale == TIMES_BOTH) node("Mul", "k.scaled", "turned", "half");
    node("MatMul", scale < TIMES_QUERIES ? "scores" : "scaled",
         scale < TIMES_QUERIES ? q : "q.scaled", scale == TIMES_BOTH ? "k.scaled" : "turned");
    if (scale == OVER_SCORES) node("Div", "scaled", "scores", "root");
    if (scale == TIMES_SCORES) node("Mul", "scaled", "factor", "scores");
}

/* 'scaled', masked, softmaxed and by v. */
static inline void put_weights(enum masked masked, const char *v)
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

static inline void put_end(void)
{
    static const int64_t turn[4] = {0, 2, 1, 3}, rows[3] = {0, 0, -1};

    constant("rows", GHP_ONNX_INT64, 1, (int64_t[]){3}, rows);
    list(node("Transpose", "back", "z", NULL), "perm", turn, 4);
    node("Reshape", "y", "back", "rows");
}

/* Names the file and fills everything in. */
static inline void begin_heads(const char *name)
{
    snprintf(path, sizeof path, "/tmp/ghp-%s-%ld.onnx", name, (long)getpid());
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
    factor = 1 / root;
    half_factor = sqrtf(factor);
}

#endif
