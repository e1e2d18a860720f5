/* core/model/shape.c - what follows for one layer from what a reader fills in: its shapes, and its parameters. The
 * rules are the operations' own (model/op.h). */
#include "core/base/units.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Elements of one tensor, and channels of one layer, stay below these, so that products fit in 64 bits. */
#define MAX_ELEMENTS (INT64_C(1) << 39)
#define MAX_FLOPS (INT64_C(1) << 60)

enum { SIZES_TEXT = 96 };

/* ---- shapes ---- */

static enum ghp_status check_inputs(const struct ghp_layer *layer, int index)
{
    const struct ghp_op_facts *facts = ghp_op_of(layer->op);
    int least = facts->least_inputs, most = facts->most_inputs;

    if (index == 0 && facts->is_input) return GHP_OK;
    if (index == 0 || facts->is_input)
        return ghp_model_fail(layer,
                              "is out of place; make the input layer, and it alone, layer 0");
    if (least == most && layer->n_inputs != most)
        return GHP_FAIL(GHP_ERR_INPUT, "layer '%s' (%s) has %d inputs; name %d", layer->name,
                        ghp_op_name(layer->op), layer->n_inputs, most);
    if (layer->n_inputs < least || layer->n_inputs > most)
        return GHP_FAIL(GHP_ERR_INPUT, "layer '%s' (%s) has %d inputs; name %d to %d", layer->name,
                        ghp_op_name(layer->op), layer->n_inputs, least, most);
    for (int i = 0; i < layer->n_inputs; i++) {
        if (layer->inputs[i] < 0 || layer->inputs[i] >= index)
            return ghp_model_fail(layer,
                                  "reads a layer that is not before it; put the layers in order");
        for (int j = 0; j < i; j++)
            if (layer->inputs[i] == layer->inputs[j])
                return ghp_model_fail(layer, "reads the same layer twice; name different layers");
    }
    return GHP_OK;
}

static enum ghp_status check_elements(const struct ghp_model *model, const struct ghp_layer *layer)
{
    if (ghp_op_of(layer->op)->takes_samples) return GHP_OK;
    for (int i = 0; i < layer->n_inputs; i++) {
        bool ids = model->layers[layer->inputs[i]].out.vocabulary > 0;
        bool takes_ids = ghp_op_takes_ids(ghp_op_of(layer->op), i);

        if (ids && !takes_ids)
            return ghp_model_fail(layer, "takes numbers, but its input is token ids; put an "
                                         "embedding layer before it");
        if (!ids && takes_ids)
            return ghp_model_fail(layer, "takes token ids, but its input is numbers; give the "
                                         "network's input a vocabulary");
    }
    return GHP_OK;
}

static enum ghp_status check_axes(const struct ghp_layer *layer)
{
    const struct ghp_op_facts *facts = ghp_op_of(layer->op);
    static const struct {
        unsigned takes;
        const char *what, *remedy;
    } wants[] = {
        {GHP_TAKES_IMAGES, "images", "use an operation that takes sequences"},
        {GHP_TAKES_ROWS, "a vector, or one a position", "put a flatten layer before it"},
        {GHP_TAKES(SEQUENCE), "a sequence", "give the network's input positions"},
    };
    char text[GHP_SHAPE_TEXT];
    size_t i = 0;

    if (facts->takes == 0 || facts->takes & 1u << layer->in.axes) return GHP_OK;
    while (facts->takes != wants[i].takes)
        i++;
    return GHP_FAIL(GHP_ERR_INPUT, "layer '%s' (%s) takes %s, but its input is %s; %s", layer->name,
                    ghp_op_name(layer->op), wants[i].what, ghp_shape_format(layer->in, text),
                    wants[i].remedy);
}

/* What a shape rule makes is an image, unless it says otherwise. */
static enum ghp_status shape_of(const struct ghp_model *model, struct ghp_layer *layer)
{
    const struct ghp_op_facts *facts = ghp_op_of(layer->op);

