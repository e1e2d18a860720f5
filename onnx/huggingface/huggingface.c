/* onnx/huggingface/huggingface.c - see huggingface.h. */
#include "onnx/huggingface/huggingface.h"

#include "core/base/json_lines.h"
#include "core/base/log.h"
#include "core/model/model_private.h"
#include "onnx/huggingface/files.h"
#include "onnx/huggingface/place.h"

#include <stdlib.h>

bool ghp_hf_names(const char *path)
{
    struct ghp_hf_place place;

    return ghp_hf_place_find(path, &place);
}

bool ghp_hf_has_weights(const char *path)
{
    struct ghp_hf_place place;

    return ghp_hf_place_find(path, &place) && place.known == NULL && ghp_hf_files_exist(place.path);
}

bool ghp_hf_is_folder(const char *path)
{
    struct ghp_hf_place place;

    return ghp_hf_place_find(path, &place) && place.known == NULL;
}

/* The description has no file of its own. */
static void name_place(const void *context, const char *where, char *out, size_t n)
{
    (void)context;
    snprintf(out, n, "the network's '%s'", where);
}

enum ghp_status ghp_hf_load(const char *path, struct ghp_model *model)
{
    const struct ghp_json_origin origin = {.name = name_place};
    struct ghp_hf_config config;
    struct ghp_hf_network network;
    enum ghp_status status;
    char *text = NULL;

    *model = (struct ghp_model){0};
    GHP_TRY(ghp_hf_place_open(path, &config, &network));
    status = ghp_json_compact(network.model, &text);
    if (status == GHP_OK) status = ghp_model_parse_from(text, path, &origin, model);
    if (status == GHP_OK && config.own_head)
        ghp_warn("%s: config.json ties the output layer to the embedding, but the weights have "
                 "another lm_head.weight: that one is taken, and trained by itself",
                 path);
    free(text);
    ghp_hf_network_release(&network);
    return status;
}
