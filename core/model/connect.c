/* core/model/connect.c - what follows for a network whose layers are complete: edges, consumers, names in order. */
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "core/model/padding.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuses two tensors of one name: they would meet in a checkpoint. */
static enum ghp_status check_names(const struct ghp_model *model)
{
    enum { PER_LAYER = GHP_MAX_PARAMS + GHP_MAX_STATES };
    const char **names = ghp_alloc((size_t)model->n_layers * PER_LAYER, sizeof *names);
    enum ghp_status status = GHP_OK;
    size_t n = 0;

    if (names == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[i];

        for (int j = 0; j < layer->n_params; j++)
            names[n++] = layer->params[j].name;
        for (int j = 0; j < layer->n_states; j++)
            names[n++] = layer->states[j].name;
    }
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n && status == GHP_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status =
                GHP_FAIL(GHP_ERR_INPUT, "two tensors are called '%s'; rename a layer", names[i]);
    free(names);
    return status;
}

static enum ghp_status make_edges(struct ghp_model *model)
{
    int n = 0;

    for (int i = 0; i < model->n_layers; i++) {
        model->layers[i].first_edge = n;
        n += model->layers[i].n_inputs;
    }
    model->edges = ghp_alloc((size_t)n, sizeof *model->edges);
    if (model->edges == NULL) return GHP_NO_MEMORY();
    model->n_edges = n;
    for (int i = 0; i < model->n_layers; i++) {
        struct ghp_layer *layer = &model->layers[i];

        for (int j = 0; j < layer->n_inputs; j++) {
            model->edges[layer->first_edge + j] = (struct ghp_edge){layer->inputs[j], i, j};
            ++model->layers[layer->inputs[j]].n_consumers;
        }
    }
    return GHP_OK;
}

/* The lists of edges that leave each layer. */
static enum ghp_status make_consumers(struct ghp_model *model)
{
    for (int i = 0; i < model->n_layers; i++) {
        struct ghp_layer *layer = &model->layers[i];

        layer->out_edges = ghp_alloc((size_t)layer->n_consumers, sizeof *layer->out_edges);
        if (layer->out_edges == NULL) return GHP_NO_MEMORY();
        layer->n_consumers = 0;
    }
    for (int e = 0; e < model->n_edges; e++) {
        struct ghp_layer *from = &model->layers[model->edges[e].from];

        from->out_edges[from->n_consumers++] = e;
    }
    return GHP_OK;
}

/* Refuses layers whose output is read by none, and a loss that is not the last layer. */
static enum ghp_status check_ends(const struct ghp_model *model, int *wrong)
{
    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[i];
        bool last = i == model->n_layers - 1;

        *wrong = i;
        if (ghp_op_of(layer->op)->is_loss != last)
            return ghp_model_fail(
                layer, last ? "ends the network; end it with a loss, such as softmax_cross_entropy"
                            : "is the loss, but not the last layer; move it to the end");
        if (!last && layer->n_consumers == 0)
            return ghp_model_fail(
                layer, "is read by no layer; name it in the inputs of one, or remove it");
    }
    *wrong = -1;
    return GHP_OK;
}

/* Whose channels are the classes of a sequence's loss: the loss, and the layers before it whose outputs nothing else
 * reads and whose splits may pad them. */
static void mark_logits(struct ghp_model *model)
{
    for (int i = model->n_layers - 1; i > 0; --i) {
        struct ghp_layer *layer = &model->layers[i];
        const struct ghp_layer *reader =
            layer->n_consumers == 1 ? &model->layers[model->edges[layer->out_edges[0]].to] : NULL;
        bool passes = reader != NULL && reader->logits &&
                      (ghp_op_of(reader->op)->pads >> GHP_SPLIT_CHANNEL & 1u) != 0;

        layer->logits = ghp_op_of(layer->op)->pads != 0 && layer->in.axes == GHP_AXES_SEQUENCE &&
                        layer->loss.outputs == 0 && (ghp_op_of(layer->op)->is_loss || passes);
    }
}

static int compare_layers(const void *a, const void *b, void *data)
{
    const struct ghp_layer *layers = data;
    int x = *(const int *)a, y = *(const int *)b, order = strcmp(layers[x].name, layers[y].name);

    return order != 0 ? order : x - y;
}

/* The layers in order of their names; refuses two of one name. */
static enum ghp_status sort_names(struct ghp_model *model, int *wrong)
{
    int *by_name = ghp_alloc((size_t)model->n_layers, sizeof *by_name);

