/* ghp-test: timeout=240
 * tests/planner/search/test_milp.c - branch and bound and its reference, GLPK's, find plans of one cost, with and
 * without a limit on memory; and the bounds of both hold. */
#include "planner/make/make.h"
#include "core/base/clock.h"
#include "planner/search/search.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

enum { CASES = 120, TIED_CASES = 40, SHARDED_CASES = 40 };

/* If work overlaps, constraints may lie far below what plans take: GLPK then meets nearly all, each later than the
 * one before. */
enum { MOST_MET = 200 };

static void run(struct ghp_instance *in, const struct ghp_domain *domain, int64_t limit,
                enum ghp_solver solver, struct ghp_search_result *result)
{
    struct ghp_search_job job = {.instance = in,
                                 .domain = domain,
                                 .limit_bytes = limit,
                                 .deadline_s = ghp_now_s() + 30,
                                 .solver = solver};

    CHECK_STATUS(ghp_search_run(&job, result), GHP_OK);
}

/* Both solvers on one problem; the peak of the fastest plan in *peak. */
static void compare(struct ghp_instance *in, const struct ghp_domain *domain, int64_t limit,
                    int64_t *peak)
{
    struct ghp_search_result fast = {0}, slow = {0};

    run(in, domain, limit, GHP_SOLVER_BRANCH, &fast);
    run(in, domain, limit, GHP_SOLVER_MILP, &slow);
    CHECK(fast.proven);
    CHECK(slow.proven);
    CHECK_EQ(fast.feasible, slow.feasible);
    if (fast.feasible && slow.feasible) {
        double step_s = fast.kept[0].step_s;

        CHECK_NEAR(step_s, slow.kept[0].step_s, 2e-7 * step_s); /* GLPK's own precision */
        CHECK(fast.bound_s <= step_s && slow.bound_s <= slow.kept[0].step_s);
        CHECK(limit == 0 || fast.kept[0].peak_bytes <= limit);
        *peak = fast.kept[0].peak_bytes;
    } else {
        CHECK_EQ(fast.least_bytes, slow.least_bytes);
    }
    ghp_search_release(&fast);
    ghp_search_release(&slow);
}

static void check_case(struct random_case *c)
{
    struct ghp_instance in;
    struct ghp_domain domain;
    int64_t peak = 0;

    if (random_case_combinations(&c->model, c->problem) > MOST_MET)
        c->profile.overlap = (struct ghp_overlap){.compute = 1, .comm = 1, .link = 1};
    struct ghp_plan shell = {.model = c->model, .problem = c->problem};
    struct ghp_lowering lowering = ghp_plan_lowering(&shell, &c->profile);
    lowering.shardings = c->shardings;
    if (!CHECK_STATUS(ghp_instance_init(&lowering, &c->profile, c->problem.workers, &in), GHP_OK))
        return;
    CHECK_STATUS(ghp_domain_init(&in, &domain), GHP_OK);
    compare(&in, &domain, 0, &peak);
    if (random_case_combinations(&c->model, c->problem) <= 100)
        compare(&in, &domain, peak - 1, &peak);
    ghp_domain_release(&domain);
    ghp_instance_release(&in);
}

CHECK_TEST(milp)
{
    struct random_case c;

    for (uint64_t seed = 0; seed < (uint64_t)check_cases(CASES); seed++) {
        if (!CHECK_STATUS(random_case_make(1000 + seed, 1e4, &c), GHP_OK)) break;
        check_case(&c);
        random_case_release(&c);
    }
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(TIED_CASES); seed++) {
        if (!CHECK_STATUS(random_case_tied(seed, 300, &c), GHP_OK)) break;
        check_case(&c);
        random_case_release(&c);
    }
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(SHARDED_CASES); seed++) {
        if (!CHECK_STATUS(random_case_make(3000 + seed, 30, &c), GHP_OK)) break;
        c.shardings = 1u << GHP_SHARDING_NONE | 1u << GHP_SHARDING_PASS;
        check_case(&c);
        random_case_release(&c);
    }
    return check_end();
}
