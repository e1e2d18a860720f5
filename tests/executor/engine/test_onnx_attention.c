/* tests/executor/engine/test_onnx_attention.c - attention as files say it, from one product for queries, keys and
 * values or from three: becomes linear layers and attention, and computes what they mean. */
#include "tests/executor/onnx_heads.h"

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

/* An attention that is computed step by step: none is left. */
static void check_steps(void)
{
    struct ghp_model model;
    int drops = 0;

    node("Flatten", "flat", "y", NULL);
    save(path, "flat");
    if (!CHECK_STATUS(ghp_onnx_load(path, &model), GHP_OK)) return;
    for (int i = 0; i < model.n_layers; i++) {
        CHECK(model.layers[i].op != GHP_OP_ATTENTION);
        drops += model.layers[i].op == GHP_OP_DROPOUT;
    }
    CHECK_EQ(drops, 1);
    ghp_model_release(&model);
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
            check_steps();
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
    node("Mul", "m", "weights", "factor");
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
    begin_heads("attention");
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
