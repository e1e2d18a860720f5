/* onnx/graph.c - walks an ONNX graph in order and turns each node that the output needs into layers. */
#include "onnx/graph.h"

#include "onnx/input.h"
#include "onnx/loss.h"
#include "onnx/operator/embedding.h"
#include "onnx/operator/operator.h"
#include "onnx/operator/product.h"
#include "onnx/operator/rows.h"
#include "onnx/pattern/pattern.h"
#include "onnx/read/attribute.h"
#include "onnx/read/constant.h"
#include "onnx/read/layer.h"
#include "onnx/read/role.h"
#include "onnx/read/settle.h"
#include "onnx/shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_OPSET = 7, LAST_OPSET = 24 };

/* ---- the walk ---- */

/* Marks what the output needs. Nodes come after what they read, so one pass from the end does it. */
static void mark_wanted(struct ghp_onnx_import *im, const char *output)
{
    *ghp_onnx_wanted_of(im, output) = true;
    for (int i = im->file->n_nodes - 1; i >= 0; --i) {
        const struct ghp_onnx_node *node = &im->nodes[i];
        bool wanted = false;

        for (int o = 0; o < node->n_outputs; o++)
            wanted = wanted || ghp_onnx_wanted(im, node, o);
        for (int k = 0; wanted && k < node->n_inputs; k++)
            if (node->inputs[k][0] != '\0') *ghp_onnx_wanted_of(im, node->inputs[k]) = true;
    }
}

static enum ghp_status add_constant(struct ghp_onnx_import *im, const struct ghp_onnx_file *file,
                                    const struct ghp_onnx_tensor *tensor, const char *name)
{
    struct ghp_onnx_array *array = ghp_onnx_named(im, name), made;

    if (array->name != NULL)
        return GHP_FAIL(GHP_ERR_FORMAT, "%s: two tensors are called '%.96s'; rename one",
                        im->file->path, name);
    GHP_TRY(ghp_onnx_of_tensor(im, file, tensor, &made));
    *array = made;
    array->name = name;
    return ghp_onnx_role_of_tensor(im, array);
}

/* Whether the last failure was made by ghp_onnx_fail. */
static bool names_node(const struct ghp_onnx_import *im)
{
    size_t n = strlen(im->file->path);

    return strncmp(ghp_status_message(), im->file->path, n) == 0 &&
           strncmp(ghp_status_message() + n, ": node '", 8) == 0;
}

/* Whether a node reads what is computed from samples and is not a score of an attention. */
static bool reads_samples(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *x = ghp_onnx_in(im, node, i);

        if (x != NULL && x->name != NULL && x->base == NULL && x->scores == NULL) return true;
    }
    return false;
}

/* Whether a layer's output depends on parameters that are trained. */
static enum ghp_status depends_on_trained(const struct ghp_model *model, int layer, bool *depends)
{
    bool *of = ghp_alloc((size_t)model->n_layers, sizeof *of);

    if (of == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i <= layer; i++) { /* inputs come before */
        const struct ghp_layer *l = &model->layers[i];

        of[i] = (l->n_params > 0 && !l->fixed) || l->tied > 0;
        for (int k = 0; k < l->n_inputs; k++)
            of[i] = of[i] || of[l->inputs[k]];
    }
    *depends = of[layer];
    free(of);
    return GHP_OK;
}

/* Keeps the first node that hands no gradient back to what is trained. */
static enum ghp_status note_detached(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    if (!node->apart && !ghp_onnx_detaches(im->file, node)) return GHP_OK;
    for (int i = 0; i < node->n_outputs && im->detached == NULL; i++) {
        const struct ghp_onnx_array *y =
            node->outputs[i][0] != '\0' ? ghp_onnx_named(im, node->outputs[i]) : NULL;
        bool loses = false;

        if (y == NULL || y->name == NULL || y->base != NULL || y->scores != NULL) continue;
        GHP_TRY(depends_on_trained(&im->model, y->layer, &loses));
        if (loses) im->detached = node;
    }
    return GHP_OK;
}

