/* executor/launcher/restart.h - what follows an attempt that failed: which plan, after which pause, or none.
 *
 * An attempt made progress if it left a newer checkpoint than it began with. After progress the count of failures
 * starts again. If the workers that are left are not counted, the same plan is tried once more, then each time the next
 * smaller one: an attempt that cannot start may lack a worker.
 *
 * Tested  tests/executor/launcher/test_restart.c */
#ifndef GHP_EXECUTOR_LAUNCHER_RESTART_H
#define GHP_EXECUTOR_LAUNCHER_RESTART_H

#include <stdbool.h>
#include <stdint.h>

struct ghp_restart {
    const int *workers; /* of the plans, from the most on; borrowed */
    int n;
    int plan;          /* the present one */
    int failures;      /* one after the other without progress */
    int most_failures; /* that are followed by a restart */
    double pause_s;    /* after the first; doubled with each, up to a minute */
};

enum ghp_restart_verdict {
    GHP_RESTART,
    GHP_RESTART_TOO_OFTEN,   /* as many failures without progress as are allowed */
    GHP_RESTART_TOO_FEW_LEFT /* workers, for every plan */
};

/* After a failed attempt: sets `plan` and `failures`.
 *
 * progress       whether it left a newer checkpoint
 * workers_left   as counted; -1: nobody counts
 *
 * Local; pure */
enum ghp_restart_verdict ghp_restart_next(struct ghp_restart *restart, bool progress,
                                          int workers_left);

/* The largest plan for no more workers than that, if it is larger than the present one; else -1. Local; pure. */
int ghp_restart_larger(const struct ghp_restart *restart, int workers_left);

/* How long the present plan has to train before going over to a faster one pays, so that workers that come and go cost
 * no more than they gain: as long as the faster one needs to make up for a restart.
 *
 *     restart_s / (1 - faster_s / present_s)
 *
 * present_s, faster_s   a step of either plan [s]
 * restart_s             from an end in order to the next step [s]
 *
 * Returns   seconds; infinite if it is not faster
 * Local; pure */
double ghp_restart_pays_s(double present_s, double faster_s, double restart_s);

/* The pause before the attempt. [s] */
double ghp_restart_pause_s(const struct ghp_restart *restart);

#endif
