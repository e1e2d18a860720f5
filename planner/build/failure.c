/* planner/build/failure.c - why no plan fits, and what would. */
#include "planner/build/build_private.h"

#include "core/base/units.h"

#include <inttypes.h>

enum ghp_status ghp_making_fail_memory(const struct ghp_making *m,
                                       const struct ghp_search_result *r)
{
    const struct ghp_extent *extent = &m->how.extent;
    char limit[32], least[32];

    ghp_bytes_text((double)m->wishes->memory_bytes, limit, sizeof limit);
    ghp_bytes_text((double)r->least_bytes, least, sizeof least);
    if (!r->closed)
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
        m->plan->model.name, extent->workers, extent->global_batch, limit,
        r->least_proven ? "that would do" : "found", r->least_bytes, least, r->least_bytes);
}

enum ghp_status ghp_making_fail_staged(const struct ghp_making *m)
{
    char least[32];

    if (m->outer.least_bytes == 0)
        return GHP_FAIL(
            GHP_ERR_INFEASIBLE,
            "no plan of '%s' has these stages and micro-batches: some layer can take no "
            "split there (statistics of each S samples want whole ones); use other "
            "stages or fewer micro-batches",
            m->plan->model.name);
    ghp_bytes_text((double)m->outer.least_bytes, least, sizeof least);
    return GHP_FAIL(GHP_ERR_INFEASIBLE,
                    "memory binds: no plan of '%s' with these stages and micro-batches fits into "
                    "%" PRId64 " bytes a worker; the least %s is %" PRId64
                    " bytes (%s); give --memory %" PRId64
                    ", more --micro-batches or more --workers",
                    m->plan->model.name, m->wishes->memory_bytes,
                    m->outer.least_proven ? "that would do" : "found", m->outer.least_bytes, least,
                    m->outer.least_bytes);
}

enum ghp_status ghp_making_fail_roles(const struct ghp_making *m)
{
    struct ghp_search_result all = {.closed =
                                        m->own.closed && (m->outer.closed || !m->searches_outer),
                                    .least_bytes = m->own.least_bytes,
                                    .least_proven = m->own.least_proven};

    if (m->remade_bytes > 0 && m->remade_bytes < all.least_bytes) {
        all.least_proven = false;
        all.least_bytes = m->remade_bytes;
    }
    if (m->outer.least_bytes > 0) {
        all.least_proven = all.least_proven && m->outer.least_proven;
        if (m->outer.least_bytes < all.least_bytes) all.least_bytes = m->outer.least_bytes;
    }
    return ghp_making_fail_memory(m, &all);
}
