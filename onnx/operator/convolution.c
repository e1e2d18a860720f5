/* onnx/operator/convolution.c - convolutions and transposed ones, and borders around channels and pixels. */
#include "onnx/operator/operator.h"

#include "onnx/operator/bias.h"
#include "onnx/operator/window.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <string.h>

/* Takes output_padding off the padding at the end of each axis. */
static enum ghp_status read_output_pads(struct ghp_onnx_import *im,
                                        const struct ghp_onnx_node *node, struct ghp_onnx_pixels *p)
{
    int64_t more[GHP_ONNX_MAX_DIMS * 2];
    int n;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){-1, "output_padding"}, more, &n));
    if (n >= 0 && n != p->axes)
        return ghp_onnx_fail(im, node, "has %d numbers as output_padding; give one an axis", n);
    for (int i = 0; i < n; i++) {
        int64_t *after = &p->after[2 - n + i];

        if (more[i] < 0 || more[i] > *after)
            return ghp_onnx_fail(im, node,
                                 "has output_padding beyond its padding; ghp has up to as much: "
                                 "use a larger kernel and padding");
        *after -= more[i];
    }
    return GHP_OK;
}

/* Whether the weights fit the node's kernel, groups and channels, [out][in / groups]... or [in][out / groups]... */
static bool fits(const struct ghp_onnx_array *x, const struct ghp_onnx_array *w,
                 const struct ghp_onnx_pixels *p, int64_t groups, bool transposed)
{
    int64_t outputs = w->dims[transposed ? 1 : 0];

    return p->kernel[1] == w->dims[x->n - 1] && (x->n == 3 || p->kernel[0] == w->dims[2]) &&
           outputs >= 1 && outputs <= GHP_ONNX_MAX_SIZE && groups >= 1 && groups <= x->dims[1] &&
           x->dims[1] % groups == 0 &&
           (transposed ? w->dims[0] == x->dims[1] : w->dims[1] == x->dims[1] / groups);
}

static enum ghp_status check_padding(const struct ghp_onnx_import *im,
                                     const struct ghp_onnx_node *node)
{
    if (strcmp(ghp_onnx_text(node, "auto_pad", "NOTSET"), "NOTSET") != 0 ||
        ghp_onnx_attribute_of(node, "output_shape") != NULL)
        return ghp_onnx_fail(im, node, "leaves its padding open; say pads in the file");
    return GHP_OK;
}

static enum ghp_status read_either(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                   enum ghp_op op)
{
    bool transposed = op == GHP_OP_CONV_TRANSPOSE;
    struct ghp_layer like = {.op = op, .n_inputs = 1};
    struct ghp_onnx_source weight = {.scale = 1};
    struct ghp_onnx_array *x, *w;
    struct ghp_onnx_pixels p = {.axes = 0};
    int64_t groups = ghp_onnx_int(node, "group", 1);
    int layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(ghp_onnx_constant_in(im, node, 1, &w));
    if ((x->n != 3 && x->n != 4) || w->n != x->n)
        return ghp_onnx_fail(im, node, "has %d axes of pixels and a kernel of %d; ghp has 1 and 2",
                             x->n - 2, w->n - 2);
    if (transposed) GHP_TRY(check_padding(im, node));
    p.kernel[0] = x->n == 4 ? w->dims[2] : 1;
    p.kernel[1] = w->dims[x->n - 1];
    GHP_TRY(ghp_onnx_window_read(im, node, x, &p));
    if (!fits(x, w, &p, groups, transposed))
        return ghp_onnx_fail(im, node,
                             "has weights that do not fit its kernel, groups or channels; "
                             "repair the file");
    if (transposed) GHP_TRY(read_output_pads(im, node, &p));
    GHP_TRY(ghp_onnx_settle(im, x, ghp_onnx_shape(x), &like.inputs[0]));
    if (!transposed) ghp_onnx_window_pad(im, &p, &like.inputs[0]);
    like.window = ghp_onnx_window_of(&p);
    like.window.groups = groups;
    like.out.c = transposed ? w->dims[1] * groups : w->dims[0];
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, w), &layer));
    weight.array = *w;
    weight.layer = layer;
    GHP_TRY(ghp_onnx_weight_from(im, node, weight));
    GHP_TRY(ghp_onnx_bias_in(im, node, 2, &layer));
    return ghp_onnx_window_define(im, node, layer, x->n);
}

