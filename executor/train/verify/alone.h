/* executor/train/verify/alone.h - the one worker that a plan is held against: the same network, batch and numbers,
 * without any split, stage or other worker. */
#ifndef GHP_EXECUTOR_TRAIN_VERIFY_ALONE_H
#define GHP_EXECUTOR_TRAIN_VERIFY_ALONE_H

#include "executor/state/init.h"
#include "executor/train/rank_plan.h"

/* One worker, on this process, with first weights: what `like` does, but by itself and without its fault; if
 * workers' weights differ, of one replica's batch. A batch norm over each worker's own samples is one over as many
 * consecutive samples here. Stays where it is until it is closed.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (such a batch norm of workers with unequal shares); the failures of opening a worker
 *           and of first weights
 * Local
 * Tested   tests/executor/train/test_equality.c */
struct ghp_alone {
    struct ghp_worker *worker;
    struct ghp_split *splits; /* the worker's */
    /* the worker's: its layers are its own, all else is that of the plan's */
    struct ghp_model model;
    /* the plan's worker batches one by one, if rates follow their norms */
    struct ghp_staging batches;
};
enum ghp_status ghp_alone_open(const struct ghp_exec_context *exec,
                               const struct ghp_rank_plan *like, const struct ghp_init_choice *init,
                               struct ghp_alone *alone);
void ghp_alone_close(struct ghp_alone *alone);

#endif
