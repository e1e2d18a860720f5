/* executor/backend/reference/update_sgd.c - the update of core/optimizer/sgd.c, as its formula stands. */
#include "executor/backend/reference/reference.h"
#include "executor/platform/parallel.h"

#define UPDATE(number)                                                                             \
    static number update_##number(const struct ghp_update *update, struct ghp_range at)            \
    {                                                                                              \
        const struct ghp_hyperparameters *h = &update->given;                                      \
        const number *dw = update->dw;                                                             \
        number *w = update->w, *v = update->moment[0], learning_rate = (number)h->learning_rate,   \
               momentum = (number)h->momentum,                                                     \
               weight_decay = (number)(update->decays ? h->weight_decay : 0),                      \
               scale = (number)ghp_update_scale(update), off = 0;                                  \
                                                                                                   \
        for (int64_t i = at.first; i < at.end; i++) {                                              \
            number d = scale * dw[i] + weight_decay * w[i];                                        \
                                                                                                   \
            v[i] = momentum * v[i] + d;                                                            \
            w[i] -= learning_rate * v[i];                                                          \
            off += (w[i] - w[i]) + (v[i] - v[i]);                                                  \
        }                                                                                          \
        return off;                                                                                \
    }
UPDATE(float)
UPDATE(double)

const struct ghp_update_kernel ghp_reference_update_sgd[] = {
    {.optimizer = &ghp_optimizer_sgd, .run_float = update_float, .run_double = update_double},
    {.optimizer = NULL}};
