/* profiler/measure_speed.c - see measure_speed.h. */
#include "profiler/measure_speed.h"

#include "executor/pace.h"

#include <math.h>
#include <stdlib.h>

static const double round_s = 1;   /* of a round: hundreds of time slices of a shared core */
static const double unlike = 1.25; /* times as fast, in each round: more than equal cores waver */
static const double grain = 0.1;   /* what is between two speeds that are told apart */

enum ghp_status ghp_speeds_from(const double *seconds, int n, struct ghp_speeds *speeds)
{
    double *sum_s = ghp_alloc((size_t)n, sizeof *sum_s), longest_s = 0;

    if (sum_s == NULL) return GHP_NO_MEMORY();
    for (int round = 0; round < GHP_SPEED_ROUNDS; ++round) {
        double least_s = INFINITY, most_s = 0;

        for (int r = 0; r < n; ++r) {
            double own_s = seconds[round * n + r];

            sum_s[r] += own_s;
            least_s = fmin(least_s, own_s);
            most_s = fmax(most_s, own_s);
        }
        if (most_s >= unlike * least_s) continue;
        free(sum_s);
        return GHP_OK;
    }
    for (int r = 0; r < n; ++r)
        longest_s = fmax(longest_s, sum_s[r]);
    for (int r = 0; r < n; ++r)
        sum_s[r] = fmin(GHP_MOST_SPEED, 1 + grain * round((longest_s / sum_s[r] - 1) / grain));
    *speeds = (struct ghp_speeds){.n = n, .of = sum_s};
    return GHP_OK;
}

enum ghp_status ghp_measure_speed(const struct ghp_measure *m, struct ghp_speeds *speeds)
{
    struct ghp_pacer *pacer = NULL;
    double *seconds = ghp_alloc((size_t)(GHP_SPEED_ROUNDS * m->size), sizeof *seconds), unused = 0;
    enum ghp_status status =
        seconds == NULL ? GHP_NO_MEMORY() : ghp_pacer_open(m->backend_ops, m->backend, &pacer);

    for (int round = 0; round < GHP_SPEED_ROUNDS; ++round) {
        double own_s = 0;

        GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused),
                     done); /* and all begin together */
        status = ghp_pacer_time_compute(pacer, round_s, &own_s);
        GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
        status = m->transport_ops->all_gather(m->world, &own_s, seconds + round * m->size,
                                              (int64_t)sizeof own_s);
    }
    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
    status = ghp_speeds_from(seconds, m->size, speeds);
done:
    ghp_pacer_close(pacer);
    free(seconds);
    return status;
}
