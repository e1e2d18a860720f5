/* planner/make/failure.c - see make/failure.h. */
#include "planner/make/failure.h"

#include "core/base/units.h"

#include <inttypes.h>

/* If a layer cannot take any split, says why it cannot be split by data. GHP_OK: each layer can take one. */
static enum ghp_status fail_splits(const struct ghp_plan_context *s)
{
    const struct ghp_split data = {.kind = GHP_SPLIT_DATA, .tp_size = 1};

    for (int v = 0; v < s->model->n_layers; v++) {
        if (s->instance->n_choices[v] > 0) continue;
        GHP_TRY(ghp_split_check(&s->model->layers[v], data, s->lowering.problem));
    }
    return GHP_OK;
}

void ghp_fail_take_recomputed(int64_t recomputed_bytes, int64_t *least_bytes, bool *least_proven)
{
    if (recomputed_bytes == 0) return;
    *least_proven = false;
    if (*least_bytes == 0 || recomputed_bytes < *least_bytes) *least_bytes = recomputed_bytes;
}

enum ghp_status ghp_fail_memory(const struct ghp_plan_context *s, const struct ghp_search_result *r)
{
    const struct ghp_problem *problem = &s->lowering.problem;
    char limit[32], least[32];

    ghp_bytes_format((double)s->request->memory_bytes, limit, sizeof limit);
    ghp_bytes_format((double)r->least_bytes, least, sizeof least);
    if (fail_splits(s) != GHP_OK)
        return GHP_FAIL(GHP_ERR_INFEASIBLE, "no plan of '%s': %s", s->model->name,
                        ghp_status_message());
    if (!r->proven && r->least_bytes == 0)
        return GHP_FAIL(GHP_ERR_INFEASIBLE,
                        "no plan of '%s' was found in the time; give a longer --time-limit, or "
                        "narrow the search by --strategy, --sync, --shard or --force",
                        s->model->name);
    if (!r->proven)
        return GHP_FAIL(
            GHP_ERR_INFEASIBLE,
            "no plan of '%s' within %s a worker was found in the time; give --memory %" PRId64
            " (%s: the least found so far), or a longer --time-limit",
            s->model->name, limit, r->least_bytes, least);
    return GHP_FAIL(
        GHP_ERR_INFEASIBLE,
        "memory binds: no plan of '%s' for %d worker%s and batch %" PRId64
        " fits into %s a worker; the least %s is "
        "%" PRId64 " bytes (%s); give --memory %" PRId64 ", a smaller --batch or more --workers",
        s->model->name, problem->workers, ghp_plural(problem->workers), problem->global_batch,
        limit, r->least_proven ? "that would do" : "found", r->least_bytes, least, r->least_bytes);
}

enum ghp_status ghp_fail_given_stages(const struct ghp_plan_context *s,
                                      const struct ghp_partition *stages)
{
    char least[32];

    if (stages->least_bytes == 0)
        return GHP_FAIL(
            GHP_ERR_INFEASIBLE,
            "no plan of '%s' has these stages and micro-batches: some layer can take no "
            "split there (statistics of each S samples want whole ones); use other "
            "stages or fewer micro-batches",
            s->model->name);
    ghp_bytes_format((double)stages->least_bytes, least, sizeof least);
    return GHP_FAIL(
        GHP_ERR_INFEASIBLE,
        "memory binds: no plan of '%s' with these stages and micro-batches fits into "
        "%" PRId64 " bytes a worker; the least %s is %" PRId64 " bytes (%s); give --memory %" PRId64
        ", more --micro-batches or more --workers",
        s->model->name, s->request->memory_bytes, stages->least_proven ? "that would do" : "found",
        stages->least_bytes, least, stages->least_bytes);
}

enum ghp_status ghp_fail_all(const struct ghp_plan_context *s,
                             const struct ghp_search_result *shared,
                             const struct ghp_partition *stages,
                             const struct ghp_partition *recomputed)
{
    bool searched = s->request->pipeline_mode == GHP_PIPELINE_MODE_AUTO;
    struct ghp_search_result all = {.proven = shared->proven && (stages->proven || !searched),
                                    .least_bytes = shared->least_bytes,
                                    .least_proven = shared->least_proven};

    ghp_fail_take_recomputed(recomputed->least_bytes, &all.least_bytes, &all.least_proven);
    if (stages->least_bytes > 0) {
        all.least_proven = all.least_proven && stages->least_proven;
        if (all.least_bytes == 0 || stages->least_bytes < all.least_bytes)
            all.least_bytes = stages->least_bytes;
    }
    return ghp_fail_memory(s, &all);
}
