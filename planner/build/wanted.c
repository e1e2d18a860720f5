/* planner/build/wanted.c - see planner/build/wanted.h. */
#include "planner/build/wanted.h"

#include <stdlib.h>

enum { RIVALS = 3 }; /* of the search's fastest plans */

static enum ghp_status add_plan(const struct ghp_setting *s, const struct ghp_candidate *plan,
                                struct ghp_wanted *wanted)
{
    struct ghp_lowering how = s->how;
    struct ghp_programs programs;
    enum ghp_status status;

    how.bucket_bytes = plan->bucket_bytes;
    how.staging = ghp_staging_or_none(&plan->staging);
    GHP_TRY(ghp_lower_all(&how, plan->splits, &programs));
    status = ghp_wanted_add(wanted, s->request->profile, programs.of, programs.n);
    ghp_programs_release(&programs);
    return status;
}

/* The fastest plans without stages. */
static enum ghp_status add_rivals(const struct ghp_setting *s,
                                  const struct ghp_search_result *found, struct ghp_wanted *wanted)
{
    struct ghp_split *splits = ghp_alloc((size_t)s->model->n_layers, sizeof *splits);
    enum ghp_status status = splits != NULL ? GHP_OK : GHP_NO_MEMORY();

    for (int k = 0; k < found->n_kept && k < RIVALS && status == GHP_OK; ++k) {
        const struct ghp_candidate plan = {.splits = splits, .bucket_bytes = s->how.bucket_bytes};

        ghp_instance_splits(s->instance, found->kept[k].choice, splits);
        status = add_plan(s, &plan, wanted);
    }
    free(splits);
    return status;
}

enum ghp_status ghp_wanted_collect(const struct ghp_setting *setting,
                                   const struct ghp_candidates *candidates,
                                   const struct ghp_choice *choice, struct ghp_wanted *wanted)
{
    for (int b = 0; b < GHP_BASELINES; ++b)
        if (candidates->baseline[b].reason == NULL)
            GHP_TRY(add_plan(setting, &candidates->baseline[b].plan, wanted));
    GHP_TRY(add_rivals(setting, ghp_candidates_shared(setting, candidates), wanted));
    return add_plan(setting, &choice->plan, wanted);
}
