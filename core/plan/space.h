/* core/plan/space.h - everything that plans for a model can ask a profile: local operations and collectives.
 *
 * Not a search: it lowers each layer under each split, and each edge under each pair of splits, and names every
 * distinct operation and collective once. The profiler measures what is named here, so a plan meets no surprise.
 * A new split or instruction needs no change here: what core/program/lower/lower.h makes of it is what is visited.
 *
 * Tested  tests/core/plan/test_space.c */
#ifndef GHP_CORE_PLAN_SPACE_H
#define GHP_CORE_PLAN_SPACE_H

#include "core/program/lower/lower.h"

/* One pass of a local operation. */
struct ghp_space_local {
    struct ghp_local local;
    enum ghp_pass pass;
    int layer;              /* first layer that asks for it */
    struct ghp_split split; /* the split of that layer that comes first, data before all others */
    int uses;               /* (layer, split) pairs that ask for it, >= 1 */
};

/* One collective, over all groups of its kind at once. */
struct ghp_space_comm {
    enum ghp_comm_op op;
    int count, stride;      /* ranks of a group, >= 2; distance between them, >= 1 */
    int64_t bytes;          /* as in struct ghp_instr */
    enum ghp_stream stream; /* of the first piece that asks for it */
    int uses;               /* (layer, split) or (edge, split, split) that ask for it, >= 1 */
};

/* The callbacks return GHP_OK to continue; anything else ends the enumeration and is its result. */
typedef enum ghp_status ghp_space_local_fn(void *context, const struct ghp_space_local *item);
typedef enum ghp_status ghp_space_comm_fn(void *context, const struct ghp_space_comm *item);

/* Calls visit once for each distinct (local operation, pass) of training the model by any plan.
 *
 * model, problem   the problem must pass ghp_problem_check
 * visit, context  called in the order of layers, then splits, then the program's order
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (problem); GHP_ERR_NO_MEMORY; what visit returns
 * Local */
enum ghp_status ghp_space_locals(const struct ghp_model *model, struct ghp_problem problem,
                                 ghp_space_local_fn *visit, void *context);

/* The same for each distinct (operation, count, stride, bytes). Gradient reductions are visited layer by layer: a
 * plan that gathers several into a bucket asks for the sum of their bytes.
 *
 * element_bytes   2, 4 or 8 */
enum ghp_status ghp_space_comms(const struct ghp_model *model, struct ghp_problem problem,
                                int element_bytes, ghp_space_comm_fn *visit, void *context);

#endif
