/* profiler/measure/speed_probe.c - see measure/speed_probe.h. */
#include "profiler/measure/speed_probe.h"

#include "executor/opbench/speed_probe.h"

enum ghp_status ghp_measure_speed_probe(const struct ghp_measure *m,
                                        struct ghp_samples samples[GHP_SPEED_PROBE_JOBS])
{
    struct ghp_speed_prober *prober = NULL;
    struct ghp_speed_probe speed_probe = {0};
    double unused = 0, *const means[GHP_SPEED_PROBE_JOBS] = {&speed_probe.compute_s,
                                                             &speed_probe.memory_s};
    enum ghp_status status = ghp_speed_prober_open(m->backend_ops, m->backend, &prober);

    GHP_TRY_GOTO(status, ghp_measure_max(m, status, &unused), done); /* and all begin together */
    status = ghp_speed_prober_time(prober, &speed_probe);
    for (int i = 0; i < GHP_SPEED_PROBE_JOBS; i++) {
        GHP_TRY_GOTO(status, ghp_measure_mean(m, status, means[i]), done);
        if (samples[i].n < GHP_MAX_SAMPLES) samples[i].values[samples[i].n++] = *means[i];
    }
done:
    ghp_speed_prober_close(prober);
    return status;
}
