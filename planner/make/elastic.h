/* planner/make/elastic.h - the same question for as many workers as there are, and for fewer: a set of plans for one
 * training (core/plan/plan_set.h), each made and certified by itself. */
#ifndef GHP_PLANNER_MAKE_ELASTIC_H
#define GHP_PLANNER_MAKE_ELASTIC_H

#include "core/plan/plan_set.h"
#include "planner/make/make.h"

struct ghp_elastic_job {
    /* of the most workers; profile and what_if are set for each number */
    const struct ghp_plan_request *request;
    int fewer; /* down to this number of workers fewer, 1 at least */
    /* fills the profile, and the overrides if there are any, for request->problem */
    enum ghp_status (*open)(struct ghp_plan_request *request, struct ghp_profile *profile,
                            struct ghp_overrides *overrides);
};

/* Makes the plans. Numbers of workers that the batch does not divide, or that no plan fits, are left out with the
 * reason; the first one is not.
 *
 * set   filled on success and released by the caller; zeroed on failure
 *
 * Returns   GHP_OK; of the most workers as ghp_plan_make_synced (make/sync_choice.h)
 * Local     Tested tests/tools/plan/test_plan.sh */
enum ghp_status ghp_elastic_make(const struct ghp_elastic_job *job, struct ghp_plan_set *set);

#endif
