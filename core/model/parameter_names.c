/* core/model/parameter_names.c - see parameter_names.h. */
#include "core/model/parameter_names.h"

#include "core/base/text.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

bool ghp_parameter_is_named(const char *pattern, const char *tensor)
{
    size_t n = strlen(pattern);

    return fnmatch(pattern, tensor, 0) == 0 ||
           (strncmp(pattern, tensor, n) == 0 && tensor[n] == '.');
}

enum ghp_status ghp_parameters_check_pattern(const struct ghp_model *model, const char *option,
                                             const char *pattern)
{
    const char **names = ghp_alloc((size_t)model->n_layers * GHP_MAX_PARAMS + 1, sizeof *names),
               *nearest;
    enum ghp_status status = GHP_OK;
    bool found = false;
    int n = 0;

    if (names == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < model->n_layers; i++)
        for (int p = 0; p < model->layers[i].n_params; p++) {
            names[n++] = model->layers[i].params[p].name;
            found = found || ghp_parameter_is_named(pattern, names[n - 1]);
        }
    nearest = found ? NULL : ghp_text_nearest(pattern, names);
    if (!found)
        status = GHP_FAIL(GHP_ERR_INPUT,
                          "--%s '%s' names no parameter of the network%s%s%s; give a name, a "
                          "module's name, or a pattern such as 'layer1.*'",
                          option, pattern, nearest != NULL ? ", the nearest is '" : "",
                          nearest != NULL ? nearest : "", nearest != NULL ? "'" : "");
    free(names);
    return status;
}
