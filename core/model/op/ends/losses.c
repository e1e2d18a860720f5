/* core/model/op/ends/losses.c - several outputs side by side, each with a loss of its own kind: the sum of all of them
 * by their weights. A position has labels of each output, one after the other. */
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>

/* The losses that an output may have, from GHP_OP_SOFTMAX_CE on: the registry is above this file. */
extern const struct ghp_op_facts ghp_op_facts_softmax_cross_entropy, ghp_op_facts_hinge,
    ghp_op_facts_squared_error, ghp_op_facts_binary_cross_entropy, ghp_op_facts_regression;
enum { LOSSES = GHP_OP_REGRESSION - GHP_OP_SOFTMAX_CE + 1 };
static const struct ghp_op_facts *const facts_of[LOSSES] = {
    &ghp_op_facts_softmax_cross_entropy, &ghp_op_facts_hinge, &ghp_op_facts_squared_error,
    &ghp_op_facts_binary_cross_entropy, &ghp_op_facts_regression};

/* Keys of an item: its own, and those of a layer of its loss but what is of several outputs. */
static enum ghp_status check_keys(const struct ghp_node *item, const struct ghp_op_facts *facts)
{
    const char *keys[16] = {"op", "channels", "weight"};
    int n = 3;

    for (const struct ghp_attribute *a = facts->attributes; a->key != NULL; a++) {
        if (a->at[0] == offsetof(struct ghp_layer, loss.weights) ||
            a->at[0] == offsetof(struct ghp_layer, loss.own_labels))
            continue;
        keys[n++] = a->key;
        for (int i = 0; a->brings != NULL && a->choices[i] != NULL; i++)
            if (a->brings[i] != NULL) keys[n++] = a->brings[i]->key;
    }
    return ghp_json_only_keys(item, keys);
}

static enum ghp_status read_one(const struct ghp_node *item, double *weight,
                                struct ghp_loss_part *part)
{
    const char *names[LOSSES + 1] = {NULL};
    struct ghp_node own = *item; /* as a layer of its loss says it */
    struct ghp_layer one = {0};
    int64_t channels = 0;
    enum ghp_status status;
    int found = 0;

    for (int i = 0; i < LOSSES; i++)
        names[i] = ghp_op_name((enum ghp_op)(GHP_OP_SOFTMAX_CE + i));
    GHP_TRY(ghp_json_choice(item, "op", names, &found));
    GHP_TRY(check_keys(item, facts_of[found]));
    GHP_TRY(ghp_json_opt_int(item, "channels", 1, GHP_MODEL_CHANNELS, &channels));
    *weight = 1;
    GHP_TRY(ghp_json_opt_real(item, "weight", 0, 1e6, weight));
    own.value = ghp_json_copy(item->value);
    if (own.value == NULL) return GHP_NO_MEMORY();
    json_object_del(own.value, "channels");
    json_object_del(own.value, "weight");
    status = ghp_attributes_read(&own, facts_of[found], &one);
    json_decref(own.value);
    part->channels = (int32_t)channels;
    part->op = (uint8_t)(GHP_OP_SOFTMAX_CE + found);
    part->error = (uint8_t)one.loss.error;
    part->multi_label = one.loss.multi_label;
    part->number = part->op == GHP_OP_REGRESSION ? one.loss.delta : one.loss.smoothing;
    return status;
}

static enum ghp_status read_all(const struct ghp_node *at, const struct ghp_attribute *attribute,
                                struct ghp_layer *layer)
{
    struct ghp_node array, item;
    size_t n;

    GHP_TRY(ghp_json_array(at, attribute->key, &array, &n));
    if (n < 2 || n > GHP_MAX_INPUTS)
        return ghp_json_fail(&array, GHP_ERR_INPUT,
                             "there are %zu losses; give 2 to %d, or take the one itself", n,
                             GHP_MAX_INPUTS);
    for (size_t i = 0; i < n; i++) {
        GHP_TRY(ghp_json_item(&array, i, &item));
        GHP_TRY(read_one(&item, &layer->loss.weights[i], &layer->loss.parts[i]));
    }
    layer->loss.outputs = (int)n;
    layer->loss.own_labels = true;
    return GHP_OK;
}

