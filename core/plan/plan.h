/* core/plan/plan.h - the decision: who does what, what it should cost, and the proof that nothing better was missed.
 *
 * A plan file is self-contained: it carries the model, the splits, and the part of the profile that its program asks
 * for, so ghp-run and ghp-inspect need no other file. Hashes name the model, profile and machine it was made for. */
#ifndef GHP_CORE_PLAN_PLAN_H
#define GHP_CORE_PLAN_PLAN_H

#include "core/cost/simulate.h"
#include "core/cost/stragglers.h"
#include "core/plan/alternative.h"
#include "core/plan/certificate.h"
#include "core/plan/overrides.h"
#include "core/plan/strategy.h"
#include "core/program/lower/lower.h"

struct ghp_prediction {
    double step_s, compute_s, comm_s, exposed_s;
    /* computing stands still for exchanges of tensors, of which compute_s has what they take alone; NAN: not said */
    double reshard_s;
    double error_s; /* 0: not known, as nothing of it was measured more than once */
    double measured_share;
    int64_t peak_bytes;   /* arena of the worker that needs most */
    int64_t sent_bytes;   /* per worker and step */
    int64_t server_bytes; /* arena of a server; 0: there is none */
    uint64_t
        program_hash; /* of the lists that this is the prediction of, one a stage, and a server's; 0: not said */
};

/* What reshards and waiting leave of the step: computing, with what slows it. */
double ghp_prediction_computing_s(const struct ghp_prediction *p);

/* The error in milliseconds for a table, or "?" if it is not known. Returns text. */
enum { GHP_ERROR_TEXT_SIZE = 32 };
const char *ghp_prediction_error_format(const struct ghp_prediction *p,
                                        char text[GHP_ERROR_TEXT_SIZE]);

struct ghp_baseline {           /* what the plan is compared with */
    enum ghp_strategy strategy; /* any but AUTO */
    bool feasible;
    char *reason; /* why not; NULL if feasible */
    struct ghp_prediction predicted;
    int64_t bucket_bytes; /* of a feasible one's plan; -1: not said */
    struct ghp_sync sync; /* of its plan; zeroed: as of the plan that it is compared with */
    bool *recompute;      /* layers recomputed by its plan, one a layer, or NULL; owned */
    /* how its plan shards parameters, one a layer, or NULL: it shards none; owned */
    enum ghp_param_sharding *sharding;
    /* its batch norms take statistics of each worker's own samples, the plan's of the global batch: another training */
    bool local_statistics;
};

struct ghp_plan {
    struct ghp_model model;
    struct ghp_problem problem;
    int groups, group_size;     /* G, K: N = G K; canonical unless asked for */
    enum ghp_strategy strategy; /* any but HEURISTIC */
    struct ghp_split *splits;   /* one a layer */
    /* stages and micro-batches; zeroed: none. Its lists are the next two */
    struct ghp_staging staging;
    int64_t *shares; /* one a worker, or NULL; owned */
    bool *recompute; /* one a layer, or NULL; owned */
    /* one a layer: whether its output lies blocked (planner/labelling/memory_format.h), or NULL: nobody says; owned */
    bool *nchw16c;
    struct ghp_method method;
    int64_t memory_limit_bytes;   /* 0: none */
    struct ghp_profile profile;   /* subset, with the machine */
    struct ghp_overrides what_if; /* what was overridden in it; none: as measured */
    uint64_t model_hash, profile_hash, machine_hash;
    /* The profile as given; the network too, or as an absolute path if its files may hold weights. */
    char *model_path, *profile_path;
    /* the network's own files had weights: a training starts from them or is told otherwise */
    bool model_weights;
    struct ghp_prediction predicted;
    int n_baselines;
    struct ghp_baseline *baselines;
    struct ghp_certificate certificate;
    int n_alternatives;
    struct ghp_alternative *alternatives; /* one a layer at most */
    char *break_even_search; /* how far break-even values were looked for, NULL: not at all */
};

