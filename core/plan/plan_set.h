/* core/plan/plan_set.h - a file of plans for one training by different numbers of workers, so that it can continue with
 * those that are left, or with those that came back.
 *
 * "ghp.plans/1": all for one model, one global batch and one optimizer, from the most workers to the fewest, each with
 * its own certificate. Workers that the batch does not divide, or that no plan fits, are left out with the reason. */
#ifndef GHP_CORE_PLAN_PLAN_SET_H
#define GHP_CORE_PLAN_PLAN_SET_H

#include "core/plan/plan.h"

enum { GHP_PLAN_SET_MOST = 16 }; /* plans, and numbers of workers left out */

struct ghp_plan_left_out {
    int workers;
    char *reason; /* owned */
};

struct ghp_plan_set {
    int n;
    struct ghp_plan plans[GHP_PLAN_SET_MOST];
    int n_left_out;
    struct ghp_plan_left_out left_out[GHP_PLAN_SET_MOST];
};

/* Whether two plans are of one training, whatever their workers.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming what differs
 * Local */
enum ghp_status ghp_plan_check_alike(const struct ghp_plan *a, const struct ghp_plan *b);

/* Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_NO_MEMORY
 * Local     Tested tests/core/plan/test_plan.c */
enum ghp_status ghp_plan_set_save(const char *path, const struct ghp_plan_set *set);

/* Reads a set; or a file of one plan, as a set of one.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_INPUT (plans that are not of one training, or not in order);
 *           zeroed on failure
 * Local */
enum ghp_status ghp_plan_set_load(const char *path, struct ghp_plan_set *set);
void ghp_plan_set_release(struct ghp_plan_set *set); /* accepts a zeroed one */

/* Reads the plan of a set for this number of workers. A file of one plan gives that plan, whatever its workers.
 *
 * Returns   as ghp_plan_set_load; GHP_ERR_INPUT if the set does not have one for them: says why, and for which numbers
 *           it has one
 * Local */
enum ghp_status ghp_plan_load_for(const char *path, int workers, struct ghp_plan *plan);

#endif
