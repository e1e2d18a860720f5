/* tests/executor/forecast_case.c - see forecast_case.h. */
#include "tests/executor/forecast_case.h"

#include "tests/check.h"
#include "tests/executor/cases.h"

#include <stdlib.h>

void forecast_case_open(const char *path, int workers, struct ghp_link link,
                        struct ghp_overlap overlap, struct forecast_case *c)
{
    struct ghp_extent extent = {.workers = workers, .global_batch = 8};
    struct ghp_lowering how = {.model = &c->model, .extent = extent, .element_bytes = 4};

    *c = (struct forecast_case){0};
    case_model(path, &c->model);
    c->splits = case_splits(&c->model, extent, CASE_DATA, 0, 1);
    CHECK_STATUS(ghp_lower(&how, c->splits, 0, &c->program), GHP_OK);
    CHECK_STATUS(ghp_profile_init(&c->profile, "analytic", "fast", 4), GHP_OK);
    c->profile.law = (struct ghp_law){.flops_per_s = 1e10, .memory_Bps = 1e10};
    c->profile.machine.nodes = c->profile.machine.packages = 1;
    c->profile.machine.cores = c->profile.machine.threads = workers;
    c->profile.machine.intra = c->profile.machine.inter = link;
    c->profile.overlap = overlap;
    CHECK_STATUS(ghp_profile_seal(&c->profile), GHP_OK);
    CHECK_STATUS(ghp_stopwatch_open(c->program.n_instrs, &c->watch), GHP_OK);
}

struct ghp_residuals forecast_case_residuals(const struct forecast_case *c)
{
    const struct ghp_prospect prospect = {
        .program = &c->program, .profile = &c->profile, .n_layers = c->model.n_layers};
    struct ghp_residuals r = {0};

    CHECK_STATUS(ghp_residuals_init(&prospect, c->watch, &r), GHP_OK);
    return r;
}

void forecast_case_close(struct forecast_case *c)
{
    ghp_stopwatch_close(c->watch);
    ghp_profile_release(&c->profile);
    ghp_program_release(&c->program);
    free(c->splits);
    ghp_model_release(&c->model);
}
