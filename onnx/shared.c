/* onnx/shared.c - see shared.h. */
#include "onnx/shared.h"

#include "onnx/read/constant.h"
#include "onnx/read/role.h"

#include <stdlib.h>
#include <string.h>

/* The source of a layer's tensor in a slot, or NULL. */
static const struct ghp_onnx_source *source_at(const struct ghp_onnx_import *im, int layer,
                                               int slot)
{
    for (int i = 0; i < im->n_sources; i++)
        if (im->sources[i].layer == layer && im->sources[i].slot == slot) return &im->sources[i];
    return NULL;
}

/* Whether all values are one number, which the file says once. They are not made just to be compared. */
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

static enum ghp_status tie(struct ghp_onnx_import *im, int layer, int owner)
{
    int n = 0;

    im->model.layers[layer].tied = 1 + owner;
    im->model.layers[layer].transposed = false;
    for (int i = 0; i < im->n_sources; i++)
        if (im->sources[i].layer != layer) im->sources[n++] = im->sources[i];
    im->n_sources = n;
    return ghp_model_complete_layer(&im->model, layer);
}

/* Ties those of the layers after an embedding that have its values (NULL: a fill). If the values are all one number,
 * only layers with its tensor itself are tied. */
static enum ghp_status tie_to(struct ghp_onnx_import *im, int owner, const float *values)
{
    const struct ghp_param *table = &im->model.layers[owner].params[0];
    const struct ghp_onnx_source *own = source_at(im, owner, 0);
    const struct ghp_onnx_base *base = own->array.base;
    double scale = own->scale;
    bool by_chance = values == NULL || is_one_number(values, table->elements);

    for (int i = owner + 1; i < im->model.n_layers; i++) {
        const struct ghp_layer *layer = &im->model.layers[i];
        const struct ghp_onnx_source *source = source_at(im, i, 0);
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
        status = same ? tie(im, i, owner) : GHP_OK;
        if (status != GHP_OK) return status;
    }
    return GHP_OK;
}

