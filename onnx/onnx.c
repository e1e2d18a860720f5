/* onnx/onnx.c - ONNX files as models, and their tensors under ghp's names. */
#include "onnx/onnx.h"

#include "onnx/folded.h"
#include "onnx/graph.h"
#include "onnx/read/constant.h"
#include "onnx/warn.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file, and how many positions its samples are to have if it leaves that open (0: not said). */
struct place {
    char path[PATH_MAX];
    int64_t positions;
};

static bool find_place(const char *path, struct place *place)
{
    size_t n = path != NULL ? strlen(path) : 0;
    char *at, *end = NULL;

    *place = (struct place){0};
    if (n == 0 || n >= sizeof place->path) return false;
    memcpy(place->path, path, n);
    at = strrchr(place->path, '@');
    if (at != NULL && at[1] >= '1' && at[1] <= '9') place->positions = strtoll(at + 1, &end, 10);
    if (end != NULL && *end == '\0')
        *at = '\0';
    else
        place->positions = 0;
    n = strlen(place->path);
    return n > 5 && strcmp(place->path + n - 5, ".onnx") == 0;
}

bool ghp_onnx_names(const char *path)
{
    struct place place;

    return find_place(path, &place);
}

bool ghp_onnx_is_there(const char *path)
{
    struct place place;

    return find_place(path, &place) && access(place.path, F_OK) == 0;
}

/* Opens a file that a path names, and imports it; both are to be released, also on failure. */
static enum ghp_status import_place(const char *path, struct ghp_onnx_file *file,
                                    struct ghp_onnx_import *import)
{
    struct ghp_onnx_options options = {0};
    struct place place;

    if (!find_place(path, &place))
        snprintf(place.path, sizeof place.path, "%s", path); /* a file of another name */
    options.positions = place.positions;
    GHP_TRY(ghp_onnx_file_open(place.path, file));
    return ghp_onnx_import_graph(file, &options, import);
}

/* A place in the description: the node that its layer is of, and what of it. */
static void name_place(const void *context, const char *where, char *out, size_t n)
{
    const struct ghp_onnx_import *import = context;
    bool item = strncmp(where, "layers[", 7) == 0;
    int layer = item ? ghp_model_item_layer(&import->model, strtoll(where + 7, NULL, 10)) : -1;
    const struct ghp_onnx_node *node = layer >= 0 ? import->makers[layer] : NULL;
    const char *rest = item ? strchr(where, ']') : NULL;

    out[0] = '\0';
    if (rest == NULL || layer < 0) {
        if (where[0] != '\0') snprintf(out, n, "the graph's '%s'", where);
        return;
    }
    rest = rest[1] == '.' ? rest + 2 : "";
    if (node == NULL)
        snprintf(out, n, "layer '%s'", import->model.layers[layer].name);
    else
        snprintf(out, n, "node '%.96s' (%.40s, opset %" PRId64 ")", ghp_onnx_node_name(node),
                 node->op, import->file->opset);
    if (rest[0] != '\0') snprintf(out + strlen(out), n - strlen(out), ", '%s'", rest);
}

/* The text is what the plan embeds and hashes; reading it back checks it like any other description. */
static enum ghp_status make_model(const struct ghp_onnx_import *import, struct ghp_model *model)
{
    const struct ghp_json_origin origin = {.name = name_place, .context = import};
    char *text = NULL;
    enum ghp_status status;

    GHP_TRY(ghp_model_write(&import->model, &text));
    status = ghp_model_parse_from(text, import->file->path, &origin, model);
    free(text);
    return status;
}

enum ghp_status ghp_onnx_load(const char *path, struct ghp_model *model)
{
    struct ghp_onnx_import import = {0};
    struct ghp_onnx_file file = {0};
    enum ghp_status status;

    *model = (struct ghp_model){0};
    status = import_place(path, &file, &import);
    if (status == GHP_OK) status = ghp_onnx_check_folded(&file);
    if (status == GHP_OK) status = make_model(&import, model);
    if (status == GHP_OK) ghp_onnx_warn(&import);
    ghp_onnx_import_release(&import);
    ghp_onnx_file_close(&file);
    return status;
}

struct ghp_onnx_tensors {
    struct ghp_onnx_file file;
    struct ghp_onnx_import import;
};

enum ghp_status ghp_onnx_tensors_open(const char *path, struct ghp_onnx_tensors **tensors)
{
    struct ghp_onnx_tensors *t = ghp_alloc(1, sizeof *t);
    enum ghp_status status;

    *tensors = NULL;
    if (t == NULL) return GHP_NO_MEMORY();
    status = import_place(path, &t->file, &t->import);
    if (status == GHP_OK)
        *tensors = t;
    else
        ghp_onnx_tensors_close(t);
    return status;
}

void ghp_onnx_tensors_close(struct ghp_onnx_tensors *tensors)
{
    if (tensors == NULL) return;
    ghp_onnx_import_release(&tensors->import);
    ghp_onnx_file_close(&tensors->file);
    free(tensors);
}

int ghp_onnx_tensors_count(const struct ghp_onnx_tensors *tensors)
{
    return tensors->import.n_sources;
}

struct ghp_onnx_weight ghp_onnx_tensors_item(const struct ghp_onnx_tensors *tensors, int i)
{
    const struct ghp_onnx_source *source = &tensors->import.sources[i];
    const struct ghp_onnx_base *base = source->array.base;
    const struct ghp_layer *layer = &tensors->import.model.layers[source->layer];
    const struct ghp_param *param = source->slot < GHP_MAX_PARAMS
                                        ? &layer->params[source->slot]
                                        : &layer->states[source->slot - GHP_MAX_PARAMS];
    struct ghp_onnx_weight weight = {.name = param->name,
                                     .n_dims = param->n_dims,
                                     .elements = param->elements,
                                     .is_filled = base->tensor == NULL && base->values == NULL};

    memcpy(weight.dims, param->dims, sizeof weight.dims);
    return weight;
}

enum ghp_status ghp_onnx_has_weights(const char *path, bool *has)
{
    struct ghp_onnx_tensors *tensors;

    *has = false;
    GHP_TRY(ghp_onnx_tensors_open(path, &tensors));
    for (int i = 0; i < ghp_onnx_tensors_count(tensors) && !*has; i++)
        *has = !ghp_onnx_tensors_item(tensors, i).is_filled;
    ghp_onnx_tensors_close(tensors);
    return GHP_OK;
}

enum ghp_status ghp_onnx_tensors_read(const struct ghp_onnx_tensors *tensors, int i, float *values)
{
    const struct ghp_onnx_source *source = &tensors->import.sources[i];

    return ghp_onnx_floats(&source->array, source->scale, values);
}
