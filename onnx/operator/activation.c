/* onnx/operator/activation.c - functions of each value by itself. */
#include "onnx/operator/operator.h"

#include "onnx/operator/rows.h"
#include "onnx/operator/scores.h"
#include "onnx/operator/unary.h"
#include "onnx/operator/window.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <math.h>
#include <string.h>

static enum ghp_status read_relu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_RELU};

    return ghp_onnx_unary(im, node, &like);
}

static enum ghp_status read_leaky_relu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_ACTIVATION,
                             .activation = {.function = GHP_FUNCTION_LEAKY_RELU,
                                            .alpha = ghp_onnx_real(node, "alpha", 0.01)}};

    return ghp_onnx_unary(im, node, &like);
}

static enum ghp_status read_sigmoid(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_ACTIVATION, .activation.function = GHP_FUNCTION_SIGMOID};

    return ghp_onnx_unary(im, node, &like);
}

static enum ghp_status read_tanh(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_ACTIVATION, .activation.function = GHP_FUNCTION_TANH};

    return ghp_onnx_unary(im, node, &like);
}

static enum ghp_status read_gelu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const char *approximate = ghp_onnx_text(node, "approximate", "none");
    struct ghp_layer like = {.op = GHP_OP_GELU, .norm.gelu = GHP_GELU_ERF};

    if (strcmp(approximate, "tanh") == 0)
        like.norm.gelu = GHP_GELU_TANH;
    else if (strcmp(approximate, "none") != 0)
        return ghp_onnx_fail(im, node, "is approximated by '%.40s'; ghp has none and tanh",
                             approximate);
    return ghp_onnx_unary(im, node, &like);
}

static enum ghp_status read_swish(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_SILU};

    if (ghp_onnx_real(node, "alpha", 1) != 1)
        return ghp_onnx_fail(im, node, "has alpha %g; ghp has x sigmoid(x), where alpha is 1",
                             ghp_onnx_real(node, "alpha", 1));
    return ghp_onnx_unary(im, node, &like);
}

static enum ghp_status read_elu(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {
        .op = GHP_OP_ACTIVATION,
        .activation = {.function = GHP_FUNCTION_ELU, .alpha = ghp_onnx_real(node, "alpha", 1)}};

    return ghp_onnx_unary(im, node, &like);
}

static enum ghp_status read_hard_swish(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_HARD_SWISH};

    return ghp_onnx_unary(im, node, &like);
}

