/* bench/runs/case_model.c - networks by the names that publications give them. */
#include "bench/runs/case.h"

#include "core/base/file.h"
#include "onnx/network.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SIZE = 1 << 20 }; /* layers, width, vocabulary */

/* A transformer as its config has it. */
struct sizes {
    const char *family; /* "gpt2" or "llama" */
    int64_t layers, width, heads, kv_heads, inner, vocabulary;
};

/* Published sizes: GPT-3, table 2.1 of arXiv 2005.14165; Llama 2, arXiv 2307.09288; Llama 3, table 3 of arXiv
 * 2407.21783; LLaMA, table 2 of arXiv 2302.13971; MPT: llm-foundry, scripts/train/yamls/pretrain; GPT-2: its report. */
static const struct {
    const char *words[3]; /* all in the row's name, letters of either case */
    struct sizes sizes;
} known[] = {
    {{"llama", "2", "7b"}, {"llama", 32, 4096, 32, 32, 11008, 32000}},
    {{"llama", "2", "13b"}, {"llama", 40, 5120, 40, 40, 13824, 32000}},
    {{"llama", "2", "70b"}, {"llama", 80, 8192, 64, 8, 28672, 32000}},
    {{"llama", "3", "8b"}, {"llama", 32, 4096, 32, 8, 14336, 128256}},
    {{"llama", "3", "70b"}, {"llama", 80, 8192, 64, 8, 28672, 128256}},
    {{"llama", "3", "405b"}, {"llama", 126, 16384, 128, 8, 53248, 128256}},
    {{"llama", "65b", ""}, {"llama", 80, 8192, 64, 64, 22016, 32000}},
    {{"llama", "13b", ""}, {"llama", 40, 5120, 40, 40, 13824, 32000}},
    {{"llama", " 7b", ""}, {"llama", 32, 4096, 32, 32, 11008, 32000}},
    {{"llama", "-7b", ""}, {"llama", 32, 4096, 32, 32, 11008, 32000}},
    {{"mpt", "70b", ""}, {"gpt2", 80, 8192, 64, 64, 32768, 50368}},
    {{"mpt", "30b", ""}, {"gpt2", 48, 7168, 56, 56, 28672, 50368}},
    {{"mpt", "13b", ""}, {"gpt2", 40, 5120, 40, 40, 20480, 50368}},
    {{"mpt", "7b", ""}, {"gpt2", 32, 4096, 32, 32, 16384, 50368}},
    {{"mpt", "3b", ""}, {"gpt2", 32, 2560, 20, 20, 10240, 50368}},
    {{"mpt", "1b", ""}, {"gpt2", 24, 2048, 16, 16, 8192, 50368}},
    {{"mpt", "760m", ""}, {"gpt2", 24, 1536, 12, 12, 6144, 50368}},
    {{"gpt", "124m", ""}, {"gpt2", 12, 768, 12, 12, 3072, 50257}},
    {{"gpt", "355m", ""}, {"gpt2", 24, 1024, 16, 16, 4096, 50257}},
    {{"gpt", "774m", ""}, {"gpt2", 36, 1280, 20, 20, 5120, 50257}},
    {{"gpt", "1558m", ""}, {"gpt2", 48, 1600, 25, 25, 6400, 50257}},
    {{"gpt", "175b", ""}, {"gpt2", 96, 12288, 96, 96, 49152, 51200}},
    {{"gpt", "6.7b", ""}, {"gpt2", 32, 4096, 32, 32, 16384, 51200}},
    {{"gpt", "2.7b", ""}, {"gpt2", 32, 2560, 32, 32, 10240, 51200}},
    {{"gpt", "1.3b", ""}, {"gpt2", 24, 2048, 16, 16, 8192, 51200}},
};

/* The number after a name such as "h=" in the text; 0: it is not there, or no size of a network. */
static int64_t number_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    int64_t number = at == NULL || (at != text && isalnum((unsigned char)at[-1]))
                         ? 0
                         : strtoll(at + strlen(name), NULL, 10);

    return number <= MOST_SIZE ? number : 0;
}

static bool find_sizes(const struct ghp_run_row *row, struct sizes *sizes)
{
    const char *name = row->text[GHP_COLUMN_MODEL];

    if (ghp_run_row_has(row, GHP_COLUMN_MODEL, "gpt") && number_after(name, "h=") > 0) {
        *sizes = (struct sizes){.family = "gpt2",
                                .layers = number_after(name, "L="),
                                .width = number_after(name, "h="),
                                .heads = ghp_run_row_before(row, GHP_COLUMN_NOTE, " heads"),
                                .vocabulary = number_after(name, "V=")};
        if (sizes->heads < 1) sizes->heads = sizes->width / 64;
        if (sizes->vocabulary < 1) sizes->vocabulary = 51200;
        sizes->kv_heads = sizes->heads;
        sizes->inner = 4 * sizes->width;
        return sizes->layers > 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        bool all = true;

        for (int w = 0; w < 3; w++)
            all &= ghp_run_row_has(row, GHP_COLUMN_MODEL, known[i].words[w]) ||
                   known[i].words[w][0] == '\0';
        if (!all) continue;
        *sizes = known[i].sizes;
        return true;
    }
    return false;
}

