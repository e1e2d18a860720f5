/* executor/train/snapshot.h - what a training made: its first gradients, its last weights and its losses, whole. */
#ifndef GHP_EXECUTOR_TRAIN_SNAPSHOT_H
#define GHP_EXECUTOR_TRAIN_SNAPSHOT_H

#include "executor/engine/worker.h"
#include "executor/state/tensors.h"
#include "executor/train/losses.h"

struct ghp_snapshot { /* whole tensors, as double */
    struct ghp_tensors_list list;
    bool keeps;         /* this process keeps values; others only take part in gathering */
    double **weights;   /* one a tensor, owned */
    double **gradients; /* one a parameter, owned */
    const struct ghp_optimizer *optimizer; /* that made the weights */
    struct ghp_losses losses;
};

enum ghp_status ghp_snapshot_init(const struct ghp_model *model, bool keeps,
                                  struct ghp_snapshot *snapshot);
void ghp_snapshot_release(struct ghp_snapshot *snapshot); /* accepts a zeroed one */
/* Gradients of the last step (settle first), weights and statistics (flush first). Collective over all workers. */
enum ghp_status ghp_snapshot_gradients(struct ghp_snapshot *snapshot, struct ghp_worker *worker);
enum ghp_status ghp_snapshot_weights(struct ghp_snapshot *snapshot, struct ghp_worker *worker);

#endif
