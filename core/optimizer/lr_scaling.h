/* core/optimizer/lr_scaling.h - how learning rates follow the size of the batch: of the whole model or of each tensor.
 *
 * A global batch is n worker batches, one of each worker and micro-batch. A *factor* is what a tensor's learning rate
 * is multiplied by in one step:
 *
 *     linear     n, known before: the schedule's rates are n times as high
 *     lars       0.001 |w| / (|g| + weight_decay |w|);  v = momentum v + rate (g + weight_decay w);  w -= v
 *     lamb       |w| / |q|, q the direction of adamw with its decay;  w -= rate q
 *     adascale   s of all tensors together
 *     lena       s of the tensor; times S / ramp while S < ramp; S sums up s, or if s was clamped the whole model's
 *
 * core/optimizer/tensor_rates.h says what s and S are.
 *
 * Source   You et al., arXiv 1708.03888, 2017 (LARS) and 1904.00962, 2020 (LAMB); Johnson et al., ICML 2020 (AdaScale);
 *          Ko, Lee, Kim, WWW 2022 (LENA)
 * Tested   tests/core/optimizer/test_lr_scaling.c */
#ifndef GHP_CORE_OPTIMIZER_LR_SCALING_H
#define GHP_CORE_OPTIMIZER_LR_SCALING_H

#include "core/base/status.h"
#include "core/optimizer/tensor_rates.h"

struct ghp_lr_scaling { /* NULL stands for none */
    const char *name;   /* in plans and options */
    const char *purpose;
    const struct ghp_optimizer *optimizer; /* that it is defined for; NULL: any */
    const struct ghp_rate_rule *rule;      /* of each tensor's rate; NULL: all rates are alike */
};

/* "none" is the first; NULL ends. */
extern const char *const ghp_lr_scaling_names[];

const struct ghp_lr_scaling *ghp_lr_scaling_at(int index); /* NULL: none */

/* Whether it reads norms in each step, so that updates wait for all gradients. */
static inline bool ghp_lr_scaling_takes_norms(const struct ghp_lr_scaling *scaling)
{
    return scaling != NULL && scaling->rule != NULL;
}

/* Whether these are of each worker batch's own gradients, too. */
static inline bool ghp_lr_scaling_takes_batches(const struct ghp_lr_scaling *scaling)
{
    return ghp_lr_scaling_takes_norms(scaling) && scaling->rule->batches;
}

/* What the whole schedule is multiplied by. */
static inline double ghp_lr_scaling_whole(const struct ghp_lr_scaling *scaling, int batches)
{
    return scaling != NULL && !ghp_lr_scaling_takes_norms(scaling) ? batches : 1;
}

/* Whether it can be had with an optimizer, clipped or not. Returns GHP_OK; GHP_ERR_INPUT naming the option. Local. */
enum ghp_status ghp_lr_scaling_check(const struct ghp_lr_scaling *scaling,
                                     const struct ghp_optimizer *optimizer, bool clips);

#endif
