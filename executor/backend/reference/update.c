/* executor/backend/reference/update.c - the optimizer's update, and sums of tensors. Neither has long sums: both are
 * computed in the tensors' own precision, as the formula stands (struct ghp_update), and so agree to the bit with every
 * backend on a processor. */
#include "executor/backend/reference/reference.h"
#include "executor/backend/backend_private.h"

#define UPDATE(number)                                                                             \
    static void update_##number(const struct ghp_update *update)                                   \
    {                                                                                              \
        const number *dw = update->dw;                                                             \
        number *w = update->w, *v = update->v, learning_rate = (number)update->learning_rate,      \
               momentum = (number)update->momentum, weight_decay = (number)update->weight_decay;   \
                                                                                                   \
        for (int64_t i = 0; i < update->elements; i++) {                                           \
            number d = dw[i] + weight_decay * w[i];                                                \
                                                                                                   \
            v[i] = momentum * v[i] + d;                                                            \
            w[i] -= learning_rate * v[i];                                                          \
        }                                                                                          \
    }
UPDATE(float)
UPDATE(double)

enum ghp_status ghp_reference_update(struct ghp_backend *backend, const struct ghp_update *update)
{
    if (backend->config.element_bytes == 4)
        update_float(update);
    else
        update_double(update);
    return GHP_OK;
}

enum ghp_status ghp_reference_accumulate(struct ghp_backend *backend, void *to, const void *from,
                                         struct ghp_buffer_extent extent)
{
    (void)backend;
    for (int64_t i = 0; i < extent.n; i++)
        ghp_reference_put(to, extent.bytes, i,
                          ghp_reference_get(to, extent.bytes, i) +
                              ghp_reference_get(from, extent.bytes, i));
    return GHP_OK;
}
