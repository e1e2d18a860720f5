/* ghp-test: timeout=60
 * tests/planner/search/test_prefix.c - the best plan by prefixes is that of all combinations, on random instances and
 * parts of their domains, whatever the cutoff. If few prefixes are continued it is a plan of the domain, and a proof
 * only if it is the best. */
#include "core/plan/plan.h"
#include "planner/search/prefix.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

enum { CASES = 200, ALL = 100000 };

static double step_of(const struct ghp_dual *dual, const int *choice)
{
    struct ghp_accumulated_cost cost;
    double step_s;

    if (!CHECK_STATUS(ghp_accumulated_cost_init(dual->in, &cost), GHP_OK)) return 0;
    ghp_accumulated_cost_set(dual->in, choice, &cost);
    step_s = ghp_constraint_step_s(dual->in, &dual->coefficients, &cost);
    ghp_accumulated_cost_release(&cost);
    return step_s;
}

/* All combinations, in mixed radix. */
static double fastest(const struct ghp_dual *dual, const struct ghp_domain *domain)
{
    const struct ghp_instance *in = dual->in;
    int at[16] = {0}, v = 0;
    double best = INFINITY;

    while (v < in->n_layers) {
        if (ghp_domain_has(domain, at)) best = fmin(best, step_of(dual, at));
        for (v = 0; v < in->n_layers && ++at[v] == in->n_choices[v]; v++)
            at[v] = 0;
    }
    return best;
}

/* Drops choices and pairs by chance, a third of the cases none. */
static void narrow(const struct ghp_instance *in, struct random_source *source,
                   struct ghp_domain *domain)
{
    int drop = random_below(source, 3);

    for (int v = 0; v < in->n_layers && drop > 0; v++)
        if (ghp_domain_count(domain, v) > 1 && random_below(source, 3) == 0)
            ghp_domain_drop(domain, v, random_below(source, in->n_choices[v]));
    for (int k = 0; k < in->first_pair[in->n_edges] && drop > 1; k++)
        if (random_below(source, 5) == 0) domain->pair[k] = 0;
}

static void check_plan(const struct ghp_dual *dual, const struct ghp_domain *domain,
                       const struct ghp_prefix_result *found)
{
    CHECK(found->choice != NULL && ghp_domain_has(domain, found->choice));
    CHECK_NEAR(found->least_s, step_of(dual, found->choice), 1e-9 * found->least_s);
}

static void check_domain(const struct ghp_dual *dual, const struct ghp_domain *domain, double best)
{
    static const double cutoffs[] = {1.5, 1 + 1e-6, 1 - 1e-6};
    struct ghp_prefix_search *search = NULL;
    struct ghp_prefix_result found;

    if (!CHECK_STATUS(ghp_prefix_open(dual->in, &search), GHP_OK)) return;
    for (int k = 0; k < 3; k++)
        for (int most = ALL; most > 0; most /= 300) {
            struct ghp_prefix_job job = {.dual = dual,
                                         .domain = domain,
                                         .cutoff_s = cutoffs[k] * best,
                                         .most = most,
                                         .work = most > 1 ? INT64_MAX : 10,
                                         .deadline_s = INFINITY};

            CHECK_STATUS(ghp_prefix_run(search, &job, &found), GHP_OK);
            CHECK(found.complete || most < ALL);
            if (found.complete && cutoffs[k] > 1) CHECK_NEAR(found.least_s, best, 1e-9 * best);
            if (found.least_s < INFINITY) check_plan(dual, domain, &found);
            CHECK(found.least_s < INFINITY || cutoffs[k] < 1 || !found.complete);
            CHECK(found.least_s >= best * (1 - 1e-9));
        }
    ghp_prefix_close(search);
}

static void test_case(uint64_t seed, int *taken)
{
    struct random_source source = {.state = seed};
    struct ghp_domain domain = {0};
    struct ghp_dual dual = {0};
    struct ghp_instance in;
    struct random_case c;
    double best, bound, cutoff = INFINITY;

    if (!CHECK_STATUS(random_case_make(7000 + seed, 800, &c), GHP_OK)) return;
    struct ghp_plan shell = {
        .model = c.model, .problem = c.problem, .method.sync = ghp_sync_at((int)(seed % 4 == 3))};
    struct ghp_lowering lowering = ghp_plan_lowering(&shell, &c.profile);
    if (!CHECK_STATUS(ghp_instance_init(&lowering, &c.profile, c.problem.workers, &in), GHP_OK))
        return;
    CHECK_STATUS(ghp_domain_init(&in, &domain), GHP_OK);
    narrow(&in, &source, &domain);
    CHECK_STATUS(ghp_dual_open(&in, (struct ghp_goal){.scale = 1e-3}, &dual), GHP_OK);
    CHECK_STATUS(ghp_dual_bound(&dual, &domain, &cutoff, 1 + random_below(&source, 20), &bound),
                 GHP_OK);
    best = fastest(&dual, &domain);
    if (c.slow || in.n_items > in.n_layers + 1) CHECK(!ghp_prefix_takes(&dual));
    if (ghp_prefix_takes(&dual) && best < INFINITY) {
        ++*taken;
        check_domain(&dual, &domain, best);
    }
    ghp_dual_close(&dual);
    ghp_domain_release(&domain);
    ghp_instance_release(&in);
    random_case_release(&c);
}

CHECK_TEST(prefix)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0,
             last = argc > 1 ? first + 1 : (uint64_t)check_cases(CASES);
    int taken = 0;

    for (uint64_t seed = first; seed < last; seed++)
        test_case(seed, &taken);
    CHECK(argc > 1 || taken > (int)last / 8);
    return check_end();
}
