/* core/model/statistics.c - see model/statistics.h. */
#include "core/model/statistics.h"

#include "core/base/json.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char op_name[] = "batch_norm";

const struct ghp_layer *ghp_model_batch_norm(const struct ghp_model *model)
{
    for (int v = 0; v < model->n_layers; v++)
        if (ghp_op_of(model->layers[v].op)->has_batch_statistics) return &model->layers[v];
    return NULL;
}

bool ghp_model_has_global_statistics(const struct ghp_model *model)
{
    for (int v = 0; v < model->n_layers; v++) {
        const struct ghp_layer *layer = &model->layers[v];

        if (ghp_op_of(layer->op)->has_batch_statistics &&
            (layer->norm.local_stats || layer->norm.ghost_batch > 0))
            return false;
    }
    return ghp_model_batch_norm(model) != NULL;
}

enum ghp_status ghp_statistics_parse(const char *option, char text[GHP_STATISTICS_TEXT_SIZE])
{
    char *end = NULL;
    long long samples = option[0] >= '1' && option[0] <= '9' ? strtoll(option, &end, 10) : 0;

    snprintf(text, GHP_STATISTICS_TEXT_SIZE, "%s", option);
    if (strcmp(option, "local") == 0 || strcmp(option, "global") == 0) return GHP_OK;
    if (end == NULL || *end != '\0' || samples > GHP_MODEL_SIZE)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "cannot read '%s'; give local, global, or the number of samples that share "
                        "statistics, such as 32",
                        option);
    snprintf(text, GHP_STATISTICS_TEXT_SIZE, "local:%lld", samples);
    return GHP_OK;
}

const char *ghp_statistics_format(const struct ghp_layer *layer,
                                  char text[GHP_STATISTICS_TEXT_SIZE])
{
    if (layer->norm.ghost_batch > 0)
        snprintf(text, GHP_STATISTICS_TEXT_SIZE, "local:%" PRId64, layer->norm.ghost_batch);
    else
        snprintf(text, GHP_STATISTICS_TEXT_SIZE, "%s",
                 layer->norm.local_stats ? "local" : "global");
    return text;
}

/* Sets the key of every batch norm in a description; "global" is what a layer without the key has. */
static enum ghp_status set_keys(json_t *root, const char *statistics)
{
    static const char key[] = "statistics";
    json_t *layer;
    size_t i;

    json_array_foreach(json_object_get(root, "layers"), i, layer)
    {
        const char *op = json_string_value(json_object_get(layer, "op"));

        if (op == NULL || strcmp(op, op_name) != 0) continue;
        if (strcmp(statistics, "global") == 0)
            json_object_del(layer, key);
        else if (json_object_set_new(layer, key, json_string(statistics)) != 0)
            return GHP_NO_MEMORY();
    }
    return GHP_OK;
}

enum ghp_status ghp_model_set_statistics(struct ghp_model *model, const char *statistics)
{
    json_t *root = ghp_json_value_of(model->text);
    enum ghp_status status = root == NULL ? GHP_NO_MEMORY() : set_keys(root, statistics);

    if (status == GHP_OK) status = ghp_model_replace_by(model, root);
    json_decref(root);
    return status;
}
