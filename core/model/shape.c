/* core/model/shape.c - what follows for one layer from what a reader fills in: its shapes, and its parameters.
 *
 * To add an operation: its rule in shape_of, its parameters in params_of. */
#include "core/model/index_map.h"
#include "core/model/model_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements of one tensor, and channels of one layer, stay below these, so that products fit in 64 bits. */
#define MAX_ELEMENTS (INT64_C(1) << 40)
#define MAX_FLOPS (INT64_C(1) << 60)
#define MAX_CLASSES (INT64_C(1) << 24)

/* ---- shapes ---- */

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
        return ghp_model_fail(
            layer, "has windows that see padding only; use padding smaller than the kernel");
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
        return ghp_model_fail(layer,
                              "has a negative alpha, so that its output does not tell the sign "
                              "of its input; use 0 or more");
    if (a->function == GHP_FUNCTION_CLIP && !(a->alpha < a->beta))
        return ghp_model_fail(layer,
                              "has no values between alpha and beta; make beta the larger one");
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
        return ghp_model_fail(layer,
                              "is out of place; make the input layer, and it alone, layer 0");
    if (join ? layer->n_inputs < 2 : layer->n_inputs != 1)
        return GHP_FAIL(GHP_ERR_INPUT, "layer '%s' (%s) has %d inputs; name %s", layer->name,
                        ghp_op_name(layer->op), layer->n_inputs, join ? "2 to 16" : "one");
    if (layer->op == GHP_OP_MUL && layer->n_inputs != 2)
        return ghp_model_fail(layer, "has more than 2 inputs; multiply them one after the other");
    for (int i = 0; i < layer->n_inputs; ++i) {
        if (layer->inputs[i] < 0 || layer->inputs[i] >= index)
            return ghp_model_fail(layer,
                                  "reads a layer that is not before it; put the layers in order");
        for (int j = 0; j < i; ++j)
            if (layer->inputs[i] == layer->inputs[j])
                return ghp_model_fail(layer, "reads the same layer twice; name different layers");
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
    case GHP_OP_VIEW: return ghp_index_map_check_view(layer);
    case GHP_OP_PAD: return ghp_index_map_check_pad(layer);
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
        return ghp_model_fail(layer, "has no output; give sizes of at least 1");
    if (out.c > MAX_ELEMENTS / out.h || out.c * out.h > MAX_ELEMENTS / out.w)
        return ghp_model_fail(layer, "has more than 2^40 outputs a sample; use smaller sizes");
    return GHP_OK;
}

/* ---- parameters ---- */

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
            return ghp_model_fail(layer, "has more than 2^40 weights; use smaller sizes");
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

/* ---- a layer ---- */

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
        return ghp_model_fail(layer, "takes more than 2^60 operations a sample; use smaller sizes");
    return GHP_OK;
}
