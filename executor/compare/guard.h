/* executor/compare/guard.h - times data parallelism in turns with a plan whose prediction does not hold or whose
 * profile was disturbed. The training continues with data parallelism if it is faster.
 *
 * The training's own steps are the plan's turns, so nothing of it is lost and no bit of it changes if the plan is
 * kept. Data parallelism's turns are steps of a second worker that begins with the training's weights; they are thrown
 * away. If it is faster in every round, the training's state passes to that worker, as with --resume under another plan
 * (executor/state/migrate.h), and the training continues there.
 *
 * Call order: ghp_guard_open -> training->guard = &guard->base -> ghp_train -> guard->found. */
#ifndef GHP_EXECUTOR_COMPARE_GUARD_H
#define GHP_EXECUTOR_COMPARE_GUARD_H

#include "executor/report/report.h"
#include "executor/train/setup.h"
#include "executor/train/train.h"

/* auto: in trainings of more than GHP_GUARD_STEPS, if the first steps are beyond the prediction's error or the
 * plan's profile was disturbed; on: in any that has steps enough, whatever they take */
enum ghp_guard_choice { GHP_GUARD_AUTO, GHP_GUARD_ON, GHP_GUARD_OFF };
enum { GHP_GUARD_STEPS = 200, GHP_GUARD_TEXT_BYTES = 512 };
extern const char *const ghp_guard_names[]; /* NULL after the last */

struct ghp_guard {
    struct ghp_training_guard base;     /* the training's */
    struct ghp_setup *setup;            /* borrowed */
    struct ghp_session_plan **plan;     /* that is trained: another if it was changed; borrowed */
    bool always;                        /* whatever the first steps take */
    char why_not[GHP_GUARD_TEXT_BYTES]; /* it cannot act; "": it can */
    struct ghp_run_guard found;
};

/* Opens the guard of a training with one plan of the setup.
 *
 * steps    that are to be trained
 * active   receives whether there is anything to guard; the same on every worker
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (asked for, and this plan cannot have one: says why)
 * Local
 * Tested    tests/tools/run/test_guard.sh */
enum ghp_status ghp_guard_open(struct ghp_setup *setup, struct ghp_session_plan **plan,
                               int64_t steps, struct ghp_guard *guard, bool *active);

#endif
