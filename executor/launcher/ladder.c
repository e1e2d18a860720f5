/* executor/launcher/ladder.c - see executor/launcher/ladder.h. */
#include "executor/launcher/ladder.h"

#include "onnx/network.h"

#include <stdlib.h>

/* One more plan, of one training with the first and for fewer workers than the last. */
static enum ghp_status take_plan(struct ghp_ladder *l, const char *file,
                                 const struct ghp_plan *plan, const struct ghp_plan *first)
{
    int i = l->n, workers = plan->problem.workers;

    if (i == GHP_PLAN_SET_MOST)
        return GHP_FAIL(GHP_ERR_INPUT, "there are more than %d plans; give fewer",
                        GHP_PLAN_SET_MOST);
    if (ghp_plan_check_alike(first, plan) != GHP_OK)
        return GHP_FAIL(GHP_ERR_INPUT, "plans '%s' and '%s': %s", i > 0 ? l->files[0] : file, file,
                        ghp_status_message());
    if (i > 0 && workers >= l->workers[i - 1])
        return GHP_FAIL(
            GHP_ERR_INPUT,
            "plan '%s' is for %d workers, and '%s' before it for %d; give plans from the "
            "most workers to the fewest, one for each number",
            file, workers, l->files[i - 1], l->workers[i - 1]);
    l->files[i] = file;
    l->workers[i] = workers;
    l->step_s[i] = plan->predicted.step_s;
    l->n++;
    return GHP_OK;
}

static enum ghp_status take_file(struct ghp_ladder *l, const char *file,
                                 const struct ghp_plan *first)
{
    struct ghp_plan_set *set = ghp_alloc(1, sizeof *set);
    enum ghp_status status = set != NULL ? ghp_plan_set_load(file, set) : GHP_NO_MEMORY();

    for (int i = 0; status == GHP_OK && i < set->n; i++)
        status = take_plan(l, file, &set->plans[i], first);
    if (set != NULL) ghp_plan_set_release(set);
    free(set);
    return status;
}

enum ghp_status ghp_ladder_load(const char *const *files, int n, struct ghp_ladder *ladder)
{
    struct ghp_plan_set *set = ghp_alloc(1, sizeof *set);
    enum ghp_status status = set != NULL ? ghp_network_check_plan(files[0]) : GHP_NO_MEMORY();

    if (status == GHP_OK) status = ghp_plan_set_load(files[0], set);
    ladder->n = 0;
    for (int i = 0; status == GHP_OK && i < n; i++)
        status = take_file(ladder, files[i], &set->plans[0]);
    if (set != NULL) ghp_plan_set_release(set);
    free(set);
    return status;
}
