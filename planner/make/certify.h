/* planner/make/certify.h - from what a search has proven to the plan's certificate.
 *
 * The three numbers are of one search. What is tried on top of it (bucket sizes, unequal shares, layers recomputed)
 * makes the plan faster than the certificate's step, and is not in its bound: that bounds plans without.
 *
 * Called by planner/make/choice.h alone. Tested  tests/planner/make/test_certificate.c */
#ifndef GHP_PLANNER_MAKE_CERTIFY_H
#define GHP_PLANNER_MAKE_CERTIFY_H

#include "planner/make/candidate.h"

/* What is proven of all that was searched: with the buckets that were searched with, and before any trial. */
struct ghp_proven {
    double step_s;  /* of the best plan; INFINITY: none fits */
    double bound_s; /* no plan of what was searched is faster; INFINITY: there is none */
    bool proven;
    int64_t plans, nodes;
};

/* The certificate of a plan, but for its texts.
 *
 * trial   what the plan was found by beside the search, buckets aside */
struct ghp_certificate ghp_certify(const struct ghp_plan_context *context,
                                   const struct ghp_proven *proven, enum ghp_trial trial,
                                   const struct ghp_candidate *plan);

/* The certificate where a plan of the same bound that takes step_s was found and not taken. */
struct ghp_certificate ghp_certify_beside(struct ghp_certificate certificate, double step_s);

#endif
