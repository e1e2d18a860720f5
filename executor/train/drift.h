/* executor/train/drift.h - whether steps have become slower or faster during a run, and where: a worker that throttles
 * or shares its cores, a link that has lost its rate.
 *
 * A check runs once at least ten seconds and sixteen steps have passed since the last one. Each worker takes means over
 * the steps since then (64 at most), of the step and of each instruction. It compares them with the means at its first
 * check, and sends all workers a few numbers of the difference, so all come to the same result. If two checks in a row
 * find the same, it is reported once, and later checks compare with these means.
 *
 * A slow worker makes all others wait in their exchanges. So the worker whose computing has grown most is named first;
 * a link only if even the worker that waits least for others spends more on its exchanges.
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
struct ghp_drift_part {
    double before_s, now_s;
    double layer, term; /* layer -1: none */
};

struct ghp_drift_message {  /* of one worker, as it is told; doubles alone */
    double before_s, now_s; /* a step */
    struct ghp_drift_part computing, exchanging;
};

enum ghp_drift_place { GHP_DRIFT_NONE, GHP_DRIFT_WORKER, GHP_DRIFT_LINK, GHP_DRIFT_ELSEWHERE };

struct ghp_drift_finding {
    enum ghp_drift_place place;
    int worker;                 /* WORKER: that computes longer; LINK: that waits least */
    struct ghp_drift_part part; /* of that worker */
    double before_s, now_s;     /* a step */
    double others_times; /* WORKER: how many times as long others compute, at most; 0: no others */
};

/* NONE if steps are neither 1.25 times as long as before nor 0.8 times. Local; pure. */
struct ghp_drift_finding ghp_drift_find(const struct ghp_drift_message *messages, int n);

struct ghp_drift {
    double *before_s;           /* [instructions], of the measure; NULL: not looked yet; owned */
    double step_s;              /* of the measure; 0: none yet */
    double looked_s;            /* by the workers' clock, struct ghp_stop's told_s */
    int64_t looked;             /* steps done then */
    int steps;                  /* steps that the means are over */
    enum ghp_drift_place found; /* by the last look */
};

/* Call after a step and the check of `stop`. Runs a check if it is due; worker 0 prints what it finds, and the next
 * heartbeat has it.
 *
 * done   steps
 *
 * Returns   GHP_OK; GHP_ERR_COMM; GHP_ERR_NO_MEMORY
 * Collective over all workers */
enum ghp_status ghp_drift_look(struct ghp_drift *drift, struct ghp_worker *worker,
                               const struct ghp_stop *stop, int64_t done);
/* The training continues with another program after `done` steps: forgets what was measured of the former one.
 * Local. */
void ghp_drift_restart(struct ghp_drift *drift, int64_t done);
void ghp_drift_release(struct ghp_drift *drift); /* accepts a zeroed one */

#endif