    if (by_name == NULL) return GHP_NO_MEMORY();
    model->by_name = by_name;
    for (int i = 0; i < model->n_layers; i++)
        by_name[i] = i;
    qsort_r(by_name, (size_t)model->n_layers, sizeof *by_name, compare_layers, model->layers);
    for (int i = 1; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[by_name[i]];

        if (strcmp(model->layers[by_name[i - 1]].name, layer->name) != 0) continue;
        *wrong = by_name[i];
        return ghp_model_fail(layer, "has the name of an earlier layer; rename it");
    }
    return GHP_OK;
}

/* One output tells two classes apart, and so does each output with a label of its own. Numbers are not classes. */
static enum ghp_status count_classes(struct ghp_model *model, int *wrong)
{
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];

    model->classes = 0;
    if (loss->op == GHP_OP_LOSSES) /* the first output's */
        model->classes = (int)ghp_loss_label_outputs(&loss->loss).classes[0];
    if (ghp_op_of(loss->op)->takes_numbers) return GHP_OK;
    if (ghp_loss_columns(loss) > GHP_MAX_CLASSES) {
        *wrong = model->n_layers - 1;
        return ghp_model_fail(
            loss, "takes at most 2^24 outputs; put a linear or global_avg_pool layer before it");
    }
    model->classes =
        ghp_loss_columns(loss) == 1 || loss->loss.multi_label ? 2 : (int)ghp_loss_columns(loss);
    return GHP_OK;
}

int64_t ghp_model_labels(const struct ghp_model *model)
{
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];
    struct ghp_label_outputs outputs = ghp_model_label_outputs(model);

    return loss->in.h * (ghp_op_of(loss->op)->takes_numbers ? loss->in.w : 1) * outputs.row;
}

struct ghp_label_outputs ghp_model_label_outputs(const struct ghp_model *model)
{
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];
    bool each = ghp_op_of(loss->op)->takes_numbers || loss->loss.multi_label;
    struct ghp_label_outputs outputs = {.n = loss->loss.own_labels ? loss->loss.outputs : 1};

    if (loss->op == GHP_OP_LOSSES) return ghp_loss_label_outputs(&loss->loss);
    for (int i = 0; i < outputs.n; i++) {
        outputs.row += each ? ghp_loss_columns(loss) : 1;
        outputs.end[i] = outputs.row;
        outputs.classes[i] = model->classes;
    }
    return outputs;
}

struct ghp_shape ghp_model_targets(const struct ghp_model *model)
{
    const struct ghp_layer *loss = &model->layers[model->n_layers - 1];
    struct ghp_shape targets = loss->in;

    if (!ghp_op_of(loss->op)->takes_numbers) return (struct ghp_shape){0};
    if (loss->op == GHP_OP_LOSSES)
        targets.c = ghp_loss_label_outputs(&loss->loss).row;
    else if (!loss->loss.own_labels)
        targets.c = ghp_loss_columns(loss);
    return targets;
}

enum ghp_status ghp_model_connect(struct ghp_model *model, int *wrong)
{
    int layer = -1;
    enum ghp_status status;

    if (wrong == NULL) wrong = &layer;
    *wrong = -1;
    free(model->edges);
    free(model->by_name);
    model->edges = NULL;
    model->by_name = NULL;
    model->n_edges = 0;
    if (model->n_layers < 2)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the network has no layers; give it at least a loss, such as "
                        "softmax_cross_entropy");
    for (int i = 0; i < model->n_layers; i++) {
        free(model->layers[i].out_edges);
        model->layers[i].out_edges = NULL;
        model->layers[i].n_consumers = 0;
    }
    GHP_TRY(make_edges(model));
    status = check_ends(model, wrong);
    if (status == GHP_OK) status = sort_names(model, wrong);
    if (status == GHP_OK) status = check_names(model);
    if (status == GHP_OK) status = make_consumers(model);
    if (status == GHP_OK) mark_logits(model);
    if (status == GHP_OK) ghp_model_pad_vocabulary(model);
    if (status == GHP_OK) status = count_classes(model, wrong);
    if (status == GHP_OK) status = ghp_model_check_sizes(model, 1, 1);
    return status;
}

enum ghp_status ghp_model_complete(struct ghp_model *model)
{
    for (int i = 0; i < model->n_layers; i++)
        GHP_TRY(ghp_model_complete_layer(model, i));
    return ghp_model_connect(model, NULL);
}
