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
/* In two halves. The direction of element i is m' / (sqrt(v') + epsilon) + decay w. */
#define DIRECTED(number, root)                                                                     \
    static number direction_##number(const struct ghp_update *u, int64_t i)                        \
    {                                                                                              \
        const struct ghp_hyperparameters *h = &u->given;                                           \
        number m = ((const number *)u->moment[0])[i] / (number)h->correction1;                     \
        number v = ((const number *)u->moment[1])[i] / (number)h->correction2;                     \
        number decay = (number)(u->decays ? h->weight_decay : 0);                                  \
                                                                                                   \
        return m / (root(v) + (number)h->epsilon) + decay * ((const number *)u->w)[i];             \
    }                                                                                              \
    static void direct_##number(const struct ghp_update *u,                                        \
                                const struct ghp_direction_squares *to)                            \
    {                                                                                              \
        number *m = u->moment[0], *v = u->moment[1];                                               \
        const number *d = u->dw;                                                                   \
        number beta1 = (number)u->given.beta1, beta2 = (number)u->given.beta2;                     \
                                                                                                   \
        for (int64_t i = 0; i < u->elements; i++) {                                                \
            m[i] = beta1 * m[i] + (1 - beta1) * d[i];                                              \
            v[i] = beta2 * v[i] + (1 - beta2) * d[i] * d[i];                                       \
        }                                                                                          \
        for (int64_t i = to->first; i < to->end; i++) {                                            \
            double q = (double)direction_##number(u, i), w = (double)((const number *)u->w)[i];    \
                                                                                                   \
            *to->directions += q * q;                                                              \
            *to->weights += w * w;                                                                 \
        }                                                                                          \
    }                                                                                              \
    static number move_##number(const struct ghp_update *u, struct ghp_range at)                   \
    {                                                                                              \
        number *w = u->w, rate = (number)u->given.learning_rate, off = 0;                          \
        const number *m = u->moment[0], *v = u->moment[1];                                         \
                                                                                                   \
        for (int64_t i = at.first; i < at.end; i++) {                                              \
            w[i] -= rate * direction_##number(u, i);                                               \
            off += (w[i] - w[i]) + (m[i] - m[i]) + (v[i] - v[i]);                                  \
        }                                                                                          \
        return off;                                                                                \
    }
UPDATE(float, sqrtf)
UPDATE(double, sqrt)
DIRECTED(float, sqrtf)
DIRECTED(double, sqrt)

const struct ghp_update_kernel ghp_reference_update_adamw[] = {
    {&ghp_optimizer_adamw, update_float, update_double, direct_float, direct_double, move_float,
     move_double},
    {.optimizer = NULL}};
