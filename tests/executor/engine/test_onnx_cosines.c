/* tests/executor/engine/test_onnx_cosines.c - attention by cosines with a trained factor for each head, and numbers that
 * a file computes of coordinates, as Swin v2 has it: what it becomes computes the same. */
#include "tests/executor/onnx_heads.h"

/* Scores plus a number for each place of a key relative to its query, which the file computes of coordinates. */
static void put_places(const char *out, const char *scores)
{
    static const int64_t parted[3] = {S, S, HEADS}, turn[3] = {2, 0, 1};
    static int64_t places[S * S];

    for (int i = 0; i < S * S; i++)
        places[i] = i / S - i % S + S - 1;
    for (int i = 0; i < 2 * S - 1; i++)
        coordinates[i] = (float)(i - S + 1) / 4;
    constant("coordinates", GHP_ONNX_FLOAT, 2, (int64_t[]){2 * S - 1, 1}, coordinates);
    constant("slopes", GHP_ONNX_FLOAT, 2, (int64_t[]){1, HEADS}, slopes);
    constant("of pairs", GHP_ONNX_INT64, 1, (int64_t[]){S * S}, places);
    constant("parted", GHP_ONNX_INT64, 1, (int64_t[]){3}, parted);
    node("MatMul", "numbers", "coordinates", "slopes");
    node("Gather", "numbers.found", "numbers", "of pairs");
    node("Reshape", "numbers.parted", "numbers.found", "parted");
    list(node("Transpose", "numbers.turned", "numbers.parted", NULL), "perm", turn, 3);
    node("Add", out, scores, "numbers.turned");
}

/* Cosines of queries and keys, times a trained factor for each head, as Swin v2 has them; with its computed numbers and
 * without. */
static void check_cosines(void)
{
    static const float logarithms[HEADS] = {0.5f, 1, 2}, least = 1e-12f;
    static const char *const made[2][4] = {{"q", "q.length", "q.clipped", "q.unit"},
                                           {"k", "k.length", "k.clipped", "k.unit"}};
    static const int64_t last[1] = {-1}, turn[4] = {0, 1, 3, 2};

    begin_sequence(17);
    graph.producer = "pytorch";
    put_qkv(true);
    put_constants();
    constant("t", GHP_ONNX_FLOAT, 3, (int64_t[]){HEADS, 1, 1}, logarithms);
    constant("most", GHP_ONNX_FLOAT, 0, NULL, &most);
    constant("least", GHP_ONNX_FLOAT, 0, NULL, &least);
    for (int i = 0; i < 2; i++) {
        list(node("ReduceL2", made[i][1], made[i][0], NULL), "axes", last, 1);
        node("Clip", made[i][2], made[i][1], "least");
        node("Div", made[i][3], made[i][0], made[i][2]);
    }
    node3("Clip", "t.clipped", "t", "", "most");
    node("Exp", "t.factor", "t.clipped", NULL);
    list(node("Transpose", "turned", "k.unit", NULL), "perm", turn, 4);
    node("MatMul", "scores", "q.unit", "turned");
    node("Mul", placed ? "products" : "scaled", "scores", "t.factor");
    if (placed) put_places("scaled", "products");
    put_weights(UNMASKED, "v");
    put_end();
    factors = logarithms;
    means("y", placed ? 18 : 15,
          false); /* two norms, five layers for the factors, three for places */
    factors = NULL;
}

CHECK_TEST(onnx_cosines)
{
    begin_heads("cosines");
    for (int i = 0; i < 2; i++) {
        placed = i == 1;
        check_cosines();
    }
    unlink(path);
    return check_end();
}
