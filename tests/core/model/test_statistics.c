/* tests/core/model/test_statistics.c - all batch norms of a network get other statistics, and the network's own again;
 * a network without any, and statistics that there are not. */
#include "core/model/statistics.h"
#include "tests/check.h"

static void check_set(struct ghp_model *model, const char *statistics, bool local, int64_t samples)
{
    char text[GHP_STATISTICS_TEXT_SIZE];
    int norms = 0;

    if (!CHECK_STATUS(ghp_model_set_statistics(model, statistics), GHP_OK)) return;
    for (int v = 0; v < model->n_layers; v++) {
        if (model->layers[v].op != GHP_OP_BATCH_NORM) continue;
        norms++;
        CHECK(model->layers[v].norm.local_stats == local);
        CHECK_EQ(model->layers[v].norm.ghost_batch, samples);
    }
    CHECK_EQ(norms, 53);
    CHECK_TEXT(ghp_statistics_format(ghp_model_batch_norm(model), text), statistics);
    CHECK(ghp_model_has_global_statistics(model) == (!local && samples == 0));
}

CHECK_TEST(statistics)
{
    struct ghp_model model;
    static const char *const wrong[] = {"", "0", "-4", "4x", "local:4", "99999999999", "sync"};
    char text[GHP_STATISTICS_TEXT_SIZE];
    uint64_t hash;

    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/resnet50.json", &model), GHP_OK);
    hash = model.hash;
    check_set(&model, "local", true, 0);
    CHECK(model.hash != hash);
    check_set(&model, "local:32", false, 32);
    CHECK_STATUS(ghp_model_set_statistics(&model, "mine"), GHP_ERR_FORMAT);
    CHECK_MESSAGE("global, local, local:S");
    check_set(&model, "global", false, 0);
    CHECK(model.hash == hash);
    ghp_model_release(&model);
    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/models/vgg16.json", &model), GHP_OK);
    hash = model.hash;
    CHECK(ghp_model_batch_norm(&model) == NULL && !ghp_model_has_global_statistics(&model));
    CHECK_STATUS(ghp_model_set_statistics(&model, "local"), GHP_OK);
    CHECK(model.hash == hash);
    ghp_model_release(&model);
    CHECK_STATUS(ghp_statistics_parse("32", text), GHP_OK);
    CHECK_TEXT(text, "local:32");
    CHECK_STATUS(ghp_statistics_parse("local", text), GHP_OK);
    CHECK_TEXT(text, "local");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_STATUS(ghp_statistics_parse(wrong[i], text), GHP_ERR_USAGE);
    return check_end();
}
