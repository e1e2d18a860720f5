/* core/model.c - shape rules, parameters and edges of a network: everything that follows from what a reader fills in.
 *
 * Reads no file (model_read.c does).  To add an operation: its rule in shape_of, its parameters in params_of. */
#include "core/gather.h"
#include "core/model_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements of one tensor, and channels of one layer, stay below these, so that products fit in 64 bits. */
#define MAX_ELEMENTS (INT64_C(1) << 40)
#define MAX_FLOPS (INT64_C(1) << 60)
#define MAX_CLASSES (INT64_C(1) << 24)

const char *ghp_op_name(enum ghp_op op)
{
    static const char *const names[] = {
#define OP_NAME(id, text) text,
        GHP_OP_LIST(OP_NAME)
#undef OP_NAME
    };

    GHP_ASSERT((int)op >= 0 && op < GHP_OP_COUNT);
    return names[op];
}

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

int64_t ghp_layer_weights(const struct ghp_layer *layer)
{
    int64_t sum = 0;

    for (int i = 0; i < layer->n_params; ++i)
        sum += layer->params[i].elements;
    return sum;
}

int64_t ghp_layer_flops(const struct ghp_layer *layer)
{
    if (layer->op != GHP_OP_CONV2D && layer->op != GHP_OP_LINEAR) return 0;
    return 2 * layer->params[0].elements * layer->out.h * layer->out.w;
}

bool ghp_op_needs_input(enum ghp_op op)
{
    return op == GHP_OP_CONV2D || op == GHP_OP_LINEAR || op == GHP_OP_BATCH_NORM ||
           op == GHP_OP_LRN || op == GHP_OP_MUL;
}

bool ghp_op_needs_output(enum ghp_op op)
{
    return op == GHP_OP_RELU || op == GHP_OP_ACTIVATION || op == GHP_OP_SOFTMAX_CE;
}

bool ghp_op_in_place(const struct ghp_layer *layer)
{
    switch (layer->op) {
    case GHP_OP_BIAS:
    case GHP_OP_RELU:
    case GHP_OP_ACTIVATION:
    case GHP_OP_DROPOUT: return true;
    case GHP_OP_FLATTEN: return layer->in.h * layer->in.w == 1;
    default: return false;
    }
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

static enum ghp_status fail_layer(const struct ghp_layer *layer, const char *problem)
{
    return GHP_FAIL(GHP_ERR_INPUT, "layer '%s' (%s) %s", layer->name, ghp_op_name(layer->op),
                    problem);
}

/* "64x32x32" */
static const char *shape_text(struct ghp_shape shape, char text[72])
{
    snprintf(text, 72, "%lldx%lldx%lld", (long long)shape.c, (long long)shape.h,
             (long long)shape.w);
    return text;
}

/* Output positions along one axis, or 0 where the kernel does not fit. */
static int64_t positions(int64_t size, int64_t pads, int64_t reach, int64_t stride)
{
    return size + pads < reach ? 0 : (size + pads - reach) / stride + 1;
}

void ghp_window_ceil(int64_t size, int64_t pad, int64_t reach, int64_t stride, int64_t *pad_after)
{
    int64_t rest = size + pad + *pad_after - reach;
    int64_t count = rest > 0 ? (rest + stride - 1) / stride + 1 : 1, need;

    if ((count - 1) * stride >= size + pad) --count;
    need = (count - 1) * stride + reach - size - pad;
    if (need > *pad_after) *pad_after = need;
}

struct axis { /* of a window: pixels, padding before, kernel, stride, dilation, output positions */
    int64_t size, pad, kernel, stride, dilation, count;
};

/* Whether each pooling window along one axis touches the input. */
static bool windows_touch(struct axis a)
{
    if ((a.kernel - 1) * a.dilation < a.pad || (a.count - 1) * a.stride >= a.size + a.pad)
        return false;
    if (a.dilation <= a.size) return true; /* steps no longer than the image cannot jump over it */
    for (int64_t i = 0; i < a.count; ++i) {
        int64_t first = i * a.stride - a.pad;
        int64_t jump = first < 0 ? (-first + a.dilation - 1) / a.dilation : 0;

        if (jump >= a.kernel || first + jump * a.dilation >= a.size) return false;
    }
    return true;
}

/* out.h and out.w of a convolution or pool. */
static enum ghp_status window_shape(struct ghp_layer *layer)
{
    const struct ghp_window *win = &layer->window;
    int64_t reach_h = (win->r - 1) * win->dilation_h + 1,
            reach_w = (win->s - 1) * win->dilation_w + 1;
    struct ghp_shape *out = &layer->out;
    char text[72];

    out->h = positions(layer->in.h, win->pad_top + win->pad_bottom, reach_h, win->stride_h);
    out->w = positions(layer->in.w, win->pad_left + win->pad_right, reach_w, win->stride_w);
    if (out->h == 0 || out->w == 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (%s) covers %lldx%lld pixels, but its padded input of %s is "
                        "smaller; use a smaller "
                        "kernel or more padding",
                        layer->name, ghp_op_name(layer->op), (long long)reach_h, (long long)reach_w,
                        shape_text(layer->in, text));
    if (layer->op != GHP_OP_CONV2D &&
        (!windows_touch((struct axis){layer->in.h, win->pad_top, win->r, win->stride_h,
                                      win->dilation_h, out->h}) ||
         !windows_touch((struct axis){layer->in.w, win->pad_left, win->s, win->stride_w,
                                      win->dilation_w, out->w})))
        return fail_layer(layer,
                          "has windows that see padding only; use padding smaller than the kernel");
    return GHP_OK;
}

static enum ghp_status conv2d_shape(struct ghp_layer *layer)
{
    int64_t groups = layer->window.groups;

    if (layer->in.c % groups != 0 || layer->out.c % groups != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (conv2d) has %lld groups, but %lld input and %lld output "
                        "channels; use groups that "
                        "divide both",
                        layer->name, (long long)groups, (long long)layer->in.c,
                        (long long)layer->out.c);
    return window_shape(layer);
}

static enum ghp_status linear_shape(struct ghp_layer *layer)
{
    char text[72];

    if (layer->in.h * layer->in.w != 1)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (linear) takes a vector, but its input is %s; put a flatten "
                        "layer before it",
                        layer->name, shape_text(layer->in, text));
    layer->out.h = layer->out.w = 1;
    return GHP_OK;
}

