/* core/model/write.c - a network's description as text, from its layers: the counterpart of model/read.c.
 *
 * Writes a key only if it differs from its default, so that equal networks have equal texts and equal hashes, however
 * they were described. */
#include "core/base/json_lines.h"
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <string.h>

static void append(json_t *array, json_t *value, bool *whole)
{
    if (json_array_append_new(array, value) != 0) *whole = false;
}

/* Whether layer i is the bias that the layer before it has by default: it follows directly, is named after that layer,
 * and is its only reader. */
static bool own_bias(const struct ghp_model *model, int i)
{
    const struct ghp_layer *bias = &model->layers[i], *maker = bias - 1;
    size_t n;

    if (i < 1 || i >= model->n_layers || bias->op != GHP_OP_BIAS || bias->inputs[0] != i - 1)
        return false;
    if (!ghp_op_of(maker->op)->has_bias || bias->fixed != maker->fixed) return false;
    n = strlen(maker->name);
    if (strncmp(bias->name, maker->name, n) != 0 || strcmp(bias->name + n, ".bias") != 0)
        return false;
    if (bias->tied != ghp_model_tied_bias(model, i - 1)) return false;
    for (int j = i + 1; j < model->n_layers; j++)
        for (int k = 0; k < model->layers[j].n_inputs; k++)
            if (model->layers[j].inputs[k] == i - 1) return false;
    return true;
}

int ghp_model_tied_bias(const struct ghp_model *model, int maker)
{
    int owner = ghp_model_owner(model, maker);

    if (owner == maker || model->layers[owner].op != model->layers[maker].op) return 0;
    return own_bias(model, owner + 1) ? 1 + ghp_model_owner(model, owner + 1) : 0;
}

int ghp_model_item_layer(const struct ghp_model *model, int64_t item)
{
    for (int i = 1; i < model->n_layers; i++)
        if (!own_bias(model, i) && item-- == 0) return i;
    return -1;
}

static json_t *layer_json(const struct ghp_model *model, int i, bool *whole)
{
    const struct ghp_layer *layer = &model->layers[i];
    bool has_bias = ghp_op_of(layer->op)->has_bias;
    struct ghp_json_object at = {json_object(), whole};
    json_t *inputs;

    ghp_attribute_put(at, "name", json_string(layer->name));
    ghp_attribute_put(at, "op", json_string(ghp_op_name(layer->op)));
    ghp_attributes_write(layer, ghp_op_of(layer->op), at);
    if (layer->tied > 0)
        ghp_attribute_put(at, "tied", json_string(model->layers[layer->tied - 1].name));
    if (has_bias && !own_bias(model, i + 1)) ghp_attribute_put(at, "bias", json_false());
    if (layer->n_inputs == 1 && layer->inputs[0] == i - 1) return at.json;
    inputs = json_array();
    for (int j = 0; j < layer->n_inputs; j++) {
        int from = layer->inputs[j];

        if (own_bias(model, from)) --from;
        append(inputs, json_string(model->layers[from].name), whole);
    }
    ghp_attribute_put(at, "inputs", inputs);
    return at.json;
}

static void put_input(struct ghp_json_object at, struct ghp_shape in)
{
    bool sequence = in.axes == GHP_AXES_SEQUENCE;

    if (in.vocabulary > 0)
        ghp_attribute_put(at, "vocabulary", json_integer(in.vocabulary));
    else
        ghp_attribute_put(at, "channels", json_integer(in.c));
    if (sequence) ghp_attribute_put(at, "positions", json_integer(in.h));
    if (!sequence && in.h != 1) ghp_attribute_put(at, "height", json_integer(in.h));
    if (!sequence && in.w != 1) ghp_attribute_put(at, "width", json_integer(in.w));
}

enum ghp_status ghp_model_write(const struct ghp_model *model, char **text)
{
    bool whole = true;
    struct ghp_json_object root = {json_object(), &whole}, input = {json_object(), &whole};
    json_t *layers = json_array();
    enum ghp_status status;

    *text = NULL;
    put_input(input, model->layers[0].out);
    for (int i = 1; i < model->n_layers; i++)
        if (!own_bias(model, i)) append(layers, layer_json(model, i, &whole), &whole);
    ghp_attribute_put(root, "format", json_string("ghp.model/1"));
    ghp_attribute_put(root, "name", json_string(model->name));
    ghp_attribute_put(root, "input", input.json);
    ghp_attribute_put(root, "layers", layers);
    status = whole ? ghp_json_compact(root.json, text) : GHP_NO_MEMORY();
    json_decref(root.json);
    return status;
}
