/* core/cost/simulate_timing.c - what a simulation says: sums over phases and streams. */
#include "core/cost/simulate_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void ghp_timing_release(struct ghp_timing *timing)
{
    if (timing == NULL) return;
    free(timing->instrs);
    memset(timing, 0, sizeof *timing);
}

void ghp_timing_sum_costs(const struct ghp_program *program, struct ghp_timing *timing)
{
    double measured_s = 0.0, all_s = 0.0, square_s = 0.0, by_law_s = 0.0;
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];
        const struct ghp_cost *cost = &timing->instrs[i].cost;
        all_s += cost->seconds;
        measured_s += cost->source == GHP_SOURCE_MEASURED ? cost->seconds : 0.0;
        double half = cost->spread * cost->seconds / 2.0;
        if (cost->source == GHP_SOURCE_ANALYTIC)
            by_law_s += half;
        else
            square_s += half * half;
        *(instr->stream == GHP_STREAM_COMPUTE ? &timing->compute_s
          : instr->stream == GHP_STREAM_COMM  ? &timing->comm_s
                                              : &timing->transfer_s) += cost->seconds;
    }
    timing->serial_s = timing->compute_s + timing->comm_s + timing->transfer_s;
    timing->measured_share = all_s > 0.0 ? measured_s / all_s : 0.0;
    timing->error_s = hypot(sqrt(square_s), by_law_s);
}

void ghp_timing_sum_phases(const struct ghp_program *program, double start_s,
                           struct ghp_timing *timing)
{
    double busy_s = 0.0;
    for (int i = 0; i < program->n_instrs; i++) {
        struct ghp_instr_time *t = &timing->instrs[i];
        t->start_s -= start_s;
        t->finish_s -= start_s;
        if (program->instrs[i].stream != GHP_STREAM_COMPUTE) continue;
        if (ghp_kind_of(&program->instrs[i])->waits) continue;
        timing->phase_s[ghp_instr_phase(&program->instrs[i])] += t->finish_s - t->start_s;
        busy_s += t->finish_s - t->start_s;
    }
    timing->phase_s[GHP_PHASE_EXPOSED] = fmax(0.0, timing->step_s - busy_s);
}
