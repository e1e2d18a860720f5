/* planner/make/certify.h - makes the plan's certificate from what a search has proven.
 *
 * All three numbers come from one search. What is tried after it (bucket sizes, unequal shares, recomputed layers) may
 * make the plan faster than the certificate's step. The bound does not cover it: it bounds plans without.
 *
 * Tested  tests/planner/make/test_certificate.c */
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
 * trial   how the plan was found in addition to the search, other than by buckets */
struct ghp_certificate ghp_certify(const struct ghp_plan_context *context,
                                   const struct ghp_proven *proven, enum ghp_trial trial,
                                   const struct ghp_candidate *plan);

/* The certificate if a plan of the same bound that takes step_s was found and not taken. */
struct ghp_certificate ghp_certify_other(struct ghp_certificate certificate, double step_s);

/* Puts a copy of a text in place of one of a plan's, or nothing if it is NULL. Returns GHP_OK; GHP_ERR_NO_MEMORY. */
enum ghp_status ghp_certify_text(char **text, const char *value);

#endif
