/* executor/train/verify/replicas.h - the reference implementation of training whose
 * workers' weights differ (core/program/sync.h). One worker trains all replicas in turn, each with its own samples,
 * weights and moments, and combines them as the synchroniser says: the mean when it is due, the pull to leaders, the
 * mean of neighbours, the push of one half of each.
 *
 * Means are plain sums in double, in the order of the ranks; all else is the one worker's own step. The snapshot has
 * the first replica's gradients of the first step, the mean of all replicas' weights after the last, and the mean of
 * their losses. */
#ifndef GHP_EXECUTOR_TRAIN_VERIFY_REPLICAS_H
#define GHP_EXECUTOR_TRAIN_VERIFY_REPLICAS_H

#include "executor/train/snapshot.h"
#include "executor/train/training_config.h"

struct ghp_replicas_config {
    int n; /* replicas; the worker's batch is one's */
    struct ghp_sync sync;
};

struct ghp_replicas { /* all workers' tensors, which one worker trains in turn */
    struct ghp_worker *worker;
    struct ghp_sync sync;
    struct ghp_tensors_list list;
    int n, n_moments, element_bytes;
    int entries;    /* of each: the list's tensors, then each moment of the parameters */
    int rows;       /* n, one for their mean, and what rules need in addition */
    void **whole;   /* [rows][entries], owned */
    double *losses; /* of each replica: of the last step; owned */
    double *lost;   /* lsgd: the sum since they were compared last; owned */
};

/* Element `at` of a tensor of row i. */
double ghp_replicas_value(const struct ghp_replicas *r, int i, int entry, int64_t at);
void ghp_replicas_set(struct ghp_replicas *r, int i, int entry, int64_t at, double value);

/* What comes after the updates by step `t`. Returns false if the synchroniser does not mix. replicas_mixing.c */
bool ghp_replicas_mix(struct ghp_replicas *r, int64_t t);

/* worker   a lone one with first weights, of batch global batch / n
 *
 * Local
 * Tested   tests/executor/train/test_sync.c */
enum ghp_status ghp_verify_replicas(struct ghp_worker *worker,
                                    const struct ghp_replicas_config *config,
                                    struct ghp_training_config *training_config, int64_t steps,
                                    struct ghp_snapshot *snapshot);

#endif
