/* onnx/shared.c - see shared.h. */
#include "onnx/shared.h"

#include "onnx/read/constant.h"

#include <stdlib.h>
#include <string.h>

/* The source of a layer's weight, or NULL. */
static struct ghp_onnx_source *weight_of(struct ghp_onnx_import *im, int layer)
{
    for (int i = 0; i < im->n_sources; i++)
        if (im->sources[i].layer == layer && im->sources[i].slot == 0) return &im->sources[i];
    return NULL;
}

/* Of one number that the file says once, however many there are to be: they are not made to be compared. */
static bool is_fill(const struct ghp_onnx_source *source)
{
    return source->array.base->tensor == NULL && source->array.base->values == NULL;
}

static enum ghp_status values_of(const struct ghp_onnx_source *source, float **values)
{
    enum ghp_status status;

    *values = ghp_alloc((size_t)ghp_onnx_elements(&source->array) + 1, sizeof **values);
    if (*values == NULL) return GHP_NO_MEMORY();
    status = ghp_onnx_floats(&source->array, source->scale, *values);
    if (status == GHP_OK) return GHP_OK;
    free(*values);
    *values = NULL;
    return status;
}

static bool is_one_number(const float *values, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (memcmp(&values[i], &values[0], sizeof *values) != 0) return false;
    return true;
}

static enum ghp_status drop_weight(struct ghp_onnx_import *im, int layer, int owner)
{
    struct ghp_onnx_source *source = weight_of(im, layer);

    im->model.layers[layer].tied = 1 + owner;
    im->model.layers[layer].transposed = false;
    *source = im->sources[--im->n_sources];
    return ghp_model_complete_layer(&im->model, layer);
}

/* Ties those of the layers behind an embedding that have its values (NULL: a fill); its tensor itself, where those are
 * one number. */
static enum ghp_status tie_to(struct ghp_onnx_import *im, int owner, const float *values)
{
    const struct ghp_param *table = &im->model.layers[owner].params[0];
    const struct ghp_onnx_source *own = weight_of(im, owner);
    const struct ghp_onnx_base *base = own->array.base;
    double scale = own->scale;
    bool by_chance = values == NULL || is_one_number(values, table->elements);

    for (int i = owner + 1; i < im->model.n_layers; i++) {
        const struct ghp_layer *layer = &im->model.layers[i];
        const struct ghp_onnx_source *source = weight_of(im, i);
        enum ghp_status status;
        float *others = NULL;
        bool same;

        if (!ghp_op_of(layer->op)->may_tie || layer->tied > 0 || source == NULL ||
            layer->params[0].dims[0] != table->dims[0] ||
            layer->params[0].dims[1] != table->dims[1] || (by_chance && source->array.base != base))
            continue;
        if (values != NULL) GHP_TRY(values_of(source, &others));
        same = values != NULL
                   ? memcmp(values, others, (size_t)table->elements * sizeof *values) == 0
                   : memcmp(&source->scale, &scale, sizeof scale) == 0;
        free(others);
        status = same ? drop_weight(im, i, owner) : GHP_OK;
        if (status != GHP_OK) return status;
    }
    return GHP_OK;
}

static enum ghp_status tie_all(struct ghp_onnx_import *im)
{
    for (int i = 0; i < im->model.n_layers; i++) {
        const struct ghp_layer *layer = &im->model.layers[i];
        const struct ghp_onnx_source *source = weight_of(im, i);
        enum ghp_status status;
        float *values = NULL;

        if (layer->op != GHP_OP_EMBEDDING || source == NULL) continue;
        if (!is_fill(source)) GHP_TRY(values_of(source, &values));
        status = tie_to(im, i, values);
        free(values);
        GHP_TRY(status);
    }
    return GHP_OK;
}

/* Whether two layers are to be warned of: both train the same values of a tensor. */
static enum ghp_status is_shared(const struct ghp_onnx_source *a, const struct ghp_onnx_source *b,
                                 bool *shared)
{
    float *values;

    *shared = a->array.offset == b->array.offset && !is_fill(b); /* else they are parts */
    if (!*shared) return GHP_OK;
    GHP_TRY(values_of(b, &values));
    *shared = !is_one_number(values, ghp_onnx_elements(&b->array));
    free(values);
    return GHP_OK;
}

enum ghp_status ghp_onnx_share(struct ghp_onnx_import *im)
{
    GHP_TRY(tie_all(im));
    for (int i = 0; i < im->n_sources; i++) {
        const struct ghp_onnx_source *source = &im->sources[i], *first;
        struct ghp_onnx_base *base = (struct ghp_onnx_base *)(uintptr_t)source->array.base;
        bool shared;

        if (source->slot >= GHP_MAX_PARAMS || im->model.layers[source->layer].fixed) continue;
        if (base->trained_by == 0) {
            base->trained_by = 1 + i;
            continue;
        }
        first = &im->sources[base->trained_by - 1];
        GHP_TRY(is_shared(first, source, &shared));
        if (shared && im->shared.n++ == 0)
            im->shared = (struct ghp_onnx_shared){
                1, source->array.name, {im->makers[first->layer], im->makers[source->layer]}};
    }
    return GHP_OK;
}
