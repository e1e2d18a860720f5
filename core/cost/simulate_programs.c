/* core/cost/simulate_programs.c - whose programs are simulated together, and by which costs. */
#include "core/cost/simulate_private.h"

#include <string.h>

/* A worker and a server, which stand for all; the worker's timing is kept. */
static enum ghp_status simulate_served(const struct ghp_programs *programs,
                                       const struct ghp_profile *profile,
                                       const struct ghp_cost *const *costs,
                                       struct ghp_timing *timing)
{
    const struct ghp_program both[2] = {programs->of[0], programs->server};
    struct ghp_timing timings[2];
    enum ghp_status status;

    memset(timings, 0, sizeof timings);
    status = ghp_simulate_alike(2, both, profile, costs, timings);
    *timing = timings[0];
    ghp_timing_release(&timings[1]);
    return status;
}

static enum ghp_status simulate(int n, const struct ghp_program *programs,
                                const struct ghp_profile *profile,
                                const struct ghp_cost *const *costs, struct ghp_timing *timings)
{
    int period = n == 1 ? ghp_simulate_period(programs) : 1; /* in stages nothing averages */
    return period > 1 ? ghp_simulate_mean(programs, period, profile, costs[0], timings)
                      : ghp_simulate_alike(n, programs, profile, costs, timings);
}

enum ghp_status ghp_simulate_with_costs(const struct ghp_program *program,
                                        const struct ghp_profile *profile,
                                        const struct ghp_cost *costs, struct ghp_timing *timing)
{
    *timing = (struct ghp_timing){0};
    return simulate(1, program, profile, &costs, timing);
}

enum ghp_status ghp_simulate_all_with_costs(const struct ghp_programs *programs,
                                            const struct ghp_profile *profile,
                                            const struct ghp_cost *const *costs,
                                            struct ghp_timing *timings)
{
    memset(timings, 0, (size_t)programs->n * sizeof *timings);
    if (programs->server.n_instrs > 0)
        return simulate_served(programs, profile, costs, &timings[0]);
    return simulate(programs->n, programs->of, profile, costs, timings);
}
