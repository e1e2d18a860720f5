/* core/model/index_map.c - see model/index_map.h. */
#include "core/model/index_map.h"

#include <inttypes.h>

#define MAX_SAMPLE INT64_C(0x7fffffff)

/* Smallest and largest input element that dimensions from `first` on reach from the offset. */
static bool reach(const struct ghp_view *view, int first, int64_t *least, int64_t *most)
{
    *least = *most = view->offset;
    for (int i = first; i < view->n; ++i) {
        int64_t step = view->strides[i];

        if (step > MAX_SAMPLE || step < -MAX_SAMPLE) return false;
        step *= view->sizes[i] - 1; /* sizes are below 2^31 */
        if (step > MAX_SAMPLE || step < -MAX_SAMPLE) return false;
        *(step > 0 ? most : least) += step;
    }
    return true;
}

/* Whether the first sizes multiply to `wanted`, beginning with *i, which moves behind them. */
static bool takes(const struct ghp_view *view, int *i, int64_t wanted)
{
    int64_t product = 1;

    while (product < wanted && *i < view->n && view->sizes[*i] <= wanted / product)
        product *= view->sizes[(*i)++];
    return product == wanted;
}

static bool small_enough(struct ghp_shape s)
{
    return s.c >= 1 && s.h >= 1 && s.w >= 1 && s.c <= MAX_SAMPLE && s.h <= MAX_SAMPLE / s.c &&
           s.w <= MAX_SAMPLE / (s.c * s.h);
}

enum ghp_status ghp_index_map_check_view(const struct ghp_layer *layer)
{
    const struct ghp_view *view = &layer->view;
    int64_t least, most;
    int i = 0;

    if (!small_enough(layer->out) || !small_enough(layer->in))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (view) has more than 2^31 - 1 elements a sample; use smaller "
                        "sizes",
                        layer->name);
    for (int j = 0; j < view->n; ++j)
        if (view->sizes[j] < 1)
            return GHP_FAIL(GHP_ERR_INPUT, "layer '%s' (view) has size %" PRId64 "; use 1 or more",
                            layer->name, view->sizes[j]);
    if (!takes(view, &i, layer->out.c) || !takes(view, &i, layer->out.h) ||
        !takes(view, &i, layer->out.w) || i != view->n)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the sizes of layer '%s' (view) do not multiply to %" PRId64
                        " channels, %" PRId64 " rows and %" PRId64
                        " columns in this order; give sizes that do",
                        layer->name, layer->out.c, layer->out.h, layer->out.w);
    if (!reach(view, 0, &least, &most) || least < 0 || most >= ghp_shape_elements(layer->in))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (view) reaches beyond the %" PRId64
                        " elements of its input; change its offset, sizes or strides",
                        layer->name, ghp_shape_elements(layer->in));
    return GHP_OK;
}

enum ghp_status ghp_index_map_check_pad(struct ghp_layer *layer)
{
    const struct ghp_border *b = &layer->border;
    const int64_t in[3] = {layer->in.c, layer->in.h, layer->in.w};
    int64_t out[3];

    for (int i = 0; i < 3; ++i) {
        bool mirrors = b->fill == GHP_FILL_REFLECT;

        if (b->before[i] < 0 || b->after[i] < 0 || b->before[i] > MAX_SAMPLE ||
            b->after[i] > MAX_SAMPLE ||
            (mirrors && (b->before[i] >= in[i] || b->after[i] >= in[i])))
            return GHP_FAIL(GHP_ERR_INPUT,
                            "layer '%s' (pad) adds %" PRId64 " and %" PRId64
                            " elements to an axis of %" PRId64 "; use 0 to %" PRId64,
                            layer->name, b->before[i], b->after[i], in[i],
                            mirrors ? in[i] - 1 : MAX_SAMPLE);
        out[i] = in[i] + b->before[i] + b->after[i];
    }
    layer->out = (struct ghp_shape){out[0], out[1], out[2]};
    if (!small_enough(layer->out) || !small_enough(layer->in))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (pad) has more than 2^31 - 1 elements a sample; use smaller "
                        "sizes",
                        layer->name);
    return GHP_OK;
}

bool ghp_index_map_keeps_channels(const struct ghp_layer *layer)
{
    const struct ghp_view *view = &layer->view;
    int64_t plane = layer->in.h * layer->in.w, least, most;

    if (layer->op == GHP_OP_PAD) return layer->border.before[0] == 0 && layer->border.after[0] == 0;
    if (layer->in.c != layer->out.c || layer->in.c < 2) return layer->in.c == layer->out.c;
    return view->sizes[0] == layer->in.c && view->strides[0] == plane &&
           reach(view, 1, &least, &most) && least >= 0 && most < plane;
}
