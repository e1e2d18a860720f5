/* core/optimizer/sgd.c - stochastic gradient descent with momentum; the decay is added to the gradient. */
#include "core/optimizer/optimizer.h"

static const struct ghp_hyperparameter hyperparameters[] = {
    {"momentum", offsetof(struct ghp_hyperparameters, momentum), 0.9},
    {"weight-decay", offsetof(struct ghp_hyperparameters, weight_decay), 0},
    {.name = NULL}};

const struct ghp_optimizer ghp_optimizer_sgd = {.name = "sgd",
                                                .purpose = "SGD with momentum",
                                                .n_moments = 1,
                                                .moments = {"momentum"},
                                                .rate = "update",
                                                .usual_rate = 0.01,
                                                .double_limit = 1e-12,
                                                .float_limit = 1e-5,
                                                .hyperparameters = hyperparameters};
