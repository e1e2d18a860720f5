/* planner/build/build_private.c - what all parts of a plan's making ask. */
#include "planner/build/build_private.h"

#include <stdlib.h>
#include <string.h>

enum ghp_status ghp_making_text(char **to, const char *text)
{
    free(*to);
    *to = strdup(text);
    return *to == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

bool ghp_making_may_try(const struct ghp_wishes *w)
{
    return !w->heuristic && w->force == NULL && w->groups == 0 &&
           strcmp(w->profile->backend, "cuda") != 0;
}

bool ghp_making_may_remake(const struct ghp_making *m)
{
    const struct ghp_wishes *w = m->wishes;

    return w->memory_bytes > 0 && !w->keep_layers && ghp_making_may_try(w);
}
