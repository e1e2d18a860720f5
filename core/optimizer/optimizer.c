/* core/optimizer/optimizer.c - all optimizers, by name. */
#include "core/optimizer/optimizer.h"

#include "core/base/status.h"
#include "core/model/model.h"

#include <string.h>

static const struct ghp_optimizer *const all[GHP_OPTIMIZERS] = {
#define GHP_OPTIMIZER_ROW(name) &ghp_optimizer_##name,
    GHP_OPTIMIZER_LIST(GHP_OPTIMIZER_ROW)
#undef GHP_OPTIMIZER_ROW
};

const char *const ghp_optimizer_names[GHP_OPTIMIZERS + 1] = {
#define GHP_OPTIMIZER_NAME(name) #name,
    GHP_OPTIMIZER_LIST(GHP_OPTIMIZER_NAME)
#undef GHP_OPTIMIZER_NAME
        NULL};

const struct ghp_optimizer *ghp_optimizer_at(int index)
{
    GHP_ASSERT(index >= 0 && index < GHP_OPTIMIZERS);
    return all[index];
}

int ghp_optimizer_index(const struct ghp_optimizer *optimizer)
{
    int index = 0;

    while (optimizer != NULL && index < GHP_OPTIMIZERS && all[index] != optimizer)
        index++;
    GHP_ASSERT(index < GHP_OPTIMIZERS);
    return index;
}

bool ghp_optimizer_decays(const struct ghp_optimizer *optimizer, const struct ghp_layer *layer,
                          int slot)
{
    return layer->params[slot].n_dims >= optimizer->decay_dims && !layer->params[slot].undecayed;
}

double *ghp_optimizer_find(const struct ghp_optimizer *optimizer, const char *name,
                           struct ghp_hyperparameters *hyperparameters)
{
    for (const struct ghp_hyperparameter *h = optimizer->hyperparameters; h->name != NULL; h++)
        if (strcmp(h->name, name) == 0)
            return (double *)(void *)((char *)hyperparameters + h->offset);
    return NULL;
}

struct ghp_hyperparameters ghp_optimizer_usual(const struct ghp_optimizer *optimizer)
{
    struct ghp_hyperparameters usual = {.learning_rate = optimizer->usual_rate};

    for (const struct ghp_hyperparameter *h = optimizer->hyperparameters; h->name != NULL; h++)
        *ghp_optimizer_find(optimizer, h->name, &usual) = h->usual;
    return usual;
}
