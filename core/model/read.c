/* core/model/read.c - the reader of models/NAME.json: layers in order, and names resolved to layers.
 *
 * Knows no shape rule (model/shape.c does) and no operation's keys (model/attributes.h), but completes each layer as
 * it is read, so that an error of the shape chain points at the layer's line. */
#include "core/base/hash.h"
#include "core/base/json_lines.h"
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"
#include "core/model/padding.h"

#include <stdlib.h>
#include <string.h>

#define FORMAT "ghp.model/1"

enum { MAX_LAYERS = 1 << 16 };

/* What one name in the file stands for: the last layer made from it (a biased convolution is two). */
struct reader {
    struct ghp_model *model;
    int max_layers;
    json_t *names; /* of the layers so far, each with its index */
    int *heads;    /* per layer: the layer its name means when read as an input */
    size_t *item;  /* per layer: the item of `layers` it was made from */
    size_t now;    /* item being read */
};

/* The layer of a name among those so far, or -1. */
static int find_layer(const struct reader *reader, const char *name)
{
    const json_t *index = json_object_get(reader->names, name);

    return index != NULL ? (int)json_integer_value(index) : -1;
}

/* A further layer, zeroed but for its name; reader->heads names it. */
static enum ghp_status add_layer(struct reader *reader, const char *name, struct ghp_layer **layer)
{
    struct ghp_model *model = reader->model;

    GHP_ASSERT(model->n_layers < reader->max_layers);
    *layer = &model->layers[model->n_layers];
    (*layer)->name = strdup(name);
    if ((*layer)->name == NULL ||
        json_object_set_new(reader->names, name, json_integer(model->n_layers)) != 0) {
        free((*layer)->name);
        (*layer)->name = NULL;
        return GHP_NO_MEMORY();
    }
    reader->heads[model->n_layers] = model->n_layers;
    reader->item[model->n_layers] = reader->now;
    model->n_layers++;
    return GHP_OK;
}

/* Names are letters, digits and _ - . /, so that they can be file keys and parts of option values. */
static enum ghp_status read_name(const struct ghp_node *at, const struct reader *reader,
                                 char **name)
{
    struct ghp_node node;
    const char *text;

    GHP_TRY(ghp_json_text(at, "name", name));
    GHP_TRY(ghp_json_get(at, "name", &node));
    text = *name;
    if (text[0] == '\0' || strlen(text) > GHP_MAX_NAME ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") !=
            strlen(text))
        return ghp_json_fail(&node, GHP_ERR_INPUT,
                             "'%.96s' is not a valid name; use 1 to %d letters, digits and _ - . /",
                             text, GHP_MAX_NAME);
    if (find_layer(reader, text) >= 0)
        return ghp_json_fail(&node, GHP_ERR_INPUT, "the name '%s' is taken; choose another", text);
    return GHP_OK;
}

static enum ghp_status read_inputs(const struct ghp_node *at, const struct reader *reader,
                                   struct ghp_layer *layer)
{
    const struct ghp_model *model = reader->model;
    struct ghp_node inputs, item;
    size_t n;

    if (!ghp_json_has(at, "inputs")) {
        layer->n_inputs = 1;
        layer->inputs[0] = model->n_layers - 2; /* the layer before this one */
        return GHP_OK;
    }
    GHP_TRY(ghp_json_array(at, "inputs", &inputs, &n));
    if (n < 1 || n > GHP_MAX_INPUTS)
        return ghp_json_fail(&inputs, GHP_ERR_INPUT, "there are %zu inputs; name 1 to %d", n,
                             GHP_MAX_INPUTS);
    for (size_t i = 0; i < n; i++) {
        const char *name;
        int found;

        GHP_TRY(ghp_json_item(&inputs, i, &item));
        name = json_string_value(item.value);
        found = name != NULL ? find_layer(reader, name) : -1;
        if (found < 0 || found == model->n_layers - 1)
            return ghp_json_fail(
                &item, GHP_ERR_INPUT,
                "there is no layer '%s' before this one; name an earlier layer or 'input'",
                name != NULL ? name : "(no text)");
        layer->inputs[i] = reader->heads[found];
    }
    layer->n_inputs = (int)n;
    return GHP_OK;
}

/* The layer whose parameters this one uses. */
static enum ghp_status read_tied(const struct ghp_node *at, const struct reader *reader,
                                 struct ghp_layer *layer)
{
    struct ghp_node node;
    char *name = NULL;

    GHP_TRY(ghp_json_opt_text(at, "tied", &name));
    if (name == NULL) return GHP_OK;
    layer->tied = 1 + find_layer(reader, name);
    free(name);
    if (layer->tied > 0 && layer->tied != reader->model->n_layers) return GHP_OK;
    GHP_TRY(ghp_json_get(at, "tied", &node));
    return ghp_json_fail(&node, GHP_ERR_INPUT,
                         "there is no such layer before this one; name an earlier layer with "
                         "parameters");
}

