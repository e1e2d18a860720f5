/* executor/backend/kernel.c - what all backends answer alike: of a prepared pass, and of an update. */
#include "executor/backend/backend_private.h"

#include <math.h>
#include <stdlib.h>

int64_t ghp_kernel_scratch_bytes(const struct ghp_kernel *kernel)
{
    return kernel->scratch_bytes;
}

const char *ghp_kernel_algorithm(const struct ghp_kernel *kernel)
{
    return kernel->algorithm;
}

enum ghp_status ghp_kernel_prepare_turned(const struct ghp_backend_ops *ops,
                                          struct ghp_backend *backend,
                                          const struct ghp_local *local, enum ghp_pass pass,
                                          struct ghp_kernel **kernel)
{
    static const enum ghp_pass passes[GHP_PASS_COUNT] = {
        [GHP_PASS_FORWARD] = GHP_PASS_BACKWARD_DATA,
        [GHP_PASS_BACKWARD_DATA] = GHP_PASS_FORWARD,
        [GHP_PASS_BACKWARD_WEIGHT] = GHP_PASS_BACKWARD_WEIGHT};
    struct ghp_kernel *made = ghp_alloc(1, sizeof *made);
    struct ghp_local conv = *local;
    enum ghp_status status;

    if (made == NULL) return GHP_NO_MEMORY();
    *made = (struct ghp_kernel){.backend = backend, .local = *local, .pass = pass, .parts = 1};
    conv.op = GHP_OP_CONV2D;
    conv.c = local->k;
    conv.h = local->p;
    conv.w = local->q;
    conv.k = local->c;
    conv.p = local->h;
    conv.q = local->w;
    status = ops->prepare(backend, &conv, passes[pass], &made->turned);
    if (status != GHP_OK) {
        free(made);
        return status;
    }
    made->scratch_bytes = ops->scratch_bytes(made->turned);
    made->algorithm = ops->algorithm(made->turned);
    *kernel = made;
    return GHP_OK;
}

struct ghp_kernel_arguments ghp_kernel_arguments_turned(const struct ghp_kernel_arguments *args)
{
    struct ghp_kernel_arguments turned = *args;

    turned.at.x[0] = args->at.dy;
    turned.at.dy = (void *)(uintptr_t)args->at.x[0];
    turned.at.dx[0] = args->at.y;
    turned.at.y = args->at.dx[0];
    return turned;
}

double ghp_update_scale(const struct ghp_update *update)
{
    static const double little = 1e-6; /* added to a norm that may be 0 */
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