static enum ghp_status softmax_shape(struct ghp_layer *layer)
{
    char text[72];

    if (layer->in.h * layer->in.w != 1 || layer->in.c < 2 || layer->in.c > MAX_CLASSES)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (softmax_cross_entropy) takes a vector of 2 to 2^24 classes, "
                        "but its input is %s; "
                        "put a linear or global_avg_pool layer before it",
                        layer->name, shape_text(layer->in, text));
    layer->out = layer->in;
    return GHP_OK;
}

static enum ghp_status activation_shape(struct ghp_layer *layer)
{
    const struct ghp_activation *a = &layer->activation;

    layer->out = layer->in;
    if (a->function == GHP_FUNCTION_LEAKY_RELU && !(a->alpha >= 0))
        return fail_layer(layer, "has a negative alpha, so that its output does not tell the sign "
                                 "of its input; use 0 or more");
    if (a->function == GHP_FUNCTION_CLIP && !(a->alpha < a->beta))
        return fail_layer(layer, "has no values between alpha and beta; make beta the larger one");
    return GHP_OK;
}

/* add, mul and concat: all inputs agree; concat sums their channels. */
static enum ghp_status join_shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    bool concat = layer->op == GHP_OP_CONCAT;
    char mine[72], other[72];

    layer->out = layer->in;
    for (int i = 1; i < layer->n_inputs; ++i) {
        struct ghp_shape shape = model->layers[layer->inputs[i]].out;

        if (shape.h != layer->in.h || shape.w != layer->in.w || (!concat && shape.c != layer->in.c))
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "layer '%s' (%s) joins '%s' of shape %s with '%s' of shape %s; make %s equal",
                layer->name, ghp_op_name(layer->op), model->layers[layer->inputs[0]].name,
                shape_text(layer->in, mine), model->layers[layer->inputs[i]].name,
                shape_text(shape, other), concat ? "their heights and widths" : "their shapes");
        if (concat) layer->out.c += shape.c;
    }
    return GHP_OK;
}

static enum ghp_status check_inputs(const struct ghp_layer *layer, int index)
{
    bool join = layer->op == GHP_OP_ADD || layer->op == GHP_OP_CONCAT || layer->op == GHP_OP_MUL;

