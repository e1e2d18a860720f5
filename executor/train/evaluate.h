/* executor/train/evaluate.h - loss and accuracy over all samples of a set, or loss and absolute error if labels are
 * numbers: running statistics, no dropout, nothing learnt.
 *
 * Runs a forward-only program of the training's own splits on the training worker's weights; if workers' weights
 * differ, on their mean. Samples go in global batches; the last one is filled up with padding that is not counted, so
 * every sample counts exactly once. */
#ifndef GHP_EXECUTOR_TRAIN_EVALUATE_H
#define GHP_EXECUTOR_TRAIN_EVALUATE_H

#include "executor/train/hits.h"
#include "executor/train/rank_plan.h"
#include "executor/train/stop.h"

struct ghp_evaluation {
    int64_t samples;
    double loss;           /* mean */
    double perplexity;     /* exp(loss); 0: the network's input is not tokens */
    bool of_numbers;       /* labels are: there is an absolute error, and no accuracy */
    double accuracy;       /* fraction of samples whose largest output is their label */
    double absolute_error; /* mean of |output - label| */
    struct ghp_hits hits;  /* as many as were asked for; owned */
    double seconds;
    bool complete; /* else it was told to end, and nothing else is set */
};

struct ghp_evaluation_request {
    struct ghp_data *data;
    enum ghp_data_set set;
    enum ghp_hits_detail detail;
    struct ghp_stop *stop;                 /* may end it early; NULL: nothing does */
    const struct ghp_rank_plan *rank_plan; /* by which the worker was opened */
};

/* Evaluates `worker`, which must be flushed.
 *
 * evaluation   written; to be released after a failure too
 *
 * Collective over all workers
 * Tested    tests/executor/train/test_evaluate.c */
enum ghp_status ghp_evaluate(struct ghp_worker *worker, struct ghp_evaluation_request request,
                             struct ghp_evaluation *evaluation);
void ghp_evaluation_release(struct ghp_evaluation *evaluation); /* accepts a zeroed one */

#endif
