/* tests/onnx/test_export.c - networks written as ONNX and read back are the same networks, with the same weights. */
#include "core/model/model_private.h"
#include "onnx/onnx.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

/* A value for each element, whatever reads it. */
static float value_of(const char *name, int64_t i)
{
    return (float)((strlen(name) * 131 + (size_t)i * 7) % 1024) / 1024.0f;
}

static enum ghp_status fill(void *context, const struct ghp_param *param, float *values)
{
    (void)context;
    for (int64_t i = 0; i < param->elements; i++)
        values[i] = value_of(param->name, i);
    return GHP_OK;
}

/* Every tensor of the file has the values that `fill` gave it; or where it has none, says so. */
static void check_tensors(int n_expected, bool filled)
{
    struct ghp_onnx_tensors *tensors;

    if (!CHECK_STATUS(ghp_onnx_tensors_open(path, &tensors), GHP_OK)) return;
    CHECK_EQ(ghp_onnx_tensors_count(tensors), n_expected);
    for (int t = 0; t < ghp_onnx_tensors_count(tensors); t++) {
        struct ghp_onnx_weight weight = ghp_onnx_tensors_item(tensors, t);
        float *values = malloc((size_t)weight.elements * sizeof *values);
        bool same = true;

        CHECK_EQ(weight.is_filled, filled);
        CHECK_STATUS(ghp_onnx_tensors_read(tensors, t, values), GHP_OK);
        for (int64_t i = 0; i < weight.elements; i++)
            same =
                same && (filled ? values[i] == values[0] : values[i] == value_of(weight.name, i));
        if (!CHECK(same)) fprintf(stderr, "  in %s\n", weight.name);
        free(values);
    }
    ghp_onnx_tensors_close(tensors);
}

static int tensors_of(const struct ghp_model *model)
{
    int n = 0;

    for (int i = 0; i < model->n_layers; i++)
        n += model->layers[i].n_params + model->layers[i].n_states;
    return n;
}

static void check_model(const char *file, const struct ghp_onnx_weights *weights)
{
    struct ghp_model model, back;
    char *text = NULL, *again = NULL;

    if (!CHECK_STATUS(ghp_model_load(file, &model), GHP_OK)) return;
    if (CHECK_STATUS(ghp_onnx_save(path, &model, weights), GHP_OK) &&
        CHECK_STATUS(ghp_onnx_load(path, &back), GHP_OK)) {
        CHECK_STATUS(ghp_model_write(&model, &text), GHP_OK);
        CHECK_STATUS(ghp_model_write(&back, &again), GHP_OK);
        CHECK_TEXT(again, text);
        CHECK_TEXT(back.text, text); /* and so the same hash */
        free(text);
        free(again);
        ghp_model_release(&back);
    }
    check_tensors(tensors_of(&model), weights == NULL);
    ghp_model_release(&model);
}

/* What a network's own text says is what its layers say. */
static void check_text(const char *file)
{
    struct ghp_model model, again;
    char *text = NULL, *second = NULL;

    CHECK_STATUS(ghp_model_load(file, &model), GHP_OK);
    CHECK_STATUS(ghp_model_write(&model, &text), GHP_OK);
    if (CHECK_STATUS(ghp_model_parse(text, "text", &again), GHP_OK)) {
        CHECK_EQ(again.n_layers, model.n_layers);
        for (int i = 0; i < model.n_layers; i++)
            CHECK_TEXT(again.layers[i].name, model.layers[i].name);
        CHECK_STATUS(ghp_model_write(&again, &second), GHP_OK);
        CHECK_TEXT(second, text);
        ghp_model_release(&again);
    }
    free(text);
    free(second);
    ghp_model_release(&model);
}

static void check_refusals(void)
{
    static const char *const texts[] = {
        /* columns in steps that divide no row */
        "{\"format\":\"ghp.model/1\",\"name\":\"m\",\"input\":{\"channels\":2,\"height\":5,"
        "\"width\":5},\"layers\":[{\"name\":\"v\",\"op\":\"view\",\"channels\":2,\"height\":5,"
        "\"width\":3,\"sizes\":[2,5,3],\"strides\":[25,5,2]},{\"name\":\"f\",\"op\":\"flatten\"},"
        "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}]}",
        "{\"format\":\"ghp.model/1\",\"name\":\"m\",\"input\":{\"channels\":4},\"layers\":[{"
        "\"name\":\"b\",\"op\":\"batch_norm\",\"statistics\":\"local\"},{\"name\":\"loss\",\"op\":"
        "\"softmax_cross_entropy\"}]}"};
    static const char *const said[] = {"divide each other", "use global statistics"};

    for (int i = 0; i < 2; i++) {
        struct ghp_model model;

        CHECK_STATUS(ghp_model_parse(texts[i], "text", &model), GHP_OK);
        CHECK_STATUS(ghp_onnx_save(path, &model, NULL), GHP_ERR_INPUT);
        CHECK_MESSAGE(said[i]);
        ghp_model_release(&model);
    }
}

CHECK_TEST(export)
{
    static const char *const models[] = {"models/lenet5.json",
                                         "models/vgg-a-32.json",
                                         "models/resnet50.json",
                                         "models/small-resnet.json",
                                         "models/alexnet.json",
                                         "models/cd-dnn.json",
                                         "tests/onnx/round.json",
                                         "tests/onnx/round_rows.json",
                                         "tests/onnx/round_sequence.json",
                                         "tests/onnx/round_tokens.json",
                                         "tests/onnx/round_bias.json",
                                         "tests/executor/patches.json",
                                         "models/svm-mnist.json"};
    const struct ghp_onnx_weights weights = {.read = fill};
    char file[512];

    snprintf(path, sizeof path, "/tmp/ghp-export-%ld.onnx", (long)getpid());
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        snprintf(file, sizeof file, "%s/%s", GHP_SOURCE_DIR, models[i]);
        check_text(file);
        check_model(file, NULL);
    }
    check_model(GHP_SOURCE_DIR "/models/lenet5.json", &weights);
    check_model(GHP_SOURCE_DIR "/models/small-resnet.json", &weights);
    check_model(GHP_SOURCE_DIR "/tests/onnx/round.json", &weights);
    check_model(GHP_SOURCE_DIR "/tests/onnx/round_fixed.json", &weights);
    check_model(GHP_SOURCE_DIR "/tests/onnx/round_rows.json", &weights);
    check_model(GHP_SOURCE_DIR "/tests/onnx/round_sequence.json", &weights);
    check_model(GHP_SOURCE_DIR "/tests/onnx/round_tokens.json", &weights);
    check_model(GHP_SOURCE_DIR "/tests/executor/patches.json", &weights);
    check_model(GHP_SOURCE_DIR "/tests/onnx/round_windows.json", &weights);
    check_refusals();
    unlink(path);
    return check_end();
}
