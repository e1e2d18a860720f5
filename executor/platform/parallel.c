/* executor/platform/parallel.c - parts on OpenMP threads. */
#include "executor/platform/parallel.h"

#include <omp.h>
#include <stdbool.h>
#include <stdlib.h>

void ghp_parallel(int parts, void (*body)(void *context, struct ghp_part part), void *context)
{
    if (parts == 1) {
        body(context, (struct ghp_part){0, 1});
        return;
    }
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int part = 0; part < parts; part++)
        body(context, (struct ghp_part){part, parts});
}

struct ghp_range ghp_part_range(struct ghp_part part, int64_t total, int64_t grain)
{
    int64_t grains = (total + grain - 1) / grain;
    int64_t first = grains * part.index / part.count * grain;
    int64_t end = grains * (part.index + 1) / part.count * grain;
    return (struct ghp_range){first < total ? first : total, end < total ? end : total};
}

void ghp_parallel_threads(int threads)
{
    if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

/* The team that a region gets. Without OpenMP's regions (cmake/GhpPackages.cmake) it cannot be asked for: the
 * threads. */
static int team_of(int threads)
{
    int team = threads;

#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
#pragma omp master
    team = omp_get_num_threads();
#endif
    return team;
}

enum ghp_status ghp_parallel_check(int threads)
{
    bool dynamic = omp_get_dynamic() != 0; /* the team then depends on how busy the machine is */
    int team = threads > 1 ? team_of(threads) : 1;
    const char *variable = dynamic                            ? "OMP_DYNAMIC"
                           : omp_get_thread_limit() < threads ? "OMP_THREAD_LIMIT"
                           : omp_get_max_active_levels() < 1  ? "OMP_MAX_ACTIVE_LEVELS"
                                                              : NULL,
               *value = variable != NULL ? getenv(variable) : NULL;

    if (threads <= 1 || (team == threads && !dynamic)) return GHP_OK;
    if (variable == NULL)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "a worker has %d threads, and OpenMP gives it %d; give --threads %d",
                        threads, team, team);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "a worker has %d threads, and OpenMP may give it fewer: %s is '%s'; unset it, "
                    "or give --threads 1",
                    threads, variable, value != NULL ? value : "set by the system");
}