    if (index == 0 && layer->op == GHP_OP_INPUT) return GHP_OK;
    if (index == 0 || layer->op == GHP_OP_INPUT)
        return fail_layer(layer, "is out of place; make the input layer, and it alone, layer 0");
    if (join ? layer->n_inputs < 2 : layer->n_inputs != 1)
        return GHP_FAIL(GHP_ERR_INPUT, "layer '%s' (%s) has %d inputs; name %s", layer->name,
                        ghp_op_name(layer->op), layer->n_inputs, join ? "2 to 16" : "one");
    if (layer->op == GHP_OP_MUL && layer->n_inputs != 2)
        return fail_layer(layer, "has more than 2 inputs; multiply them one after the other");
    for (int i = 0; i < layer->n_inputs; ++i) {
        if (layer->inputs[i] < 0 || layer->inputs[i] >= index)
            return fail_layer(layer,
                              "reads a layer that is not before it; put the layers in order");
        for (int j = 0; j < i; ++j)
            if (layer->inputs[i] == layer->inputs[j])
                return fail_layer(layer, "reads the same layer twice; name different layers");
    }
    return GHP_OK;
}

static enum ghp_status shape_of(const struct ghp_model *model, struct ghp_layer *layer)
{
    switch (layer->op) {
    case GHP_OP_CONV2D: return conv2d_shape(layer);
    case GHP_OP_LINEAR: return linear_shape(layer);
    case GHP_OP_SOFTMAX_CE: return softmax_shape(layer);
    case GHP_OP_ACTIVATION: return activation_shape(layer);
    case GHP_OP_ADD:
    case GHP_OP_MUL:
    case GHP_OP_CONCAT: return join_shape(model, layer);
    case GHP_OP_VIEW: return ghp_gather_check_view(layer);
    case GHP_OP_PAD: return ghp_gather_check_pad(layer);
    case GHP_OP_MAX_POOL:
    case GHP_OP_AVG_POOL: layer->out.c = layer->in.c; return window_shape(layer);
    case GHP_OP_GLOBAL_AVG_POOL: layer->out = (struct ghp_shape){layer->in.c, 1, 1}; return GHP_OK;
    case GHP_OP_FLATTEN:
        layer->out = (struct ghp_shape){ghp_shape_elements(layer->in), 1, 1};
        return GHP_OK;
    default: layer->out = layer->in; return GHP_OK;
    }
}

static enum ghp_status check_size(const struct ghp_layer *layer)
{
    struct ghp_shape out = layer->out;

    if (out.c < 1 || out.h < 1 || out.w < 1)
        return fail_layer(layer, "has no output; give sizes of at least 1");
    if (out.c > MAX_ELEMENTS / out.h || out.c * out.h > MAX_ELEMENTS / out.w)
        return fail_layer(layer, "has more than 2^40 outputs a sample; use smaller sizes");
    return GHP_OK;
}

/* Fills one tensor: its name is the layer's and `.part`. */
static enum ghp_status make_param(const struct ghp_layer *layer, const char *part,
                                  struct ghp_param *param)
{
    size_t n = strlen(layer->name), n_part = strlen(part);
    bool named = n > n_part && layer->name[n - n_part - 1] == '.' &&
                 strcmp(layer->name + n - n_part, part) == 0;

    param->elements = 1;
    for (int i = 0; i < param->n_dims; ++i) {
        if (param->elements > MAX_ELEMENTS / param->dims[i])
            return fail_layer(layer, "has more than 2^40 weights; use smaller sizes");
        param->elements *= param->dims[i];
    }
    if (param->init == GHP_INIT_KAIMING) param->fan_in = param->elements / param->dims[0];
    param->name = ghp_alloc(n + n_part + 2, 1);
    if (param->name == NULL) return GHP_NO_MEMORY();
    /* the bias layer that belongs to conv1 is called conv1.bias already */
    snprintf(param->name, n + n_part + 2, "%s%s%s", layer->name, named ? "" : ".",
             named ? "" : part);
    return GHP_OK;
}

/* One value a channel. */
static struct ghp_param channel_param(int64_t channels, enum ghp_init init)
{
    return (struct ghp_param){.n_dims = 1, .dims = {channels}, .init = init};
}

static enum ghp_status params_of(struct ghp_layer *layer)
{
    const struct ghp_window *win = &layer->window;