static enum ghp_status read_conv(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    return read_either(im, node, GHP_OP_CONV2D);
}

static enum ghp_status read_conv_transpose(struct ghp_onnx_import *im,
                                           const struct ghp_onnx_node *node)
{
    return read_either(im, node, GHP_OP_CONV_TRANSPOSE);
}

static enum ghp_status write_conv(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *layer = &ex->model->layers[i];
    const struct ghp_layer *bias = ghp_export_own_bias(ex->model, i);
    const char *inputs[4] = {ghp_export_ranked(ex, layer->inputs[0], 4, layer->name),
                             ghp_export_owner(ex, layer)->params[0].name,
                             bias != NULL ? ghp_export_owner(ex, bias)->params[0].name : NULL};
    struct ghp_onnx_node *node;

    GHP_TRY(ghp_export_param_of(ex, layer, 0, 0));
    if (bias != NULL) GHP_TRY(ghp_export_param_of(ex, bias, 0, 0));
    node = ghp_export_node(ex, layer->op == GHP_OP_CONV2D ? "Conv" : "ConvTranspose", layer->name,
                           inputs);
    ghp_export_window(ex, node, layer);
    ghp_export_int(ex, node, "group", layer->window.groups);
    ex->ranks[i] = 4;
    return GHP_OK;
}

/* ---- borders ---- */

/* before and after of each axis of x, from an attribute, or from input 1 and the axes of input 3. */
static enum ghp_status read_borders(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                    const struct ghp_onnx_array *x, int64_t *before, int64_t *after)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2], axes[GHP_ONNX_MAX_DIMS * 2];
    int n, named, axis;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){im->file->opset < 11 ? -1 : 1, "pads"},
                          list, &n));
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){3, "axes"}, axes, &named));
    if (named < 0) {
        named = x->n;
        for (int i = 0; i < named; i++)
            axes[i] = i;
    }
    if (n != 2 * named)
        return ghp_onnx_fail(im, node, "has %d pads for %d axes; give two an axis", n, named);
    for (int i = 0; i < named; i++) {
        GHP_TRY(ghp_onnx_axis(im, node, axes[i], x->n, &axis));
        if (list[i] > GHP_ONNX_MAX_SIZE || list[named + i] > GHP_ONNX_MAX_SIZE)
            return ghp_onnx_fail(im, node, "pads by more than %d; use less", GHP_ONNX_MAX_SIZE);
        before[axis] = list[i];
        after[axis] = list[named + i];
    }
    if (before[0] != 0 || after[0] != 0)
        return ghp_onnx_fail(im, node, "pads the batch; ghp keeps it as it is");
    return GHP_OK;
}

static enum ghp_status read_fill(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct ghp_border *border)
{
    const char *mode = ghp_onnx_text(node, "mode", "constant");
    struct ghp_onnx_array *value = ghp_onnx_in(im, node, 2);
    const double *values;

    for (int fill = 0; fill <= GHP_FILL_COUNT; fill++) {
        if (fill == GHP_FILL_COUNT)
            return ghp_onnx_fail(im, node, "has mode '%.40s'; ghp has constant, reflect and edge",
                                 mode);
        border->fill = (enum ghp_fill)fill;
        if (strcmp(mode, ghp_fill_name(border->fill)) == 0) break;
    }
    if (border->fill != GHP_FILL_CONSTANT) return GHP_OK;
    border->value = ghp_onnx_real(node, "value", 0);
    if (im->file->opset >= 11 && value != NULL) {
        GHP_TRY(ghp_onnx_constant_in(im, node, 2, &value));
        GHP_TRY(ghp_onnx_values(im, value, &values));
        if (ghp_onnx_elements(value) > 0) border->value = ghp_onnx_tidy(values[0]);
    }
    return GHP_OK;
}

