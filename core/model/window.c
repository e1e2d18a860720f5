/* core/model/window.c - see model/window.h. */
#include "core/model/window.h"
#include "core/model/model_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct ghp_attribute ghp_window_convolution[] = {GHP_ATTRIBUTE_CHANNELS("channels"),
                                                       GHP_WINDOW_KERNEL,
                                                       {GHP_WINDOW_STRIDE, .usual = 1},
                                                       GHP_WINDOW_PAD,
                                                       GHP_WINDOW_DILATION,
                                                       {.key = "groups",
                                                        .kind = GHP_ATTRIBUTE_INT,
                                                        .least = 1,
                                                        .most = GHP_MODEL_CHANNELS,
                                                        .usual = 1,
                                                        .at = {GHP_WINDOW_AT(groups)}},
                                                       GHP_ATTRIBUTE_FIXED,
                                                       {0}};

/* Output positions along one axis, or 0 if the kernel does not fit. */
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

/* Whether each window along one axis touches the input. */
static bool windows_touch(struct axis a)
{
    if ((a.kernel - 1) * a.dilation < a.pad || (a.count - 1) * a.stride >= a.size + a.pad)
        return false;
    if (a.dilation <= a.size) return true; /* steps no longer than the image cannot jump over it */
    for (int64_t i = 0; i < a.count; i++) {
        int64_t first = i * a.stride - a.pad;
        int64_t jump = first < 0 ? (-first + a.dilation - 1) / a.dilation : 0;

        if (jump >= a.kernel || first + jump * a.dilation >= a.size) return false;
    }
    return true;
}

enum ghp_status ghp_window_check_groups(const struct ghp_layer *layer)
{
    int64_t groups = layer->window.groups;

    if (layer->in.c % groups == 0 && layer->out.c % groups == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' (%s) has %lld groups, but %lld input and %lld output channels; use "
                    "groups that divide both",
                    layer->name, ghp_op_name(layer->op), (long long)groups, (long long)layer->in.c,
                    (long long)layer->out.c);
}

enum ghp_status ghp_window_shape(struct ghp_layer *layer, bool touches)
{
    const struct ghp_window *win = &layer->window;
    int64_t reach_h = (win->r - 1) * win->dilation_h + 1,
            reach_w = (win->s - 1) * win->dilation_w + 1;
    struct ghp_shape *out = &layer->out;
    char text[GHP_SHAPE_TEXT];

    out->h = positions(layer->in.h, win->pad_top + win->pad_bottom, reach_h, win->stride_h);
    out->w = positions(layer->in.w, win->pad_left + win->pad_right, reach_w, win->stride_w);
    if (out->h == 0 || out->w == 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (%s) covers %lldx%lld pixels, but its padded input of %s is "
                        "smaller; use a smaller "
                        "kernel or more padding",
                        layer->name, ghp_op_name(layer->op), (long long)reach_h, (long long)reach_w,
                        ghp_shape_format(layer->in, text));
    if (touches && (!windows_touch((struct axis){layer->in.h, win->pad_top, win->r, win->stride_h,
                                                 win->dilation_h, out->h}) ||
                    !windows_touch((struct axis){layer->in.w, win->pad_left, win->s, win->stride_w,
                                                 win->dilation_w, out->w})))
        return ghp_model_fail(
            layer, "has windows that see padding only; use padding smaller than the kernel");
    return GHP_OK;
}

void ghp_window_key(const struct ghp_window *w, char *text, size_t n)
{
    snprintf(text, n,
             " r%" PRId64 " s%" PRId64 " t%" PRId64 "x%" PRId64 " p%" PRId64 ",%" PRId64 ",%" PRId64
             ",%" PRId64,
             w->r, w->s, w->stride_h, w->stride_w, w->pad_top, w->pad_left, w->pad_bottom,
             w->pad_right);
}

void ghp_window_pool_key(const struct ghp_local *local, char *text, size_t n)
{
    const struct ghp_window *w = &local->window;
    size_t used;

    ghp_window_key(w, text, n);
    used = strlen(text);
    if (w->dilation_h > 1 || w->dilation_w > 1)
        snprintf(text + used, n - used, " d%" PRId64 "x%" PRId64, w->dilation_h, w->dilation_w);
}
