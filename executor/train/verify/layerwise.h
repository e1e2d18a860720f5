/* executor/train/verify/layerwise.h - is a difference between a plan and one worker rounding, or a defect? Holds
 * steps of the plan against one worker layer by layer.
 *
 * Each step's outputs, gradients and updates are gathered from the plan. One worker then takes the same step, from the
 * same weights, and after each layer continues with what the *plan* had there. So each of its tensors is what one
 * worker makes of the plan's own inputs: rounding does not grow from layer to layer or from step to step, no ReLU
 * decides otherwise, and a wrong tensor differs where it is made and nowhere else.
 *
 * What rounding does is measured: one worker takes the step again from the same inputs, weights and gradients, each off
 * by up to a unit in the last place. For each tensor
 *
 *     ratio = |plan's - one worker's| / sqrt(mean |one worker's, inputs off - one worker's|^2 + |own rounding|^2)
 *
 * A sum in another order is the same sum of terms that are off by some units in the last place, so a sound plan's ratio
 * is a small number, whatever the network. A wrong tensor's is what is wrong of it over the precision.
 *
 * Tested   tests/executor/train/verify/test_layerwise.c
 * Source   docs/explanation/exactness.md */
#ifndef GHP_EXECUTOR_TRAIN_VERIFY_LAYERWISE_H
#define GHP_EXECUTOR_TRAIN_VERIFY_LAYERWISE_H

#include "executor/train/verify/step_trace.h"
#include "executor/train/training_config.h"

/* name, text */
#define GHP_VERDICT_LIST(X)                                                                        \
    X(EQUAL, "equal")       /* the plan stays within the limits: nothing was asked here */         \
    X(ROUNDING, "rounding") /* beyond them, but each layer does what one worker does */            \
    X(DEFECT, "defect")     /* a tensor differs by more than rounding can */                       \
    X(UNKNOWN, "cannot tell")

enum ghp_verdict {
#define GHP_VERDICT_ENUM(id, text) GHP_VERDICT_##id,
    GHP_VERDICT_LIST(GHP_VERDICT_ENUM)
#undef GHP_VERDICT_ENUM
        GHP_VERDICT_COUNT
};

extern const char *const ghp_verdict_names[GHP_VERDICT_COUNT];

/* Ratios up to the first are rounding, from the second on a defect (docs/explanation/exactness.md has the figures). */
#define GHP_ROUNDING_RATIO 64.0
#define GHP_DEFECT_RATIO 512.0

enum { GHP_LAYERWISE_STEPS = 3, GHP_LAYERWISE_NOISES = 2 };

struct ghp_finding { /* of one tensor of one step */
    int64_t step;    /* from 1 */
    enum ghp_traced_kind kind;
    const char *name;  /* of the layer or parameter; the model's */
    double ratio;      /* above; infinite if rounding does nothing and the plan differs */
    double difference; /* |plan's - one worker's| / |one worker's|, Euclidean norms */
    double noise;      /* what rounding does, over the same */
    double plan,
        alone;   /* the first value that differs by at least half of the greatest difference */
    int n_index; /* of that value: sample, channel, row, column; or as the parameter's dimensions */
    int64_t index[GHP_MAX_DIMS];
    int rank; /* the first that holds it */
};

struct ghp_layerwise {
    enum ghp_verdict verdict;
    /* UNKNOWN without a finding: what stands in the way, and what helps; else NULL */
    const char *why;
    int n_steps;                        /* compared */
    int64_t steps[GHP_LAYERWISE_STEPS]; /* their numbers, from 1 */
    int tensors;                        /* compared, over all steps */
    bool found;                         /* anything was compared */
    /* DEFECT: of the first tensor, in the order of a step, that is one; else of that with the greatest ratio */
    struct ghp_finding finding;
};

struct ghp_rank_plan;

struct ghp_layerwise_request {
    struct ghp_worker *worker;             /* the plan's, allocated and flushed; trained again */
    const struct ghp_rank_plan *rank_plan; /* by which the worker was opened */
    struct ghp_training_config *training_config;
    int64_t steps; /* that the verification trained: the first two and the last are compared */
    double unit;   /* in the last place, of 1, of what instructions write: 2^-23 of float */
    struct ghp_comm *world;
};

/* Trains by the plan again from first weights, and compares. Only rank 0's result counts.
 *
 * Returns   GHP_OK, whatever the verdict; failures of steps and transport, after which abort is what is left
 * Collective over all workers */
enum ghp_status ghp_layerwise_run(const struct ghp_layerwise_request *request,
                                  struct ghp_layerwise *layerwise);

#endif
