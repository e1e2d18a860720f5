/* executor/state/checkpoint.h - a training on disk: DIR/checkpoint.safetensors with whole tensors under the model's
 * names, and the checkpoint before it as DIR/checkpoint.previous.safetensors. Those that are to be kept for longer have
 * a further name, DIR/checkpoint.step-N.safetensors after N steps, which is a hard link and takes no writing.
 *
 * Nothing in it depends on the plan, so a run resumes under another plan, worker count or precision. But if workers'
 * weights differ (core/program/sync.h) it has their mean and, as "replica.<rank>.<name>", each worker's weights,
 * statistics and moments, and continues only with the same synchroniser and the same number of workers. With a moving
 * average of weights it has that and, as "training.<name>", the training's own. Weights and
 * statistics under their names, the optimizer's moments as "momentum.<name>" and so on (core/optimizer); the metadata
 * holds format, model, optimizer, a checksum of the whole file and struct ghp_checkpoint. A killed run leaves the last
 * complete file, and perhaps a temporary one next to it, which the next run removes. If a file was damaged afterwards,
 * its checksum shows it, and the one before it is read instead.
 *
 * A checkpoint can be written during the training: between two steps the state is gathered into an image of the file in
 * worker 0's memory, which a thread writes. Without memory for an image it is written between the steps.
 *
 * Call order: prepare -> load -> save, under_way, written, finish ... -> release. */
#ifndef GHP_EXECUTOR_STATE_CHECKPOINT_H
#define GHP_EXECUTOR_STATE_CHECKPOINT_H

#include "executor/data/sampler.h"
#include "executor/engine/worker.h"

struct ghp_safetensors;

struct ghp_checkpoint {            /* with these, every later batch is what it would have been */
    int64_t step;                  /* steps done: the next one's index */
    uint64_t seed;                 /* of order and masks */
    int64_t global_batch, samples; /* B, and the training samples that the order is of */
    bool owes_evaluation; /* one that was due after these steps was left out, or cut short */
    bool evaluated;       /* one was made after these steps, */
    double test_loss;     /* with this loss; a load does not read it */
};

/* Which checkpoints stay in addition to the two newest. */
enum { GHP_CHECKPOINT_KEEP_MOST = 1000 };
struct ghp_checkpoint_keep {
    int most;  /* 0: none */
    bool best; /* those with the least test loss; else the last */
};

/* "last:K" or "best:K". Returns GHP_OK; GHP_ERR_USAGE. Local. */
enum ghp_status ghp_checkpoint_keep_parse(const char *text, struct ghp_checkpoint_keep *keep);

struct ghp_checkpoint_image; /* executor/state/checkpoint_save.c */

/* Time and bytes of this worker's checkpoints; only worker 0 knows what a thread wrote. */
struct ghp_checkpoint_cost {
    int64_t saves;       /* files that were begun */
    int64_t bytes;       /* of the values of one */
    int64_t image_bytes; /* allocated for the image; 0: none, and all were written between steps */
    double gather_s;     /* between steps, of those that a thread wrote */
    double between_s;    /* between steps, of the others */
    double waited_s;     /* for the one before */
    int64_t concurrent;  /* files that a thread has written; of these: */
    double core_s, disk_s; /* of a core; until the file was on disk */
};

/* Samples whose norms a file can have: its header has an end. */
enum { GHP_CHECKPOINT_NORMS_MOST = 4 << 20 };

/* The gradient norms of importance sampling: worker `rank` of `workers` has the samples rank, rank + workers ... */
struct ghp_checkpoint_norms {
    struct ghp_sampler *sampler; /* borrowed; NULL: samples are drawn all alike */
    int64_t samples;             /* of all workers */
    int rank, workers;
};

/* The folder of a training. */
struct ghp_checkpoint_folder {
    const char *path;
    struct ghp_checkpoint_norms norms; /* saved, and loaded if the file has them */
    struct ghp_checkpoint_keep keep;
    bool concurrent; /* a thread writes what is saved */
    /* Which of its two files are whole and of this training: only such a one is kept when a newer one comes. False at
     * first; set by load, save and finish. */
    bool newest, previous;
    struct ghp_checkpoint_image *image; /* owned; of worker 0, from its first save on */
    struct ghp_checkpoint_cost cost;
};

