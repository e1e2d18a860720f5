/* core/cost/simulate_cost.c - simulations whose costs come from a profile. */
#include "core/cost/simulate.h"

#include <stdlib.h>
#include <string.h>

static enum ghp_status cost_program(const struct ghp_program *program,
                                    const struct ghp_profile *profile, struct ghp_cost **costs)
{
    const struct ghp_contention contention = ghp_contention_of(program);

    *costs = ghp_alloc((size_t)program->n_instrs + 1, sizeof **costs);
    if (*costs == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *instr = &program->instrs[i];

        GHP_TRY(ghp_profile_cost(profile, instr, program->problem.workers, &(*costs)[i]));
        (*costs)[i].seconds = ghp_cost_contended(instr, &(*costs)[i], contention);
    }
    return GHP_OK;
}

/* Lengthens what a slow worker computes; what others send arrives as before. */
static void slow_down(const struct ghp_program *program, double slow, struct ghp_cost *costs)
{
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].stream == GHP_STREAM_COMPUTE &&
            !ghp_instr_sends(&program->instrs[i]) && !ghp_kind_of(&program->instrs[i])->waits)
            costs[i].seconds *= slow;
}

enum ghp_status ghp_simulate(const struct ghp_program *program, const struct ghp_profile *profile,
                             struct ghp_timing *timing)
{
    struct ghp_cost *costs = NULL;
    enum ghp_status status = cost_program(program, profile, &costs);
    *timing = (struct ghp_timing){0};
    if (status == GHP_OK) status = ghp_simulate_with_costs(program, profile, costs, timing);
    free(costs);
    return status;
}

enum ghp_status ghp_simulate_slowed(const struct ghp_programs *programs,
                                    const struct ghp_profile *profile, const double *slow,
                                    struct ghp_timing *timings)
{
    struct ghp_cost *costs[GHP_MAX_STAGES + 1] = {NULL};
    const struct ghp_cost *borrowed[GHP_MAX_STAGES + 1];
    enum ghp_status status = GHP_OK;
    memset(timings, 0, (size_t)programs->n * sizeof *timings);
    for (int k = 0; k < programs->n && status == GHP_OK; k++) {
        status = cost_program(&programs->of[k], profile, &costs[k]);
        if (status == GHP_OK && slow != NULL) slow_down(&programs->of[k], slow[k], costs[k]);
        borrowed[k] = costs[k];
    }
    if (status == GHP_OK) status = cost_program(&programs->server, profile, &costs[programs->n]);
    borrowed[programs->n] = costs[programs->n];
    if (status == GHP_OK)
        status = ghp_simulate_all_with_costs(programs, profile, borrowed, timings);
    for (int k = 0; k <= programs->n; k++)
        free(costs[k]);
    return status;
}

enum ghp_status ghp_simulate_all(const struct ghp_programs *programs,
                                 const struct ghp_profile *profile, struct ghp_timing *timings)
{
    return ghp_simulate_slowed(programs, profile, NULL, timings);
}
