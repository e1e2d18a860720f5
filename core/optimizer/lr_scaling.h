/* core/optimizer/lr_scaling.h - how learning rates follow the size of the batch: of the whole model or of each tensor.
 *
 * A global batch is n worker batches, one of each worker and micro-batch. A *factor* is what a tensor's learning rate
 * is multiplied by in one step:
 *
 *     linear     n, known before: the schedule's rates are n times as high
 *     lars       .001 |w| / (|g| + weight_decay |w|);  v = momentum v + rate (g + weight_decay w);  w -= v
 *     lamb       |w| / |q|, q the direction of adamw with its decay;  w -= rate q
 *     adascale   s of all tensors together
 *     lena       s of the tensor; times S / ramp while S < ramp; S sums up s, or where s was cut the whole model's
 *
 *     s = (top + 1e-6) / (bottom + 1e-6), at most n
 *     top = (1 - a) top + a (sum of |g_i|^2 over the worker batches) / n,  bottom alike of |g|^2,  a = min(n / 1000, 1)
 *
 * with g the mean of the worker batches' gradients g_i. s is 1 where all g_i are the same, and n where they are
 * orthogonal and equally long. Norms are of whole tensors, however they are split. A factor of lars or lamb is that of
 * |w| = 1 and a denominator of 1 where one of them is 0.
 *
 * Source   You et al., arXiv 1708.03888, 2017 (LARS) and 1904.00962, 2020 (LAMB); Johnson et al., ICML 2020 (AdaScale);
 *          Ko, Lee, Kim, WWW 2022 (LENA)
 * Tested   tests/core/optimizer/test_lr_scaling.c, tests/executor/train/test_lr_scaling.c */
#ifndef GHP_CORE_OPTIMIZER_LR_SCALING_H
#define GHP_CORE_OPTIMIZER_LR_SCALING_H

#include "core/base/status.h"
#include "core/optimizer/optimizer.h"

struct ghp_lr_scaling { /* NULL stands for none */
    const char *name;   /* in plans and options */
    const char *purpose;
    const struct ghp_optimizer *optimizer; /* that it is defined for; NULL: any */
    bool weights;                          /* it takes norms of weights beside those of gradients */
    bool batches; /* it takes norms of each worker batch's gradients beside those of their mean */
    bool directions; /* it takes norms of adamw's directions in place of gradients' */
};

/* "none" is the first; NULL ends. */
extern const char *const ghp_lr_scaling_names[];

const struct ghp_lr_scaling *ghp_lr_scaling_at(int index); /* NULL: none */

/* Whether it reads norms in each step, so that updates wait for all gradients. */
static inline bool ghp_lr_scaling_takes_norms(const struct ghp_lr_scaling *scaling)
{
    return scaling != NULL && (scaling->weights || scaling->batches);
}

/* What the whole schedule is multiplied by. */
static inline double ghp_lr_scaling_whole(const struct ghp_lr_scaling *scaling, int batches)
{
    return scaling != NULL && !ghp_lr_scaling_takes_norms(scaling) ? batches : 1;
}

/* Whether it can be had with an optimizer, clipped or not. Returns GHP_OK; GHP_ERR_INPUT naming the option. Local. */
enum ghp_status ghp_lr_scaling_check(const struct ghp_lr_scaling *scaling,
                                     const struct ghp_optimizer *optimizer, bool clips);

/* Squared norms of a step, [tensors] each. */
struct ghp_lr_scaling_norms {
    const double *gradients; /* of the mean; lamb: of directions */
    const double *others;    /* of weights; of batches: the sum over the worker batches */
};

/* What it has learnt, of all tensors: the same on each worker, and in checkpoints. */
struct ghp_lr_scaling_state {
    int tensors;
    double *values;  /* owned: [GHP_LR_SCALING_VALUES][tensors]: top, bottom, S */
    double *factors; /* owned: [tensors], of the step that was advanced last */
};
enum { GHP_LR_SCALING_VALUES = 3 };

enum ghp_status ghp_lr_scaling_open(int tensors, struct ghp_lr_scaling_state *state);
void ghp_lr_scaling_close(struct ghp_lr_scaling_state *state); /* accepts a zeroed one */

/* One step on: state->factors from its norms.
 *
 * batches           n >= 1
 * hyperparameters   weight_decay, and ramp: what S rises to before lena's rates are whole, in steps of one worker
 *
 * Local */
void ghp_lr_scaling_advance(const struct ghp_lr_scaling *scaling,
                            struct ghp_lr_scaling_state *state, int batches,
                            const struct ghp_hyperparameters *hyperparameters,
                            const struct ghp_lr_scaling_norms *norms);

#endif
