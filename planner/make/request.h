/* planner/make/request.h - what a plan is asked for: a model, a profile, and what is wished of the plan. */
#ifndef GHP_PLANNER_MAKE_REQUEST_H
#define GHP_PLANNER_MAKE_REQUEST_H

#include "core/cost/missing.h"
#include "core/plan/plan.h"
#include "planner/pipeline/partition.h"
#include "planner/search/baselines.h"
#include "planner/search/search.h"

enum { GHP_BUCKET_AUTO = -1 };

/* Modes of options: id, name. The first of each is the default. */
#define GHP_PIPELINE_MODE_LIST(X)                                                                  \
    X(OFF, "off")   /* every worker owns every layer, but for stages that are given */             \
    X(AUTO, "auto") /* stages and micro-batches are searched too */
#define GHP_RECOMPUTE_MODE_LIST(X)                                                                 \
    X(AUTO, "auto")   /* layers may be recomputed in the backward pass if the memory binds */      \
    X(NEVER, "never") /* every layer is kept */
#define GHP_LOAD_BALANCE_MODE_LIST(X)                                                              \
    X(BY_SPEED, "by-speed") /* slower workers may have fewer samples */                            \
    X(EQUAL, "equal")       /* equal shares, whatever the workers' speeds */

enum ghp_pipeline_mode {
#define GHP_PIPELINE_MODE_ENUM(id, text) GHP_PIPELINE_MODE_##id,
    GHP_PIPELINE_MODE_LIST(GHP_PIPELINE_MODE_ENUM)
#undef GHP_PIPELINE_MODE_ENUM
};
enum ghp_recompute_mode {
#define GHP_RECOMPUTE_MODE_ENUM(id, text) GHP_RECOMPUTE_MODE_##id,
    GHP_RECOMPUTE_MODE_LIST(GHP_RECOMPUTE_MODE_ENUM)
#undef GHP_RECOMPUTE_MODE_ENUM
};
enum ghp_load_balance_mode {
#define GHP_LOAD_BALANCE_MODE_ENUM(id, text) GHP_LOAD_BALANCE_MODE_##id,
    GHP_LOAD_BALANCE_MODE_LIST(GHP_LOAD_BALANCE_MODE_ENUM)
#undef GHP_LOAD_BALANCE_MODE_ENUM
};

struct ghp_plan_request {
    const char *model_path, *profile_path; /* as given */
    const struct ghp_model *model;     /* what model_path was read as; borrowed; NULL: it is read */
    const struct ghp_profile *profile; /* finalized; borrowed */
    struct ghp_problem problem;
    enum ghp_strategy strategy;
    const char *force;    /* planner/search/baselines.h; NULL: nothing */
    int groups;           /* 0: any */
    int64_t memory_bytes; /* 0: no limit */
    /* Bits of enum ghp_param_sharding: what a layer's parameters may be sharded by; 0: NONE alone. */
    unsigned shardings;
    int64_t worker_bytes; /* without one: what the machine has for a worker; 0: unknown */
    /* its buckets may be GHP_BUCKET_AUTO, its synchroniser make/sync_choice.h's one to choose */
    struct ghp_method method;
    /* by which data parallelism, as a baseline, may be too if that is surely faster or alone fits; zeroed: none */
    struct ghp_sync data_sync;
    double time_limit_s; /* of all that makes the plan; what is begun then is finished */
    double gap;          /* relative; a plan this near to the bound will do; 0: the best */
    bool simplify; /* data parallelism if the best plan is not faster by more than its error */
    /* say at which values each layer's choice flips; planner/alternatives/break_even.h */
    bool break_even;
    bool decision_only; /* splits, buckets and what they cost: no alternatives */
    /* as quickly as it can be found: no baselines either, and of equal plans any; with decision_only */
    bool suggestion;
    enum ghp_solver solver;
    enum ghp_pipeline_mode pipeline_mode;
    struct ghp_partition_space space; /* of that search */
    const char *stages; /* the stages as planner/pipeline/partition.h reads them; NULL: not given */
    int micro_batches;  /* with `stages`, or alone; 0: not given */
    enum ghp_pipeline pipeline; /* with several stages and micro-batches given */
    enum ghp_recompute_mode recompute;
    enum ghp_load_balance_mode load_balance;
    /* receives what the plan, and rivals that take at most rivals_s, hang on (planner/make/missing.h); NULL: not
     * asked */
    struct ghp_missing *missing;
    double rivals_s;
    const struct ghp_overrides *what_if; /* what overrides the profile; borrowed; NULL: nothing */
};

/* Whether the numbers of the request can be: workers, batch and groups.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE and GHP_ERR_INPUT, naming what would do */
enum ghp_status ghp_request_check(const struct ghp_plan_request *request);

/* The network: a copy of `model`, or what model_path holds. The caller releases it.
 *
 * Returns   as ghp_network_load */
enum ghp_status ghp_request_open_model(const struct ghp_plan_request *request,
                                       struct ghp_model *model);

/* Whether stages or micro-batches are given, so that only their splits are searched. */
bool ghp_request_has_stages(const struct ghp_plan_request *request);

/* Whether anything of the plan is given: splits, stages, or that it goes by rules. */
bool ghp_request_is_given(const struct ghp_plan_request *request);

/* Whether the fastest of all plans is asked for, those without stages at least. */
bool ghp_request_is_free(const struct ghp_plan_request *request);

/* Whether anything may be found by trial: only if no splits or groups were asked for, and not on GPUs. */
bool ghp_request_may_try(const struct ghp_plan_request *request);

/* Whether layers recomputed in the backward pass are looked for; the same with stages or micro-batches given, whose
 * splits may be given too. */
bool ghp_request_may_recompute(const struct ghp_plan_request *request);
bool ghp_request_may_recompute_given(const struct ghp_plan_request *request);

#endif
