/* core/optimizer/optimizer.h - optimizers: how a weight changes by its gradient.
 *
 * An optimizer is one constant struct that says all that is true of it without a library. It names the tensors that it
 * keeps in addition to the weights; the memory prediction, the allocation and the checkpoint read these here. It also
 * names its hyperparameters, from which the options and their ranges come.
 *
 *     sgd      d = g + weight_decay w;  v = momentum v + d;  w -= rate v
 *     adamw    m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
 *              w -= rate weight_decay w + rate m' / (sqrt(v') + epsilon),  m' = m / (1 - beta1^t), v' alike; step t
 *              from 1. Parameters of one dimension (biases, norms' weights) do not decay
 *     lion     w -= rate weight_decay w + rate sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g; decays as
 *              adamw
 *
 * What an optimizer keeps is called *moments*: each is as large as the weights, and of the same numbers.
 *
 * To add one: a file NAME.c with its struct, its name in GHP_OPTIMIZER_LIST, and its kernel in each backend: on
 * processors a row of struct ghp_update_kernel (executor/backend/backend_private.h) in a file update_NAME.c, on GPUs a
 * rule and its launcher (executor/backend/cuda/kernels/update.cu). A backend without it refuses plans with it.
 * Hyperparameters that no other has are a field of struct ghp_hyperparameters and an option of ghp-run.
 *
 * Source   Loshchilov and Hutter, arXiv 1711.05101, 2019 (AdamW); Chen et al., arXiv 2302.06675, 2023 (Lion)
 * Tested   tests/executor/engine/worker/test_update.c */
#ifndef GHP_CORE_OPTIMIZER_OPTIMIZER_H
#define GHP_CORE_OPTIMIZER_OPTIMIZER_H

#include "core/optimizer/hyperparameters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GHP_OPTIMIZER_LIST(X) X(sgd) X(adamw) X(lion)

enum ghp_optimizer_index {
#define GHP_OPTIMIZER_INDEX(name) GHP_OPTIMIZER_INDEX_##name,
    GHP_OPTIMIZER_LIST(GHP_OPTIMIZER_INDEX)
#undef GHP_OPTIMIZER_INDEX
        GHP_OPTIMIZERS
};

enum { GHP_MAX_MOMENTS = 2 };

/* Allowed norms that gradients are clipped to. */
#define GHP_CLIP_NORM_LEAST 1e-12
#define GHP_CLIP_NORM_MOST 1e12

struct ghp_hyperparameter { /* other than the learning rate */
    const char *name;       /* of ghp-run's option, NULL ends a list */
    size_t offset;          /* of its double in struct ghp_hyperparameters */
    double usual;
};

struct ghp_optimizer {
    const char *name;    /* in plans and options */
    const char *purpose; /* half a sentence */
    int n_moments;
    const char *moments[GHP_MAX_MOMENTS]; /* their names in checkpoints: "NAME.<tensor>" */
    const char *rate;                     /* of its update, in profiles */
    int decay_dims;                       /* parameters of fewer dimensions do not decay */
    double usual_rate;                    /* learning rate */
    /* How far weights may be off in a verification, in double and in float. Some optimizers move a weight by about the
     * rate, however small its gradient is. If that gradient is zero but for rounding, rounding decides how the weight
     * moves (docs/explanation/exactness.md). */
    double double_limit, float_limit;
    const struct ghp_hyperparameter *hyperparameters;
    /* Sets what follows from the others and from t, the updates up to this one, >= 1; NULL: nothing does. */
    void (*complete)(struct ghp_hyperparameters *hyperparameters, int64_t t);
};

#define GHP_OPTIMIZER_EXTERN(name) extern const struct ghp_optimizer ghp_optimizer_##name;
GHP_OPTIMIZER_LIST(GHP_OPTIMIZER_EXTERN)
#undef GHP_OPTIMIZER_EXTERN

struct ghp_layer;
/* Whether the layer's parameter in this slot takes weight decay. */
bool ghp_optimizer_decays(const struct ghp_optimizer *optimizer, const struct ghp_layer *layer,
                          int slot);

/* Names of all, for options and files; NULL ends. */
extern const char *const ghp_optimizer_names[];

/* The optimizer at a place among the names, and the place of one. NULL stands for sgd wherever an optimizer may be left
 * out, and has its place. */
const struct ghp_optimizer *ghp_optimizer_at(int index);
int ghp_optimizer_index(const struct ghp_optimizer *optimizer);

/* Whether it takes the hyperparameter, and the place of that; NULL: it does not. Local. */
double *ghp_optimizer_find(const struct ghp_optimizer *optimizer, const char *name,
                           struct ghp_hyperparameters *hyperparameters);

/* Those usual for it; the learning rate too. Local. */
struct ghp_hyperparameters ghp_optimizer_usual(const struct ghp_optimizer *optimizer);

/* Bytes that an update of `bytes` bytes of weights writes: the weights and the moments. */
static inline int64_t ghp_optimizer_written(const struct ghp_optimizer *optimizer, int64_t bytes)
{
    return (1 + optimizer->n_moments) * bytes;
}

#endif
