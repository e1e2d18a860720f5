/* onnx/huggingface/origin.c - see origin.h. */
#include "onnx/huggingface/origin.h"

#include "core/base/file.h"
#include "onnx/huggingface/files.h"
#include "onnx/huggingface/huggingface.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum ghp_status read_document(const char *folder, json_t **document)
{
    char path[PATH_MAX];
    struct ghp_json doc;

    snprintf(path, sizeof path, "%s/config.json", folder);
    GHP_TRY(ghp_json_load(path, NULL, &doc));
    *document = json_incref(ghp_json_root(&doc).value);
    ghp_json_release(&doc);
    return GHP_OK;
}

enum ghp_status ghp_hf_origin_open(const char *path, struct ghp_hf_origin *origin)
{
    struct ghp_hf_network network = {0};

    *origin = (struct ghp_hf_origin){0};
    GHP_TRY(ghp_hf_place_open(path, &origin->config, &network));
    ghp_hf_network_release(&network);
    ghp_hf_place_find(path, &origin->place);
    return origin->place.known == NULL ? read_document(origin->place.path, &origin->document)
                                       : GHP_OK;
}

void ghp_hf_origin_release(struct ghp_hf_origin *origin)
{
    json_decref(origin->document);
    *origin = (struct ghp_hf_origin){0};
}

bool ghp_hf_origin_is(const struct ghp_hf_origin *origin, const struct ghp_hf_config *config)
{
    const struct ghp_hf_config *a = &origin->config, *b = config;

    return a->family == b->family && a->vocabulary == b->vocabulary && a->context >= b->context &&
           a->width == b->width && a->inner == b->inner && a->blocks == b->blocks &&
           a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_width == b->head_width &&
           a->epsilon == b->epsilon && a->tied == b->tied &&
           (a->family == GHP_HF_GPT2 ? a->by_erf == b->by_erf : a->theta == b->theta);
}

bool ghp_hf_origin_has_weights(const struct ghp_hf_origin *origin)
{
    return origin->document != NULL && ghp_hf_files_exist(origin->place.path);
}

enum ghp_status ghp_hf_origin_read(const struct ghp_hf_origin *origin, const char *param,
                                   float *values)
{
    struct ghp_hf_weights *weights = NULL;
    enum ghp_status status;
    int i = 0;

    GHP_TRY(ghp_hf_weights_open(origin->place.path, &weights));
    while (i < ghp_hf_weights_count(weights) &&
           strcmp(ghp_hf_weights_item(weights, i).name, param) != 0)
        i++;
    if (i < ghp_hf_weights_count(weights))
        status = ghp_hf_weights_read(weights, i, (int)sizeof *values, values);
    else
        status = GHP_FAIL(GHP_ERR_INTERNAL, "'%s' has no '%s'; report this with its config.json",
                          origin->place.path, param);
    ghp_hf_weights_close(weights);
    return status;
}

static enum ghp_status copy(const char *from, const char *to)
{
    char *bytes;
    size_t n;
    enum ghp_status status;

    GHP_TRY(ghp_file_read(from, &bytes, &n));
    status = ghp_file_write_atomic(to, bytes, n);
    free(bytes);
    return status;
}

enum ghp_status ghp_hf_origin_copy(const struct ghp_hf_origin *origin, const char *folder)
{
    static const char *const names[] = {"generation_config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "tokenizer.model",
                                        "vocab.json",
                                        "merges.txt",
                                        "chat_template.jinja"};
    char from[PATH_MAX], to[PATH_MAX];

    if (origin->document == NULL) return GHP_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(from, sizeof from, "%s/%s", origin->place.path, names[i]);
        snprintf(to, sizeof to, "%s/%s", folder, names[i]);
        if (access(from, F_OK) == 0) GHP_TRY(copy(from, to));
    }
    return GHP_OK;
}
