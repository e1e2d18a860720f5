/* executor/train/event_file.h - a training's numbers as an event file of TensorBoard, readable while it grows.
 *
 * The same numbers as the metrics file (train/metrics.h), as scalars of the run's folder: train/loss, train/top1,
 * train/samples_per_s, train/learning_rate, if taken train/gradient_norm and train/tokens_per_s; test/loss,
 * test/top1, test/top5 and test/perplexity. A new file each time, as TensorBoard wants it: a resumed run's begins with
 * a mark by which readers forget what earlier files have of steps that are trained again.
 *
 *     file    record, record, ...
 *     record  bytes of the event (8), masked CRC-32C of these 8 (4), the event, its masked CRC-32C (4); little-endian
 *     event   protobuf: 1 wall time (double), 2 step (varint), 3 version (text), 5 summary, 7 mark of a session
 *
 * Call order: open -> begin -> step, evaluation ... -> close. Rank 0 alone.
 *
 * Source  tensorboard/compat/proto/event.proto, summary.proto; TensorFlow's description of TFRecord files
 * Tested  tests/executor/train/test_event_file.c, tests/tools/run/test_tensorboard.sh */
#ifndef GHP_EXECUTOR_TRAIN_EVENT_FILE_H
#define GHP_EXECUTOR_TRAIN_EVENT_FILE_H

#include "executor/train/metrics.h"

struct ghp_event_file;

/* Makes the folder if it is missing, and a new file in it. Returns GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY. */
enum ghp_status ghp_event_file_open(const char *folder, struct ghp_event_file **file);

/* step: the first one that is trained; above 0 what is known of later ones is forgotten. Returns GHP_OK; GHP_ERR_IO. */
enum ghp_status ghp_event_file_begin(struct ghp_event_file *file, int64_t step);
enum ghp_status ghp_event_file_step(struct ghp_event_file *file,
                                    const struct ghp_metrics_line *step);
/* step: steps done so far, > 0. In the file it stands at the last of them, which a later session from there keeps. */
enum ghp_status ghp_event_file_evaluation(struct ghp_event_file *file, int64_t step,
                                          const struct ghp_evaluation *evaluation);
const char *ghp_event_file_path(const struct ghp_event_file *file); /* lives as long as the file */
void ghp_event_file_close(struct ghp_event_file *file);             /* accepts NULL */

#endif
