/* executor/train/drift.h - whether steps have become slower or faster during a run, and where: a worker that throttles
 * or shares its cores, a link that has lost its rate.
 *
 * Every ten seconds, and sixteen steps, each worker takes means over the steps since, 64 at most: the whole, and each
 * instruction. It holds them against those of its first look, and tells all workers a few numbers of the difference,
 * from which all find the same. What two looks in a row find is said once, and is the measure from then on.
 *
 * A slow worker makes all others wait in their exchanges. So the worker whose computing has grown most is named first;
 * a link only where even the worker that waits least for others spends more on its exchanges.
 *
 * Tested  tests/executor/train/test_drift.c */
#ifndef GHP_EXECUTOR_TRAIN_DRIFT_H
#define GHP_EXECUTOR_TRAIN_DRIFT_H

#include "executor/train/stop.h"

enum ghp_drift_term {
    GHP_DRIFT_FORWARD,
    GHP_DRIFT_BACKWARD,
    GHP_DRIFT_UPDATE,
    GHP_DRIFT_SAMPLES, /* all from here on are exchanges: */
    GHP_DRIFT_RESHARD,
    GHP_DRIFT_REDUCTION,
    GHP_DRIFT_TRANSFER,
    GHP_DRIFT_TERMS
};

/* Seconds of a step that one worker computes, or exchanges; and the layer and term that make the most of the
 * difference, numbers too. */
struct ghp_drift_share {
    double before_s, now_s;
    double layer, term; /* layer -1: none */
};

struct ghp_drift_message {  /* of one worker, as it is told; doubles alone */
    double before_s, now_s; /* a step */
    struct ghp_drift_share computing, exchanging;
};

enum ghp_drift_place { GHP_DRIFT_NONE, GHP_DRIFT_WORKER, GHP_DRIFT_LINK, GHP_DRIFT_ELSEWHERE };

struct ghp_drift_finding {
    enum ghp_drift_place place;
    int worker;                   /* WORKER: that computes longer; LINK: that waits least */
    struct ghp_drift_share share; /* of that worker */
    double before_s, now_s;       /* a step */
    double others_times; /* WORKER: how many times as long others compute, at most; 0: no others */
};

/* NONE where steps are neither 1.25 times as long as before nor 0.8 times. Local; pure. */
struct ghp_drift_finding ghp_drift_find(const struct ghp_drift_message *messages, int n);

struct ghp_drift {
    double *before_s;           /* [instructions], of the measure; NULL: not looked yet; owned */
    double step_s;              /* of the measure; 0: none yet */
    double looked_s;            /* by the workers' clock, struct ghp_stop's told_s */
    int64_t looked;             /* after so many steps */
    int steps;                  /* over so many */
    enum ghp_drift_place found; /* by the last look */
};

/* After a step, behind the check of `stop`: looks where it is time; worker 0 says what it finds, and the next heartbeat
 * has it.
 *
 * done   steps
 *
 * Returns   GHP_OK; GHP_ERR_COMM; GHP_ERR_NO_MEMORY
 * Collective over all workers */
enum ghp_status ghp_drift_look(struct ghp_drift *drift, struct ghp_worker *worker,
                               const struct ghp_stop *stop, int64_t done);
/* The training goes on by another program, after `done` steps: what was measured was of the former one. Local. */
void ghp_drift_restart(struct ghp_drift *drift, int64_t done);
void ghp_drift_release(struct ghp_drift *drift); /* accepts a zeroed one */

#endif
