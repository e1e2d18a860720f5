/* core/model/padding.c - see model/padding.h. */
#include "core/model/padding.h"

#include "core/base/json_lines.h"
#include "core/model/op.h"

enum ghp_status ghp_vocabulary_read(const struct ghp_node *at, int64_t *multiple)
{
    *multiple = 0;
    return ghp_json_opt_int(at, ghp_vocabulary_key, 1, GHP_MOST_VOCABULARY_MULTIPLE, multiple);
}

enum ghp_status ghp_vocabulary_left_out(json_t *network, char **text)
{
    json_t *rest;
    enum ghp_status status;

    *text = NULL;
    if (json_object_get(network, ghp_vocabulary_key) == NULL)
        return ghp_json_compact(network, text);
    rest = ghp_json_copy(network);
    if (rest == NULL) return GHP_NO_MEMORY();
    json_object_del(rest, ghp_vocabulary_key);
    status = ghp_json_compact(rest, text);
    json_decref(rest);
    return status;
}

int ghp_vocabulary_put(json_t *object, int64_t multiple)
{
    return multiple == 0 ? 0
                         : json_object_set_new(object, ghp_vocabulary_key, json_integer(multiple));
}

static int64_t padded(const struct ghp_model *model, int64_t words)
{
    int64_t multiple = model->vocabulary_multiple;

    return (words + multiple - 1) / multiple * multiple;
}

/* Whether the layer makes logits by weights of its own, or by a table of tokens. */
static bool may_pad(const struct ghp_model *model, int layer)
{
    int owner = ghp_model_owner(model, layer);

    return owner == layer ? !model->layers[layer].shared
                          : ghp_op_of(model->layers[owner].op)->takes_ids;
}

void ghp_model_pad_vocabulary(struct ghp_model *model)
{
    struct ghp_layer *layers = model->layers;
    const struct ghp_layer *loss = &layers[model->n_layers - 1];
    int64_t columns = 0;

    for (int v = 0; v < model->n_layers; v++)
        layers[v].in.columns = layers[v].out.columns = layers[v].rows = 0;
    if (model->vocabulary_multiple == 0 || !loss->logits) return;
    for (int v = 0; v < model->n_layers; v++)
        if (layers[v].logits && !may_pad(model, v)) return;
    columns = padded(model, loss->in.c);
    for (int v = 0; v < model->n_layers; v++) {
        struct ghp_layer *owner = &layers[ghp_model_owner(model, v)];

        if (!layers[v].logits) continue;
        layers[v].out.columns = columns;
        if (layers[v].n_inputs > 0 && layers[layers[v].inputs[0]].logits)
            layers[v].in.columns = columns;
        if (owner != &layers[v]) owner->rows = columns;
    }
}
