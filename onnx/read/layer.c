/* onnx/read/layer.c - layers that an ONNX graph becomes: their names, and where their weights are. */
#include "onnx/read/layer.h"

#include "core/base/array.h"
#include "core/base/text.h"
#include "onnx/read/role.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name has at most NAME_BYTES of its hint and the hint's part, and then "_" with a number of at most 7 digits, which
 * is below the number of names taken: GHP_MAX_NAME in all. */
enum {
    MAX_LAYERS = 1 << 16,
    NAME_BYTES = GHP_MAX_NAME - 8,
    PART_BYTES = 8,
    NAME_ROOM = GHP_MAX_NAME + 1
};
enum { THIRDS = 3 }; /* queries, keys and values */

struct ghp_onnx_layer_name ghp_onnx_called(const char *text)
{
    return (struct ghp_onnx_layer_name){
        .text = text, .n = text != NULL ? strlen(text) : 0, .part = ""};
}

struct ghp_onnx_layer_name ghp_onnx_part(struct ghp_onnx_layer_name hint, const char *part)
{
    GHP_ASSERT(strlen(part) <= PART_BYTES);
    hint.part = part;
    return hint;
}

/* Letters, digits and _ - . / of the hint; of none, the operation's name. Returns its bytes. */
static size_t clean_name(struct ghp_onnx_layer_name hint, enum ghp_op op, char name[NAME_ROOM])
{
    size_t n = 0, most = NAME_BYTES - strlen(hint.part);

    for (; n < hint.n && n < most; n++) {
        char c = hint.text[n];
        bool sound = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("_-./", c) != NULL;

        name[n] = sound ? c : '_';
    }
    name[n] = '\0';
    n +=
        (size_t)snprintf(name + n, NAME_ROOM - n, "%s%s", n == 0 ? ghp_op_name(op) : "", hint.part);
    return n;
}

static bool taken(const json_t *names, const char *name)
{
    return json_object_get(names, name) != NULL;
}

/* Calls f for each tensor's name of a layer until it gives false; whether it never did. */
static bool each_tensor(const struct ghp_layer *layer, bool (*f)(json_t *names, const char *name),
                        json_t *names)
{
    for (int i = 0; i < layer->n_params; i++)
        if (!f(names, layer->params[i].name)) return false;
    for (int i = 0; i < layer->n_states; i++)
        if (!f(names, layer->states[i].name)) return false;
    return true;
}

static bool is_free(json_t *names, const char *name)
{
    return !taken(names, name);
}

static bool take_name(json_t *names, const char *name)
{
    return json_object_set_new(names, name, json_true()) == 0;
}

/* Names and completes the layer after the last one. Neither it nor its tensors get the name of an earlier one. */
static enum ghp_status name_layer(struct ghp_onnx_import *im, struct ghp_onnx_layer_name hint,
                                  int index)
{
    struct ghp_layer *layer = &im->model.layers[index];
    char name[NAME_ROOM];
    size_t n = clean_name(hint, layer->op, name);

    for (;; snprintf(name + n, sizeof name - n, "_%d", ++im->serial)) {
        if (taken(im->layer_names, name)) continue;
        free(layer->name);
        layer->name = strdup(name);
        if (layer->name == NULL) return GHP_NO_MEMORY();
        GHP_TRY(ghp_model_complete_layer(&im->model, index));
        if (each_tensor(layer, is_free, im->tensor_names)) break;
    }
    return take_name(im->layer_names, layer->name) &&
                   each_tensor(layer, take_name, im->tensor_names)
               ? GHP_OK
               : GHP_NO_MEMORY();
}

static enum ghp_status make_room(struct ghp_onnx_import *im)
{
    int max = im->max_layers > 0 ? 2 * im->max_layers : 64;
    const struct ghp_onnx_node **makers;
    struct ghp_layer *grown;

    if (im->layer_names == NULL) im->layer_names = json_object();
    if (im->tensor_names == NULL) im->tensor_names = json_object();
    if (im->layer_names == NULL || im->tensor_names == NULL) return GHP_NO_MEMORY();
    if (im->model.n_layers < im->max_layers) return GHP_OK;
    if (max > MAX_LAYERS)
        return GHP_FAIL(GHP_ERR_INPUT, "%s: the graph makes more than %d layers; use fewer",
                        im->file->path, MAX_LAYERS / 2);
    grown = realloc(im->model.layers, (size_t)max * sizeof *grown);
    if (grown == NULL) return GHP_NO_MEMORY();
    im->model.layers = grown;
    makers = realloc(im->makers, (size_t)max * sizeof *makers);
    if (makers == NULL) return GHP_NO_MEMORY();
    im->makers = makers;
    im->max_layers = max;
    return GHP_OK;
}

/* The sequence that an operation on images alone reads, as an image of a row for each position. */
static enum ghp_status as_image(struct ghp_onnx_import *im, struct ghp_onnx_layer_name hint,
                                int *input)
{
    struct ghp_shape s = im->model.layers[*input].out;
    const struct ghp_layer like = {
        .op = GHP_OP_VIEW,
        .n_inputs = 1,
        .inputs = {*input},
        .out = ghp_shape_image(s.c, s.h, 1),
        .view = {.n = s.h > 1 ? 2 : s.c > 1, .sizes = {s.c, s.h}, .strides = {s.h, 1}}};

    return ghp_onnx_emit(im, &like, ghp_onnx_part(hint, ".image"), input);
}

