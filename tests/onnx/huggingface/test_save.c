/* Networks as folders: what is written is what was read, tensor by tensor; the networks of models/ are those of their
 * configs; and what is of no family is refused. */
#include "core/base/file.h"
#include "core/model/model_private.h"
#include "core/model/safetensors.h"
#include "onnx/huggingface/huggingface.h"
#include "tests/check.h"
#include "tests/onnx/huggingface/folder.h"

#include <limits.h>
#include <unistd.h>

static enum ghp_status read_param(void *context, const struct ghp_param *param, float *values)
{
    struct ghp_hf_weights *weights = context;

    for (int i = 0; i < ghp_hf_weights_count(weights); i++)
        if (strcmp(ghp_hf_weights_item(weights, i).name, param->name) == 0)
            return ghp_hf_weights_read(weights, i, 4, values);
    return GHP_FAIL(GHP_ERR_INTERNAL, "there is no '%s'; report this", param->name);
}

/* All tensors of the one file are in the other, under the same names, and the same. */
static void check_file(const char *path, const char *other)
{
    struct ghp_safetensors *a = NULL, *b = NULL;

    if (!CHECK_STATUS(ghp_safetensors_open(path, &a), GHP_OK) ||
        !CHECK_STATUS(ghp_safetensors_open(other, &b), GHP_OK))
        return;
    CHECK_EQ(ghp_safetensors_count(a), ghp_safetensors_count(b));
    for (int i = 0; i < ghp_safetensors_count(a); i++) {
        const struct ghp_safetensor *x = ghp_safetensors_item(a, i),
                                    *y = ghp_safetensors_find(b, x->name);
        float left[128], right[128];

        if (!CHECK(y != NULL && x->bytes == y->bytes && x->bytes <= (int64_t)sizeof left)) continue;
        CHECK(x->n_dims == y->n_dims && memcmp(x->dims, y->dims, sizeof x->dims) == 0);
        CHECK_STATUS(ghp_safetensors_read(a, x, 4, left), GHP_OK);
        CHECK_STATUS(ghp_safetensors_read(b, y, 4, right), GHP_OK);
        CHECK(memcmp(left, right, (size_t)x->bytes) == 0);
    }
    ghp_safetensors_close(a);
    ghp_safetensors_close(b);
}

static void check_round(const char *config, const struct entry *entries,
                        struct folder_change change)
{
    char saved[PATH_MAX], ours[PATH_MAX], theirs[PATH_MAX];
    struct ghp_model model, again;
    struct ghp_hf_source source = {.read = read_param};
    struct ghp_hf_weights *weights = NULL;

    folder_write_config(config);
    folder_write_tensors(entries, change);
    snprintf(saved, sizeof saved, "%s/saved", folder_path());
    snprintf(ours, sizeof ours, "%.200s/model.safetensors", saved);
    snprintf(theirs, sizeof theirs, "%s/model.safetensors", folder_path());
    if (!CHECK_STATUS(ghp_hf_load(folder_path(), &model), GHP_OK)) return;
    if (!CHECK_STATUS(ghp_hf_weights_open(folder_path(), &weights), GHP_OK)) return;
    source.context = weights;
    CHECK_STATUS(ghp_hf_save(saved, &model, NULL, &source), GHP_OK);
    check_file(theirs, ours);
    if (CHECK_STATUS(ghp_hf_load(saved, &again), GHP_OK)) {
        CHECK_EQ(again.n_layers, model.n_layers);
        CHECK_STATUS(ghp_hf_save(saved, &again, NULL, &source),
                     GHP_OK); /* it is of the family, too */
        ghp_model_release(&again);
    }
    ghp_hf_weights_close(weights);
    ghp_model_release(&model);
}

