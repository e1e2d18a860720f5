/* planner/make/missing.c - see planner/make/missing.h. */
#include "planner/make/missing.h"

#include <math.h>
#include <stdlib.h>

enum { RIVALS = 3 }; /* of the search's fastest plans */

/* Adds what a plan lacks, unless the plan takes longer than most_s and so is not a rival. */
static enum ghp_status add_plan(const struct ghp_plan_context *s, const struct ghp_candidate *plan,
                                double most_s, struct ghp_missing *missing)
{
    struct ghp_lowering lowering = s->lowering;
    struct ghp_programs programs;
    struct ghp_prediction predicted;
    enum ghp_status status;

    lowering.method.bucket_bytes = plan->bucket_bytes;
    lowering.staging = ghp_staging_or_none(&plan->staging);
    if (plan->sync.ops != NULL) lowering.method.sync = plan->sync;
    if (most_s < INFINITY) {
        GHP_TRY(ghp_plan_predict(&lowering, plan->splits, s->request->profile, &predicted));
        if (predicted.step_s > most_s) return GHP_OK;
    }
    GHP_TRY(ghp_lower_all(&lowering, plan->splits, &programs));
    status = ghp_missing_add(missing, s->request->profile, programs.of, programs.n);
    ghp_programs_release(&programs);
    return status;
}

/* The fastest plans without stages, in the buckets of the plan chosen. */
static enum ghp_status add_rivals(const struct ghp_plan_context *s,
                                  const struct ghp_search_result *found,
                                  const struct ghp_candidate *chosen, struct ghp_missing *missing)
{
    struct ghp_split *splits = ghp_alloc((size_t)s->model->n_layers, sizeof *splits);
    enum ghp_status status = splits != NULL ? GHP_OK : GHP_NO_MEMORY();

    for (int k = 0; k < found->n_kept && k < RIVALS && status == GHP_OK; k++) {
        const struct ghp_candidate plan = {.splits = splits, .bucket_bytes = chosen->bucket_bytes};

        ghp_instance_splits(s->instance, found->kept[k].choice, splits);
        status = add_plan(s, &plan, s->request->rivals_s, missing);
    }
    free(splits);
    return status;
}

enum ghp_status ghp_missing_collect(const struct ghp_plan_context *context,
                                    const struct ghp_candidates *candidates,
                                    const struct ghp_choice *choice, struct ghp_missing *missing)
{
    bool asks_rivals = context->request->rivals_s > 0;
    double most_s = asks_rivals ? context->request->rivals_s : INFINITY;

    for (int b = 0; b < (asks_rivals ? GHP_BASELINES : 1); b++)
        if (candidates->baseline[b].reason == NULL)
            GHP_TRY(add_plan(context, &candidates->baseline[b].plan, most_s, missing));
    if (asks_rivals)
        GHP_TRY(add_rivals(context, ghp_candidates_shared(context, candidates), &choice->plan,
                           missing));
    return add_plan(context, &choice->plan, most_s, missing);
}