/* Refuses a folder that holds a training already, so that none is lost without notice.
 *
 * model       the name of the model that is to be trained: another one's training cannot be resumed
 * resumable   whether --resume could be given instead
 *
 * Returns   GHP_OK: neither checkpoint is there; GHP_ERR_USAGE with whose training it is, and the options that help
 * Local: rank 0 does it, of a training that is not resumed
 * Tested    tests/tools/run/test_overwrite.sh */
enum ghp_status ghp_checkpoint_refuse(const char *folder, const char *model, bool resumable);

/* Makes the folder if it is missing, and removes what a killed run left half-written in it.
 *
 * Returns   GHP_OK; GHP_ERR_IO (cannot be made or written)
 * Local: rank 0 does it, before the first save */
enum ghp_status ghp_checkpoint_prepare(const char *folder);

/* Whether the folder could be prepared, and resumed from if that is wanted. Makes none that stays.
 *
 * Returns   GHP_OK; GHP_ERR_IO as ghp_checkpoint_prepare, or without a checkpoint to resume
 * Local: before there is anything to train by
 * Tested    tests/tools/run/test_train.sh */
enum ghp_status ghp_checkpoint_try(const char *folder, bool resume);

/* Writes DIR/checkpoint.safetensors; an older one of this training becomes the one before it when the new one is
 * complete and on disk. Prepare the folder, flush the worker and finish the previous save first. If a thread writes the
 * files (struct ghp_checkpoint_folder), worker 0 is still writing on return; `finish` then returns how it ended.
 *
 * Returns   GHP_OK; GHP_ERR_IO on every worker: this checkpoint alone is lost, whether to a full disk, a read-only
 *           folder or a worker without memory; older ones are as they were, and all workers can continue; otherwise
 *           abort
 * Collective over all workers; rank 0 writes
 * Tested    tests/executor/state/test_checkpoint.c */
enum ghp_status ghp_checkpoint_save(struct ghp_checkpoint_folder *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint checkpoint);

/* Whether a save has not been finished yet, and whether its file is there, or has failed, so that finishing does not
 * wait. Local; false on workers that do not write. */
bool ghp_checkpoint_under_way(const struct ghp_checkpoint_folder *folder);
bool ghp_checkpoint_written(const struct ghp_checkpoint_folder *folder);

/* Waits for the save that is under way; without one it does nothing.
 *
 * step   of that checkpoint, set if there is one
 *
 * Returns   GHP_OK; GHP_ERR_IO, GHP_ERR_NO_MEMORY: this checkpoint alone is lost
 * Local */
enum ghp_status ghp_checkpoint_finish(struct ghp_checkpoint_folder *folder, int64_t *step);

/* Frees the image, after a save that is under way. Local. */
void ghp_checkpoint_release(struct ghp_checkpoint_folder *folder);

/* What a checkpoint that a thread writes should take of worker 0. */
struct ghp_checkpoint_prediction {
    int64_t image_bytes;
    double gather_s; /* between two steps; below 0: the profile does not say */
    /* of a core during later steps: the checksum, whose speed is tried, and a copy to the system */
    double core_s;
};

/* Source   the profile's copies, collectives and transfers, one after the other
 * Local
 * Tested   tests/executor/state/test_checkpoint.c */
enum ghp_status ghp_checkpoint_predict(struct ghp_worker *worker, const struct ghp_profile *profile,
                                       struct ghp_checkpoint_prediction *prediction);

/* Reads the newest checkpoint that every worker can read into the worker's weights, statistics and moments. If the
 * newest cannot be read or is damaged, a warning says so, and the one before it is read.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_INPUT (another model's: names the first tensor that differs;
 *           another optimizer's; if weights differ, another synchroniser's or number of workers';
 *           workers who see different files)
 * Collective over all workers; every worker reads the file */
enum ghp_status ghp_checkpoint_load(struct ghp_checkpoint_folder *folder, struct ghp_worker *worker,
                                    struct ghp_checkpoint *checkpoint);

/* Whether a safetensors file is a checkpoint, and whether one of its names is a moment's or of one worker alone.
 * Local. */
bool ghp_checkpoint_is_one(const struct ghp_safetensors *file);
bool ghp_checkpoint_is_moment(const char *name);

#endif