    switch (layer->op) {
    case GHP_OP_CONV2D:
        layer->params[0] =
            (struct ghp_param){.n_dims = 4,
                               .dims = {layer->out.c, layer->in.c / win->groups, win->r, win->s},
                               .init = GHP_INIT_KAIMING};
        layer->n_params = 1;
        return make_param(layer, "weight", &layer->params[0]);
    case GHP_OP_LINEAR:
        layer->params[0] = (struct ghp_param){
            .n_dims = 2, .dims = {layer->out.c, layer->in.c}, .init = GHP_INIT_KAIMING};
        layer->n_params = 1;
        return make_param(layer, "weight", &layer->params[0]);
    case GHP_OP_BIAS:
        layer->params[0] = channel_param(layer->in.c, GHP_INIT_ZERO);
        layer->n_params = 1;
        return make_param(layer, "bias", &layer->params[0]);
    case GHP_OP_BATCH_NORM:
        layer->params[0] = channel_param(layer->in.c, GHP_INIT_ONE);
        layer->params[1] = channel_param(layer->in.c, GHP_INIT_ZERO);
        layer->states[0] = channel_param(layer->in.c, GHP_INIT_ZERO);
        layer->states[1] = channel_param(layer->in.c, GHP_INIT_ONE);
        layer->n_params = layer->n_states = 2;
        GHP_TRY(make_param(layer, "weight", &layer->params[0]));
        GHP_TRY(make_param(layer, "bias", &layer->params[1]));
        GHP_TRY(make_param(layer, "running_mean", &layer->states[0]));
        return make_param(layer, "running_var", &layer->states[1]);
    default: return GHP_OK;
    }
}

void ghp_model_drop_derived(struct ghp_layer *layer)
{
    for (int i = 0; i < GHP_MAX_PARAMS; ++i)
        free(layer->params[i].name);
    for (int i = 0; i < GHP_MAX_STATES; ++i)
        free(layer->states[i].name);
    memset(layer->params, 0, sizeof layer->params);
    memset(layer->states, 0, sizeof layer->states);
    free(layer->out_edges);
    layer->out_edges = NULL;
    layer->n_params = layer->n_states = layer->n_consumers = 0;
}

enum ghp_status ghp_model_complete_layer(struct ghp_model *model, int index)
{
    struct ghp_layer *layer = &model->layers[index];

    ghp_model_drop_derived(layer);
    GHP_TRY(check_inputs(layer, index));
    layer->in = index == 0 ? layer->out : model->layers[layer->inputs[0]].out;
    if (index > 0) GHP_TRY(shape_of(model, layer));
    GHP_TRY(check_size(layer));
    GHP_TRY(params_of(layer));
    layer->learns = layer->n_params > 0;
    for (int i = 0; i < layer->n_inputs; ++i)
        layer->learns = layer->learns || model->layers[layer->inputs[i]].learns;
    if (layer->n_params > 0 &&
        layer->params[0].elements > MAX_FLOPS / 2 / (layer->out.h * layer->out.w))
        return fail_layer(layer, "takes more than 2^60 operations a sample; use smaller sizes");
    return GHP_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuses two tensors of one name: they would meet in a checkpoint. */
static enum ghp_status check_names(const struct ghp_model *model)
{
    enum { PER_LAYER = GHP_MAX_PARAMS + GHP_MAX_STATES };
    const char **names = ghp_alloc((size_t)model->n_layers * PER_LAYER, sizeof *names);
    enum ghp_status status = GHP_OK;
    size_t n = 0;

    if (names == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < model->n_layers; ++i) {
        const struct ghp_layer *layer = &model->layers[i];

        for (int j = 0; j < layer->n_params; ++j)
            names[n++] = layer->params[j].name;
        for (int j = 0; j < layer->n_states; ++j)
            names[n++] = layer->states[j].name;
    }
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n && status == GHP_OK; ++i)
        if (strcmp(names[i - 1], names[i]) == 0)
            status =
                GHP_FAIL(GHP_ERR_INPUT, "two tensors are called '%s'; rename a layer", names[i]);
    free(names);
    return status;
}

static enum ghp_status make_edges(struct ghp_model *model)
{
    int n = 0;

    for (int i = 0; i < model->n_layers; ++i) {
        model->layers[i].first_edge = n;
        n += model->layers[i].n_inputs;
    }
    model->edges = ghp_alloc((size_t)n, sizeof *model->edges);
    if (model->edges == NULL) return GHP_NO_MEMORY();
    model->n_edges = n;
    for (int i = 0; i < model->n_layers; ++i) {
        struct ghp_layer *layer = &model->layers[i];

        for (int j = 0; j < layer->n_inputs; ++j) {
            model->edges[layer->first_edge + j] = (struct ghp_edge){layer->inputs[j], i, j};
            ++model->layers[layer->inputs[j]].n_consumers;
        }
    }
    return GHP_OK;
}

