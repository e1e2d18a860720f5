/* executor/cli/session.h - one run of ghp-run from its options to its report, on every worker alike.
 *
 * Trains by one plan; or compares several (executor/compare/compare.h), and then trains by the fastest where steps were asked for.
 * Opens things in phases; after each phase that can fail on one worker alone, all workers agree, so that a failure ends
 * all of them with one message. Inside the training loop nobody can agree: there a failure must end in abort, and
 * `in_loop` says so to main. */
#ifndef GHP_EXECUTOR_CLI_SESSION_H
#define GHP_EXECUTOR_CLI_SESSION_H

#include "core/base/opts.h"
#include "executor/platform/binding.h"
#include "executor/train/fault.h"
#include "executor/train/lr_schedule.h"
#include "executor/transport/transport.h"

enum { GHP_NOT_SET = -1, GHP_SESSION_PLANS = 16 }; /* most plans of a session */

enum ghp_numerics_choice {
    GHP_NUMERICS_AUTO,
    GHP_NUMERICS_EXACT,
    GHP_NUMERICS_FAST
}; /* auto: exact when verifying */
enum ghp_evaluate_choice {
    GHP_EVALUATE_AUTO,
    GHP_EVALUATE_ON,
    GHP_EVALUATE_OFF
}; /* auto: data from files */

/* of reductions with computing */
enum ghp_overlap_choice { GHP_OVERLAP_ON, GHP_OVERLAP_OFF };

struct ghp_session_options { /* as the command line says; defaults are ghp-run.c's */
    const char *plan_paths[GHP_SESSION_PLANS];
    int n_plans;            /* >= 1; several are compared */
    const char *model_path; /* NULL: no check */
    const char *data;
    double split;          /* 0: none */
    int64_t steps, epochs; /* GHP_NOT_SET, or >= 1; at most one is set */
    double learning_rate, momentum, weight_decay;
    int schedule; /* enum ghp_schedule_kind */
    int64_t warmup_steps;
    int64_t seed;
    const char *init;     /* NULL: random, by the seed */
    int64_t verify_steps; /* GHP_NOT_SET: no verification */
    int64_t ab_steps;     /* GHP_NOT_SET: no comparison; else timed steps of a turn, */
    int64_t ab_rounds, ab_warmup_steps; /* turns of each plan, steps before timing; >= 1 */
    /* fewer timed steps, at least one, where a turn would last longer; 0: no limit */
    double ab_turn_s;
    const char *run_folder; /* or NULL; of the compared plans' run files */
    int numerics;           /* enum ghp_numerics_choice */
    int precision;          /* 0: the plan's; else 1 more than the index of core/model/precision.h */
    const char *backend;    /* NULL: the plan's */
    int64_t threads;        /* GHP_NOT_SET: the cores that the plan gives the worker */
    int bind;               /* enum ghp_bind_mode */
    int overlap;            /* enum ghp_overlap_choice */
    int carrier;            /* enum ghp_carrier_choice */
    double watchdog_s;      /* longest wait for another worker */
    int evaluate;           /* enum ghp_evaluate_choice */
    const char *metrics_path, *checkpoint_folder, *run_path; /* or NULL */
    int64_t checkpoint_every;                                /* 0: at epochs' ends only */
    bool resume, json;
    int fault; /* enum ghp_fault */
};

struct ghp_session {
    const struct ghp_tool *tool; /* its options go into the run file */
    const struct ghp_session_options *options;
    const struct ghp_transport_ops *transport_ops;
    struct ghp_transport *transport;
    bool in_loop;  /* a failure now must abort all workers */
    bool verified; /* false: a verification was asked for and did not pass */
};

/* The whole run. stdout gets the report (or one JSON object), from rank 0.
 *
 * Returns   GHP_OK; a failure, the same on all workers unless in_loop
 * Collective over all workers */
enum ghp_status ghp_session_run(struct ghp_session *session);

#endif
