/* core/optimizer/hyperparameters.h - the numbers by which one update changes weights; kernels on a device read them,
 * too. */
#ifndef GHP_CORE_OPTIMIZER_HYPERPARAMETERS_H
#define GHP_CORE_OPTIMIZER_HYPERPARAMETERS_H

struct ghp_hyperparameters {
    double learning_rate, weight_decay;
    /* these and the next three as the optimizer's formula has them (optimizer.h) */
    double momentum;
    double beta1, beta2, epsilon;
    double correction1, correction2; /* 1 - beta1^t, 1 - beta2^t */
    /* of all gradients together: longer ones are scaled to it; if norms are taken */
    double clip_norm;
    double ramp; /* lena: gains, in steps of one worker, up to which rates rise */
};

#endif
