/* tests/core/model/test_attention.c - operations with heads: what the reader refuses, what a file keeps, how heads are
 * divided, and the multiplications that costs count. */
#include "core/model/model_private.h"
#include "core/sharding/local.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A network on 4 positions of 24 channels, with keys and values of as many as `kv`, that layer and a loss. */
static enum ghp_status parse(int kv, const char *layer, struct ghp_model *model)
{
    char text[1024];

    snprintf(
        text, sizeof text,
        "{\"format\":\"ghp.model/1\",\"name\":\"t\",\"input\":{\"channels\":24,\"positions\":4},"
        "\"layers\":[{\"name\":\"k\",\"op\":\"linear\",\"features\":%d,\"inputs\":[\"input\"]},"
        "{\"name\":\"v\",\"op\":\"linear\",\"features\":%d,\"inputs\":[\"input\"]},"
        "{\"name\":\"it\",%s},{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}",
        kv, kv, layer);
    return ghp_model_parse(text, "t.json", model);
}

#define ATTENTION(keys) "\"op\":\"attention\",\"inputs\":[\"input\",\"k\",\"v\"]," keys
/* Keys of the first two positions. */
#define FEWER(keys)                                                                                \
    "\"op\":\"view\",\"channels\":24,\"height\":2,\"sizes\":[24,2],\"strides\":[4,1],"             \
    "\"sequence\":true,\"inputs\":[\"k\"]},{\"name\":\"same\",\"op\":\"relu\"},{\"name\":"         \
    "\"less\","                                                                                    \
    "\"op\":\"attention\",\"inputs\":[\"input\",\"it\",\"same\"]," keys

static void test_refusals(void)
{
    static const struct {
        int kv;
        const char *layer, *message;
    } cases[] = {
        {24, ATTENTION("\"heads\":5"), "cannot make 5 heads of 24 channels"},
        {12, ATTENTION("\"heads\":6,\"kv_heads\":4"), "cannot share 4 kv_heads among 6 heads"},
        {12, ATTENTION("\"heads\":6,\"kv_heads\":2"),
         "reads keys from 'k.bias' of shape 12 channels x 4 positions; make it 8 channels x 4"},
        {24, ATTENTION("\"heads\":6,\"kv_heads\":0"), "from 1 to"},
        {24, FEWER("\"heads\":6"), "has 4 queries and 2 keys"},
        {24, FEWER("\"heads\":6,\"causal\":false,\"dropout\":0.5"), "set its dropout to 0"},
        {24, "\"op\":\"attention\",\"heads\":2,\"inputs\":[\"k\",\"v\"]", "has 2 inputs; name 3"},
        {24, ATTENTION("\"heads\":6,\"causal\":false,\"window\":3"),
         "is not causal; make it causal"},
        {24, ATTENTION("\"heads\":6,\"pad_token\":0"), "but reads no token ids; name"},
        {24, "\"op\":\"rms_norm\",\"head_size\":10",
         "24 channels, which do not divide into heads of 10"},
        {24, "\"op\":\"rotary\",\"head_size\":3", "use an even head_size"},
        {24, "\"op\":\"rotary\",\"head_size\":10",
         "24 channels, which do not divide into heads of 10"},
    };
    struct ghp_model model;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(parse(cases[i].kv, cases[i].layer, &model) != GHP_OK);
        CHECK_MESSAGE(cases[i].message);
    }
    CHECK(ghp_model_parse("{\"format\":\"ghp.model/1\",\"name\":\"t\",\"input\":{\"channels\":8,"
                          "\"height\":4,\"width\":4},\"layers\":[{\"name\":\"a\",\"op\":\"rotary\","
                          "\"head_size\":4}]}",
                          "t.json", &model) != GHP_OK);
    CHECK_MESSAGE("layer 'a' (rotary) takes a sequence, but its input is 8x4x4");
}

