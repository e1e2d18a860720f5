/* planner/build/build_private.h - private to planner/build/build*.c: what travels through a plan's build, and what
 * its parts do for each other.
 *
 * build/build.c has the order; each part is called at one or two places of it. */
#ifndef GHP_PLANNER_BUILD_BUILD_PRIVATE_H
#define GHP_PLANNER_BUILD_BUILD_PRIVATE_H

#include "planner/build/build.h"

enum { GHP_BUILD_BASELINES = 3 };

/* What is proven of all that was searched: with the buckets that were searched with, and before any trial. */
struct ghp_proven {
    double step_s;  /* of the best plan; INFINITY: none fits */
    double bound_s; /* no plan of what was searched is faster; INFINITY: there is none */
    bool proven;
};

/* What travels through the build. */
struct ghp_build_context {
    const struct ghp_plan_request *request;
    struct ghp_plan *plan;
    struct ghp_lowering how;
    struct ghp_instance instance;
    struct ghp_search_result baseline[GHP_BUILD_BASELINES]; /* data, model, owt */
    int64_t baseline_bucket[GHP_BUILD_BASELINES]; /* the fastest that was tried with its plan: */
    int baseline_kept[GHP_BUILD_BASELINES];       /* this one of the plans kept */
    struct ghp_search_result own;                 /* the plan's search, without stages */
    struct ghp_partition outer;                   /* the search over stages and micro-batches */
    bool searches_outer;                          /* there was one */
    bool staged;                                  /* its plan is taken */
    enum ghp_trial trial;
    struct ghp_proven before_trial; /* where there was one */
    const bool
        *memory_formats; /* which layers' outputs lie blocked; NULL: as data parallelism has them */
    struct ghp_domain domain;      /* what it may choose from */
    struct ghp_prediction fastest; /* before a simpler plan was taken */
    bool kept_fits;                /* a plan with all layers kept does */
    int64_t recompute_bytes;       /* the least arena with layers recomputed; 0: not looked for */
    double began_s;
};

/* On ghp_now_s's clock: where so much of the time limit has gone. */
static inline double ghp_build_deadline(const struct ghp_build_context *m, double share)
{
    return m->began_s + share * m->request->time_limit_s;
}

/* A copy of a text in place of what is there.  GHP_OK; GHP_ERR_NO_MEMORY. */
enum ghp_status ghp_build_set_text(char **to, const char *text);
/* Whether anything may be found by trial: only where no splits or groups were asked for, and not on GPUs. */
bool ghp_build_may_try(const struct ghp_plan_request *w);
/* Whether layers recomputed in the backward pass are looked for. */
bool ghp_build_may_recompute(const struct ghp_build_context *m);

/* ---- build/memory_format.c ---- */

/* Before any search: which tensors lie blocked, so that all plans have the same formats. The layers' splits are
 * overwritten. */
enum ghp_status ghp_build_set_memory_format(struct ghp_build_context *m);
/* Whether the plan that was made can keep to them; else those that the next attempt is to be made with, in *formats
 * (one a layer, owned by the caller): at `attempt` 0 the best under its splits, then none. */
enum ghp_status ghp_build_memory_format_holds(const struct ghp_plan_request *request,
                                              const struct ghp_plan *plan, int attempt,
                                              bool **memory_formats, bool *hold);

/* ---- build/baselines.c ---- */

/* Searches, from the baselines that there are, till that share of the time limit. */
enum ghp_status ghp_build_search(struct ghp_build_context *m, const struct ghp_domain *domain,
                                 double share, struct ghp_search_result *result);
/* Solves all three; one that cannot be has its reason. splits: room for one plan's. */
enum ghp_status ghp_build_baselines(struct ghp_build_context *m, struct ghp_split *splits);
/* A baseline as a plan of its own: what was found for the table. */
enum ghp_status ghp_build_take_baseline(struct ghp_build_context *m);
/* Takes a baseline that is faster: with each layer reduced alone none is, but buckets help one plan more than
 * another. */
enum ghp_status ghp_build_take_faster_baseline(struct ghp_build_context *m);

/* ---- build/buckets.c ---- */

/* The fastest (plan, bucket size) among the plans that a search kept; each layer alone where that is as fast. */
enum ghp_status ghp_build_tune_bucket(const struct ghp_build_context *m,
                                      const struct ghp_search_result *result, int *kept,
                                      int64_t *bucket);
/* A choice of the instance as splits, and what the plan of them takes. */
enum ghp_status ghp_build_predict(const struct ghp_build_context *m, const int *choice,
                                  int64_t bucket, struct ghp_split *splits,
                                  struct ghp_prediction *predicted);

/* ---- build/pipeline.c ---- */

/* A search over stages and micro-batches, till that share of the time limit. */
struct ghp_partition_job ghp_build_job(const struct ghp_build_context *m, double share);
/* The staging that was asked for. */
enum ghp_status ghp_build_search_given(struct ghp_build_context *m);
/* All of them; taken where the best is surely faster than the best without stages. */
enum ghp_status ghp_build_search_stages(struct ghp_build_context *m);

/* ---- build/trials.c ---- */

/* Layers recomputed, where the memory keeps a faster plan away. */
enum ghp_status ghp_build_search_recompute(struct ghp_build_context *m);
/* Unequal shares for workers that are not equally fast; taken where they are surely faster than what was found
 * before. */
enum ghp_status ghp_build_search_load_balance(struct ghp_build_context *m);

/* ---- build/rules.c ---- */

/* The plan by rules, beside the baselines. */
enum ghp_status ghp_build_rules(struct ghp_build_context *m, struct ghp_partition *rules);
/* The same as the plan, where it was asked for, and how far it is from the best. */
enum ghp_status ghp_build_adopt_rules(struct ghp_build_context *m,
                                      const struct ghp_partition *rules);

/* ---- build/second_best.c ---- */

/* The alternatives of the plan, and the plan of the fastest of them where it is faster. */
enum ghp_status ghp_build_second_best(struct ghp_build_context *m);

/* ---- build/certificate.c ---- */

/* What is proven until now. */
struct ghp_proven ghp_build_proof(const struct ghp_build_context *m);
/* Writes it down beside the plan as it is. */
enum ghp_status ghp_build_certify(struct ghp_build_context *m);
/* Says that one stage was kept though stages are faster, by no more than the prediction's error. */
enum ghp_status ghp_build_note_shared(struct ghp_build_context *m);

/* ---- build/margin.c ---- */

/* Takes data parallelism where the plan is not surely faster. */
enum ghp_status ghp_build_simplify(struct ghp_build_context *m);
/* The margin over data parallelism, what it is worth, and what followed. */
enum ghp_status ghp_build_set_margin(struct ghp_build_context *m);

/* ---- build/failure.c ---- */

/* GHP_ERR_INFEASIBLE: why nothing fits, and what would: of a search without stages; */
enum ghp_status ghp_build_fail_memory(const struct ghp_build_context *m,
                                      const struct ghp_search_result *result);
/* of the staging that was asked for; */
enum ghp_status ghp_build_fail_staged(const struct ghp_build_context *m);
/* of all stagings. */
enum ghp_status ghp_build_fail_stages(const struct ghp_build_context *m);

#endif
