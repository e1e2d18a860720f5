/* planner/search/constraints_private.h - private to planner/search/constraints*.c: what accumulated costs,
 * constraints and weights all know of an instance with stages. */
#ifndef GHP_PLANNER_SEARCH_CONSTRAINTS_PRIVATE_H
#define GHP_PLANNER_SEARCH_CONSTRAINTS_PRIVATE_H

#include "planner/search/constraints.h"

/* What a p2p transfer costs with a pair of the edge's choices. */
static inline const struct ghp_p2p_transfer_cost *
ghp_constraints_p2p_transfer_cost(const struct ghp_instance *in, int e, int pair)
{
    return &in->p2p_transfer_cost[in->p2p_transfer[in->p2p_transfer_of[e]].first_pair + pair -
                                  in->first_pair[e]];
}

struct ghp_slot_range { /* of slots, both included; none if first > last */
    int first, last;
};

/* What a path covers: at most two ranges a stage, a steady phase, a tail, and p2p transfers both ways; of all chunks of
 * a stage three ranges each. */
struct ghp_cover {
    int n;
    struct ghp_slot_range range[2 * GHP_MAX_CHUNKS + 2];
    int n_p2p_transfers, p2p_transfer[GHP_MAX_CHUNKS];
};

/* The last slot of a stage's forward part, and the first of its backward part. */
static inline int ghp_constraints_forward_end(const struct ghp_instance *in, int stage)
{
    return in->wait_slot[in->n_layers - in->route[stage].end_layer];
}

static inline int ghp_constraints_backward_begin(const struct ghp_instance *in, int stage)
{
    return in->ready_slot[in->n_layers - in->route[stage].end_layer];
}

/* ---- search/accumulated_cost.c ---- */

/* The most that reductions of these items can take. */
double ghp_constraints_most_between(const struct ghp_instance *in, int from_item, int to_item);

/* Seconds of reductions and gathers that a time constraint covers. */
double ghp_constraints_reduced(const struct ghp_instance *in,
                               const struct ghp_constraint *constraint,
                               const struct ghp_accumulated_cost *accumulated);

/* ---- search/constraints_stages.c ---- */

/* What a time constraint covers that has a path. */
struct ghp_cover ghp_cover_of(const struct ghp_instance *in,
                              const struct ghp_constraint *constraint);
/* The value of a time constraint, as of ghp_constraint_value. */
double ghp_stage_constraint_value(const struct ghp_constraint *constraint,
                                  const struct ghp_instance *in,
                                  const struct ghp_accumulated_cost *accumulated);
/* The largest constraint of a base: its own loop through the excursion, its reductions, its sends, or a wait. */
double ghp_stage_constraint_longest(const struct ghp_instance *in,
                                    const struct ghp_accumulated_cost *accumulated,
                                    struct ghp_constraint *constraint);
/* The fullest point of each stage with the largest segment of its own layers; constraint: a memory constraint to
 * start from. */
double ghp_stage_constraint_fullest(const struct ghp_instance *in,
                                    const struct ghp_accumulated_cost *accumulated,
                                    struct ghp_constraint *constraint);

#endif
