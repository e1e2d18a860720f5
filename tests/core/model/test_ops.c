/* tests/core/model/test_ops.c - every operation of the registry: its facts hold together, and a layer of it with
 * unusual attributes is read, written and read again as the same layer. The attributes are drawn from the operation's
 * table; an operation with sizes wants a case here, and fails without. */
#include "core/model/model_private.h"
#include "core/model/attributes.h"
#include "core/model/op.h"
#include "core/model/schema.h"
#include "core/sharding/local.h"
#include "tests/check.h"
#include "tests/op_draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of a layer on 4 channels, for operations whose attributes are sizes (tests/op_draw.h). */
static const struct op_keys {
    enum ghp_op op;
    const char *keys;
} cases[] = {
    {GHP_OP_CONV2D,
     ",\"channels\":8,\"kernel\":[3,2],\"stride\":2,\"pad\":[1,0,2,1],\"dilation\":[1,2],"
     "\"groups\":2,\"bias\":false"},
    {GHP_OP_CONV_TRANSPOSE,
     ",\"channels\":8,\"kernel\":[3,2],\"stride\":2,\"pad\":[1,0,2,1],\"dilation\":[1,2],"
     "\"bias\":false"},
    {GHP_OP_CONV_TRANSPOSE, ",\"channels\":8,\"kernel\":3,\"groups\":4,\"bias\":false"},
    {GHP_OP_RESIZE, ",\"height\":9,\"width\":4"},
    {GHP_OP_RESIZE, ",\"height\":3,\"width\":8,\"mode\":\"corners\""},
    {GHP_OP_RANDOM_FEATURES, ",\"features\":5,\"sigma\":0.25,\"seed\":3"},
    {GHP_OP_LINEAR, ",\"features\":5,\"deviation\":0.25,\"fixed\":true,\"bias\":false"},
    {GHP_OP_LINEAR, ",\"features\":5,\"first_weights\":\"uniform\",\"bias\":false"},
    {GHP_OP_MAX_POOL, ",\"kernel\":3,\"stride\":[1,2],\"pad\":1,\"dilation\":[2,1]"},
    {GHP_OP_AVG_POOL, ",\"kernel\":[3,2],\"pad\":[0,0,1,1],\"count_pad\":false"},
    {GHP_OP_BATCH_NORM,
     ",\"epsilon\":0.25,\"momentum\":0.5,\"fixed\":true,\"statistics\":\"local:4\""},
    {GHP_OP_LRN, ",\"size\":3,\"alpha\":0.5,\"beta\":0.25,\"k\":2.0"},
    {GHP_OP_RMS_NORM, ",\"epsilon\":0.25,\"head_size\":2,\"offset\":0.5,\"fixed\":true"},
    {GHP_OP_EMBEDDING, ",\"channels\":3,\"deviation\":0.5"},
    {GHP_OP_ROTARY,
     ",\"head_size\":4,\"base\":100.0,\"rotary_size\":2,\"scaling\":\"yarn\",\"factor\":2.0,"
     "\"beta_slow\":2.0,\"beta_fast\":16.0,\"amplitude\":1.5,\"truncate\":false,"
     "\"original_positions\":8"},
    {GHP_OP_ATTENTION, ",\"heads\":2,\"causal\":false"},
    {GHP_OP_ATTENTION, ",\"heads\":2,\"window\":3,\"scale\":0.25,\"softcap\":30.0"},
    {GHP_OP_ATTENTION, ",\"heads\":2,\"dropout\":0.25"},
    {GHP_OP_WINDOW_ATTENTION,
     ",\"heads\":2,\"window_height\":3,\"window_width\":1,\"windows_across\":2,\"shift_height\":1,"
     "\"scale\":0.25,\"deviation\":0.5,\"fixed\":true"},
    {GHP_OP_VIEW, ",\"channels\":2,\"height\":3,\"sizes\":[2,3],\"strides\":[-36,6],\"offset\":40"},
    {GHP_OP_VIEW,
     ",\"channels\":2,\"height\":18,\"sizes\":[2,18],\"strides\":[72,2],\"sequence\":true"},
    {GHP_OP_PARAMETER, ",\"channels\":3,\"height\":2,\"width\":5,\"deviation\":0.5,\"fixed\":true"},
    {GHP_OP_PREPEND, ",\"positions\":3,\"deviation\":0.5"},
    {GHP_OP_LOSSES,
     ",\"losses\":[{\"op\":\"softmax_cross_entropy\",\"channels\":2,\"smoothing\":0.25},"
     "{\"op\":\"regression\",\"channels\":1,\"weight\":0.5,\"error\":\"huber\",\"delta\":2.0},"
     "{\"op\":\"binary_cross_entropy\",\"channels\":1,\"multi_label\":true}]"},
    {GHP_OP_PAD, ",\"pad\":[1,0,2,1],\"pad_channels\":[1,2],\"fill\":\"edge\",\"value\":1.5"},
};

