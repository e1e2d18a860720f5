/* core/optimizer/lion.c - Lion: a step of the learning rate by the sign of a mean of gradients. */
#include "core/optimizer/optimizer.h"

static const struct ghp_hyperparameter hyperparameters[] = {
    {"beta1", offsetof(struct ghp_hyperparameters, beta1), 0.9},
    {"beta2", offsetof(struct ghp_hyperparameters, beta2), 0.99},
    {"weight-decay", offsetof(struct ghp_hyperparameters, weight_decay), 0},
    {.name = NULL}};

const struct ghp_optimizer ghp_optimizer_lion = {
    .name = "lion",
    .purpose = "the sign of a mean of gradients, with decoupled weight decay",
    .n_moments = 1,
    .moments = {"momentum"},
    .rate = "update_lion",
    .decay_dims = 2,
    .usual_rate = 0.0001,
    .double_limit = 1,
    .float_limit = 1,
    .hyperparameters = hyperparameters};
