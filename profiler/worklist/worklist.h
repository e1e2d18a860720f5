/* profiler/worklist/worklist.h - what is to be measured, the most valuable first.
 *
 * Everything that plans for the models can ask for, over all given batches and all worker counts up to N that divide
 * them (core/plan/space.h), each distinct thing once. Local operations are ordered by how much a plan hangs on them:
 *     1. split `data` for N workers itself, equal shares or by the workers' speeds,
 *     2. every other split for N workers,
 *     3. a second batch size for shapes that 1 and 2 know at one only (the analytic model in the batch needs two),
 *     4. the rest;
 * inside each rank the expensive ones first, so that what a budget leaves to the analytic models is cheap.
 *
 * Private to profiler/.  Tested  tests/profiler/worklist/test_worklist.c */
#ifndef GHP_PROFILER_WORKLIST_WORKLIST_H
#define GHP_PROFILER_WORKLIST_WORKLIST_H

#include "core/plan/space.h"
#include "core/program/fuse.h"
#include "executor/backend/backend.h"
#include "core/cost/profile.h"
#include "profiler/worklist/samples.h"

/* How much a plan hangs on an operation. */
enum ghp_value {
    GHP_VALUE_DATA,
    GHP_VALUE_SPLIT,
    GHP_VALUE_SECOND,
    GHP_VALUE_REST,
    GHP_VALUE_COUNT
};

/* One pair of formats of an operation's tensors, measured. */
struct ghp_worklist_variant {
    bool x, y; /* blocked: core/program/memory_format.h */
    /* the quickest of the backend's algorithms, once tried; "": not yet, or there is no choice */
    char algorithm[GHP_ALGORITHM_BYTES];
    char used[4 * GHP_ALGORITHM_BYTES]; /* what its kernel calls itself, once measured */
    struct ghp_samples samples;
    double least_s; /* of all, trials included: what formats are compared by */
};

/* One pass of a local operation to measure. */
struct ghp_worklist_op {
    struct ghp_local local;
    enum ghp_pass pass;
    char key[GHP_KEY_BYTES];
    enum ghp_value value;
    double flops;      /* of one run; 0 for ops that only move memory */
    double bytes;      /* least memory traffic of one run */
    double step_bytes; /* the same of all passes of its network's step by data parallelism */
    bool kept;         /* an earlier file has it: not measured again */
    /* if only some are wanted (run/missing.c): this one is, in this turn; left: it is not */
    bool named, left;
    int turn;
    struct ghp_epilogue epilogue; /* layers that it fuses (core/program/fuse.h) */
    bool fused;                   /* others take it along, wherever it is */
    /* rank 0: scratch_bytes is known for an entry with asked_memory_formats formats */
    bool asked;
    int asked_memory_formats;
    int64_t scratch_bytes;
    /* in the formats that programs can have it in, the most blocked first, the plainest second; ways[0].samples say how
     * often it was measured. formats: whether there is a choice on this backend, be it of one only */
    bool memory_formats;
    int n_variants; /* >= 1 */
    struct ghp_worklist_variant variants[GHP_OP_MEMORY_FORMATS];
    struct ghp_samples alone; /* of one worker while the others wait */
};

/* The largest ratio of neighbouring sizes in a table of collectives; a straight line costs what lies between. */
enum { GHP_COMM_GRID_STEP = 4 };

/* One collective to measure. */
struct ghp_worklist_comm {
    enum ghp_comm_op op;
    int count, stride;
    int64_t bytes;
    bool kept; /* an earlier file has it: not measured again */
    bool left; /* not wanted now */
    struct ghp_samples samples;
};

/* The order of two collectives (struct ghp_worklist_comm), for qsort: by kind, then by bytes. */
int ghp_worklist_compare_comms(const void *a, const void *b);

struct ghp_worklist {
    int n_ops, max_ops;
    struct ghp_worklist_op *ops;
    int n_comms, max_comms;
    struct ghp_worklist_comm *comms; /* by kind (op, count, stride), bytes ascending */
};

/* What the work list is for; borrowed. */
struct ghp_worklist_request {
    const struct ghp_model *models; /* n_models */
    int n_models;
    const int64_t *batches; /* n_batches, each a multiple of `workers` */
    int n_batches;
    int workers; /* N */
    int ranks; /* P <= N: collectives whose groups do not fit into P ranks are left to the analytic model */
    int element_bytes; /* 4 or 8 */
    /* gradients that are reduced together make messages up to this size, >= 0 */
    int64_t bucket_bytes;
    /* of N workers: shares in proportion to them are asked for too; or alike; NULL: alike */
    const struct ghp_speeds *speeds;
    /* [GHP_OP_COUNT] operations whose forward pass may take others along; NULL: all (core/program/fuse.h) */
    const bool *fuses;
    bool masks; /* a convolution's BACKWARD_DATA may take a ReLU's mask */
    /* n_named collectives that a plan asks for and the space lacks, such as those of sharded parameters; left out are
     * those that the ranks cannot do, or that are longer than all others */
    const struct ghp_worklist_comm *named;
    int n_named;
};

/* Collects and orders.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a batch that does not fit the workers); GHP_ERR_NO_MEMORY
 * Local; equal requests give equal work lists on all ranks */
enum ghp_status ghp_worklist_collect(const struct ghp_worklist_request *request,
                                     struct ghp_worklist *worklist);

/* Whether the two differ in the samples only. */
bool ghp_worklist_is_family(const struct ghp_worklist_op *x, const struct ghp_worklist_op *y);

/* Frees it; accepts a zeroed one. */
void ghp_worklist_release(struct ghp_worklist *worklist);

/* Draws operations by their part of a weight (0: never), in the work list's order.
 *
 * most   how many at most, >= 1
 * ops    receives them, borrowed
 *
 * Returns how many; 0: none weighs anything. Local. */
int ghp_worklist_draw(const struct ghp_worklist *worklist,
                      double (*weight)(const struct ghp_worklist_op *op), int most,
                      const struct ghp_worklist_op **ops);

#endif
