/* executor/state/tensors.c - see tensors.h. */
#include "executor/state/tensors.h"

#include "core/base/finite.h"

#include <stdlib.h>

/* Appends the layers' parameters that train, or do not, or their running statistics. Ordinals count parameters in layer
 * order, so that what a layer begins with does not depend on which others are fixed. */
static void add_tensors(const struct ghp_model *model, bool trains, bool states,
                        struct ghp_tensors_list *list)
{
    int ordinal = states ? list->n : 0;

    for (int i = 0; i < model->n_layers; i++) {
        const struct ghp_layer *layer = &model->layers[i];
        int n = states ? layer->n_states : layer->n_params;

        for (int slot = 0; slot < n; slot++, ordinal++) {
            if (!states && layer->fixed == trains) continue;
            list->items[list->n++] =
                (struct ghp_tensor){.param = states ? &layer->states[slot] : &layer->params[slot],
                                    .layer = i,
                                    .slot = slot,
                                    .is_state = states,
                                    .trains = trains,
                                    .ordinal = ordinal};
        }
    }
}

enum ghp_status ghp_tensors_list_init(const struct ghp_model *model, struct ghp_tensors_list *list)
{
    size_t most = (size_t)model->n_layers * (GHP_MAX_PARAMS + GHP_MAX_STATES);

    *list = (struct ghp_tensors_list){0};
    list->items = ghp_alloc(most, sizeof *list->items);
    if (list->items == NULL) return GHP_NO_MEMORY();
    add_tensors(model, true, false, list);
    list->n_trained = list->n;
    add_tensors(model, false, false, list);
    add_tensors(model, false, true, list);
    return GHP_OK;
}

enum ghp_buffer_kind ghp_tensor_buffer_kind(const struct ghp_tensor *tensor)
{
    return tensor->is_state ? GHP_BUFFER_STATE : GHP_BUFFER_WEIGHT;
}

void ghp_tensors_release(struct ghp_tensors_list *list)
{
    if (list == NULL) return;
    free(list->items);
    *list = (struct ghp_tensors_list){0};
}

enum ghp_status ghp_tensors_check_finite(const char *path, const char *name, int64_t n, int bytes,
                                         const void *whole)
{
    if (ghp_are_finite(whole, n, bytes)) return GHP_OK;
    return GHP_FAIL(GHP_ERR_FORMAT,
                    "'%s' is of a training that diverged: %lld of %lld numbers of tensor '%s' are "
                    "not finite; take another checkpoint, or other weights",
                    path, (long long)ghp_count_not_finite(whole, n, bytes), (long long)n, name);
}
