/* executor/backend/cpu/update/update_sgd.c - the update of core/optimizer/sgd.c. */
#include "executor/backend/cpu/kernels_cpu.h"

/* A speed that is not finite makes its weight so, by a rate of 0 too: weights alone tell. */
static float update_float(const struct ghp_update *update, struct ghp_range at)
{
    const struct ghp_hyperparameters *h = &update->given;
    float *w = update->w, *v = update->moment[0];
    const float *dw = update->dw;
    float rate = (float)h->learning_rate, momentum = (float)h->momentum;
    float decay = (float)(update->decays ? h->weight_decay : 0);
    float scale = (float)ghp_update_scale(update), off = 0;
#pragma omp simd reduction(+ : off)
    for (int64_t i = at.first; i < at.end; i++) {
        float speed = momentum * v[i] + (scale * dw[i] + decay * w[i]);
        v[i] = speed;
        float moved = w[i] - rate * speed;
        w[i] = moved;
        off += moved - moved;
    }
    return off;
}

const struct ghp_update_kernel ghp_cpu_update_sgd[] = {
    {.optimizer = &ghp_optimizer_sgd, .run_float = update_float}, {.optimizer = NULL}};
