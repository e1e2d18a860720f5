/* planner/build/failure.c - why no plan fits, and what would. */
#include "planner/build/build_private.h"

#include "core/base/units.h"

#include <inttypes.h>

enum ghp_status ghp_build_fail_memory(const struct ghp_build_context *m,
                                      const struct ghp_search_result *r)
{
    const struct ghp_problem *problem = &m->how.problem;
    char limit[32], least[32];

    ghp_bytes_format((double)m->request->memory_bytes, limit, sizeof limit);
    ghp_bytes_format((double)r->least_bytes, least, sizeof least);
    if (!r->proven)
        return GHP_FAIL(
            GHP_ERR_INFEASIBLE,
            "no plan of '%s' within %s a worker was found in the time; give --memory %" PRId64
            " (%s: the least found so far), or a longer --time-limit",
            m->plan->model.name, limit, r->least_bytes, least);
    return GHP_FAIL(
        GHP_ERR_INFEASIBLE,
        "memory binds: no plan of '%s' for %d workers and batch %" PRId64
        " fits into %s a worker; the least %s is "
        "%" PRId64 " bytes (%s); give --memory %" PRId64 ", a smaller --batch or more --workers",
        m->plan->model.name, problem->workers, problem->global_batch, limit,
        r->least_proven ? "that would do" : "found", r->least_bytes, least, r->least_bytes);
}

enum ghp_status ghp_build_fail_staged(const struct ghp_build_context *m)
{
    char least[32];

    if (m->outer.least_bytes == 0)
        return GHP_FAIL(
            GHP_ERR_INFEASIBLE,
            "no plan of '%s' has these stages and micro-batches: some layer can take no "
            "split there (statistics of each S samples want whole ones); use other "
            "stages or fewer micro-batches",
            m->plan->model.name);
    ghp_bytes_format((double)m->outer.least_bytes, least, sizeof least);
    return GHP_FAIL(GHP_ERR_INFEASIBLE,
                    "memory binds: no plan of '%s' with these stages and micro-batches fits into "
                    "%" PRId64 " bytes a worker; the least %s is %" PRId64
                    " bytes (%s); give --memory %" PRId64
                    ", more --micro-batches or more --workers",
                    m->plan->model.name, m->request->memory_bytes,
                    m->outer.least_proven ? "that would do" : "found", m->outer.least_bytes, least,
                    m->outer.least_bytes);
}

enum ghp_status ghp_build_fail_stages(const struct ghp_build_context *m)
{
    struct ghp_search_result all = {.proven =
                                        m->own.proven && (m->outer.proven || !m->searches_outer),
                                    .least_bytes = m->own.least_bytes,
                                    .least_proven = m->own.least_proven};

    if (m->recompute_bytes > 0 && m->recompute_bytes < all.least_bytes) {
        all.least_proven = false;
        all.least_bytes = m->recompute_bytes;
    }
    if (m->outer.least_bytes > 0) {
        all.least_proven = all.least_proven && m->outer.least_proven;
        if (m->outer.least_bytes < all.least_bytes) all.least_bytes = m->outer.least_bytes;
    }
    return ghp_build_fail_memory(m, &all);
}