static void write_all(const struct ghp_layer *layer, const struct ghp_attribute *attribute,
                      struct ghp_json_object at)
{
    json_t *array = json_array();

    for (int i = 0; i < layer->loss.outputs; i++) {
        const struct ghp_loss_part *part = &layer->loss.parts[i];
        struct ghp_json_object item = {json_object(), at.whole};
        struct ghp_layer one = {.op = (enum ghp_op)part->op,
                                .loss = {.smoothing = part->number,
                                         .multi_label = part->multi_label,
                                         .error = (enum ghp_error)part->error,
                                         .delta = part->number}};

        ghp_attribute_put(item, "op", json_string(ghp_op_name(one.op)));
        if (part->channels > 0) ghp_attribute_put(item, "channels", json_integer(part->channels));
        if (layer->loss.weights[i] < 1 || layer->loss.weights[i] > 1)
            ghp_attribute_put(item, "weight", json_real(layer->loss.weights[i]));
        ghp_attributes_write(&one, facts_of[one.op - GHP_OP_SOFTMAX_CE], item);
        if (json_array_append_new(array, item.json) != 0) *at.whole = false;
    }
    ghp_attribute_put(at, attribute->key, array);
}

static const struct ghp_attribute attributes[] = {{.key = "losses",
                                                   .kind = GHP_ATTRIBUTE_LOSSES,
                                                   .required = true,
                                                   .at = {offsetof(struct ghp_layer, loss.parts)},
                                                   .read = read_all,
                                                   .write = write_all},
                                                  {0}};

/* Outputs that say no channels have those of the layers that one concat joins. */
static enum ghp_status shape(const struct ghp_model *model, struct ghp_layer *layer)
{
    const struct ghp_layer *from = &model->layers[layer->inputs[0]];
    bool joined = from->op == GHP_OP_CONCAT && from->n_inputs == layer->loss.outputs;
    char text[GHP_SHAPE_TEXT];
    int64_t sum = 0;

    for (int i = 0; i < layer->loss.outputs; i++) {
        struct ghp_loss_part *part = &layer->loss.parts[i];

        if (part->channels == 0 && joined)
            part->channels = (int32_t)model->layers[from->inputs[i]].out.c;
        if (part->channels == 0)
            return ghp_model_fail(layer,
                                  "does not say the channels of each output, and its input "
                                  "is not a concat of as many; add \"channels\" to each loss");
        if (part->op == GHP_OP_SOFTMAX_CE && part->channels < 2)
            return ghp_model_fail(layer, "has a softmax_cross_entropy of one channel, and it takes "
                                         "2 classes at least; give it binary_cross_entropy");
        sum += part->channels;
    }
    layer->out = layer->in;
    if (sum == layer->in.c) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "layer '%s' (losses) has outputs of %" PRId64 " channels together, but its "
                    "input is %s; join as many outputs by one concat, or correct their channels",
                    layer->name, sum, ghp_shape_format(layer->in, text));
}

/* Appends, for each output, the initials of its loss and its channels: " sce10 se4". */
static void key(const struct ghp_local *local, char *text, size_t n)
{
    size_t used = 0;

    for (int i = 0; i < local->loss.outputs && used < n; i++) {
        const struct ghp_loss_part *part = &local->loss.parts[i];
        const char *name = ghp_op_name((enum ghp_op)part->op);
        char initials[8] = {name[0]};

        for (size_t at = 0, length = 1; name[at] != '\0' && length + 1 < sizeof initials; at++)
            if (name[at] == '_') initials[length++] = name[at + 1];
        used += (size_t)snprintf(text + used, n - used, " %s%d", initials, (int)part->channels);
    }
}

const struct ghp_op_facts ghp_op_facts_losses = {
    .attributes = attributes,
    .least_inputs = 1,
    .most_inputs = 1,
    .shape = shape,
    .passes = {[GHP_PASS_FORWARD] = {GHP_AT_X | GHP_AT_LABELS, GHP_AT_Y | GHP_AT_METRICS},
               [GHP_PASS_BACKWARD_DATA] = {GHP_AT_Y | GHP_AT_LABELS, GHP_AT_DX}},
    .divides = ghp_divides_samples,
    .key = key,
    .is_loss = true,
    .takes_numbers = true,
    .runs_once = true,
    .by_position = true,
};
