/* core/plan/frontier_fold.c - chains between two nodes, folded into costs of their pairs (frontier.h). */
#include "core/plan/frontier_private.h"

#include <math.h>
#include <stdlib.h>

/* What is known of a node while folds are looked for. */
struct ends {
    int n_in, n_out, in, out; /* edges, and the last of each */
};

/* The node at which the chain begins that ends with this edge; `inside` receives the nodes between. */
static int chain_start(const struct ghp_frontier *f, const struct ends *ends, int e, int *inside)
{
    int from = f->graph.edges[e].from;

    *inside = 0;
    while (ends[from].n_in == 1 && ends[from].n_out == 1) {
        from = f->graph.edges[ends[from].in].from;
        ++*inside;
    }
    return from;
}

/* The folds of one chain, from its first end to edge e. */
static void fold_chain(struct ghp_frontier *f, const struct ends *ends, int start, int e,
                       bool *folded)
{
    int node = f->graph.edges[e].from, at = f->n_folds, n = 0;

    for (int v = node; v != start; v = f->graph.edges[ends[v].in].from)
        ++n;
    f->n_folds += n;
    for (int k = n - 1; k >= 0; --k, node = f->graph.edges[ends[node].in].from) {
        f->folds[at + k] =
            (struct ghp_frontier_fold){.node = node,
                                       .from = start,
                                       .to = f->graph.edges[ends[node].out].to,
                                       .in = k > 0 ? f->graph.n_edges + at + k - 1 : ends[node].in,
                                       .out = ends[node].out};
        folded[node] = true;
    }
}

/* Folds the chains into a node that begin at one other, where three or more have nodes inside. */
static void fold_before(struct ghp_frontier *f, const struct ends *ends, int node, int first,
                        bool *folded)
{
    const struct ghp_frontier_graph *graph = &f->graph;
    int inside, others, start;

    for (int e = first; e < graph->n_edges && graph->edges[e].to == node; ++e) {
        start = chain_start(f, ends, e, &inside);
        others = 0;
        if (inside == 0 || folded[graph->edges[e].from]) continue;
        for (int o = first; o < graph->n_edges && graph->edges[o].to == node; ++o)
            others += chain_start(f, ends, o, &inside) == start && inside > 0;
        if (others > 2) fold_chain(f, ends, start, e, folded);
    }
}

static bool ascending(const struct ghp_frontier_graph *graph)
{
    for (int e = 1; e < graph->n_edges; ++e)
        if (graph->edges[e].to < graph->edges[e - 1].to) return false;
    return true;
}

static void find_folds(struct ghp_frontier *f, struct ends *ends, bool *folded)
{
    const struct ghp_frontier_graph *graph = &f->graph;
    const bool sorted = ascending(graph);

    for (int e = 0; e < graph->n_edges; ++e) {
        struct ends *from = &ends[graph->edges[e].from], *to = &ends[graph->edges[e].to];

        ++from->n_out, from->out = e;
        ++to->n_in, to->in = e;
    }
    for (int e = 0; sorted && e < graph->n_edges; ++e)
        if (e == 0 || graph->edges[e].to != graph->edges[e - 1].to)
            fold_before(f, ends, graph->edges[e].to, e, folded);
}

/* The nodes that are left, who reads them last, and their edges among each other. */
static void list_kept(struct ghp_frontier *f, const bool *folded)
{
    int n_edges = f->graph.n_edges + f->n_folds, nodes = f->graph.n_nodes, n = 0;

    for (int v = 0; v < nodes; ++v) {
        f->last[v] = -1;
        if (!folded[v]) f->kept[f->n_kept++] = v;
    }
    for (int pass = 0; pass < 2; ++pass) { /* counts, then fills from the end */
        for (int e = n_edges - 1; e >= 0; --e) {
            struct ghp_edge edge = ghp_frontier_edge(f, e);

            if (folded[edge.from] || folded[edge.to]) continue;
            if (edge.to > f->last[edge.from]) f->last[edge.from] = edge.to;
            if (pass == 0)
                ++f->first_in[edge.to + 1], ++n;
            else
                f->in_edges[--f->first_in[edge.to + 1]] = e;
        }
        for (int v = 0; v < nodes && pass == 0; ++v)
            f->first_in[v + 1] += f->first_in[v];
    }
    for (int v = 0; v < nodes; ++v) /* each was taken down to its beginning */
        f->first_in[v] = f->first_in[v + 1];
    f->first_in[nodes] = n;
}

