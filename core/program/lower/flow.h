/* core/program/lower/flow.h - which gradients flow where and in which layouts, and what a lowering's synchroniser and
 * optimizer are: asked by those who emit instructions and those who give them buffers. */
#ifndef GHP_CORE_PROGRAM_LOWER_FLOW_H
#define GHP_CORE_PROGRAM_LOWER_FLOW_H

#include "core/program/program.h"
#include "core/program/sync.h"

/* A gradient flows through this edge into parameters (no closed-form premise). */
bool ghp_edge_needs_gradient(const struct ghp_model *model, int edge);

/* In a stage (docs/explanation/stages.md): whether a gradient flows through this edge into a buffer of the placement's;
 * the edge whose gradient comes first into a layer's output, or remote activation. A gradient from a later stage comes
 * last: it is waited for right before the layer's own backward pass. */
int ghp_placement_first_gradient(const struct ghp_lowering *lowering,
                                 const struct ghp_placement *placement, int layer);

/* Layouts of a layer's output as a stage sees it: its own, or its remote activation's (`x`, `dx` mean nothing then).
 * Only the stage of the placement counts. */
struct ghp_layouts ghp_placement_layouts(const struct ghp_lowering *lowering,
                                         const struct ghp_placement *placement,
                                         const struct ghp_split *splits, int layer);

/* Whether the layer's output is recomputed in the backward pass: its own mark, or that of the tensor's maker it works
 * on; never of what works on a remote activation in place, which no longer is what was received. */
bool ghp_lower_recomputes(const struct ghp_lowering *lowering, int layer);

/* Labels of this worker's samples: int32, of a loss layer under `split`. */
int64_t ghp_labels_bytes(const struct ghp_model *model, struct ghp_split split,
                         struct ghp_problem problem);

/* Whether the layer's running statistics move by sums over ghost batches, or over all workers' own batches, which
 * travel with its gradients. */
bool ghp_layer_has_stats_delta(const struct ghp_layer *layer);
/* The same of a plan: not if workers' weights differ, each of which has running statistics of its own. */
bool ghp_lowering_has_stats_delta(const struct ghp_lowering *lowering,
                                  const struct ghp_layer *layer);
/* Whether a layer's running statistics are reduced, or averaged, in its bucket. */
bool ghp_lowering_reduces_states(const struct ghp_lowering *lowering,
                                 const struct ghp_layer *layer);

/* Whether a gradient flows into a layer's output (it or something before it has parameters). */
bool ghp_lower_needs_gradient(const struct ghp_lowering *lowering, int layer);

/* The out-edge of a layer whose gradient arrives first in backward order: it becomes the layer's output gradient, later
 * ones are added to it. -1 if nothing reads the layer. */
int ghp_lower_first_gradient(const struct ghp_model *model, int layer);

/* Whether an operation's output is the buffer of its first input: of one in place, if that input changed its layout
 * on the way and so belongs to it alone, or else nobody else reads it and its maker does not need it again. */
bool ghp_lower_overwrites_input(const struct ghp_model *model, int layer, bool changed);

/* Whether the gradient of a layer's input is the buffer of its output's: of in-place operations; of an addition's
 * inputs those that only read it, and one that others add to after those have read it. Further inputs get copies. A
 * loss, whose output nobody else reads, writes it over its output. */
bool ghp_lower_gradient_alias(const struct ghp_lowering *lowering, int layer, int input);
/* Whether the schedule leaves the layer's weight gradients to a step of their own (core/sharding/stage.h). */
bool ghp_lower_defers_weights(const struct ghp_lowering *lowering, int layer);

static inline const struct ghp_sync_ops *ghp_lowering_sync(const struct ghp_lowering *lowering)
{
    return ghp_sync_ops_of(lowering->method.sync);
}

/* Whether weights and running statistics are averaged over workers. */
static inline bool ghp_lowering_averages(const struct ghp_lowering *lowering)
{
    return ghp_lowering_sync(lowering)->replicas && ghp_lowering_sync(lowering)->mixing == NULL &&
           lowering->problem.workers > 1;
}

/* Whether weights meet others' between two steps (sync/mixing.c); whether batch statistics are each worker's own. */
bool ghp_lowering_mixes(const struct ghp_lowering *lowering);
static inline bool ghp_lowering_differs(const struct ghp_lowering *lowering)
{
    return ghp_lowering_averages(lowering) || ghp_lowering_sync(lowering)->mixing != NULL;
}

static inline const struct ghp_optimizer *
ghp_lowering_optimizer(const struct ghp_lowering *lowering)
{
    return lowering->method.optimizer != NULL ? lowering->method.optimizer : &ghp_optimizer_sgd;
}

#endif
