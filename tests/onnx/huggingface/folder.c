/* tests/onnx/huggingface/folder.c - see folder.h. */
#include "tests/onnx/huggingface/folder.h"

#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/model/safetensors.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, NAME = 96 };

const char *const gpt2_config =
    "{\"model_type\": \"gpt2\", \"vocab_size\": 7, \"n_positions\": 5, \"n_embd\": 4, \"n_layer\": "
    "2, "
    "\"n_head\": 2, \"n_inner\": null, \"activation_function\": \"gelu_new\", \"use_cache\": true, "
    "\"layer_norm_epsilon\": 1e-05}\n";

const char *const llama_config =
    "{\"model_type\": \"llama\", \"vocab_size\": 7, \"max_position_embeddings\": 5, "
    "\"hidden_size\": 4, "
    "\"intermediate_size\": 6, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
    "\"num_key_value_heads\": 1, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-06, "
    "\"rope_parameters\": {\"rope_theta\": 500.0, \"rope_type\": \"default\"}}\n";

const struct entry gpt2_entries[] = {{"@wte.weight", 2, {7, 4}},
                                     {"@wpe.weight", 2, {5, 4}},
                                     {"@h.%d.ln_1.weight", 1, {4}},
                                     {"@h.%d.ln_1.bias", 1, {4}},
                                     {"@h.%d.attn.c_attn.weight", 2, {4, 12}},
                                     {"@h.%d.attn.c_attn.bias", 1, {12}},
                                     {"@h.%d.attn.c_proj.weight", 2, {4, 4}},
                                     {"@h.%d.attn.c_proj.bias", 1, {4}},
                                     {"@h.%d.ln_2.weight", 1, {4}},
                                     {"@h.%d.ln_2.bias", 1, {4}},
                                     {"@h.%d.mlp.c_fc.weight", 2, {4, 16}},
                                     {"@h.%d.mlp.c_fc.bias", 1, {16}},
                                     {"@h.%d.mlp.c_proj.weight", 2, {16, 4}},
                                     {"@h.%d.mlp.c_proj.bias", 1, {4}},
                                     {"@ln_f.weight", 1, {4}},
                                     {"@ln_f.bias", 1, {4}},
                                     {NULL, 0, {0}}};

const struct entry llama_entries[] = {{"@embed_tokens.weight", 2, {7, 4}},
                                      {"@layers.%d.input_layernorm.weight", 1, {4}},
                                      {"@layers.%d.self_attn.q_proj.weight", 2, {4, 4}},
                                      {"@layers.%d.self_attn.k_proj.weight", 2, {2, 4}},
                                      {"@layers.%d.self_attn.v_proj.weight", 2, {2, 4}},
                                      {"@layers.%d.self_attn.o_proj.weight", 2, {4, 4}},
                                      {"@layers.%d.post_attention_layernorm.weight", 1, {4}},
                                      {"@layers.%d.mlp.gate_proj.weight", 2, {6, 4}},
                                      {"@layers.%d.mlp.up_proj.weight", 2, {6, 4}},
                                      {"@layers.%d.mlp.down_proj.weight", 2, {4, 6}},
                                      {"@norm.weight", 1, {4}},
                                      {"lm_head.weight", 2, {7, 4}},
                                      {NULL, 0, {0}}};

static char folder[64];

const char *folder_path(void)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/tmp/ghp-test-folder-XXXXXX");
        CHECK(mkdtemp(folder) != NULL);
    }
    return folder;
}

void folder_remove(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_EQ(system(command), 0);
    folder[0] = '\0';
}

void folder_write_config(const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/config.json", folder_path());
    CHECK_STATUS(ghp_file_write_atomic(path, text, strlen(text)), GHP_OK);
}

float folder_value(const char *name, int64_t i)
{
    return (float)(ghp_hash(name, strlen(name), GHP_HASH_SEED) % 4096) + (float)i / 256;
}

struct list {
    int n;
    struct ghp_safetensor tensors[MOST];
    char names[MOST][NAME], own[MOST][NAME]; /* in the file, and without the prefix */
};

static void add(struct list *list, const struct entry *entry, const char *prefix, int block)
{
    struct ghp_safetensor *t = &list->tensors[list->n];
    const char *block_at = strstr(entry->name, "%d"), *from = entry->name + (entry->name[0] == '@');
    char own[NAME];

    if (block_at != NULL)
        snprintf(own, NAME, "%.*s%d%s", (int)(block_at - from), from, block, block_at + 2);
    else
        snprintf(own, NAME, "%s", from);
    memcpy(list->own[list->n], own, NAME);
    snprintf(list->names[list->n], NAME, "%s%s", from != entry->name ? prefix : "", own);
    *t = (struct ghp_safetensor){
        .name = list->names[list->n], .element_bytes = 4, .n_dims = entry->n_dims};
    memcpy(t->dims, entry->dims, sizeof t->dims);
    list->n++;
}

static void write_values(struct ghp_safetensors_writer *writer, const struct list *list)
{
    for (int i = 0; i < list->n; i++) {
        float values[128];
        int64_t n = list->tensors[i].bytes / 4;

        CHECK(n <= 128);
        for (int64_t j = 0; j < n && n <= 128; j++)
            values[j] = folder_value(list->own[i], j);
        CHECK_STATUS(ghp_safetensors_append(writer, values, 4 * n), GHP_OK);
    }
}

void folder_write_tensors(const struct entry *entries, struct folder_change change)
{
    static struct list list;
    struct ghp_safetensors_list all = {.tensors = list.tensors};
    struct ghp_safetensors_writer *writer = NULL;
    char path[128];

    list.n = 0;
    for (const struct entry *e = entries; e->name != NULL; e++)
        for (int block = 0; block < (strstr(e->name, "%d") != NULL ? BLOCKS : 1); block++)
            if (change.without == NULL || strcmp(change.without, e->name) != 0)
                add(&list, e, change.prefix, block);
    if (change.extra != NULL) add(&list, change.extra, change.prefix, 0);
    if (change.extra_is != NULL) snprintf(list.own[list.n - 1], NAME, "%s", change.extra_is);
    all.n = list.n;
    snprintf(path, sizeof path, "%s/model.safetensors", folder_path());
    if (!CHECK_STATUS(ghp_safetensors_begin(path, &all, &writer), GHP_OK)) return;
    write_values(writer, &list);
    CHECK_STATUS(ghp_safetensors_finish(writer), GHP_OK);
}
