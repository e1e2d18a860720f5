/* planner/make/elastic.c - see elastic.h. */
#include "planner/make/elastic.h"

#include "core/base/log.h"
#include "planner/make/sync_choice.h"

#include <string.h>

static enum ghp_status make_one(const struct ghp_elastic_job *job, int workers,
                                struct ghp_plan *plan)
{
    struct ghp_plan_request request = *job->request;
    struct ghp_profile profile = {0};
    struct ghp_overrides overrides = {0};
    enum ghp_status status;

    *plan = (struct ghp_plan){0};
    request.problem.workers = workers;
    request.profile = &profile;
    GHP_TRY(ghp_problem_check(request.problem));
    status = job->open(&request, &profile, &overrides);
    if (status == GHP_OK) status = ghp_plan_make_synced(&request, plan);
    ghp_overrides_release(&overrides);
    ghp_profile_release(&profile);
    return status;
}

/* A number of workers that has no plan: its failure is the reason. */
static enum ghp_status leave_out(struct ghp_plan_set *set, int workers)
{
    struct ghp_plan_left_out *out = &set->left_out[set->n_left_out];

    out->workers = workers;
    out->reason = strdup(ghp_status_message());
    if (out->reason == NULL) return GHP_NO_MEMORY();
    set->n_left_out++;
    return GHP_OK;
}

enum ghp_status ghp_elastic_make(const struct ghp_elastic_job *job, struct ghp_plan_set *set)
{
    int most = job->request->problem.workers, least = most > job->fewer ? most - job->fewer : 1;
    enum ghp_status status = GHP_OK;

    GHP_ASSERT(job->fewer < GHP_PLAN_SET_MOST);
    *set = (struct ghp_plan_set){.n = 0};
    for (int workers = most; workers >= least && status == GHP_OK; workers--) {
        ghp_note("planning for %d worker(s)", workers);
        status = make_one(job, workers, &set->plans[set->n]);
        if (status == GHP_OK)
            set->n++;
        else if (workers < most && status != GHP_ERR_NO_MEMORY && status != GHP_ERR_INTERNAL)
            status = leave_out(set, workers);
    }
    if (status != GHP_OK) ghp_plan_set_release(set);
    return status;
}
