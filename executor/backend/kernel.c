/* executor/backend/kernel.c - what all backends answer alike: of a prepared pass, and of an update. */
#include "executor/backend/backend_private.h"

#include <math.h>

int64_t ghp_kernel_scratch_bytes(const struct ghp_kernel *kernel)
{
    return kernel->scratch_bytes;
}

const char *ghp_kernel_algorithm(const struct ghp_kernel *kernel)
{
    return kernel->algorithm;
}

double ghp_update_scale(const struct ghp_update *update)
{
    static const double little = 1e-6; /* beside a norm of 0 */
    double scale;

    if (update->squares == NULL) return update->scales ? update->scale : 1;
    scale = update->given.clip_norm / (sqrt(*update->squares) + little);
    return scale < 1 ? scale : 1;
}

void ghp_update_judge(const struct ghp_update *update, double sum)
{
    if (sum != 0) ghp_not_finite_note(update->not_finite, update->step, update->layer);
}

void ghp_not_finite_note(struct ghp_not_finite *found, uint64_t step, int layer)
{
    double nan = NAN;
    uint64_t key = ghp_not_finite_key(step, layer), first;

    if (found == NULL) return;
    first = __atomic_load_n(&found->first, __ATOMIC_RELAXED);
    while (key < first && !__atomic_compare_exchange_n(&found->first, &first, key, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    __atomic_store(&found->poison, &nan, __ATOMIC_RELAXED);
}

const struct ghp_update_kernel *
ghp_update_kernel_find(const struct ghp_update_kernel *const *tables,
                       const struct ghp_optimizer *optimizer)
{
    for (; *tables != NULL; tables++)
        for (const struct ghp_update_kernel *kernel = *tables; kernel->optimizer != NULL; kernel++)
            if (kernel->optimizer == optimizer) return kernel;
    return NULL;
}
