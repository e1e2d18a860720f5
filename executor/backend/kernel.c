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

enum ghp_status ghp_update_kernel_find(const struct ghp_update_kernel *const *tables,
                                       const struct ghp_update *update,
                                       const struct ghp_update_kernel **kernel)
{
    for (; *tables != NULL; tables++)
        for (*kernel = *tables; (*kernel)->optimizer != NULL; (*kernel)++)
            if ((*kernel)->optimizer == update->optimizer) return GHP_OK;
    return GHP_FAIL(GHP_ERR_BACKEND, "the backend has no update by '%s'; plan with --optimizer sgd",
                    update->optimizer->name);
}
