/* core/optimizer/tensor_rates.h - learning rates that follow norms of tensors, step by step: what a program keeps of a
 * learning-rate scaling (core/optimizer/lr_scaling.h has the formulas), and what the rates have learnt.
 *
 * Those of worker batches i = 1 .. n, with gradients g_i and their mean g, have
 *
 *     s = (top + 1e-6) / (bottom + 1e-6), at most n
 *     top = (1 - a) top + a (sum of |g_i|^2 over the worker batches) / n,  bottom alike of |g|^2,  a = min(n / 1000, 1)
 *
 * s is 1 if all g_i are the same, and n if they are orthogonal and equally long. Norms are of whole tensors,
 * however they are split. A factor by weights is that of |w| = 1 and a denominator of 1 if one of them is 0.
 *
 * Tested   tests/core/optimizer/test_tensor_rates.c, tests/executor/engine/worker/test_rates.c */
#ifndef GHP_CORE_OPTIMIZER_TENSOR_RATES_H
#define GHP_CORE_OPTIMIZER_TENSOR_RATES_H

#include "core/base/status.h"
#include "core/optimizer/optimizer.h"

struct ghp_rate_rule { /* which norms a tensor's factor follows */
    bool weights;      /* of weights next to those of gradients */
    bool batches;      /* of each worker batch's gradients next to those of their mean */
    bool directions;   /* of the directions of adamw in place of gradients */
    bool ramps;        /* of worker batches: each tensor has its own s, and rises to it */
};

/* Squared norms of a step, [tensors] each. */
struct ghp_tensor_norms {
    const double *gradients; /* of the mean; or of directions */
    const double *others;    /* of weights; or of batches: the sum over the worker batches */
};

/* The same on each worker, and in checkpoints. Zeroed: rates follow no norms. */
struct ghp_tensor_rates {
    const struct ghp_rate_rule *rule; /* borrowed */
    int tensors;
    double *values;  /* owned: [GHP_TENSOR_RATES_VALUES][tensors]: top, bottom, S */
    double *factors; /* owned: [tensors], of the step that was advanced last */
};
enum { GHP_TENSOR_RATES_VALUES = 3 };

enum ghp_status ghp_tensor_rates_open(const struct ghp_rate_rule *rule, int tensors,
                                      struct ghp_tensor_rates *rates);
void ghp_tensor_rates_close(struct ghp_tensor_rates *rates); /* accepts a zeroed one */

/* One step on: rates->factors from its norms.
 *
 * batches           n >= 1
 * hyperparameters   weight_decay, and ramp: what S rises to before rates are whole, in steps of one worker
 *
 * Local */
void ghp_tensor_rates_advance(struct ghp_tensor_rates *rates, int batches,
                              const struct ghp_hyperparameters *hyperparameters,
                              const struct ghp_tensor_norms *norms);

#endif
