/* executor/state/checkpoint.h - a training on disk: DIR/checkpoint.safetensors with whole tensors under the model's
 * names, and the checkpoint before it as DIR/checkpoint.previous.safetensors.
 *
 * Nothing in it depends on the plan, so a run resumes under another plan, worker count or precision. But where workers'
 * weights differ (core/program/sync.h) it has their mean and, as "replica.<rank>.<name>", each worker's weights,
 * statistics and moments, and goes on by the same synchroniser on as many workers alone. Weights and
 * statistics under their names, the optimizer's moments as "momentum.<name>" and so on (core/optimizer); the metadata
 * holds format, model, optimizer, a checksum of the whole file and struct ghp_checkpoint. A killed run leaves the last
 * complete file, and perhaps a temporary one beside it, which the next run removes. A file that was damaged afterwards
 * is noticed by its checksum, and the one before it is read instead. */
#ifndef GHP_EXECUTOR_STATE_CHECKPOINT_H
#define GHP_EXECUTOR_STATE_CHECKPOINT_H

#include "executor/engine/worker.h"

struct ghp_safetensors;

struct ghp_checkpoint {            /* with these, every later batch is what it would have been */
    int64_t step;                  /* steps done: the next one's index */
    uint64_t seed;                 /* of order and masks */
    int64_t global_batch, samples; /* B, and the training samples that the order is of */
};

/* The folder of a training. Which of its two files are whole and of this training: only such a one is kept when a newer
 * one comes. */
struct ghp_checkpoint_folder {
    const char *path;
    bool newest, previous; /* false at first; set by load and save */
};

/* Makes the folder where it is missing, and removes what a killed run left half-written in it.
 *
 * Returns   GHP_OK; GHP_ERR_IO (cannot be made or written)
 * Local: rank 0 does it, before the first save */
enum ghp_status ghp_checkpoint_prepare(const char *folder);

/* Writes DIR/checkpoint.safetensors; an older one of this training becomes the one before it when the new one is
 * complete and on disk. Prepare the folder and flush the worker first.
 *
 * Returns   GHP_OK; GHP_ERR_IO on every worker: this checkpoint alone is lost, whether to a full disk, a read-only
 *           folder or a worker without memory; older ones are as they were, and all workers can go on; else abort
 * Collective over all workers; rank 0 writes
 * Tested    tests/executor/state/test_checkpoint.c */
enum ghp_status ghp_checkpoint_save(struct ghp_checkpoint_folder *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint checkpoint);

/* Reads the newest checkpoint that every worker can read into the worker's weights, statistics and moments. Where the
 * newest cannot be read or is damaged, a warning says so, and the one before it is read.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_INPUT (another model's: names the first tensor that differs;
 *           another optimizer's; where weights differ, another synchroniser's or number of workers';
 *           workers who see different files)
 * Collective over all workers; every worker reads the file */
enum ghp_status ghp_checkpoint_load(struct ghp_checkpoint_folder *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint *checkpoint);

/* Whether a safetensors file is a checkpoint, and whether one of its names is a moment's or of one worker alone.
 * Local. */
bool ghp_checkpoint_is_one(const struct ghp_safetensors *file);
bool ghp_checkpoint_is_moment(const char *name);

#endif
