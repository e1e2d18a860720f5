/* core/program/graph.h - who is a neighbour of whom, and the matrix P by which neighbours mix: P = I - (D - A) /
 * (dmax + 1), A the graph's matrix, D its degrees, dmax their largest. Rows and columns of P sum to 1.
 *
 *     ring       each worker next to the following one
 *     torus      workers fill a grid row by row, as near to a square as they allow, and each row and column is a ring
 *     complete   all are neighbours: P = 1 / N
 *     0-1,1-2    edges between workers by number
 *
 * Two workers are neighbours once, however often a name says so (a ring of two).
 *
 * Source   Richards, Rebeschini, Rosasco, ICML 2020
 * Tested   tests/core/program/test_graph.c */
#ifndef GHP_CORE_PROGRAM_GRAPH_H
#define GHP_CORE_PROGRAM_GRAPH_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ghp_graph_kind {
    GHP_GRAPH_RING,
    GHP_GRAPH_TORUS,
    GHP_GRAPH_COMPLETE,
    GHP_GRAPH_EDGES,
    GHP_GRAPH_KINDS
};

enum { GHP_GRAPH_EDGES_MOST = 32, GHP_GRAPH_NUMBER_MOST = 999, GHP_GRAPH_TEXT_BYTES = 320 };

struct ghp_graph { /* zeroed: a ring */
    enum ghp_graph_kind kind;
    int n_edges; /* of GHP_GRAPH_EDGES, else 0 */
    int16_t edges[GHP_GRAPH_EDGES_MOST][2];
};

/* Reads a graph by name or by edges. Returns whether the text is one */
bool ghp_graph_parse(const char *text, struct ghp_graph *graph);
void ghp_graph_format(const struct ghp_graph *graph, char text[GHP_GRAPH_TEXT_BYTES]);

/* Whether the graph can have `workers` vertices, each of which reaches every other one.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT naming the graph and the worker */
enum ghp_status ghp_graph_check(const struct ghp_graph *graph, int workers);

/* Whether two workers are neighbours; nobody is its own. */
bool ghp_graph_joins(const struct ghp_graph *graph, int workers, int u, int v);
int ghp_graph_degree(const struct ghp_graph *graph, int workers, int v);
int ghp_graph_most_degree(const struct ghp_graph *graph, int workers);

/* P_uv. */
double ghp_graph_weight(const struct ghp_graph *graph, int workers, int u, int v);

#endif
