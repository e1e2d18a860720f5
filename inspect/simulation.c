/* inspect/simulation.c - see inspect/simulation.h. */
#include "inspect/simulation.h"

enum ghp_status ghp_simulation_init(const struct ghp_plan *plan, struct ghp_simulation *p)
{
    struct ghp_lowering lowering = ghp_plan_lowering(plan, &plan->profile);
    enum ghp_status status;

    *p = (struct ghp_simulation){0};
    GHP_TRY(ghp_lower_all(&lowering, plan->splits, &p->programs));
    status = ghp_simulate_all(&p->programs, &plan->profile, p->timings);
    if (status != GHP_OK) {
        ghp_programs_release(&p->programs);
        return status;
    }
    for (int i = 1; i < p->programs.n; i++)
        if (p->timings[i].compute_s > p->timings[p->busiest].compute_s) p->busiest = i;
    return GHP_OK;
}

void ghp_simulation_release(struct ghp_simulation *p)
{
    if (p == NULL) return;
    for (int i = 0; i < p->programs.n; i++)
        ghp_timing_release(&p->timings[i]);
    ghp_programs_release(&p->programs);
    *p = (struct ghp_simulation){0};
}