/* Every writing must keep all keys. */
static void check_round_trip(enum ghp_op op, const char *keys)
{
    struct ghp_model model, again;
    char *written, *rewritten;
    int it;

    if (!CHECK_STATUS(op_draw_model(op, keys, &model), GHP_OK)) return;
    CHECK_STATUS(ghp_model_write(&model, &written), GHP_OK);
    if (!CHECK(strstr(written, keys) != NULL)) fprintf(stderr, "  %s in %s\n", keys, written);
    CHECK_STATUS(ghp_model_parse(written, "again", &again), GHP_OK);
    CHECK_STATUS(ghp_model_write(&again, &rewritten), GHP_OK);
    CHECK_TEXT(rewritten, written);
    free(written);
    free(rewritten);
    it = ghp_model_find(&model, "it");
    CHECK(again.n_layers == model.n_layers);
    CHECK(again.layers[it].op == op);
    CHECK(memcmp(&again.layers[it].window, &model.layers[it].window, sizeof(struct ghp_window)) ==
          0);
    ghp_model_release(&again);
    ghp_model_release(&model);
}

/* Another value of an attribute; NULL: there are no more. */
static json_t *another(const json_t *value, const struct ghp_attribute *a, int i)
{
    json_t *array;

    if (a->kind == GHP_ATTRIBUTE_CHOICE) return a->choices[i] ? json_string(a->choices[i]) : NULL;
    if (i > 1) return NULL;
    if (json_is_boolean(value)) return i == 0 ? json_boolean(!json_is_true(value)) : NULL;
    if (json_is_real(value)) return json_real(json_real_value(value) * (i == 0 ? 0.5 : 0.25));
    if (json_is_integer(value)) return json_integer(json_integer_value(value) + (i == 0 ? 1 : -1));
    array = json_deep_copy(value);
    json_array_set_new(array, 0, another(json_array_get(value, 0), a, i));
    return array;
}

/* Whether the layer with these keys may run the kernels of another; -1: there is no such layer. */
static int shares_kernels(enum ghp_op op, const json_t *keys, const struct ghp_local *whole)
{
    char *text = json_dumps(keys, JSON_COMPACT);
    struct ghp_model model;
    int same = -1;

    text[0] = ',';
    text[strlen(text) - 1] = '\0';
    if (op_draw_model(op, text, &model) == GHP_OK) {
        struct ghp_local local = ghp_local_whole(&model.layers[ghp_model_find(&model, "it")]);

        same = ghp_local_equal(&local, whole);
        ghp_model_release(&model);
    }
    free(text);
    return same;
}

static void check_kernels_of(enum ghp_op op, const json_t *keys, const struct ghp_attribute *table,
                             const struct ghp_local *whole)
{
    size_t first = offsetof(struct ghp_layer, attributes);

    CHECK(json_object_size(keys) == 0 || shares_kernels(op, keys, whole) == 1);
    for (const struct ghp_attribute *a = table; a != NULL && a->key != NULL; a++) {
        const json_t *value = json_object_get(keys, a->key);
        bool is_kernels = a->at[0] >= first && a->at[0] < first + sizeof(struct ghp_attributes);
        int tried = 0;

        for (int i = 0; a->brings != NULL && a->choices[i] != NULL; i++)
            if (json_is_string(value) && strcmp(a->choices[i], json_string_value(value)) == 0)
                check_kernels_of(op, keys, a->brings[i], whole);
        if (value == NULL || !is_kernels || a->kind == GHP_ATTRIBUTE_OTHER ||
            a->kind == GHP_ATTRIBUTE_LOSSES)
            continue;
        for (json_t *changed; (changed = another(value, a, tried)) != NULL; tried++) {
            json_t *other = json_deep_copy(keys);
            bool equal = json_equal(changed, value) != 0;

            json_object_set_new(other, a->key, changed);
            if (!CHECK(equal || shares_kernels(op, other, whole) != 1))
                fprintf(stderr, "  %s: %s\n", ghp_op_name(op), a->key);
            json_decref(other);
        }
        CHECK(tried > 0);
    }
}

/* Layers share kernels if all attributes are the same. */
static void check_kernels(enum ghp_op op, const char *keys)
{
    struct ghp_local whole;
    struct ghp_model model;
    char text[640];
    json_t *all;

    if (!CHECK_STATUS(op_draw_model(op, keys, &model), GHP_OK)) return;
    whole = ghp_local_whole(&model.layers[ghp_model_find(&model, "it")]);
    ghp_model_release(&model);
    snprintf(text, sizeof text, "{%s}", keys[0] == ',' ? keys + 1 : keys);
    all = json_loads(text, 0, NULL);
    check_kernels_of(op, all, ghp_op_of(op)->attributes, &whole);
    json_decref(all);
}

