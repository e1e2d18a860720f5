/* executor/checkpoint.h - a training on disk: DIR/checkpoint.safetensors with whole tensors under the model's names.
 *
 * Nothing in it depends on the plan, so a run resumes under another plan, worker count or precision. Weights and
 * statistics under their names, momenta as "momentum.<name>"; the metadata holds format, model, step and seed. */
#ifndef GHP_EXECUTOR_CHECKPOINT_H
#define GHP_EXECUTOR_CHECKPOINT_H

#include "executor/worker.h"

struct ghp_checkpoint {
    int64_t step;  /* steps done: the next one's index */
    uint64_t seed; /* of weights, order and masks */
};

/* Writes DIR/checkpoint.safetensors, replacing an older one when complete. Flush the worker first.
 *
 * Returns   GHP_OK; GHP_ERR_IO (on every worker)
 * Collective over all workers; rank 0 writes
 * Tested    tests/executor/test_checkpoint.c */
enum ghp_status ghp_checkpoint_save(const char *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint checkpoint);

/* Reads it into the worker's weights, statistics and momenta.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_INPUT (another model's: names the first tensor that differs)
 * Local: every worker reads the file */
enum ghp_status ghp_checkpoint_load(const char *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint *checkpoint);

#endif
