/* tests/fuzz/fuzz_onnx.c - the ONNX reader: what is accepted is a model whose own text says the same, and whose weights
 * can be read; where it can be written as ONNX again, that file is accepted too. */
#include "onnx/onnx.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

enum {
    MOST_VALUES = 1 << 16
}; /* of a tensor that is read: a few bytes may stand for 2^40 equal numbers */

static void read_tensors(const char *path)
{
    struct ghp_onnx_tensors *tensors;

    GHP_ASSERT_EQ(ghp_onnx_tensors_open(path, &tensors), GHP_OK); /* the model was accepted */
    for (int i = 0; i < ghp_onnx_tensors_count(tensors); i++) {
        struct ghp_onnx_weight weight = ghp_onnx_tensors_item(tensors, i);
        float *values;

        if (weight.elements > MOST_VALUES) continue;
        values = malloc((size_t)weight.elements * sizeof *values);
        GHP_ASSERT(values != NULL);
        (void)ghp_onnx_tensors_read(tensors, i, values); /* those of another type are refused */
        free(values);
    }
    ghp_onnx_tensors_close(tensors);
}

/* A few bytes can ask for any number of weights, whose zeros are then written: no more than these. */
enum { MOST_WRITTEN = 1 << 20 };

static int64_t weights_of(const struct ghp_model *model)
{
    int64_t n = 0;

    for (int i = 0; i < model->n_layers; i++)
        n += ghp_layer_weights(&model->layers[i]);
    return n;
}

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_model model = {0}, again = {0};
    char written[128];

    (void)bytes;
    (void)n;
    if (ghp_onnx_load(path, &model) != GHP_OK) return false;
    GHP_ASSERT_EQ(ghp_model_parse(model.text, "again", &again), GHP_OK);
    GHP_ASSERT(model.hash == again.hash);
    ghp_model_release(&again);
    read_tensors(path);
    fuzz_path("written.onnx", written, sizeof written);
    if (weights_of(&model) <= MOST_WRITTEN && ghp_onnx_save(written, &model, NULL) == GHP_OK) {
        GHP_ASSERT_EQ(ghp_onnx_load(written, &again), GHP_OK);
        ghp_model_release(&again);
    }
    ghp_model_release(&model);
    return true;
}
