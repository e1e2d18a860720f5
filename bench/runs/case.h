/* bench/runs/case.h - one published run as ghp says it: network, machine, links and the run's own plan.
 *
 * Its step is ghp's program of that plan, costed by the analytic model of data sheets and simulated. One number is
 * taken from a measurement: `rate`, by which all computation is faster than the rule of thumb.
 *
 * Call order: ghp_run_case_open, then unless it gave a reason ghp_run_case_step any number of times, then
 * ghp_run_case_close.
 *
 * Tested  tests/tools/bench/test_published_runs.sh */
#ifndef GHP_BENCH_RUNS_CASE_H
#define GHP_BENCH_RUNS_CASE_H

#include "bench/runs/rows.h"
#include "core/cost/machine.h"
#include "core/program/lowering.h"
#include "core/sharding/stage.h"

enum { GHP_RUN_REASON_SIZE = 256 };

struct ghp_run_case {
    const struct ghp_run_row *row;
    char reason[GHP_RUN_REASON_SIZE]; /* why ghp cannot say the row; "": it can */
    double measured_s;
    int devices;
    struct ghp_model model;
    struct ghp_machine machine;
    struct ghp_precision precision;
    bool fp16; /* of two bytes: fp16, not bf16 */
    struct ghp_staging staging;
    struct ghp_split *splits;     /* one a layer, owned */
    bool *recompute;              /* one a layer, owned */
    bool stores_scores;           /* attention without flash */
    struct ghp_lowering lowering; /* points into this case, which stays where it is */
};

/* Fills the case. A row that ghp cannot describe gets a reason, and that does not count as a failure.
 *
 * models   folder of networks
 *
 * Returns   GHP_OK; GHP_ERR_IO, GHP_ERR_NO_MEMORY */
enum ghp_status ghp_run_case_open(const struct ghp_run_row *row, const char *models,
                                  struct ghp_run_case *item);
void ghp_run_case_close(struct ghp_run_case *item); /* accepts a zeroed one */

/* Seconds of a step with that rate.
 *
 * Returns   as ghp_plan_predict_step */
enum ghp_status ghp_run_case_step(const struct ghp_run_case *item, double rate, double *step_s);

/* ---- parts of opening, each of which may set the reason ---- */

void ghp_run_case_refuse(struct ghp_run_case *item, const char *fmt, ...) GHP_PRINTF(2, 3);

/* The network by the row's model column. Local */
enum ghp_status ghp_run_case_model(struct ghp_run_case *item, const char *models);

/* The machine by the columns device and interconnect, with as many nodes as the row has. */
enum ghp_status ghp_run_case_machine(struct ghp_run_case *item);

/* What of the parameters each worker keeps by the row's sharding column, and whether ghp knows the word. */
bool ghp_run_case_sharding(const struct ghp_run_row *row, enum ghp_param_sharding *sharding);

/* Splits, stages, micro-batches, layers recomputed and buckets, as the row's system does them. */
enum ghp_status ghp_run_case_plan(struct ghp_run_case *item);

#endif