/* Whether a node combines scores with a constant that would be trained, though the file does not say so: a mask. */
static bool may_mask(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const struct ghp_onnx_array *x = ghp_onnx_in(im, node, i);

        if (x != NULL && x->base != NULL && !ghp_onnx_role_is_number(x) &&
            x->base->role != GHP_ONNX_PARAMETER)
            return true;
    }
    return false;
}

/* Reads a node. If it does with scores what no attention does, these become a layer's output, and it is read again. */
static enum ghp_status read_node(struct ghp_onnx_import *im, const struct ghp_onnx_node *node,
                                 const struct ghp_onnx_operator *row)
{
    enum ghp_status status = row->read(im, node);
    char said[1024];
    bool any = false;

    if (status != GHP_ERR_INPUT || row->folds || may_mask(im, node)) return status;
    snprintf(said, sizeof said, "%s", ghp_status_message());
    for (int i = 0; i < node->n_inputs; i++) {
        struct ghp_onnx_array *x = ghp_onnx_in(im, node, i);
        bool done = false;

        if (x == NULL || x->scores == NULL) continue;
        if (ghp_onnx_scores_settle(im, node, x, &done) == GHP_ERR_NO_MEMORY) return GHP_NO_MEMORY();
        any = any || done;
    }
    if (any) status = row->read(im, node);
    return status == GHP_ERR_INPUT ? GHP_FAIL(GHP_ERR_INPUT, "%s", said) : status;
}

static enum ghp_status run_node(struct ghp_onnx_import *im, const struct ghp_onnx_node *node)
{
    const struct ghp_onnx_operator *row = ghp_onnx_operator_find(node->op);
    enum ghp_status status;

    if (row == NULL || (node->domain[0] != '\0' && strcmp(node->domain, "ai.onnx") != 0))
        return ghp_onnx_fail(im, node, "is of an operation that ghp does not support; %s",
                             ghp_onnx_operator_instead(node->op));
    for (int i = 0; i < node->n_attributes; i++)
        if (!ghp_onnx_operator_allows(row, node->attributes[i].name))
            return ghp_onnx_fail(
                im, node, "has the attribute '%.60s', which ghp does not support; supported: %s",
                node->attributes[i].name, row->attributes[0] != '\0' ? row->attributes : "none");
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i][0] != '\0' && ghp_onnx_named(im, node->inputs[i])->name == NULL)
            return ghp_onnx_fail(im, node,
                                 "reads '%.96s', which no earlier node makes; put the nodes in "
                                 "order, without cycles",
                                 node->inputs[i]);
    if (row->folds && reads_samples(im, node))
        return ghp_onnx_fail(im, node,
                             "is of an operation that ghp has for constants alone, and reads what "
                             "is computed from samples; %s",
                             ghp_onnx_reads_ids(im, node)
                                 ? "export without the padding mask and give samples of one length"
                                 : ghp_onnx_operator_instead(node->op));
    im->now = node;
    status = read_node(im, node, row);
    im->now = NULL;
    for (int i = 0; status == GHP_OK && i < node->n_outputs; i++)
        if (node->outputs[i][0] != '\0')
            ghp_onnx_role_of_made(im, node, ghp_onnx_named(im, node->outputs[i]));
    if (status == GHP_OK) status = note_detached(im, node);
    if (status == GHP_OK || status == GHP_ERR_NO_MEMORY || names_node(im)) return status;
    ghp_onnx_fail(im, node, "cannot be read: %s", ghp_status_message());
    return status;
}

/* The output that becomes the network's: the last of two dimensions, else the first. Only names and ranks are known. */
static const char *choose_output(const struct ghp_onnx_file *file)
{
    const char *chosen = file->outputs[0].name;

    for (int i = 0; i < file->n_outputs; i++)
        if (file->outputs[i].shaped && file->outputs[i].n_dims == 2) chosen = file->outputs[i].name;
    return chosen;
}

