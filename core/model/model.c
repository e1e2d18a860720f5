/* core/model/model.c - a network: names, sizes, the end.
 *
 * Reads no file (model/read.c does). What follows from what a reader fills in: model/shape.c, model/connect.c. */
#include "core/model/model_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ghp_function_name(enum ghp_function function)
{
    static const char *const names[] = {
#define FUNCTION_NAME(id, text) text,
        GHP_FUNCTION_LIST(FUNCTION_NAME)
#undef FUNCTION_NAME
    };

    return names[function];
}

const char *ghp_fill_name(enum ghp_fill fill)
{
    static const char *const names[] = {
#define FILL_NAME(id, text) text,
        GHP_FILL_LIST(FILL_NAME)
#undef FILL_NAME
    };

    return names[fill];
}

int64_t ghp_shape_elements(struct ghp_shape shape)
{
    return shape.c * shape.h * shape.w;
}

struct ghp_shape ghp_shape_image(int64_t c, int64_t h, int64_t w)
{
    return (struct ghp_shape){c, h, w, h == 1 && w == 1 ? GHP_AXES_VECTOR : GHP_AXES_IMAGE, 0, 0};
}

struct ghp_shape ghp_shape_sequence(int64_t c, int64_t positions)
{
    return (struct ghp_shape){c, positions, 1, GHP_AXES_SEQUENCE, 0, 0};
}

struct ghp_shape ghp_shape_tokens(int64_t positions, int64_t vocabulary)
{
    return (struct ghp_shape){1, positions, 1, GHP_AXES_SEQUENCE, vocabulary, 0};
}

int ghp_shape_element_bytes(struct ghp_shape shape, int element_bytes)
{
    return shape.vocabulary > 0 ? (int)sizeof(int32_t) : element_bytes;
}

bool ghp_shape_equal(struct ghp_shape a, struct ghp_shape b)
{
    return a.c == b.c && a.h == b.h && a.w == b.w && a.axes == b.axes &&
           a.vocabulary == b.vocabulary;
}

const char *ghp_shape_format(struct ghp_shape s, char text[GHP_SHAPE_TEXT])
{
    if (s.vocabulary > 0)
        snprintf(text, GHP_SHAPE_TEXT, "%" PRId64 " ids of %" PRId64 " tokens", s.h, s.vocabulary);
    else if (s.axes == GHP_AXES_SEQUENCE)
        snprintf(text, GHP_SHAPE_TEXT, "%" PRId64 " channels x %" PRId64 " positions", s.c, s.h);
    else if (s.axes == GHP_AXES_VECTOR)
        snprintf(text, GHP_SHAPE_TEXT, "%" PRId64, s.c);
    else
        snprintf(text, GHP_SHAPE_TEXT, "%" PRId64 "x%" PRId64 "x%" PRId64, s.c, s.h, s.w);
    return text;
}

int ghp_model_owner(const struct ghp_model *model, int layer)
{
    return model->layers[layer].tied > 0 ? model->layers[layer].tied - 1 : layer;
}

int64_t ghp_model_tokens(const struct ghp_model *model)
{
    struct ghp_shape in = model->layers[0].out;

    return in.vocabulary > 0 ? in.h : 0;
}

int64_t ghp_layer_weights(const struct ghp_layer *layer)
{
    int64_t sum = 0;

    for (int i = 0; i < layer->n_params; i++)
        sum += layer->params[i].elements;
    return sum;
}

bool ghp_layer_trains(const struct ghp_model *model, int layer)
{
    const struct ghp_layer *owner = &model->layers[ghp_model_owner(model, layer)];

    return owner->n_params > 0 && !owner->fixed;
}

int ghp_model_find(const struct ghp_model *model, const char *layer)
{
    int first = 0, last = model->by_name != NULL ? model->n_layers - 1 : -1;

    while (first <= last) {
        int middle = first + (last - first) / 2, index = model->by_name[middle];
        int order = strcmp(layer, model->layers[index].name);

        if (order == 0) return index;
        if (order < 0)
            last = middle - 1;
        else
            first = middle + 1;
    }
    return -1;
}

void ghp_model_drop_derived(struct ghp_layer *layer)
{
    for (int i = 0; i < GHP_MAX_PARAMS; i++)
        free(layer->params[i].name);
    for (int i = 0; i < GHP_MAX_STATES; i++)
        free(layer->states[i].name);
    memset(layer->params, 0, sizeof layer->params);
    memset(layer->states, 0, sizeof layer->states);
    free(layer->out_edges);
    layer->out_edges = NULL;
    layer->shared = layer->by_data = layer->logits = false;
    layer->n_params = layer->n_states = layer->n_consumers = 0;
}

void ghp_model_release(struct ghp_model *model)
{
    if (model == NULL) return;
    for (int i = 0; i < model->n_layers; i++) {
        ghp_model_drop_derived(&model->layers[i]);
        free(model->layers[i].name);
    }
    free(model->layers);
    free(model->edges);
    free(model->by_name);
    free(model->name);
    free(model->text);
    *model = (struct ghp_model){0};
}
