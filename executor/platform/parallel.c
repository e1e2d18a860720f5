/* executor/platform/parallel.c - parts on OpenMP threads. */
#include "executor/platform/parallel.h"

#include <omp.h>

void ghp_parallel(int parts, void (*body)(void *context, struct ghp_share share), void *context)
{
    if (parts == 1) {
        body(context, (struct ghp_share){0, 1});
        return;
    }
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int part = 0; part < parts; part++)
        body(context, (struct ghp_share){part, parts});
}

struct ghp_range ghp_share_of(struct ghp_share share, int64_t total, int64_t grain)
{
    int64_t grains = (total + grain - 1) / grain;
    int64_t first = grains * share.part / share.parts * grain;
    int64_t end = grains * (share.part + 1) / share.parts * grain;
    return (struct ghp_range){first < total ? first : total, end < total ? end : total};
}

void ghp_parallel_threads(int threads)
{
    if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}