struct end { /* of the network */
    struct ghp_layer loss;
    char name[GHP_ONNX_LOSS_NAME];
    int n; /* outputs that have a loss */
    const char *outputs[GHP_MAX_INPUTS];
};

/* One output, or all in their order if the file's loss is of several. A single one may have them side by side. */
static enum ghp_status choose_outputs(const struct ghp_onnx_import *im, struct end *end)
{
    const struct ghp_onnx_file *file = im->file;
    int weights, there = 0;
    enum ghp_status status = ghp_onnx_loss_read(file, &end->loss, end->name);

    if (status != GHP_OK) ghp_status_prefix("%s", file->path);
    GHP_TRY(status);
    weights = end->loss.loss.outputs;
    for (int i = 0; i < file->n_outputs && im->options.output == NULL; i++) {
        if (ghp_onnx_is_cache(file->outputs[i].name)) continue;
        if (there < weights) end->outputs[there] = file->outputs[i].name;
        there++;
    }
    end->n = there > 1 && weights > 0 ? weights : 1;
    if (end->n == 1) {
        end->outputs[0] = im->options.output != NULL ? im->options.output : choose_output(file);
        return GHP_OK;
    }
    if (there == weights) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "%s: there are %d outputs, and the metadata 'ghp.loss' has %s of %d; give one "
                    "for each, or export the module without the others",
                    file->path, there, end->loss.op == GHP_OP_LOSSES ? "losses" : "output_weights",
                    weights);
}

static enum ghp_status walk(struct ghp_onnx_import *im, struct end *end)
{
    const struct ghp_onnx_file *file = im->file;

    if (file->opset < FIRST_OPSET || file->opset > LAST_OPSET)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%s: opset %" PRId64
                        " is not supported; convert the file to one of %d to %d",
                        file->path, file->opset, FIRST_OPSET, LAST_OPSET);
    if (file->n_outputs == 0)
        return GHP_FAIL(GHP_ERR_FORMAT, "%s: the graph has no output; name one", file->path);
    GHP_TRY(ghp_onnx_reserve_names(im));
    GHP_TRY(choose_outputs(im, end));
    for (int i = 0; i < im->options.n_bindings; i++)
        GHP_TRY(add_constant(im, im->options.bindings[i].file,
                             im->options.bindings[i].file->tensors, im->options.bindings[i].input));
    for (int i = 0; i < file->n_tensors; i++)
        GHP_TRY(add_constant(im, file, &file->tensors[i], file->tensors[i].name));
    GHP_TRY(ghp_onnx_pattern_apply(im));
    for (int i = 0; i < end->n; i++)
        mark_wanted(im, end->outputs[i]);
    GHP_TRY(ghp_onnx_input_add(im));
    for (int i = 0; i < file->n_nodes; i++) {
        const struct ghp_onnx_node *node = &im->nodes[i];
        bool wanted = false;

        for (int o = 0; o < node->n_outputs; o++)
            wanted = wanted || ghp_onnx_wanted(im, node, o);
        if (wanted) GHP_TRY(run_node(im, node));
    }
    for (int i = 0; i < end->n; i++)
        if (ghp_onnx_named(im, end->outputs[i])->name == NULL)
            return GHP_FAIL(GHP_ERR_FORMAT, "%s: no node makes the output '%.96s'; repair the file",
                            file->path, end->outputs[i]);
    return GHP_OK;
}

/* ---- the end ---- */

/* Drops layers that the last one does not need. */
static enum ghp_status drop_dead(struct ghp_onnx_import *im, int last)
{
    struct ghp_model *model = &im->model;
    int *moved = ghp_onnx_keep(im, (size_t)model->n_layers, sizeof *moved), n = 0;