/* alpha x + beta, and of that what is between 0 and 1. */
static enum ghp_status read_hard_sigmoid(struct ghp_onnx_import *im,
                                         const struct ghp_onnx_node *node)
{
    struct ghp_layer line = {.op = GHP_OP_ACTIVATION,
                             .n_inputs = 1,
                             .activation = {GHP_FUNCTION_AFFINE, ghp_onnx_real(node, "alpha", 0.2),
                                            ghp_onnx_real(node, "beta", 0.5)}};
    struct ghp_layer like = {
        .op = GHP_OP_ACTIVATION, .n_inputs = 1, .activation = {GHP_FUNCTION_CLIP, 0, 1}};
    struct ghp_onnx_array *x, made;
    int layer;

    if ((float)line.activation.alpha == 1.0f / 6.0f) /* no float says what is meant */
        line.activation.alpha = 1.0 / 6.0;
    GHP_TRY(ghp_onnx_joined_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_each_in(im, x, &line.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &line, ghp_onnx_part(ghp_onnx_hint(im, node, NULL), ".line"),
                          &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    made = ghp_onnx_each_out(x, layer);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status bound_of(struct ghp_onnx_import *im, const struct ghp_onnx_node *node, int i,
                                double *bound)
{
    const double most = 1e30; /* what ghp.model/1 allows */
    const double scale =
        log(100); /* of Swin v2's scores, of which the file has the nearest float */
    struct ghp_onnx_array *array = ghp_onnx_in(im, node, i);
    const double *value;

    if (array != NULL) {
        GHP_TRY(ghp_onnx_constant_in(im, node, i, &array));
        GHP_TRY(ghp_onnx_values(im, array, &value));
        if (ghp_onnx_elements(array) > 0) *bound = ghp_onnx_tidy(value[0]);
    }
    if ((float)*bound == (float)scale) *bound = scale;
    if (*bound > most) *bound = most;
    if (*bound < -most) *bound = -most;
    return GHP_OK;
}

static enum ghp_status read_clip(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_activation a = {.function = GHP_FUNCTION_CLIP,
                               .alpha = ghp_onnx_real(node, "min", -1e30),
                               .beta = ghp_onnx_real(node, "max", 1e30)};
    struct ghp_layer like = {.op = GHP_OP_ACTIVATION};

    GHP_TRY(bound_of(im, node, 1, &a.alpha));
    GHP_TRY(bound_of(im, node, 2, &a.beta));
    if (a.alpha <= -1e30 && a.beta >= 1e30) return ghp_onnx_identity(im, node);
    if (a.alpha == 0 && a.beta >= 1e30) {
        like.op = GHP_OP_RELU;
        return ghp_onnx_unary(im, node, &like);
    }
    like.activation = a;
    return ghp_onnx_unary(im, node, &like);
}

/* One number for each place of an axis of a sample: the channels of an image, if the places are made those. */
static enum ghp_status read_dropped_channels(struct ghp_onnx_import *im,
                                             const struct ghp_onnx_node *node,
                                             struct ghp_layer *like, int64_t axis)
{
    struct ghp_onnx_array *x;
    int layer;

    GHP_TRY(ghp_onnx_any_in(im, node, 2, &x));
    if (axis >= x->n || x->dims[axis] != ghp_onnx_int(node, "size", 0))
        return ghp_onnx_fail(im, node,
                             "has a mask of another size than its input; repair the file");
    if (x->n == 2) return ghp_onnx_unary(im, node, like); /* each element is a channel */
    like->norm.drop = GHP_DROP_CHANNELS;
    if (axis == 2 && ghp_onnx_whole_sequence(im, x)) return ghp_onnx_unary(im, node, like);
    if (axis != 1 || x->n > 4)
        return ghp_onnx_fail(im, node,
                             "drops all along axis %lld; ghp drops whole channels, axis 1 of three "
                             "or four: move the axis there in the module",
                             (long long)axis);
    like->n_inputs = 1;
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like->inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, like, ghp_onnx_hint(im, node, NULL), &layer));
    return ghp_onnx_window_define(im, node, layer, x->n);
}

static enum ghp_status read_dropout(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    struct ghp_layer like = {.op = GHP_OP_DROPOUT,
                             .norm = {.ratio = ghp_onnx_real(node, "ratio", 0.5)}};
    /* said by onnx/pattern/dropout.c, as axis and size are */
    bool samples = ghp_onnx_int(node, "samples", 0) != 0;
    int64_t axis = ghp_onnx_int(node, "axis", 0);
    const struct ghp_onnx_array *x = ghp_onnx_in(im, node, 0);
    struct ghp_onnx_array *ratio = ghp_onnx_in(im, node, 1);
    const double *value;

    if (ghp_onnx_wanted(im, node, 1))
        return ghp_onnx_fail(im, node, "hands its mask on; ghp has masks inside the layer only");
    if (ratio != NULL) {
        GHP_TRY(ghp_onnx_constant_in(im, node, 1, &ratio));
        GHP_TRY(ghp_onnx_values(im, ratio, &value));
        if (ghp_onnx_elements(ratio) > 0) like.norm.ratio = ghp_onnx_tidy(value[0]);
    }
    if (samples) like.norm.drop = GHP_DROP_SAMPLES;
    if (!(like.norm.ratio >= 0 && like.norm.ratio <= 0.999))
        return ghp_onnx_fail(im, node, "drops %g of its values; use 0 to 0.999", like.norm.ratio);
    if (like.norm.ratio == 0) return ghp_onnx_identity(im, node);
    if (axis > 0) return read_dropped_channels(im, node, &like, axis);
    if (x != NULL && x->scores != NULL && !samples)
        return ghp_onnx_scores_drop(im, node, like.norm.ratio);
    return ghp_onnx_unary(im, node, &like);
}

/* ---- writing ---- */

/* A node of the layer's input alone. */
static struct ghp_onnx_node *plain_node(struct ghp_onnx_export *ex, int i, const char *op)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *const inputs[] = {ex->names[l->inputs[0]], NULL};

    return ghp_export_node(ex, op, l->name, inputs);
}

