/* executor/report/report.h - what a run says at its end: tables for people. The same numbers as
 * executor/report/run_file.h writes. */
#ifndef GHP_EXECUTOR_REPORT_REPORT_H
#define GHP_EXECUTOR_REPORT_REPORT_H

#include "core/plan/plan.h"
#include "executor/report/prediction_error.h"
#include "executor/state/checkpoint.h"
#include "executor/train/verify/verify.h"

#include <stdio.h>

struct ghp_run_guard { /* data parallelism timed in turns with the plan */
    int64_t step;      /* steps done then; 0: it was not */
    double plan_step_s, data_step_s;
    double ratio, ratio_low,
        ratio_high; /* the second by the first: median, between which it lies */
    bool switched;  /* the training continued with data parallelism */
};

struct ghp_run { /* everything known after a run; borrowed from the code that fills it in */
    const struct ghp_plan *plan;
    const char *plan_path;
    const struct ghp_program *program; /* rank 0's */
    const struct ghp_prediction_errors *prediction_errors;
    const char *backend, *numerics, *data, *fault;
    struct ghp_precision precision;
    int threads;
    bool oversubscribed;
    const char *emulation;      /* what machines were emulated; NULL: none */
    struct ghp_mix_count mixed; /* of worker 0 (executor/mixing/mixer.h); no mixes: none */
    int64_t late_steps; /* whose computing took longer than emulated, of the worker with most */
    bool comparable;    /* the plan's profile is of this backend, precision and numerics */
    uint64_t seed;
    int64_t first_step, steps; /* first_step .. steps - 1 were trained */
    double images_per_s, seconds;
    double tokens_per_s; /* 0: the network's input is not tokens */
    int64_t peak_bytes;  /* that the plan predicted, a worker */
    int64_t allocated_bytes;
    int64_t peak_rss_over_base_bytes; /* greatest of all workers, images left out; -1: not known */
    bool resident_exact;
    /* by worker 0, and of them made while a step ran; 0: none were to be made ahead */
    int64_t samples_loaded, samples_made_ahead;
    bool from_files;       /* samples are; the profile's rate of loading is of generated ones */
    int64_t files_skipped; /* damaged ones, by worker 0 */
    struct ghp_checkpoint_cost checkpoints; /* of worker 0; zeroed: none were written */
    struct ghp_checkpoint_prediction predicted_checkpoint;
    /* how much longer two fixed jobs take at the run's end than when the machine was profiled; 0: not known */
    struct ghp_speed_probe speed;
    struct ghp_run_guard guard;
    const struct ghp_losses *losses; /* of steps first_step ... */
    bool has_accuracy, of_numbers; /* of these, it has an absolute error in place of an accuracy */
    double test_accuracy, test_absolute_error, test_loss;
    double test_perplexity; /* 0: not of tokens */
    int64_t test_samples;
    uint64_t weights_hash, program_hash;
    int different;                               /* tensor whose replicas differ, -1: none */
    const struct ghp_verification *verification; /* NULL: none was asked for */
    const struct ghp_losses *alone_losses;       /* of the single worker; NULL: none */
};

/* Phase table, per-layer table, memory, losses; and where most of the error sits. */
enum ghp_status ghp_report_run(const struct ghp_run *run, FILE *out);

/* Per-tensor table of a verification, first losses of both, PASS or FAIL; beyond the limits the verdict, and which
 * tensor it is of. */
enum ghp_status ghp_report_verification(const struct ghp_run *run, FILE *out);

#endif
