/* tests/planner/labelling/test_labelling.c - the cheapest labelling against all labellings of random small graphs,
 * costs that no minimum cut would take among them; chains of any length; a frontier that is too wide.
 *
 * Costs are whole numbers below 2^20, so that sums of some hundreds are exact and equal bit by bit in any order. */
#include "planner/labelling/labelling.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_THINGS = 10, MOST_PAIRS = 24 };

static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % n;
}

static double draw_cost(bool may_forbid)
{
    return may_forbid && draw(12) == 0 ? (double)INFINITY : (double)draw(1 << 20);
}

static double cost_of(const struct ghp_labelling *graph, const bool *label)
{
    double cost = 0;

    for (int v = 0; v < graph->n; v++)
        cost += graph->own[v][label[v]];
    for (int i = 0; i < graph->n_pairs; i++) {
        const struct ghp_label_pair *pair = &graph->pairs[i];

        cost += pair->cost[label[pair->a]][label[pair->b]];
    }
    return cost;
}

/* The least cost of all 2^n labellings. */
static double least_of_all(const struct ghp_labelling *graph)
{
    double least = INFINITY;

    for (unsigned bits = 0; bits < 1u << graph->n; bits++) {
        bool label[MOST_THINGS];

        for (int v = 0; v < graph->n; v++)
            label[v] = (bits >> v & 1) != 0;
        least = fmin(least, cost_of(graph, label));
    }
    return least;
}

static void draw_graph(struct ghp_labelling *graph, bool may_forbid)
{
    graph->n = 1 + (int)draw(MOST_THINGS);
    graph->n_pairs = (int)draw(MOST_PAIRS + 1);
    for (int v = 0; v < graph->n; v++)
        for (int l = 0; l < 2; l++)
            graph->own[v][l] = draw_cost(may_forbid);
    for (int i = 0; i < graph->n_pairs; i++) {
        graph->pairs[i].a = (int)draw((unsigned)graph->n);
        graph->pairs[i].b = (int)draw((unsigned)graph->n);
        for (int l = 0; l < 4; l++)
            graph->pairs[i].cost[l / 2][l % 2] = draw_cost(may_forbid);
    }
}

static void test_random(void)
{
    double own[MOST_THINGS][2];
    struct ghp_label_pair pairs[MOST_PAIRS];
    struct ghp_labelling graph = {.own = own, .pairs = pairs};
    int forbidden = 0, mixed = 0;

    for (int k = 0; k < 2000; k++) {
        bool label[MOST_THINGS];
        double cost = -1, least;

        draw_graph(&graph, k % 2 == 1);
        least = least_of_all(&graph);
        CHECK_STATUS(ghp_labelling_solve(&graph, label, &cost), GHP_OK);
        if (isinf(least)) {
            CHECK(isinf(cost));
            forbidden++;
            continue;
        }
        CHECK_NEAR(cost, least, 0);
        CHECK_NEAR(cost_of(&graph, label), least, 0);
        for (int v = 1; v < graph.n; v++)
            mixed += label[v] != label[0];
    }
    CHECK(forbidden > 0 && forbidden < 1000);
    CHECK(mixed > 1000);
}

/* Each thing alone would be 0, each pair is cheaper unlike: labels take turns, however long the chain. */
static void test_chain(void)
{
    enum { LONG = 500 };
    static double own[LONG][2];
    static struct ghp_label_pair pairs[LONG - 1];
    static bool label[LONG];
    struct ghp_labelling graph = {.n = LONG, .own = own, .n_pairs = LONG - 1, .pairs = pairs};
    double cost = 0;

    for (int v = 0; v < LONG; v++)
        own[v][1] = 1;
    for (int i = 0; i < LONG - 1; i++)
        pairs[i] = (struct ghp_label_pair){i + 1, i, {{3, 0}, {0, 3}}};
    CHECK_STATUS(ghp_labelling_solve(&graph, label, &cost), GHP_OK);
    CHECK_NEAR(cost, LONG / 2, 0);
    for (int v = 1; v < LONG; v++)
        CHECK(label[v] != label[v - 1]);
}

/* All is equal: 0 everywhere. */
static void test_ties(void)
{
    double own[3][2] = {{1, 1}, {2, 2}, {0, 0}};
    struct ghp_label_pair pair = {0, 2, {{5, 5}, {5, 5}}};
    struct ghp_labelling graph = {.n = 3, .own = own, .n_pairs = 1, .pairs = &pair};
    bool label[3] = {true, true, true};
    double cost = 0;

    CHECK_STATUS(ghp_labelling_solve(&graph, label, &cost), GHP_OK);
    CHECK_NEAR(cost, 8, 0);
    CHECK(!label[0] && !label[1] && !label[2]);
}

static void test_wide(void)
{
    enum { WIDE = GHP_LABELLING_FRONTIER + 2 };
    static double own[WIDE + 1][2];
    static struct ghp_label_pair pairs[WIDE];
    static bool label[WIDE + 1];
    struct ghp_labelling graph = {.n = WIDE + 1, .own = own, .n_pairs = WIDE, .pairs = pairs};
    double cost = 0;

    for (int i = 0; i < WIDE; i++) /* all wait for the last */
        pairs[i] = (struct ghp_label_pair){i, WIDE, {{0, 1}, {1, 0}}};
    CHECK_STATUS(ghp_labelling_solve(&graph, label, &cost), GHP_ERR_INFEASIBLE);
    graph.n_pairs = 0;
    CHECK_STATUS(ghp_labelling_solve(&graph, label, &cost), GHP_OK);
}

CHECK_TEST(labelling)
{
    test_random();
    test_chain();
    test_ties();
    test_wide();
    return check_end();
}
