/* executor/train/evaluate.h - loss and accuracy over all samples of a set: running statistics, no dropout, nothing
 * learnt.
 *
 * Runs a forward-only program of the training's own splits on the training worker's weights; where workers' weights
 * differ, on their mean. Samples go in global
 * batches; the last one is filled up with padding that is not counted, so every sample counts exactly once. */
#ifndef GHP_EXECUTOR_TRAIN_EVALUATE_H
#define GHP_EXECUTOR_TRAIN_EVALUATE_H

#include "executor/engine/worker.h"
#include "executor/train/stop.h"

struct ghp_evaluation {
    int64_t samples;
    double loss;       /* mean */
    double perplexity; /* exp(loss); 0: the network's input are no tokens */
    double accuracy;   /* share of samples whose largest output is their label */
    double seconds;
    bool complete; /* else it was told to end, and nothing else is set */
};

/* Evaluates `worker`, which must be flushed. Ends early where `stop` (or NULL) says so.
 *
 * Collective over all workers
 * Tested    tests/executor/train/test_evaluate.c */
enum ghp_status ghp_evaluate(struct ghp_worker *worker, struct ghp_data *data,
                             enum ghp_data_set set, struct ghp_stop *stop,
                             struct ghp_evaluation *evaluation);

#endif
