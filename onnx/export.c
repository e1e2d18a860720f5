/* onnx/export.c - writes a network as an ONNX graph: a node for each layer, called as the layer. */
#include "core/base/json.h"
#include "core/model/op.h"
#include "onnx/loss.h"
#include "onnx/onnx.h"
#include "onnx/operator/operator.h"

#include <stdlib.h>

enum { OPSET = 13 }; /* at least */

/* Axes of the tensor that a shape is, with the batch: a sequence has its channels last, token ids have none. */
static int rank_of(struct ghp_shape shape)
{
    if (shape.vocabulary > 0) return 2;
    return shape.axes == GHP_AXES_SEQUENCE ? 3 : shape.axes == GHP_AXES_VECTOR ? 2 : 4;
}

static struct ghp_onnx_value value_of(const char *name, struct ghp_shape s)
{
    struct ghp_onnx_value value = {
        .name = name, .type = GHP_ONNX_FLOAT, .n_dims = rank_of(s), .dims = {-1, s.c, s.h, s.w}};

    if (s.vocabulary > 0) value.type = GHP_ONNX_INT64;
    if (s.axes == GHP_AXES_SEQUENCE) {
        value.dims[1] = s.h;
        value.dims[2] = s.c;
    }
    return value;
}

static enum ghp_status put_layer(struct ghp_onnx_export *ex, int i)
{
    const struct ghp_layer *l = &ex->model->layers[i];
    const struct ghp_op_facts *facts = ghp_op_of(l->op);
    const struct ghp_onnx_operator *row = ghp_onnx_operator_of(l->op);

    ex->names[i] = l->name;
    ex->ranks[i] = l->n_inputs > 0 ? ex->ranks[l->inputs[0]] : rank_of(l->out);
    /* the network's two ends do not become nodes */
    if (facts->is_input || facts->is_loss) return GHP_OK;
    if (row == NULL)
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "layer '%.96s' cannot be written as ONNX, for ghp has no ONNX operation for "
            "'%s'; keep the network as a model file",
            l->name, ghp_op_name(l->op));
    ghp_export_since(ex, row->since);
    return row->write(ex, i);
}

static enum ghp_status make_room(struct ghp_onnx_export *ex)
{
    size_t layers = (size_t)ex->model->n_layers;

    /* a view has 8, attention within windows 17 */
    ex->max_nodes = (int)(layers * 18 + (size_t)ex->model->n_edges);
    ex->max_tensors = (int)(layers * 16 + (size_t)ex->model->n_edges);
    ex->file.nodes = ghp_export_keep(ex, (size_t)ex->max_nodes, sizeof *ex->file.nodes);
    ex->file.tensors = ghp_export_keep(ex, (size_t)ex->max_tensors, sizeof *ex->file.tensors);
    ex->file.inputs = ghp_export_keep(ex, 2, sizeof *ex->file.inputs);
    ex->file.texts = ghp_export_keep(ex, 3, sizeof *ex->file.texts);
    ex->names = ghp_export_keep(ex, layers, sizeof *ex->names);
    ex->ranks = ghp_export_keep(ex, layers, sizeof *ex->ranks);
    return ex->failed ? GHP_NO_MEMORY() : GHP_OK;
}

/* Whether a reader has to be told what is trained: not all is, or a file computes with it. */
static bool names_parameters(const struct ghp_model *model)
{
    for (int i = 0; i < model->n_layers; i++)
        if ((model->layers[i].fixed && model->layers[i].n_params > 0) ||
            model->layers[i].op == GHP_OP_WINDOW_ATTENTION)
            return true;
    return false;
}

/* The names of what is trained, as JSON in the metadata, if a reader has to be told. A file without weights has no
 * tensors that could be named. */
static enum ghp_status put_parameters(struct ghp_onnx_export *ex, char **text)
{
    const struct ghp_model *model = ex->model;
    json_t *names;
    bool failed = false;

    if (ex->weights == NULL || !names_parameters(model)) return GHP_OK;
    names = json_array();
    for (int i = 0; i < model->n_layers; i++)
        for (int k = 0; k < model->layers[i].n_params && !model->layers[i].fixed; k++)
            ghp_json_append(names, json_string(model->layers[i].params[k].name), &failed);
    *text = failed ? NULL : ghp_json_line_of(names);
    json_decref(names);
    if (*text == NULL) return GHP_NO_MEMORY();
    ex->file.texts[ex->file.n_texts++] = (struct ghp_onnx_metadatum){"ghp.parameters", *text};
    return GHP_OK;
}

/* The ratios of weights that attentions drop, by their names, as JSON in the metadata, if there are some. */
static enum ghp_status put_dropout(struct ghp_onnx_export *ex, char **text)
{
    const struct ghp_model *model = ex->model;
    json_t *ratios = json_object();
    bool failed = ratios == NULL;

    for (int i = 0; i < model->n_layers; i++)
        if (model->layers[i].heads.dropout > 0)
            ghp_json_put(ratios, model->layers[i].name, json_real(model->layers[i].heads.dropout),
                         &failed);
    if (json_object_size(ratios) > 0 && !failed) *text = ghp_json_line_of(ratios);
    failed = failed || (json_object_size(ratios) > 0 && *text == NULL);
    json_decref(ratios);
    if (failed) return GHP_NO_MEMORY();
    if (*text != NULL)
        ex->file.texts[ex->file.n_texts++] =
            (struct ghp_onnx_metadatum){GHP_ONNX_ATTENTION_DROPOUT, *text};
    return GHP_OK;
}

/* text: of the file's metadata, the loss */
static void put_ends(struct ghp_onnx_export *ex, const char *text)
{
    const struct ghp_layer *in = &ex->model->layers[0];
    const struct ghp_layer *loss = &ex->model->layers[ex->model->n_layers - 1];

    ex->file.inputs[0] = value_of(in->name, in->out);
    ex->file.outputs = ex->file.inputs + 1;
    ex->file.outputs[0] =
        value_of(ghp_export_ranked(ex, loss->inputs[0], rank_of(loss->in), loss->name), loss->in);
    ex->file.n_inputs = ex->file.n_outputs = ex->file.n_texts = 1;
    ex->file.texts[0] = (struct ghp_onnx_metadatum){"ghp.loss", text};
}

enum ghp_status ghp_onnx_save(const char *path, const struct ghp_model *model,
                              const struct ghp_onnx_weights *weights)
{
    struct ghp_onnx_export ex = {
        .model = model, .weights = weights, .file = {.name = model->name, .opset = OPSET}};
    enum ghp_status status = make_room(&ex);
    char *loss = NULL, *parameters = NULL, *dropout = NULL;

    for (int i = 0; status == GHP_OK && i < model->n_layers; i++)
        status = put_layer(&ex, i);
    if (status == GHP_OK) status = ghp_onnx_loss_write(&model->layers[model->n_layers - 1], &loss);
    if (status == GHP_OK) put_ends(&ex, loss);
    if (status == GHP_OK) status = put_parameters(&ex, &parameters);
    if (status == GHP_OK) status = put_dropout(&ex, &dropout);
    if (status == GHP_OK && ex.failed) status = GHP_NO_MEMORY();
    if (status == GHP_OK) status = ghp_onnx_file_save(path, &ex.file);
    free(loss);
    free(parameters);
    free(dropout);
    while (ex.blocks != NULL) {
        struct export_block *next = ex.blocks->next;

        free(ex.blocks);
        ex.blocks = next;
    }
    return status;
}
