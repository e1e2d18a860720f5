/* planner/build/memory_format.c - which tensors of the plan lie blocked (core/plan/memory_format.h).
 *
 * They are chosen before the search, for data parallelism, so that all plans it compares are priced in the same formats, and
 * the proof holds for them. Where the plan found passes between stages what is blocked, it is made again with formats that
 * suit its stages, and after that with none; data parallelism in blocks is taken where that is slower (build/build.c). */
#include "planner/build/build_private.h"

#include "core/plan/memory_format.h"

#include <stdlib.h>
#include <string.h>

/* A network with more tied at once than can be decided exactly keeps to the executor's own rule. */
static enum ghp_status decide(const struct ghp_lowering *how, const struct ghp_split *splits,
                              const struct ghp_profile *profile, bool *blocked, bool *choice)
{
    enum ghp_status status = ghp_formats_decide(how, splits, profile, blocked, choice);

    if (status != GHP_ERR_INFEASIBLE) return status;
    *choice = false;
    return GHP_OK;
}

enum ghp_status ghp_making_set_formats(struct ghp_making *m)
{
    struct ghp_plan *plan = m->plan;
    size_t layers = (size_t)plan->model.n_layers;
    bool choice = m->formats != NULL;

    plan->blocked = ghp_alloc(layers, sizeof *plan->blocked);
    if (plan->blocked == NULL) return GHP_NO_MEMORY();
    for (size_t v = 0; v < layers; ++v)
        plan->splits[v] = (struct ghp_split){GHP_SPLIT_DATA, 1};
    if (m->formats != NULL)
        memcpy(plan->blocked, m->formats, layers * sizeof *plan->blocked);
    else
        GHP_TRY(decide(&m->how, plan->splits, m->wishes->profile, plan->blocked, &choice));
    if (!choice) {
        free(plan->blocked);
        plan->blocked = NULL;
    }
    m->how.blocked = plan->blocked;
    return GHP_OK;
}

enum ghp_status ghp_making_formats_hold(const struct ghp_wishes *wishes,
                                        const struct ghp_plan *plan, int attempt, bool **formats,
                                        bool *hold)
{
    const struct ghp_lowering how = ghp_plan_lowering(plan, wishes->profile);
    size_t layers = (size_t)plan->model.n_layers;
    bool choice;

    *hold = plan->blocked == NULL || ghp_formats_hold(&how, plan->blocked);
    if (*hold) return GHP_OK;
    if (*formats == NULL) *formats = ghp_alloc(layers, sizeof **formats);
    if (*formats == NULL) return GHP_NO_MEMORY();
    memset(*formats, 0, layers * sizeof **formats);
    return attempt > 0 ? GHP_OK : decide(&how, plan->splits, wishes->profile, *formats, &choice);
}
