/* tests/planner/labelling/test_frontier.c - least sums and min-marginals of the frontier's tables against every
 * assignment. */
#include "planner/labelling/frontier.h"
#include "planner/search/domain.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

enum { CASES = 150 };

struct sums { /* brute force */
    double least, below;
    int n_below;         /* assignments with a sum less than `below` */
    double *node, *pair; /* by flat index; INFINITY if no assignment has it */
};

static void fill_costs(struct ghp_frontier *f, const struct ghp_domain *domain,
                       struct random_source *s, double *node, double *pair)
{
    const struct ghp_instance *in = domain->instance;

    for (int i = 0; i < in->first_choice[in->n_layers]; i++)
        node[i] = random_between(s, 0.01, 1) - 0.2;
    for (int i = 0; i < in->first_pair[in->n_edges]; i++)
        pair[i] = domain->pair[i] ? random_between(s, 0.01, 1) - 0.2 : INFINITY;
    for (int v = 0; v < in->n_layers; v++)
        for (int k = 0; k < f->n_active[v]; k++)
            f->node_cost[in->first_choice[v] + k] =
                node[in->first_choice[v] + f->active[in->first_choice[v] + k]];
    for (int e = 0; e < in->n_edges; e++) {
        int u = in->edges[e].from, v = in->edges[e].to, at = in->first_pair[e];

        for (int a = 0; a < f->n_classes[u]; a++)
            for (int b = 0; b < f->n_classes[v]; b++)
                f->edge_cost[at++] = pair[in->first_pair[e] +
                                          f->classes[in->first_choice[u] + a] * in->n_classes[v] +
                                          f->classes[in->first_choice[v] + b]];
    }
}

static double cost_of(const struct ghp_instance *in, const int *choice, const double *node,
                      const double *pair)
{
    double sum = 0;

    for (int v = 0; v < in->n_layers; v++)
        sum += node[in->first_choice[v] + choice[v]];
    for (int e = 0; e < in->n_edges; e++)
        sum += pair[ghp_instance_pair(in, e, choice)];
    return sum;
}

static void lower_to(double *least, double value)
{
    if (value < *least) *least = value;
}

static void try_all(const struct ghp_domain *domain, const double *node, const double *pair,
                    struct sums *sums)
{
    const struct ghp_instance *in = domain->instance;
    int choice[32] = {0}, v = 0;

    sums->least = INFINITY;
    for (int i = 0; i < in->first_choice[in->n_layers]; i++)
        sums->node[i] = INFINITY;
    for (int i = 0; i < in->first_pair[in->n_edges]; i++)
        sums->pair[i] = INFINITY;
    while (v < in->n_layers) {
        if (ghp_domain_has(domain, choice)) {
            double sum = cost_of(in, choice, node, pair);

            lower_to(&sums->least, sum);
            sums->n_below += sum < sums->below;
            for (int u = 0; u < in->n_layers; u++)
                lower_to(&sums->node[in->first_choice[u] + choice[u]], sum);
            for (int e = 0; e < in->n_edges; e++)
                lower_to(&sums->pair[ghp_instance_pair(in, e, choice)], sum);
        }
        for (v = 0; v < in->n_layers && ++choice[v] == in->n_choices[v]; v++)
            choice[v] = 0;
    }
}

static bool near(double a, double b)
{
    return (!(a < INFINITY) && !(b < INFINITY)) || fabs(a - b) <= 1e-12;
}

static void check_marginals(const struct ghp_instance *in, const struct ghp_frontier *f,
                            const struct sums *sums)
{
    for (int v = 0; v < in->n_layers; v++)
        for (int k = 0; k < f->n_active[v]; k++)
            CHECK(near(f->node_least[in->first_choice[v] + k],
                       sums->node[in->first_choice[v] + f->active[in->first_choice[v] + k]]));
    for (int e = 0; e < in->n_edges; e++) {
        int u = in->edges[e].from, v = in->edges[e].to, at = in->first_pair[e];

        for (int a = 0; a < f->n_classes[u]; a++)
            for (int b = 0; b < f->n_classes[v]; b++)
                CHECK(near(f->edge_least[at++],
                           sums->pair[in->first_pair[e] +
                                      f->classes[in->first_choice[u] + a] * in->n_classes[v] +
                                      f->classes[in->first_choice[v] + b]]));
    }
}

static enum ghp_status count_visit(void *context, const int *choice, double *below)
{
    (void)choice;
    (void)below;
    ++*(int *)context;
    return GHP_OK;
}

/* Listing after marginals visits exactly the assignments below a sum, or gives up where it is told to. */
static void check_list(struct ghp_frontier *f, const struct sums *sums)
{
    int visits = 0;
    struct ghp_frontier_visitor visitor = {.visit = count_visit, .context = &visits};
    bool all;

    CHECK_STATUS(ghp_frontier_list(f, sums->below, INT32_MAX, &visitor, &all), GHP_OK);
    CHECK(all);
    CHECK_EQ(visits, sums->n_below);
    if (sums->n_below < 2) return;
    visits = 0;
    CHECK_STATUS(ghp_frontier_list(f, sums->below, sums->n_below - 1, &visitor, &all), GHP_OK);
    CHECK(!all);
    CHECK_EQ(visits, sums->n_below - 1);
}

