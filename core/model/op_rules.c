/* core/model/op_rules.c - what the files of operations share: their names, refusals, and rules that several have. It
 * knows no operation, so that these lie above it and the registry (op.c) above them. */
#include "core/base/units.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

const char *ghp_op_name(enum ghp_op op)
{
    static const char *const names[GHP_OP_COUNT] = {
#define OP_NAME(id, name) #name,
        GHP_OP_LIST(OP_NAME)
#undef OP_NAME
    };

    GHP_ASSERT((int)op >= 0 && op < GHP_OP_COUNT);
    return names[op];
}

/* ---- shapes ---- */

enum ghp_status ghp_model_fail(const struct ghp_layer *layer, const char *problem)
{
    return GHP_FAIL(GHP_ERR_INPUT, "layer '%s' (%s) %s", layer->name, ghp_op_name(layer->op),
                    problem);
}

enum ghp_status ghp_shape_join(const struct ghp_model *model, struct ghp_layer *layer, bool concat)
{
    char mine[GHP_SHAPE_TEXT], other[GHP_SHAPE_TEXT];

    layer->out = layer->in;
    for (int i = 1; i < layer->n_inputs; i++) {
        struct ghp_shape shape = model->layers[layer->inputs[i]].out;

        int64_t channels = shape.c;

        if (concat) shape.c = layer->in.c;
        if (!ghp_shape_equal(shape, layer->in)) {
            shape.c = channels;
            return GHP_FAIL(
                GHP_ERR_INPUT,
                "layer '%s' (%s) joins '%s' of shape %s with '%s' of shape %s; make %s equal",
                layer->name, ghp_op_name(layer->op), model->layers[layer->inputs[0]].name,
                ghp_shape_format(layer->in, mine), model->layers[layer->inputs[i]].name,
                ghp_shape_format(shape, other), concat ? "all but their channels" : "their shapes");
        }
        if (concat) layer->out.c += channels;
    }
    return GHP_OK;
}

static bool is_indexable(struct ghp_shape s)
{
    return s.c >= 1 && s.h >= 1 && s.w >= 1 && ghp_product_fits(s.c, s.h, GHP_MAX_INDEXED) &&
           ghp_product_fits(s.c * s.h, s.w, GHP_MAX_INDEXED);
}

enum ghp_status ghp_shape_check_indexed(const struct ghp_layer *layer)
{
    if (is_indexable(layer->out) && is_indexable(layer->in)) return GHP_OK;
    return ghp_model_fail(layer, "has more than 2^31 - 1 elements a sample; use smaller sizes");
}

enum ghp_status ghp_shape_features(const struct ghp_model *model, struct ghp_layer *layer)
{
    int64_t features = layer->out.c;

    (void)model;
    layer->out = layer->in;
    layer->out.c = features;
    return GHP_OK;
}

int64_t ghp_product_flops(const struct ghp_local *local, enum ghp_pass pass)
{
    (void)pass;
    return 2 * local->n * local->p * local->q * local->k * local->c;
}

/* ---- splits, places ---- */

int64_t ghp_divides_channels(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    if (kind == GHP_SPLIT_CHANNEL) return layer->in.c;
    return kind == GHP_SPLIT_FULL ? 1 : 0;
}

int64_t ghp_divides_matrix(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    if (kind == GHP_SPLIT_OUT) return layer->out.c;
    return kind == GHP_SPLIT_IN ? layer->in.c : 0;
}

int64_t ghp_divides_samples(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    (void)layer;
    return kind == GHP_SPLIT_FULL ? 1 : 0;
}

bool ghp_in_place_always(struct ghp_shape in)
{
    (void)in;
    return true;
}

int32_t ghp_local_place(const struct ghp_local *local, const int64_t at[3])
{
    return (int32_t)((at[1] * local->w + at[2]) * local->c + at[0]);
}

/* ---- losses ---- */

/* Whether what the loss reads is that many of equal width: if it joins others by channel, these are they. */
static bool has_outputs(const struct ghp_model *model, const struct ghp_layer *loss)
{
    const struct ghp_layer *from = &model->layers[loss->inputs[0]];
    int64_t width = loss->in.c / loss->loss.outputs, sum = 0;
    bool equal = from->n_inputs == loss->loss.outputs;

    for (int i = 0; i < from->n_inputs; i++) {
        sum += model->layers[from->inputs[i]].out.c;
        equal = equal && model->layers[from->inputs[i]].out.c == width;
    }
    return loss->in.c % loss->loss.outputs == 0 &&
           (equal || from->n_inputs < 2 || sum != loss->in.c);
}

enum ghp_status ghp_loss_shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    char text[GHP_SHAPE_TEXT];

    layer->out = layer->in;
    if (layer->loss.outputs == 0 && layer->loss.own_labels)
        return ghp_model_fail(layer, "has own_labels of several outputs, but no output_weights; "
                                     "add these or leave it out");
    if (layer->loss.outputs == 0 || has_outputs(model, layer)) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "layer '%s' (%s) has output_weights of %d outputs, but its input %s is not that "
        "many of equal width; join as many by one concat, those of fewer classes "
        "padded before it (pad_channels, value -1e30)",
        layer->name, ghp_op_name(layer->op), layer->loss.outputs,
        ghp_shape_format(layer->in, text));
}

void ghp_loss_localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                       struct ghp_local *local)
{
    (void)model;
    (void)parts;
    if (layer->loss.outputs == 0) return;
    local->c = local->k = local->c / layer->loss.outputs;
    local->h = local->p = local->h * local->w * layer->loss.outputs;
    local->w = local->q = 1;
}
