/* planner/cli/options.h - ghp-plan's command line: what can be said, and what was. */
#ifndef GHP_PLANNER_CLI_OPTIONS_H
#define GHP_PLANNER_CLI_OPTIONS_H

#include "core/base/opts.h"
#include "planner/schemes/schemes.h"

struct ghp_plan_options {
    const char *profile, *machine, *network, *force, *bucket, *output, *sweep, *stages, *sync,
        *straggler, *wanted, *mps;
    int64_t workers, batch, batch_per_worker, memory_bytes, groups;
    int64_t micro_batches, max_stages, max_micro_batches;
    int64_t servers, nodes, shard_within; /* 0: not given */
    int strategy, precision, solver, pipeline, schedule, load_balance, recompute, optimizer,
        scaling, shard, reduce_precision;
    double time_limit_s, gap, clip_norm, strict;
    bool no_simplify, no_break_even, crossovers, json, analytic;
    struct ghp_opt_list overrides;
    struct ghp_stragglers stragglers; /* of `straggler` */
    int64_t elastic;                  /* workers that may be lost; 0: one plan */
};

/* What the command line sets. */
extern struct ghp_plan_options ghp_plan_chosen;

extern const struct ghp_opt ghp_plan_option_table[];
extern const int ghp_plan_option_count;

extern const char *const ghp_plan_strategy_names[]; /* the choices of --strategy */

#endif
