/* planner/labelling/frontier_fold.c - what lies between two nodes in parallel, folded into costs of their pairs
 * (frontier.h). */
#include "planner/labelling/frontier_private.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_PARALLEL = 3 }; /* branches with nodes inside, from which on they are folded */

/* A graph while it is reduced: a node between one node before it and one after it becomes an edge between these two,
 * until no such node is left. The graph's edges come first, then those that are made. */
struct reduction {
    const struct ghp_frontier_graph *graph;
    int n;              /* edges by now */
    int *from, *to;     /* an edge's ends */
    int *node, *in;     /* of an edge made: the node, and the first edges before it and after it */
    int *out;           /* the others follow by next_in and next_out */
    int *first_in;      /* a node's edges, -1: none */
    int *first_out;     /* the same */
    int *next_in;       /* an edge: the next one into the same node */
    int *next_out;      /* and out of the same one */
    int *number;        /* an edge's number in the frontier */
    bool *taken, *gone; /* an edge: is a fold; a node: has become an edge */
};

static void reduction_close(struct reduction *r)
{
    free(r->from);
    free(r->taken);
}

static enum ghp_status reduction_open(const struct ghp_frontier_graph *graph, struct reduction *r)
{
    size_t nodes = (size_t)graph->n_nodes, edges = (size_t)graph->n_edges + nodes;

    *r = (struct reduction){.graph = graph};
    r->from = ghp_alloc(8 * edges + 2 * nodes + 1, sizeof *r->from);
    r->taken = ghp_alloc(edges + nodes + 1, sizeof *r->taken);
    if (r->from == NULL || r->taken == NULL) {
        reduction_close(r);
        return GHP_NO_MEMORY();
    }
    r->to = r->from + edges;
    r->node = r->to + edges;
    r->in = r->node + edges;
    r->out = r->in + edges;
    r->next_in = r->out + edges;
    r->next_out = r->next_in + edges;
    r->number = r->next_out + edges;
    r->first_in = r->number + edges;
    r->first_out = r->first_in + nodes;
    r->gone = r->taken + edges;
    for (int v = 0; v < graph->n_nodes; v++)
        r->first_in[v] = r->first_out[v] = -1;
    return GHP_OK;
}

static int add_edge(struct reduction *r, int from, int to)
{
    int e = r->n++;

    r->from[e] = from;
    r->to[e] = to;
    r->next_in[e] = r->first_in[to];
    r->first_in[to] = e;
    r->next_out[e] = r->first_out[from];
    r->first_out[from] = e;
    return e;
}

/* Takes the edges that end (or begin) at a node out of the lists of their other ends. */
static void unlink_edges(int *first, int *next, const int *end, int node)
{
    for (int *e = first; *e >= 0;)
        if (end[*e] == node)
            *e = next[*e];
        else
            e = &next[*e];
}

/* Makes an edge of a node that has one node before it and one after it. Returns whether it has them. */
static bool reduce_node(struct reduction *r, int v)
{
    int in = r->first_in[v], out = r->first_out[v], e;

    if (r->gone[v] || in < 0 || out < 0) return false;
    for (int i = in; i >= 0; i = r->next_in[i])
        if (r->from[i] != r->from[in]) return false;
    for (int o = out; o >= 0; o = r->next_out[o])
        if (r->to[o] != r->to[out]) return false;
    unlink_edges(&r->first_out[r->from[in]], r->next_out, r->to, v);
    unlink_edges(&r->first_in[r->to[out]], r->next_in, r->from, v);
    e = add_edge(r, r->from[in], r->to[out]);
    r->node[e] = v;
    r->in[e] = in;
    r->out[e] = out;
    r->gone[v] = true;
    return true;
}

/* Takes an edge made and those that it is made of. */
static void take(struct reduction *r, int e)
{
    if (e < r->graph->n_edges || r->taken[e]) return;
    r->taken[e] = true;
    for (int i = r->in[e]; i >= 0; i = r->next_in[i])
        take(r, i);
    for (int o = r->out[e]; o >= 0; o = r->next_out[o])
        take(r, o);
}