    if (moved == NULL) return GHP_NO_MEMORY();
    moved[last] = 1;
    for (int i = last; i >= 0; --i)
        for (int j = 0; moved[i] != 0 && j < model->layers[i].n_inputs; j++)
            moved[model->layers[i].inputs[j]] = 1;
    moved[0] = 1;
    for (int i = 0; i < model->n_layers; i++) {
        struct ghp_layer *layer = &model->layers[i];

        if (moved[i] == 0) {
            free(layer->name);
            ghp_model_drop_derived(layer);
            moved[i] = -1;
            continue;
        }
        for (int j = 0; j < layer->n_inputs; j++)
            layer->inputs[j] = moved[layer->inputs[j]];
        moved[i] = n;
        im->makers[n] = im->makers[i];
        model->layers[n++] = *layer;
    }
    model->n_layers = n;
    n = 0;
    for (int i = 0; i < im->n_sources; i++) {
        im->sources[n] = im->sources[i];
        im->sources[n].layer = moved[im->sources[i].layer];
        if (im->sources[n].layer >= 0) n++;
    }
    im->n_sources = n;
    im->output.layer = moved[last];
    return GHP_OK;
}

/* Refuses an output of several axes for a loss of one vector of classes: it would be one softmax over all of them. A
 * sequence has such a vector at each position. */
static enum ghp_status check_classes(const struct ghp_onnx_import *im, int last,
                                     const struct ghp_layer *loss)
{
    const struct ghp_onnx_array *output = &im->output;
    int axes = 0;
    if (ghp_onnx_elements(output) == 1 && loss->op == GHP_OP_SOFTMAX_CE &&
        !ghp_onnx_loss_is_said(im->file) && !im->options.open_end)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a sample has one value there, and without a loss that is named the loss "
                        "is the cross entropy of two classes or more; name it as 'loss' of "
                        "ghp.export, or in the metadata 'ghp.loss': nn.MSELoss() "
                        "({\"op\": \"regression\"}) for a number, nn.BCEWithLogitsLoss() "
                        "({\"op\": \"binary_cross_entropy\"}) for one of two classes");
    for (int i = 1; i < output->n; i++)
        axes += output->dims[i] > 1;
    if (axes < 2 || loss->loss.multi_label || ghp_onnx_is_sequence(im, last) ||
        (ghp_op_of(loss->op)->takes_numbers &&
         (loss->op != GHP_OP_LOSSES || im->model.layers[last].out.axes == GHP_AXES_IMAGE)))
        return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "a sample has %" PRId64 " values on %d axes there, as maps of pixels and lists of boxes "
        "have; the loss %s is of one vector of classes for each sample, or for each position "
        "after an attention: %s",
        ghp_onnx_elements(output), axes, ghp_op_name(loss->op),
        output->n == 3 ? "pool or flatten it to batch and classes, or, where the last axis has the "
                         "classes of each place of axis 1, say so by naming the loss in the "
                         "metadata 'ghp.loss'"
                       : "pool or flatten it to batch and classes");
}

/* The loss on layer *last, unless a softmax that is the loss is there already. */
static enum ghp_status put_loss(struct ghp_onnx_import *im, const struct ghp_layer *loss,
                                const char *name, int *last)
{
    struct ghp_layer like = *loss, *end = &im->model.layers[*last];

    like.inputs[0] = *last;
    if (end->op != GHP_OP_SOFTMAX_CE) return ghp_onnx_emit(im, &like, ghp_onnx_called(name), last);
    if (like.op != end->op || like.loss.outputs > 0)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "it is what a softmax made, and the metadata 'ghp.loss' asks for the loss "
                        "%s, which takes logits; export the module without the softmax",
                        ghp_op_name(like.op));
    end->loss = like.loss;
    return GHP_OK;
}