static void check_facts(enum ghp_op op)
{
    const struct ghp_op_facts *facts = ghp_op_of(op);
    enum ghp_op found = GHP_OP_COUNT;
    unsigned writes = 0, reads = ghp_op_backward_reads(op);

    for (int pass = 0; pass < GHP_PASS_COUNT; pass++)
        writes |= facts->passes[pass].writes;
    CHECK(ghp_op_find(ghp_op_name(op), &found) && found == op);
    CHECK(facts->is_input != ghp_op_has_pass(op, GHP_PASS_FORWARD));
    CHECK((facts->params[0].part != NULL && !facts->stays_fixed) == ((writes & GHP_AT_DW) != 0));
    CHECK((facts->saved_bytes[0] != NULL) == ((writes & GHP_AT_SAVED) != 0));
    CHECK(facts->saved_bytes[0] == NULL || (reads & GHP_AT_SAVED) != 0);
    CHECK((facts->stats_numbers != NULL) == ((writes & GHP_AT_STATS) != 0));
    CHECK(facts->is_loss == ((writes & GHP_AT_METRICS) != 0));
    /* what is overwritten in place cannot be read later */
    CHECK(facts->in_place == NULL || (reads & GHP_AT_X) == 0);
}

/* The schema has each operation, with its table's keys. */
static void check_schema(void)
{
    json_t *schema, *layers;
    char *text = NULL;
    size_t at = 0;

    if (!CHECK_STATUS(ghp_layer_schema(&text), GHP_OK)) return;
    schema = json_loads(text, 0, NULL);
    layers = json_object_get(schema, "allOf");
    for (int op = 0; op < GHP_OP_COUNT; op++) {
        const struct ghp_op_facts *facts = ghp_op_of((enum ghp_op)op);
        json_t *layer, *choices, *keys;

        if (facts->is_input) continue;
        layer = json_object_get(json_array_get(layers, at++), "then");
        choices = json_object_get(layer, "oneOf");
        keys = json_object_get(choices != NULL ? json_array_get(choices, 0) : layer, "properties");
        CHECK_TEXT(json_string_value(json_object_get(json_object_get(keys, "op"), "const")),
                   ghp_op_name((enum ghp_op)op));
        for (const struct ghp_attribute *a = facts->attributes; a != NULL && a->key != NULL; a++)
            CHECK(json_object_get(keys, a->key) != NULL);
        CHECK(facts->has_bias == (json_object_get(keys, "bias") != NULL));
    }
    CHECK(at == json_array_size(layers));
    json_decref(schema);
    free(text);
}

/* Outputs of one width with different losses are different kernels in a profile. */
static void check_loss_keys(void)
{
    enum { KINDS = GHP_OP_REGRESSION - GHP_OP_SOFTMAX_CE + 1 };
    char of[KINDS][GHP_KEY_BYTES], keys[256];

    for (int i = 0; i < KINDS; i++) {
        struct ghp_model model;
        struct ghp_local local;

        snprintf(keys, sizeof keys,
                 ",\"losses\":[{\"op\":\"softmax_cross_entropy\",\"channels\":2},"
                 "{\"op\":\"%s\",\"channels\":2}]",
                 ghp_op_name((enum ghp_op)(GHP_OP_SOFTMAX_CE + i)));
        if (!CHECK_STATUS(op_draw_model(GHP_OP_LOSSES, keys, &model), GHP_OK)) return;
        local = ghp_local_whole(&model.layers[ghp_model_find(&model, "it")]);
        ghp_local_key(&local, of[i]);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(of[i], of[k]) != 0);
        ghp_model_release(&model);
    }
}

CHECK_TEST(ops)
{
    bool has_case[GHP_OP_COUNT] = {[GHP_OP_INPUT] = true};
    char keys[512];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_round_trip(cases[i].op, cases[i].keys);
        check_kernels(cases[i].op, cases[i].keys);
        has_case[cases[i].op] = true;
    }
    for (int op = 0; op < GHP_OP_COUNT; op++) {
        check_facts((enum ghp_op)op);
        for (int i = 0; op_draw((enum ghp_op)op, i, keys, sizeof keys); i++) {
            check_round_trip((enum ghp_op)op, keys);
            check_kernels((enum ghp_op)op, keys);
            has_case[op] = true;
        }
        if (!CHECK(has_case[op])) fprintf(stderr, "  %s\n", ghp_op_name((enum ghp_op)op));
    }
    check_schema();
    check_loss_keys();
    return check_end();
}
