/* tests/executor/prediction_case.c - see prediction_case.h. */
#include "tests/executor/prediction_case.h"

#include "tests/check.h"
#include "tests/executor/cases.h"

#include <stdlib.h>

void prediction_case_open(const char *path, int workers, struct ghp_link link,
                          struct ghp_overlap overlap, struct prediction_case *c)
{
    struct ghp_problem problem = {.workers = workers, .global_batch = 8};
    struct ghp_lowering lowering = {.model = &c->model, .problem = problem, .element_bytes = 4};

    *c = (struct prediction_case){0};
    case_model(path, &c->model);
    c->splits = case_splits(&c->model, problem, CASE_DATA, 0, 1);
    CHECK_STATUS(ghp_lower(&lowering, c->splits, 0, &c->program), GHP_OK);
    CHECK_STATUS(ghp_profile_init(&c->profile, "analytic", "fast", 4), GHP_OK);
    c->profile.analytic = (struct ghp_analytic_model){.flops_per_s = 1e10, .memory_Bps = 1e10};
    c->profile.machine.nodes = c->profile.machine.packages = 1;
    c->profile.machine.cores = c->profile.machine.threads = workers;
    c->profile.machine.intra = c->profile.machine.inter = link;
    c->profile.overlap = overlap;
    CHECK_STATUS(ghp_profile_finalize(&c->profile), GHP_OK);
    CHECK_STATUS(ghp_step_timer_open(c->program.n_instrs, &c->timer), GHP_OK);
}

struct ghp_prediction_errors prediction_case_prediction_errors(const struct prediction_case *c)
{
    const struct ghp_prospect prospect = {
        .program = &c->program, .profile = &c->profile, .n_layers = c->model.n_layers};
    struct ghp_prediction_errors r = {0};

    CHECK_STATUS(ghp_prediction_errors_init(&prospect, c->timer, &r), GHP_OK);
    return r;
}

void prediction_case_close(struct prediction_case *c)
{
    ghp_step_timer_close(c->timer);
    ghp_profile_release(&c->profile);
    ghp_program_release(&c->program);
    free(c->splits);
    ghp_model_release(&c->model);
}
