/* executor/train/setup.h - what a session needs before it computes: its plans, who computes and carries, and what is
 * trained.
 *
 * A session has one plan, or several that are to be compared. All plans of a session are for one model, one global
 * batch and the same workers, and run on one backend with one set of data; each has a worker (and its arena) of its
 * own, made when it is wanted. Every function here ends in agreement: it fails on all workers or on none.
 *
 * Call order: ghp_setup_open -> for a plan what session_plan.h says ... -> ghp_setup_release. */
#ifndef GHP_EXECUTOR_TRAIN_SETUP_H
#define GHP_EXECUTOR_TRAIN_SETUP_H

#include "core/optimizer/parameter_groups.h"
#include "core/plan/plan.h"
#include "core/base/opts.h"
#include "executor/platform/binding.h"
#include "executor/platform/emulation.h"
#include "executor/train/rank_plan.h"
#include "executor/train/training_config.h"

/* An --ignore-label that was not given: labels have 32 bits. */
#define GHP_NO_LABEL INT64_MIN

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
    bool dry_run;           /* ends before the first step */
    const char *model_path; /* NULL: no check */
    const char *data;
    double split;              /* 0: none */
    int64_t ignored_label;     /* GHP_NO_LABEL: none */
    const char *class_weights; /* NULL: none */
    const char *augment;       /* NULL: as is usual for the source */
    int labels;                /* enum ghp_labels */
    int shuffle;               /* enum ghp_shuffling */
    int sampler;               /* enum ghp_sampler_choice */
    const char *step_at;       /* NULL: as is usual for --lr-schedule step */
    const char *normalise;     /* NULL: as is usual for the source */
    int64_t skip_damaged;
    int64_t steps, epochs; /* GHP_NOT_SET, or >= 1; at most one is set */
    int optimizer;         /* 0: the plan's; else 1 more than enum ghp_optimizer_index */
    /* GHP_NOT_SET: as is usual for the optimizer; clip_norm: the plan's */
    struct ghp_hyperparameters given;
    struct ghp_parameter_groups groups;
    double ema;                        /* decay of weights' moving average; 0: none */
    int schedule;                      /* enum ghp_lr_schedule_kind */
    int64_t warmup_steps, decay_steps; /* 0: none */
    double least_rate;                 /* that the schedule decays to */
    int64_t seed;
    const char *init; /* NULL: random, by the seed */
    struct ghp_opt_list init_except;
    int64_t verify_steps; /* GHP_NOT_SET: no verification */
    int64_t ab_steps;     /* GHP_NOT_SET: no comparison; else timed steps of a turn, */
    int64_t ab_rounds, ab_warmup_steps; /* turns of each plan, steps before timing; >= 1 */
    /* fewer timed steps, at least one, if a turn would last longer; 0: no limit */
    double ab_turn_s;
    const char *run_folder; /* or NULL; of the compared plans' run files */
    int numerics;           /* enum ghp_numerics_choice */
    int precision;        /* 0: the plan's; else 1 more than the index of core/model/precision.h */
    const char *backend;  /* NULL: the plan's */
    int64_t threads;      /* GHP_NOT_SET: the cores that the plan gives the worker */
    int bind;             /* enum ghp_bind_mode */
    int overlap;          /* enum ghp_overlap_choice */
    int device_transport; /* enum ghp_device_transport_choice */
    int64_t reduce_multiprocessors;   /* of a GPU; 0: not given */
    const char *emulate;              /* executor/platform/emulation.h; NULL: nothing */
    double watchdog_s;                /* longest wait for another worker */
    int evaluate;                     /* enum ghp_evaluate_choice */
    int64_t evaluate_every, patience; /* as in train.h */
    int evaluation_detail;            /* enum ghp_hits_detail */
    bool only_evaluate;               /* trains nothing */
    const char *tensorboard_folder;   /* or NULL */
    int progress;                     /* enum ghp_progress_look */
    const char *metrics_path, *heartbeat_path, *checkpoint_folder, *run_path; /* or NULL */
    int64_t checkpoint_epochs, checkpoint_every;                              /* as in train.h */
    const char *keep;     /* "last:K" or "best:K"; NULL: neither */
    int async_checkpoint; /* 0: on; 1: off */
    int checkpoint_lock;  /* the same */
    int guard;            /* enum ghp_guard_choice */
    bool resume, json;
    bool overwrite;        /* a training that is kept already is replaced */
    int fault;             /* enum ghp_fault */
    const char *failpoint; /* executor/platform/failpoint.h; NULL: none */
};

struct ghp_session {
    const struct ghp_tool *tool; /* its options go into the run file */
    const struct ghp_session_options *options;
    struct ghp_transport *transport;
    bool in_loop; /* a failure now must abort all workers */
    /* of a run without failure: 0; 1 if a verification did not pass or a file is missing; else GHP_EXIT_STOPPED */
    int exit_code;
};

struct ghp_session_plan { /* one plan of a session */
    const char *path;
    struct ghp_plan plan;
    bool comparable; /* the plan's profile is of this backend, precision and numerics */
    struct ghp_rank_plan rank_plan; /* as the plan says */
    struct ghp_worker *worker;      /* NULL unless open */
    uint64_t program_hash; /* of what is run: the programs of all stages' representatives */
};

struct ghp_setup {
    struct ghp_session *session; /* borrowed */
    const struct ghp_session_options *options;
    /* all workers, or of a server all servers; until the plan is read all ranks */
    struct ghp_comm *world;
    int rank, size;       /* size: of the world */
    int server;           /* number of this rank among the servers; -1: it is a worker */
    int here, local_rank; /* workers on this node, and this one's number among them */
    struct ghp_binding binding;
    struct ghp_emulation emulation; /* zeroed: none */
    struct ghp_exec_context exec;
    struct ghp_precision precision;
    int element_bytes; /* of that precision */
    int threads;
    bool exact;
    char *
        network_path; /* of the first plan, where it is now; owned; NULL: not there, or not asked */
    struct ghp_training_config training_config; /* its schedule's steps are the session's to set */
    double *class_weights;                      /* owned; NULL: none */
    int n_session_plans;
    struct ghp_session_plan session_plans[GHP_SESSION_PLANS];
};

/* The worst status of all workers; `what` is what the watchdog says that one waits for. Collective. */
enum ghp_status ghp_setup_agree(struct ghp_setup *setup, enum ghp_status status, const char *what);

/* Reads and checks the plans, binds, opens backend and data; of a server no data.
 *
 * setup   zeroed; to be released after a failure too
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (another number of ranks than workers and servers, another model; plans that cannot
 *           be compared, both named); the failures of files, backend and data
 * Collective over all workers */
enum ghp_status ghp_setup_open(struct ghp_session *session, struct ghp_setup *setup);
void ghp_setup_release(struct ghp_setup *setup); /* closes the entrants too */

#endif
