/* tests/planner/search/test_branch.c - branch and bound judges each plan once, even if all plans have one hash: it
 * still finds the fastest of all combinations, and looks at as many plans as with its own hash. So it does if a part of
 * the root is searched first. A node's domain, packed and unpacked over another, has the same choices, and the same
 * pairs of them. */
#include "core/plan/plan.h"
#include "core/base/clock.h"
#include "planner/search/search.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

enum { CASES = 60 };

static enum ghp_status judge(void *context, const int *choice, double *value)
{
    return ghp_search_evaluate(context, choice, 0, value, NULL);
}

static uint64_t one_hash(const int *choice, int n)
{
    (void)choice;
    (void)n;
    return 12345;
}

/* The fastest of all combinations, in mixed radix. */
static double fastest(const struct ghp_instance *in)
{
    int at[16] = {0}, v = 0;
    double best = INFINITY, step_s;

    while (v < in->n_layers) {
        if (!CHECK_STATUS(ghp_search_evaluate(in, at, 0, &step_s, NULL), GHP_OK)) return best;
        best = fmin(best, step_s);
        for (v = 0; v < in->n_layers && ++at[v] == in->n_choices[v]; v++)
            at[v] = 0;
    }
    return best;
}

/* wide_states   0: as usual; 1: a part of each root is searched first */
static void search(struct ghp_instance *in, uint64_t (*hash)(const int *choice, int n),
                   double wide_states, struct ghp_branch_result *result)
{
    struct ghp_domain domain = {0};
    struct ghp_branch_job job = {
        .in = in,
        .goal = {.scale = 1},
        .domain = &domain,
        .objective = {.evaluate = judge, .context = in},
        .limits = {.deadline_s = ghp_now_s() + 30, .enough = -INFINITY, .wide_states = wide_states},
        .hash = hash,
    };
    int first[16] = {0};
    double step_s;

    CHECK_STATUS(ghp_domain_init(in, &domain), GHP_OK);
    CHECK_STATUS(ghp_search_evaluate(in, first, 0, &step_s, NULL), GHP_OK);
    job.goal.scale = step_s;
    CHECK_STATUS(ghp_branch_run(&job, result), GHP_OK);
    ghp_domain_release(&domain);
}

/* differ   counts the searches that went another way by a part of the root */
static void test_search(uint64_t seed, int *differ)
{
    struct ghp_branch_result own = {0}, collides = {0}, narrow = {0};
    struct random_case c;
    struct ghp_instance in;
    double best;

    if (!CHECK_STATUS(random_case_make(5000 + seed, 500, &c), GHP_OK)) return;
    struct ghp_plan shell = {.model = c.model, .problem = c.problem};
    struct ghp_lowering lowering = ghp_plan_lowering(&shell, &c.profile);
    if (!CHECK_STATUS(ghp_instance_init(&lowering, &c.profile, c.problem.workers, &in), GHP_OK))
        return;
    best = fastest(&in);
    search(&in, NULL, 0, &own);
    search(&in, one_hash, 0, &collides);
    search(&in, NULL, 1, &narrow);
    CHECK(own.proven);
    CHECK(collides.proven);
    CHECK(narrow.proven);
    CHECK_NEAR(narrow.value, best, 1e-9 * best);
    *differ += narrow.nodes != own.nodes;
    CHECK_NEAR(own.value, best, 1e-9 * best);
    CHECK_NEAR(collides.value, best, 1e-9 * best);
    CHECK_EQ(collides.plans, own.plans);
    ghp_branch_release(&own);
    ghp_branch_release(&collides);
    ghp_branch_release(&narrow);
    ghp_instance_release(&in);
    random_case_release(&c);
}

/* Flags drawn by chance; of each layer at least the first choice is in play. */
static void draw_domain(uint64_t seed, struct ghp_domain *domain)
{
    const struct ghp_instance *in = domain->instance;
    struct random_source random = {.state = seed};

    for (int i = 0; i < in->first_choice[in->n_layers]; i++)
        domain->choice[i] = random_below(&random, 2) == 0;
    for (int v = 0; v < in->n_layers; v++)
        domain->choice[in->first_choice[v]] = 1;
    for (int i = 0; i < in->first_pair[in->n_edges]; i++)
        domain->pair[i] = random_below(&random, 2) == 0;
}

static bool pair_in_play(const struct ghp_domain *domain, int e, int i, int j)
{
    const struct ghp_instance *in = domain->instance;
    int from = in->first_choice[in->edges[e].from] + i, to = in->first_choice[in->edges[e].to] + j;

    return domain->choice[from] && domain->choice[to] &&
           domain->pair[in->first_pair[e] + in->class_of[from] * in->n_classes[in->edges[e].to] +
                        in->class_of[to]];
}

static void test_packed(uint64_t seed)
{
    struct ghp_domain domain = {0}, again = {0};
    unsigned char *packed = NULL;
    struct random_case c;
    struct ghp_instance in;

    if (!CHECK_STATUS(random_case_make(5000 + seed, 500, &c), GHP_OK)) return;
    struct ghp_plan shell = {.model = c.model, .problem = c.problem};
    struct ghp_lowering lowering = ghp_plan_lowering(&shell, &c.profile);
    if (seed % 2 == 1) lowering.shardings = 1u << GHP_SHARDING_NONE | 1u << GHP_SHARDING_STEP;
    if (!CHECK_STATUS(ghp_instance_init(&lowering, &c.profile, c.problem.workers, &in), GHP_OK))
        return;
    CHECK_STATUS(ghp_domain_init(&in, &domain), GHP_OK);
    CHECK_STATUS(ghp_domain_init(&in, &again), GHP_OK);
    draw_domain(2 * seed, &domain);
    draw_domain(2 * seed + 1, &again);
    CHECK_STATUS(ghp_domain_pack(&domain, &packed), GHP_OK);
    ghp_domain_unpack(packed, &again);
    for (int i = 0; i < in.first_choice[in.n_layers]; i++)
        CHECK_EQ(again.choice[i], domain.choice[i]);
    for (int e = 0; e < in.n_edges; e++)
        for (int i = 0; i < in.n_choices[in.edges[e].from]; i++)
            for (int j = 0; j < in.n_choices[in.edges[e].to]; j++)
                CHECK(pair_in_play(&again, e, i, j) == pair_in_play(&domain, e, i, j));
    free(packed);
    ghp_domain_release(&domain);
    ghp_domain_release(&again);
    ghp_instance_release(&in);
    random_case_release(&c);
}

CHECK_TEST(branch)
{
    int differ = 0;

    for (uint64_t seed = 0; seed < 8; seed++)
        test_packed(seed);
    for (uint64_t seed = 0; seed < CASES; seed++)
        test_search(seed, &differ);
    CHECK(differ > CASES / 2);
    return check_end();
}
