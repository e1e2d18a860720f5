/* core/model/op/move/view.c - each output element is an input element, found by strides: slices, transpositions,
 * reshapes, repetition. The rows of a sequence are its positions. */
#include "core/base/hash.h"
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

#define AT(field) offsetof(struct ghp_layer, field)

static enum ghp_status read_strides(const struct ghp_node *at,
                                    const struct ghp_attribute *attribute, struct ghp_layer *layer)
{
    int sizes = layer->view.n;
    struct ghp_node strides;

    GHP_TRY(ghp_attribute_read(at, attribute, layer));
    if (layer->view.n == sizes) return GHP_OK;
    GHP_TRY(ghp_json_get(at, attribute->key, &strides));
    return ghp_json_fail(&strides, GHP_ERR_INPUT, "there are %d strides for %d sizes; give %d",
                         layer->view.n, sizes, sizes);
}

static const struct ghp_attribute attributes[] = {
    GHP_ATTRIBUTE_CHANNELS("channels"),
    {.key = "height",
     .kind = GHP_ATTRIBUTE_INT,
     .least = 1,
     .most = GHP_MODEL_SIZE,
     .usual = 1,
     .at = {AT(out.h)}},
    {.key = "width",
     .kind = GHP_ATTRIBUTE_INT,
     .least = 1,
     .most = GHP_MODEL_SIZE,
     .usual = 1,
     .at = {AT(out.w)}},
    {.key = "sizes",
     .kind = GHP_ATTRIBUTE_LIST,
     .required = true,
     .at = {AT(view.sizes), AT(view.n)}},
    {.key = "strides",
     .kind = GHP_ATTRIBUTE_LIST,
     .required = true,
     .at = {AT(view.strides), AT(view.n)},
     .read = read_strides},
    {.key = "sequence", .kind = GHP_ATTRIBUTE_BOOL, .at = {AT(view.sequence)}},
    {.key = "offset", .kind = GHP_ATTRIBUTE_INT, .most = INT32_MAX, .at = {AT(view.offset)}},
    {0}};

/* Smallest and largest input element that dimensions from `first` on reach from the offset. */
static bool reach(const struct ghp_view *view, int first, int64_t *least, int64_t *most)
{
    *least = *most = view->offset;
    for (int i = first; i < view->n; i++) {
        int64_t step = view->strides[i];

        if (step > GHP_MAX_INDEXED || step < -GHP_MAX_INDEXED) return false;
        step *= view->sizes[i] - 1; /* sizes are below 2^31 */
        if (step > GHP_MAX_INDEXED || step < -GHP_MAX_INDEXED) return false;
        *(step > 0 ? most : least) += step;
    }
    return true;
}

/* Whether the first sizes multiply to `wanted`, beginning with *i, which moves past them. */
static bool takes(const struct ghp_view *view, int *i, int64_t wanted)
{
    int64_t product = 1;

    while (product < wanted && *i < view->n && view->sizes[*i] <= wanted / product)
        product *= view->sizes[(*i)++];
    return product == wanted;
}

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    const struct ghp_view *view = &layer->view;
    int64_t least, most;
    int i = 0;

    (void)model;
    GHP_TRY(ghp_shape_check_indexed(layer));
    for (int j = 0; j < view->n; j++)
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
    if (!view->sequence) return GHP_OK;
    if (layer->out.w != 1)
        return ghp_model_fail(layer, "makes a sequence, whose rows are positions; use width 1");
    layer->out = ghp_shape_sequence(layer->out.c, layer->out.h);
    return GHP_OK;
}

/* Whether output channel c takes from input channel c alone, all channels in the same way. */
static bool keeps_channels(const struct ghp_layer *layer)
{
    const struct ghp_view *view = &layer->view;
    int64_t plane = layer->in.h * layer->in.w, least, most;

    if (layer->in.c != layer->out.c || layer->in.c < 2) return layer->in.c == layer->out.c;
    return view->sizes[0] == layer->in.c && view->strides[0] == plane &&
           reach(view, 1, &least, &most) && least >= 0 && most < plane;
}

static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    return keeps_channels(layer) ? ghp_divides_channels(layer, kind)
                                 : ghp_divides_samples(layer, kind);
}

static void localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                     struct ghp_local *local)
{
    (void)model;
    if (parts > 1) local->view.sizes[0] = layer->view.sizes[0] / parts; /* the channels */
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    const struct ghp_view *view = &local->view;
    uint64_t hash = ghp_hash(&view->offset, sizeof view->offset, GHP_HASH_SEED);

    hash = ghp_hash(view->sizes, (size_t)view->n * sizeof(int64_t), hash);
    hash = ghp_hash(view->strides, (size_t)view->n * sizeof(int64_t), hash);
    snprintf(text, n, " k%" PRId64 " o%" PRId64 "x%" PRId64 " x%016" PRIx64, local->k, local->p,
             local->q, hash);
}

static int32_t source(const struct ghp_local *local, const int64_t out[3])
{
    const struct ghp_view *view = &local->view;
    int64_t from = view->offset, plane = local->h * local->w;
    int64_t element = (out[0] * local->p + out[1]) * local->q + out[2];

    for (int i = view->n - 1; i >= 0; --i) {
        from += element % view->sizes[i] * view->strides[i];
        element /= view->sizes[i];
    }
    return ghp_local_place(local,
                           (int64_t[3]){from / plane, from % plane / local->w, from % local->w});
}

/* Channels are the first dimensions; the last of these runs along the input's channels, or it does not. */
static int64_t run(const struct ghp_local *local)
{
    const struct ghp_view *view = &local->view;
    int64_t channels = 1;
    int last = -1;

    for (int i = 0; channels < local->k; channels *= view->sizes[i++])
        if (view->sizes[i] > 1) last = i;
    return last >= 0 && view->strides[last] == local->h * local->w ? view->sizes[last] : 1;
}

const struct ghp_op_facts ghp_op_facts_view = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_DY, GHP_AT_DX}},
    .source = source,
    .run = run,
    .divides = divides,
    .localize = localize,
    .key = key,
};