/* Takes those edges of a list that are parallel to enough others. */
static void take_parallel(struct reduction *r, int first, const int *next, const int *end)
{
    for (int e = first; e >= 0; e = next[e]) {
        int n = 0;

        for (int o = first; o >= 0; o = next[o])
            n += end[o] == end[e] && o >= r->graph->n_edges;
        if (n >= LEAST_PARALLEL) take(r, e);
    }
}

/* Links a fold's edges before its node, or those after it, by the frontier's numbers. Returns the first. */
static int link_edges(struct ghp_frontier *f, int first, const int *next, const int *number)
{
    for (int e = first; e >= 0; e = next[e])
        f->next_edge[number[e]] = next[e] >= 0 ? number[next[e]] : -1;
    return number[first];
}

/* Makes the folds, each after those that it is made of. */
static void make_folds(struct ghp_frontier *f, struct reduction *r)
{
    for (int e = 0; e < r->n; e++) {
        r->number[e] = e;
        if (!r->taken[e]) continue;
        r->number[e] = f->graph.n_edges + f->n_folds;
        f->folds[f->n_folds++] =
            (struct ghp_frontier_fold){.node = r->node[e],
                                       .from = r->from[e],
                                       .to = r->to[e],
                                       .in = link_edges(f, r->in[e], r->next_in, r->number),
                                       .out = link_edges(f, r->out[e], r->next_out, r->number)};
    }
}

static enum ghp_status find_folds(struct ghp_frontier *f, bool *folded)
{
    const struct ghp_frontier_graph *graph = &f->graph;
    struct reduction r;
    bool reduced = true;

    GHP_TRY(reduction_open(graph, &r));
    for (int e = 0; e < graph->n_edges; e++)
        add_edge(&r, graph->edges[e].from, graph->edges[e].to);
    while (reduced) {
        reduced = false;
        for (int v = 0; v < graph->n_nodes; v++)
            reduced = reduce_node(&r, v) || reduced;
    }
    for (int e = graph->n_edges; e < r.n; e++) {
        take_parallel(&r, r.in[e], r.next_in, r.from);
        take_parallel(&r, r.out[e], r.next_out, r.to);
    }
    for (int v = 0; v < graph->n_nodes; v++)
        if (!r.gone[v]) take_parallel(&r, r.first_in[v], r.next_in, r.from);
    make_folds(f, &r);
    for (int k = 0; k < f->n_folds; k++)
        folded[f->folds[k].node] = true;
    reduction_close(&r);
    return GHP_OK;
}

/* The nodes that are left, who reads them last, and their edges among each other. */
static void list_kept(struct ghp_frontier *f, const bool *folded)
{
    int n_edges = f->graph.n_edges + f->n_folds, nodes = f->graph.n_nodes, n = 0;

    for (int v = 0; v < nodes; v++) {
        f->last[v] = -1;
        if (!folded[v]) f->kept[f->n_kept++] = v;
    }
    for (int pass = 0; pass < 2; pass++) { /* counts, then fills from the end */
        for (int e = n_edges - 1; e >= 0; --e) {
            struct ghp_edge edge = ghp_frontier_edge(f, e);

            if (folded[edge.from] || folded[edge.to]) continue;
            if (edge.to > f->last[edge.from]) f->last[edge.from] = edge.to;
            if (pass == 0)
                ++f->first_in[edge.to + 1], ++n;
            else
                f->in_edges[--f->first_in[edge.to + 1]] = e;
        }
        for (int v = 0; v < nodes && pass == 0; v++)
            f->first_in[v + 1] += f->first_in[v];
    }
    for (int v = 0; v < nodes; v++) /* each was taken down to its beginning */
        f->first_in[v] = f->first_in[v + 1];
    f->first_in[nodes] = n;
}

enum ghp_status ghp_frontier_find_folds(struct ghp_frontier *f)
{
    size_t nodes = (size_t)f->graph.n_nodes;
    bool *folded = ghp_alloc(nodes, sizeof *folded);
    enum ghp_status status = folded == NULL ? GHP_NO_MEMORY() : GHP_OK;

