/* executor/train/hits.h - how many labels of an evaluation are the greatest logit, or among the five greatest: of all
 * labels, and of those of each class.
 *
 * Workers see the logits that enter the loss (engine/observer.h). If the classes of a row are divided, each worker says
 * its five greatest logits, and the worker that has the label's says how many of its own are greater. That is summed
 * over all workers after each batch, so every worker has the same counts under any plan. If logits are equal, the first
 * counts as greater.
 *
 * Call order: begin -> for each batch: batch, the worker's step, add -> release. */
#ifndef GHP_EXECUTOR_TRAIN_HITS_H
#define GHP_EXECUTOR_TRAIN_HITS_H

#include "core/base/json.h"
#include "executor/engine/worker.h"

enum ghp_hits_detail { GHP_HITS_TOP1, GHP_HITS_TOP5, GHP_HITS_CLASSES, GHP_HITS_OUTPUTS };
extern const char *const ghp_hits_detail_names[]; /* ends with NULL */

struct ghp_hits_of { /* one class, or all */
    int64_t labels, top1, top5;
};

struct ghp_output_result { /* of one of several outputs */
    double loss;   /* mean, without its weight */
    double second; /* accuracy, or of numbers the mean absolute error */
    bool of_numbers;
};

struct ghp_hits {
    enum ghp_hits_detail detail; /* top1: all below is zero */
    int n_outputs;               /* of detail `outputs`, else 0: nothing else is then counted */
    struct ghp_output_result outputs[GHP_MAX_INPUTS];
    struct ghp_hits_of all;
    int classes;
    struct ghp_hits_of *of_class; /* [classes], owned; NULL: not of each class */
};

/* Whether labels of the network are classes, one a sample or position; of `outputs`, whether it has several.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the loss */
enum ghp_status ghp_hits_check(const struct ghp_model *model, enum ghp_hits_detail detail);

/* Hits as a fraction of `labels` labels; 0 if there are none. */
double ghp_hits_fraction(int64_t hits, int64_t labels);

/* Puts the keys top5, class_labels, class_top1 and class_top5, or outputs, each after `prefix`, as far as they were
 * counted. Fractions of a class without labels are null. Returns false without memory. */
bool ghp_hits_put(const struct ghp_hits *hits, const char *prefix, json_t *object);

struct ghp_hits_counter;

/* Observes `worker`, whose steps are evaluations, from here to release; counts into `hits`, whose detail is beyond
 * top1.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Collective over all workers
 * Tested    tests/executor/train/test_evaluate.c, tests/tools/run/test_evaluate.sh */
enum ghp_status ghp_hits_begin(struct ghp_worker *worker, struct ghp_hits *hits,
                               struct ghp_hits_counter **counter);
/* The samples of the next step; borrowed until they are added. Local. */
enum ghp_status ghp_hits_batch(struct ghp_hits_counter *counter, const struct ghp_step *step);
/* That step is done and settled. Collective over all workers. */
enum ghp_status ghp_hits_add(struct ghp_hits_counter *counter);
void ghp_hits_release(struct ghp_hits_counter *counter); /* accepts NULL */

#endif