static enum ghp_status write_relu(struct ghp_onnx_export *ex, int i)
{
    plain_node(ex, i, "Relu");
    return GHP_OK;
}

static void write_leaky_relu(struct ghp_onnx_export *ex, int i)
{
    ghp_export_real(ex, plain_node(ex, i, "LeakyRelu"), "alpha",
                    ex->model->layers[i].activation.alpha);
}

static void write_sigmoid(struct ghp_onnx_export *ex, int i)
{
    plain_node(ex, i, "Sigmoid");
}

static void write_tanh(struct ghp_onnx_export *ex, int i)
{
    plain_node(ex, i, "Tanh");
}

static void write_elu(struct ghp_onnx_export *ex, int i)
{
    ghp_export_real(ex, plain_node(ex, i, "Elu"), "alpha", ex->model->layers[i].activation.alpha);
}

static void write_clip(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const struct ghp_activation *a = &l->activation;
    const char *const inputs[] = {
        ex->names[l->inputs[0]],
        ghp_export_number(ex, ghp_export_text(ex, l->name, ".min"), a->alpha),
        ghp_export_number(ex, ghp_export_text(ex, l->name, ".max"), a->beta), NULL};

    ghp_export_node(ex, "Clip", l->name, inputs);
}

static void write_affine(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const struct ghp_activation *a = &l->activation;
    const char *inputs[3] = {ex->names[l->inputs[0]]};

    inputs[1] = ghp_export_number(ex, ghp_export_text(ex, l->name, ".factor"), a->alpha);
    if (a->beta == 0) {
        ghp_export_node(ex, "Mul", l->name, inputs);
        return;
    }
    if (a->alpha != 1) {
        const char *scaled = ghp_export_text(ex, l->name, ".scaled");

        ghp_export_node(ex, "Mul", scaled, inputs);
        inputs[0] = scaled;
    }
    inputs[1] = ghp_export_number(ex, ghp_export_text(ex, l->name, ".term"), a->beta);
    ghp_export_node(ex, "Add", l->name, inputs);
}

static enum ghp_status write_activation(struct ghp_onnx_export *ex, int i)
{
    static void (*const writers[GHP_FUNCTION_COUNT])(struct ghp_onnx_export * ex, int i) = {
        [GHP_FUNCTION_LEAKY_RELU] = write_leaky_relu,
        [GHP_FUNCTION_SIGMOID] = write_sigmoid,
        [GHP_FUNCTION_TANH] = write_tanh,
        [GHP_FUNCTION_ELU] = write_elu,
        [GHP_FUNCTION_CLIP] = write_clip,
        [GHP_FUNCTION_AFFINE] = write_affine,
    };

    writers[ex->model->layers[i].activation.function](ex, i);
    return GHP_OK;
}

static enum ghp_status write_gelu(struct ghp_onnx_export *ex, int i)
{
    bool tanh = ex->model->layers[i].norm.gelu == GHP_GELU_TANH;

    ghp_export_text_of(ex, plain_node(ex, i, "Gelu"), "approximate", tanh ? "tanh" : "none");
    return GHP_OK;
}

static enum ghp_status write_hard_swish(struct ghp_onnx_export *ex, int i)
{
    plain_node(ex, i, "HardSwish");
    return GHP_OK;
}

/* In operators that all opsets have. */
static enum ghp_status write_silu(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const char *inputs[3] = {ex->names[l->inputs[0]]};
    const char *gate = ghp_export_text(ex, l->name, ".share");

    ghp_export_node(ex, "Sigmoid", gate, inputs);
    inputs[1] = gate;
    ghp_export_node(ex, "Mul", l->name, inputs);
    return GHP_OK;
}

