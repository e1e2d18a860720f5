/* planner/build/memory_format.c - which tensors of the plan lie blocked (core/plan/memory_format.h).
 *
 * They are chosen before the search, for data parallelism, so that all plans it compares have the same
 * formats, and the proof holds for them. Where the plan found passes blocked tensors between stages, it is planned
 * again with formats that suit its stages, and after that with none; data parallelism in blocks is taken where that is
 * slower (build/build.c). */
#include "planner/build/build_private.h"

#include "core/plan/memory_format.h"

#include <stdlib.h>
#include <string.h>

/* A network with more tied at once than can be decided exactly keeps to the executor's own rule. */
static enum ghp_status decide(const struct ghp_lowering *how, const struct ghp_split *splits,
                              const struct ghp_profile *profile, bool *nchw16c, bool *choice)
{
    enum ghp_status status = ghp_memory_format_decide(how, splits, profile, nchw16c, choice);

    if (status != GHP_ERR_INFEASIBLE) return status;
    *choice = false;
    return GHP_OK;
}

enum ghp_status ghp_build_set_memory_format(struct ghp_build_context *m)
{
    struct ghp_plan *plan = m->plan;
    size_t layers = (size_t)plan->model.n_layers;
    bool choice = m->memory_formats != NULL;

    plan->nchw16c = ghp_alloc(layers, sizeof *plan->nchw16c);
    if (plan->nchw16c == NULL) return GHP_NO_MEMORY();
    for (size_t v = 0; v < layers; ++v)
        plan->splits[v] = (struct ghp_split){GHP_SPLIT_DATA, 1};
    if (m->memory_formats != NULL)
        memcpy(plan->nchw16c, m->memory_formats, layers * sizeof *plan->nchw16c);
    else
        GHP_TRY(decide(&m->how, plan->splits, m->request->profile, plan->nchw16c, &choice));
    if (!choice) {
        free(plan->nchw16c);
        plan->nchw16c = NULL;
    }
    m->how.nchw16c = plan->nchw16c;
    return GHP_OK;
}

enum ghp_status ghp_build_memory_format_holds(const struct ghp_plan_request *request,
                                              const struct ghp_plan *plan, int attempt,
                                              bool **memory_formats, bool *hold)
{
    const struct ghp_lowering how = ghp_plan_lowering(plan, request->profile);
    size_t layers = (size_t)plan->model.n_layers;
    bool choice;

    *hold = plan->nchw16c == NULL || ghp_memory_format_holds(&how, plan->nchw16c);
    if (*hold) return GHP_OK;
    if (*memory_formats == NULL) *memory_formats = ghp_alloc(layers, sizeof **memory_formats);
    if (*memory_formats == NULL) return GHP_NO_MEMORY();
    memset(*memory_formats, 0, layers * sizeof **memory_formats);
    return attempt > 0 ? GHP_OK
                       : decide(&how, plan->splits, request->profile, *memory_formats, &choice);
}