/* Several files are read as one was; one file takes their place again. */
static void check_shards(void)
{
    char saved[PATH_MAX], path[PATH_MAX];
    struct ghp_hf_source source = {.read = read_param, .max_shard = 200};
    struct ghp_hf_weights *weights = NULL, *parts = NULL;
    struct ghp_model model;

    folder_write_config(gpt2_config);
    folder_write_tensors(gpt2_entries, (struct folder_change){.prefix = "transformer."});
    snprintf(saved, sizeof saved, "%s/saved", folder_path());
    if (!CHECK_STATUS(ghp_hf_load(folder_path(), &model), GHP_OK)) return;
    if (!CHECK_STATUS(ghp_hf_weights_open(folder_path(), &weights), GHP_OK)) return;
    source.context = weights;
    CHECK_STATUS(ghp_hf_save(saved, &model, NULL, &source), GHP_OK);
    source.max_shard = 0;
    if (CHECK_STATUS(ghp_hf_weights_open(saved, &parts), GHP_OK)) {
        source.context = parts;
        snprintf(path, sizeof path, "%.200s/model-00001-of-00014.safetensors", saved);
        CHECK(access(path, F_OK) == 0);
        CHECK_STATUS(ghp_hf_save(saved, &model, NULL, &source), GHP_OK);
        CHECK(access(path, F_OK) != 0);
        snprintf(path, sizeof path, "%.200s/model.safetensors.index.json", saved);
        CHECK(access(path, F_OK) != 0);
        snprintf(path, sizeof path, "%.200s/model.safetensors", saved);
        snprintf(saved, sizeof saved, "%s/model.safetensors", folder_path());
        check_file(saved, path);
        ghp_hf_weights_close(parts);
    }
    ghp_hf_weights_close(weights);
    ghp_model_release(&model);
}

static void write_extra(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_STATUS(ghp_file_write_atomic(path, text, strlen(text)), GHP_OK);
}

static void check_extra(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX], *found = NULL;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (CHECK_STATUS(ghp_file_read(path, &found, NULL), GHP_OK)) CHECK_TEXT(found, text);
    free(found);
}

/* The keys of `want` are in FOLDER/config.json, with the same values; null stands for null alone. */
static void check_keys(const char *folder, const char *want)
{
    json_t *keys = json_loads(want, 0, NULL), *value, *got;
    char path[PATH_MAX];
    const char *key;

    snprintf(path, sizeof path, "%s/config.json", folder);
    got = json_load_file(path, 0, NULL);
    CHECK(got != NULL && json_object_get(got, "torch_dtype") == NULL);
    json_object_foreach(keys, key, value) if (!CHECK(json_equal(json_object_get(got, key), value)))
        fprintf(stderr, "the key is '%s'\n", key);
    json_decref(keys);
    json_decref(got);
}

/* A folder that was trained in samples of 3 positions comes back with its context of 5, and what ghp has no use for. */
static void check_origin(const char *config, const struct entry *entries, const char *prefix,
                         const char *context)
{
    static const char keys[] =
        "\"bos_token_id\": 1, \"eos_token_id\": [2, 3], \"pad_token_id\": 0, "
        "\"initializer_range\": 0.01, \"transformers_version\": \"4.40.0\"";
    char path[PATH_MAX], saved[PATH_MAX], ours[PATH_MAX], theirs[PATH_MAX], text[1024];
    struct ghp_hf_source source = {.read = read_param};
    struct ghp_hf_weights *weights = NULL;
    struct ghp_model model;

    snprintf(text, sizeof text, "{%s, \"torch_dtype\": \"float16\", %s", keys, config + 1);
    folder_write_config(text);
    folder_write_tensors(entries, (struct folder_change){.prefix = prefix});
    write_extra(folder_path(), "generation_config.json", "{\"top_k\": 7}\n");
    write_extra(folder_path(), "tokenizer.json", "{}\n");
    snprintf(path, sizeof path, "%s@3", folder_path());
    snprintf(saved, sizeof saved, "%s/saved", folder_path());
    snprintf(ours, sizeof ours, "%.200s/model.safetensors", saved);
    snprintf(theirs, sizeof theirs, "%s/model.safetensors", folder_path());
    if (!CHECK_STATUS(ghp_hf_load(path, &model), GHP_OK)) return;
    if (!CHECK_STATUS(ghp_hf_weights_open(path, &weights), GHP_OK)) return;
    source.context = weights;
    CHECK_STATUS(ghp_hf_save(saved, &model, path, &source), GHP_OK);
    check_file(theirs, ours);
    snprintf(text, sizeof text, "{%s, \"%s\": 5, \"dtype\": \"float32\"}", keys, context);
    check_keys(saved, text);
    check_extra(saved, "generation_config.json", "{\"top_k\": 7}\n");
    check_extra(saved, "tokenizer.json", "{}\n");
    CHECK_STATUS(ghp_hf_save(folder_path(), &model, path, &source), GHP_ERR_USAGE);
    CHECK_MESSAGE("the folder that the network came from; choose another folder");
    /* nobody knows the ids */
    CHECK_STATUS(ghp_hf_save(saved, &model, NULL, &source), GHP_OK);
    snprintf(text, sizeof text, "{\"bos_token_id\": null, \"eos_token_id\": null, \"%s\": 3}",
             context);
    check_keys(saved, text);
    ghp_hf_weights_close(weights);
    ghp_model_release(&model);
}

