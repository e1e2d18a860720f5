/* onnx/huggingface/place.c - see place.h. */
#include "onnx/huggingface/place.h"

#include "core/base/status.h"

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

enum ghp_status ghp_hf_place_open(const char *path, struct ghp_hf_config *config,
                                  struct ghp_hf_network *network)
{
    struct ghp_hf_place place;
    struct ghp_hf_named named;

    if (!ghp_hf_place_find(path, &place))
        return GHP_FAIL(GHP_ERR_IO, "'%s' is no folder with a config.json; check the name", path);
    if (place.known != NULL)
        *config = *place.known;
    else
        GHP_TRY(ghp_hf_config_load(place.path, config));
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
