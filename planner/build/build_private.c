/* planner/build/build_private.c - what all parts of a plan's build ask. */
#include "planner/build/build_private.h"

#include <stdlib.h>
#include <string.h>

enum ghp_status ghp_build_set_text(char **to, const char *text)
{
    free(*to);
    *to = strdup(text);
    return *to == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

bool ghp_build_may_try(const struct ghp_plan_request *w)
{
    return w->solver != GHP_SOLVER_HEURISTIC && w->force == NULL && w->groups == 0 &&
           strcmp(w->profile->backend, "cuda") != 0;
}

bool ghp_build_may_recompute(const struct ghp_build_context *m)
{
    const struct ghp_plan_request *w = m->request;

    return w->memory_bytes > 0 && w->recompute == GHP_RECOMPUTE_MODE_AUTO && ghp_build_may_try(w);
}
