/* tests/onnx/test_no_memory.c - a reader or writer that is short of memory says so, whichever allocation fails: it
 * neither calls the file wrong nor makes less of it. */
#include "core/base/file.h"
#include "core/model/model_private.h"
#include "onnx/network.h"
#include "onnx/onnx.h"
#include "onnx/graph.h"
#include "onnx/huggingface/config.h"
#include "tests/check.h"
#include "tests/core/base/no_memory.h"

#include <unistd.h>

static char json_path[64], onnx_path[64];
static struct ghp_model model; /* as it is with memory */
static char *text;             /* its description */

/* Failures of allocations are held while what came of a run is looked at. */
static long held;

static void hold(void)
{
    held = no_memory_after;
    no_memory_after = -1;
}

static void go_on(void)
{
    no_memory_after = held;
}

static enum ghp_status write_file(void *context)
{
    char *bytes = NULL;
    enum ghp_status status = ghp_file_write_atomic(json_path, text, strlen(text));

    (void)context;
    hold();
    CHECK_STATUS(ghp_file_read(json_path, &bytes, NULL), GHP_OK);
    CHECK_TEXT(bytes, text);
    free(bytes);
    go_on();
    return status;
}

static enum ghp_status load_model(void *path)
{
    struct ghp_model loaded;
    enum ghp_status status = ghp_network_load(path, &loaded);

    hold();
    if (status == GHP_OK) {
        CHECK_TEXT(loaded.text, text);
        CHECK_EQ(loaded.n_layers, model.n_layers);
        ghp_model_release(&loaded);
    }
    go_on();
    return status;
}

static enum ghp_status write_model(void *context)
{
    char *written = NULL;
    enum ghp_status status = ghp_model_write(&model, &written);

    (void)context;
    hold();
    if (status == GHP_OK) CHECK_TEXT(written, text);
    free(written);
    go_on();
    return status;
}

/* The n-th value of every tensor is n. */
static enum ghp_status count_up(void *context, const struct ghp_param *param, float *values)
{
    (void)context;
    for (int64_t i = 0; i < param->elements; i++)
        values[i] = (float)i;
    return GHP_OK;
}

static enum ghp_status save_onnx(void *context)
{
    const struct ghp_onnx_weights weights = {.read = count_up};
    enum ghp_status status = ghp_onnx_save(onnx_path, &model, &weights);

    (void)context;
    long kept = no_memory_after;

    no_memory_after = -1;
    if (status == GHP_OK) CHECK_STATUS(load_model(onnx_path), GHP_OK);
    no_memory_after = kept;
    return status;
}

/* A file that is open becomes layers. */
static enum ghp_status import_graph(void *file)
{
    const struct ghp_onnx_options options = {0};
    struct ghp_onnx_import import = {0};
    enum ghp_status status = ghp_onnx_import_graph(file, &options, &import);

    if (status == GHP_OK) CHECK_EQ(import.model.n_layers, model.n_layers);
    ghp_onnx_import_release(&import);
    return status;
}

static enum ghp_status read_tensors(void *context)
{
    struct ghp_onnx_tensors *tensors;
    enum ghp_status status = ghp_onnx_tensors_open(onnx_path, &tensors);
    float values[4096];

    (void)context;
    for (int t = 0; status == GHP_OK && t < ghp_onnx_tensors_count(tensors); t++) {
        struct ghp_onnx_weight weight = ghp_onnx_tensors_item(tensors, t);

        CHECK(weight.elements <= 4096);
        status = ghp_onnx_tensors_read(tensors, t, values);
        for (int64_t i = 0; status == GHP_OK && i < weight.elements; i++)
            CHECK(values[i] == (float)i);
    }
    ghp_onnx_tensors_close(tensors);
    return status;
}

/* A config that has all keys which must have one value. */
static enum ghp_status read_config(void *folder)
{
    struct ghp_hf_config config;
    enum ghp_status status = ghp_hf_config_load(folder, &config);

    if (status == GHP_OK) CHECK_EQ(config.width, 8);
    return status;
}

static void check_config(void)
{
    static const char config[] =
        "{\"model_type\": \"gpt2\", \"vocab_size\": 16, \"n_positions\": 4, \"n_embd\": 8, "
        "\"n_layer\": 1, \"n_head\": 2, \"scale_attn_weights\": true, "
        "\"scale_attn_by_inverse_layer_idx\": false, \"add_cross_attention\": false}";
    char folder[64], path[80];

    snprintf(folder, sizeof folder, "%s", check_folder());
    snprintf(path, sizeof path, "%s/config.json", folder);
    CHECK_STATUS(ghp_file_write_atomic(path, config, strlen(config)), GHP_OK);
    no_memory_each("reading a config", read_config, folder);
}

int main(void)
{
    struct ghp_onnx_file file;

    snprintf(json_path, sizeof json_path, "%s/model.json", check_folder());
    snprintf(onnx_path, sizeof onnx_path, "%s/model.onnx", check_folder());
    CHECK_STATUS(ghp_model_load(GHP_SOURCE_DIR "/tests/onnx/round.json", &model), GHP_OK);
    CHECK_STATUS(ghp_model_write(&model, &text), GHP_OK);
    CHECK_STATUS(ghp_file_write_atomic(json_path, text, strlen(text)), GHP_OK);
    no_memory_each("writing a file", write_file, NULL);
    no_memory_each("reading a description", load_model, json_path);
    no_memory_each("writing a description", write_model, NULL);
    no_memory_each("writing ONNX", save_onnx, NULL);
    CHECK_STATUS(ghp_onnx_file_open(onnx_path, &file), GHP_OK);
    no_memory_each("importing", import_graph, &file);
    ghp_onnx_file_close(&file);
    no_memory_each("reading ONNX", load_model, onnx_path);
    no_memory_each("reading ONNX's tensors", read_tensors, NULL);
    check_config();
    free(text);
    ghp_model_release(&model);
    return check_end();
}