enum ghp_status ghp_onnx_emit(struct ghp_onnx_import *im, const struct ghp_layer *like,
                              struct ghp_onnx_layer_name hint, int *layer)
{
    int input = like->inputs[0];
    struct ghp_layer *made;
    enum ghp_status status;

    GHP_TRY(make_room(im));
    if (like->n_inputs > 0 && ghp_op_of(like->op)->takes == GHP_TAKES_IMAGES &&
        im->model.layers[input].out.axes == GHP_AXES_SEQUENCE)
        GHP_TRY(as_image(im, hint, &input));
    GHP_TRY(make_room(im));
    *layer = im->model.n_layers;
    made = &im->model.layers[*layer];
    *made = *like;
    made->inputs[0] = input;
    status = name_layer(im, hint, *layer);
    if (status != GHP_OK) {
        ghp_model_drop_derived(made);
        free(made->name);
        if (status == GHP_ERR_INPUT && im->now != NULL)
            return ghp_onnx_fail(im, im->now, "becomes no layer: %s", ghp_status_message());
        return status;
    }
    im->makers[im->model.n_layers++] = im->now;
    return GHP_OK;
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
    GHP_TRY_ROOM(im->sources, im->n_sources, im->max_sources);
    im->sources[im->n_sources++] = source;
    return ghp_onnx_role_apply(im, node, &source);
}

/* What the weight is called in the file: as the tensor that it is all of, unless another layer has that already. */
static const char *weight_name(const struct ghp_onnx_import *im,
                               const struct ghp_onnx_array *weight)
{
    const struct ghp_onnx_base *base = weight->base;
    bool whole =
        base != NULL && base->tensor != NULL && ghp_onnx_elements(weight) == base->elements;

    for (int i = 0; i < im->n_sources; i++)
        whole = whole && im->sources[i].array.base != base;
    if (whole) return base->tensor->name;
    return weight->name != NULL ? weight->name : "";
}

/* Whether a tensor's name is the module's for a parameter. If the file does not list any, a name with a dot, or that
 * begins with a letter, is the module's, unless it is like onnx::MatMul_12, which the exporter makes. */
static bool is_module_name(const struct ghp_onnx_array *weight, const char *name)
{
    enum ghp_onnx_role role = weight->base != NULL ? weight->base->role : GHP_ONNX_AS_USED;

    return role == GHP_ONNX_PARAMETER ||
           (role == GHP_ONNX_UNKNOWN &&
            (strchr(name, '.') != NULL || isalpha((unsigned char)name[0])) &&
            strstr(name, "::") == NULL);
}

bool ghp_onnx_is_part(const struct ghp_onnx_array *weight)
{
    const struct ghp_onnx_base *base = weight->base;

    return base != NULL && base->tensor != NULL && ghp_onnx_elements(weight) < base->elements;
}

/* The part of a module's tensor that has queries, keys and values one after the other, of some of whose rows the weight
 * is all: the last two have no part yet, as they are cut again. False if it is not one. */
static bool part_of_tensor(const struct ghp_onnx_array *weight, struct ghp_onnx_layer_name *hint)
{
    static const char *const parts[THIRDS] = {".q", ".k", ".v"};
    const struct ghp_onnx_base *base = weight->base;
    int64_t n = ghp_onnx_elements(weight), rows, third, last = 0;
    const char *name;

    if (!ghp_onnx_is_part(weight)) return false;
    name = base->tensor->name;
    third = base->elements / THIRDS;
    rows = base->tensor->n_dims > 0 ? base->tensor->dims[0] : 0;
    for (int d = 0; d < weight->n; d++)
        last += (weight->dims[d] - 1) * weight->strides[d];
    if (third < 1 || rows < THIRDS || rows % THIRDS != 0 || last != n - 1 ||
        weight->offset % third != 0 ||
        (n != third && !(n == 2 * third && weight->offset == third)) ||
        strlen(name) > NAME_BYTES - PART_BYTES || !is_module_name(weight, name))
        return false;
    *hint = ghp_onnx_called(name);
    if (ghp_text_ends(name, ".weight")) hint->n -= strlen(".weight");
    if (n == third) hint->part = parts[weight->offset / third];
    return true;
}

struct ghp_onnx_layer_name ghp_onnx_hint(const struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node,
                                         const struct ghp_onnx_array *weight)
{
    static const char *const ends[] = {".weight", ".bias"};
    const char *name = weight != NULL ? weight_name(im, weight) : "";
    size_t n = strlen(name);
    struct ghp_onnx_layer_name part;

    if (weight != NULL && part_of_tensor(weight, &part)) return part;
    for (int i = 0; i < 2; i++) {
        size_t end = strlen(ends[i]);
        struct ghp_onnx_layer_name hint;

        if (n <= end || n - end >= NAME_BYTES || strcmp(name + n - end, ends[i]) != 0) continue;
        hint = ghp_onnx_called(name);
        if (i == 0 || (strncmp(name, node->name, n - end) == 0 && node->name[n - end] == '\0'))
            hint.n = n - end;
        return hint; /* a bias layer is called as its tensor */
    }
    if (n > 0 && n <= NAME_BYTES && is_module_name(weight, name)) return ghp_onnx_called(name);
    return ghp_onnx_called(ghp_onnx_node_name(node));
}

struct ghp_onnx_array ghp_onnx_of_layer(const struct ghp_onnx_import *im, int layer, int n,
                                        const int64_t *dims)
{
    struct ghp_onnx_array array = {.layer = layer, .n = n};

    memcpy(array.dims, dims, (size_t)n * sizeof *dims);
    array.dims[0] = im->batch;
    ghp_onnx_in_order(&array);
    return array;
}