enum ghp_status ghp_plan_load(const char *path, struct ghp_plan *plan);
enum ghp_status ghp_plan_save(const char *path, const struct ghp_plan *plan);
void ghp_plan_release(struct ghp_plan *plan);

/* The largest G whose K all TP sizes divide. */
int ghp_plan_canonical_groups(const struct ghp_model *model, const struct ghp_split *splits,
                              struct ghp_problem problem);

/* Turns the plan into the data-parallel one that it was compared with: no stages, the baseline's synchroniser, layers
 * recomputed, buckets and prediction, memory formats as they are. The profile has what that one asks for, too, if
 * ghp-plan wrote the plan. Optimizer and clipping stay.
 *
 * Returns   GHP_OK; GHP_ERR_INFEASIBLE (there is no such baseline, or it cannot be: says why; the plan is unchanged)
 * Local
 * Tested    tests/core/plan/test_plan.c */
enum ghp_status ghp_plan_make_data(struct ghp_plan *plan);
/* Whether it is that already: every layer by data, without stages and micro-batches, shares alike. */
bool ghp_plan_is_data(const struct ghp_plan *plan);

/* What a table calls a baseline: its strategy, and how it shards, updates and recomputes: "data, sharded update";
 * NULL: the plan's own row. Returns text. */
enum { GHP_BASELINE_TEXT_SIZE = 96 };
const char *ghp_baseline_format(const struct ghp_plan *plan, const struct ghp_baseline *baseline,
                                char text[GHP_BASELINE_TEXT_SIZE]);

/* Structural soundness: N = G K, stages and micro-batches, TP sizes divide K (or their stage's workers), every split
 * fits its layer. */
enum ghp_status ghp_plan_check(const struct ghp_plan *plan);

/* Whether an executor can keep to these formats in the lowering's stages: nothing that lies blocked is loaded or passes
 * between stages. */
bool ghp_plan_formats_hold(const struct ghp_lowering *lowering, const bool *nchw16c);

/* Lowering and prediction of this plan by this profile (for a sound plan: its own subset). A lowering borrows the
 * plan's staging, so the plan stays where it is as long as its programs are used.
 *
 * The prediction of several stages: bytes and reductions of the worker that has most, computation and waiting of the
 * one that computes longest. */
struct ghp_lowering ghp_plan_lowering(const struct ghp_plan *plan,
                                      const struct ghp_profile *profile);
/* The lowering for plans that are yet to be made: without stages and memory formats, each layer reduced alone. */
struct ghp_lowering ghp_lowering_of(const struct ghp_model *model, struct ghp_problem problem,
                                    const struct ghp_profile *profile);
enum ghp_status ghp_plan_predict(const struct ghp_lowering *lowering,
                                 const struct ghp_split *splits, const struct ghp_profile *profile,
                                 struct ghp_prediction *predicted);
/* The step and the peak of ghp_plan_predict alone; the step to rounding. With many micro-batches in one stage a few are
 * simulated, if the others only repeat them.
 *
 * step_s, peak_bytes   may be NULL; without peak_bytes nothing is placed, which is quicker
 *
 * Tested   tests/planner/search/test_predict_step.c */
enum ghp_status ghp_plan_predict_step(const struct ghp_lowering *lowering,
                                      const struct ghp_split *splits,
                                      const struct ghp_profile *profile, double *step_s,
                                      int64_t *peak_bytes);
/* The same with slow workers among them. Everything in a step waits for the slowest of a stage; a worker that the
 * profile knows to be faster than the slowest has its speed.
 *
 * stragglers   ranks of the problem's workers */
enum ghp_status ghp_plan_predict_slowed(const struct ghp_lowering *lowering,
                                        const struct ghp_split *splits,
                                        const struct ghp_profile *profile,
                                        const struct ghp_stragglers *stragglers,
                                        struct ghp_prediction *predicted);

/* Recomputes cost, memory and feasibility by `profile` and compares with what the file says.
 * Returns GHP_ERR_INPUT naming the first field that does not hold. */
enum ghp_status ghp_plan_verify(const struct ghp_plan *plan, const struct ghp_profile *profile);

#endif