/* Whether the output may have several places, each with a softmax of its own. */
static bool has_places(const struct ghp_onnx_import *im, const struct ghp_layer *loss)
{
    const struct ghp_onnx_array *x = &im->output;

    return x->base == NULL && x->lead == 0 && x->joined == 0 &&
           (loss->op == GHP_OP_SOFTMAX_CE || loss->op == GHP_OP_LOSSES) &&
           im->model.layers[x->layer].op != GHP_OP_SOFTMAX_CE && !im->options.open_end;
}

/* A map of classes for each pixel, as nn.CrossEntropyLoss takes it (batch, classes, rows, columns), becomes a sequence
 * of pixels. An array (batch, places, classes) is one if the file says its loss: ghp writes it so. */
static enum ghp_status find_places(struct ghp_onnx_import *im, const struct ghp_layer *loss)
{
    struct ghp_onnx_array *x = &im->output;
    const int64_t dims[3] = {x->dims[0], x->dims[1], x->n == 4 ? x->dims[2] * x->dims[3] : 1};

    if (!has_places(im, loss)) return GHP_OK;
    if (x->n == 3 && ghp_onnx_loss_is_said(im->file) &&
        ((x->dims[1] > 1 && x->dims[2] > 1) || loss->op == GHP_OP_LOSSES))
        return ghp_onnx_as_sequence(im, x);
    if (loss->op == GHP_OP_LOSSES) return GHP_OK; /* a map stays an image */
    if (x->n != 4 || dims[1] < 2 || dims[2] < 2) return GHP_OK;
    GHP_TRY(ghp_onnx_reshape(im, x, 3, dims));
    ghp_onnx_permute(x, (const int[]){0, 2, 1});
    im->pixels = true;
    return ghp_onnx_as_sequence(im, x);
}

/* Whether the output is an image for a loss of numbers, which takes it as it is: batch, channels, rows and columns. */
static bool is_image(const struct ghp_onnx_import *im, const struct ghp_layer *loss)
{
    const struct ghp_onnx_array *x = &im->output;
    const struct ghp_shape out = im->model.layers[x->layer].out;

    return ghp_op_of(loss->op)->takes_numbers && x->base == NULL && x->lead == 0 &&
           x->joined == 0 && out.axes == GHP_AXES_IMAGE && ghp_onnx_whole(im, x) &&
           ((x->n == 4 && x->dims[1] == out.c && x->dims[2] == out.h) ||
            (x->n == 3 && x->dims[1] == out.c && out.h == 1));
}

struct places { /* of an output: its axes after the batch but for the channels */
    int n;
    int64_t sizes[2], all;
};

/* A map's pixels or a list's positions; a vector is one place, and so is what has other axes. */
static struct places places_of(const struct ghp_onnx_array *x)
{
    int64_t dims[GHP_ONNX_MAX_DIMS];
    int n = ghp_onnx_seen(x, dims);

    if (n == 3) return (struct places){1, {dims[1], 1}, dims[1]};
    if (n == 4 && dims[2] * dims[3] > 1)
        return (struct places){2, {dims[2], dims[3]}, dims[2] * dims[3]};
    return (struct places){0, {1, 1}, 1};
}

/* The most places of an output if not all have the same, else 0. */
static int64_t most_places(struct ghp_onnx_import *im, const struct end *end)
{
    struct places first = places_of(ghp_onnx_named(im, end->outputs[0]));
    int64_t most = first.all;
    bool same = true;

    for (int i = 1; i < end->n; i++) {
        struct places here = places_of(ghp_onnx_named(im, end->outputs[i]));

        same = same && here.n == first.n && here.sizes[0] == first.sizes[0] &&
               here.sizes[1] == first.sizes[1];
        most = here.all > most ? here.all : most;
    }
    return same ? 0 : most;
}

/* The output as an image of one row, a column for each place. Columns that are added have no labels. */
static enum ghp_status put_row(struct ghp_onnx_import *im, int64_t columns, int *last)
{
    struct ghp_onnx_array *x = &im->output;
    struct places places = places_of(x);
    struct ghp_layer like = {.op = GHP_OP_PAD, .n_inputs = 1};
    struct ghp_shape row = {.c = 1, .h = 1, .w = places.all};

