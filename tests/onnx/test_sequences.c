/* tests/onnx/test_sequences.c - networks of token ids: what becomes of tables, joined samples and positions, shared
 * tensors and masks, and what is refused. What they compute is in tests/executor/engine/test_onnx_attention.c. */
#include "tests/check.h"
#include "tests/onnx_graph.h"

#include <stdlib.h>
#include <unistd.h>

enum { S = 4, C = 4, V = 7, CONTEXT = 8 };

static char path[64];
static float wte[V * C], wte_turned[C * V], wpe[CONTEXT * C], w[C * C], b[C];
static const int64_t rows[2] = {-1, C}, back[3] = {-1, S, C}, zero[1] = {0}, one[1] = {1};

/* ids, looked up, with positions that are counted from the shape of the ids: 'x1'. */
static void put_embeddings(int64_t positions)
{
    begin_ids(17, -1, positions);
    constant("wte.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){V, C}, wte);
    constant("wpe.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){CONTEXT, C}, wpe);
    constant("0", GHP_ONNX_INT64, 0, NULL, zero);
    constant("1", GHP_ONNX_INT64, 0, NULL, one);
    constant("[0]", GHP_ONNX_INT64, 1, (int64_t[]){1}, zero);
    node("Gather", "tokens", "wte.weight", "x");
    node("Shape", "sizes", "x", NULL);
    node("Gather", "n", "sizes", "1");
    node3("Range", "counted", "0", "n", "1");
    node("Unsqueeze", "places", "counted", "[0]");
    node("Gather", "positions", "wpe.weight", "places");
    node("Add", "x1", "tokens", "positions");
}

/* A product of samples and positions joined, 'x2', and logits by the table again, turned: 'y'. */
static void put_rest(void)
{
    constant("w", GHP_ONNX_FLOAT, 2, (int64_t[]){C, C}, w);
    constant("b", GHP_ONNX_FLOAT, 1, (int64_t[]){C}, b);
    constant("rows", GHP_ONNX_INT64, 1, (int64_t[]){2}, rows);
    constant("back", GHP_ONNX_INT64, 1, (int64_t[]){3}, back);
    constant("head", GHP_ONNX_FLOAT, 2, (int64_t[]){C, V}, wte_turned);
    node("Reshape", "joined", "x1", "rows");
    node3("Gemm", "product", "joined", "w", "b");
    node("Relu", "positive", "product", NULL);
    node("Reshape", "x2", "positive", "back");
    node("MatMul", "y", "x2", "head");
}

static void check_weights(const char *of, int count)
{
    struct ghp_onnx_tensors *t = NULL;
    float values[CONTEXT * C];

    if (!CHECK_STATUS(ghp_onnx_tensors_open(of, &t), GHP_OK)) return;
    CHECK_EQ(ghp_onnx_tensors_count(t), count);
    for (int i = 0; i < ghp_onnx_tensors_count(t); i++) {
        struct ghp_onnx_weight weight = ghp_onnx_tensors_item(t, i);

        if (strcmp(weight.name, "wpe.weight") != 0) continue;
        CHECK_EQ(weight.dims[0], S);
        CHECK_STATUS(ghp_onnx_tensors_read(t, i, values), GHP_OK);
        for (int k = 0; k < S * C; k++)
            CHECK_NEAR((double)values[k], (double)wpe[k], 0);
    }
    ghp_onnx_tensors_close(t);
}

static void layers_are(const char *of, bool tied)
{
    static const enum ghp_op ops[] = {GHP_OP_INPUT,  GHP_OP_EMBEDDING, GHP_OP_POSITION_EMBEDDING,
                                      GHP_OP_LINEAR, GHP_OP_BIAS,      GHP_OP_RELU,
                                      GHP_OP_LINEAR, GHP_OP_SOFTMAX_CE};
    const int n = sizeof ops / sizeof ops[0];
    struct ghp_model model;

    if (!CHECK_STATUS(ghp_onnx_load(of, &model), GHP_OK)) return;
    if (CHECK_EQ(model.n_layers, n)) {
        for (int i = 0; i < n; i++)
            CHECK_EQ(model.layers[i].op, ops[i]);
        CHECK_EQ(model.layers[0].out.vocabulary, V);
        CHECK_EQ(model.layers[0].out.h, S);
        CHECK_EQ(model.layers[n - 2].tied, tied ? 2 : 0);
        CHECK_TEXT(model.layers[1].name, "wte");
        CHECK_TEXT(model.layers[2].name, "wpe");
    }
    ghp_model_release(&model);
    check_weights(of, tied ? 4 : 5);
}

static void check_tables(void)
{
    char longer[80];

    put_embeddings(S);
    put_rest();
    save(path, "y");
    layers_are(path, true);
    wte_turned[1]++;
    save(path, "y");
    layers_are(path, false);
    wte_turned[1]--;

    put_embeddings(-1);
    put_rest();
    refused(path, "y", GHP_ERR_INPUT, "leaves open how many positions a sample has; add @");
    snprintf(longer, sizeof longer, "%s@%d", path, S);
    layers_are(longer, true);
}

static void refused_by(int64_t positions, int asked, const char *said)
{
    struct ghp_model model;
    char longer[80];

    put_embeddings(positions);
    save(path, "x1");
    snprintf(longer, sizeof longer, "%s@%d", path, asked);
    CHECK_STATUS(ghp_onnx_load(longer, &model), GHP_ERR_INPUT);
    CHECK_MESSAGE(said);
}

static void check_equal_by_chance(void)
{
    float kept[V * C], turned[C * V];

    memcpy(kept, wte, sizeof kept);
    memcpy(turned, wte_turned, sizeof turned);
    for (int i = 0; i < V * C; i++)
        wte[i] = wte_turned[i] = 1;
    put_embeddings(S);
    put_rest();
    save(path, "y");
    layers_are(path, false);
    memcpy(wte, kept, sizeof wte);
    memcpy(wte_turned, turned, sizeof turned);
}

/* ---- masks that are computed ---- */

/* Attention of x1 to itself with a mask 'm2' of [batch][S][S], made of positions and of the batch's size. */
static void put_masked(const char *compare)
{
    static const int64_t ones[2] = {1, 1};
    static const int64_t row[2] = {0, 1}, column[2] = {0, 2};
    struct ghp_onnx_node *at;

    put_embeddings(S);
    constant("row", GHP_ONNX_INT64, 1, (int64_t[]){2}, row);
    constant("column", GHP_ONNX_INT64, 1, (int64_t[]){2}, column);
    constant("ones", GHP_ONNX_INT64, 1, (int64_t[]){2}, ones);
    node("Unsqueeze", "to", "counted", "row");
    node("Unsqueeze", "from", "counted", "column");
    node(compare, "m1", "to", "from");
    node("Gather", "batch", "sizes", "[0]");
    number(node("Concat", "wide", "batch", "ones"), "axis", 0);
    node("ConstantOfShape", "zeros", "wide", NULL);
    node("Equal", "all", "zeros", "0 or so");
    constant("0 or so", GHP_ONNX_FLOAT, 0, NULL, &wte[0]);
    node("And", "m2", "m1", "all");
    at = node3("Attention", "y", "x1", "x1", "x1");
    in_names[graph.n_nodes - 1][3] = "m2";
    at->n_inputs = 4;
    number(at, "q_num_heads", 2);
    number(at, "kv_num_heads", 2);
}

static void check_masks(void)
{
    float kept = wte[0];

    wte[0] = 0;
    put_masked("LessOrEqual");
    refused(path, "y", GHP_ERR_INPUT, "reads the same layer twice"); /* the mask was taken */
    put_masked("Less");
    refused(path, "y", GHP_ERR_INPUT, "(Attention, opset 17) has a mask that is neither causal");
    put_masked("Greater");
    refused(path, "y", GHP_ERR_INPUT, "has a mask that is neither causal");
    wte[0] = kept;
}

/* Heads of a linear layer on x1, of one channel each. */
static void put_heads(const char *const names[3], const char *weight, const char *shape)
{
    static const int64_t turn[4] = {0, 2, 1, 3};

    node("MatMul", names[0], "x1", weight);
    node("Reshape", names[1], names[0], shape);
    list(node("Transpose", names[2], names[1], NULL), "perm", turn, 4);
}

/* Two heads of keys and values, each for two of the four heads of queries. */
static void check_shared_heads(void)
{
    static const char *const q[3] = {"q linear", "q apart", "q"};
    static const char *const k[3] = {"k linear", "k apart", "k once"};
    static const int64_t four[4] = {0, S, 4, 1}, two[4] = {0, S, 2, 1}, more[1] = {2},
                         wide[5] = {1, 1, 2, 1, 1}, all[4] = {0, 4, S, 1};
    struct ghp_model model;
    int found = 0;

    put_embeddings(S);
    constant("wq", GHP_ONNX_FLOAT, 2, (int64_t[]){C, 4}, w);
    constant("wk", GHP_ONNX_FLOAT, 2, (int64_t[]){C, 2}, w);
    constant("four", GHP_ONNX_INT64, 1, (int64_t[]){4}, four);
    constant("two", GHP_ONNX_INT64, 1, (int64_t[]){4}, two);
    constant("more", GHP_ONNX_INT64, 1, (int64_t[]){1}, more);
    constant("wide", GHP_ONNX_INT64, 1, (int64_t[]){5}, wide);
    constant("all", GHP_ONNX_INT64, 1, (int64_t[]){4}, all);
    put_heads(q, "wq", "four");
    put_heads(k, "wk", "two");
    node("Relu", "positive", "k linear", NULL); /* values, so that they are another layer */
    node("Reshape", "v apart", "positive", "two");
    list(node("Transpose", "v once", "v apart", NULL), "perm", (const int64_t[]){0, 2, 1, 3}, 4);
    node("Unsqueeze", "k among", "k once", "more");
    node("Expand", "k often", "k among", "wide");
    node("Reshape", "k", "k often", "all");
    node("Unsqueeze", "v among", "v once", "more");
    node("Expand", "v often", "v among", "wide");
    node("Reshape", "v", "v often", "all");
    node3("Attention", "look", "q", "k", "v");
    node("Flatten", "y", "look", NULL);
    save(path, "y");
    if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) return;
    for (int i = 0; i < model.n_layers; i++) {
        if (model.layers[i].op != GHP_OP_ATTENTION) continue;
        found++;
        CHECK_EQ(model.layers[i].heads.n, 4);
        CHECK_EQ(model.layers[i].heads.n_kv, 2);
        CHECK(!model.layers[i].heads.causal);
    }
    CHECK_EQ(found, 1);
    ghp_model_release(&model);
}

/* Layer scale on a class token alone. */
static void check_one_position(void)
{
    struct ghp_model model;

    begin_ids(17, -1, 1);
    constant("wte.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){V, C}, wte);
    constant("w", GHP_ONNX_FLOAT, 2, (int64_t[]){C, C}, w);
    constant("gamma", GHP_ONNX_FLOAT, 1, (int64_t[]){C}, wpe);
    node("Gather", "token", "wte.weight", "x");
    node("MatMul", "product", "token", "w");
    node("Mul", "scaled", "product", "gamma");
    node("Flatten", "y", "scaled", NULL);
    save(path, "y");
    if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) return;
    CHECK_EQ(model.layers[4].op, GHP_OP_CONV2D);
    CHECK_EQ(model.layers[4].params[0].elements, C);
    ghp_model_release(&model);
}

static void check_refusals(void)
{
    refused_by(-1, CONTEXT + 1, "takes from places beyond its axis");
    refused_by(S, 5, "has 4 positions, but 5 are asked for; leave @5 out");

    put_embeddings(S);
    node("Relu", "y", "x", NULL);
    refused(path, "y", GHP_ERR_INPUT, "node 'y' (Relu, opset 17) computes with token ids");
    node("Gather", "z", "[0]", "x");
    refused(path, "z", GHP_ERR_INPUT, "looks token ids up in something else");
    node("Gather", "lost", "no.weight", "x");
    refused(path, "lost", GHP_ERR_INPUT, "reads 'no.weight', which no earlier node makes");
    constant("other", GHP_ONNX_FLOAT, 2, (int64_t[]){C, V}, wte_turned);
    node("Gather", "a", "other", "x");
    node("Add", "sum", "x1", "a");
    refused(path, "sum", GHP_ERR_INPUT, "a table of 4 rows, where another has 7");

    begin(17, -1, S, 0, 0); /* ids that are not whole numbers */
    constant("wte.weight", GHP_ONNX_FLOAT, 2, (int64_t[]){V, C}, wte);
    number(node("Cast", "ids", "x", NULL), "to", GHP_ONNX_INT64);
    node("Gather", "y", "wte.weight", "ids");
    refused(path, "y", GHP_ERR_INPUT, "node 'ids' (Cast, opset 17) casts samples to whole numbers");

    put_embeddings(S);
    constant("rows", GHP_ONNX_INT64, 1, (int64_t[]){2}, rows);
    constant("b", GHP_ONNX_FLOAT, 1, (int64_t[]){C}, b);
    node("Reshape", "joined", "x1", "rows");
    node("LayerNormalization", "y", "joined", "b");
    refused(path, "y", GHP_ERR_INPUT, "joins samples with their positions");
}

/* A mask of padding and the places of positions are inputs next to the ids; others are refused. */
static void check_other_inputs(void)
{
    struct ghp_onnx_value inputs[3];

    put_embeddings(S);
    for (int i = 0; i < 3; i++)
        inputs[i] = ends[0];
    inputs[0].name = "attention_mask"; /* in front, as some have it */
    inputs[2].name = "position_ids";
    inputs[0].dims[1] = inputs[2].dims[1] = -1;
    graph.inputs = inputs;
    graph.n_inputs = 3;
    put_rest();
    in_names[5][1] = "position_ids"; /* looked up in place of those that are counted */
    save(path, "y");
    layers_are(path, true);
    /* as many as the mask has ones up to each, less one */
    in_names[5][1] = "places";
    nodes[1].op = "CumSum";
    nodes[1].n_inputs = 2;
    in_names[1][0] = "attention_mask";
    in_names[1][1] = "1";
    nodes[2].op = "Sub";
    in_names[2][0] = "sizes";
    nodes[3].op = "Identity";
    nodes[3].n_inputs = 1;
    in_names[3][0] = "n";
    nodes[4].op = "Identity";
    nodes[4].n_inputs = 1;
    in_names[4][0] = "counted";
    save(path, "y");
    layers_are(path, true);
    inputs[2].dims[1] = S + 1;
    in_names[5][1] = "position_ids";
    refused(path, "y", GHP_ERR_INPUT, "has 5 positions, but the token ids 4");
    inputs[2].dims[1] = S;
    inputs[2].name = "token_type_ids";
    in_names[5][1] = "token_type_ids";
    refused(path, "y", GHP_ERR_INPUT, "the input 'token_type_ids' comes with token ids");
}

CHECK_TEST(sequences)
{
    snprintf(path, sizeof path, "/tmp/ghp-sequences-%ld.onnx", (long)getpid());
    for (int i = 0; i < V * C; i++) {
        wte[i] = (float)(i * 5 % 13 - 6) / 8;
        wte_turned[i % C * V + i / C] = wte[i];
    }
    for (int i = 0; i < CONTEXT * C; i++)
        wpe[i] = (float)(i * 3 % 11 - 5) / 8;
    for (int i = 0; i < C * C; i++)
        w[i] = (float)(i * 7 % 17 - 8) / 8;
    check_tables();
    check_equal_by_chance();
    check_masks();
    check_shared_heads();
    check_one_position();
    check_refusals();
    check_other_inputs();
    unlink(path);
    return check_end();
}
