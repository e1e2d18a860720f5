/* executor/backend/cpu/update/update_lion.c - the update of core/optimizer/lion.c. */
#include "executor/backend/cpu/kernels_cpu.h"

/* A momentum that is not finite has no sign and moves no weight: it tells by itself. */
static float update_float(const struct ghp_update *update, struct ghp_range at)
{
    const struct ghp_hyperparameters *h = &update->given;
    const double decay = update->decays ? h->weight_decay : 0;
    float *w = update->w, *m = update->moment[0];
    const float *dw = update->dw;
    float beta1 = (float)h->beta1, rest1 = (float)(1 - h->beta1);
    float beta2 = (float)h->beta2, rest2 = (float)(1 - h->beta2);
    float rate = (float)h->learning_rate, kept = (float)(1 - h->learning_rate * decay);
    float scale = (float)ghp_update_scale(update), off = 0;
#pragma omp simd reduction(+ : off)
    for (int64_t i = at.first; i < at.end; i++) {
        float d = scale * dw[i], before = m[i];
        float mean = beta1 * before + rest1 * d, after = beta2 * before + rest2 * d;
        float moved = kept * w[i] - rate * (float)((mean > 0) - (mean < 0));
        m[i] = after;
        w[i] = moved;
        off += (moved - moved) + (after - after);
    }
    return off;
}

const struct ghp_update_kernel ghp_cpu_update_lion[] = {
    {.optimizer = &ghp_optimizer_lion, .run_float = update_float}, {.optimizer = NULL}};