    GHP_TRY(ghp_onnx_part_axes(im, x));
    if (x->n == 3) ghp_onnx_permute(x, (const int[]){0, 2, 1});
    row.c = ghp_onnx_elements(x) / places.all;
    GHP_TRY(
        ghp_onnx_reshape(im, x, row.w > 1 ? 3 : 2, (const int64_t[]){x->dims[0], row.c, row.w}));
    GHP_TRY(ghp_onnx_settle(im, x, row, last));
    if (places.all == columns) return GHP_OK;
    like.inputs[0] = *last;
    like.border.after[2] = columns - places.all;
    return ghp_onnx_emit(im, &like, ghp_onnx_part(ghp_onnx_called(x->name), ".padded"), last);
}

/* The output as a vector, a sequence or, of numbers, an image; if columns > 0, as an image of one row. */
static enum ghp_status put_output(struct ghp_onnx_import *im, const struct ghp_layer *loss,
                                  int64_t columns, int *last)
{
    struct ghp_shape vector = {.c = 1, .h = 1, .w = 1};

    if (im->output.base != NULL)
        return GHP_FAIL(GHP_ERR_INPUT, "it does not depend on the input; give a network");
    if (im->output.scores != NULL)
        return GHP_FAIL(GHP_ERR_INPUT, "it is scores of an attention; give what comes of them");
    if (columns > 0) return put_row(im, columns, last);
    GHP_TRY(find_places(im, loss));
    vector.c = ghp_onnx_elements(&im->output);
    if (is_image(im, loss) ||
        (im->output.base == NULL && im->output.lead == 0 && ghp_onnx_are_rows(im, &im->output))) {
        *last = im->output.layer;
    } else {
        GHP_TRY(ghp_onnx_part_axes(im, &im->output));
        GHP_TRY(ghp_onnx_settle(im, &im->output, vector, last));
    }
    if (im->options.open_end || im->model.layers[*last].op == GHP_OP_SOFTMAX_CE) return GHP_OK;
    return check_classes(im, *last, loss);
}

/* Logits of fewer classes get more, of probability 0. */
static enum ghp_status widen(struct ghp_onnx_import *im, int64_t classes, int *layer)
{
    struct ghp_layer like = {.op = GHP_OP_PAD, .n_inputs = 1, .inputs = {*layer}},
                     *from = &im->model.layers[*layer];

    if (from->out.c == classes || from->out.axes != GHP_AXES_VECTOR) return GHP_OK;
    like.border.after[0] = classes - from->out.c;
    like.border.value = -1e30;
    return ghp_onnx_emit(im, &like, ghp_onnx_part(ghp_onnx_called(from->name), ".padded"), layer);
}

/* Several outputs side by side, in place of the last. */
static enum ghp_status join_outputs(struct ghp_onnx_import *im, const struct end *end,
                                    const int *layers, int *last)
{
    const struct ghp_layer *loss = &end->loss;
    struct ghp_layer like = {.op = GHP_OP_CONCAT, .n_inputs = end->n};
    int64_t most = 0;

    for (int i = 0; i < end->n; i++) {
        const struct ghp_layer *from = &im->model.layers[layers[i]];

        like.inputs[i] = layers[i];
        most = from->out.c > most ? from->out.c : most;
    }
    for (int i = 0; i < end->n && loss->op == GHP_OP_SOFTMAX_CE && !(loss->loss.smoothing > 0); i++)
        GHP_TRY(widen(im, most, &like.inputs[i]));
    return ghp_onnx_emit(im, &like, ghp_onnx_called("outputs"), last);
}

/* The outputs, and the loss on them if there is none. */
static enum ghp_status put_end(struct ghp_onnx_import *im, const struct end *end, int *last)
{
    int layers[GHP_MAX_INPUTS];
    int64_t columns = end->n > 1 ? most_places(im, end) : 0;

