/* core/program/lower.h - (model, splits, worker) -> program.
 *
 * The program is made of pieces: one per layer under its split, one per edge under the splits at its two ends. The
 * planner costs pieces alone; ghp_lower strings all pieces together, resolves which buffers share memory, forms
 * buckets and places the arena. */
#ifndef GHP_CORE_PROGRAM_LOWER_H
#define GHP_CORE_PROGRAM_LOWER_H

#include "core/program/memory_format.h"
#include "core/program/program.h"

/* The whole program of one worker. `splits` has one entry a layer (the input's says how samples are loaded).
 * Returns GHP_ERR_INPUT for a split that a layer cannot take, and what the scratch source returns.
 * Local. Tested tests/core/program/test_lower.c */
enum ghp_status ghp_lower(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                          int rank, struct ghp_program *program);

/* Whether the learning rates' scaling can be had; splits NULL: not yet known.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the layer or the part of the plan, and what would do
 * Local. Tested tests/core/program/test_scaling.c */
enum ghp_status ghp_lower_check_scaling(const struct ghp_lowering *lowering,
                                        const struct ghp_split *splits);

/* The program of a server: what it does in one step of a worker, or of all workers where it waits for all. Its list is
 * in the order in which gradients come in the steady state; a bucket's UPDATE waits for its PUSH, its PULL for that.
 *
 * server   0 .. lowering->sync.servers - 1
 *
 * Returns as ghp_lower. Local. Tested tests/core/program/test_sync.c */
enum ghp_status ghp_lower_server(const struct ghp_lowering *lowering,
                                 const struct ghp_split *splits, int server,
                                 struct ghp_program *program);

/* The programs of one worker of each stage (ghp_stage_representative), which stand for all; and of a server. */
struct ghp_programs {
    int n;
    struct ghp_program of[GHP_MAX_STAGES];
    /* the arena of a worker with more samples than the one that stands for its stage; 0: none */
    int64_t fullest_bytes;
    struct ghp_program server; /* which stands for all servers; no instructions: there are none */
};
enum ghp_status ghp_lower_all(const struct ghp_lowering *lowering, const struct ghp_split *splits,
                              struct ghp_programs *programs);
void ghp_programs_release(struct ghp_programs *programs); /* accepts a zeroed one */
/* Names all lists together. */
uint64_t ghp_programs_hash(const struct ghp_programs *programs);
int64_t
ghp_programs_peak_bytes(const struct ghp_programs *programs); /* of the worker that needs most */
int64_t
ghp_programs_sent_bytes(const struct ghp_programs *programs); /* of the one that sends most */

/* Pieces, appended to `piece` (instructions with points and bytes; operands unresolved, -1): the forward part of the
 * first micro-batch and the backward part of the last, as `rank` runs them. The rank's stage owns the layer, or the
 * edge's consumer; an edge from another stage has the sends both ways, of whichever worker. */
enum ghp_status ghp_lower_layer(const struct ghp_lowering *lowering, int layer,
                                struct ghp_split split, int rank, struct ghp_program *piece);
enum ghp_status ghp_lower_edge(const struct ghp_lowering *lowering, int edge, struct ghp_split from,
                               struct ghp_split to, int rank, struct ghp_program *piece);

/* Gradient bytes of one layer, each tensor rounded up to GHP_ALIGN_BYTES. */
int64_t ghp_lower_gradient_bytes(const struct ghp_lowering *lowering, int layer,
                                 struct ghp_split split);

/* Labels of this worker's samples: int32, of a loss layer under `split`. */
int64_t ghp_labels_bytes(const struct ghp_model *model, struct ghp_split split,
                         struct ghp_problem problem);

/* Whether the layer's running statistics move by sums over ghost batches, or over all workers' own batches, which
 * travel with its gradients. */
bool ghp_layer_has_stats_delta(const struct ghp_layer *layer);
/* The same of a plan: not where workers' weights differ, each of which has running statistics of its own. */
bool ghp_lowering_has_stats_delta(const struct ghp_lowering *lowering,
                                  const struct ghp_layer *layer);

/* Whether a gradient flows into a layer's output (it or something before it has parameters). */
bool ghp_lower_needs_gradient(const struct ghp_lowering *lowering, int layer);

/* The out-edge of a layer whose gradient arrives first in backward order: it becomes the layer's output gradient, later
 * ones are added to it. -1 where nothing reads the layer. */
int ghp_lower_first_gradient(const struct ghp_model *model, int layer);

/* Whether an operation's output is the buffer of its first input: of one in place, where that input changed its layout
 * on the way and so belongs to it alone, or else nobody else reads it and its maker does not need it again. */
bool ghp_lower_overwrites_input(const struct ghp_model *model, int layer, bool changed);

/* Whether the gradient of a layer's input is the buffer of its output's: of in-place operations; of an addition's
 * inputs those that only read it, and one that others add to after those have read it. Further inputs get copies. */
bool ghp_lower_gradient_alias(const struct ghp_lowering *lowering, int layer, int input);
/* Whether the schedule leaves the layer's weight gradients to a step of their own (core/sharding/stage.h). */
bool ghp_lower_defers_weights(const struct ghp_lowering *lowering, int layer);

/* Bytes that an instruction has beside its tensors while it runs: what it computes, packs or reduces through, and what
 * a step of a reshard receives into. 0: none. The one place that knows: the allocation and the planner's memory
 * constraints (planner/search/memory.h) both ask here. Not of p2p transfers and of the communication stream. */
struct ghp_instr_scratch {
    int64_t work_bytes, receive_bytes;
};

/* Returns   GHP_OK; what the scratch source returns
 * Tested    tests/planner/search/test_memory.c (both sums are equal on chains) */
enum ghp_status ghp_lower_scratch(const struct ghp_lowering *lowering,
                                  const struct ghp_instr *instr, struct ghp_instr_scratch *scratch);

/* Whether the layer adds its weight gradients to those that a layer tied to it, later in the same stage, has made. */
bool ghp_lower_adds_weight_gradient(const struct ghp_lowering *lowering, int layer);

/* Points (program.h). */
int ghp_point_forward(const struct ghp_model *model, int layer);
int ghp_point_forward_edge(const struct ghp_model *model, int edge);
int ghp_point_backward(const struct ghp_model *model, int layer);
int ghp_point_backward_edge(const struct ghp_model *model, int edge);
int ghp_point_count(const struct ghp_model *model);

struct ghp_ranks ghp_ranks_subgroup(int rank, int tp_size); /* TP size consecutive ranks */
struct ghp_ranks ghp_ranks_replica(int rank, int tp_size,
                                   int workers); /* the N / TP size workers of a replica group */

#endif
