/* planner/search/constraints.h - the linear sums of which a plan's step time is the largest, and the coefficients that
 * a mix of them gives a choice.
 *
 * The step of a plan is the longest closed path through its two streams (docs/explanation/planner.md): all computation;
 * all reductions; or computation from a layer's update to some layer's weight gradient, then the reductions from that
 * layer's to the first one's. Each is a *constraint*: a sum over slots and items of an instance. So any mix of
 * constraints with weights that sum to one is a lower bound that separates over layers and edges. With slowdowns while
 * both streams are busy a constraint also counts the work outside its path, by work conservation, and stays a lower
 * bound. A memory constraint is the sum of bytes that live at one point, and the receive segment as one layer asks for
 * it.
 *
 * With stages a path starts and ends in one stage, its *base*, and between its first micro-batch's forward part and its
 * last one's backward part either does the base's steady phase, or goes through later stages down to another, does that
 * one's steady phase there, and comes back (docs/explanation/stages.md 6). P2p transfers count for themselves. Such
 * constraints have no coefficients off their path.
 *
 * Not the objective: that is core/cost/simulate on the lowered program. Without slowdowns both agree.
 *
 * In parts: search/accumulated_cost.c, search/constraints.c, search/constraints_stages.c (with stages),
 * search/constraints_weights.c.
 * Tested  tests/planner/search/test_constraints.c (against core/cost/simulate), test_exact.c */
#ifndef GHP_PLANNER_SEARCH_CONSTRAINTS_H
#define GHP_PLANNER_SEARCH_CONSTRAINTS_H

#include "planner/search/domain.h"

enum { GHP_CONSTRAINT_VARIANTS = 2 };

struct ghp_coefficient { /* what a second of work counts, on the path and off it; each in [0, 1] */
    double on[GHP_WORK_COUNT], off[GHP_WORK_COUNT];
    double reduce_off; /* on the path: 1 */
};

/* One variant without slowdowns; docs/explanation/planner.md derives them. */
struct ghp_coefficients {
    int n;
    struct ghp_coefficient variant[GHP_CONSTRAINT_VARIANTS];
};

struct ghp_coefficients ghp_coefficients_of(const struct ghp_overlap *overlap);

/* Those of an instance: with stages, the path alone. */
struct ghp_coefficients ghp_instance_coefficients(const struct ghp_instance *in);

/* The work of a plan, or a weighted mean of plans, as prefix sums. */
struct ghp_accumulated_cost {
    double *work[GHP_WORK_COUNT]; /* seconds in slots before s; n_slots + 1 */
    double *reduce;               /* seconds in items before i; n_items + 1 */
    double *slack;                /* an item: 1 if nobody waits for it; n_items */
    double *live;         /* bytes at a point; n_points; zeros if the instance has no memory */
    double *receive;      /* bytes of the receive segment that a layer asks for; n_layers */
    double *p2p_transfer; /* seconds of a p2p transfer, forward and backward; 2 n_p2p_transfers */
};

struct ghp_constraint {
    int variant;            /* time constraints; -1: a memory constraint */
    int from_slot, to_slot; /* on the path, both included; from > to: none */
    int from_item, to_item;
    int waiting_update; /* item whose waiting closes the path, -1: nobody has to wait */
    double relaxation;  /* taken off if nobody waits for it [s] */
    int point,
        receiver; /* memory constraints: the point, and the layer whose receive segment counts */
    int base, turn_stage; /* with stages: where the path starts, and in which stage it turns back */
    bool p2p_transfers;   /* with stages: all sends of `base` instead of a path */
    bool all_chunks;      /* with several chunks a stage: all work of the one that has `base` */
};

enum ghp_status ghp_accumulated_cost_init(const struct ghp_instance *in,
                                          struct ghp_accumulated_cost *accumulated);
void ghp_accumulated_cost_release(struct ghp_accumulated_cost *accumulated);
void ghp_accumulated_cost_set(const struct ghp_instance *in, const int *choice,
                              struct ghp_accumulated_cost *accumulated);
void ghp_accumulated_cost_clear(const struct ghp_instance *in,
                                struct ghp_accumulated_cost *accumulated);
void ghp_accumulated_cost_add(const struct ghp_instance *in,
                              struct ghp_accumulated_cost *accumulated,
                              const struct ghp_accumulated_cost *part, double weight);

/* Seconds (or bytes) of a constraint. */
double ghp_constraint_value(const struct ghp_coefficients *coefficients,
                            const struct ghp_constraint *constraint, const struct ghp_instance *in,
                            const struct ghp_accumulated_cost *accumulated);

/* The largest time constraint of one variant: its value, and the constraint. */
double ghp_constraint_longest(const struct ghp_instance *in,
                              const struct ghp_coefficients *coefficients, int variant,
                              const struct ghp_accumulated_cost *accumulated,
                              struct ghp_constraint *constraint);

/* The largest over all variants: no program of this plan is faster. */
double ghp_constraint_step_s(const struct ghp_instance *in,
                             const struct ghp_coefficients *coefficients,
                             const struct ghp_accumulated_cost *accumulated);

/* The point with the most live bytes: their sum, and the constraint. */
double ghp_constraint_fullest(const struct ghp_instance *in,
                              const struct ghp_accumulated_cost *accumulated,
                              struct ghp_constraint *constraint);

bool ghp_constraint_same(const struct ghp_constraint *a, const struct ghp_constraint *b);

/* Coefficients of a weighted mix of constraints. */
struct ghp_weights {
    double *work[GHP_WORK_COUNT]; /* a slot */
    double *reduce, *slack;       /* an item */
    double *live;                 /* prefix over points; n_points + 1 */
    double *receive;              /* a layer */
    double *p2p_transfer;         /* forward and backward; 2 n_p2p_transfers */
};

enum ghp_status ghp_weights_init(const struct ghp_instance *in, struct ghp_weights *w);
void ghp_weights_release(struct ghp_weights *w);

/* Sets the costs for constraints[0 .. n-1] with the given weights, >= 0. */
void ghp_weights_set(const struct ghp_instance *in, const struct ghp_coefficients *coefficients,
                     const struct ghp_constraint *constraints, const double *weight, int n,
                     struct ghp_weights *w);

/* Fills the costs of the choices in play (after ghp_frontier_set with the same domain). */
void ghp_weights_to_frontier(const struct ghp_weights *w, const struct ghp_domain *domain,
                             struct ghp_frontier *frontier);

#endif
