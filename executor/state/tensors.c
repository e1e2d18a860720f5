/* executor/state/tensors.c - see tensors.h. */
#include "executor/state/tensors.h"

#include "core/base/finite.h"

#include <stdlib.h>

enum ghp_status ghp_tensors_list(const struct ghp_model *model, struct ghp_tensors_list *list)
{
    size_t most = (size_t)model->n_layers * (GHP_MAX_PARAMS + GHP_MAX_STATES);

    *list = (struct ghp_tensors_list){0};
    list->items = ghp_alloc(most, sizeof *list->items);
    if (list->items == NULL) return GHP_NO_MEMORY();
    for (int state = 0; state < 2; state++) {
        for (int i = 0; i < model->n_layers; i++) {
            const struct ghp_layer *layer = &model->layers[i];
            int n = state ? layer->n_states : layer->n_params;

            for (int slot = 0; slot < n; slot++) {
                struct ghp_tensor *t = &list->items[list->n];

                *t = (struct ghp_tensor){.param =
                                             state ? &layer->states[slot] : &layer->params[slot],
                                         .layer = i,
                                         .slot = slot,
                                         .is_state = state == 1,
                                         .ordinal = list->n};
                list->n++;
            }
        }
        if (!state) list->n_params = list->n;
    }
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
