/* planner/make/candidates.h - all plans that are found for a request: baselines, the search's plans, stages, plans by
 * trial, the plan by rules.
 *
 * Each is found once, from those found before it, and not changed afterwards. make/choice.h chooses among them. The
 * order: the three baselines; the search over all that the request leaves open, from the baselines' plans; stages and
 * micro-batches; virtual stages; layers recomputed if the memory binds; shares by the workers' speeds; rules of
 * thumb.
 *
 * Called by planner/make/make.h alone. Tested  tests/planner/make/test_make.c, test_certificate.c */
#ifndef GHP_PLANNER_MAKE_CANDIDATES_H
#define GHP_PLANNER_MAKE_CANDIDATES_H

#include "planner/make/candidate.h"

enum { GHP_BASELINES = 3 };

struct ghp_baseline_found {
    struct ghp_search_result search; /* its plans start later searches */
    struct ghp_partition recomputed; /* if none of them fits; zeroed: not tried */
    struct ghp_candidate plan;       /* the fastest of them, with its bucket size */
    char *reason;                    /* why there is none; NULL: there is */
};

struct ghp_candidates {
    struct ghp_baseline_found baseline[GHP_BASELINES]; /* data, model, owt */
    /* data parallelism whose batch norms take each worker's own samples; no splits: it does not apply */
    struct ghp_candidate local_data;
    /* data parallelism with all parameters sharded for each pass; no splits: not asked for, or it is baseline[0] */
    struct ghp_candidate fsdp;
    struct ghp_search_result shared; /* of plans without stages; zeroed: not searched */
    struct ghp_partition stages;     /* those given, or the best of all */
    bool stages_searched;
    struct ghp_prediction stages_predicted;      /* with the search's buckets */
    struct ghp_partition trial[GHP_TRIAL_COUNT]; /* but BUCKETS; zeroed: not tried */
    struct ghp_partition rules;
    bool rules_tried;
    struct ghp_prediction rules_predicted;
};

/* The strategy of a baseline. */
enum ghp_strategy ghp_baseline_strategy(int baseline);

/* Plans without stages: of the search, or of the baseline that was asked for. */
const struct ghp_search_result *ghp_candidates_shared(const struct ghp_plan_context *context,
                                                      const struct ghp_candidates *candidates);

/* Plans simulated and branch-and-bound nodes of all searches for the plan, baselines' and rules' aside. */
void ghp_candidates_count(const struct ghp_plan_context *context,
                          const struct ghp_candidates *candidates, int64_t *plans, int64_t *nodes);

void ghp_candidates_release(struct ghp_candidates *candidates);

/* ---- one each; the candidates are those found before ----
 *
 * best_s   of the plan to beat; INFINITY: there is none
 *
 * Each returns   GHP_OK (also without such a plan); GHP_ERR_USAGE; errors of lowering and costing;
 *                GHP_ERR_NO_MEMORY */

/* A baseline, from those before it; one that cannot be has its reason. Layers are recomputed if the request allows
 * it and nothing fits otherwise. Data parallelism uses the request's data_sync if that is certainly faster, or if
 * nothing else fits. */
enum ghp_status ghp_find_baseline(const struct ghp_plan_context *context,
                                  const struct ghp_candidates *before, int baseline,
                                  struct ghp_baseline_found *found);
/* The best plans without stages of what the request leaves open, from the baselines'. */
enum ghp_status ghp_find_shared(const struct ghp_plan_context *context,
                                const struct ghp_candidates *before,
                                struct ghp_search_result *found);
/* The best plan of the stages given. */
enum ghp_status ghp_find_given_stages(const struct ghp_plan_context *context,
                                      struct ghp_partition *found);
/* The same with layers recomputed, if that fits and takes less than best_s. */
enum ghp_status ghp_find_given_recomputed(const struct ghp_plan_context *context, double best_s,
                                          struct ghp_partition *found);
/* The best plan of all stages and micro-batches, from the best without, and what it is predicted to take. */
enum ghp_status ghp_find_stages(const struct ghp_plan_context *context,
                                const struct ghp_search_result *shared, double best_s,
                                struct ghp_partition *found, struct ghp_prediction *predicted);
/* Virtual stages, each stage's chunks cut by computation. */
enum ghp_status ghp_find_interleaved(const struct ghp_plan_context *context, double best_s,
                                     struct ghp_partition *found);
/* Layers recomputed, if the memory keeps a faster plan away. */
enum ghp_status ghp_find_recomputed(const struct ghp_plan_context *context, double best_s,
                                    struct ghp_partition *found);
/* Data parallelism with local statistics and the better of the request's synchronisers, for a network whose
 * statistics are global. There is none for other networks, or if it does not fit. */
enum ghp_status ghp_find_fsdp(const struct ghp_plan_context *context,
                              const struct ghp_candidates *before, struct ghp_candidate *found);
enum ghp_status ghp_find_local_data(const struct ghp_plan_context *context,
                                    struct ghp_candidate *found);
/* Makes that plan the data-parallel baseline if it is data parallelism, and faster or the only one that fits: it was
 * searched for longer. */
enum ghp_status ghp_better_data(const struct ghp_plan_context *context,
                                const struct ghp_partition *recomputed,
                                struct ghp_baseline_found *data);
/* Unequal shares for workers that are not equally fast. */
enum ghp_status ghp_find_load_balance(const struct ghp_plan_context *context, double best_s,
                                      struct ghp_partition *found);
/* The plan by rules, and what it is predicted to take. */
enum ghp_status ghp_find_rules(const struct ghp_plan_context *context, struct ghp_partition *found,
                               struct ghp_prediction *predicted);

#endif
