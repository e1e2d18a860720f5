/* executor/backend.c - the compiled-in backends by name. To add one: a line in `all`. */
#include "executor/backend.h"

#include <string.h>

static const struct ghp_backend_ops *const all[] = {&ghp_backend_onednn, &ghp_backend_reference,
                                                    NULL};

const struct ghp_backend_ops *const *ghp_backend_all(void)
{
    return all;
}

const struct ghp_backend_ops *ghp_backend_find(const char *name)
{
    for (int i = 0; all[i] != NULL; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}
