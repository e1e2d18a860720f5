/* executor/train/train.h - the training loop: steps, epochs, evaluations, checkpoints, the metrics file, the progress
 * bar.
 *
 * Decides what happens when. executor/engine/worker.h runs a step; executor/train/training_config.h says what a step
 * consists of. If a checkpoint or a line of metrics cannot be written, a warning says so, and only that one is lost.
 * All checkpoints but the last are written during the steps (state/checkpoint.h). A signal ends the training after a
 * step, with a checkpoint (train/stop.h). Results come one step late, because a step's sums are complete only when
 * the next one needs their place. */
#ifndef GHP_EXECUTOR_TRAIN_TRAIN_H
#define GHP_EXECUTOR_TRAIN_TRAIN_H

#include "executor/train/drift.h"
#include "executor/train/evaluate.h"
#include "executor/state/checkpoint.h"
#include "executor/platform/memory.h"
#include "executor/train/event_file.h"
#include "executor/train/metrics.h"
#include "executor/train/training_config.h"
#include "executor/train/snapshot.h"
#include "executor/train/losses.h"
#include "executor/train/stop.h"

struct ghp_training;

struct ghp_training_doubt { /* of the first steps */
    bool beyond;            /* the prediction's error; of worker 0, elsewhere false */
    double step_s;          /* what they took each */
};

/* May change the worker when the first steps are known: executor/compare/guard.h. */
struct ghp_training_guard {
    /* Trains on by ghp_training_advance as it sees fit; t->worker, and with it first_step, losses and seconds, may be
     * another's afterwards. Collective over all workers. */
    enum ghp_status (*act)(struct ghp_training_guard *guard, struct ghp_training *t,
                           struct ghp_training_doubt doubt, bool *ends);
};

struct ghp_training {
    /* given */
    struct ghp_worker *worker;
    const struct ghp_rank_plan *rank_plan; /* by which the worker was opened */
    struct ghp_training_config *training_config;
    int64_t first_step, steps; /* first_step .. steps - 1 are trained */
    bool evaluates;            /* on the test set, after each epoch and at the end */
    int64_t evaluate_every;    /* and after this number of steps; 0: not */
    bool evaluates_all;        /* the training set, of data that has no other */
    enum ghp_hits_detail evaluation_detail;
    int64_t patience; /* ends after this number of evaluations without a lower test loss; 0: not */
    bool owes_evaluation; /* of the state at first; later: of `done`, cut short by a signal */
    struct ghp_checkpoint_folder checkpoints; /* path NULL: none; else at the end */
    int64_t checkpoint_epochs;      /* also after every multiple of this many epochs; 0: not */
    int64_t checkpoint_every;       /* and of this many steps; 0: not */
    bool asynchronous;              /* a thread writes them, but for the last */
    struct ghp_heartbeat heartbeat; /* rank 0, with file; else zeroed */
    struct ghp_metrics *metrics;    /* rank 0; NULL elsewhere or without file */
    struct ghp_event_file *events;  /* the same */
    /* NULL, or takes the first step's gradients and the last weights */
    struct ghp_snapshot *snapshot;
    struct ghp_memory *memory; /* begun */
    /* the plan's, on worker 0; error 0: no profile says what this run should take, or how surely */
    double predicted_step_s, predicted_error_s;
    struct ghp_training_guard *guard; /* NULL: nobody */
    /* found */
    struct ghp_comm *world;   /* all workers */
    int64_t done;             /* steps, from 0 on: `steps`, or fewer if a signal ended it */
    struct ghp_stop stop;     /* says which signal */
    struct ghp_drift drift;   /* whether steps have become slower */
    struct ghp_losses losses; /* of steps first_step ... */
    double seconds;           /* of steps and flushes, without evaluations and checkpoints */
    bool has_evaluation;
    int64_t evaluated;                /* steps done before it */
    struct ghp_evaluation evaluation; /* the last one; owned */
    double least_loss;                /* of all evaluations; */
    int64_t least_step;               /* after this step; 0: there was none */
    int64_t not_lower;                /* evaluations since then */
    bool checkpoint_lost;             /* the last one could not be written */
    bool metrics_lost;                /* its file, or that of events, ends early */
};

/* Trains.
 *
 * Returns   GHP_OK, flushed; otherwise the caller must abort, since other workers may wait
 * Collective over all workers */
enum ghp_status ghp_train(struct ghp_training *training);

/* For a guard: trains the steps t->done .. until - 1, or fewer if a signal or the training's end comes first, with
 * all that is due between them; and brings the training to rest, all weights in place. Collective over all workers. */
enum ghp_status ghp_training_advance(struct ghp_training *t, int64_t until, bool *ends);
enum ghp_status ghp_training_pause(struct ghp_training *t);
/* Continues with another plan's worker, which has the state of the first, at rest: as a training that was resumed
 * here. */
enum ghp_status ghp_training_take(struct ghp_training *t, const struct ghp_rank_plan *rank_plan,
                                  struct ghp_worker *worker);

#endif
