/* core/cost/simulate_mean.c - the mean step of a program whose steps are not alike, as some of them average weights.
 *
 * Instructions have their costs by step, as if each step took its part of them. Here a step that averages and one that
 * does not are simulated each for itself, as both repeat for ever; what one hides behind the other is left out. */
#include "core/cost/simulate_private.h"

#include <stdlib.h>

int ghp_simulate_period(const struct ghp_program *program)
{
    int period = 1;

    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].period > period) period = program->instrs[i].period;
    return period;
}

/* Adds a step's seconds at its weight among all steps. */
static void add_weighted(struct ghp_timing *mean, const struct ghp_timing *step, double weight)
{
    mean->step_s += weight * step->step_s;
    for (int p = 0; p < GHP_PHASE_COUNT; p++)
        mean->phase_s[p] += weight * step->phase_s[p];
    for (int i = 0; i < mean->n_instrs; i++) {
        mean->instrs[i].start_s += weight * step->instrs[i].start_s;
        mean->instrs[i].finish_s += weight * step->instrs[i].finish_s;
    }
}

enum ghp_status ghp_simulate_mean(const struct ghp_program *program, int period,
                                  const struct ghp_profile *profile, const struct ghp_cost *costs,
                                  struct ghp_timing *timing)
{
    size_t n = (size_t)program->n_instrs;
    struct ghp_cost *own = ghp_alloc(n + 1, sizeof *own);
    const struct ghp_cost *of = own;
    enum ghp_status status = own == NULL ? GHP_NO_MEMORY() : GHP_OK;

    *timing = (struct ghp_timing){.n_instrs = program->n_instrs};
    timing->instrs = ghp_alloc(n + 1, sizeof *timing->instrs);
    if (timing->instrs == NULL) status = GHP_NO_MEMORY();
    for (int averages = 0; averages < 2 && status == GHP_OK; averages++) {
        struct ghp_timing step = {0};

        for (int i = 0; i < program->n_instrs; i++) {
            timing->instrs[i].cost = own[i] = costs[i];
            if (program->instrs[i].period > 1) own[i].seconds *= averages * period;
        }
        status = ghp_simulate_alike(1, program, profile, &of, &step);
        if (status == GHP_OK)
            add_weighted(timing, &step, averages ? 1.0 / period : 1 - 1.0 / period);
        ghp_timing_release(&step);
    }
    free(own);
    if (status == GHP_OK) ghp_timing_sum_costs(program, timing);
    if (status != GHP_OK) ghp_timing_release(timing);
    return status;
}
