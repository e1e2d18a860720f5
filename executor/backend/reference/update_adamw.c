/* executor/backend/reference/update_adamw.c - the update of core/optimizer/adamw.c, as its formula stands. */
#include "executor/backend/reference/reference.h"
#include "executor/platform/parallel.h"

#include <math.h>

#define UPDATE(number, root)                                                                       \
    static number update_##number(const struct ghp_update *update, struct ghp_range at)            \
    {                                                                                              \
        const struct ghp_hyperparameters *h = &update->given;                                      \
        const double decay = update->decays ? h->weight_decay : 0;                                 \
        const number *dw = update->dw;                                                             \
        number *w = update->w, *m = update->moment[0], *v = update->moment[1];                     \
        number beta1 = (number)h->beta1, rest1 = (number)(1 - h->beta1);                           \
        number beta2 = (number)h->beta2, rest2 = (number)(1 - h->beta2);                           \
        number kept = (number)(1 - h->learning_rate * decay);                                      \
        number length = (number)(h->learning_rate / h->correction1);                               \
        number stretch = (number)(1 / sqrt(h->correction2)), epsilon = (number)h->epsilon;         \
        number scale = (number)ghp_update_scale(update), off = 0;                                  \
                                                                                                   \
        for (int64_t i = at.first; i < at.end; i++) {                                              \
            number d = scale * dw[i];                                                              \
                                                                                                   \
            m[i] = beta1 * m[i] + rest1 * d;                                                       \
            v[i] = beta2 * v[i] + rest2 * d * d;                                                   \
            w[i] = kept * w[i] - length * (m[i] / (root(v[i]) * stretch + epsilon));               \
            off += (w[i] - w[i]) + (m[i] - m[i]) + (v[i] - v[i]);                                  \
        }                                                                                          \
        return off;                                                                                \
    }
UPDATE(float, sqrtf)
UPDATE(double, sqrt)

const struct ghp_update_kernel ghp_reference_update_adamw[] = {
    {&ghp_optimizer_adamw, update_float, update_double}, {.optimizer = NULL}};