/* The bias that some operations have unless told otherwise, as a layer of its own. */
static enum ghp_status add_bias(const struct ghp_node *at, struct reader *reader)
{
    int owner = reader->model->n_layers - 1;
    enum ghp_op op = reader->model->layers[owner].op;
    bool bias = ghp_op_of(op)->has_bias;
    struct ghp_layer *layer;
    char name[GHP_MAX_NAME + sizeof ".bias"];

    if (!bias) return GHP_OK;
    GHP_TRY(ghp_json_opt_bool(at, "bias", &bias));
    if (!bias) return GHP_OK;
    snprintf(name, sizeof name, "%s.bias", reader->model->layers[owner].name);
    if (find_layer(reader, name) >= 0)
        return ghp_json_fail(at, GHP_ERR_INPUT,
                             "the name '%s' is taken, but this layer's bias needs it; rename one",
                             name);
    GHP_TRY(add_layer(reader, name, &layer));
    layer->op = GHP_OP_BIAS;
    layer->fixed = reader->model->layers[owner].fixed;
    layer->n_inputs = 1;
    layer->inputs[0] = owner;
    layer->tied = ghp_model_tied_bias(reader->model, owner);
    reader->heads[owner] = owner + 1;
    return ghp_model_complete_layer(reader->model, owner + 1);
}

static enum ghp_status read_layer(const struct ghp_node *at, struct reader *reader)
{
    const char *ops[GHP_OP_COUNT] = {NULL};
    struct ghp_layer *layer;
    enum ghp_status status;
    char *name = NULL;
    int op = 0;

    for (int i = 1; i < GHP_OP_COUNT; i++) /* the input layer is not written */
        ops[i - 1] = ghp_op_name((enum ghp_op)i);
    GHP_TRY(ghp_json_choice(at, "op", ops, &op));
    op++;
    GHP_TRY(ghp_attributes_check_keys(at, ghp_op_of((enum ghp_op)op)));
    GHP_TRY_GOTO(status, read_name(at, reader, &name), out);
    GHP_TRY_GOTO(status, add_layer(reader, name, &layer), out);
    layer->op = (enum ghp_op)op;
    GHP_TRY_GOTO(status, read_inputs(at, reader, layer), out);
    layer->in = reader->model->layers[layer->inputs[0]].out;
    GHP_TRY_GOTO(status, ghp_attributes_read(at, ghp_op_of(layer->op), layer), out);
    GHP_TRY_GOTO(status, read_tied(at, reader, layer), out);
    status = ghp_model_complete_layer(reader->model, reader->model->n_layers - 1);
    if (status != GHP_OK) {
        status = ghp_json_fail(at, status, "%s", ghp_status_message());
        goto out;
    }
    status = add_bias(at, reader);

out:
    free(name);
    return status;
}

static enum ghp_status read_input(const struct ghp_node *root, struct reader *reader)
{
    static const char *const keys[] = {"channels",  "height",     "width",
                                       "positions", "vocabulary", NULL};
    struct ghp_shape out = {.c = 1, .h = 1, .w = 1};
    struct ghp_layer *layer;
    enum ghp_status status;
    struct ghp_node at;

    GHP_TRY(ghp_json_get(root, "input", &at));
    GHP_TRY(ghp_json_only_keys(&at, keys));
    GHP_TRY(add_layer(reader, "input", &layer));
    layer->op = GHP_OP_INPUT;
    if (ghp_json_has(&at, "vocabulary"))
        GHP_TRY(ghp_json_int(&at, "vocabulary", 1, GHP_MODEL_CHANNELS, &out.vocabulary));
    else
        GHP_TRY(ghp_json_int(&at, "channels", 1, GHP_MODEL_CHANNELS, &out.c));
    GHP_TRY(ghp_json_opt_int(&at, "height", 1, GHP_MODEL_SIZE, &out.h));
    GHP_TRY(ghp_json_opt_int(&at, "width", 1, GHP_MODEL_SIZE, &out.w));
    if (ghp_json_has(&at, "positions")) {
        if (ghp_json_has(&at, "height") || ghp_json_has(&at, "width"))
            return ghp_json_fail(&at, GHP_ERR_INPUT,
                                 "an input has positions, or height and width; leave one out");
        GHP_TRY(ghp_json_int(&at, "positions", 1, GHP_MODEL_SIZE, &out.h));
        out.axes = GHP_AXES_SEQUENCE;
    }
    if (out.vocabulary > 0 && (out.axes != GHP_AXES_SEQUENCE || ghp_json_has(&at, "channels")))
        return ghp_json_fail(&at, GHP_ERR_INPUT,
                             "an input with a vocabulary has positions and no channels");
    layer->out = out;
    status = ghp_model_complete_layer(reader->model, 0);
    return status == GHP_OK ? GHP_OK : ghp_json_fail(&at, status, "%s", ghp_status_message());
}

static enum ghp_status read_layers(const struct ghp_node *root, struct reader *reader)
{
    struct ghp_node layers, item;
    enum ghp_status status;
    size_t n;
    int wrong;

