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

bool ghp_hf_origin_has_weights(const struct ghp_hf_origin *origin)
{
    return origin->document != NULL && ghp_hf_files_exist(origin->place.path);
}

enum ghp_status ghp_hf_origin_read(const struct ghp_hf_origin *origin, int tensor, float *values)
{
    struct ghp_hf_weights *weights = NULL;
    enum ghp_status status;

    GHP_TRY(ghp_hf_weights_open(origin->place.path, &weights));
    status = ghp_hf_weights_read_tensor(weights, tensor, values);
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
                                        "vocab.txt",
                                        "merges.txt",
                                        "chat_template.jinja",
                                        "preprocessor_config.json"};
    char from[PATH_MAX], to[PATH_MAX];

    if (origin->document == NULL) return GHP_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(from, sizeof from, "%s/%s", origin->place.path, names[i]);
        snprintf(to, sizeof to, "%s/%s", folder, names[i]);
        if (access(from, F_OK) == 0) GHP_TRY(copy(from, to));
    }
    return GHP_OK;
}
