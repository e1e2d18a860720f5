/* onnx/loss.c - see loss.h. */
#include "onnx/loss.h"

#include "core/base/json_lines.h"
#include "core/model/attributes.h"
#include "core/model/op.h"

#include <stdio.h>
#include <string.h>

static enum ghp_status read_layer(const struct ghp_node *at, struct ghp_layer *layer,
                                  char name[GHP_ONNX_LOSS_NAME])
{
    const char *losses[GHP_OP_COUNT + 1] = {NULL};
    int n = 0, found = 0;

    for (int i = 0; i < GHP_OP_COUNT; i++)
        if (ghp_op_of((enum ghp_op)i)->is_loss) losses[n++] = ghp_op_name((enum ghp_op)i);
    GHP_TRY(ghp_json_choice(at, "op", losses, &found));
    if (!ghp_op_find(losses[found], &layer->op))
        return GHP_FAIL(GHP_ERR_INTERNAL, "'%s' is not an operation; report this", losses[found]);
    GHP_TRY(ghp_attributes_check_keys(at, ghp_op_of(layer->op)));
    GHP_TRY(ghp_json_opt_text_n(at, "name", name, GHP_ONNX_LOSS_NAME));
    return ghp_attributes_read(at, ghp_op_of(layer->op), layer);
}

/* NULL: the file says nothing of its loss. */
static const char *said(const struct ghp_onnx_file *file)
{
    for (int i = 0; i < file->n_texts; i++)
        if (strcmp(file->texts[i].key, "ghp.loss") == 0) return file->texts[i].value;
    return NULL;
}

bool ghp_onnx_loss_is_said(const struct ghp_onnx_file *file)
{
    return said(file) != NULL;
}

enum ghp_status ghp_onnx_loss_read(const struct ghp_onnx_file *file, struct ghp_layer *layer,
                                   char name[GHP_ONNX_LOSS_NAME])
{
    const char *value = said(file);
    enum ghp_status status;
    struct ghp_json doc;
    struct ghp_node root;

    *layer = (struct ghp_layer){.op = GHP_OP_SOFTMAX_CE, .n_inputs = 1};
    if (value == NULL) value = "loss";
    snprintf(name, GHP_ONNX_LOSS_NAME, "%s", value[0] == '{' ? "loss" : value);
    if (value[0] != '{') return GHP_OK;
    GHP_TRY(ghp_json_parse(value, "ghp.loss", NULL, &doc));
    root = ghp_json_root(&doc);
    status = read_layer(&root, layer, name);
    ghp_json_release(&doc);
    return status;
}

enum ghp_status ghp_onnx_loss_write(const struct ghp_layer *loss, char **text)
{
    bool whole = true;
    struct ghp_json_object at = {json_object(), &whole};
    enum ghp_status status = GHP_OK;

    *text = NULL;
    ghp_attribute_put(at, "name", json_string(loss->name));
    ghp_attribute_put(at, "op", json_string(ghp_op_name(loss->op)));
    ghp_attributes_write(loss, ghp_op_of(loss->op), at);
    if (!whole || at.json == NULL) {
        status = GHP_NO_MEMORY();
    } else if (loss->op == GHP_OP_SOFTMAX_CE && json_object_size(at.json) == 2) {
        *text = strdup(loss->name);
        if (*text == NULL) status = GHP_NO_MEMORY();
    } else {
        status = ghp_json_compact(at.json, text);
    }
    json_decref(at.json);
    return status;
}
