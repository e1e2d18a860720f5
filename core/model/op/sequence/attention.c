/* core/model/op/sequence/attention.c - each head's queries look at its keys, and take the mean of the values by the
 * softmax of the products.
 *
 * Inputs are queries, keys and values; a head of keys and values may serve several heads of queries. Keys may be of
 * another sequence, of any number of positions: every query then sees all of them. A fourth input, token ids, says which
 * positions are padding and where documents end. */
#include "core/model/attention.h"
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "core/model/precision.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_FLOPS (INT64_C(1) << 60)

/* Left out: as many as of queries. */
static enum ghp_status read_kv_heads(const struct ghp_node *at,
                                     const struct ghp_attribute *attribute, struct ghp_layer *layer)
{
    layer->heads.n_kv = layer->heads.n;
    return ghp_attribute_read(at, attribute, layer);
}

static void write_kv_heads(const struct ghp_layer *layer, const struct ghp_attribute *attribute,
                           struct ghp_json_object at)
{
    if (layer->heads.n_kv != layer->heads.n)
        ghp_attribute_put(at, attribute->key, json_integer(layer->heads.n_kv));
}

static const struct ghp_attribute attributes[] = {
    {.key = "heads",
     .kind = GHP_ATTRIBUTE_INT,
     .required = true,
     .least = 1,
     .most = GHP_MODEL_CHANNELS,
     .at = {offsetof(struct ghp_layer, heads.n)}},
    {.key = "kv_heads",
     .kind = GHP_ATTRIBUTE_INT,
     .least = 1,
     .most = GHP_MODEL_CHANNELS,
     .at = {offsetof(struct ghp_layer, heads.n_kv)},
     .read = read_kv_heads,
     .write = write_kv_heads},
    {.key = "causal",
     .kind = GHP_ATTRIBUTE_BOOL,
     .usual = 1,
     .at = {offsetof(struct ghp_layer, heads.causal)}},
    {.key = "window",
     .kind = GHP_ATTRIBUTE_INT,
     .least = 1,
     .most = GHP_MODEL_CHANNELS,
     .at = {offsetof(struct ghp_layer, heads.window)}},
    {.key = "scale",
     .kind = GHP_ATTRIBUTE_REAL,
     .least = 1e-6,
     .most = 1e6,
     .at = {offsetof(struct ghp_layer, heads.scale)}},
    {.key = "softcap",
     .kind = GHP_ATTRIBUTE_REAL,
     .least = 1e-6,
     .most = 1e6,
     .at = {offsetof(struct ghp_layer, heads.softcap)}},
    {.key = "dropout",
     .kind = GHP_ATTRIBUTE_REAL,
     .most = 0.999,
     .at = {offsetof(struct ghp_layer, heads.dropout)}},
    {.key = "pad_token",
     .kind = GHP_ATTRIBUTE_INT,
     .most = GHP_MODEL_CHANNELS,
     .usual = -1,
     .at = {offsetof(struct ghp_layer, heads.pad_token)}},
    {.key = "end_token",
     .kind = GHP_ATTRIBUTE_INT,
     .most = GHP_MODEL_CHANNELS,
     .usual = -1,
     .at = {offsetof(struct ghp_layer, heads.end_token)}},
    {0}};

/* Positions of the keys and values that a layer reads. */
static int64_t key_positions(const struct ghp_model *model, const struct ghp_layer *layer)
{
    return model->layers[layer->inputs[1]].out.h;
}

static enum ghp_status check_heads(const struct ghp_model *model, const struct ghp_layer *layer)
{
    int64_t c = layer->in.c, heads = layer->heads.n, kv_heads = layer->heads.n_kv;

    if (c % heads != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (attention) cannot make %" PRId64 " heads of %" PRId64
                        " channels; use a number of heads that divides them",
                        layer->name, heads, c);
    if (heads % kv_heads != 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (attention) cannot share %" PRId64 " kv_heads among %" PRId64
                        " heads; use a number that divides them",
                        layer->name, kv_heads, heads);
    if (layer->heads.window > 0 && !layer->heads.causal)
        return ghp_model_fail(
            layer, "has a window of the positions before each, but is not causal; make it causal, "
                   "or remove the window");
    if (layer->in.h > MAX_FLOPS / 10 / c / key_positions(model, layer))
        return ghp_model_fail(layer, "takes more than 2^60 operations a sample; use smaller sizes");
    return GHP_OK;
}

/* Tokens that mean something go with the input that has them. */
static enum ghp_status check_ids(const struct ghp_model *model, const struct ghp_layer *layer)
{
    bool named = layer->heads.pad_token >= 0 || layer->heads.end_token >= 0;

    if (layer->n_inputs < 4 && !named) return GHP_OK;
    if (layer->n_inputs < 4)
        return ghp_model_fail(layer, "has a pad_token or an end_token, but reads no token ids; "
                                     "name the network's input as its fourth input");
    if (!named)
        return ghp_model_fail(layer, "reads token ids, but no token means anything to it; give "
                                     "pad_token or end_token, or leave the fourth input out");
    if (model->layers[layer->inputs[3]].out.h == layer->in.h) return GHP_OK;
    return ghp_model_fail(layer, "reads ids of other positions than its queries have; put no "
                                 "layer that adds positions between them");
}

/* Keys of other positions than the queries': no order says which of them a query would not see, and random numbers are
 * counted by keys. */