    GHP_TRY(ghp_json_array(root, "layers", &layers, &n));
    if (n < 1 || n > MAX_LAYERS)
        return ghp_json_fail(&layers, GHP_ERR_INPUT, "there are %zu layers; give 1 to %d", n,
                             MAX_LAYERS);
    reader->max_layers = 1 + 2 * (int)n;
    reader->model->layers = ghp_alloc((size_t)reader->max_layers, sizeof *reader->model->layers);
    reader->heads = ghp_alloc((size_t)reader->max_layers, sizeof *reader->heads);
    reader->item = ghp_alloc((size_t)reader->max_layers, sizeof *reader->item);
    if (reader->model->layers == NULL || reader->heads == NULL || reader->item == NULL)
        return GHP_NO_MEMORY();
    GHP_TRY(read_input(root, reader));
    for (size_t i = 0; i < n; i++) {
        reader->now = i;
        GHP_TRY(ghp_json_item(&layers, i, &item));
        GHP_TRY(read_layer(&item, reader));
    }
    status = ghp_model_connect(reader->model, &wrong);
    if (status == GHP_ERR_INPUT) {
        char message[512];

        snprintf(message, sizeof message, "%s", ghp_status_message());
        item = *root;
        if (wrong > 0) GHP_TRY(ghp_json_item(&layers, reader->item[wrong], &item));
        status = ghp_json_fail(&item, status, "%s", message);
    }
    return status;
}

/* The description as one line, and its hash. */
static enum ghp_status keep_text(const struct ghp_node *at, struct ghp_model *model)
{
    char *named = NULL;

    GHP_TRY(ghp_json_compact(at->value, &model->text));
    GHP_TRY(ghp_vocabulary_left_out(at->value, &named));
    model->hash = ghp_hash(named, strlen(named), GHP_HASH_SEED);
    free(named);
    return GHP_OK;
}

enum ghp_status ghp_model_read(const struct ghp_node *at, struct ghp_model *model)
{
    static const char *const keys[] = {"format",           "name", "input", "layers",
                                       ghp_vocabulary_key, NULL};
    static const char *const memory_formats[] = {FORMAT, NULL};
    struct reader reader = {.model = model, .names = json_object()};
    enum ghp_status status;
    int format;

    *model = (struct ghp_model){0};
    GHP_TRY_GOTO(status, ghp_json_only_keys(at, keys), out);
    GHP_TRY_GOTO(status, ghp_json_choice(at, "format", memory_formats, &format), out);
    GHP_TRY_GOTO(status, ghp_json_text(at, "name", &model->name), out);
    GHP_TRY_GOTO(status, ghp_vocabulary_read(at, &model->vocabulary_multiple), out);
    GHP_TRY_GOTO(status, read_layers(at, &reader), out);
    status = keep_text(at, model);

out:
    json_decref(reader.names);
    free(reader.heads);
    free(reader.item);
    if (status != GHP_OK) ghp_model_release(model);
    return status;
}

/* Reads the loaded document and releases it. */
static enum ghp_status read_document(struct ghp_json *doc, struct ghp_model *model)
{
    struct ghp_node root = ghp_json_root(doc);
    enum ghp_status status = ghp_model_read(&root, model);

    ghp_json_release(doc);
    return status;
}

enum ghp_status ghp_model_load(const char *path, struct ghp_model *model)
{
    struct ghp_json doc;

    *model = (struct ghp_model){0};
    GHP_TRY(ghp_json_load(path, FORMAT, &doc));
    return read_document(&doc, model);
}

enum ghp_status ghp_model_parse_from(const char *text, const char *name,
                                     const struct ghp_json_origin *origin, struct ghp_model *model)
{
    struct ghp_json doc;

    *model = (struct ghp_model){0};
    GHP_TRY(ghp_json_parse(text, name, FORMAT, &doc));
    doc.origin = origin;
    return read_document(&doc, model);
}

enum ghp_status ghp_model_parse(const char *text, const char *name, struct ghp_model *model)
{
    return ghp_model_parse_from(text, name, NULL, model);
}

enum ghp_status ghp_model_parse_value(const json_t *description, const char *name,
                                      struct ghp_model *model)
{
    char *text = NULL;
    enum ghp_status status = ghp_json_compact(description, &text);

    if (status == GHP_OK) status = ghp_model_parse(text, name, model);
    free(text);
    return status;
}

enum ghp_status ghp_model_replace(struct ghp_model *model, const char *text)
{
    struct ghp_model changed;

    GHP_TRY(ghp_model_parse(text, model->name, &changed));
    ghp_model_release(model);
    *model = changed;
    return GHP_OK;
}

enum ghp_status ghp_model_replace_by(struct ghp_model *model, const json_t *description)
{
    struct ghp_model changed;

    GHP_TRY(ghp_model_parse_value(description, model->name, &changed));
    ghp_model_release(model);
    *model = changed;
    return GHP_OK;
}