/* The two descriptions are one but for the name. */
static void check_same(struct ghp_model *a, const struct ghp_model *b)
{
    char *left = NULL, *right = NULL, *name = a->name;

    a->name = b->name;
    CHECK_STATUS(ghp_model_write(a, &left), GHP_OK);
    a->name = name;
    CHECK_STATUS(ghp_model_write(b, &right), GHP_OK);
    CHECK_TEXT(left, right);
    free(left);
    free(right);
}

static void check_model(const char *file, const char *config)
{
    struct ghp_model model, made;
    char path[PATH_MAX];

    snprintf(path, sizeof path, GHP_SOURCE_DIR "/models/%s", file);
    folder_write_config(config);
    if (!CHECK_STATUS(ghp_model_load(path, &model), GHP_OK)) return;
    if (CHECK_STATUS(ghp_hf_load(folder_path(), &made), GHP_OK)) {
        check_same(&made, &model);
        ghp_model_release(&made);
    }
    ghp_model_release(&model);
}

static void check_known(void)
{
    static const struct {
        const char *name;
        int64_t weights;
    } known[] = {
        /* as published, without the output layer, which is tied there: 50,257 words of the width */
        {"gpt2-124m", 124439808},
        {"gpt2-355m", 354823168},
        {"gpt2-774m", 774030080},
        {"gpt2-1558m", 1557611200}};
    struct ghp_model model;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        int64_t n = 0;

        if (!CHECK_STATUS(ghp_hf_load(known[i].name, &model), GHP_OK)) continue;
        for (int j = 0; j < model.n_layers; j++)
            n += ghp_layer_weights(&model.layers[j]);
        CHECK_EQ(n, known[i].weights);
        CHECK_EQ(model.layers[0].out.h, 1024);
        ghp_model_release(&model);
    }
    if (!CHECK_STATUS(ghp_hf_load("gpt2-124m@256", &model), GHP_OK)) return;
    CHECK_EQ(model.layers[0].out.h, 256);
    ghp_model_release(&model);
    CHECK_STATUS(ghp_hf_load("gpt2-124m@1025", &model), GHP_ERR_INPUT);
    CHECK_MESSAGE("asks for 1025 positions, but the network's context has 1024");
    CHECK(!ghp_hf_names("gpt2-125m") && !ghp_hf_names("gpt2-124m@") && !ghp_hf_names(""));
}

CHECK_TEST(save)
{
    static const struct entry head = {"lm_head.weight", 2, {7, 4}};
    char untied[512];
    struct ghp_hf_source source = {.read = read_param};
    struct ghp_model model;

    snprintf(untied, sizeof untied, "{\"tie_word_embeddings\": false, %s", gpt2_config + 1);
    check_round(untied, gpt2_entries,
                (struct folder_change){.prefix = "transformer.", .extra = &head});
    check_round(gpt2_config, gpt2_entries, (struct folder_change){.prefix = "transformer."});
    check_round(llama_config, llama_entries, (struct folder_change){.prefix = "model."});
    check_shards();
    check_origin(gpt2_config, gpt2_entries, "transformer.", "n_positions");
    check_origin(llama_config, llama_entries, "model.", "max_position_embeddings");
    check_model(
        "gpt-nano.json",
        "{\"model_type\": \"gpt2\", \"vocab_size\": 256, \"n_positions\": 64, \"n_embd\": 32, "
        "\"n_layer\": 2, \"n_head\": 4, \"tie_word_embeddings\": false}");
    check_model("llama-nano.json",
                "{\"model_type\": \"llama\", \"vocab_size\": 256, \"max_position_embeddings\": 64, "
                "\"hidden_size\": 32, \"intermediate_size\": 96, \"num_hidden_layers\": 2, "
                "\"num_attention_heads\": 4, \"num_key_value_heads\": 2}");
    check_known();
    CHECK_STATUS(
        ghp_model_parse(
            "{\"format\": \"ghp.model/1\", \"name\": \"other\", \"input\": {\"channels\": 3}, "
            "\"layers\": [{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}",
            "other", &model),
        GHP_OK);
    CHECK_STATUS(ghp_hf_save(folder_path(), &model, NULL, &source), GHP_ERR_INPUT);
    CHECK_MESSAGE("'other' is neither a gpt2 nor a llama");
    ghp_model_release(&model);
    folder_remove();
    return check_end();
}
