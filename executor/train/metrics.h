/* executor/train/metrics.h - the metrics file: one JSON object a line, a line a step or evaluation, readable while it
 * grows.
 *
 *     {"step": 12, "epoch": 0, "loss": 1.93, "top1": 0.41, "images_per_s": 812.4, "learning_rate": 0.01}
 *     {"step": 125, "epoch": 1, "test_loss": 0.31, "test_top1": 0.912, "test_samples": 2000}
 *
 * A number that is not finite is null: the loss of a step whose labels are all ignored, a perplexity beyond 1e308.
 * Hits that were asked for are "test_top5", "test_class_labels", "test_class_top1" and "test_class_top5", the last
 * three of each class. If the network's input is tokens, a step also has "tokens_per_s", and an evaluation
 * "test_perplexity". */
#ifndef GHP_EXECUTOR_TRAIN_METRICS_H
#define GHP_EXECUTOR_TRAIN_METRICS_H

#include "executor/train/evaluate.h"

struct ghp_metrics;

/* Refuses a file that has metrics already, so that none are lost without notice. Pipes and devices hold none.
 *
 * resumable   whether --resume could be given instead
 *
 * Returns   GHP_OK; GHP_ERR_USAGE with the options that help. Local. */
enum ghp_status ghp_metrics_refuse(const char *path, bool resumable);

/* append: continue an existing file (a resumed run). Returns GHP_OK; GHP_ERR_IO. Local. */
enum ghp_status ghp_metrics_open(const char *path, bool append, struct ghp_metrics **metrics);
struct ghp_metrics_from { /* where a resumed run continues */
    int64_t step;         /* steps done */
    bool owes_evaluation; /* one after these steps is made again */
};
/* Cuts off lines of what a resumed run does again, which would stand there twice, and a last line that was cut by a
 * kill. Pipes and devices stay as they are.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT (other lines than metrics: the file is left alone)
 * Tested    tests/executor/train/test_metrics.c */
enum ghp_status ghp_metrics_resume(struct ghp_metrics *metrics, struct ghp_metrics_from from);
void ghp_metrics_close(struct ghp_metrics *metrics); /* accepts NULL */

struct ghp_metrics_line {
    int64_t step, epoch; /* from 0 */
    bool of_numbers;     /* labels are: `top1` is the mean absolute error */
    double loss, top1, images_per_s, learning_rate;
    double gradient_norm; /* 0: not taken, and left out */
    double tokens_per_s;  /* 0: the network's input is not tokens; left out */
};
enum ghp_status ghp_metrics_step(struct ghp_metrics *metrics, const struct ghp_metrics_line *step);
/* step: steps done so far. */
enum ghp_status ghp_metrics_evaluation(struct ghp_metrics *metrics, int64_t step, int64_t epoch,
                                       const struct ghp_evaluation *evaluation);

#endif
