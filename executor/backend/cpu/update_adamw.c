/* executor/backend/cpu/update_adamw.c - the update of core/optimizer/adamw.c. Roots are an instruction, not a call that
 * may set errno.
 *
 * ghp-options: -fno-math-errno */
#include "executor/backend/cpu/kernels_cpu.h"

#include <math.h>

static float update_float(const struct ghp_update *update, struct ghp_range at)
{
    const struct ghp_hyperparameters *h = &update->given;
    const double decay = update->decays ? h->weight_decay : 0;
    float *w = update->w, *m = update->moment[0], *v = update->moment[1];
    const float *dw = update->dw;
    float beta1 = (float)h->beta1, rest1 = (float)(1 - h->beta1);
    float beta2 = (float)h->beta2, rest2 = (float)(1 - h->beta2);
    float kept = (float)(1 - h->learning_rate * decay);
    float length = (float)(h->learning_rate / h->correction1);
    float stretch = (float)(1 / sqrt(h->correction2)), epsilon = (float)h->epsilon;
    float scale = (float)ghp_update_scale(update), off = 0;
#pragma omp simd reduction(+ : off)
    for (int64_t i = at.first; i < at.end; i++) {
        float d = scale * dw[i];
        float first = beta1 * m[i] + rest1 * d;
        float second = beta2 * v[i] + rest2 * d * d;
        m[i] = first;
        v[i] = second;
        float moved = kept * w[i] - length * (first / (sqrtf(second) * stretch + epsilon));
        w[i] = moved;
        off += (moved - moved) + (second - second);
    }
    return off;
}

const struct ghp_update_kernel ghp_cpu_update_adamw[] = {{&ghp_optimizer_adamw, update_float, NULL},
                                                         {.optimizer = NULL}};