/* The lists of edges that leave each layer. */
static enum ghp_status make_consumers(struct ghp_model *model)
{
    for (int i = 0; i < model->n_layers; ++i) {
        struct ghp_layer *layer = &model->layers[i];

        layer->out_edges = ghp_alloc((size_t)layer->n_consumers, sizeof *layer->out_edges);
        if (layer->out_edges == NULL) return GHP_NO_MEMORY();
        layer->n_consumers = 0;
    }
    for (int e = 0; e < model->n_edges; ++e) {
        struct ghp_layer *from = &model->layers[model->edges[e].from];

        from->out_edges[from->n_consumers++] = e;
    }
    return GHP_OK;
}

/* Refuses layers whose output is read by none, and a loss that is not the last layer. */
static enum ghp_status check_ends(const struct ghp_model *model, int *wrong)
{
    for (int i = 0; i < model->n_layers; ++i) {
        const struct ghp_layer *layer = &model->layers[i];
        bool last = i == model->n_layers - 1;

        *wrong = i;
        if ((layer->op == GHP_OP_SOFTMAX_CE) != last)
            return fail_layer(layer,
                              last ? "ends the network; end it with a softmax_cross_entropy layer"
                                   : "is the loss, but not the last layer; move it to the end");
        if (!last && layer->n_consumers == 0)
            return fail_layer(layer,
                              "is read by no layer; name it in the inputs of one, or remove it");
    }
    *wrong = -1;
    return GHP_OK;
}

static int compare_layers(const void *a, const void *b, void *data)
{
    const struct ghp_layer *layers = data;
    int x = *(const int *)a, y = *(const int *)b, order = strcmp(layers[x].name, layers[y].name);

    return order != 0 ? order : x - y;
}

/* The layers in order of their names; refuses two of one name. */
static enum ghp_status sort_names(struct ghp_model *model, int *wrong)
{
    int *by_name = ghp_alloc((size_t)model->n_layers, sizeof *by_name);

    if (by_name == NULL) return GHP_NO_MEMORY();
    model->by_name = by_name;
    for (int i = 0; i < model->n_layers; ++i)
        by_name[i] = i;
    qsort_r(by_name, (size_t)model->n_layers, sizeof *by_name, compare_layers, model->layers);
    for (int i = 1; i < model->n_layers; ++i) {
        const struct ghp_layer *layer = &model->layers[by_name[i]];

        if (strcmp(model->layers[by_name[i - 1]].name, layer->name) != 0) continue;
        *wrong = by_name[i];
        return fail_layer(layer, "has the name of an earlier layer; rename it");
    }
    return GHP_OK;
}

enum ghp_status ghp_model_connect(struct ghp_model *model, int *wrong)
{
    int layer = -1;
    enum ghp_status status;

    if (wrong == NULL) wrong = &layer;
    *wrong = -1;
    free(model->edges);
    free(model->by_name);
    model->edges = NULL;
    model->by_name = NULL;
    model->n_edges = 0;
    if (model->n_layers < 2)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the network has no layers; give it at least softmax_cross_entropy");
    for (int i = 0; i < model->n_layers; ++i) {
        free(model->layers[i].out_edges);
        model->layers[i].out_edges = NULL;
        model->layers[i].n_consumers = 0;
    }
    GHP_TRY(make_edges(model));
    status = check_ends(model, wrong);
    if (status == GHP_OK) status = sort_names(model, wrong);
    if (status == GHP_OK) status = check_names(model);
    if (status == GHP_OK) status = make_consumers(model);
    if (status == GHP_OK) model->classes = (int)model->layers[model->n_layers - 1].in.c;
    return status;
}

enum ghp_status ghp_model_complete(struct ghp_model *model)
{
    for (int i = 0; i < model->n_layers; ++i)
        GHP_TRY(ghp_model_complete_layer(model, i));
    return ghp_model_connect(model, NULL);
}

void ghp_model_release(struct ghp_model *model)
{
    if (model == NULL) return;
    for (int i = 0; i < model->n_layers; ++i) {
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
