/* tests/core/model/test_ops.c - every operation of the registry: its facts hold together, and a layer of it with
 * unusual attributes is read, written and read again as the same layer. An operation without a case here fails. */
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The keys of one layer each, which every writing must keep; the input has 4 channels of 6 x 6 pixels, or one pixel. */
static const struct op_keys {
    enum ghp_op op;
    bool vector;
    const char *keys;
} cases[] = {
    {GHP_OP_CONV2D, false,
     "\"channels\":8,\"kernel\":[3,2],\"stride\":2,\"pad\":[1,0,2,1],\"dilation\":[1,2],"
     "\"groups\":2,\"bias\":false"},
    {GHP_OP_LINEAR, true, "\"features\":5,\"bias\":false"},
    {GHP_OP_BIAS, false, NULL},
    {GHP_OP_RELU, false, NULL},
    {GHP_OP_ACTIVATION, false, "\"function\":\"clip\",\"alpha\":-0.5,\"beta\":2.5"},
    {GHP_OP_ACTIVATION, false, "\"function\":\"leaky_relu\",\"alpha\":0.25"},
    {GHP_OP_GELU, false, "\"approximate\":\"tanh\""},
    {GHP_OP_MAX_POOL, false, "\"kernel\":3,\"stride\":[1,2],\"pad\":1,\"dilation\":[2,1]"},
    {GHP_OP_AVG_POOL, false, "\"kernel\":[3,2],\"pad\":[0,0,1,1],\"count_pad\":false"},
    {GHP_OP_GLOBAL_AVG_POOL, false, NULL},
    {GHP_OP_BATCH_NORM, false, "\"epsilon\":0.25,\"momentum\":0.5,\"statistics\":\"local:4\""},
    {GHP_OP_LRN, false, "\"size\":3,\"alpha\":0.5,\"beta\":0.25,\"k\":2.0"},
    {GHP_OP_LAYER_NORM, false, "\"epsilon\":0.25,\"bias\":false"},
    {GHP_OP_RMS_NORM, false, "\"epsilon\":0.25"},
    {GHP_OP_DROPOUT, false, "\"ratio\":0.25"},
    {GHP_OP_ADD, false, "\"inputs\":[\"input\",\"first\"]"},
    {GHP_OP_MUL, false, "\"inputs\":[\"input\",\"first\"]"},
    {GHP_OP_CONCAT, false, "\"inputs\":[\"input\",\"first\"]"},
    {GHP_OP_FLATTEN, false, NULL},
    {GHP_OP_VIEW, false,
     "\"channels\":2,\"height\":3,\"sizes\":[2,3],\"strides\":[-36,6],\"offset\":40"},
    {GHP_OP_PAD, false, "\"pad\":[1,0,2,1],\"pad_channels\":[1,2],\"fill\":\"edge\",\"value\":1.5"},
    {GHP_OP_SOFTMAX_CE, true, NULL},
};

static void check_round_trip(const struct op_keys *c)
{
    struct ghp_model model, again;
    char text[1024], *written, *rewritten;
    bool loss = ghp_op_of(c->op)->is_loss;

    snprintf(text, sizeof text,
             "{\"format\":\"ghp.model/1\",\"name\":\"m\",\"input\":{\"channels\":4%s},\"layers\":["
             "{\"name\":\"first\",\"op\":\"relu\"},{\"name\":\"it\",\"op\":\"%s\"%s%s}%s]}",
             c->vector ? "" : ",\"height\":6,\"width\":6", ghp_op_name(c->op),
             c->keys != NULL ? "," : "", c->keys != NULL ? c->keys : "",
             loss ? ""
                  : ",{\"name\":\"flat\",\"op\":\"flatten\"},"
                    "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}");
    CHECK_STATUS(ghp_model_parse(text, ghp_op_name(c->op), &model), GHP_OK);
    if (model.n_layers < 3) return;
    CHECK_STATUS(ghp_model_write(&model, &written), GHP_OK);
    CHECK(c->keys == NULL || strstr(written, c->keys) != NULL);
    CHECK_STATUS(ghp_model_parse(written, "again", &again), GHP_OK);
    CHECK_STATUS(ghp_model_write(&again, &rewritten), GHP_OK);
    CHECK_TEXT(rewritten, written);
    free(written);
    free(rewritten);
    CHECK(again.n_layers == model.n_layers);
    CHECK(again.layers[2].op == c->op);
    CHECK(memcmp(&again.layers[2].window, &model.layers[2].window, sizeof(struct ghp_window)) == 0);
    ghp_model_release(&again);
    ghp_model_release(&model);
}

static void check_facts(enum ghp_op op)
{
    const struct ghp_op_facts *facts = ghp_op_of(op);
    enum ghp_op found = GHP_OP_COUNT;
    unsigned writes = 0, reads = ghp_op_backward_reads(op);

    for (int pass = 0; pass < GHP_PASS_COUNT; ++pass)
        writes |= facts->passes[pass].writes;
    CHECK(ghp_op_find(facts->name, &found) && found == op);
    CHECK(facts->is_input != ghp_op_has_pass(op, GHP_PASS_FORWARD));
    CHECK((facts->params[0].part != NULL) == ((writes & GHP_AT_DW) != 0));
    CHECK((facts->saved_bytes[0] != NULL) == ((writes & GHP_AT_SAVED) != 0));
    CHECK(facts->saved_bytes[0] == NULL || (reads & GHP_AT_SAVED) != 0);
    CHECK(facts->has_batch_statistics == ((writes & GHP_AT_STATS) != 0));
    CHECK(facts->is_loss == ((writes & GHP_AT_METRICS) != 0));
    /* what is overwritten in place cannot be read later */
    CHECK(facts->in_place == NULL || (reads & GHP_AT_X) == 0);
}

CHECK_TEST(ops)
{
    bool has_case[GHP_OP_COUNT] = {[GHP_OP_INPUT] = true};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        check_round_trip(&cases[i]);
        has_case[cases[i].op] = true;
    }
    for (int op = 0; op < GHP_OP_COUNT; ++op) {
        check_facts((enum ghp_op)op);
        CHECK(has_case[op]);
    }
    return check_end();
}
