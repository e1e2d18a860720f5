/* executor/backend/cpu/update/update_adamw.c - the update of core/optimizer/adamw.c. Roots are an instruction, not a
 * call that may set errno.
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

/* ---- in two halves ---- */

/* The direction of element i: m' / (sqrt(v') + epsilon) + decay w. */
static float direction(const struct ghp_update *update, int64_t i)
{
    const struct ghp_hyperparameters *h = &update->given;
    float m = ((const float *)update->moment[0])[i] / (float)h->correction1;
    float v = ((const float *)update->moment[1])[i] / (float)h->correction2;
    float decay = (float)(update->decays ? h->weight_decay : 0);
    return m / (sqrtf(v) + (float)h->epsilon) + decay * ((const float *)update->w)[i];
}

static void direct_float(const struct ghp_update *update, const struct ghp_direction_squares *to)
{
    float *m = update->moment[0], *v = update->moment[1];
    const float *dw = update->dw;
    float beta1 = (float)update->given.beta1, beta2 = (float)update->given.beta2;
    for (int64_t i = 0; i < update->elements; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * dw[i];
        v[i] = beta2 * v[i] + (1 - beta2) * dw[i] * dw[i];
    }
    for (int64_t i = to->first; i < to->end; i++) {
        double q = (double)direction(update, i), w = (double)((const float *)update->w)[i];
        *to->directions += q * q;
        *to->weights += w * w;
    }
}

static float move_float(const struct ghp_update *update, struct ghp_range at)
{
    float *w = update->w, rate = (float)update->given.learning_rate, off = 0;
    const float *m = update->moment[0], *v = update->moment[1];
    for (int64_t i = at.first; i < at.end; i++) {
        w[i] -= rate * direction(update, i);
        off += (w[i] - w[i]) + (m[i] - m[i]) + (v[i] - v[i]);
    }
    return off;
}

const struct ghp_update_kernel ghp_cpu_update_adamw[] = {{.optimizer = &ghp_optimizer_adamw,
                                                          .run_float = update_float,
                                                          .direct_float = direct_float,
                                                          .move_float = move_float},
                                                         {.optimizer = NULL}};
