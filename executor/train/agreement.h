/* executor/train/agreement.h - before the first step all ranks agree on what they run: the build, the command, the
 * plans, who computes, the samples and the first weights.
 *
 * Options are compared as their table says (enum ghp_opt_alike), so a new one must have one value on all ranks unless
 * it says otherwise. Paths may differ: what lies there is compared. docs/reference/ranks.md says what may differ.
 *
 * Every function is collective over `who` and returns GHP_OK, or on all of them a failure that names what differs,
 * between whom: GHP_ERR_USAGE of a command, GHP_ERR_INPUT of the rest.
 *
 * Tested    tests/tools/run/test_ranks.sh */
#ifndef GHP_EXECUTOR_TRAIN_AGREEMENT_H
#define GHP_EXECUTOR_TRAIN_AGREEMENT_H

#include "core/base/opts.h"
#include "core/plan/plan.h"
#include "executor/data/data.h"
#include "executor/state/init.h"
#include "executor/transport/control.h"

struct ghp_agreeing { /* ranks that agree */
    struct ghp_control *control;
    struct ghp_comm *comm; /* in host memory */
    const char *doing;     /* struct ghp_alike's; of a command and of models */
};

/* The build and its libraries, then the options, the number of other arguments, and the variables that change what is
 * computed. */
enum ghp_status ghp_agree_on_command(struct ghp_agreeing who, const struct ghp_tool *tool,
                                     int arguments);
/* The networks that a profile is of. */
enum ghp_status ghp_agree_on_models(struct ghp_agreeing who, const struct ghp_model *models, int n);
/* A plan that was read from `path`. */
enum ghp_status ghp_agree_on_plan(struct ghp_agreeing who, const struct ghp_plan *plan,
                                  const char *path);

struct ghp_agreed_backend {
    const char *name, *precision, *numerics;
};
enum ghp_status ghp_agree_on_backend(struct ghp_agreeing who, struct ghp_agreed_backend backend);
enum ghp_status ghp_agree_on_samples(struct ghp_agreeing who, struct ghp_data *data);
enum ghp_status ghp_agree_on_weights(struct ghp_agreeing who, const struct ghp_init_choice *choice);

#endif
