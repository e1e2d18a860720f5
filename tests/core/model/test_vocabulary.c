/* tests/core/model/test_vocabulary.c - a network's key vocabulary_multiple: which layers it pads, what stays as it was,
 * and a table that is tied to something else than logits. */
#include "core/model/vocabulary.h"
#include "core/sharding/local.h"
#include "tests/check.h"

static const char tied[] = GHP_SOURCE_DIR "/tests/executor/tied.json",
                  untied[] = GHP_SOURCE_DIR "/tests/executor/tokens.json",
                  images[] = GHP_SOURCE_DIR "/models/lenet5.json";

/* Columns of the last linear layer's outputs and rows of the table, of one worker. */
static void check_sizes(const struct ghp_model *model, int64_t columns, int64_t rows)
{
    const struct ghp_split whole = {.kind = GHP_SPLIT_DATA, .tp_size = 1};
    const struct ghp_problem problem = {.workers = 1, .global_batch = 2};
    int out = ghp_model_find(model, "out"), table = ghp_model_find(model, "embed");

    CHECK_EQ(ghp_local_of(model, out, whole, problem).k, columns);
    CHECK_EQ(ghp_local_of(model, model->n_layers - 1, whole, problem).c, columns);
    CHECK_EQ(ghp_local_of(model, table, whole, problem).vocabulary, rows);
    CHECK_EQ(ghp_local_of(model, ghp_model_find(model, "up"), whole, problem).k, 24);
}

static void check_padded(const char *path, int64_t words, int64_t rows)
{
    struct ghp_model model;
    uint64_t hash;
    int64_t weights;

    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) return;
    hash = model.hash;
    weights = ghp_layer_weights(&model.layers[ghp_model_find(&model, "embed")]);
    check_sizes(&model, words, words);
    CHECK_STATUS(ghp_model_set_vocabulary(&model, 0), GHP_OK);
    check_sizes(&model, words, words);
    CHECK_STATUS(ghp_model_set_vocabulary(&model, 64), GHP_OK);
    check_sizes(&model, 64, rows);
    CHECK(model.hash == hash && strstr(model.text, "\"vocabulary_multiple\":64") != NULL);
    CHECK_EQ(model.classes, words);
    CHECK_EQ(ghp_layer_weights(&model.layers[ghp_model_find(&model, "embed")]), weights);
    CHECK_STATUS(ghp_model_set_vocabulary(&model, 8), GHP_OK); /* it has one of its own */
    check_sizes(&model, 64, rows);
    ghp_model_release(&model);
}

/* The table is tied to a product in the middle. */
static void check_shared(void)
{
    static const char text[] =
        "{\"format\":\"ghp.model/1\",\"name\":\"shared\",\"vocabulary_multiple\":64,"
        "\"input\":{\"positions\":4,\"vocabulary\":24},\"layers\":["
        "{\"name\":\"embed\",\"op\":\"embedding\",\"channels\":24},"
        "{\"name\":\"up\",\"op\":\"linear\",\"features\":24,\"bias\":false,\"tied\":\"embed\"},"
        "{\"name\":\"gelu\",\"op\":\"gelu\"},"
        "{\"name\":\"out\",\"op\":\"linear\",\"features\":20},"
        "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}";
    struct ghp_model model;

    if (!CHECK_STATUS(ghp_model_parse(text, "shared", &model), GHP_OK)) return;
    check_sizes(&model, 64, 24);
    ghp_model_release(&model);
}

CHECK_TEST(vocabulary)
{
    struct ghp_model model;

    check_padded(tied, 24, 64);
    check_padded(untied, 23, 23);
    check_shared();
    if (CHECK_STATUS(ghp_model_load(images, &model), GHP_OK)) {
        CHECK_STATUS(ghp_model_set_vocabulary(&model, 64), GHP_OK);
        CHECK_EQ(model.layers[model.n_layers - 1].in.columns, 0);
        ghp_model_release(&model);
    }
    return check_end();
}