static void check_case(const struct ghp_instance *in, struct random_source *s, int folds)
{
    size_t choices = (size_t)in->first_choice[in->n_layers],
           pairs = (size_t)in->first_pair[in->n_edges];
    double *block = calloc(2 * (choices + pairs), sizeof *block);
    double *node = block, *pair = node + choices;
    struct sums sums = {
        .below = random_between(s, 0.1, 3), .node = pair + pairs, .pair = pair + pairs + choices};
    const struct ghp_frontier_graph graph = ghp_instance_graph(in);
    struct ghp_frontier f;
    struct ghp_domain domain;
    int choice[32];
    bool fits;

    CHECK_STATUS(ghp_domain_init(in, &domain), GHP_OK);
    CHECK_STATUS(ghp_frontier_open(&graph, &f), GHP_OK);
    if (folds >= 0) CHECK_EQ(f.n_folds, folds);
    for (int v = 0; v < in->n_layers; v++) /* some choices and pairs are out of play */
        if (in->n_choices[v] > 1 && random_below(s, 3) == 0)
            ghp_domain_drop(&domain, v, random_below(s, in->n_choices[v]));
    for (size_t k = 0; k < pairs; k++)
        domain.pair[k] = random_below(s, 8) > 0;
    CHECK_STATUS(ghp_frontier_set(&f, domain.choice, &fits), GHP_OK);
    CHECK(fits);
    fill_costs(&f, &domain, s, node, pair);
    try_all(&domain, node, pair, &sums);
    double least = ghp_frontier_solve(&f, choice);
    CHECK(near(least, sums.least));
    if (least < INFINITY) CHECK_NEAR(cost_of(in, choice, node, pair), least, 1e-12);
    CHECK(near(ghp_frontier_marginals(&f), sums.least));
    if (least < INFINITY) {
        check_marginals(in, &f, &sums);
        check_list(&f, &sums);
    }
    ghp_frontier_close(&f);
    ghp_domain_release(&domain);
    free(block);
}

#define CHAINS(branches, joined)                                                                   \
    "{\"format\": \"ghp.model/1\", \"name\": \"chains\", \"input\": {\"channels\": 4}, "           \
    "\"layers\": ["                                                                                \
    "{\"name\": \"fc\", \"op\": \"linear\", \"features\": 4, \"bias\": false}," branches           \
    "{\"name\": \"join\", \"op\": \"concat\", \"inputs\": [" joined "]},"                          \
    "{\"name\": \"loss\", \"op\": \"softmax_cross_entropy\"}]}"

/* Three chains of two, one and one layers between two layers, as those of queries, keys and values. */
static const char chains[] =
    CHAINS("{\"name\": \"q\", \"op\": \"linear\", \"features\": 4, \"bias\": false},"
           "{\"name\": \"q2\", \"op\": \"relu\"},"
           "{\"name\": \"k\", \"op\": \"linear\", \"features\": 4, \"bias\": false, \"inputs\": "
           "[\"fc\"]},"
           "{\"name\": \"v\", \"op\": \"relu\", \"inputs\": [\"fc\"]},",
           "\"q2\", \"k\", \"v\", \"fc\"");

/* Three branches, of which the second forks again and reaches the join by three edges. */
static const char forked[] =
    CHAINS("{\"name\": \"a\", \"op\": \"relu\"},"
           "{\"name\": \"b\", \"op\": \"linear\", \"features\": 4, \"bias\": false, \"inputs\": "
           "[\"fc\"]},"
           "{\"name\": \"b1\", \"op\": \"relu\"},"
           "{\"name\": \"b2\", \"op\": \"linear\", \"features\": 2, \"bias\": false, \"inputs\": "
           "[\"b\"]},"
           "{\"name\": \"c\", \"op\": \"relu\", \"inputs\": [\"fc\"]},",
           "\"a\", \"b1\", \"b2\", \"b\", \"c\"");

/* Splits with their shardings, which are one class: the network's layers have two to three splits each. */
static void check_folded(const char *text, int folds, unsigned shardings)
{
    struct ghp_profile profile;
    struct ghp_model model;
    struct ghp_instance in;

    if (!CHECK_STATUS(ghp_model_parse(text, "chains", &model), GHP_OK) ||
        !CHECK_STATUS(analytic_profile(1e12, 1e9, 1e-5, &profile), GHP_OK))
        return;
    struct ghp_lowering lowering = {
        .model = &model, .problem = {2, 8}, .element_bytes = 4, .shardings = shardings};
    if (CHECK_STATUS(ghp_instance_init(&lowering, &profile, 2, &in), GHP_OK))
        for (uint64_t seed = 0; seed < (uint64_t)check_cases(40); seed++) {
            struct random_source s = {.state = 5000 + seed};

            check_case(&in, &s, folds);
        }
    ghp_instance_release(&in);
    ghp_profile_release(&profile);
    ghp_model_release(&model);
}

CHECK_TEST(frontier)
{
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(CASES); seed++) {
        struct random_source s = {.state = seed};
        struct random_case c;
        struct ghp_instance in;
        bool shards = seed % 3 == 2; /* which multiplies the combinations */

        if (!CHECK_STATUS(random_case_make(2000 + seed, shards ? 200 : 3000, &c), GHP_OK)) break;
        struct ghp_lowering lowering = {
            .model = &c.model,
            .problem = c.problem,
            .element_bytes = 4,
            .shardings = shards ? 1u << GHP_SHARDING_NONE | 1u << GHP_SHARDING_GRADIENTS : 0};
        if (!CHECK_STATUS(ghp_instance_init(&lowering, &c.profile, c.problem.workers, &in), GHP_OK))
            break;
        check_case(&in, &s, -1);
        ghp_instance_release(&in);
        random_case_release(&c);
    }
    check_folded(chains, 4, 0);
    check_folded(forked, 5, 0);
    check_folded(chains, 4, 1u << GHP_SHARDING_NONE | 1u << GHP_SHARDING_PASS);
    return check_end();
}
