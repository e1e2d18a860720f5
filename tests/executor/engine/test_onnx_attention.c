/* tests/executor/engine/test_onnx_attention.c - attention as files say it, from one product for queries, keys and
 * values or from three: becomes linear layers and attention, and computes what they mean. */
#include "tests/check.h"
#include "tests/executor/onnx_pass.h"
#include "tests/onnx_graph.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 2, S = 5, C = 6, HEADS = 3, SIZE = C / HEADS, ALL = BATCH * S * C };

static char path[64];
static float samples[ALL], qkv_weight[C * 3 * C], qkv_bias[3 * C], mask[S * S];

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
        for (int p = 0; p < S; p++)
            for (int at = 0; at < C; at++) {
                int head = at / SIZE * SIZE;
                double sum = 0, value = 0;

                for (int to = 0; to < (causal ? p + 1 : S); to++) {
                    double score = 0;

                    for (int d = 0; d < SIZE; d++)
                        score += qkv[p][head + d] * qkv[to][C + head + d];
                    score = exp(score / sqrt(SIZE));
                    sum += score;
                    value += score * qkv[to][2 * C + at];
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
        CHECK_EQ(import.model.layers[layers - 1].heads.causal, causal)) {
        out = onnx_pass_run(
            &(struct onnx_pass){.import = &import, .batch = BATCH, .samples = samples});
        for (int i = 0; i < ALL; i++) /* sums of six to eleven products of floats, 6e-8 each */
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

static void check_refusals(void)
{
    struct ghp_onnx_node *at;

    begin_sequence(23);
    put_qkv(true);
    at = put_attention("y", false);
    at->attributes[at->n_attributes++] =
        (struct ghp_onnx_attribute){.name = "scale", .kind = GHP_ONNX_REAL, .real = 0.25};
    refused(path, "y", GHP_ERR_INPUT, "scales its scores by 0.25");
    begin_sequence(23);
    put_qkv(true);
    mask[1] = 0;
    put_attention("y", true);
    refused(path, "y", GHP_ERR_INPUT, "neither causal nor empty");
    mask[1] = -INFINITY;
    begin_sequence(23);
    put_qkv(false);
    put_attention("y", false);
    refused(path, "y", GHP_ERR_INPUT, "no sequence with heads");
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
    check_operator();
    check_refusals();
    unlink(path);
    return check_end();
}