static enum ghp_status check_other_keys(const struct ghp_model *model,
                                        const struct ghp_layer *layer)
{
    int64_t keys = key_positions(model, layer);

    if (keys == layer->in.h) return GHP_OK;
    if (layer->heads.causal || layer->n_inputs > 3)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (attention) has %" PRId64 " queries and %" PRId64
                        " keys, so that no order says which keys a query sees; set causal to "
                        "false and leave token ids out",
                        layer->name, layer->in.h, keys);
    if (layer->heads.dropout > 0 && keys < layer->in.h)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (attention) drops weights of %" PRId64
                        " queries over fewer keys, %" PRId64 "; set its dropout to 0",
                        layer->name, layer->in.h, keys);
    return GHP_OK;
}

static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    GHP_TRY(check_heads(model, layer));
    GHP_TRY(check_ids(model, layer));
    GHP_TRY(check_other_keys(model, layer));
    layer->out = layer->in;
    layer->heads.size = layer->in.c / layer->heads.n;
    layer->heads.keys =
        key_positions(model, layer) == layer->in.h ? 0 : key_positions(model, layer);
    for (int i = 1; i < 3; i++) {
        const struct ghp_layer *input = &model->layers[layer->inputs[i]];
        struct ghp_shape wanted = layer->in;
        char text[GHP_SHAPE_TEXT], right[GHP_SHAPE_TEXT];

        wanted.c = layer->heads.n_kv * layer->heads.size;
        wanted.h = key_positions(model, layer);
        if (ghp_shape_equal(input->out, wanted)) continue;
        return GHP_FAIL(GHP_ERR_INPUT,
                        "layer '%s' (attention) reads %s from '%s' of shape %s; make it %s, or "
                        "change kv_heads",
                        layer->name, i == 1 ? "keys" : "values", input->name,
                        ghp_shape_format(input->out, text), ghp_shape_format(wanted, right));
    }
    return GHP_OK;
}

/* Twice the pairs of causal queries and keys among the first `positions` positions. A query sees half of them on
 * average. With a window, the first queries see half of it on average, and later ones see all of it. */
static int64_t pairs_before(const struct ghp_local *local, int64_t positions)
{
    int64_t window = local->heads.window;

    return window > 0 && window < positions ? window * (2 * positions - window)
                                            : positions * positions;
}

/* Forward: the scores, and the mean of the values by them. Backward: the scores again, and the gradients of
 * probabilities, queries, keys and values. If positions are divided, these are the last worker's, because its causal
 * queries see most keys. */
static int64_t flops(const struct ghp_local *local, enum ghp_pass pass)
{
    int64_t keys = ghp_attention_keys(local);
    int64_t pairs = local->heads.causal
                        ? pairs_before(local, keys) - pairs_before(local, keys - local->h)
                        : 2 * local->h * keys;
    int64_t product = local->n * pairs * local->k;

    return product * (pass == GHP_PASS_FORWARD ? 2 : 5);
}

/* For each head and position, the logarithm of the sum of its exponentials, in numbers no less exact than weights. */
static int64_t saved_bytes(const struct ghp_local *local, int element_bytes)
{
    return local->n * local->h * local->heads.n * ghp_parameter_bytes(element_bytes);
}

static int64_t divides(const struct ghp_layer *layer, enum ghp_split_kind kind)
{
    if (kind == GHP_SPLIT_CHANNEL) return layer->heads.n_kv;
    return kind == GHP_SPLIT_FULL ? 1 : 0;
}

static void localize(const struct ghp_model *model, const struct ghp_layer *layer, int parts,
                     struct ghp_local *local)
{
    local->heads.n /= parts;
    local->heads.n_kv /= parts;
    local->c = 0;
    for (int i = 0; i < 3; i++) {
        local->slice[i] = model->layers[layer->inputs[i]].out.c / parts;
        local->c += local->slice[i];
    }
    if (local->h != key_positions(model, layer)) local->keys = key_positions(model, layer);
}

static void key(const struct ghp_local *local, char *text, size_t n)
{
    char window[32] = "", keys[32] = "";

    if (local->heads.window > 0)
        snprintf(window, sizeof window, " window%" PRId64, local->heads.window);
    if (local->keys > 0) snprintf(keys, sizeof keys, " keys%" PRId64, local->keys);
    snprintf(text, n, " heads%" PRId64 " kv%" PRId64 " size%" PRId64 "%s%s%s%s%s%s", local->heads.n,
             local->heads.n_kv, local->heads.size, keys, local->heads.causal ? " causal" : "",
             window, local->heads.softcap > 0 ? " capped" : "",
             local->heads.dropout > 0 ? " dropout" : "",
             ghp_attention_has_ids(local) ? " ids" : "");
}

const struct ghp_op_facts ghp_op_facts_attention = {
    .attributes = attributes,
    .least_inputs = 3,
    .most_inputs = 4,
    .ids_input = 3,
    .takes = GHP_TAKES(SEQUENCE),
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X, GHP_AT_Y | GHP_AT_SAVED},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_X | GHP_AT_Y | GHP_AT_DY | GHP_AT_SAVED,
                                           GHP_AT_DX}},
    .flops = flops,
    .saved_bytes = {saved_bytes},
    .divides = divides,
    .by_position = true,
    .whole_inputs = 1u << 1 | 1u << 2, /* keys and values */
    .localize = localize,
    .key = key,
};