/* Writes a dropout of whole samples or channels: a product with a dropout of ones, one for each sample or channel. */
static enum ghp_status write_dropped_parts(struct ghp_onnx_export *ex, int i)
{
    static const int64_t once = 1;
    const struct ghp_layer *l = &ex->model->layers[i];
    bool channels = l->norm.drop == GHP_DROP_CHANNELS;
    int at = l->out.axes == GHP_AXES_SEQUENCE ? 2 : 1;
    const char *x = ex->names[l->inputs[0]],
               *batch = ghp_export_samples(ex, ghp_export_text(ex, l->name, ".batch"), x),
               *sizes = ghp_export_text(ex, l->name, ".sizes"),
               *one = ghp_export_text(ex, l->name, ".one"),
               *mask = ghp_export_text(ex, l->name, ".mask");
    const char *size = ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".size"), &once, 1);
    const char *parts[] = {batch, size, ex->ranks[i] > 2 ? size : NULL,
                           ex->ranks[i] > 3 ? size : NULL, NULL};
    const char *const drops[] = {
        one, ghp_export_number(ex, ghp_export_text(ex, l->name, ".ratio"), l->norm.ratio), NULL};
    const char *const wide[] = {ghp_export_number(ex, ghp_export_text(ex, l->name, ".1"), 1), sizes,
                                NULL};

    if (channels)
        parts[at] = ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".channels"), &l->out.c, 1);
    ghp_export_int(ex, ghp_export_node(ex, "Concat", sizes, parts), "axis", 0);
    ghp_export_node(ex, "Expand", one, wide);
    ghp_export_node(ex, "Dropout", mask, drops);
    ghp_export_node(ex, "Mul", l->name, (const char *const[]){x, mask, NULL});
    return GHP_OK;
}

static enum ghp_status write_dropout(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];

    if (l->norm.drop != GHP_DROP_ELEMENTS) return write_dropped_parts(ex, i);
    const char *const inputs[] = {
        ex->names[l->inputs[0]],
        ghp_export_number(ex, ghp_export_text(ex, l->name, ".ratio"), l->norm.ratio), NULL};

    ghp_export_node(ex, "Dropout", l->name, inputs);
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_activation[] = {
    {.name = "Relu",
     .since = 1,
     .attributes = "",
     .read = read_relu,
     .op = GHP_OP_RELU,
     .write = write_relu},
    {.name = "LeakyRelu", .since = 1, .attributes = "alpha ", .read = read_leaky_relu},
    {.name = "Sigmoid",
     .since = 1,
     .attributes = "",
     .read = read_sigmoid,
     .op = GHP_OP_ACTIVATION,
     .write = write_activation},
    {.name = "Tanh", .since = 1, .attributes = "", .read = read_tanh},
    {.name = "Elu", .since = 1, .attributes = "alpha ", .read = read_elu},
    {.name = "HardSigmoid", .since = 1, .attributes = "alpha beta ", .read = read_hard_sigmoid},
    {.name = "HardSwish",
     .since = 14,
     .attributes = "",
     .read = read_hard_swish,
     .op = GHP_OP_HARD_SWISH,
     .write = write_hard_swish},
    {.name = "Clip", .since = 1, .attributes = "max min ", .read = read_clip},
    {.name = "Gelu",
     .since = 20,
     .attributes = "approximate ",
     .read = read_gelu,
     .op = GHP_OP_GELU,
     .write = write_gelu},
    {.name = "Swish", .since = 24, .attributes = "alpha ", .read = read_swish},
    {.name = "Mul", .since = 1, .op = GHP_OP_SILU, .write = write_silu},
    {.name = "Dropout",
     .since = 1,
     .attributes = "axis ratio samples seed size ",
     .read = read_dropout,
     .op = GHP_OP_DROPOUT,
     .write = write_dropout},
    {0}};