    GHP_TRY(check_elements(model, layer));
    GHP_TRY(check_axes(layer));
    if (facts->shape == NULL) {
        layer->out = layer->in;
        return GHP_OK;
    }
    layer->out.axes = GHP_AXES_IMAGE;
    return facts->shape(model, layer);
}

static enum ghp_status check_size(const struct ghp_layer *layer)
{
    struct ghp_shape out = layer->out;

    if (out.c < 1 || out.h < 1 || out.w < 1)
        return ghp_model_fail(layer, "has no output; give sizes of at least 1");
    if (!ghp_product_fits(out.c, out.h, MAX_ELEMENTS) ||
        !ghp_product_fits(out.c * out.h, out.w, MAX_ELEMENTS))
        return ghp_model_fail(layer, "has more than 2^39 outputs a sample; use smaller sizes");
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
    for (int i = 0; i < param->n_dims; i++) {
        if (!ghp_product_fits(param->elements, param->dims[i], MAX_ELEMENTS))
            return ghp_model_fail(layer, "has more than 2^39 weights; use smaller sizes");
        param->elements *= param->dims[i];
    }
    if (param->init >= GHP_INIT_NORMAL && layer->deviation > 0) {
        param->init = GHP_INIT_NORMAL;
        param->deviation = layer->deviation;
    }
    if (layer->first == GHP_FIRST_ZEROS) param->init = GHP_INIT_ZERO;
    if (layer->first == GHP_FIRST_UNIFORM) param->init = GHP_INIT_UNIFORM;
    if (param->init == GHP_INIT_ONE && layer->norm.offset == 1) param->init = GHP_INIT_ZERO;
    if (param->init == GHP_INIT_KAIMING || param->init == GHP_INIT_UNIFORM)
        param->fan_in = param->elements / param->dims[0];
    param->name = ghp_alloc(n + n_part + 2, 1);
    if (param->name == NULL) return GHP_NO_MEMORY();
    /* the bias layer that belongs to conv1 is called conv1.bias already */
    snprintf(param->name, n + n_part + 2, "%s%s%s", layer->name, named ? "" : ".",
             named ? "" : part);
    return GHP_OK;
}

/* The tensors of a list of the operation's facts, and how many there are. */
static enum ghp_status make_params(const struct ghp_layer *layer, const struct ghp_op_param *list,
                                   struct ghp_param *params, int *n)
{
    const struct ghp_local whole = ghp_local_whole(layer);

    for (*n = 0; list[*n].part != NULL; ++*n) {
        struct ghp_param *param = &params[*n];

        param->init = list[*n].init;
        param->n_dims = ghp_local_param_dims(&whole, &list[*n], param->dims);
        param->transposed = layer->transposed && param->n_dims == 2;
        GHP_TRY(make_param(layer, list[*n].part, param));
    }
    return GHP_OK;
}

/* "[8][6]"; returns text */
static const char *sizes_text(const int64_t *dims, int n, char text[SIZES_TEXT])
{
    int used = 0;

    text[0] = '\0';
    for (int d = 0; d < n && used < SIZES_TEXT; d++)
        used += snprintf(text + used, (size_t)(SIZES_TEXT - used), "[%" PRId64 "]", dims[d]);
    return text;
}

/* Whether a layer's parameters would have the sizes of those that it is tied to. */
static enum ghp_status check_tied_sizes(const struct ghp_layer *layer,
                                        const struct ghp_layer *owner)
{
    const struct ghp_op_param *list = ghp_op_of(layer->op)->params;
    const struct ghp_local whole = ghp_local_whole(layer);

    for (int p = 0; p < owner->n_params; p++) {
        const struct ghp_param *own = &owner->params[p];
        int64_t dims[GHP_MAX_DIMS];
        char ours[SIZES_TEXT], theirs[SIZES_TEXT];
        int n = ghp_local_param_dims(&whole, &list[p], dims);

        if (n == own->n_dims && memcmp(dims, own->dims, (size_t)n * sizeof *dims) == 0) continue;
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' needs weights %s, but those of '%s' that it is tied to are %s; "
                        "give it an input and outputs that fit, or leave tied out",
                        layer->name, sizes_text(dims, n, ours), owner->name,
                        sizes_text(own->dims, own->n_dims, theirs));
    }
    return GHP_OK;
}