    if (status == GHP_OK && !f->graph.unfolded) status = find_folds(f, folded);
    if (status == GHP_OK) list_kept(f, folded);
    free(folded);
    return status;
}

/* The sums of the edges after a fold's node, from its choice j to each choice of `to`. */
static const double *cost_behind(const struct ghp_frontier *f, const struct ghp_frontier_fold *fold,
                                 int j)
{
    const int n = f->n_classes[fold->to];
    const double *first = ghp_frontier_cost(f, fold->out) + j * n;

    if (f->next_edge[fold->out] < 0) return first;
    for (int b = 0; b < n; b++)
        f->row[b] = first[b];
    for (int e = f->next_edge[fold->out]; e >= 0; e = f->next_edge[e])
        for (int b = 0; b < n; b++)
            f->row[b] += ghp_frontier_cost(f, e)[j * n + b];
    return f->row;
}

static void cost_fold(struct ghp_frontier *f, int number)
{
    const struct ghp_frontier_fold *fold = &f->folds[number];
    const double *node = &f->class_cost[f->graph.first_choice[fold->node]];
    const int n = f->n_classes[fold->node], n_from = f->n_classes[fold->from];
    const int n_to = f->n_classes[fold->to];
    double *cost = &f->fold_cost[fold->table];

    for (int k = 0; k < n_from * n_to; k++)
        cost[k] = INFINITY;
    for (int j = 0; j < n; j++) {
        const double *behind = cost_behind(f, fold, j);

        for (int a = 0; a < n_from; a++) {
            double before = ghp_frontier_before(f, fold, a, j) + node[j];
            double *restrict least = cost + a * n_to;

            for (int b = 0; b < n_to && before < INFINITY; b++) {
                double sum = before + behind[b];

                least[b] = sum < least[b] ? sum : least[b];
            }
        }
    }
}

void ghp_frontier_cost_folds(struct ghp_frontier *f)
{
    for (int number = 0; number < f->n_folds; number++)
        cost_fold(f, number);
}

void ghp_frontier_unfold(struct ghp_frontier *f, int *choice)
{
    for (int number = f->n_folds - 1; number >= 0; --number) {
        const struct ghp_frontier_fold *fold = &f->folds[number];
        int a = f->digit[fold->from], b = f->digit[fold->to], best = 0;

        for (int j = 1; j < f->n_classes[fold->node]; j++)
            if (ghp_frontier_through(f, fold, a, j, b) < ghp_frontier_through(f, fold, a, best, b))
                best = j;
        f->digit[fold->node] = best;
        choice[fold->node] = ghp_frontier_cheapest(f, fold->node);
    }
}

/* Lowers a pair of each edge from `first` on to a sum. */
static void lower_pairs(const struct ghp_frontier *f, int first, int pair, double sum)
{
    for (int e = first; e >= 0; e = f->next_edge[e]) {
        double *least = &ghp_frontier_least(f, e)[pair];

        *least = sum < *least ? sum : *least;
    }
}

static void unfold_marginals(struct ghp_frontier *f, int number)
{
    const struct ghp_frontier_fold *fold = &f->folds[number];
    const int n = f->n_classes[fold->node], n_to = f->n_classes[fold->to];
    double *node = &f->class_least[f->graph.first_choice[fold->node]];

    for (int a = 0; a < f->n_classes[fold->from]; a++)
        for (int b = 0; b < n_to; b++) {
            int64_t at = fold->table + a * n_to + b;

            if (!(f->fold_least[at] < INFINITY)) continue;
            for (int j = 0; j < n; j++) {
                double sum =
                    f->fold_least[at] + (ghp_frontier_through(f, fold, a, j, b) - f->fold_cost[at]);

                node[j] = sum < node[j] ? sum : node[j];
                lower_pairs(f, fold->in, a * n + j, sum);
                lower_pairs(f, fold->out, j * n_to + b, sum);
            }
        }
}

void ghp_frontier_unfold_marginals(struct ghp_frontier *f)
{
    for (int number = f->n_folds - 1; number >= 0; --number)
        unfold_marginals(f, number);
}