static int write_config(const struct sizes *s, int64_t positions, char *text, size_t n)
{
    if (strcmp(s->family, "gpt2") == 0)
        return snprintf(text, n,
                        "{\"model_type\": \"gpt2\", \"vocab_size\": %lld, \"n_positions\": %lld, "
                        "\"n_embd\": %lld, \"n_layer\": %lld, \"n_head\": %lld}\n",
                        (long long)s->vocabulary, (long long)positions, (long long)s->width,
                        (long long)s->layers, (long long)s->heads);
    return snprintf(text, n,
                    "{\"model_type\": \"llama\", \"vocab_size\": %lld, "
                    "\"max_position_embeddings\": %lld, \"hidden_size\": %lld, "
                    "\"intermediate_size\": %lld, \"num_hidden_layers\": %lld, "
                    "\"num_attention_heads\": %lld, \"num_key_value_heads\": %lld}\n",
                    (long long)s->vocabulary, (long long)positions, (long long)s->width,
                    (long long)s->inner, (long long)s->layers, (long long)s->heads,
                    (long long)s->kv_heads);
}

/* Reads the network of a config in a folder of its own, which is removed again; the row's name is the network's. */
static enum ghp_status load_sizes(const struct sizes *sizes, int64_t positions, const char *name,
                                  struct ghp_model *model)
{
    char folder[] = "/tmp/ghp-published-XXXXXX", path[64], text[512];
    enum ghp_status status;
    int n = write_config(sizes, positions, text, sizeof text);

    if (mkdtemp(folder) == NULL) return GHP_FAIL(GHP_ERR_IO, "cannot make a folder in /tmp");
    snprintf(path, sizeof path, "%s/config.json", folder);
    status = ghp_file_write_atomic(path, text, (size_t)n);
    if (status == GHP_OK) status = ghp_network_load(folder, model);
    unlink(path);
    rmdir(folder);
    GHP_TRY(status);
    free(model->name);
    model->name = strdup(name);
    return model->name == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

/* Reads a network whose batch norms, if it has any, take statistics of each worker's own samples, as all systems do by
 * default. */
static enum ghp_status load_local(const char *path, struct ghp_model *model)
{
    enum ghp_status status;

    ghp_network_batch_norm = "local";
    status = ghp_network_load(path, model);
    ghp_network_batch_norm = NULL;
    return status == GHP_ERR_USAGE ? ghp_network_load(path, model) : status;
}

/* Whether images of the row are the network's: a size within 5 %, as systems crop by some pixels; or none is said. */
static bool same_size(const struct ghp_run_row *row, const struct ghp_model *model)
{
    double said = strtod(row->text[GHP_COLUMN_SIZE], NULL);
    double pixels = (double)model->layers[0].out.h;

    return said < 1 || pixels < 2 || fabs(said / pixels - 1) < 0.05;
}

/* A network's file by the name up to a blank, less a version: "resnet50-v1.5 ImageNet" is models/resnet50.json. */
static bool find_file(const char *name, const char *models, char *path, size_t size)
{
    const char *version = strstr(name, "-v1");
    size_t n = strcspn(name, " "), from;

    if (version != NULL && (size_t)(version - name) < n && strncmp(name, "inception", 9) != 0)
        n = (size_t)(version - name);
    snprintf(path, size, "%s/%.*s.json", models, (int)n, name);
    from = strlen(models) + 1;
    for (char *at = path + from; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    for (char *at = path + from; access(path, R_OK) != 0; memmove(at, at + 1, strlen(at))) {
        at = strchr(path + from, '-'); /* "ResNet-50" is resnet50 */
        if (at == NULL) return false;
    }
    return true;
}

static enum ghp_status load_named(struct ghp_run_case *item, const char *models)
{
    const char *name = item->row->text[GHP_COLUMN_MODEL];
    char path[1024];

    if (!find_file(name, models, path, sizeof path)) {
        ghp_run_case_refuse(item, "ghp has no network '%s'", name);
        return GHP_OK;
    }
    GHP_TRY(load_local(path, &item->model));
    if (!same_size(item->row, &item->model))
        ghp_run_case_refuse(item, "its images are not the network's, of %lld pixels",
                            (long long)item->model.layers[0].out.h);
    return GHP_OK;
}

enum ghp_status ghp_run_case_model(struct ghp_run_case *item, const char *models)
{
    int64_t positions = ghp_run_row_number(item->row, GHP_COLUMN_SIZE, 0);
    struct sizes sizes;

    if (!find_sizes(item->row, &sizes)) return load_named(item, models);
    if (positions < 1) {
        ghp_run_case_refuse(item, "no positions of a sequence are published");
        return GHP_OK;
    }
    return load_sizes(&sizes, positions, item->row->text[GHP_COLUMN_MODEL], &item->model);
}