static bool has_partial_statistics(const struct ghp_layer *layer)
{
    return ghp_op_of(layer->op)->has_batch_statistics &&
           (layer->norm.local_stats || layer->norm.ghost_batch > 0);
}

/* An embedding and one linear layer that is tied to it can be divided alike; others hold all of what they share. */
static void note_sharers(struct ghp_layer *owner, struct ghp_layer *layer)
{
    bool pair = owner->op != layer->op;

    for (const struct ghp_layer *other = owner + 1; other < layer; other++)
        pair = pair && other->tied != layer->tied;
    owner->shared = true;
    if (pair) return;
    for (struct ghp_layer *other = owner; other <= layer; other++)
        if (other == owner || other->tied == layer->tied) other->by_data = true;
}

/* Checks that a layer without parameters of its own can use those of the layer it is tied to. */
static enum ghp_status check_tied(struct ghp_model *model, struct ghp_layer *layer)
{
    struct ghp_layer *owner = &model->layers[layer->tied - 1];
    const struct ghp_op_facts *facts = ghp_op_of(layer->op);
    bool product = facts->may_tie && owner < layer && ghp_op_of(owner->op)->takes_ids;

    if (!product && (owner >= layer || owner->op != layer->op || owner->n_params == 0))
        return ghp_model_fail(layer, "is tied to a layer whose parameters it cannot use; tie it to "
                                     "an earlier one of its operation with parameters of its own, "
                                     "or a linear layer to an embedding");
    if (layer->transposed)
        return ghp_model_fail(layer, "is tied and has no weight of its own; leave transposed out");
    if (layer->window.groups != owner->window.groups && !product)
        return ghp_model_fail(layer, "has other groups than the layer that it is tied to; give "
                                     "both the same");
    if (has_partial_statistics(layer) || has_partial_statistics(owner))
        return ghp_model_fail(layer, "is tied, and its statistics are of parts of a batch; give it "
                                     "and its owner \"statistics\": \"global\"");
    GHP_TRY(check_tied_sizes(layer, owner));
    note_sharers(owner, layer);
    return GHP_OK;
}

/* ---- a layer ---- */

/* A multiplication and an addition for each weight and pixel, whether the weights are the layer's or tied. Attention
 * has its own limit; the other operations' counts cannot overflow. */
static bool flops_fit(const struct ghp_layer *layer)
{
    const struct ghp_local whole = ghp_local_whole(layer);

    return ghp_product_fits(layer->out.h * layer->out.w, ghp_local_weight_elements(&whole),
                            MAX_FLOPS / 2);
}

enum ghp_status ghp_model_complete_layer(struct ghp_model *model, int index)
{
    struct ghp_layer *layer = &model->layers[index];
    const struct ghp_op_facts *facts = ghp_op_of(layer->op);

    ghp_model_drop_derived(layer);
    layer->fixed = layer->fixed || facts->stays_fixed;
    GHP_TRY(check_inputs(layer, index));
    if (index > 0) {
        layer->in = model->layers[layer->inputs[0]].out;
        GHP_TRY(shape_of(model, layer));
    }
    if (layer->out.axes != GHP_AXES_SEQUENCE)
        layer->out = ghp_shape_image(layer->out.c, layer->out.h, layer->out.w);
    if (index == 0) layer->in = layer->out;
    GHP_TRY(check_size(layer));
    if (layer->tied > 0) {
        GHP_TRY(check_tied(model, layer));
    } else {
        GHP_TRY(make_params(layer, facts->params, layer->params, &layer->n_params));
        GHP_TRY(make_params(layer, facts->states, layer->states, &layer->n_states));
    }
    layer->learns = ghp_layer_trains(model, index) || facts->has_batch_statistics;
    for (int i = 0; i < layer->n_inputs; i++)
        layer->learns = layer->learns || model->layers[layer->inputs[i]].learns;
    if (!flops_fit(layer))
        return ghp_model_fail(layer, "takes more than 2^60 operations a sample; use smaller sizes");
    return GHP_OK;
}
