/* executor/train/verify_private.h - private to executor/train/verify*.c: the slow twin of training whose workers'
 * weights differ (core/program/sync.h). One worker trains all replicas in turn, each with its own samples, weights and
 * moments, and takes their mean when it is due.
 *
 * Means are plain sums in double, in the order of the ranks; all else is the one worker's own step. The snapshot has
 * the first replica's gradients of the first step, the mean of all replicas' weights after the last, and the mean of
 * their losses. */
#ifndef GHP_EXECUTOR_TRAIN_VERIFY_PRIVATE_H
#define GHP_EXECUTOR_TRAIN_VERIFY_PRIVATE_H

#include "executor/train/verify.h"

struct ghp_replicas_how {
    int n;      /* replicas; the worker's batch is one's */
    int period; /* steps from one mean to the next */
};

/* worker   a lone one with first weights, of batch global batch / n
 *
 * Local
 * Tested   tests/executor/train/test_sync.c */
enum ghp_status ghp_verify_replicas(struct ghp_worker *worker, const struct ghp_replicas_how *how,
                                    struct ghp_training_config *training_config, int64_t steps,
                                    struct ghp_snapshot *snapshot);

#endif
