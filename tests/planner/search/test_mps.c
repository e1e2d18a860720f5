/* ghp-test: timeout=120
 * tests/planner/search/test_mps.c - the integer program as a file: another reader's optimum of it is the best step of
 * all plans, and below it where overlapping work slows or memory is limited. */
#include "planner/search/mps.h"
#include "core/base/clock.h"
#include "core/plan/plan.h"
#include "planner/search/memory.h"
#include "planner/search/search.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

#include <glpk.h>
#include <math.h>
#include <stdio.h>

enum { CASES = 60, TIED_CASES = 20, SHARDED_CASES = 20 };
static const double unit_s = 1e-3;

/* What GLPK finds for the program of a domain, in seconds; INFINITY: no plan fits. */
static double optimum(const struct ghp_domain *domain, int64_t limit)
{
    const struct ghp_mps_job job = {
        .domain = domain, .limit_bytes = (double)limit, .unit_s = unit_s, .head = "* of a test\n"};
    char path[256];
    double found = INFINITY;
    glp_prob *lp;
    glp_iocp params;

    snprintf(path, sizeof path, "%s/program.mps", check_folder());
    if (!CHECK_STATUS(ghp_mps_write(&job, path), GHP_OK)) return NAN;
    glp_term_out(GLP_OFF);
    lp = glp_create_prob();
    CHECK_EQ(glp_read_mps(lp, GLP_MPS_FILE, NULL, path), 0);
    glp_init_iocp(&params);
    params.presolve = GLP_ON;
    CHECK(glp_intopt(lp, &params) == 0 || limit > 0);
    if (glp_mip_status(lp) == GLP_OPT) found = glp_mip_obj_val(lp) * unit_s;
    glp_delete_prob(lp);
    return found;
}

static void search(struct ghp_instance *in, const struct ghp_domain *domain, int64_t limit,
                   struct ghp_search_result *result)
{
    const struct ghp_search_job job = {.instance = in,
                                       .domain = domain,
                                       .limit_bytes = limit,
                                       .deadline_s = ghp_now_s() + 30,
                                       .solver = GHP_SOLVER_BRANCH};

    CHECK_STATUS(ghp_search_run(&job, result), GHP_OK);
    CHECK(result->proven);
}

/* With less memory than the fastest plan's arena: the program has the live bytes alone, so it is never above. */
static void check_limited(struct ghp_instance *in, const struct ghp_domain *domain, int64_t limit,
                          double step_s)
{
    struct ghp_search_result limited = {0};
    double found_s;

    search(in, domain, limit, &limited);
    CHECK_STATUS(ghp_memory_init(in), GHP_OK);
    found_s = optimum(domain, limit);
    if (limited.feasible) CHECK(found_s <= limited.kept[0].step_s * (1 + 1e-6));
    CHECK(found_s >= step_s * (1 - 1e-6));
    ghp_search_release(&limited);
}

/* The least, over all plans, of the longest constraint. */
static double least_by_constraints(const struct ghp_domain *domain)
{
    const struct ghp_instance *in = domain->instance;
    struct ghp_coefficients coefficients = ghp_instance_coefficients(in);
    struct ghp_accumulated_cost accumulated = {0};
    int choice[32] = {0}, v = 0;
    double least_s = INFINITY;

    CHECK_STATUS(ghp_accumulated_cost_init(in, &accumulated), GHP_OK);
    while (v < in->n_layers) {
        if (ghp_domain_has(domain, choice)) {
            ghp_accumulated_cost_set(in, choice, &accumulated);
            least_s = fmin(least_s, ghp_constraint_step_s(in, &coefficients, &accumulated));
        }
        for (v = 0; v < in->n_layers && ++choice[v] == in->n_choices[v]; v++)
            choice[v] = 0;
    }
    ghp_accumulated_cost_release(&accumulated);
    return least_s;
}

static void check_case(struct random_case *c, bool limited)
{
    struct ghp_plan shell = {.model = c->model, .problem = c->problem};
    struct ghp_lowering lowering = ghp_plan_lowering(&shell, &c->profile);
    bool exact = c->profile.overlap.compute == 1 && c->shardings == 0;
    struct ghp_search_result free = {0};
    struct ghp_instance in;
    struct ghp_domain domain;
    double step_s, found_s;

    lowering.shardings = c->shardings;
    if (!CHECK_STATUS(ghp_instance_init(&lowering, &c->profile, c->problem.workers, &in), GHP_OK))
        return;
    CHECK_STATUS(ghp_domain_init(&in, &domain), GHP_OK);
    search(&in, &domain, 0, &free);
    step_s = free.kept[0].step_s;
    found_s = optimum(&domain, 0);
    CHECK(found_s <= step_s * (1 + 1e-6));
    if (c->shardings != 0) {
        double least_s = least_by_constraints(&domain);

        CHECK_NEAR(found_s, least_s, 1e-6 * least_s);
    }
    if (exact) {
        CHECK_NEAR(found_s, step_s, 1e-6 * step_s);
        if (limited) check_limited(&in, &domain, free.kept[0].peak_bytes - 1, step_s);
    }
    ghp_search_release(&free);
    ghp_domain_release(&domain);
    ghp_instance_release(&in);
}

CHECK_TEST(mps)
{
    struct random_case c;

    for (uint64_t seed = 0; seed < (uint64_t)check_cases(CASES); seed++) {
        if (!CHECK_STATUS(random_case_make(2000 + seed, 1e4, &c), GHP_OK)) break;
        if (seed % 4 != 0)
            c.profile.overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
        check_case(&c, random_case_combinations(&c.model, c.problem) <= 200);
        random_case_release(&c);
    }
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(TIED_CASES); seed++) {
        if (!CHECK_STATUS(random_case_tied(500 + seed, 300, &c), GHP_OK)) break;
        check_case(&c, false);
        random_case_release(&c);
    }
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(SHARDED_CASES); seed++) {
        if (!CHECK_STATUS(random_case_make(3000 + seed, 100, &c), GHP_OK)) break;
        c.shardings = 1u << GHP_SHARDING_NONE | 1u << GHP_SHARDING_PASS;
        check_case(&c, false);
        random_case_release(&c);
    }
    return check_end();
}