/* Fewer heads of keys than of queries are kept; as many are the default, and not written. */
static void test_written(void)
{
    static const struct {
        int kv;
        const char *keys;
        bool written;
    } cases[] = {{24, "\"heads\":6,\"kv_heads\":6", false},
                 {8, "\"heads\":6,\"kv_heads\":2", true}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char layer[256], *text = NULL;
        struct ghp_model model;

        snprintf(layer, sizeof layer, ATTENTION("%s"), cases[i].keys);
        if (!CHECK_STATUS(parse(cases[i].kv, layer, &model), GHP_OK)) return;
        CHECK_STATUS(ghp_model_write(&model, &text), GHP_OK);
        CHECK_EQ(strstr(text, cases[i].keys) != NULL, cases[i].written);
        CHECK_EQ(strstr(text, "kv_heads") != NULL, cases[i].written);
        free(text);
        ghp_model_release(&model);
    }
}

/* Whole heads of keys and values with the queries that read them; 2 s^2 / 2 multiply-adds a channel, and 2.5 times as
 * many backward. */
static void test_divided(void)
{
    const struct ghp_problem problem = {.workers = 4, .global_batch = 8};
    struct ghp_layer *it;
    struct ghp_model model;
    struct ghp_local local;
    char key[GHP_KEY_BYTES];
    int at;

    if (!CHECK_STATUS(parse(8, ATTENTION("\"heads\":6,\"kv_heads\":2"), &model), GHP_OK)) return;
    at = ghp_model_find(&model, "it");
    it = &model.layers[at];
    CHECK_STATUS(
        ghp_split_check(it, (struct ghp_split){.kind = GHP_SPLIT_CHANNEL, .tp_size = 4}, problem),
        GHP_ERR_INPUT);
    CHECK_MESSAGE("2 heads are not a multiple of 4; use TP size 2");
    CHECK_STATUS(
        ghp_split_check(it, (struct ghp_split){.kind = GHP_SPLIT_CHANNEL, .tp_size = 2}, problem),
        GHP_OK);
    local = ghp_local_of(&model, at, (struct ghp_split){.kind = GHP_SPLIT_CHANNEL, .tp_size = 2},
                         problem);
    ghp_local_key(&local, key);
    CHECK_TEXT(key, "attention n4 c20 h4 w1 heads3 kv1 size4 causal");
    CHECK(local.slice[0] == 12 && local.slice[1] == 4 && local.slice[2] == 4 && local.k == 12);
    CHECK_EQ(ghp_local_saved_bytes(&local, 2), 4 * 3 * 4 * 4);
    CHECK_EQ(ghp_layer_flops(it), 2 * 2 * (4 * 4 / 2) * 24);
    CHECK_EQ(2 * ghp_local_flops(&local, GHP_PASS_BACKWARD_DATA),
             5 * ghp_local_flops(&local, GHP_PASS_FORWARD));
    /* of four positions the last two queries: three keys of the first, all of the second, as pairs and a half each */
    local = ghp_local_of(&model, at, (struct ghp_split){.kind = GHP_SPLIT_POSITION, .tp_size = 2},
                         problem);
    ghp_local_key(&local, key);
    CHECK_TEXT(key, "attention n4 c40 h2 w1 heads6 kv2 size4 keys4 causal");
    CHECK_EQ(ghp_local_in_elements(&local), 4 * (2 * 24 + 4 * 2 * 8));
    CHECK_EQ(ghp_local_saved_bytes(&local, 2), 4 * 6 * 2 * 4);
    CHECK_EQ(ghp_local_flops(&local, GHP_PASS_FORWARD), 2 * 4 * (4 * 4 - 2 * 2) * 24);
    ghp_model_release(&model);
    if (!CHECK_STATUS(parse(24, ATTENTION("\"heads\":6,\"window\":2"), &model), GHP_OK)) return;
    /* one key of the first position, two of each other */
    it = &model.layers[ghp_model_find(&model, "it")];
    CHECK_EQ(ghp_layer_flops(it), 2 * (4 * 2 - 2 * 2 / 2) * 2 * 24);
    ghp_model_release(&model);
}

CHECK_TEST(attention)
{
    test_refusals();
    test_written();
    test_divided();
    return check_end();
}
