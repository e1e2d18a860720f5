/* executor/train/verify/verify.h - does the plan train like one worker, or like one that trains all replicas in turn?
 * Trains both and compares every tensor.
 *
 *     e_w = max|w - w1| / max(max|w1|, 1e-3 * largest such maximum of any tensor)      after the last step
 *     e_g = |g - g1|_2 / max(|g1|_2, 1e-6 * |all g1|_2)                                of the first step
 *
 * If |g1|_2 <= z |all g1|_2, the gradient is zero but for rounding, and e_g = |g - g1|_2 / (z / limit * |all g1|_2). A
 * wrong gradient hides in weights while the learning rate is small, so both are checked. Statistics of batch norm count
 * as weights. Call order: snapshot of the plan's run (init, gradients after step 1, weights at the end), the same of a
 * single worker (ghp_verify_alone), compare.
 *
 * Tested   tests/executor/train/test_equality.c */
#ifndef GHP_EXECUTOR_TRAIN_VERIFY_VERIFY_H
#define GHP_EXECUTOR_TRAIN_VERIFY_VERIFY_H

#include "executor/train/training_config.h"
#include "executor/train/verify/layerwise.h"
#include "executor/train/snapshot.h"

/* Trains `steps` steps from fresh weights, keeping gradients, weights and losses. Collective over the worker's
 * extent. */
enum ghp_status ghp_verify_train(struct ghp_worker *worker,
                                 struct ghp_training_config *training_config, int64_t steps,
                                 struct ghp_snapshot *snapshot);

/* The same by one worker alone, or if workers' weights differ by one that trains all in turn (replicas.c), on
 * the same execution context's backend and training config. `like` gives model, batch, precision, the synchroniser and
 * the masks' seed.
 * Local */
enum ghp_status ghp_verify_alone(const struct ghp_exec_context *exec,
                                 const struct ghp_rank_plan *like,
                                 struct ghp_training_config *training_config, int64_t steps,
                                 struct ghp_snapshot *snapshot);

struct ghp_difference {         /* of one tensor */
    const char *name;           /* borrowed from the model */
    double weight_difference;   /* e_w */
    double gradient_difference; /* e_g; 0 for statistics */
    bool has_gradient;
};

struct ghp_verification {
    int n;
    struct ghp_difference *differences;            /* owned */
    double weight_difference, gradient_difference; /* greatest of all */
    double gradient_rms;                           /* root of the mean of the squares of all e_g */
    double weight_limit, gradient_limit, gradient_rms_limit;
    bool passed; /* all within their limits; NaN is not */
    /* Passed by a limit so wide, as the optimizer hides the size of gradients, that a wrong update is within it too. */
    bool unsure;
    struct ghp_layerwise layerwise; /* the cause of differences beyond them; else equal */
};

/* Limits: docs/explanation/exactness.md. Returns GHP_OK; GHP_ERR_DIVERGED: one worker's weights are not finite.
 * Local. */
enum ghp_status ghp_verify_compare(const struct ghp_snapshot *plan,
                                   const struct ghp_snapshot *alone, struct ghp_precision precision,
                                   struct ghp_verification *verification);
/* Whether only a comparison layer by layer tells; it cannot follow replicas with weights of their own, so for these
 * only beyond the limits. */
bool ghp_verification_asks(const struct ghp_verification *verification, bool has_replicas);
/* 0: equal within the limits, or rounding; 1: a defect, or replicas that differ; GHP_EXIT_UNKNOWN: cannot tell. */
enum { GHP_EXIT_UNKNOWN = 3 };
int ghp_verification_exit_code(const struct ghp_verification *verification, bool replicas_differ);
void ghp_verification_release(struct ghp_verification *verification);

#endif
