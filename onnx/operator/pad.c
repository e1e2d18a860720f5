/* onnx/operator/pad.c - borders around channels and pixels. */
#include "onnx/operator/operator.h"

#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/settle.h"

#include <string.h>

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

const struct ghp_onnx_operator ghp_onnx_pad[] = {{.name = "Pad",
                                                  .since = 1,
                                                  .attributes = "mode pads value ",
                                                  .read = read_pad,
                                                  .op = GHP_OP_PAD,
                                                  .write = write_pad},
                                                 {0}};
