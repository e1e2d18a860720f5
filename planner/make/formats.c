/* planner/make/formats.c - see make/formats.h. */
#include "planner/make/formats.h"

#include "planner/labelling/memory_format.h"

#include <stdlib.h>

enum ghp_status ghp_formats_decide(const struct ghp_lowering *lowering,
                                   const struct ghp_split *splits,
                                   const struct ghp_profile *profile, bool **nchw16c)
{
    bool by_data = ghp_problem_sharers(lowering->problem) == 1;
    size_t layers = (size_t)lowering->model->n_layers;
    struct ghp_split *data = ghp_alloc(layers, sizeof *data);
    bool *found = ghp_alloc(layers, sizeof *found), choice = false;
    enum ghp_status status = data == NULL || found == NULL ? GHP_NO_MEMORY() : GHP_OK;

    for (size_t v = 0; v < layers && data != NULL; v++)
        data[v] = (struct ghp_split){.kind = GHP_SPLIT_DATA, .tp_size = 1};
    if (status == GHP_OK && (splits != NULL || by_data))
        status = ghp_memory_format_decide(lowering, splits != NULL ? splits : data, profile, found,
                                          &choice);
    if (status == GHP_ERR_INFEASIBLE) {
        status = GHP_OK;
        choice = false;
    }
    free(data);
    *nchw16c = status == GHP_OK && choice ? found : NULL;
    if (*nchw16c == NULL) free(found);
    return status;
}
