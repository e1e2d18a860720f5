/* executor/train/train_private.h - private to executor/train/train*.c: what both loops do between steps. */
#ifndef GHP_EXECUTOR_TRAIN_TRAIN_PRIVATE_H
#define GHP_EXECUTOR_TRAIN_TRAIN_PRIVATE_H

#include "executor/train/train.h"

/* ---- between.c ---- */

/* NULL: nothing ends it in order. */
struct ghp_stop *ghp_training_stop(struct ghp_training *t);
/* Steps before measuring starts: first touches, connections, caches. */
int64_t ghp_training_warm_up(const struct ghp_training *t);
/* A step's line: for the progress bar, the metrics file and TensorBoard. */
void ghp_training_keep_line(struct ghp_training *t, const struct ghp_metrics_line *line);
enum ghp_status ghp_training_evaluate(struct ghp_training *t, int64_t done);
/* Whether the patience with the test loss, evaluated just now, is at its end. Collective over all workers. */
enum ghp_status ghp_training_stagnates(struct ghp_training *t, bool *ends);
/* Whether a multiple of `every` is beyond `before` and at most `done`; 0: never. Local. */
bool ghp_training_passes(int64_t every, int64_t before, int64_t done);
/* Whether one of the checkpoints before the end is due after more than `before` and at most `done` steps. Local. */
bool ghp_training_saves(const struct ghp_training *t, int64_t before, int64_t done);
/* How the checkpoint that is being written has ended: worker 0 waits for it. */
void ghp_training_finish_save(struct ghp_training *t);
/* last: all workers wait until it is on disk, and know whether it is. */
enum ghp_status ghp_training_save(struct ghp_training *t, int64_t done, bool last);
/* The first step's gradients, for a verification. */
enum ghp_status ghp_training_keep_gradients(struct ghp_training *t, int64_t step);

/* ---- train_async.c ---- */

/* The loop of workers that do not wait for each other's steps. */
enum ghp_status ghp_training_run_async(struct ghp_training *t);

/* ---- divergence.c ---- */

/* The loss of a step is not finite, or that of the step before an update that found something: makes the failure.
 *
 * Returns   GHP_ERR_DIVERGED; GHP_ERR_INPUT: a sample is not finite
 * Workers whose losses are all summed tell each other what they found; one that none answers says its own */
enum ghp_status ghp_divergence_fail(struct ghp_training *training, int64_t step);

/* Whether nobody is to look: --inject-fault overlook. */
bool ghp_divergence_overlooked(const struct ghp_training *training);

/* After a flush: whether updates found anything, and (all) whether all weights, moments and running statistics that
 * this worker holds are finite.
 *
 * done      steps so far
 *
 * Returns   GHP_OK; as ghp_divergence_fail, the same on all workers
 * Collective over all workers */
enum ghp_status ghp_divergence_look(struct ghp_training *training, int64_t done, bool all);

#endif
