/* profiler/measure/speed.c - see measure/speed.h. */
#include "profiler/measure/speed.h"

#include "executor/opbench/speed_probe.h"

#include <math.h>
#include <stdlib.h>

static const double round_s = 1;   /* of a round: hundreds of time slices of a shared core */
static const double unlike = 1.25; /* times as fast, in each round: more than equal cores waver */
static const double resolution = 0.1; /* what is between two speeds that are told apart */

bool ghp_speeds_unlike(const double *seconds, int n)
{
    double least_s = INFINITY, most_s = 0;

    for (int r = 0; r < n; r++) {
        least_s = fmin(least_s, seconds[r]);
        most_s = fmax(most_s, seconds[r]);
    }
    return most_s >= unlike * least_s;
}

enum ghp_status ghp_speeds_from(const double *seconds, int n, struct ghp_speeds *speeds)
{
    double *sum_s, longest_s = 0;

    for (int round = 0; round < GHP_SPEED_ROUNDS; round++)
        if (!ghp_speeds_unlike(seconds + round * n, n)) return GHP_OK;
    sum_s = ghp_alloc((size_t)n, sizeof *sum_s);
    if (sum_s == NULL) return GHP_NO_MEMORY();
    for (int r = 0; r < n; r++) {
        for (int round = 0; round < GHP_SPEED_ROUNDS; round++)
            sum_s[r] += seconds[round * n + r];
        longest_s = fmax(longest_s, sum_s[r]);
    }
    for (int r = 0; r < n; r++)
        sum_s[r] =
            fmin(GHP_MOST_SPEED, 1 + resolution * round((longest_s / sum_s[r] - 1) / resolution));
    *speeds = (struct ghp_speeds){.n = n, .of = sum_s};
    return GHP_OK;
}

/* One round: what all ranks took, on each of them. They begin it together and end it together. */
static enum ghp_status time_round(const struct ghp_measure *m, struct ghp_speed_prober *prober,
                                  double *seconds)
{
    double own_s = 0, unused = 0;
    enum ghp_status status = ghp_speed_prober_time_compute(prober, round_s, &own_s);

    GHP_TRY(ghp_measure_max(m, status, &unused));
    status = m->world->ops->all_gather(m->world, &own_s, seconds, (int64_t)sizeof own_s);
    return ghp_measure_max(m, status, &unused);
}

enum ghp_status ghp_measure_speed(const struct ghp_measure *m, struct ghp_speeds *speeds)
{
    struct ghp_speed_prober *prober = NULL;
    double *seconds = ghp_alloc((size_t)(GHP_SPEED_ROUNDS * m->size), sizeof *seconds), unused = 0;
    enum ghp_status status = seconds == NULL
                                 ? GHP_NO_MEMORY()
                                 : ghp_speed_prober_open(m->backend_ops, m->backend, &prober);

    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done);
    for (int round = 0; round < GHP_SPEED_ROUNDS; round++) {
        double *own = seconds + round * m->size;

        GHP_TRY_GOTO(status, time_round(m, prober, own), done);
        if (!ghp_speeds_unlike(own, m->size)) goto done; /* on all ranks alike */
    }
    status = ghp_speeds_from(seconds, m->size, speeds);
done:
    ghp_speed_prober_close(prober);
    free(seconds);
    return status;
}
