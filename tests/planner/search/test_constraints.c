/* tests/planner/search/test_constraints.c - the longest row of a plan is its simulated step where nothing slows down,
 * and never more than it where the streams hinder each other, parameters are sharded, or the loss is divided; a mix of
 * rows, charged choice by choice, sums to the mix of values. */
#include "planner/search/constraints.h"
#include "planner/search/search.h"
#include "tests/check.h"
#include "tests/planner/random_case.h"

enum { CASES = 400, PLANS = 20 };

/* The charges of the plan's own choices under a mix of rows. */
static void check_mix(const struct ghp_instance *in, const struct ghp_coefficients *coefficients,
                      const int *choice, const struct ghp_accumulated_cost *load,
                      struct random_source *s)
{
    struct ghp_constraint rows[GHP_CONSTRAINT_VARIANTS];
    double weight[GHP_CONSTRAINT_VARIANTS], mixed = 0, charged = 0;
    struct ghp_weights weights;
    struct ghp_frontier f;
    const struct ghp_frontier_graph graph = ghp_instance_graph(in);
    struct ghp_domain domain;
    bool fits;

    for (int v = 0; v < coefficients->n; v++) {
        weight[v] = random_between(s, 0.1, 1);
        mixed += weight[v] * ghp_constraint_longest(in, coefficients, v, load, &rows[v]);
    }
    CHECK_STATUS(ghp_weights_init(in, &weights), GHP_OK);
    CHECK_STATUS(ghp_frontier_open(&graph, &f), GHP_OK);
    CHECK_STATUS(ghp_domain_init(in, &domain), GHP_OK);
    for (int v = 0; v < in->n_layers; v++)
        ghp_domain_fix(&domain, v, choice[v]);
    CHECK_STATUS(ghp_frontier_set(&f, domain.choice, &fits), GHP_OK);
    ghp_weights_set(in, coefficients, rows, weight, coefficients->n, &weights);
    ghp_weights_to_frontier(&weights, &domain, &f);
    charged = ghp_frontier_solve(&f, NULL);
    CHECK_NEAR(charged, mixed, 1e-12 * (fabs(mixed) + 1));
    ghp_domain_release(&domain);
    ghp_frontier_close(&f);
    ghp_weights_release(&weights);
}

/* Draws a choice for each layer. If two layers share weights, the second's goes with the first's. */
static void draw_choice(const struct ghp_instance *in, struct random_source *s, int *choice)
{
    struct ghp_split splits[32];

    do {
        for (int v = 0; v < in->n_layers; v++)
            choice[v] = random_below(s, in->n_choices[v]);
        ghp_instance_splits(in, choice, splits);
    } while (ghp_split_check_tied(in->lowering->model, splits) != GHP_OK);
}

/* Whether the loss waits for metrics in its middle. */
static bool divides_loss(const struct ghp_instance *in, const int *choice)
{
    int last = in->n_layers - 1;

    return in->choices[in->first_choice[last] + choice[last]].kind == GHP_SPLIT_CHANNEL;
}

static void check_case(const struct ghp_instance *in, bool slow, struct random_source *s)
{
    struct ghp_coefficients coefficients = ghp_coefficients_of(&in->profile->overlap);
    struct ghp_accumulated_cost load;
    int choice[32];

    CHECK_STATUS(ghp_accumulated_cost_init(in, &load), GHP_OK);
    for (int k = 0; k < PLANS; k++) {
        double step_s, rows_s;

        draw_choice(in, s, choice);
        CHECK_STATUS(
            ghp_search_evaluate(in, choice, in->lowering->method.bucket_bytes, &step_s, NULL),
            GHP_OK);
        ghp_accumulated_cost_set(in, choice, &load);
        rows_s = ghp_constraint_step_s(in, &coefficients, &load);
        if (!slow && in->alone && in->lowering->method.sync.ops == &ghp_sync_allreduce &&
            in->lowering->shardings == 0 && !divides_loss(in, choice))
            CHECK_NEAR(rows_s, step_s, 1e-11 * step_s);
        else
            CHECK(rows_s <= step_s * (1 + 1e-11));
        check_mix(in, &coefficients, choice, &load, s);
    }
    ghp_accumulated_cost_release(&load);
}

/* Work conservation by hand: slowdowns of 2 leave nothing to gain from two streams. */
static void check_coefficients(void)
{
    struct ghp_coefficients none =
        ghp_coefficients_of(&(struct ghp_overlap){.compute = 1, .comm = 1, .link = 1});
    struct ghp_coefficients all =
        ghp_coefficients_of(&(struct ghp_overlap){.compute = 2, .comm = 2, .link = 2});
    struct ghp_coefficients some =
        ghp_coefficients_of(&(struct ghp_overlap){.compute = 1.25, .comm = 1.5, .link = 1.1});

    CHECK_EQ(none.n, 1);
    CHECK_NEAR(none.variant[0].reduce_off, 0, 0);
    CHECK_NEAR(none.variant[0].off[GHP_WORK_COMPUTE], 0, 0);
    CHECK_NEAR(all.variant[0].reduce_off, 1, 1e-15);
    CHECK_NEAR(all.variant[0].off[GHP_WORK_LINK], 1, 1e-15);
    CHECK_EQ(some.n, 2);
    CHECK_NEAR(some.variant[0].reduce_off, 0.1, 1e-15);
    CHECK_NEAR(some.variant[1].reduce_off, 1.5 * (1 - 1 / 1.25), 1e-15);
    CHECK_NEAR(some.variant[1].on[GHP_WORK_LINK], 1 - (1.5 * (1 - 1 / 1.25) - 0.1), 1e-15);
}

static void check_drawn(uint64_t seed, struct random_case *c)
{
    struct random_source s = {.state = seed};
    struct ghp_lowering lowering = {.model = &c->model, .problem = c->problem, .element_bytes = 4};
    struct ghp_instance in;

    lowering.method.sync = ghp_sync_at(seed % 3 == 0); /* sharded: the rows only bound */
    if (seed % 5 < 2) lowering.shardings = random_case_shardings(&s);
    if (seed % 5 == 0)
        lowering.method.bucket_bytes = 1 << random_below(&s, 14); /* then the rows only bound */
    if (!CHECK_STATUS(ghp_instance_init(&lowering, &c->profile, c->problem.workers, &in), GHP_OK))
        return;
    check_case(&in, c->slow, &s);
    ghp_instance_release(&in);
}

CHECK_TEST(constraints)
{
    check_coefficients();
    for (uint64_t seed = 0; seed < (uint64_t)check_cases(CASES); seed++) {
        struct random_case c;

        if (!CHECK_STATUS(seed % 4 == 3 ? random_case_tied(seed, 1e6, &c)
                                        : random_case_make(4000 + seed, 1e6, &c),
                          GHP_OK))
            break;
        check_drawn(seed, &c);
        random_case_release(&c);
    }
    return check_end();
}
