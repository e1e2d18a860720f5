/* tests/fuzz/fuzz_huggingface.c - the reader of config.json. What it accepts is made into a network, and comes back
 * the same when it is written. */
#include "core/base/file.h"
#include "onnx/huggingface/place.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum ghp_status read_config(const void *bytes, size_t n, struct ghp_hf_config *config)
{
    char path[512], folder[512];

    fuzz_write(fuzz_path("config.json", path, sizeof path), bytes, n);
    return ghp_hf_config_load(fuzz_path("", folder, sizeof folder), config);
}

static void check_back(const struct ghp_hf_config *config)
{
    struct ghp_hf_config back;
    json_t *root = ghp_hf_config_json(config, NULL);
    char *text = NULL;

    GHP_ASSERT_EQ(ghp_json_text_of(root, &text), GHP_OK);
    GHP_ASSERT_EQ(read_config(text, strlen(text), &back), GHP_OK);
    GHP_ASSERT(back.family == config->family && back.vocabulary == config->vocabulary &&
               back.inner == config->inner && back.kv_heads == config->kv_heads &&
               back.head_width == config->head_width && back.tied == config->tied);
    free(text);
    json_decref(root);
}

bool fuzz_read(const char *path, const unsigned char *bytes, size_t n)
{
    const struct ghp_hf_named named = {"drawn", 1};
    struct ghp_hf_network network;
    struct ghp_hf_config config;

    (void)path;
    if (read_config(bytes, n, &config) != GHP_OK) return false;
    if (config.blocks <= 64) { /* as many as a test has time for */
        GHP_ASSERT_EQ(ghp_hf_network_make(&config, &named, &network), GHP_OK);
        ghp_hf_network_release(&network);
    }
    check_back(&config);
    return true;
}
