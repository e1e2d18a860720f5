/* executor/state/migrate.h - a training's state from one plan's worker into another plan's, in memory: what a
 * checkpoint and --resume under another plan do by way of a file.
 *
 * Whole tensors exist one at a time, as in executor/state/parameters.h. Not for workers whose weights differ, nor for
 * learning rates that learn from norms: they have more state than tensors (ghp_state_can_migrate). */
#ifndef GHP_EXECUTOR_STATE_MIGRATE_H
#define GHP_EXECUTOR_STATE_MIGRATE_H

#include "executor/engine/worker.h"

/* Whether weights, statistics and moments are all that such a training is. Local. */
bool ghp_state_can_migrate(const struct ghp_lowering *lowering);

/* Weights, statistics and moments of one training into another worker of the same rank, model and optimizer, to the
 * bit. `from` is flushed and stays as it is; nothing is pending in `to`.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY; GHP_ERR_BACKEND; GHP_ERR_COMM
 * Collective over all workers
 * Tested    tests/executor/state/test_migrate.c */
enum ghp_status ghp_state_migrate(struct ghp_worker *from, struct ghp_worker *to);

#endif
