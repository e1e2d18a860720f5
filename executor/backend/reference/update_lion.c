/* executor/backend/reference/update_lion.c - the update of core/optimizer/lion.c, as its formula stands. A momentum
 * that is not finite has no sign and moves no weight: it tells by itself. */
#include "executor/backend/reference/reference.h"
#include "executor/platform/parallel.h"

#define UPDATE(number)                                                                             \
    static number update_##number(const struct ghp_update *update, struct ghp_range at)            \
    {                                                                                              \
        const struct ghp_hyperparameters *h = &update->given;                                      \
        const double decay = update->decays ? h->weight_decay : 0;                                 \
        const number *dw = update->dw;                                                             \
        number *w = update->w, *m = update->moment[0];                                             \
        number beta1 = (number)h->beta1, rest1 = (number)(1 - h->beta1);                           \
        number beta2 = (number)h->beta2, rest2 = (number)(1 - h->beta2);                           \
        number rate = (number)h->learning_rate, kept = (number)(1 - h->learning_rate * decay);     \
        number scale = (number)ghp_update_scale(update), off = 0;                                  \
                                                                                                   \
        for (int64_t i = at.first; i < at.end; i++) {                                              \
            number d = scale * dw[i], mean = beta1 * m[i] + rest1 * d;                             \
            int sign = (mean > 0) - (mean < 0);                                                    \
                                                                                                   \
            w[i] = kept * w[i] - rate * (number)sign;                                              \
            m[i] = beta2 * m[i] + rest2 * d;                                                       \
            off += (w[i] - w[i]) + (m[i] - m[i]);                                                  \
        }                                                                                          \
        return off;                                                                                \
    }
UPDATE(float)
UPDATE(double)

const struct ghp_update_kernel ghp_reference_update_lion[] = {
    {.optimizer = &ghp_optimizer_lion, .run_float = update_float, .run_double = update_double},
    {.optimizer = NULL}};
