/* core/sharding/neighbours.c - see neighbours.h. */
#include "core/sharding/neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[GHP_NEIGHBOURS_KINDS] = {"ring", "torus", "complete", NULL};

/* ---- texts ---- */

/* Reads a worker's number and moves *at past it; -1: there is no number. */
static int read_number(const char **at)
{
    char *end = NULL;
    long value = **at >= '0' && **at <= '9' ? strtol(*at, &end, 10) : -1;

    if (value < 0 || value > GHP_NEIGHBOURS_NUMBER_MOST) return -1;
    *at = end;
    return (int)value;
}

/* "0-1,1-2" */
static bool read_edges(const char *at, struct ghp_neighbours *graph)
{
    graph->kind = GHP_NEIGHBOURS_EDGES;
    for (bool more = true; more; at++) {
        int u = read_number(&at), v;

        if (u < 0 || *at != '-' || graph->n_edges == GHP_NEIGHBOURS_EDGES_MOST) return false;
        at++;
        v = read_number(&at);
        if (v < 0 || u == v || (*at != ',' && *at != '\0')) return false;
        graph->edges[graph->n_edges][0] = (int16_t)u;
        graph->edges[graph->n_edges++][1] = (int16_t)v;
        more = *at == ',';
    }
    return true;
}

bool ghp_neighbours_parse(const char *text, struct ghp_neighbours *graph)
{
    *graph = (struct ghp_neighbours){0};
    for (int kind = 0; kind < GHP_NEIGHBOURS_EDGES; kind++) {
        graph->kind = (enum ghp_neighbours_kind)kind;
        if (strcmp(text, names[kind]) == 0) return true;
    }
    return read_edges(text, graph);
}

void ghp_neighbours_format(const struct ghp_neighbours *graph, char text[GHP_NEIGHBOURS_TEXT_BYTES])
{
    size_t used = 0;

    if (graph->kind != GHP_NEIGHBOURS_EDGES) {
        snprintf(text, GHP_NEIGHBOURS_TEXT_BYTES, "%s", names[graph->kind]);
        return;
    }
    for (int e = 0; e < graph->n_edges; e++)
        used += (size_t)snprintf(text + used, GHP_NEIGHBOURS_TEXT_BYTES - used, "%s%d-%d",
                                 e > 0 ? "," : "", graph->edges[e][0], graph->edges[e][1]);
}

/* ---- neighbours ---- */

/* Rows of the grid: the largest divisor up to the root. */
static int rows_of(int workers)
{
    int rows = 1;

    for (int r = 2; r * r <= workers; r++)
        if (workers % r == 0) rows = r;
    return rows;
}

/* In a ring of n. */
static bool are_next(int u, int v, int n)
{
    return u != v && ((u + 1) % n == v || (v + 1) % n == u);
}

bool ghp_neighbours_joins(const struct ghp_neighbours *graph, int workers, int u, int v)
{
    int columns = workers / rows_of(workers);

    if (u == v) return false;
    switch (graph->kind) {
    case GHP_NEIGHBOURS_RING: return are_next(u, v, workers);
    case GHP_NEIGHBOURS_TORUS:
        if (u / columns == v / columns) return are_next(u % columns, v % columns, columns);
        return u % columns == v % columns && are_next(u / columns, v / columns, workers / columns);
    case GHP_NEIGHBOURS_COMPLETE: return true;
    case GHP_NEIGHBOURS_EDGES:
    case GHP_NEIGHBOURS_KINDS: break;
    }
    for (int e = 0; e < graph->n_edges; e++)
        if ((graph->edges[e][0] == u && graph->edges[e][1] == v) ||
            (graph->edges[e][0] == v && graph->edges[e][1] == u))
            return true;
    return false;
}

int ghp_neighbours_degree(const struct ghp_neighbours *graph, int workers, int v)
{
    int degree = 0;

    for (int u = 0; u < workers; u++)
        degree += ghp_neighbours_joins(graph, workers, u, v);
    return degree;
}

int ghp_neighbours_most_degree(const struct ghp_neighbours *graph, int workers)
{
    int most = 0;

    for (int v = 0; v < workers; v++) {
        int degree = ghp_neighbours_degree(graph, workers, v);

        if (degree > most) most = degree;
    }
    return most;
}

double ghp_neighbours_weight(const struct ghp_neighbours *graph, int workers, int u, int v)
{
    double weight = 1.0 / (ghp_neighbours_most_degree(graph, workers) + 1);

    if (u == v) return 1 - ghp_neighbours_degree(graph, workers, v) * weight;
    return ghp_neighbours_joins(graph, workers, u, v) ? weight : 0;
}

/* ---- what fits ---- */

static enum ghp_status check_numbers(const struct ghp_neighbours *graph, int workers)
{
    for (int e = 0; e < graph->n_edges; e++)
        for (int end = 0; end < 2; end++)
            if (graph->edges[e][end] >= workers)
                return GHP_FAIL(GHP_ERR_INPUT,
                                "the graph has an edge '%d-%d', but %d worker(s) are numbered up "
                                "to %d; plan for more workers, or leave the edge out",
                                graph->edges[e][0], graph->edges[e][1], workers, workers - 1);
    return GHP_OK;
}

/* A worker that the first one cannot reach; -1: there is none. */
static int unreached(const struct ghp_neighbours *graph, int workers, bool *reached)
{
    bool grows = true;

    for (reached[0] = true; grows;) {
        grows = false;
        for (int u = 0; u < workers; u++)
            for (int v = 0; v < workers; v++)
                if (reached[u] && !reached[v] && ghp_neighbours_joins(graph, workers, u, v))
                    grows = reached[v] = true;
    }
    for (int v = 0; v < workers; v++)
        if (!reached[v]) return v;
    return -1;
}

enum ghp_status ghp_neighbours_check(const struct ghp_neighbours *graph, int workers)
{
    char text[GHP_NEIGHBOURS_TEXT_BYTES];
    bool *reached;
    int apart;

    if (graph->kind == GHP_NEIGHBOURS_TORUS && workers > 1 && rows_of(workers) == 1)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "%d workers fill no grid of two rows or more, as a 'torus' wants; use "
                        "'ring', or a number of workers that is a product",
                        workers);
    GHP_TRY(check_numbers(graph, workers));
    reached = ghp_alloc((size_t)workers, sizeof *reached);
    if (reached == NULL) return GHP_NO_MEMORY();
    apart = unreached(graph, workers, reached);
    free(reached);
    if (apart < 0) return GHP_OK;
    ghp_neighbours_format(graph, text);
    return GHP_FAIL(GHP_ERR_INPUT,
                    "the graph '%s' is not connected: no edges lead from worker 0 to worker %d of "
                    "%d; add an edge between them, or use 'ring'",
                    text, apart, workers);
}
