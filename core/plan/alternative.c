/* core/plan/alternative.c - names of quantities, and what alternatives own. */
#include "core/plan/alternative.h"

#include <stdlib.h>
#include <string.h>

bool ghp_layer_tells_splits(const struct ghp_layer *layer)
{
    bool sequence = layer->out.axes == GHP_AXES_SEQUENCE;

    return ghp_op_is_weighted(layer->op) || layer->op == GHP_OP_EMBEDDING ||
           layer->op == GHP_OP_ATTENTION || (layer->op == GHP_OP_SOFTMAX_CE && sequence);
}

bool ghp_layer_is_end(const struct ghp_model *model, const struct ghp_layer *layer)
{
    return layer->op == GHP_OP_EMBEDDING ||
           (layer->op == GHP_OP_LINEAR && layer->n_consumers == 1 &&
            model->edges[layer->out_edges[0]].to == model->n_layers - 1);
}

const char *ghp_quantity_name(enum ghp_quantity quantity)
{
    static const char *const names[] = {
#define GHP_QUANTITY_TEXT(id, text, unit, scale) text,
        GHP_QUANTITY_LIST(GHP_QUANTITY_TEXT)
#undef GHP_QUANTITY_TEXT
    };

    return names[quantity];
}

const char *ghp_quantity_unit(enum ghp_quantity quantity)
{
    static const char *const units[] = {
#define GHP_QUANTITY_UNIT(id, text, unit, scale) unit,
        GHP_QUANTITY_LIST(GHP_QUANTITY_UNIT)
#undef GHP_QUANTITY_UNIT
    };

    return units[quantity];
}

double ghp_quantity_scale(enum ghp_quantity quantity)
{
    static const double scales[] = {
#define GHP_QUANTITY_SCALE(id, text, unit, scale) scale,
        GHP_QUANTITY_LIST(GHP_QUANTITY_SCALE)
#undef GHP_QUANTITY_SCALE
    };

    return scales[quantity];
}

void ghp_alternative_splits(const struct ghp_alternative *alternative, const struct ghp_split *own,
                            size_t n_layers, struct ghp_split *splits)
{
    memmove(splits, own, n_layers * sizeof *splits);
    splits[alternative->layer] = alternative->split;
    for (int i = 0; i < alternative->n_changes; i++)
        splits[alternative->changes[i].layer] = alternative->changes[i].split;
}

void ghp_alternative_release(struct ghp_alternative *alternative)
{
    if (alternative == NULL) return;
    free(alternative->changes);
    free(alternative->choices);
    *alternative = (struct ghp_alternative){0};
}
