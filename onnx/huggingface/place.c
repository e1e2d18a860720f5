/* onnx/huggingface/place.c - see place.h. */
#include "onnx/huggingface/place.h"

#include "core/base/status.h"
#include "onnx/huggingface/family.h"
#include "onnx/huggingface/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ghp_hf_place_find(const char *path, struct ghp_hf_place *place)
{
    char config[PATH_MAX + 16], *at, *end = NULL;
    size_t n = strlen(path);

    *place = (struct ghp_hf_place){0};
    if (n == 0 || n >= sizeof place->path) return false;
    memcpy(place->path, path, n);
    at = strrchr(place->path, '@');
    if (at != NULL && at[1] >= '1' && at[1] <= '9') {
        place->positions = strtoll(at + 1, &end, 10);
        if (*end == '\0')
            *at = '\0';
        else
            place->positions = 0;
    }
    place->known = ghp_hf_config_find(place->path);
    if (access(place->path, F_OK) != 0) return place->known != NULL;
    place->known = NULL;
    snprintf(config, sizeof config, "%s/config.json", place->path);
    return access(config, F_OK) == 0;
}

/* The folder's own name. */
static const char *base_name(char *path)
{
    size_t n = strlen(path);
    char *slash;

    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
    slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* Whether two tensors of a folder have other dimensions or values. */
static enum ghp_status differ(const struct ghp_hf_files *files, int a, int b, bool *differ)
{
    const struct ghp_safetensor *x = ghp_hf_files_item(files, a), *y = ghp_hf_files_item(files, b);
    enum ghp_status status = GHP_OK;
    size_t n = (size_t)(x->bytes / x->element_bytes);
    float *values[2];

    *differ = x->n_dims != y->n_dims || memcmp(x->dims, y->dims, sizeof x->dims) != 0;
    if (*differ) return GHP_OK;
    values[0] = ghp_alloc(n + 1, sizeof **values);
    values[1] = ghp_alloc(n + 1, sizeof **values);
    if (values[0] == NULL || values[1] == NULL) status = GHP_NO_MEMORY();
    if (status == GHP_OK) status = ghp_hf_files_read(files, a, sizeof **values, values[0]);
    if (status == GHP_OK) status = ghp_hf_files_read(files, b, sizeof **values, values[1]);
    if (status == GHP_OK) *differ = memcmp(values[0], values[1], n * sizeof **values) != 0;
    free(values[0]);
    free(values[1]);
    return status;
}

/* What the files hold counts: an output layer that is not the embedding's is one of its own, whatever config.json says.
 * Weights that cannot be opened are ignored here; loading them reports why. */
static enum ghp_status check_tied(const char *folder, struct ghp_hf_config *config)
{
    struct ghp_hf_files *files = NULL;
    enum ghp_status status;
    char name[2 * GHP_HF_NAME];
    int head, embedding;

    if (!config->tied || !ghp_hf_files_exist(folder)) return GHP_OK;
    status = ghp_hf_files_open(folder, &files);
    if (status != GHP_OK) return status == GHP_ERR_NO_MEMORY ? status : GHP_OK;
    snprintf(name, sizeof name, "%s.weight", ghp_hf_head(config->family));
    head = ghp_hf_files_find(files, name);
    snprintf(name, sizeof name, "%s%s.weight", ghp_hf_prefix(config->family),
             ghp_hf_embedding(config->family));
    embedding = ghp_hf_files_find_prefixed(files, name, strlen(ghp_hf_prefix(config->family)));
    if (head >= 0 && embedding >= 0) status = differ(files, head, embedding, &config->own_head);
    if (config->own_head) config->tied = false;
    ghp_hf_files_close(files);
    return status;
}

enum ghp_status ghp_hf_place_open(const char *path, struct ghp_hf_config *config,
                                  struct ghp_hf_network *network)
{
    struct ghp_hf_place place;
    struct ghp_hf_named named;

    if (!ghp_hf_place_find(path, &place))
        return GHP_FAIL(GHP_ERR_IO, "'%s' is not a folder with a config.json; check the name",
                        path);
    if (place.known != NULL)
        *config = *place.known;
    else {
        GHP_TRY(ghp_hf_config_load(place.path, config));
        GHP_TRY(check_tied(place.path, config));
    }
    if (place.positions > 0 && config->channels > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' asks for %" PRId64
                        " positions of a network of images, whose size config.json gives; leave "
                        "@%" PRId64 " out",
                        path, place.positions, place.positions);
    if (place.positions > config->context)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "'%s' asks for %" PRId64
                        " positions, but the network's context has %" PRId64
                        "; ask for at most as many",
                        path, place.positions, config->context);
    named.name = base_name(place.path);
    named.positions = place.positions > 0 ? place.positions : config->context;
    return ghp_hf_network_make(config, &named, network);
}
