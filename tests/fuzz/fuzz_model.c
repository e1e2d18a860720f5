/* tests/fuzz/fuzz_model.c - the model reader: what is accepted reads the same from its own text. */
#include "core/model/op.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    struct ghp_model model = {0}, again = {0};

    (void)bytes;
    (void)n;
    if (ghp_model_load(path, &model) != GHP_OK) return false;
    GHP_ASSERT_EQ(ghp_model_parse(model.text, "again", &again), GHP_OK);
    GHP_ASSERT(model.hash == again.hash);
    GHP_ASSERT_EQ(model.n_layers, again.n_layers);
    for (int i = 0; i < model.n_layers; i++) {
        GHP_ASSERT(ghp_layer_flops(&model.layers[i]) >= 0);
        GHP_ASSERT(ghp_layer_weights(&model.layers[i]) >= 0);
    }
    ghp_model_release(&again);
    ghp_model_release(&model);
    return true;
}
