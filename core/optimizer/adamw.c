/* core/optimizer/adamw.c - Adam with decoupled weight decay. */
#include "core/optimizer/optimizer.h"

#include <math.h>

static const struct ghp_hyperparameter hyperparameters[] = {
    {"beta1", offsetof(struct ghp_hyperparameters, beta1), 0.9},
    {"beta2", offsetof(struct ghp_hyperparameters, beta2), 0.999},
    {"epsilon", offsetof(struct ghp_hyperparameters, epsilon), 1e-8},
    {"weight-decay", offsetof(struct ghp_hyperparameters, weight_decay), 0.01},
    {.name = NULL}};

/* Both moments start at zero, and are too small by these factors. */
static void complete(struct ghp_hyperparameters *h, int64_t t)
{
    h->correction1 = 1 - pow(h->beta1, (double)t);
    h->correction2 = 1 - pow(h->beta2, (double)t);
}

const struct ghp_optimizer ghp_optimizer_adamw = {.name = "adamw",
                                                  .purpose = "Adam with decoupled weight decay",
                                                  .n_moments = 2,
                                                  .moments = {"momentum", "variance"},
                                                  .rate = "update_adamw",
                                                  .decay_dims = 2,
                                                  .usual_rate = 0.001,
                                                  .double_limit = 1e-6,
                                                  .float_limit = 1,
                                                  .hyperparameters = hyperparameters,
                                                  .complete = complete};