static enum ghp_status read_pad(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    int64_t before[GHP_ONNX_MAX_DIMS] = {0}, after[GHP_ONNX_MAX_DIMS] = {0};
    struct ghp_layer like = {.op = GHP_OP_PAD, .n_inputs = 1};
    struct ghp_onnx_array *x, cropped, made;
    bool any = false;
    int layer;

    GHP_TRY(ghp_onnx_layer_in(im, node, 0, &x));
    GHP_TRY(read_borders(im, node, x, before, after));
    GHP_TRY(read_fill(im, node, &like.border));
    cropped = made = *x;
    for (int i = 1; i < x->n; i++) {
        int place = i == 1 ? 0 : i == x->n - 1 ? 2 : 1;

        if (before[i] < -GHP_ONNX_MAX_SIZE || after[i] < -GHP_ONNX_MAX_SIZE)
            return ghp_onnx_fail(im, node, "crops more than %d; crop less", GHP_ONNX_MAX_SIZE);
        if (before[i] < 0) cropped.offset -= before[i] * cropped.strides[i];
        cropped.dims[i] += (before[i] < 0 ? before[i] : 0) + (after[i] < 0 ? after[i] : 0);
        if (cropped.dims[i] < 1)
            return ghp_onnx_fail(im, node, "crops a whole axis; leave some of it");
        made.dims[i] += before[i] + after[i];
        if (before[i] <= 0 && after[i] <= 0) continue;
        if (place == 1 && x->n > 4)
            return ghp_onnx_fail(im, node, "pads one of more than two axes of pixels");
        like.border.before[place] = before[i] > 0 ? before[i] : 0;
        like.border.after[place] = after[i] > 0 ? after[i] : 0;
        any = true;
    }
    if (!any) return ghp_onnx_define(im, node, 0, &cropped);
    GHP_TRY(ghp_onnx_settle(im, &cropped, ghp_onnx_shape(&cropped), &like.inputs[0]));
    GHP_TRY(ghp_onnx_emit(im, &like, ghp_onnx_hint(im, node, NULL), &layer));
    made = ghp_onnx_of_layer(im, layer, made.n, made.dims);
    return ghp_onnx_define(im, node, 0, &made);
}

static enum ghp_status write_pad(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const struct ghp_border *b = &l->border;
    const int64_t pads[8] = {0, b->before[0], b->before[1], b->before[2],
                             0, b->after[0],  b->after[1],  b->after[2]};
    const char *inputs[4] = {
        ghp_export_ranked(ex, l->inputs[0], 4, l->name),
        ghp_export_numbers(ex, ghp_export_text(ex, l->name, ".pads"), pads, 8)};

    if (b->fill == GHP_FILL_CONSTANT)
        inputs[2] = ghp_export_number(ex, ghp_export_text(ex, l->name, ".value"), b->value);
    ghp_export_text_of(ex, ghp_export_node(ex, "Pad", l->name, inputs), "mode",
                       ghp_fill_name(b->fill));
    ex->ranks[i] = 4;
    return GHP_OK;
}

const struct ghp_onnx_operator ghp_onnx_convolution[] = {
    {.name = "Conv",
     .since = 1,
     .attributes = "auto_pad dilations group kernel_shape pads strides ",
     .read = read_conv,
     .op = GHP_OP_CONV2D,
     .write = write_conv},
    {.name = "ConvTranspose",
     .since = 1,
     .attributes =
         "auto_pad dilations group kernel_shape output_padding output_shape pads strides ",
     .read = read_conv_transpose,
     .op = GHP_OP_CONV_TRANSPOSE,
     .write = write_conv},
    {.name = "Pad",
     .since = 1,
     .attributes = "mode pads value ",
     .read = read_pad,
     .op = GHP_OP_PAD,
     .write = write_pad},
    {0}};
