/* core/model/index_map.c - see model/index_map.h. */
#include "core/model/index_map.h"
#include "core/base/file.h"

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

enum ghp_status ghp_gather_check_view(const struct ghp_layer *layer)
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

enum ghp_status ghp_gather_check_pad(struct ghp_layer *layer)
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

bool ghp_gather_keeps_channels(const struct ghp_layer *layer)
{
    const struct ghp_view *view = &layer->view;
    int64_t plane = layer->in.h * layer->in.w, least, most;

    if (layer->op == GHP_OP_PAD) return layer->border.before[0] == 0 && layer->border.after[0] == 0;
    if (layer->in.c != layer->out.c || layer->in.c < 2) return layer->in.c == layer->out.c;
    return view->sizes[0] == layer->in.c && view->strides[0] == plane &&
           reach(view, 1, &least, &most) && least >= 0 && most < plane;
}

/* Place in memory of element (c, h, w). */
static int32_t place(const struct ghp_local *local, const int64_t at[3])
{
    return (int32_t)((at[1] * local->w + at[2]) * local->c + at[0]);
}

static int32_t view_source(const struct ghp_local *local, int64_t element)
{
    const struct ghp_view *view = &local->view;
    int64_t from = view->offset, plane = local->h * local->w;

    for (int i = view->n - 1; i >= 0; --i) {
        from += element % view->sizes[i] * view->strides[i];
        element /= view->sizes[i];
    }
    return place(local, (int64_t[3]){from / plane, from % plane / local->w, from % local->w});
}

static int32_t pad_source(const struct ghp_local *local, const int64_t out[3])
{
    const struct ghp_border *b = &local->border;
    const int64_t size[3] = {local->c, local->h, local->w};
    int64_t at[3];

    for (int i = 0; i < 3; ++i) {
        at[i] = out[i] - b->before[i];
        if (at[i] >= 0 && at[i] < size[i]) continue;
        if (b->fill == GHP_FILL_CONSTANT) return GHP_GATHER_NOTHING;
        if (b->fill == GHP_FILL_REFLECT)
            at[i] = at[i] < 0 ? -at[i] : 2 * (size[i] - 1) - at[i];
        else
            at[i] = at[i] < 0 ? 0 : size[i] - 1;
    }
    return place(local, at);
}

void ghp_gather_table(const struct ghp_local *local, int32_t *table)
{
    bool view = local->op == GHP_OP_VIEW;

    for (int64_t k = 0; k < local->k; ++k)
        for (int64_t p = 0; p < local->p; ++p)
            for (int64_t q = 0; q < local->q; ++q)
                table[(p * local->q + q) * local->k + k] =
                    view ? view_source(local, (k * local->p + p) * local->q + q)
                         : pad_source(local, (int64_t[3]){k, p, q});
}

uint64_t ghp_gather_hash(const struct ghp_local *local)
{
    const struct ghp_border *b = &local->border;
    uint64_t hash = GHP_HASH_SEED;

    if (local->op == GHP_OP_PAD) {
        hash = ghp_hash(b->before, sizeof b->before, hash);
        hash = ghp_hash(b->after, sizeof b->after, hash);
        return ghp_hash(&b->fill, sizeof b->fill, hash);
    }
    hash = ghp_hash(&local->view.offset, sizeof local->view.offset, hash);
    hash = ghp_hash(local->view.sizes, (size_t)local->view.n * sizeof(int64_t), hash);
    return ghp_hash(local->view.strides, (size_t)local->view.n * sizeof(int64_t), hash);
}