static enum ghp_status tie_all(struct ghp_onnx_import *im)
{
    for (int i = 0; i < im->model.n_layers; i++) {
        const struct ghp_layer *layer = &im->model.layers[i];
        const struct ghp_onnx_source *source = source_at(im, i, 0);
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

/* ---- layers of one operation ---- */

/* Whether the text is "_3", which an exporter writes after a module's or an operation's name from its second call
 * on. */
static size_t call_number(const char *text)
{
    size_t n = text[0] == '_' ? 1 + strspn(text + 1, "0123456789") : 0;

    return n > 1 && (text[n] == '/' || text[n] == '\0') ? n : 0;
}

/* Whether two nodes that an exporter has called after their modules are of one: their names but for numbers of
 * calls. */
static bool same_path(const char *a, const char *b)
{
    for (;;) {
        a += call_number(a);
        b += call_number(b);
        if (*a != *b) return false;
        if (*a == '\0') return true;
        a++;
        b++;
    }
}

/* Whether the file says of which module a node is. */
static bool has_module(const struct ghp_onnx_node *node)
{
    return node != NULL && (node->scopes[0] != '\0' || node->name[0] == '/');
}

/* Whether two nodes, of which the file says whose they are, are calls of one module. */
static bool same_module(const struct ghp_onnx_node *a, const struct ghp_onnx_node *b)
{
    const char *ends[2];

    if (a->scopes[0] == '\0' || b->scopes[0] == '\0') return same_path(a->name, b->name);
    ends[0] = strrchr(a->scopes, ',');
    ends[1] = strrchr(b->scopes, ',');
    return ends[0] != NULL && ends[1] != NULL && ends[0] - a->scopes == ends[1] - b->scopes &&
           strncmp(a->scopes, b->scopes, (size_t)(ends[0] - a->scopes)) == 0;
}

static bool same_source(const struct ghp_onnx_source *a, const struct ghp_onnx_source *b)
{
    bool same = a->array.base == b->array.base && a->array.offset == b->array.offset &&
                a->array.n == b->array.n && memcmp(&a->scale, &b->scale, sizeof a->scale) == 0 &&
                !is_fill(a);

    for (int i = 0; same && i < a->array.n; i++)
        same = a->array.dims[i] == b->array.dims[i] && a->array.strides[i] == b->array.strides[i];
    return same;
}

/* Whether all tensors of two layers are the same. */
static bool same_tensors(const struct ghp_onnx_import *im, int layer, int other)
{
    const struct ghp_layer *l = &im->model.layers[layer], *o = &im->model.layers[other];
    bool same = l->op == o->op && l->n_params == o->n_params && l->n_states == o->n_states &&
                l->window.groups == o->window.groups;

    for (int p = 0; same && p < l->n_params + l->n_states; p++) {
        int slot = p < l->n_params ? p : GHP_MAX_PARAMS + p - l->n_params;
        const struct ghp_onnx_source *a = source_at(im, layer, slot),
                                     *b = source_at(im, other, slot);

        same = a != NULL && b != NULL && same_source(a, b);
    }
    return same;
}

static enum ghp_status refuse(const struct ghp_onnx_import *im, const struct ghp_onnx_source *a,
                              const struct ghp_onnx_source *b, const char *instead)
{
    const char *tensor = b->array.name != NULL ? b->array.name : "";

    return GHP_FAIL(GHP_ERR_INPUT, "%s: nodes '%.96s' and '%.96s' share the tensor '%.96s'; %s",
                    im->file->path, ghp_onnx_node_name(im->makers[a->layer]),
                    ghp_onnx_node_name(im->makers[b->layer]), tensor, instead);
}

/* Ties the layer of a source to that of an earlier one with the same base, or refuses it. */
static enum ghp_status tie_or_refuse(struct ghp_onnx_import *im, int first, int source)
{
    const struct ghp_onnx_source *a = &im->sources[first], *b = &im->sources[source];
    const struct ghp_onnx_node *one = im->makers[a->layer], *two = im->makers[b->layer];
    bool known = has_module(one) && has_module(two), number;
    float *values;

    if (known && same_module(one, two) && same_tensors(im, b->layer, a->layer))
        return tie(im, b->layer, a->layer);
    GHP_TRY(values_of(b, &values));
    number = is_one_number(values, ghp_onnx_elements(&b->array));
    free(values);
    if (number) return GHP_OK;
    if (!same_tensors(im, b->layer, a->layer))
        return refuse(im, a, b,
                      "ghp trains one tensor in layers that use it alike; give each node a "
                      "parameter of its own, or train the module without ghp");
    GHP_TRY(ghp_onnx_listed_names(im, "ghp.shared", "[\"fc.weight\"] or leave it out",
                                  &im->shared_names));
    if (!known || (b->array.name != NULL && ghp_onnx_is_listed(im->shared_names, b->array.name)))
        return tie(im, b->layer, a->layer);
    return refuse(im, a, b,
                  "they are of different modules, and exporters write equal tensors once: name it "
                  "in the metadata 'ghp.shared' if the modules share it, else export after "
                  "module.train(), with optimize=False if dynamo=True");
}

/* The first source before this one of which it is a further use; -1: there is none. Others of one base are its
 * parts. */
static int earlier(const struct ghp_onnx_import *im, int source)
{
    const struct ghp_onnx_source *s = &im->sources[source];

    for (int i = 0; i < source; i++)
        if (im->sources[i].array.base == s->array.base &&
            im->sources[i].array.offset == s->array.offset &&
            im->sources[i].slot < GHP_MAX_PARAMS && !im->model.layers[im->sources[i].layer].fixed)
            return i;
    return -1;
}

enum ghp_status ghp_onnx_share(struct ghp_onnx_import *im)
{
    GHP_TRY(tie_all(im));
    for (int i = 0; i < im->n_sources; i++) {
        const struct ghp_onnx_source *source = &im->sources[i];
        int before = im->n_sources, first;

        if (source->slot >= GHP_MAX_PARAMS || im->model.layers[source->layer].fixed ||
            is_fill(source))
            continue;
        first = earlier(im, i);
        if (first >= 0) GHP_TRY(tie_or_refuse(im, first, i));
        if (im->n_sources < before) i--; /* the layer's are gone */
    }
    return GHP_OK;
}
