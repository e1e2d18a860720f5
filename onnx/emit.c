/* onnx/emit.c - layers that an ONNX graph becomes: their names, and where their weights are. */
#include "onnx/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAYERS = 1 << 16, NAME_BYTES = 80 };

/* Letters, digits and _ - . / of the hint, unlike any name so far. */
static char *free_name(struct ghp_onnx_import *im, const char *hint, enum ghp_op op)
{
    char name[NAME_BYTES + 16];
    size_t n = 0;

    for (; hint != NULL && *hint != '\0' && n < NAME_BYTES; ++hint) {
        bool sound = (*hint >= 'a' && *hint <= 'z') || (*hint >= 'A' && *hint <= 'Z') ||
                     (*hint >= '0' && *hint <= '9') || strchr("_-./", *hint) != NULL;

        name[n++] = sound ? *hint : '_';
    }
    name[n] = '\0';
    if (n == 0) n = (size_t)snprintf(name, sizeof name, "%s", ghp_op_name(op));
    while (ghp_model_find(&im->model, name) >= 0)
        snprintf(name + n, sizeof name - n, "_%d", ++im->serial);
    return strdup(name);
}

enum ghp_status ghp_onnx_emit(struct ghp_onnx_import *im, const struct ghp_layer *like,
                              const char *hint, int *layer)
{
    struct ghp_model *model = &im->model;
    enum ghp_status status;

    if (model->n_layers == im->max_layers) {
        int max = im->max_layers > 0 ? 2 * im->max_layers : 64;
        struct ghp_layer *grown;

        if (max > MAX_LAYERS)
            return GHP_FAIL(GHP_ERR_INPUT, "%s: the graph makes more than %d layers; use fewer",
                            im->file->path, MAX_LAYERS / 2);
        grown = realloc(model->layers, (size_t)max * sizeof *grown);
        if (grown == NULL) return GHP_NO_MEMORY();
        model->layers = grown;
        im->max_layers = max;
    }
    *layer = model->n_layers;
    model->layers[*layer] = *like;
    model->layers[*layer].name = free_name(im, hint, like->op);
    if (model->layers[*layer].name == NULL) return GHP_NO_MEMORY();
    model->n_layers++;
    status = ghp_model_complete_layer(model, *layer);
    if (status != GHP_OK) ghp_status_prefix("%s", im->file->path);
    return status;
}

enum ghp_status ghp_onnx_weight_from(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     struct ghp_onnx_source source)
{
    const struct ghp_layer *layer = &im->model.layers[source.layer];
    const struct ghp_param *param = source.slot < GHP_MAX_PARAMS
                                        ? &layer->params[source.slot]
                                        : &layer->states[source.slot - GHP_MAX_PARAMS];

    if (ghp_onnx_elements(&source.array) != param->elements)
        return ghp_onnx_fail(
            im, node, "has %" PRId64 " values for '%s', which takes %" PRId64 "; repair the file",
            ghp_onnx_elements(&source.array), param->name, param->elements);
    if (im->n_sources == im->max_sources) {
        int max = im->max_sources > 0 ? 2 * im->max_sources : 64;
        struct ghp_onnx_source *grown = realloc(im->sources, (size_t)max * sizeof *grown);

        if (grown == NULL) return GHP_NO_MEMORY();
        im->sources = grown;
        im->max_sources = max;
    }
    im->sources[im->n_sources++] = source;
    return GHP_OK;
}

const char *ghp_onnx_hint(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                          const struct ghp_onnx_array *weight)
{
    static const char *const ends[] = {".weight", ".bias"};
    size_t n = weight != NULL && weight->name != NULL ? strlen(weight->name) : 0;

    for (int i = 0; i < 2; ++i) {
        size_t end = strlen(ends[i]);
        char *name;

        if (n <= end || n - end >= NAME_BYTES || strcmp(weight->name + n - end, ends[i]) != 0)
            continue;
        if (node->name[0] != '\0' && strncmp(weight->name, node->name, n - end) == 0 &&
            node->name[n - end] == '\0')
            return node->name;
        if (i == 1) return weight->name; /* a bias layer is called as its tensor */
        name = ghp_onnx_keep(im, n, 1);
        if (name == NULL) break;
        memcpy(name, weight->name, n - end);
        return name;
    }
    return node->name[0] != '\0' ? node->name : node->n_outputs > 0 ? node->outputs[0] : "";
}
