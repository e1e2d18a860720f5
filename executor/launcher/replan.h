/* executor/launcher/replan.h - another plan for a machine that changes under a training: when a heartbeat tells of a
 * slower worker or of slower links, a command makes a plan for the machine as it is now, and the training goes over to
 * it if that makes up for a restart.
 *
 * The command is a call of ghp-plan without --output, run by sh with what has changed as further options:
 *
 *     COMMAND --set slow.worker=3 --set slow.factor=2.1 --output "$GHP_REPLANNED"
 *
 * $GHP_WORKERS is the number of workers. Steps that are shorter again mean that nothing is slow any more.
 *
 * Call order: begin, with each attempt -> look, as often as one likes.
 *
 * Tested  tests/executor/launcher/test_replan.c, tests/tools/launch/test_replan.sh */
#ifndef GHP_EXECUTOR_LAUNCHER_REPLAN_H
#define GHP_EXECUTOR_LAUNCHER_REPLAN_H

#include "core/base/heartbeat.h"
#include "executor/launcher/question.h"

enum {
    GHP_REPLAN_PATH_BYTES = 4096,
    GHP_REPLAN_TEXT_BYTES = 256,
    GHP_SLOWDOWN_SETS = 3,
    GHP_SLOWDOWN_SET_BYTES = 48
};

/* What the machine lacks of the one that was profiled. */
struct ghp_slowdown {
    int worker;    /* its rank */
    double factor; /* factor of its computing time; 1: no worker is slow */
    double links;  /* factor of the exchanges' time; 1: as profiled */
};

struct ghp_replan {
    /* given */
    const char *command; /* NULL: no plan is ever made */
    const char *folder;  /* of the plans that are made */
    int workers;
    /* found */
    struct ghp_slowdown slowdown;
    /* the last that was looked at; its number 0: none of this attempt */
    struct ghp_beat_change change;
    int made;                         /* plans so far */
    struct ghp_question question;     /* the command that runs */
    char path[GHP_REPLAN_PATH_BYTES]; /* of the plan that is made */
};

enum ghp_replan_news {
    GHP_REPLAN_NOTHING,
    GHP_REPLAN_MADE,      /* a plan for the machine as it is, in `path` */
    GHP_REPLAN_RECOVERED, /* the machine is again as profiled */
    GHP_REPLAN_FAILED     /* the command, which has said why */
};

/* Before an attempt: it has not changed yet. Ends a command that runs. Local. */
void ghp_replan_begin(struct ghp_replan *replan, int workers);

/* Starts the command if the beat tells of a change, and says so; asks for its end without waiting. What changes
 * meanwhile is looked at after its end. Local. */
enum ghp_replan_news ghp_replan_look(struct ghp_replan *replan, const struct ghp_beat *beat);

/* Adds a change to the known ones. If two workers are slow, the newer one is kept: --set names one. Local; pure. */
struct ghp_slowdown ghp_slowdown_after(struct ghp_slowdown slowdown,
                                       const struct ghp_beat_change *change);

/* What is slow, for people. Returns text. Local; pure. */
const char *ghp_slowdown_say(const struct ghp_slowdown *slowdown, char text[GHP_REPLAN_TEXT_BYTES]);
/* Writes the slowdown as overrides (core/plan/what_if.h). Returns their number. Local; pure. */
int ghp_slowdown_sets(const struct ghp_slowdown *slowdown,
                      char sets[GHP_SLOWDOWN_SETS][GHP_SLOWDOWN_SET_BYTES]);

/* A plan's step, as predicted on the plan's own machine with what has changed since. [s]
 *
 * path   of a plan, or of a set with one for `workers` workers
 *
 * Returns   GHP_OK; as ghp_plan_load_for and ghp_what_if_apply
 * Local */
enum ghp_status ghp_replan_predict(const char *path, int workers,
                                   const struct ghp_beat_change *change, double *step_s);

/* Whether a plan whose step is surely shorter makes up for a restart in the steps that are left. Local; pure. */
bool ghp_replan_pays(double now_s, double step_s, int64_t steps_left, double restart_s);

#endif
