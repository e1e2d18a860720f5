/* planner/pipeline/partition.h - pipeline partitioning: cuts, worker counts and micro-batches, and for each the best
 * splits.
 *
 * A *partition* is a staging (core/sharding/stage.h): everything but the splits. Each has a cheap bound, from the
 * computation that its stages cannot avoid; in the order of that bound each is searched as an instance of its own,
 * until the bound reaches the best plan. Some of the least bounds are simulated before, by data parallelism inside
 * their stages, and the fastest are searched first. So what is left out is proven to be no better, and the least bound
 * of what was not looked at to the end bounds the whole space.
 *
 * The space: groups G dividing N; one stage with u > 1, or up to `max_stages` stages; cuts where
 * ghp_stage_may_start; worker counts of a group that sum to K, in units of the least divisor of K that leaves at most
 * 64 of them; u a power of two up to `max_micro_batches`; equal shares if they come out, else the largest block size
 * that does; all schedules but interleaved.
 *
 * Source   docs/explanation/stages.md 6
 * Tested   tests/planner/pipeline/test_partition.c (brute force) */
#ifndef GHP_PLANNER_PIPELINE_PARTITION_H
#define GHP_PLANNER_PIPELINE_PARTITION_H

#include "planner/search/search.h"

enum { GHP_PARTITION_STAGES = 4, GHP_PARTITION_UNITS = 64 };

struct ghp_partition_space {
    int max_stages;        /* 1 .. GHP_PARTITION_STAGES */
    int max_micro_batches; /* 1 .. GHP_MAX_MICRO_BATCHES */
    int groups;            /* 0: any */
};

typedef enum ghp_status ghp_partition_fn(void *context, const struct ghp_staging *staging);

/* A stage of a partition, told when its end is known, after the stages before it: layers first .. end - 1,
 * `workers` of each of `groups`, `block_size` as in struct ghp_stage but never 0, `samples` of a group's micro-batch.
 * pruned: no partition that begins with these stages, or whose stage ends later, can be of use. */
struct ghp_partition_prefix {
    int stage, first, end, workers, block_size, groups, micro_batches;
    int64_t samples;
};
typedef enum ghp_status
ghp_partition_prune_fn(void *context, const struct ghp_partition_prefix *part, bool *pruned);

struct ghp_partition_visitor {
    ghp_partition_fn *visit;
    ghp_partition_prune_fn *prune; /* NULL: nothing is left out */
    void *context;
};

/* Calls visit for every partition of the space but the trivial one and those that begin with pruned stages. The
 * staging is the caller's for the call only.
 *
 * Returns   GHP_OK; what the visitor's functions return */
enum ghp_status ghp_partition_each(const struct ghp_model *model, struct ghp_problem problem,
                                   const struct ghp_partition_space *space,
                                   const struct ghp_partition_visitor *visitor);

struct ghp_partition_job {
    const struct ghp_lowering *lowering; /* without staging */
    const struct ghp_profile *profile;   /* finalized */
    struct ghp_partition_space space;
    int64_t limit_bytes; /* 0: none */
    double deadline_s;   /* on ghp_now_s's clock */
    double gap;
    enum ghp_solver solver;
    double best_s; /* of a plan that is there: only faster ones are looked for; INFINITY: none is */
    const struct ghp_split *start; /* its splits, which searches start from; borrowed; NULL: none */
};

struct ghp_partition {
    bool found; /* a plan faster than best_s */
    struct ghp_staging staging;
    struct ghp_split *splits; /* owned */
    int64_t *shares;          /* the staging's, owned; or NULL */
    bool *recompute;          /* the staging's, owned; or NULL */
    double step_s;
    int64_t peak_bytes;
    int64_t least_bytes; /* if nothing fits: the least arena found, 0: none; */
    bool least_proven;   /* no partition that was searched needs less */
    /* no plan of the space is faster; INFINITY: every partition is proven and none is better */
    double bound_s;
    bool proven;        /* the whole space is */
    int64_t partitions; /* partitions that their first stages did not rule out */
    int64_t searched;   /* that were not ruled out by their first bound */
    int64_t plans, nodes;
};

/* Returns   GHP_OK; GHP_ERR_MISSING; GHP_ERR_NO_MEMORY; GHP_ERR_INTERNAL */
enum ghp_status ghp_partition_compute(const struct ghp_partition_job *job,
                                      struct ghp_partition *partition);
void ghp_partition_release(struct ghp_partition *partition); /* accepts a zeroed one */

/* The step of a staging that is sound, by data parallelism inside its stages; INFINITY if it needs more than the
 * memory, or layers that share parameters keep it away.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING; GHP_ERR_NO_MEMORY; errors of lowering */
enum ghp_status ghp_partition_by_data(const struct ghp_partition_job *job,
                                      const struct ghp_staging *staging, double *step_s);

/* The best splits of one staging, within `force` (planner/search/baselines.h) if that is not NULL. best_s does not
 * count.
 *
 * Returns   GHP_OK (not found: nothing fits the memory); GHP_ERR_INPUT (the staging cannot be); as above */
enum ghp_status ghp_partition_one(const struct ghp_partition_job *job,
                                  const struct ghp_staging *staging, const char *force,
                                  struct ghp_partition *partition);

#endif
