/* core/optimizer/hyperparameters.h - the numbers by which one update changes weights; kernels on a device read them,
 * too. */
#ifndef GHP_CORE_OPTIMIZER_HYPERPARAMETERS_H
#define GHP_CORE_OPTIMIZER_HYPERPARAMETERS_H

struct ghp_hyperparameters {
    double learning_rate, weight_decay;
    double momentum;                 /* sgd */
    double beta1, beta2, epsilon;    /* adamw */
    double correction1, correction2; /* adamw: 1 - beta1^t, 1 - beta2^t */
    double
        clip_norm; /* of all gradients together: longer ones are scaled to it; where norms are taken */
    double ramp; /* lena: gains, in steps of one worker, up to which rates rise */
};

#endif
