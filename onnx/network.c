/* onnx/network.c - see network.h. */
#include "onnx/network.h"

#include "onnx/huggingface/huggingface.h"
#include "onnx/onnx.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum ghp_status ghp_network_load(const char *path, struct ghp_model *model)
{
    if (ghp_onnx_names(path)) return ghp_onnx_load(path, model);
    return ghp_hf_names(path) ? ghp_hf_load(path, model) : ghp_model_load(path, model);
}

bool ghp_network_names(const char *path)
{
    return ghp_onnx_names(path) || ghp_hf_names(path);
}

/* ---- where a plan finds it again ---- */

enum ghp_status ghp_network_keep(const char *path, char **kept)
{
    char here[PATH_MAX] = "";
    size_t n;

    *kept = NULL;
    if (path == NULL) return GHP_OK;
    if (path[0] != '/' && (ghp_onnx_names(path) || ghp_hf_is_folder(path))) {
        if (getcwd(here, sizeof here) == NULL)
            return GHP_FAIL(GHP_ERR_IO,
                            "cannot find the working directory: %s; give '%s' as an absolute path",
                            strerror(errno), path);
        while (path[0] == '.' && path[1] == '/')
            for (path += 2; path[0] == '/';)
                path++;
    }
    n = strlen(here) + strlen(path) + 2;
    *kept = ghp_alloc(n, 1);
    if (*kept == NULL) return GHP_NO_MEMORY();
    snprintf(*kept, n, "%s%s%s", here, here[0] != '\0' ? "/" : "", path);
    return GHP_OK;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0 || ghp_hf_is_folder(path);
}

/* The path's last part. Slashes at its end belong to it. */
static const char *last_part(const char *path)
{
    const char *at = path + strlen(path);

    while (at > path && at[-1] == '/')
        at--;
    while (at > path && at[-1] != '/')
        at--;
    return at;
}

/* Whether a network of that path never had weights. */
static bool is_bare(const char *path)
{
    size_t n = strlen(path);

    return ghp_hf_names(path) || (n > 5 && strcmp(path + n - 5, ".json") == 0);
}

enum ghp_status ghp_network_find(const char *kept, const char *plan_path, char **found)
{
    const char *names[3] = {kept, kept, NULL}; /* the last two in the plan's folder */
    size_t folder = (size_t)(last_part(plan_path) - plan_path), n;

    *found = NULL;
    if (kept == NULL) return GHP_OK;
    names[2] = last_part(kept);
    n = folder + strlen(kept) + 1;
    *found = ghp_alloc(n, 1);
    if (*found == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < 3; i++) {
        if (i == 1 && kept[0] == '/') continue;
        snprintf(*found, n, "%.*s%s", i > 0 ? (int)folder : 0, plan_path, names[i]);
        if (is_there(*found)) return GHP_OK;
    }
    free(*found);
    *found = NULL;
    if (is_bare(kept)) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_IO,
        "'%s', the network of the plan, is not there, nor '%s' next to the plan; put it "
        "there for its weights, or give --init FILE or --init random",
        kept, names[2]);
}