    if (columns > 1 && end->loss.op == GHP_OP_SOFTMAX_CE)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the outputs have other positions or pixels than each other, and one loss "
                        "with 'output_weights'; give each its own loss, by 'losses' in the "
                        "metadata 'ghp.loss', or by a list as 'loss' of ghp.export");
    if (end->loss.op != GHP_OP_LOSSES) columns = 0;
    for (int i = 0; i < end->n; i++) {
        im->output = *ghp_onnx_named(im, end->outputs[i]);
        if (end->n > 1 && im->output.base == NULL &&
            im->model.layers[im->output.layer].op == GHP_OP_SOFTMAX_CE)
            return GHP_FAIL(GHP_ERR_INPUT,
                            "a softmax made one of several, and their loss takes logits; export "
                            "the module without it");
        GHP_TRY(put_output(im, &end->loss, columns, last));
        layers[i] = *last;
    }
    if (end->n > 1) GHP_TRY(join_outputs(im, end, layers, last));
    return im->options.open_end ? GHP_OK : put_loss(im, &end->loss, end->name, last);
}

static enum ghp_status finish(struct ghp_onnx_import *im, const struct end *end)
{
    enum ghp_status status;
    int last;

    im->output = *ghp_onnx_named(im, end->outputs[0]);
    if (im->output.base != NULL && im->options.open_end) return GHP_OK;
    status = put_end(im, end, &last);
    if (status == GHP_ERR_INPUT)
        ghp_status_prefix("%s: the output '%.96s' cannot be the network's", im->file->path,
                          im->output.name);
    GHP_TRY(status);
    GHP_TRY(drop_dead(im, last));
    GHP_TRY(ghp_onnx_role_check_held(im));
    return ghp_onnx_share(im);
}

/* Bytes of the UTF-8 character that begins here, or 0 if none does. */
static size_t character_bytes(const unsigned char *at)
{
    size_t n = at[0] < 0x80   ? 1
               : at[0] < 0xc2 ? 0
               : at[0] < 0xe0 ? 2
               : at[0] < 0xf0 ? 3
               : at[0] < 0xf5 ? 4
                              : 0;

    for (size_t i = 1; i < n; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    if (at[0] == 0xe0 && at[1] < 0xa0) return 0; /* longer than it needs to be */
    if (at[0] == 0xf0 && at[1] < 0x90) return 0;
    if (at[0] == 0xed && at[1] >= 0xa0) return 0;  /* half a pair */
    return at[0] == 0xf4 && at[1] >= 0x90 ? 0 : n; /* beyond the last character */
}

/* Descriptions are UTF-8; bytes of a name that are not become _. */
static void make_text(char *name)
{
    while (*name != '\0') {
        size_t n = character_bytes((const unsigned char *)name);

        if (n == 0) *name = '_';
        name += n > 0 ? n : 1;
    }
}

/* The graph's name; of a graph without one of its own, as PyTorch writes it, the file's without folder and ending. */
static char *name_of(const struct ghp_onnx_file *file)
{
    const char *slash = strrchr(file->path, '/'), *base = slash != NULL ? slash + 1 : file->path;
    const char *dot = strrchr(base, '.');

    if (file->name[0] != '\0' && strcmp(file->name, "main_graph") != 0) return strdup(file->name);
    return dot != NULL && dot > base ? strndup(base, (size_t)(dot - base)) : strdup(base);
}

enum ghp_status ghp_onnx_import_graph(const struct ghp_onnx_file *file,
                                      const struct ghp_onnx_options *options,
                                      struct ghp_onnx_import *im)
{
    struct end end = {0};

    *im = (struct ghp_onnx_import){.file = file, .options = *options};
    im->model.name = name_of(file);
    if (im->model.name == NULL) return GHP_NO_MEMORY();
    make_text(im->model.name);
    GHP_TRY(walk(im, &end));
    return finish(im, &end);
}
