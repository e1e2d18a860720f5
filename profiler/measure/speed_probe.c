/* profiler/measure/speed_probe.c - see measure/speed_probe.h. */
#include "profiler/measure/speed_probe.h"

#include "executor/opbench/speed_probe.h"

enum ghp_status ghp_measure_pace(const struct ghp_measure *m,
                                 struct ghp_samples samples[GHP_PACE_JOBS])
{
    struct ghp_pacer *pacer = NULL;
    struct ghp_pace pace = {0};
    double unused = 0, *const means[GHP_PACE_JOBS] = {&pace.compute_s, &pace.memory_s};
    enum ghp_status status = ghp_pacer_open(m->backend_ops, m->backend, &pacer);

    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done); /* and all begin together */
    status = ghp_pacer_time(pacer, &pace);
    for (int i = 0; i < GHP_PACE_JOBS; ++i) {
        GHP_TRY_GOTO(status, ghp_measure_mean(m, status, means[i]), done);
        if (samples[i].n < GHP_MAX_SAMPLES) samples[i].values[samples[i].n++] = *means[i];
    }
done:
    ghp_pacer_close(pacer);
    return status;
}
