/* executor/train/verify/step_trace.h - the tensors of one step, whole and in the order in which a step makes them:
 * outputs of layers, gradients of these and of the parameters, and what the update leaves (weights, statistics,
 * moments).
 *
 * Gathered from all workers of a plan, a trace says what the plan computed, layer by layer;
 * executor/train/verify/layerwise.h holds it against one worker.
 *
 * Call order: init -> per step: begin, the worker's step with the trace's observer, gather, gather_parameters ->
 * release. */
#ifndef GHP_EXECUTOR_TRAIN_VERIFY_STEP_TRACE_H
#define GHP_EXECUTOR_TRAIN_VERIFY_STEP_TRACE_H

#include "executor/engine/observer.h"
#include "executor/engine/worker.h"
#include "executor/state/tensors.h"
#include "executor/transport/transport.h"

/* kind, as a report says it */
#define GHP_TRACED_LIST(X)                                                                         \
    X(OUTPUT, "forward: the output of")                                                            \
    X(GRADIENT, "backward: the gradient of the output of")                                         \
    X(WEIGHT_GRADIENT, "backward: the gradient of")                                                \
    X(WEIGHT, "update: what it makes of")                                                          \
    X(MOMENT, "update: the moment of")

enum ghp_traced_kind {
#define GHP_TRACED_ENUM(id, text) GHP_TRACED_##id,
    GHP_TRACED_LIST(GHP_TRACED_ENUM)
#undef GHP_TRACED_ENUM
        GHP_TRACED_COUNT
};

extern const char *const ghp_traced_texts[GHP_TRACED_COUNT];

struct ghp_traced { /* one whole tensor */
    enum ghp_traced_kind kind;
    const char *name; /* of the layer or parameter; the model's */
    int layer;
    int entry;  /* of the list of tensors; -1 if it is a layer's */
    int moment; /* which; of a MOMENT */
    int64_t elements;
    void *
        values; /* doubles, or floats if numbers are smaller; NULL: not seen, or kept elsewhere; owned */
};

struct ghp_traced_part;

struct ghp_step_trace {
    const struct ghp_model *model;
    struct ghp_tensors_list list;
    int64_t batch;
    int element_bytes; /* of a value: 4 or 8 */
    bool keeps;        /* this process keeps whole tensors */
    int n;
    struct ghp_traced *items;     /* in the order of a step */
    int *of_output, *of_gradient; /* of each layer: index into items */
    struct ghp_observer observer; /* records this worker's parts */
    int n_parts, max_parts;
    struct ghp_traced_part *parts; /* owned */
};

/* Opens the trace of a plan's worker, or of one worker alone.
 *
 * keeps     whether this process keeps what is gathered; others only take part
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Tested    tests/executor/train/verify/test_layerwise.c */
enum ghp_status ghp_step_trace_init(struct ghp_worker *worker, bool keeps,
                                    struct ghp_step_trace *trace);
void ghp_step_trace_release(struct ghp_step_trace *trace); /* accepts a zeroed one */

/* Forgets all values, parts too. Local. */
void ghp_step_trace_begin(struct ghp_step_trace *trace);

/* Whole outputs and gradients of the parts that the workers' observers have recorded. What has no part somewhere stays
 * without values. Collective over `world`, all workers. */
enum ghp_status ghp_step_trace_gather(struct ghp_step_trace *trace, struct ghp_worker *worker,
                                      struct ghp_comm *world);

/* Gradients of parameters (settle first), or what an update left (flush first). Collective over all workers. */
enum ghp_status ghp_step_trace_gather_parameters(struct ghp_step_trace *trace,
                                                 struct ghp_worker *worker, bool updated);

double ghp_traced_get(const struct ghp_step_trace *trace, const struct ghp_traced *item, int64_t i);
void ghp_traced_set(const struct ghp_step_trace *trace, const struct ghp_traced *item, int64_t i,
                    double value);
/* Room for an item's values, unless it has some. */
enum ghp_status ghp_traced_allocate(const struct ghp_step_trace *trace, struct ghp_traced *item);
/* The buffers that hold a parameter's item. */
enum ghp_buffer_kind ghp_traced_buffer_kind(const struct ghp_step_trace *trace,
                                            const struct ghp_traced *item);

#endif
