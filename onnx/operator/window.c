/* onnx/operator/window.c - windows over pixels, as convolutions and pools have them. */
#include "onnx/operator/window.h"

#include "onnx/read/attribute.h"
#include "onnx/read/layer.h"

#include <inttypes.h>
#include <string.h>

/* A list of one number an axis, into the last places of `out`. */
static enum ghp_status read_axes(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 const char *name, struct ghp_onnx_pixels *p, int64_t *out)
{
    int64_t list[GHP_ONNX_MAX_DIMS * 2];
    int n;

    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){-1, name}, list, &n));
    if (n < 0) return GHP_OK;
    if (n != p->axes)
        return ghp_onnx_fail(im, node, "has %d numbers as %s for %d axes; give one an axis", n,
                             name, p->axes);
    for (int i = 0; i < n; i++) {
        if (list[i] < 1 || list[i] > GHP_ONNX_MAX_SIZE)
            return ghp_onnx_fail(im, node, "has %" PRId64 " in %s; use 1 to %d", list[i], name,
                                 GHP_ONNX_MAX_SIZE);
        out[2 - n + i] = list[i];
    }
    return GHP_OK;
}

/* Padding that gives ceil(size / stride) outputs, the odd pixel at the end or in front. */
static void same_pads(struct ghp_onnx_pixels *p, bool lower)
{
    for (int i = 0; i < 2; i++) {
        int64_t count = (p->size[i] + p->stride[i] - 1) / p->stride[i];
        int64_t reach = (p->kernel[i] - 1) * p->dilation[i] + 1;
        int64_t all = (count - 1) * p->stride[i] + reach - p->size[i];

        if (all < 0) all = 0;
        p->before[i] = lower ? all - all / 2 : all / 2;
        p->after[i] = all - p->before[i];
    }
}

static enum ghp_status read_pads(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 struct ghp_onnx_pixels *p)
{
    const char *mode = ghp_onnx_text(node, "auto_pad", "NOTSET");
    int64_t list[GHP_ONNX_MAX_DIMS * 2];
    int n;

    if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0) {
        same_pads(p, mode[5] == 'L');
        return GHP_OK;
    }
    if (strcmp(mode, "VALID") == 0) return GHP_OK;
    if (strcmp(mode, "NOTSET") != 0)
        return ghp_onnx_fail(im, node,
                             "has auto_pad '%.40s'; use NOTSET, VALID, SAME_UPPER or "
                             "SAME_LOWER",
                             mode);
    GHP_TRY(ghp_onnx_list(im, node, (struct ghp_onnx_place){-1, "pads"}, list, &n));
    if (n < 0) return GHP_OK;
    if (n != 2 * p->axes)
        return ghp_onnx_fail(im, node, "has %d pads for %d axes; give two an axis", n, p->axes);
    for (int i = 0; i < n; i++) {
        int64_t *side = i < p->axes ? p->before : p->after;

        if (list[i] < 0 || list[i] > GHP_ONNX_MAX_SIZE)
            return ghp_onnx_fail(im, node, "has a pad of %" PRId64 "; use 0 to %d", list[i],
                                 GHP_ONNX_MAX_SIZE);
        side[2 - p->axes + i % p->axes] = list[i];
    }
    return GHP_OK;
}

enum ghp_status ghp_onnx_window_read(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                     const struct ghp_onnx_array *x, struct ghp_onnx_pixels *p)
{
    if (x->n != 3 && x->n != 4)
        return ghp_onnx_fail(im, node, "has %d axes of pixels; ghp has 1 and 2", x->n - 2);
    p->axes = x->n - 2;
    for (int i = 0; i < 2; i++) {
        bool there = i >= 2 - p->axes;

        p->size[i] = there ? x->dims[x->n - 2 + i] : 1;
        if (!there) p->kernel[i] = 1;
        p->stride[i] = p->dilation[i] = 1;
    }
    GHP_TRY(read_axes(im, node, "kernel_shape", p, p->kernel));
    GHP_TRY(read_axes(im, node, "strides", p, p->stride));
    GHP_TRY(read_axes(im, node, "dilations", p, p->dilation));
    if (p->kernel[0] < 1 || p->kernel[1] < 1)
        return ghp_onnx_fail(im, node, "has no kernel_shape; give one");
    return read_pads(im, node, p);
}

struct ghp_window ghp_onnx_window_of(const struct ghp_onnx_pixels *p)
{
    return (struct ghp_window){.r = p->kernel[0],
                               .s = p->kernel[1],
                               .stride_h = p->stride[0],
                               .stride_w = p->stride[1],
                               .pad_top = p->before[0],
                               .pad_left = p->before[1],
                               .pad_bottom = p->after[0],
                               .pad_right = p->after[1],
                               .dilation_h = p->dilation[0],
                               .dilation_w = p->dilation[1],
                               .groups = 1,
                               .count_pad = true};
}

void ghp_onnx_window_pad(const struct ghp_onnx_import *im, struct ghp_onnx_pixels *p, int *layer)
{
    const struct ghp_layer *pad = &im->model.layers[*layer];
    const struct ghp_border *b = &pad->border;

    if (pad->op != GHP_OP_PAD || b->fill != GHP_FILL_CONSTANT || b->value != 0 ||
        b->before[0] + b->after[0] > 0)
        return;
    for (int i = 0; i < 2; i++) {
        p->before[i] += b->before[1 + i];
        p->after[i] += b->after[1 + i];
        p->size[i] -= b->before[1 + i] + b->after[1 + i];
    }
    *layer = pad->inputs[0];
}

enum ghp_status ghp_onnx_window_define(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                       int layer, int n)
{
    struct ghp_shape s = im->model.layers[layer].out;
    const int64_t dims[2][4] = {{0, s.c, s.w, 0}, {0, s.c, s.h, s.w}};
    struct ghp_onnx_array made = ghp_onnx_of_layer(im, layer, n, dims[n - 3]);

    return ghp_onnx_define(im, node, 0, &made);
}

void ghp_export_window(struct ghp_onnx_export *ex, struct ghp_onnx_node *node,
                       const struct ghp_layer *layer)
{
    const struct ghp_window *w = &layer->window;

    ghp_export_ints(ex, node, "kernel_shape", (int64_t[]){w->r, w->s}, 2);
    ghp_export_ints(ex, node, "strides", (int64_t[]){w->stride_h, w->stride_w}, 2);
    ghp_export_ints(ex, node, "pads",
                    (int64_t[]){w->pad_top, w->pad_left, w->pad_bottom, w->pad_right}, 4);
    if (w->dilation_h * w->dilation_w > 1)
        ghp_export_ints(ex, node, "dilations", (int64_t[]){w->dilation_h, w->dilation_w}, 2);
}
