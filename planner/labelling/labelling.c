/* planner/labelling/labelling.c - see labelling.h. */
#include "planner/labelling/labelling.h"

#include "planner/labelling/frontier.h"

#include <stdlib.h>

enum { MOST_STATES = 1 << (GHP_LABELLING_FRONTIER + 1) };

/* The graph as a frontier takes it. Pairs of a thing with itself cost nothing there: they are the thing's own. */
struct as_graph {
    struct ghp_edge *edges;
    int *numbers; /* n_choices, first_choice, first_pair in one block */
    struct ghp_frontier_graph graph;
};

static enum ghp_status open_graph(const struct ghp_labelling *from, struct as_graph *to)
{
    size_t n = (size_t)from->n, pairs = (size_t)from->n_pairs;
    int *numbers = ghp_alloc(2 * n + pairs + 2, sizeof *numbers), n_edges = 0;

    *to = (struct as_graph){.numbers = numbers, .edges = ghp_alloc(pairs, sizeof *to->edges)};
    if (numbers == NULL || to->edges == NULL) return GHP_NO_MEMORY();
    for (int v = 0; v <= from->n; v++)
        numbers[from->n + v] = 2 * v;
    for (int v = 0; v < from->n; v++)
        numbers[v] = 2;
    for (int e = 0; e <= from->n_pairs; e++)
        numbers[2 * from->n + 1 + e] = 4 * e;
    for (int i = 0; i < from->n_pairs; i++) {
        const struct ghp_label_pair *pair = &from->pairs[i];

        if (pair->a == pair->b) continue;
        to->edges[n_edges++] = pair->a < pair->b
                                   ? (struct ghp_edge){.from = pair->a, .to = pair->b}
                                   : (struct ghp_edge){.from = pair->b, .to = pair->a};
    }
    to->graph = (struct ghp_frontier_graph){.n_nodes = from->n,
                                            .n_edges = n_edges,
                                            .edges = to->edges,
                                            .n_choices = numbers,
                                            .first_choice = numbers + n,
                                            .first_pair = numbers + 2 * n + 1,
                                            .most_states = MOST_STATES};
    return GHP_OK;
}

static void fill_costs(const struct ghp_labelling *from, struct ghp_frontier *f)
{
    double *edge = f->edge_cost;

    for (int v = 0; v < from->n; v++)
        for (int l = 0; l < 2; l++)
            f->node_cost[2 * v + l] = from->own[v][l];
    for (int i = 0; i < from->n_pairs; i++) {
        const struct ghp_label_pair *pair = &from->pairs[i];

        for (int l = 0; l < 2 && pair->a == pair->b; l++)
            f->node_cost[2 * pair->a + l] += pair->cost[l][l];
        if (pair->a == pair->b) continue;
        for (int k = 0; k < 4; k++) /* label of the earlier thing, then of the later */
            *edge++ = pair->a < pair->b ? pair->cost[k / 2][k % 2] : pair->cost[k % 2][k / 2];
    }
}

enum ghp_status ghp_labelling_solve(const struct ghp_labelling *graph, bool *label, double *cost)
{
    int *choice = ghp_alloc((size_t)graph->n, sizeof *choice);
    struct ghp_frontier f = {0};
    struct as_graph as = {0};
    enum ghp_status status = choice == NULL ? GHP_NO_MEMORY() : open_graph(graph, &as);
    bool fits = false;

    if (status == GHP_OK) status = ghp_frontier_open(&as.graph, &f);
    if (status == GHP_OK) status = ghp_frontier_set(&f, NULL, &fits);
    if (status == GHP_OK && !fits)
        status = GHP_FAIL(GHP_ERR_INFEASIBLE, "more than %d things are tied at once",
                          GHP_LABELLING_FRONTIER);
    if (status == GHP_OK) {
        fill_costs(graph, &f);
        *cost = ghp_frontier_solve(&f, choice);
    }
    for (int v = 0; v < graph->n && status == GHP_OK; v++)
        label[v] = choice[v] != 0;
    ghp_frontier_close(&f);
    free(as.numbers);
    free(as.edges);
    free(choice);
    return status;
}