enum ghp_status ghp_frontier_fold(struct ghp_frontier *f)
{
    size_t nodes = (size_t)f->graph.n_nodes;
    struct ends *ends = ghp_alloc(nodes, sizeof *ends);
    bool *folded = ghp_alloc(nodes, sizeof *folded);
    enum ghp_status status = ends == NULL || folded == NULL ? GHP_NO_MEMORY() : GHP_OK;

    if (status == GHP_OK) {
        find_folds(f, ends, folded);
        list_kept(f, folded);
    }
    free(ends);
    free(folded);
    return status;
}

static void cost_fold(struct ghp_frontier *f, int number)
{
    const struct ghp_frontier_fold *fold = &f->folds[number];
    const double *node = &f->node_cost[f->graph.first_choice[fold->node]];
    const double *in = ghp_frontier_cost(f, fold->in), *out = ghp_frontier_cost(f, fold->out);
    const int n = f->n_active[fold->node], n_to = f->n_active[fold->to];
    double *cost = &f->fold_cost[fold->table];

    for (int a = 0; a < f->n_active[fold->from]; ++a, cost += n_to) {
        for (int b = 0; b < n_to; ++b)
            cost[b] = INFINITY;
        for (int j = 0; j < n; ++j) {
            double before = in[a * n + j] + node[j];

            for (int b = 0; b < n_to && before < INFINITY; ++b) {
                double sum = before + out[j * n_to + b];

                cost[b] = sum < cost[b] ? sum : cost[b];
            }
        }
    }
}

void ghp_frontier_cost_folds(struct ghp_frontier *f)
{
    for (int number = 0; number < f->n_folds; ++number)
        cost_fold(f, number);
}

void ghp_frontier_unfold(struct ghp_frontier *f, int *choice)
{
    for (int number = f->n_folds - 1; number >= 0; --number) {
        const struct ghp_frontier_fold *fold = &f->folds[number];
        int a = f->digit[fold->from], b = f->digit[fold->to], best = 0;

        for (int j = 1; j < f->n_active[fold->node]; ++j)
            if (ghp_frontier_through(f, fold, a, j, b) < ghp_frontier_through(f, fold, a, best, b))
                best = j;
        f->digit[fold->node] = best;
        choice[fold->node] = f->active[f->graph.first_choice[fold->node] + best];
    }
}

static void unfold_marginals(struct ghp_frontier *f, int number)
{
    const struct ghp_frontier_fold *fold = &f->folds[number];
    const int n = f->n_active[fold->node], n_to = f->n_active[fold->to];
    double *node = &f->node_least[f->graph.first_choice[fold->node]];
    double *in = ghp_frontier_least(f, fold->in), *out = ghp_frontier_least(f, fold->out);

    for (int a = 0; a < f->n_active[fold->from]; ++a)
        for (int b = 0; b < n_to; ++b) {
            int64_t at = fold->table + a * n_to + b;

            if (!(f->fold_least[at] < INFINITY)) continue;
            for (int j = 0; j < n; ++j) {
                double sum =
                    f->fold_least[at] + (ghp_frontier_through(f, fold, a, j, b) - f->fold_cost[at]);

                node[j] = fmin(node[j], sum);
                in[a * n + j] = fmin(in[a * n + j], sum);
                out[j * n_to + b] = fmin(out[j * n_to + b], sum);
            }
        }
}

void ghp_frontier_unfold_marginals(struct ghp_frontier *f)
{
    for (int number = f->n_folds - 1; number >= 0; --number)
        unfold_marginals(f, number);
}
