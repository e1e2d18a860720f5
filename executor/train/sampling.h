/* executor/train/sampling.h - importance sampling in a training: worker w of N draws, one a step, from the samples
 * w, w + N, w + 2 N ... by executor/data/sampler.h, and its gradients are weighted by N / (n p): in the mean the sum of
 * all workers' is the gradient of the whole set, whatever their norms.
 *
 * First each worker goes through its samples once, as in an epoch, and measures every norm; a checkpoint has them.
 * Norms are taken of a worker's own gradients, before these are reduced (engine/worker.h).
 *
 * Call order: open -> for each step: choose -> ghp_worker_step -> learn ... -> close. */
#ifndef GHP_EXECUTOR_TRAIN_SAMPLING_H
#define GHP_EXECUTOR_TRAIN_SAMPLING_H

#include "executor/state/checkpoint.h"
#include "executor/train/rank_plan.h"

enum ghp_sampler_choice { GHP_SAMPLER_UNIFORM, GHP_SAMPLER_SRG };
extern const char *const ghp_sampler_names[]; /* ends with NULL */

struct ghp_sampling;

struct ghp_sampling_request {
    const struct ghp_rank_plan *rank_plan; /* borrowed for the call, as is what follows */
    const struct ghp_exec_context *exec;
    int64_t samples; /* of the training set */
    uint64_t seed;
    bool ignores; /* labels may be ignored */
};

/* Returns   GHP_OK; GHP_ERR_INPUT (more than one sample a worker, a split or a synchroniser that leaves no worker with
 *           the gradients of its own sample, statistics of a batch, ignored labels, a GPU: each by name)
 * Local
 * Tested    tests/tools/data/test_sampler.sh */
enum ghp_status ghp_sampling_open(const struct ghp_sampling_request *request,
                                  struct ghp_sampling **sampling);
void ghp_sampling_close(struct ghp_sampling *sampling); /* accepts NULL */

/* This worker's sample of a step, its weight, and whether its norm is wanted; borrowed until the next call. */
void ghp_sampling_choose(struct ghp_sampling *sampling, struct ghp_step *step);
/* The step that was chosen is done. Local. */
void ghp_sampling_learn(struct ghp_sampling *sampling, const struct ghp_worker *worker);

/* What checkpoints have of it; of NULL nothing. Borrowed. */
struct ghp_checkpoint_norms ghp_sampling_norms(struct ghp_sampling *sampling);

#endif
